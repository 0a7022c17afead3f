"""``arrival``: a killed job goes back to the place in the queue that its arrival gives it."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.policies.recovery import comes_back

POLICY = Policy(
    "arrival", "Back to the place in the queue that the arrival gives it.", consults=(("requeue", comes_back),)
)
