"""Timers, expected releases, the waiting queue and the event trace: the bookkeeping that all machines share."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    BROKEN,
    LARGER_NEEDED,
    NO_ROOM,
    NOW,
    NUM_RELEASES,
    NUM_TIMERS,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RELEASE_ITEM,
    RELEASE_TIME,
    RESTARTS,
    SCANNED,
    TIMER_KEY,
    TIMER_TIME,
    TRACE_END,
    TRACE_HEAD,
)


@inlined
def push_timer(s, time, key):
    """Add a timer to the heap."""
    at = s.i[NUM_TIMERS]
    if at >= s.agenda.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    s.i[NUM_TIMERS] = at + 1
    _sift_up(s.agenda, at, time, key)


@inlined
def _sift_up(agenda, at, time, key):
    """Put a timer into the heap's hole ``at``, moving later ancestors down."""
    while at > 0:
        parent = (at - 1) >> 1
        other = agenda[TIMER_TIME, parent]
        if other < time or (other == time and agenda[TIMER_KEY, parent] < key):
            break
        agenda[TIMER_TIME, at] = other
        agenda[TIMER_KEY, at] = agenda[TIMER_KEY, parent]
        at = parent
    agenda[TIMER_TIME, at] = time
    agenda[TIMER_KEY, at] = key


@inlined
def pop_timer(s):
    """Remove the first timer of the heap and return its key."""
    key = int(s.agenda[TIMER_KEY, 0])
    s.i[NUM_TIMERS] -= 1
    _remove_timer(s.agenda, 0, s.i[NUM_TIMERS])
    return key


@inlined
def _remove_timer(agenda, at, last):
    """Fill the hole at a position of the heap with its last timer."""
    if at == last:
        return
    time, key = agenda[TIMER_TIME, last], agenda[TIMER_KEY, last]
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and _earlier(agenda, child + 1, agenda[TIMER_TIME, child], agenda[TIMER_KEY, child]):
            child += 1
        if not _earlier(agenda, child, time, key):
            break
        agenda[TIMER_TIME, at] = agenda[TIMER_TIME, child]
        agenda[TIMER_KEY, at] = agenda[TIMER_KEY, child]
        at = child
    _sift_up(agenda, at, time, key)


@inlined
def _earlier(agenda, at, time, key):
    """Tell whether the timer at a position comes before another one."""
    return agenda[TIMER_TIME, at] < time or (agenda[TIMER_TIME, at] == time and agenda[TIMER_KEY, at] < key)


@kernel
def cancel_timer(s, key):
    """Remove the timer with this key, if there is one."""
    for at in range(s.i[NUM_TIMERS]):
        if s.agenda[TIMER_KEY, at] == key:
            s.i[NUM_TIMERS] -= 1
            _remove_timer(s.agenda, at, s.i[NUM_TIMERS])
            return


@inlined
def add_release(s, time, item):
    """Note that nodes are expected to become free: a job (>= 0) or a down node (-1 - node)."""
    at = s.i[NUM_RELEASES]
    if at >= s.agenda.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    s.i[NUM_RELEASES] = at + 1
    while at > 0 and s.agenda[RELEASE_TIME, at - 1] > time:
        s.agenda[RELEASE_TIME, at] = s.agenda[RELEASE_TIME, at - 1]
        s.agenda[RELEASE_ITEM, at] = s.agenda[RELEASE_ITEM, at - 1]
        at -= 1
    s.agenda[RELEASE_TIME, at] = time
    s.agenda[RELEASE_ITEM, at] = item


@inlined
def drop_release(s, item):
    """Forget the expected release of a job or a down node."""
    count = s.i[NUM_RELEASES]
    at = 0
    while at < count and s.agenda[RELEASE_ITEM, at] != item:
        at += 1
    if at == count:
        return
    for later in range(at, count - 1):
        s.agenda[RELEASE_TIME, later] = s.agenda[RELEASE_TIME, later + 1]
        s.agenda[RELEASE_ITEM, later] = s.agenda[RELEASE_ITEM, later + 1]
    s.i[NUM_RELEASES] = count - 1


@inlined
def enqueue_last(s, job):
    """Append a job to the waiting queue."""
    if s.i[QUEUE_TAIL] == s.lists.shape[1]:
        _close_up(s)
    if s.i[QUEUE_TAIL] >= s.lists.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    s.lists[QUEUE, s.i[QUEUE_TAIL]] = job
    s.i[QUEUE_TAIL] += 1


@kernel
def _close_up(s):
    """Move the waiting queue to the front of its array."""
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    for at in range(tail - head):
        s.lists[QUEUE, at] = s.lists[QUEUE, head + at]
    s.i[QUEUE_HEAD] = 0
    s.i[QUEUE_TAIL] = tail - head
    s.i[SCANNED] = max(0, s.i[SCANNED] - head)


@kernel
def enqueue_by_arrival(s, job):
    """Insert a job where its index, its order of arrival, puts it (MODEL default for killed jobs)."""
    at = s.i[QUEUE_HEAD]
    while at < s.i[QUEUE_TAIL] and s.lists[QUEUE, at] < job:
        at += 1
    if s.i[QUEUE_HEAD] > 0:
        for earlier in range(s.i[QUEUE_HEAD], at):
            s.lists[QUEUE, earlier - 1] = s.lists[QUEUE, earlier]
        s.i[QUEUE_HEAD] -= 1
        s.lists[QUEUE, at - 1] = job
        return
    if s.i[QUEUE_TAIL] >= s.lists.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    for later in range(s.i[QUEUE_TAIL], at, -1):
        s.lists[QUEUE, later] = s.lists[QUEUE, later - 1]
    s.i[QUEUE_TAIL] += 1
    s.lists[QUEUE, at] = job


@kernel
def enqueue_behind(s, job, count):
    """Insert a job behind the first ``count`` jobs of the queue."""
    enqueue_last(s, job)
    at = s.i[QUEUE_HEAD] + count
    for later in range(s.i[QUEUE_TAIL] - 1, at, -1):
        s.lists[QUEUE, later] = s.lists[QUEUE, later - 1]
    s.lists[QUEUE, at] = job


@inlined
def dequeue_at(s, at):
    """Remove the job at a position of the queue, moving the shorter side."""
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    if at - head < tail - at:
        for earlier in range(at, head, -1):
            s.lists[QUEUE, earlier] = s.lists[QUEUE, earlier - 1]
        s.i[QUEUE_HEAD] = head + 1
        return
    for later in range(at, tail - 1):
        s.lists[QUEUE, later] = s.lists[QUEUE, later + 1]
    s.i[QUEUE_TAIL] = tail - 1


@kernel
def trace_event(s, kind, job):
    """Append an event that names no nodes to the trace."""
    end = trace_row(s, kind, job, 0)
    if end >= 0:
        s.i[TRACE_END] = end


@kernel
def trace_node_event(s, kind, node):
    """Append an event of one node to the trace."""
    end = trace_row(s, kind, -1, 1)
    if end >= 0:
        s.trace[end] = node
        s.i[TRACE_END] = end + 1


@kernel
def trace_row(s, kind, job, num_nodes):
    """Write the head of an event and return where its nodes go; the caller advances TRACE_END past them.

    Where the event does not fit, nothing is written and the answer is -1.
    """
    at = s.i[TRACE_END]
    if at + TRACE_HEAD + num_nodes > s.trace.shape[0]:
        s.i[NO_ROOM] = LARGER_NEEDED
        return -1
    s.trace[at] = s.f[NOW]
    s.trace[at + 1] = kind
    s.trace[at + 2] = job
    s.trace[at + 3] = s.job_i[RESTARTS, job] if job >= 0 else 0
    s.trace[at + 4] = num_nodes
    return at + TRACE_HEAD
