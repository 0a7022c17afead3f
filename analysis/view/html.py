"""Draws a run as one HTML page that works offline: zoom into the Gantt chart, step through a torus' occupancy."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.analysis.figures.layout import LIGHT
from faultsweep.analysis.figures.page import style_plot, write_page
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.view.content import (
    BANDS,
    COLOURS,
    CONTENT,
    DOWN_COLOUR,
    FREE_NODES,
    MARKS,
    MOST_MARKS,
    SECOND_BLUE,
    Content,
    Frames,
    Rectangles,
)
from faultsweep.analysis.view.png import AT_FRAME, HOLDERS, rectangle_colours
from faultsweep.analysis.view.replay import COUNTED, FATES
from numpy.typing import NDArray

from faultsweep.arguments import PATH, takes

_STRETCH: dict[str, Any] = {"sizing_mode": "stretch_width"}
_HEIGHTS = {"gantt": 380, "queue": 200, "bands": 210}
"""Without legends."""
_POINTS = {"x": "x", "o": "circle", "^": "triangle", "D": "diamond"}
_CELL_PX = 26
_WIDE_CELLS_PX = 1_050
_WIDE_MARK, _WIDE_LETTER, _LINE_PX = 40, 7.5, 23
"""Pixels of an entry of a legend: across, its mark and each letter; and its height."""

_STEP = """
const n = cells.data.x.length, k = slider.value;
for (let i = 0; i < n; i++) {
  const holder = nodes.data.holder[k * n + i];
  cells.data.colour[i] = holder < 0 ? down : holder == 0 ? "#FFFFFF" : palette[(holder - 1) % palette.length];
  cells.data.job[i] = holder < 0 ? "down" : holder == 0 ? "free" : "job " + (holder - 1);
  cells.data.ring[i] = nodes.data.largest[k * n + i] ? 0.4 : 0;
}
cells.change.emit();
const at = frames.data.time_h[k];
for (const line of lines) line.location = at;
text.text = `<b>Occupancy at ${at.toFixed(2)} h</b>: ${frames.data.free[k]} nodes free, the largest free box ` +
  `(dots) has ${frames.data.largest[k]}; the queue asks for ${frames.data.wanted[k]}`;
"""
_PLAY = """
if (toggle.active) {
  toggle.label = "Pause";
  const next = () => { slider.value = slider.value < slider.end ? slider.value + 1 : slider.start };
  toggle.tags = [setInterval(next, 150)];
} else {
  toggle.label = "Play";
  clearInterval(toggle.tags[0]);
}
"""


@takes(content=CONTENT, path=PATH)
def draw_html(content: Content, path: str | Path) -> None:
    """Write the page; everything that it needs is in it."""
    from bokeh.layouts import column
    from bokeh.models.widgets import Div

    heading = Div(text=f"<h2 style='font-family: sans-serif'>{escape(without_tex(content.title))}</h2>", **_STRETCH)
    words = escape(without_tex(" ".join(content.caption)))
    caption = Div(text=f"<p style='font-family: sans-serif'>{words}</p>", **_STRETCH)
    write_page(column(heading, *plots_of_run(content), caption, **_STRETCH), content.title, Path(path))


def plots_of_run(content: Content) -> list[Any]:
    """Return what the page of a run has, one below the other: Gantt chart, queue, shares, and occupancy of a torus."""
    gantt = _gantt(content)
    plots = [gantt, _queue(content, gantt.x_range), _bands(content, gantt.x_range)]
    return [*plots, *(_occupancy(content.frames, content.sides, plots) if content.frames is not None else [])]


def _figure(part: str, **options: Any) -> Any:
    from bokeh.plotting import figure

    made = figure(
        height=_HEIGHTS[part],
        tools="xpan,xwheel_zoom,box_zoom,reset,save",
        active_scroll="xwheel_zoom",
        **_STRETCH,
        **options,
    )
    made.toolbar.logo = None
    made.xaxis.axis_label = "time since the first arrival (h)"
    style_plot(made)
    made.min_border_left, made.min_border_right = 75, 75
    return made


def _gantt(content: Content) -> Any:
    from bokeh.models import Range1d
    from bokeh.models.annotations import Span

    nodes = content.run.machine.nodes
    x_range = Range1d(start=content.start_h, end=content.stop_h, bounds=(content.start_h, content.stop_h))
    plot = _figure("gantt", x_range=x_range, y_range=Range1d(start=0, end=nodes, bounds=(0, nodes)))
    plot.yaxis.axis_label = "node"
    entries = []
    if content.raster is not None:
        entries = _raster(plot, content, content.raster)
    elif content.rectangles is not None:
        entries = _rectangles(plot, content, content.rectangles)
    entries += _marks(plot, content)  # on top of what they mark
    for border in content.cluster_borders:
        plot.add_layout(Span(location=border, dimension="width", line_color=LIGHT.ink, line_dash="dashed"))
    _add_legend(plot, entries)
    return plot


_COLUMNS = """
legend.ncols = Math.max(1, Math.min(most, Math.floor(plot.inner_width / wide)));
plot.height = height + line * Math.ceil(most / legend.ncols);
"""


def _add_legend(plot: Any, entries: list[tuple[str, list[Any]]]) -> None:
    """Set a legend above a plot; in as many columns as the window has room for."""
    from bokeh.models import CustomJS
    from bokeh.models.annotations import Legend

    most, wide = max(1, len(entries)), _WIDE_MARK + _WIDE_LETTER * max((len(name) for name, _ in entries), default=1)
    look: dict[str, Any] = {"border_line_color": None, "background_fill_color": None, "label_text_color": LIGHT.ink}
    legend = Legend(items=entries, orientation="horizontal", location="top_left", ncols=most, margin=0, **look)
    plot.add_layout(legend, "above")
    known = {"legend": legend, "plot": plot, "most": most, "wide": wide, "height": plot.height, "line": _LINE_PX}
    plot.js_on_change("inner_width", CustomJS(args=known, code=_COLUMNS))


def _raster(plot: Any, content: Content, raster: NDArray[np.uint8]) -> list[tuple[str, list[Any]]]:
    image = np.ascontiguousarray(raster).view(np.uint32).reshape(raster.shape[:2])
    size = {"dw": content.stop_h - content.start_h, "dh": content.run.machine.nodes}
    plot.image_rgba([image], x=content.start_h, y=0, **size)
    fates = sorted(set(content.run.stays.fate.tolist()))
    entries = [(FATES[fate], [_swatch(plot, content, COLOURS[fate])]) for fate in fates]
    down = [("node down", [_swatch(plot, content, DOWN_COLOUR)])] if len(content.down[0]) else []
    return [*entries, *down]


def _swatch(plot: Any, content: Content, colour: str) -> Any:
    """Return a rectangle of no width, for the legend of an image."""
    at = [content.start_h]
    return plot.quad(left=at, right=at, bottom=[0], top=[0], fill_color=colour, line_color=None)


def _rectangles(plot: Any, content: Content, boxes: Rectangles) -> list[tuple[str, list[Any]]]:
    from bokeh.models import ColumnDataSource, HoverTool

    stays = content.run.stays
    colours = np.array(rectangle_colours(boxes, stays))
    fate = stays.fate[boxes.stay]
    entries = []
    where = [("from", "@left{0.00} h"), ("to", "@right{0.00} h")]
    for number, name in enumerate(FATES):
        drawn = []
        for colour in (COLOURS[number], *([SECOND_BLUE] if number == COUNTED else [])):
            mine = (fate == number) & (colours == colour)
            if not mine.any():
                continue
            stay = boxes.stay[mine]
            columns = {
                "left": boxes.start_h[mine],
                "right": boxes.end_h[mine],
                "bottom": boxes.low[mine],
                "top": boxes.high[mine] + 1,
                "high": boxes.high[mine],
                "job": stays.job_id[stay],
                "attempt": stays.attempt[stay] + 1,
                "held": stays.num_nodes[stay],
            }
            drawn.append(_quads(plot, ColumnDataSource(columns), colour))
        if drawn:
            tips = [("job", "@job (attempt @attempt), @held nodes"), ("nodes", "@bottom to @high"), *where, ("", name)]
            plot.add_tools(HoverTool(renderers=drawn, tooltips=tips))
            entries.append((name, drawn))
    if len(content.down[0]):
        node, since, until = content.down
        columns = {"left": since, "right": until, "bottom": node, "top": node + 1}
        down = _quads(plot, ColumnDataSource(columns), DOWN_COLOUR)
        plot.add_tools(HoverTool(renderers=[down], tooltips=[("node", "@bottom is down"), *where]))
        entries.append(("node down", [down]))
    return entries


def _quads(plot: Any, source: Any, colour: str) -> Any:
    return plot.quad("left", "right", "top", "bottom", source=source, fill_color=colour, line_color=None)


def _marks(plot: Any, content: Content) -> list[tuple[str, list[Any]]]:
    entries = []
    for kind, (times, places, _) in content.marks.items():
        if 0 < len(times) <= MOST_MARKS:
            marker, colour = MARKS[kind]
            line = colour if marker == "x" else LIGHT.ink
            style = {"marker": _POINTS[marker], "size": 8, "fill_color": colour, "line_color": line}
            entries.append((kind, [plot.scatter(times, places + 0.5, **style)]))
    return entries


def _queue(content: Content, x_range: Any) -> Any:
    from bokeh.models import AdaptiveTicker, LinearAxis, Range1d

    curves = content.curves
    plot = _figure("queue", x_range=x_range, y_range=Range1d(start=0, end=1.05 * max(1, curves.free_nodes.max())))
    edges = curves.edges_h
    free = np.append(curves.free_nodes, curves.free_nodes[-1])
    plot.varea_step(edges, np.zeros(len(edges)), free, color=FREE_NODES, fill_alpha=0.45, step_mode="after")
    plot.yaxis.axis_label = "free nodes (grey area)"
    plot.extra_y_ranges = {"jobs": Range1d(start=0, end=1.05 * max(1, curves.queue_jobs.max()))}
    axis = LinearAxis(y_range_name="jobs", axis_label="waiting jobs (line)", axis_label_text_color=LIGHT.faint)
    plot.add_layout(axis, "right")
    style_plot(plot)
    axis.axis_label_text_color = LIGHT.faint
    waiting = np.append(curves.queue_jobs, curves.queue_jobs[-1])
    plot.step(edges, waiting, mode="after", color=LIGHT.faint, line_width=2, y_range_name="jobs")
    for one in plot.yaxis:
        one.ticker = AdaptiveTicker(min_interval=1)  # there is no half a job
    return plot


def _bands(content: Content, x_range: Any) -> Any:
    from bokeh.models import Range1d

    curves = content.curves
    plot = _figure("bands", x_range=x_range, y_range=Range1d(start=0, end=100))
    plot.yaxis.axis_label = "share of the nodes (%)"
    base = np.zeros(len(curves.edges_h))
    entries = []
    for name, (label, colour) in BANDS.items():
        values = 100 * curves.bands[name]
        if values.any():
            top = base + np.append(values, values[-1])
            drawn = plot.varea_step(curves.edges_h, base, top, color=colour, step_mode="after")
            entries.append((f"{label}, {100 * curves.share[name]:.3g} %", [drawn]))
            base = top
    _add_legend(plot, entries)
    return plot


def _occupancy(frames: Frames, sides: tuple[int, int, int], plots: list[Any]) -> list[Any]:
    """Return the slices of the torus along x, with a slider and a button that step through time."""
    from bokeh.layouts import row
    from bokeh.models import ColumnDataSource, CustomJS
    from bokeh.models.annotations import Span
    from bokeh.models.widgets import Div, Toggle
    from bokeh.models.widgets.sliders import Slider
    from bokeh.plotting import figure

    X, Y, Z = sides
    x, y, z = np.unravel_index(np.arange(X * Y * Z), sides)
    at = {"x": x * (Z + 1) + z + 0.5, "y": y + 0.5, "z": z, "slice": x, "row": y}
    cells = ColumnDataSource({**at, "colour": [""] * len(x), "job": [""] * len(x), "ring": np.zeros(len(x))})
    nodes = ColumnDataSource({"holder": frames.holder.ravel(), "largest": frames.in_largest.ravel().astype(np.uint8)})
    names = ("time_h", "free", "largest", "wanted")
    source = ColumnDataSource({name: np.asarray(getattr(frames, name), float) for name in names})
    size = max(6, min(_CELL_PX, _WIDE_CELLS_PX // (X * (Z + 1))))
    tips = [("node", "x @slice, y @row, z @z"), ("", "@job")]
    ranges: dict[str, Any] = {"x_range": (-0.2, X * (Z + 1) - 0.8), "y_range": (-0.2, Y + 0.2)}
    plot = figure(
        width=X * (Z + 1) * size + 60,
        height=Y * size + 80,
        tools="hover",
        tooltips=tips,
        toolbar_location=None,
        **ranges,
    )
    plot.rect("x", "y", 0.94, 0.94, source=cells, fill_color="colour", line_color="#777777", name="cells")
    plot.ellipse("x", "y", "ring", "ring", source=cells, color=AT_FRAME)  # smaller than a cell in every window
    style_plot(plot)
    plot.grid.visible = False
    plot.yaxis.visible = False
    plot.xaxis.ticker = [i * (Z + 1) + Z / 2 for i in range(X)]
    plot.xaxis.major_label_overrides = {i * (Z + 1) + Z / 2: f"x = {i}" for i in range(X)}
    plot.xaxis.axis_label = f"slices of the torus along x;\nz from 0 to {Z - 1} to the right, y upwards"
    lines = [
        Span(location=0, dimension="height", line_color=LIGHT.ink, line_dash="dotted", line_width=2) for _ in plots
    ]
    for other, line in zip(plots, lines, strict=True):
        other.add_layout(line)
    text = Div(text="", **_STRETCH)
    slider = Slider(start=0, end=max(1, len(frames.time_h) - 1), value=0, step=1, title="step", **_STRETCH)
    names_of = {"cells": cells, "nodes": nodes, "frames": source, "slider": slider, "lines": lines, "text": text}
    step = CustomJS(args={**names_of, "palette": list(HOLDERS), "down": DOWN_COLOUR}, code=_STEP)
    slider.js_on_change("value", step)
    toggle = Toggle(label="Play", width=100)
    toggle.js_on_change("active", CustomJS(args={"toggle": toggle, "slider": slider}, code=_PLAY))
    _show(cells, frames, text, lines, frames.worst)
    slider.value = frames.worst
    return [text, row(toggle, slider, **_STRETCH), plot]


def _show(cells: Any, frames: Any, text: Any, lines: list[Any], frame: int) -> None:
    """Set what the page shows at first, as its script does for every step."""
    holder = frames.holder[frame].tolist()
    cells.data["colour"] = [
        DOWN_COLOUR if job < 0 else HOLDERS[(job - 1) % len(HOLDERS)] if job else "#FFFFFF" for job in holder
    ]
    cells.data["job"] = ["down" if job < 0 else f"job {job - 1}" if job else "free" for job in holder]
    cells.data["ring"] = np.where(frames.in_largest[frame], 0.4, 0.0)
    at = float(frames.time_h[frame])
    for line in lines:
        line.location = at
    text.text = (
        f"<b>Occupancy at {at:.2f} h</b>: {frames.free[frame]} nodes free, the largest free box (dots) has "
        f"{frames.largest[frame]}; the queue asks for {frames.wanted[frame]}"
    )
