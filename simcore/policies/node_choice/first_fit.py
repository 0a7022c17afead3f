"""``first-fit``: the free nodes of lowest index."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.engine.bits import ZERO, lowest_bits, popcount
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.node_choice.nodes import choose_from


@inlined
def take_lowest(s: State, job: int, slot: int, wanted: int) -> None:
    """Move the free nodes of lowest index to the mask in a slot."""
    for word in range(s.free_nodes.shape[0]):
        free = s.free_nodes[word]
        if free == ZERO:
            continue
        have = popcount(free)
        taken = free
        if have > wanted:
            taken = lowest_bits(free, wanted)
            have = wanted
        s.slot_masks[slot, word] = taken
        s.free_nodes[word] = free & ~taken
        wanted -= have
        if wanted == 0:
            break


@kernel
def choose_lowest(s: State, job: int) -> None:
    """Choose the nodes of lowest index, of each as much as it can take (site)."""
    node, left = 0, s.job.chunks[job]
    while left > 0:
        left = choose_from(s, node, left)
        node += 1


POLICY = Policy(
    "first-fit",
    "The free nodes of lowest index (the baseline of zhang2004).",
    kernels={"take_nodes": take_lowest, "choose_nodes": choose_lowest},
)
