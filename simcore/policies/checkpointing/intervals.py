"""What ``young`` and ``daly`` share: the mean time between failures that hit a job.

Failures of a machine of N nodes, one in MTBF seconds, hit a job on n nodes every MTBF x N / n seconds on average. A
derived interval is no shorter than one that can be given: checkpoints of no cost would be made all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy, Run
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_WORK, State
from faultsweep.simcore.policies.failures import happen


@kernel
def job_mtbf(s: State, job: int) -> float:
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


def _never_observed(run: Run) -> bool:
    """Tell whether the interval follows from failures that never come."""
    return run["checkpoint_mtbf_h"] == 0 and not happen(run)


def from_mtbf(name: str, whose: str, year: int, interval: Callable[..., Any]) -> Policy:
    """Return the policy of an interval that a kernel finds from the mean time between failures."""
    return Policy(
        name,
        f"After {whose} interval of work, from the mean time between failures ({year}).",
        uses=("checkpoint_cost_s", "checkpoint_mtbf_h"),
        becomes=((_never_observed, "none"),),
        machines=ONE_MACHINE,
        kernels={"work_between_checkpoints": interval},
        facts={"saves_by": BY_WORK},
    )
