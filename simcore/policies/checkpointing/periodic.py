"""``periodic``, ``young``, ``daly``: a checkpoint whenever so much work has been done since the last saved state
(zhang2004, section V-A); under ``risk`` only if it is expected to pay."""

from __future__ import annotations

from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import RISK, SAVES, State
from faultsweep.simcore.policies.checkpointing.risk import pays
from faultsweep.simcore.policies.checkpointing.saving import begin_saving, plan


@kernel
def reach_interval(s: State, job: int) -> None:
    """Begin the checkpoint of a job whose work has reached NEXT_SAVE, or wait for another interval."""
    if s.checkpoint == RISK and not pays(s, job):
        s.job.next_save[job] += s.job.interval[job]
        plan(s, job)
        return
    begin_saving(s, job, SAVES, s.checkpoint_cost, s.now + s.checkpoint_cost)
