"""Draws figures and heat maps in the page.

They are drawn with Bokeh, the library below hvPlot: an overlay of five curves with bands takes hvPlot half a second,
Bokeh a tenth of that, and a knob has to answer within 0.3 s. What is drawn stays, and takes new numbers, labels and
colours, as long as it looks alike: the browser then has nothing to lay out anew. Exported pages are hvPlot's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat as heat_maps
from faultsweep.analysis.figures.describe import short_number
from faultsweep.analysis.figures.draw import POINTS
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Panel

Tapped = Callable[[int, int, int], None]
"""Called with the numbers of the panel, the curve and the point along it."""
_HEIGHT = 430
_IN_THE_MIDDLE = {"text_align": "center", "text_baseline": "middle"}
_LONG_LABEL = 6
_MOST_DIGITS = 8  # of a number at an axis that is written out; Bokeh's own are five


class CurvesPlot:
    """The figure of curves or bars as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh layout.
    """

    def __init__(self, figure: Figure, bands: bool, tapped: Tapped) -> None:
        """Draw the figure, with its intervals or without; a click on a point calls ``tapped``."""
        from bokeh.layouts import gridplot
        from bokeh.models import ColumnDataSource

        self._look = _look(figure, bands)
        self._sources = [[ColumnDataSource(data) for data in _columns(panel)] for panel in figure.panels]
        self._plots: list[Any] = [
            _draw_panel(panel, sources, bands, partial(tapped, number))
            for number, (panel, sources) in enumerate(zip(figure.panels, self._sources, strict=True))
        ]
        for plot in self._plots[1:]:
            plot.y_range = self._plots[0].y_range  # panels are compared: they have one scale, also while one is zoomed
        columns = 1 if len(self._plots) == 1 else 2
        self.layout = gridplot(self._plots, ncols=columns, sizing_mode="stretch_width", toolbar_location="right")

    def take(self, figure: Figure, bands: bool) -> bool:
        """Show a figure that looks alike by its numbers and labels, which is several times quicker; else say False."""
        if _look(figure, bands) != self._look:
            return False
        for panel, sources, plot in zip(figure.panels, self._sources, self._plots, strict=True):
            plot.xaxis.axis_label, plot.yaxis.axis_label = _axis_labels(panel)
            for source, fresh in zip(sources, _columns(panel), strict=True):
                source.selected.indices = []
                source.data = fresh
        return True


def _look(figure: Figure, bands: bool) -> Any:
    """Return all of a figure that is neither numbers nor labels of axes."""
    return bands, [(p.title, p.log_x, p.log_y, p.categories, _names(_as_curves(p))) for p in figure.panels]


def _names(series: list[Curve]) -> list[Any]:
    """Return what the legend says; a curve alone has none."""
    return [(curve.label if len(series) > 1 else "", curve.style) for curve in series]


def _axis_labels(panel: Panel) -> tuple[str, str]:
    return panel.x_label, textwrap.fill(panel.y_label, 48)


def _draw_panel(panel: Panel, sources: list[Any], bands: bool, tapped: Callable[[int, int], None]) -> Any:
    from bokeh.models.annotations import Legend, LegendItem, Span
    from bokeh.plotting import figure

    across: dict[str, Any] = {"x_axis_type": "log" if panel.log_x else "linear"}
    if panel.bars:
        across = {"x_range": panel.categories}
    x_label, y_label = _axis_labels(panel)
    plot: Any = figure(
        height=_HEIGHT,
        title=panel.title,
        x_axis_label=x_label,
        y_axis_label=y_label,
        y_axis_type="log" if panel.log_y else "linear",
        tools="pan,box_zoom,wheel_zoom,reset,tap",
        active_scroll=None,
        **across,
    )
    series = _as_curves(panel)
    for number, curve in enumerate(series):
        shown = _draw_curve(plot, panel, curve, sources[number], number, bands)
        _make_tappable(plot, shown, number, tapped)
    _style(plot)
    plot.add_layout(Span(location=0, dimension="width", line_color="#555555", line_width=0.8))
    if len(series) > 1:
        items = [LegendItem(label=c.label, renderers=_named(plot, number)) for number, c in enumerate(series)]
        legend = Legend(items=items, click_policy="hide", ncols=3, label_text_font_size="13px", border_line_color=None)
        plot.add_layout(legend, "above")
    return plot


def _named(plot: Any, number: int) -> list[Any]:
    return [renderer for renderer in plot.renderers if renderer.name == f"curve {number}"]


def _as_curves(panel: Panel) -> list[Curve]:
    """Return the series of a panel; bars stand over the numbers of their categories."""
    if not panel.bars:
        return panel.curves
    places = np.arange(len(panel.categories), dtype=float)
    none = np.full(len(places), np.nan)
    series = []
    for bars in panel.bars:
        low, high = (none if bound is None else bound for bound in (bars.low, bars.high))
        series.append(Curve(bars.label, places, bars.y, low, high, bars.style, bars.flagged))
    return series


def _columns(panel: Panel) -> list[dict[str, Any]]:
    """Return the numbers of each curve as columns of a table."""
    tables = []
    series = _as_curves(panel)
    for number, curve in enumerate(series):
        data: dict[str, Any] = {name: getattr(curve, name) for name in ("x", "y", "low", "high")}
        data["label"] = [curve.label] * len(curve.x)
        data["ring"] = np.zeros(len(curve.x)) if curve.flagged is None else np.where(curve.flagged, 19.0, 0.0)
        if panel.bars:
            offset = (number - (len(series) - 1) / 2) * 0.8 / len(series)
            data["x"] = [(name, offset) for name in panel.categories]
            floor = np.nanmin(curve.y[curve.y > 0], initial=1.0) / 2 if panel.log_y else 0.0
            data["floor"] = np.full(len(curve.y), floor)
        tables.append(data)
    return tables


def _draw_curve(plot: Any, panel: Panel, curve: Curve, source: Any, number: int, bands: bool) -> Any:
    """Draw one curve or series of bars; returns what can be clicked."""
    name = f"curve {number}"
    look = {"color": curve.style.colour, "name": name, "source": source}
    if panel.bars:
        shown = plot.vbar("x", 0.74 / len(panel.bars), "y", "floor", **look)
        if bands:
            plot.segment("x", "low", "x", "high", line_color="black", name=name, source=source)
    else:
        if bands:
            plot.segment("x", "low", "x", "high", line_width=1.2, **look)
        if bands and curve.style.joined:
            plot.varea("x", "low", "high", fill_alpha=0.18, **look)
        if curve.style.joined:
            dash = "dashed" if curve.style.dashed else "solid"
            plot.line("x", "y", line_width=2.2, line_dash=dash, **look)
        hollow = {"fill_color": "white"} if curve.style.dashed else {}
        shown = plot.scatter("x", "y", marker=POINTS[curve.style.marker], size=9, **{**look, **hollow})
    rings = {"fill_color": None, "line_color": "#333333", "line_width": 1.5}
    plot.scatter("x", "y", size="ring", name=name, source=source, **rings).nonselection_glyph = None
    return shown


def _make_tappable(plot: Any, shown: Any, number: int, tapped: Callable[[int, int], None]) -> None:
    from bokeh.models import HoverTool

    shown.nonselection_glyph = None
    interval = "@low{0,0.[0000]} to @high{0,0.[0000]}"
    tips = [("", "@label"), ("at", "@x"), ("mean", "@y{0,0.[0000]}"), ("95 % interval", interval)]
    plot.add_tools(HoverTool(renderers=[shown], tooltips=tips, visible=False))

    def on_tap(attribute: str, old: list[int], new: list[int]) -> None:
        if new:
            tapped(number, new[0])

    shown.data_source.selected.on_change("indices", on_tap)


def _style(plot: Any) -> None:
    from bokeh.models import BasicTickFormatter, LogTickFormatter

    for axis in plot.axis:
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "14px"
        axis.axis_label_text_font_style = "normal"
        if isinstance(axis.formatter, BasicTickFormatter):
            axis.formatter.power_limit_high = _MOST_DIGITS
        if isinstance(axis.formatter, LogTickFormatter):
            axis.formatter.min_exponent = _MOST_DIGITS
    plot.title.text_font_size = "15px"
    plot.toolbar.logo = None


class HeatPlot:
    """The heat map as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh figure.
    """

    def __init__(self, panel: Panel, heat: Heat, tapped: Callable[[int, int], None]) -> None:
        """Draw the heat map; a click on a cell calls ``tapped`` with its row and its column."""
        from bokeh.models import ColumnDataSource, LinearColorMapper, LogColorMapper
        from bokeh.models.annotations import ColorBar

        self._look = _heat_look(heat)
        self._columns = len(heat.x_labels)
        self._source = ColumnDataSource(_heat_cells(heat))
        palette = heat_maps.palette(heat)
        self._colours: Any = (LogColorMapper if heat.log else LinearColorMapper)(palette=palette, nan_color="#E6E6E6")
        self._bar = ColorBar(
            color_mapper=self._colours,
            title_text_font_size="14px",
            title_text_font_style="normal",
            major_label_text_font_size="13px",
        )
        self.layout = _draw_heat(self._source, self._colours)
        self.layout.add_layout(self._bar, "right")

        def on_tap(attribute: str, old: list[int], new: list[int]) -> None:
            if new:
                tapped(*divmod(new[0], self._columns))

        self._source.selected.on_change("indices", on_tap)
        self.take(panel, heat)

    def take(self, panel: Panel, heat: Heat) -> bool:
        """Show another heat map of the same kind of colours; else say False."""
        if _heat_look(heat) != self._look:
            return False
        self._columns = len(heat.x_labels)
        self._source.selected.indices = []
        self._source.data = _heat_cells(heat)
        self._colours.low, self._colours.high = heat_maps.limits(heat)
        self._bar.title = textwrap.fill(heat.quantity, 40)
        self.layout.height = max(_HEIGHT, min(900, 120 + 34 * len(heat.y_labels)))
        self.layout.xaxis.axis_label, self.layout.yaxis.axis_label = panel.x_label, panel.y_label
        self.layout.xaxis.major_label_orientation = 0.5 if max(map(len, heat.x_labels)) > _LONG_LABEL else "horizontal"
        plot = self.layout
        for ends, axis, labels in (
            (plot.x_range, plot.xaxis, heat.x_labels),
            (plot.y_range, plot.yaxis, heat.y_labels),
        ):
            ends.update(start=-0.5, end=len(labels) - 0.5, reset_start=-0.5, reset_end=len(labels) - 0.5)
            step = -(-len(labels) // heat_maps.MOST_TICKS)
            axis.ticker.ticks = list(
                range(0, len(labels), step)
            )  # a new ticker would have the page searched for models
            axis.major_label_overrides = dict(enumerate(labels))
        return True


def _draw_heat(source: Any, colours: Any) -> Any:
    """Return a Bokeh figure of cells with their numbers, without ends of its axes or labels."""
    from bokeh.models import FixedTicker, HoverTool, Range1d
    from bokeh.plotting import figure

    ranges: dict[str, Any] = {"x_range": Range1d(start=0, end=1), "y_range": Range1d(start=0, end=1)}
    tools = "pan,box_zoom,wheel_zoom,reset,tap"
    plot: Any = figure(height=_HEIGHT, sizing_mode="stretch_width", tools=tools, active_scroll=None, **ranges)
    fill = {"field": "value", "transform": colours}
    cells = plot.rect("column", "row", 1, 1, source=source, line_color=fill, fill_color=fill)
    cells.nonselection_glyph = None
    cells.selection_glyph = cells.glyph.clone(line_color="black", line_width=3)
    words = {"text_color": "ink", "text_font_size": "13px", **_IN_THE_MIDDLE}
    numbers = plot.text("column", "row", "text", source=source, **words)
    numbers.nonselection_glyph = numbers.selection_glyph = None
    interval = "@low{0,0.[0000]} to @high{0,0.[0000]}"
    tips = [("", "@x, @y"), ("mean", "@value{0,0.[0000]}"), ("95 % interval", interval)]
    plot.add_tools(HoverTool(renderers=[cells], tooltips=tips, visible=False))
    _style(plot)
    plot.xaxis.ticker, plot.yaxis.ticker = FixedTicker(), FixedTicker()
    plot.grid.visible = False
    return plot


def _heat_look(heat: Heat) -> tuple[bool, bool]:
    """Return what a heat map cannot change once it is drawn: the kind of its colours."""
    return heat.log, heat.centre is None


def _heat_cells(heat: Heat) -> dict[str, Any]:
    """Return the cells of a heat map, a row of the table each, the columns of its first row first."""
    rows, columns = heat.value.shape
    dark = heat_maps.dark(heat).ravel()
    room = heat_maps.has_room(heat)
    texts = [short_number(v) if room and np.isfinite(v) else "" for v in heat.value.ravel()]
    return {
        "column": np.tile(np.arange(columns, dtype=float), rows),
        "row": np.repeat(np.arange(rows, dtype=float), columns),
        "x": np.tile(heat.x_labels, rows).tolist(),
        "y": np.repeat(heat.y_labels, columns).tolist(),
        "value": heat.value.ravel(),
        "low": heat.low.ravel(),
        "high": heat.high.ravel(),
        "text": texts,
        "ink": np.where(dark, "white", "black").tolist(),
    }
