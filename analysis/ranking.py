"""Which policy is best, and whether that can be told: ranked tables under common random numbers.

The best one is chosen by the data, so all pairs are the family that is corrected for, not only the pairs with the best:
p-values by Holm's method, intervals by Bonferroni's. Differences are taken replicate by replicate.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import xarray as xr
from faultsweep.analysis.statistics import REPLICATE, mean_interval, paired_difference
from numpy.typing import NDArray
from scipy import stats

from faultsweep.errors import InputError, unknown_name

HIGHER_IS_BETTER = frozenset(
    {"utilisation", "unused_capacity", "migrations_per_attempt", "mean_time_between_failures_s"}
)
"""Metrics of which more is better; of all others less is."""


def holm(p: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number by Holm's step-down method; NaN stays NaN and does not count.

    An adjusted value of at most alpha holds for the whole family at once: the chance of any false one is at most alpha
    (Holm, A simple sequentially rejective multiple test procedure, 1979).
    """
    values = np.asarray(p, float)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    adjusted = np.full(values.shape, np.nan)
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted


def rank(
    values: xr.DataArray,
    along: str,
    status: xr.DataArray | None = None,
    level: float = 0.95,
    higher_is_better: bool = False,
) -> xr.Dataset:
    """Return the labels of an axis from best to worst, each with its difference to the best one.

    Parameters
    ----------
    values : a metric with the dimensions ``along`` and ``replicate``, and no other.
    along : the axis of the policies.
    status : the store's status of the same cells, to count copies once.
    level : of single intervals, and of all intervals of differences together.
    higher_is_better : whether the largest mean is the best.

    Returns
    -------
    Along ``along``, sorted, labels without a result left out: ``mean, low, high, n`` of each; ``difference,
    difference_low, difference_high`` to the best, with simultaneous intervals; ``p``, adjusted by Holm's method over
    all pairs, of the difference to the best being zero (NaN for the best, and where fewer than two pairs of
    replicates differ); and ``as_good``, whether the best cannot be told from it at this level.
    """
    if along not in values.dims:
        raise unknown_name("axis", along, map(str, values.dims))
    extra = [str(dim) for dim in values.dims if dim not in (along, REPLICATE)]
    if extra:
        raise InputError(f"rank: one table has one axis; choose a label of {', '.join(extra)}")
    single = mean_interval(values, status, level)
    labels = single[along].values[np.isfinite(single["mean"].values)]
    single = single.sel({along: labels})
    order = np.argsort(-single["mean"].values if higher_is_better else single["mean"].values, kind="stable")
    single = single.isel({along: order})
    values = values.sel({along: single[along].values})
    status = None if status is None else status.sel({along: single[along].values})
    return single.merge(_to_best(values, along, status, level))


def _to_best(values: xr.DataArray, along: str, status: xr.DataArray | None, level: float) -> xr.Dataset:
    """Return the differences to the first label with simultaneous intervals and adjusted p-values."""
    count = values.sizes[along]
    pairs = list(combinations(range(count), 2))
    together = 1 - (1 - level) / max(1, len(pairs))
    raw: dict[tuple[int, int], float] = {}
    first = paired_difference(values, along, values[along].values[0], status, together) if count else xr.Dataset()
    for base in range(count - 1):
        label = values[along].values[base]
        part = first if base == 0 else paired_difference(values, along, label, status, together)
        found = _p_values(part, together)
        raw |= {(base, other): found[other] for other in range(base + 1, count)}
    adjusted = dict(zip(pairs, holm([raw[pair] for pair in pairs]), strict=True))
    p = np.array([np.nan, *(adjusted[0, other] for other in range(1, count))])[:count]
    names = {"mean": "difference", "low": "difference_low", "high": "difference_high"}
    result = first[list(names)].rename(names) if count else first
    as_good = ~(p <= 1 - level)
    return result.assign(p=(along, p), as_good=(along, as_good))


def _p_values(found: xr.Dataset, level: float) -> NDArray[np.float64]:
    """Return the two-sided p-values of t intervals: that of the mean being zero."""
    n = found["n"].values
    quantile = stats.t.ppf((1 + level) / 2, np.maximum(n - 1, 1))
    error = (found["high"].values - found["mean"].values) / quantile
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(error), 2 * stats.t.sf(np.abs(found["mean"].values) / error, n - 1), np.nan)
