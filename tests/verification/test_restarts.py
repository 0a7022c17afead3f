"""Times of jobs that fail and start again, against the closed form of complete restarts (Daly 2006; Young 1974).

A job of W seconds on a node that fails with rate λ and comes back at once needs (e^(λW) − 1)/λ on average when it
always starts from the beginning. Segments between checkpoints are complete restarts of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.failures.trace import FailureTrace
from faultsweep.simcore.workloads.workload import Workload
from scipy import stats

from tests.adapter import ENGINE_EXISTS, ENGINE_NAMES
from tests.adapter import engine_lacks as lacks

pytestmark = pytest.mark.skipif(not ENGINE_EXISTS, reason="the engine is not there yet")

RUNS, NODES, WORK_S, RATE = 500, 100, 1000.0, 1 / 1000.0
LONG_S = 60_000.0


def failures(rng: np.random.Generator) -> FailureTrace:
    """Failures of every node with the rate, for far longer than any job needs."""
    count = rng.poisson(RATE * LONG_S * NODES)
    time = np.sort(rng.uniform(0, LONG_S, count))
    return FailureTrace(time, rng.integers(0, NODES, count), np.zeros(count), name="poisson")


def one_job_per_node() -> Workload:
    n = NODES
    ones = np.ones(n, np.int64)
    return Workload(np.arange(1, n + 1), np.zeros(n), np.full(n, WORK_S), np.full(n, np.nan), ones, -ones, name="jobs")


def expected(segments: list[float], restart_cost: float = 0.0) -> float:
    """The mean time for segments that are repeated from their beginning, each repetition after the restart cost."""
    return sum(np.exp(RATE * restart_cost) * (np.exp(RATE * length) - 1) / RATE for length in segments)


def coverage(truth: float, **options) -> float:
    from faultsweep.simcore.simulate import simulate

    parameters = {ENGINE_NAMES[name]: value for name, value in options.items()}
    covered = 0
    for seed in range(RUNS):
        trace = failures(np.random.default_rng([2006, seed]))
        run = simulate(one_job_per_node(), failures=trace, machine=f"flat:{NODES}", scheduler="fcfs", **parameters)
        times = run.jobs["response_s"]
        assert run.status == "done"
        half = stats.t.ppf(0.975, NODES - 1) * times.std(ddof=1) / np.sqrt(NODES)
        covered += abs(times.mean() - truth) <= half
    return covered / RUNS


def test_complete_restarts():
    assert 0.92 <= coverage(expected([WORK_S])) <= 0.98


PERIODIC = {"checkpoint": "periodic", "checkpoint_interval": 250, "checkpoint_cost": 10}


@pytest.mark.skipif(lacks("flat:1", PERIODIC), reason="the engine has no checkpoints yet")
def test_segments_between_checkpoints():
    """Checkpoints after 250 and 500 s of work and at 750 (250 remain: not less than an interval)."""
    assert 0.92 <= coverage(expected([260.0, 260.0, 260.0, 250.0]), **PERIODIC) <= 0.98
