"""The scheduler ``slurm`` beside recorded runs of a real SLURM 22.05, a trace for each feature and two mixed ones:
priorities by fair share, pass by pass, and whole schedules."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest

from tests.recorded import Noted, Recording, differences, first_ticks_at, passes_of, read, starts_of
from tests.recorded_shares import priorities
from tests.simcore.test_recorded_schedules import Ensemble, distances

RECORDED = Path(__file__).parent / "recorded" / "features"
TRACES = [path.stem for path in sorted(RECORDED.glob("*.json"))]
EQUAL = {"shares": 0.98, "mixed": 0.79, "mixed-urgent": 0.96}
"""The least part of the printed priorities that must be the same; in others two accounts, or users, have changed places
whose usage is nearly what they are due."""
MOST = dict.fromkeys(TRACES, 0.05) | {"mixed-urgent": 0.07, "suspended": 0.04}
"""The largest part of starts and of jobs that leave which may be in only one of the two."""


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


OUTSIDE = dict.fromkeys(TRACES, 0) | {"shares": 1, "limits": 1, "arrays": 3, "requeued-by-backfill": 7, "cancelled": 6}
OUTSIDE |= {"graced": 7, "exempt": 5, "suspended": 1, "failing": 9, "mixed-urgent": 5}
"""How many of the distances of ours to the runs of SLURM are beyond the 95 % range of those between its runs."""


@pytest.mark.compiled
@pytest.mark.parametrize("name", TRACES)
def test_schedules_lie_among_the_runs_of_one_trace(tmp_path, name):
    """Or are no further from them than is known; without the feature they are further, or as far (``failing``)."""
    ensemble = Ensemble.of(RECORDED / f"{name}.json")
    largest = ensemble.largest()
    ours = ensemble.of_ours(tmp_path, 10)
    assert (ours > largest).sum() <= OUTSIDE[name], (ours, largest)
    assert (without(ensemble, name).of_ours(tmp_path, 1) > largest).sum() >= OUTSIDE[name] + (name != "failing")


OUTSIDE_AT_BEST = dict.fromkeys(TRACES, 0) | {"arrays": 2, "exempt": 3, "failing": 2, "graced": 6, "limits": 4}
OUTSIDE_AT_BEST |= {"requeued": 1, "mixed-urgent": 3, "requeued-by-backfill": 1, "suspended": 4}
PHASES = ("main_interval_s", "backfill_interval_s")
SLOW = pytest.mark.slow
"""The same if the first ticks are those of 100 that give the nearest schedule, by the order of starts."""


def at_best(folder: Path, ensemble: Ensemble) -> np.ndarray:
    """The distances of the nearest of our schedules to each run, by when the first ticks are."""
    found = []
    for run, start, submit in zip(ensemble.runs, ensemble.starts, ensemble.submits, strict=True):
        near = []
        for parts in product(np.arange(10) / 10, repeat=2):
            with first_ticks_at(*(part * run.settings[name] for part, name in zip(parts, PHASES, strict=True))):
                near.append(distances(starts_of(folder, run), start, submit, ensemble.waited))
        found.append(min(near, key=itemgetter(0)))
    return np.array(found)


@pytest.mark.compiled
@pytest.mark.parametrize("name", [name if name == "cancelled" else pytest.param(name, marks=SLOW) for name in TRACES])
def test_when_ticks_are_explains_how_far_schedules_are(tmp_path, name):
    """With other first ticks ours is nearer to each run of SLURM than its runs are to each other."""
    ensemble = Ensemble.of(RECORDED / f"{name}.json")
    outside = (at_best(tmp_path, ensemble) > ensemble.largest()).sum()
    assert outside <= OUTSIDE_AT_BEST[name]
