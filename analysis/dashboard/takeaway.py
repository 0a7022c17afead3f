"""What can be taken away from the page: pictures, data, a notebook."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from faultsweep.analysis.dashboard.cells import Sample, pareto_figure
from faultsweep.analysis.dashboard.choices import Choices
from faultsweep.analysis.dashboard.metrics import varying
from faultsweep.analysis.dashboard.view import cells_at, cells_of, shown

if TYPE_CHECKING:
    import xarray as xr
    from faultsweep.analysis.figures.figure import Figure
    from numpy.typing import NDArray

Make = Callable[["xr.Dataset", Choices, "NDArray[np.int64]"], bytes]


def _figure(data: xr.Dataset, choices: Choices) -> Figure:
    """Return the figure of the view that is shown large; of the curves, where that is all views."""
    if choices.view == "Pareto front" and len(choices.weighed) > 1:
        return pareto_figure(data, Sample(data), choices.weighed)
    return shown(data, choices)


def _picture(suffix: str) -> Make:
    def make(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> bytes:
        from faultsweep.analysis.figures.draw import draw_html, draw_picture

        figure = _figure(data, choices)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"figure.{suffix}"
            (draw_html if suffix == "html" else draw_picture)(figure, path)
            return path.read_bytes()

    return make


def selected_cells(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> pd.DataFrame:
    """Return what is selected, with all metrics that vary; what the curves show if nothing is."""
    if not len(cells):
        return cells_of(data, choices)
    return cells_at(data, cells, varying(data))


def _csv(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> bytes:
    return selected_cells(data, choices, cells).to_csv(index=False).encode()


def _parquet(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> bytes:
    file = io.BytesIO()
    selected_cells(data, choices, cells).to_parquet(file, index=False)
    return file.getvalue()


def _notebook(data: xr.Dataset, choices: Choices, cells: NDArray[np.int64]) -> bytes:
    from faultsweep.analysis.notebook import make_notebook

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
