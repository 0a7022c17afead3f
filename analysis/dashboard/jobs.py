"""The jobs of single runs: their distribution, and when each held how many nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.cells import labels_at
from faultsweep.analysis.dashboard.choices import REPLICATE
from faultsweep.analysis.dashboard.metrics import label_in_words
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.figure import BLUE, LOOKS, ORANGE
from faultsweep.analysis.figures.layout import LIGHT
from faultsweep.analysis.open import open_jobs
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


class Distribution:
    """The share of jobs whose wait, say, is at most so long: a step curve per selected configuration, by hvPlot."""

    def __init__(self, data: xr.Dataset, cells: Sequence[int], column: str) -> None:
        """Draw the first replicate of each of some configurations; those without jobs are left out."""
        import holoviews as hv
        import hvplot.pandas  # noqa: F401 - gives data frames .hvplot

        frames, names, unit = [], [], ""
        found = []
        for cell in list(cells)[:MOST_RUNS]:
            try:
                jobs = jobs_of(data, int(cell))
            except InputError:
                continue
            if column in jobs:
                values = np.sort(jobs[column].values[np.isfinite(jobs[column].values)].astype(float))
                found.append((int(cell), values))
        longest = max((float(values.max(initial=0)) for _, values in found), default=0.0)
        scale = 1.0
        if column.endswith("_s"):
            unit, scale = time_unit(longest)
        varied = _differing(data, [cell for cell, _ in found])
        for number, (cell, values) in enumerate(found):
            at = np.unique(np.linspace(0, len(values) - 1, min(_MOST_STEPS, len(values))).astype(int))
            x, y = values[at] / scale, (at + 1) / max(1, len(values))
            frames.append(pd.DataFrame({"x": x, "share": y, "run": f"run {number}"}))
            own = labels_at(data, cell)
            names.append(", ".join(label_in_words(data, axis, own[axis]) for axis in varied) or "the run")
        self.names = [(name, LOOKS[number].colour) for number, name in enumerate(names)]
        frame = pd.concat(frames) if frames else pd.DataFrame({"x": [0.0], "share": [0.0], "run": ["run 0"]})
        positive = bool((frame["x"] > 0).all())
        drawn = frame.hvplot.step(
            x="x",
            y="share",
            by="run",
            where="post",
            color=[LOOKS[n].colour for n in range(max(1, len(names)))],
            responsive=True,
            height=_HEIGHT,
            legend=False,
            logx=positive and bool(frame["x"].max() > 50 * frame["x"].min()),
            tools=["hover"],
        )
        self.layout: Any = hv.render(drawn, backend="bokeh")
        page.style_plot(self.layout)
        self.layout.output_backend = "canvas"
        self.layout.toolbar.active_scroll = None
        words = COLUMNS.get(column, column)
        self.layout.xaxis.axis_label = f"{words} of a job at most ({unit})" if unit else f"{words} of a job at most"
        self.layout.yaxis.axis_label = "Share of the jobs"
        self.layout.title.text = ""


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
        from bokeh.models import ColumnDataSource, HoverTool
        from bokeh.plotting import figure

        known = np.isfinite(jobs["start_s"].values) & np.isfinite(jobs["finish_s"].values)
        self.left_out = int((~known).sum()) + max(0, int(known.sum()) - _MOST_JOBS)
        rows = np.flatnonzero(known)[:_MOST_JOBS]
        submit, start, end = (jobs[name].values[rows].astype(float) for name in ("submit_s", "start_s", "finish_s"))
        size = jobs["requested_size"].values[rows].astype(np.int64)
        low = lanes(start, end, size)
        restarts = jobs["restarts"].values[rows] if "restarts" in jobs else np.zeros(len(rows))
        source = ColumnDataSource(
            {
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
        )
        style: dict[str, Any] = {"sizing_mode": "stretch_width", "active_scroll": None}
        chart: Any = figure(height=280, tools="pan,xbox_zoom,xwheel_zoom,reset", **style)
        boxes = chart.quad(
            "left", "right", "top", "bottom", source=source, fill_color="colour", line_color="white", line_width=0.3
        )
        tips = [
            ("job", "@job, @size nodes"),
            ("runs", "@left{0.00} to @right{0.00} h"),
            ("waited", "@wait{0.00} h"),
            ("restarts", "@restarts"),
        ]
        chart.add_tools(HoverTool(renderers=[boxes], tooltips=tips, visible=False))
        chart.yaxis.axis_label = "Nodes, by job"
        times = np.concatenate([submit, start])
        steps = np.concatenate([np.ones(len(submit)), -np.ones(len(start))])
        order = np.lexsort((steps, times))
        queue: Any = figure(height=170, tools="pan,xbox_zoom,xwheel_zoom,reset", x_range=chart.x_range, **style)
        queue.step(times[order] / HOUR, np.cumsum(steps[order]), mode="after", line_color=LIGHT.faint, line_width=1.6)
        queue.yaxis.axis_label = "Waiting jobs"
        queue.xaxis.axis_label = "Time (h)"
        for plot in (chart, queue):
            page.style_plot(plot)
        self.layout = column(chart, queue, sizing_mode="stretch_width")
