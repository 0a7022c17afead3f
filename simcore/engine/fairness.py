"""What users, accounts, partitions and QOS got: waits, shares of the machine, and how equal users fared.

Gini's index of values is their mean absolute difference over twice their mean: 0 if all are equal, near 1 if one has
all (Gini 1912). Jain's index is (sum)^2 / (count x sum of squares): 1 if all are equal, 1 / count if one has all (Jain,
Chiu and Hawe, DEC-TR-301, 1984). Both are of the means of owners, whatever their numbers of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine.metrics import ratio
from faultsweep.simcore.model.workload import LABELS, NUMBERS, Label
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

OWNERS = ("user", *(label for label in LABELS if label not in ("array", "reservation", *NUMBERS)))
"""What jobs can be counted by."""

OWNER_METRICS = {
    "owner_jobs": "jobs",
    "owner_mean_wait_s": "mean_wait_s",
    "owner_mean_bounded_slowdown": "mean_bounded_slowdown",
    "owner_share": "share",
}
"""Metrics of one owner -> the columns of ``by_owner`` that they are."""

Floats = NDArray[np.float64]
Table = dict[str, NDArray[Any]]


def gini(values: Floats) -> float:
    """Return Gini's index of values of 0 or more, shape (n,); NaN of none, 0 if all are 0."""
    ordered = np.sort(values)
    count, total = len(ordered), float(ordered.sum())
    if not count or not total:
        return 0.0 if count else float("nan")
    ranks = 2.0 * np.arange(1, count + 1) - count - 1.0
    return float(np.sum(ranks * ordered)) / (count * total)


def jain(values: Floats) -> float:
    """Return Jain's index of values of 0 or more, shape (n,); NaN of none, 1 if all are 0."""
    squares = float(np.sum(values * values))
    if not len(values) or not squares:
        return 1.0 if len(values) else float("nan")
    return float(values.sum()) ** 2 / (len(values) * squares)


def fairness_metrics(
    jobs: Mapping[str, NDArray[Any]], owners: NDArray[np.int64], due: Floats | None = None
) -> dict[str, float]:
    """Return the metrics of fairness among the owners of jobs that finished; those of unknown owners are left out.

    jobs : per-job results.
    owners : of each job, -1 where unknown.
    due : the part of the machine's work that each owner should have got, shape (owners,); None if that is unknown.
    """
    known = (owners >= 0) & ~np.isnan(jobs["finish_s"])
    owner = np.unique(owners[known], return_inverse=True)[1].reshape(-1)
    found = {
        "gini_wait": gini(_means(owner, jobs["wait_s"][known])),
        "jain_bounded_slowdown": jain(_means(owner, jobs["bounded_slowdown"][known])),
    }
    if due is not None:
        served = np.bincount(owners[known], _served(jobs)[known], len(due))
        found["share_gap"] = share_gap(np.asarray(served, np.float64), due)
    return found


def share_gap(served: Floats, due: Floats) -> float:
    """Return what part of all that was served other owners should have got; NaN if nothing was."""
    total = float(served.sum())
    return float(np.abs(served / total - due).sum()) / 2.0 if total > 0 else float("nan")


def _means(owner: NDArray[np.int64], values: Floats) -> Floats:
    """Return the mean by owner; owners are numbered from 0 on."""
    return np.asarray(np.bincount(owner, values) / np.bincount(owner), np.float64)


def by_owner(jobs: Mapping[str, NDArray[Any]], owners: Mapping[str, Label], owner: str) -> Table:
    """Return what each user, account, partition or QOS got, in falling order of its part of the node-seconds.

    Parameters
    ----------
    jobs : per-job results.
    owners : what jobs can be counted by, as ``owners_of`` gives it.
    owner : one of OWNERS.

    Returns
    -------
    dict
        Arrays of a row for each owner: its name under ``owner`` ("" for jobs without one), ``jobs``, ``mean_wait_s``,
        ``mean_bounded_slowdown`` (of finished jobs, NaN without any) and ``share``: its part of the node-seconds that
        finished runs of jobs had up to the last submission, NaN if there are none, as where all jobs are submitted at
        one time. Later all jobs that are left are served, whatever the order.

    Raises
    ------
    InputError
        If the jobs have no such owner.
    """
    if owner not in OWNERS:
        raise unknown_name("owner of jobs", owner, OWNERS)
    label = owners.get(owner)
    if label is None:
        raise InputError(
            f"by: no job has a {owner} (the jobs have: {', '.join(owners) or 'none'}; num_users, num_accounts, "
            "num_partitions and num_qos draw them)"
        )
    codes = np.where(label.codes < 0, len(label.names), label.codes)
    count = len(label.names) + 1
    finished = ~np.isnan(jobs["finish_s"])
    served = np.bincount(codes[finished], _served(jobs)[finished], count)
    total, ended = np.bincount(codes, minlength=count), np.bincount(codes[finished], minlength=count)
    with np.errstate(invalid="ignore"):
        means = {
            f"mean_{name}": np.bincount(codes[finished], jobs[name][finished], count) / ended
            for name in ("wait_s", "bounded_slowdown")
        }
    share = np.array([ratio(each, float(served.sum())) for each in served.tolist()])
    table = {owner: np.array([*label.names, ""]), "jobs": total, **means, "share": share}
    rows = [row for row in np.argsort(-served, kind="stable").tolist() if total[row]]
    return {name: values[rows] for name, values in table.items()}


def owner_metrics(jobs: Mapping[str, NDArray[Any]], owners: Mapping[str, Label], named: str) -> dict[str, float]:
    """Return the metrics of the jobs of one owner, named as ``qos:high``.

    Raises
    ------
    InputError
        If no job has such an owner, or none of this name is known.
    """
    owner, _, name = named.partition(":")
    table = by_owner(jobs, owners, owner)
    if name not in owners[owner].names:
        raise unknown_name(owner, name, owners[owner].names, where="owner")
    row = np.flatnonzero(table[owner] == name)
    nothing = {"jobs": 0.0, "share": 0.0}
    return {
        metric: float(table[column][row[0]]) if len(row) else nothing.get(column, float("nan"))
        for metric, column in OWNER_METRICS.items()
    }


def _served(jobs: Mapping[str, NDArray[Any]]) -> Floats:
    """Return the node-seconds of the last run of each job up to the last submission; time for which it was suspended
    counts as spread evenly over the run."""
    until = np.minimum(jobs["finish_s"], jobs["submit_s"].max())
    span = jobs["finish_s"] - jobs["start_s"]
    ran = 1.0 - jobs.get("suspended_s", np.zeros(len(span))) / span
    return np.asarray(jobs["size"] * np.maximum(0.0, until - jobs["start_s"]) * ran, np.float64)


def owners_of(user: NDArray[np.int64], user_names: tuple[str, ...], labels: Mapping[str, Label]) -> dict[str, Label]:
    """Return what jobs can be counted by: their users, if some are known, and their labels."""
    if not (user >= 0).any():
        return dict(labels)
    numbers, codes = numbered(np.maximum(user, -1))
    unknown = int(numbers[0] < 0)
    names = [user_names[number] if number < len(user_names) else str(number) for number in numbers[unknown:].tolist()]
    return {"user": Label(codes - unknown, tuple(names)), **labels}


def numbered(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different values, ascending, and of each its position among them, as ``np.unique`` does.

    It does not sort where the values lie close together, as numbers of users do.
    """
    least = int(values.min(initial=0))
    width = int(values.max(initial=0)) - least + 1
    if width > 4 * len(values):
        numbers, codes = np.unique(values, return_inverse=True)
        return numbers, codes.reshape(-1)
    present = np.zeros(width, bool)
    present[values - least] = True
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[values - least]
