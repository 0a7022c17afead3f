"""Jobs that start, save their state to make room, are killed, and end; and the timers and the queue that they need."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import pause_of
from faultsweep.simcore.engine.clusters.shares import join_traffic, leave_traffic, settle
from faultsweep.simcore.engine.clusters.state import (
    FREE_NODE,
    IDLE,
    RESTORES,
    SAVES,
    WORKS,
    ClusterState,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    BROKEN,
    CHECKPOINT_EVENT,
    CHECKPOINT_TIMER,
    DONE,
    FINISH_EVENT,
    KILL_EVENT,
    LARGER_NEEDED,
    OTHER_TIMER,
    REQUEUE_EVENT,
    START_EVENT,
    TIMER_STRIDE,
    TRACE_HEAD,
    WAITING,
)
from faultsweep.simcore.engine.state import RUNNING as IS_RUNNING


@inlined
def add_timer(s: ClusterState, time: float, key: int) -> None:
    """Add a timer; there are few at a time, so they are in no order."""
    at = s.num_timers
    if at >= s.timer_time.shape[0]:
        s.no_room = BROKEN
        return
    s.timer_time[at] = time
    s.timer_key[at] = key
    s.num_timers = at + 1


@inlined
def first_timer(s: ClusterState) -> int:
    """Return the position of the first timer by (time, key); -1 if there is none."""
    best = -1
    for at in range(s.num_timers):
        time, key = s.timer_time[at], s.timer_key[at]
        if best < 0 or time < s.timer_time[best] or (time == s.timer_time[best] and key < s.timer_key[best]):
            best = at
    return best


@inlined
def drop_timer(s: ClusterState, at: int) -> None:
    """Remove the timer at a position."""
    last = s.num_timers - 1
    s.timer_time[at] = s.timer_time[last]
    s.timer_key[at] = s.timer_key[last]
    s.num_timers = last


@kernel
def cancel_timer(s: ClusterState, key: int) -> None:
    """Remove the timer with this key, if there is one."""
    for at in range(s.num_timers):
        if s.timer_key[at] == key:
            drop_timer(s, at)
            return


@kernel
def enqueue_at(s: ClusterState, job: int, before: int) -> None:
    """Insert a job into the waiting queue, ``before`` jobs behind its head."""
    s.without_job = 0
    if s.queue_tail == s.queue.shape[0]:
        for at in range(s.queue_tail - s.queue_head):
            s.queue[at] = s.queue[s.queue_head + at]
        s.queue_tail -= s.queue_head
        s.queue_head = 0
    if s.queue_tail >= s.queue.shape[0]:
        s.no_room = BROKEN
        return
    at = s.queue_head + before
    for later in range(s.queue_tail, at, -1):
        s.queue[later] = s.queue[later - 1]
    s.queue[at] = job
    s.queue_tail += 1
    s.queued += s.job.requested[job]
    s.job.status[job] = WAITING


@inlined
def dequeue(s: ClusterState, at: int) -> int:
    """Remove the job at a position of the queue and return the position of the next one."""
    head, tail = s.queue_head, s.queue_tail
    if at - head < s.num_front:
        s.num_front -= 1
    if at - head < tail - at:
        for earlier in range(at, head, -1):
            s.queue[earlier] = s.queue[earlier - 1]
        s.queue_head = head + 1
        return at + 1
    for later in range(at, tail - 1):
        s.queue[later] = s.queue[later + 1]
    s.queue_tail = tail - 1
    return at


@kernel
def start(s: ClusterState, job: int) -> None:
    """Start a job that has left the queue on the nodes that row PARTS says."""
    size = s.job.size[job]
    s.job.status[job] = IS_RUNNING
    s.job.allocated[job] = size
    s.queued -= s.job.requested[job]
    s.free -= size
    s.places += 1
    s.without_job = 0
    spans = 0
    for c in range(s.capacity.shape[0]):
        part = s.parts_found[c]
        s.parts[job, c] = part
        s.free_here[c] -= part
        spans += 1 if part > 0 else 0
    s.job.spans[job] = spans
    if s.named == 1:
        _take_nodes(s, job)
    _begin(s, job, spans)
    if spans > 1:
        s.co_allocations += 1
        s.job.co_allocated[job] += 1
        join_traffic(s, job)
    elif s.parts[job, s.job.home[job]] == 0:
        s.elsewhere += 1
    if s.tracing == 1:
        _trace_start(s, job)


@inlined
def _begin(s: ClusterState, job: int, spans: int) -> None:
    """Set the clock of a job that starts: it restores its state first, if it has one, and then works."""
    now, pause = s.now, pause_of(s, job)
    s.job.start[job] = now
    if s.job.first_start[job] != s.job.first_start[job]:
        s.job.first_start[job] = now
    s.job.worked[job] = s.job.saved[job]
    s.job.resumed[job] = now + pause
    s.job.saturation[job] = 1.0
    s.job.duration[job] = s.job.work[job]
    s.job.overhead_nodes[job] += pause * s.job.allocated[job]
    if s.job.checkpoints[job] > 0:
        s.job.overhead[job] += 0.5 * s.overhead_s
    if s.job.unused_checkpoint[job] == 1:
        s.job.unused_checkpoint[job] = 0
        s.job.checkpoints_used[job] += 1
    slot = s.num_running
    s.num_running = slot + 1
    s.running[slot] = job
    s.job.run_slot[job] = slot
    s.job.phase[job] = WORKS
    s.run_end[slot] = now + pause + (s.job.work[job] - s.job.saved[job])
    if spans > 1 and pause > 0.0:  # it communicates, and so may slow others, only when it works again
        s.job.phase[job] = RESTORES
        s.run_end[slot] = np.inf
        add_timer(s, now + pause, OTHER_TIMER * TIMER_STRIDE + job)
    elif spans > 1:
        s.changed = 1


@kernel
def resume(s: ClusterState, job: int) -> None:
    """Let a job over several clusters work: its state is restored."""
    s.job.phase[job] = WORKS
    s.run_end[s.job.run_slot[job]] = s.now + (s.job.work[job] - s.job.worked[job])
    s.changed = 1


@kernel
def _release(s: ClusterState, job: int) -> None:
    """Free the nodes of a running job and take it off the lists."""
    s.free += s.job.allocated[job]
    s.places += 1
    for c in range(s.capacity.shape[0]):
        part = s.parts[job, c]
        s.free_here[c] += part
        if s.named == 1:
            node = s.first_node[c]
            while part > 0:
                if s.owner[node] == job:
                    s.owner[node] = FREE_NODE
                    part -= 1
                node += 1
    slot, last = s.job.run_slot[job], s.num_running - 1
    moved = s.running[last]
    s.running[slot] = moved
    s.run_end[slot] = s.run_end[last]
    s.job.run_slot[moved] = slot
    s.num_running = last
    if s.job.spans[job] > 1:
        leave_traffic(s, job)
    s.job.phase[job] = IDLE


@kernel
def finish(s: ClusterState, job: int) -> None:
    """Complete a job."""
    s.without_job = 0
    settle(s, job)
    s.job.worked[job] = s.job.work[job]
    _release(s, job)
    s.job.status[job] = DONE
    s.job.finish[job] = s.now
    s.finished += 1
    if s.tracing == 1:
        trace_row(s, FINISH_EVENT, job)


@kernel
def begin_saving(s: ClusterState, job: int) -> None:
    """Stop a job so that it saves its state and makes room: it holds its nodes and no longer communicates."""
    settle(s, job)
    s.job.phase[job] = SAVES
    s.job.saving_since[job] = s.now
    s.run_end[s.job.run_slot[job]] = np.inf
    s.changed = 1
    s.places += 1
    add_timer(s, s.now + 0.5 * s.overhead_s, CHECKPOINT_TIMER * TIMER_STRIDE + job)


@kernel
def end_saving(s: ClusterState, job: int) -> None:
    """Let a job whose state is saved wait, at the head of its queue, for another place."""
    spent = s.now - s.job.saving_since[job]
    s.job.overhead[job] += spent
    s.job.overhead_nodes[job] += spent * s.job.allocated[job]
    s.job.saved[job] = s.job.worked[job]
    s.job.checkpoints[job] += 1
    s.job.unused_checkpoint[job] = 1
    s.job.migrations[job] += 1
    s.moves += 1
    _release(s, job)
    enqueue_at(s, job, 0)
    s.num_front += 1
    if s.tracing == 1:
        trace_row(s, CHECKPOINT_EVENT, job)
        trace_row(s, REQUEUE_EVENT, job)


@kernel
def kill(s: ClusterState, job: int) -> None:
    """End a job's attempt by a failure: its unsaved work is lost and it waits again at the place of its arrival."""
    now = s.now
    nodes = s.job.allocated[job]
    if s.job.phase[job] == SAVES:
        cancel_timer(s, CHECKPOINT_TIMER * TIMER_STRIDE + job)
        spent = now - s.job.saving_since[job]
        s.job.overhead[job] += spent
        s.job.overhead_nodes[job] += spent * nodes
    else:
        cancel_timer(s, OTHER_TIMER * TIMER_STRIDE + job)
        settle(s, job)
        unspent = max(0.0, s.job.resumed[job] - now)
        s.job.overhead_nodes[job] -= unspent * nodes
        if s.job.checkpoints[job] > 0:
            s.job.overhead[job] -= min(unspent, 0.5 * s.overhead_s)
    lost = s.job.worked[job] - s.job.saved[job]
    s.job.lost[job] += lost
    s.job.lost_nodes[job] += lost * nodes
    _release(s, job)
    if s.tracing == 1:
        trace_row(s, KILL_EVENT, job)
    s.job.restarts[job] += 1
    _enqueue_by_arrival(s, job)
    if s.tracing == 1:
        trace_row(s, REQUEUE_EVENT, job)


@inlined
def _enqueue_by_arrival(s: ClusterState, job: int) -> None:
    """Insert a job where its index, its order of arrival, puts it, behind the checkpointed ones."""
    at = s.queue_head + s.num_front
    while at < s.queue_tail and s.queue[at] < job:
        at += 1
    enqueue_at(s, job, at - s.queue_head)


@kernel
def _take_nodes(s: ClusterState, job: int) -> None:
    """Give a job the free nodes of lowest index in each of its clusters."""
    for c in range(s.capacity.shape[0]):
        left, node = s.parts[job, c], s.first_node[c]
        while left > 0:
            if s.owner[node] == FREE_NODE:
                s.owner[node] = job
                left -= 1
            node += 1


@kernel
def _trace_start(s: ClusterState, job: int) -> None:
    """Append a start to the event trace, with its nodes."""
    end = _trace_head(s, START_EVENT, job, s.job.allocated[job])
    if end < 0:
        return
    for c in range(s.capacity.shape[0]):
        left, node = s.parts[job, c], s.first_node[c]
        while left > 0:
            if s.owner[node] == job:
                s.trace[end] = node
                end += 1
                left -= 1
            node += 1


@kernel
def trace_row(s: ClusterState, kind: int, job: int) -> None:
    """Append an event of a job to the event trace."""
    _trace_head(s, kind, job, 0)


@kernel
def _trace_head(s: ClusterState, kind: int, job: int, num_nodes: int) -> int:
    """Append an event to the event trace and return where its nodes go; -1, and nothing is written, if it does not
    fit."""
    at = s.trace_end
    end = at + TRACE_HEAD + num_nodes
    if end > s.trace.shape[0]:
        s.no_room = LARGER_NEEDED
        return -1
    s.trace[at] = s.now
    s.trace[at + 1] = kind
    s.trace[at + 2] = job
    s.trace[at + 3] = s.job.restarts[job] if job >= 0 else 0
    s.trace[at + 4] = num_nodes
    s.trace_end = end
    return at + TRACE_HEAD


@kernel
def trace_node(s: ClusterState, kind: int, node: int) -> None:
    """Append an event of a node, or of a trunk, to the event trace."""
    end = _trace_head(s, kind, -1, 1)
    if end >= 0:
        s.trace[end] = node
