"""A run that is simulated again inside the page: only where the server was told to, and only of one's own store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultsweep.analysis.view import Content, Pauses, make_content, replay
from faultsweep.analysis.view.html import plots_of_run
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.sweeps.rerun import rerun

from faultsweep.errors import InputError


def simulate(store: Path, labels: Mapping[str, Any]) -> Content:
    """Return what the chart of a cell shows, simulated again.

    Raises
    ------
    InputError
        The store belongs to someone else, its pins are not those of this machine, it names code of its own, or it has
        results of a function.
    """
    owner = store.stat().st_uid
    if owner != os.getuid():
        raise InputError(f"{store}: belongs to another user; only runs of your own stores can be simulated again here")
    found = rerun(store, {axis: str(label) for axis, label in labels.items()}, events=True)
    if found.run is None:
        raise InputError(f"{store}: results of a function; only runs of the simulator can be looked into")
    config, jobs = found.configuration, found.run.jobs
    sizes = dict(zip(jobs["job_id"].tolist(), jobs["requested_size"].tolist(), strict=True))
    read = replay(found.run.events, parse_machine(config["machine"]), sizes, config["hold_nodes"], Pauses.of(config))
    equal = (
        f"It differs from the store in {', '.join(found.different)}." if found.different else "It is as in the store."
    )
    words = ", ".join(f"{axis} = {label}" for axis, label in found.labels.items())
    return make_content(read, words, [f"Simulated again: {words}.", equal], 0.0, None)


def chart_of(content: Content) -> Any:
    """Return the Gantt chart, the queue and the shares of a run as one Bokeh layout."""
    from bokeh.layouts import column

    return column(*plots_of_run(content), sizing_mode="stretch_width")
