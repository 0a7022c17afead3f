"""Draws figures and heat maps in the page.

Curves are drawn with Bokeh, the library below hvPlot: an overlay of five curves with bands takes hvPlot half a second,
Bokeh a tenth of that, and a knob has to answer within 0.3 s. The heat map is hvPlot's.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from faultsweep.analysis.figures.draw import POINTS
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Panel
from faultsweep.analysis.figures.heat import draw_hvplot

Tapped = Callable[[int, int, int], None]
"""Called with the numbers of the panel, the curve and the point along it."""
_HEIGHT = 430


class CurvesPlot:
    """The figure of curves or bars as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh layout.
    """

    def __init__(self, figure: Figure, bands: bool, tapped: Tapped) -> None:
        """Draw the figure, with its intervals or without; a click on a point calls ``tapped``."""
        from bokeh.layouts import gridplot

        self._look = _look(figure, bands)
        self._sources = [_sources(panel) for panel in figure.panels]
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
            for source, fresh in zip(sources, _sources(panel), strict=True):
                source.selected.indices = []
                source.data = dict(fresh.data)
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
    from bokeh.models.annotations import Legend, LegendItem
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


def _sources(panel: Panel) -> list[Any]:
    """Return the numbers of each curve as Bokeh has them."""
    from bokeh.models import ColumnDataSource

    sources = []
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
        sources.append(ColumnDataSource(data))
    return sources


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
    from bokeh.models.annotations import Span

    for axis in plot.axis:
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "14px"
        axis.axis_label_text_font_style = "normal"
    plot.title.text_font_size = "15px"
    plot.toolbar.logo = None
    plot.add_layout(Span(location=0, dimension="width", line_color="#555555", line_width=0.8))


def draw_heat_map(panel: Panel, heat: Heat) -> Any:
    """Return the heat map of a panel as a HoloViews element."""
    rows = len(heat.y_labels)
    return draw_hvplot(panel, heat, responsive=True, height=max(300, min(900, 120 + 34 * rows)))
