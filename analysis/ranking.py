"""Which policy is best, and whether that can be told: ranked tables under common random numbers.

The best one is chosen by the data, so all pairs are the family that is corrected for, not only the pairs with the best:
p-values by Holm's method, and intervals at the levels of its steps. Ratios of means and differences are paired,
replicate by replicate. Of metrics that are never negative the ratio decides, of others the difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.statistics import ARRAY, REPLICATE, STATUS, difference_to, mean_interval, ratio_to
from faultsweep.sweeps.outputs import more_is_better
from faultsweep.sweeps.selection import HIGHER_IS_BETTER
from faultsweep.sweeps.store.opener import stored_spec
from numpy.typing import NDArray

from faultsweep.arguments import TEXT, TRUTH, takes
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import OptionalModule

stats = OptionalModule("scipy.stats", "a comparison of policies")


def higher_is_better(data: xr.Dataset, metric: str) -> bool:
    """Tell whether more of a metric is better: as the sweep declares it, or as it is of the simulator's metrics.

    Raises
    ------
    InputError
        It is a metric of a function of one's own, and neither the function nor the spec says so.
    """
    declared = str(data[metric].attrs.get("better", ""))
    if not declared:
        spec = stored_spec(data.attrs)
        declared = str(spec.get("better", {}).get(metric, ""))
    if not declared and data.attrs.get("target", "simulator") == "simulator":
        return metric in HIGHER_IS_BETTER
    return more_is_better(metric, declared)


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


def holm_levels(p: Sequence[float] | NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Return the level of the interval of each difference at which Holm's method tests it.

    Such an interval leaves out zero exactly where the adjusted p-value is at most 1 - ``level``. The smallest p-value
    has Bonferroni's level, and those behind the first one that is not significant have that one's.
    """
    values, alpha = np.asarray(p, float), 1 - level
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    left = np.arange(len(order), 0, -1)
    kept = np.flatnonzero(values[order] * left > alpha)
    levels = np.full(values.shape, 1 - alpha / max(1, len(values)))
    levels[order] = 1 - alpha / np.maximum(left, left[kept[0]] if len(kept) else 1)
    return levels


@takes(values=ARRAY, along=TEXT, status=STATUS, higher_is_better=TRUTH)
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
    level : of single intervals, and of all p-values and decisions together.
    higher_is_better : whether the largest mean is the best.

    Returns
    -------
    Along ``along``, sorted, labels without a result left out: ``mean, low, high, n`` of each; ``difference,
    difference_low, difference_high`` to the best and ``ratio, ratio_low, ratio_high``, with intervals at the levels of
    Holm's method (the ratios NaN where some value is negative); ``p``, adjusted by Holm's method over all pairs, of
    being equal to the best (NaN for the best, and where fewer than two pairs of replicates differ); and ``as_good``,
    whether the best cannot be told from it at this level.
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
    return single.merge(_to_best(values, along, status, level), compat="override", join="left")


def _to_best(values: xr.DataArray, along: str, status: xr.DataArray | None, level: float) -> xr.Dataset:
    """Return the ratios and differences to the first label with intervals and p-values that agree (Holm)."""
    labels = values[along].values
    if not len(labels):
        return xr.Dataset()
    pairs = list(combinations(range(len(labels)), 2))
    together = 1 - (1 - level) / max(1, len(pairs))
    signed = bool((values < 0).any())
    found = _p_of_pairs(values, along, status, together, signed)
    in_order = [found[pair] for pair in pairs]
    adjusted = dict(zip(pairs, holm(in_order), strict=True))
    p = np.array([np.nan, *(adjusted[0, other] for other in range(1, len(labels)))])
    levels = [together, *holm_levels(in_order, level)[: len(labels) - 1]]  # the pairs of the first label come first
    best, of_each = values.isel({along: 0}, drop=True), xr.DataArray(levels, {along: values[along]})
    parts: dict[str, xr.DataArray] = {}
    for name, interval in (("difference", difference_to), ("ratio", ratio_to)):
        each = interval(values, best, status, of_each)
        for bound in ("", "_low", "_high"):
            part = each["mean" if not bound else bound[1:]].drop_vars(_MARKS)
            parts[f"{name}{bound}"] = part.where(xr.DataArray(not signed)) if name == "ratio" else part
    return xr.Dataset(parts).assign(p=(along, p), as_good=(along, ~(p <= 1 - level)))


def _p_of_pairs(
    values: xr.DataArray, along: str, status: xr.DataArray | None, level: float, signed: bool
) -> NDArray[np.float64]:
    """Return the p-value of each pair of labels being equal, shape (labels, labels): of the ratio of their means, or
    where there is none, or some value is negative, of the difference."""
    count = values.sizes[along]
    found = np.full((count, count), np.nan)
    step = max(1, _AT_ONCE // max(1, values.size))
    for first in range(0, count, step):
        bases = values.isel({along: slice(first, first + step)}).rename({along: _BASE})
        rows = found[first : first + step]
        if not signed:
            ratio = ratio_to(values, bases, status, level).transpose(_BASE, along)
            with np.errstate(divide="ignore"):  # of a mean of zero
                logs = {name: np.log(ratio[name].values) for name in ("mean", "high")}
            rows[:] = _p_values(logs, ratio["n"].values, level)
        unknown = np.isnan(rows).sum(1) > 1  # a label and itself do not differ
        if unknown.any():
            difference = difference_to(values, bases.isel({_BASE: unknown}), status, level).transpose(_BASE, along)
            others = _p_values(difference, difference["n"].values, level)
            rows[unknown] = np.where(np.isnan(rows[unknown]), others, rows[unknown])
    return found


_BASE = "compared_to"
_AT_ONCE = 4_000_000  # numbers of pairs

_MARKS = ("interval_scale", "interval_log_sd")


def _p_values(found: Mapping[Any, Any], n: NDArray[np.int64], level: float) -> NDArray[np.float64]:
    """Return the two-sided p-values of t intervals: that of the mean being zero."""
    mean, high = (np.asarray(found[name]) for name in ("mean", "high"))
    error = (high - mean) / stats.t.ppf((1 + level) / 2, np.maximum(n - 1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(error), 2 * stats.t.sf(np.abs(mean) / error, n - 1), np.nan)
