"""From a store and choices to what is drawn: figures, heat maps and tables, without a browser."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.choices import (
    Choices,
    axes_of,
    baseline_of,
    held,
    labels_of,
    part_of,
    rows_of,
    scalar_metrics,
)
from faultsweep.analysis.figures.figure import Figure, Heat, Panel
from faultsweep.analysis.figures.sweep import Against, compared, describe, intervals, sweep_figure
from faultsweep.analysis.figures.units import axis_to_read, in_units_to_read
from faultsweep.analysis.figures.words import in_words, label_in_words, labels_to_read, quantity
from faultsweep.analysis.warmup import without_warm_up
from faultsweep.sweeps.open import status_name
from numpy.typing import NDArray

MOST_NAMED = 4


def title_of(data: xr.Dataset, choices: Choices) -> str:
    """Return what is drawn, over what, and what is held."""
    drawn = (choices.heat_x, choices.heat_y) if choices.view == "heat map" else (choices.x,)
    over = [in_words(data, axis) for axis in drawn if axis]
    by = [in_words(data, axis) for axis in (choices.curves, choices.facets) if axis and choices.view != "heat map"]
    stand = [label_in_words(data, axis, label) for axis, label in held(data, choices).items() if data.sizes[axis] > 1]
    what = quantity(data, choices.metric).partition(" (")[0]
    if choices.show != "value":
        axis, label = baseline_of(data, choices.baseline)
        what = f"{what}, {choices.show} to {label_in_words(data, axis, label)}"
    text = f"{what} over {' and '.join(over)}"
    text += (
        f" along {in_words(data, choices.along)}"
        if choices.view != "heat map" and choices.x in scalar_metrics(data)
        else ""
    )
    text += f" by {' and '.join(by)}" if by else ""
    if not stand:
        return text
    more = f" and {len(stand) - MOST_NAMED} more" if len(stand) > MOST_NAMED else ""
    return f"{text}, at {', '.join(stand[:MOST_NAMED])}{more}"


def against_of(data: xr.Dataset, choices: Choices) -> Against | None:
    """Return the chosen baseline with labels as the store has them."""
    if not choices.baseline:
        return None
    axis, text = baseline_of(data, choices.baseline)
    labels = dict(zip(labels_of(data, axis), data[axis].values.tolist(), strict=True))
    at = labels[choices.at[axis]] if axis in held(data, choices) else None
    return Against(axis, labels[text], choices.show == "ratio", at)


def figure_of(data: xr.Dataset, choices: Choices) -> Figure:
    """Return the figure of curves, or of bars over an axis of names."""
    names = data[choices.x].dtype.kind not in "iuf"
    part = part_of(data, choices)
    return sweep_figure(
        axis_to_read(part, choices.x) if choices.x in part.dims else part,
        name=str(data.attrs.get("name", "sweep")),
        title=title_of(data, choices),
        kind="bars" if names else "curves",
        x=choices.x,
        along=choices.along,
        y=[choices.metric],
        curves=[choices.curves] if choices.curves else [],
        panels=choices.facets,
        log_x=choices.log_x and not names,
        log_y=choices.log_y and choices.show != "difference",
        against=against_of(data, choices),
    )


def heat_map(data: xr.Dataset, choices: Choices) -> Figure:
    """Return the heat map of the chosen metric over the chosen two axes, as a figure of one panel."""
    data = in_units_to_read(data, [choices.metric])
    part, against = part_of(data, choices), against_of(data, choices)
    axes = [axis for axis in (choices.heat_y, choices.heat_x) if axis]
    found = intervals(part, choices.metric, against).transpose(*axes)
    shape = (found.sizes[choices.heat_y] if choices.heat_y else 1, found.sizes[choices.heat_x])
    mean, low, high = (np.asarray(found[name], float).reshape(shape) for name in ("mean", "low", "high"))
    y_labels = labels_to_read(data, choices.heat_y) if choices.heat_y else [""]
    what = compared(data, choices.metric, against)
    centre = {"value": None, "difference": 0.0, "ratio": 1.0}[choices.show]
    log = choices.log_y and centre is None and bool((mean > 0).any())  # nothing else has a place on such a scale
    heat = Heat(labels_to_read(data, choices.heat_x), y_labels, mean, low, high, what, centre, log)
    # labels have their unit with them
    x, y = (quantity(data, axis).partition(" (")[0] if axis else "" for axis in (choices.heat_x, choices.heat_y))
    name, title = str(data.attrs.get("name", "sweep")), title_of(data, choices)
    caption, facts = describe(part, [choices.metric], axes, against, bars=False)
    return Figure(name, title, caption, [Panel("", x, y, heat=heat)], facts=facts)


def shown(data: xr.Dataset, choices: Choices) -> Figure:
    """Return the figure of the chosen view."""
    return heat_map(data, choices) if choices.view == "heat map" else figure_of(data, choices)


def cells_of(data: xr.Dataset, choices: Choices, rows: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Return the cells behind what is drawn, or behind one point of it, a row per cell and replicate.

    Parameters
    ----------
    data, choices : the store, and what is drawn of it.
    rows : axis -> row of the point, for the axes that are drawn over; None for all cells that are drawn.

    Returns
    -------
    The labels of all axes, the metric, ``status``, ``wall_s``, ``error``, and ``rerun``, the command that runs the
    cell again ("" for a store that is not on this machine).
    """
    across = choices.x if choices.view != "heat map" and choices.x in scalar_metrics(data) else choices.metric
    names = [name for name in dict.fromkeys((choices.metric, across, "status", "wall_s", "error")) if name in data]
    jobs = ["jobs_offset", "jobs_length"] if choices.delete_warm_up else []
    part = data[[*names, *jobs]].isel({**rows_of(data, choices), **(rows or {})}).load()
    if choices.delete_warm_up:
        part.encoding = data.encoding
        part = without_warm_up(part, [choices.metric])[names]
    dims = [str(dim) for dim in data["status"].dims]
    held = {dim: part[dim].values.item() for dim in dims if dim not in part.dims}
    part = part.drop_vars([name for name in part.coords if name not in part.dims])
    table = (part.to_dataframe().reset_index() if part.dims else part.to_pandas().to_frame().T).assign(**held)
    table["status"] = [status_name(part["status"], int(code)) for code in table["status"]]
    place = str(data.encoding.get("source", ""))
    table["rerun"] = [rerun_command(place, labels) for labels in table[dims].to_dict("records")]
    return table[[*dims, *names, "rerun"]]


def ids_of_points(data: xr.Dataset, choices: Choices, figure: Figure) -> list[list[NDArray[np.int64]]]:
    """Return the configuration that each point of each series of each panel stands for.

    A configuration is a combination of labels of all axes but the replicates, by its number in the order of the store.
    """
    rows, found = rows_of(data, choices), []
    for number, panel in enumerate(figure.panels):
        at = {**rows, **({choices.facets: number} if choices.facets else {})}
        series: list[NDArray[np.int64]] = []
        for curve, one in enumerate(panel.bars or panel.curves):
            own = getattr(one, "rows", None)
            along = np.arange(data.sizes[choices.along]) if own is None else np.asarray(own)
            at |= {choices.curves: curve} if choices.curves else {}
            series.append(_numbers(data, {**at, choices.along: along}))
        found.append(series)
    return found


def runs_of(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the configurations whose jobs are shown: those that are selected, else one in the middle of each curve."""
    if len(cells):
        return cells
    curves = replace(choices, view="curves")
    series = [own for panel in ids_of_points(data, curves, figure_of(data, curves)) for own in panel]
    return np.concatenate([np.zeros(0, np.int64), *(own[len(own) // 2 : len(own) // 2 + 1] for own in series)])


def ids_of_heat(data: xr.Dataset, choices: Choices) -> NDArray[np.int64]:
    """Return the configuration that each cell of the heat map stands for, the columns of its first row first."""
    columns = data.sizes[choices.heat_x]
    rows = data.sizes[choices.heat_y] if choices.heat_y else 1
    at: dict[str, Any] = {**rows_of(data, choices), choices.heat_x: np.tile(np.arange(columns), rows)}
    if choices.heat_y:
        at[choices.heat_y] = np.repeat(np.arange(rows), columns)
    return _numbers(data, at)


def _numbers(data: xr.Dataset, at: Mapping[str, Any]) -> NDArray[np.int64]:
    axes = axes_of(data)
    places = np.broadcast_arrays(*(np.asarray(at[axis], np.int64) for axis in axes))
    return np.ravel_multi_index(tuple(places), tuple(data.sizes[axis] for axis in axes)).ravel()


_ROW = "a row of the table"  # no axis has spaces in its name


def cells_at(data: xr.Dataset, ids: NDArray[np.int64], metrics: Sequence[str]) -> pd.DataFrame:
    """Return the cells of some configurations, a row per configuration and replicate, as ``cells_of`` does."""
    axes = axes_of(data)
    places = np.unravel_index(np.asarray(ids, np.int64), tuple(data.sizes[axis] for axis in axes))
    names = [name for name in dict.fromkeys((*metrics, "status", "wall_s", "error")) if name in data]
    at = {axis: xr.DataArray(place, dims=_ROW) for axis, place in zip(axes, places, strict=True)}
    part = data[names].isel(at).load()
    table = part.to_dataframe(dim_order=[_ROW, *(dim for dim in part.dims if dim != _ROW)]).reset_index()
    table["status"] = [status_name(data["status"], int(code)) for code in table["status"]]
    dims = [str(dim) for dim in data["status"].dims]
    place = str(data.encoding.get("source", ""))
    table["rerun"] = [rerun_command(place, labels) for labels in table[dims].to_dict("records")]
    return table[[*dims, *names, "rerun"]]


def rerun_command(place: str, labels: Mapping[str, Any]) -> str:
    """Return the command that runs one cell of a store again; "" for a store that is not on this machine."""
    if "://" in place:
        return ""
    select = ",".join(f"{axis}={_quoted(label)}" for axis, label in labels.items())
    return shlex.join(["faultsweep", "rerun", place, "--select", select])


def _quoted(label: Any) -> str:
    text = str(label)
    return f'"{text}"' if "," in text else text
