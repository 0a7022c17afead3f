"""Which jobs of a workload wait for others, as a list of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.simcore.model.dtypes import as_dtype
from numpy.typing import NDArray

from faultsweep.errors import InputError

PAIRS = ("waits", "after", "think_s")
"""What the arrays of Dependencies are called beside those of jobs."""


@dataclass(frozen=True)
class Dependencies:
    """Jobs that start only when others have ended: arrays of shape (pairs,), in order of ``job``.

    Attributes
    ----------
    job : int64, index of the job that waits.
    after : int64, index of a job that must have ended, < ``job``.
    think_s : float64, time from that end until the job may start, >= 0.
    """

    job: NDArray[np.int64]
    after: NDArray[np.int64]
    think_s: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Take arrays of other whole numbers and floats."""
        for name, dtype in (("job", np.int64), ("after", np.int64), ("think_s", np.float64)):
            object.__setattr__(self, name, as_dtype(getattr(self, name), dtype))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.job)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names of PAIRS."""
        return dict(zip(PAIRS, (self.job, self.after, self.think_s), strict=True))

    def taken(self, rows: NDArray[np.int64], group: NDArray[np.int64] | None = None) -> Dependencies | None:
        """Return the pairs among the jobs of ``rows`` (indices); None if there are none.

        A job may be there several times, in different groups (one for each job; all are in one if not given): then
        pairs are within a group. A pair whose jobs have changed their order is left out.
        """
        group = np.zeros(len(rows), np.int64) if group is None else group
        begin, end = (np.searchsorted(self.job, rows, side) for side in ("left", "right"))
        job = np.repeat(np.arange(len(rows)), end - begin)
        if not len(job):
            return None
        pair = np.arange(len(job)) + np.repeat(end - np.cumsum(end - begin), end - begin)
        count = int(max(rows.max(), self.after.max())) + 1
        places = group * count + rows
        order = np.argsort(places)
        wanted = group[job] * count + self.after[pair]
        found = np.minimum(np.searchsorted(places, wanted, sorter=order), len(rows) - 1)
        after = order[found]
        kept = (places[after] == wanted) & (after < job)
        return Dependencies(job[kept], after[kept], self.think_s[pair][kept]) if kept.any() else None


def dependencies_of(
    job: NDArray[np.int64], after: NDArray[np.int64], think_s: NDArray[np.float64]
) -> Dependencies | None:
    """Return pairs in order; None without any. A think time below 0 is 0."""
    order = np.lexsort((after, job))
    think_s = np.maximum(think_s[order], 0.0)
    return Dependencies(job[order], after[order], think_s) if len(order) else None


def check_dependencies(name: str, dependencies: Dependencies, job_ids: NDArray[np.int64]) -> None:
    """Raise InputError, naming the job, unless the pairs are what Dependencies has; ``name`` is the workload's."""
    job, after, think_s = dependencies.job, dependencies.after, dependencies.think_s
    arrays = [array for array in (job, after, think_s) if isinstance(array, np.ndarray)]
    if [(array.dtype.kind, array.ndim) for array in arrays] != [("i", 1), ("i", 1), ("f", 1)] or not (
        len(job) == len(after) == len(think_s)
    ):
        raise InputError(f"{name}: dependencies: expected three arrays of one length, of indices, indices and seconds")
    if len(job) and (job.min() < 0 or job.max() >= len(job_ids) or (np.diff(job) < 0).any()):
        raise InputError(f"{name}: dependencies: expected indices of its {len(job_ids)} jobs in rising order")
    for bad, problem in (
        ((after < 0) | (after >= job), "follows job {after}, which is no earlier one (an index below its own)"),
        (~((think_s >= 0) & np.isfinite(think_s)), "has a think time of {think} s (valid: 0 or more)"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            told = problem.format(after=int(after[row]), think=f"{think_s[row]:g}")
            raise InputError(f"{name}: dependencies: job {job_ids[job[row]]} {told}")
