"""Reservations for the first jobs that must wait: equal to the reference, to EASY with one of them on a flat machine,
and by hand."""

from __future__ import annotations

import pytest
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import workload_of
from tests.strategies import QUEUE_ORDERS, examples, flats, machines, runs
from tests.test_engine_against_reference import assert_same
from tests.test_limits_against_reference import limited_runs, limits
from tests.test_site_against_reference import CHOICES
from tests.test_site_against_reference import assert_same as assert_same_on_site
from tests.test_site_against_reference import cases as site_cases

TOP_JOBS = st.sampled_from((0, 1, 1, 2, 3, 100))


@given(runs(machines), TOP_JOBS, st.sampled_from(("actual", "requested")), st.sampled_from((0, 0, 1)))
@examples(120)
def test_schedules(case, top_jobs, estimates, delay):
    assert_same(case, scheduler="top-jobs", top_jobs=top_jobs, estimates=estimates, start_delay=delay)


@given(runs(machines, failures=True), TOP_JOBS, st.sampled_from(QUEUE_ORDERS), st.sampled_from(("none", "periodic")))
@examples(80)
def test_with_failures_orders_and_checkpoints(case, top_jobs, order, checkpoint):
    options = {"checkpoint": checkpoint, "checkpoint_interval": 5, "checkpoint_cost": 1, "estimates": "requested"}
    assert_same(case, scheduler="top-jobs", top_jobs=top_jobs, queue_order=order, **options)


@given(limited_runs(flats), TOP_JOBS)
@examples(40)
def test_with_limits(drawn, top_jobs):
    case, found = drawn
    assert_same(case, scheduler="top-jobs", top_jobs=top_jobs, estimates="requested", **found)


@given(
    st.one_of(site_cases(), site_cases(failures=True), site_cases(reservations=True)),
    TOP_JOBS,
    st.sampled_from(CHOICES),
)
@examples(80)
def test_on_sites(case, top_jobs, node_choice):
    assert_same_on_site(case, scheduler="top-jobs", top_jobs=top_jobs, node_choice=node_choice)


@given(site_cases(failures=True), limits("flat:1"), TOP_JOBS)
@examples(40)
def test_on_sites_with_limits(case, found, top_jobs):
    """Limits of nodes are of cores on a site: as many as the largest job asks for, or some more."""
    largest = max(need.chunks * need.each[0] for *_, need in case[1])
    cores = {name: most and largest + most - 1 for name, most in found.items() if name.endswith("nodes")}
    assert_same_on_site(case, scheduler="top-jobs", top_jobs=top_jobs, **found | cores)


def test_a_job_at_a_limit_has_nothing_reserved_on_a_site(tmp_path):
    """Jobs 3 and 6 are of one user: job 6 has a reservation, and may not run once job 3 has overtaken it."""
    path = tmp_path / "site.toml"
    path.write_text('format = "faultsweep site, 1"\n[[nodes]]\nname = "n"\ncount = 4\ncores = 1\n')
    workload = workload_of([(7, 0, 10, 10, 3), (6, 1, 10, 10, 4), (3, 2, 5, 5, 1)])
    run = simulate(workload, machine=str(path), scheduler="top-jobs", top_jobs=3, user_max_jobs=1, debug=True)
    assert run.jobs["start_s"].tolist() == [0, 10, 2]


def starts(rows, **options) -> list[float]:
    """When jobs (submission, run time, nodes) start on four nodes."""
    workload = workload_of([(k, submit, run, run, size) for k, (submit, run, size) in enumerate(rows)])
    return simulate(workload, machine="flat:4", debug=True, **options).jobs["start_s"].tolist()


@pytest.mark.parametrize(("top_jobs", "found"), [(0, [0, 10, 22, 2]), (1, [0, 10, 22, 2]), (2, [0, 10, 15, 35])])
def test_a_second_reservation_is_not_delayed(top_jobs, found):
    """Two of four nodes are free. The second job wants three of them at 10 s, the third all at 15 s; the last one would
    take one for long, and leaves three."""
    rows = [(0, 10, 2), (1, 5, 3), (1, 20, 4), (2, 20, 1)]
    assert starts(rows, scheduler="top-jobs", top_jobs=top_jobs) == found


@given(runs(flats))
@examples(60)
def test_one_top_job_is_easy_on_a_flat_machine(case):
    machine, rows, _ = case
    one, easy = (
        simulate(workload_of(rows), machine=machine, scheduler=name, estimates="requested").jobs["start_s"].tolist()
        for name in ("top-jobs", "backfill")
    )
    assert one == easy
