"""Means with confidence intervals over replicates, paired differences, and where a scheduler saturates.

Cells that are copies (the result of an equal configuration, stored again) are one observation together with the cell
they copy: they never make an interval narrower, and there is no interval of zero width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.open import COPIES, is_one_of
from numpy.typing import NDArray
from scipy import stats

from faultsweep.errors import InputError, unknown_name

REPLICATE = "replicate"


METHODS = ("t", "bootstrap")
_RESAMPLES = 2000
_MOST_NUMBERS = 20_000_000  # that are resampled at once


def mean_interval(
    values: xr.DataArray, status: xr.DataArray | None = None, level: float = 0.95, method: str = "t"
) -> xr.Dataset:
    """Return the mean over replicates with its interval.

    Parameters
    ----------
    values : a metric with the dimension ``replicate``; NaN where there is no result.
    status : the store's status of the same cells, to count copies once; without it each value counts.
    level : the confidence level.
    method : "t", Student's, exact for normal replicates; or "bootstrap", bias-corrected and accelerated (Efron 1987),
        of 2,000 resamples with a seed of its own, which follows skewed replicates but needs twenty or more of them.

    Returns
    -------
    ``mean``, ``low``, ``high`` and ``n`` (independent observations) without the dimension ``replicate``. The bounds are
    NaN where there are fewer than two independent observations, or where all are equal: equal results say nothing about
    how far others would spread.
    """
    counted, total = _observations(values, status)
    return _interval(counted, total, level, values.attrs, method)


def paired_difference(
    values: xr.DataArray,
    along: str,
    baseline: object,
    status: xr.DataArray | None = None,
    level: float = 0.95,
    relative: bool = False,
    method: str = "t",
) -> xr.Dataset:
    """Return the mean over replicates of the difference to a baseline on the same axis, with its interval.

    Replicates of one number see the same jobs and the same failures under all policies (common random numbers), so the
    difference is taken replicate by replicate, which removes what they have in common.

    Parameters
    ----------
    values, status, level, method : as of ``mean_interval``.
    along, baseline : the axis, and the label on it that the others are compared to.
    relative : whether each difference is divided by the baseline's value of its replicate.
    """
    if along not in values.dims:
        raise unknown_name("axis", along, map(str, values.dims))
    if baseline not in values[along].values:
        raise unknown_name(f"value of {along}", baseline, map(str, values[along].values))
    reference = values.sel({along: baseline}, drop=True)
    difference = values - reference
    if relative:
        difference = difference / reference
    counted, total = _observations(values, status, reference)
    return _interval(difference.where(counted.notnull()), total, level, {} if relative else values.attrs, method)


def count_observations(values: xr.DataArray, status: xr.DataArray | None = None) -> xr.DataArray:
    """Return how many independent observations there are along ``replicate``: the ``n`` of ``mean_interval``."""
    return _observations(values, status)[1]


def _observations(
    values: xr.DataArray, status: xr.DataArray | None, paired: xr.DataArray | None = None
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the values with repeated copies as NaN, and how many are left along ``replicate``.

    A copy is recognised as the same observation as another replicate by its value (of a pair: both values), which
    independent replicates of a simulation do not share to the last bit.
    """
    if REPLICATE not in values.dims:
        values = values.expand_dims(REPLICATE, axis=-1)
    copies = None if status is None else is_one_of(status, COPIES)
    if copies is not None and bool(copies.any()):
        keys = [values] if paired is None else [values, paired]
        if REPLICATE not in copies.dims:
            copies = copies.expand_dims(REPLICATE, axis=-1)
        repeated = xr.apply_ufunc(
            _repeated,
            copies,
            *keys,
            input_core_dims=[[REPLICATE]] * (len(keys) + 1),
            output_core_dims=[[REPLICATE]],
            vectorize=True,
            output_dtypes=[bool],
        )
        values = values.where(~repeated)
    return values, values.notnull().sum(REPLICATE)


def _repeated(copies: NDArray[np.bool_], *keys: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which replicates repeat, as copies, the observation of another one; all of shape (replicates,)."""
    seen = {tuple(key[i] for key in keys) for i in range(len(copies)) if not copies[i]}
    repeated = np.zeros(len(copies), dtype=bool)
    for i in np.flatnonzero(copies):
        observation = tuple(key[i] for key in keys)
        repeated[i] = observation in seen
        seen.add(observation)
    return repeated


def _interval(
    values: xr.DataArray, n: xr.DataArray, level: float, attributes: Mapping[Any, Any], method: str
) -> xr.Dataset:
    if not 0 < level < 1:
        raise InputError(f"level: expected a number between 0 and 1, got {level!r}")
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    rows, count = values.transpose(*n.dims, REPLICATE).values.astype(float), n.values
    with np.errstate(invalid="ignore", divide="ignore"):  # where there is no observation, or one
        mean = np.nansum(rows, -1) / count
        different = (count > 1) & (np.fmax.reduce(rows, -1) != np.fmin.reduce(rows, -1))
        if method == "t":
            spread = np.sqrt(np.nansum((rows - mean[..., None]) ** 2, -1) / (count - 1))
            half = stats.t.ppf((1 + level) / 2, np.maximum(count - 1, 1)) * spread / np.sqrt(count)
            low, high = np.where(different, mean - half, np.nan), np.where(different, mean + half, np.nan)
        else:
            low, high = _bootstrap(np.where(different[..., None], rows, np.nan), level)
    bounds = {"mean": mean, "low": low, "high": high}
    parts = {name: (n.dims, part, dict(attributes)) for name, part in bounds.items()}
    return xr.Dataset({**parts, "n": (n.dims, count)}, n.coords)


def _bootstrap(values: NDArray[np.float64], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of bootstrap intervals, cells with equally many observations at once."""
    shape = values.shape[:-1]
    rows = np.sort(values.reshape(-1, values.shape[-1]), axis=-1)  # NaN stands last
    counts = np.isfinite(rows).sum(-1)
    bounds = np.full((2, len(rows)), np.nan)
    for count in np.unique(counts[counts > 1]):
        cells = np.flatnonzero(counts == count)
        step = max(1, _MOST_NUMBERS // (_RESAMPLES * int(count)))
        for start in range(0, len(cells), step):
            part = cells[start : start + step]
            found = stats.bootstrap(
                (rows[part, :count],),
                np.mean,
                axis=-1,
                confidence_level=level,
                n_resamples=_RESAMPLES,
                rng=np.random.default_rng(0),
            ).confidence_interval
            bounds[:, part] = found.low, found.high
    return bounds[0].reshape(shape), bounds[1].reshape(shape)


def saturation(utilisation: xr.DataArray, along: str = "load_scale") -> xr.Dataset:
    """Return the saturation utilisation: the highest mean utilisation that is reached at any load.

    Below saturation a heavier load raises the utilisation in proportion; at saturation it only lengthens the queue, and
    the curve of waits or slowdowns against utilisation turns vertical (krevat2003, ch. 5). The highest utilisation is
    where it does, if the loads go far enough.

    Parameters
    ----------
    utilisation : utilised capacity, with the numeric dimension ``along`` in ascending order, and replicates or not.
    along : the axis of loads, to which the offered work is proportional.

    Returns
    -------
    ``saturation`` (the utilisation), ``load`` (where it is reached), and ``reached``: whether over the last quarter of
    the loads, and at least one step, the utilisation grew less than half as fast as the load. Where it is False, the
    true saturation is at least the given one.
    """
    if along not in utilisation.dims:
        raise unknown_name("axis", along, map(str, utilisation.dims))
    mean = utilisation.mean(REPLICATE) if REPLICATE in utilisation.dims else utilisation
    load = mean[along]
    count = load.size
    if count < 2:
        raise InputError(f"{along}: saturation needs two loads or more, got {count}")
    start = min(count - 2, int(0.75 * (count - 1)))
    growth = np.log(mean.isel({along: -1}, drop=True) / mean.isel({along: start}, drop=True))
    offered = np.log(float(load[-1]) / float(load[start]))
    best = mean.fillna(-1).argmax(along)
    result = xr.Dataset(
        {
            "saturation": mean.max(along),
            "load": load.isel({along: best}).drop_vars(along).where(mean.notnull().any(along)),
            "reached": growth < 0.5 * offered,
        }
    )
    result["saturation"].attrs = {"units": "1", "long_name": "Saturation utilisation"}
    return result
