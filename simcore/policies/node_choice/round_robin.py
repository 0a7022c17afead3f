"""``round-robin``: the free nodes that follow the one taken last."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.node_choice import ALIKE
from faultsweep.simcore.policies.node_choice.nodes import choose_from, is_free, take_node


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


@kernel
def choose_next(s: State, job: int) -> None:
    """Choose the nodes that follow the node taken last, of each as much as it can take (site)."""
    node, left = s.last_node, s.job.chunks[job]
    while left > 0:
        node = (node + 1) % s.takes.shape[0]
        left = choose_from(s, node, left)


@kernel
def note_last(s: State, job: int) -> None:
    """Note the last node, round and round, of those that a job starts on (site)."""
    count, before, farthest = s.takes.shape[0], s.last_node, -1
    s.changes += 1
    s.preference_changed = s.changes
    piece = s.job.first_piece[job]
    while piece >= 0:
        steps = (s.piece_node[piece] - before - 1) % count
        if steps > farthest:
            farthest = steps
            s.last_node = s.piece_node[piece]
        piece = s.piece_next[piece]


def _begin(s: State, run: Run) -> None:
    s.last_node = -1


POLICY = Policy(
    "round-robin",
    "The free nodes that follow the one taken last.",
    becomes=ALIKE,
    kernels={"take_nodes": take_next, "choose_nodes": choose_next, "pieces_taken": note_last},
    begins=_begin,
)
