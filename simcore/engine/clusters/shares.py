"""The fluid model: what trunks carry, how fast that lets jobs advance, and when they end (akshitha2011, II.B).

A job's communication slows by the worst saturation of its trunks, if that is above 1; compute and communication
interleave, so the whole job takes T_P + saturation * T_C, and a part of it the same part of that.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.state import (
    BANDWIDTH,
    BELIEVED,
    CAPACITY,
    CHANGED,
    COMMUNICATION,
    DEMAND,
    DUE,
    DURATION,
    EDGES,
    NUM_RUNNING,
    NUM_SPANNING,
    PHASE,
    RUN_END,
    RUN_SLOT,
    RUNNING,
    SATURATION,
    SAVES,
    SLOWED,
    SLOWED_NODES,
    SPANNING,
    STATED,
    TOLERANCE,
    TRUNK_DOWN,
    WORKS,
)
from faultsweep.simcore.engine.clusters.traffic import demand_of, find_edges
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import ALLOCATED, NOW, RESUMED, SIZE, WORK, WORKED


@inlined
def saturation_of(s, trunk):
    """Return demand over capacity of a trunk; infinity if it is down and anyone needs it."""
    if s.clusters[TRUNK_DOWN, trunk] == 1 and s.trunks[DEMAND, trunk] > 0.0:
        return np.inf
    return s.trunks[DEMAND, trunk] / s.trunks[CAPACITY, trunk]


@inlined
def work_at(s, job, time):
    """Return the work that a job has done by a time since which its saturation has not changed, s of run time."""
    passed = max(0.0, time - s.job_f[RESUMED, job])
    if s.job_f[SATURATION, job] > 1.0:
        passed *= s.job_f[WORK, job] / s.job_f[DURATION, job]
    return min(s.job_f[WORK, job], s.job_f[WORKED, job] + passed)


@kernel
def settle(s, job):
    """Count the work that a job has done until now; from here on it may advance at another rate."""
    now = s.f[NOW]
    passed = now - s.job_f[RESUMED, job]
    if passed <= 0.0:
        return
    worked = work_at(s, job, now)
    if s.job_f[SATURATION, job] > 1.0:
        slowed = passed - (worked - s.job_f[WORKED, job])
        s.job_f[SLOWED, job] += slowed
        s.job_f[SLOWED_NODES, job] += slowed * s.job_i[ALLOCATED, job]
    s.job_f[WORKED, job] = worked
    s.job_f[RESUMED, job] = now


@inlined
def end_at_rate(s, job):
    """Return when a job ends at its present rate, s."""
    left = s.job_f[WORK, job] - s.job_f[WORKED, job]
    if left > 0.0 and s.job_f[SATURATION, job] > 1.0:
        left *= s.job_f[DURATION, job] / s.job_f[WORK, job]
    return s.job_f[RESUMED, job] + left


@kernel
def recompute(s):
    """Recompute demands, saturations and the ends of the jobs whose saturation has changed."""
    for c in range(s.trunks.shape[1]):
        s.trunks[DEMAND, c] = 0.0
    for at in range(s.i[NUM_SPANNING]):
        job = s.lists[SPANNING, at]
        if s.job_i[PHASE, job] == WORKS:
            for c in range(s.trunks.shape[1]):
                s.trunks[DEMAND, c] += s.demand[job, c]
    for at in range(s.i[NUM_SPANNING]):
        job = s.lists[SPANNING, at]
        if s.job_i[PHASE, job] == WORKS:
            _set_rate(s, job)
    s.i[CHANGED] = 0
    s.i[DUE] = 1


@inlined
def _set_rate(s, job):
    """Give a job the saturation of the worst of its trunks."""
    worst = 1.0
    for c in range(s.trunks.shape[1]):
        if s.demand[job, c] > 0.0:
            saturation = saturation_of(s, c)
            if saturation > worst and saturation > TOLERANCE:
                worst = saturation
    if s.job_f[COMMUNICATION, job] == 0.0:
        worst = 1.0
    if worst != s.job_f[SATURATION, job]:
        settle(s, job)
        s.job_f[SATURATION, job] = worst
        s.job_f[DURATION, job] = s.job_f[WORK, job] + (worst - 1.0) * s.job_f[COMMUNICATION, job]
        s.agenda[RUN_END, s.job_i[RUN_SLOT, job]] = end_at_rate(s, job)


@kernel
def join_traffic(s, job):
    """Work out what a job that starts over several clusters, as PARTS says, puts on their trunks."""
    find_edges(s, s.job_i[SIZE, job])
    for c in range(s.trunks.shape[1]):
        part, edges = s.parts[job, c], s.clusters[EDGES, c]
        s.demand[job, c] = demand_of(s, s.job_f[BANDWIDTH, job], s.job_i[SIZE, job], part, edges)
        stated = s.job_f[STATED, job]
        s.believed[job, c] = demand_of(s, stated, s.job_i[SIZE, job], part, edges) if stated == stated else 0.0
    s.lists[SPANNING, s.i[NUM_SPANNING]] = job
    s.i[NUM_SPANNING] += 1
    believe(s, -1, BELIEVED)


@kernel
def leave_traffic(s, job):
    """Take a job off the list of those over several clusters, which stays in order of the starts."""
    last = s.i[NUM_SPANNING] - 1
    at = 0
    while s.lists[SPANNING, at] != job:
        at += 1
    for later in range(at, last):
        s.lists[SPANNING, later] = s.lists[SPANNING, later + 1]
    s.i[NUM_SPANNING] = last
    s.i[CHANGED] = 1
    believe(s, -1, BELIEVED)


@kernel
def believe(s, without, row):
    """Sum, into a row of the trunks, what the scheduler believes that running jobs need; one may be left out.

    A job that saves its state to make room needs nothing more; what states nothing counts for nothing.
    """
    for c in range(s.trunks.shape[1]):
        s.trunks[row, c] = 0.0
    for at in range(s.i[NUM_SPANNING]):
        job = s.lists[SPANNING, at]
        if job != without and s.job_i[PHASE, job] != SAVES:
            for c in range(s.trunks.shape[1]):
                s.trunks[row, c] += s.believed[job, c]


@inlined
def next_end(s):
    """Return the slot of the running job that ends first, of equals that of the first job; -1 if none ends."""
    best, first = -1, np.inf
    for slot in range(s.i[NUM_RUNNING]):
        end = s.agenda[RUN_END, slot]
        if end < first or (end == first and best >= 0 and s.lists[RUNNING, slot] < s.lists[RUNNING, best]):
            best, first = slot, end
    return best
