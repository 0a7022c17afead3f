"""Which metrics the page offers, in plain words and in groups, and the unit in which it shows each."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.dashboard.choices import scalar_metrics
from faultsweep.analysis.figures.units import unit_of, unit_on_page, with_unit_to_read
from faultsweep.analysis.figures.words import quantity
from faultsweep.sweeps.open import has_result

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


def in_one_unit(data: xr.Dataset) -> xr.Dataset:
    """Return results each of whose metrics is in one unit on the whole page, however few cells a view shows.

    It is what the largest value in the chunks of the first, the middle and the last cell with a result asks for.
    """
    cells, shape = np.flatnonzero(has_result(data["status"]).values), data["status"].shape
    chosen = cells[[0, len(cells) // 2, -1]] if len(cells) else cells
    lengths = [int(data.encoding.get("chunks", {}).get(dim, size)) for dim, size in data["status"].sizes.items()]
    places = np.column_stack(np.unravel_index(chosen, shape))
    starts = dict.fromkeys(tuple((place // lengths * lengths).tolist()) for place in places)
    for name in scalar_metrics(data):
        with suppress(OSError, KeyError, ValueError):  # a chunk that is gone, or not whole: the views say so
            data = with_unit_to_read(data, name, (_chunk(data[name], start, lengths) for start in starts))
    return data


def _chunk(values: xr.DataArray, start: tuple[int, ...], lengths: list[int]) -> xr.DataArray:
    slices: dict[Any, slice] = {
        dim: slice(first, first + length) for dim, first, length in zip(values.dims, start, lengths, strict=True)
    }
    return values.isel(slices)


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
    """Return what a metric or an axis is called where it is chosen, with the unit in which the page shows it."""
    words, unit = quantity(data, name), unit_on_page(data, name)
    return words if unit == unit_of(data, name) else f"{words.partition(' (')[0]}{f' ({unit})' if unit else ''}"


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
