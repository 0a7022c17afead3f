"""Kept pictures: what is drawn now is compared with what somebody looked at.

FAULTSWEEP_REDRAW=1 draws the kept pictures anew; look at each before it is committed.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.layout import LIGHT, Theme
from faultsweep.analysis.figures.picture import _settings, make_canvas
from matplotlib import rc_context
from PIL import Image

KEPT = Path(__file__).parent / "pictures"
BLOCK = 8
"""Width of the squares of pixels whose means are compared: letters that move by a pixel hardly change them."""
FAR = 30.0
"""Of 255: a mean that is further off is of another content."""
MOST = 0.004
"""Share of the squares that may be so far off: another version of a font stays below it."""


def drawn(figure: Figure, width: float | None = None, theme: Theme = LIGHT, dpi: int = 50) -> Image.Image:
    """Return the picture of a figure."""
    file = io.BytesIO()
    with rc_context(_settings(theme)):
        make_canvas(figure, width, theme).savefig(file, dpi=dpi, facecolor=theme.paper)
    return Image.open(file).convert("RGB")


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the share of the squares that are of another content; 1 for pictures of other sizes."""
    if one.size != other.size:
        return 1.0
    size = (one.width // BLOCK, one.height // BLOCK)
    means = [np.asarray(picture.resize(size, Image.Resampling.BOX), float) for picture in (one, other)]
    return float((np.abs(means[0] - means[1]).max(-1) > FAR).mean())


def check_kept(picture: Image.Image, name: str) -> None:
    """Compare a picture with the kept one of this name."""
    kept = KEPT / f"{name}.png"
    if os.environ.get("FAULTSWEEP_REDRAW"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        picture.quantize(128).save(kept, optimize=True)
    assert difference(picture, Image.open(kept).convert("RGB")) <= MOST
