"""Adaptive refinement: where along a numeric axis two policies cross, or one saturates.

[refine]
along = "load_scale"             # the axis; the search begins between its least and its greatest label
find = "crossing"                # or "saturation"
policies = ["fcfs", "backfill"]  # the two labels that cross, or the one that saturates
metric = "mean_wait_s"           # that crosses; saturation is of the utilisation
width = 0.05                     # of the interval at its end
confidence = 0.95
most = 200                       # replicates at a point at most

Points are added to the axis one after another, and replicates to a point until its answer is certain. Each decision
uses the first replicates alone, so a search that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.refinement import Pairs, Refined, refine
from faultsweep.sweeps.selection import FEWEST
from faultsweep.sweeps.spec import Spec, read_spec
from faultsweep.sweeps.store.store import NOT_REQUESTED, PENDING, WITH_RESULT, Store
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import require

KEYS = ("along", "find", "policies", "metric", "width", "confidence", "most")
FINDS = ("crossing", "saturation")
STEP = 1.05
"""Saturation is looked for between two loads, this factor below and above a point."""


@dataclass(frozen=True)
class Search:
    """What is looked for.

    Attributes
    ----------
    along : the numeric axis; ``low`` and ``high`` are where the search begins.
    find : one of ``FINDS``.
    axis, policies : the axis of the policies, "" if there is none, and their labels: two, or the one that saturates.
    metric, width, confidence, most : as in the table.
    """

    along: str
    low: float
    high: float
    find: str
    axis: str
    policies: tuple[str, ...]
    metric: str
    width: float
    confidence: float = 0.95
    most: int = 200

    def cells(self, x: float) -> list[tuple[float, str]]:
        """Return the two configurations, place and policy, whose means are compared at a point."""
        if self.find == "crossing":
            return [(x, self.policies[0]), (x, self.policies[1])]
        policy = self.policies[0] if self.policies else ""
        return [(_rounded(x * STEP), policy), (_rounded(x / STEP), policy)]

    @property
    def ratio(self) -> float:
        """Return the ratio of the two means at the place: one, or that of half the growth of the load."""
        return 1.0 if self.find == "crossing" else STEP


def read_search(raw: Mapping[str, Any], spec: Spec) -> Search:
    """Return the search of a table, with what the spec says of its axes.

    Raises
    ------
    InputError
        One sentence that says which key is wrong and what is valid.
    """
    for key in raw:
        if key not in KEYS:
            raise unknown_name("key", str(key), KEYS, where="refine")
    axes = {axis.name: axis for axis in spec.axes[:-1]}
    numeric = [name for name, axis in axes.items() if not isinstance(axis.labels[0], str) and len(axis) > 1]
    along = raw.get("along", next(iter(numeric), None))
    if along not in numeric or list(axes[along].columns) != [along]:
        raise unknown_name("axis of a number with two labels or more", str(along), numeric, where="refine: along")
    find = raw.get("find", "crossing")
    if find not in FINDS:
        raise unknown_name("find", str(find), FINDS, where="refine")
    others = [name for name, axis in axes.items() if name != along and len(axis) > 1]
    if len(others) > 1:
        raise InputError(f"refine: a search is in one region; leave one label of {', '.join(others[1:])}")
    axis = others[0] if others else ""
    labels = [str(label) for label in axes[axis].labels] if axis else []
    number = 2 if find == "crossing" else min(1, len(labels))
    policies = raw.get("policies", labels if len(labels) == number else None)
    if not isinstance(policies, list) or len(policies) != number or len(set(policies)) < number:
        raise InputError(f"refine: policies: a {find} needs {number} of {', '.join(labels) or 'an axis of policies'}")
    for label in policies:
        if label not in labels:
            raise unknown_name(f"label of {axis}", str(label), labels, where="refine: policies")
    known = [out.name for out in spec.outputs if not out.dim]
    usual = "utilisation" if find == "saturation" else "mean_bounded_slowdown"
    metric = raw.get("metric", usual if usual in known else known[0] if find == "crossing" else usual)
    if metric not in known:
        raise unknown_name("metric", str(metric), known, where="refine: metric")
    low, high = (float(end) for end in (min(axes[along].labels), max(axes[along].labels)))
    width = _number(raw, "width", (high - low) / 16, 0, high - low)
    confidence = _number(raw, "confidence", 0.95, 0.5, 1)
    most = raw.get("most", 200)
    if isinstance(most, bool) or not isinstance(most, int) or most < FEWEST:
        raise InputError(f"refine: most: expected a whole number of at least {FEWEST}, got {most!r}")
    if find == "saturation" and low <= 0:
        raise InputError(f"refine: along: saturation is a matter of loads above 0, got {low:g}")
    return Search(along, low, high, find, axis, tuple(policies), metric, width, confidence, most)


def _number(raw: Mapping[str, Any], key: str, default: float, low: float, high: float) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        raise InputError(f"refine: {key}: expected a number between {low:g} and {high:g}, got {value!r}")
    return float(value)


def run_search(sweep: Sweep, search: Search, path: Path, **options: Any) -> Refined:
    """Search, adding points and replicates to the store at ``path``; ``options`` are those of ``Sweep.run``."""
    require("a search for a crossing", "scipy")
    while True:
        found = look(search, path)
        if found.needs is None:
            return found
        x, replicates = found.needs
        places = sorted({place for place, _ in search.cells(x)})
        _at(sweep.spec, search, places, replicates).run(path, **options)
        if look(search, path).needs == found.needs:
            raise InputError(f"refine: {search.along} = {x:g} has no result for all replicates; see faultsweep status")


def look(search: Search, path: Path) -> Refined:
    """Return how far the search is, from the store alone."""
    settings: dict[str, Any] = {"ratio": search.ratio, "confidence": search.confidence, "most": search.most}
    store = Store(path, mode="r") if path.exists() else None

    def pairs_at(x: float) -> Pairs:
        if store is None:
            return np.empty((2, 0))
        rows = [_results(store, search, place, policy) for place, policy in search.cells(x)]
        count = min(map(len, rows))
        return np.array([row[:count] for row in rows])

    return refine(pairs_at, search.low, search.high, search.width, **settings)


def _results(store: Store, search: Search, place: float, policy: str) -> np.ndarray:
    """Return the results of the first replicates of a configuration, up to the first that is not there."""
    index: list[Any] = []
    for axis in store.axes()[:-1]:
        wanted = {search.along: place, search.axis: policy}.get(axis.name, axis.labels[0])
        if wanted not in axis.labels:
            return np.empty(0)
        index.append(axis.labels.index(wanted))
    shape = store.chunks.shape
    status = store.status().reshape(shape)[tuple(index)]
    values = np.asarray(store.arrays[search.metric][...], float).reshape(shape)[tuple(index)]
    over = np.isin(status, WITH_RESULT) & ~np.isin(status, (PENDING, NOT_REQUESTED))
    return values[: len(over) if over.all() else int(over.argmin())]


def _at(spec: Spec, search: Search, places: list[float], replicates: int) -> Sweep:
    """Return the sweep of these places, and of the policies of the search alone."""
    raw = {key: value for key, value in spec.raw.items() if key not in ("precision", "best")}
    axes = {**raw["axes"], search.along: places}
    rows = axes.get(search.axis)
    if isinstance(rows, list):
        axes[search.axis] = [row for row in rows if _label(row) in search.policies]
    raw |= {"axes": axes, "replicates": replicates}
    return Sweep.of(read_spec(raw, spec.target, spec.where))


def _label(row: Any) -> str:
    return str(row.get("label")) if isinstance(row, Mapping) else str(row)


def _rounded(x: float) -> float:
    return float(f"{x:.9g}")
