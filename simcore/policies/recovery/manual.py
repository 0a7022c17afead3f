"""``manual``: the user of a killed job resubmits it, as under option A (MR of tang2010)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.recovery import NOTIFY, comes_back_preempted, pays
from numpy.typing import NDArray


def ask(config: Mapping[str, Any], jobs: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Notify only, for all jobs."""
    return np.full(len(jobs["group"]), NOTIFY)


POLICY = Policy(
    "manual",
    "Resubmission by hand, as under option A (MR of tang2010).",
    uses=("recovery_mix", "credits"),  # metrics are by group, and jobs are charged for option A
    consults=("seed", ("payment", pays), ("delay", happen), ("requeue", comes_back_preempted)),
    machines=ONE_MACHINE,
    facts={"asks": ask},
)
