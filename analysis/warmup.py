"""Whether a mean is that of a steady run: warm-up deletion, and the tail of a run that is saturated.

Warm-up is deleted by MSER-5 (White, Cobb and Spratt, A comparison of five steady-state truncation heuristics for
simulation, 2000): of all numbers of first batches of five that can be deleted, it deletes the one that leaves the
smallest standard error of the mean. Where that number is in the second half the run has no steady part.

Beyond saturation jobs come faster than they can be run: the queue grows until the last one is submitted, and then a
tail of the run works it off. The mean wait is then a property of the length of the log, not of the policy.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from faultsweep.analysis.open import is_one_of, open_all_jobs
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.simcore.errors import InputError, unknown_name
from numpy.typing import NDArray

BATCH = 5
FEWEST_BATCHES = 10
LONGEST_TAIL = 0.1
"""Share of a run after the last submission above which it counts as saturated: jobs came 11 % faster than they ran."""
TAIL_METRICS = ("utilisation", "offered_load")


def warm_up(values: NDArray[np.float64], batch: int = BATCH) -> tuple[int, bool]:
    """Return how many of the first values are warm-up, and whether what follows is steady.

    Parameters
    ----------
    values : shape (n,), in the order in which they came about, such as the waits of jobs in the order of submission.
    batch : values of a batch; what does not fill the last one counts with none.

    Returns
    -------
    The number of values to delete, a multiple of ``batch``. Not steady, (0, False), if the best number is beyond the
    first half, or if there are fewer than ten batches.
    """
    batches = len(values) // batch
    if batches < FEWEST_BATCHES:
        return 0, False
    means = values[: batches * batch].reshape(batches, batch).mean(1)
    left = np.arange(batches, 0, -1)
    centred = means - means.mean()  # so that squares of large means do not cancel
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = np.maximum(squares - sums**2 / left, 0) / left.astype(float) ** 2
    best = int(np.argmin(error[: batches - FEWEST_BATCHES // 2]))  # a handful of batches is steady by chance
    return (best * batch, True) if best <= batches // 2 else (0, False)


def steady_means(data: xr.Dataset, column: str = "wait_s") -> xr.Dataset:
    """Return the means of a per-job result after warm-up, of every cell of a sweep with ``keep_jobs = true``.

    Parameters
    ----------
    data : results opened by ``open_results``, or a selection of them.
    column : a per-job result; jobs that did not finish do not count.

    Returns
    -------
    Over the axes of ``data``: ``mean`` (of all jobs where the run is not steady), ``deleted`` (the share of the jobs
    that is warm-up) and ``steady``.

    Raises
    ------
    InputError
        The store has no per-job results, or not this one.
    """
    if "jobs_offset" not in data:
        raise InputError("no per-job results (the spec needs keep_jobs = true)")
    offset, length = data["jobs_offset"].values, data["jobs_length"].values
    jobs = open_all_jobs(data)
    if column not in jobs:
        raise unknown_name("per-job result", column, map(str, jobs.data_vars))
    found = {name: np.full(offset.shape, np.nan) for name in ("mean", "deleted")}
    steady = np.zeros(offset.shape, bool)
    for cell in np.argwhere((offset >= 0) & (length > 0)):
        at = tuple(cell)
        rows = slice(int(offset[at]), int(offset[at] + length[at]))
        values = np.asarray(jobs[column][rows].values, float)
        values = values[np.isfinite(values)]
        if len(values):
            first, steady[at] = warm_up(values)
            found["mean"][at], found["deleted"][at] = values[first:].mean(), first / len(values)
    dims = data["jobs_offset"].dims
    return xr.Dataset({name: (dims, part) for name, part in {**found, "steady": steady}.items()}, data["status"].coords)


def tail_share(data: xr.Dataset) -> xr.DataArray | None:
    """Return which share of each run came after the last submission, None if the store cannot tell.

    Utilisation is work over nodes and the whole run, offered load the same work over nodes and the span of the
    submissions: their ratio is the share of the span. Work of jobs that did not finish counts as still to be done.
    """
    if not all(name in data for name in TAIL_METRICS):
        return None
    return 1 - data["utilisation"] / data["offered_load"]


def unsteady(data: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Return which cells are saturated, by the tail of their runs, and which were truncated; without ``replicate``.

    A configuration is if most of its replicates are.
    """
    truncated = is_one_of(data["status"], ("truncated", "truncated_copy"))
    tail = tail_share(data)
    saturated = xr.zeros_like(truncated) if tail is None else tail > LONGEST_TAIL
    known = is_one_of(data["status"], ("done", "copy", "truncated", "truncated_copy"))
    if REPLICATE in known.dims:
        count = known.sum(REPLICATE)
        return (saturated & known).sum(REPLICATE) > count / 2, (truncated & known).sum(REPLICATE) > count / 2
    return saturated & known, truncated
