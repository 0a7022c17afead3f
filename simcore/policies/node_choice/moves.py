"""Migration to safer nodes under ``lff``: when a job ends, jobs that started after it leave the nodes that have failed
most for idle ones that have failed less, if the difference is worth a checkpoint and a restart (zhang2004, section
V-D). On a site the parts of nodes that jobs hold move, each to the safest node that has room for it."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import job_on, trace_allocation
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import fits_elsewhere, move_piece, next_job_on, piece_on, windows_met
from faultsweep.simcore.engine.state import (
    ANYWHERE,
    MIGRATE_EVENT,
    MOVES_AWAY,
    RUNNING,
    State,
)
from faultsweep.simcore.model.machines import SITE
from faultsweep.simcore.policies.checkpointing.saving import begin_saving
from faultsweep.simcore.policies.node_choice.nodes import give_node, is_free, take_node
from faultsweep.simcore.policies.preemption.halting import settle


@inlined
def note_start(s: State, job: int) -> None:
    """Note the earliest start of the jobs that complete at this event time."""
    if s.moves_to_safer == 1:
        s.finished_start = min(s.finished_start, s.job.start[job])


@inlined
def move_to_safer_nodes(s: State) -> None:
    """Move jobs if one has completed."""
    if s.finished_start < np.inf:
        if s.kind == SITE:
            _move_pieces(s)
        else:
            _exchange_nodes(s)


@kernel
def _exchange_nodes(s: State) -> None:
    """Exchange the least safe node of the jobs that may move with the safest idle one while that pays; each job that
    moves pays once."""
    since = s.finished_start
    s.finished_start = np.inf
    front, back, moved = 0, s.nodes - 1, 0
    while front < back and not is_free(s, s.safest[front]):
        front += 1
    if front == back or not _pays(s, front, back) or not _mark_movers(s, since):
        return
    while True:
        while front < back and not is_free(s, s.safest[front]):
            front += 1
        while front < back and _pays(s, front, back) and not _may_move(s, s.safest[back]):
            back -= 1
        if front >= back or not _pays(s, front, back):
            break
        job = job_on(s, s.safest[back])
        take_node(s, s.job.slot[job], s.safest[front])
        give_node(s, s.job.slot[job], s.safest[back])
        moved = _list_once(s, job, moved)
        front += 1
        back -= 1
    for at in range(moved):
        _begin_move(s, s.order[at])


@kernel
def _move_pieces(s: State) -> None:
    """Move parts of the least safe nodes of jobs that may move to the safest nodes that have room for them, while that
    pays: from the least safe node on, of each in order of the jobs, every part once; each job that moves pays once."""
    since = s.finished_start
    s.finished_start = np.inf
    nodes, moved = s.node_cores.shape[0], 0
    for back in range(nodes - 1, 0, -1):
        if not _pays(s, 0, back):
            break
        job = next_job_on(s, s.safest[back], -1)
        while job >= 0:
            if _is_mover(s, job, since) and _moves_piece(s, job, back):
                moved = _list_once(s, job, moved)
            job = next_job_on(s, s.safest[back], job)
    for at in range(moved):
        _begin_move(s, s.order[at])
    if moved > 0:
        s.disturbed = 1  # reservations are of nodes, and know where the jobs were
        if s.num_halted > 0:
            settle(s)


@inlined
def _is_mover(s: State, job: int, since: float) -> bool:
    """Tell whether a job may move: it works, and has started after ``since``."""
    if s.asks == 1 and s.asks_for[job] != ANYWHERE:
        return False  # its nodes are those of its reservation
    return s.job.status[job] == RUNNING and s.job.start[job] > since and s.job.resumed[job] <= s.now


@kernel
def _moves_piece(s: State, job: int, back: int) -> bool:
    """Move what a job holds of a node, by place in SAFEST, to the safest node that has room for it; tell whether it
    moved."""
    piece = piece_on(s, job, s.safest[back])
    closed = windows_met(s, s.now, s.job.expected_end[job] + s.move_cost)
    front = 0
    while front < back and _pays(s, front, back):
        node = s.safest[front]
        if fits_elsewhere(s, job, piece, node, closed):
            move_piece(s, job, piece, node)
            return True
        front += 1
    return False


@inlined
def _pays(s: State, front: int, back: int) -> bool:
    """Tell whether the numbers of failures of two nodes, by place in SAFEST, differ by more than the threshold."""
    safe, unsafe = s.safest[front], s.safest[back]
    return s.node_failures[unsafe] - s.node_failures[safe] > s.move_threshold


@kernel
def _mark_movers(s: State, since: float) -> bool:
    """Mark the nodes of the jobs that may move: they work, and have started after ``since``; tell whether there are
    any."""
    found = False
    for word in range(s.free_nodes.shape[0]):
        s.movers[word] = ZERO
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job >= 0 and _is_mover(s, job, since):
            found = True
            for word in range(s.free_nodes.shape[0]):
                s.movers[word] |= s.slot_masks[s.job.slot[job], word]
    return found


@inlined
def _may_move(s: State, node: int) -> bool:
    """Tell whether a node is of a job that may move."""
    return s.movers[node >> 6] >> np.uint64(node & 63) & ONE != ZERO


@kernel
def _list_once(s: State, job: int, count: int) -> int:
    """Append a job to the list ORDER unless it is there; return how many are."""
    for at in range(count):
        if s.order[at] == job:
            return count
    s.order[count] = job
    return count + 1


@kernel
def _begin_move(s: State, job: int) -> None:
    """Do to a job that has its new nodes what a move does to it."""
    s.job.migrations[job] += 1
    s.moves += 1
    s.version += 1
    if s.tracing == 1:
        trace_allocation(s, MIGRATE_EVENT, job)
    begin_saving(s, job, MOVES_AWAY, s.move_cost, s.now + s.move_cost)
