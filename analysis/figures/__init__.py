"""The figures of the papers (one module each), that of any other sweep, and the ways they are drawn: PNG and HTML."""

from __future__ import annotations

from faultsweep.analysis.figures import akshitha2011, krevat2003, oliner2004, tang2010, zhang2004
from faultsweep.analysis.figures.draw import draw
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.sweep import sweep_figure

FIGURES = {
    **krevat2003.FIGURES,
    **oliner2004.FIGURES,
    **zhang2004.FIGURES,
    **tang2010.FIGURES,
    **akshitha2011.FIGURES,
}
"""Name of an experiment -> the function that makes its figure from the experiment's results."""

__all__ = ["FIGURES", "Figure", "draw", "sweep_figure"]
