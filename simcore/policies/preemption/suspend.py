"""``suspend``: a preempted job stays on its nodes and stands still until it can have its cores again.

As SLURM's gang scheduler has it: a suspended job keeps its memory, and its GPUs, so nobody is preempted for these; what
it has done is not lost. A job that has its nodes for itself keeps of these what it asks for, not all that they have.
There is no grace: a job stops at once, however short it has run (PreemptExemptTime is for REQUEUE and CANCEL).

Source: slurm.conf(5) of SLURM 22.05 (PreemptMode=SUSPEND, GANG), its guide to gang scheduling, and gang.c: jobs of
higher tiers cast shadows on the cores of lower ones.
"""

from __future__ import annotations

from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.contract import Config, Policy, Refusal, Run
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.events import trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    CHECKPOINT_TIMER,
    COMPLETION_TIMER,
    HALTED,
    SUSPEND_EVENT,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import cancel_timer
from faultsweep.simcore.policies.checkpointing.saving import forget_plan

_NEVER_WAIT_FOR_NODES = ("arrival", "manual", "all-a", "all-b", "all-d", "all-e")
"""Recoveries under which no job asks for option C; a function of the user's, or of a package, may."""


@kernel
def suspend(s: State, job: int) -> None:
    """Stop a running job for now; what it lacks of its cores is counted once all are known that run."""
    cancel_timer(s, COMPLETION_TIMER * TIMER_STRIDE + job)
    cancel_timer(s, CHECKPOINT_TIMER * TIMER_STRIDE + job)
    forget_plan(s, job)
    s.job.suspensions[job] += 1
    hooks.usage_changes(s, job, -s.job.allocated[job])
    s.job.status[job] = HALTED
    s.job.halted_since[job] = s.now
    s.num_halted += 1
    s.kept += s.job.allocated[job]
    s.without_job = 0
    s.changed = s.released = 1
    if s.tracing == 1:
        trace_event(s, SUSPEND_EVENT, job)


def _begin(s: State, run: Run) -> None:
    s.in_tiers = s.suspends = 1


def _not_with(config: Config, kind: str, machine: str) -> str:
    recovery = config["recovery"]
    if config["preemption"] != "suspend" or kind != ON_SITE or recovery in _NEVER_WAIT_FOR_NODES:
        return ""
    return (
        f"preemption: 'suspend' is not for recovery = {recovery!r}, by which jobs wait for nodes where others may be "
        "suspended (valid: another recovery, or preemption = 'requeue')"
    )


POLICY = Policy(
    "suspend",
    "It stands still on its nodes until nobody runs on its cores (SLURM: PreemptMode=SUSPEND,GANG).",
    aliases=("gang",),
    machines=(ON_SITE,),
    kernels={"job_leaves": suspend},
    begins=_begin,
    refuses=(Refusal(("preemption", "recovery"), _not_with),),
    metrics=("lost_to_hold", "mean_suspended_s"),
)
