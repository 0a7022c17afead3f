"""Single nodes of a flat machine."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.state import FREE_NODES


@inlined
def is_free(s, node):
    """Tell whether a node is up and free."""
    return s.masks[FREE_NODES, node >> 6] >> np.uint64(node & 63) & ONE != ZERO


@inlined
def take_node(s, slot, node):
    """Move a free node to the mask in a slot."""
    bit = ONE << np.uint64(node & 63)
    s.masks[FREE_NODES, node >> 6] &= ~bit
    s.masks[slot, node >> 6] |= bit


@inlined
def give_node(s, slot, node):
    """Move a node from the mask in a slot to the free ones."""
    bit = ONE << np.uint64(node & 63)
    s.masks[FREE_NODES, node >> 6] |= bit
    s.masks[slot, node >> 6] &= ~bit
