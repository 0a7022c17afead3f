"""Draws heat maps as a part of a picture, and says what they look like on pages."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from faultsweep.analysis.figures.describe import short_number
from faultsweep.analysis.figures.figure import Heat

_MOST_PRINTED = (12, 15)
"""Columns and rows whose cells have room for their number."""
MOST_TICKS = 25
_SIZES = (9.0, 8.0, 7.0, 6.0)  # of the numbers in cells; without room for the smallest they are left out
_BESIDE_CELLS_INCHES = 1.6  # labels, ticks and the scale of the colours
_CHARACTER_EMS = 0.64
_DECADES = 280
"""Matplotlib takes smaller numbers for zero, and has no ticks over more decades."""


def limits(heat: Heat) -> tuple[float, float]:
    """Return the values at the ends of the colours; even on both sides of the centre if there is one."""
    finite = heat.value[np.isfinite(heat.value) & ((heat.value > 0) | (not heat.log))]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if heat.centre is not None:
        reach = max(abs(low - heat.centre), abs(high - heat.centre)) or 1.0
        return heat.centre - reach, heat.centre + reach
    return low, high if high > low else high + abs(high) + 1.0


def _colours(heat: Heat) -> str:
    """Return a palette that colour-blind readers can read: from dark to light, or from blue to red through white."""
    return "viridis" if heat.centre is None else "RdBu_r"


def palette(heat: Heat) -> list[str]:
    """Return the palette in 256 steps."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colour) for colour in colormaps[_colours(heat)](range(256))]


def dark(heat: Heat) -> Any:
    """Return where the colour is so dark that a number on it has to be white."""
    low, high = limits(heat)
    value = heat.value
    if heat.log:
        low, high, value = np.log(low), np.log(high), np.log(np.maximum(value, low))
    place = (value - low) / (high - low)
    return place < 0.55 if heat.centre is None else (place < 0.15) | (place > 0.85)


def has_room(heat: Heat) -> bool:
    """Tell whether the cells are so few that each has room for its number."""
    rows, columns = heat.value.shape
    return columns <= _MOST_PRINTED[0] and rows <= _MOST_PRINTED[1]


def texts(heat: Heat) -> list[str]:
    """Return the numbers of the cells, all with as many decimals as the largest has room for; "" for no result."""
    finite = np.abs(heat.value[np.isfinite(heat.value)])
    largest = float(finite.max()) if len(finite) else 0.0
    if heat.log or largest >= 1000 or largest == 0:
        return [short_number(value).replace("-", "−") if np.isfinite(value) else "" for value in heat.value.ravel()]
    places = max(0, 2 - int(np.floor(np.log10(largest))))
    places = next((few for few in range(places) if np.allclose(finite, finite.round(few), rtol=0, atol=1e-9)), places)
    found = [f"{value + 0.0:.{places}f}" if np.isfinite(value) else "" for value in heat.value.ravel()]
    zero = f"-{0:.{places}f}"
    return [text.removeprefix("-") if text == zero else text.replace("-", "−") for text in found]


def draw_surface(axis: Any, heat: Heat) -> None:
    """Draw a heat map whose labels are numbers as a surface over its two axes, on axes of three dimensions."""
    from matplotlib.ticker import MaxNLocator

    low, high = limits(heat)
    x, y = np.meshgrid([float(label) for label in heat.x_labels], [float(label) for label in heat.y_labels])
    look = {"edgecolor": "#333333", "linewidth": 0.3, "rstride": 1, "cstride": 1}
    axis.plot_surface(x, y, heat.value, cmap=_colours(heat), vmin=low, vmax=high, **look)
    axis.set_title(heat.quantity)
    axis.view_init(elev=28, azim=-125)
    axis.set_box_aspect((1, 1, 0.75), zoom=0.88)
    for name in "xyz":
        axis.tick_params(axis=name, labelsize=8, pad=0 if name != "z" else 3)
    for of in (axis.xaxis, axis.yaxis):
        of.label.set(text=textwrap.fill(of.label.get_text(), 22), size=9)
        of.set_major_locator(MaxNLocator(4, steps=[1, 2.5, 5, 10]))
        of.labelpad = 6


def draw_png(axis: Any, heat: Heat) -> None:
    """Draw a heat map with matplotlib, with the values printed where there is room."""
    from matplotlib.colors import LogNorm, Normalize

    axis.grid(visible=False)
    low, high = limits(heat)
    norm = (LogNorm if heat.log and _has_logarithms(low, high) else Normalize)(low, high)
    picture = axis.imshow(heat.value, origin="lower", aspect="auto", cmap=_colours(heat), norm=norm)
    axis.figure.colorbar(picture, ax=axis, label=textwrap.fill(heat.quantity, 34))
    for place, labels in ((axis.xaxis, heat.x_labels), (axis.yaxis, heat.y_labels)):
        step = -(-len(labels) // MOST_TICKS)
        place.set_ticks(range(0, len(labels), step), labels[::step])
    if max(map(len, heat.x_labels)) * len(heat.x_labels) > 60:
        axis.tick_params(axis="x", rotation=45)
    if has_room(heat):
        words = texts(heat)
        if not (size := _size_of_numbers(axis, words, heat.value.shape[1])):
            return
        for place, is_dark in enumerate(dark(heat).ravel()):
            row, column = divmod(place, heat.value.shape[1])
            colour = "white" if is_dark else "black"
            axis.text(column, row, words[place], ha="center", va="center", color=colour, fontsize=size)


def _has_logarithms(low: float, high: float) -> bool:
    return -_DECADES < np.log10(high) < _DECADES and np.log10(high) - np.log10(low) < _DECADES


def _size_of_numbers(axis: Any, words: list[str], columns: int) -> float:
    """Return the largest size of font in which no number touches the next one; 0 if none is small enough."""
    grid = axis.get_subplotspec().get_gridspec()
    cell = (axis.figure.get_figwidth() / grid.ncols - _BESIDE_CELLS_INCHES) / columns
    ems = _CHARACTER_EMS * (max(map(len, words), default=0) + 0.5)
    return next((size for size in _SIZES if ems * size / 72 <= cell), 0.0)
