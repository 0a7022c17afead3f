"""``daly``: Daly's interval of work between two checkpoints (FGCS 22, 2006)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import SHORTEST_INTERVAL_S
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.checkpointing.intervals import from_mtbf, job_mtbf


@kernel
def daly_interval(s: State, job: int) -> float:
    """Return Daly's interval of an attempt that starts now, s; infinite while no failure was observed."""
    return max(daly(s.checkpoint_cost, job_mtbf(s, job)), SHORTEST_INTERVAL_S)


@kernel
def daly(cost: float, mtbf: float) -> float:
    """Return Daly's higher-order optimum, s: without the cost itself, and not above the mean time between failures."""
    if mtbf == np.inf or cost >= 2.0 * mtbf:
        return mtbf
    share = cost / (2.0 * mtbf)
    return np.sqrt(2.0 * cost * mtbf) * (1.0 + np.sqrt(share) / 3.0 + share / 9.0) - cost


POLICY = from_mtbf("daly", "Daly's", 2006, daly_interval)
