"""Jobs that ask for advance reservations: the engine runs them when and where the reference does."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Label
from faultsweep.simcore.parameters import inert, resolve
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import workload_of
from tests.reference.site import Need
from tests.strategies import examples
from tests.test_site_against_reference import CHOICES, assert_same, cases, engine
from tests.test_slurm_against_reference import SETTINGS, first_ticks


def asking(case, share):
    """Some of the jobs ask for one of the reservations."""
    windows = len(case[3])
    return lambda job: job.job_id % windows if windows and job.job_id % 3 < share else None


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative", "top-jobs"])
@given(
    cases(failures=True, reservations=True),
    st.sampled_from((1, 2, 3)),
    st.sampled_from(CHOICES),
    st.sampled_from((0, 0, 1)),
    st.sampled_from(("fcfs", "sjf", "wfp")),
)
@examples(80)
def test_schedules_are_those_of_the_reference(scheduler, case, share, node_choice, delay, order):
    options = {"scheduler": scheduler, "node_choice": node_choice, "start_delay": delay, "queue_order": order}
    assert_same(case, asks=asking(case, share), **options)


@pytest.mark.parametrize("scheduler", ["conservative", "top-jobs"])
@pytest.mark.parametrize("node_choice", ["consecutive", "best-fit"])
def test_nodes_are_chosen_of_what_is_free_then(scheduler, node_choice):
    """Job 3 gets the smaller node, though jobs 1 and 2 had reservations to which it looked otherwise; and so on."""
    site = ((4, 0, 0, 3), (3, 0, 0, 1)), ()
    rows = [(1, 1, 1, 2, Need(2, (2, 0, 0))), (2, 2, 3, 6, Need(2, (1, 0, 0))), (3, 3, 3, 3, Need(3, (1, 0, 0)))]
    assert_same((site, rows, [], ((0, 100, (3, 1)),)), asks=asking_third, scheduler=scheduler, node_choice=node_choice)
    for seed in range(60):
        rng, rows, time = random.Random(seed), [], 0
        for number in range(1, rng.randint(3, 8)):
            time += rng.choice((0, 0, 1, 2))
            run = rng.choice((1, 3, 8))
            need = Need(rng.randint(1, 4), (rng.randint(1, 2), 0, 0))
            rows.append((number, time, run, run * rng.choice((1, 2)), need))
        window = rng.choice((0, 1, 2)), rng.choice((30, 100)), (rng.randint(1, 3), rng.randint(0, 1))
        assert_same((site, rows, [], (window,)), asks=asking_third, scheduler=scheduler, node_choice=node_choice)


def asking_third(job):
    """Every third job asks for the first reservation."""
    return 0 if job.job_id % 3 == 0 else None


PRIORITIES = {"queue_order": "multifactor", "share_weight": 100_000, "half_life": 1 / 64, "longest_age": 1 / 64}
BESIDE_PASSES = st.fixed_dictionaries(
    {"requeue_hold": st.sampled_from((0, 0, 0.25, 7)), "dependencies": st.sampled_from(("none", "log"))},
    optional={
        "user_max_jobs": st.sampled_from((1, 2)),
        "account_max_jobs": st.just(1),
        "partition_max_jobs": st.just(2),
        "array_max_jobs": st.just(1),
    },
)
ORDERS = st.sampled_from(({}, {}, {"queue_order": "sjf"}, *(PRIORITIES | {"period": period} for period in (0, 2.5, 7))))


@given(cases(failures=True, reservations=True), st.sampled_from((1, 2, 3)), SETTINGS, BESIDE_PASSES, ORDERS)
@examples(120)
def test_beside_passes_of_slurm(case, share, settings, more, order):
    ticks = first_ticks([settings[name] for name in ("main_interval", "full_interval", "backfill_interval")])
    more = settings | more | order
    assert_same(case, asks=asking(case, share), scheduler="slurm", first_ticks=ticks, **more)


def test_passes_of_slurm_plan_behind_the_end_of_a_reservation():
    """As SLURM does, in its recording `reserved`. One of two nodes of 4 cores is reserved from 10 to 100. Job 3 has 3
    cores until 300; job 6 wants 4, so it never starts, but is planned; job 9 wants 1, for longer than until 300, and
    job 12 for less."""
    needs = [(3, 10, 290, 3), (6, 11, 100, 4), (9, 12, 500, 1), (12, 13, 200, 1)]
    rows = [(job, submit, run, run, Need(1, (cores, 0, 0), 1, False, 0)) for job, submit, run, cores in needs]
    case = ((((4, 0, 0, 2),), ()), rows, [], ((10, 100, (1,)),))
    times = dict.fromkeys(("main_interval", "full_interval", "backfill_interval", "backfill_resolution"), 0)
    times |= {"scheduler": "slurm", "asks": lambda job: 0}
    assert_same(case, **times)
    starts = engine(case, estimates="requested", **times)[1].jobs["start_s"]
    assert (starts[0], starts[3]) == (10, 13)
    assert np.isnan(starts[1:3]).all()


@given(
    cases(failures=True, reservations=True),
    st.sampled_from((1, 2)),
    st.sampled_from(("fcfs", "backfill", "conservative")),
    st.sampled_from(("user", "account", "qos")),
    st.booleans(),
    st.sampled_from(("none", "log")),
)
@examples(80)
def test_with_limits_moves_and_dependencies(case, share, scheduler, owner, moves, dependencies):
    more = {"node_choice": "lff", "lff_moves": True} if moves else {}
    options = {f"{owner}_max_jobs": 1, "dependencies": dependencies, **more}
    assert_same(case, asks=asking(case, share), scheduler=scheduler, **options)


SITE = """format = "faultsweep site, 1"
[[nodes]]
name = "n"
count = 4
cores = 1
[[accounts]]
account = "b"
parent = "a"
[[reservations]]
name = "course"
start_s = 10
end_s = 30
nodes = 2
"""


def site_at(tmp_path, more='users = ["0", "1", "2"]'):
    path = tmp_path / "site.toml"
    path.write_text(f"{SITE}{more}\n")
    return str(path)


def asking_for(rows, *names):
    """Jobs that ask for reservations by name, "" for none."""
    workload = workload_of(rows)
    known = tuple(dict.fromkeys(name for name in names if name))
    label = Label(np.array([known.index(name) if name else -1 for name in names]), known)
    return replace(workload, labels={**workload.labels, "reservation": label})


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
def test_jobs_run_in_their_reservation(tmp_path, scheduler):
    """Jobs 3, 6 and 9 ask for the first two nodes from 10 to 30, job 12 for three of them; job 7 wants all four nodes.

    Job 9 overtakes no job of its reservation, and goes on when that is over; job 12 never fits.
    """
    rows = [(3, 0, 5, 5, 2), (6, 1, 10, 10, 2), (9, 2, 30, 30, 1), (12, 3, 5, 5, 3), (7, 4, 10, 10, 4)]
    workload = asking_for(rows, *["course"] * 4, "")
    options = {"machine": site_at(tmp_path), "scheduler": scheduler, "estimates": "requested", "debug": True}
    run = simulate(workload, site_reservations=True, events=True, **options)
    assert run.jobs["start_s"][:3].tolist() == [10, 15, 25]
    assert run.jobs["start_s"][4] == 55
    assert np.isnan(run.jobs["start_s"][3])
    nodes = {job: tuple(held) for _, kind, job, _, held in run.events.rows() if kind == "start"}
    assert (nodes[3], nodes[6], nodes[9]) == ((0, 1), (0, 1), (0,))
    assert [(time, job) for time, kind, job, *_ in run.events.rows() if kind == "refuse"] == [(30, 12)]
    assert (run.metrics["reservations_missed"], run.metrics["jobs_refused"]) == (1, 0)
    without = simulate(workload, **options)
    assert without.jobs["start_s"].tolist()[0] == 0, "on the other nodes"
    assert without.metrics["reservations_missed"] == 0


@pytest.mark.parametrize(
    ("more", "admitted"),
    [
        ("", ()),
        ('users = ["0"]', (12, 15)),
        ('accounts = ["a"]', (12, 13, 14, 15)),
        ('accounts = ["b"]', (14, 15)),
        ('accounts = ["-b"]', (12, 13)),
        ('users = ["-0"]', (13, 14)),
        ('users = ["-0"]\naccounts = ["b"]', (14,)),
    ],
)
def test_who_may_use_a_reservation(tmp_path, more, admitted):
    """Jobs of users 0, 1, 2 and 0 in accounts a, a, b and b; account b is in a."""
    rows = [(12, 0, 1, 1, 1), (13, 0, 1, 1, 1), (14, 0, 1, 1, 1), (15, 0, 1, 1, 1)]
    options = {"machine": site_at(tmp_path, more), "site_reservations": True}
    for row in rows:
        one = asking_for([row], "course")
        if row[0] in admitted:
            assert simulate(one, **options).jobs["start_s"].tolist() == [10]
            continue
        with pytest.raises(
            InputError, match=f"case: job {row[0]} asks for advance reservation 'course' and may not use"
        ):
            simulate(one, **options)
    if 0 < len(admitted) < len(rows):
        run = simulate(asking_for(rows, *["course"] * 4), **options, size_map="drop")
        assert run.dropped == {"not allowed to use its advance reservation": 4 - len(admitted)}
        assert run.jobs["job_id"].tolist() == list(admitted)


def test_a_reservation_that_the_site_lacks_is_told(tmp_path):
    path = site_at(tmp_path)
    run = simulate(asking_for([(12, 0, 1, 1, 1)], "other"), machine=path, site_reservations=True)
    assert run.jobs["start_s"].tolist() == [0]
    lacking = "1 jobs ask for advance reservations that the site's file lacks, and wait like all others"
    assert run.doubts == (lacking,)
    assert "site_reservations" not in inert(resolve({"machine": path}))
    assert "site_reservations" in inert(resolve({"machine": "flat:4", "site_reservations": True}))


def test_a_job_that_comes_after_its_reservation_is_refused(tmp_path):
    workload = asking_for([(12, 0, 1, 1, 1), (15, 30, 1, 1, 1)], "", "course")
    run = simulate(workload, machine=site_at(tmp_path), site_reservations=True, debug=True)
    assert np.isnan(run.jobs["start_s"]).tolist() == [False, True]
