"""Which metrics the page offers, in plain words and in groups."""

from __future__ import annotations

import numpy as np
import xarray as xr
from faultsweep.analysis.dashboard.choices import scalar_metrics
from faultsweep.analysis.figures.units import unit_of
from faultsweep.analysis.figures.words import quantity

_GROUPS = (
    ("Bounded slowdown", ("bounded_slowdown",)),
    ("Slowdown", ("slowdown",)),
    ("Wait", ("wait",)),
    ("Response time", ("response",)),
    ("Capacity", ("utilisation", "capacity", "load", "nodes", "idle", "makespan", "throughput")),
    ("Failures and recovery", ("restart", "lost", "loss", "checkpoint", "failure", "hit", "migrat", "predict")),
)
"""Group -> parts of names; the first that fits takes a metric. Metrics of a function of one's own make one group."""
_OTHER = "Other"
_MOST_READ = 50_000_000
"""Values that are read to see which metrics vary; of larger stores all metrics are offered."""


def varying(data: xr.Dataset) -> list[str]:
    """Return the metrics that are one number a cell and not the same in every cell with a result.

    All of them while fewer than two cells have a result, by URL, and in stores too large to be read for this.
    """
    every = scalar_metrics(data)
    remote = "://" in str(data.encoding.get("source", ""))
    if remote or data["status"].size * len(every) > _MOST_READ:
        return every
    found = [name for name in every if _varies(data[name])]
    return found or every


def _varies(values: xr.DataArray) -> bool:
    """Tell whether there are two different values; most metrics show so in a small part."""
    first = values.isel({dim: slice(0, 4) for dim in values.dims}).values
    return _differ(first) or _differ(values.values)


def _differ(values: np.ndarray) -> bool:
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values.ravel()
    return bool(len(known)) and bool((known != known.flat[0]).any())


def offered(data: xr.Dataset, name: str) -> str:
    """Return what a metric or an axis is called where it is chosen: without a unit of time, which each view chooses."""
    words = quantity(data, name)
    return words.partition(" (")[0] if unit_of(data, name) in ("s", "node s") else words


def grouped(data: xr.Dataset, names: list[str], wanted: str = "") -> dict[str, dict[str, str]]:
    """Return group -> words -> metric, of metrics whose words, name or meaning have all of the words of ``wanted``."""
    groups: dict[str, dict[str, str]] = {title: {} for title in (*(title for title, _ in _GROUPS), _OTHER)}
    simulated = data.attrs.get("target", "simulator") == "simulator"
    for name in names:
        text = offered(data, name)
        about = f"{text} {name} {data[name].attrs.get('long_name', '')}".lower()
        if all(part in about for part in wanted.lower().split()):
            group = next((title for title, parts in _GROUPS if simulated and any(p in name for p in parts)), _OTHER)
            own = groups[group]
            own[text if text not in own else f"{text} [{name}]"] = name
    filled = {title: own for title, own in groups.items() if own}
    return {"Metrics": filled[_OTHER]} if list(filled) == [_OTHER] else filled
