"""``data.sweep``: what a Dataset of results knows of its cells, whichever way it was opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from faultsweep.arguments import PATH, takes
from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import writing

_FAILURES = ("failed", "failed_copy")
_RESULTS = ("done", "truncated", "copy", "truncated_copy")


@xr.register_dataset_accessor("sweep")
class SweepAccessor:
    """Status and errors of the cells of a sweep, as ``data.sweep``."""

    def __init__(self, data: xr.Dataset) -> None:
        """Take the results, of ``open_results`` or of ``xarray.open_zarr``."""
        if "status" not in data or "flag_meanings" not in data["status"].attrs:
            raise InputError("sweep: this Dataset has no status of a sweep; open a store with faultsweep.open_results")
        self._data = data

    def _is(self, names: tuple[str, ...]) -> xr.DataArray:
        status = self._data["status"]
        meanings = str(status.attrs["flag_meanings"]).split()
        codes = [code for code, name in zip(status.attrs["flag_values"], meanings, strict=True) if name in names]
        return xr.DataArray(np.isin(status.values, codes), status.coords, status.dims)

    @property
    def ok(self) -> xr.DataArray:
        """Return which cells have a result, as booleans over the axes."""
        return self._is(_RESULTS).rename("ok")

    def names(self) -> xr.DataArray:
        """Return the status of each cell as a word: done, failed, copy, ..."""
        status = self._data["status"]
        words = np.array(str(status.attrs["flag_meanings"]).split())
        places = np.searchsorted(np.asarray(status.attrs["flag_values"]), status.values)
        return xr.DataArray(words[places], status.coords, status.dims, name="status")

    def counts(self) -> dict[str, int]:
        """Return how many cells have each status, those of zero left out."""
        names, counts = np.unique(self.names().values, return_counts=True)
        return {str(name): int(count) for name, count in zip(names, counts, strict=True)}

    def errors(self) -> pd.DataFrame:
        """Return the failed cells with their errors: a row each, with its labels as the index."""
        failed = np.nonzero(self._is(_FAILURES).values)
        dims = self._data["status"].dims
        index = pd.MultiIndex.from_arrays(
            [self._data[dim].values[rows] for dim, rows in zip(dims, failed, strict=True)], names=dims
        )
        errors = self._data["error"].transpose(*dims).values[failed]
        return pd.DataFrame({"error": errors.astype(object)}, index=index)

    @takes(path=PATH)
    def to_netcdf(self, path: str | Path) -> None:
        """Write the results as one netCDF-4 file, which needs the package h5netcdf.

        Raises
        ------
        InputError
            Some results are complex numbers, which netCDF does not have; h5netcdf is not installed; or the file cannot
            be written.
        """
        complex_ = [str(name) for name in self._data.variables if self._data[name].dtype.kind == "c"]
        if complex_:
            raise InputError(
                f"{path}: netCDF has no complex numbers; store real and imaginary parts of {', '.join(complex_)}, or"
                " write zarr (to_zarr)"
            )
        require("a netCDF file", "h5netcdf", "h5py")
        with writing(path):
            _with_plain_attributes(self._data).to_netcdf(path, engine="h5netcdf")


def _with_plain_attributes(data: xr.Dataset) -> xr.Dataset:
    """Return the same results with attributes that netCDF has: 1 and 0 for true and false."""
    plain = data.copy()
    plain.attrs = _without_booleans(plain.attrs)
    for variable in plain.variables.values():
        variable.attrs = _without_booleans(variable.attrs)
    return plain


def _without_booleans(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: int(value) if isinstance(value, bool) else value for name, value in attributes.items()}
