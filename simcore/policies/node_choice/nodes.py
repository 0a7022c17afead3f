"""Single nodes of a flat machine."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.state import State


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


@inlined
def give_node(s: State, slot: int, node: int) -> None:
    """Move a node from the mask in a slot to the free ones."""
    bit = ONE << np.uint64(node & 63)
    s.free_nodes[node >> 6] |= bit
    s.slot_masks[slot, node >> 6] &= ~bit
