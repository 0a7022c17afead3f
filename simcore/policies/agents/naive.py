"""``naive``: the largest job on a saturated trunk is taken, whatever it stated (akshitha2011, II.D)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy(
    "naive",
    "The largest job on a saturated trunk is checkpointed and migrated, always (akshitha2011, II.D).",
    uses=("agent_interval_s", "overhead_s"),
    facts={"acts": True},
)
