"""The scheduler ``slurm`` beside recorded runs of a real SLURM 22.05, a trace for each feature and two mixed ones:
priorities by fair share, pass by pass, and whole schedules."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.recorded import Noted, Recording, cause_of, decided, differences, passes_of, read
from tests.recorded_shares import priorities
from tests.simcore.test_recorded_schedules import Ensemble

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "simcore" / "recorded" / "features"
TRACES = [path.stem for path in sorted(RECORDED.glob("*.json"))]
EQUAL = {"shares": 1.0, "mixed": 0.93, "mixed-urgent": 0.99}
"""The least part of the printed priorities that must be the same; in others the age differs by a second or two, or two
accounts have changed places."""
MOST = 0.05
"""The largest part of starts and of jobs that leave which may be in only one of the two."""


@cache
def runs_of(name: str) -> list[Recording]:
    """The runs of a trace, read once: each knows what its passes were found to do, for several tests."""
    return read(RECORDED / f"{name}.json")


@pytest.mark.parametrize("name", EQUAL)
def test_priorities_by_fair_share(tmp_path, name):
    """On SLURM's schedule the kernels give the priorities that it printed after each of its calculations."""
    found = [each for run in runs_of(name) for each in priorities(tmp_path, run)]
    assert len(found) > 100
    assert sum(said == mine for _, said, mine in found) >= EQUAL[name] * len(found)


def passes_do_the_same(folder: Path, recordings: list[Recording]) -> None:
    """Nearly all jobs of some runs, where it is open whether a pass saw what ended just before it."""
    other = [(run.name, each) for run in recordings for each in differences(folder, run, unseen=True)]
    done = sum(len(each.starts) + len(each.leave) for run in recordings for each in passes_of(run))
    assert sum(each.jobs for _, each in other) <= MOST * done, other


@pytest.mark.compiled
@pytest.mark.parametrize("name", TRACES)
@pytest.mark.sampled(2)
def test_passes_of_a_recorded_run_do_the_same(tmp_path, name):
    passes_do_the_same(tmp_path, runs_of(name)[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_passes_of_the_other_runs_do_the_same(tmp_path, name):
    passes_do_the_same(tmp_path, runs_of(name)[1:])


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["requeued-by-backfill", pytest.param("mixed-urgent", marks=pytest.mark.slow)])
def test_differences_have_names(tmp_path, name):
    """Most of mixed-urgent are of priorities which the recorder printed a moment later; a plan is what is left."""
    named: Counter[str] = Counter()
    for run in runs_of(name):
        for each in differences(tmp_path, run, unseen=True):
            named[cause_of(tmp_path, run, each)] += each.jobs
    assert named == NAMED[name]


NAMED = {
    "requeued-by-backfill": {"pass": 1, "plan": 2},
    "mixed-urgent": {"priority": 26, "plan": 4, "pass": 2},
}
ON_OTHER_NODES = 0.03


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name for name in TRACES if name != "suspended"])
@pytest.mark.sampled(3)
def test_jobs_that_both_start_get_the_same_nodes(tmp_path, name):
    """Nearly all of them: SLURM may have seen another end, or a node that was still busy."""
    run, same, other = runs_of(name)[0], 0, []
    for theirs in passes_of(run):
        mine = decided(tmp_path, run, theirs.time, theirs.kind)
        for job in theirs.starts & (mine.starts if mine else frozenset()):
            same += mine.hosts[job] == theirs.hosts[job]
            other += [(job, mine.hosts[job], theirs.hosts[job])] * (mine.hosts[job] != theirs.hosts[job])
    assert same > 50
    assert len(other) <= ON_OTHER_NODES * same, other


WITHOUT = {
    "shares": {"queue_order": "fcfs"},
    "limits": {"site_limits": False},
    "arrays": {"array_max_jobs": 0},
    **{
        name: {"preemption": "none"}
        for name in ("requeued", "requeued-by-backfill", "suspended", "cancelled", "graced")
    },
    "exempt": {"preempt_exempt_s": 0.0},
    "failing": {"requeue_hold_s": 0.0},
    "mixed": {"queue_order": "fcfs", "site_limits": False, "array_max_jobs": 0},
    "mixed-urgent": {"preemption": "none"},
}
"""Settings that take the feature away; from ``reserved`` the reservations are taken."""


def without(ensemble: Ensemble, name: str) -> Ensemble:
    """The same with our runs without the feature of a trace."""
    settings = WITHOUT.get(name, {})
    runs = [replace(run, settings={**run.settings, **settings}) for run in ensemble.runs]
    return replace(ensemble, runs=[replace(run, noted=Noted()) if name == "reserved" else run for run in runs])


OUTSIDE = dict.fromkeys(TRACES, 0) | {"requeued": 10, "requeued-by-backfill": 1, "suspended": 3, "reserved": 2}
OUTSIDE |= {"limits": 1, "failing": 2, "mixed": 1}
"""How many of the distances of ours to the runs of SLURM are beyond the 95 % range of those between its runs."""


@pytest.mark.compiled
@pytest.mark.parametrize("name", TRACES)
@pytest.mark.sampled(2)
def test_schedules_lie_among_the_runs_of_one_trace(tmp_path, name):
    """Or are no further from them than is known; without the feature they are further."""
    ensemble = Ensemble.of(RECORDED / f"{name}.json")
    largest = ensemble.largest()
    ours = ensemble.of_ours(tmp_path, 10)
    assert (ours > largest).sum() <= OUTSIDE[name], (ours, largest)
    assert (without(ensemble, name).of_ours(tmp_path, 1) > largest).sum() > OUTSIDE[name]


SLOW = pytest.mark.slow
ELSEWHERE = {
    "arrays": 332,
    "cancelled": 6,
    "exempt": 210,
    "failing": 101,
    "graced": 47,
    "limits": 293,
    "mixed": 168,
    "mixed-urgent": 173,
    "requeued": 547,
    "requeued-by-backfill": 240,
    "reserved": 228,
    "shares": 324,
    "suspended": 32,
}
"""How many jobs of all runs start at another time or on other nodes if passes begin when SLURM's did."""


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name if name == "cancelled" else pytest.param(name, marks=SLOW) for name in TRACES])
def test_with_the_passes_of_a_run_its_schedule_is_nearly_the_same(name):
    """What is left is who comes first where a job ends within a few milliseconds of a pass."""
    command = [sys.executable, "-m", "tests.replayed", str(RECORDED / f"{name}.json")]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True
    )
    _, _, *elsewhere = done.stdout.split()
    assert sum(map(int, elsewhere)) <= ELSEWHERE[name]
