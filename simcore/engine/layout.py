"""How the state of a run is declared: a class with a name and a type for each thing that a run knows.

A field of type ``int`` or ``float`` is a scalar, one of ``Annotated[array, Row(table)]`` a row of a table, one of
``Annotated[array, Whole(axes)]`` an array of its own, and one of another declared class a part, as ``s.job``. From the
declaration come the layout in memory, the types of compiled kernels (``handle.py``), the class that host code and
kernels without the compiler use, and what the type checker knows.

Scalars are elements of two vectors and rows lie in few matrices: an address for each field was measured to be up to
1.18 times slower. Every table has all its rows, or a row that is absent would be read past the end of the table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]

Words = tuple[int, ...]
Arrays = dict[str, NDArray[Any]]
Shapes = dict[str, int | tuple[int, ...]]
_Places = dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]
"""Of each array its type, its shape and its place in the block."""
_Plan = tuple[_Places, Ints, int]
"""The places of the arrays, all their words, and the bytes of the block."""
WORDS = 4  # by which a kernel finds an array: its address, then up to three sides
_LINE = 64  # bytes of a line of the processor's cache
_PAGE = 512  # elements that are copied, or known to be zeros, together
GIVEN = "given"
"""With this the names of tables begin that no run changes."""

State = TypeVar("State", bound="Declared")
SCALARS: dict[type, tuple[str, Any]] = {float: ("f", np.float64), int: ("i", np.int64)}

np.empty(31 << 20, np.uint8)
"""A block that is freed at once, and takes no memory since nobody touches it. By its size glibc learns to keep what a
run frees for the next one, which would get it anew, page by page: a fifth of the time of a short run."""


@dataclass(frozen=True)
class Row:
    """Marks a field that is a row of a table."""

    table: str


@dataclass(frozen=True)
class Whole:
    """Marks a field that is an array with this number of axes."""

    axes: int


@dataclass(frozen=True)
class Place:
    """Where a field lies: row (of a scalar: position) -1 is the whole table."""

    table: str
    row: int
    is_scalar: bool = False


class Layout:
    """Where the fields of a declared class lie.

    Attributes
    ----------
    places : the place of each field.
    parts : the declared class of each part.
    tables : data type and number of axes of each array, those of its parts among them.
    """

    def __init__(self, hints: dict[str, Any]) -> None:
        """Lay out fields in the order of their declaration."""
        self.places: dict[str, Place] = {}
        self.parts: dict[str, type[Declared]] = {}
        self.tables: dict[str, tuple[np.dtype[Any], int]] = {"f": (np.dtype(np.float64), 1)}
        self.tables["i"] = (np.dtype(np.int64), 1)
        self._rows: Counter[str] = Counter()
        self._last_plan: tuple[Shapes, _Plan] | None = None
        for name, hint in hints.items():
            self._add(name, hint)

    def _add(self, name: str, hint: Any) -> None:
        if hint in SCALARS:
            table = SCALARS[hint][0]
            self.places[name] = self._next(table, is_scalar=True)
        elif isinstance(hint, type) and issubclass(hint, Declared):
            self.parts[name] = hint
            self._rows += hint.layout._rows
            self.tables |= {table: kind for table, kind in hint.layout.tables.items() if table not in "fi"}
        else:
            array, mark = get_args(hint)
            dtype = np.dtype(get_args(get_args(array)[1])[0])
            if isinstance(mark, Row):
                self.places[name] = self._next(mark.table)
                self.tables[mark.table] = (dtype, 2)
            else:
                self.places[name] = Place(name, -1)
                self.tables[name] = (dtype, mark.axes)

    def _next(self, table: str, is_scalar: bool = False) -> Place:
        self._rows[table] += 1
        return Place(table, self._rows[table] - 1, is_scalar)

    def rows(self, table: str) -> int:
        """Return how many fields lie in a table."""
        return self._rows[table]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The place of each table among the words of all."""
        return {name: number for number, name in enumerate(self.tables)}

    @cached_property
    def rows_of_tables(self) -> dict[str, int]:
        """How many fields lie in each table, once all are declared."""
        return {name: self.rows(name) for name in self.tables}

    def lay_out(self, shapes: Shapes, make: Callable[..., NDArray[Any]] = np.zeros) -> tuple[LaidOut, Ints, Ints]:
        """Return the arrays, the words by which kernels find them, int64 (tables, 4), and the block that they lie in.

        shapes : the length of the rows of a table, or the shape of an array. make : ``np.zeros`` or ``np.empty``.
        """
        planned = self._last_plan  # many runs of a sweep have states of the same shapes; other threads may have others
        if planned is None or shapes != planned[0]:
            planned = self._last_plan = dict(shapes), self._plan_of(shapes)
        places, words, size = planned[1]
        memory = make(size + _LINE, np.uint8)
        address = memory.ctypes.data
        first = -address % _LINE
        block = memory[first : first + size]
        words = words.copy()
        words[:, 0] += address + first
        return LaidOut(block, places), words, block.view(np.int64)

    def _plan_of(self, shapes: Shapes) -> _Plan:
        places: _Places = {}
        words, size = [], 0
        for name, (dtype, axes) in self.tables.items():
            rows = self.rows_of_tables[name]
            wanted = rows if axes == 1 and name in "fi" else shapes[name]
            shape = wanted if isinstance(wanted, tuple) else (rows, wanted) if axes == 2 else (wanted,)
            places[name] = dtype, shape, size
            words.append(_words_of(size, shape))
            size += -(-math.prod(shape) * dtype.itemsize // _LINE) * _LINE
        return places, np.array(words, np.int64), size

    def words_of(self, name: str, array: NDArray[Any]) -> Words:
        """Return the words of an array that was not made with the state; raise TypeError if it is not as declared."""
        (dtype, axes), rows = self.tables[name], self.rows_of_tables[name]
        if (array.dtype, array.ndim) != (dtype, axes) or not array.flags.c_contiguous:
            raise TypeError(f"the state's {name} is {array.dtype} with {array.ndim} axes, expected {dtype} with {axes}")
        if rows and len(array) != rows:
            raise TypeError(f"the state's {name} has {len(array)} rows, expected {rows}")
        return _words_of(array.ctypes.data, array.shape)


def _words_of(address: int, shape: tuple[int, ...]) -> Words:
    """Return the words by which kernels find an array."""
    return (address, *shape, *[0] * (WORDS - 1 - len(shape)))


class LaidOut(Arrays):
    """Arrays by name; those that lie in a block are made when they are asked for.

    A run uses few of them outside of kernels, which need none, and to make all takes 0.1 ms of a busy machine. Whoever
    goes through it finds those that have been made.
    """

    def __init__(self, block: NDArray[np.uint8], places: _Places, arrays: Arrays | None = None) -> None:
        """Have arrays in a block, and others."""
        super().__init__(arrays or {})
        self.block, self._places = block, places

    def __missing__(self, name: str) -> NDArray[Any]:
        """Make an array of the block."""
        dtype, shape, at = self._places[name]
        array = self[name] = np.ndarray(shape, dtype, self.block, at)
        return array

    def with_arrays(self, arrays: Arrays) -> LaidOut:
        """Return the same with other arrays in place of some."""
        return LaidOut(self.block, self._places, {**self, **arrays})


class Declared:
    """A declared class: its fields are attributes, which read and write the arrays."""

    layout: ClassVar[Layout]

    def __init_subclass__(cls) -> None:
        """Lay out the fields."""
        hints = get_type_hints(cls, include_extras=True)
        hints = {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
        cls.layout = Layout(hints)
        for name, place in cls.layout.places.items():
            setattr(cls, name, _scalar(place) if place.is_scalar else _array(place))
        for name, part in cls.layout.parts.items():
            setattr(cls, name, _part(part))
            getattr(cls, name).__set_name__(cls, name)

    def __init__(self, arrays: LaidOut, words: Ints) -> None:
        """Take the arrays of the layout, and the words by which kernels find them, which must stay alive as long as
        those run: int64 (tables, 4)."""
        self._arrays, self.words = arrays, words

    @classmethod
    def zeros(cls, **shapes: int | tuple[int, ...]) -> Self:
        """Return a state of zeros; ``shapes`` has the length of the rows of a table, or the shape of an array."""
        return cls(*cls.layout.lay_out(shapes)[:2])

    @property
    def arrays(self) -> Arrays:
        """All arrays by name, in the order of the layout."""
        return {name: self._arrays[name] for name in self.layout.tables}

    @property
    def own_bytes(self) -> int:
        """The memory of its arrays, without those that were put in place of others."""
        return self._arrays.block.nbytes

    def with_arrays(self, **arrays: NDArray[Any]) -> Self:
        """Return the same with other arrays in place of some; it shares all others."""
        words = self.words.copy()
        for name, array in arrays.items():
            words[self.layout.numbers[name]] = self.layout.words_of(name, array)
        return type(self)(self._arrays.with_arrays(arrays), words)


class Template(Generic[State]):
    """A state of which there are to be copies, each of which is worked on; spans of zeros are not kept."""

    def __init__(self, state: State) -> None:
        """Keep what a state has now; all copies will have the same tables of what no run changes."""
        self._kind, layout = type(state), type(state).layout
        all_arrays = state.arrays
        self._shared = {name: array.copy() for name, array in all_arrays.items() if name.startswith(GIVEN)}
        self._words = [(layout.numbers[name], layout.words_of(name, array)) for name, array in self._shared.items()]
        for array in self._shared.values():
            array.flags.writeable = False
        self._shapes: Shapes = {name: array.shape for name, array in all_arrays.items()}
        self._shapes |= dict.fromkeys(self._shared, 0)
        arrays, _, block = layout.lay_out(self._shapes)
        for name, array in all_arrays.items():
            if name not in self._shared:
                arrays[name][...] = array
        self._spans = [(span, block[span].copy() if is_used else 0) for span, is_used in _spans(block)]

    def copy(self) -> State:
        """Return a copy."""
        arrays, words, block = self._kind.layout.lay_out(self._shapes, np.empty)
        for span, values in self._spans:
            block[span] = values
        arrays |= self._shared
        for number, found in self._words:
            words[number] = found
        return self._kind(arrays, words)


def _spans(block: Ints) -> list[tuple[slice, bool]]:
    """Return the spans of a block in turn, and of each whether it is more than zeros."""
    pages = np.arange(0, len(block), _PAGE)
    used = np.logical_or.reduceat(block != 0, pages)
    begins = [0, *(np.flatnonzero(np.diff(used)) + 1).tolist()]
    ends = [*begins[1:], len(pages)]
    return [(slice(_PAGE * begin, _PAGE * end), bool(used[begin])) for begin, end in zip(begins, ends, strict=True)]


def _part(part: type[Declared]) -> cached_property[Declared]:
    return cached_property(lambda self: part(self._arrays, self.words))


def _scalar(place: Place) -> property:
    table, row = place.table, place.row

    def read(self: Declared) -> Any:
        return self._arrays[table][row]

    def write(self: Declared, value: Any) -> None:
        self._arrays[table][row] = value

    return property(read, write)


def _array(place: Place) -> property:
    table, row = place.table, place.row

    def read(self: Declared) -> Any:
        return self._arrays[table] if row < 0 else self._arrays[table][row]

    return property(read)


Trace = Annotated[Floats, Whole(1)]
FloatVector = Annotated[Floats, Whole(1)]
IntVector = Annotated[Ints, Whole(1)]
BitVector = Annotated[Bits, Whole(1)]
FloatTable = Annotated[Floats, Whole(2)]
IntTable = Annotated[Ints, Whole(2)]
BitTable = Annotated[Bits, Whole(2)]
HalfIntTable = Annotated[NDArray[np.int32], Whole(2)]
IntTables = Annotated[Ints, Whole(3)]
FloatTables = Annotated[Floats, Whole(3)]
BitTables = Annotated[Bits, Whole(3)]
FloatOfJob = Annotated[Floats, Row("job_f")]
IntOfJob = Annotated[Ints, Row("job_i")]
GivenFloat = Annotated[Floats, Row(f"{GIVEN}_times")]
GivenInt = Annotated[Ints, Row(f"{GIVEN}_jobs")]
AgendaRow = Annotated[Floats, Row("agenda")]
ListRow = Annotated[Ints, Row("lists")]
FailureRow = Annotated[Floats, Row("failures")]
