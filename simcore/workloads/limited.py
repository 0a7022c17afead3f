"""Jobs that a limit of running jobs would never let start."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from faultsweep.simcore.model.limits import Rule, heeds
from faultsweep.simcore.model.workload import Label, Workload, take
from faultsweep.simcore.workloads.transforms import from_origin
from numpy.typing import NDArray

from faultsweep.errors import InputError

NEVER_STARTS = "larger than a limit of running jobs"


def within_limits(
    workload: Workload,
    estimate_s: NDArray[np.float64],
    owners: Mapping[str, Label],
    rules: tuple[Rule, ...],
    drops: bool,
) -> tuple[Workload, NDArray[np.float64]]:
    """Return jobs, and their estimates, without those that a limit would never let start.

    Raises
    ------
    InputError
        If there are some and they are not to be dropped, or no job is left.
    """
    kept = np.ones(len(workload), np.bool_)
    for rule in rules:
        bad = heeds(rule, owners, len(workload)) & ((workload.size > rule.most_nodes) | (rule.most_jobs < 1))
        if bad.any() and not drops:
            job = int(np.argmax(bad))
            most = "lets no job run" if rule.most_jobs < 1 else f"allows {rule.most_nodes:g}"
            raise InputError(
                f"{workload.name}: job {workload.job_id[job]} asks for {workload.size[job]} nodes or cores and "
                f"{rule.name} {most} (size_map = drop leaves such jobs out)"
            )
        kept &= ~bad
    if kept.all():
        return workload, estimate_s
    if not kept.any():
        raise InputError(f"{workload.name}: limits let none of the jobs start")
    dropped = {**workload.dropped, NEVER_STARTS: int((~kept).sum())}
    return from_origin(take(workload, kept, dropped=dropped)), estimate_s[kept]
