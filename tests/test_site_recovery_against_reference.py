"""What killed jobs do on a site against the reference: the options A to E, and own nodes that others share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from tests.test_preemption_against_reference import TIMES, check_same, crowds
from tests.test_preemption_against_reference import runs as preempting_runs
from tests.test_site_against_reference import CHOICES, SCHEDULERS, assert_same, cases
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


@pytest.mark.parametrize("scheduler", [*SCHEDULERS, "top-jobs"])
@given(recovering(FAILING), OPTIONS, st.sampled_from((0, 3)), st.sampled_from(("fcfs", "fcfs", "sjf")))
@examples(80)
def test_options(scheduler, case, options, delay, order):
    recovers_same(case, delay, scheduler=scheduler, queue_order=order, **options)


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
@given(preempting_runs(failures=True), TIMES, st.booleans(), st.data())
@examples(80)
def test_own_nodes_and_preemption(scheduler, run, times, hold, data):
    case = data.draw(recovering(st.just(run[0])))
    check_same((case, run[1]), scheduler=scheduler, recovery=True, hold=hold, **times)
