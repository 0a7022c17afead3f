"""``lff``, least failure first: a job gets the free nodes with the fewest failures so far, equal ones by index
(zhang2004, section V-D)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Parameter, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.checkpointing import OVERHEAD
from faultsweep.simcore.policies.node_choice import ALIKE
from faultsweep.simcore.policies.node_choice.moves import move_to_safer_nodes, note_start
from faultsweep.simcore.policies.node_choice.nodes import choose_in_order, num_nodes, take_in_order


@kernel
def count_failure(s: State, node: int) -> None:
    """Count a failure of a node and keep the list SAFEST in order of (failures, index)."""
    s.node_failures[node] += 1.0
    failures = s.node_failures[node]
    at = 0
    while s.safest[at] != node:
        at += 1
    while at + 1 < num_nodes(s):
        other = s.safest[at + 1]
        if s.node_failures[other] > failures or (s.node_failures[other] == failures and other > node):
            break
        s.safest[at] = other
        at += 1
    s.safest[at] = node


@kernel
def take_safest(s: State, job: int, slot: int, size: int) -> None:
    """Move the ``size`` safest free nodes to the mask in a slot."""
    take_in_order(s, slot, size)


def _begin(s: State, run: Run) -> None:
    count = min(int(s.nodes), len(s.safest))  # on a site there are fewer nodes than cores
    s.safest[:count] = np.arange(count)
    s.watches = 1
    s.moves_to_safer = int(run["lff_moves"])
    s.move_threshold = run["move_threshold"]
    s.move_cost = run["move_cost_s"]
    s.finished_start = np.inf


def _moves(run: Run) -> bool:
    return bool(run["lff_moves"])


POLICY = Policy(
    "lff",
    "Least failure first: the free nodes that have failed least, with moves to safer ones (zhang2004, V-D).",
    parameters=(
        Parameter(
            "lff_moves", bool, True, "Whether lff moves running jobs to safer nodes when a job ends.", "scheduling"
        ),
        Parameter(
            "move_threshold",
            int,
            1,
            "A job moves from one node to another if their numbers of failures differ by more than this.",
            "scheduling",
            minimum=0,
            live=_moves,
        ),
        Parameter(
            "move_cost_s",
            float,
            300.0,
            "Time that a move to safer nodes takes, a checkpoint and a restart.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
            live=_moves,
        ),
    ),
    becomes=ALIKE,
    metrics=tuple((name, _moves) for name in ("jobs_migrated", *OVERHEAD)),
    kernels={
        "take_nodes": take_safest,
        "choose_nodes": choose_in_order,
        "node_failed": count_failure,
        "job_finished": note_start,
        "events_applied": move_to_safer_nodes,
    },
    begins=_begin,
    facts={"saves": _moves},
)
