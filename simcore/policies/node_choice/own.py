"""A choice of nodes of the user's: a function of a free node and of the job; the lowest numbers are taken."""

from __future__ import annotations

from faultsweep.simcore.contract import NOT_ON_SITES, OWN, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.outside import Shape, address_of
from faultsweep.simcore.policies.node_choice.nodes import is_free, take_node
from faultsweep.simcore.policies.prediction.predictors import coin_key

_TEMPLATE = """
    job = a
    for node in range(s.nodes):
        if _is_free(s, node):
            s.node_score[node] = _policy(ARGUMENTS)
    return 0
"""

SHAPE = Shape(
    "node_choice",
    {
        "node": ("node", "index of a free node"),
        "failures": ("int(s.node_failures[node])", "failures of the node so far"),
        "machine_nodes": ("s.nodes", "nodes of the machine"),
        "nodes": ("s.job.requested[job]", "nodes that the job asks for"),
        "estimate_s": ("s.job.estimate[job]", "run time that the scheduler believes, s"),
        "restarts": ("s.job.restarts[job]", "failures that have killed the job"),
        "drawn": ("_coin(s.own_key, node, job, s.job.restarts[job])", "a number of the node's for this start, [0, 1)"),
    },
    _TEMPLATE,
)


@kernel
def take_lowest(s: State, job: int, slot: int, size: int) -> None:
    """Take the free nodes with the lowest numbers, equal ones by index."""
    call_own(s.own_choice, s, job, 0, 0)
    for _ in range(size):
        best = -1
        for node in range(s.nodes):
            if is_free(s, node) and (best < 0 or s.node_score[node] < s.node_score[best]):
                best = node
        take_node(s, slot, best)


@kernel
def count(s: State, node: int) -> None:
    """Count a failure of a node."""
    s.node_failures[node] += 1.0


def _begin(s: State, run: Run) -> None:
    s.watches = 1
    s.own_choice = address_of(run["node_choice"], SHAPE)
    s.own_key = coin_key(run["seed"], run["replicate"], "own node choice")


POLICY = Policy(
    OWN,
    "",
    consults=("seed",),
    machines=NOT_ON_SITES,
    kernels={"take_nodes": take_lowest, "node_failed": count},
    facts={"shape": SHAPE},
    begins=_begin,
)
