"""Selection of the best policy: replicates are added only to policies that may still be the best of their region.

[best]
axis = "policy"                  # whose labels are compared; the scheduler, or the first axis of names, if not given
metric = "mean_bounded_slowdown" # that decides; this one, or the first of the sweep, if not given
zone = "5%"                      # a policy at most so much worse than the best is as good
confidence = 0.95                # of all regions together: the combinations of labels of the other axes
most = 200                       # replicates of a configuration at most

Every configuration begins with ten replicates, or ``replicates`` if the spec says more. The rules are those of
``sweeps.selection``. A run that was stopped goes on with the round that it was at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.precision import read_share
from faultsweep.sweeps.selection import FEWEST, Selection, select
from faultsweep.sweeps.store.statuses import NOT_REQUESTED, PENDING, WITH_RESULT
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.target import Output
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

KEYS = ("axis", "metric", "zone", "confidence", "most")
USUAL_METRIC = "mean_bounded_slowdown"
MOST_REPLICATES = 200


@dataclass(frozen=True)
class Best:
    """What is selected, and how certainly.

    Attributes
    ----------
    axis : whose labels are compared.
    metric : that decides.
    zone : the indifference zone; 0.05 is 5 % of the best mean.
    confidence : promised probability that what is selected is the best, or within the zone of it, in all regions.
    first, most : replicates of every configuration to begin with, and of one at most.
    higher_is_better : whether more of the metric is better.
    """

    axis: str
    metric: str
    zone: float = 0.05
    confidence: float = 0.95
    first: int = FEWEST
    most: int = MOST_REPLICATES
    higher_is_better: bool = False


@dataclass(frozen=True)
class Region:
    """The selection of one region.

    Attributes
    ----------
    at : the labels of the other axes, by axis; of axes with more than one label.
    rows, labels : rows and labels of the compared axis that are in the region, in the order of the selection's.
    failed_labels : labels that are out of it because a simulation failed, or its result is no number.
    selection : how far it is; None if no policy is left.
    """

    at: dict[str, Any]
    rows: list[int]
    labels: list[Any]
    failed_labels: list[Any]
    selection: Selection | None


def read_best(raw: Any, axes: Sequence[Axis], outputs: Sequence[Output], measuring: Collection[str] = ()) -> Best:
    """Return the selection that a spec asks for.

    measuring : the parameters that say what is measured; an axis of theirs makes regions, and has no policies.

    Raises
    ------
    InputError
        One sentence that says which key is wrong and what is valid.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"expected a table, got {raw!r}")
    for key in raw:
        if key not in KEYS:
            raise unknown_name("key", str(key), KEYS)
    known = {out.name: out for out in outputs if not out.dim}
    usual = USUAL_METRIC if USUAL_METRIC in known else next(iter(known), "")
    metric = raw.get("metric", usual)
    if metric not in known:
        raise unknown_name("metric", str(metric), known, where="metric")
    axis = _read_axis(raw.get("axis"), axes[:-1], _measured(axes, measuring))
    confidence = raw.get("confidence", 0.95)
    if isinstance(confidence, bool) or not isinstance(confidence, float) or not 0.5 <= confidence < 1:
        raise InputError(f"confidence: expected a number from 0.5 to below 1, got {confidence!r}")
    first = len(axes[-1])
    most = raw.get("most", max(MOST_REPLICATES, first))
    if isinstance(most, bool) or not isinstance(most, int) or most < first:
        raise InputError(f"most: expected a whole number of at least {first} (the first replicates), got {most!r}")
    zone = read_share(raw.get("zone", "5%"), "zone")
    return Best(axis, metric, zone, confidence, first, most, known[metric].higher_is_better)


def _measured(axes: Sequence[Axis], measuring: Collection[str]) -> dict[str, str]:
    """Return the axes that say what is measured, with the parameters that do so where they are not the whole axis."""
    found = {}
    for axis in axes:
        own = [name for name in axis.columns if axis.varies({name})]
        says = [name for name in own if name in measuring]
        if says:
            found[axis.name] = " and ".join(says) if len(own) > len(says) else ""
    return found


def _read_axis(name: Any, axes: Sequence[Axis], measured: Mapping[str, str]) -> str:
    """Return the axis of that name, or the usual one; not one of those that say what is measured."""
    several = {axis.name: axis for axis in axes if len(axis) > 1 and axis.name not in measured}
    if measured.get(name):
        raise InputError(f"axis: {_mixed(name, measured[name])}")
    if name in measured:
        raise InputError(
            f"axis: {name} says what is measured, so that none of its labels is better than another one (valid: "
            f"{', '.join(several) or 'an axis of policies, which the sweep lacks'})"
        )
    if name is not None:
        if name not in several:
            raise unknown_name("axis with two labels or more", str(name), several, where="axis")
        return str(name)
    names = [name for name, axis in several.items() if isinstance(axis.labels[0], str)]
    mixed = [f"axis: {_mixed(axis, says)}" for axis, says in measured.items() if says]
    if not names and mixed:
        raise InputError(mixed[0])
    if not names:
        raise InputError("axis: no axis of names has two labels or more; name the axis whose labels are compared")
    return "scheduler" if "scheduler" in names else names[0]


def _mixed(axis: str, says: str) -> str:
    """Return the sentence for an axis that says what is measured together with something else."""
    return (
        f"{axis} sets {says}, which says what is measured, together with other parameters, so that its labels cannot "
        f"be compared with each other; give {says} an axis of its own, and policies are compared for each of its labels"
    )


def regions(store: Store, best: Best, asked: NDArray[np.bool_]) -> list[Region]:
    """Return how far the selection of every region is; ``asked``, shape (cells,), says which cells belong to it.

    Raises
    ------
    InputError
        The metric is negative somewhere, so that there is no ratio to the best.
    """
    shape = store.chunks.shape
    labels = {axis.name: list(axis.labels) for axis in store.axes()}
    values = np.asarray(store.arrays[best.metric][...], float).reshape(shape)
    wanted: NDArray[Any] = np.asarray(asked.reshape(shape).any(-1))
    return regions_of(best, labels, store.status().reshape(shape), values, wanted)


def regions_of(
    best: Best,
    axes: Mapping[str, Sequence[Any]],
    status: NDArray[np.int8],
    values: NDArray[np.float64],
    asked: NDArray[np.bool_],
) -> list[Region]:
    """Return how far the selection of every region is.

    Parameters
    ----------
    best : what is selected.
    axes : the labels of each axis, the replicates last.
    status, values : of the metric, arrays over all axes.
    asked : which configurations belong to it, an array over all axes but the replicates.

    Raises
    ------
    InputError
        The metric is negative somewhere, so that there is no ratio to the best.
    """
    names = list(axes)
    place, shape = names.index(best.axis), status.shape
    labels = list(axes[best.axis])
    status, values = np.moveaxis(status, place, 0), np.moveaxis(values, place, 0)
    wanted: NDArray[Any] = np.moveaxis(asked, place, 0)
    known = np.isin(status, WITH_RESULT) & np.isfinite(values)  # what is no number has no mean
    values = np.where(known, values, np.nan)
    if (values < 0).any():
        raise InputError(f"best: {best.metric} is negative in some results, so there is no ratio to the best")
    over: NDArray[np.bool_] = ~np.isin(status, (PENDING, NOT_REQUESTED))
    have = np.where(over.all(-1), shape[-1], over.argmin(-1))
    failed: Any = (over & ~known & (np.arange(shape[-1]) < have[..., None])).any(-1)
    others = [name for name in names[:-1] if name != best.axis]
    places = [index for index in np.ndindex(*wanted.shape[1:]) if wanted[(slice(None), *index)].any()]
    found = []
    for index in places:
        here = (slice(None), *index)
        inside = np.flatnonzero(wanted[here])
        rows = [int(row) for row in inside if not failed[(row, *index)]]
        at = {
            name: axes[name][row] for name, row, size in zip(others, index, wanted.shape[1:], strict=True) if size > 1
        }
        selection = None
        if rows:
            selection = select(
                values[here][rows],
                have[here][rows],
                error=(1 - best.confidence) / len(places),
                zone=best.zone,
                first=best.first,
                most=best.most,
                higher_is_better=best.higher_is_better,
                policies=len(inside),
            )
        lost = [labels[row] for row in inside if failed[(row, *index)]]
        found.append(Region(at, rows, [labels[row] for row in rows], lost, selection))
    return found


def replicates_wanted(
    store: Store, best: Best, asked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many replicates each configuration has of those that it needs, and how many it needs.

    Both are arrays over all axes of the store but ``replicate``, the last one.
    """
    shape = store.chunks.shape
    over = ~np.isin(store.status().reshape(shape), (PENDING, NOT_REQUESTED))
    have = np.where(over.all(-1), shape[-1], over.argmin(-1))
    needed = have.copy()
    place = list(store.dims).index(best.axis)
    axes = store.axes()[:-1]
    for region in regions(store, best, asked):
        if region.selection is None or not region.selection.needed:
            continue
        index: list[Any] = [axis.labels.index(region.at[axis.name]) if axis.name in region.at else 0 for axis in axes]
        for row in region.selection.alive:
            index[place] = region.rows[row]
            needed[tuple(index)] = max(needed[tuple(index)], region.selection.needed)
    return np.minimum(have, needed), needed
