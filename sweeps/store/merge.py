"""Joining stores that were run in different places into one, without ever choosing between two results."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.built_in import SIMULATOR, TARGETS, built_in_target
from faultsweep.sweeps.formulas import parse
from faultsweep.sweeps.grid import Cells, Grid, sources
from faultsweep.sweeps.outputs import to_json, udunits
from faultsweep.sweeps.runner.prepare import join_axis
from faultsweep.sweeps.store.jobs import JobsWriter, read_jobs
from faultsweep.sweeps.store.repair import refuse_damage
from faultsweep.sweeps.store.replay import check_at_rest
from faultsweep.sweeps.store.statuses import (
    COPY,
    COPY_OF,
    DAMAGED,
    DONE,
    EXCLUDED,
    FAILED,
    FAILED_COPY,
    FINAL,
    NOT_REQUESTED,
    PENDING,
    SETTLED,
    TRUNCATED,
    TRUNCATED_COPY,
    WITH_RESULT,
)
from faultsweep.sweeps.store.store import Store, create, run_folder
from faultsweep.sweeps.target import Argument, Config, Outcome, Output, Target
from numpy.typing import NDArray

from faultsweep.arguments import PATH, PATHS, takes
from faultsweep.errors import InputError
from faultsweep.files import writing

_PRECEDENCE = (NOT_REQUESTED, EXCLUDED, PENDING, DAMAGED, FAILED_COPY, FAILED, TRUNCATED_COPY, COPY, TRUNCATED, DONE)
"""Of two stores' statuses of one cell the later one holds."""
_NAMED = 10
_ROWS_AT_ONCE = 1_000_000


class _StoredTarget(Target):
    """What a store says of the function that it has results of."""

    def __init__(self, store: Store, names: Sequence[str], outputs: tuple[Output, ...]) -> None:
        self.name = store.attributes["target"]
        self.version = store.attributes["model_version"]
        self.parameters = {name: Argument(name) for name in names}
        self.outputs = outputs

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        raise InputError(f"{self.name}: a store has no function to run")


@takes(stores=PATHS, path=PATH)
def merge(stores: Sequence[str | Path], path: str | Path) -> Store:
    """Join stores into a new one: their axes' rows, and the results of all their cells.

    A cell that has a result in several stores must have the same one in each, to the bit (what is measured, such as
    wall times, aside). Cells that turn out to be the same simulation count once: the others become copies.

    Raises
    ------
    InputError
        The stores do not belong together, or cells of theirs are in conflict; all reasons, one a line. Or a run is
        writing one of them, or there is something at ``path``.
    """
    target_path = Path(path)
    if target_path.exists() or target_path.is_symlink():
        raise InputError(f"{target_path}: exists already; name a store that is not there yet")
    if not target_path.parent.is_dir():
        raise InputError(f"{target_path}: the folder {target_path.parent} does not exist; make it, or name another")
    if len(stores) < 2:
        raise InputError("merge: name two stores or more")
    opened = [_open(Path(store)) for store in stores]
    for one, other in itertools.combinations(opened, 2):
        _check_alike(one, other)
    axes = _join_axes(opened)
    outputs = _outputs(opened)
    grid = _grid(opened[0], axes, outputs)
    joined = _Joined(opened, grid, outputs)
    joined.check()
    draft = run_folder(target_path) / "merged.zarr"
    shutil.rmtree(draft, ignore_errors=True)
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        with writing(target_path):
            joined.write(draft)
            os.rename(draft, target_path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(run_folder(draft), ignore_errors=True)
        with contextlib.suppress(OSError):
            draft.parent.rmdir()
    return Store(target_path, mode="r")


def _open(path: Path) -> Store:
    store = Store(path, mode="r")
    check_at_rest(store)
    refuse_damage(path)
    return store


def _check_alike(a: Store, b: Store) -> None:
    """Raise InputError unless results of both may stand in one store; all reasons, each with both values."""
    problems = []
    if set(a.dims) != set(b.dims):
        problems.append(f"the axes differ: {', '.join(a.dims)} in {a.path}; {', '.join(b.dims)} in {b.path}")
    for name in ("target", "model_version"):
        if a.attributes[name] != b.attributes[name]:
            problems.append(f"{name}: {a.attributes[name]} in {a.path}, {b.attributes[name]} in {b.path}")
    defaults = _defaults(a.attributes["target"])
    fixed, other = {**defaults, **a.text("configuration")}, {**defaults, **b.text("configuration")}
    pins, others = a.text("pins"), b.text("pins")
    for prefix, one, two in (("fixed.", fixed, other), ("", pins, others)):
        problems += [
            f"{prefix}{name}: {one[name]!r} in {a.path}, {two[name]!r} in {b.path}"
            for name in one
            if name in two and one[name] != two[name] and name not in a.arrays and name not in b.arrays  # varied
        ]
    formulas = [{name: store.arrays[name].attrs["formula"] for name in store.formulas} for store in (a, b)]
    if formulas[0] != formulas[1]:
        problems.append(f"formulas: {formulas[0]} in {a.path}, {formulas[1]} in {b.path}")
    if problems:
        raise InputError("\n".join(f"merge: {text}" for text in problems))


def _defaults(target: str) -> dict[str, Any]:
    """Return the defaults of a target that is here: a store does not name parameters that came after it."""
    parameters = built_in_target(target).parameters if target in TARGETS else {}
    return {name: parameter.default for name, parameter in parameters.items()}


def _join_axes(stores: Sequence[Store]) -> list[Axis]:
    axes = stores[0].axes()
    problems: list[str] = []
    for other in stores[1:]:
        theirs = {axis.name: axis for axis in other.axes()}
        for number, axis in enumerate(axes):
            axes[number], _ = join_axis(axis, theirs[axis.name], problems, str(stores[0].path), str(other.path))
    if problems:
        raise InputError("\n".join(f"merge: {text}" for text in problems))
    return axes


def _outputs(stores: Sequence[Store]) -> tuple[Output, ...]:
    """Return all metrics of the stores; measured ones are known of the simulator's."""
    from faultsweep.simcore.engine.metrics import MEASURED

    simulator = stores[0].attributes["target"] == SIMULATOR
    outputs: dict[str, Output] = {}
    for store in stores:
        for name in store.metrics:
            output = store.output(name)
            unit = udunits(output.unit) if store.attributes["target"] in TARGETS else output.unit  # older stores
            output = replace(output, unit=unit, measured=simulator and name in MEASURED)
            if outputs.setdefault(name, output) != output:
                raise InputError(f"merge: the metric {name} differs in {store.path}: {output}")
    return tuple(outputs.values())


def _grid(store: Store, axes: Sequence[Axis], outputs: tuple[Output, ...]) -> Grid:
    """Return the grid of the joined axes; only a target that is here knows which cells are one simulation."""
    fixed = store.text("configuration")
    names = [*fixed, *(name for axis in axes for name in axis.columns), *store.formulas]
    target: Target = _StoredTarget(store, names, outputs)
    if target.name in TARGETS:
        here = built_in_target(target.name)
        target = here if here.version == target.version and set(names) <= set(here.parameters) else target
    formulas = {name: parse(store.arrays[name].attrs["formula"]) for name in store.formulas}
    return Grid(target, axes, fixed, formulas)


class _Joined:
    """The cells of several stores on one grid."""

    def __init__(self, stores: Sequence[Store], grid: Grid, outputs: tuple[Output, ...]) -> None:
        self.stores, self.grid, self.outputs = stores, grid, outputs
        self.dims = [axis.name for axis in grid.axes]
        self.places = [self._places(store) for store in stores]
        rank = self.rank = np.array([_PRECEDENCE.index(status) for status in range(len(_PRECEDENCE))])
        self.owner = np.full(grid.size, -1, dtype=np.int16)
        """Which store's result a cell takes; -1 for none."""
        self.status = np.full(grid.size, NOT_REQUESTED, dtype=np.int8)
        self.statuses = [np.full(grid.size, -1, dtype=np.int8) for _ in stores]
        for number, store in enumerate(stores):
            theirs = self._spread(number, store.arrays["status"][...], -1)
            self.statuses[number] = theirs
            better = (theirs >= 0) & ((rank[theirs] > rank[self.status]) | (self.owner < 0))
            self.owner[better], self.status[better] = number, theirs[better]
        self.source = self._sources()
        self.copies = (self.source >= 0) & (self.source != np.arange(grid.size))

    def _places(self, store: Store) -> Cells:
        """Return the cell of the grid for each of a store's cells, in the order of the grid's axes."""
        axes = {axis.name: axis for axis in store.axes()}
        rows = []
        for axis in self.grid.axes:
            row_of = {label: row for row, label in enumerate(axis.labels)}
            rows.append(np.array([row_of[label] for label in axes[axis.name].labels]))
        return np.ravel_multi_index(np.broadcast_arrays(*np.ix_(*rows)), self.grid.shape).ravel()

    def _spread(self, number: int, values: NDArray[Any], absent: Any) -> NDArray[Any]:
        """Return a store's values over the cells of the grid, ``absent`` where it has none."""
        store = self.stores[number]
        values = np.asarray(values)
        order = [store.dims.index(dim) for dim in self.dims]
        inner = values.shape[len(order) :]
        flat = values.transpose(*order, *range(len(order), values.ndim)).reshape(-1, *inner)
        out = np.full((self.grid.size, *inner), absent, dtype=values.dtype)
        out[self.places[number]] = flat
        return out

    def _sources(self) -> Cells:
        """Return the cell whose result each settled cell takes: itself, or one that is the same simulation."""
        settled = np.isin(self.status, SETTLED)
        if isinstance(self.grid.target, _StoredTarget):
            return np.where(settled, np.arange(self.grid.size), -1)
        order = np.arange(self.grid.size) + self.grid.size * (len(_PRECEDENCE) - self.rank[self.status])
        return sources(self.grid.keys(), ~settled, order)

    def values(self, output: Output) -> NDArray[Any]:
        """Return a metric over the cells, of the store that each cell takes."""
        kind = np.dtypes.StringDType() if output.dtype == "text" else output.stored
        out: NDArray[Any] = np.full((self.grid.size, *output.shape), output.fill, dtype=kind)
        for number, store in enumerate(self.stores):
            if output.name in store.metrics:
                mine = self.owner == number
                out[mine] = self._spread(number, store.arrays[output.name][...], output.fill)[mine]
        return out

    def check(self) -> None:
        """Raise InputError with the names of cells for which two stores, or two equal simulations, have two results."""
        conflicts: dict[int, str] = {}
        results = [np.isin(status, WITH_RESULT) for status in self.statuses]
        taken = np.flatnonzero(self.copies & np.isin(self.status, WITH_RESULT))
        for output in (output for output in self.outputs if not output.measured):
            known = self.values(output)
            for number, store in enumerate(self.stores):
                if output.name not in store.metrics:
                    continue
                theirs = self._spread(number, store.arrays[output.name][...], output.fill)
                held = results[number] & np.array([output.name in s.metrics for s in self.stores])[self.owner]
                for cell in np.flatnonzero(held & _differ(known, theirs)).tolist():
                    text = f"{output.name} is {known[cell]} in {self.stores[self.owner[cell]].path}"
                    conflicts.setdefault(cell, f"{text}, {theirs[cell]} in {store.path}")
            of = self.source[taken]
            for place in np.flatnonzero(_differ(known[taken], known[of])):
                cell, same = int(taken[place]), int(of[place])
                text = f"is the same simulation as {self._name(same)}, but {output.name} is {known[cell]}"
                conflicts.setdefault(cell, f"{text}, {known[same]} there")
        if conflicts:
            lines = [f"merge: {self._name(cell)}: {text}" for cell, text in sorted(conflicts.items())[:_NAMED]]
            more = f"; {len(conflicts) - _NAMED:,} more" if len(conflicts) > _NAMED else ""
            raise InputError(
                "\n".join([*lines, f"merge: {len(conflicts):,} cells are in conflict{more}; nothing done"])
            )

    def _name(self, cell: int) -> str:
        return ", ".join(f"{name}={label}" for name, label in self.grid.labels(cell).items())

    def write(self, path: Path) -> None:
        """Write the store: metrics, then what else there is of a cell, then statuses."""
        first = self.stores[0]
        keep_jobs = any(store.keeps_jobs for store in self.stores)
        tables = [{"name": axis.name, "parameters": list(axis.columns)} for axis in self.grid.axes]
        history: list[Any] = []
        pins: dict[str, str] = {}
        for other in self.stores:
            history += [run for run in other.text("provenance") if run not in history]
            pins |= other.text("pins")
        own = ("faultsweep_format", "recomputing", "submission", "manifest")
        kept = {name: value for name, value in first.attributes.items() if name not in own}
        fixed = {name: value for other in reversed(self.stores) for name, value in other.text("configuration").items()}
        texts: Mapping[str, Any] = {
            "axes": tables,
            "configuration": fixed,
            "metrics": [output.name for output in self.outputs],
            "adding": self._lacking(),
            "pins": pins,
            "open_runs": [],
            "provenance": sorted(history, key=lambda run: run.get("time", "")),
        }
        attributes = {**kept, **{name: to_json(value) for name, value in texts.items()}}
        store = create(path, self.grid, self.outputs, attributes, keep_jobs)
        status = self.status.copy()
        status[self.copies] = [COPY_OF[kind] for kind in self.status[self.source[self.copies]].tolist()]
        for output in self.outputs:
            self._put(store, output.name, self._copied(self.values(output)))
        wall = self._of_owner("wall_s", np.nan)
        wall[~np.isin(status, FINAL)] = np.nan
        self._put(store, "wall_s", wall)
        self._put(store, "error", self._copied(self._of_owner("error", "")))
        if keep_jobs:
            self._write_jobs(store)
        self._put(store, "status", status)
        store.commit()

    def _lacking(self) -> list[str]:
        """Return the metrics that not all stores have, or that one of them is still adding."""
        partial = {name for store in self.stores for name in store.adding}
        partial |= {out.name for out in self.outputs if any(out.name not in store.metrics for store in self.stores)}
        return sorted(partial)

    def _of_owner(self, name: str, absent: Any) -> NDArray[Any]:
        """Return a variable over the cells, of the store that each cell takes."""
        parts = [self._spread(number, store.arrays[name][...], absent) for number, store in enumerate(self.stores)]
        out = np.full(self.grid.size, absent, dtype=parts[0].dtype)
        for number, part in enumerate(parts):
            out[self.owner == number] = part[self.owner == number]
        return out

    def _copied(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values with those of its source in each cell that takes another one's result."""
        values[self.copies] = values[self.source[self.copies]]
        return values

    def _put(self, store: Store, name: str, values: NDArray[Any]) -> None:
        store.arrays[name][...] = values.reshape(self.grid.shape + values.shape[1:])

    def _write_jobs(self, store: Store) -> None:
        """Copy per-job results; cells that are one simulation point at the same rows."""
        writer = JobsWriter(store)
        offset = np.full(self.grid.size, -1, dtype=np.int64)
        length = np.zeros(self.grid.size, dtype=np.int64)
        rows = 0
        for number, source in enumerate(self.stores):
            if not source.keeps_jobs:
                continue
            starts = self._spread(number, source.arrays["jobs_offset"][...], -1)
            counts = self._spread(number, source.arrays["jobs_length"][...], 0)
            moved: dict[int, tuple[int, int]] = {}
            for cell in np.flatnonzero((self.owner == number) & (starts >= 0)):
                start, count = int(starts[cell]), int(counts[cell])
                if start not in moved:
                    moved[start] = writer.append(read_jobs(source, start, count))
                    rows += count
                    if rows > _ROWS_AT_ONCE:
                        writer.flush()
                        rows = 0
                offset[cell], length[cell] = moved[start]
        writer.flush()
        for name, values in (("jobs_offset", offset), ("jobs_length", length)):
            self._put(store, name, self._copied(values))


def _differ(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which cells are not equal to the bit (any NaN is one NaN), shape (cells,)."""
    if a.dtype.kind == "c":
        return _differ(np.stack([a.real, a.imag], -1), np.stack([b.real, b.imag], -1))
    if a.dtype.kind == "f":
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        different = (a.view(np.int64) != b.view(np.int64)) & ~(np.isnan(a) & np.isnan(b))
    else:
        different = np.asarray(a != b)
    return different.any(tuple(range(1, a.ndim)))
