"""``none``: no job ever makes a checkpoint."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("none", "Never.")
