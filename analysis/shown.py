"""Results as figures and reports take them: axes of numbers and names, metrics that are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from faultsweep.sweeps.open import metric_names

_SECOND = np.timedelta64(1, "s")


def with_numbers_and_names(data: xr.Dataset) -> xr.Dataset:
    """Return results whose labels are numbers or text, without the metrics that are no numbers.

    Durations are in seconds, dates and booleans as text; a boolean metric is 0 or 1. Texts, dates and complex numbers
    have no mean: these metrics are left out.
    """
    data = with_plain_labels(data)
    metrics = metric_names(data)
    changed = {name: _number(data[name]) for name in metrics if data[name].dtype.kind in "mb"}
    return data.assign(changed).drop_vars([name for name in metrics if data[name].dtype.kind not in "iufmb"])


def with_plain_labels(data: xr.Dataset) -> xr.Dataset:
    """Return results whose labels are numbers or text: durations in seconds, dates and booleans as text."""
    axes = {name: _label(axis) for name, axis in data.coords.items() if axis.ndim == 1 and axis.dtype.kind in "Mmb"}
    return data.assign_coords(axes)


def label_text(label: Any) -> str:
    """Return a date, or a truth value, as text."""
    if isinstance(label, np.datetime64):
        return str(np.datetime_as_string(label, unit="auto"))
    return str(bool(label)).lower()


def _label(axis: xr.DataArray) -> xr.DataArray:
    if axis.dtype.kind == "m":
        return _seconds(axis)
    return axis.copy(data=np.array([label_text(label) for label in axis.values]))


def _number(metric: xr.DataArray) -> xr.DataArray:
    return _seconds(metric) if metric.dtype.kind == "m" else metric.astype(float)


def _seconds(values: xr.DataArray) -> xr.DataArray:
    return values.copy(data=values.values / _SECOND).assign_attrs(units="s")
