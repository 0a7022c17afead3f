"""Recorded runs of a real SLURM, and what the scheduler ``slurm`` does with their jobs: pass by pass, or all of them.

A recording is a file of JSON: the settings of the passes, the jobs, and what the controller did with each of them in
each of several runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from math import floor
from pathlib import Path

import numpy as np
from faultsweep.simcore.model.dependencies import dependencies_of
from faultsweep.simcore.model.workload import Demand, Label, Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.sites.site import NodeClass, Partition, Qos, Site, site_text

NODES, CORES, MEMORY_MB, GPUS = 16, 4, 8000, 2
PARTITIONS = {"batch": tuple(range(12)), "gpu": tuple(range(12, 16))}
OF_ONE_PASS_S = 0.06
"""Starts of one pass lie closer than this in the controller's log."""
LATE_S = (0.02, 0.04, OF_ONE_PASS_S)
TICKS = ("main_interval_s", "full_interval_s", "backfill_interval_s")
PLAYING_S = 0.04  # what a job takes beyond its sleep, about
SETTINGS = {
    "scheduler": "slurm",
    "estimates": "requested",
    "node_choice": "consecutive",
    "queue_order": "multifactor",
    "priority_age_weight": 0.0,
    "priority_share_weight": 0.0,
}


@dataclass(frozen=True)
class Played:
    """What the controller did with a job: times of its log in seconds, nodes from 0 on."""

    name: str
    submit: float
    start: float
    end: float
    by: str  # the pass that started it: main or backfill
    hosts: tuple[int, ...]
    priority: int
    run_s: float
    limit_s: float
    partition: str
    nodes: int
    cores: int = CORES  # of each node, and so on
    gpus: int = 0
    memory_mb: int = 0
    after: tuple[str, ...] = ()  # names of the jobs whose end it waits for


@dataclass(frozen=True)
class Recording:
    """A run: parameters of the passes, and its jobs in order of submission."""

    name: str
    settings: dict[str, float]
    jobs: tuple[Played, ...]


SEEN = ("submit", "start", "end", "by", "hosts")
"""What differs from run to run."""


def write(runs: list[Recording], path: Path) -> None:
    """Write several runs of one trace: its settings, what its jobs ask for, and of each run what became of each job."""
    asked = [{name: value for name, value in asdict(job).items() if name not in SEEN} for job in runs[0].jobs]
    seen = [[[getattr(job, name) for name in SEEN] for job in run.jobs] for run in runs]
    text = [f'{{"settings": {json.dumps(runs[0].settings)},', f'"seen": {json.dumps(SEEN)},', '"jobs": [']
    text += [",\n".join(map(json.dumps, asked)), "],", '"runs": [']
    text += [",\n".join("[" + ",\n".join(map(json.dumps, run)) + "]" for run in seen), "]}", ""]
    path.write_text("\n".join(text))


def read(path: Path) -> list[Recording]:
    """Read the runs of a trace."""
    found = json.loads(path.read_text())
    runs = []
    for number, run in enumerate(found["runs"], start=1):
        seen = [dict(zip(found["seen"], row, strict=True)) for row in run]
        jobs = [{**job, **what} for job, what in zip(found["jobs"], seen, strict=True)]
        jobs = [job | {name: tuple(job.get(name, ())) for name in ("hosts", "after")} for job in jobs]
        runs.append(Recording(f"{path.stem}-{number}", found["settings"], tuple(Played(**job) for job in jobs)))
    return runs


@dataclass(frozen=True)
class Row:
    """A job as it is simulated."""

    submit: float
    run_s: float
    limit_s: float
    partition: str
    priority: int
    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    memory_mb: int = 0
    after: tuple[int, ...] = ()  # rows of the jobs that it waits for


def simulated(folder: Path, rows: list[Row], partitions: dict[str, tuple[int, ...]], **settings) -> np.ndarray:
    """The starts of jobs; each node is a class of its own, so that a partition may have any of them."""
    nodes = [
        NodeClass(name=f"n{k}", count=1, cores=CORES, memory_mb=MEMORY_MB, gpus=GPUS * (k in PARTITIONS["gpu"]))
        for k in range(NODES)
    ]
    parts = [Partition(name=name, nodes={f"n{k}": 1 for k in members}) for name, members in partitions.items()]
    names = [f"q{k}" for k in range(len(rows))]
    qos = [Qos(name=name, priority=row.priority) for name, row in zip(names, rows, strict=True)]
    path = folder / "site.toml"
    path.write_text(site_text(Site(nodes=nodes, partitions=parts, qos=qos)))
    count, one = len(rows), np.ones(len(rows), np.int64)
    chunks, cores, gpus, memory = (
        np.array([getattr(row, name) for row in rows], np.int64) for name in ("nodes", "cores", "gpus", "memory_mb")
    )
    place = np.array([list(partitions).index(row.partition) for row in rows], np.int64)
    workload = Workload(
        np.arange(count),
        np.array([row.submit for row in rows]),
        np.array([row.run_s for row in rows]),
        np.array([row.limit_s for row in rows]),
        chunks * cores,
        0 * one,
        name="recorded",
        demand=Demand(chunks, cores, gpus, memory, one, 0 * one, place, partitions=tuple(partitions)),
        labels={"qos": Label(np.arange(count), tuple(names))},
    )
    pairs = [(place, other) for place, row in enumerate(rows) for other in row.after]
    if pairs:
        waits, after = (np.array(column) for column in zip(*pairs, strict=True))
        workload = replace(workload, dependencies=dependencies_of(waits, after, np.zeros(len(pairs))))
        settings = {"dependencies": "log"} | settings
    weight = float(max(row.priority for row in rows))
    run = simulate(workload, machine=str(path), **(SETTINGS | {"priority_qos_weight": weight} | settings))
    return np.asarray(run.jobs["start_s"])


def _row(job: Played, submit: float, **changes) -> Row:
    same = ("limit_s", "partition", "priority", "nodes", "cores", "gpus", "memory_mb", "run_s")
    return Row(**({name: getattr(job, name) for name in same} | {"submit": submit} | changes))


def starts_of(folder: Path, recording: Recording, seed: int = 0, **settings) -> dict[str, float]:
    """The starts of the jobs of a recording under our scheduler, since the first submission."""
    first = recording.jobs[0].submit
    place = {job.name: row for row, job in enumerate(recording.jobs)}
    rows = [
        _row(job, round((job.submit - first) * 1024) / 1024, after=tuple(place[name] for name in job.after))
        for job in recording.jobs
    ]
    starts = simulated(folder, rows, PARTITIONS, seed=seed, **(recording.settings | settings))
    return {job.name: float(start) for job, start in zip(recording.jobs, starts, strict=True)}


def passes_of(recording: Recording) -> list[tuple[float, str, set[str]]]:
    """The passes that started jobs: when the first of them started, which kind of pass it was, and the jobs."""
    found: list[tuple[float, str, set[str]]] = []
    last = -np.inf
    for job in sorted(recording.jobs, key=lambda job: job.start):
        if found and found[-1][1] == job.by and job.start - last < OF_ONE_PASS_S:
            found[-1][2].add(job.name)
        else:
            found.append((job.start, job.by, {job.name}))
        last = job.start
    return found


def decided(folder: Path, recording: Recording, time: float, kind: str) -> set[str]:
    """The jobs that one pass of ours starts with the running and waiting jobs as they were, without those that wait
    for the end of others.

    The running jobs have the highest priorities, each in a partition of the nodes that it held, and do not count for
    the depth. SLURM counts time in whole seconds, and half minutes since 1970, so the clock begins at a whole minute.
    """
    running = [job for job in recording.jobs if job.start < time < job.end]
    gone = {job.name for job in recording.jobs if job.end <= time}
    waiting = [job for job in recording.jobs if job.submit < time <= job.start and gone.issuperset(job.after)]
    now = floor(time)
    begin = (now // 60 - 1) * 60
    rows = [Row(0.0, 1.0, 1.0, "gpu", 1)]  # so that the clock begins there
    for place, job in enumerate(running):
        left = job.limit_s - (now - floor(job.start))
        rows.append(_row(job, now - begin, run_s=left, limit_s=left, partition=f"r{place}", priority=100_000))
    rows += [_row(job, now - begin, run_s=job.limit_s) for job in waiting]
    held = {f"r{place}": job.hosts for place, job in enumerate(running)}
    at_once = TICKS[2:] if kind == "backfill" else TICKS[:2]
    ticks = dict.fromkeys(TICKS, 1e9) | dict.fromkeys(at_once, 0.0)
    depth = {"backfill_depth": recording.settings["backfill_depth"] + len(running)}
    starts = simulated(folder, rows, PARTITIONS | held, **(recording.settings | ticks | depth))[1:] - (now - begin)
    assert (starts[: len(running)] == 0).all()
    return {job.name for job, start in zip(waiting, starts[len(running) :], strict=True) if start == 0}


@dataclass(frozen=True)
class Difference:
    """A pass that starts other jobs than ours: when, of which kind, SLURM's that ours does not start, and ours."""

    time: float
    kind: str
    theirs: set[str]
    ours: set[str]

    @property
    def jobs(self) -> int:
        """How many there are."""
        return len(self.theirs | self.ours)


def differences(folder: Path, recording: Recording, unseen: bool = False) -> list[Difference]:
    """The passes in which ours starts other jobs.

    unseen : of what SLURM may have seen of the jobs that ended just before, none of the last or all, take what is
        nearest: the log has the time of a start, and the pass had begun before.
    """
    found = []
    for time, kind, names in passes_of(recording):
        mine = decided(folder, recording, time, kind)
        if unseen and mine != names:
            others = [decided(folder, _with_late_ends(recording, time, late), time, kind) for late in LATE_S]
            mine = min((mine, *others), key=lambda each: len(each ^ names))
        if mine != names:
            found.append(Difference(time - recording.jobs[0].submit, kind, names - mine, mine - names))
    return found


def _with_late_ends(recording: Recording, time: float, late: float) -> Recording:
    """The recording as if the jobs that ended just before a time had ended after it."""
    jobs = (replace(job, end=time + late) if time - late < job.end <= time else job for job in recording.jobs)
    return replace(recording, jobs=tuple(jobs))
