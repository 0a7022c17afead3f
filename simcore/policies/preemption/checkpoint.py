"""``checkpoint``: a preempted job saves its work before it leaves, and waits again."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import NOT_SAVING, SAVES, SAVES_LAST, State
from faultsweep.simcore.policies.checkpointing.saving import begin_saving
from faultsweep.simcore.policies.preemption import TIMES, begin
from faultsweep.simcore.policies.preemption.leaving import come_back, depart


@kernel
def save_and_requeue(s: State, job: int) -> None:
    """Begin the last checkpoint of a job, or wait for the one under way; end the attempt of a job that has made it, or
    that has done nothing since it started."""
    if s.job.leaving[job] != SAVES_LAST:
        s.job.leaving[job] = SAVES_LAST
        if s.job.saving[job] != NOT_SAVING:
            return
        if s.job.resumed[job] < s.now:
            begin_saving(s, job, SAVES, s.checkpoint_cost, s.now + s.checkpoint_cost)
            if s.checkpoint_cost > 0.0:
                return
    depart(s, job)
    come_back(s, job)


POLICY = Policy(
    "checkpoint",
    "It makes a checkpoint, which takes checkpoint_cost_s on its nodes, and waits again.",
    uses=(*TIMES, "checkpoint_cost_s"),
    machines=(SITE,),
    kernels={"job_leaves": save_and_requeue},
    begins=begin,
)
