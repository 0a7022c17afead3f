"""Measures what a claim is about, in the results of its experiment: an estimate with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.claims.claim import Part
from faultsweep.analysis.statistics import REPLICATE, mean_interval, paired_difference, paired_ratio
from faultsweep.sweeps.intervals import FRACTIONS
from faultsweep.sweeps.open import open_jobs, unit_of
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name
from faultsweep.units import time_unit

_SIDE = "side"


@dataclass(frozen=True)
class Estimate:
    """A number with the bounds of its 95 % interval: equal to it where nothing is random, NaN where none can be made.

    ``text`` is how a table shows it; ``n`` how many independent replicates it is made of.
    """

    value: float
    low: float
    high: float
    n: int
    text: str


def measure(part: Part, data: xr.Dataset) -> Estimate:
    """Return the quantity of a part.

    Parameters
    ----------
    part : what is measured.
    data : the results of the experiment, of ``open_results``.

    Raises
    ------
    InputError
        The results do not have a metric, an axis or a label that the part names.
    """
    if part.jobs:
        value = _of_jobs(part, data)
        return Estimate(value, value, value, 1, _number(value))
    here = _values(part, data, part.at)
    if part.kind == "value":
        found = mean_interval(here)
    else:
        there = _values(part, data, {**part.at, **part.against})
        both = xr.concat([here, there], _SIDE, coords="minimal", compat="override")
        both = both.assign_coords({_SIDE: ["at", "against"]})
        compare = paired_ratio if part.kind == "change" else paired_difference
        found = compare(both, _SIDE, "against").sel({_SIDE: "at"})
        if part.kind == "change":
            found = found.assign({name: found[name] - 1 for name in ("mean", "low", "high")})
    value, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    if here.sizes.get(REPLICATE, 1) == 1:  # nothing is random, and nothing is repeated
        low = high = value
    unit = unit_of(data[part.metric])
    if (part.per and unit_of(data[part.per])) or "slope" in part.reduce.values():
        unit = ""
    return Estimate(value, low, high, int(found["n"]), _text(part, unit, value, low, high))


def _of_jobs(part: Part, data: xr.Dataset) -> float:
    column = open_jobs(data, **part.at)[part.metric].values.astype(float)
    return float(column.mean() if part.jobs == "mean" else column.std(ddof=1)) * part.scale


def _values(part: Part, data: xr.Dataset, at: Mapping[str, Any]) -> xr.DataArray:
    """Return the quantity in each replicate."""
    values = _select(data, part.metric, at)
    if part.per:
        values = (values / _select(data, part.per, at)).rename(part.metric)
    if part.where is not None:
        axis, metric, wanted = part.where
        values = _interpolate(values, _select(data, metric, at), axis, wanted)
    for axis, how in part.reduce.items():
        values = _reduce(values, axis, how)
    left = [str(dim) for dim in values.dims if dim != REPLICATE]
    if left:
        raise InputError(f"{part.label}: several values are left along {' and '.join(left)}; name a label of each")
    return values.rename(part.metric).reset_coords(drop=True) * part.scale


def _select(data: xr.Dataset, metric: str, at: Mapping[str, Any]) -> xr.DataArray:
    """Return a metric at labels; numbers may be off by a rounding error."""
    if metric not in data:
        raise unknown_name("metric", metric, map(str, data.data_vars))
    found = data[metric]
    for axis, label in at.items():
        if axis not in found.dims:
            raise unknown_name("axis", axis, map(str, found.dims))
        labels = found[axis].values
        rows = [_row(axis, labels, one) for one in (label if isinstance(label, list) else [label])]
        found = found.isel({axis: rows if isinstance(label, list) else rows[0]})
    return found


def _row(axis: str, labels: NDArray[Any], label: Any) -> int:
    number = isinstance(label, int | float) and not isinstance(label, bool) and labels.dtype.kind in "fiu"
    rows = np.flatnonzero(np.isclose(labels.astype(float), label) if number else labels.astype(str) == str(label))
    if not len(rows):
        raise unknown_name(f"value of {axis}", label, map(str, labels))
    return int(rows[0])


def _interpolate(values: xr.DataArray, metric: xr.DataArray, axis: str, wanted: float) -> xr.DataArray:
    """Return the values where the metric, which grows along the axis, first reaches a value; NaN where it does not."""

    def along(row: NDArray[np.float64], known: NDArray[np.float64]) -> float:
        reached = np.flatnonzero(known >= wanted)
        if not len(reached) or reached[0] == 0:
            return np.nan
        above = int(reached[0])
        share = (wanted - known[above - 1]) / (known[above] - known[above - 1])
        return float(row[above - 1] + share * (row[above] - row[above - 1]))

    return xr.apply_ufunc(along, values, metric, input_core_dims=[[axis], [axis]], vectorize=True)


def _reduce(values: xr.DataArray, axis: str, how: str) -> xr.DataArray:
    if how == "highest":
        return values.max(axis)
    if how == "lowest":
        return values.min(axis)
    if how == "mean":
        return values.mean(axis)
    if how == "slope":
        return _slope(values, axis)
    known = values.dropna(axis, how="all")
    return known.isel({axis: 0 if how == "first" else -1})


def _slope(values: xr.DataArray, axis: str) -> xr.DataArray:
    """Return the slope of the logarithm over that of the axis's numbers: 1 for proportional."""

    def fit(row: NDArray[np.float64], x: NDArray[np.float64]) -> float:
        known = np.isfinite(row) & (row > 0)
        return float(np.polyfit(np.log(x[known]), np.log(row[known]), 1)[0]) if known.sum() > 1 else np.nan

    return xr.apply_ufunc(fit, values, values[axis], input_core_dims=[[axis], [axis]], vectorize=True)


def _text(part: Part, unit: str, value: float, low: float, high: float) -> str:
    """Return the estimate as a table shows it: changes in percent, times in the unit that people read."""
    percent = part.kind == "change" or part.metric in FRACTIONS or part.metric.endswith("_ratio")
    factor, after = (100.0, " points" if part.kind == "difference" else " %") if percent else (1.0, "")
    if unit == "s" and not percent:
        name, seconds = time_unit(max(abs(value), *(abs(bound) for bound in (low, high) if np.isfinite(bound)), 0.0))
        factor, after = 1 / seconds, f" {name}"
    sign = part.kind != "value"
    shown = f"{_number(factor * value, sign)}{after}"
    if np.isnan(low):
        return shown
    return shown if low == high else f"{shown} ({_number(factor * low, sign)} to {_number(factor * high, sign)})"


def _number(value: float, sign: bool = False) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    text = f"{value:+,.{digits}f}" if sign else f"{value:,.{digits}f}"
    return text.replace("-", "−")
