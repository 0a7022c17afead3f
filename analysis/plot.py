"""Any figure of results in one line, as a notebook shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr
from faultsweep.analysis.dashboard.choices import Choices, along_of, baseline_of, check, default_choices
from faultsweep.analysis.dashboard.view import figure_of, heat_map
from faultsweep.analysis.figures import FIGURES
from faultsweep.analysis.figures.captions import markdown
from faultsweep.analysis.figures.draw import check_formats, draw_html, draw_picture
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.picture import svg_text
from faultsweep.sweeps.open import check_results, label_on

from faultsweep.arguments import MAPPING, PATH, TEXT, TRUTH, takes
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import require

_WIDE_IN, _COLUMN_IN = 9.0, 5.6


class Plot:
    """A figure that a notebook shows as vectors in the reader's light or dark, with its caption.

    Attributes
    ----------
    figure : the description of it; ``figure.text`` has all that is known.
    """

    def __init__(self, figure: Figure) -> None:
        """Keep the figure."""
        self.figure = figure

    @takes(path=PATH)
    def save(self, path: str | Path) -> Path:
        """Write it as PNG, PDF, SVG or HTML, by the name of the file, and return the path.

        Raises
        ------
        InputError
            The name ends otherwise, or the file cannot be written.
        """
        path = Path(path)
        check_formats([path.suffix[1:]])
        (draw_html if path.suffix == ".html" else draw_picture)(self.figure, path)
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return what Jupyter shows: the picture, else the caption."""
        width = _COLUMN_IN if len(self.figure.panels) == 1 else _WIDE_IN
        return {"image/svg+xml": svg_text(self.figure, width), "text/plain": repr(self)}

    def __repr__(self) -> str:
        """Return the title and the caption."""
        return markdown(self.figure).strip()


@takes(metric=TEXT, kind=TEXT, x=TEXT, curves=TEXT, panels=TEXT, baseline=TEXT, ratio=TRUTH, log_y=TRUTH, at=MAPPING)
def plot(
    results: xr.Dataset,
    metric: str | None = None,
    *,
    kind: str = "auto",
    x: str | None = None,
    curves: str | None = None,
    panels: str | None = None,
    baseline: str | None = None,
    ratio: bool = False,
    log_y: bool | None = None,
    at: dict[str, Any] | None = None,
) -> Plot:
    """Return a figure of results, to be shown in a notebook or saved.

    Parameters
    ----------
    results : opened by ``open_results``.
    metric : the metric to draw; the mean bounded slowdown, the mean wait or the first one if not given.
    kind : "auto" (curves over numbers, bars over names), "heat map", or the name of a shipped figure such as
        "krevat2003-fig-5-1".
    x, curves, panels : axes, also "" for none; ``x`` may be a varied parameter or another metric.
    baseline : "axis=label" that the metric is compared with, replicate by replicate: the difference or, with ``ratio``,
        the ratio.
    log_y : whether y is logarithmic; by default it depends on the range of the values.
    at : axis -> label, for axes that are not drawn over; their first labels if not given.

    Raises
    ------
    InputError
        The results have no such name, the choices do not go together, or the extra "plot" is not installed.
    """
    require("a figure", "matplotlib", "scipy")
    check_results(results)
    if kind in FIGURES:
        return Plot(FIGURES[kind](results))
    if kind not in ("auto", "heat map"):
        raise unknown_name("kind", kind, ("auto", "heat map", *FIGURES))
    if ratio and not baseline:
        raise InputError("ratio: to what? name a baseline such as baseline='scheduler=fcfs'")
    chosen = default_choices(results)
    if baseline:
        axis, label = baseline_of(results, baseline)
        baseline = f"{axis}={label_on(results, axis, label)}" if axis else baseline
    given = {"metric": metric, "x": x, "curves": curves, "facets": panels, "baseline": baseline}
    wanted = _replaced(chosen, given)
    taken = [wanted.x, *([panels] if panels else []), *([curves] if curves else [])]
    if curves is None and wanted.curves in taken:
        wanted = replace(wanted, curves="")
    wanted = replace(wanted, along=along_of(results, replace(wanted, along="")))
    show = "value" if not baseline else "ratio" if ratio else "difference"
    labels = {axis: str(label_on(results, axis, label)) for axis, label in (at or {}).items()}
    view = "heat map" if kind == "heat map" else "curves"
    wanted = replace(wanted, show=show, view=view, at={**wanted.at, **labels})
    wanted = _replaced(wanted, {"heat_x": x, "heat_y": curves} if view == "heat map" else {})
    if wanted.heat_x == wanted.heat_y and curves is None:
        wanted = replace(wanted, heat_y=chosen.heat_x)
    wanted = check(results, wanted)
    if view == "heat map":
        return Plot(heat_map(results, wanted))
    return Plot(_with_scale(figure_of(results, wanted), log_y))


def _replaced(choices: Choices, given: dict[str, Any]) -> Choices:
    """Return choices with those that were given instead."""
    return replace(choices, **{name: value for name, value in given.items() if value is not None})


def _with_scale(figure: Figure, log_y: bool | None) -> Figure:
    return replace(figure, panels=[replace(panel, log_y=log_y) for panel in figure.panels])
