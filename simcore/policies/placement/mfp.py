"""``mfp``: the free box that leaves the largest maximal free partition (krevat2003, ch. 2)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("mfp", "The box that leaves the largest maximal free partition (krevat2003, ch. 2).")
