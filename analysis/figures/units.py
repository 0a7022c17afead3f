"""Results in units that people read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from faultsweep.units import time_unit

SUFFIX = "suffix"
"""Attribute that keeps the unit that a quantity's name ends with, where its values are in another one."""


def in_units_to_read(data: xr.Dataset, names: Iterable[str]) -> xr.Dataset:
    """Return results with these metrics or parameters, where they are in seconds or node-seconds, in a unit to read."""
    for name in names:
        if name in data and name not in data.dims:
            data = _to_read(data, name)
    return data


def axis_to_read(data: xr.Dataset, axis: str) -> xr.Dataset:
    """Return results whose labels of an axis, where they are in seconds, are in a unit to read."""
    return _to_read(data, axis)


def _to_read(data: xr.Dataset, name: str) -> xr.Dataset:
    unit = unit_of(data, name)
    values = np.asarray(data[name].values, float) if unit in ("s", "node s") else np.zeros(0)
    known = np.abs(values[np.isfinite(values)])
    if not len(known) or not known.max() > 0:
        return data
    short, seconds = ("h", 3600.0) if unit == "node s" else time_unit(float(known.max()))
    if seconds == 1.0:
        return data
    changed = data[name] / seconds
    changed.attrs = {**data[name].attrs, "units": unit.removesuffix("s") + short, SUFFIX: unit}
    if name in data.data_vars:
        return data.assign({name: changed})
    return data.assign_coords({name: (data[name].dims, changed.values, changed.attrs)})


def unit_of(data: xr.Dataset, name: str) -> str:
    """Return the unit of a metric or parameter; that of node-seconds is in the name, because a store has seconds."""
    known = data.variables[name].attrs if name in data.variables else {}  # data[name] would make a new array of it
    return "node s" if name.endswith("_node_s") and SUFFIX not in known else str(known.get("units", ""))
