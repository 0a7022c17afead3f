"""Figures and heat maps as they stand in the dashboard.

What is drawn stays, and takes new numbers, labels and colours, as long as it looks alike: the browser then has nothing
to lay out anew, and a knob has to answer within 0.3 s. How a panel is drawn is said in ``figures.page``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

from faultsweep.analysis.figures import heat as heat_maps
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Panel
from faultsweep.analysis.figures.layout import as_curves, is_banded

Tapped = Callable[[int, int, int], None]
"""Called with the numbers of the panel, the curve and the point along it."""
_HEIGHT = 430
_TOOLS = f"{page.TOOLS},tap"


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
        self._sources = [[_source(data) for data in page.columns_of(panel)] for panel in figure.panels]
        self._dots = [[_source(data) for data in page.dots_of(panel)] for panel in figure.panels]
        self._plots: list[Any] = [
            _draw_panel(panel, self._sources[number], self._dots[number], bands, partial(tapped, number))
            for number, panel in enumerate(figure.panels)
        ]
        for plot in self._plots[1:]:
            plot.y_range = self._plots[0].y_range  # panels are compared: they have one scale, also while one is zoomed
        columns = 1 if len(self._plots) == 1 else 2
        self.layout = gridplot(self._plots, ncols=columns, sizing_mode="stretch_width", toolbar_location="right")

    def take(self, figure: Figure, bands: bool) -> bool:
        """Show a figure that looks alike by its numbers and labels, which is several times quicker; else say False."""
        if _look(figure, bands) != self._look:
            return False
        for number, (panel, plot) in enumerate(zip(figure.panels, self._plots, strict=True)):
            plot.xaxis.axis_label, plot.yaxis.axis_label = page.axis_labels(panel)
            for source, fresh in zip(self._sources[number], page.columns_of(panel), strict=True):
                source.selected.indices = []
                source.data = fresh
            for source, fresh in zip(self._dots[number], page.dots_of(panel), strict=True):
                source.data = fresh
        return True


def _source(data: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource(data)


def _look(figure: Figure, bands: bool) -> Any:
    """Return all of a figure that is neither numbers nor labels of axes."""
    return bands, [
        (p.title, p.log_x, p.log_y, p.signed, p.categories, is_banded(p), _names(as_curves(p))) for p in figure.panels
    ]


def _names(series: list[Curve]) -> list[Any]:
    """Return what the legend says; a curve alone has none."""
    return [(curve.label if len(series) > 1 else "", curve.style) for curve in series]


def _draw_panel(
    panel: Panel, sources: list[Any], dots: list[Any], bands: bool, tapped: Callable[[int, int], None]
) -> Any:
    from bokeh.models.annotations import Legend, LegendItem

    plot = page.make_plot(panel, tools=_TOOLS, height=_HEIGHT)
    for number, shown in enumerate(page.draw_series(plot, panel, sources, bands, dots)):
        _make_tappable(plot, shown, number, tapped)
    series = as_curves(panel)
    if len(series) > 1:
        items = [LegendItem(label=c.label, renderers=_named(plot, c.label)) for c in series]
        legend = Legend(items=items, click_policy="hide", ncols=3, label_text_font_size="13px", border_line_color=None)
        plot.add_layout(legend, "above")
    return plot


def _named(plot: Any, name: str) -> list[Any]:
    return [renderer for renderer in plot.renderers if renderer.name == name]


def _make_tappable(plot: Any, shown: Any, number: int, tapped: Callable[[int, int], None]) -> None:
    shown.nonselection_glyph = None
    page.add_tips(plot, [shown])

    def on_tap(attribute: str, old: list[int], new: list[int]) -> None:
        if new:
            tapped(number, new[0])

    shown.data_source.selected.on_change("indices", on_tap)


class HeatPlot:
    """The heat map as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh figure.
    """

    def __init__(self, panel: Panel, heat: Heat, tapped: Callable[[int, int], None]) -> None:
        """Draw the heat map; a click on a cell calls ``tapped`` with its row and its column."""
        self._look = _heat_look(heat)
        self._columns = len(heat.x_labels)
        self._source = _source(page.cells_of_heat(heat))
        self._colours = page.colours_of(heat)
        self._bar = page.colour_bar(self._colours)
        self.layout = page.draw_heat(self._source, self._colours, _TOOLS, _HEIGHT)
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
        self._source.data = page.cells_of_heat(heat)
        self._colours.low, self._colours.high = heat_maps.limits(heat)
        self._bar.title = textwrap.fill(heat.quantity, 40)
        self.layout.height = max(_HEIGHT, min(900, 120 + 34 * len(heat.y_labels)))
        page.label_heat(self.layout, panel, heat)
        return True


def _heat_look(heat: Heat) -> tuple[bool, bool]:
    """Return what a heat map cannot change once it is drawn: the kind of its colours."""
    return heat.log, heat.centre is None
