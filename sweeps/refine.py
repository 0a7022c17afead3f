"""Adaptive refinement: where along a numeric axis two policies cross, or one saturates, in every region.

Points are added to the axis one after another, and replicates to a point until its answer is certain. Each decision
uses the first replicates alone, so a search that was stopped goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.grid import Grid
from faultsweep.sweeps.refinement import Pairs, Refined, refine
from faultsweep.sweeps.search import Search
from faultsweep.sweeps.spec import Spec, read_spec
from faultsweep.sweeps.store.statuses import WITH_RESULT
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep

from faultsweep.extras import require


def run_search(sweep: Sweep, search: Search, path: Path, **options: Any) -> Refined:
    """Search, adding points and replicates to the store at ``path``; ``options`` are those of ``Sweep.run``.

    A search whose next point has no result for all replicates, because the spec excludes it or a simulation failed,
    ends there: its ``lacks`` says so.
    """
    require("a search for a crossing", "scipy")
    while True:
        found = look(search, path)
        if found.needs is None:
            return found
        x, replicates = found.needs
        places = sorted({place for place, _ in search.cells(x)})
        part = _at(sweep.spec, search, places, replicates)
        if part is not None:
            part.run(path, **options, results=False)
        if part is None or look(search, path).needs == found.needs:
            found.needs, found.lacks = None, x
            return found


def look(search: Search, path: Path) -> Refined:
    """Return how far the search is, from the store alone."""
    confidence = 1 - (1 - search.confidence) / search.regions  # Bonferroni
    settings: dict[str, Any] = {"ratio": search.ratio, "confidence": confidence, "most": search.most}
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
        wanted = {search.along: place, search.axis: policy, **search.at}.get(axis.name, axis.labels[0])
        if wanted not in axis.labels:
            return np.empty(0)
        index.append(axis.labels.index(wanted))
    shape = store.chunks.shape
    status = store.status().reshape(shape)[tuple(index)]
    values = np.asarray(store.arrays[search.metric][...], float).reshape(shape)[tuple(index)]
    over = np.isin(status, WITH_RESULT) & np.isfinite(values)
    return values[: len(over) if over.all() else int(over.argmin())]


def _at(spec: Spec, search: Search, places: list[float], replicates: int) -> Sweep | None:
    """Return the sweep of these places, and of the policies and the region of the search alone.

    None if the spec excludes one of its configurations.
    """
    raw = {key: value for key, value in spec.raw.items() if key not in ("precision", "best", "refine", "exclude")}
    axes = {**raw["axes"], search.along: places}
    wanted = {name: [str(label)] for name, label in search.at.items()} | {search.axis: list(search.policies)}
    for axis in spec.axes[:-1]:
        if axis.name in wanted:
            axes[axis.name] = _rows(axes[axis.name], axis, wanted[axis.name])
    raw |= {"axes": axes, "replicates": replicates}
    part = read_spec(raw, spec.target, spec.where)
    # a rule may name labels that are not in this part, which no reader of specs would take
    grid = Grid(spec.target, part.axes, part.fixed, part.formulas, spec.exclude)
    return None if grid.excluded(check=False).any() else Sweep.of(part)


def _rows(rows: Any, axis: Axis, wanted: Sequence[str]) -> Any:
    """Return the rows of a raw axis that have these labels."""
    if isinstance(rows, list) and len(rows) == len(axis.labels):
        return [row for row, label in zip(rows, axis.labels, strict=True) if str(label) in wanted]
    return [label for label in axis.labels if str(label) in wanted]
