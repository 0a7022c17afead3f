"""Boxes on a torus: their shapes, sizes, search order and nodes; and what the finders of the papers share.

A box is a row (a, b, c, x, y, z): shape a x b x c at base x, y, z. It wraps around in every axis; an axis that is
spanned whole has base 0 only, so a set of nodes is at most one box. Search order: shapes in lexicographic order, then
bases in lexicographic order; the first best wins. Node (x, y, z) of an X x Y x Z torus has the index (x*Y + y)*Z + z.

An occupancy is a uint8 array of shape (X, Y, Z), 1 = free.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from numpy.typing import ArrayLike, NDArray

from faultsweep.errors import InputError

Dims = tuple[int, int, int]
Box = NDArray[np.int64]
"""Boxes by shape and base, int64 (rows, 6): a, b, c, x, y, z."""
Boxes = NDArray[np.int64]
"""A list of maximal free boxes by falling size, int64 (rows, 7): size, a, b, c, x, y, z."""
Columns = NDArray[np.uint64]
"""Free nodes of a torus, uint64 (X * Y or more,): for each column along z a mask."""
Footprints = NDArray[np.uint64]
"""The AND of the columns of each footprint, uint64 (intervals of x, intervals of y)."""
FootprintRow = NDArray[np.uint64]
"""The footprints of one interval of x, uint64 (intervals of y,)."""
Extents = NDArray[np.int64]
"""For each interval of x the longest interval of y with a free node, int64 (intervals of x,)."""
Plane = NDArray[np.uint64]
"""The AND of the columns of one interval of x, uint64 (Y,)."""
Masks = NDArray[np.uint64]
"""The scratch ``masks`` of a ``FinderWork``, uint64 (3, X, Y)."""
Occupancy = NDArray[Any]
"""A torus, uint8 (int64 in the engine's block) (X, Y, Z): 1 = free."""


class FinderWork(NamedTuple):
    """Scratch of the finders for one torus (``finder_work``); a kernel may overwrite all but the shape table.

    N is the number of nodes. Rows ``shape_first[s]`` to ``shape_first[s + 1]`` of ``shapes`` are the shapes of size s.
    """

    shapes: NDArray[np.int64]  # (N, 3), by size, lexicographic within a size
    shape_first: NDArray[np.int64]  # (N + 2,)
    boxes: Box  # (N, 6), boxes that are found and not wanted
    runs: NDArray[np.int64]  # (3, X, Y, Z), the partition tables of POP: free nodes in a row along each axis
    projection: NDArray[np.int64]  # (X,), planes projected onto each other by POP
    slots: NDArray[np.int64]  # ((X + 1) * (Z + 1),), row in ``shapes`` of the wanted shape of a * (Z + 1) + c, or -1
    counts: NDArray[np.int64]  # (N + 1,), boxes found of each wanted shape
    found: NDArray[np.int64]  # (most boxes of one size,), boxes in the order in which POP meets them
    masks: NDArray[np.uint64]  # (3, X, Y), free nodes along z of columns, of intervals of x and of footprints


def check_dims(dims: Sequence[int]) -> Dims:
    """Return the sides of a torus as three ints >= 1, or raise InputError."""
    valid = len(dims) == 3 and all(isinstance(side, (int, np.integer)) and side >= 1 for side in dims)
    if not valid:
        raise InputError(f"torus: expected three sides of at least 1 node, got {tuple(dims)!r}")
    return int(dims[0]), int(dims[1]), int(dims[2])


def check_occupancy(free: ArrayLike) -> NDArray[np.uint8]:
    """Return an occupancy as a contiguous uint8 array of zeros and ones; raise InputError for anything else."""
    try:
        array = np.asarray(free)
    except ValueError:
        raise InputError("occupancy: expected an array of shape (X, Y, Z), got rows of different lengths") from None
    if array.ndim != 3 or array.size == 0:
        raise InputError(f"occupancy: expected an array of shape (X, Y, Z) without empty axes, got {array.shape}")
    if array.dtype.kind not in "biu" or (array.dtype.kind != "b" and ((array != 0) & (array != 1)).any()):
        raise InputError(f"occupancy: expected booleans or zeros and ones (1 = free), got {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.uint8)


def check_size(size: Any, nodes: int) -> int:
    """Return the size of a box as an int from 1 to the number of nodes, or raise InputError."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or not 1 <= size <= nodes:
        raise InputError(f"size: expected a whole number of nodes from 1 to {nodes}, got {size!r}")
    return int(size)


@lru_cache(maxsize=16)
def _shape_table(dims: Dims) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    # Grouping all shapes by their product gives for every size the triples of its divisors that fit.
    shapes = np.indices(dims).reshape(3, -1).T.astype(np.int64) + 1
    sizes = shapes.prod(axis=1)
    table = np.ascontiguousarray(shapes[np.argsort(sizes, kind="stable")])
    first = np.searchsorted(np.sort(sizes), np.arange(len(sizes) + 2)).astype(np.int64)
    table.flags.writeable = first.flags.writeable = False
    return table, first


def shape_table(dims: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the shapes of boxes of every size on a torus, in search order.

    Returns
    -------
    shapes : int64 (N, 3), a, b, c, by size and lexicographic within a size. Read-only.
    shape_first : int64 (N + 2,); rows ``shape_first[s]`` to ``shape_first[s + 1]`` have size s. Read-only.
    """
    return _shape_table(check_dims(dims))


def shapes_of_size(dims: Sequence[int], size: int) -> NDArray[np.int64]:
    """Return the shapes of boxes of a size, int64 (k, 3), in lexicographic order; k = 0 if the size is impossible."""
    shapes, first = shape_table(dims)
    size = check_size(size, len(shapes))
    return shapes[first[size] : first[size + 1]]


def possible_sizes(dims: Sequence[int]) -> NDArray[np.int64]:
    """Return the sizes that a box can have on a torus, int64, increasing."""
    return np.unique(shape_table(dims)[0].prod(axis=1))


def num_bases(dims: Sequence[int], shapes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many bases each shape has, int64 (k,); shapes: int64 (k, 3)."""
    sides = np.asarray(check_dims(dims), dtype=np.int64)
    return np.where(shapes < sides, sides, 1).prod(axis=1)


def num_boxes(dims: Sequence[int], size: int) -> int:
    """Return how many boxes of a size a torus has: as many can be free at most."""
    return int(num_bases(dims, shapes_of_size(dims, size)).sum())


def max_boxes(dims: Sequence[int]) -> int:
    """Return the largest ``num_boxes`` of any size."""
    shapes, first = shape_table(dims)
    totals = np.concatenate(([0], np.cumsum(num_bases(dims, shapes))))
    return int(np.diff(totals[first]).max())


def box_nodes(dims: Sequence[int], box: ArrayLike) -> NDArray[np.int64]:
    """Return the node indices of a box (a, b, c, x, y, z), int64 (size,), increasing."""
    X, Y, Z = check_dims(dims)
    a, b, c, x, y, z = _check_box((X, Y, Z), box)
    i, j, k = np.ix_((x + np.arange(a)) % X, (y + np.arange(b)) % Y, (z + np.arange(c)) % Z)
    return np.sort(((i * Y + j) * Z + k).ravel())


def _check_box(dims: Dims, box: ArrayLike) -> list[int]:
    values = np.asarray(box)
    valid = values.shape == (6,) and values.dtype.kind in "iu"
    if valid:
        shape, base, sides = values[:3], values[3:], np.asarray(dims)
        valid = bool((shape >= 1).all() and (shape <= sides).all() and (base >= 0).all())
        valid = valid and bool((base < np.where(shape < sides, sides, 1)).all())
    if not valid:
        raise InputError(
            f"box: expected a, b, c, x, y, z on a torus of sides {dims} (base 0 in a spanned axis), got {box!r}"
        )
    return [int(value) for value in values]


def finder_work(dims: Sequence[int]) -> FinderWork:
    """Return the scratch that the kernels of all finders need on a torus."""
    X, Y, Z = check_dims(dims)
    shapes, first = shape_table(dims)
    nodes = X * Y * Z
    return FinderWork(
        shapes=shapes.copy(),
        shape_first=first.copy(),
        boxes=np.zeros((nodes, 6), dtype=np.int64),
        runs=np.zeros((3, X, Y, Z), dtype=np.int64),
        projection=np.zeros(X, dtype=np.int64),
        slots=np.zeros((X + 1) * (Z + 1), dtype=np.int64),
        counts=np.zeros(nodes + 1, dtype=np.int64),
        found=np.zeros(max_boxes(dims), dtype=np.int64),
        masks=np.zeros((3, X, Y), dtype=np.uint64),
    )


@kernel
def write_box(out: NDArray[np.int64], row: int, a: int, b: int, c: int, x: int, y: int, z: int) -> None:
    """Write a box into a row of ``out``, int64 (rows, 6)."""
    out[row, 0] = a
    out[row, 1] = b
    out[row, 2] = c
    out[row, 3] = x
    out[row, 4] = y
    out[row, 5] = z
