"""One run by itself: its parameters, the command that repeats it, and its chart, stored or simulated again."""

from __future__ import annotations

import asyncio
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import xarray as xr
from faultsweep.analysis.dashboard.again import chart_of, simulate
from faultsweep.analysis.dashboard.cells import labels_at
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.analysis.dashboard.jobs import Gantt, jobs_of, keeps_jobs
from faultsweep.analysis.dashboard.overview import table
from faultsweep.analysis.dashboard.template import PANE
from faultsweep.analysis.dashboard.view import rerun_command
from faultsweep.analysis.figures.words import label_to_read, quantity, words_of
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.sweeps.open import fixed_parameters
from numpy.typing import NDArray

from faultsweep.errors import InputError

_STRETCH: dict[str, Any] = {"sizing_mode": "stretch_width"}
_STACKED = (
    "When each job ran, from its last start; stacked by size, because the store keeps no nodes. "
    "Orange: it was restarted."
)


def html(text: str = "") -> Any:
    """Return a pane of HTML in the looks of the page."""
    return pn.pane.HTML(text, stylesheets=[PANE], **_STRETCH)


class OneRun:
    """What the page says of a configuration that is selected alone.

    Attributes
    ----------
    layout : its parts in a column.
    """

    def __init__(self, store: FollowedStore) -> None:
        """Show nothing at first."""
        self._store = store
        self._cell: int | None = None
        self._quiet = False
        self._words = html()
        self._chart = pn.Column(visible=False, **_STRETCH)
        self._replicate = pn.widgets.Select(label="Replicate", width=120, visible=False)
        self._replicate.param.watch(lambda event: self._draw(), "value")
        self._again = pn.widgets.Button(label="Simulate it again, for nodes and events", width=280, visible=False)
        self._again.on_click(self._simulate_again)
        self.layout = pn.Column(self._words, pn.FlexBox(self._replicate, self._again), self._chart, **_STRETCH)

    def show(self, cells: NDArray[np.int64]) -> None:
        """Show a configuration if it is selected alone, else nothing."""
        self._cell = int(cells[0]) if len(cells) == 1 else None
        one = self._cell is not None
        self._replicate.visible = one
        self._again.visible = one and self._store.may_rerun
        self._chart.visible = one and keeps_jobs(self._store.data)
        self._offer_replicates()
        self._draw()

    def _offer_replicates(self) -> None:
        labels = [] if self._cell is None else [str(label) for label in self._store.data[REPLICATE].values]
        self._quiet = True
        try:
            if self._replicate.options != labels:
                self._replicate.options = labels
                self._replicate.value = labels[0] if labels else None
        finally:
            self._quiet = False

    def _draw(self) -> None:
        if self._quiet:
            return
        if self._cell is None:
            self._words.object, self._chart.objects = "", []
            return
        self._words.object = _describe(self._store.data, self._cell, self._labels())
        self._chart.objects = self._stored_chart(self._cell) if keeps_jobs(self._store.data) else []

    def _labels(self) -> dict[str, str]:
        """Return the labels of the run, with its replicate."""
        return {**labels_at(self._store.data, self._cell or 0), REPLICATE: str(self._replicate.value)}

    def _stored_chart(self, cell: int) -> list[Any]:
        """Return the chart of the stored jobs, or why there is none."""
        data = self._store.data
        number = [str(label) for label in data[REPLICATE].values].index(str(self._replicate.value))
        try:
            chart = Gantt(jobs_of(data, cell, number))
        except InputError as error:
            return [html(f"<p>{escape(str(error))}</p>")]
        more = f" {chart.left_out:,} jobs are left out." if chart.left_out else ""
        return [html(f"<p class='small'>{_STACKED}{more}</p>"), pn.pane.Bokeh(chart.layout, **_STRETCH)]

    async def _simulate_again(self, event: Any) -> None:
        """Simulate the run again, where the server was told that it may, and show its chart with nodes and events."""
        cell, labels = self._cell, self._labels()
        self._chart.visible = True
        self._chart.objects = [html("<p role='status'>Simulating it again.</p>")]
        try:
            content = await asyncio.to_thread(simulate, Path(self._store.place), labels)
        except InputError as error:
            found = [html(f"<p role='alert' class='alert'>{escape(str(error))}</p>")]
        else:
            words = html(f"<p class='small'>{escape(' '.join(content.caption))}</p>")
            found = [words, pn.pane.Bokeh(chart_of(content), **_STRETCH)]
        if cell == self._cell and labels == self._labels():  # another run may be shown by now
            self._chart.objects = found


def _describe(data: xr.Dataset, cell: int, labels: dict[str, str]) -> str:
    """Return the parameters of a run and the command that repeats it, in HTML; whatever a store says is text."""
    command = rerun_command(str(data.encoding.get("source", "")), labels)
    own = labels_at(data, cell)
    rows = [
        [quantity(data, axis).partition(" (")[0], axis, label_to_read(data, axis, label)] for axis, label in own.items()
    ]
    fixed = [[*_in_words(name, value)] for name, value in fixed_parameters(data).items()]
    copy = f"<button class='copy' type='button' data-copy='{escape(command, quote=True)}'>Copy</button>"
    return (
        "<h2>One run</h2>"
        + table(["Axis", "Parameter", "Label"], rows, "Labels of the run")
        + f"<details><summary>{len(fixed)} parameters that all cells share</summary>"
        + table(["Name", "Parameter", "Value"], fixed, "Parameters that all cells share")
        + "</details>"
        + (f"<p>Repeat it: <code>{escape(command)}</code> {copy}</p>" if command else "")
        + ("" if keeps_jobs(data) else "<p class='small'>Its jobs are not stored (keep_jobs = true does).</p>")
    )


def _in_words(name: str, value: Any) -> tuple[str, str, str]:
    """Return a parameter in words, as a spec writes it, and its value with its unit."""
    unit = PARAMETERS[name].unit if name in PARAMETERS else ""
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return words_of(name, unit), name, f"{text} {unit}" if unit else text
