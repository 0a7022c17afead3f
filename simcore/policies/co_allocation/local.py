"""``local``: a job runs in the cluster that it was submitted to (``engine/clusters/placing.py``)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.co_allocation import CONSULTS, USES

POLICY = Policy(
    "local",
    "A job runs in the cluster that it was submitted to.",
    uses=USES,
    consults=CONSULTS,
)
