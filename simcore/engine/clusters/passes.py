"""Scheduling passes on clusters: one queue discipline for each cluster's queue, or for all queues as one."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import expected_end_if_started, places_now
from faultsweep.simcore.engine.clusters.running import dequeue, start
from faultsweep.simcore.engine.clusters.state import (
    SAVES,
    UNLIMITED,
    ClusterState,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import ANYONE, HEAD_JOB, NOBODY


@kernel
def schedule(s: ClusterState) -> None:
    """Start what can start, in the order of the queue: checkpointed jobs first, then by submission.

    FCFS: no job overtakes one of its queue that waits. EASY: none delays the first of its queue that waits, which has a
    reservation in its own cluster. First fit: every job that has a place starts.
    """
    for c in range(s.capacity.shape[0]):
        s.blocked[c] = 0
        s.shadow_extra[c] = UNLIMITED
    at = s.queue_head
    while at < s.queue_tail and s.free > 0:
        job = s.queue[at]
        queue = 0 if s.one_queue == 1 else s.job.home[job]
        if s.reserves == NOBODY and s.blocked[queue] == 1:
            if s.one_queue == 1:
                return
            at += 1
        elif _can_start(s, job):
            at = dequeue(s, at)
            if s.reserves == HEAD_JOB:
                _use_reserved(s, job)
            start(s, job)
        else:
            if s.blocked[queue] == 0 and s.reserves != ANYONE:
                s.blocked[queue] = 1
                if s.reserves == HEAD_JOB:
                    _reserve(s, job)
            at += 1


@inlined
def _can_start(s: ClusterState, job: int) -> bool:
    """Tell whether a job has a place; under first fit one that was refused is asked again after a change."""
    if s.job.size[job] > s.free or (s.reserves == ANYONE and s.job.refused_at[job] == s.places):
        return False
    if places_now(s, job):
        return True
    s.job.refused_at[job] = s.places
    return False


@inlined
def _use_reserved(s: ClusterState, job: int) -> None:
    """Take, of the nodes beside a reservation, those of a job that will still run at its time."""
    end = expected_end_if_started(s, job)
    for c in range(s.capacity.shape[0]):
        if s.parts_found[c] > 0 and s.shadow_extra[c] < UNLIMITED and end > s.shadow_time[c]:
            s.shadow_extra[c] -= s.parts_found[c]


@kernel
def _reserve(s: ClusterState, job: int) -> None:
    """Make a reservation for the first job of a queue that has to wait: whole, where that is earliest.

    That is its own cluster; any that holds the job if all queues are one, or if its own is too small. A cluster has one
    reservation at most.
    """
    size, home = s.job.size[job], s.job.home[job]
    at_home = s.cluster_nodes[home] >= size and (s.one_queue == 0 or s.stays_home == 1)
    best, earliest, extra = -1, np.inf, 0
    for c in range(s.capacity.shape[0]):
        taken = s.shadow_extra[c] < UNLIMITED
        if taken or s.cluster_nodes[c] < size or (at_home and c != home):
            continue
        time, beside = _earliest(s, c, size)
        if time < earliest:
            best, earliest, extra = c, time, beside
    if best >= 0:
        s.shadow_time[best] = earliest
        s.shadow_extra[best] = extra


@inlined
def _earliest(s: ClusterState, cluster: int, size: int) -> tuple[float, int]:
    """Return when a cluster is expected to have so many nodes free, and how many more there will be then."""
    releases = _list_releases(s, cluster)
    free = s.free_here[cluster]
    time = s.now
    at = 0
    while at < releases and (free < size or s.release_time[at] <= time):
        time = max(time, s.release_time[at])
        free += int(s.release_nodes[at])
        at += 1
    return (time, free - size) if free >= size else (np.inf, 0)


@kernel
def _list_releases(s: ClusterState, cluster: int) -> int:
    """List when nodes of a cluster are expected to become free, in order of time; return how many entries there are."""
    count = 0
    for slot in range(s.num_running):
        job = s.running[slot]
        if s.parts[job, cluster] > 0:
            count = _insert_release(s, count, _expected_end(s, job), s.parts[job, cluster])
    if s.num_down > 0:
        first = s.first_node[cluster]
        for node in range(first, first + s.cluster_nodes[cluster]):
            if s.down_until[node] > -np.inf:
                count = _insert_release(s, count, s.down_until[node], 1)
    return count


@inlined
def _insert_release(s: ClusterState, count: int, time: float, nodes: int) -> int:
    at = count
    while at > 0 and s.release_time[at - 1] > time:
        s.release_time[at] = s.release_time[at - 1]
        s.release_nodes[at] = s.release_nodes[at - 1]
        at -= 1
    s.release_time[at] = time
    s.release_nodes[at] = nodes
    return count + 1


@inlined
def _expected_end(s: ClusterState, job: int) -> float:
    """Return when the scheduler expects a running job to free its nodes; now if it has overrun its estimate."""
    if s.job.phase[job] == SAVES:
        return s.job.saving_since[job] + 0.5 * s.overhead_s
    left = max(0.0, s.job.estimate[job] - s.job.worked[job])
    if left > 0.0 and s.job.saturation[job] > 1.0:
        left *= s.job.duration[job] / s.job.work[job]
    return max(s.now, s.job.resumed[job] + left)
