"""What a figure is, apart from how it is drawn: panels of curves or bars with intervals, and a caption.

A paper's module makes a ``Figure`` from a Dataset. ``picture`` draws it with matplotlib (PNG, PDF, SVG, report),
``page`` with Bokeh (HTML, dashboard); what both have to agree on is in ``layout``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Style:
    """How a curve or a bar looks; colours are of the Okabe-Ito palette, which colour-blind readers can tell apart.

    A curve without ``marker`` is a line alone, as for one of very many points; one that is not ``joined`` is points
    alone, as for those of a sampled design.
    """

    colour: str
    marker: str = "o"
    dashed: bool = False
    joined: bool = True


@dataclass(frozen=True)
class Curve:
    """One line with markers: values over x, with the bounds of their intervals (NaN where there is none).

    ``flagged`` points are ringed: the caption says what is the matter with them. ``rows`` are the points' numbers along
    the axis of the sweep that they stand for, where points without a result are left out. ``replicates``, of shape
    (points, replicates) with NaN for none, are drawn as dots: with few of them they say more than an interval.
    """

    label: str
    x: Numbers
    y: Numbers
    low: Numbers
    high: Numbers
    style: Style
    flagged: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None
    replicates: Numbers | None = None


@dataclass(frozen=True)
class Bars:
    """One series of bars, a bar per category; stacked on the series before it if the panel says so."""

    label: str
    y: Numbers
    style: Style
    low: Numbers | None = None
    high: Numbers | None = None
    flagged: NDArray[np.bool_] | None = None
    replicates: Numbers | None = None


@dataclass(frozen=True)
class Heat:
    """Values over two axes of labels.

    Attributes
    ----------
    x_labels, y_labels : labels as text.
    value, low, high : arrays of shape (y, x), NaN where there is no result, and the intervals.
    quantity : what the values are, with their unit.
    centre : the value that means "no difference", None for values that are not compared.
    log : whether colours are logarithmic.
    """

    x_labels: list[str]
    y_labels: list[str]
    value: Numbers
    low: Numbers
    high: Numbers
    quantity: str
    centre: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Parallel:
    """Lines across parallel axes, each of which is scaled to its range.

    Attributes
    ----------
    names : what each axis is, with its unit.
    ticks : for each axis, where a label stands (0 to 1), and the label.
    lines : where each line crosses each axis, of shape (lines, axes), NaN where it has no value.
    value : the number that colours each line, and ``quantity`` what it is.
    """

    names: list[str]
    ticks: list[list[tuple[float, str]]]
    lines: Numbers
    value: Numbers
    quantity: str


@dataclass(frozen=True)
class Panel:
    """One pair of axes: curves over x, bars over categories, a heat map, or parallel coordinates.

    ``signed`` values have a line at 0; a ``ratio`` has one at 1, on a logarithmic axis. Panels with the same label of y
    share its scale, unless they name different ones by ``scale``.

    ``log_y`` and ``banded`` (intervals as a band) are None where the curves of all panels that share the scale decide.
    Bars on a logarithmic axis, where lengths mean nothing, are drawn as points.
    Points of an ``even`` panel stand at equal distances along x, which has their values at its ticks.
    A ``surface`` is a heat map whose axes are numbers, drawn in three dimensions. Pictures have it; pages, where one
    reads values under the mouse, leave it out.
    """

    title: str
    x_label: str
    y_label: str
    curves: list[Curve] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    stacked: bool = False
    log_x: bool = False
    even: bool = False
    log_y: bool | None = None
    banded: bool | None = None
    signed: bool = False
    ratio: bool = False
    scale: str = ""
    heat: Heat | None = None
    surface: bool = False
    parallel: Parallel | None = None


@dataclass(frozen=True)
class Table:
    """A table with a header row and a first column of row names; cells are text."""

    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, or a table, with a title and texts that stand beside the picture.

    Attributes
    ----------
    name : of the files.
    title : what is drawn, in a few words.
    caption : a few short sentences: what is drawn, of how many replicates, and what the intervals are.
    panels : panels with the same label of y share its scale, because they are compared, unless they name others.
    columns : panels to a row, where there is room for so many.
    facts : whole sentences for the data sheet: jobs, what was varied and held, what came out.
    source : the figure of a paper that it is made after; "" for none.
    """

    name: str
    title: str
    caption: list[str]
    panels: list[Panel] = field(default_factory=list)
    columns: int = 2
    table: Table | None = None
    facts: list[str] = field(default_factory=list)
    source: str = ""

    @property
    def text(self) -> str:
        """Return the caption and the facts as one text."""
        return " ".join([*self.caption, *self.facts])


BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
LOOKS = (
    Style(BLUE, "o"),
    Style(VERMILION, "s"),
    Style(GREEN, "^"),
    Style(ORANGE, "D"),
    Style(PURPLE, "v"),
    Style(BLACK, "P"),
)
"""Styles of curves that mean nothing by themselves, in the order in which they are taken."""
