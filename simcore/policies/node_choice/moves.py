"""Migration to safer nodes under ``lff``: when a job ends, jobs that started after it leave the nodes that have failed
most for idle ones that have failed less, if the difference is worth a checkpoint and a restart (zhang2004, section
V-D)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import job_on, trace_allocation
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    MIGRATE_EVENT,
    MOVES_AWAY,
    RUNNING,
    State,
)
from faultsweep.simcore.policies.checkpointing.saving import begin_saving
from faultsweep.simcore.policies.node_choice.nodes import give_node, is_free, take_node


@inlined
def note_start(s: State, job: int) -> None:
    """Note the earliest start of the jobs that complete at this event time."""
    if s.moves_to_safer == 1:
        s.finished_start = min(s.finished_start, s.job.start[job])


@inlined
def move_to_safer_nodes(s: State) -> None:
    """Move jobs if one has completed."""
    if s.finished_start < np.inf:
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
        works = job >= 0 and s.job.status[job] == RUNNING
        if works and s.job.start[job] > since and s.job.resumed[job] <= s.now:
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
