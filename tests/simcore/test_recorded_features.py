"""The scheduler ``slurm`` beside recorded runs of a real SLURM 22.05, a trace for each feature and two mixed ones:
priorities by fair share, pass by pass, and whole schedules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.recorded import Noted, Recording, differences, passes_of, read
from tests.recorded_shares import priorities
from tests.simcore.test_recorded_schedules import Ensemble

RECORDED = Path(__file__).parent / "recorded" / "features"
TRACES = [path.stem for path in sorted(RECORDED.glob("*.json"))]
EQUAL = {"shares": 0.98, "mixed": 0.79, "mixed-urgent": 0.96}
"""The least part of the printed priorities that must be the same; in others two accounts, or users, have changed places
whose usage is nearly what they are due."""
MOST = dict.fromkeys(TRACES, 0.05) | {"mixed-urgent": 0.07, "suspended": 0.04, "graced": 0.17}
"""The largest part of starts and of jobs that leave which may be in only one of the two: SLURM plans
otherwise for a job that waits for the end of a grace time."""


@pytest.mark.parametrize("name", EQUAL)
def test_priorities_by_fair_share(tmp_path, name):
    """On SLURM's schedule the kernels give the priorities that it printed after each of its calculations."""
    found = [each for run in read(RECORDED / f"{name}.json") for each in priorities(tmp_path, run)]
    assert len(found) > 100
    assert sum(said == mine for _, said, mine in found) >= EQUAL[name] * len(found)


def passes_do_the_same(folder: Path, name: str, recordings: list[Recording]) -> None:
    """Nearly all jobs of some runs, where it is open whether a pass saw what ended just before it."""
    other = [(run.name, each) for run in recordings for each in differences(folder, run, unseen=True)]
    done = sum(len(each.starts) + len(each.leave) for run in recordings for each in passes_of(run))
    assert sum(each.jobs for _, each in other) <= MOST[name] * done, other


@pytest.mark.compiled
@pytest.mark.parametrize("name", TRACES)
def test_passes_of_a_recorded_run_do_the_same(tmp_path, name):
    passes_do_the_same(tmp_path, name, read(RECORDED / f"{name}.json")[:1])


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACES)
def test_passes_of_the_other_runs_do_the_same(tmp_path, name):
    passes_do_the_same(tmp_path, name, read(RECORDED / f"{name}.json")[1:])


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


OUTSIDE = {"shares": 1, "limits": 0, "arrays": 4, "requeued": 0, "requeued-by-backfill": 8, "suspended": 2}
OUTSIDE |= {"cancelled": 7, "exempt": 2, "graced": 15}
OUTSIDE |= {"reserved": 0, "failing": 8, "mixed": 0, "mixed-urgent": 9}
"""How many of the distances of ours to the runs of SLURM are beyond the 95 % range of those between its runs."""


@pytest.mark.compiled
@pytest.mark.parametrize("name", TRACES)
def test_schedules_lie_among_the_runs_of_one_trace(tmp_path, name):
    """Or are no further from them than is known; without the feature they are further."""
    ensemble = Ensemble.of(RECORDED / f"{name}.json")
    largest = ensemble.largest()
    ours = ensemble.of_ours(tmp_path, 5)
    assert (ours > largest).sum() <= OUTSIDE[name], (ours, largest)
    assert (without(ensemble, name).of_ours(tmp_path, 1) > largest).sum() > OUTSIDE[name]
