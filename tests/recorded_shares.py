"""Priorities by fair share on the schedule of a recorded SLURM, as the kernels calculate them."""

from __future__ import annotations

from math import floor
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.engine.state import State, state_at
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.queue_order.multifactor import note_usage, priority_of
from faultsweep.simcore.sites.site import site_text

from tests.recorded import CORES, Played, Recording, partitions_of, site_of

USAGE, PRIORITY = range(2)


@entry_kernel
def _replay(table, time, kind, job, cores, since, found):
    s = state_at(table)
    for at in range(len(time)):
        s.now = time[at]
        if kind[at] == USAGE:
            if cores[at] < 0:
                s.job.counted_since[job[at]] = since[at]
            note_usage(s, job[at], cores[at])
        else:
            if not np.isnan(since[at]):
                s.job.utility_since[job[at]] = since[at]
            found[at] = priority_of(s, job[at])


def replay(state: State, events: list[tuple[float, int, int, int, float]]) -> np.ndarray:
    """The priority of each event of kind PRIORITY; the others change the usage.

    An event is its time, its kind, a job, the cores that its usage rises by, and since when it has waited, NaN to leave
    that as it is, or has used cores that it gives back.
    """
    order = sorted(range(len(events)), key=lambda at: events[at][0])
    columns = [np.array(column) for column in zip(*(events[at] for at in order), strict=True)]
    found, by_event = np.full(len(events), np.nan), np.empty(len(events))
    _replay(state.handle, columns[0].astype(float), *columns[1:], found)
    by_event[order] = found
    return by_event


def coded(values: list[str]) -> tuple[np.ndarray, np.ndarray]:
    names, codes = np.unique(np.array(values), return_inverse=True)
    return names, codes.reshape(-1).astype(np.int64)


def priorities(folder: Path, recording: Recording) -> list[tuple[str, int, float]]:
    """Jobs with the priority that SLURM printed and that of the kernels, after each calculation."""
    begin = floor(recording.noted.calculated)
    place = {job.name: 1 + at for at, job in enumerate(recording.jobs)}
    events = [
        (floor(time) - begin, USAGE, place[stay.name], sign * stay.nodes * stay.cores, floor(stay.start) - begin)
        for stay in recording.stays
        for time, sign in ((stay.start, 1), (stay.end, -1))
    ]
    said = [
        (floor(time) - begin + 0.5, name, value)
        for time, of_jobs in recording.noted.priorities
        for name, value in of_jobs.items()
    ]
    events += [
        (time, PRIORITY, place[name], 0, _waits_since(recording, name, begin + time) - begin) for time, name, _ in said
    ]
    by_event = replay(_state_of(folder, recording, begin), events)
    mine = by_event[len(events) - len(said) :]
    return [(name, value, float(own)) for (_, name, value), own in zip(said, mine, strict=True)]


def _waits_since(recording: Recording, name: str, time: float) -> int:
    """When a job became eligible that waits at a time: once its dependencies or its hold are over."""
    submits = [stay.submit for stay in recording.stays if stay.name == name and stay.start > time]
    after = next(job.after for job in recording.jobs if job.name == name)
    return max(floor(submits[0]), *(floor(job.end) for job in recording.jobs if job.name in after), 0)


def _state_of(folder: Path, recording: Recording, begin: int) -> State:
    """The state before the first job, after one of nobody that begins the periods."""
    path = folder / "site.toml"
    path.write_text(site_text(site_of(partitions_of(recording.site), {}, recording.site)))
    nobody = Played("", begin, begin, begin, "main", (0,), 0, 1.0, 1.0, "batch", 1, CORES, user="root", account="root")
    jobs = [nobody, *recording.jobs]
    one, cores = np.ones(len(jobs), np.int64), np.array([job.cores for job in jobs])
    nodes = np.array([job.nodes for job in jobs])
    arrays: dict[str, Any] = {
        **dict.fromkeys(("work_s", "estimate_s"), 1.0 * one),
        "submit_s": np.array([floor(job.submit) - begin for job in jobs], float),
        **{"requested": nodes * cores, "size": nodes * cores, "chunks": nodes, "cores": cores, "per_node": one},
        **dict.fromkeys(("gpus", "memory_mb", "whole", "partition"), 0 * one),
    }
    arrays["user_names"], arrays["user"] = coded([job.user for job in jobs])
    for name in ("account", "qos"):
        arrays[f"{name}_names"], arrays[f"{name}_codes"] = coded([getattr(job, name) for job in jobs])
    names = ("age_weight", "share_weight", "qos_weight", "fair_share", "half_life_h", "max_age_h", "period_s")
    mine = {f"priority_{name}" for name in names}
    settings = {name: value for name, value in recording.settings.items() if name in mine}
    parameters = settings | {"queue_order": "multifactor", "machine": str(path)}
    return build_state(arrays, parse_machine(str(path)), resolve(parameters), None, tracing=False)
