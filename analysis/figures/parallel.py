"""Draws parallel coordinates: a line per configuration across axes that are scaled to their ranges."""

from __future__ import annotations

import textwrap
from math import pi
from typing import Any

import numpy as np
from faultsweep.analysis.figures.describe import short_number
from faultsweep.analysis.figures.figure import Numbers, Parallel
from faultsweep.analysis.figures.layout import LIGHT, Theme

HEIGHT = 360
UNKNOWN = "#BBBBBB"
"""Colour of a line whose value is not known."""
_LABEL = 14
"""Characters of a label beside an axis."""
_NAME = 18
"""Characters in a line of the name of an axis."""
_BELOW, _ABOVE = -0.08, 1.08


def ends(found: Parallel) -> tuple[float, float]:
    """Return where the picture begins and ends across: beside each axis is room for its labels."""
    return -0.2, len(found.names) - 0.1


def limits(found: Parallel) -> tuple[float, float]:
    """Return the values at the ends of the colours."""
    known = found.value[np.isfinite(found.value)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return low, high if high > low else low + 1.0


def names(found: Parallel) -> dict[float, str]:
    """Return the axes, by their places, in lines."""
    return {float(place): textwrap.fill(name, _NAME) for place, name in enumerate(found.names)}


def shorten(text: str) -> str:
    """Return what of a label has room beside the next axis of a picture."""
    return text if len(text) <= _LABEL else text[: _LABEL - 1].rstrip() + "…"


def ticks(found: Parallel) -> dict[str, list[Any]]:
    """Return the labels of all axes as columns of a table."""
    every = [(place, y, text) for place, own in enumerate(found.ticks) for y, text in own]
    return {name: [tick[part] for tick in every] for part, name in enumerate(("x", "y", "text"))}


def draw_png(axis: Any, found: Parallel, theme: Theme = LIGHT) -> None:
    """Draw them with matplotlib."""
    from matplotlib import colormaps
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    places = np.arange(len(found.names), dtype=float)
    paths = [np.column_stack([places, line]) for line in found.lines]
    colours = colormaps["viridis"].with_extremes(bad=UNKNOWN)
    drawn = LineCollection(paths, cmap=colours, norm=Normalize(*limits(found)), linewidth=0.9, alpha=0.6)
    drawn.set_array(np.ma.masked_invalid(found.value))
    axis.add_collection(drawn)
    axis.figure.colorbar(drawn, ax=axis, label=textwrap.fill(found.quantity, 34))
    axis.vlines(places, 0, 1, color=theme.faint, linewidth=0.8)
    paper: dict[str, Any] = {"facecolor": theme.paper, "alpha": 0.75, "edgecolor": "none", "pad": 1}
    columns = ticks(found)
    for x, y, text in zip(columns["x"], columns["y"], columns["text"], strict=True):
        axis.text(x + 0.03, y, shorten(text), va="center", fontsize=8, bbox=paper)
    axis.set_xlim(*ends(found))
    axis.set_ylim(_BELOW, _ABOVE)
    axis.set_xticks(places, names(found).values(), rotation=25, fontsize=9)
    axis.yaxis.set_visible(False)
    axis.spines[:].set_visible(False)


def source_of(found: Parallel) -> dict[str, Any]:
    """Return the lines as columns of a table."""
    across = np.arange(len(found.names), dtype=float).tolist()
    return {  # lists: each array would be a message of its own
        "xs": [across] * len(found.lines),
        "ys": found.lines.round(4).tolist(),
        "value": found.value,
    }


_FIT = """
const each = plot.inner_width / (plot.x_range.end - plot.x_range.start), slim = each < 110;
if (!(each > 0)) return;
const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.max(1, most - 1)).trimEnd() + '…';
if (axis.major_label_overrides !== plot.fitted_names) plot.names = axis.major_label_overrides;
if (labels.data !== plot.fitted_labels) plot.labels = labels.data;
const names = plot.names instanceof Map ? [...plot.names] : Object.entries(plot.names);
const short = new Map(names.map(([at, text]) => [Number(at), cut(text.replaceAll('\\n', ' '), 20)]));
axis.setv({
  major_label_overrides: slim ? short : plot.names,
  major_label_orientation: slim ? Math.PI / 2 : -0.4,
});
plot.fitted_names = axis.major_label_overrides;
const rounded = (value, digits) => {
  const [scale, sign] = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k']].find(([from]) => Math.abs(value) >= from)
    ?? [1, ''];
  return Number((value / scale).toPrecision(digits)) + sign;
};
const write = (text, most) => {
  const parts = text.match(/^([-−]?[\\d.,]+)( [kMGT]| × 10[⁻⁰¹²³⁴-⁹]+|)$/);
  if (text.length <= most || !parts) return cut(text, most);
  const value = Number(parts[1].replaceAll(',', '').replace('−', '-')), power = parts[2].replaceAll(' ', '');
  const scale = {'': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12}[power];
  const few = digits => scale ? rounded(value * scale, digits) : Number(value.toPrecision(digits)) + power;
  return [few(3), few(2)].find(own => own.length <= most) ?? few(scale ? 2 : 1);  // cut, it would be another number
};
const last = names.length - 1, rooms = [...plot.labels.x].map(x => (x < last ? each : 0.9 * each) - 6);
const text = [...plot.labels.text].map((own, n) => write(own, Math.floor(rooms[n] / 6)));
const same = text.every((own, n) => own === labels.data.text[n]) && text.length === labels.data.text.length;
plot.fitted_labels = same ? labels.data : {...plot.labels, text};
if (!same) labels.data = plot.fitted_labels;
"""
"""Where axes stand close their names are upright, and names and labels end with a mark where they have no room."""


def _fit(plot: Any, labels: Any) -> None:
    from bokeh.models import CustomJS

    axis = plot.xaxis[0]
    axis.syncable = labels.syncable = False  # what is drawn depends on the window, and is the browser's alone
    fit = CustomJS(args={"plot": plot, "axis": axis, "labels": labels}, code=_FIT)
    plot.js_on_change("inner_width", fit)
    labels.js_on_change("data", fit)
    axis.js_on_change("major_label_overrides", fit)
    for end in ("start", "end"):
        plot.x_range.js_on_change(end, fit)


def make_plot(lines: Any, labels: Any, tools: str) -> tuple[Any, Any]:
    """Return a Bokeh figure of lines and labels from two sources; and what gives the lines their colours.

    ``label_plot`` gives it its axes.
    """
    from bokeh.models import FixedTicker, LinearColorMapper, Range1d
    from bokeh.palettes import Viridis256
    from bokeh.plotting import figure

    ranges: dict[str, Any] = {"x_range": Range1d(), "y_range": Range1d(start=_BELOW, end=_ABOVE)}
    plot: Any = figure(height=HEIGHT, sizing_mode="stretch_width", tools=tools, active_scroll=None, **ranges)
    colours = LinearColorMapper(palette=Viridis256, low=0, high=1, nan_color=UNKNOWN)
    style = {"line_alpha": 0.6, "nonselection_line_alpha": 0.04, "line_width": 1}
    drawn = plot.multi_line(
        "xs", "ys", source=lines, line_color={"field": "value", "transform": colours}, name="lines", **style
    )
    drawn.selection_glyph = drawn.glyph.clone(line_alpha=0.9, line_width=1)
    look = {"text_font_size": "11px", "text_color": LIGHT.ink, "text_baseline": "middle", "x_offset": 5}
    look |= {"background_fill_color": LIGHT.paper, "background_fill_alpha": 0.75}
    plot.text("x", "y", "text", source=labels, **look)
    plot.yaxis.visible = plot.ygrid.visible = False
    plot.xaxis.ticker = FixedTicker()
    plot.xaxis.major_label_orientation = pi / 2  # slanted names would leave a mark where they are cut by the edge
    _fit(plot, labels)
    return plot, colours


def label_plot(plot: Any, colours: Any, labels: Any, found: Parallel) -> None:
    """Give a Bokeh figure its axes with their labels, and the ends of its colours."""
    labels.data = ticks(found)
    words = names(found)
    plot.xaxis[0].ticker.ticks = list(words)  # a new ticker would let Bokeh list all models of the page again
    plot.xaxis.major_label_overrides = words
    start, end = ends(found)
    plot.xgrid.grid_line_color = LIGHT.faint
    if plot.x_range.reset_end != end:  # else it may be zoomed
        plot.x_range.update(start=start, end=end, reset_start=start, reset_end=end)
    colours.low, colours.high = limits(found)


def scaled(values: Numbers) -> tuple[Numbers, list[tuple[float, str]]]:
    """Return numbers scaled to their range, and labels of its ends and middle."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    if high == low:
        return np.where(np.isfinite(values), 0.5, np.nan), [(0.5, _written(low))]
    return (values - low) / (high - low), [(y, _written((1 - y) * low + y * high)) for y in (0.0, 0.5, 1.0)]


def _written(value: float) -> str:
    return short_number(value, 4).replace("-", "−")
