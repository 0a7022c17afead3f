"""Migration to safer nodes under ``lff``: when a job ends, jobs that started after it leave the nodes that have failed
most for idle ones that have failed less, if the difference is worth a checkpoint and a restart (zhang2004, section
V-D)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import job_on, trace_allocation
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    FINISHED_START,
    MIGRATE_EVENT,
    MIGRATIONS,
    MOVE_COST,
    MOVE_THRESHOLD,
    MOVERS,
    MOVES,
    MOVES_AWAY,
    NODE_FAILURES,
    NODES,
    NOW,
    NUM_RELEASES,
    ORDER,
    RELEASE_ITEM,
    RESUMED,
    RUNNING,
    SAFEST,
    SLOT,
    START,
    STATUS,
    TRACING,
    VERSION,
)
from faultsweep.simcore.policies.checkpointing.saving import begin_saving
from faultsweep.simcore.policies.node_choice.nodes import give_node, is_free, take_node


@kernel
def move_to_safer_nodes(s):
    """Exchange the least safe node of the jobs that may move with the safest idle one while that pays; each job that
    moves pays once."""
    since = s.f[FINISHED_START]
    s.f[FINISHED_START] = np.inf
    front, back, moved = 0, s.i[NODES] - 1, 0
    while front < back and not is_free(s, s.lists[SAFEST, front]):
        front += 1
    if front == back or not _pays(s, front, back) or not _mark_movers(s, since):
        return
    while True:
        while front < back and not is_free(s, s.lists[SAFEST, front]):
            front += 1
        while front < back and _pays(s, front, back) and not _may_move(s, s.lists[SAFEST, back]):
            back -= 1
        if front >= back or not _pays(s, front, back):
            break
        job = job_on(s, s.lists[SAFEST, back])
        take_node(s, s.job_i[SLOT, job], s.lists[SAFEST, front])
        give_node(s, s.job_i[SLOT, job], s.lists[SAFEST, back])
        moved = _list_once(s, job, moved)
        front += 1
        back -= 1
    for at in range(moved):
        _begin_move(s, s.lists[ORDER, at])


@inlined
def _pays(s, front, back):
    """Tell whether the numbers of failures of two nodes, by place in SAFEST, differ by more than the threshold."""
    safe, unsafe = s.lists[SAFEST, front], s.lists[SAFEST, back]
    return s.agenda[NODE_FAILURES, unsafe] - s.agenda[NODE_FAILURES, safe] > s.i[MOVE_THRESHOLD]


@kernel
def _mark_movers(s, since):
    """Mark the nodes of the jobs that may move: they work, and have started after ``since``; tell whether there are
    any."""
    found = False
    for word in range(s.masks.shape[1]):
        s.masks[MOVERS, word] = ZERO
    for at in range(s.i[NUM_RELEASES]):
        job = int(s.agenda[RELEASE_ITEM, at])
        works = job >= 0 and s.job_i[STATUS, job] == RUNNING
        if works and s.job_f[START, job] > since and s.job_f[RESUMED, job] <= s.f[NOW]:
            found = True
            for word in range(s.masks.shape[1]):
                s.masks[MOVERS, word] |= s.masks[s.job_i[SLOT, job], word]
    return found


@inlined
def _may_move(s, node):
    """Tell whether a node is of a job that may move."""
    return s.masks[MOVERS, node >> 6] >> np.uint64(node & 63) & ONE != ZERO


@kernel
def _list_once(s, job, count):
    """Append a job to the list ORDER unless it is there; return how many are."""
    for at in range(count):
        if s.lists[ORDER, at] == job:
            return count
    s.lists[ORDER, count] = job
    return count + 1


@kernel
def _begin_move(s, job):
    """Do to a job that has its new nodes what a move does to it."""
    s.job_i[MIGRATIONS, job] += 1
    s.i[MOVES] += 1
    s.i[VERSION] += 1
    if s.i[TRACING] == 1:
        trace_allocation(s, MIGRATE_EVENT, job)
    begin_saving(s, job, MOVES_AWAY, s.f[MOVE_COST], s.f[NOW] + s.f[MOVE_COST])
