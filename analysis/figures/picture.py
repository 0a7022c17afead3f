"""Draws a ``Figure`` with matplotlib: PNG, PDF and SVG for papers, and pictures for pages that follow their reader.

The caption is no part of the picture; ``captions`` writes it beside.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat, parallel
from faultsweep.analysis.figures.figure import Curve, Figure, Panel, Table
from faultsweep.analysis.figures.layout import (
    DARK,
    LARGEST_IN_FULL,
    LIGHT,
    LIKE_INK,
    Limits,
    Theme,
    as_curves,
    bar_width,
    beyond,
    cells,
    columns_for,
    in_full,
    is_banded,
    labels,
    log_base,
    log_ticks,
    named_ticks,
    offset_of_bar,
    places,
    shared_scales,
    y_limits,
)
from faultsweep.analysis.figures.texts import without_math

from faultsweep.files import writing

_PANEL_INCHES = (4.3, 3.1)
_NARROWEST_INCHES = 3.2
_TABLE_ROW_INCHES = 0.34
_CHARACTER_INCHES = 0.087
_CHARACTERS = 12.5  # to an inch of axes that are not laid out yet
_LINE_INCHES = 0.25
_SLANTED_INCHES = 0.26  # from one category to the next, so that slanted names do not touch
_SMALLEST = 5.0  # font of upright names; of more only some are shown
_DPI = 200
_LARGEST_MARKER = 7.0
_RING = 12.0
_MOST_CAPPED = 8  # points of a curve whose intervals have ends that can be told apart
_MOST_LABELLED = 6  # bars of a panel that are wide enough for a number
_LIGHT_COLOURS = ("#F0E442", "#56B4E9", "#E69F00", "#BBBBBB", "#CC79A7")
_SIZES = {"font.size": 10, "axes.titlesize": 10.5, "axes.labelsize": 10, "legend.fontsize": 10}
_NUMBERS = {
    "axes.formatter.limits": (-5, LARGEST_IN_FULL),
    "axes.formatter.use_mathtext": True,
    "axes.formatter.useoffset": False,
}
# A text as curves looks alike everywhere; a fixed salt makes the file the same each time.
_FILES = {"svg.hashsalt": "faultsweep", "pdf.fonttype": 42}


def draw_picture(figure: Figure, path: Path, width_in: float | None = None, theme: Theme = LIGHT) -> None:
    """Write the figure as a PNG, PDF or SVG, by the name of the file.

    Parameters
    ----------
    figure : the figure.
    path : the file.
    width_in : its width in inches, which decides how many panels stand in a row; by default it has room for as many
        as the figure asks for.
    theme : colours of the paper and the text.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib import rc_context

    with rc_context(_settings(theme)):
        with _quietly():
            canvas = make_canvas(figure, width_in, theme)
        about = {"Title": figure.title, "Description": figure.text}
        if path.suffix == ".pdf":
            about = {"Title": figure.title, "Subject": figure.text}
        with writing(path), _quietly():
            canvas.savefig(path, dpi=_DPI, facecolor=theme.paper, metadata=about)


@contextmanager
def _quietly() -> Iterator[None]:
    """Let matplotlib not complain of very large numbers, letters that its font does not have, and very long names."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font|constrained_layout not applied")
        yield


def svg_text(figure: Figure, width_in: float) -> str:
    """Return the figure as an SVG without a background, whose colours follow the reader's choice of light or dark."""
    from matplotlib import rc_context

    # Odd colours stand for the theme's, so that they can be found in the file.
    marked = Theme("#fdfcfb", "#1a1b1c", "#5a5b5c", "#e2e3e4")
    file = io.StringIO()
    with rc_context(_settings(marked)):
        canvas = make_canvas(figure, width_in, marked, title=False)
        canvas.savefig(file, format="svg", facecolor="none", metadata={"Date": None})
    text = file.getvalue()
    pairs = [(getattr(marked, name), getattr(LIGHT, name), getattr(DARK, name)) for name in _PARTS]
    pairs += [(old.lower(), old, new) for old, new in DARK.instead]
    names = [f"--c{number}" for number in range(len(pairs))]
    for name, (mark, _, _) in zip(names, pairs, strict=True):
        text = text.replace(mark, f"var({name})")
    light, dark = (";".join(f"{n}:{pair[i]}" for n, pair in zip(names, pairs, strict=True)) for i in (1, 2))
    style = f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    return re.sub(r"(<svg[^>]*>)", lambda found: found.group(1) + style, text, count=1)


_PARTS = ("paper", "ink", "faint", "grid")


def _settings(theme: Theme) -> Any:
    inks = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor", "axes.titlecolor")
    lines = ("axes.edgecolor", "xtick.color", "ytick.color")
    colours = {**dict.fromkeys(inks, theme.ink), **dict.fromkeys(lines, theme.faint), "axes.facecolor": theme.paper}
    return {**_SIZES, **_NUMBERS, **_FILES, **colours}


def make_canvas(figure: Figure, width_in: float | None = None, theme: Theme = LIGHT, title: bool = True) -> Any:
    """Return the figure as matplotlib's, with everything on it."""
    from matplotlib.figure import Figure as Canvas

    figure = without_math(shared_scales(figure))
    if figure.table:
        return _table_canvas(figure, figure.table, width_in, theme, title)
    width = width_in or max(_PANEL_INCHES[0] * min(figure.columns, max(1, len(figure.panels))), 5.6)
    columns = columns_for(figure, width, _NARROWEST_INCHES)
    grid = cells(figure, columns)
    rows = grid[-1] // columns + 1 if grid else 1
    heading = textwrap.fill(figure.title, int(width * 9)) if title else ""
    keys = labels(figure)
    key_columns = _key_columns([label for label, _ in keys], width)
    head = _LINE_INCHES * (1.15 * (heading.count("\n") + 1) if title else 0)
    key = _LINE_INCHES * (0.35 + math.ceil(len(keys) / key_columns)) if keys else 0.05
    height = head + key + rows * _panel_height(width / columns)
    canvas = Canvas(figsize=(width, height), facecolor=theme.paper)
    canvas.set_layout_engine("constrained", rect=(0, 0, 1, 1 - (head + key) / height), hspace=0.06, wspace=0.04)
    if title:
        canvas.text(0.5, 1 - 0.08 / height, heading, ha="center", va="top", fontsize=12.5, fontweight="bold")
    axes = canvas.subplots(rows, columns, squeeze=False).ravel()
    limits = y_limits(figure)
    for number, (place, panel) in enumerate(zip(grid, figure.panels, strict=True)):
        if panel.surface:
            axes[place].remove()
            axes[place] = canvas.add_subplot(rows, columns, place + 1, projection="3d")
        draw_panel(axes[place], panel, theme, limits[number])
        _without_repeats(axes[place], {at: figure.panels[n] for n, at in enumerate(grid)}, place, columns)
    for place in set(range(len(axes))) - set(grid):
        axes[place].remove()
    if keys:
        _draw_key(canvas, axes, keys, key_columns, 1 - head / height)
    return canvas


def _panel_height(width: float) -> float:
    return min(_PANEL_INCHES[1], max(2.5, 0.75 * width))


def _without_repeats(axis: Any, panels: dict[int, Panel], place: int, columns: int) -> None:
    """Leave out the labels of axes that the panel to the left, or the one below, has as well."""
    panel = panels[place]
    if panel.heat is not None:
        return
    beside = panels.get(place - 1) if place % columns else None
    if beside and beside.y_label == panel.y_label and beside.heat is None:
        axis.set_ylabel("")
        axis.tick_params(labelleft=beside.scale != panel.scale)
    below = panels.get(place + columns)
    if below and below.x_label == panel.x_label and below.heat is None and below.categories == panel.categories:
        axis.set_xlabel("")


def _key_columns(words: list[str], width: float) -> int:
    """Return how many entries of a legend stand in a row, in rows that are equally full."""
    if not words:
        return 1
    most = max(1, int((width - 0.2) / (0.6 + _CHARACTER_INCHES * max(map(len, words)))))
    return math.ceil(len(words) / math.ceil(len(words) / most))


def _draw_key(canvas: Any, axes: Any, keys: list[tuple[str, Curve]], columns: int, top: float) -> None:
    """Draw one legend for all panels, between the title and them, where it covers nothing; read along its rows."""
    drawn = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    words = [label for label, _ in keys]
    rows = math.ceil(len(words) / columns)
    # matplotlib fills a legend by columns
    ordered = [words[row * columns + column] for column in range(columns) for row in range(rows) if
               row * columns + column < len(words)]  # fmt: skip
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, top), "borderaxespad": 0, "frameon": False}
    spaces = {"columnspacing": 1.4, "handletextpad": 0.5, "handlelength": 2.2}
    legend = canvas.legend([drawn[label] for label in ordered], ordered, ncols=columns, **place, **spaces)
    legend.set_in_layout(False)


def draw_panel(axis: Any, panel: Panel, theme: Theme = LIGHT, limits: Limits | None = None) -> None:
    """Draw one panel on matplotlib's axes."""
    axis.set_title(textwrap.fill(panel.title, 42))
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(textwrap.fill(panel.y_label, 34))
    if panel.heat is not None:
        draw = heat.draw_surface if panel.surface else heat.draw_png
        draw(axis, panel.heat)
        if panel.surface:
            for of in (axis.xaxis, axis.yaxis, axis.zaxis):
                of.set_pane_color(theme.paper)
        return
    if panel.parallel is not None:
        parallel.draw_png(axis, panel.parallel, theme)
        return
    axis.grid(axis="y" if panel.bars else "both", color=theme.grid, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    at = places(panel)
    for number, curve in enumerate(panel.curves):
        largest = _LARGEST_MARKER if len(curve.x) <= _MOST_CAPPED else _LARGEST_MARKER - 1.5
        size = largest - 2.5 * number / max(1, len(panel.curves) - 1)
        _draw_curve(axis, curve, at[number], size, is_banded(panel), theme)
    _draw_bars(axis, panel, theme)
    _set_scales(axis, panel, limits)
    if panel.signed or panel.ratio:
        axis.axhline(int(panel.ratio), color=theme.faint, linewidth=1.0, zorder=1)
    if not panel.stacked and not is_banded(panel):
        _draw_arrows(axis, panel, theme)


def _draw_arrows(axis: Any, panel: Panel, theme: Theme) -> None:
    """Mark the intervals that go on beyond the panel."""
    limits, at = axis.get_ylim(), places(panel)
    for number, curve in enumerate(as_curves(panel)):
        x = curve.x + offset_of_bar(panel, number) if panel.bars else at[number]
        colour = theme.ink if panel.bars and not panel.log_y else theme.colour(curve.style.colour)
        for cut, end, shape in zip(beyond(curve, limits), limits, "v^", strict=True):
            if cut.any():
                look = {"marker": shape, "markersize": 4, "color": colour, "linestyle": "none", "clip_on": False}
                axis.plot(x[cut], [end] * int(cut.sum()), **look)


def _set_scales(axis: Any, panel: Panel, limits: Limits | None) -> None:
    from matplotlib import ticker

    if panel.log_x:
        axis.set_xscale("log", base=log_base(panel))
    if ticks := named_ticks(panel):
        axis.set_xticks(list(ticks), list(ticks.values()))
        axis.xaxis.set_minor_locator(ticker.NullLocator())
    if panel.log_y:
        axis.set_yscale("log")
    if limits is None:
        limits = y_limits(Figure("", "", [], [panel]))[0]
    if limits is not None:
        axis.set_ylim(*limits)
    if panel.log_y:
        axis.yaxis.set_major_locator(ticker.FixedLocator(log_ticks(*axis.get_ylim())))
        axis.yaxis.set_major_formatter(in_full)
        axis.yaxis.set_minor_locator(ticker.NullLocator())
    if panel.stacked:
        axis.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0, symbol="\u00a0%"))


def _draw_curve(axis: Any, curve: Curve, x: Any, size: float, banded: bool, theme: Theme) -> None:
    """Draw a curve; markers get smaller from one to the next, and dashed curves have hollow ones, so all are seen."""
    style, colour = curve.style, theme.colour(curve.style.colour)
    markers = {"marker": style.marker, "markersize": size, "markeredgecolor": colour}
    markers["markerfacecolor"] = theme.paper if style.dashed else colour
    line = {"color": colour, "linestyle": "--" if style.dashed else "-", "linewidth": 1.7}
    line |= {} if style.joined else {"linestyle": "none"}
    error = None
    if np.isfinite(curve.low).any() and not banded:
        error = np.nan_to_num([curve.y - curve.low, curve.high - curve.y])
    if banded:
        axis.fill_between(x, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)
    few = len(curve.x) <= _MOST_CAPPED
    bars = {"ecolor": colour, "elinewidth": 1.1 if few else 0.8, "capsize": 2.0 if few else 0.0}
    drawn = axis.errorbar(x, curve.y, error, label=curve.label, **line, **markers, **bars)
    for part in drawn.lines[2] if not few else ():
        part.set_alpha(0.6)  # so that lines show through what stands close together
    _draw_dots(axis, x, curve.replicates, colour)
    _draw_rings(axis, x, curve.y, curve.flagged, theme)


def _draw_dots(axis: Any, x: Any, replicates: Any, colour: str) -> None:
    """Draw the replicates themselves."""
    if replicates is not None:
        look = {"marker": "_", "markersize": 5, "color": colour, "alpha": 0.75, "linestyle": "none"}
        axis.plot(np.repeat(x, replicates.shape[1]), replicates.ravel(), **look)


def _draw_rings(axis: Any, x: Any, y: Any, flagged: Any, theme: Theme, room: float = _RING) -> None:
    """Ring the points that the caption warns of; with little room between them, rings are smaller."""
    if flagged is not None and flagged.any():
        ring = {
            "marker": "o",
            "markersize": min(_RING, room),
            "markerfacecolor": "none",
            "markeredgecolor": theme.faint,
        }
        axis.plot(x[flagged], y[flagged], linestyle="none", **ring)


def _draw_bars(axis: Any, panel: Panel, theme: Theme) -> None:
    if not panel.bars or not panel.categories:
        return
    base = np.zeros(len(panel.categories))
    room = 72 * _width_in(axis) * bar_width(panel) / len(panel.categories)
    for number, (bars, series) in enumerate(zip(panel.bars, as_curves(panel), strict=True)):
        at, width = series.x + offset_of_bar(panel, number), bar_width(panel)
        colour = theme.colour(bars.style.colour)
        if panel.log_y:
            _draw_point_bars(axis, at, series, colour)
            _draw_rings(axis, at, bars.y, bars.flagged, theme, room)
            continue
        look = {"color": colour, "label": bars.label, "edgecolor": theme.paper, "linewidth": 0.7}
        drawn = axis.bar(at, bars.y, width, bottom=base, **look)
        if panel.stacked:
            few = len(panel.categories) <= _MOST_LABELLED
            numbers = [f"{100 * value:.0f}\u00a0%" if few and value >= 0.05 else "" for value in bars.y]
            on = "#1a1a1a" if bars.style.colour in _LIGHT_COLOURS else "#ffffff"
            axis.bar_label(drawn, numbers, label_type="center", color=on, fontsize=9)
            base = base + np.nan_to_num(bars.y)
        elif np.isfinite(series.low).any():
            error = np.nan_to_num([series.y - series.low, series.high - series.y])
            if bars.style.colour in LIKE_INK:
                edge = {"elinewidth": 2.7, "capthick": 2.7, "capsize": 2.8}
                axis.errorbar(at, bars.y, error, fmt="none", ecolor=theme.paper, **edge)
            axis.errorbar(at, bars.y, error, fmt="none", ecolor=theme.ink, elinewidth=1.1, capsize=2.0)
        _draw_dots(axis, at, bars.replicates, theme.ink)
        _draw_rings(axis, at, bars.y, bars.flagged, theme, room)
    _name_categories(axis, panel.categories)


def _width_in(axis: Any) -> float:
    """Return about how many inches wide axes are that are not laid out yet."""
    return float(axis.get_position().width * axis.figure.get_size_inches()[0])


def _draw_point_bars(axis: Any, at: Any, series: Curve, colour: str) -> None:
    """Draw a series of bars as points: on a logarithmic axis a bar has no beginning."""
    error = None
    if np.isfinite(series.low).any():
        error = np.nan_to_num([series.y - series.low, series.high - series.y])
    look = {"color": colour, "linestyle": "none", "marker": series.style.marker, "markersize": 5}
    axis.errorbar(at, series.y, error, label=series.label, **look, ecolor=colour, elinewidth=1.1, capsize=2.0)
    _draw_dots(axis, at, series.replicates, colour)


def _name_categories(axis: Any, categories: list[str]) -> None:
    """Name the categories below the bars, so that no name covers another: in lines, or slanted."""
    left, right = axis.get_xlim()  # of the bars that there are; a category may have none
    axis.set_xlim(min(left, -0.4), max(right, len(categories) - 0.6))
    width = _width_in(axis)
    room = _CHARACTERS * width / max(1, len(categories))  # characters below a bar
    widest = max((len(one) + len(next_) for one, next_ in pairwise(["", *categories, ""])), default=0) / 2 + 1.6
    size: float = next((size for size in (10, 9, 8) if widest <= room * 10 / size), 0)
    if size:
        axis.set_xticks(range(len(categories)), categories, fontsize=size)
    elif all(name.replace(".", "").isdigit() for name in categories):
        axis.set_xticks(range(0, len(categories), 2), categories[::2])
    elif room >= 6 and max(len(word) for name in categories for word in name.split()) <= room:
        axis.set_xticks(range(len(categories)), [textwrap.fill(name, int(room)) for name in categories])
    elif width / len(categories) < _SLANTED_INCHES:
        size = max(_SMALLEST, min(9.0, 60 * width / len(categories)))
        step = math.ceil(_SMALLEST / (60 * width / len(categories)))
        axis.set_xticks(range(0, len(categories), step), categories[::step], fontsize=size, rotation=90)
    else:
        axis.set_xticks(range(len(categories)), [textwrap.fill(name, 22) for name in categories])
        axis.tick_params(axis="x", rotation=35, labelrotation=35)
        for label in axis.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _longest(table: Table) -> list[float]:
    """Return how many characters wide each column is, with the room between columns."""
    columns = zip(table.header, *table.rows, strict=True)
    return [max(_widest(head) * 1.15, *map(_widest, cells)) + 2 for head, *cells in columns]


def _widest(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _folded(table: Table, width: float) -> Table:
    """Return the table with its cells in as few lines as have room in this width."""
    folded = table
    for most in (40, 30, 24, 20, 16, 12):
        header = [textwrap.fill(cell, max(9, most - 8)) for cell in table.header]
        folded = Table(header, [[textwrap.fill(cell, most) for cell in row] for row in table.rows])
        if 0.08 * sum(_longest(folded)) + 0.3 <= width:
            break
    return folded


def _table_canvas(figure: Figure, table: Table, width_in: float | None, theme: Theme, title: bool) -> Any:
    from matplotlib.figure import Figure as Canvas

    longest = _longest(table)
    natural = max(0.08 * sum(longest) + 0.3, 0.13 * len(figure.title))
    width = width_in or natural
    if width < natural:
        table = _folded(table, width)
        longest = _longest(table)
        natural = 0.08 * sum(longest) + 0.3
    size = 10 * min(1.0, width / natural)
    lines = [max(cell.count("\n") + 1 for cell in row) for row in [table.header, *table.rows]]
    heights = [1 + 0.55 * (count - 1) for count in lines]
    height = _TABLE_ROW_INCHES * sum(heights) * size / 10 + (0.45 if title else 0.1)
    canvas = Canvas(figsize=(width, height), facecolor=theme.paper)
    if title:
        canvas.text(0.5, 1 - 0.08 / height, figure.title, ha="center", va="top", fontsize=12.5, fontweight="bold")
    axis = canvas.add_axes((0.01, 0.02, 0.98, 1 - (0.45 if title else 0.1) / height))
    axis.set_axis_off()
    place: dict[str, Any] = {
        "bbox": [0, 0, 1, 1],
        "colWidths": [n / sum(longest) for n in longest],
        "edges": "horizontal",
    }
    drawn = axis.table(table.rows, colLabels=table.header, cellLoc="right", **place)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(size)
    for (row, column), cell in drawn.get_celld().items():
        cell.set_height(heights[row] / sum(heights))
        cell.set_edgecolor(theme.grid)
        cell.set_facecolor("none")
        cell.set_text_props(
            ha="left" if column == 0 else "right", fontweight="bold" if row == 0 else "normal", color=theme.ink
        )
    return canvas
