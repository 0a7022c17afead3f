"""``cancel``: a preempted job ends without a result and does not come back."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.dependencies import free_followers
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import DONE, State
from faultsweep.simcore.engine.submits import count_submitted
from faultsweep.simcore.policies.preemption import TIMES, begin
from faultsweep.simcore.policies.preemption.leaving import depart


@kernel
def cancel(s: State, job: int) -> None:
    """End a job for good; what it had saved is lost, too."""
    depart(s, job)
    s.job.preempted_nodes[job] += s.job.saved[job] * s.job.allocated[job]
    s.job.status[job] = DONE
    s.finished += 1
    if s.refuses == 1:
        count_submitted(s, job, -1)
    if s.follows == 1:
        free_followers(s, job)


POLICY = Policy(
    "cancel",
    "It ends without a result and does not come back (SLURM: PreemptMode=CANCEL).",
    uses=TIMES,
    machines=(SITE,),
    kernels={"job_leaves": cancel},
    begins=begin,
)
