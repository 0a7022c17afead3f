"""A picture of what comes out of a paper's claims under each of its readings: claim x reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple

from faultsweep.analysis.claims.claim import Claim
from faultsweep.analysis.claims.joint import Joint, maximal
from faultsweep.analysis.claims.judge import AGREES, DIFFERS, PARTLY, UNKNOWN, UNTESTABLE
from faultsweep.analysis.pictures.picture import draw_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = {AGREES: ("#2166ac", "●"), PARTLY: ("#92c5de", "◐"), DIFFERS: ("#f4a582", "○"), UNKNOWN: ("#eeeeee", "?")}
"""Colour of a cell and the mark in it, for those who do not tell the colours."""
_TEXT = 76  # characters of a claim
_HEAD, _ROW, _COLUMN = 1.5, 0.24, 0.95  # inches


class _Grid(NamedTuple):
    paper: str
    claims: list[Claim]
    found: Joint
    columns: int  # of the widest panel: all have columns of one width


def draw(claims: Mapping[str, list[Claim]], found: Mapping[str, Joint], path: str | Path) -> None:
    """Write the picture to a file (.png, .pdf or .svg): one panel a paper, a row for each claim that can be tested.

    A reading whose set of agreeing claims is within no other's is printed bold.

    Parameters
    ----------
    claims : those of each paper.
    found : paper -> name of a reading -> name of a claim -> what came out.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    columns = max(4, *(len(found[paper]) for paper in claims))
    grids = [
        _Grid(paper, [claim for claim in part if claim.parts], found[paper], columns) for paper, part in claims.items()
    ]
    heights = [_HEAD + _ROW * len(grid.claims) for grid in grids]
    width = 6.5 + _COLUMN * columns
    key = "   ".join(f"{mark} {verdict}" for verdict, (_, mark) in MARKS.items())
    title = f"{key}\nbold: no other reading has all of its agreeing claims and more"
    panels = [[partial(_draw_grid, grid)] for grid in grids]
    draw_panels(path, None, panels, (width, 0.8 + sum(heights)), title, grid="x", heights=heights)


def _draw_grid(grid: _Grid, _data: None, axis: Axes) -> None:
    for column, judgements in enumerate(grid.found.values()):
        for row, claim in enumerate(grid.claims):
            colour, mark = MARKS[judgements[claim.name].verdict]
            axis.barh(row, 1.0, 0.94, left=column - 0.5, color=colour, edgecolor="white", linewidth=2)
            axis.text(column, row, mark, ha="center", va="center", color="white" if mark == "●" else "#333333")
    axis.set_yticks(range(len(grid.claims)), [shorten(claim.text, _TEXT, placeholder=" …") for claim in grid.claims])
    axis.set(xlim=(-0.5, grid.columns - 0.5), ylim=(len(grid.claims) - 0.5, -0.5))
    axis.set_title(grid.paper, loc="left", fontweight="bold")
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[["left", "bottom"]].set_visible(False)
    axis.set_xticks(range(len(grid.found)), [_heading(name, grid.found[name]) for name in grid.found], fontsize=8)
    best = {name for names in maximal(grid.found).values() for name in names}
    for label, name in zip(axis.get_xticklabels(), grid.found, strict=True):
        label.set_fontweight("bold" if name in best else "normal")


def _heading(name: str, judgements: Mapping[str, object]) -> str:
    """Return a reading's name over lines, and how many claims agree, and agree in part, of those that can be tested."""
    count = Counter(getattr(one, "verdict", "") for one in judgements.values())
    told = count.total() - count[UNTESTABLE]
    return "\n".join((*name.replace(" ", "-").split("-"), f"{count[AGREES]} + {count[PARTLY]} of {told}"))
