"""Giving nodes to jobs and taking them back, on every machine."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.bits import ONE, ZERO, lowest_bit
from faultsweep.simcore.engine.events import add_release, attempts_before, drop_release, trace_row, whole_second
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.limits import count_running, note_start
from faultsweep.simcore.engine.pieces import count_pieces, give_back_pieces, holds_piece, next_job_on, windows_met
from faultsweep.simcore.engine.state import (
    COMPLETION_TIMER,
    DEFAULT,
    IN_PLANS,
    LEAVE_TIMER,
    ORDER_TIMER,
    RUNNING,
    SAVES_NOTHING,
    SCHEDULE_EVENT,
    START_EVENT,
    STAYS,
    SUBMITS_FIRST,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import cancel_timer, push_timer
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.checkpointing.saving import begin_attempt, end_saving
from faultsweep.simcore.policies.placement.rules import box_holds, take, unpack_box, vacate


@inlined
def remaining_estimate(s: State, job: int) -> float:
    """Return the run time that the scheduler still expects of a waiting job, s."""
    return s.job.estimate[job] - s.job.saved[job]


@inlined
def restart_cost(s: State, job: int) -> float:
    """Return how long a waiting job pauses when it starts, because it starts again, s."""
    return s.restart_cost if s.restart_cost > 0.0 and attempts_before(s, job) > 0 else 0.0


@inlined
def expected_end(s: State, job: int, time: float) -> float:
    """Return when the scheduler expects a waiting job to end that is scheduled at a time, rounded as when it starts."""
    return ((time + s.start_delay) + restart_cost(s, job)) + remaining_estimate(s, job)


@inlined
def start_on_box(s: State, job: int, size: int, box: int) -> bool:
    """Start a waiting job on a free box of ``size`` nodes; return False if a list does not fit. The caller dequeues
    it."""
    s.job.box[job] = box
    begin_run(s, job, size)
    return take(s, box)


@inlined
def start_on_flat(s: State, job: int) -> None:
    """Start a waiting job on free nodes of a flat machine. The caller dequeues it."""
    size = s.job.requested[job]
    if s.free_nodes.shape[0] > 0:
        s.free_slots -= 1
        slot = s.slots[s.free_slots]
        s.job.slot[job] = slot
        hooks.take_nodes(s, job, slot, size)
    s.version += 1
    begin_run(s, job, size)


@kernel
def begin_run(s: State, job: int, size: int) -> None:
    """Do what every start does: times, counters, the completion timer, the expected release and the trace."""
    now = s.now
    s.without_job = 0
    start = now + s.start_delay
    s.job.start[job] = start
    if np.isnan(s.job.first_start[job]):
        s.job.first_start[job] = start
        if s.lists == 1 and s.array_of[job] >= 0:
            _list_task(s, job, s.array_of[job])
    cost = restart_cost(s, job)
    s.job.resumed[job] = start + cost
    if cost > 0.0:
        s.job.overhead_nodes[job] += cost * size
    end = (start + cost) + (s.job.work[job] - s.job.saved[job])
    s.job.end[job] = end
    s.job.expected_end[job] = (start + cost) + remaining_estimate(s, job)
    s.job.status[job] = RUNNING
    s.job.allocated[job] = size
    s.delayed += s.start_delay * size
    s.free -= size
    s.queued -= s.job.requested[job]
    hooks.usage_changes(s, job, size)
    if s.limited == 1:
        note_start(s, job)
    push_timer(s, end, completion_key(s, job))
    add_release(s, s.job.expected_end[job], job)
    if s.saves_by != SAVES_NOTHING:
        begin_attempt(s, job)
    if s.tracing == 1:
        trace_allocation(s, START_EVENT if s.start_delay == 0.0 else SCHEDULE_EVENT, job)


@kernel
def _list_task(s: State, job: int, array: int) -> None:
    """Put a task of an array at its place in SLURM's list of jobs: the first one where the array was when it was
    submitted, each other one where the rest of the array was put when the one before started."""
    s.listed_since[job] = max(s.listed_since[job], s.last_start[array])
    s.last_start[array] = s.now


@inlined
def completion_key(s: State, job: int) -> int:
    """Return the key of a job's completion timer; under pyss's event order completions go by order of start."""
    if s.event_order != SUBMITS_FIRST:
        return COMPLETION_TIMER * TIMER_STRIDE + job
    sequence = s.started_at_instant
    s.started_at_instant = sequence + 1
    s.job.sequence[sequence] = job
    return COMPLETION_TIMER * TIMER_STRIDE + sequence


@inlined
def free_nodes_of(s: State, job: int) -> None:
    """Give back the nodes of a running job."""
    if s.kind == FLAT:
        if s.free_nodes.shape[0] > 0:
            slot = s.job.slot[job]
            for word in range(s.free_nodes.shape[0]):
                s.free_nodes[word] |= s.slot_masks[slot, word]
                s.slot_masks[slot, word] = ZERO
            s.slots[s.free_slots] = slot
            s.free_slots += 1
    elif s.kind == SITE:
        s.free -= give_back_pieces(s, job)
    else:
        vacate(s.free_nodes, s.job.box[job], s.side_x, s.side_y, s.side_z)
    s.free += s.job.allocated[job]
    s.version += 1
    s.released = 1


@kernel
def end_attempt(s: State, job: int) -> float:
    """End the attempt of a running job that is not complete, which keeps its nodes for now; return the work lost, s."""
    now = s.now
    s.without_job = 0
    drop_release(s, job)
    cancel_timer(s, COMPLETION_TIMER * TIMER_STRIDE + job)
    end_saving(s, job)
    stop_leaving(s, job)
    hooks.usage_changes(s, job, -s.job.allocated[job])
    if s.limited == 1:
        count_running(s, job, -1)
    done = s.job.worked[job] + max(0.0, now - s.job.resumed[job])
    unspent = max(0.0, s.job.resumed[job] - max(now, s.job.start[job]))
    s.job.overhead_nodes[job] -= unspent * s.job.allocated[job]
    s.job.worked[job] = s.job.saved[job]  # what it has where it starts again
    if now <= s.job.start[job]:  # inside its start delay, or at its end: failures come before starts
        s.delayed -= (s.job.start[job] - now) * s.job.allocated[job]
        if s.job.first_start[job] == s.job.start[job]:
            s.job.first_start[job] = np.nan
    return done - s.job.saved[job]


@inlined
def begin_exemption(s: State, job: int) -> None:
    """Have a timer for when a job that starts can be preempted."""
    if s.preempt_exempt > 0.0 and exempt_until(s, job) > s.now:
        push_timer(s, exempt_until(s, job), ORDER_TIMER * TIMER_STRIDE + 1 + job)


@kernel
def exempt_until(s: State, job: int) -> float:
    """Return when a running job can be preempted; under ``slurm`` its start counts as the whole second, s."""
    return _as_counted(s, s.job.start[job]) + s.preempt_exempt


@kernel
def windows_of(s: State, job: int, time: float) -> int:
    """Return the bits of the advance reservations that a job meets if it begins at a time."""
    return windows_met(s, time, expected_end(s, job, _as_counted(s, time)))


@inlined
def _as_counted(s: State, time: float) -> float:
    """Return a time, or its second, in which ``slurm`` counts."""
    return whole_second(s, time) if s.reserves == IN_PLANS else time


@inlined
def stop_leaving(s: State, job: int) -> None:
    """Forget that a job makes way for another one, or can do so from some time on: its attempt ends."""
    if s.preemption == DEFAULT:
        return
    if s.preempt_exempt > 0.0 or s.job.leaving[job] != STAYS:
        cancel_timer(s, ORDER_TIMER * TIMER_STRIDE + 1 + job)
    if s.job.leaving[job] != STAYS:
        s.job.leaving[job] = STAYS
        cancel_timer(s, LEAVE_TIMER * TIMER_STRIDE + job)


@kernel
def holds_node(s: State, job: int, node: int) -> bool:
    """Tell whether a running job holds a node."""
    if s.kind == FLAT:
        return s.slot_masks[s.job.slot[job], node >> 6] >> np.uint64(node & 63) & ONE != ZERO
    if s.kind == SITE:
        return holds_piece(s, job, node)
    return box_holds(s.job.box[job], node, s.side_x, s.side_y, s.side_z)


@kernel
def job_on(s: State, node: int) -> int:
    """Return the running job that holds a node, or -1; on a site, the first by index of those that hold a part."""
    if s.kind == SITE:
        return next_job_on(s, node, -1)
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job >= 0 and s.job.status[job] == RUNNING and holds_node(s, job, node):
            return job
    return -1


@kernel
def trace_allocation(s: State, kind: int, job: int) -> None:
    """Append an event of a job with the nodes that it holds, ascending, to the trace."""
    held = s.job.allocated[job] if s.kind != SITE else count_pieces(s, job)
    end = trace_row(s, kind, job, held)
    if end < 0:
        return
    if s.kind == SITE:
        piece = s.job.first_piece[job]
        while piece >= 0:
            s.trace[end] = s.piece_node[piece]
            end += 1
            piece = s.piece_next[piece]
    elif s.kind == FLAT:
        slot = s.job.slot[job]
        for word in range((s.nodes + 63) >> 6):
            mask = s.slot_masks[slot, word]
            while mask != ZERO:
                s.trace[end] = 64 * word + lowest_bit(mask)
                end += 1
                mask &= mask - ONE
    else:
        end = _trace_box(s, end, s.job.box[job])
    s.trace_end = end


@kernel
def _trace_box(s: State, end: int, box: int) -> int:
    """Write the nodes of a packed box into the trace, ascending; return where it ends."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    a, b, c, x, y, z = unpack_box(box)
    for u in range(X):
        if (u - x) % X >= a:
            continue
        for v in range(Y):
            if (v - y) % Y >= b:
                continue
            for w in range(Z):
                if (w - z) % Z < c:
                    s.trace[end] = (u * Y + v) * Z + w
                    end += 1
    return end
