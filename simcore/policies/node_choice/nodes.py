"""Single nodes of a flat machine, or of a site."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import choose
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import SITE


@inlined
def num_nodes(s: State) -> int:
    """Return the number of nodes; sizes are counted in cores on a site."""
    return s.node_cores.shape[0] if s.kind == SITE else s.nodes


@inlined
def can_take(s: State, node: int) -> bool:
    """Tell whether a node can take some of the job that is looked at."""
    return s.takes[node] > 0 if s.kind == SITE else is_free(s, node)


@inlined
def choose_from(s: State, node: int, left: int) -> int:
    """Choose a node of a site for as many chunks of ``left`` as it can take; return how many are left."""
    chunks = min(left, s.takes[node])
    if chunks > 0:
        choose(s, node, chunks)
    return left - chunks


@inlined
def is_free(s: State, node: int) -> bool:
    """Tell whether a node is up and free."""
    return s.free_nodes[node >> 6] >> np.uint64(node & 63) & ONE != ZERO


@inlined
def take_node(s: State, slot: int, node: int) -> None:
    """Move a free node to the mask in a slot."""
    bit = ONE << np.uint64(node & 63)
    s.free_nodes[node >> 6] &= ~bit
    s.slot_masks[slot, node >> 6] |= bit


@kernel
def take_in_order(s: State, slot: int, size: int) -> None:
    """Move the first ``size`` free nodes of the list SAFEST to the mask in a slot."""
    at, taken = 0, 0
    while taken < size:
        node = s.safest[at]
        if is_free(s, node):
            take_node(s, slot, node)
            taken += 1
        at += 1


@kernel
def choose_in_order(s: State, job: int) -> None:
    """Choose the first nodes of the list SAFEST, of each as much as it can take (site)."""
    at, left = 0, s.job.chunks[job]
    while left > 0:
        left = choose_from(s, s.safest[at], left)
        at += 1


@inlined
def give_node(s: State, slot: int, node: int) -> None:
    """Move a node from the mask in a slot to the free ones."""
    bit = ONE << np.uint64(node & 63)
    s.free_nodes[node >> 6] |= bit
    s.slot_masks[slot, node >> 6] &= ~bit
