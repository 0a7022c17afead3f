"""Jobs that start, save their state to make room, are killed, and end; and the timers and the queue that they need."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import pause_of
from faultsweep.simcore.engine.clusters.shares import join_traffic, leave_traffic, settle
from faultsweep.simcore.engine.clusters.state import (
    CHANGED,
    CO_ALLOCATED,
    CO_ALLOCATIONS,
    DURATION,
    ELSEWHERE,
    FIRST_NODE,
    FREE_HERE,
    FREE_NODE,
    HOME,
    IDLE,
    NAMED,
    NUM_FRONT,
    NUM_RUNNING,
    OVERHEAD_S,
    OWNER,
    PARTS,
    PHASE,
    PLACES,
    QUEUE,
    RESTORES,
    RUN_END,
    RUN_SLOT,
    RUNNING,
    SATURATION,
    SAVES,
    SPANS,
    TIMER_KEY,
    TIMER_TIME,
    WORKS,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    BROKEN,
    CHECKPOINT_EVENT,
    CHECKPOINT_TIMER,
    CHECKPOINTS,
    CHECKPOINTS_USED,
    DONE,
    FINISH,
    FINISH_EVENT,
    FINISHED,
    FIRST_START,
    FREE,
    KILL_EVENT,
    LARGER_NEEDED,
    LOST,
    LOST_NODES,
    MIGRATIONS,
    MOVES,
    NO_ROOM,
    NOW,
    NUM_TIMERS,
    OTHER_TIMER,
    OVERHEAD,
    OVERHEAD_NODES,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    REQUESTED,
    REQUEUE_EVENT,
    RESTARTS,
    RESUMED,
    SAVED,
    SAVING_SINCE,
    SCHEDULED,
    SIZE,
    START,
    START_EVENT,
    STATUS,
    TIMER_STRIDE,
    TRACE_END,
    TRACE_HEAD,
    TRACING,
    UNUSED_CHECKPOINT,
    WAITING,
    WITHOUT_JOB,
    WORK,
    WORKED,
)
from faultsweep.simcore.engine.state import RUNNING as IS_RUNNING


@inlined
def add_timer(s, time, key):
    """Add a timer; there are few at a time, so they are in no order."""
    at = s.i[NUM_TIMERS]
    if at >= s.agenda.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    s.agenda[TIMER_TIME, at] = time
    s.agenda[TIMER_KEY, at] = key
    s.i[NUM_TIMERS] = at + 1


@inlined
def first_timer(s):
    """Return the position of the first timer by (time, key); -1 if there is none."""
    best = -1
    for at in range(s.i[NUM_TIMERS]):
        time, key = s.agenda[TIMER_TIME, at], s.agenda[TIMER_KEY, at]
        if (
            best < 0
            or time < s.agenda[TIMER_TIME, best]
            or (time == s.agenda[TIMER_TIME, best] and key < s.agenda[TIMER_KEY, best])
        ):
            best = at
    return best


@inlined
def drop_timer(s, at):
    """Remove the timer at a position."""
    last = s.i[NUM_TIMERS] - 1
    s.agenda[TIMER_TIME, at] = s.agenda[TIMER_TIME, last]
    s.agenda[TIMER_KEY, at] = s.agenda[TIMER_KEY, last]
    s.i[NUM_TIMERS] = last


@kernel
def cancel_timer(s, key):
    """Remove the timer with this key, if there is one."""
    for at in range(s.i[NUM_TIMERS]):
        if s.agenda[TIMER_KEY, at] == key:
            drop_timer(s, at)
            return


@kernel
def enqueue_at(s, job, before):
    """Insert a job into the waiting queue, ``before`` jobs behind its head."""
    s.i[WITHOUT_JOB] = 0
    if s.i[QUEUE_TAIL] == s.lists.shape[1]:
        for at in range(s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD]):
            s.lists[QUEUE, at] = s.lists[QUEUE, s.i[QUEUE_HEAD] + at]
        s.i[QUEUE_TAIL] -= s.i[QUEUE_HEAD]
        s.i[QUEUE_HEAD] = 0
    if s.i[QUEUE_TAIL] >= s.lists.shape[1]:
        s.i[NO_ROOM] = BROKEN
        return
    at = s.i[QUEUE_HEAD] + before
    for later in range(s.i[QUEUE_TAIL], at, -1):
        s.lists[QUEUE, later] = s.lists[QUEUE, later - 1]
    s.lists[QUEUE, at] = job
    s.i[QUEUE_TAIL] += 1
    s.i[QUEUED] += s.job_i[REQUESTED, job]
    s.job_i[STATUS, job] = WAITING


@inlined
def dequeue(s, at):
    """Remove the job at a position of the queue and return the position of the next one."""
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    if at - head < s.i[NUM_FRONT]:
        s.i[NUM_FRONT] -= 1
    if at - head < tail - at:
        for earlier in range(at, head, -1):
            s.lists[QUEUE, earlier] = s.lists[QUEUE, earlier - 1]
        s.i[QUEUE_HEAD] = head + 1
        return at + 1
    for later in range(at, tail - 1):
        s.lists[QUEUE, later] = s.lists[QUEUE, later + 1]
    s.i[QUEUE_TAIL] = tail - 1
    return at


@kernel
def start(s, job):
    """Start a job that has left the queue on the nodes that row PARTS says."""
    size = s.job_i[SIZE, job]
    s.job_i[STATUS, job] = IS_RUNNING
    s.job_i[ALLOCATED, job] = size
    s.i[QUEUED] -= s.job_i[REQUESTED, job]
    s.i[FREE] -= size
    s.i[PLACES] += 1
    s.i[WITHOUT_JOB] = 0
    spans = 0
    for c in range(s.clusters.shape[1]):
        part = s.clusters[PARTS, c]
        s.parts[job, c] = part
        s.clusters[FREE_HERE, c] -= part
        spans += 1 if part > 0 else 0
    s.job_i[SPANS, job] = spans
    if s.i[NAMED] == 1:
        _take_nodes(s, job)
    _begin(s, job, spans)
    if spans > 1:
        s.i[CO_ALLOCATIONS] += 1
        s.job_i[CO_ALLOCATED, job] += 1
        join_traffic(s, job)
    elif s.parts[job, s.job_i[HOME, job]] == 0:
        s.i[ELSEWHERE] += 1
    if s.i[TRACING] == 1:
        _trace_start(s, job)


@inlined
def _begin(s, job, spans):
    """Set the clock of a job that starts: it restores its state first, if it has one, and then works."""
    now, pause = s.f[NOW], pause_of(s, job)
    s.job_f[SCHEDULED, job] = now
    s.job_f[START, job] = now
    if s.job_f[FIRST_START, job] != s.job_f[FIRST_START, job]:
        s.job_f[FIRST_START, job] = now
    s.job_f[WORKED, job] = s.job_f[SAVED, job]
    s.job_f[RESUMED, job] = now + pause
    s.job_f[SATURATION, job] = 1.0
    s.job_f[DURATION, job] = s.job_f[WORK, job]
    s.job_f[OVERHEAD_NODES, job] += pause * s.job_i[ALLOCATED, job]
    if s.job_i[CHECKPOINTS, job] > 0:
        s.job_f[OVERHEAD, job] += 0.5 * s.f[OVERHEAD_S]
    if s.job_i[UNUSED_CHECKPOINT, job] == 1:
        s.job_i[UNUSED_CHECKPOINT, job] = 0
        s.job_i[CHECKPOINTS_USED, job] += 1
    slot = s.i[NUM_RUNNING]
    s.i[NUM_RUNNING] = slot + 1
    s.lists[RUNNING, slot] = job
    s.job_i[RUN_SLOT, job] = slot
    s.job_i[PHASE, job] = WORKS
    s.agenda[RUN_END, slot] = now + pause + (s.job_f[WORK, job] - s.job_f[SAVED, job])
    if spans > 1 and pause > 0.0:  # it communicates, and so may slow others, only when it works again
        s.job_i[PHASE, job] = RESTORES
        s.agenda[RUN_END, slot] = np.inf
        add_timer(s, now + pause, OTHER_TIMER * TIMER_STRIDE + job)
    elif spans > 1:
        s.i[CHANGED] = 1


@kernel
def resume(s, job):
    """Let a job over several clusters work: its state is restored."""
    s.job_i[PHASE, job] = WORKS
    s.agenda[RUN_END, s.job_i[RUN_SLOT, job]] = s.f[NOW] + (s.job_f[WORK, job] - s.job_f[WORKED, job])
    s.i[CHANGED] = 1


@kernel
def _release(s, job):
    """Free the nodes of a running job and take it off the lists."""
    s.i[FREE] += s.job_i[ALLOCATED, job]
    s.i[PLACES] += 1
    for c in range(s.clusters.shape[1]):
        part = s.parts[job, c]
        s.clusters[FREE_HERE, c] += part
        if s.i[NAMED] == 1:
            node = s.clusters[FIRST_NODE, c]
            while part > 0:
                if s.lists[OWNER, node] == job:
                    s.lists[OWNER, node] = FREE_NODE
                    part -= 1
                node += 1
    slot, last = s.job_i[RUN_SLOT, job], s.i[NUM_RUNNING] - 1
    moved = s.lists[RUNNING, last]
    s.lists[RUNNING, slot] = moved
    s.agenda[RUN_END, slot] = s.agenda[RUN_END, last]
    s.job_i[RUN_SLOT, moved] = slot
    s.i[NUM_RUNNING] = last
    if s.job_i[SPANS, job] > 1:
        leave_traffic(s, job)
    s.job_i[PHASE, job] = IDLE


@kernel
def finish(s, job):
    """Complete a job."""
    s.i[WITHOUT_JOB] = 0
    settle(s, job)
    s.job_f[WORKED, job] = s.job_f[WORK, job]
    _release(s, job)
    s.job_i[STATUS, job] = DONE
    s.job_f[FINISH, job] = s.f[NOW]
    s.i[FINISHED] += 1
    if s.i[TRACING] == 1:
        trace_row(s, FINISH_EVENT, job)


@kernel
def begin_saving(s, job):
    """Stop a job so that it saves its state and makes room: it holds its nodes and no longer communicates."""
    settle(s, job)
    s.job_i[PHASE, job] = SAVES
    s.job_f[SAVING_SINCE, job] = s.f[NOW]
    s.agenda[RUN_END, s.job_i[RUN_SLOT, job]] = np.inf
    s.i[CHANGED] = 1
    s.i[PLACES] += 1
    add_timer(s, s.f[NOW] + 0.5 * s.f[OVERHEAD_S], CHECKPOINT_TIMER * TIMER_STRIDE + job)


@kernel
def end_saving(s, job):
    """Let a job whose state is saved wait, at the head of its queue, for another place."""
    spent = s.f[NOW] - s.job_f[SAVING_SINCE, job]
    s.job_f[OVERHEAD, job] += spent
    s.job_f[OVERHEAD_NODES, job] += spent * s.job_i[ALLOCATED, job]
    s.job_f[SAVED, job] = s.job_f[WORKED, job]
    s.job_i[CHECKPOINTS, job] += 1
    s.job_i[UNUSED_CHECKPOINT, job] = 1
    s.job_i[MIGRATIONS, job] += 1
    s.i[MOVES] += 1
    _release(s, job)
    enqueue_at(s, job, 0)
    s.i[NUM_FRONT] += 1
    if s.i[TRACING] == 1:
        trace_row(s, CHECKPOINT_EVENT, job)
        trace_row(s, REQUEUE_EVENT, job)


@kernel
def kill(s, job):
    """End a job's attempt by a failure: its unsaved work is lost and it waits again at the place of its arrival."""
    now, work = s.f[NOW], s.job_f
    nodes = s.job_i[ALLOCATED, job]
    if s.job_i[PHASE, job] == SAVES:
        cancel_timer(s, CHECKPOINT_TIMER * TIMER_STRIDE + job)
        spent = now - work[SAVING_SINCE, job]
        work[OVERHEAD, job] += spent
        work[OVERHEAD_NODES, job] += spent * nodes
    else:
        cancel_timer(s, OTHER_TIMER * TIMER_STRIDE + job)
        settle(s, job)
        unspent = max(0.0, work[RESUMED, job] - now)
        work[OVERHEAD_NODES, job] -= unspent * nodes
        if s.job_i[CHECKPOINTS, job] > 0:
            work[OVERHEAD, job] -= min(unspent, 0.5 * s.f[OVERHEAD_S])
    lost = work[WORKED, job] - work[SAVED, job]
    work[LOST, job] += lost
    work[LOST_NODES, job] += lost * nodes
    _release(s, job)
    s.job_i[RESTARTS, job] += 1
    _enqueue_by_arrival(s, job)
    if s.i[TRACING] == 1:
        trace_row(s, KILL_EVENT, job)
        trace_row(s, REQUEUE_EVENT, job)


@inlined
def _enqueue_by_arrival(s, job):
    """Insert a job where its index, its order of arrival, puts it, behind the checkpointed ones."""
    at = s.i[QUEUE_HEAD] + s.i[NUM_FRONT]
    while at < s.i[QUEUE_TAIL] and s.lists[QUEUE, at] < job:
        at += 1
    enqueue_at(s, job, at - s.i[QUEUE_HEAD])


@kernel
def _take_nodes(s, job):
    """Give a job the free nodes of lowest index in each of its clusters."""
    for c in range(s.clusters.shape[1]):
        left, node = s.parts[job, c], s.clusters[FIRST_NODE, c]
        while left > 0:
            if s.lists[OWNER, node] == FREE_NODE:
                s.lists[OWNER, node] = job
                left -= 1
            node += 1


@kernel
def _trace_start(s, job):
    """Append a start to the event trace, with its nodes."""
    end = _trace_head(s, START_EVENT, job, s.job_i[ALLOCATED, job])
    if end < 0:
        return
    for c in range(s.clusters.shape[1]):
        left, node = s.parts[job, c], s.clusters[FIRST_NODE, c]
        while left > 0:
            if s.lists[OWNER, node] == job:
                s.trace[end] = node
                end += 1
                left -= 1
            node += 1


@kernel
def trace_row(s, kind, job):
    """Append an event of a job to the event trace."""
    _trace_head(s, kind, job, 0)


@kernel
def _trace_head(s, kind, job, num_nodes):
    """Append an event to the event trace and return where its nodes go; -1, and nothing is written, if it does not
    fit."""
    at = s.i[TRACE_END]
    end = at + TRACE_HEAD + num_nodes
    if end > s.trace.shape[0]:
        s.i[NO_ROOM] = LARGER_NEEDED
        return -1
    s.trace[at] = s.f[NOW]
    s.trace[at + 1] = kind
    s.trace[at + 2] = job
    s.trace[at + 3] = s.job_i[RESTARTS, job] if job >= 0 else 0
    s.trace[at + 4] = num_nodes
    s.i[TRACE_END] = end
    return at + TRACE_HEAD


@kernel
def trace_node(s, kind, node):
    """Append an event of a node, or of a trunk, to the event trace."""
    end = _trace_head(s, kind, -1, 1)
    if end >= 0:
        s.trace[end] = node
