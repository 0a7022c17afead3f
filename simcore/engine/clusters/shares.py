"""The fluid model: what trunks carry, how fast that lets jobs advance, and when they end (akshitha2011, II.B).

A job's communication slows by the worst saturation of its trunks, if that is above 1; compute and communication
interleave, so the whole job takes T_P + saturation * T_C, and a part of it the same part of that.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.state import (
    SAVES,
    TOLERANCE,
    WORKS,
    ClusterState,
    TrunkRow,
)
from faultsweep.simcore.engine.clusters.traffic import demand_of, find_edges
from faultsweep.simcore.engine.jit import inlined, kernel


@inlined
def saturation_of(s: ClusterState, trunk: int) -> float:
    """Return demand over capacity of a trunk; infinity if it is down and anyone needs it."""
    if s.trunk_down[trunk] == 1 and s.trunk_demand[trunk] > 0.0:
        return np.inf
    return s.trunk_demand[trunk] / s.capacity[trunk]


@inlined
def work_at(s: ClusterState, job: int, time: float) -> float:
    """Return the work that a job has done by a time since which its saturation has not changed, s of run time."""
    passed = max(0.0, time - s.job.resumed[job])
    if s.job.saturation[job] > 1.0:
        passed *= s.job.work[job] / s.job.duration[job]
    return min(s.job.work[job], s.job.worked[job] + passed)


@kernel
def settle(s: ClusterState, job: int) -> None:
    """Count the work that a job has done until now; from here on it may advance at another rate."""
    now = s.now
    passed = now - s.job.resumed[job]
    if passed <= 0.0:
        return
    worked = work_at(s, job, now)
    if s.job.saturation[job] > 1.0:
        slowed = passed - (worked - s.job.worked[job])
        s.job.slowed[job] += slowed
        s.job.slowed_nodes[job] += slowed * s.job.allocated[job]
    s.job.worked[job] = worked
    s.job.resumed[job] = now


@inlined
def end_at_rate(s: ClusterState, job: int) -> float:
    """Return when a job ends at its present rate, s."""
    left = s.job.work[job] - s.job.worked[job]
    if left > 0.0 and s.job.saturation[job] > 1.0:
        left *= s.job.duration[job] / s.job.work[job]
    return s.job.resumed[job] + left


@kernel
def recompute(s: ClusterState) -> None:
    """Recompute demands, saturations and the ends of the jobs whose saturation has changed."""
    for c in range(s.capacity.shape[0]):
        s.trunk_demand[c] = 0.0
    for at in range(s.num_spanning):
        job = s.spanning[at]
        if s.job.phase[job] == WORKS:
            for c in range(s.capacity.shape[0]):
                s.trunk_demand[c] += s.demand[job, c]
    for at in range(s.num_spanning):
        job = s.spanning[at]
        if s.job.phase[job] == WORKS:
            _set_rate(s, job)
    s.changed = 0
    s.due = 1


@inlined
def _set_rate(s: ClusterState, job: int) -> None:
    """Give a job the saturation of the worst of its trunks."""
    worst = 1.0
    for c in range(s.capacity.shape[0]):
        if s.demand[job, c] > 0.0:
            saturation = saturation_of(s, c)
            if saturation > worst and saturation > TOLERANCE:
                worst = saturation
    if s.job.communication[job] == 0.0:
        worst = 1.0
    if worst != s.job.saturation[job]:
        settle(s, job)
        s.job.saturation[job] = worst
        s.job.duration[job] = s.job.work[job] + (worst - 1.0) * s.job.communication[job]
        s.run_end[s.job.run_slot[job]] = end_at_rate(s, job)


@kernel
def join_traffic(s: ClusterState, job: int) -> None:
    """Work out what a job that starts over several clusters, as PARTS says, puts on their trunks."""
    find_edges(s, s.job.size[job])
    for c in range(s.capacity.shape[0]):
        part, edges = s.parts[job, c], s.edges[c]
        s.demand[job, c] = demand_of(s, s.job.bandwidth[job], s.job.size[job], part, edges)
        stated = s.job.stated[job]
        s.believed[job, c] = demand_of(s, stated, s.job.size[job], part, edges) if stated == stated else 0.0
    s.spanning[s.num_spanning] = job
    s.num_spanning += 1
    believe(s, -1, s.trunk_believed)


@kernel
def leave_traffic(s: ClusterState, job: int) -> None:
    """Take a job off the list of those over several clusters, which stays in order of the starts."""
    last = s.num_spanning - 1
    at = 0
    while s.spanning[at] != job:
        at += 1
    for later in range(at, last):
        s.spanning[later] = s.spanning[later + 1]
    s.num_spanning = last
    s.changed = 1
    believe(s, -1, s.trunk_believed)


@kernel
def believe(s: ClusterState, without: int, trunks: TrunkRow) -> None:
    """Sum, by trunk, what the scheduler believes that running jobs need; one may be left out.

    A job that saves its state to make room needs nothing more; what states nothing counts for nothing.
    """
    for c in range(s.capacity.shape[0]):
        trunks[c] = 0.0
    for at in range(s.num_spanning):
        job = s.spanning[at]
        if job != without and s.job.phase[job] != SAVES:
            for c in range(s.capacity.shape[0]):
                trunks[c] += s.believed[job, c]


@inlined
def next_end(s: ClusterState) -> int:
    """Return the slot of the running job that ends first, of equals that of the first job; -1 if none ends."""
    best, first = -1, np.inf
    for slot in range(s.num_running):
        end = s.run_end[slot]
        if end < first or (end == first and best >= 0 and s.running[slot] < s.running[best]):
            best, first = slot, end
    return best
