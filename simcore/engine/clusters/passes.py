"""Scheduling passes on clusters: one queue discipline for each cluster's queue, or for all queues as one."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import expected_end_if_started, places_now
from faultsweep.simcore.engine.clusters.running import dequeue, start
from faultsweep.simcore.engine.clusters.state import (
    BLOCKED,
    DOWN_UNTIL,
    DURATION,
    EASY,
    FIRST_FIT,
    FIRST_NODE,
    FREE_HERE,
    HOME,
    IN_ORDER,
    LOCAL_ONLY,
    META,
    NUM_NODES,
    NUM_RUNNING,
    ONE_QUEUE,
    OVERHEAD_S,
    PARTS,
    PHASE,
    PLACES,
    QUEUE,
    REFUSED_AT,
    RELEASE_NODES,
    RELEASE_TIME,
    RUNNING,
    SATURATION,
    SAVES,
    SHADOW_EXTRA,
    SHADOW_TIME,
    UNLIMITED,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ESTIMATE,
    FREE,
    NOW,
    NUM_DOWN,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RESUMED,
    SAVING_SINCE,
    SCHEDULER,
    SIZE,
    WORK,
    WORKED,
)


@kernel
def schedule(s):
    """Start what can start, in the order of the queue: checkpointed jobs first, then by submission.

    FCFS: no job overtakes one of its queue that waits. EASY: none delays the first of its queue that waits, which has a
    reservation in its own cluster. First fit: every job that has a place starts.
    """
    for c in range(s.clusters.shape[1]):
        s.clusters[BLOCKED, c] = 0
        s.clusters[SHADOW_EXTRA, c] = UNLIMITED
    at = s.i[QUEUE_HEAD]
    while at < s.i[QUEUE_TAIL] and s.i[FREE] > 0:
        job = s.lists[QUEUE, at]
        queue = 0 if s.i[ONE_QUEUE] == 1 else s.job_i[HOME, job]
        if s.i[SCHEDULER] == IN_ORDER and s.clusters[BLOCKED, queue] == 1:
            if s.i[ONE_QUEUE] == 1:
                return
            at += 1
        elif _can_start(s, job):
            at = dequeue(s, at)
            if s.i[SCHEDULER] == EASY:
                _use_reserved(s, job)
            start(s, job)
        else:
            if s.clusters[BLOCKED, queue] == 0 and s.i[SCHEDULER] != FIRST_FIT:
                s.clusters[BLOCKED, queue] = 1
                if s.i[SCHEDULER] == EASY:
                    _reserve(s, job)
            at += 1


@inlined
def _can_start(s, job):
    """Tell whether a job has a place; under first fit one that was refused is asked again after a change."""
    if s.job_i[SIZE, job] > s.i[FREE] or (s.i[SCHEDULER] == FIRST_FIT and s.job_i[REFUSED_AT, job] == s.i[PLACES]):
        return False
    if places_now(s, job):
        return True
    s.job_i[REFUSED_AT, job] = s.i[PLACES]
    return False


@inlined
def _use_reserved(s, job):
    """Take, of the nodes beside a reservation, those of a job that will still run at its time."""
    end = expected_end_if_started(s, job)
    for c in range(s.clusters.shape[1]):
        if s.clusters[PARTS, c] > 0 and s.clusters[SHADOW_EXTRA, c] < UNLIMITED and end > s.trunks[SHADOW_TIME, c]:
            s.clusters[SHADOW_EXTRA, c] -= s.clusters[PARTS, c]


@kernel
def _reserve(s, job):
    """Make a reservation for the first job of a queue that has to wait: whole, where that is earliest.

    That is its own cluster; any that holds the job if all queues are one, or if its own is too small. A cluster has one
    reservation at most.
    """
    size, home = s.job_i[SIZE, job], s.job_i[HOME, job]
    at_home = s.clusters[NUM_NODES, home] >= size and (s.i[ONE_QUEUE] == 0 or s.i[META] == LOCAL_ONLY)
    best, earliest, extra = -1, np.inf, 0
    for c in range(s.clusters.shape[1]):
        taken = s.clusters[SHADOW_EXTRA, c] < UNLIMITED
        if taken or s.clusters[NUM_NODES, c] < size or (at_home and c != home):
            continue
        time, beside = _earliest(s, c, size)
        if time < earliest:
            best, earliest, extra = c, time, beside
    if best >= 0:
        s.trunks[SHADOW_TIME, best] = earliest
        s.clusters[SHADOW_EXTRA, best] = extra


@inlined
def _earliest(s, cluster, size):
    """Return when a cluster is expected to have so many nodes free, and how many more there will be then."""
    releases = _list_releases(s, cluster)
    free = s.clusters[FREE_HERE, cluster]
    time = s.f[NOW]
    at = 0
    while at < releases and (free < size or s.agenda[RELEASE_TIME, at] <= time):
        time = max(time, s.agenda[RELEASE_TIME, at])
        free += int(s.agenda[RELEASE_NODES, at])
        at += 1
    return (time, free - size) if free >= size else (np.inf, 0)


@kernel
def _list_releases(s, cluster):
    """List when nodes of a cluster are expected to become free, in order of time; return how many entries there are."""
    count = 0
    for slot in range(s.i[NUM_RUNNING]):
        job = s.lists[RUNNING, slot]
        if s.parts[job, cluster] > 0:
            count = _insert_release(s, count, _expected_end(s, job), s.parts[job, cluster])
    if s.i[NUM_DOWN] > 0:
        first = s.clusters[FIRST_NODE, cluster]
        for node in range(first, first + s.clusters[NUM_NODES, cluster]):
            if s.agenda[DOWN_UNTIL, node] > -np.inf:
                count = _insert_release(s, count, s.agenda[DOWN_UNTIL, node], 1)
    return count


@inlined
def _insert_release(s, count, time, nodes):
    at = count
    while at > 0 and s.agenda[RELEASE_TIME, at - 1] > time:
        s.agenda[RELEASE_TIME, at] = s.agenda[RELEASE_TIME, at - 1]
        s.agenda[RELEASE_NODES, at] = s.agenda[RELEASE_NODES, at - 1]
        at -= 1
    s.agenda[RELEASE_TIME, at] = time
    s.agenda[RELEASE_NODES, at] = nodes
    return count + 1


@inlined
def _expected_end(s, job):
    """Return when the scheduler expects a running job to free its nodes; now if it has overrun its estimate."""
    if s.job_i[PHASE, job] == SAVES:
        return s.job_f[SAVING_SINCE, job] + 0.5 * s.f[OVERHEAD_S]
    left = max(0.0, s.job_f[ESTIMATE, job] - s.job_f[WORKED, job])
    if left > 0.0 and s.job_f[SATURATION, job] > 1.0:
        left *= s.job_f[DURATION, job] / s.job_f[WORK, job]
    return max(s.f[NOW], s.job_f[RESUMED, job] + left)
