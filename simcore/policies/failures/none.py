"""``none``: no node fails."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("none", "No node fails.")
