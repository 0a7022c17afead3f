"""Means with confidence intervals over replicates, paired ratios and differences, and where a scheduler saturates.

Cells that are copies (the result of an equal configuration, stored again) are one observation together with the cell
they copy: they never make an interval narrower, and there is no interval of zero width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.sweeps.intervals import (
    FRACTIONS,
    SCALES,
    TOLERANCE,
    choose_scales,
    coverage_of,
    differ,
    log_spread,
    mean_bounds,
    moments,
    repeated_copies,
    scaled,
)
from faultsweep.sweeps.open import COPIES, is_one_of, label_on
from numpy.typing import NDArray

from faultsweep.arguments import LABEL, TEXT, TRUTH, Kind, instance, takes
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import OptionalModule

stats = OptionalModule("scipy.stats", "a confidence interval")

REPLICATE = "replicate"
ARRAY = instance(xr.DataArray, "an xarray DataArray")
"""What is given as values of a metric."""


def _read_status(value: Any) -> xr.DataArray:
    if not isinstance(value, xr.DataArray) or "flag_meanings" not in value.attrs:
        raise TypeError
    return value


STATUS = Kind("the status of results", _read_status)

METHODS = ("delta", "bootstrap")
FEWEST_BOOTSTRAPPED = 20
"""Observations from which on bootstrap intervals are made: of five they cover some 75 % where they promise 95."""
MOST_POINTS = 5
"""Observations up to which a figure shows the points themselves: an interval of so few says little more."""
OF_INTERVALS = frozenset(("mean", "low", "high", "n", "interval_scale", "interval_log_sd", "flagged", "replicates"))
_RANKED = {f"{of}{bound}" for of in ("ratio", "difference", "margin") for bound in ("", "_low", "_high")}
OF_TABLES = OF_INTERVALS | _RANKED | {"p", "as_good", "best", "next", "effect", "combinations", "of", "on_front"}
"""Columns of the tables that are made of results: no axis of such a table can have the name of one."""
_RESAMPLES = 2000
_MOST_NUMBERS = 20_000_000  # that are resampled at once


@takes(values=ARRAY, status=STATUS, method=TEXT, scale=TEXT)
def mean_interval(
    values: xr.DataArray,
    status: xr.DataArray | None = None,
    level: float = 0.95,
    method: str = "delta",
    scale: str = "auto",
) -> xr.Dataset:
    """Return the mean over replicates with its interval.

    Parameters
    ----------
    values : a metric with the dimension ``replicate``; NaN where there is no result.
    status : the store's status of the same cells, to count copies once; without it each value counts.
    level : the confidence level.
    method : "delta", by Student's quantile on the scale; or "bootstrap", bias-corrected and accelerated (Efron 1987),
        of 2,000 resamples with a seed of its own, where there are twenty observations or more.
    scale : one of ``intervals.SCALES``. "auto": the logit for metrics that are fractions; the identity where any of the
        values is negative; otherwise the logarithm of the mean in cells without zeros, and in others the identity with
        no bound below zero.

    Returns
    -------
    ``mean``, ``low``, ``high`` and ``n`` (independent observations) without the dimension ``replicate``, and the
    coordinates ``interval_scale`` and ``interval_log_sd`` (standard deviation of the logarithms), which
    ``interval_coverage`` and ``describe_intervals`` read. The bounds are NaN where there are fewer than two independent
    observations, or where all are equal: equal results say nothing about how far others would spread.
    """
    counted, total = _observations(values, status)
    return _interval(counted, total, level, values.attrs, method, scale)


@takes(values=ARRAY, along=TEXT, baseline=LABEL, status=STATUS, method=TEXT)
def paired_ratio(
    values: xr.DataArray,
    along: str,
    baseline: object,
    status: xr.DataArray | None = None,
    level: float = 0.95,
    method: str = "delta",
) -> xr.Dataset:
    """Return the ratio of the mean over replicates to that of a baseline on the same axis, with its interval.

    Replicates of one number see the same jobs and the same failures under all policies (common random numbers). The
    interval is made on the logarithm of the ratio, by the delta method on the pairs: what replicates have in common
    cancels (the log response ratio of Hedges, Gurevitch and Curtis, Ecology 80, 1999, here for pairs).

    Parameters
    ----------
    values, status, level, method : as of ``mean_interval``.
    along, baseline : the axis, and the label on it that the others are compared to.

    Returns
    -------
    As ``mean_interval`` does; ``mean`` is the ratio of the two means over the replicates that both have. There are no
    bounds where one of the two means is not positive.
    """
    return ratio_to(values, _baseline(values, along, baseline), status, level, method)


def ratio_to(
    values: xr.DataArray,
    reference: xr.DataArray,
    status: xr.DataArray | None = None,
    level: float | xr.DataArray = 0.95,
    method: str = "delta",
) -> xr.Dataset:
    """Return what ``paired_ratio`` does, of the means of ``reference``, which may have axes of its own.

    level : the confidence level, or one for each label of an axis.
    """
    counted, total = _observations(values.where(reference.notnull()), status, reference)
    quantile = (1 + _checked(level, total, method, "log")) / 2
    dims = (*total.dims, REPLICATE)
    rows = counted.transpose(*dims).values.astype(float)
    base = reference.where(counted.notnull()).transpose(*dims).values.astype(float)
    (mean, _, count), (base_mean, _, _) = moments(rows), moments(base)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = mean / base_mean
        parts = rows / mean[..., None] - base / base_mean[..., None]
        known = (mean > 0) & (base_mean > 0) & differ(parts, 1.0)
        factor = np.exp(stats.t.ppf(quantile, np.maximum(count - 1, 1)) * moments(parts)[1])
        low, high = np.where(known, ratio / factor, np.nan), np.where(known, ratio * factor, np.nan)
    if method == "bootstrap":
        chosen = known & (count >= FEWEST_BOOTSTRAPPED)
        _replace(low, high, chosen, _bootstrap((rows[chosen], base[chosen]), float(level)))
    spread = np.fmax(log_spread(rows), log_spread(base))
    return _dataset(total, {"mean": ratio, "low": low, "high": high}, {}, np.full(count.shape, "log"), spread)


@takes(values=ARRAY, along=TEXT, baseline=LABEL, status=STATUS, relative=TRUTH, method=TEXT)
def paired_difference(
    values: xr.DataArray,
    along: str,
    baseline: object,
    status: xr.DataArray | None = None,
    level: float = 0.95,
    relative: bool = False,
    method: str = "delta",
) -> xr.Dataset:
    """Return the mean over replicates of the difference to a baseline on the same axis, with its interval.

    Replicates of one number see the same jobs and the same failures under all policies (common random numbers), so the
    difference is taken replicate by replicate, which removes what they have in common.

    Parameters
    ----------
    values, status, level, method : as of ``mean_interval``; differences have intervals on the identity.
    along, baseline : the axis, and the label on it that the others are compared to.
    relative : whether it is the difference of the means as a share of the baseline's: ``paired_ratio`` less one.
    """
    if relative:
        found = paired_ratio(values, along, baseline, status, level, method)
        return found.assign({name: found[name] - 1 for name in ("mean", "low", "high")})
    return difference_to(values, _baseline(values, along, baseline), status, level, method)


def difference_to(
    values: xr.DataArray,
    reference: xr.DataArray,
    status: xr.DataArray | None = None,
    level: float | xr.DataArray = 0.95,
    method: str = "delta",
) -> xr.Dataset:
    """Return what ``paired_difference`` does, to the values of ``reference``, which may have axes of its own.

    level : the confidence level, or one for each label of an axis.
    """
    counted, total = _observations(values.where(reference.notnull()), status, reference)
    return _interval((values - reference).where(counted.notnull()), total, level, values.attrs, method, "identity")


def _baseline(values: xr.DataArray, along: str, baseline: object) -> xr.DataArray:
    if along not in values.dims:
        raise unknown_name("axis", along, map(str, values.dims))
    baseline = label_on(values, along, baseline)
    if baseline not in values[along].values:
        raise unknown_name(f"value of {along}", baseline, map(str, values[along].values))
    return values.sel({along: baseline}, drop=True)


def interval_coverage(found: xr.Dataset, level: float = 0.95) -> xr.DataArray:
    """Return how often intervals like these cover the truth, of log-normal replicates that spread as these do.

    ``found`` is of ``mean_interval``, ``paired_ratio`` or ``paired_difference``, at this level. The coverage is
    measured by simulation; NaN where there is no interval, or where some replicates are negative.
    """
    known = found["low"].notnull()
    n = found["n"].where(known, 0).values.astype(int)
    spread = np.broadcast_to(found["interval_log_sd"].values, n.shape)
    scale = np.broadcast_to(found["interval_scale"].values, n.shape)
    return known.copy(data=coverage_of(n, spread, level, scale)).drop_attrs()


def describe_intervals(found: xr.Dataset, level: float = 0.95) -> str:
    """Return what intervals are, for a caption: "95 % confidence intervals", or that they are approximate.

    They are called approximate, with the lowest measured coverage, where it is two points of a hundred off the level
    or more: for 95 %, outside 93 to 97 %. Of numbers some of which are negative, it is not measured.
    """
    name = f"{100 * level:g}\u00a0% confidence intervals"
    coverage = interval_coverage(found, level).values
    unknown = bool((np.isnan(coverage) & found["low"].notnull().values).any())
    coverage = coverage[np.isfinite(coverage)]
    if not len(coverage) or bool(np.all(np.abs(coverage - level) <= TOLERANCE)):
        return f"{name} (coverage not measured where some are negative)" if unknown else name
    return f"approximate {name} (measured coverage {100 * coverage.min():.0f}\u00a0% where replicates spread most)"


def check_axes(axes: Iterable[Any], taken: Iterable[str] = OF_TABLES) -> None:
    """Raise InputError, with the way out, if an axis has the name of a column of a table that is made of results."""
    for axis in map(str, axes):
        if axis in taken:
            raise InputError(
                f"{axis}: the table of results has a column of this name, so an axis cannot have this name; in Python, "
                f"results.rename({axis}=...) renames the axis"
            )


def observations(values: xr.DataArray, status: xr.DataArray | None = None) -> xr.DataArray:
    """Return the values along ``replicate`` with repeated copies as NaN: the points that a mean is made of."""
    return _observations(values, status)[0]


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
    check_axes(values.dims, OF_INTERVALS)
    if REPLICATE not in values.dims:
        values = values.expand_dims(REPLICATE, axis=-1)
    copies = None if status is None else is_one_of(status, COPIES)
    if copies is not None and bool(copies.any()):
        keys = [values] if paired is None else [values, paired]
        if REPLICATE not in copies.dims:
            copies = copies.expand_dims(REPLICATE, axis=-1)
        repeated = xr.apply_ufunc(
            repeated_copies,
            copies,
            *keys,
            input_core_dims=[[REPLICATE]] * (len(keys) + 1),
            output_core_dims=[[REPLICATE]],
            vectorize=True,
            output_dtypes=[bool],
        )
        values = values.where(~repeated)
    return values, values.notnull().sum(REPLICATE)


def _checked(level: float | xr.DataArray, n: xr.DataArray, method: str, scale: str) -> Any:
    """Return the confidence level, or that of each cell of ``n``, if it and the names are valid."""
    is_number = isinstance(level, int | float | np.number | xr.DataArray)
    if not is_number or not np.all((np.asarray(level) > 0) & (np.asarray(level) < 1)):
        raise InputError(f"level: expected a number between 0 and 1, got {level!r}")
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    if scale not in ("auto", *SCALES):
        raise unknown_name("scale", scale, ("auto", *SCALES))
    return level.broadcast_like(n).transpose(*n.dims).values if isinstance(level, xr.DataArray) else level


def _interval(
    values: xr.DataArray,
    n: xr.DataArray,
    level: float | xr.DataArray,
    attributes: Mapping[Any, Any],
    method: str,
    scale: str,
) -> xr.Dataset:
    levels = _checked(level, n, method, scale)
    rows = values.transpose(*n.dims, REPLICATE).values.astype(float)
    mean, _, count = moments(rows)
    scales = choose_scales(rows, values.name in FRACTIONS) if scale == "auto" else np.full(mean.shape, scale)
    low, high = mean_bounds(rows, levels, scales)
    if method == "bootstrap":
        chosen = differ(rows) & (count >= FEWEST_BOOTSTRAPPED)
        _replace(low, high, chosen, _bootstrap((rows[chosen],), float(level)))
    return _dataset(n, {"mean": mean, "low": low, "high": high}, attributes, scales, log_spread(rows))


def _replace(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    low[chosen], high[chosen] = bounds


def _dataset(
    n: xr.DataArray,
    bounds: Mapping[str, NDArray[np.float64]],
    attributes: Mapping[Any, Any],
    scale: NDArray[np.str_],
    log_sd: NDArray[np.float64],
) -> xr.Dataset:
    parts = {name: (n.dims, part, dict(attributes)) for name, part in bounds.items()}
    # coordinates, because who multiplies by a unit means the bounds, and not these
    marks = {"interval_scale": (n.dims, scale), "interval_log_sd": (n.dims, log_sd)}
    return xr.Dataset({**parts, "n": (n.dims, n.values)}, {**n.coords, **marks})


def _bootstrap(samples: Sequence[NDArray[np.float64]], level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of bootstrap intervals of means, or of ratios of two paired means, shape (cells,).

    Samples have shape (cells, replicates), with NaN in the same places; cells with equally many observations are
    resampled at once.
    """
    gaps = np.argsort(np.isnan(samples[0]), axis=-1, kind="stable")  # observations first
    rows = [np.take_along_axis(sample, gaps, axis=-1) for sample in samples]
    counts = np.isfinite(rows[0]).sum(-1)
    bounds = np.full((2, len(counts)), np.nan)
    for count in np.unique(counts):
        cells = np.flatnonzero(counts == count)
        step = max(1, _MOST_NUMBERS // (_RESAMPLES * int(count)))
        for start in range(0, len(cells), step):
            part = cells[start : start + step]
            found = stats.bootstrap(
                tuple(scaled(row[part, :count])[0] for row in rows),
                np.mean if len(rows) == 1 else _mean_ratio,
                axis=-1,
                paired=len(rows) > 1,
                vectorized=True,
                confidence_level=level,
                n_resamples=_RESAMPLES,
                rng=np.random.default_rng(0),
            ).confidence_interval
            bounds[:, part] = found.low, found.high
    power = np.subtract(*(scaled(sample)[1] for sample in samples)) if len(samples) > 1 else scaled(samples[0])[1]
    return np.ldexp(bounds[0], power), np.ldexp(bounds[1], power)


def _mean_ratio(one: NDArray[np.float64], other: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    return np.mean(one, axis=axis) / np.mean(other, axis=axis)


@takes(utilisation=ARRAY, along=TEXT)
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
