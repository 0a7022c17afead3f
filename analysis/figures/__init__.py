"""The figures of the papers, one module per paper, and the two ways they are drawn (PNG and interactive HTML)."""

from __future__ import annotations

from faultsweep.analysis.figures import krevat2003, oliner2004
from faultsweep.analysis.figures.draw import draw
from faultsweep.analysis.figures.figure import Figure

FIGURES = {**krevat2003.FIGURES, **oliner2004.FIGURES}
"""Name of an experiment -> the function that makes its figure from the experiment's results."""

__all__ = ["FIGURES", "Figure", "draw"]
