"""Debug mode on clusters: what must hold after every instant, recomputed from the jobs alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.state import ClusterState

from faultsweep.errors import InvariantError

_CLOSE = 1e-9


class ClusterChecker:
    """Checks a state after every instant."""

    def __init__(self, state: ClusterState, config: Mapping[str, Any]) -> None:
        """Watch a state that has not begun."""
        self._config = config

    def check(self, state: ClusterState) -> None:
        """Raise InvariantError with the first sentence that a check has."""
        for name, check in (
            ("nodes", _check_nodes),
            ("counts", _check_counts),
            ("queue", _check_queue),
            ("trunks", _check_trunks),
            ("rates", _check_rates),
            ("work", _check_work),
        ):
            problem = check(state)
            if problem:
                raise InvariantError(f"debug: after {state.f[st.NOW]:.6f} s: {name}: {problem}")
        if self._config["meta_scheduler"] == "bandwidth-aware":
            problem = _check_belief(state)
            if problem:
                raise InvariantError(f"debug: after {state.f[st.NOW]:.6f} s: belief: {problem}")


def _running(s: ClusterState) -> list[int]:
    return [int(job) for job in np.flatnonzero(s.job_i[st.STATUS] == st.RUNNING)]


def _talking(s: ClusterState) -> list[int]:
    return [job for job in _running(s) if s.job_i[cs.PHASE, job] == cs.WORKS and s.job_i[cs.SPANS, job] > 1]


def _check_nodes(s: ClusterState) -> str:
    """Each cluster's nodes are held, down or free, and each running job has the nodes that it needs."""
    held = np.zeros(s.clusters.shape[1], np.int64)
    for job in _running(s):
        if s.parts[job].sum() != s.job_i[st.SIZE, job] or (s.parts[job] < 0).any():
            return f"job {job} needs {s.job_i[st.SIZE, job]} nodes and holds {s.parts[job].tolist()}"
        held += s.parts[job]
    first = s.clusters[cs.FIRST_NODE]
    ends = first + s.clusters[cs.NUM_NODES]
    down = s.agenda[cs.DOWN_UNTIL, : int(s.i[st.NODES])] > -np.inf
    down_here = np.array([down[a:b].sum() for a, b in zip(first, ends, strict=True)])
    free = s.clusters[cs.NUM_NODES] - held - down_here
    if not np.array_equal(free, s.clusters[cs.FREE_HERE]) or (free < 0).any():
        return f"free nodes are counted as {s.clusters[cs.FREE_HERE].tolist()} and are {free.tolist()}"
    if s.i[cs.NAMED] == 1:
        for job in _running(s):
            owned = [int((s.lists[cs.OWNER, a:b] == job).sum()) for a, b in zip(first, ends, strict=True)]
            if owned != s.parts[job].tolist():
                return f"job {job} owns {owned} nodes of the clusters and holds {s.parts[job].tolist()}"
    return ""


def _check_counts(s: ClusterState) -> str:
    """The counters are those of what they count."""
    status = s.job_i[st.STATUS]
    counts = {
        "free nodes": (st.FREE, int(s.clusters[cs.FREE_HERE].sum())),
        "running jobs": (cs.NUM_RUNNING, len(_running(s))),
        "jobs over several clusters": (
            cs.NUM_SPANNING,
            int((s.job_i[cs.SPANS][status == st.RUNNING] > 1).sum()),
        ),
        "nodes asked for by waiting jobs": (st.QUEUED, int(s.job_i[st.REQUESTED][status == st.WAITING].sum())),
        "finished jobs": (st.FINISHED, int((status == st.DONE).sum())),
    }
    for what, (row, count) in counts.items():
        if s.i[row] != count:
            return f"{s.i[row]} {what} are counted and there are {count}"
    return ""


def _check_queue(s: ClusterState) -> str:
    """The queue is all waiting jobs, the checkpointed ones first and the others by arrival."""
    queue = s.lists[cs.QUEUE, s.i[st.QUEUE_HEAD] : s.i[st.QUEUE_TAIL]]
    rest = queue[s.i[cs.NUM_FRONT] :]
    waiting = np.flatnonzero(s.job_i[st.STATUS] == st.WAITING)
    if not np.array_equal(np.sort(queue), waiting) or (np.diff(rest) <= 0).any():
        return f"the queue is {queue.tolist()} and the waiting jobs, by arrival, are {waiting.tolist()}"
    return ""


def _check_trunks(s: ClusterState) -> str:
    """The demand on each trunk is that of its jobs, and what it carries is no more than its capacity."""
    talking = _talking(s)
    demand = s.demand[talking].sum(axis=0)
    if not np.allclose(demand, s.trunks[cs.DEMAND], rtol=_CLOSE, atol=_CLOSE):
        return f"demands are counted as {s.trunks[cs.DEMAND].tolist()} and are {demand.tolist()}"
    carried = (s.demand[talking] / s.job_f[cs.SATURATION, talking][:, None]).sum(axis=0)
    capacity = np.where(s.clusters[cs.TRUNK_DOWN] == 1, 0.0, s.trunks[cs.CAPACITY])
    moving = s.job_f[cs.COMMUNICATION, talking] > 0
    if moving.all() and (carried > capacity * (1.0 + _CLOSE)).any():
        return f"trunks carry {carried.tolist()} Mbit/s and can carry {capacity.tolist()}"
    return ""


def _check_rates(s: ClusterState) -> str:
    """A job advances as fast as the worst of its trunks lets it, and ends when its work is done at that rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = s.trunks[cs.DEMAND] / np.where(s.clusters[cs.TRUNK_DOWN] == 1, 0.0, s.trunks[cs.CAPACITY])
    for job in _talking(s):
        worst = 1.0
        if s.job_f[cs.COMMUNICATION, job] > 0:
            worst = max(1.0, float(np.max(saturation[s.demand[job] > 0], initial=1.0)))
        if not np.isclose(s.job_f[cs.SATURATION, job], worst, rtol=_CLOSE):
            return f"job {job} is slowed by {s.job_f[cs.SATURATION, job]} and the worst of its trunks is at {worst}"
    return ""


def _check_work(s: ClusterState) -> str:
    """No job has done more work than it has, and none ends before now."""
    for job in _running(s):
        end = s.agenda[cs.RUN_END, s.job_i[cs.RUN_SLOT, job]]
        if not end >= s.f[st.NOW]:
            return f"job {job} ends at {end}, in the past"
        if not 0.0 <= s.job_f[st.SAVED, job] <= s.job_f[st.WORKED, job] <= s.job_f[st.WORK, job]:
            return f"job {job} has saved {s.job_f[st.SAVED, job]} s of {s.job_f[st.WORKED, job]} s done"
    return ""


def _check_belief(s: ClusterState) -> str:
    """What the bandwidth-aware scheduler believes that running jobs need fits the trunks, and all of them state it."""
    for job in _running(s):
        if s.job_i[cs.SPANS, job] > 1 and np.isnan(s.job_f[cs.STATED, job]):
            return f"job {job} states no bandwidth and runs over {s.job_i[cs.SPANS, job]} clusters"
        if s.job_i[cs.SPANS, job] > 1 and s.job_i[cs.OFFENCES, job] > 1 and s.job_i[cs.PHASE, job] != cs.SAVES:
            return f"job {job} has offended twice and runs over {s.job_i[cs.SPANS, job]} clusters"
    most = s.trunks[cs.CAPACITY] * (1.0 + _CLOSE)
    if (s.trunks[cs.BELIEVED] > most).any():
        return f"jobs are believed to need {s.trunks[cs.BELIEVED].tolist()} Mbit/s of {s.trunks[cs.CAPACITY].tolist()}"
    return ""
