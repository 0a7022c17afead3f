"""``young``: Young's interval of work between two checkpoints (CACM 17, 1974)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import SHORTEST_INTERVAL_S
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.checkpointing.intervals import from_mtbf, job_mtbf


@kernel
def young_interval(s: State, job: int) -> float:
    """Return Young's interval of an attempt that starts now, s; infinite while no failure was observed."""
    return max(young(s.checkpoint_cost, job_mtbf(s, job)), SHORTEST_INTERVAL_S)


@kernel
def young(cost: float, mtbf: float) -> float:
    """Return Young's first-order optimum, s."""
    return np.inf if mtbf == np.inf else np.sqrt(2.0 * cost * mtbf)


POLICY = from_mtbf("young", "Young's", 1974, young_interval)
