"""``suspend``: a preempted job stays on its nodes and stands still until it can have its cores again.

As SLURM's gang scheduler has it: a suspended job keeps its memory, and its GPUs, so nobody is preempted for these; what
it has done is not lost. A job that has its nodes for itself keeps of these what it asks for, not all that they have.
The grace of preemption is none of SLURM's here: there a job stops at once.

Source: slurm.conf(5) of SLURM 22.05 (PreemptMode=SUSPEND, GANG) and its guide to gang scheduling.
"""

from __future__ import annotations

from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.contract import Config, Policy, Refusal, Run
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import stop_leaving
from faultsweep.simcore.engine.events import cancel_timer, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    CHECKPOINT_TIMER,
    COMPLETION_TIMER,
    OTHER_TIMER,
    SUSPEND_EVENT,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.policies.preemption import TIMES, begin
from faultsweep.simcore.policies.preemption.halting import expect_halted, give_cores, list_halted


@kernel
def suspend(s: State, job: int) -> None:
    """Stop a running job for now: it gives its cores to others."""
    for kind in (COMPLETION_TIMER, CHECKPOINT_TIMER, OTHER_TIMER):
        cancel_timer(s, kind * TIMER_STRIDE + job)
    stop_leaving(s, job)
    s.job.expected_end[job] += s.job.told_earlier[job]
    s.job.suspensions[job] += 1
    hooks.usage_changes(s, job, -s.job.allocated[job])
    list_halted(s, job)
    give_cores(s, job)
    expect_halted(s)
    s.without_job = 0
    s.changed = s.released = 1
    if s.tracing == 1:
        trace_event(s, SUSPEND_EVENT, job)


def _begin(s: State, run: Run) -> None:
    begin(s, run)
    s.suspends = 1


def _not_with(config: Config, kind: str, machine: str) -> str:
    recovery = config["recovery"]
    waits = recovery in ("C", "mix") or ":" in recovery
    if config["preemption"] != "suspend" or kind != ON_SITE or not waits:
        return ""
    return (
        f"preemption: 'suspend' is not for recovery = {recovery!r}, by which jobs wait for nodes where others may be "
        "suspended (valid: another recovery, or preemption = 'requeue')"
    )


POLICY = Policy(
    "suspend",
    "It stands still on its nodes until it can have its cores again (SLURM: PreemptMode=SUSPEND,GANG).",
    aliases=("gang",),
    uses=TIMES,
    machines=(ON_SITE,),
    kernels={"job_leaves": suspend},
    begins=_begin,
    refuses=(Refusal(("preemption", "recovery"), _not_with),),
    metrics=("lost_to_hold", "mean_suspended_s"),
)
