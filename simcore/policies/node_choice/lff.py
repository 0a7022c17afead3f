"""``lff``, least failure first: a job gets the free nodes with the fewest failures so far, equal ones by index
(zhang2004, section V-D)."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import NODE_FAILURES, NODES, SAFEST
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node


@kernel
def count_failure(s, node):
    """Count a failure of a node and keep the list SAFEST in order of (failures, index)."""
    s.agenda[NODE_FAILURES, node] += 1.0
    failures = s.agenda[NODE_FAILURES, node]
    at = 0
    while s.lists[SAFEST, at] != node:
        at += 1
    while at + 1 < s.i[NODES]:
        other = s.lists[SAFEST, at + 1]
        if s.agenda[NODE_FAILURES, other] > failures or (s.agenda[NODE_FAILURES, other] == failures and other > node):
            break
        s.lists[SAFEST, at] = other
        at += 1
    s.lists[SAFEST, at] = node


@kernel
def take_safest(s, slot, size):
    """Move the ``size`` safest free nodes to the mask in a slot."""
    at, taken = 0, 0
    while taken < size:
        node = s.lists[SAFEST, at]
        if is_free(s, node):
            take_node(s, slot, node)
            taken += 1
        at += 1
