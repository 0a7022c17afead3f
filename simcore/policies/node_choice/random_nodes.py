"""``random``: free nodes at random."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.node_choice import ALIKE
from faultsweep.simcore.policies.node_choice.nodes import choose_from, is_free, take_node
from faultsweep.simcore.policies.placement.rules import coin
from faultsweep.simcore.streams import coin_key


@kernel
def take_random(s: State, job: int, slot: int, size: int) -> None:
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


@kernel
def choose_random(s: State, job: int) -> None:
    """Choose nodes at random of those that can take something, of each as much as it can (site)."""
    count, place, left = 0, 0, s.job.chunks[job]
    for node in range(s.takes.shape[0]):
        if s.takes[node] > 0:
            s.order[count] = node
            count += 1
    while left > 0:
        drawn = place + min(count - place - 1, int(coin(s.node_key, place, job, s.job.restarts[job]) * (count - place)))
        node = s.order[drawn]
        s.order[drawn] = s.order[place]
        left = choose_from(s, node, left)
        place += 1


def _begin(s: State, run: Run) -> None:
    s.node_key = coin_key(run["seed"], run["replicate"], "nodes")


POLICY = Policy(
    "random",
    "Free nodes at random.",
    becomes=ALIKE,
    consults=("seed",),
    kernels={"take_nodes": take_random, "choose_nodes": choose_random},
    begins=_begin,
)
