"""``migration-only``: a job runs whole in any cluster (``engine/clusters/placing.py``)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.co_allocation import CONSULTS, USES

POLICY = Policy(
    "migration-only",
    "A job runs whole in any cluster (the baseline of akshitha2011).",
    uses=USES,
    consults=CONSULTS,
    facts={"elsewhere": True},
)
