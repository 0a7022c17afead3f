"""The labelled grid of a sweep: cells, their configurations, and which of them are the same simulation.

A cell is a flat index in C order over the axes. Nothing is kept per cell but numbers: configurations are made from the
axis tables when they are asked for.

Two cells are one simulation if their canonical forms are equal: every parameter that does nothing there is neutral.
Asking a million cells one by one which parameters are inert would take minutes. So ``alike`` asks one cell and notes
which parameters the answer looked at; all cells with the same values of these have the same answer, and they form a box
(a product of rows). Only as many questions are asked as there are different answers, about.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from faultsweep.sweeps.axes import LARGEST_EXACT, Axis
from faultsweep.sweeps.formulas import Formula
from faultsweep.sweeps.target import Target, has_default
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

Cells = NDArray[np.int64]
Keys = NDArray[np.uint64]
Answer = TypeVar("Answer")
_BLOCK = 1_000_000
"""Cells that are looked at together, where the grid may have far more."""
MOST_CELLS = 500_000_000
"""A grid has one number per cell in memory; beyond this it does not fit a common machine."""
MOST_LABELS = 20_000_000
"""Rows of one axis: their labels are in the memory of whoever opens the store."""


class Grid:
    """All cells of a sweep.

    Attributes
    ----------
    axes : one per dimension.
    shape, size : of the grid.
    fixed : parameters that do not vary.
    formulas : parameter -> formula.
    dims_of : varying parameter -> the axes (numbers) that it depends on.
    """

    def __init__(
        self,
        target: Target,
        axes: Sequence[Axis],
        fixed: Mapping[str, Any],
        formulas: Mapping[str, Formula] | None = None,
        exclude: Sequence[Mapping[str, Sequence[Any]]] = (),
        requested: Sequence[NDArray[np.bool_]] | None = None,
    ) -> None:
        """Lay out the grid, and evaluate the formulas on the combinations of rows that they depend on.

        ``requested`` tells for each axis which rows are asked for (all of them if it is not given). Where every cell of
        a combination is excluded or not asked for, a formula need not have a value: it is NaN there.
        """
        self.target = target
        self.axes = list(axes)
        self.shape = tuple(len(axis) for axis in axes)
        self.size = math.prod(self.shape)
        if self.size > MOST_CELLS:
            shape = " x ".join(str(length) for length in self.shape)
            raise InputError(f"the grid has {self.size:,} cells ({shape}), the limit is {MOST_CELLS:,}; sample instead")
        for axis in axes:
            if len(axis) > MOST_LABELS:
                raise InputError(f"axis {axis.name}: {len(axis):,} rows, the limit is {MOST_LABELS:,}; sample instead")
        self.fixed = dict(fixed)
        self.formulas = dict(formulas or {})
        self.exclude = [dict(rule) for rule in exclude]
        self.dims_of: dict[str, tuple[int, ...]] = {}
        self._tables: dict[str, NDArray[np.object_]] = {}
        for number, axis in enumerate(self.axes):
            for name, values in axis.columns.items():
                self.dims_of[name] = (number,)
                self._tables[name] = _objects(values, (len(values),))
        self._requested = requested
        for name, formula in self.formulas.items():
            self._evaluate(name, formula)

    def _evaluate(self, name: str, formula: Formula) -> None:
        """Give one formula its values over the axes that it depends on."""
        dims = tuple(sorted({dim for read in formula.names for dim in self.dims_of.get(read, ())}))
        shape = tuple(self.shape[dim] for dim in dims)
        table = np.empty(shape, dtype=object)
        wanted: NDArray[np.bool_] | None = None
        for rows in np.ndindex(shape):
            at = dict(zip(dims, rows, strict=True))
            try:
                value = formula({read: self._at(read, at) for read in formula.names})
                table[rows] = self.target.check(name, self.whole(name, value))
            except InputError as error:
                wanted = self._wanted(dims) if wanted is None else wanted
                if wanted[rows]:
                    where = ", ".join(f"{self.axes[dim].name}={self.axes[dim].labels[row]}" for dim, row in at.items())
                    raise InputError(f"formulas.{name}: {error}" + (f" (at {where})" if where else "")) from None
                table[rows] = math.nan
        if dims:
            self.dims_of[name], self._tables[name] = dims, self._one_kind(table)
        else:
            self.fixed[name] = table[()]

    @staticmethod
    def _one_kind(table: NDArray[np.object_]) -> NDArray[np.object_]:
        """Return a formula's values as all whole numbers or all floats, NaN aside."""
        values = table.ravel().tolist()
        if any(isinstance(value, float) and value == value for value in values):
            values = [float(value) for value in values]
        return _objects(values, table.shape)

    def _wanted(self, dims: Sequence[int]) -> NDArray[np.bool_]:
        """Return which combinations of rows of some axes have a cell that is asked for, by what is known so far."""
        known = {*self.dims_of, *(axis.name for axis in self.axes)}
        wanted = ~self._hit([rule for rule in self.exclude if set(rule) <= known])
        for dim, rows in enumerate(self._requested or ()):
            wanted &= self._spread(rows, (dim,))
        return np.asarray(wanted.any(axis=tuple(dim for dim in range(len(self.shape)) if dim not in dims)))

    def whole(self, name: str, value: float) -> float | int:
        """Return a formula's value as a whole number if it is one and the parameter's default is one."""
        is_whole = value % 1 == 0 and abs(value) <= LARGEST_EXACT
        return int(value) if is_whole and type(self.target.parameters[name].default) is int else value

    def _at(self, name: str, rows: Mapping[int, int]) -> Any:
        """Return a parameter's value at these rows of the axes."""
        if name in self.dims_of:
            return self._tables[name][tuple(rows[dim] for dim in self.dims_of[name])]
        return self.fixed[name]

    def values(self, name: str) -> NDArray[np.object_]:
        """Return a varying parameter's values over the axes ``dims_of[name]``."""
        return self._tables[name]

    def config(self, cell: int) -> dict[str, Any]:
        """Return the full configuration of one cell."""
        rows = {dim: int(row) for dim, row in enumerate(np.unravel_index(int(cell), self.shape))}
        return {**self.fixed, **{name: self._at(name, rows) for name in self.dims_of}}

    def columns(self, cells: Cells) -> dict[str, list[Any]]:
        """Return the varying parameters of many cells, one list per parameter."""
        rows = np.unravel_index(cells, self.shape)
        return {name: self._tables[name][tuple(rows[d] for d in dims)].tolist() for name, dims in self.dims_of.items()}

    def different(self, cells: Cells, names: Sequence[str]) -> tuple[Cells, NDArray[np.int64]]:
        """Return one of these cells for each different combination of rows that decides some parameters, and how many
        of them have it."""
        dims = sorted({dim for name in names for dim in self.dims_of.get(name, ())})
        if not dims:
            return cells[:1], np.array([len(cells)])
        lengths = [self.shape[dim] for dim in dims]
        first = np.zeros(math.prod(lengths), dtype=np.int64)
        counts = np.zeros(len(first), dtype=np.int64)
        for end in range(len(cells), 0, -_BLOCK):  # backwards: the first one stays
            block = cells[max(0, end - _BLOCK) : end][::-1]
            rows = np.unravel_index(block, self.shape)
            which = np.ravel_multi_index([rows[dim] for dim in dims], lengths)
            first[which] = block
            counts += np.bincount(which, minlength=len(first))
        here = np.flatnonzero(counts)
        return first[here], counts[here]

    def labels(self, cell: int) -> dict[str, Any]:
        """Return the labels of one cell, by axis."""
        rows = np.unravel_index(int(cell), self.shape)
        return {axis.name: axis.labels[row] for axis, row in zip(self.axes, rows, strict=True)}

    def excluded(self, check: bool = True) -> NDArray[np.bool_]:
        """Return which cells the exclude rules take out, shape (size,).

        Raises
        ------
        InputError
            With ``check``, a rule has a value that a formula never gives: it would take out nothing, without a word.
        """
        for rule in self.exclude if check else ():
            for name, wanted in rule.items():
                given = self._given(name)
                for value in wanted if given else ():
                    if value not in given:
                        near = min(given, key=lambda other: _distance(other, value))
                        raise InputError(
                            f"exclude: the formula of {name} never gives {value!r}; the nearest is {near!r}"
                        )
        return self._hit(self.exclude).ravel()

    def _given(self, name: str) -> list[Any]:
        """Return the values that a formula gives; none for what no formula gives."""
        if name not in self.formulas:
            return []
        table = self._tables[name].ravel() if name in self.dims_of else [self.fixed[name]]
        return [value for value in dict.fromkeys(table) if value == value]

    def _hit(self, rules: Sequence[Mapping[str, Sequence[Any]]]) -> NDArray[np.bool_]:
        """Return which cells some of the rules hit, over the grid."""
        out = np.zeros(self.shape, dtype=bool)
        for rule in rules:
            hit = np.ones((1,) * len(self.shape), dtype=bool)
            for name, wanted in rule.items():
                hit = hit & self._matches(name, wanted)
            out |= hit
        return out

    def _matches(self, name: str, wanted: Sequence[Any]) -> NDArray[np.bool_]:
        """Return where a parameter or label has one of these values, broadcastable over the grid."""
        for dim, axis in enumerate(self.axes):
            if axis.name == name and name not in self.dims_of:
                return self._spread(np.array([label in wanted for label in axis.labels]), (dim,))
        if name in self.fixed:  # a formula that reads nothing that varies
            return np.array(self.fixed[name] in wanted)
        table = self._tables[name]
        match = np.array([value in wanted for value in table.ravel()]).reshape(table.shape)
        return self._spread(match, self.dims_of[name])

    def _spread(self, values: NDArray[Any], dims: Sequence[int]) -> NDArray[Any]:
        """Return values over some axes with length 1 along all others."""
        return values.reshape([self.shape[dim] if dim in dims else 1 for dim in range(len(self.shape))])

    def keys(self) -> Keys:
        """Return a 128-bit key per cell, shape (2, size): equal if and only if the canonical forms are equal.

        A key is the sum of the hashes of all active parameters that differ from their default, so a parameter added to
        the target later changes no key. Journals name their results by it: it survives the growth of the grid.
        """
        keys = np.zeros((2, *self.shape), dtype=np.uint64)
        hashes = {name: self._hash_table(name) for name in self.dims_of}
        fixed = {name: np.array(self._hash(name, value), dtype=np.uint64) for name, value in self.fixed.items()}
        for rows, inert in self.alike(self.target.inert):
            block = np.zeros((2,) + (1,) * len(self.shape), dtype=np.uint64)
            for name, code in fixed.items():
                if name not in inert:
                    block = block + code.reshape((2,) + (1,) * len(self.shape))
            for name, dims in self.dims_of.items():
                if name not in inert:
                    part = np.stack([lane[np.ix_(*(rows[dim] for dim in dims))] for lane in hashes[name]])
                    shape = [len(rows[dim]) if dim in dims else 1 for dim in range(len(self.shape))]
                    block = block + part.reshape(2, *shape)
            if all(len(part) == length for part, length in zip(rows, self.shape, strict=True)):
                keys[:] = block
            else:
                for lane, part in zip(keys, block, strict=True):
                    lane[np.ix_(*rows)] = part
        return keys.reshape(2, -1)

    def _hash_table(self, name: str) -> NDArray[np.uint64]:
        table = self._tables[name]
        known: dict[Any, tuple[int, int]] = {}
        flat = np.empty((2, table.size), dtype=np.uint64)
        for number, value in enumerate(table.ravel()):
            if value not in known:
                known[value] = self._hash(name, value)
            flat[:, number] = known[value]
        return flat.reshape(2, *table.shape)

    def _hash(self, name: str, value: Any) -> tuple[int, int]:
        """Return the two hashes of one setting; 0 for a default, so that it does not count."""
        default = self.target.parameters[name].default
        if (
            has_default(self.target.parameters[name])
            and value == default
            and isinstance(value, bool) == isinstance(default, bool)
        ):
            return 0, 0
        if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_EXACT:
            value = int(value)  # an axis of whole numbers that grows by a fraction keeps its keys
        digest = hashlib.blake2b(f"{name}={type(value).__name__}:{value!r}".encode(), digest_size=16).digest()
        return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")

    def alike(self, ask: Callable[[Mapping[str, Any]], Answer]) -> Iterator[tuple[list[NDArray[np.int64]], Answer]]:
        """Yield disjoint boxes that fill the grid, each as rows per axis with what is the answer of all its cells.

        ask : answers for a configuration; what it reads of it is all that decides the answer.
        """
        codes = {name: _codes(table) for name, table in self._tables.items() if len(self.dims_of[name]) == 1}
        todo = [[np.arange(length) for length in self.shape]]
        while todo:
            box = todo.pop()
            first = {dim: int(rows[0]) for dim, rows in enumerate(box)}
            config = _Watched({**self.fixed, **{name: self._at(name, first) for name in self.dims_of}})
            answer = ask(config)
            alike = list(box)
            for name in self._roots(config.read):
                dim = self.dims_of[name][0]
                alike[dim] = alike[dim][codes[name][alike[dim]] == codes[name][first[dim]]]
            yield alike, answer
            for dim, rows in enumerate(box):
                rest = np.setdiff1d(rows, alike[dim], assume_unique=True)
                if len(rest):
                    todo.append([*alike[:dim], rest, *box[dim + 1 :]])

    def _roots(self, names: set[str]) -> set[str]:
        """Return the axis parameters behind these parameters: themselves, or what their formulas read."""
        roots: set[str] = set()
        for name in names:
            if name in self.formulas:
                roots |= self._roots(set(self.formulas[name].names))
            elif name in self.dims_of:
                roots.add(name)
        return roots


def first_cell(grid: Grid) -> int:
    """Return the first cell of a grid that is not excluded."""
    cells = np.flatnonzero(~grid.excluded())
    if not len(cells):
        raise InputError("exclude: the rules take out every cell")
    return int(cells[0])


class _Watched(Mapping[str, Any]):
    """A configuration that notes which of its parameters were looked at."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_ = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)


def find_rows(
    axes: Sequence[Axis],
    select: Mapping[str, Any],
    plain_name: Callable[[str, Any], Any] = lambda parameter, value: value,
) -> tuple[int, ...]:
    """Return the rows of the one cell that ``select`` names by labels or parameter values, as values or as text.

    The first replicate is meant if none is named.

    plain_name : of a parameter and a value, which may be another name of the one that the axes have.

    Raises
    ------
    InputError
        An unknown name or value, or more than one cell left; both say what is valid.
    """
    if not isinstance(select, Mapping):
        raise InputError(f"--select: expected names with values, got {select!r}")
    left = [list(range(len(axis))) for axis in axes]
    for name, given in select.items():
        dim, values = _selectable(axes, name)
        wanted = plain_name(name, given)
        own = axes[dim].columns.get(name, values)  # where None is among them, labels are text
        left[dim] = [row for row in left[dim] if _same(values[row], wanted) or _same(own[row], wanted)]
        if not left[dim]:
            shown = dict.fromkeys(str(value) for value in values)
            raise unknown_name(f"value of {name}", str(wanted), shown, where="--select")
    if len(left[-1]) == len(axes[-1]):
        left[-1] = left[-1][:1]
    for axis, rows in zip(axes, left, strict=True):
        if len(rows) != 1:
            some = ", ".join(str(axis.labels[row]) for row in rows[:10])
            raise InputError(f"--select: {axis.name} has {len(rows)} values ({some}); name one")
    return tuple(rows[0] for rows in left)


def _selectable(axes: Sequence[Axis], name: str) -> tuple[int, Sequence[Any]]:
    for dim, axis in enumerate(axes):
        if axis.name == name:
            return dim, axis.labels
        if name in axis.columns:
            return dim, axis.columns[name]
    valid = {name for axis in axes for name in (axis.name, *axis.columns)}
    raise unknown_name("axis or varied parameter", name, valid, where="--select")


def _objects(values: Sequence[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    table = np.empty(len(values), dtype=object)
    table[:] = values
    return table.reshape(shape)


def _distance(value: Any, wanted: Any) -> float:
    is_number = isinstance(wanted, int | float) and not isinstance(wanted, bool)
    return abs(value - wanted) if is_number else math.inf


def _codes(table: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return a number per value, equal for equal values."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in table], dtype=np.int64)


def _same(value: Any, wanted: Any) -> bool:
    """Tell whether a value is what was asked for, as a value or as text ("1.20" is 1.2)."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).lower() == str(wanted).lower()
    if value == wanted or str(value) == str(wanted):
        return True
    try:
        return not isinstance(value, str) and float(value) == float(wanted)
    except (TypeError, ValueError):
        return False


def sources(keys: Keys, skip: NDArray[np.bool_], order: NDArray[np.int64]) -> Cells:
    """Return for each cell the cell whose result it takes, -1 for cells to skip; shape (size,).

    Of the cells with one key, the first in ``order`` (a rank per cell, all different) is simulated.
    """
    cells = np.flatnonzero(~skip)
    first = keys[0][cells]
    ranked = np.lexsort((order[cells], first))
    cells, first = cells[ranked], first[ranked]  # each is 80 MB for 10^7 cells
    del ranked
    starts = np.ones(len(cells), dtype=bool)
    starts[1:] = first[1:] != first[:-1]
    del first
    leaders = cells[starts][np.cumsum(starts, dtype=np.int32) - 1] if len(cells) else cells
    if (keys[1][cells] != keys[1][leaders]).any():
        raise AssertionError("two canonical forms share a 64-bit key")  # chance 3e-8 for 10^6 cells
    out = np.full(len(skip), -1, dtype=np.int64)
    out[cells] = leaders
    return out


def parse_select(text: str) -> dict[str, str]:
    """Return "scheduler=backfill,load_scale=1.2" as a mapping.

    A comma ends a value where a name and = follow it, so a label such as "fcfs, 0" may hold one; what may be mistaken
    stands in quotes: ``policy="a, b=2"``.
    """
    select: dict[str, str] = {}
    rest = text.strip().strip(",")
    while rest.strip():
        found = re.match(
            r"""\s*([^=,"']+?)\s*=\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:,(?=\s*[^=,"']+=)|$)""", rest, re.DOTALL
        )
        if found is None:
            raise InputError(f"--select: expected name=value,name=value, got {rest.strip()!r}")
        if found[1] in select:
            raise InputError(f"--select: {found[1]} stands twice; name one value")
        select[found[1]] = next((value for value in found.groups()[1:] if value is not None), "")
        rest = rest[found.end() :]
    return select
