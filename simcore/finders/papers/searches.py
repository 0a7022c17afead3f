"""The finders of the papers in the engine: searches of an occupancy, where our own finder keeps lists of boxes.

A run with one of them asks it for what krevat2003 and oliner2004 ask a finder for: all free boxes of a size, and the
largest box that stays free beside each. It places every job where a run with our own finder does, and takes as long as
the finder takes: that is what it is for.

The engine is compiled without them. It calls them through a pointer (``ask``), so they are compiled when a run first
needs one, and nobody else waits for that. All they know is a block of int64 in the state, ``s.boxes[SEARCH]``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import callback, counted, deferred, is_interpreted, kernel
from faultsweep.simcore.engine.state import SEARCH, State
from faultsweep.simcore.finders.boxes import Box, Columns, Dims, FinderWork, Occupancy, max_boxes, shape_table
from faultsweep.simcore.finders.names import FINDERS
from faultsweep.simcore.finders.papers import divisor, exhaustive, pop
from numpy.typing import NDArray

COLUMNS, EXHAUSTIVE, POP, _DIVISOR = range(len(FINDERS))

# what a finder is asked, and its arguments; a box is packed as in the engine
FIND = 0  # table, size: look for the free boxes of a size; their number
FOUND = 1  # number: one of the boxes found last
LIST = 2  # table, list: take a table over as a listed occupancy; its largest free box, 0 if there is none
TAKE = 3  # list, box: take a box out of a listed occupancy; its largest free box
BESIDE = 4  # list, box: the size of the largest free box beside a box
ANY = 5  # list, size: whether there is a free box of a size

# the block: a header, then arrays
_TOTAL, _CODE, _X, _Y, _Z, _MOST = range(6)
_HEADER = 8
_TABLES = 0  # grids 0 and 1: the occupancies in which boxes are sought, 1 = free
_LISTED = 2  # grids 2 to 4: the occupancies of which the largest free box is listed
_RUNS = 5  # grids 5 to 7: scratch
_GRIDS = 8
_BOXES = 3  # lists of boxes: those found, the largest, scratch
_LINES = 4  # scratch


def make_block(finder: str, dims: Dims) -> NDArray[np.int64]:
    """Return the block of a finder for a torus of X x Y x Z nodes, all of them free in every occupancy."""
    X, Y, Z = dims
    shapes, first = shape_table(dims)
    most = max(max_boxes(dims), X * Y * Z + 1, (X + 1) * (Z + 1))
    scratch = np.ones(_GRIDS * X * Y * Z + (6 * _BOXES + _LINES) * most, np.int64)
    header = np.zeros(_HEADER, np.int64)
    block = np.concatenate([header, scratch, shapes.ravel(), first])
    block[: _MOST + 1] = len(block), list(FINDERS).index(finder), X, Y, Z, most
    return block


def _answer(block: NDArray[np.int64], question: int, a: int, b: int) -> int:
    """Answer a question of the engine. block: int64 (total,), changed."""
    X, Y, Z, most = block[_X], block[_Y], block[_Z], block[_MOST]
    nodes = X * Y * Z
    end = _HEADER + _GRIDS * nodes
    grids = block[_HEADER:end].reshape((_GRIDS, X, Y, Z))
    boxes = block[end : end + 6 * _BOXES * most].reshape((_BOXES, most, 6))
    end += 6 * _BOXES * most
    lines = block[end : end + _LINES * most].reshape((_LINES, most))
    end += _LINES * most
    shapes, first = block[end : end + 3 * nodes].reshape((nodes, 3)), block[end + 3 * nodes :]
    masks = block[:1].view(np.uint64).reshape((1, 1, 1))  # of the finder that does not search
    runs = grids[_RUNS : _RUNS + 3]
    work = FinderWork(shapes, first, boxes[2], runs, lines[0], lines[1], lines[2], lines[3], masks)
    return _ask(block[_CODE], grids, boxes, work, question, a, b)


@kernel
def _ask(
    code: int, grids: NDArray[np.int64], boxes: NDArray[np.int64], work: FinderWork, question: int, a: int, b: int
) -> int:
    """Answer a question: grids int64 (_GRIDS, X, Y, Z), boxes int64 (_BOXES, most, 6), all of them changed."""
    if question == FIND:
        return _search_boxes(code, grids[_TABLES + a], b, work, boxes[0])
    if question == FOUND:
        return _pack(boxes[0], a)
    listed = grids[_LISTED + a]
    if question == ANY:
        return _search_boxes(code, listed, b, work, boxes[0])
    if question == BESIDE:
        _mark(listed, b, 0)
        size = _search_largest(code, listed, work, boxes[1])
        _mark(listed, b, 1)
        return size
    if question == LIST:
        _copy(grids[_TABLES + b], listed)
    else:
        _mark(listed, b, 0)
    return _pack(boxes[1], 0) if _search_largest(code, listed, work, boxes[1]) > 0 else 0


@kernel
def _search_boxes(code: int, free: Occupancy, size: int, work: FinderWork, out: Box) -> int:
    """Write all free boxes of a size of an occupancy into ``out``, in search order; return their number."""
    if code == EXHAUSTIVE:
        return exhaustive.free_boxes_kernel(free, size, work, out)
    if code == POP:
        return pop.free_boxes_kernel(free, size, work, out)
    return divisor.free_boxes_kernel(free, size, work, out)


@kernel
def _search_largest(code: int, free: Occupancy, work: FinderWork, out: Box) -> int:
    """Write the first largest free box of an occupancy into ``out[0]``; return its size, 0 if there is none."""
    if code == EXHAUSTIVE:
        return exhaustive.largest_free_box_kernel(free, work, out)
    if code == POP:
        return pop.largest_free_box_kernel(free, work, out)
    return divisor.largest_free_box_kernel(free, work, out)


@kernel
def _pack(boxes: Box, row: int) -> int:
    """Return a box (a, b, c, x, y, z) as one int64, as ``placement.pack_box`` does."""
    packed = boxes[row, 0]
    for field in range(1, 6):
        packed = packed << 10 | boxes[row, field]
    return packed


@kernel
def _copy(source: Occupancy, target: Occupancy) -> None:
    X, Y, Z = source.shape
    for x in range(X):
        for y in range(Y):
            for z in range(Z):
                target[x, y, z] = source[x, y, z]


@kernel
def _mark(free: Occupancy, box: int, value: int) -> None:
    """Set the nodes of a packed box of an occupancy."""
    X, Y, Z = free.shape
    a, b, c, x, y, z = (
        (box >> 50) & 1023,
        (box >> 40) & 1023,
        (box >> 30) & 1023,
        (box >> 20) & 1023,
        (box >> 10) & 1023,
        box & 1023,
    )
    for i in range(x, x + a):
        for j in range(y, y + b):
            for k in range(z, z + c):
                free[i - X if i >= X else i, j - Y if j >= Y else j, k - Z if k >= Z else k] = value


@kernel
def set_occupancy(s: State, table: int, columns: Columns) -> None:
    """Make a table of the finder that of masks of free nodes, uint64 (X * Y or more,)."""
    block = s.boxes[SEARCH]  # (rows, 7), one number after the other
    X, Y, Z = block[0, _X], block[0, _Y], block[0, _Z]
    at = _HEADER + (_TABLES + table) * X * Y * Z
    for column in range(X * Y):
        mask = columns[column]
        for z in range(Z):
            block[at // 7, at % 7] = 1 if (mask >> np.uint64(z)) & ONE != ZERO else 0
            at += 1


if is_interpreted():

    def ask(s: State, question: int, a: int, b: int) -> int:
        """Ask the finder of a run a question; a and b are its arguments."""
        return _answer(s.boxes[SEARCH].reshape(-1), question, a, b)

    def finder_address() -> int:
        """Return where the compiled finders are."""
        return 0

else:
    _call = deferred("make_caller")
    _array_at = deferred("array_of_pointers")
    _compiled_answer = counted(_answer)

    @kernel
    def ask(s: State, question: int, a: int, b: int) -> int:
        """Ask the finder of a run a question; a and b are its arguments."""
        return _call(s.finder_call, s.finder_data, question, a, b)

    def _answer_at(data: Any, question: int, a: int, b: int) -> int:
        return _compiled_answer(_array_at(data, (data[0],)), question, a, b)

    @lru_cache
    def _callback() -> Any:
        """Compile the finders, or load them from the cache; the result keeps them in memory."""
        return callback(_answer_at)

    def finder_address() -> int:
        """Return where the compiled finders are."""
        return int(_callback().address)
