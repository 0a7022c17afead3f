"""The figure of any sweep: metrics over an axis, a curve or a series of bars per combination of other axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.describe import SCHEDULERS, describe_held, describe_jobs, describe_values, machine_name
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Panel, Style
from faultsweep.analysis.open import metric_names
from faultsweep.analysis.statistics import mean_interval

_HELD = ("machine", "scheduler", "load_scale", "estimates")


def sweep_figure(
    data: xr.Dataset,
    name: str,
    title: str,
    *,
    kind: str,
    x: str,
    along: str,
    y: Sequence[str],
    curves: Sequence[str] = (),
    panels: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Return a figure with a panel per metric of ``y`` and row of ``panels``; see ``sweeps.figure`` for the rest.

    Parameters
    ----------
    data : results with the rows that are to be drawn.
    name, title : of the figure's files, and above it.
    kind, x, along, y, curves, panels, log_x, log_y : the layout.
    """
    drawn = []
    for metric in y:
        for row in data[panels].values if panels else [None]:
            part = data if row is None else data.sel({panels: row})
            title_of, words = "" if row is None else _label(panels, row), (_quantity(data, x), _quantity(data, metric))
            series = list(_series(part, metric, x, along, curves))
            if kind == "bars":
                categories = [_label(along, label, short=True) for label in data[along].values]
                bars = [Bars(curve.label, curve.y, curve.style, curve.low, curve.high) for curve in series]
                drawn.append(Panel(title_of, *words, bars=bars, categories=categories, log_y=log_y))
            else:
                known = [_without_gaps(curve) for curve in series]
                drawn.append(Panel(title_of, *words, curves=known, log_x=log_x, log_y=log_y))
    return Figure(name, title or name, _caption(data, y, (along, *curves, *filter(None, [panels]))), drawn)


def _series(part: xr.Dataset, metric: str, x: str, along: str, curves: Sequence[str]) -> Iterator[Curve]:
    """Yield the means and intervals over x of each combination of the rows of ``curves``."""
    for number, labels in enumerate(product(*(part[axis].values for axis in curves))):
        one = part.sel(dict(zip(curves, labels, strict=True)))
        one = one.squeeze([dim for dim, size in one.sizes.items() if size == 1 and dim not in (along, "replicate")])
        found = mean_interval(one[metric], one["status"])
        places = mean_interval(one[x], one["status"])["mean"] if x in metric_names(part) else one[x]
        look = LOOKS[number % len(LOOKS)]
        label = ", ".join(map(_label, curves, labels)) or _quantity(part, metric)
        mean, low, high = (np.asarray(found[bound]) for bound in ("mean", "low", "high"))
        style = Style(look.colour, look.marker, dashed=number >= len(LOOKS))
        yield Curve(label, np.asarray(places), mean, low, high, style)


def _without_gaps(curve: Curve) -> Curve:
    """Return the points that there are, in the order of the axis."""
    known = np.isfinite(curve.x) & np.isfinite(curve.y)
    x, y, low, high = (values[known] for values in (curve.x, curve.y, curve.low, curve.high))
    return replace(curve, x=x, y=y, low=low, high=high)


def _label(axis: str, label: Any, short: bool = False) -> str:
    """Return the label of a row as a legend has it: names as they are, numbers with what they are of."""
    if isinstance(label, str):
        return machine_name(label) if axis == "machine" else SCHEDULERS.get(label, label)
    return f"{label:g}" if short else f"{axis} = {label:g}"


def _quantity(data: xr.Dataset, name: str) -> str:
    """Return a metric or parameter in words, with its unit: ``mean_wait_s`` is "Mean wait (s)"."""
    unit = str(data[name].attrs.get("units", ""))
    words = name.removesuffix(f"_{unit.replace(' ', '_')}") if unit else name
    words = words[0].upper() + words[1:].replace("_", " ")
    return f"{words} ({unit})" if unit and unit != "1" else words


def _caption(data: xr.Dataset, y: Sequence[str], axes: Sequence[str]) -> list[str]:
    varied = [f"{axis} {describe_values(data[axis].values.tolist())}" for axis in axes if data.sizes[axis] > 1]
    meanings = [f"{_quantity(data, name)}: {data[name].attrs['long_name']}" for name in y if _has_meaning(data, name)]
    most = int(max(mean_interval(data[name], data["status"])["n"].max() for name in y))
    intervals = f"Means of {most} replicates; error bars are 95\u00a0% t intervals."
    sentences = [
        *meanings,
        describe_jobs(data),
        f"Varied: {'; '.join(varied)}." if varied else "",
        describe_held(data, _HELD),
        intervals if most > 1 else "One simulation a point, so there is no interval.",
    ]
    return [sentence for sentence in sentences if sentence]


def _has_meaning(data: xr.Dataset, name: str) -> bool:
    return bool(data[name].attrs.get("long_name"))
