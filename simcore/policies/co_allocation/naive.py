"""``naive``: a job may run over several clusters, whatever their trunks carry (``engine/clusters/placing.py``)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.co_allocation import CONSULTS, USES

POLICY = Policy(
    "naive",
    "A job may run over several clusters, whatever their trunks carry.",
    uses=USES,
    consults=CONSULTS,
    facts={"elsewhere": True, "spreads": True},
)
