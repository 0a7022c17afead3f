"""``tie-breaking``: of the boxes that leave most, one that is not predicted to fail (oliner2004).

Its accuracy is the recall of the predictor, whoever else asks it.
"""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.engine.state import TIE_BREAKING
from faultsweep.simcore.policies.prediction import is_blind

POLICY = Policy(
    "tie-breaking",
    "Of the boxes that leave most, one that is not predicted to fail (oliner2004, section 5).",
    binds={"recall": "accuracy"},
    consults=("prediction",),
    becomes=((is_blind, "mfp"),),
    facts={"search": TIE_BREAKING},
)
