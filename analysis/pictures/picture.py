"""What pictures of logs have in common: panels side by side, written to one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import writing

FORMATS = (".png", ".pdf", ".svg")


def check_suffix(path: Path) -> None:
    """Raise InputError unless the suffix is one of a picture, and pictures can be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: pictures are written as {', '.join(FORMATS)}")
    require("a picture", "matplotlib")


def draw_panels(
    path: str | Path,
    data: Any,
    panels: Sequence[Sequence[Callable[[Any, Any], None]]],
    size: tuple[float, float],
    title: str,
    grid: Literal["both", "x", "y"] = "both",
    heights: Sequence[float] | None = None,
) -> None:
    """Write a picture to a file (.png, .pdf or .svg).

    Parameters
    ----------
    panels : rows of functions of ``data`` and the matplotlib Axes to draw it on.
    size : width and height, in inches.
    grid : which grid lines are drawn.
    heights : of the rows of panels, in ratio to each other; equal without.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib.figure import Figure

    path = Path(path)
    check_suffix(path)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(len(panels), len(panels[0]), squeeze=False, height_ratios=heights)
    for panel, axis in zip(np.ravel(np.array(panels, dtype=object)), axes.flat, strict=True):
        panel(data, axis)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis=grid, alpha=0.25)
        axis.set_axisbelow(True)
    figure.suptitle(title)
    with writing(path):
        figure.savefig(path, dpi=130)
