"""``mix``: each job gets the option that its group calls for, or the highest if its user games (tang2010, slide 8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Parameter, Policy
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.recovery import HEAD, comes_back, pays
from faultsweep.simcore.policies.recovery.options import draw_gamers
from numpy.typing import NDArray


def ask(config: Mapping[str, Any], jobs: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """What the groups call for, and the highest option for all jobs of users who game."""
    group = jobs["group"]
    if config["gaming_frac"] > 0:
        return np.where(draw_gamers(config, jobs["user"]), HEAD, group)
    return group.copy()


POLICY = Policy(
    "mix",
    "Each job the option that its group A to E calls for (tang2010, slide 8).",
    parameters=(
        Parameter(
            "gaming_frac",
            float,
            0.0,
            "Share of the users who always ask for option E, whatever the group of their job calls for.",
            "recovery",
            minimum=0,
            maximum=1,
        ),
    ),
    uses=("recovery_mix", "credits"),
    consults=("seed", ("payment", pays), ("hold", happen), ("delay", happen), ("requeue", comes_back)),
    machines=ONE_MACHINE,
    facts={"asks": ask},
)
