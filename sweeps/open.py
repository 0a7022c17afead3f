"""Opens the store of a sweep, finished or not, local or by URL, as an xarray Dataset.

Any reader can use ``xarray.open_zarr`` alone. This one adds what is easy to get wrong: it reads ``status`` before the
metrics (so a store that is being written to shows no half-written result), hides cells without a result, and sorts
numeric axes (a store grows at the ends of its axes only).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from faultsweep.sweeps import accessor as accessor  # data.sweep
from faultsweep.sweeps.outputs import from_json
from faultsweep.sweeps.store.opener import MOST_JOBS, open_checked
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core import indexing

from faultsweep.arguments import PATH, TRUTH, takes
from faultsweep.errors import InputError

if TYPE_CHECKING:
    from faultsweep.sweeps.store.newest import Newest

RESULTS = ("done", "truncated", "copy", "truncated_copy")
COPIES = ("copy", "truncated_copy")
"""Statuses of cells that have a result."""


BESIDE_METRICS = ("status", "wall_s", "error", "jobs_offset", "jobs_length")
"""Variables of a store that are neither metrics nor parameters."""


def unit_of(variable: xr.DataArray) -> str:
    """Return the unit of a metric or parameter as readers want it: "" for ratios and counts."""
    unit = str(variable.attrs.get("units", ""))
    return "" if unit == "1" else unit


@takes(path_or_url=PATH, masked=TRUTH)
def open_results(path_or_url: str | Path, *, masked: bool = True) -> xr.Dataset:
    """Open the store of a sweep.

    Parameters
    ----------
    path_or_url : a store's folder (``x.zarr``), a packed store (``x.zarr.zip``), or the URL of either.
    masked : hide the values of cells without a result, as NaN, NaT, or "". Whole numbers and booleans are then floats
        with NaN while a cell has no result; unmasked they keep their type, with 0 or False in such cells.

    Returns
    -------
    One variable per metric over the axes of the sweep and ``replicate``, NaN where there is no result yet, and read
    when it is used; the parameters that vary, as coordinates; ``status``, in memory; ``wall_s`` and ``error``. Units
    and long names are attributes of the variables.

    Raises
    ------
    InputError
        There is no store, it is not a store of a sweep, or its format cannot be read.
    """
    return _results(str(path_or_url), masked, None)


def open_with_journals(path: str | Path, newest: Newest) -> xr.Dataset:
    """Open a store as ``open_results`` does, with what ``newest`` has read of the journals of its run.

    Metrics of these cells that are no plain numbers, and their errors and per-job results, are not there yet.
    """
    return _results(str(path), True, newest)


def _results(place: str, masked: bool, newest: Newest | None) -> xr.Dataset:
    data = _open(place)
    results = {*metric_names(data), *BESIDE_METRICS}
    data = data.set_coords([name for name in data.data_vars if name not in results])
    data["status"] = data["status"].load()
    chunks = dict(data["status"].encoding.get("preferred_chunks", {}))
    known = has_result(data["status"]).values
    newer = _lay_over(data, newest) if newest is not None else _NONE
    counts = {name: count for name, count in count_cells(data).items() if name not in RESULTS}
    missing = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    shown = known if masked else np.ones_like(known)
    metrics = {}
    for name in metric_names(data):
        variable = data.variables[name]
        hidden = indexing.LazilyIndexedArray(_Hidden(variable, shown, missing, newer.of(name, variable)))
        metrics[name] = xr.Variable(variable.dims, hidden, variable.attrs)
    data = _plain_text(data.assign(metrics))  # all at once: each assignment looks at every variable
    data = _in_order(data)
    data.encoding.update(source=place, chunks=chunks)
    return data


def open_jobs(data: xr.Dataset, **labels: Any) -> xr.Dataset:
    """Return the per-job results of one cell, one variable per column with the dimension ``job``.

    Parameters
    ----------
    data : results opened by ``open_results`` of a sweep with ``keep_jobs = true``.
    labels : the cell, by the labels of its axes; axes of one row, and the first replicate, need not be named.

    Raises
    ------
    InputError
        The store has no per-job results, or the labels select no cell or more than one.
    """
    check_results(data)
    place = data.encoding.get("source", "the results")
    if "jobs_offset" not in data:
        raise InputError(f"{place}: no per-job results (the spec needs keep_jobs = true)")
    try:
        named = {axis: label_on(data, axis, label) for axis, label in labels.items()}
        cell = data[["jobs_offset", "jobs_length", "status"]].sel(named)
    except KeyError as error:
        raise InputError(f"{place}: no cell with the label {error.args[0]}") from None
    except (TypeError, ValueError):  # such as a word on an axis of numbers
        given = ", ".join(f"{axis} = {label!r:.60}" for axis, label in labels.items())
        raise InputError(f"{place}: no cell with the labels {given}") from None
    cell = cell.isel({"replicate": 0} if "replicate" in cell.dims else {}).squeeze()
    if cell["jobs_offset"].ndim:
        left = ", ".join(map(str, cell.dims))
        raise InputError(f"{place}: more than one cell is left along {left}; select one label of each")
    offset, length = int(cell["jobs_offset"]), int(cell["jobs_length"])
    if offset < 0:
        status = status_name(data["status"], int(cell["status"])).replace("_", " ")
        raise InputError(f"{place}: this cell has no per-job results (its status is {status})")
    if length > MOST_JOBS:
        raise InputError(f"{place}: refused, because this cell has {length:,} jobs; a run has at most {MOST_JOBS:,}")
    return open_all_jobs(data).isel(job=slice(offset, offset + length)).load()


def open_all_jobs(data: xr.Dataset) -> xr.Dataset:
    """Return the per-job results of all cells, read when used; ``jobs_offset`` and ``jobs_length`` tell whose."""
    return _open(str(data.encoding["source"]), group="jobs")


def label_on(data: xr.Dataset | xr.DataArray, axis: str, label: Any) -> Any:
    """Return a label as an axis has it: of ``"easy"``, ``"backfill"``, unless the axis has the former itself."""
    from faultsweep.simcore.parameters import plain_name

    has = axis in data.coords and label in data[axis].values
    return label if has else plain_name(axis, label)


def check_results(results: Any) -> None:
    """Raise InputError unless these are results of a sweep, as ``open_results`` returns them."""
    if not isinstance(results, xr.Dataset) or "status" not in results:
        got = "a Dataset without status" if isinstance(results, xr.Dataset) else f"{results!r:.60}"
        raise InputError(f"results: expected those of a sweep, as open_results returns them, got {got}")


def metric_names(data: xr.Dataset) -> list[str]:
    """Return the names of the metrics in a Dataset of results."""
    return [str(name) for name in json.loads(data.attrs["metrics"]) if name in data]


def has_result(status: xr.DataArray) -> xr.DataArray:
    """Return, as booleans of the same shape, which cells have a result."""
    return is_one_of(status, RESULTS)


def is_one_of(status: xr.DataArray, names: Iterable[str]) -> xr.DataArray:
    """Return, as booleans of the same shape, which cells have one of these statuses; a store need not know all."""
    known = str(status.attrs["flag_meanings"]).split()
    codes = [status_code(status, name) for name in names if name in known]
    return status.copy(data=np.isin(status.values, codes))  # DataArray.isin would import dask.array: 0.3 s


def status_code(status: xr.DataArray, name: str) -> int:
    """Return the number that stands for a status such as ``copy``, from the attributes of the variable itself."""
    meanings = str(status.attrs["flag_meanings"]).split()
    return int(np.atleast_1d(status.attrs["flag_values"])[meanings.index(name)])


def status_name(status: xr.DataArray, code: int) -> str:
    """Return the name of a status such as ``copy`` from its number."""
    values = np.atleast_1d(status.attrs["flag_values"]).tolist()
    return str(status.attrs["flag_meanings"]).split()[values.index(code)]


def count_cells(data: xr.Dataset) -> dict[str, int]:
    """Return how many cells have each status, by name, those of zero left out."""
    codes, counts = np.unique(data["status"].values, return_counts=True)
    return {status_name(data["status"], int(code)): int(count) for code, count in zip(codes, counts, strict=True)}


def fixed_parameters(data: xr.Dataset) -> dict[str, Any]:
    """Return the parameters that are the same in every cell, with their values."""
    return dict(from_json(data.attrs["configuration"]))


@dataclass(frozen=True)
class _Column:
    """Values of one metric that its chunks do not have: ``places`` says for each cell which one is its, -1 for none."""

    places: NDArray[np.int32]
    values: NDArray[Any]


@dataclass(frozen=True)
class _LaidOver:
    """Results that chunks do not have, of all metrics."""

    places: NDArray[np.int32] | None
    values: Mapping[str, NDArray[np.float64]]

    def of(self, name: str, variable: xr.Variable) -> _Column | None:
        """Return those of a metric; None if there are none, or they are no plain numbers."""
        kind = variable.dtype.kind
        column = {"f": name, "i": f"{name}:int64", "b": f"{name}:bool"}.get(kind, "")  # as ``output_columns`` has them
        if self.places is None or column not in self.values or variable.ndim != self.places.ndim:
            return None
        words = self.values[column]
        return _Column(self.places, words if kind == "f" else words.view(np.int64).astype(variable.dtype))


_NONE = _LaidOver(None, {})


def _lay_over(data: xr.Dataset, newest: Newest) -> _LaidOver:
    """Give cells whose results are in journals alone their status, and return these results."""
    status = data["status"]
    newer = newest.beyond(status.values, str(data.attrs.get("open_runs", "[]")))
    if not len(newer.cells):
        return _NONE
    places = np.full(status.size, -1, np.int32)
    places[newer.cells] = np.arange(len(newer.cells))
    codes = status.values.copy()
    codes.ravel()[newer.cells] = newer.status
    data["status"] = status.copy(data=codes)
    return _LaidOver(places.reshape(status.shape), newer.values)


class _Hidden(BackendArray):
    """A metric that shows no value in a cell without a result; nothing is read before it is asked for.

    No value is NaN, NaT or "". Whole numbers and booleans have none: they stay as they are where every cell has a
    result, and are numbers with NaN elsewhere.
    """

    def __init__(
        self, variable: xr.Variable, known: NDArray[np.bool_], missing: str = "", newer: _Column | None = None
    ) -> None:
        self.variable, self.missing, self.newer = variable, missing, newer
        is_complete = bool(known.all() if newer is None else (known | (newer.places >= 0)).all())
        self.known = known.reshape(known.shape + (1,) * (variable.ndim - known.ndim))
        self.shape = variable.shape
        self.dtype, self.nothing = _shown_type(variable.dtype, is_complete)

    def __getitem__(self, key: Any) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        dims = self.variable.dims
        part = self.variable.isel(dict(zip(dims, key, strict=True))).values
        known = xr.Variable(dims, np.broadcast_to(self.known, self.shape)).isel(dict(zip(dims, key, strict=True)))
        if part.dtype.kind == "i" and self.dtype.kind == "f":
            _check_exact(part[known.values], self.missing)
        values = np.full(known.shape, self.nothing, dtype=self.dtype)
        values[known.values] = part[known.values]
        if self.newer is not None:
            places = xr.Variable(dims, self.newer.places).isel(dict(zip(dims, key, strict=True))).values
            values[places >= 0] = self.newer.values[places[places >= 0]]
        return values


def _shown_type(dtype: np.dtype, is_complete: bool) -> tuple[np.dtype, Any]:
    """Return the type in which a metric is shown, and its value for "nothing"."""
    if dtype.kind in "ib":
        return (dtype, 0) if is_complete else (np.dtype("float64"), np.nan)
    if dtype.kind in "Mm":
        return dtype, np.array("NaT", dtype=dtype)
    if dtype.kind in "fc":
        return dtype, np.nan
    return np.dtype(object), ""  # what plotting libraries and file formats take


def _check_exact(values: NDArray[np.int64], missing: str) -> None:
    if len(values) and max(abs(int(values.min())), abs(int(values.max()))) > 2**53:
        raise InputError(
            f"whole numbers above 2**53 cannot stand beside NaN, and some cells have no result ({missing}); select "
            "cells that have one with open_results(PATH, masked=False), which shows all numbers as they are, and its "
            "status"
        )


def _open(place: str, group: str | None = None) -> xr.Dataset:
    store = open_checked(place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # temporary files of a running sweep are not the reader's business
            return xr.open_zarr(store, group=group, consolidated=True, chunks=None, zarr_format=3)
    except InputError:
        raise
    except Exception as error:  # zarr, fsspec, zipfile and xarray each have errors of their own
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{place}: not a store of a sweep that can be read ({first})") from None


def _plain_text(data: xr.Dataset) -> xr.Dataset:
    """Return labels and errors as text that plotting libraries and file formats take, of stores of any age."""
    plain = {}
    for name, variable in data.variables.items():
        if variable.dtype.kind in "TO" and name in data.coords:
            plain[name] = xr.Variable(variable.dims, np.array(variable.values.tolist(), dtype=str), variable.attrs)
        elif variable.dtype.kind == "T":
            shown = indexing.LazilyIndexedArray(_Hidden(variable, np.ones(variable.shape, dtype=bool)))
            plain[name] = xr.Variable(variable.dims, shown, variable.attrs)
    data = data.assign(plain)
    for variable in data.variables.values():
        variable.encoding.clear()  # of Zarr 3, which other formats do not take
    return data


def _in_order(data: xr.Dataset) -> xr.Dataset:
    """Sort numeric axes; axes of names keep the order in which the sweep lists them."""
    for dim in data["status"].dims:
        labels = data[dim].values
        if labels.dtype.kind in "iufMm" and np.any(labels[1:] < labels[:-1]):
            data = data.isel({dim: np.argsort(labels, kind="stable")})
    return data
