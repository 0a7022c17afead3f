"""Main effects and interactions of the axes of a sweep on a metric: how much each matters, and which matter together.

Like is compared with like: an axis' labels are averaged over those combinations of the other axes that have a result
for every label of it, so cells that are excluded or not there yet bias nothing.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import xarray as xr
from faultsweep.analysis.statistics import ARRAY, REPLICATE, check_axes, mean_interval
from faultsweep.sweeps.intervals import scaled
from numpy.typing import NDArray

from faultsweep.arguments import TEXT, takes
from faultsweep.errors import InputError, unknown_name


def varied(values: xr.DataArray) -> list[str]:
    """Return the axes of a metric that have more than one label, replicates aside."""
    return [str(dim) for dim in values.dims if dim != REPLICATE and values.sizes[dim] > 1]


@takes(values=ARRAY, axis=TEXT)
def main_effect(values: xr.DataArray, axis: str, level: float = 0.95) -> xr.Dataset:
    """Return what each label of an axis does to a metric, the other axes averaged over.

    Parameters
    ----------
    values : a metric over the axes of a sweep, with or without ``replicate``; NaN where there is no result.
    axis : whose effect it is.
    level : the confidence level.

    Returns
    -------
    Along ``axis``: ``mean``; ``effect``, the mean less the mean of all labels; ``low`` and ``high``, the t interval of
    the effect over replicates, which are paired (NaN with one replicate); and the scalars ``combinations`` (of the
    other axes that have a result for every label) and ``of`` (all).
    """
    if axis not in values.dims:
        raise unknown_name("axis", axis, map(str, values.dims))
    check_axes(values.dims)
    values = values if REPLICATE in values.dims else values.expand_dims(REPLICATE, -1)
    others = [dim for dim in values.dims if dim not in (axis, REPLICATE)]
    complete = values.notnull().all(axis)
    mean = values.where(complete).mean(others)
    effect = mean - mean.mean(axis)
    interval = mean_interval(effect, level=level, scale="identity")
    per_combination = complete.any(REPLICATE)
    return xr.Dataset(
        {
            "mean": mean.mean(REPLICATE).assign_attrs(values.attrs),
            "effect": interval["mean"].assign_attrs(values.attrs),
            "low": interval["low"],
            "high": interval["high"],
            "combinations": int(per_combination.sum()),
            "of": int(per_combination.size),
        }
    )


def binned_effect(
    values: xr.DataArray, axis: str, parameter: NDArray[np.float64], bins: int = 8, level: float = 0.95
) -> xr.Dataset:
    """Return how a metric follows a parameter of a sampled axis, over bins of equally many points.

    Parameters
    ----------
    values : a metric over the axes of a sweep; all but ``axis`` are averaged over, where every label has a result.
    axis : the sampled axis.
    parameter : the parameter's value at each point of it.
    bins : how many, at most; each has five points or more.
    level : of the t intervals of the means, over the points of a bin.

    Returns
    -------
    Along ``bin``: ``x``, the mean of the parameter, and ``mean, low, high, n``.
    """
    others = [dim for dim in values.dims if dim != axis]
    means = values.mean(others).values
    known = np.flatnonzero(np.isfinite(means))
    known = known[np.argsort(np.asarray(parameter)[known], kind="stable")]
    parts = [part for part in np.array_split(known, max(1, min(bins, len(known) // 5))) if len(part)]
    longest = max(map(len, parts), default=0)
    rows = np.full((len(parts), longest), np.nan)
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = means[part]
    found = mean_interval(xr.DataArray(rows, dims=("bin", REPLICATE)), level=level, scale="identity")
    return found.assign(x=("bin", [float(np.mean(np.asarray(parameter)[part])) for part in parts]))


@takes(values=ARRAY)
def variance_shares(values: xr.DataArray) -> dict[tuple[str, ...], float]:
    """Return which share of the variance between cells each axis explains, and each pair beyond its two axes.

    The classical decomposition of a full factorial with equal weights (first- and second-order Sobol indices of the
    grid); what is missing to 1 needs three axes or more. Means over replicates are decomposed, so their noise is in the
    shares too, mostly in those of pairs.

    Raises
    ------
    InputError
        No combination of labels is complete, so that there is nothing to decompose.
    """
    values = values.where(np.isfinite(values))  # an infinite result is left out, as one that is not there
    cells = values.mean(REPLICATE) if REPLICATE in values.dims else values
    axes = varied(cells)
    cells = _complete_part(cells.squeeze([dim for dim in cells.dims if dim not in axes]))
    cells = cells.copy(data=scaled(cells.values.astype(float).ravel())[0].reshape(cells.shape))
    total = float(cells.var())
    shares: dict[tuple[str, ...], float] = {}
    if not axes or total == 0:
        return {(axis,): 0.0 for axis in axes}
    means = {axis: cells.mean([dim for dim in axes if dim != axis]) for axis in axes}
    for axis in axes:
        shares[axis,] = float(means[axis].var()) / total
    for a, b in combinations(axes, 2):
        both = cells.mean([dim for dim in axes if dim not in (a, b)])
        shares[a, b] = float((both - means[a] - means[b] + cells.mean()).var()) / total
    return shares


def _complete_part(cells: xr.DataArray) -> xr.DataArray:
    """Return the part of a grid that has no gaps: labels with the most gaps are left out one after the other."""
    missing = cells.isnull().values
    keep = [np.ones(n, bool) for n in cells.shape]
    while missing[np.ix_(*keep)].any():
        part = missing[np.ix_(*keep)]
        worst: tuple[float, int, int] = (-1.0, 0, 0)
        for dim, rows in enumerate(keep):
            if rows.sum() > 1:
                gaps = part.mean(tuple(d for d in range(part.ndim) if d != dim))
                worst = max(worst, (float(gaps.max()), dim, int(np.flatnonzero(rows)[gaps.argmax()])))
        if worst[0] < 0:
            raise InputError("no combination of labels has all its results yet")
        keep[worst[1]][worst[2]] = False
    return cells.isel({dim: np.flatnonzero(rows) for dim, rows in zip(cells.dims, keep, strict=True)})
