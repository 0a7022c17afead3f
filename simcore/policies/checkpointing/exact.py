"""``exact``: the victim of a failure begins a checkpoint just early enough for it to be complete when it fails
(zhang2004, section V-B).

No checkpoint of a job that would have completed by then, or that has run for less than the cost of a checkpoint.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy
from faultsweep.simcore.engine.allocation import holds_node
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_FORESIGHT, State
from faultsweep.simcore.policies.checkpointing import NO_FAILURES


@kernel
def next_exact(s: State) -> None:
    """Pass on to the next failure, or the next few whose checkpoints start at one instant."""
    time, count = s.next_foreseen, s.fail_time.shape[0]
    at = s.next_foreseen_failure
    while at < count and s.fail_time[at] - s.checkpoint_cost <= time:
        at += 1
    s.next_foreseen_failure = at
    s.next_foreseen = s.fail_time[at] - s.checkpoint_cost if at < count else np.inf


@kernel
def fails_after_checkpoint(s: State, job: int) -> bool:
    """Tell whether a node of the job fails one cost after NEXT_FORESEEN, before the job would have completed."""
    at = s.next_foreseen_failure
    while at < s.fail_time.shape[0] and s.fail_time[at] - s.checkpoint_cost == s.next_foreseen:
        if s.job.end[job] > s.fail_time[at] and holds_node(s, job, int(s.fail_node[at])):
            return True
        at += 1
    return False


@kernel
def time_of_failure(s: State) -> float:
    """Return when the checkpoints that begin now are complete: now + cost, without its rounding."""
    return s.fail_time[s.next_foreseen_failure]


POLICY = Policy(
    "exact",
    "Complete at the time at which a node of the job fails (zhang2004, section V-B).",
    uses=("checkpoint_cost_s",),
    becomes=NO_FAILURES,
    machines=ONE_MACHINE,
    kernels={
        "pass_on_checkpoint": next_exact,
        "checkpoint_is_due": fails_after_checkpoint,
        "checkpoint_ends": time_of_failure,
    },
    facts={"looks_ahead": "checkpoint_cost_s", "saves_by": BY_FORESIGHT},
)
