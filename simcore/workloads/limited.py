"""Jobs that a limit of running jobs would never let start, or that may not use the reservation that they ask for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from faultsweep.simcore.model.limits import Rule, heeds
from faultsweep.simcore.model.nodes import NodeTable
from faultsweep.simcore.model.workload import Label, Workload, take
from faultsweep.simcore.workloads.transforms import from_origin
from numpy.typing import NDArray

from faultsweep.errors import InputError

NEVER_STARTS = "larger than a limit of running jobs"
NOT_ADMITTED = "not allowed to use its advance reservation"


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
    if not kept.any():
        raise InputError(f"{workload.name}: limits let none of the jobs start")
    return _without(workload, estimate_s, kept, NEVER_STARTS)


def _without(
    workload: Workload, estimate_s: NDArray[np.float64], kept: NDArray[np.bool_], why: str
) -> tuple[Workload, NDArray[np.float64]]:
    if kept.all():
        return workload, estimate_s
    dropped = {**workload.dropped, why: int((~kept).sum())}
    return from_origin(take(workload, kept, dropped=dropped)), estimate_s[kept]


def admitted(
    workload: Workload,
    estimate_s: NDArray[np.float64],
    owners: Mapping[str, Label],
    site: NodeTable,
    drops: bool,
) -> tuple[Workload, NDArray[np.float64]]:
    """Return jobs, and their estimates, without those that may not use the advance reservation that they ask for.

    Raises
    ------
    InputError
        If there are some and they are not to be dropped, or no job is left.
    """
    kept, asked = np.ones(len(workload), np.bool_), owners.get("reservation")
    for name, (users, accounts) in zip(site.window_names, site.admitted, strict=True):
        asks = _is_of(asked, (name,), len(workload))
        whose = ((owners.get("user"), users), (owners.get("account"), accounts))
        may = np.full(len(workload), bool(users or accounts))
        for label, names in whose:
            may &= _is_of(label, names, len(workload))
        bad = asks & ~may
        if bad.any() and not drops:
            job = int(np.argmax(bad))
            valid = f"users: {', '.join(users) or 'all'}; accounts: {', '.join(accounts) or 'all'}"
            valid = valid if users or accounts else "nobody, because it names no users or accounts"
            raise InputError(
                f"{workload.name}: job {workload.job_id[job]} asks for advance reservation {name!r} and may not use it "
                f"(valid: {valid}; size_map = drop leaves such jobs out)"
            )
        kept &= ~bad
    if not kept.any():
        raise InputError(f"{workload.name}: none of the jobs may use the advance reservation that it asks for")
    return _without(workload, estimate_s, kept, NOT_ADMITTED)


def _is_of(label: Label | None, names: tuple[str, ...], jobs: int) -> NDArray[np.bool_]:
    """Tell of each job whether it is of one of some names, or of none with - before it; all are if none is named."""
    if not names:
        return np.ones(jobs, np.bool_)
    if label is None:
        return np.zeros(jobs, np.bool_)
    of_name = [name in names or (names[0].startswith("-") and f"-{name}" not in names) for name in label.names]
    return np.array([*of_name, False])[label.codes]
