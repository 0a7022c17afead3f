"""What killed jobs do on a site against the reference: the options A to E, and own nodes that others share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.site import Need
from tests.strategies import examples
from tests.test_preemption_against_reference import TIMES_OF_LEAVING, check_same, crowds
from tests.test_preemption_against_reference import runs as preempting_runs
from tests.test_site_against_reference import CHOICES, SCHEDULERS, assert_same, cases, engine
from tests.test_slurm_against_reference import SETTINGS, first_ticks

CHECKPOINTS = ("none", "none", "periodic")


@st.composite
def recovering(draw, kinds):
    """A case whose jobs have options, most of them C."""
    site, rows, failures, windows = draw(kinds)
    rows = [(*row, draw(st.sampled_from("CCCCABDE"))) for row in rows]
    return site, rows, failures, windows


OPTIONS = st.fixed_dictionaries(
    {"hold": st.booleans(), "node_choice": st.sampled_from(CHOICES), "checkpoint": st.sampled_from(CHECKPOINTS)}
)
FAILING = st.one_of(cases(failures=True), crowds(failures=True))
WINDOWED = cases(failures=True, reservations=True)


def recovers_same(case, delay, **options):
    saves = {"checkpoint_interval": 3, "checkpoint_cost": 1} if options.get("checkpoint") == "periodic" else {}
    assert_same(case, recovery=True, manual_delay=lambda job, restarts: delay, **options, **saves)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scheduler", [*SCHEDULERS, "top-jobs"])
@given(recovering(FAILING), OPTIONS, st.sampled_from((0, 3)), st.sampled_from(("fcfs", "fcfs", "sjf")))
@examples(80)
def test_options(scheduler, case, options, delay, order):
    recovers_same(case, delay, scheduler=scheduler, queue_order=order, **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(recovering(WINDOWED), OPTIONS, st.sampled_from((0, 0, 2)))
@examples(60)
def test_own_nodes_and_advance_reservations(scheduler, case, options, most):
    recovers_same(case, 0, scheduler=scheduler, user_max_jobs=most, **options)


@given(recovering(st.one_of(FAILING, WINDOWED)), SETTINGS, st.booleans(), st.sampled_from(CHOICES))
@examples(120)
def test_own_nodes_under_passes_of_slurm(case, settings, hold, node_choice):
    kinds = ("main_interval", "full_interval", "backfill_interval")
    ticks = first_ticks([settings[name] for name in kinds])
    recovers_same(case, 0, scheduler="slurm", node_choice=node_choice, hold=hold, first_ticks=ticks, **settings)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(preempting_runs(failures=True), TIMES_OF_LEAVING, st.booleans(), st.data())
@examples(80)
def test_own_nodes_and_preemption(scheduler, run, times, hold, data):
    case = data.draw(recovering(st.just(run[0])))
    check_same((case, run[1]), scheduler=scheduler, recovery=True, hold=hold, **times)


def starts_of(rows, failures, site=(((1, 0, 0, 3),), ()), **options) -> list[float]:
    """When jobs (submission, run time, chunks, cores of each) start for the last time; engine and reference agree."""
    jobs = [
        (number, submit, run, run, Need(chunks, (cores, 0, 0), per_node=1), "C")
        for number, (submit, run, chunks, cores) in enumerate(rows, start=1)
    ]
    case = site, jobs, failures, ()
    recovers_same(case, 0, **options)
    return engine(case, recovery=True, estimates="requested", **options)[1].jobs["start_s"].tolist()


@pytest.mark.parametrize(("hold", "starts"), [(True, [20, 3, 70, 8]), (False, [48, 3, 8, 5])])
def test_others_use_what_a_waiting_job_does_not_keep(hold, starts):
    """The first job has three of four cores of both nodes; node 1 fails at 2 and is up again at 20.

    Jobs of one core have the core beside what it keeps; the job of four cores gets a node where nothing is kept.
    """
    rows = [(0, 50, 2, 3), (3, 5, 1, 1), (4, 40, 1, 4), (5, 3, 1, 1)]
    assert starts_of(rows, [(2, 1, 18)], (((4, 0, 0, 2),), ()), scheduler="backfill", hold=hold) == starts


def test_a_plan_of_slurm_counts_on_no_node_that_is_down():
    """The first job waits for node 1 until 110 and keeps node 0. Until then the plan of the second one is on nodes 0
    and 2, so the third cannot have node 2."""
    rows = [(0, 50, 2, 1), (20, 10, 2, 1), (21, 1000, 1, 1)]
    at_once = {"main_interval": 0, "full_interval": 0, "backfill_interval": 0, "backfill_resolution": 0}
    options = {"scheduler": "slurm", "first_ticks": (0, 0, 0), **at_once}
    assert starts_of(rows, [(10, 1, 100)], **options) == [110, 160, 110]
