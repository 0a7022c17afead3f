"""Waits of one-node jobs against queueing theory: M/M/1, M/M/c and M/D/1.

Each run gives a 95 % interval for the mean wait from batch means: the first tenth of the jobs is left out (the run
starts empty), the rest is cut into 5 batches of 800 jobs. At a load of one half a batch is long against the correlation
of successive waits: with Lindley's recursion alone 94.5 % (M/M/1) and 94.8 % (M/D/1) of 2000 such intervals cover the
truth, where 10 shorter batches give 93.7 % and 93.9 %.
"""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from scipy import stats

RUNS = 500
WARM_UP, BATCHES, BATCH = 400, 5, 800
SERVICE_S = 64.0


def erlang_c(servers: int, load: float) -> float:
    """The probability that a job of M/M/c waits."""
    offered = servers * load
    all_busy = offered**servers / factorial(servers) / (1 - load)
    return all_busy / (sum(offered**k / factorial(k) for k in range(servers)) + all_busy)


def mean_wait(servers: int, load: float, deterministic: bool) -> float:
    """The mean wait in the queue."""
    if deterministic:
        assert servers == 1
        return SERVICE_S * load / (2 * (1 - load))
    return SERVICE_S * erlang_c(servers, load) / (servers * (1 - load))


def one_node_jobs(rng: np.random.Generator, servers: int, load: float, deterministic: bool) -> Workload:
    n = WARM_UP + BATCHES * BATCH
    submit = np.cumsum(rng.exponential(SERVICE_S / (servers * load), n))
    run = np.full(n, SERVICE_S) if deterministic else rng.exponential(SERVICE_S, n)
    ones, unknown = np.ones(n, np.int64), np.full(n, np.nan)
    return Workload(np.arange(1, n + 1), submit, run, unknown, ones, -ones, name="queue")


def covers(waits: np.ndarray, truth: float) -> bool:
    means = waits[WARM_UP:].reshape(BATCHES, BATCH).mean(axis=1)
    half = stats.t.ppf(0.975, BATCHES - 1) * means.std(ddof=1) / np.sqrt(BATCHES)
    return abs(means.mean() - truth) <= half


@pytest.mark.parametrize(
    ("servers", "load", "deterministic", "scheduler"),
    [(1, 0.5, False, "fcfs"), (4, 0.5, False, "backfill"), (1, 0.5, True, "conservative")],
    ids=["M/M/1", "M/M/4", "M/D/1"],
)
def test_waits_of_a_queue(servers, load, deterministic, scheduler):
    from faultsweep.simcore.simulate import simulate

    truth = mean_wait(servers, load, deterministic)
    covered = 0
    for seed in range(RUNS):
        workload = one_node_jobs(np.random.default_rng([2011, servers, seed]), servers, load, deterministic)
        run = simulate(workload, machine=f"flat:{servers}", scheduler=scheduler)
        covered += covers(run.jobs["wait_s"], truth)
    assert 0.92 <= covered / RUNS <= 0.98


def test_erlang_c_of_one_server_is_the_load():
    assert erlang_c(1, 0.3) == pytest.approx(0.3)
    assert mean_wait(1, 0.5, deterministic=False) == pytest.approx(SERVICE_S)
