"""``lff``, least failure first: a job gets the free nodes with the fewest failures so far, equal ones by index
(zhang2004, section V-D)."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node


@kernel
def count_failure(s: State, node: int) -> None:
    """Count a failure of a node and keep the list SAFEST in order of (failures, index)."""
    s.node_failures[node] += 1.0
    failures = s.node_failures[node]
    at = 0
    while s.safest[at] != node:
        at += 1
    while at + 1 < s.nodes:
        other = s.safest[at + 1]
        if s.node_failures[other] > failures or (s.node_failures[other] == failures and other > node):
            break
        s.safest[at] = other
        at += 1
    s.safest[at] = node


@kernel
def take_safest(s: State, slot: int, size: int) -> None:
    """Move the ``size`` safest free nodes to the mask in a slot."""
    at, taken = 0, 0
    while taken < size:
        node = s.safest[at]
        if is_free(s, node):
            take_node(s, slot, node)
            taken += 1
        at += 1
