"""What can be taken away from the page: pictures, data, a notebook."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from faultsweep.analysis.dashboard.cells import Sample, parallel_figure, pareto_figure
from faultsweep.analysis.dashboard.choices import ALL_VIEWS, VIEWS, Choices
from faultsweep.analysis.dashboard.jobs import COLUMNS, distribution_figure, jobs_table
from faultsweep.analysis.dashboard.metrics import varying
from faultsweep.analysis.dashboard.overview import make_overview, overview_figure
from faultsweep.analysis.dashboard.view import cells_at, cells_of, runs_of, shown
from faultsweep.analysis.figures.draw import draw_html, draw_picture
from faultsweep.analysis.notebook import make_notebook

from faultsweep.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from faultsweep.analysis.figures.figure import Figure
    from numpy.typing import NDArray

OVERVIEW = "overview"
PICTURED = (*(view for view in VIEWS if view != ALL_VIEWS), OVERVIEW)
"""Views of which there is a picture."""
_WIDE_IN = 10.0
"""Width of a picture of parallel coordinates, inches."""


@dataclass(frozen=True)
class Taken:
    """What is taken away.

    Attributes
    ----------
    data, choices : the store and what is shown of it; ``choices.view`` does not matter here.
    view : one of ``PICTURED``.
    cells : the configurations that are selected, none if nothing is.
    column : the per-job result whose distribution is shown.
    """

    data: xr.Dataset
    choices: Choices
    view: str
    cells: NDArray[np.int64]
    column: str = next(iter(COLUMNS))


Make = Callable[[Taken], bytes]


def figure_to_take(taken: Taken) -> Figure:
    """Return the figure of a view; InputError where there is nothing to draw."""
    data, weighed = taken.data, taken.choices.weighed
    if taken.view == OVERVIEW:
        return overview_figure(make_overview(data), str(data.attrs.get("name", "sweep")))
    if taken.view == "parallel coordinates":
        return parallel_figure(data, Sample(data), weighed)
    if taken.view == "distribution":
        return distribution_figure(data, runs_of(data, taken.choices, taken.cells), taken.column)
    if taken.view == "Pareto front":
        if len(weighed) < 2:
            raise InputError("a Pareto front weighs two metrics: choose a second one")
        return pareto_figure(data, Sample(data), weighed)
    return shown(data, replace(taken.choices, view=taken.view))


def _picture(suffix: str) -> Make:
    def make(taken: Taken) -> bytes:
        figure = figure_to_take(taken)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"figure.{suffix}"
            if suffix == "html":
                draw_html(figure, path)
            else:
                draw_picture(figure, path, _WIDE_IN if taken.view == "parallel coordinates" else None)
            return path.read_bytes()

    return make


def table_to_take(taken: Taken) -> pd.DataFrame:
    """Return the cells that are selected, with all metrics that vary; those that the view shows if none are.

    Of a distribution it is the jobs.
    """
    data, choices = taken.data, taken.choices
    if taken.view == "distribution":
        return jobs_table(data, runs_of(data, choices, taken.cells))
    if len(taken.cells):
        return cells_at(data, taken.cells, varying(data))
    if taken.view in ("parallel coordinates", "Pareto front"):
        return cells_at(data, Sample(data).ids, choices.weighed)
    if taken.view == OVERVIEW:
        return make_overview(data).means
    return cells_of(data, replace(choices, view=taken.view))


def _csv(taken: Taken) -> bytes:
    return table_to_take(taken).to_csv(index=False).encode()


def _parquet(taken: Taken) -> bytes:
    file = io.BytesIO()
    table_to_take(taken).to_parquet(file, index=False)
    return file.getvalue()


def _notebook(taken: Taken) -> bytes:
    data = taken.data
    place = str(data.encoding.get("source", ""))
    place = place if "://" in place else str(Path(place).resolve())
    return (json.dumps(make_notebook(data, place), indent=1, ensure_ascii=False) + "\n").encode()


DOWNLOADS: tuple[tuple[str, str, Make], ...] = (
    ("Picture (PNG)", "png", _picture("png")),
    ("Picture (SVG)", "svg", _picture("svg")),
    ("Picture (PDF)", "pdf", _picture("pdf")),
    ("Picture (HTML)", "html", _picture("html")),
    ("Data (CSV)", "csv", _csv),
    ("Data (Parquet)", "parquet", _parquet),
    ("Notebook", "ipynb", _notebook),
)
