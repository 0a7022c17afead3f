"""The rules by which a job gets free nodes of a flat machine, other than first fit."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import LEAST_FAILURES, RANDOM_NODES, State
from faultsweep.simcore.policies.node_choice.lff import take_safest
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node
from faultsweep.simcore.policies.placement.rules import coin


@kernel
def choose_nodes(s: State, job: int, slot: int, size: int) -> None:
    """Move ``size`` of the free nodes to the mask in a slot."""
    if s.node_choice == LEAST_FAILURES:
        take_safest(s, slot, size)
    elif s.node_choice == RANDOM_NODES:
        _take_random(s, job, slot, size)
    else:
        _take_next(s, slot, size)


@inlined
def _take_random(s: State, job: int, slot: int, size: int) -> None:
    """Take free nodes at random: which ones depends on (seed, job, restarts) and what is free, on nothing else."""
    free = 0
    for node in range(s.nodes):
        if is_free(s, node):
            s.order[free] = node
            free += 1
    for place in range(size):
        left = free - place
        drawn = place + min(left - 1, int(coin(s.node_key, place, job, s.job.restarts[job]) * left))
        node = s.order[drawn]
        s.order[drawn] = s.order[place]
        take_node(s, slot, node)


@inlined
def _take_next(s: State, slot: int, size: int) -> None:
    """Take the free nodes that follow the node taken last, round and round."""
    node = s.last_node
    for _ in range(size):
        node = (node + 1) % s.nodes
        while not is_free(s, node):
            node = (node + 1) % s.nodes
        take_node(s, slot, node)
    s.last_node = node
