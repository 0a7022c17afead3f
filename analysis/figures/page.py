"""Draws a ``Figure`` with Bokeh: as a page that works without a network, and panel by panel for the dashboard."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat as heat_maps
from faultsweep.analysis.figures import parallel as parallels
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Numbers, Panel, Parallel, Style, Table
from faultsweep.analysis.figures.layout import (
    DARK,
    LARGEST_IN_FULL,
    LIGHT,
    LIKE_INK,
    Limits,
    as_curves,
    bar_width,
    begins_row,
    beyond,
    caption_of,
    is_banded,
    labels,
    named_ticks,
    offset_of_bar,
    places,
    shared_scales,
    y_limits,
)
from faultsweep.analysis.figures.texts import guarded, without_tex
from faultsweep.analysis.figures.words import interval_in_words, signed_number

from faultsweep.files import writing

POINTS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond", "v": "inverted_triangle", "P": "plus"}
HEIGHT = 340
TOOLS = "pan,box_zoom,wheel_zoom,reset"
_IN_THE_MIDDLE = {"text_align": "center", "text_baseline": "middle"}
_LONG_LABEL = 6
_RING, _SMALL_RING = 17.0, 10.0
_INSIDE = 0.012  # of the height, from the edge to the middle of an arrow
_FEW_BARS = 12  # of a panel, whose rings do not touch
_MOST_SLANTED = 20  # categories whose slanted names do not touch
_LONG_NAMES = 34  # characters of all categories together, that stand below bars without touching
_ROOM = 40  # characters below the bars of a narrow window


# Curves and bars


def columns_of(panel: Panel) -> list[dict[str, Any]]:
    """Return the numbers of each series as columns of a table; ``at`` is where along x its points are drawn."""
    tables = []
    series, at = as_curves(panel), places(panel)
    base = np.zeros(len(panel.categories))
    ring = _RING if len(panel.bars) * len(panel.categories) <= _FEW_BARS else _SMALL_RING
    for number, curve in enumerate(series):
        data: dict[str, Any] = {name: getattr(curve, name) for name in ("x", "y", "low", "high")}
        data |= _told(curve.y, curve.low, curve.high)
        data["label"] = [curve.label] * len(curve.x)
        data["ring"] = np.zeros(len(curve.x)) if curve.flagged is None else np.where(curve.flagged, ring, 0.0)
        if panel.bars:
            offset = offset_of_bar(panel, number)
            data["x"] = data["at"] = [(name, offset) for name in panel.categories]
            data["floor"] = base
            data["top"] = base + curve.y if panel.stacked else curve.y
            base = data["top"] if panel.stacked else base
        else:
            data["at"] = at[number]
        tables.append(data)
    return tables


def _told(value: Numbers, low: Numbers, high: Numbers) -> dict[str, list[str]]:
    """Return what is told of points under the mouse: their values and intervals in words."""
    intervals = map(interval_in_words, low, high)
    return {"number": [signed_number(one, 5) for one in value], "interval": list(intervals)}


def dots_of(panel: Panel) -> list[dict[str, Any]]:
    """Return the replicates of each series as columns of a table."""
    tables = []
    for number, (curve, at) in enumerate(zip(as_curves(panel), columns_of(panel), strict=True)):
        replicates = curve.replicates if curve.replicates is not None else np.zeros((len(curve.x), 0))
        x = [place for place in at["at"] for _ in range(replicates.shape[1])]
        tables.append({"at": x, "y": replicates.ravel(), "number": [number] * len(x)})
    return tables


def axis_labels(panel: Panel) -> tuple[str, str]:
    """Return the labels of x and y, in lines."""
    return panel.x_label, textwrap.fill(panel.y_label, 34)


_LOG_TICKS = """
const [low, high] = [cb_data.start, cb_data.end].sort((a, b) => a - b);
if (!(low > 0)) return [];
const decades = Math.log10(high) - Math.log10(low), found = [];
const digits = decades <= most / 3 ? [1, 2, 5] : decades <= 2.5 ? [1, 3] : [1];
const first = Math.floor(Math.log10(low)), each = Math.max(1, Math.round(1.5 * decades / most));
for (let power = first; power <= Math.log10(high); power += each)
  for (const digit of digits) found.push(Number(`${digit}e${power}`));
const shown = found.filter(tick => low <= tick && tick <= high);
if (shown.length >= 3 || decades > 1.5) return shown;
const rough = (high - low) / 4, power = 10 ** Math.floor(Math.log10(rough));
const step = [1, 2, 5, 10].map(digit => digit * power).find(own => rough <= 1.5 * own), even = [];
for (let at = Math.ceil(low / step); at <= high / step; at++) even.push(Number((at * step).toPrecision(12)));
return even;
"""
"""The ticks of ``layout.log_ticks`` while it is zoomed; those of Bokeh are even, and lie on each other at the top."""


def make_plot(panel: Panel, limits: Limits | None = None, tools: str = TOOLS, height: int = HEIGHT) -> Any:
    """Return an empty Bokeh figure with the axes of a panel of curves or bars."""
    from bokeh.models import CustomJSTicker, NoOverlap, Range1d
    from bokeh.plotting import figure

    across: dict[str, Any] = {"x_axis_type": "log" if panel.log_x else "linear"}
    if panel.bars:
        across = {"x_range": panel.categories}
    if limits is not None:
        across["y_range"] = Range1d(start=limits[0], end=limits[1])
    x_label, y_label = axis_labels(panel)
    plot: Any = figure(
        height=height,
        title=panel.title,
        x_axis_label=x_label,
        y_axis_label=y_label,
        y_axis_type="log" if panel.log_y else "linear",
        tools=tools,
        active_scroll=None,
        sizing_mode="stretch_width",
        **across,
    )
    style_plot(plot)
    if panel.log_y:
        plot.yaxis.ticker = CustomJSTicker(major_code=_LOG_TICKS, args={"most": 12})
    if ticks := named_ticks(panel):
        plot.xaxis.major_label_policy = NoOverlap(min_distance=4)
        plot.xaxis.ticker = list(ticks)
        plot.xaxis.major_label_overrides = ticks
    if panel.stacked:
        from bokeh.models import NumeralTickFormatter

        plot.yaxis.formatter = NumeralTickFormatter(format="0 %")
    if panel.bars:
        plot.xgrid.visible = False
        names = panel.categories
        beside = max((len(one) + len(other) for one, other in pairwise(names)), default=0) / 2 + 1
        if sum(map(len, names)) > _LONG_NAMES or beside * len(names) > _ROOM:
            plot.xaxis.major_label_orientation = 0.6
        if len(panel.categories) > _MOST_SLANTED:
            plot.xaxis.major_label_orientation, plot.xaxis.major_label_text_font_size = "vertical", "10px"
    return plot


def draw_series(
    plot: Any, panel: Panel, sources: Sequence[Any], bands: bool = True, dots: Sequence[Any] = ()
) -> list[Any]:
    """Draw the curves or bars of a panel from the columns of each; returns what can be pointed at, one per series."""
    from bokeh.models.annotations import Span

    if panel.signed or panel.ratio or not panel.bars:
        line = LIGHT.faint if panel.signed or panel.ratio else LIGHT.grid
        look: dict[str, Any] = {"line_color": line, "line_width": 1.0, "level": "underlay"}
        plot.add_layout(Span(location=int(panel.ratio), dimension="width", **look))
    shown = []
    for number, curve in enumerate(as_curves(panel)):
        shown.append(_draw_one(plot, panel, curve, sources[number], bands))
        if dots:
            colour = LIGHT.ink if panel.bars else curve.style.colour
            plot.scatter("at", "y", marker="dash", size=7, line_color=colour, source=dots[number], name=curve.label)
    return shown


def _source(data: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource(data)


def _draw_one(plot: Any, panel: Panel, curve: Curve, source: Any, bands: bool) -> Any:
    known = {"source": source, "name": curve.label}
    look = {"color": curve.style.colour, **known}
    if panel.bars and panel.log_y:
        if bands:
            plot.segment("at", "low", "at", "high", line_width=1.4, **look)
        shown = plot.scatter("at", "top", marker=POINTS[curve.style.marker], size=8, **look)
    elif panel.bars:
        shown = plot.vbar("at", bar_width(panel) * 0.93, "top", "floor", **look)
        if bands and not panel.stacked:
            if curve.style.colour in LIKE_INK:
                plot.segment("at", "low", "at", "high", line_color=LIGHT.paper, line_width=3.3, **known)
            plot.segment("at", "low", "at", "high", line_color=LIGHT.ink, line_width=1.3, **known)
    else:
        if bands and is_banded(panel):
            plot.varea("at", "low", "high", fill_alpha=0.2, **look)
        elif bands:
            plot.segment("at", "low", "at", "high", line_width=1.4, **look)
        shown = _draw_line(plot, curve.style, look)
    rings = {"fill_color": None, "line_color": LIGHT.faint, "line_width": 1.5}
    height = "top" if panel.bars else "y"
    plot.scatter("at", height, size="ring", **known, **rings).nonselection_glyph = None
    return shown


def _draw_line(plot: Any, style: Style, look: dict[str, Any]) -> Any:
    dash = "dashed" if style.dashed else "solid"
    line = plot.line("at", "y", line_width=2.2, line_dash=dash, **look) if style.joined else None
    if not style.marker:
        return line
    fill = {"fill_color": LIGHT.paper} if style.dashed else {}
    return plot.scatter("at", "y", marker=POINTS[style.marker], size=8, **{**look, **fill})


_WRITTEN = """
const written = (value, most, digits) => {
  const [scale, sign] = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M']].find(([from]) => most >= from) ?? [1, ''];
  const raised = power => [...power].map(digit => digit === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit]).join('');
  const own = most >= 1e15 || most < 1e-4 ? Number(value.toPrecision(4)).toExponential() : '';
  const text = !value ? '0' : own ? own.replace(/e[+]?(-?[0-9]+)/, (_, power) => ' × 10' + raised(power))
    : Number((value / scale).toPrecision(digits)).toLocaleString('en', {maximumFractionDigits: 6}) + sign;
  return text.replace('-', '−');
};
"""
"""Large numbers as people write them, 800 M; beyond them, and for very small ones, powers of ten."""
_LINEAR_TICK = f"{_WRITTEN}return written(tick, Math.max(...ticks.map(Math.abs), Math.abs(tick)), 10);"
_LOG_TICK = f"{_WRITTEN}return written(tick, Math.abs(tick), 10).replace(/^1 × 10/, '10');"
_VALUE = f"{_WRITTEN}return Number.isFinite(value) ? written(value, Math.abs(value), 5) : '';"


def tips_of(shown: Sequence[Any], tips: Sequence[tuple[str, str]]) -> Any:
    """Return the tool that tells what is under the mouse; numbers in ``tips`` stand as "@name{custom}"."""
    from bokeh.models import CustomJSHover, HoverTool

    names = [part.partition("{")[0] for _, tip in tips for part in tip.split("@") if "{custom}" in part]
    formatters: dict[str, Any] = {f"@{name}": CustomJSHover(code=_VALUE) for name in names}
    return HoverTool(renderers=list(shown), tooltips=list(tips), formatters=formatters, visible=False)


def add_tips(plot: Any, shown: Sequence[Any], is_heat: bool = False) -> None:
    """Let a plot tell the numbers under the mouse."""
    where = [("", "@x, @y")] if is_heat else [("", "@label"), ("at", "@x")]
    plot.add_tools(tips_of(shown, [*where, ("value", "@number"), ("95 % interval", "@interval")]))


def write_large(plot: Any) -> None:
    """Let the ticks of axes be numbers that people read, however large."""
    from bokeh.models import NoOverlap

    for axis in plot.axis:
        if type(axis).__name__ in ("LinearAxis", "LogAxis"):
            axis.formatter = _written_ticks(type(axis).__name__ == "LogAxis")
            axis.major_label_policy = NoOverlap()


def _written_ticks(is_log: bool) -> Any:
    from bokeh.models import CustomJSTickFormatter

    return CustomJSTickFormatter(code=_LOG_TICK if is_log else _LINEAR_TICK)


def style_plot(plot: Any) -> None:
    """Give axes, grid and title the sizes and colours that pictures have."""
    from bokeh.models import BasicTickFormatter, LogTickFormatter

    for axis in plot.axis:
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "14px", "13px"
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = LIGHT.ink
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = LIGHT.faint
        if isinstance(axis.formatter, BasicTickFormatter):
            axis.formatter.power_limit_high = LARGEST_IN_FULL
        if isinstance(axis.formatter, LogTickFormatter):
            axis.formatter.min_exponent = LARGEST_IN_FULL
    plot.grid.grid_line_color = LIGHT.grid
    plot.title.text_font_size, plot.title.text_color = "14px", LIGHT.ink
    plot.background_fill_color = plot.border_fill_color = None  # the page's own shows
    plot.outline_line_color = None
    plot.toolbar.logo = None
    plot.toolbar.autohide = True


# Heat maps


def draw_heat(source: Any, colours: Any, tools: str = TOOLS, height: int = HEIGHT) -> Any:
    """Return a Bokeh figure of cells with their numbers, without ends of its axes or labels."""
    from bokeh.models import FixedTicker, NoOverlap, Range1d
    from bokeh.plotting import figure

    ranges: dict[str, Any] = {"x_range": Range1d(start=0, end=1), "y_range": Range1d(start=0, end=1)}
    plot: Any = figure(height=height, sizing_mode="stretch_width", tools=tools, active_scroll=None, **ranges)
    plot.xaxis.major_label_policy = NoOverlap()
    fill = {"field": "value", "transform": colours}
    cells = plot.rect("column", "row", 1, 1, source=source, line_color=fill, fill_color=fill)
    cells.nonselection_glyph = None
    cells.selection_glyph = cells.glyph.clone(line_color="black", line_width=3)
    words = {"text_color": "ink", "text_font_size": "13px", **_IN_THE_MIDDLE}
    numbers = plot.text("column", "row", "text", source=source, **words)
    numbers.nonselection_glyph = numbers.selection_glyph = None
    _fit_numbers(plot, numbers, source)
    add_tips(plot, [cells], is_heat=True)
    style_plot(plot)
    plot.xaxis.ticker, plot.yaxis.ticker = FixedTicker(), FixedTicker()
    plot.grid.visible = False
    return plot


_FIT_NUMBERS = """
const widest = Math.max(1, ...[...source.data.text].map(text => text.length));
const size = Math.floor(plot.inner_width / (plot.x_range.end - plot.x_range.start) / widest / 0.64);
const shown = size >= 8, wanted = `${Math.min(13, Math.max(8, size))}px`;
if (numbers.visible !== shown) numbers.visible = shown;
if (numbers.glyph.text_font_size.value !== wanted) numbers.glyph.text_font_size = {value: wanted};
"""
"""Numbers are as large as the cells have room for, and not there where nobody could read them."""


def _fit_numbers(plot: Any, numbers: Any, source: Any) -> None:
    from bokeh.models import CustomJS

    fit = CustomJS(args={"plot": plot, "numbers": numbers, "source": source}, code=_FIT_NUMBERS)
    plot.js_on_change("inner_width", fit)
    source.js_on_change("data", fit)
    for end in ("start", "end"):
        plot.x_range.js_on_change(end, fit)


def colours_of(heat: Heat) -> Any:
    """Return what gives the cells of a heat map their colours, without limits."""
    from bokeh.models import LinearColorMapper, LogColorMapper

    palette = heat_maps.palette(heat)
    return (LogColorMapper if heat.log else LinearColorMapper)(palette=palette, nan_color="#E6E6E6")


def colour_bar(colours: Any) -> Any:
    """Return the scale beside a heat map."""
    from bokeh.models.annotations import ColorBar

    bar = ColorBar(color_mapper=colours, width=14)
    style_bar(bar)
    return bar


def style_bar(bar: Any) -> None:
    """Give a scale of colours the sizes, colours and numbers that axes have."""
    from bokeh.models import BasicTicker, CustomJSTicker

    is_log = type(bar.color_mapper).__name__ == "LogColorMapper"
    bar.title_text_font_size = bar.major_label_text_font_size = "13px"
    bar.title_text_font_style = "normal"
    bar.title_text_color = bar.major_label_text_color = LIGHT.ink
    bar.background_fill_color = None
    bar.formatter = _written_ticks(is_log)
    bar.ticker = CustomJSTicker(major_code=_LOG_TICKS, args={"most": 5}) if is_log else BasicTicker(desired_num_ticks=4)


def label_heat(plot: Any, panel: Panel, heat: Heat) -> None:
    """Give a heat map the labels of its axes and cells."""
    plot.xaxis.axis_label, plot.yaxis.axis_label = panel.x_label, panel.y_label
    slanted = max(map(len, heat.x_labels)) > _LONG_LABEL
    plot.xaxis.major_label_orientation = 0.5 if slanted else "horizontal"
    plot.xaxis[0].major_label_policy.min_distance = -1000 if slanted else 4  # slanted ones have room above each other
    for ends, axis, names in ((plot.x_range, plot.xaxis, heat.x_labels), (plot.y_range, plot.yaxis, heat.y_labels)):
        if axis[0].major_label_overrides != dict(enumerate(names)):  # else it may be zoomed
            ends.update(start=-0.5, end=len(names) - 0.5, reset_start=-0.5, reset_end=len(names) - 0.5)
        step = -(-len(names) // heat_maps.MOST_TICKS)
        # a new ticker would have the page searched for models
        axis.ticker.ticks = list(range(0, len(names), step))
        axis.major_label_overrides = dict(enumerate(names))


def cells_of_heat(heat: Heat) -> dict[str, Any]:
    """Return the cells of a heat map, a row of the table each, the columns of its first row first."""
    rows, columns = heat.value.shape
    dark = heat_maps.dark(heat).ravel()
    room = heat_maps.has_room(heat)
    texts = heat_maps.texts(heat) if room else [""] * heat.value.size
    return {
        "column": np.tile(np.arange(columns, dtype=float), rows),
        "row": np.repeat(np.arange(rows, dtype=float), columns),
        "x": np.tile(heat.x_labels, rows).tolist(),
        "y": np.repeat(heat.y_labels, columns).tolist(),
        "value": heat.value.ravel(),
        **_told(heat.value.ravel(), heat.low.ravel(), heat.high.ravel()),
        "text": texts,
        "ink": np.where(dark, "white", "black").tolist(),
    }


# The page


def plots_of(figure: Figure) -> list[Any]:
    """Return a Bokeh figure per panel; a surface is left out, because the map beside it has its numbers."""
    figure = shared_scales(figure)
    limits = y_limits(figure)
    return [_plot_of(panel, limits[n]) for n, panel in enumerate(figure.panels) if not panel.surface]


def _plot_of(panel: Panel, limits: Limits | None) -> Any:
    if panel.heat is not None:
        colours = colours_of(panel.heat)
        colours.low, colours.high = heat_maps.limits(panel.heat)
        plot = draw_heat(_source(cells_of_heat(panel.heat)), colours)
        label_heat(plot, panel, panel.heat)
        plot.add_layout(colour_bar(colours), "right")
        return plot
    if panel.parallel is not None:
        return _parallel_plot(panel.parallel)
    plot = make_plot(panel, limits)
    sources, dots = ([_source(data) for data in tables] for tables in (columns_of(panel), dots_of(panel)))
    add_tips(plot, draw_series(plot, panel, sources, dots=dots if any(len(one.data["y"]) for one in dots) else ()))
    if limits is not None and not panel.stacked and not is_banded(panel):
        _draw_arrows(plot, panel, sources, limits)
    plot.title.visible = False  # it stands above the plot, where it has room for lines
    return plot


def _parallel_plot(found: Parallel) -> Any:
    lines, ticks = _source(parallels.source_of(found)), _source({"x": [], "y": [], "text": []})
    plot, colours = draw_parallel(lines, ticks, TOOLS)
    parallels.label_plot(plot, colours, ticks, found)
    bar = colour_bar(colours)
    bar.title = textwrap.fill(found.quantity, 40)
    plot.add_layout(bar, "right")
    return plot


def draw_parallel(lines: Any, ticks: Any, tools: str) -> tuple[Any, Any]:
    """Return a Bokeh figure of parallel coordinates from two sources, and what gives the lines their colours."""
    plot, colours = parallels.make_plot(lines, ticks, tools)
    style_plot(plot)
    return plot, colours


def _draw_arrows(plot: Any, panel: Panel, sources: Sequence[Any], limits: Limits) -> None:
    """Mark the intervals that go on beyond the panel; marks on its edge would be cut."""
    low, high = np.log(limits) if panel.log_y else limits
    room = _INSIDE * (high - low)
    inside = np.exp([low + room, high - room]) if panel.log_y else [low + room, high - room]
    for curve, source in zip(as_curves(panel), sources, strict=True):
        colour = LIGHT.ink if panel.bars and not panel.log_y else curve.style.colour
        for cut, end, shape in zip(beyond(curve, limits), inside, ("inverted_triangle", "triangle"), strict=True):
            at = [place for place, is_cut in zip(source.data["at"], cut, strict=True) if is_cut]
            if at:
                data = _source({"at": at, "end": [end] * len(at)})
                plot.scatter("at", "end", marker=shape, size=6, color=colour, source=data, name=curve.label)


def _title(panel: Panel) -> str:
    return "; ".join(filter(None, [panel.title, panel.heat.quantity if panel.heat else ""]))


def draw_html(figure: Figure, path: Path) -> None:
    """Write the figure as one HTML file that asks nothing of a network (all scripts are in it, about 1 MB).

    Panels stand side by side where the window has room, in a column where it has not; colours follow the reader's
    choice of light or dark. A click on an entry of the legend hides its series.
    """
    with writing(path):
        path.write_text(guarded(_page(figure)), encoding="utf-8")


def _page(figure: Figure) -> str:
    from bokeh.embed import components
    from bokeh.resources import Resources

    figure = without_tex(figure)
    plots = plots_of(figure)
    script, holders = components(plots) if plots else ("", ())
    scripts = _without_addresses(Resources(mode="inline", components=["bokeh"]).render_js()) if plots else ""
    shown = [(n, panel) for n, panel in enumerate(figure.panels) if not panel.surface]
    titles = [f"<h2>{escape(_title(panel))}</h2>" if _title(panel) else "" for _, panel in shown]
    kinds = ["panel first" if begins_row(figure, number) else "panel" for number, _ in shown]
    parts = zip(kinds, titles, holders, strict=True) if plots else ()
    body = "".join(f'<div class="{kind}">{title}{holder}</div>' for kind, title, holder in parts)
    least = 300 if len(plots) > 1 else 280
    most = min(figure.columns, len(plots)) or 1
    grid = f"{'max-width:56rem;' if len(plots) == 1 else ''}--least:max({least}px,{100 / most - 2:.1f}%)"
    table = _table(figure.table) if figure.table else ""
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in figure.facts)
    sheet = f"<details><summary>Data sheet</summary><ul>{facts}</ul></details>" if facts else ""
    source = f'<p class="faint">After {escape(figure.source)}.</p>' if figure.source else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(figure.title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style>{scripts}</head><body><h1>{escape(figure.title)}</h1>{_key(figure)}"
        f'<div class="panels" style="{grid}">{body}</div>{table}'
        f'<p class="caption">{escape(" ".join(caption_of(figure)))}</p>{source}{sheet}'
        f"{script}{_script() if plots else ''}</body></html>\n"
    )


_COLOURS = (
    ":root{color-scheme:light dark;"
    f"--paper:light-dark({LIGHT.paper},{DARK.paper});--ink:light-dark({LIGHT.ink},{DARK.ink});"
    f"--faint:light-dark({LIGHT.faint},{DARK.faint});--grid:light-dark({LIGHT.grid},{DARK.grid})}}"
    "body{color:var(--ink);background:var(--paper)}"
)
_STYLE = (
    _COLOURS
    + """
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  padding: 1rem; max-width: 90rem; box-sizing: border-box }
h1 { font-size: 1.3rem; margin: .2em 0 .6em }
h2 { font-size: 1rem; margin: .2em 0 0 3.5rem; font-weight: 600 } .faint { color: var(--faint); font-size: .9rem }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least)), 1fr)); gap: .8rem }
.panel { min-width: 0 } .first { grid-column-start: 1 } .caption { max-width: 50rem }
.key { display: flex; flex-wrap: wrap; gap: .1rem .9rem; margin-bottom: .5rem }
.key button { all: unset; cursor: pointer; display: inline-flex; align-items: center; gap: .4rem; font-size: .95rem }
.key button:focus-visible { outline: 2px solid var(--faint) } .key button[aria-pressed=false] { opacity: .35 }
table { border-collapse: collapse; font-size: .95rem } th, td { padding: .25em .8em; text-align: right;
  border-bottom: 1px solid var(--grid) } th:first-child, td:first-child { text-align: left }
.wide { overflow-x: auto } details { max-width: 50rem } summary { cursor: pointer }
@media (max-width: 34rem) { th, td { padding: .25em .3em; font-size: .85rem } }
@media print { .panel { break-inside: avoid } body { padding: 0 } }
"""
)


def _script() -> str:
    """Return the script that follows the reader's choice of light or dark, and hides series."""
    pairs = [(getattr(LIGHT, part), getattr(DARK, part)) for part in ("paper", "ink", "faint", "grid")]
    colours = {old.lower(): new.lower() for old, new in [*pairs, *DARK.instead]}
    return f"<script>const TO_DARK = {json.dumps(colours)};\n{_FOLLOW}</script>"


_FOLLOW = """
const models = (wanted) => Bokeh.documents.flatMap(d => [...d._all_models.values()]).filter(wanted);
const repaint = (colours) => models(() => true).forEach(model => {
  for (const property of model) {
    if (!property.attr.endsWith('_color') || property.is_unset) continue;
    const value = model[property.attr], own = value?.value ?? value;
    const other = typeof own === 'string' ? colours[own.toLowerCase()] : undefined;
    if (other) model.setv({[property.attr]: value?.value ? {...value, value: other} : other});
  }
});
const dark = matchMedia('(prefers-color-scheme: dark)');
const toLight = Object.fromEntries(Object.entries(TO_DARK).map(([light, dark]) => [dark, light]));
const ready = () => {
  if (!Bokeh.documents.length || document.querySelector('.panel > div:empty')) return setTimeout(ready, 20);
  if (dark.matches) repaint(TO_DARK);
  dark.addEventListener('change', change => repaint(change.matches ? TO_DARK : toLight));
  // under a finger a drag moves the page, until one of the tools of a plot is chosen
  if (matchMedia('(pointer: coarse)').matches) {
    models(m => m.type === 'Toolbar').forEach(bar => { bar.autohide = false; });
    models(m => m.event_types?.includes('pan') && m.active).forEach(tool => { tool.active = false; });
  }
  document.documentElement.dataset.drawn = '1';
};
ready();
document.querySelectorAll('.key button').forEach(button => button.addEventListener('click', () => {
  const on = button.getAttribute('aria-pressed') !== 'true';
  button.setAttribute('aria-pressed', on);
  models(m => m.type === 'GlyphRenderer' && m.name === button.dataset.name).forEach(m => { m.visible = on; });
}));
"""


def _key(figure: Figure) -> str:
    """Return the legend of all panels; each entry is a button that hides its series."""
    entries = labels(figure)
    in_bars = [(bar.label, panel.log_y) for panel in shared_scales(figure).panels for bar in panel.bars]
    bars, dots = {label for label, log in in_bars if not log}, {label for label, log in in_bars if log}
    return "".join(
        [
            '<div class="key">' if entries else "",
            *(
                f'<button type="button" aria-pressed="true" data-name="{escape(label)}">'
                f"{_swatch(curve.style, label in bars, label not in dots)}{escape(label)}</button>"
                for label, curve in entries
            ),
            "</div>" if entries else "",
        ]
    )


_SHAPES = {
    "o": '<circle cx="14" cy="7" r="4"/>',
    "s": '<rect x="10.5" y="3.5" width="7" height="7"/>',
    "^": '<path d="M14 2.5 18.5 10.5H9.5Z"/>',
    "v": '<path d="M14 11.5 18.5 3.5H9.5Z"/>',
    "D": '<path d="M14 2 18.5 7 14 12 9.5 7Z"/>',
    "P": '<path d="M12.5 2.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z"/>',
    "": "",
}


def _swatch(style: Style, is_bar: bool, on_line: bool) -> str:
    """Return the mark of a series as a small drawing."""
    colour = f"light-dark({style.colour},{DARK.colour(style.colour)})"
    if is_bar:
        inside = '<rect x="4" y="2" width="20" height="10"/>'
    else:
        dash = ' stroke-dasharray="5 3"' if style.dashed else ""
        line = f'<path d="M0 7H28" stroke="currentColor" stroke-width="2"{dash}/>' if style.joined and on_line else ""
        fill = "var(--paper)" if style.dashed else "currentColor"
        inside = f'{line}<g fill="{fill}" stroke="currentColor">{_SHAPES[style.marker]}</g>'
    return f'<svg width="28" height="14" aria-hidden="true" fill="currentColor" style="color:{colour}">{inside}</svg>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def write_page(root: Any, title: str, path: Path) -> None:
    """Write a layout of Bokeh's as an HTML page with all scripts in it, in the reader's choice of light or dark."""
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    # Bokeh's own page, not Panel's: that one asks a content network for style sheets even with inline scripts
    page = _without_addresses(file_html(root, INLINE, title))
    head = f'<head><meta name="viewport" content="width=device-width, initial-scale=1"><style>{_COLOURS}</style>'
    page = page.replace("<head>", head, 1)  # scripts have the text of its end, too
    page = f"{_script()}</body>".join(page.rsplit("</body>", 1))
    with writing(path):
        path.write_text(guarded(page), encoding="utf-8")


def _without_addresses(page: str) -> str:
    """Return a page without scripts from elsewhere: where Panel is loaded, Bokeh adds one that nothing here uses."""
    return re.sub(r"<script[^>]*\ssrc=[^>]*></script>", "", page)
