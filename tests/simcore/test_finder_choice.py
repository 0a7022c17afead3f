"""The finder is a parameter of a run: it decides how long scheduling takes, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.metrics import MEASURED
from faultsweep.simcore.finders import FINDERS as MODULES
from faultsweep.simcore.finders.names import FINDERS
from faultsweep.simcore.parameters import canonical
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import assert_same_results, failures_of, workload_of
from tests.strategies import SCHEDULERS, examples, runs, tori

ROWS = [
    (1, 0, 10, None, 12),
    (2, 1, 20, 30, 8),
    (3, 2, 5, 40, 16),
    (4, 2, 7, None, 3),
    (5, 3, 9, 9, 20),
    (6, 4, 2, 8, 1),
]
TORUS = "torus:2x3x4"


def assert_same_run(first, other):
    """Everything but the times of scheduling is equal to the bit."""
    assert list(first.events.rows()) == list(other.events.rows())
    assert_same_results(other, first)


def test_the_table_of_parameters_names_all_finders():
    assert list(MODULES) == list(FINDERS)


@pytest.mark.skipif(not is_interpreted(), reason="without the compiler: the same kernels, and quicker")
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_every_finder_gives_the_same_schedule(scheduler):
    @examples(30)  # half of them, as everywhere
    @given(
        runs(tori, failures=True, max_jobs=12),
        st.sampled_from(list(FINDERS)[1:]),
        st.sampled_from((("mfp", 0.0), ("mfp", 0.0), ("balancing", 0.5), ("tie-breaking", 0.5))),
        st.sampled_from((0, 1, 3)),
    )
    def check(case, finder, prediction, growth):
        machine, rows, failures = case
        placement, accuracy = prediction
        options = {"placement": placement, "accuracy": accuracy, "growth_limit": growth, "estimates": "requested"}
        options |= {"machine": machine, "scheduler": scheduler, "failures": failures_of(failures, rows), "events": True}
        workload = workload_of(rows)
        assert_same_run(simulate(workload, **options), simulate(workload, finder=finder, **options))

    check()


@pytest.mark.slow  # the finders of the papers have to be compiled
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("finder", list(FINDERS)[1:])
def test_every_compiled_finder_gives_the_same_schedule(finder, scheduler):
    rng = np.random.default_rng(5)
    for machine, nodes in ((TORUS, 24), ("torus:4x3x5", 60)):
        arrivals, run = np.cumsum(rng.integers(0, 9, 120)), rng.integers(1, 100, 120)
        size, factor = rng.integers(1, nodes // 2, 120), rng.integers(1, 4, 120)
        rows = [(n, *row) for n, row in enumerate(np.transpose([arrivals, run, run * factor, size]).tolist(), start=1)]
        options = {"machine": machine, "scheduler": scheduler, "estimates": "requested", "events": True}
        assert_same_run(simulate(workload_of(rows), **options), simulate(workload_of(rows), finder=finder, **options))


def test_on_a_flat_machine_there_is_nothing_to_find():
    options = {"machine": "flat:24", "events": True}
    assert_same_run(simulate(workload_of(ROWS), **options), simulate(workload_of(ROWS), finder="pop", **options))


@pytest.mark.parametrize("repeat", [1, 3])
def test_scheduling_is_timed_on_request_and_changes_nothing(repeat):
    plain = simulate(workload_of(ROWS), machine=TORUS, events=True)
    timed = simulate(workload_of(ROWS), machine=TORUS, events=True, time_scheduling=True, repeat=repeat)
    assert all(math.isnan(plain.metrics[name]) for name in MEASURED)
    assert 0.0 <= timed.metrics["mean_scheduling_s"] < math.inf
    instants = len({time for time, *_ in plain.events.rows()})
    assert timed.metrics["max_scheduling_s"] * instants >= timed.metrics["mean_scheduling_s"] * len(ROWS) * 0.999
    assert_same_run(plain, timed)


def test_the_finder_is_neutral_unless_scheduling_is_timed():
    other = {"machine": TORUS, "finder": "pop"}
    assert canonical(other) == canonical({"machine": TORUS})
    timed = {"time_scheduling": True}
    assert canonical({**other, **timed})["finder"] == "pop"
    assert canonical({**other, **timed, "machine": "flat:24"})["finder"] == "columns"
    assert canonical({**other, **timed}) != canonical({"machine": TORUS, **timed})
