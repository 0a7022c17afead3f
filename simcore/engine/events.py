"""Expected releases, the waiting queue and the event trace: the bookkeeping that all machines share."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ALL_UNORDERED,
    BROKEN,
    LARGER_NEEDED,
    TRACE_HEAD,
    WAITING,
    State,
)
from faultsweep.simcore.model.machines import SITE
from numpy.typing import NDArray

_FEW_RELEASES = 32
"""So many releases are a short list."""


@kernel
def next_tick(time: float, first: float, interval: float) -> float:
    """Return the first tick at a time or after it, s: ticks are an interval apart, from ``first`` on; without an
    interval it is the time itself."""
    if interval == 0.0:
        return time
    number = max(0.0, np.floor((time - first) / interval))
    while first + number * interval < time:
        number += 1.0
    return first + number * interval


@kernel
def whole_second(s: State, time: float) -> float:
    """Return the second of SLURM's clock in which a time is: SLURM counts in whole seconds."""
    return s.clock_origin + np.floor(time - s.clock_origin)


@inlined
def add_release(s: State, time: float, item: int) -> None:
    """Note that nodes are expected to become free: a job (>= 0) or a down node (-1 - node)."""
    at = s.num_releases
    if at >= s.timer_time.shape[0]:
        s.no_room = BROKEN
        return
    s.num_releases = at + 1
    _insert_release(s, at, time, item)


@inlined
def _insert_release(s: State, at: int, time: float, item: int) -> None:
    """Put an expected release at a free place or, if some before it come later, before these."""
    while at > 0 and s.release_time[at - 1] > time:
        s.release_time[at] = s.release_time[at - 1]
        s.release_item[at] = s.release_item[at - 1]
        at -= 1
    s.release_time[at] = time
    s.release_item[at] = item
    s.ends_ordered = 0


@inlined
def drop_release(s: State, item: int) -> None:
    """Forget the expected release of a job or a down node, if there is one.

    In a short list every release is moved, by one place or by none, without a branch that the processor would often
    mispredict. In a long one it is sought from the front: most are near it, and to move those behind it is fast.
    """
    count = s.num_releases
    if count <= _FEW_RELEASES:
        gone = 0
        for at in range(count):
            time, other = s.release_time[at], s.release_item[at]
            s.release_time[at - gone], s.release_item[at - gone] = time, other
            gone += other == item
        s.num_releases = count - gone
        return
    at = 0
    while at < count and s.release_item[at] != item:
        at += 1
    if at == count:
        return
    for later in range(at, count - 1):
        s.release_time[later] = s.release_time[later + 1]
        s.release_item[later] = s.release_item[later + 1]
    s.num_releases = count - 1


@inlined
def move_release(s: State, time: float, item: int) -> None:
    """Note another time at which nodes are expected to become free, as if they were dropped and added again."""
    at, count = 0, s.num_releases
    while at < count and s.release_item[at] != item:
        at += 1
    if at == count:
        add_release(s, time, item)
        return
    while at + 1 < count and s.release_time[at + 1] <= time:
        s.release_time[at] = s.release_time[at + 1]
        s.release_item[at] = s.release_item[at + 1]
        at += 1
    _insert_release(s, at, time, item)


@inlined
def enqueue_last(s: State, job: int) -> None:
    """Append a job to the waiting queue."""
    if s.queue_tail == s.queue.shape[0]:
        _close_up(s)
    if s.queue_tail >= s.queue.shape[0]:
        s.no_room = BROKEN
        return
    s.queue[s.queue_tail] = job
    s.queue_tail += 1
    s.num_unordered += 1


@kernel
def _close_up(s: State) -> None:
    """Move the waiting queue to the front of its array."""
    head, tail = s.queue_head, s.queue_tail
    for at in range(tail - head):
        s.queue[at] = s.queue[head + at]
    s.queue_head = 0
    s.queue_tail = tail - head
    s.scanned = max(0, s.scanned - head)


@kernel
def enqueue_by_arrival(s: State, job: int) -> None:
    """Insert a job where its index, its order of arrival, puts it (MODEL default for killed jobs)."""
    s.blocks_until = 0
    s.num_unordered = ALL_UNORDERED
    at = s.queue_head
    while at < s.queue_tail and comes_before(s, s.queue[at], job):
        at += 1
    if s.queue_head > 0:
        for earlier in range(s.queue_head, at):
            s.queue[earlier - 1] = s.queue[earlier]
        s.queue_head -= 1
        s.queue[at - 1] = job
        return
    if s.queue_tail >= s.queue.shape[0]:
        s.no_room = BROKEN
        return
    for later in range(s.queue_tail, at, -1):
        s.queue[later] = s.queue[later - 1]
    s.queue_tail += 1
    s.queue[at] = job


@inlined
def comes_before(s: State, other: int, job: int) -> bool:
    """Tell whether another job has a higher rank, where the queue is in tiers, or arrived before one."""
    if s.in_tiers == 1 and s.job.queue_rank[other] != s.job.queue_rank[job]:
        return s.job.queue_rank[other] > s.job.queue_rank[job]
    return other < job


@kernel
def enqueue_behind(s: State, job: int, count: int) -> None:
    """Insert a job behind the first ``count`` jobs of the queue."""
    enqueue_last(s, job)
    s.num_unordered = ALL_UNORDERED
    at = s.queue_head + count
    for later in range(s.queue_tail - 1, at, -1):
        s.queue[later] = s.queue[later - 1]
    s.queue[at] = job


@kernel
def queue_again(s: State, jobs: NDArray[np.int64], count: int) -> None:
    """Make the queue of those of the first ``count`` jobs that still wait, in their order; from these it was made.

    jobs : int64 (n,).
    """
    end = s.queue_head  # no more jobs are behind it than before
    for at in range(count):
        if s.job.status[jobs[at]] == WAITING:
            s.queue[end] = jobs[at]
            end += 1
    s.queue_tail = end


@inlined
def dequeue_at(s: State, at: int) -> None:
    """Remove the job at a position of the queue, moving the shorter side."""
    head, tail = s.queue_head, s.queue_tail
    if at - head < tail - at:
        for earlier in range(at, head, -1):
            s.queue[earlier] = s.queue[earlier - 1]
        s.queue_head = head + 1
        return
    for later in range(at, tail - 1):
        s.queue[later] = s.queue[later + 1]
    s.queue_tail = tail - 1


@inlined
def next_without(s: State, position: int) -> int:
    """Remove the job at a position of the queue, and return the position of the next one."""
    head = s.queue_head
    dequeue_at(s, position)
    return position + s.queue_head - head


@kernel
def trace_event(s: State, kind: int, job: int) -> None:
    """Append an event that names no nodes to the trace."""
    end = trace_row(s, kind, job, 0)
    if end >= 0:
        s.trace_end = end


@kernel
def trace_node_event(s: State, kind: int, node: int) -> None:
    """Append an event of one node to the trace."""
    end = trace_row(s, kind, -1, 1)
    if end >= 0:
        s.trace[end] = node
        s.trace_end = end + 1


@inlined
def attempts_before(s: State, job: int) -> int:
    """Return how often a job has run and left without a result."""
    if s.kind == SITE:
        return int(s.job.restarts[job] + s.job.preemptions[job])
    return int(s.job.restarts[job])


@kernel
def trace_row(s: State, kind: int, job: int, num_nodes: int) -> int:
    """Write the head of an event and return where its nodes go; the caller advances TRACE_END past them.

    Where the event does not fit, nothing is written and the answer is -1.
    """
    at = s.trace_end
    if at + TRACE_HEAD + num_nodes > s.trace.shape[0]:
        s.no_room = LARGER_NEEDED
        return -1
    s.trace[at] = s.now
    s.trace[at + 1] = kind
    s.trace[at + 2] = job
    s.trace[at + 3] = attempts_before(s, job) if job >= 0 else 0
    s.trace[at + 4] = num_nodes
    return at + TRACE_HEAD
