"""What a user has chosen to see of a store: one value, that a link carries and that any store can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.regions import policy_axis
from faultsweep.analysis.verdict import selection_of
from faultsweep.analysis.warmup import TAIL_METRICS, column_of, without_warm_up
from faultsweep.sweeps.open import metric_names

from faultsweep.errors import InputError, unknown_name

REPLICATE = "replicate"
SHOWN = ("value", "difference", "ratio")
ALL_VIEWS = "all views"
VIEWS = (ALL_VIEWS, "curves", "heat map", "parallel coordinates", "Pareto front", "distribution")
MOST_CURVES = 12
"""Curves of a panel that can be told apart."""
MOST_FACETS = 9
_AT = "at."


@dataclass(frozen=True)
class Choices:
    """What is shown.

    Attributes
    ----------
    metric : the metric that is drawn.
    x : what is on the horizontal axis: an axis of the store, a parameter of numbers that varies along one, or a metric.
    along : the axis of the store that the points of a curve stand for; that of ``x`` unless ``x`` is a metric.
    curves, facets : axes; a curve, a panel per label. "" for a single one.
    at : axis -> label, as text, of every axis that the curves or the heat map are not drawn over.
    show : the metric itself, or its difference or ratio to ``baseline``, replicate by replicate.
    baseline : "axis=label", "" while ``show`` is "value".
    log_x, log_y, bands : whether scales are logarithmic, and intervals drawn.
    view : the view that is shown large, one of ``VIEWS``.
    heat_x, heat_y : the axes of the heat map.
    second, third : metrics that the Pareto front weighs against ``metric``; "" for none.
    delete_warm_up : whether means over jobs leave out the warm-up of each run (MSER-5).
    """

    metric: str
    x: str
    along: str = ""
    curves: str = ""
    facets: str = ""
    at: Mapping[str, str] = field(default_factory=dict)
    show: str = "value"
    baseline: str = ""
    log_x: bool = False
    log_y: bool = False
    bands: bool = True
    view: str = ALL_VIEWS
    heat_x: str = ""
    heat_y: str = ""
    second: str = ""
    third: str = ""
    delete_warm_up: bool = False

    @property
    def weighed(self) -> list[str]:
        """The metrics that views of configurations show."""
        return list(dict.fromkeys(filter(None, (self.metric, self.second, self.third))))

    def query(self) -> dict[str, str]:
        """Return the choices as the arguments of a link."""
        plain = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "at"}
        texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in plain.items()}
        return {**texts, **{_AT + axis: label for axis, label in self.at.items()}}


def axes_of(data: xr.Dataset) -> list[str]:
    """Return the axes of a store that can be chosen: all but the replicates."""
    return [str(dim) for dim in data.variables["status"].dims if dim != REPLICATE]


def labels_of(data: xr.Dataset, axis: str) -> list[str]:
    """Return the labels of an axis as text."""
    return [str(label) for label in data.variables[axis].values.tolist()]


def x_axes(data: xr.Dataset) -> dict[str, str]:
    """Return what can be on the horizontal axis -> the axis of the store along which it varies."""
    own = {axis: axis for axis in axes_of(data)}
    numbers = {
        str(name): str(coordinate.dims[0])
        for name, coordinate in data.coords.items()
        if coordinate.ndim == 1 and coordinate.dtype.kind in "iuf" and coordinate.dims[0] != REPLICATE
    }
    return own | {name: axis for name, axis in numbers.items() if name not in own}


def scalar_metrics(data: xr.Dataset) -> list[str]:
    """Return the metrics that are one number a cell."""
    return [name for name in metric_names(data) if data.variables[name].dims == data.variables["status"].dims]


def along_of(data: xr.Dataset, choices: Choices) -> str:
    """Return the axis of the points: that of ``x``; of a metric the chosen one, or else one that is not drawn over."""
    own = x_axes(data).get(choices.x)
    if own is not None:
        return own
    taken, axes = (choices.curves, choices.facets), axes_of(data)
    if choices.along in axes:
        return choices.along
    free = [axis for axis in axes if axis not in taken]
    if not free:
        raise InputError(f"no axis is left for the points over {choices.x}; choose fewer curves or panels")
    return min(free, key=lambda axis: (data.sizes[axis] < 2, _is_text(data, axis), axes.index(axis)))


def baselines(data: xr.Dataset, along: str) -> list[str]:
    """Return the baselines that there are for a figure along an axis: a label of any other axis."""
    axes = [axis for axis in axes_of(data) if axis != along and data.sizes[axis] > 1]
    return [f"{axis}={label}" for axis in axes for label in labels_of(data, axis)]


def baseline_of(data: xr.Dataset, text: str) -> tuple[str, str]:
    """Return axis and label of one of the baselines, two empty texts of another; names of axes may have any signs."""
    axis = max((axis for axis in axes_of(data) if text.startswith(f"{axis}=")), key=len, default="")
    return axis, text[len(axis) + 1 :] if axis else ""


def with_baseline(data: xr.Dataset, wanted: Choices, is_new: bool) -> Choices:
    """Return the choices with a baseline where one is needed, and without one where it is not.

    ``is_new`` tells that the baseline is what was chosen; else it follows from ``show``.
    """
    if is_new:
        show = "value" if not wanted.baseline else "difference" if wanted.show == "value" else wanted.show
        return replace(wanted, show=show)
    if wanted.show == "value":
        return replace(wanted, baseline="")
    valid = baselines(data, along_of(data, wanted))
    if wanted.baseline in valid:
        return wanted
    own = [one for one in valid if one.startswith(f"{wanted.curves}=")]
    return replace(wanted, baseline=(own or valid or [""])[0])


def default_choices(data: xr.Dataset) -> Choices:
    """Return what a store shows at first: a metric over the first axis of numbers, a curve per name on another axis.

    Raises
    ------
    InputError
        The store has no axis to draw over, or no metric.
    """
    metrics, axes = scalar_metrics(data), axes_of(data)
    if not metrics:
        raise InputError("nothing to show: the store has no metric with a number for each simulation")
    if not axes:
        raise InputError("nothing to show: the sweep has no axis but the replicates")
    long = [axis for axis in axes if data.sizes[axis] > 1] or axes
    x = min(long, key=lambda axis: (_is_text(data, axis), axes.index(axis)))
    rest = [axis for axis in long if axis != x and data.sizes[axis] <= MOST_CURVES]
    policy = policy_axis(data)
    curves = min(rest, key=lambda axis: (axis != policy, not _is_text(data, axis), axes.index(axis)), default="")
    metric = _main_metric(data, metrics)
    others = [axis for axis in (curves, *long, *axes) if axis and axis != x]
    more = [name for name in ("utilisation", "mean_wait_s", *metrics) if name in metrics and name != metric]
    chosen = Choices(metric, x, x, curves, heat_x=x, heat_y=others[0] if others else "", second=(more or [""])[0])
    return complete(data, chosen)


def _main_metric(data: xr.Dataset, metrics: list[str]) -> str:
    """Return the metric that a selection was run for, or else the usual one."""
    with suppress(InputError, ValueError):  # what a stranger's store says of itself may be anything
        best = selection_of(data)
        if best is not None and best.metric in metrics:
            return best.metric
    return next((name for name in ("mean_bounded_slowdown", "mean_wait_s") if name in metrics), metrics[0])


def _is_text(data: xr.Dataset, axis: str) -> bool:
    return data.variables[axis].dtype.kind not in "iuf"


def complete(data: xr.Dataset, choices: Choices) -> Choices:
    """Return the choices with the axis of the points, and a label for every axis that some view is not drawn over."""
    choices = replace(choices, along=along_of(data, choices))
    both = set.intersection(*(set(drawn_axes(data, replace(choices, view=view))) for view in ("curves", "heat map")))
    at = {axis: choices.at.get(axis, labels_of(data, axis)[0]) for axis in axes_of(data) if axis not in both}
    show = choices.show if choices.baseline else "value"
    return replace(choices, at=at, show=show, baseline="" if show == "value" else choices.baseline)


def drawn_axes(data: xr.Dataset, choices: Choices) -> tuple[str, ...]:
    """Return the axes of the store that the chosen view is drawn over."""
    if choices.view == "heat map":
        return tuple(filter(None, (choices.heat_x, choices.heat_y)))
    return tuple(filter(None, (choices.along, choices.curves, choices.facets)))


def held(data: xr.Dataset, choices: Choices) -> dict[str, str]:
    """Return axis -> label of every axis that the chosen view is not drawn over."""
    drawn = drawn_axes(data, choices)
    return {axis: label for axis, label in choices.at.items() if axis not in drawn}


def check(data: xr.Dataset, choices: Choices) -> Choices:
    """Return the choices if the store has what they name.

    Raises
    ------
    InputError
        One sentence that says what the store does not have, or which axes cannot be chosen together.
    """
    axes, metrics = axes_of(data), scalar_metrics(data)
    _one_of("metric", choices.metric, metrics)
    _one_of("x", choices.x, (*x_axes(data), *metrics))
    _one_of("along", choices.along, ("", *axes))
    _one_of("show", choices.show, SHOWN)
    _one_of("view", choices.view, VIEWS)
    for part in ("second", "third"):
        _one_of(part, getattr(choices, part), ("", *metrics))
    for part in ("curves", "facets", "heat_x", "heat_y"):
        _one_of(part, getattr(choices, part), ("", *axes))
    choices = replace(choices, along=along_of(data, choices))
    for view in ("curves", "heat map"):
        drawn = drawn_axes(data, replace(choices, view=view))
        if len(set(drawn)) < len(drawn):
            raise InputError(f"one axis is chosen twice: {', '.join(drawn)}; choose different ones")
    _check_number(data, "curves", choices.curves, MOST_CURVES)
    _check_number(data, "facets", choices.facets, MOST_FACETS)
    for axis, label in choices.at.items():
        _one_of("axis", axis, axes)
        _one_of(f"label of {axis}", label, labels_of(data, axis))
    if choices.delete_warm_up and not column_of(data, choices.metric):
        raise InputError(f"delete_warm_up: {choices.metric} is no mean over jobs that the store keeps")
    if choices.baseline:
        if choices.along and baseline_of(data, choices.baseline)[0] == choices.along:
            raise InputError(
                f"baseline: {choices.along} is the axis that is drawn over; choose another x, or another baseline"
            )
        _one_of("baseline", choices.baseline, baselines(data, choices.along))
    return complete(data, choices)


def _check_number(data: xr.Dataset, part: str, axis: str, most: int) -> None:
    if axis and data.sizes[axis] > most:
        raise InputError(
            f"{part}: {axis} has {data.sizes[axis]} labels, at most {most} can be told apart; use a slider"
        )


def _one_of(what: str, value: str, valid: Iterable[str]) -> None:
    if value not in (valid := list(valid)):
        raise unknown_name(what, value, valid)


def first_choices(data: xr.Dataset, x: str, log_y: bool) -> Choices:
    """Return what a store shows at first, over the axis that matters most."""
    first = replace(default_choices(data), log_y=log_y)
    if x in ("", first.x, first.curves):
        return first
    y = first.x if first.heat_y in ("", x) else first.heat_y
    return complete(data, replace(first, x=x, along=x, heat_x=x, heat_y=y))


def read_query(data: xr.Dataset, query: Mapping[str, str], first: Choices | None = None) -> Choices:
    """Return the choices that a link carries; what it leaves out is as at first.

    Raises
    ------
    InputError
        The link names something that the store does not have.
    """
    first = first or default_choices(data)
    given: dict[str, Any] = {}
    for part in fields(Choices):
        if part.name in query:
            text = query[part.name]
            given[part.name] = text == "true" if isinstance(getattr(first, part.name), bool) else text
    at = {name.removeprefix(_AT): label for name, label in query.items() if name.startswith(_AT)}
    return check(data, replace(first, **given, at={**first.at, **at}))


def rows_of(data: xr.Dataset, choices: Choices) -> dict[str, int]:
    """Return axis -> row of every axis that the chosen view is not drawn over."""
    return {axis: labels_of(data, axis).index(label) for axis, label in held(data, choices).items()}


def part_of(data: xr.Dataset, choices: Choices) -> xr.Dataset:
    """Return the cells that the chosen view shows, loaded: nothing else of the store is read."""
    rows: dict[str, Any] = dict(rows_of(data, choices))
    against, baseline = baseline_of(data, choices.baseline)
    if against in rows:
        rows[against] = np.unique([rows[against], labels_of(data, against).index(baseline)])
    across = [choices.x] if choices.x in scalar_metrics(data) else []
    tail = [name for name in TAIL_METRICS if name in data]
    jobs = ["jobs_offset", "jobs_length"] if choices.delete_warm_up else []
    part = data[list(dict.fromkeys([choices.metric, *across, *tail, *jobs, "status"]))].isel(rows).load()
    part.encoding = data.encoding
    return without_warm_up(part, [choices.metric]) if choices.delete_warm_up else part
