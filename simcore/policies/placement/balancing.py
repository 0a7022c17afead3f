"""``balancing``: the loss of free partition is weighed against the predicted failure of the box (oliner2004)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.engine.state import BALANCING
from faultsweep.simcore.policies.prediction import has_no_confidence, is_blind

POLICY = Policy(
    "balancing",
    "Least loss of free partition plus predicted loss by failure (oliner2004, section 5).",
    uses=("accuracy", "partition_failure"),
    consults=("prediction",),
    becomes=((is_blind, "mfp"), (has_no_confidence, "mfp")),
    facts={"search": BALANCING},
)
