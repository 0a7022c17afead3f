"""Figures and heat maps as they stand in the dashboard.

What is drawn stays, and takes new numbers, labels and colours, as long as it looks alike: the browser then has nothing
to lay out anew, and a knob has to answer within 0.15 s. How a panel is drawn is said in ``figures.page``. Each source
has a column ``cell``, the configuration that a point stands for, by which views are linked (``links``).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat as heat_maps
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Panel
from faultsweep.analysis.figures.layout import as_curves, is_banded
from numpy.typing import NDArray

Ids = Sequence[Sequence[NDArray[np.int64]]]
"""The configurations behind the points of each series of each panel."""
_HEIGHT = 360
_TOOLS = "pan,box_zoom,wheel_zoom,box_select,tap,reset"
MUTED = 0.15
"""Opacity of what a selection leaves out."""


class CurvesPlot:
    """The figure of curves or bars as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh layout.
    sources : one per series, that can be selected in.
    """

    def __init__(self, figure: Figure, bands: bool, ids: Ids) -> None:
        """Draw the figure, with its intervals or without."""
        from bokeh.layouts import gridplot

        self._look = _look(figure, bands)
        self._sources = [
            [_source({**data, "cell": own}) for data, own in zip(page.columns_of(panel), cells, strict=True)]
            for panel, cells in zip(figure.panels, ids, strict=True)
        ]
        self._dots = [[_source(data) for data in page.dots_of(panel)] for panel in figure.panels]
        self._plots: list[Any] = [
            _draw_panel(panel, self._sources[number], self._dots[number], bands)
            for number, panel in enumerate(figure.panels)
        ]
        for plot in self._plots[1:]:
            plot.y_range = self._plots[0].y_range  # panels are compared: they have one scale, also while one is zoomed
        columns = 1 if len(self._plots) == 1 else 2
        self.layout = gridplot(self._plots, ncols=columns, sizing_mode="stretch_width", toolbar_location="right")
        self.sources = [source for series in self._sources for source in series]

    def take(self, figure: Figure, bands: bool, ids: Ids) -> bool:
        """Show a figure that looks alike by its numbers and labels, which is several times quicker; else say False."""
        if _look(figure, bands) != self._look:
            return False
        for number, (panel, plot) in enumerate(zip(figure.panels, self._plots, strict=True)):
            plot.xaxis.axis_label, plot.yaxis.axis_label = page.axis_labels(panel)
            for source, fresh, own in zip(self._sources[number], page.columns_of(panel), ids[number], strict=True):
                source.data = {**fresh, "cell": own}
            for source, fresh in zip(self._dots[number], page.dots_of(panel), strict=True):
                source.data = fresh
        return True


def _source(data: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource(data)


def _look(figure: Figure, bands: bool) -> Any:
    """Return all of a figure that is neither numbers nor labels of axes."""
    return bands, [
        (p.title, p.log_x, p.log_y, p.signed, p.ratio, p.categories, is_banded(p), _names(as_curves(p)))
        for p in figure.panels
    ]


def _names(series: list[Curve]) -> list[Any]:
    """Return what the legend says; a curve alone has none."""
    return [(curve.label if len(series) > 1 else "", curve.style) for curve in series]


def _draw_panel(panel: Panel, sources: list[Any], dots: list[Any], bands: bool) -> Any:
    plot = page.make_plot(panel, tools=_TOOLS, height=_HEIGHT)
    shown = page.draw_series(plot, panel, sources, bands, dots)
    for renderer in shown:
        muted = renderer.glyph.clone()
        for part in ("fill_alpha", "line_alpha"):
            if hasattr(muted, part):
                setattr(muted, part, MUTED)
        renderer.nonselection_glyph = muted
    page.add_tips(plot, shown)
    return plot


class HeatPlot:
    """The heat map as it stands in the page.

    Attributes
    ----------
    layout : the Bokeh figure.
    sources : the one of its cells.
    """

    def __init__(self, panel: Panel, heat: Heat, ids: NDArray[np.int64]) -> None:
        """Draw the heat map."""
        self._look = _heat_look(heat)
        self._source = _source({**page.cells_of_heat(heat), "cell": ids})
        self.sources = [self._source]
        self._colours = page.colours_of(heat)
        self._bar = page.colour_bar(self._colours)
        self.layout = page.draw_heat(self._source, self._colours, _TOOLS, _HEIGHT)
        self.layout.add_layout(self._bar, "right")
        self.take(panel, heat, ids)

    def take(self, panel: Panel, heat: Heat, ids: NDArray[np.int64]) -> bool:
        """Show another heat map of the same kind of colours; else say False."""
        if _heat_look(heat) != self._look:
            return False
        self._source.data = {**page.cells_of_heat(heat), "cell": ids}
        self._colours.low, self._colours.high = heat_maps.limits(heat)
        self._bar.title = textwrap.fill(heat.quantity, 40)
        self.layout.height = max(_HEIGHT, min(900, 120 + 34 * len(heat.y_labels)))
        page.label_heat(self.layout, panel, heat)
        return True


def _heat_look(heat: Heat) -> tuple[bool, bool]:
    """Return what a heat map cannot change once it is drawn: the kind of its colours."""
    return heat.log, heat.centre is None
