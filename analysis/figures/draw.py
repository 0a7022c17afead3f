"""Draws a ``Figure``: with matplotlib as a PNG for papers, with hvplot as an HTML page that works without a network."""

from __future__ import annotations

import hashlib
import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.analysis.figures import heat
from faultsweep.analysis.figures.figure import Curve, Figure, Panel, Table

from faultsweep.files import writing

POINTS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond", "v": "inverted_triangle", "P": "plus"}
_PANEL_INCHES = (5.4, 3.9)
_TABLE_INCHES = (8.5, 0.38)
_LINE_INCHES = 0.28
_DPI = 150
_LARGEST_IN_FULL = 7
"""Ticks of so many digits are written in full."""
_LARGEST_MARKER = 7.5
_MOST_TICKS = 10  # points that may each have a tick
_FEW_DECADES = 1e5  # of a logarithmic y, so few that there is room for three ticks in each
_MOST_LABELLED = 6  # bars of a panel that are wide enough for a number


_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; script-src 'nonce-{}' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'\">"
)
"""Of a page: only the scripts that stand in it from the start may run, and nothing is fetched."""


def draw(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.png`` and ``NAME.html`` into the folder and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    png, html = folder / f"{figure.name}.png", folder / f"{figure.name}.html"
    draw_picture(figure, png)
    draw_html(figure, html)
    return [png, html]


def draw_picture(figure: Figure, path: Path) -> None:
    """Write the figure as a PNG, SVG or PDF, by the name of the file; legible at half its size."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    figure = without_math(figure)
    rows, columns = _grid(figure)
    width = _TABLE_INCHES[0] if figure.table or columns == 1 else _PANEL_INCHES[0] * columns
    body = _TABLE_INCHES[1] * (len(figure.table.rows) + 1) if figure.table else _PANEL_INCHES[1] * rows
    caption = textwrap.fill(" ".join(figure.caption), int(width * 13))
    labels = {curve.label for panel in figure.panels for curve in panel.curves}
    labels |= {bars.label for panel in figure.panels for bars in panel.bars}
    legend_columns = _legend_columns(len(labels), max(map(len, labels), default=1), width)
    title = textwrap.fill(figure.title, int(width * 8.5))
    head = _LINE_INCHES * (
        0.5 + (title.count("\n") + 1) + (math.ceil(len(labels) / legend_columns) if len(labels) > 1 else 0)
    )
    foot = 0.19 * (caption.count("\n") + 1) + 0.2
    height = head + body + foot
    sizes = rc_context({"font.size": 11, "axes.titlesize": 12, "axes.labelsize": 11, "legend.fontsize": 11})
    ticks = rc_context({"axes.formatter.limits": (-5, _LARGEST_IN_FULL), "axes.formatter.use_mathtext": True})
    with sizes, ticks, rc_context({"axes.formatter.useoffset": False}):
        canvas = Canvas(figsize=(width, height))
        canvas.set_layout_engine("constrained", rect=(0, foot / height, 1, body / height))
        canvas.text(0.5, 1 - 0.1 / height, title, ha="center", va="top", fontsize=14, fontweight="bold")
        canvas.text(0.1 / width, 0.1 / height, caption, va="bottom", fontsize=9.5, color="#333333", linespacing=1.25)
        if figure.table:
            _png_table(canvas.subplots(), figure.table)
        else:
            axes = canvas.subplots(rows, columns, squeeze=False).ravel()
            for place, panel in enumerate(figure.panels):
                if panel.surface:
                    axes[place].remove()
                    axes[place] = canvas.add_subplot(rows, columns, place + 1, projection="3d")
                _png_panel(axes[place], panel)
            for axis in axes[len(figure.panels) :]:
                axis.set_axis_off()
            _png_legend(canvas, axes, legend_columns, 1 - _LINE_INCHES * (0.3 + (title.count("\n") + 1)) / height)
        with writing(path):
            canvas.savefig(path, dpi=_DPI, facecolor="white", metadata={"Title": figure.title, "Description": caption})


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a text, or all that holds texts, with each of them changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_changed(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _changed(getattr(value, part.name), change) for part in fields(value)})
    return value


def without_math(value: Any) -> Any:
    """Return texts, such as those of a figure, in which matplotlib takes no dollar sign for the begin of a formula."""
    return _changed(value, lambda text: text.replace("$", r"\$"))


def without_tex(value: Any) -> Any:
    """Return texts, such as those of a figure, in which Bokeh finds no formula: one may hold a link that is a script.

    A space of no width stands within each delimiter.
    """
    return _changed(value, lambda text: re.sub(r"(\$|\\)(?=[$(\[])", "\\1\u200b", text))


def _legend_columns(entries: int, longest: int, width: float) -> int:
    """Return how many entries of a legend stand in a row, in rows that are equally full."""
    most = max(1, int(width / (0.8 + 0.1 * longest)))
    return math.ceil(entries / math.ceil(entries / most)) if entries else 1


def _grid(figure: Figure) -> tuple[int, int]:
    columns = min(figure.columns, max(1, len(figure.panels)))
    return max(1, math.ceil(len(figure.panels) / columns)), columns


def _png_panel(axis: Any, panel: Panel) -> None:
    from matplotlib import ticker

    axis.set_title(panel.title)
    axis.set_xlabel(panel.x_label)
    axis.set_ylabel(textwrap.fill(panel.y_label, 44))
    if panel.heat is not None:
        draw = heat.draw_surface if panel.surface else heat.draw_png
        draw(axis, panel.heat)
        return
    axis.grid(axis="y" if panel.bars else "both", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    for number, curve in enumerate(panel.curves):
        _png_curve(axis, curve, _LARGEST_MARKER - 4 * number / max(1, len(panel.curves) - 1))
    _png_bars(axis, panel)
    if panel.log_x:
        axis.set_xscale("log", base=_log_base(panel))
        if _ticks(panel):
            axis.xaxis.set_major_locator(ticker.FixedLocator(_ticks(panel)))
            axis.xaxis.set_major_formatter(_in_full)
            axis.xaxis.set_minor_locator(ticker.NullLocator())
    if panel.log_y:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if high < _FEW_DECADES * low else (1,)))
        axis.yaxis.set_major_formatter(_in_full)
        axis.yaxis.set_minor_formatter(ticker.NullFormatter())
    elif panel.signed:
        axis.axhline(0, color="#555555", linewidth=0.9, zorder=1)
    elif _is_positive(panel):
        axis.set_ylim(bottom=0)


def _is_positive(panel: Panel) -> bool:
    """Tell whether there is something to show, and nothing of it below 0."""
    parts = [*(curve.y for curve in panel.curves), *(bars.y for bars in panel.bars)]
    return bool(parts) and not any((part < 0).any() for part in parts)


def _log_base(panel: Panel) -> int:
    """Return the base of the ticks of a logarithmic x: 2, but 10 where so many powers of two would not be read."""
    x = np.concatenate([curve.x[curve.x > 0] for curve in panel.curves])
    return 10 if len(x) and x.max() > 1000 * x.min() else 2


def _ticks(panel: Panel) -> list[float]:
    """Return the ticks of a logarithmic x: the points of its curves, none if they are too many to be read."""
    found = np.unique(np.concatenate([curve.x[curve.x > 0] for curve in panel.curves]))
    return [float(x) for x in found] if len(found) <= _MOST_TICKS else []


def _png_curve(axis: Any, curve: Curve, size: float) -> None:
    """Draw a curve; markers get smaller from one to the next, and dashed curves have hollow ones, so all are seen."""
    style = curve.style
    markers = {"marker": style.marker, "markersize": size, "markerfacecolor": "none" if style.dashed else style.colour}
    line = {"color": style.colour, "linestyle": "--" if style.dashed else "-", "linewidth": 1.8}
    line |= {} if style.joined else {"linestyle": "none"}
    error = None
    if np.isfinite(curve.low).any():
        error = np.nan_to_num([curve.y - curve.low, curve.high - curve.y])
    bars = {"ecolor": style.colour, "elinewidth": 1.1, "capsize": 2.5}
    axis.errorbar(curve.x, curve.y, error, label=curve.label, **line, **markers, **bars)
    _png_rings(axis, curve.x, curve.y, curve.flagged)


def _png_rings(axis: Any, x: Any, y: Any, flagged: Any) -> None:
    """Ring the points that the caption warns of."""
    if flagged is not None and flagged.any():
        ring = {"marker": "o", "markersize": 14, "markerfacecolor": "none", "markeredgecolor": "#333333"}
        axis.plot(x[flagged], y[flagged], linestyle="none", **ring)


def _png_bars(axis: Any, panel: Panel) -> None:
    if not panel.bars:
        return
    places = np.arange(len(panel.categories))
    width = 0.7 if panel.stacked else 0.8 / len(panel.bars)
    base = np.zeros(len(places))
    for number, bars in enumerate(panel.bars):
        at = places if panel.stacked else places + (number - (len(panel.bars) - 1) / 2) * width
        drawn = axis.bar(at, bars.y, width, bottom=base, color=bars.style.colour, label=bars.label, edgecolor="white")
        if panel.stacked:
            few = len(places) <= _MOST_LABELLED
            light = bars.style.colour in ("#F0E442", "#56B4E9", "#E69F00", "#BBBBBB")
            labels = [f"{100 * value:.0f}\u00a0%" if few and value >= 0.05 else "" for value in bars.y]
            axis.bar_label(drawn, labels, label_type="center", color="black" if light else "white", fontsize=10)
            base = base + np.nan_to_num(bars.y)
        elif bars.low is not None and bars.high is not None and np.isfinite(bars.low).any():
            error = np.nan_to_num([bars.y - bars.low, bars.high - bars.y])
            axis.errorbar(at, bars.y, error, fmt="none", ecolor="black", capsize=3)
        _png_rings(axis, at, bars.y, bars.flagged)
    axis.set_xticks(places, panel.categories)


def _png_legend(canvas: Any, axes: Any, columns: int, top: float) -> None:
    """One legend for all panels, above them; each label once."""
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if len(entries) > 1:
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, top), "borderaxespad": 0, "frameon": False}
        legend = canvas.legend(entries.values(), entries.keys(), ncols=columns, **place)
        legend.set_in_layout(False)


def _png_table(axis: Any, table: Table) -> None:
    axis.set_axis_off()
    longest = [max(len(row[i]) for row in [table.header, *table.rows]) + 2 for i in range(len(table.header))]
    widths = [length / sum(longest) for length in longest]
    place = {"bbox": [0, 0, 1, 1], "colWidths": widths, "cellLoc": "right", "edges": "horizontal"}
    drawn = axis.table(table.rows, colLabels=table.header, **place)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(11)
    for (row, column), cell in drawn.get_celld().items():
        cell.set_text_props(ha="left" if column == 0 else "right", fontweight="bold" if row == 0 else "normal")


def draw_html(figure: Figure, path: Path) -> None:
    """Write the figure as one HTML file that asks nothing of a network (all scripts are in it, about 3 MB)."""
    import holoviews as hv
    import pandas as pd
    from bokeh.layouts import column
    from bokeh.models.widgets import Div
    from hvplot import hvPlot

    figure = without_tex(figure)
    hv.extension("bokeh", logo=False)
    if figure.table:
        table = pd.DataFrame(figure.table.rows, columns=figure.table.header)
        drawn: Any = hvPlot(table).table(width=900, height=60 + 26 * len(table))
    else:
        panels = [_html_panel(panel) for panel in figure.panels if not panel.surface]
        drawn = hv.Layout(panels).cols(_grid(figure)[1]).opts(shared_axes=False)
    heading = Div(text=f"<h2 style='font-family: sans-serif'>{escape(figure.title)}</h2>")
    words = escape(" ".join(figure.caption))
    caption = Div(text=f"<p style='font-family: sans-serif; max-width: 70em'>{words}</p>", width=1200)
    write_page(column(heading, hv.render(drawn, backend="bokeh"), caption), figure.title, path)


def write_page(root: Any, title: str, path: Path) -> None:
    """Write a layout of Bokeh's as an HTML page with all scripts in it."""
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    # Bokeh's own page, not Panel's: that one asks a content network for style sheets even with inline scripts. Panel
    # still adds the address of a script that nothing here uses.
    page = re.sub(r"<script[^>]*\ssrc=[^>]*></script>", "", file_html(root, INLINE, title))
    nonce = hashlib.sha256(page.encode()).hexdigest()[:32]  # the same page for the same figure; no text in it knows it
    page = page.replace("<script", f"<script nonce={nonce}").replace("<head>", "<head>" + _POLICY.format(nonce), 1)
    with writing(path):
        path.write_text(page, encoding="utf-8")


def _html_panel(panel: Panel) -> Any:
    import holoviews as hv

    options = {
        "width": 620,
        "height": 430,
        "title": panel.title,
        "xlabel": panel.x_label,
        "ylabel": panel.y_label,
        "logx": panel.log_x,
        "logy": panel.log_y,
        "fontscale": 1.1,
    }
    options["yformatter"] = _plain_numbers(panel.log_y)
    if panel.heat is not None:
        return heat.draw_hvplot(panel, panel.heat, width=900, height=430, title=panel.title)
    if panel.curves:
        parts = [part for curve in panel.curves for part in _html_curve(curve, panel)]
        parts += [hv.HLine(0).opts(color="#555555", line_width=1)] if panel.signed else []
        if panel.log_x and _ticks(panel):
            options["xticks"] = [(x, _in_full(x)) for x in _ticks(panel)]
        else:
            options["xformatter"] = _plain_numbers(panel.log_x)
        if not (panel.log_y or panel.signed) and _is_positive(panel):
            options["ylim"] = (0, None)
        overlay = hv.Overlay(parts).opts(legend_position="top_left", show_grid=True, **options)
        return overlay.opts(click_policy="hide", padding=(0.04, 0.08))
    tops = [np.nan_to_num(bars.y) for bars in panel.bars]
    top = float(np.max(np.sum(tops, axis=0) if panel.stacked else tops))
    low = 1.05 * min(0.0, float(np.min(tops)))
    return hv.Overlay(_html_bars(panel)).opts(
        show_grid=True, legend_position="right", ylim=(low, 1.05 * top), **options
    )


def _in_full(x: float, place: int | None = None) -> str:
    """Return a tick of a logarithmic axis up to ten million in full; Python writes a million as 1e+06."""
    return f"{x:.0f}" if 1e5 <= abs(x) < 10**_LARGEST_IN_FULL else f"{x:g}"


def _plain_numbers(log: bool) -> Any:
    """Return what writes ticks up to ten million in full: Bokeh writes six hundred thousand as 6.000e+5, or 10^5."""
    from bokeh.models import BasicTickFormatter, LogTickFormatter

    if log:
        return LogTickFormatter(min_exponent=_LARGEST_IN_FULL)
    return BasicTickFormatter(power_limit_high=_LARGEST_IN_FULL)


def _html_curve(curve: Curve, panel: Panel) -> list[Any]:
    import pandas as pd
    from hvplot import hvPlot

    x, y = panel.x_label, panel.y_label
    table = pd.DataFrame({x: curve.x, y: curve.y, "low": curve.low, "high": curve.high, "curve": curve.label})
    table = table.dropna(subset=[x, y])
    style = curve.style
    line = hvPlot(table).line(
        x, y, label=curve.label, color=style.colour, line_dash="dashed" if style.dashed else "solid", line_width=2
    )
    if not style.marker:
        return [line]
    points = hvPlot(table).scatter(
        x,
        y,
        label=curve.label,
        color=style.colour,
        marker=POINTS[style.marker],
        size=70 if style.dashed else 45,
        fill_alpha=0.0 if style.dashed else 1.0,
        hover_cols=["curve", "low", "high"],
    )
    if curve.flagged is not None and curve.flagged.any():
        ringed = table[curve.flagged[np.isfinite(curve.x) & np.isfinite(curve.y)]]
        points = points * hvPlot(ringed).scatter(x, y, size=240, fill_alpha=0.0, line_color="#333333")
    band = table.dropna(subset=["low", "high"])
    parts = [line, points] if style.joined else [points]
    if band.empty:
        return parts
    band = band.assign(below=band[y] - band["low"], above=band["high"] - band[y])
    if panel.log_y:  # what is below 0 has no place on the axis
        band["below"] = np.minimum(band["below"], 0.999 * band[y])
    heads = {"lower_head": None, "upper_head": None}
    return [*parts, hvPlot(band).errorbars(x, y, "below", "above", color=style.colour, **heads)]


def _html_bars(panel: Panel) -> list[Any]:
    import pandas as pd
    from hvplot import hvPlot

    columns = {bars.label: np.asarray(bars.y, float) for bars in panel.bars}
    table = pd.DataFrame(columns, index=pd.Index(panel.categories, name=panel.x_label or "category"))
    colours = [bars.style.colour for bars in panel.bars]
    single = len(panel.bars) == 1
    return [hvPlot(table).bar(stacked=panel.stacked, color=colours[0] if single else colours, rot=30)]
