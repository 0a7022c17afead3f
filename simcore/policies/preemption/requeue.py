"""``requeue``: a preempted job loses what it has not saved, and waits again, as after a failure."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.preemption import TIMES, begin
from faultsweep.simcore.policies.preemption.leaving import come_back, depart


@kernel
def requeue(s: State, job: int) -> None:
    """End the attempt of a job, which waits again."""
    depart(s, job)
    come_back(s, job)


POLICY = Policy(
    "requeue",
    "It waits again; work that no checkpoint has saved is lost (SLURM: PreemptMode=REQUEUE).",
    uses=TIMES,
    machines=(SITE,),
    kernels={"job_leaves": requeue},
    begins=begin,
)
