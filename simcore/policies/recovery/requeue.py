"""Recovery in the engine: where a killed job goes, and how it comes back (tang2010, slides 8 and 9).

A job under option A or C leaves the queue for a while: it is AWAY until its user resubmits it, or until its own nodes
are up. The others are resubmitted at once. Jobs under C are listed in SUSPENDED, by index. Under ``hold_nodes`` they
keep what is up of their nodes: these are neither free nor in use, and KEPT counts them. What a suspended job holds or
waits for is its slot of the masks (flat) or its box (torus), as if it were running.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import (
    begin_run,
    expected_end,
    free_nodes_of,
    holds_node,
    start_on_box,
)
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.events import (
    add_release,
    drop_release,
    enqueue_behind,
    enqueue_last,
    push_timer,
    trace_event,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    AWAY,
    BOX,
    BY_UTILITY,
    DELAY_KEY,
    DELAY_KIND,
    DELAY_MEAN,
    DELAY_SIGMA,
    DISTURBED,
    DOWN_UNTIL,
    EXPONENTIAL,
    FIXED_UTILITY,
    FREE,
    FREE_NODES,
    HEAD,
    HOLD_NODES,
    KEPT,
    KILL_EVENT,
    KIND,
    LOGNORMAL,
    MIDDLE,
    NODES,
    NOTIFY,
    NOW,
    NUM_SUSPENDED,
    OPTION,
    ORIGINAL_NODES,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_ORDER,
    QUEUE_TAIL,
    QUEUED,
    RELEASED,
    REQUESTED,
    REQUEUE_EVENT,
    RESTARTS,
    RESUBMIT_TIMER,
    SCANNED_VERSION,
    SIDE_X,
    SIDE_Y,
    SIDE_Z,
    SLOT,
    STATUS,
    SUSPENDED,
    TIMER_STRIDE,
    TRACING,
    UTILITY,
    UTILITY_SINCE,
    VERSION,
    WAITING,
)
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.placement.rules import coin, vacate
from faultsweep.simcore.policies.queue_order.order import order_queue


@kernel
def recover(s, job):
    """Do to a job that a failure has just ended what its option says; it holds its nodes no more, or keeps them."""
    option = s.job_i[OPTION, job]
    if s.i[TRACING] == 1:
        trace_event(s, KILL_EVENT, job)
    s.job_i[RESTARTS, job] += 1
    s.job_i[STATUS, job] = AWAY
    if option == ORIGINAL_NODES:
        _suspend(s, job)
        return
    free_nodes_of(s, job)
    delay = _manual_delay(s, job) if option == NOTIFY else 0.0
    push_timer(s, s.f[NOW] + delay, RESUBMIT_TIMER * TIMER_STRIDE + job)


@kernel
def _manual_delay(s, job):
    """Return how long the user takes to resubmit a job, s; it depends on (seed, job, restarts), on nothing else."""
    mean, sigma = s.f[DELAY_MEAN], s.f[DELAY_SIGMA]
    delay = mean
    if s.i[DELAY_KIND] == EXPONENTIAL:
        delay = -mean * np.log1p(-coin(s.i[DELAY_KEY], 0, job, s.job_i[RESTARTS, job]))
    elif s.i[DELAY_KIND] == LOGNORMAL:
        radius = np.sqrt(-2.0 * np.log1p(-coin(s.i[DELAY_KEY], 0, job, s.job_i[RESTARTS, job])))
        normal = radius * np.cos(2.0 * np.pi * coin(s.i[DELAY_KEY], 1, job, s.job_i[RESTARTS, job]))
        delay = mean * np.exp(sigma * normal - 0.5 * sigma * sigma)
    return np.rint(delay * 1000.0) / 1000.0


@kernel
def resubmit(s, job):
    """Put a job into the queue again: at the rear (A, B), behind half of the waiting jobs (D), or at the head (E).

    Its utility counts from now on; at the head it is above all, in the middle midway between those of its neighbours.
    """
    option = s.job_i[OPTION, job]
    s.job_i[STATUS, job] = WAITING
    s.i[QUEUED] += s.job_i[REQUESTED, job]
    s.job_f[UTILITY_SINCE, job] = s.f[NOW]
    s.job_f[FIXED_UTILITY, job] = np.nan
    if s.i[TRACING] == 1:
        trace_event(s, REQUEUE_EVENT, job)
    if option == HEAD:
        s.job_f[FIXED_UTILITY, job] = np.inf
        enqueue_behind(s, job, 0)
    elif option == MIDDLE:
        if s.i[QUEUE_ORDER] == BY_UTILITY:
            order_queue(s)
            s.job_f[FIXED_UTILITY, job] = _middle_utility(s)
        enqueue_behind(s, job, (s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD]) // 2)
    else:
        enqueue_last(s, job)


@kernel
def _middle_utility(s):
    """Return the utility midway between those of the jobs before and behind the middle of the queue, which is in order.

    Where there is no job before, or one above all, it is that of the job behind; NaN, as of any job, in an empty queue.
    """
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    if head == tail:
        return np.nan
    middle = head + (tail - head) // 2
    behind = s.job_f[UTILITY, s.lists[QUEUE, middle]]
    if middle == head or s.job_f[UTILITY, s.lists[QUEUE, middle - 1]] == np.inf:
        return behind
    return 0.5 * (s.job_f[UTILITY, s.lists[QUEUE, middle - 1]] + behind)


@kernel
def _suspend(s, job):
    """Let a job wait for its own nodes, and keep them if it may."""
    at = s.i[NUM_SUSPENDED]
    while at > 0 and s.lists[SUSPENDED, at - 1] > job:
        s.lists[SUSPENDED, at] = s.lists[SUSPENDED, at - 1]
        at -= 1
    s.lists[SUSPENDED, at] = job
    s.i[NUM_SUSPENDED] += 1
    if s.i[HOLD_NODES] == 1:
        s.i[KEPT] += s.job_i[ALLOCATED, job]
        return
    if s.i[KIND] == FLAT:
        slot = s.job_i[SLOT, job]
        for word in range(s.masks.shape[1]):
            s.masks[FREE_NODES, word] |= s.masks[slot, word]
        s.i[FREE] += s.job_i[ALLOCATED, job]
        s.i[VERSION] += 1
        s.i[RELEASED] = 1
    else:
        free_nodes_of(s, job)


@kernel
def give_up_node(s, node):
    """Take a node that fails from the suspended job that keeps it, if one does, so that it can go down like a free
    one."""
    if s.i[HOLD_NODES] == 0 or s.agenda[DOWN_UNTIL, node] > -np.inf or _is_free(s, node):
        return
    for at in range(s.i[NUM_SUSPENDED]):
        if holds_node(s, s.lists[SUSPENDED, at], node):
            _mark(s, node, True)
            return


@inlined
def _mark(s, node, free):
    """Turn a node that is kept into a free one, or the other way round."""
    if s.i[KIND] == FLAT:
        word, bit = node >> 6, ONE << np.uint64(node & 63)
    else:
        Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
        word, bit = node // (Y * Z) * Y + node // Z % Y, ONE << np.uint64(node % Z)
    if free:
        s.masks[FREE_NODES, word] |= bit
        s.i[FREE] += 1
        s.i[KEPT] -= 1
    else:
        s.masks[FREE_NODES, word] &= ~bit
        s.i[FREE] -= 1
        s.i[KEPT] += 1
    s.i[VERSION] += 1


@inlined
def _is_free(s, node):
    if s.i[KIND] == FLAT:
        return s.masks[FREE_NODES, node >> 6] >> np.uint64(node & 63) & ONE != ZERO
    Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
    return s.masks[FREE_NODES, node // (Y * Z) * Y + node // Z % Y] >> np.uint64(node % Z) & ONE != ZERO


@kernel
def keep_repaired(s):
    """Let suspended jobs keep those of their nodes that have just come up, before anything else may take them."""
    if s.i[HOLD_NODES] == 0:
        return
    for at in range(s.i[NUM_SUSPENDED]):
        job = s.lists[SUSPENDED, at]
        for node in range(s.i[NODES]):
            if holds_node(s, job, node) and _is_free(s, node):
                _mark(s, node, False)


@kernel
def restart_suspended(s):
    """Start every suspended job whose nodes are all up, and free or kept; return False if a list does not fit.

    For the others that keep nodes it is noted when these are expected to become free again: when the job has run.
    """
    at = 0
    while at < s.i[NUM_SUSPENDED]:
        job = s.lists[SUSPENDED, at]
        up = _up_at(s, job)
        if up == -np.inf and (s.i[HOLD_NODES] == 1 or _all_free(s, job)):
            s.i[NUM_SUSPENDED] -= 1
            for later in range(at, s.i[NUM_SUSPENDED]):
                s.lists[SUSPENDED, later] = s.lists[SUSPENDED, later + 1]
            if not _restart(s, job):
                return False
            continue
        if s.i[HOLD_NODES] == 1:
            _expect_all(s, job, up)
        at += 1
    return True


@kernel
def _up_at(s, job):
    """Return when the last node of a suspended job comes up, -inf if all are up."""
    up = -np.inf
    for node in range(s.i[NODES]):
        if s.agenda[DOWN_UNTIL, node] > up and holds_node(s, job, node):
            up = s.agenda[DOWN_UNTIL, node]
    return up


@kernel
def _all_free(s, job):
    if s.i[KIND] == FLAT:
        slot = s.job_i[SLOT, job]
        for word in range(s.masks.shape[1]):
            if s.masks[slot, word] & ~s.masks[FREE_NODES, word] != ZERO:
                return False
        return True
    for node in range(s.i[NODES]):
        if holds_node(s, job, node) and not _is_free(s, node):
            return False
    return True


@kernel
def _expect_all(s, job, up):
    """Expect all nodes of a suspended job, also those that are down, to become free when it will have run."""
    for node in range(s.i[NODES]):
        if s.agenda[DOWN_UNTIL, node] > -np.inf and holds_node(s, job, node):
            drop_release(s, -1 - node)
    drop_release(s, job)
    add_release(s, max(up, expected_end(s, job, up)), job)
    s.i[SCANNED_VERSION] = -1  # the head job's reservation may change though the free nodes do not


@kernel
def _restart(s, job):
    """Start a suspended job on its own nodes; return False if a list does not fit."""
    size = s.job_i[ALLOCATED, job]
    s.i[QUEUED] += s.job_i[REQUESTED, job]  # as for a job of the queue: starting takes it away again
    s.i[DISTURBED] = 1  # promises to other jobs did not know when this would be
    if s.i[HOLD_NODES] == 1:
        drop_release(s, job)
        s.i[KEPT] -= size
        s.i[FREE] += size
    if s.i[KIND] != FLAT:
        if s.i[HOLD_NODES] == 1:
            vacate(s.masks[FREE_NODES], s.job_i[BOX, job], s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])
            s.i[VERSION] += 1
        return start_on_box(s, job, size, s.job_i[BOX, job])
    slot = s.job_i[SLOT, job]
    for word in range(s.masks.shape[1]):
        s.masks[FREE_NODES, word] &= ~s.masks[slot, word]
    s.i[VERSION] += 1
    begin_run(s, job, size)
    return True
