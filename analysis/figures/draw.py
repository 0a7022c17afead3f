"""Writes a ``Figure`` into a folder: as pictures, as a page, and the texts beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faultsweep.analysis.figures.captions import write_captions
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.page import draw_html
from faultsweep.analysis.figures.picture import draw_picture

from faultsweep.errors import unknown_name
from faultsweep.extras import require

FORMATS = ("png", "pdf", "svg", "html")
USUAL_FORMATS = ("png", "html")

__all__ = ["FORMATS", "USUAL_FORMATS", "check_formats", "draw", "draw_html", "draw_picture"]


def check_formats(formats: Sequence[str]) -> None:
    """Raise InputError if a figure cannot be drawn in one of these formats, or not with what is installed."""
    for name in formats:
        if name not in FORMATS:
            raise unknown_name("format", name, FORMATS)
    require("a figure", "matplotlib", *(["bokeh"] if "html" in formats else []), "scipy")


def draw(figure: Figure, folder: Path, formats: Sequence[str] = USUAL_FORMATS) -> list[Path]:
    """Write the figure in these formats, its caption and its data sheet into the folder, and return the paths."""
    check_formats(formats)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{figure.name}.{name}" for name in dict.fromkeys(formats)]
    for path in paths:
        (draw_html if path.suffix == ".html" else draw_picture)(figure, path)
    return [*paths, *write_captions(figure, folder)]
