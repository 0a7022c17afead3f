"""Requested times: users ask for a few round values, often much more than the job needs."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.workloads.tables import TABLES
from numpy.typing import NDArray


def requested_times(run_s: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a requested time in seconds for each run time.

    The popular values and how often each is asked for, by class of run time, are those of the SDSC SP2 log. A request
    is never below the run time; jobs longer than the longest popular value ask for the next whole hour.

    Parameters
    ----------
    run_s : run times, shape (jobs,).
    u : uniform in [0, 1), shape (jobs,).
    """
    table = TABLES["requested-times"]
    values = np.array(table["values_s"])
    weights = np.array(table["weights"], np.float64)
    cumulative = np.concatenate((np.zeros((len(weights), 1)), weights.cumsum(axis=1)), axis=1)
    row = np.searchsorted(table["run_limits_s"], run_s, side="left")
    first = np.searchsorted(values, run_s, side="left")  # the first value that is long enough
    below, total = cumulative[row, first], cumulative[row, -1]
    target = below + u * (total - below)
    choice = (cumulative[row, 1:] <= target[:, None]).sum(axis=1)
    popular = (first < len(values)) & (below < total)
    return np.where(popular, values[np.minimum(choice, len(values) - 1)], np.ceil(run_s / 3600) * 3600)
