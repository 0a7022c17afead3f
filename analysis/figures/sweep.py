"""The figure of any sweep: metrics over an axis, a curve or a series of bars per combination of other axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.describe import (
    describe_held,
    describe_jobs,
    describe_values,
    set_parameters,
)
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Panel, Style
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import label_in_words, label_to_read, labels_to_read, quantity
from faultsweep.analysis.statistics import (
    MOST_POINTS,
    REPLICATE,
    count_observations,
    describe_intervals,
    mean_interval,
    observations,
    paired_difference,
)
from faultsweep.analysis.warmup import LONGEST_TAIL, unsteady
from faultsweep.sweeps.open import metric_names

_LARGEST_DRAWN = 1e300  # both ways to draw reckon with several times the largest number on an axis
_SMALLEST_DRAWN = 1e-280  # and matplotlib takes an axis of smaller numbers for one of a single point
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
    log_y: bool | None = None,
    against: Against | None = None,
) -> Figure:
    """Return a figure with a panel per metric of ``y`` and row of ``panels``; see ``sweeps.figure`` for the rest.

    Parameters
    ----------
    data : results with the rows that are to be drawn.
    name, title : of the figure's files, and above it.
    kind, x, along, y, curves, panels, log_x, log_y : the layout; y is logarithmic where its range asks for it if
        ``log_y`` is None. Times are in a unit to read.
    against : what the metrics are compared with, replicate by replicate; None draws themselves.
    """
    drawn = []
    saturated, truncated = unsteady(data)
    data = in_units_to_read(data, (*y, x))
    flagged = saturated | truncated
    if against is not None and against.at is not None:
        flagged = flagged.any(against.axis)
    signed = against is not None and not against.ratio
    places = data[x]
    if x in metric_names(data):
        at = {} if against is None or against.at is None else {against.axis: against.at}
        places = mean_interval(data[x].sel(at), data["status"].sel(at))["mean"].rename(x)
    for metric in y:
        found = intervals(data, metric, against)
        points = replicates(data, metric) if against is None else None
        words = (quantity(data, x), compared(data, metric, against))
        for row in found[panels].values if panels else [None]:
            at = {} if row is None else {panels: row}
            title_of = "" if row is None else _of_legend(data, panels, row)
            more = {"flagged": flagged} if points is None else {"flagged": flagged, "replicates": points}
            parts = found.assign(more).sel(at)
            series = list(_series(data, parts, places, at, metric, along, curves))
            if kind == "bars":
                categories = labels_to_read(data, along)
                bars = [Bars(c.label, c.y, c.style, c.low, c.high, c.flagged, c.replicates) for c in series]
                drawn.append(Panel(title_of, *words, bars=bars, categories=categories, log_y=log_y, signed=signed))
            else:
                known = [_without_gaps(curve) for curve in series]
                drawn.append(Panel(title_of, *words, curves=known, log_x=log_x, log_y=log_y, signed=signed))
    caption, facts = describe(data, y, (along, *curves, *filter(None, [panels])), against)
    return Figure(name, title or name, [*caption, *_warnings(saturated, truncated)], drawn, facts=facts)


def replicates(data: xr.Dataset, metric: str) -> xr.DataArray | None:
    """Return the replicates themselves, where they are so few that they say more than an interval; else None."""
    if not 2 <= int(count_observations(data[metric], data["status"]).max()) <= MOST_POINTS:
        return None
    return _in_range(observations(data[metric], data["status"]))


@dataclass(frozen=True)
class Against:
    """A baseline: a label of an axis, and whether the ratio to it is drawn instead of the difference.

    ``at`` is the label that is compared with it where the axis itself is not drawn over.
    """

    axis: str
    label: Any
    ratio: bool = False
    at: Any = None


def intervals(data: xr.Dataset, metric: str, against: Against | None = None) -> xr.Dataset:
    """Return mean, low, high and n over replicates of a metric, or of its difference or ratio to a baseline."""
    if against is None:
        return _drawable(mean_interval(data[metric], data["status"]))
    found = paired_difference(data[metric], against.axis, against.label, data["status"], relative=against.ratio)
    if against.ratio:
        found = found.assign({bound: found[bound] + 1 for bound in ("mean", "low", "high")})
    return _drawable(found if against.at is None else found.sel({against.axis: against.at}, drop=True))


def _drawable(found: xr.Dataset) -> xr.Dataset:
    """Return intervals without the numbers that no axis can reach."""
    parts = {name: found[name] for name in ("mean", "low", "high")}
    return found.assign({name: _in_range(part) for name, part in parts.items()})


def _in_range(part: xr.DataArray) -> xr.DataArray:
    """Return numbers that an axis can reach: NaN for larger ones, 0 for smaller ones."""
    return part.where(abs(part) < _LARGEST_DRAWN).where(~(abs(part) < _SMALLEST_DRAWN), 0.0)


def compared(data: xr.Dataset, metric: str, against: Against | None) -> str:
    """Return a metric in words, or its difference or ratio to a baseline."""
    words = quantity(data, metric)
    if against is None:
        return words
    baseline = label_in_words(data, against.axis, against.label)
    if against.ratio:
        return f"{words.partition(' (')[0]}, ratio to {baseline}"
    return f"{words}, difference to {baseline}"


def _series(
    data: xr.Dataset,
    found: xr.Dataset,
    places: xr.DataArray,
    at: Mapping[str, Any],
    metric: str,
    along: str,
    curves: Sequence[str],
) -> Iterator[Curve]:
    """Yield the means and intervals at ``places`` on the x axis of each combination of the rows of ``curves``."""
    for number, labels in enumerate(product(*(data[axis].values for axis in curves))):
        here = {**at, **dict(zip(curves, labels, strict=True))}
        one, place = (part.sel({dim: here[dim] for dim in here if dim in part.dims}) for part in (found, places))
        one, place = (
            part.squeeze([d for d in part.dims if d != along and part.sizes[d] == 1]) for part in (one, place)
        )
        look = LOOKS[number % len(LOOKS)]
        words = (_of_legend(data, axis, own) for axis, own in zip(curves, labels, strict=True))
        label = ", ".join(words) or quantity(data, metric)
        mean, low, high = (np.asarray(one[bound]) for bound in ("mean", "low", "high"))
        dots = one["replicates"].transpose(..., REPLICATE).values if "replicates" in one else None
        steps = np.diff(place) if place.dtype.kind in "iuf" else np.zeros(1)
        ordered = bool((steps >= 0).all() or (steps <= 0).all())  # the points of a sample are not
        joined = ordered or places.name not in data.coords  # over a metric, curves go on along the axis
        style = Style(look.colour, look.marker, number >= len(LOOKS), joined)
        yield Curve(label, np.asarray(place), mean, low, high, style, np.asarray(one["flagged"]), replicates=dots)


def _of_legend(data: xr.Dataset, axis: str, label: Any) -> str:
    """Return a label as a legend has it: names as they are, numbers with what they are of."""
    return (label_to_read if isinstance(label, str) else label_in_words)(data, axis, label)


def _without_gaps(curve: Curve) -> Curve:
    """Return the points that there are, in the order of the axis."""
    known = np.isfinite(curve.x) & np.isfinite(curve.y)
    names = ["x", "y", "low", "high", "flagged", *(["replicates"] if curve.replicates is not None else [])]
    return replace(curve, rows=np.flatnonzero(known), **{name: getattr(curve, name)[known] for name in names})


def describe(
    data: xr.Dataset, y: Sequence[str], axes: Sequence[str], against: Against | None, bars: bool = True
) -> tuple[list[str], list[str]]:
    """Return the sentences of a caption: what metrics mean and what the intervals are; and the facts of a data sheet.

    ``bars`` tells whether there are intervals; a heat map has none.
    """
    varied = [f"{axis} {describe_values(data[axis].values.tolist())}" for axis in axes if data.sizes[axis] > 1]
    meanings = [f"{quantity(data, name)}: {data[name].attrs['long_name']}" for name in y if _has_meaning(data, name)]
    counts = [count for name in y for count in count_observations(data[name], data["status"]).values.ravel() if count]
    least, most = min(counts, default=0), max(counts, default=0)
    paired = ", of differences replicate by replicate" if against else ""
    what = [describe_intervals(intervals(data, name, against)) for name in y] if bars and most > 1 else []
    dots = " and dashes the replicates" if what and most <= MOST_POINTS and against is None else ""
    shown = f"; intervals are {what[0]}{paired}{dots}" if what else paired
    means = f"Means of {most if least == most else f'{least} to {most}'} replicates{shown}."
    warm_up = [str(data[name].attrs["warm_up"]) for name in y if "warm_up" in data[name].attrs]
    caption = [*meanings, *warm_up, means if most > 1 else "One simulation a point, so there is no interval."]
    if any(bool((abs(data[name]) >= _LARGEST_DRAWN).any()) for name in y):
        caption.append("Infinite means (1e300 and more) are not drawn.")
    if any(bool(((data[name] != 0) & (abs(data[name]) < _SMALLEST_DRAWN)).any()) for name in y):
        caption.append("Means below 1e-280 are drawn as 0.")
    facts = [
        describe_jobs(data),
        f"Varied: {'; '.join(varied)}." if varied else "",
        describe_held(data, (*_HELD, *set_parameters(data))),
    ]
    return caption, [fact for fact in facts if fact]


def _warnings(saturated: xr.DataArray, truncated: xr.DataArray) -> list[str]:
    """Return sentences that say which points are ringed, and why."""
    texts = []
    if bool(saturated.any()):
        texts.append(
            f"Ringed: saturated; more than {100 * LONGEST_TAIL:.0f}\u00a0% of the run came after the last job was "
            "submitted, so its means grow with the length of the log and say nothing of a longer one."
        )
    if bool(truncated.any()):
        texts.append("Ringed: truncated runs; the means are of the jobs that had finished.")
    return texts


def _has_meaning(data: xr.Dataset, name: str) -> bool:
    return bool(data[name].attrs.get("long_name"))
