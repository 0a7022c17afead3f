"""Conservative backfilling of long queues on a flat machine, against reservations made one by one, with nothing
saved."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.engine import build
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.simulate import simulate

from tests.adapter import engine_run, reference_run, workload_of

NODES = 48


def reservation(now, waiting, running, run_s, size):
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
    first = reservation(0.0, range(count), {}, run_s, size)
    failed_s = float(np.median(list(first.values()))) + 0.5
    failures = FailureTrace(np.array([failed_s]), np.array([0]), np.array([0.0]))
    run = simulate(workload_of(rows), machine=f"flat:{NODES}", scheduler="conservative", failures=failures)

    killed = np.flatnonzero(run.jobs["restarts"]).tolist()
    assert len(killed) == 1
    running = {job: start + run_s[job] for job, start in first.items() if start <= failed_s < start + run_s[job]}
    waiting = sorted([job for job in first if first[job] > failed_s] + killed)
    assert len(waiting) > count // 3
    running.pop(killed[0])
    second = reservation(failed_s, waiting, running, run_s, size)
    assert any(second[job] != first[job] for job in waiting if job not in killed)
    expected = [second.get(job, first[job]) for job in range(count)]
    assert run.jobs["start_s"].tolist() == expected


@pytest.mark.parametrize("machine", ["flat:5", "torus:1x1x5"])
@pytest.mark.parametrize("shift", [0, 7, 57, 64])
def test_what_begins_just_after_an_overrun_ends_just_after_a_time(machine, shift):
    """The first job is overdue at 33 s: what is reserved then begins just after it, and 25 s later is a power of two or
    not, by the shift."""
    jobs = [(7, 50, 250, 3), (8, 50, 25, 1), (13, 10, 10, 2), (24, 50, 100, 5), (31, 5, 5, 1), (31, 10, 10, 2)]
    jobs.append((43, 5, 5, 1))
    rows = [(number, submit + shift, *job) for number, (submit, *job) in enumerate(jobs, start=1)]
    options = {"scheduler": "conservative", "estimates": "requested"}
    found, expected = engine_run(rows, machine, **options), reference_run(rows, machine, **options)
    assert [row["start"] - shift for row in found.jobs.values()] == [7, 8, 57, 67, 57, 117, 57]
    assert found.events == expected.events


def test_a_submission_compresses_nothing_though_nodes_count_as_free():
    """At 72 s a job is submitted first, then one ends that counts as free already: the reservations get earlier only
    then, and the new job has the first one's place."""
    jobs = [(14, 1, 1), (7, 1, 6), (21, 1, 6), (4, 2, 1), (10, 1, 6), (1, 11, 4), (25, 25, 3), (10, 10, 1), (1, 3, 4)]
    rows = [(number, 6, *job) for number, job in enumerate([*jobs, (15, 17, 3)], start=1)] + [(11, 72, 1, 2, 3)]
    options = {"scheduler": "conservative", "estimates": "requested", "event_order": "submits-first"}
    found, expected = engine_run(rows, "flat:6", **options), reference_run(rows, "flat:6", **options)
    assert found.jobs[11]["start"] == 87
    assert found.events == expected.events


FEW, MANY, LARGE = (16, 8, [1, 1, 2, 5], 30), (60, 48, [1, 2, 5, 20], 6), (90, 128, [1, 2, 5, 20], 4)
"""Jobs, nodes, how much too long jobs ask for, and how many cases."""


@pytest.mark.parametrize(("gains", "cases"), [(4096, FEW), (24, FEW), (16, FEW), (4096, MANY), (4096, LARGE)])
@pytest.mark.sampled(2)
@pytest.mark.compiled
def test_reservations_get_earlier_as_in_the_reference(monkeypatch, gains, cases):
    """Jobs that end early give way to others, which give way to others, behind them and before them; also where few
    gains, or none, can be noted one by one."""
    monkeypatch.setattr(build, "GAINS", gains)
    random = np.random.default_rng(3)
    jobs, nodes, factors, count = cases
    for _ in range(count):
        submit, run = random.integers(0, 3, jobs).cumsum(), random.integers(1, 30, jobs)
        factor, size = random.choice(factors, jobs), random.integers(1, nodes, jobs)
        columns = [np.arange(1, jobs + 1), submit, run, run * factor, size]
        rows = [tuple(row) for row in np.stack(columns, axis=1).tolist()]
        options = {"scheduler": "conservative", "estimates": "requested"}
        found, expected = engine_run(rows, f"flat:{nodes}", **options), reference_run(rows, f"flat:{nodes}", **options)
        assert {job: row["start"] for job, row in found.jobs.items()} == {
            job: row["start"] for job, row in expected.jobs.items()
        }
