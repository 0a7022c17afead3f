"""Stores written from the description of the format alone, with xarray: readers are tested apart from the writer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

STATUSES = ("pending", "done", "failed", "truncated", "copy", "excluded", "not_requested")


def make_results(
    axes: dict[str, list],
    metrics: dict[str, np.ndarray],
    status: np.ndarray | None = None,
    replicates: int = 1,
    fixed: dict | None = None,
    **attributes,
) -> xr.Dataset:
    """A Dataset as a store holds it; metrics have the shape of the axes and the replicates."""
    axes = {name: np.array(labels, object if isinstance(labels[0], str) else None) for name, labels in axes.items()}
    axes["replicate"] = np.arange(replicates)
    shape = tuple(len(labels) for labels in axes.values())
    if status is None:
        status = np.ones(shape, dtype=np.int8)
    flags = {"flag_values": list(range(7)), "flag_meanings": " ".join(STATUSES), "long_name": "Status of the cell"}
    variables = {name: (tuple(axes), np.asarray(values, float).reshape(shape)) for name, values in metrics.items()}
    data = xr.Dataset({**variables, "status": (tuple(axes), np.asarray(status, np.int8).reshape(shape), flags)}, axes)
    data.attrs = {
        "faultsweep_format": 1,
        "model_version": "1",
        "spec": "",
        "configuration": json.dumps(fixed or {}),
        "axes": "[]",
        "pins": "{}",
        "metrics": json.dumps(list(metrics)),
        "provenance": "{}",
        **attributes,
    }
    return data


def write_results(path: Path, data: xr.Dataset) -> Path:
    """Write the Dataset as a store."""
    encoding = {name: {"fill_value": 0} for name in ("status",)}
    data.reset_coords([name for name in data.coords if name not in data.dims]).to_zarr(
        path, consolidated=True, zarr_format=3, encoding=encoding
    )
    return path
