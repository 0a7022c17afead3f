"""Figures and heat maps as they stand in the dashboard.

What is drawn stays, and takes new numbers, labels and colours, as long as it looks alike: the browser then has nothing
to lay out anew, and a knob has to answer within 0.15 s. How a panel is drawn is said in ``figures.page``. Each source
has a column ``cell``, the configuration that a point stands for, by which views are linked (``links``).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat as heat_maps
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.figure import Curve, Figure, Heat, Panel
from faultsweep.analysis.figures.layout import as_curves, is_banded, places, shared_scales, y_limits
from numpy.typing import NDArray

Ids = Sequence[Sequence[NDArray[np.int64]]]
"""The configurations behind the points of each series of each panel."""
_HEIGHT = 360
_BAR_PX = 130
_SHORT = 1000
_ROOM = 0.05
"""Room beside the first and the last point, as a share of what is between them."""
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

    def __init__(self, figure: Figure, bands: bool, ids: Ids, before: CurvesPlot | None = None) -> None:
        """Draw the figure, with its intervals or without, and zoomed as the one before it."""
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
        self._fit(figure, bands, before._axes() if before is not None else [])
        columns = 1 if len(self._plots) == 1 else 2
        self.layout = gridplot(self._plots, ncols=columns, sizing_mode="stretch_width", toolbar_location="right")
        self.sources = [source for series in self._sources for source in series]

    def _axes(self) -> list[tuple[Any, Any]]:
        """Return, for x and y of each panel, what it shows and its range."""
        return [
            (shows(axis), ends)
            for plot in self._plots
            for axis, ends in ((plot.xaxis, plot.x_range), (plot.yaxis, plot.y_range))
        ]

    def _fit(self, figure: Figure, bands: bool, before: list[tuple[Any, Any]]) -> None:
        """Give each panel its ends; those that the reader has zoomed stay while the axis shows what it did before."""
        wanted = [own for pair in _ends_of(figure, bands) for own in pair]
        for number, ((what, ends), own) in enumerate(zip(self._axes(), wanted, strict=True)):
            was, old = before[number if number < len(before) else number % 2] if before else ("", None)
            if own is not None:
                fit(ends, *own, old if was == what else None)

    def take(self, figure: Figure, bands: bool, ids: Ids) -> bool:
        """Show a figure that looks alike by its numbers and labels, which is several times quicker; else say False."""
        if _look(figure, bands) != self._look:
            return False
        before = self._axes()
        for number, (panel, plot) in enumerate(zip(figure.panels, self._plots, strict=True)):
            plot.xaxis.axis_label, plot.yaxis.axis_label = page.axis_labels(panel)
            for source, fresh, own in zip(self._sources[number], page.columns_of(panel), ids[number], strict=True):
                renew(source, {**fresh, "cell": own})
            for source, fresh in zip(self._dots[number], page.dots_of(panel), strict=True):
                renew(source, fresh)
        self._fit(figure, bands, before)
        return True


def shows(axis: Any) -> tuple[str, str]:
    """Return the kind of an axis and what it is called."""
    return type(axis[0]).__name__, axis[0].axis_label


def fit(ends: Any, low: float, high: float, before: Any = None) -> None:
    """Give a range its ends; it stays where the reader has zoomed the one ``before`` it, which shows the same."""
    zoomed = before is not None and (before.start, before.end) != (before.reset_start, before.reset_end)
    start, end = (before.start, before.end) if zoomed else (low, high)
    ends.update(start=start, end=end, reset_start=low, reset_end=high)


def _ends_of(figure: Figure, bands: bool) -> list[tuple[tuple[float, float] | None, tuple[float, float]]]:
    """Return the ends of x, None of bars, and of y for each panel; an interval far beyond the means goes on outside."""
    if not bands:
        figure = replace(figure, panels=[_without_intervals(panel) for panel in figure.panels])
    return [
        (_across(panel), limits or ((1.0, 10.0) if panel.log_y else (0.0, 1.0)))
        for panel, limits in zip(figure.panels, y_limits(shared_scales(figure)), strict=True)
    ]


def _without_intervals(panel: Panel) -> Panel:
    curves = [replace(one, low=one.y, high=one.y) for one in panel.curves]
    return replace(panel, curves=curves, bars=[replace(one, low=None, high=None) for one in panel.bars])


def _across(panel: Panel) -> tuple[float, float] | None:
    if panel.bars:
        return None
    at = np.concatenate([np.zeros(0), *(np.asarray(own, float) for own in places(panel))])
    at = at[np.isfinite(at) & ((at > 0) | (not panel.log_x))]
    low, high = (float(at.min()), float(at.max())) if len(at) else (1.0, 10.0)
    if panel.log_x:
        room = (high / low) ** _ROOM if high > low else 2.0
        return low / room, high * room
    room = _ROOM * (high - low) or 0.5 * abs(low) or 1.0
    return low - room, high + room


def _source(data: dict[str, Any]) -> Any:
    from bokeh.models import ColumnDataSource

    return ColumnDataSource({name: _short(column) for name, column in data.items()})


def renew(source: Any, columns: dict[str, Any]) -> None:
    """Give a source the columns that are other ones now: nothing else is sent."""
    old, columns = source.data, {name: _short(column) for name, column in columns.items()}
    first = next(iter(columns))
    if len(old[first]) != len(columns[first]):
        source.data = columns
        return
    changed = {name: new for name, new in columns.items() if not _same(old[name], new)}
    if changed:
        source.data.update(changed)


def _short(column: Any) -> Any:
    """Return a short array as a list: each array would be two messages of its own."""
    return column.tolist() if isinstance(column, np.ndarray) and column.size <= _SHORT else column


def _same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    old, new = np.asarray(old), np.asarray(new)
    return np.array_equal(old, new, equal_nan=new.dtype.kind == "f" and old.dtype.kind == "f")


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
    from bokeh.models import Range1d

    plot = page.make_plot(panel, (0.0, 1.0), _TOOLS, _HEIGHT)
    page.write_large(plot)
    if not panel.bars:
        plot.x_range = Range1d()
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
        self.layout.min_border_right = _BAR_PX  # room for wider labels, too: new limits do not lay it out anew
        self._below = place_bar(self.layout, self._bar, _BAR_PX)
        _keep_colours(self.layout, self._colours)
        self.take(panel, heat, ids)

    def take(self, panel: Panel, heat: Heat, ids: NDArray[np.int64]) -> bool:
        """Show another heat map of the same kind of colours; else say False."""
        if _heat_look(heat) != self._look:
            return False
        renew(self._source, {**page.cells_of_heat(heat), "cell": ids})
        self._colours.low, self._colours.high = heat_maps.limits(heat)
        self._bar.title = self._below.title = textwrap.fill(heat.quantity, 40)
        self.layout.height = max(_HEIGHT, min(900, 120 + 34 * len(heat.y_labels)))
        page.label_heat(self.layout, panel, heat)
        return True


_PLACE_BAR = """
const slim = plot.outer_width < 480;
if (below.visible === slim) return;
beside.visible = !slim;
below.visible = slim;
plot.min_border_right = slim ? 12 : room;
"""


def place_bar(plot: Any, beside: Any, room: int) -> Any:
    """Return a second scale of colours that stands below where the window is narrow: beside it takes ``room``."""
    from bokeh.models import CustomJS

    below = page.colour_bar(beside.color_mapper)
    plot.add_layout(below, "below")
    below.update(visible=False, width="auto", height=12)
    beside.syncable = below.syncable = False
    args = {"plot": plot, "beside": beside, "below": below, "room": room}
    plot.js_on_change("outer_width", CustomJS(args=args, code=_PLACE_BAR))
    return below


def _keep_colours(plot: Any, colours: Any) -> None:
    """Mark what the page gives other colours in the dark, so that more is as light there as in the light."""
    from bokeh.models import CategoricalColorMapper

    ink = CategoricalColorMapper(factors=["white", "black"], palette=["#ffffff", "#000000"])
    plot.renderers[1].glyph.text_color = {"field": "ink", "transform": ink}
    for one in (colours, ink):
        one.update(tags=["keeps its colours"], syncable=False)


def _heat_look(heat: Heat) -> tuple[bool, bool]:
    """Return what a heat map cannot change once it is drawn: the kind of its colours."""
    return heat.log, heat.centre is None
