"""From a spec and what a store has already: the grid of both together, and what is missing.

A store only grows: its axes keep their rows and get the spec's new ones behind them. Cells that the spec does not ask
for stay as they are. Whatever would mix results that do not belong together is refused, naming both values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from faultsweep.sweeps.axes import Axis, label_values, one_type
from faultsweep.sweeps.formulas import parse
from faultsweep.sweeps.grid import Cells, Grid, Keys, sources
from faultsweep.sweeps.outputs import NOTHING, to_json
from faultsweep.sweeps.precision import NEW_RULE
from faultsweep.sweeps.spec import Spec
from faultsweep.sweeps.store.opener import stored_spec
from faultsweep.sweeps.store.statuses import DAMAGED, DONE, FAILURES, FINAL, PENDING, SETTLED, TRUNCATED, WITH_RESULT
from faultsweep.sweeps.store.store import Chunks, Store, chunk_shape
from faultsweep.sweeps.target import FunctionTarget, Known, Output, Target, describe_lost, describe_version
from numpy.typing import NDArray

from faultsweep.errors import InputError

LOOKED_AT = 256
"""Configurations, at most, that a check without a run looks at."""
_LATER_ATTRIBUTES = frozenset(
    ("faultsweep_format", "manifest", "provenance", "submission", "licence", "citation", "acknowledgements")
)
"""Attributes that a store gets when it is written, and packed."""
_SHOWN = 5
"""Rows of an axis that do not fit, of which each is told."""


@dataclass
class Prepared:
    """What is to be done.

    Attributes
    ----------
    grid : of the store as it will be.
    outputs : that will be stored; ``new_outputs`` are those that the store lacks, ``derived`` are names of those that
        stored per-job results give, ``dropped`` of variables that were to be added, and that no cell has a value of.
    keys : canonical keys, shape (2, cells).
    source : the cell whose result each cell takes, -1 for none.
    excluded : cells that the spec excludes.
    again : cells whose present result does not count.
    recompute : whether all results are replaced; ``retry_failed`` whether failed ones are.
    keep_jobs : whether the store, as it will be, keeps per-job results.
    todo : the cells to simulate, chunk by chunk.
    grows : whether the store has to grow first.
    asked : cells that the spec asks for.
    known : what cells have of outputs that are being added, without a run.
    unasked : outputs that the target has learnt since the store was made; they are not added, as nobody asked for them.
    """

    path: Path
    store: Store | None
    grid: Grid
    outputs: tuple[Output, ...]
    new_outputs: tuple[Output, ...]
    derived: list[str]
    dropped: list[str]
    keys: Keys
    source: Cells
    excluded: NDArray[np.bool_]
    again: NDArray[np.bool_]
    status: NDArray[np.int8]
    todo: Cells
    grows: bool
    pins: dict[str, str]
    recompute: bool
    retry_failed: bool
    keep_jobs: bool
    asked: NDArray[np.bool_]
    known: KnownOutputs
    unasked: Sequence[str] = ()


def prepare(
    spec: Spec,
    path: Path,
    recompute: bool = False,
    retry_failed: bool = False,
    replicates: NDArray[np.int64] | None = None,
    mend: bool = False,
) -> Prepared:
    """Compare the spec with the store at ``path``, if there is one; nothing is changed.

    ``replicates`` says for every configuration, over all axes but the last, how many are asked for; all if not given.
    Cells that have lost their results are run in any case; ``mend`` asks for nothing else.

    Raises
    ------
    InputError
        The store cannot take the spec's results; all reasons, one a line.
    """
    pins = spec.target.pins(values_of(spec))
    store = Store(path) if path.exists() or path.is_symlink() else None
    if store is not None:
        check_belongs(store, spec, pins, recompute)
        recompute = recompute or store.recomputing == "begun"
    joined = _join(store, spec)
    grid, excluded = _grid(store, spec, joined)
    status, unfinished = _stored_status(store, grid.shape)
    kept_jobs = store is not None and store.keeps_jobs and "jobs_offset" not in joined.dropped
    added = _added(store, spec, grid, joined, status, recompute, kept_jobs)
    again = _again(store, spec, status, grid.shape, added.names, added.derived, recompute, added.known)
    again |= status == DAMAGED
    if retry_failed:
        again |= np.isin(status, FAILURES)
    skip = _skipped(joined.rows, grid.shape, excluded, status, unfinished, replicates, mend)
    keys = grid.keys()
    chunks = Chunks(grid.shape, store.chunks.lengths if store else chunk_shape(grid.shape, added.outputs))
    source, todo = _to_run(keys, chunks, status, skip, again)
    new_jobs = spec.keep_jobs and not kept_jobs
    return Prepared(
        path=path,
        store=store,
        grid=grid,
        outputs=added.outputs,
        new_outputs=added.new_outputs,
        derived=added.derived,
        dropped=joined.dropped,
        keys=keys,
        source=source,
        excluded=excluded,
        again=again,
        status=status,
        todo=todo,
        grows=store is not None and (grid.shape != store.chunks.shape or bool(added.new_outputs) or new_jobs),
        pins=pins,
        recompute=recompute,
        retry_failed=retry_failed,
        keep_jobs=spec.keep_jobs or kept_jobs,
        asked=~skip,
        known=added.known,
        unasked=added.unasked,
    )


def _skipped(
    rows: list[NDArray[np.bool_]] | None,
    shape: tuple[int, ...],
    excluded: NDArray[np.bool_],
    status: NDArray[np.int8],
    unfinished: NDArray[np.bool_],
    replicates: NDArray[np.int64] | None,
    mend: bool,
) -> NDArray[np.bool_]:
    """Return which cells are not asked for, shape (size,); see ``prepare``."""
    if mend:
        skip = status != DAMAGED
    else:
        skip = (excluded if rows is None else excluded | ~_outer(rows)) & ~unfinished
    if replicates is None:
        return skip
    return skip | (np.arange(shape[-1]) >= replicates[..., None]).ravel()


class _Joined(NamedTuple):
    """A spec and a store together: axes, outputs (also the new ones alone), names of variables to drop, and which rows
    of each axis the spec asks for, None for all."""

    axes: Sequence[Axis]
    outputs: tuple[Output, ...]
    new_outputs: tuple[Output, ...]
    dropped: list[str]
    rows: list[NDArray[np.bool_]] | None


def _join(store: Store | None, spec: Spec) -> _Joined:
    if store is None:
        return _Joined(spec.axes, spec.outputs, (), [], None)
    axes, rows = _join_axes(store, spec)
    dropped = _dropped(store, spec)
    return _Joined(axes, *_join_outputs(store, spec, dropped), dropped, rows)


def _grid(store: Store | None, spec: Spec, joined: _Joined) -> tuple[Grid, NDArray[np.bool_]]:
    """Return the grid, and the cells that the spec excludes."""
    damaged = store is not None and (store.status() == DAMAGED).any()
    rows = None if damaged else joined.rows  # of damaged cells any may have to be run: formulas need values everywhere
    try:
        grid = Grid(spec.target, joined.axes, spec.fixed, spec.formulas, spec.exclude, rows)
        return grid, grid.excluded()
    except InputError as error:
        raise InputError(f"{spec.where}: {error}" if spec.where else str(error)) from None


class _Added(NamedTuple):
    """The outputs of the store as it will be, and of those that are being added: names, names of those that per-job
    results give, what is known of them without a run; ``unasked`` are left out."""

    outputs: tuple[Output, ...]
    new_outputs: tuple[Output, ...]
    names: list[str]
    derived: list[str]
    known: KnownOutputs
    unasked: list[str]


def _added(
    store: Store | None,
    spec: Spec,
    grid: Grid,
    joined: _Joined,
    status: NDArray[np.int8],
    recompute: bool,
    kept_jobs: bool,
) -> _Added:
    outputs, new_outputs = joined.outputs, joined.new_outputs
    names = [*(store.adding if store else ()), *(out.name for out in new_outputs)]
    names = [name for name in names if name not in joined.dropped]
    derived = [name for name in names if kept_jobs and name in spec.target.derivable()]
    known = _known_outputs(store, spec, grid, names)
    unasked: list[str] = []
    if store is not None and not recompute:
        unasked = _unasked(store, spec, status, known, [out.name for out in new_outputs if out.name not in derived])
    if unasked:
        outputs = tuple(out for out in outputs if out.name not in unasked)
        new_outputs = tuple(out for out in new_outputs if out.name not in unasked)
        names = [name for name in names if name not in unasked]
        known = _known_outputs(store, spec, grid, names)
    return _Added(outputs, new_outputs, names, derived, known, unasked)


def _to_run(
    keys: Keys, chunks: Chunks, status: NDArray[np.int8], skip: NDArray[np.bool_], again: NDArray[np.bool_]
) -> tuple[Cells, Cells]:
    """Return the cell whose result each cell takes, and the cells to simulate, chunk by chunk."""
    final = np.isin(status, FINAL) & ~again
    source = sources(keys, skip & ~np.isin(status, SETTLED), _rank(chunks, final, status))
    wanted = source[(source >= 0) & (~skip | again)]
    missing = np.zeros(len(status), dtype=bool)  # np.unique would take a minute for 10^7 cells
    missing[wanted[~final[wanted]]] = True
    todo = np.flatnonzero(missing)
    return source, todo[np.argsort(chunks.of_all()[todo], kind="stable")]


def assumptions(spec: Spec, prepared: Prepared) -> list[str]:
    """Return what the missing simulations assume, each once for a log: a sentence that differs by jobs says it of the
    first ones."""
    found: dict[str, str] = {}
    if len(prepared.todo):
        cells, _ = prepared.grid.different(prepared.todo, spec.target.assumed_by)
        for cell in cells[:LOOKED_AT]:
            found |= spec.target.assumptions(prepared.grid.config(int(cell)), found)
    if prepared.unasked:
        found["metrics"] = (
            f"metrics: the store stays without {', '.join(prepared.unasked)}, new since it was made "
            "(metrics in the spec, or --recompute, adds new ones by running its cells again)"
        )
    return list(found.values())


def _stored_status(store: Store | None, shape: tuple[int, ...]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Return the status of every cell, and which cells a recomputation that was interrupted has left without one."""
    status = np.zeros(shape, dtype=np.int8)
    unfinished = np.zeros(shape, dtype=bool)
    if store is not None:
        old = tuple(slice(0, n) for n in store.chunks.shape)
        status[old] = store.status().reshape(store.chunks.shape)
        unfinished[old] = (status[old] == PENDING) & bool(store.recomputing)
        unfinished |= status == DAMAGED
    return status.ravel(), unfinished.ravel()


def _dropped(store: Store, spec: Spec) -> list[str]:
    """Return the variables that were to be added, that the spec has no use for, and that no cell has a value of."""
    if not all(run.get("saved") for run in store.open_runs):
        return []
    given = {out.name for out in spec.target.outputs}
    unknown = [name for name in store.adding if name not in given]
    names = [name for name in unknown if store.output(name).dtype not in ("int64", "bool") and store.absent(name).all()]
    if store.keeps_jobs and not spec.keep_jobs and (store.arrays["jobs_offset"][...] < 0).all():
        names += ["jobs_offset", "jobs_length"]
    return names


def _again(
    store: Store | None,
    spec: Spec,
    status: NDArray[np.int8],
    shape: tuple[int, ...],
    adding: Sequence[str],
    derived: Sequence[str],
    recompute: bool,
    known: KnownOutputs,
) -> NDArray[np.bool_]:
    """Return which cells are simulated again: all, or those that lack a metric or per-job results being added."""
    if store is None:
        return np.zeros(len(status), dtype=bool)
    if recompute:
        return np.isin(status, SETTLED)
    here = store.chunks.shape
    lacking = np.zeros(here, dtype=bool)
    for name in adding:
        absent = store.absent(name) if name in store.arrays else np.ones(here, dtype=bool)
        absent = absent & ~np.broadcast_to(known.cells(name), shape)[tuple(slice(0, n) for n in here)]
        lacking |= absent & (store.arrays["jobs_length"][...] == 0) if name in derived else absent
    if spec.keep_jobs:
        lacking |= store.arrays["jobs_offset"][...] < 0 if store.keeps_jobs else True
    again = np.zeros(shape, dtype=bool)
    again[tuple(slice(0, n) for n in here)] = lacking
    return again.ravel() & np.isin(status, WITH_RESULT)


def _unasked(
    store: Store, spec: Spec, status: NDArray[np.int8], known: KnownOutputs, names: Sequence[str]
) -> list[str]:
    """Return outputs that neither the spec nor what has become possible adds: the target has learnt them since.

    A function's outputs are all asked for: it returns them.
    """
    named = repr([spec.raw.get(key) for key in ("precision", "best", "refine", "better")])
    stored = stored_spec(store.attributes)
    if type(spec.target).impossible is Target.impossible or "metrics" in {*spec.raw, *stored}:
        return []
    settled = np.isin(status, WITH_RESULT)
    return [name for name in names if name not in named and bool((settled & ~known.cells(name).ravel()).any())]


class KnownOutputs:
    """What cells have of outputs that are being added, without a run.

    Attributes
    ----------
    kinds : a number for each cell, over the grid.
    answers : for each number the outputs that such a cell has, and what they are.
    """

    def __init__(self, kinds: NDArray[np.int32], answers: Sequence[Mapping[str, Known]]) -> None:
        """Take both."""
        self.kinds, self.answers = kinds, answers

    def cells(self, name: str) -> NDArray[np.bool_]:
        """Return which cells have an output, over the grid."""
        return np.asarray(np.array([name in answer for answer in self.answers])[self.kinds])

    def fill(self, store: Store) -> None:
        """Write them for the cells that have a result."""
        for name in sorted({name for answer in self.answers for name in answer}):
            here = self.cells(name)
            for chunk in range(store.chunks.num):
                region = store.chunks.region(chunk)
                block = store.read_block(name, chunk)
                empty = here[region].ravel() & np.isnan(block) & np.isin(store.read_block("status", chunk), WITH_RESULT)
                new = np.array(block)
                for number in np.unique(self.kinds[region].ravel()[empty]):
                    value, like = self.answers[number][name]
                    cells = empty & (self.kinds[region].ravel() == number)
                    new[cells] = value
                    if like:
                        new[cells & np.isnan(store.read_block(like, chunk))] = np.nan
                if not np.array_equal(new, block, equal_nan=True):
                    store.write_block(name, chunk, new)


def _known_outputs(store: Store | None, spec: Spec, grid: Grid, adding: Sequence[str]) -> KnownOutputs:
    """Return what cells have of the outputs that are being added, without a run."""
    if store is None or not adding or type(spec.target).impossible is Target.impossible:
        return KnownOutputs(np.zeros((1,) * len(grid.shape), dtype=np.int32), [{}])
    kinds = np.zeros(grid.shape, dtype=np.int32)
    answers: list[Mapping[str, Known]] = []
    for rows, found in grid.alike(spec.target.impossible):
        kinds[np.ix_(*rows)] = len(answers)
        usable = {name: known for name, known in found.items() if not known.like or known.like in store.metrics}
        answers.append({name: known for name, known in usable.items() if name in adding})
    return KnownOutputs(kinds, answers)


def check_store(spec: Spec, path: Path, recompute: bool = False) -> None:
    """Raise InputError if there is something at ``path`` that cannot take the spec's results; nothing is made."""
    if path.exists() or path.is_symlink():
        store = Store(path, mode="r")
        check_belongs(store, spec, spec.target.pins(values_of(spec)), recompute)
        _join_axes(store, spec)
        _join_outputs(store, spec, _dropped(store, spec))


def values_of(spec: Spec) -> dict[str, list[Any]]:
    """Return all distinct values of every parameter of a spec (those of formulas aside)."""
    values = {name: [value] for name, value in spec.fixed.items()}
    for axis in spec.axes:
        values.update({name: list(dict.fromkeys(column)) for name, column in axis.columns.items()})
    return values


def _outer(rows: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which cells have all their rows chosen, shape (size,)."""
    out = np.ones((), dtype=bool)
    for part in rows:
        out = np.multiply.outer(out, part)
    return out.ravel()


def _rank(chunks: Chunks, final: NDArray[np.bool_], status: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return a rank per cell: results first, those that are to get more behind the others; then what has failed.

    The rest goes chunk by chunk, so that no source is in a later chunk.
    """
    place = chunks.of_all().astype(np.int64) * len(final) + np.arange(len(final))
    level = 2 * np.isin(status, (DONE, TRUNCATED)) + final
    return place - level * (np.int64(chunks.num) * len(final))


def check_belongs(store: Store, spec: Spec, pins: Mapping[str, str], recompute: bool) -> None:
    """Raise InputError unless the results of ``spec`` may stand beside those in the store."""
    problems = []
    names = [axis.name for axis in spec.axes]
    if set(names) != set(store.dims):
        problems.append(
            f"the store has the axes {', '.join(store.dims)}, the spec {', '.join(names)}"
            "; other axes make another sweep: give it another store"
        )
    if store.attributes["target"] != spec.target.name:
        problems.append(f"the store has results of {store.attributes['target']}, the spec runs {spec.target.name}")
    if not problems:
        problems += _differences(store, spec)
    version = store.attributes["model_version"]
    if version != spec.target.version and not recompute:
        problems.append(f"{describe_version(version, spec.target)}; --recompute replaces all results")
    stored = store.text("pins")
    for name in sorted(set(stored) & set(pins)):
        if stored[name] != pins[name] and not recompute:
            problems.append(
                f"{name} has changed: the store has {stored[name]}, now it is {pins[name]};"
                " --recompute replaces all results"
            )
    if problems:
        raise InputError("\n".join(f"{store.path}: {text}" for text in problems))


def _known(store: Store, spec: Spec) -> dict[str, Any]:
    """Return the store's fixed parameters; one that it does not know had, and has, its default."""
    defaults = {name: p.default for name, p in spec.target.parameters.items() if name in spec.fixed}
    return {**defaults, **store.text("configuration")}


def _differences(store: Store, spec: Spec) -> list[str]:
    """Return what the spec fixes or computes otherwise than the store; --recompute does not help, since rows stay."""
    known = _known(store, spec)
    stored = {name: parse(text) for name, text in json.loads(store.attributes.get("formulas", "{}")).items()}
    pairs = [
        (f"fixed.{name}", known[name], spec.fixed[name])
        for name in spec.fixed
        if name in known and name not in stored and known[name] != spec.fixed[name]
    ]
    for name in sorted({*stored, *spec.formulas}):
        old, new = stored.get(name), spec.formulas.get(name)
        if old is None or new is None or not old.same_as(new):
            pairs.append((f"formulas.{name}", old and old.text, new and new.text))
    return [
        f"{where}: the store has {_shown(old)}, the spec {_shown(new)}"
        "; what is fixed or computed makes another sweep: give it another store"
        for where, old, new in pairs
    ]


def _shown(value: Any) -> str:
    return "none" if value is None else repr(value)


def _join_axes(store: Store, spec: Spec) -> tuple[list[Axis], list[NDArray[np.bool_]]]:
    """Return the store's axes with the spec's new rows behind, and which rows the spec asks for."""
    wanted = {axis.name: axis for axis in spec.axes}
    joined, requested = [], []
    problems: list[str] = []
    for old in store.axes():
        found: list[str] = []
        axis, asked = join_axis(old, wanted[old.name], found)
        problems += found[:_SHOWN] + ([f"axis {old.name}: {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else [])
        joined.append(axis)
        requested.append(asked)
    if problems:
        raise InputError("\n".join(f"{store.path}: {text}" for text in problems))
    return joined, requested


def join_axis(
    old: Axis, new: Axis, problems: list[str], old_place: str = "the store", new_place: str = "the spec"
) -> tuple[Axis, NDArray[np.bool_]]:
    """Return one axis with new rows behind, and which rows ``new`` has; what does not fit is added to ``problems``."""
    if set(old.columns) != set(new.columns):
        sets, other = (", ".join(axis.columns) or "nothing" for axis in (old, new))
        problems.append(f"axis {old.name} sets {sets} in {old_place}, {other} in {new_place}")
        return old, np.zeros(len(old), dtype=bool)
    optional = None in (*old.columns.get(old.name, ()), *new.columns.get(new.name, ()))
    # beside None numbers are text, and the text of 1 is another one among numbers with fractions
    names, new_names = (axis.columns[axis.name] if optional else axis.labels for axis in (old, new))
    row_of = {name: row for row, name in enumerate(names)}
    labels = list(old.labels)
    columns = {name: list(values) for name, values in old.columns.items()}
    asked = set()
    for row, label in enumerate(new.labels):
        at = row_of.get(new_names[row])
        asked.add(len(labels) if at is None else at)
        if at is None:
            labels.append(label)
            for name, values in columns.items():
                values.append(new.columns[name][row])
            continue
        problems += [
            f"axis {old.name}, row {label!r}: {name} is {values[at]!r} in {old_place},"
            f" {new.columns[name][row]!r} in {new_place}"
            for name, values in old.columns.items()
            if values[at] != new.columns[name][row]
        ]
    try:
        columns = {name: one_type(name, values) for name, values in columns.items()}
        labels = one_type("labels", label_values(columns[old.name]) if optional else labels)
        if len(set(labels)) < len(labels):
            raise InputError(f"two of them have one label; {NOTHING!r} is that of None")
    except InputError as error:
        problems.append(f"axis {old.name} cannot grow by these rows: {error}")
    return Axis(old.name, labels, columns), np.array([row in asked for row in range(len(labels))])


def _join_outputs(store: Store, spec: Spec, dropped: Sequence[str]) -> tuple[tuple[Output, ...], tuple[Output, ...]]:
    """Return the store's outputs, without dropped ones, with the spec's new ones behind, and the new ones."""
    known = {out.name: out for out in spec.target.outputs}
    stored = [name for name in store.metrics if name not in dropped]
    lost = [name for name in stored if name not in known]
    if lost:
        raise InputError(f"{store.path}: {describe_lost(lost, spec.target)}")
    new = tuple(out for out in spec.outputs if out.name not in stored)
    for name in stored:
        old, out = store.output(name), known[name]
        if old.along != out.along:
            raise InputError(
                f"{store.path}: {name} goes along {_along(old)} in the store, along {_along(out)} in the spec; give it"
                " another store"
            )
        if isinstance(spec.target, FunctionTarget) and old.unit and out.unit and old.unit != out.unit:
            raise InputError(
                f"{store.path}: {name} is in {old.unit} in the store, in {out.unit} in the spec; give it another store"
            )
        if old.dtype != out.dtype:
            raise InputError(
                f"{store.path}: {name} is {old.dtype} in the store, {out.dtype} in the spec; give it another store"
            )
    for name, dim in ((out.name, dim) for out in new for dim in out.along):
        if dim.name in store.arrays and (dim.name in store.dims or store.column(dim.name) != list(dim.labels or ())):
            raise InputError(f"{store.path}: the store has a coordinate {dim.name}, which is not that of {name}")
    return (*(known[name] for name in stored), *new), new


def _along(out: Output) -> str:
    shown = [
        f"{dim.name} ({', '.join(str(label) for label in dim.labels) if dim.labels is not None else dim.length})"
        for dim in out.along
    ]
    return " and ".join(shown) or "nothing"


def attributes(spec: Spec, prepared: Prepared, of_results: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the attributes of a new store; those of its results that have the name of one of its own get another."""
    tables = [{"name": axis.name, "parameters": list(axis.columns)} for axis in prepared.grid.axes]
    own = {
        "Conventions": "CF-1.11",
        "name": spec.name,
        "title": spec.title,
        "target": spec.target.name,
        "model_version": spec.target.version,
        "spec": spec.to_toml(),
        "configuration": to_json(prepared.grid.fixed),
        "formulas": json.dumps({name: formula.text for name, formula in spec.formulas.items()}),
        "axes": json.dumps(tables),
        "metrics": json.dumps([out.name for out in prepared.outputs]),
        "adding": "[]",
        "open_runs": "[]",
        "recomputing": "",
        "precision_rule": NEW_RULE,
        "pins": json.dumps(prepared.pins),
    }
    taken = {*own, *_LATER_ATTRIBUTES}
    others = {f"result_{name}" if name in taken else name: value for name, value in (of_results or {}).items()}
    return {**others, **own}
