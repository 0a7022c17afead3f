"""``periodic``: a checkpoint whenever so much work has been done since the last saved state (zhang2004, V-A)."""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE, Policy
from faultsweep.simcore.engine.state import BY_WORK

POLICY = Policy(
    "periodic",
    "After every interval of work (zhang2004, section V-B).",
    uses=("checkpoint_cost_s", "checkpoint_interval_s"),
    machines=ONE_MACHINE,
    facts={"saves_by": BY_WORK},
)
