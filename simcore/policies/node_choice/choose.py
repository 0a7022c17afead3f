"""The rules by which a job gets free nodes of a flat machine, other than first fit."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    LAST_NODE,
    LEAST_FAILURES,
    NODE_CHOICE,
    NODE_KEY,
    NODES,
    ORDER,
    RANDOM_NODES,
    RESTARTS,
)
from faultsweep.simcore.policies.node_choice.lff import take_safest
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node
from faultsweep.simcore.policies.placement.rules import coin


@kernel
def choose_nodes(s, job, slot, size):
    """Move ``size`` of the free nodes to the mask in a slot."""
    if s.i[NODE_CHOICE] == LEAST_FAILURES:
        take_safest(s, slot, size)
    elif s.i[NODE_CHOICE] == RANDOM_NODES:
        _take_random(s, job, slot, size)
    else:
        _take_next(s, slot, size)


@inlined
def _take_random(s, job, slot, size):
    """Take free nodes at random: which ones depends on (seed, job, restarts) and what is free, on nothing else."""
    free = 0
    for node in range(s.i[NODES]):
        if is_free(s, node):
            s.lists[ORDER, free] = node
            free += 1
    for place in range(size):
        left = free - place
        drawn = place + min(left - 1, int(coin(s.i[NODE_KEY], place, job, s.job_i[RESTARTS, job]) * left))
        node = s.lists[ORDER, drawn]
        s.lists[ORDER, drawn] = s.lists[ORDER, place]
        take_node(s, slot, node)


@inlined
def _take_next(s, slot, size):
    """Take the free nodes that follow the node taken last, round and round."""
    node = s.i[LAST_NODE]
    for _ in range(size):
        node = (node + 1) % s.i[NODES]
        while not is_free(s, node):
            node = (node + 1) % s.i[NODES]
        take_node(s, slot, node)
    s.i[LAST_NODE] = node
