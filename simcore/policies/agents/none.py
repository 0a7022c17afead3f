"""``none``: nothing relieves a saturated trunk."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("none", "Nothing relieves a saturated trunk.")
