"""Whether a mean is that of a steady run: warm-up deletion, and the tail of a run that is saturated.

Warm-up is deleted by MSER-5 (White, Cobb and Spratt, A comparison of five steady-state truncation heuristics for
simulation, 2000): of all numbers of first batches of five that can be deleted, it deletes the one that leaves the
smallest standard error of the mean. Where that number is in the second half the run has no steady part.

Beyond saturation jobs come faster than they can be run: the queue grows until the last one is submitted, and then a
tail of the run works it off. The mean wait is then a property of the length of the log, not of the policy.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.sweeps.open import RESULTS, check_results, is_one_of, open_all_jobs
from numpy.typing import NDArray

from faultsweep.arguments import NAMES, TEXT, takes
from faultsweep.errors import InputError, unknown_name

BATCH = 5
FEWEST_BATCHES = 10
LONGEST_TAIL = 0.1
"""Share of a run after the last submission above which it counts as saturated: jobs came 11 % faster than they ran."""
MOST_RUNS = 20_000
"""Runs whose jobs are read for a page or a picture."""
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


@takes(column=TEXT)
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
    check_results(data)
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


def column_of(data: xr.Dataset, metric: str) -> str:
    """Return the per-job result that a metric is the mean of, such as wait_s of mean_wait_s; "" if there is none."""
    column = metric.removeprefix("mean_")
    if "jobs_offset" not in data or column == metric:
        return ""
    try:
        return column if column in open_all_jobs(data) else ""
    except InputError:  # no run has finished yet
        return ""


@takes(metrics=NAMES)
def without_warm_up(data: xr.Dataset, metrics: Iterable[str]) -> xr.Dataset:
    """Return results whose metrics are means after warm-up, of all jobs where a run has no steady part.

    Parameters
    ----------
    data : results opened by ``open_results`` of a sweep with ``keep_jobs = true``, or a selection of them.
    metrics : means over jobs, such as mean_wait_s.

    Returns
    -------
    The data with these metrics replaced; the attribute ``warm_up`` of each says in a sentence what was deleted.

    Raises
    ------
    InputError
        The store has no per-job results, or a metric is no mean of one, or there are too many runs to be read.
    """
    check_results(data)
    for metric in metrics:
        column = column_of(data, metric)
        if not column:
            why = "it is no mean over jobs" if "jobs_offset" in data else "the spec needs keep_jobs = true"
            raise InputError(f"{metric}: warm-up cannot be deleted; {why}")
        if data[metric].size > MOST_RUNS:
            raise InputError(f"warm-up: {data[metric].size:,} runs, at most {MOST_RUNS:,} are read; select fewer")
        found = steady_means(data, column)
        known = data[metric].notnull()
        steady = found["steady"] & known
        values = found["mean"].where(steady, data[metric]).transpose(*data[metric].dims)
        shares = found["deleted"].values[steady.values]
        text = "Warm-up is deleted by MSER-5" + (
            f": {np.median(shares):.1%} of a run's jobs (median; at most {shares.max():.1%})." if len(shares) else "."
        )
        without = int(known.sum()) - len(shares)
        text += (
            f" {without:,} of {int(known.sum()):,} runs have no steady part; their means are of all jobs."
            if without
            else ""
        )
        data = data.assign({metric: values.assign_attrs(data[metric].attrs, warm_up=text)})
    return data


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
    check_results(data)
    status = data["status"]
    truncated = is_one_of(status, ("truncated", "truncated_copy")).values
    known = is_one_of(status, RESULTS).values
    tail = tail_share(data)
    saturated = known & (False if tail is None else tail.transpose(*status.dims).values > LONGEST_TAIL)
    if REPLICATE in status.dims:
        along = status.get_axis_num(REPLICATE)
        half = known.sum(along) / 2
        saturated, truncated = saturated.sum(along) > half, truncated.sum(along) > half
        status = status.isel({REPLICATE: 0}, drop=True)
    return xr.DataArray(saturated, status.coords, status.dims), xr.DataArray(truncated, status.coords, status.dims)
