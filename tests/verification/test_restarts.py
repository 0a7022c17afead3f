"""Times of jobs that fail and start again, against the closed form of complete restarts (Daly 2006; Young 1974).

A job of W seconds on a node that fails with rate λ and comes back at once needs (e^(λW) − 1)/λ on average when it
always starts from the beginning. Segments between checkpoints are complete restarts of their own.
"""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import simulate
from scipy import stats

RUNS, NODES, WORK_S, RATE = 500, 100, 1000.0, 1 / 1000.0
LONG_S = 60_000.0


def failures(rng: np.random.Generator) -> FailureTrace:
    """Failures of every node with the rate, for far longer than any job needs."""
    count = rng.poisson(RATE * LONG_S * NODES)
    time = np.sort(rng.uniform(0, LONG_S, count))
    return FailureTrace(time, rng.integers(0, NODES, count), np.zeros(count), name="poisson")


def one_job_per_node(work_s: float) -> Workload:
    n = NODES
    ones = np.ones(n, np.int64)
    return Workload(np.arange(1, n + 1), np.zeros(n), np.full(n, work_s), np.full(n, np.nan), ones, -ones, name="jobs")


def expected(lengths: list[float], restart_cost: float = 0.0) -> float:
    """The mean time for segments that are repeated from their beginning, each repetition after the restart cost."""
    return sum(np.exp(RATE * restart_cost) * (np.exp(RATE * length) - 1) / RATE for length in lengths)


def segments(interval: float, cost: float) -> list[float]:
    """What lies between failures at worst: an interval of work and its checkpoint, and the rest without one."""
    count = int(WORK_S // interval) - 1
    return [interval + cost] * count + [WORK_S - count * interval]


def times(seed: int, work_s: float = WORK_S, **parameters) -> np.ndarray:
    """The time that each job takes, s."""
    trace = failures(np.random.default_rng([2006, seed]))
    run = simulate(one_job_per_node(work_s), failures=trace, machine=f"flat:{NODES}", scheduler="fcfs", **parameters)
    assert run.status == "done"
    return run.jobs["response_s"]


def coverage(truth: float, runs: int = RUNS, **parameters) -> float:
    """How often the interval of confidence of a run's jobs holds the truth."""
    covered = 0
    for seed in range(runs):
        found = times(seed, **parameters)
        half = stats.t.ppf(0.975, NODES - 1) * found.std(ddof=1) / np.sqrt(NODES)
        covered += abs(found.mean() - truth) <= half
    return covered / runs


def test_complete_restarts():
    assert 0.92 <= coverage(expected([WORK_S])) <= 0.98


COST_S = 10.0


@pytest.mark.parametrize(("interval", "restart_cost"), [(100.0, 0.0), (250.0, 0.0), (400.0, 0.0), (250.0, 40.0)])
def test_segments_between_checkpoints(interval, restart_cost):
    """Checkpoints after every interval of work while at least one interval remains."""
    parameters = {"checkpoint_interval_s": interval, "checkpoint_cost_s": COST_S, "restart_cost_s": restart_cost}
    truth = expected(segments(interval, COST_S), restart_cost)
    assert 0.90 <= coverage(truth, 200, checkpoint="periodic", **parameters) <= 0.99


def test_simulated_optimum_is_dalys():
    """Of intervals around Daly's, on the same failures, his takes the least time; and the policy takes his."""
    mtbf_h = 1 / RATE / NODES / 3600  # of the machine
    daly_s = np.sqrt(2 * COST_S / RATE) * (1 + np.sqrt(COST_S * RATE / 2) / 3 + COST_S * RATE / 18) - COST_S
    factors = (0.33, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0)
    options = {"work_s": 2400.0, "checkpoint_cost_s": COST_S}

    def mean(**policy):
        return np.mean([times(seed, **options, **policy).mean() for seed in range(40)])

    found = [mean(checkpoint="periodic", checkpoint_interval_s=float(daly_s * factor)) for factor in factors]
    assert factors[int(np.argmin(found))] == 1.0
    assert mean(checkpoint="daly", checkpoint_mtbf_h=mtbf_h) == pytest.approx(found[3], rel=1e-9)
