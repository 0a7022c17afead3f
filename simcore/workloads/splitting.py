"""Splitting one log over clusters: to which cluster's queue each job is submitted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from faultsweep.simcore.model.workload import Workload, take
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

SPLITS = {
    "random": "Clusters are drawn, in proportion to their nodes.",
    "round-robin": "Clusters take jobs in turn.",
    "user": "Each user has a cluster.",
    "overlay": "Consecutive parts of the log, one for each cluster, are laid over each other.",
}

_DAY_S = 86400.0


def split_over(
    workload: Workload, clusters: tuple[int, ...], split: str = "random", seed: int = 0, replicate: int = 0
) -> Workload:
    """Return the workload with the cluster that each job is submitted to, its ``home``.

    Parameters
    ----------
    workload : sizes in nodes, none larger than the largest cluster; one that has homes keeps them.
    clusters : nodes of each cluster.
    split : "random" draws clusters in proportion to their nodes, "round-robin" takes them in turn, "user" gives each
        user one. "overlay" cuts the log into consecutive parts, one for each cluster and as many jobs as it has nodes,
        and lets all begin on the day on which the first begins: each keeps its times of day, and the clusters together
        are as loaded as one of them would be by its part.

    A job that its cluster cannot hold goes to the next one that can, if there is one.
    """
    sizes = np.array(clusters, np.int64)
    if workload.home is not None:
        return _with_homes(workload, sizes, workload.home)
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    if split == "overlay":
        return _overlay(workload, sizes)
    share = np.cumsum(sizes) / sizes.sum()
    count = len(workload)
    if split == "random":
        home = np.searchsorted(share, stream(seed, replicate, "clusters/home").random(count), side="right")
    elif split == "round-robin":
        home = np.arange(count) % len(sizes)
    else:
        home = np.searchsorted(share, _of_users(workload.user), side="right")
    return _with_homes(workload, sizes, home.astype(np.int64))


def _of_users(user: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) of each user, equal for equal users, of shape (jobs,): the golden-ratio sequence."""
    return np.asarray((user + 1) * 0.6180339887498949 % 1.0, np.float64)


def _overlay(workload: Workload, sizes: NDArray[np.int64]) -> Workload:
    """Lay consecutive parts of a log over each other, a part for each cluster."""
    ends = np.floor(len(workload) * np.cumsum(sizes) / sizes.sum() + 0.5).astype(np.int64)
    home = np.searchsorted(ends, np.arange(len(workload)), side="right")
    first = workload.submit_s[np.minimum(np.concatenate([[0], ends[:-1]]), len(workload) - 1)]
    days_s = np.floor((first - first[0]) / _DAY_S) * _DAY_S
    submit = workload.submit_s - days_s[home]
    order = np.lexsort((np.arange(len(workload)), submit))
    return _with_homes(take(replace(workload, submit_s=submit), order), sizes, home[order])


def _with_homes(workload: Workload, sizes: NDArray[np.int64], home: NDArray[np.int64]) -> Workload:
    """Return the workload with homes, each moved on to the next cluster that holds the job."""
    outside = np.flatnonzero((home < 0) | (home >= len(sizes)))
    if len(outside):
        job = int(outside[0])
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]} is submitted to cluster {home[job]}, but there are "
            f"{len(sizes)} (numbered from 0)"
        )
    home = home.copy()
    for _ in range(len(sizes)):
        home = np.where(sizes[home] < workload.size, (home + 1) % len(sizes), home)
    return replace(workload, home=home)
