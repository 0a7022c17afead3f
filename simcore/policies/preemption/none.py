"""``none``: running jobs stay."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy, Run
from faultsweep.simcore.engine.state import State


def _begin(s: State, run: Run) -> None:
    s.in_tiers = int(run["site_tiers"])


POLICY = Policy("none", "Running jobs stay.", uses=("site_tiers",), begins=_begin)
