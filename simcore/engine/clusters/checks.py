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
                raise InvariantError(f"debug: after {state.now:.6f} s: {name}: {problem}")
        if self._config["meta_scheduler"] == "bandwidth-aware":
            problem = _check_belief(state)
            if problem:
                raise InvariantError(f"debug: after {state.now:.6f} s: belief: {problem}")


def _running(s: ClusterState) -> list[int]:
    return [int(job) for job in np.flatnonzero(s.job.status == st.RUNNING)]


def _talking(s: ClusterState) -> list[int]:
    return [job for job in _running(s) if s.job.phase[job] == cs.WORKS and s.job.spans[job] > 1]


def _check_nodes(s: ClusterState) -> str:
    """Each cluster's nodes are held, down or free, and each running job has the nodes that it needs."""
    held = np.zeros(s.capacity.shape[0], np.int64)
    for job in _running(s):
        if s.parts[job].sum() != s.job.size[job] or (s.parts[job] < 0).any():
            return f"job {job} needs {s.job.size[job]} nodes and holds {s.parts[job].tolist()}"
        held += s.parts[job]
    first = s.first_node
    ends = first + s.cluster_nodes
    down = s.down_until[: int(s.nodes)] > -np.inf
    down_here = np.array([down[a:b].sum() for a, b in zip(first, ends, strict=True)])
    free = s.cluster_nodes - held - down_here
    if not np.array_equal(free, s.free_here) or (free < 0).any():
        return f"free nodes are counted as {s.free_here.tolist()} and are {free.tolist()}"
    if s.named == 1:
        for job in _running(s):
            owned = [int((s.owner[a:b] == job).sum()) for a, b in zip(first, ends, strict=True)]
            if owned != s.parts[job].tolist():
                return f"job {job} owns {owned} nodes of the clusters and holds {s.parts[job].tolist()}"
    return ""


def _check_counts(s: ClusterState) -> str:
    """The counters are those of what they count."""
    status = s.job.status
    counts = {
        "free nodes": ("free", int(s.free_here.sum())),
        "running jobs": ("num_running", len(_running(s))),
        "jobs over several clusters": (
            "num_spanning",
            int((s.job.spans[status == st.RUNNING] > 1).sum()),
        ),
        "nodes asked for by waiting jobs": ("queued", int(s.job.requested[status == st.WAITING].sum())),
        "finished jobs": ("finished", int((status == st.DONE).sum())),
    }
    for what, (name, count) in counts.items():
        if getattr(s, name) != count:
            return f"{getattr(s, name)} {what} are counted and there are {count}"
    return ""


def _check_queue(s: ClusterState) -> str:
    """The queue is all waiting jobs, the checkpointed ones first and the others by arrival."""
    queue = s.queue[s.queue_head : s.queue_tail]
    rest = queue[s.num_front :]
    waiting = np.flatnonzero(s.job.status == st.WAITING)
    if not np.array_equal(np.sort(queue), waiting) or (np.diff(rest) <= 0).any():
        return f"the queue is {queue.tolist()} and the waiting jobs, by arrival, are {waiting.tolist()}"
    return ""


def _check_trunks(s: ClusterState) -> str:
    """The demand on each trunk is that of its jobs, and what it carries is no more than its capacity."""
    talking = _talking(s)
    demand = s.demand[talking].sum(axis=0)
    if not np.allclose(demand, s.trunk_demand, rtol=_CLOSE, atol=_CLOSE):
        return f"demands are counted as {s.trunk_demand.tolist()} and are {demand.tolist()}"
    carried = (s.demand[talking] / s.job.saturation[talking][:, None]).sum(axis=0)
    capacity = np.where(s.trunk_down == 1, 0.0, s.capacity)
    moving = s.job.communication[talking] > 0
    if moving.all() and (carried > capacity * (1.0 + _CLOSE)).any():
        return f"trunks carry {carried.tolist()} Mbit/s and can carry {capacity.tolist()}"
    return ""


def _check_rates(s: ClusterState) -> str:
    """A job advances as fast as the worst of its trunks lets it, and ends when its work is done at that rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = s.trunk_demand / np.where(s.trunk_down == 1, 0.0, s.capacity)
    for job in _talking(s):
        worst = 1.0
        if s.job.communication[job] > 0:
            worst = max(1.0, float(np.max(saturation[s.demand[job] > 0], initial=1.0)))
        if not np.isclose(s.job.saturation[job], worst, rtol=_CLOSE):
            return f"job {job} is slowed by {s.job.saturation[job]} and the worst of its trunks is at {worst}"
    return ""


def _check_work(s: ClusterState) -> str:
    """No job has done more work than it has, and none ends before now."""
    for job in _running(s):
        end = s.run_end[s.job.run_slot[job]]
        if not end >= s.now:
            return f"job {job} ends at {end}, in the past"
        if not 0.0 <= s.job.saved[job] <= s.job.worked[job] <= s.job.work[job]:
            return f"job {job} has saved {s.job.saved[job]} s of {s.job.worked[job]} s done"
    return ""


def _check_belief(s: ClusterState) -> str:
    """What the bandwidth-aware scheduler believes that running jobs need fits the trunks, and all of them state it."""
    for job in _running(s):
        if s.job.spans[job] > 1 and np.isnan(s.job.stated[job]):
            return f"job {job} states no bandwidth and runs over {s.job.spans[job]} clusters"
        if s.job.spans[job] > 1 and s.job.offences[job] > 1 and s.job.phase[job] != cs.SAVES:
            return f"job {job} has offended twice and runs over {s.job.spans[job]} clusters"
    most = s.capacity * (1.0 + _CLOSE)
    if (s.trunk_believed > most).any():
        return f"jobs are believed to need {s.trunk_believed.tolist()} Mbit/s of {s.capacity.tolist()}"
    return ""
