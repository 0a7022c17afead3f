"""``round-robin``: the free nodes that follow the one taken last."""

from __future__ import annotations

from faultsweep.simcore.contract import NOT_ON_SITES, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.node_choice import ALIKE
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node


@kernel
def take_next(s: State, job: int, slot: int, size: int) -> None:
    """Take the free nodes that follow the node taken last, round and round."""
    node = s.last_node
    for _ in range(size):
        node = (node + 1) % s.nodes
        while not is_free(s, node):
            node = (node + 1) % s.nodes
        take_node(s, slot, node)
    s.last_node = node


def _begin(s: State, run: Run) -> None:
    s.last_node = -1


POLICY = Policy(
    "round-robin",
    "The free nodes that follow the one taken last.",
    becomes=ALIKE,
    machines=NOT_ON_SITES,
    kernels={"take_nodes": take_next},
    begins=_begin,
)
