"""Giving nodes to jobs and taking them back, on every machine."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO, lowest_bit, popcount
from faultsweep.simcore.engine.events import add_release, push_timer, trace_row
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    BOX,
    CHECKPOINT,
    COMPLETION_TIMER,
    DELAYED,
    END,
    ESTIMATE,
    EVENT_ORDER,
    EXPECTED_END,
    FIRST_FIT,
    FIRST_START,
    FREE,
    FREE_NODES,
    FREE_SLOTS,
    KIND,
    NO_CHECKPOINTS,
    NODE_CHOICE,
    NODES,
    NOW,
    NUM_RELEASES,
    OVERHEAD_NODES,
    QUEUED,
    RELEASE_ITEM,
    RELEASED,
    REQUESTED,
    RESTART_COST,
    RESTARTS,
    RESUMED,
    RUNNING,
    SAVED,
    SCHEDULE_EVENT,
    SCHEDULED,
    SEQUENCE,
    SIDE_X,
    SIDE_Y,
    SIDE_Z,
    SLOT,
    SLOTS,
    START,
    START_DELAY,
    START_EVENT,
    STARTED_AT_INSTANT,
    STATUS,
    SUBMITS_FIRST,
    TIMER_STRIDE,
    TRACE_END,
    TRACING,
    VERSION,
    WITHOUT_JOB,
    WORK,
    WORKED,
)
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.checkpointing.saving import begin_attempt
from faultsweep.simcore.policies.node_choice.choose import choose_nodes
from faultsweep.simcore.policies.placement.rules import box_holds, take, unpack_box, vacate


@inlined
def remaining_estimate(s, job):
    """Return the run time that the scheduler still expects of a waiting job, s."""
    return s.job_f[ESTIMATE, job] - s.job_f[SAVED, job]


@inlined
def restart_cost(s, job):
    """Return how long a waiting job pauses when it starts, because it starts again after a failure, s."""
    return s.f[RESTART_COST] if s.job_i[RESTARTS, job] > 0 else 0.0


@inlined
def expected_end(s, job, time):
    """Return when the scheduler expects a waiting job to end that is scheduled at a time, rounded as when it starts."""
    return ((time + s.f[START_DELAY]) + restart_cost(s, job)) + remaining_estimate(s, job)


@inlined
def start_on_box(s, job, size, box):
    """Start a waiting job on a free box of ``size`` nodes; return False if a list does not fit. The caller dequeues
    it."""
    s.job_i[BOX, job] = box
    begin_run(s, job, size)
    return take(s, box)


@inlined
def start_on_flat(s, job):
    """Start a waiting job on free nodes of a flat machine. The caller dequeues it."""
    size = s.job_i[REQUESTED, job]
    s.i[FREE_SLOTS] -= 1
    slot = s.lists[SLOTS, s.i[FREE_SLOTS]]
    s.job_i[SLOT, job] = slot
    if s.i[NODE_CHOICE] == FIRST_FIT:
        _take_lowest(s, slot, size)
    else:
        choose_nodes(s, job, slot, size)
    s.i[VERSION] += 1
    begin_run(s, job, size)


@inlined
def _take_lowest(s, slot, wanted):
    """Move the free nodes of lowest index to the mask in a slot."""
    for word in range(s.masks.shape[1]):
        free = s.masks[FREE_NODES, word]
        if free == ZERO:
            continue
        have = popcount(free)
        taken = free
        if have > wanted:
            taken = _lowest_bits_of(free, wanted)
            have = wanted
        s.masks[slot, word] = taken
        s.masks[FREE_NODES, word] = free & ~taken
        wanted -= have
        if wanted == 0:
            break


@inlined
def _lowest_bits_of(mask, count):
    """Return the ``count`` lowest set bits of a mask."""
    rest = mask
    for _ in range(count):
        rest &= rest - ONE
    return mask ^ rest


@kernel
def begin_run(s, job, size):
    """Do what every start does: times, counters, the completion timer, the expected release and the trace."""
    now = s.f[NOW]
    s.i[WITHOUT_JOB] = 0
    start = now + s.f[START_DELAY]
    work = s.job_f
    work[SCHEDULED, job] = now
    work[START, job] = start
    if np.isnan(work[FIRST_START, job]):
        work[FIRST_START, job] = start
    work[WORKED, job] = work[SAVED, job]
    cost = restart_cost(s, job)
    work[RESUMED, job] = start + cost
    work[OVERHEAD_NODES, job] += cost * size
    end = (start + cost) + (work[WORK, job] - work[SAVED, job])
    work[END, job] = end
    work[EXPECTED_END, job] = (start + cost) + remaining_estimate(s, job)
    s.job_i[STATUS, job] = RUNNING
    s.job_i[ALLOCATED, job] = size
    s.f[DELAYED] += s.f[START_DELAY] * size
    s.i[FREE] -= size
    s.i[QUEUED] -= s.job_i[REQUESTED, job]
    push_timer(s, end, completion_key(s, job))
    add_release(s, work[EXPECTED_END, job], job)
    if s.i[CHECKPOINT] != NO_CHECKPOINTS:
        begin_attempt(s, job)
    if s.i[TRACING] == 1:
        trace_allocation(s, START_EVENT if s.f[START_DELAY] == 0.0 else SCHEDULE_EVENT, job)


@inlined
def completion_key(s, job):
    """Return the key of a job's completion timer; under pyss's event order completions go by order of start."""
    if s.i[EVENT_ORDER] != SUBMITS_FIRST:
        return COMPLETION_TIMER * TIMER_STRIDE + job
    sequence = s.i[STARTED_AT_INSTANT]
    s.i[STARTED_AT_INSTANT] = sequence + 1
    s.job_i[SEQUENCE, sequence] = job
    return COMPLETION_TIMER * TIMER_STRIDE + sequence


@inlined
def free_nodes_of(s, job):
    """Give back the nodes of a running job."""
    if s.i[KIND] == FLAT:
        slot = s.job_i[SLOT, job]
        for word in range(s.masks.shape[1]):
            s.masks[FREE_NODES, word] |= s.masks[slot, word]
            s.masks[slot, word] = ZERO
        s.lists[SLOTS, s.i[FREE_SLOTS]] = slot
        s.i[FREE_SLOTS] += 1
    else:
        vacate(s.masks[FREE_NODES], s.job_i[BOX, job], s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])
    s.i[FREE] += s.job_i[ALLOCATED, job]
    s.i[VERSION] += 1
    s.i[RELEASED] = 1


@kernel
def holds_node(s, job, node):
    """Tell whether a running job holds a node."""
    if s.i[KIND] == FLAT:
        return s.masks[s.job_i[SLOT, job], node >> 6] >> np.uint64(node & 63) & ONE != ZERO
    return box_holds(s.job_i[BOX, job], node, s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])


@kernel
def job_on(s, node):
    """Return the running job that holds a node, or -1."""
    for at in range(s.i[NUM_RELEASES]):
        job = int(s.agenda[RELEASE_ITEM, at])
        if job >= 0 and s.job_i[STATUS, job] == RUNNING and holds_node(s, job, node):
            return job
    return -1


@kernel
def trace_allocation(s, kind, job):
    """Append an event of a job with the nodes that it holds, ascending, to the trace."""
    end = trace_row(s, kind, job, s.job_i[ALLOCATED, job])
    if end < 0:
        return
    if s.i[KIND] == FLAT:
        slot = s.job_i[SLOT, job]
        for word in range((s.i[NODES] + 63) >> 6):
            mask = s.masks[slot, word]
            while mask != ZERO:
                s.trace[end] = 64 * word + lowest_bit(mask)
                end += 1
                mask &= mask - ONE
    else:
        end = _trace_box(s, end, s.job_i[BOX, job])
    s.i[TRACE_END] = end


@kernel
def _trace_box(s, end, box):
    """Write the nodes of a packed box into the trace, ascending; return where it ends."""
    X, Y, Z = s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z]
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
