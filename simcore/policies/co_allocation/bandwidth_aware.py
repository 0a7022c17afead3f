"""``bandwidth-aware``: a job may run over several clusters if what is stated fits the trunks."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.co_allocation import CONSULTS, USES

POLICY = Policy(
    "bandwidth-aware",
    "A job may run over several clusters if what it and the others state fits the trunks.",
    uses=USES,
    consults=CONSULTS,
    facts={"elsewhere": True, "spreads": True, "heeds_trunks": True},
)
