"""What the failures of a run will mean to each of its jobs: decided with the submissions, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.job_results import constant
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.policies.recovery.credits import HOUR_S, charge
from faultsweep.simcore.policies.recovery.options import Asks, draw_groups, given_groups
from numpy.typing import NDArray


def plan_recovery(
    config: Mapping[str, Any], workload: Workload, asks: Asks | None, options: str | None = None
) -> dict[str, NDArray[Any]]:
    """Return what per-job results say of recovery, arrays of shape (jobs,).

    ``user``; ``recovery_group``, ``recovery_asked`` and ``recovery_option`` (what the job gets), positions in OPTIONS,
    all -1 where there is no recovery; ``credits_granted`` and ``credits_charged``. ``options`` gives the groups, as
    letters; they are drawn otherwise. ``asks`` is that of the policy, None without one.
    """
    count = len(workload)
    if asks is None:
        nothing, no_credits = constant(-1, count), constant(0.0, count)
        return {
            "user": workload.user.copy(),
            **dict.fromkeys(("recovery_group", "recovery_asked", "recovery_option"), nothing),
            **dict.fromkeys(("credits_granted", "credits_charged"), no_credits),
        }
    group = draw_groups(config, count) if options is None else given_groups(options, count)
    requested_s = np.where(np.isnan(workload.requested_s), workload.run_s, workload.requested_s)
    jobs = {"nodes": workload.size, "requested_h": requested_s / HOUR_S, "user": workload.user, "group": group}
    asked = asks(config, jobs)
    paid = charge(config, asked, workload.user, requested_s / HOUR_S * workload.size)
    return {
        "user": workload.user.copy(),
        "recovery_group": group,
        "recovery_asked": asked,
        "recovery_option": paid.option,
        "credits_granted": paid.grant,
        "credits_charged": paid.cost,
    }
