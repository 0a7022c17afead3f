"""What a run asks its policies, by name: kernels that pass on to that of the policy which the run has.

Kernels call them as ``hooks.take_nodes(s, ...)``. They are made once all policies are known (``bound.py``); kernels are
compiled later, so that policies may call what the engine offers and the engine what policies bring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from faultsweep.simcore.engine.state import State


class Hook(NamedTuple):
    """What policies of a role may have.

    field : of the state, which holds the number of the policy of the run; 0 is the default of the role.
    arguments : behind the state.
    otherwise : what it gives for a policy that has nothing of the kind.
    """

    role: str
    field: str
    arguments: str
    otherwise: str


HOOKS = {
    "take_nodes": Hook("node_choice", "node_choice", "job, slot, size", "None"),
    "choose_nodes": Hook("node_choice", "node_choice", "job", "None"),
    "pieces_taken": Hook("node_choice", "node_choice", "job", "None"),
    "node_failed": Hook("node_choice", "node_choice", "node", "None"),
    "job_finished": Hook("node_choice", "node_choice", "job", "None"),
    "events_applied": Hook("node_choice", "node_choice", "", "None"),
    "work_between_checkpoints": Hook("checkpointing", "checkpoint", "job", "s.checkpoint_interval"),
    "next_interval": Hook("checkpointing", "checkpoint", "job", "s.job.interval[job]"),
    "checkpoint_pays": Hook("checkpointing", "checkpoint", "job", "True"),
    "pass_on_checkpoint": Hook("checkpointing", "checkpoint", "", "None"),
    "checkpoint_is_due": Hook("checkpointing", "checkpoint", "job", "True"),
    "checkpoints_kept": Hook("checkpointing", "checkpoint", "count", "count"),
    "checkpoint_ends": Hook("checkpointing", "checkpoint", "", "s.now + s.checkpoint_cost"),
    "utility": Hook("queue_order", "queue_order", "job", "s.job.priority[job]"),
    "order_changes": Hook("queue_order", "queue_order", "", "np.inf"),
    "usage_changes": Hook("queue_order", "queue_order", "job, nodes", "None"),
    "job_leaves": Hook("preemption", "preemption", "job", "None"),
    "start_jobs": Hook("scheduling", "scheduler", "", "True"),
}

take_nodes: Callable[[State, int, int, int], None]
"""(s, job, slot, size): move ``size`` free nodes of a flat machine to the mask in a slot."""
choose_nodes: Callable[[State, int], None]
"""(s, job): choose, of the nodes of a site that can take chunks of a job (``takes``), those that it gets; there are
enough."""
pieces_taken: Callable[[State, int], None]
"""(s, job): a job starts on the pieces of nodes of a site that are listed for it."""
node_failed: Callable[[State, int], None]
"""(s, node): a node has failed."""
job_finished: Callable[[State, int], None]
"""(s, job): a job has completed."""
events_applied: Callable[[State], None]
"""(s): all events of an event time have been applied, and no scheduling pass has run."""
work_between_checkpoints: Callable[[State, int], float]
"""(s, job): work between the checkpoints of an attempt that starts now, s."""
next_interval: Callable[[State, int], float]
"""(s, job): the same after a checkpoint of the attempt."""
checkpoint_pays: Callable[[State, int], bool]
"""(s, job): whether a job that has done that work makes a checkpoint."""
pass_on_checkpoint: Callable[[State], None]
"""(s): set ``next_foreseen`` to the next time at which checkpoints may begin, s."""
checkpoint_is_due: Callable[[State, int], bool]
"""(s, job): whether a running job makes a checkpoint at ``next_foreseen``."""
checkpoints_kept: Callable[[State, int], int]
"""(s, count): of the first jobs of the list ``order``, put those that make one first; return how many."""
checkpoint_ends: Callable[[State], float]
"""(s): when checkpoints that begin now are complete, s."""
utility: Callable[[State, int], float]
"""(s, job): the place of a waiting job in the queue as of now: the highest comes first."""
order_changes: Callable[[State], float]
"""(s): when the order of the queue changes next though nothing happens, s; infinity: never."""
usage_changes: Callable[[State, int, int], None]
"""(s, job, nodes): a job begins to hold so many nodes, or, below 0, stops."""
job_leaves: Callable[[State, int], None]
"""(s, job): the grace of a preempted job is over, or its last checkpoint is complete."""
start_jobs: Callable[[State], bool]
"""(s): one scheduling pass of a policy that is none of the engine's; False if a preallocated list does not fit."""
