"""Long queues on a flat machine, where jobs are sought in indices, against a look at one job after another."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.policies.scheduling.long_queue import LONG_QUEUE
from faultsweep.simcore.simulate import simulate

from benchmarks.plain_easy import schedule
from tests.adapter import engine_run, reference_run, workload_of


def rows_of(seed, count, nodes, spread_s, by=1.0):
    """Return jobs of all sizes and lengths, most of which are submitted much faster than they can run."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(0, spread_s, count))
    run = np.maximum(1, random.lognormal(4, 1.5, count)).astype(int)
    requested = np.maximum(run, (run * random.choice([1.0, 1.0, 1.5, 4.0], count)).astype(int))
    requested[::9] = np.maximum(1, (run[::9] * by).astype(int))
    size = np.minimum(nodes, np.where(random.random(count) < 0.6, 2 ** random.integers(0, 5, count), 1))
    size[:: count // 40] = random.integers(1, nodes + 1, len(size[:: count // 40]))
    table = np.stack([np.arange(1, count + 1), submit, run, requested, size], axis=1)
    return [tuple(row) for row in table.tolist()]


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_easy_starts_the_same_jobs_as_a_scan_of_the_queue(seed):
    rows = rows_of(seed, 2500, 32, 15_000)
    workload = workload_of(rows)
    run = simulate(workload, machine="flat:32", scheduler="backfill", estimates="requested")
    submit, work, estimate, size = np.array(rows, float).T[1:]
    start = schedule(submit, work, estimate, size.astype(int).tolist(), nodes=32, easy=True)
    assert run.jobs["start_s"].tolist() == start
    waits = np.array(start) - submit
    assert waits.sum() / max(start) > 2 * LONG_QUEUE


@pytest.mark.parametrize(("scheduler", "count"), [("backfill", 260), ("conservative", 90)])
def test_schedules_with_failures_and_overruns_are_those_of_the_reference(scheduler, count):
    """Killed jobs come back among those that wait, and estimates are too short, just right or too long."""
    rows = rows_of(5, count, 24, 600, by=0.5)
    random = np.random.default_rng(6)
    time_s = np.sort(random.integers(100, 3000, 12)).tolist()
    failures = [(time, node, 50) for time, node in zip(time_s, random.integers(0, 24, 12).tolist(), strict=True)]
    options = {"scheduler": scheduler, "estimates": "requested", "failures": failures}
    found, expected = engine_run(rows, "flat:24", **options), reference_run(rows, "flat:24", **options)
    assert {job: row["start"] for job, row in found.jobs.items()} == {
        job: row["start"] for job, row in expected.jobs.items()
    }
    assert sum(row["restarts"] for row in found.jobs.values()) > 3
