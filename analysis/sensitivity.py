"""Sobol indices of sampled sweeps: which share of a metric's variance each parameter of a sampled axis causes.

The design decides what can be said. ``design = "saltelli"`` gives first-order and total indices, with intervals
(SALib, after Saltelli et al. 2010); Latin hypercubes, Sobol sequences, Halton sequences and random designs give
first-order indices, read off the sample itself (RBD-FAST, Tarantola et al. 2006, with the correction of Tissot and
Prieur 2012).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.sweeps.intervals import scaled
from faultsweep.sweeps.open import check_results, metric_names
from faultsweep.sweeps.store.opener import stored_spec
from numpy.typing import NDArray

from faultsweep.arguments import TEXT, takes
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import require

SALTELLI = "saltelli"
FEWEST_POINTS = 65
"""RBD-FAST needs more than twice its harmonics (10) and the frequencies between them."""


def sampled_axes(data: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Return the sampled axes of a store as its spec writes them: axis -> its table."""
    axes = stored_spec(data.attrs).get("axes", {})
    sampled = {name: axis for name, axis in axes.items() if isinstance(axis, Mapping) and "sample" in axis}
    return {name: dict(axis) for name, axis in sampled.items() if name in data}


@takes(metric=TEXT, axis=TEXT)
def sobol_indices(data: xr.Dataset, metric: str, axis: str | None = None, level: float = 0.95) -> xr.Dataset:
    """Return the Sobol indices of a metric for each parameter of a sampled axis.

    Parameters
    ----------
    data : results opened by ``open_results``; the mean over replicates is decomposed.
    metric : a metric that is one number a cell.
    axis : the sampled axis; the only one if not given.
    level : of the intervals, which are bootstrapped.

    Returns
    -------
    Along ``parameter``, and along every other axis of more than one label: ``first`` (the share of the variance that
    the parameter causes alone) with ``first_half`` (half the width of its interval), and for a Saltelli design
    ``total`` (with all its interactions) and ``total_half``. NaN where a point of that design has no result, or nothing
    varies.

    Raises
    ------
    InputError
        There is no sampled axis, the metric is unknown, the design is too small, or SALib is not installed.
    """
    check_results(data)
    table, axis = _table(data, axis)
    if metric not in metric_names(data):
        raise unknown_name("metric", metric, metric_names(data))
    names = [str(name) for name in table["sample"]]
    values = data[metric].mean(REPLICATE) if REPLICATE in data[metric].dims else data[metric]
    values = values.squeeze([dim for dim in values.dims if dim != axis and values.sizes[dim] == 1], drop=True)
    places = np.stack([np.asarray(data[name].values, float) for name in names], axis=1)
    saltelli = table.get("design") == SALTELLI
    analyse = _saltelli if saltelli else _rbd_fast
    if not saltelli and len(places) < FEWEST_POINTS:
        raise InputError(f"{axis}: {len(places)} points are too few for indices, they need {FEWEST_POINTS}")
    kept = ["first", "first_half", *(("total", "total_half") if saltelli else ())]
    found = xr.apply_ufunc(
        lambda y: analyse(places, scaled(y)[0], names, level),
        values,
        input_core_dims=[[axis]],
        output_core_dims=[["index", "parameter"]],
        vectorize=True,
    )
    found = found.assign_coords(parameter=names)
    return xr.Dataset({name: found.isel(index=i) for i, name in enumerate(kept)})


def _table(data: xr.Dataset, axis: str | None) -> tuple[dict[str, Any], str]:
    sampled = sampled_axes(data)
    if not sampled:
        raise InputError("no axis is sampled: indices need one such as {sample = {load_scale = [0.5, 2]}, num = 256}")
    if axis is None and len(sampled) > 1:
        raise InputError(f"more than one axis is sampled; name one of {', '.join(sampled)}")
    axis = next(iter(sampled)) if axis is None else axis
    if axis not in sampled:
        raise unknown_name("sampled axis", axis, sampled)
    return sampled[axis], axis


def _problem(names: list[str]) -> dict[str, Any]:
    return {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}


def _saltelli(places: NDArray[np.float64], y: NDArray[np.float64], names: list[str], level: float) -> NDArray[Any]:
    """Return first, its half-width, total, its half-width; shape (4, parameters)."""
    rows = len(y) // (len(names) + 2) * (len(names) + 2)
    if not rows or rows < len(y) or not np.isfinite(y).all() or np.ptp(y) == 0:
        return np.full((4, len(names)), np.nan)
    analyse = _salib("sobol")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a parameter without effect has no relative interval
        found = analyse(_problem(names), y, calc_second_order=False, conf_level=level, seed=0)
    return np.array([found["S1"], found["S1_conf"], found["ST"], found["ST_conf"]])


def _rbd_fast(places: NDArray[np.float64], y: NDArray[np.float64], names: list[str], level: float) -> NDArray[Any]:
    """Return first and its half-width; shape (2, parameters)."""
    known = np.isfinite(y)
    if known.sum() < FEWEST_POINTS or np.ptp(y[known]) == 0:
        return np.full((2, len(names)), np.nan)
    found = _salib("rbd_fast")(_problem(names), places[known], y[known], conf_level=level, seed=0)
    return np.array([found["S1"], found["S1_conf"]])


def _salib(method: str) -> Any:
    require("a sensitivity index", "SALib")
    return import_module(f"SALib.analyze.{method}").analyze
