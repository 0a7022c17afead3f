"""Means, medians and percentiles of per-job results: those of NumPy to the bit, whatever the values are like."""

import numpy as np
import pytest
from faultsweep.simcore.engine.metrics import job_metrics


def _zeros_and_weeks(random, count):
    return np.where(random.random(count) < 0.6, 0.0, random.exponential(1e5, count).round(3))


SAMPLES = {
    "waits": _zeros_and_weeks,
    "slowdowns": lambda random, count: 1.0 + random.pareto(0.5, count),
    "alike": lambda random, count: np.full(count, random.normal(0.0, 1e6)),
    "few values": lambda random, count: random.integers(-3, 4, count).astype(float),
    "near each other": lambda random, count: 1e9 + random.random(count) * 1e-6,
    "one far off": lambda random, count: np.append(random.random(count - 1), 1e300),
    "every size": lambda random, count: 10.0 ** random.uniform(-300, 300, count) * random.choice((-1, 1), count),
    "infinite": lambda random, count: random.choice((1.0, np.inf), count),
}
EXPECTED = {
    "mean": np.mean,
    "median": np.median,
    "p90": lambda values: np.percentile(values, 90),
    "p99": lambda values: np.percentile(values, 99),
    "max": np.max,
}


def _of(values):
    """Return the metrics of jobs that waited so long, and of two that never finished, which count for nothing."""
    waits = np.concatenate([[np.nan], values, [np.nan]])
    jobs = dict.fromkeys(("wait_s", "response_s", "slowdown", "bounded_slowdown"), waits)
    nothing = np.zeros(len(waits))
    sums = ("restarts", "work_lost_s", "work_lost_node_s", "checkpoints", "checkpoint_overhead_s")
    return job_metrics({**jobs, **dict.fromkeys(sums, nothing), "run_s": nothing + 1.0, "finish_s": waits + 1.0})


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("count", [1, 2, 3, 10, 11, 100, 101, 1000, 1001, 20_000])
def test_statistics_are_those_of_numpy(name, count):
    random = np.random.default_rng([count, *name.encode()])
    values = SAMPLES[name](random, count)
    metrics = _of(values)
    for statistic, expected in EXPECTED.items():
        found = metrics[f"{statistic}_wait_s"]
        assert found == expected(values) or (np.isnan(found) and np.isnan(expected(values))), statistic


def test_there_are_none_of_no_finished_job():
    metrics = _of(np.empty(0))
    assert all(np.isnan(metrics[f"{statistic}_slowdown"]) for statistic in EXPECTED)
