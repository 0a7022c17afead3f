"""Results in units that people read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from faultsweep.units import SECONDS, time_unit

SUFFIX = "suffix"
"""Attribute that keeps the unit that a quantity's name ends with, where its values are in another one."""
READ_IN = "read_in"
"""Attribute that says in which unit a quantity is read, however few of its values a picture shows: one for a page."""
_TIMES = ("s", "node s")


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
    read_in = data.variables[name].attrs.get(READ_IN) or _unit_to_read(unit, data[name].values)
    if read_in == unit:
        return data
    changed = data[name] / SECONDS[read_in.removeprefix("node ")]
    changed.attrs = {**data[name].attrs, "units": read_in, SUFFIX: unit}
    if name in data.data_vars:
        return data.assign({name: changed})
    return data.assign_coords({name: (data[name].dims, changed.values, changed.attrs)})


def _unit_to_read(unit: str, values: np.ndarray) -> str:
    """Return the unit in which values in ``unit`` are read."""
    if unit not in _TIMES:
        return unit
    values = np.asarray(values, float)
    known = np.abs(values[np.isfinite(values)])
    if not len(known) or not known.max() > 0:
        return unit
    return "node h" if unit == "node s" else time_unit(float(known.max()))[0]


def with_unit_to_read(data: xr.Dataset, name: str, parts: Iterable[xr.DataArray]) -> xr.Dataset:
    """Return results one of whose metrics says in which unit it is read, as the largest value of some parts asks."""
    unit = unit_of(data, name)
    if unit not in _TIMES:
        return data
    values = np.concatenate([np.zeros(0), *(part.values.ravel() for part in parts)])
    return data.assign({name: data[name].assign_attrs({READ_IN: _unit_to_read(unit, values)})})


def unit_on_page(data: xr.Dataset, name: str) -> str:
    """Return the unit in which a metric or parameter is read; "" of a time where each picture chooses one."""
    unit = unit_of(data, name)
    return str(data.variables[name].attrs.get(READ_IN, "")) if unit in _TIMES else unit


def unit_of(data: xr.Dataset, name: str) -> str:
    """Return the unit of a metric or parameter; that of node-seconds is in the name, because a store has seconds."""
    known = data.variables[name].attrs if name in data.variables else {}  # data[name] would make a new array of it
    return "node s" if name.endswith("_node_s") and SUFFIX not in known else str(known.get("units", ""))
