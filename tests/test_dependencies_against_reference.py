"""Jobs that wait for others: the engine's schedules are those of the reference, which asks at each look who has ended.

Under ``dependencies = log`` the jobs of the reference wait for the one or two before them, with think times or without
(``Job.follows``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.dependencies import Dependencies
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import failures_of, workload_of
from tests.reference.site import Need
from tests.strategies import QUEUE_ORDERS, SCHEDULERS, examples, flats, machines, menus, runs
from tests.test_engine_against_reference import assert_same
from tests.test_limits_against_reference import limits
from tests.test_preemption_against_reference import TIMES, check_same
from tests.test_preemption_against_reference import runs as preempting_runs
from tests.test_priorities_against_reference import SETTINGS
from tests.test_site_against_reference import CHOICES
from tests.test_site_against_reference import assert_same as assert_same_on_site
from tests.test_site_against_reference import cases as site_cases
from tests.test_slurm_against_reference import SETTINGS as PASSES
from tests.test_slurm_against_reference import check_same as check_passes

LOG = {"dependencies": "log"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(runs(machines), st.sampled_from(("actual", "requested")), st.sampled_from((0, 0, 1)))
@examples(60)
def test_schedules_are_those_of_the_reference(scheduler, case, estimates, delay):
    assert_same(case, scheduler=scheduler, estimates=estimates, start_delay=delay, **LOG)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(runs(machines, failures=True), st.sampled_from(QUEUE_ORDERS), st.sampled_from((0, 0, 3)))
@examples(60)
def test_with_failures_and_orders(scheduler, case, order, hold):
    assert_same(case, scheduler=scheduler, queue_order=order, requeue_hold=hold, **LOG)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(runs(menus, failures=True))
@examples(20)
def test_on_menus(scheduler, case):
    assert_same(case, scheduler=scheduler, **LOG)


@pytest.mark.parametrize("event_order", ["submits-first", "ends-first"])
@given(runs(machines), st.sampled_from(SCHEDULERS))
@examples(40)
def test_event_orders(event_order, case, scheduler):
    assert_same(case, scheduler=scheduler, estimates="requested", event_order=event_order, **LOG)


@given(runs(flats, failures=True), st.sampled_from(("fcfs", "backfill", "conservative")), SETTINGS)
@examples(40)
def test_with_priorities(case, scheduler, settings):
    assert_same(case, scheduler=scheduler, queue_order="multifactor", **settings, **LOG)


@given(runs(machines, failures=True), st.sampled_from(SCHEDULERS), st.booleans(), st.data())
@examples(60)
def test_with_recovery(case, scheduler, hold, data):
    machine, jobs, failures = case
    rows = [(*row, data.draw(st.sampled_from("ABCDE"))) for row in jobs]
    assert_same((machine, rows, failures), scheduler=scheduler, recovery=True, hold=hold, **LOG)


@given(runs(machines, failures=True), st.sampled_from(SCHEDULERS), st.data())
@examples(40)
def test_with_limits(case, scheduler, data):
    assert_same(case, scheduler=scheduler, **data.draw(limits(case[0])), **LOG)


@given(runs(machines, failures=True), st.sampled_from((1, 7.5, 20, 41, 1000)), st.sampled_from(SCHEDULERS))
@examples(40)
def test_that_end_at_a_horizon(case, horizon, scheduler):
    assert_same(case, scheduler=scheduler, horizon=horizon, **LOG)


@given(runs(machines, failures=True), st.sampled_from(SCHEDULERS))
@examples(20)
def test_invariants(case, scheduler):
    machine, jobs, failures = case
    if machine.startswith("midplanes"):
        return
    given_failures = failures_of(failures, jobs)
    simulate(workload_of(jobs, "log"), machine=machine, failures=given_failures, scheduler=scheduler, debug=True, **LOG)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(site_cases(failures=True), st.sampled_from(CHOICES), st.sampled_from((0, 0, 1)))
@examples(40)
def test_on_sites(scheduler, case, node_choice, delay):
    assert_same_on_site(case, scheduler=scheduler, node_choice=node_choice, start_delay=delay, **LOG)


@given(site_cases(), PASSES)
@examples(60)
def test_passes_of_slurm(case, settings):
    check_passes(case, settings, **LOG)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(preempting_runs(), TIMES)
@examples(60)
def test_with_preemption(scheduler, run, times):
    """A job that is cancelled has ended, too."""
    check_same(run, scheduler=scheduler, **times, **LOG)


# --- by hand --------------------------------------------------------------------------------------------------------


def chain(*pairs: tuple[int, int, float], rows=((1, 0, 100, 100, 1), (2, 10, 50, 50, 1), (3, 20, 30, 30, 1))):
    """Jobs, and pairs (job, after, think time) of them, by index."""
    job, after, think = (np.array(column) for column in zip(*pairs, strict=True))
    return replace(workload_of(rows), dependencies=Dependencies(job, after, think.astype(float)))


def starts(workload, machine="flat:4", **settings):
    return simulate(workload, machine=machine, **{**LOG, **settings}).jobs["start_s"].tolist()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative", "top-jobs"])
def test_a_job_starts_when_the_one_before_it_has_ended_and_its_think_time_is_over(scheduler):
    run = simulate(chain((1, 0, 5.0), (2, 1, 0.0)), machine="flat:4", scheduler=scheduler, **LOG)
    assert run.jobs["start_s"].tolist() == [0.0, 105.0, 155.0]
    assert run.jobs["wait_s"].tolist() == [0.0, 0.0, 0.0]
    assert run.jobs["submit_s"].tolist() == [0.0, 105.0, 155.0]
    assert run.jobs["response_s"].tolist() == [100.0, 50.0, 30.0]


def test_a_job_waits_for_all_that_it_follows():
    assert starts(chain((2, 0, 0.0), (2, 1, 60.0))) == [0.0, 10.0, 120.0]
    assert starts(chain((2, 0, 30.0), (2, 1, 60.0))) == [0.0, 10.0, 130.0]


def test_a_think_time_may_be_over_at_the_submission():
    rows = ((1, 0, 10, 10, 1), (2, 100, 50, 50, 1), (3, 110, 30, 30, 1))
    assert starts(chain((1, 0, 20.0), (2, 0, 105.0), rows=rows)) == [0.0, 100.0, 115.0]


def test_a_held_job_holds_up_nobody_and_then_takes_the_place_of_its_submission():
    """Job 2 follows job 1, so job 3 starts before it; job 4 needs all nodes and is behind job 2."""
    rows = ((1, 0, 100, 100, 2), (2, 10, 50, 50, 4), (3, 20, 30, 30, 2), (4, 30, 20, 20, 4))
    assert starts(chain((1, 0, 0.0), rows=rows), scheduler="fcfs") == [0.0, 100.0, 20.0, 150.0]


def test_a_job_that_is_killed_has_not_ended():
    rows = [(1, 0, 100, 100, 1), (2, 10, 50, 50, 1), (3, 20, 30, 30, 1)]
    failures = failures_of([(60, 0, 0)], rows)
    assert starts(chain((1, 0, 0.0), rows=rows), failures=failures) == [60.0, 160.0, 20.0]


def test_without_the_parameter_nobody_waits():
    run = simulate(chain((1, 0, 5.0)), machine="flat:4")
    assert run.jobs["start_s"].tolist() == [0.0, 10.0, 20.0]
    assert "1 of 3 jobs follow another one" in " ".join(run.doubts)


def test_a_log_without_pairs_is_told():
    run = simulate(workload_of([(1, 0, 10, 10, 1)]), machine="flat:4", **LOG)
    assert "dependencies = log changes nothing" in " ".join(run.doubts)


def test_clusters_have_none():
    with pytest.raises(InputError, match="dependencies: 'log' is not for machines of clusters"):
        simulate(chain((1, 0, 5.0)), machine="clusters:4+4", **LOG)


@pytest.mark.parametrize(
    ("pairs", "problem"),
    [
        (((0, 0, 0.0),), "job 1 follows job 0, which is no earlier one"),
        (((1, 2, 0.0),), "job 2 follows job 2, which is no earlier one"),
        (((1, 0, -1.0),), "job 2 has a think time of -1 s"),
        (((1, 0, np.nan),), "job 2 has a think time of nan s"),
        (((3, 0, 0.0),), "expected indices of its 3 jobs in rising order"),
        (((2, 0, 0.0), (1, 0, 0.0)), "expected indices of its 3 jobs in rising order"),
    ],
)
def test_pairs_that_cannot_be(pairs, problem):
    with pytest.raises(InputError, match=problem):
        simulate(chain(*pairs), machine="flat:4", **LOG)


def test_a_job_goes_on_on_nodes_that_a_migration_has_freed_though_nothing_else_ends():
    """Job 11 waits for nodes that come free when others move; the next event is that job 21 becomes eligible."""
    long = {7: (50, 9), 11: (2, 2), 15: (10, 3), 17: (10, 3)}
    rows = [(k, 0 if k < 7 else 10, *(long.get(k, (1, 1))[0], None, long.get(k, (1, 1))[1])) for k in range(1, 22)]
    rows = [(*row, "C" if row[0] == 11 else "A") for row in rows]
    case = "torus:1x5x2", rows, [(40, 0, 0), (42, 0, 1), (44, 2, 5), (44, 0, 0)]
    assert_same(case, scheduler="backfill+migration", recovery=True, hold=False, **LOG)


def test_a_pass_follows_the_submission_of_a_job_that_is_held():
    """SLURM's main pass looks at one job: job 2 starts when job 3 is submitted, which waits for both."""
    need = Need(1, (1, 0, 0), 0, False, 0)
    case = (((1, 0, 0, 2),), ()), [(k, 0.25 * (k == 3), 1, None, need) for k in (1, 2, 3)], [], ()
    settings = {"main_interval": 0, "full_interval": 2, "backfill_interval": 5, "main_depth": 1}
    check_passes(case, settings, **LOG)
