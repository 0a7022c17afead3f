"""The jobs of single runs: their distribution, and when each held how many nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.cells import labels_at
from faultsweep.analysis.dashboard.choices import REPLICATE
from faultsweep.analysis.dashboard.plots import fit, shows
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.figure import BLUE, LOOKS, ORANGE, Curve, Figure, Panel, Style
from faultsweep.analysis.figures.layout import LIGHT
from faultsweep.analysis.figures.words import label_in_words
from faultsweep.sweeps.open import open_jobs
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.units import time_unit

COLUMNS = {
    "wait_s": "Wait",
    "response_s": "Response time",
    "bounded_slowdown": "Bounded slowdown",
    "slowdown": "Slowdown",
}
"""Per-job results whose distribution can be shown -> their names."""
MOST_RUNS = 6
_MOST_STEPS = 400
_ASKS_FOR_LOG = 50
"""Longest by shortest, from which on times are logarithmic."""
_MOST_JOBS = 5_000
_HEIGHT = 360
HOUR = 3600.0


def keeps_jobs(data: xr.Dataset) -> bool:
    """Tell whether a store has per-job results."""
    return "jobs_offset" in data


def jobs_of(data: xr.Dataset, cell: int, replicate: int = 0) -> xr.Dataset:
    """Return the per-job results of a configuration and replicate; InputError if there are none."""
    rows = np.unravel_index(cell, tuple(data.sizes[a] for a in data["status"].dims if a != REPLICATE))
    axes = [str(a) for a in data["status"].dims if a != REPLICATE]
    labels = {axis: data[axis].values[int(row)] for axis, row in zip(axes, rows, strict=True)}
    labels |= {REPLICATE: data[REPLICATE].values[replicate]} if REPLICATE in data.dims else {}
    return open_jobs(data, **labels)


def distribution_figure(data: xr.Dataset, cells: Iterable[int], column: str) -> Figure:
    """Return the share of jobs whose wait, say, is at most so long: a step curve per configuration.

    It is of the first replicate of each of the first ``MOST_RUNS`` configurations; those without jobs are left out.
    """
    found = dict(_sorted_values(data, cells, column))
    longest = max((float(values.max(initial=0)) for values in found.values()), default=0.0)
    unit, scale = time_unit(longest) if column.endswith("_s") else ("", 1.0)
    names = _names_of(data, list(found))
    steps = [_steps(values / scale) for values in found.values()]
    curves = [
        Curve(name, x, y, np.full(len(x), np.nan), np.full(len(x), np.nan), Style(look.colour, ""))
        for name, (x, y), look in zip(names, steps, LOOKS, strict=False)
    ]
    every = np.concatenate([np.zeros(0), *(curve.x for curve in curves)])
    words = COLUMNS.get(column, column)
    x_label = f"{words} of a job at most{f' ({unit})' if unit else ''}"
    log = bool(len(every) and every.min() > 0 and every.max() > _ASKS_FOR_LOG * every.min())
    panel = Panel("", x_label, "Share of the jobs", curves=curves, log_x=log, log_y=False)
    caption = ["The first replicate of each configuration."]
    title = f"Distribution of the {words[0].lower()}{words[1:]} over the jobs"
    return Figure(str(data.attrs.get("name", "sweep")), title, caption, [panel])


def jobs_table(data: xr.Dataset, cells: Iterable[int]) -> pd.DataFrame:
    """Return the jobs of which a distribution is shown, with the labels of their configuration and replicate."""
    frames = []
    for cell, jobs in _runs(data, cells):
        labels = {**labels_at(data, cell), REPLICATE: str(data[REPLICATE].values[0])}
        columns = {name: values.values for name, values in jobs.items() if values.ndim == 1}
        frames.append(pd.DataFrame({**columns}).assign(**labels)[[*labels, *columns]])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _runs(data: xr.Dataset, cells: Iterable[int]) -> Iterator[tuple[int, xr.Dataset]]:
    for cell in list(cells)[:MOST_RUNS]:
        with suppress(InputError):  # it has no jobs
            yield int(cell), jobs_of(data, int(cell))


def _sorted_values(data: xr.Dataset, cells: Iterable[int], column: str) -> Iterator[tuple[int, NDArray[np.float64]]]:
    for cell, jobs in _runs(data, cells):
        if column in jobs:
            values = jobs[column].values.astype(float)
            yield cell, np.sort(values[np.isfinite(values)])


def _names_of(data: xr.Dataset, cells: Sequence[int]) -> list[str]:
    """Return what tells each of some configurations from the others."""
    varied = _differing(data, cells)
    labels = [labels_at(data, cell) for cell in cells]
    return [", ".join(label_in_words(data, axis, own[axis]) for axis in varied) or "the run" for own in labels]


def _steps(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of the steps of a distribution, of so many values as can be seen."""
    at = np.unique(np.linspace(0, len(values) - 1, min(_MOST_STEPS, len(values))).astype(int))
    x, y = values[at], (at + 1) / max(1, len(values))
    return np.repeat(x, 2), np.column_stack([np.concatenate([[0.0], y[:-1]]), y]).ravel() if len(y) else y


class Distribution:
    """The distribution over jobs as it stands in the page, by hvPlot."""

    def __init__(self, data: xr.Dataset, cells: Iterable[int], column: str, before: Distribution | None = None) -> None:
        """Draw the first replicate of each of some configurations, zoomed as the one before it."""
        import holoviews as hv
        import hvplot.pandas  # noqa: F401 - gives data frames .hvplot

        panel = distribution_figure(data, cells, column).panels[0]
        self.names = [(curve.label, curve.style.colour) for curve in panel.curves]
        nothing = pd.DataFrame({"x": [0.0], "share": [0.0], "run": ["run 0"]})
        frames = [
            pd.DataFrame({"x": curve.x, "share": curve.y, "run": f"run {number}"})
            for number, curve in enumerate(panel.curves)
        ]
        drawn = pd.concat(frames or [nothing]).hvplot.line(
            x="x",
            y="share",
            by="run",
            color=[colour for _, colour in self.names] or [BLUE],
            responsive=True,
            height=_HEIGHT,
            legend=False,
            logx=panel.log_x,
            tools=["hover"],
        )
        self.layout: Any = hv.render(drawn, backend="bokeh")
        page.style_plot(self.layout)
        self.layout.output_backend = "canvas"
        self.layout.toolbar.active_scroll = None
        self.layout.xaxis.axis_label, self.layout.yaxis.axis_label = panel.x_label, panel.y_label
        self.layout.title.text = ""
        before = before if before is not None and shows(self.layout.xaxis) == shows(before.layout.xaxis) else None
        for name in ("x_range", "y_range"):
            own = getattr(self.layout, name)
            fit(own, own.start, own.end, before and getattr(before.layout, name))


def _differing(data: xr.Dataset, cells: Sequence[int]) -> list[str]:
    """Return the axes along which some configurations differ."""
    labels = [labels_at(data, cell) for cell in cells]
    return [axis for axis in (labels[0] if labels else {}) if len({own[axis] for own in labels}) > 1]


def lanes(start: NDArray[np.float64], end: NDArray[np.float64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest lane of each job, so that jobs that run at a time lie above each other.

    Lanes are counted, not nodes: per-job results do not say which nodes a job had.
    """
    low = np.zeros(len(start), np.int64)
    running: list[tuple[int, int, float]] = []  # lowest lane, lanes, end; by lane
    for job in np.argsort(start, kind="stable"):
        running = [one for one in running if one[2] > start[job]]
        place = 0
        for begin, width, _ in running:
            if begin - place >= size[job]:
                break
            place = max(place, begin + width)
        low[job] = place
        running.append((place, int(size[job]), float(end[job])))
        running.sort()
    return low


class Gantt:
    """When each job of a run waited and ran, and how many jobs waited, from stored per-job results."""

    def __init__(self, jobs: xr.Dataset) -> None:
        """Draw the chart and the queue under it."""
        from bokeh.layouts import column

        known = np.isfinite(jobs["start_s"].values) & np.isfinite(jobs["finish_s"].values)
        self.left_out = int((~known).sum()) + max(0, int(known.sum()) - _MOST_JOBS)
        columns = _columns_of(jobs, np.flatnonzero(known)[:_MOST_JOBS])
        chart = _draw_chart(columns)
        self.layout = column(chart, _draw_queue(columns, chart.x_range), sizing_mode="stretch_width")


def _columns_of(jobs: xr.Dataset, rows: NDArray[np.int64]) -> dict[str, Any]:
    """Return some jobs as columns of a table, times in hours."""
    submit, start, end = (jobs[name].values[rows].astype(float) for name in ("submit_s", "start_s", "finish_s"))
    size = jobs["requested_size"].values[rows].astype(np.int64)
    low = lanes(start, end, size)
    restarts = jobs["restarts"].values[rows] if "restarts" in jobs else np.zeros(len(rows))
    return {
        "submit": submit / HOUR,
        "left": start / HOUR,
        "right": end / HOUR,
        "bottom": low,
        "top": low + size,
        "job": jobs["job_id"].values[rows],
        "size": size,
        "wait": (start - submit) / HOUR,
        "restarts": restarts,
        "colour": np.where(restarts > 0, ORANGE, np.where(np.arange(len(rows)) % 2, "#3D93C4", BLUE)),
    }


_TOOLS = "pan,xbox_zoom,xwheel_zoom,reset,save"


def _empty_plot(height: int, **more: Any) -> Any:
    from bokeh.plotting import figure

    plot: Any = figure(height=height, tools=_TOOLS, sizing_mode="stretch_width", active_scroll=None, **more)
    page.style_plot(plot)
    return plot


def _draw_chart(columns: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource, HoverTool

    chart = _empty_plot(280)
    look = {"fill_color": "colour", "line_color": "white", "line_width": 0.3}
    boxes = chart.quad("left", "right", "top", "bottom", source=ColumnDataSource(columns), **look)
    tips = [
        ("job", "@job, @size nodes"),
        ("runs", "@left{0.00} to @right{0.00} h"),
        ("waited", "@wait{0.00} h"),
        ("restarts", "@restarts"),
    ]
    chart.add_tools(HoverTool(renderers=[boxes], tooltips=tips, visible=False))
    chart.yaxis.axis_label = "Nodes, by job"
    return chart


def _draw_queue(columns: dict[str, Any], x_range: Any) -> Any:
    every = np.concatenate([columns["submit"], columns["left"]])
    times, place = np.unique(every, return_inverse=True)  # who starts at once does not wait
    changes = np.bincount(place, np.repeat([1.0, -1.0], len(columns["submit"])))
    queue = _empty_plot(170, x_range=x_range)
    queue.step(times, np.cumsum(changes), mode="after", line_color=LIGHT.faint, line_width=1.6)
    queue.yaxis.axis_label, queue.xaxis.axis_label = "Waiting jobs", "Time (h)"
    return queue
