"""What both ways to draw a figure agree on: scales, ticks, where intervals stand, and colours on light and dark.

Nothing here draws. A picture and a page of one ``Figure`` have the same order, marks, colours and scales because both
ask here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from faultsweep.analysis.figures.figure import BLACK, BLUE, YELLOW, Bars, Curve, Figure, Numbers, Panel
from numpy.typing import NDArray

Limits = tuple[float, float]


@dataclass(frozen=True)
class Theme:
    """Colours of what is no data: paper, text, secondary text, grid lines; and of data that would not be seen."""

    paper: str
    ink: str
    faint: str
    grid: str
    instead: tuple[tuple[str, str], ...] = ()

    def colour(self, colour: str) -> str:
        """Return the colour in which data of this colour are drawn."""
        return dict(self.instead).get(colour, colour)


LIGHT = Theme("#ffffff", "#1a1a1a", "#5a5a5a", "#e2e2e2")
_BRIGHTER = ((BLACK, "#f2f2f2"), (BLUE, "#4070ff"), ("#BBBBBB", "#7d828a"))
DARK = Theme("#16181c", "#ececec", "#adb1b8", "#3a3f47", _BRIGHTER)

LIKE_INK = (BLACK, YELLOW)
"""Colours of bars on which an interval, in the ink of the light or dark theme, needs an edge to be seen."""

LARGEST_IN_FULL = 7
"""Ticks of so many digits are written in full."""
_MOST_TICKS = 10  # points that may each have a tick
_MOST_LINEAR = 7
_FEWEST_TICKS = 3
ARROWS = "Arrows: the interval goes on."
_ROOM = 0.06  # of an axis that stays free above and below what is drawn
_SMALLEST = 1e-305  # end of a logarithmic axis; that of the other side is its inverse
_MOST_BANDED = 2  # curves of a panel whose bands can be told apart
_FACTOR = 5.0  # beyond the means that a logarithmic axis goes on for the intervals at least
_WHOLE = 0.7  # of the intervals that are seen whole; of the others what fits
_MOST_BEYOND = 2.0  # times the largest mean that a linear axis goes on beyond it for intervals: bars stay readable
_DODGE = 0.013  # of the width of a panel, from one interval to the next
_ASKS_FOR_LOG = 20.0
"""Positive values over so large a range are drawn on a logarithmic axis: the small ones would be one line otherwise."""


def asks_for_log(values: Iterable[Numbers]) -> bool:
    """Tell whether values are all positive and reach over so many sizes that only a logarithmic axis shows them."""
    known = [part[np.isfinite(part)] for part in values]
    every = np.concatenate(known) if known else np.zeros(0)
    return bool(len(every) and every.min() > 0 and every.max() > _ASKS_FOR_LOG * every.min())


def as_curves(panel: Panel) -> list[Curve]:
    """Return the series of a panel; bars stand over the numbers of their categories."""
    if not panel.bars:
        return panel.curves
    return [_bars_as_curve(bars, len(panel.categories)) for bars in panel.bars]


def _bars_as_curve(bars: Bars, count: int) -> Curve:
    none = np.full(count, np.nan)
    low, high = (none if bound is None else bound for bound in (bars.low, bars.high))
    x = np.arange(count, dtype=float)
    return Curve(bars.label, x, bars.y, low, high, bars.style, bars.flagged, replicates=bars.replicates)


def labels(figure: Figure) -> list[tuple[str, Curve]]:
    """Return what the legend has: each label once, in the order of the panels, with the first curve that bears it."""
    found: dict[str, Curve] = {}
    for panel in figure.panels:
        for curve in as_curves(panel):
            found.setdefault(curve.label, curve)
    return list(found.items()) if len(found) > 1 else []


def offset_of_bar(panel: Panel, number: int) -> float:
    """Return where a series of bars stands beside the middle of its category, whose width is 1."""
    if panel.stacked:
        return 0.0
    return (number - (len(panel.bars) - 1) / 2) * bar_width(panel)


def bar_width(panel: Panel) -> float:
    """Return the width of a bar in a category of width 1."""
    return 0.7 if panel.stacked else 0.8 / max(1, len(panel.bars))


def is_banded(panel: Panel) -> bool:
    """Tell whether intervals are bands: of one or two lines with an interval at every point.

    Of more lines, bars beside each other can be told apart; beside a point without an interval a band would be missing,
    and over a metric that goes back and forth it would cross itself.
    """
    if panel.banded is not None:
        return panel.banded
    few = bool(panel.curves) and len(panel.curves) <= _MOST_BANDED
    return few and all(curve.style.joined and _is_whole(curve) and _is_ordered(curve) for curve in panel.curves)


def _is_ordered(curve: Curve) -> bool:
    return bool((np.diff(curve.x[np.isfinite(curve.y)]) >= 0).all())


def _is_whole(curve: Curve) -> bool:
    known = np.isfinite(curve.low[np.isfinite(curve.y)])
    return bool(known.all() or not known.any())


def places(panel: Panel) -> list[Numbers]:
    """Return where the points of each curve are drawn along x: beside each other where they would cover each other."""
    curves = panel.curves
    own = [curve.x for curve in curves]
    if panel.even:
        own = [np.searchsorted(_points(panel), curve.x).astype(float) for curve in curves]
    if len(curves) < 2 or is_banded(panel) or not any(np.isfinite(curve.low).any() for curve in curves):
        return own
    shared = np.unique(np.concatenate(own))
    if len(shared) < 2 or len(shared) > max(map(len, own)) or (panel.log_x and shared[0] <= 0):
        return own  # over a metric each curve has its own places
    to, back = (np.log, np.exp) if panel.log_x else (_same, _same)
    at = to(shared)
    step = min(_DODGE * (at[-1] - at[0]), 0.6 * float(np.diff(at).min()) / len(curves))
    middle = (len(curves) - 1) / 2
    return [back(to(x) + (number - middle) * step) for number, x in enumerate(own)]


def _same(x: Numbers) -> Numbers:
    return x


def shared_scales(figure: Figure) -> Figure:
    """Return the figure with one kind of scale, linear or logarithmic, and of interval for panels that share one."""
    logs = {scale: _is_log(panels) for scale, panels in _sharing(figure).items()}
    bands = {scale: all(map(is_banded, panels)) for scale, panels in _sharing(figure).items()}
    panels = [replace(one, log_y=logs[scale_of(one)], banded=bands[scale_of(one)]) for one in figure.panels]
    return replace(figure, panels=panels)


def scale_of(panel: Panel) -> tuple[str, str]:
    """Return what panels that share a scale of y have in common."""
    return panel.y_label, panel.scale


def _sharing(figure: Figure) -> dict[tuple[str, str], list[Panel]]:
    """Return the panels that share a scale, by that scale."""
    together: dict[tuple[str, str], list[Panel]] = {}
    for panel in figure.panels:
        together.setdefault(scale_of(panel), []).append(panel)
    return together


def _is_log(panels: list[Panel]) -> bool:
    said = {panel.ratio or panel.log_y for panel in panels if panel.ratio or panel.log_y is not None}
    if not any((curve.y > 0).any() for panel in panels for curve in as_curves(panel)):
        return False  # of no positive number there is a logarithm
    if said or any(panel.signed or panel.bars for panel in panels):
        return True in said
    return asks_for_log([curve.y for panel in panels for curve in panel.curves])


def y_limits(figure: Figure) -> list[Limits | None]:
    """Return the ends of the y axis of each panel; panels that share a scale have the same ones."""
    found = {scale: _limits(panels) for scale, panels in _sharing(figure).items()}
    return [None if panel.heat is not None else found[scale_of(panel)] for panel in figure.panels]


def _limits(panels: list[Panel]) -> Limits | None:
    values = np.concatenate([_heights(panel) for panel in panels] or [np.zeros(0)])
    log, signed = any(panel.log_y for panel in panels), any(panel.signed for panel in panels)
    values = values[np.isfinite(values) & ((values > 0) | (not log))]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if all(panel.ratio for panel in panels):
        low, high = min(low, 1.0), max(high, 1.0)
        room = max((high / low) ** _ROOM, 1.005)
        return low / room, high * room
    if log:
        room = max((high**_ROOM) / (low**_ROOM), 1.1)  # the quotient of very large and small numbers is infinite
        return max(low / room, _SMALLEST), min(high * room, 1 / _SMALLEST)
    if all(panel.stacked for panel in panels):
        return 0.0, high or 1.0
    if signed or any(panel.bars for panel in panels) or low >= 0:
        low, high = min(low, 0.0), max(high, 0.0)
    room = _ROOM * (high - low) or 1.0
    open_above = high > 0 or signed or low == high  # all values may be zero
    if low == 0 and any((curve.y == 0).any() for panel in panels for curve in panel.curves):
        low = -room / 3  # else the marks of means of zero were cut
    elif low < 0:
        low -= room
    return low, high + room if open_above else 0.0


def _heights(panel: Panel) -> Numbers:
    """Return all that has to fit between the ends of the y axis; an interval far beyond the means is cut off."""
    if panel.heat is not None:
        return np.zeros(0)
    series = as_curves(panel)
    if panel.stacked:
        return np.sum([np.nan_to_num(curve.y) for curve in series], axis=0)
    means = np.concatenate([curve.y for curve in series] or [np.zeros(0)])
    dots = [curve.replicates.ravel() for curve in series if curve.replicates is not None]
    bounds = np.concatenate([np.concatenate([curve.low, curve.high]) for curve in series] or [np.zeros(0)])
    means = np.concatenate([means, *dots])
    known = means[np.isfinite(means) & ((means > 0) | (not panel.log_y))]
    if not len(known):
        return means
    if panel.log_y:
        with np.errstate(invalid="ignore", divide="ignore"):
            usual = _usual([part for curve in series for part in (curve.y / curve.low, curve.high / curve.y)])
        factor = max(_FACTOR, min(usual, _FACTOR**2))
        if panel.ratio:  # near one a fifth or five times would make a line of the means
            reach = float(max(known.max(), 1.0) / min(known.min(), 1.0))
            factor = max(reach**1.5, min(usual, _FACTOR), 1.005)
        return np.concatenate([means, np.clip(bounds, known.min() / factor, known.max() * factor)])
    usual = _usual([part for curve in series for part in (curve.y - curve.low, curve.high - curve.y)])
    largest = float(np.abs(known).max())
    if not panel.signed and known.min() >= 0 and not (bounds < 0).any():  # a difference may be far below its interval
        usual = min(usual, _MOST_BEYOND * largest)
    reach = max(1.5 * float(np.ptp(known)) + 0.5 * largest, usual)
    return np.concatenate([means, np.clip(bounds, known.min() - reach, known.max() + reach)])


def _usual(reaches: list[Numbers]) -> float:
    """Return how far most intervals reach from their means."""
    every = np.concatenate(reaches or [np.zeros(0)])
    every = every[np.isfinite(every)]
    return float(np.quantile(every, _WHOLE, method="lower")) if len(every) else 0.0


def beyond(curve: Curve, limits: Limits) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return of which points the interval goes on below and above a panel with these limits."""
    known = np.isfinite(curve.y)
    return known & (curve.low < limits[0]), known & (curve.high > limits[1])


def caption_of(figure: Figure) -> list[str]:
    """Return the sentences of the caption, with one on arrows if there are any."""
    drawn = shared_scales(figure)
    cut = False
    for panel, limits in zip(drawn.panels, y_limits(drawn), strict=True):
        if limits is not None and not panel.stacked and not is_banded(panel):
            cut |= any(part.any() for curve in as_curves(panel) for part in beyond(curve, limits))
    return [*figure.caption, *([ARROWS] if cut else [])]


def named_ticks(panel: Panel) -> dict[float, str]:
    """Return the ticks of x and their names where these are the points of the curves; none if they are too many.

    On a linear x they are if the curves share their points and all have room.
    """
    found = _points(panel)
    if panel.even:
        return {float(place): in_full(x) for place, x in enumerate(found)}
    found = found[found > 0] if panel.log_x else found
    if len(found) > (_MOST_TICKS if panel.log_x else _MOST_LINEAR) or len(found) < 2:
        return {}
    shared = all(len(curve.x) == len(found) for curve in panel.curves)
    if not panel.log_x and not (shared and np.diff(found).min() > 0.6 * np.ptp(found) / (len(found) - 1)):
        return {}
    return {float(x): in_full(x) for x in found}


def _points(panel: Panel) -> Numbers:
    return np.unique(np.concatenate([curve.x for curve in panel.curves] or [np.zeros(0)]))


def log_base(panel: Panel) -> int:
    """Return the base of the ticks of a logarithmic x: 2, but 10 where so many powers of two would not be read."""
    x = np.concatenate([curve.x[curve.x > 0] for curve in panel.curves])
    return 10 if len(x) and x.max() > 1000 * x.min() else 2


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis: three in each decade, one in some of many, even ones in less than one."""
    decades = math.log10(high) - math.log10(low)
    digits = (1.0, 2.0, 5.0) if decades <= 4 else (1.0,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**power for power in powers[:: max(1, round(decades / 8))] for digit in digits]
    found = [tick for tick in ticks if low <= tick <= high]
    return found if len(found) >= _FEWEST_TICKS else _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    """Return three to six ticks at equal distances of 1, 2 or 5 and zeros."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if rough <= 1.5 * digit * power)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def in_full(x: float, place: int | None = None) -> str:
    """Return a tick of a logarithmic axis up to ten million in full; Python writes a million as 1e+06."""
    return f"{x:.0f}" if 1e5 <= abs(x) < 10**LARGEST_IN_FULL else f"{x:g}"


def columns_for(figure: Figure, width: float, least: float) -> int:
    """Return how many panels stand in a row of this width; a last row of one panel alone is avoided where it can be."""
    count = max(1, len(figure.panels))
    most = max(1, min(figure.columns, count, int(width // least)))
    if most == figure.columns or count <= most:
        return most
    return min(range(most, 0, -1), key=lambda columns: (math.ceil(count / columns) * columns - count > 1, -columns))


def begins_row(figure: Figure, number: int) -> bool:
    """Tell whether a panel begins a row of another quantity, and so one of its own also where rows are shorter."""
    panels = figure.panels
    return number > 0 and number % figure.columns == 0 and panels[number].y_label != panels[number - 1].y_label


def cells(figure: Figure, columns: int) -> list[int]:
    """Return the place of each panel on a grid of so many columns, counted along its rows."""
    found: list[int] = []
    for number in range(len(figure.panels)):
        place = found[-1] + 1 if found else 0
        found.append(-(-place // columns) * columns if begins_row(figure, number) else place)
    return found
