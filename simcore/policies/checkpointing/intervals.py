"""How much work lies between two checkpoints of a job: given (``periodic``, ``risk``), or from the mean time between
failures that hit it (Young, CACM 17, 1974; Daly, FGCS 22, 2006).

Failures of a machine of N nodes, one in MTBF seconds, hit a job on n nodes every MTBF x N / n seconds on average. A
derived interval is no shorter than one that can be given: checkpoints of no cost would be made all the time.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, SHORTEST_INTERVAL_S, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_WORK, State
from faultsweep.simcore.policies.failures import happen


@kernel
def young_interval(s: State, job: int) -> float:
    """Return Young's interval of an attempt that starts now, s; infinite while no failure was observed."""
    return max(young(s.checkpoint_cost, _job_mtbf(s, job)), SHORTEST_INTERVAL_S)


@kernel
def daly_interval(s: State, job: int) -> float:
    """Return Daly's interval of an attempt that starts now, s; infinite while no failure was observed."""
    return max(daly(s.checkpoint_cost, _job_mtbf(s, job)), SHORTEST_INTERVAL_S)


@kernel
def _job_mtbf(s: State, job: int) -> float:
    """Return the mean time between failures that hit a job, s."""
    return _machine_mtbf(s) * (s.nodes / s.job.allocated[job])


@kernel
def _machine_mtbf(s: State) -> float:
    """Return the mean time between failures of the machine, s: as given, or as observed since the first submission."""
    if s.checkpoint_mtbf > 0.0:
        return s.checkpoint_mtbf
    if s.num_failures == 0:
        return np.inf
    return max(1.0, s.now - s.job.submit[0]) / s.num_failures


@kernel
def young(cost: float, mtbf: float) -> float:
    """Return Young's first-order optimum, s."""
    return np.inf if mtbf == np.inf else np.sqrt(2.0 * cost * mtbf)


@kernel
def daly(cost: float, mtbf: float) -> float:
    """Return Daly's higher-order optimum, s: without the cost itself, and not above the mean time between failures."""
    if mtbf == np.inf or cost >= 2.0 * mtbf:
        return mtbf
    share = cost / (2.0 * mtbf)
    return np.sqrt(2.0 * cost * mtbf) * (1.0 + np.sqrt(share) / 3.0 + share / 9.0) - cost


def _never_observed(run: Run) -> bool:
    """Tell whether the interval follows from failures that never come."""
    return run["checkpoint_mtbf_h"] == 0 and not happen(run)


POLICIES = tuple(
    Policy(
        name,
        f"After {name.capitalize()}'s interval of work, from the mean time between failures ({year}).",
        uses=("checkpoint_cost_s", "checkpoint_mtbf_h"),
        becomes=((_never_observed, "none"),),
        machines=ONE_MACHINE,
        kernels={"work_between_checkpoints": interval},
        facts={"saves_by": BY_WORK},
    )
    for name, year, interval in (("young", 1974, young_interval), ("daly", 2006, daly_interval))
)
