"""Recovery in the engine: where a killed job goes, and how it comes back (tang2010, slides 8 and 9).

A job under option A or C leaves the queue for a while: it is AWAY until its user resubmits it, or until its own nodes
are up. The others are resubmitted at once. Jobs under C are listed in SUSPENDED, by index. Under ``hold_nodes`` they
keep what is up of their nodes: these are neither free nor in use, and KEPT counts them. What a suspended job holds or
waits for is its slot of the masks (flat), its box (torus) or its pieces (site), as if it were running.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.distributions import EXPONENTIAL, LOGNORMAL
from faultsweep.simcore.engine.allocation import (
    begin_exemption,
    begin_run,
    expected_end,
    free_nodes_of,
    holds_node,
    start_on_box,
    windows_of,
)
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.events import (
    add_release,
    drop_release,
    enqueue_behind,
    enqueue_by_arrival,
    enqueue_last,
    trace_event,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.limits import count_running
from faultsweep.simcore.engine.pieces import (
    hold_piece,
    hold_pieces,
    is_held,
    let_go,
    piece_on,
)
from faultsweep.simcore.engine.state import (
    AWAY,
    DEFAULT,
    KILL_EVENT,
    REQUEUE_EVENT,
    RESUBMIT_TIMER,
    TIMER_STRIDE,
    WAITING,
    State,
)
from faultsweep.simcore.engine.timers import push_timer
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.placement.rules import coin, vacate
from faultsweep.simcore.policies.queue_order.order import order_queue
from faultsweep.simcore.policies.recovery import HEAD, MIDDLE, NOTIFY, ORIGINAL_NODES


@kernel
def recover(s: State, job: int) -> None:
    """Do to a job that a failure has just ended what its option says; it holds its nodes no more, or keeps them."""
    option = s.job.option[job]
    if s.tracing == 1:
        trace_event(s, KILL_EVENT, job)
    s.job.restarts[job] += 1
    s.job.status[job] = AWAY
    if option == ORIGINAL_NODES:
        _suspend(s, job)
        return
    free_nodes_of(s, job)
    delay = _manual_delay(s, job) if option == NOTIFY else s.requeue_hold
    push_timer(s, s.now + delay, RESUBMIT_TIMER * TIMER_STRIDE + job)


@kernel
def _manual_delay(s: State, job: int) -> float:
    """Return how long the user takes to resubmit a job, s; it depends on (seed, job, restarts), on nothing else."""
    mean, sigma = s.delay_mean, s.delay_sigma
    delay = mean
    if s.delay_kind == EXPONENTIAL:
        delay = -mean * np.log1p(-coin(s.delay_key, 0, job, s.job.restarts[job]))
    elif s.delay_kind == LOGNORMAL:
        radius = np.sqrt(-2.0 * np.log1p(-coin(s.delay_key, 0, job, s.job.restarts[job])))
        normal = radius * np.cos(2.0 * np.pi * coin(s.delay_key, 1, job, s.job.restarts[job]))
        delay = mean * np.exp(sigma * normal - 0.5 * sigma * sigma)
    return np.rint(delay * 1000.0) / 1000.0


@kernel
def resubmit(s: State, job: int) -> None:
    """Put a job into the queue again: by its arrival, or, where options decide, at the rear (A, B), behind half of the
    waiting jobs (D), or at the head (E).

    Under an option its utility counts from now on; at the head it is above all, in the middle midway between those of
    its neighbours.
    """
    s.job.status[job] = WAITING
    s.queued += s.job.requested[job]
    s.scanned_version = -1  # it may come before jobs that have been refused
    if s.recovery == 0:
        if s.age_weight != 0.0:
            s.job.utility_since[job] = s.now  # in SLURM a requeued job begins without an age
        if s.tracing == 1:
            trace_event(s, REQUEUE_EVENT, job)
        enqueue_by_arrival(s, job)
        return
    option = s.job.option[job]
    s.job.utility_since[job] = s.now
    s.job.fixed_utility[job] = np.nan
    if s.tracing == 1:
        trace_event(s, REQUEUE_EVENT, job)
    if option == HEAD:
        s.job.fixed_utility[job] = np.inf
        enqueue_behind(s, job, 0)
    elif option == MIDDLE:
        if s.queue_order != DEFAULT:
            order_queue(s)
            s.job.fixed_utility[job] = _middle_utility(s)
        enqueue_behind(s, job, (s.queue_tail - s.queue_head) // 2)
    else:
        enqueue_last(s, job)


@kernel
def _middle_utility(s: State) -> float:
    """Return the utility midway between those of the jobs before and behind the middle of the queue, which is in order.

    Where there is no job before, or one above all, it is that of the job behind; NaN, as of any job, in an empty queue.
    """
    head, tail = s.queue_head, s.queue_tail
    if head == tail:
        return np.nan
    middle = head + (tail - head) // 2
    behind = s.job.utility[s.queue[middle]]
    if middle == head or s.job.utility[s.queue[middle - 1]] == np.inf:
        return behind
    return 0.5 * (s.job.utility[s.queue[middle - 1]] + behind)


@kernel
def _suspend(s: State, job: int) -> None:
    """Let a job wait for its own nodes, and keep them if it may."""
    at = s.num_suspended
    while at > 0 and s.suspended[at - 1] > job:
        s.suspended[at] = s.suspended[at - 1]
        at -= 1
    s.suspended[at] = job
    s.num_suspended += 1
    if s.limited == 1:
        count_running(s, job, 1)
    if s.hold_nodes == 1:
        s.kept += s.job.allocated[job]
        return
    if s.kind == SITE:
        _let_go_all(s, job)
    elif s.kind == FLAT:
        slot = s.job.slot[job]
        for word in range(s.free_nodes.shape[0]):
            s.free_nodes[word] |= s.slot_masks[slot, word]
        s.free += s.job.allocated[job]
        s.version += 1
        s.released = 1
    else:
        free_nodes_of(s, job)


@kernel
def _let_go_all(s: State, job: int) -> None:
    """Free all that a suspended job has of the nodes of a site; it stays listed."""
    piece = s.job.first_piece[job]
    while piece >= 0:
        let_go(s, piece)
        piece = s.piece_next[piece]
    s.free += s.job.allocated[job]
    s.version += 1
    s.released = 1


@kernel
def give_up_node(s: State, node: int) -> None:
    """Take a node that fails from the suspended jobs that keep it, if some do, so that it can go down like a free
    one."""
    if s.hold_nodes == 0 or s.down_until[node] > -np.inf:
        return
    if s.kind == SITE:
        for at in range(s.num_suspended):
            piece = piece_on(s, s.suspended[at], node)
            if piece >= 0 and is_held(s, piece):
                let_go(s, piece)
                _count_kept(s, piece, -1)
        return
    if _is_free(s, node):
        return
    for at in range(s.num_suspended):
        if holds_node(s, s.suspended[at], node):
            _mark(s, node, True)
            return


@inlined
def _count_kept(s: State, piece: int, sign: int) -> None:
    """Count the cores of a piece as kept and no longer free, or, with the sign -1, the other way round."""
    s.kept += sign * s.piece_cores[piece]
    s.free -= sign * s.piece_cores[piece]
    s.version += 1


@inlined
def _mark(s: State, node: int, free: bool) -> None:
    """Turn a node that is kept into a free one, or the other way round."""
    if s.kind == FLAT:
        word, bit = node >> 6, ONE << np.uint64(node & 63)
    else:
        Y, Z = s.side_y, s.side_z
        word, bit = node // (Y * Z) * Y + node // Z % Y, ONE << np.uint64(node % Z)
    if free:
        s.free_nodes[word] |= bit
        s.free += 1
        s.kept -= 1
    else:
        s.free_nodes[word] &= ~bit
        s.free -= 1
        s.kept += 1
    s.version += 1


@inlined
def _is_free(s: State, node: int) -> bool:
    if s.kind == FLAT:
        return s.free_nodes[node >> 6] >> np.uint64(node & 63) & ONE != ZERO
    Y, Z = s.side_y, s.side_z
    return s.free_nodes[node // (Y * Z) * Y + node // Z % Y] >> np.uint64(node % Z) & ONE != ZERO


@kernel
def keep_repaired(s: State) -> None:
    """Let suspended jobs keep those of their nodes that have just come up, before anything else may take them."""
    if s.hold_nodes == 0:
        return
    for at in range(s.num_suspended):
        job = s.suspended[at]
        if s.kind == SITE:
            _keep_pieces(s, job)
            continue
        for node in range(s.nodes):
            if holds_node(s, job, node) and _is_free(s, node):
                _mark(s, node, False)


@kernel
def _keep_pieces(s: State, job: int) -> None:
    """Let a suspended job keep what it had of those of its nodes that are up."""
    piece = s.job.first_piece[job]
    while piece >= 0:
        if s.down_until[s.piece_node[piece]] == -np.inf and not is_held(s, piece):
            hold_piece(s, piece)
            _count_kept(s, piece, 1)
        piece = s.piece_next[piece]


@kernel
def restart_suspended(s: State) -> bool:
    """Start every suspended job whose nodes are all up, and free or kept; return False if a list does not fit.

    For the others that keep nodes it is noted when these are expected to become free again: when the job has run.
    """
    at = 0
    while at < s.num_suspended:
        job = s.suspended[at]
        up = _up_at(s, job)
        if up == -np.inf and (s.hold_nodes == 1 or _all_free(s, job)) and not _meets_window(s, job, s.now):
            s.num_suspended -= 1
            for later in range(at, s.num_suspended):
                s.suspended[later] = s.suspended[later + 1]
            if not _restart(s, job):
                return False
            continue
        if s.hold_nodes == 1:
            _expect_all(s, job, up)
        at += 1
    return True


@kernel
def _up_at(s: State, job: int) -> float:
    """Return when the last node of a suspended job comes up, -inf if all are up."""
    up = -np.inf
    if s.kind == SITE:
        piece = s.job.first_piece[job]
        while piece >= 0:
            up = max(up, s.down_until[s.piece_node[piece]])
            piece = s.piece_next[piece]
        return up
    for node in range(s.nodes):
        if s.down_until[node] > up and holds_node(s, job, node):
            up = s.down_until[node]
    return up


@inlined
def _meets_window(s: State, job: int, time: float) -> bool:
    """Tell whether a suspended job that starts at a time would meet an advance reservation of its nodes."""
    return s.num_windows > 0 and _windows_of(s, job, time) != 0


@kernel
def _windows_of(s: State, job: int, time: float) -> int:
    """Return the bits of the advance reservations of its nodes that it would meet."""
    closed, met, piece = windows_of(s, job, time), 0, s.job.first_piece[job]
    while piece >= 0:
        met |= s.node_windows[s.piece_node[piece]] & closed
        piece = s.piece_next[piece]
    return met


@kernel
def _all_free(s: State, job: int) -> bool:
    if s.kind == SITE:
        return _all_pieces_free(s, job)
    if s.kind == FLAT:
        slot = s.job.slot[job]
        for word in range(s.free_nodes.shape[0]):
            if s.slot_masks[slot, word] & ~s.free_nodes[word] != ZERO:
                return False
        return True
    for node in range(s.nodes):
        if holds_node(s, job, node) and not _is_free(s, node):
            return False
    return True


@kernel
def _all_pieces_free(s: State, job: int) -> bool:
    piece = s.job.first_piece[job]
    while piece >= 0:
        node = s.piece_node[piece]
        if (
            s.free_cores[node] < s.piece_cores[piece]
            or s.free_gpus[node] < s.piece_gpus[piece]
            or s.free_memory[node] < s.piece_memory[piece]
        ):
            return False
        piece = s.piece_next[piece]
    return True


@kernel
def _expect_all(s: State, job: int, up: float) -> None:
    """Expect all nodes of a suspended job, also those that are down, to become free when it will have run.

    On a site others share its nodes, which come up for them before.
    """
    if s.kind == SITE:
        up = _first_start(s, job, max(up, s.now))
    else:
        for node in range(s.nodes):
            if s.down_until[node] > -np.inf and holds_node(s, job, node):
                drop_release(s, -1 - node)
    drop_release(s, job)
    add_release(s, max(up, expected_end(s, job, up)), job)
    s.scanned_version = -1  # the head job's reservation may change though the free nodes do not


@kernel
def _first_start(s: State, job: int, time: float) -> float:
    """Return the first time from one on at which a suspended job meets no advance reservation of its nodes."""
    while time < np.inf and _meets_window(s, job, time):
        met, first = _windows_of(s, job, time), np.inf
        for window in range(s.num_windows):
            if met >> window & 1 == 1:
                first = min(first, s.window_end[window])
        time = first
    return time


@kernel
def _restart(s: State, job: int) -> bool:
    """Start a suspended job on its own nodes; return False if a list does not fit."""
    size = s.job.allocated[job]
    s.queued += s.job.requested[job]  # as for a job of the queue: starting takes it away again
    if s.limited == 1:
        count_running(s, job, -1)  # starting counts it again
    s.disturbed = 1  # reservations of other jobs did not know when this would be
    if s.hold_nodes == 1:
        drop_release(s, job)
        s.kept -= size
        s.free += size
    if s.kind == SITE:
        if s.hold_nodes == 0:
            hold_pieces(s, job)
        s.version += 1
        begin_run(s, job, size)
        begin_exemption(s, job)
        return True
    if s.kind != FLAT:
        if s.hold_nodes == 1:
            vacate(s.free_nodes, s.job.box[job], s.side_x, s.side_y, s.side_z)
            s.version += 1
        return start_on_box(s, job, size, s.job.box[job])
    slot = s.job.slot[job]
    for word in range(s.free_nodes.shape[0]):
        s.free_nodes[word] &= ~s.slot_masks[slot, word]
    s.version += 1
    begin_run(s, job, size)
    return True
