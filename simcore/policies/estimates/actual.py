"""``actual``: the run time itself."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("actual", "The run time itself.", aliases=("perfect",))
