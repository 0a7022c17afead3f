"""Conservative backfilling of long queues on a flat machine, against promises made one by one with nothing saved."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.failures.trace import FailureTrace
from faultsweep.simcore.simulate import simulate

from tests.adapter import engine_run, reference_run, workload_of

NODES = 48


def promise(now, waiting, running, run_s, size):
    """Return the start of each waiting job, in queue order: the earliest at which it fits beside running ones (job ->
    end) and all before it."""
    blocks = [(now, end, size[job]) for job, end in running.items()]
    starts = {}
    for job in waiting:
        begin, end, nodes = (np.array(column) for column in zip(*blocks, (now, now, 0), strict=True))
        for start in np.unique([now, *end[end > now]]):
            until = start + run_s[job]
            moments = np.array([start, *begin[(begin > start) & (begin < until)]])
            held = ((begin <= moments[:, None]) & (moments[:, None] < end)) @ nodes
            if held.max() + size[job] <= NODES:
                break
        starts[job] = start
        blocks.append((start, until, size[job]))
    return starts


@pytest.mark.parametrize("seed", [1, 2])
def test_promises_are_the_earliest_before_and_after_a_failure(seed):
    random = np.random.default_rng(seed)
    count = 120
    size = np.where(random.random(count) < 0.5, 2 ** random.integers(0, 6, count), random.integers(1, NODES, count))
    run_s = np.round(random.lognormal(5, 2, count), 3) + 0.001
    run_s[::7] = 100.0
    rows = [(job + 1, 0, run, None, int(nodes)) for job, (run, nodes) in enumerate(zip(run_s, size, strict=True))]
    first = promise(0.0, range(count), {}, run_s, size)
    failed_s = float(np.median(list(first.values()))) + 0.5
    failures = FailureTrace(np.array([failed_s]), np.array([0]), np.array([0.0]))
    run = simulate(workload_of(rows), machine=f"flat:{NODES}", scheduler="conservative", failures=failures)

    killed = np.flatnonzero(run.jobs["restarts"]).tolist()
    assert len(killed) == 1
    running = {job: start + run_s[job] for job, start in first.items() if start <= failed_s < start + run_s[job]}
    waiting = sorted([job for job in first if first[job] > failed_s] + killed)
    assert len(waiting) > count // 3
    running.pop(killed[0])
    second = promise(failed_s, waiting, running, run_s, size)
    assert any(second[job] != first[job] for job in waiting if job not in killed)
    expected = [second.get(job, first[job]) for job in range(count)]
    assert run.jobs["start_s"].tolist() == expected


def test_promises_get_earlier_as_in_the_reference():
    """Jobs that end early give way to others, which give way to others, behind them and before them."""
    random = np.random.default_rng(3)
    for _ in range(30):
        submit, run = random.integers(0, 3, 16).cumsum(), random.integers(1, 30, 16)
        factor, nodes = random.choice([1, 1, 2, 5], 16), random.integers(1, 8, 16)
        rows = [tuple(row) for row in np.stack([np.arange(1, 17), submit, run, run * factor, nodes], axis=1).tolist()]
        options = {"scheduler": "conservative", "estimates": "requested"}
        found, expected = engine_run(rows, "flat:8", **options), reference_run(rows, "flat:8", **options)
        assert {job: row["start"] for job, row in found.jobs.items()} == {
            job: row["start"] for job, row in expected.jobs.items()
        }
