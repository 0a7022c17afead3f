"""The scheduler ``slurm`` beside recorded runs of a real SLURM 22.05: pass by pass, and whole schedules."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from tests.cluster.recorded_slurm import Asked, jobs_of
from tests.recorded import CORES, Recording, differences, passes_of, read, starts_of

RECORDED = Path(__file__).parent / "recorded"
TWICE = ("sharpA", "sharpB")
EVERY_SECOND = {
    **dict.fromkeys(("main_interval_s", "full_interval_s", "backfill_interval_s", "backfill_resolution_s"), 1.0),
    "backfill_depth": 1000,
}


def number_of_nodes(line) -> int:
    return int(line["args"][line["args"].index("-N") + 1])


@cache
def of_shared(folder: Path) -> Recording:
    """One of the two runs of one trace of 90 jobs that take whole nodes, of the shared data."""
    lines = [json.loads(line) for line in (folder / "play.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line.get("op") == "submit"]
    asked = {line["name"]: Asked(line["sleep"], line["limit"], line["nice"], number_of_nodes(line)) for line in lines}
    numbers = {line["id"]: line["name"] for line in lines}
    return Recording(folder.name, EVERY_SECOND, jobs_of((folder / "slurmctld.log").read_text(), numbers, asked))


@pytest.fixture(scope="module")
def twice(shared) -> list[Recording]:
    return [of_shared(shared / "accounting" / "recorded-slurm" / name) for name in TWICE]


@pytest.mark.shared
def test_each_pass_of_both_runs_starts_the_same_jobs(tmp_path, twice):
    """More than the 95 % of the jobs that are asked for: all of them, in all passes."""
    for recording in twice:
        assert len(recording.jobs) == 90
        assert all(job.cores == CORES for job in recording.jobs)
        assert len(passes_of(recording)) > 60
        assert differences(tmp_path, recording) == []


def distance(first: dict[str, float], second: dict[str, float], waited) -> tuple[float, float]:
    """Kendall's tau-b of the starts of jobs that waited, and the median of the differences."""
    a, b = (np.array([starts[name] for name in waited]) for starts in (first, second))
    return float(kendalltau(a, b)[0]), float(np.median(np.abs(a - b)))


def since_first(recording: Recording, what: str) -> dict[str, float]:
    return {job.name: getattr(job, what) - recording.jobs[0].submit for job in recording.jobs}


def mean_wait(starts: dict[str, float], submits: dict[str, float]) -> float:
    return float(np.mean([starts[name] - submits[name] for name in submits]))


@pytest.mark.shared
def test_schedules_are_as_near_as_those_of_two_runs(tmp_path, twice):
    """SLURM does not repeat itself, and neither do we from seed to seed: both differ as much."""
    recorded, submits = [since_first(each, "start") for each in twice], since_first(twice[0], "submit")
    waited = [name for name in submits if min(each[name] for each in recorded) - submits[name] > 0.5]
    tau, apart = distance(*recorded, waited)
    assert (len(waited), round(tau, 3), round(apart, 2)) == (81, 0.895, 4.05)
    mine = [starts_of(tmp_path, twice[0], seed) for seed in range(10)]
    near = np.array([[distance(starts, real, waited) for real in recorded] for starts in mine])  # (seeds, runs, 2)
    assert (np.median(near[:, :, 0], axis=0) > tau - 0.01).all()
    assert (np.median(near[:, :, 1], axis=0) < apart + 0.5).all()
    waits = [mean_wait(starts, submits) for starts in recorded]
    assert min(waits) - 2 < np.median([mean_wait(starts, submits) for starts in mine]) < max(waits) + 2
    ends = [max(starts.values()) for starts in recorded]
    assert min(ends) - 5 < np.median([max(starts.values()) for starts in mine]) < max(ends) + 5
    others = (
        *({"scheduler": name} for name in ("fcfs", "backfill", "conservative")),
        {"queue_order": "fcfs"},
        {"backfill_interval_s": 1e9},
    )
    for other in others:
        schedule = starts_of(tmp_path, twice[0], **other)
        for place, real in enumerate(recorded):
            assert distance(schedule, real, waited)[0] < np.median(near[:, place, 0]) - 0.02, other


@pytest.mark.parametrize("name", [path.stem for path in sorted(RECORDED.glob("*.json"))])
def test_passes_of_recorded_traces_start_the_same_jobs(tmp_path, name):
    """At least 95 % of the jobs, on whole and shared nodes, with frequent and with rare passes."""
    recording = read(RECORDED / f"{name}.json")
    other = differences(tmp_path, recording)
    wrong = sum(len(theirs | ours) for _, _, theirs, ours in other)
    assert wrong <= 0.05 * len(recording.jobs), other
