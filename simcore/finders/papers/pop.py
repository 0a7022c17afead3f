"""Projection of partitions, POP: the finder of krevat2003 (ch. 3), O(M^5) on an M x M x M torus.

Partition tables hold for every node how many free nodes follow in a row along each axis. From a base (i, j, k),
planes z = k, k + 1, ... are projected onto each other: the projection holds for each x the least number of free nodes
in a row along y over these planes. In it, a running minimum over x = i, i + 1, ... times the length in x and the
number of planes is the size of the largest free box with this length and these planes. So O(M) planes of O(M) work
are looked at from M^3 bases. The tables along x and z end the two loops at the first taken node.

The paper gives the largest size alone. Every free box of a size lies in such a largest one at its own base, which
yields all boxes of the size in O(M^5) too; they are met base by base and sorted into search order by counting.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import entry_kernel, kernel
from faultsweep.simcore.finders.boxes import Box, FinderWork, Occupancy, write_box
from numpy.typing import NDArray


@entry_kernel
def largest_free_box_kernel(free: Occupancy, work: FinderWork, out: Box) -> int:
    """Write the first largest free box into out[0] and return its size; 0, and out untouched, if no node is free.

    out: one row or more.
    """
    X, Y, Z = free.shape
    fill_partition_tables(free, work.runs)
    best = 0
    for x in range(X):
        for y in range(Y):
            for z in range(Z):
                best = _improve_at_base(work, x, y, z, best, out)
    return best


@entry_kernel
def free_boxes_kernel(free: Occupancy, size: int, work: FinderWork, out: Box) -> int:
    """Write all free boxes of ``size`` nodes into ``out`` in search order and return their number.

    out: ``num_boxes`` rows or more.
    """
    X, Y, Z = free.shape
    fill_partition_tables(free, work.runs)
    for slot in range((X + 1) * (Z + 1)):
        work.slots[slot] = -1
    for row in range(work.shape_first[size], work.shape_first[size + 1]):
        work.slots[work.shapes[row, 0] * (Z + 1) + work.shapes[row, 2]] = row
    num_found = 0
    for x in range(X):
        for y in range(Y):
            for z in range(Z):
                num_found = _find_at_base(work, x, y, z, num_found)
    _sort_found(work, size, num_found, Y, Z, out)
    return num_found


@entry_kernel
def fill_partition_tables(free: Occupancy, runs: NDArray[np.int64]) -> None:
    """Fill the partition tables: from each node, how many nodes in a row are free along x, y and z, around the ring.

    free: uint8 (X, Y, Z). runs: int64 (3, X, Y, Z), overwritten; a ring without a taken node counts its side.
    """
    X, Y, Z = free.shape
    # Going down a row twice, the counter has come around the ring when the second pass overwrites the first.
    for y in range(Y):
        for z in range(Z):
            run = 0
            for at in range(2 * X - 1, -1, -1):
                x = at - X if at >= X else at
                run = min(run + 1, X) if free[x, y, z] else 0
                runs[0, x, y, z] = run
    for x in range(X):
        for z in range(Z):
            run = 0
            for at in range(2 * Y - 1, -1, -1):
                y = at - Y if at >= Y else at
                run = min(run + 1, Y) if free[x, y, z] else 0
                runs[1, x, y, z] = run
    for x in range(X):
        for y in range(Y):
            run = 0
            for at in range(2 * Z - 1, -1, -1):
                z = at - Z if at >= Z else at
                run = min(run + 1, Z) if free[x, y, z] else 0
                runs[2, x, y, z] = run


@kernel
def _project(work: FinderWork, x: int, y: int, z: int, planes: int, a: int) -> int:
    """Project one more node onto the planes before and return how many nodes in a row along y are free in all of them.

    x, y: the base. z: the plane. planes: how many were projected before. a: distance of the node from the base along x.
    """
    X = work.runs.shape[1]
    run = work.runs[1, x + a if x + a < X else x + a - X, y, z]
    if planes > 0:
        run = min(run, work.projection[a])
    work.projection[a] = run
    return run


@kernel
def _improve_at_base(work: FinderWork, x: int, y: int, z: int, best: int, out: Box) -> int:
    """Write the largest box at one base into out[0] if it is better than ``best``; return the new best size."""
    _, X, Y, Z = work.runs.shape
    widest = X
    for c in range(1, work.runs[2, x, y, z] + 1):
        plane = z + c - 1 if z + c - 1 < Z else z + c - 1 - Z
        widest = min(widest, work.runs[0, x, y, plane])
        b = Y
        for a in range(1, widest + 1):
            b = min(b, _project(work, x, y, plane, c - 1, a - 1))
            size = a * b * c
            if size < best or not _is_base(a, b, c, x, y, z, X, Y, Z):
                continue
            if size > best or _precedes(a, b, c, out):
                best = size
                write_box(out, 0, a, b, c, x, y, z)
    return best


@kernel
def _find_at_base(work: FinderWork, x: int, y: int, z: int, num_found: int) -> int:
    """Append the boxes of the wanted shapes at one base to ``work.found``; return the new number of boxes."""
    _, X, Y, Z = work.runs.shape
    widest = X
    for c in range(1, work.runs[2, x, y, z] + 1):
        plane = z + c - 1 if z + c - 1 < Z else z + c - 1 - Z
        widest = min(widest, work.runs[0, x, y, plane])
        longest = Y
        for a in range(1, widest + 1):
            longest = min(longest, _project(work, x, y, plane, c - 1, a - 1))
            row = work.slots[a * (Z + 1) + c]
            if row >= 0 and work.shapes[row, 1] <= longest and _is_base(a, work.shapes[row, 1], c, x, y, z, X, Y, Z):
                work.found[num_found] = row * (X * Y * Z) + (x * Y + y) * Z + z
                num_found += 1
    return num_found


@kernel
def _is_base(a: int, b: int, c: int, x: int, y: int, z: int, X: int, Y: int, Z: int) -> bool:
    """Tell whether a base is the one that stands for its box: 0 along an axis that is spanned whole."""
    return (a < X or x == 0) and (b < Y or y == 0) and (c < Z or z == 0)


@kernel
def _precedes(a: int, b: int, c: int, out: Box) -> bool:
    """Tell whether a shape comes before that of out[0] in lexicographic order."""
    if a != out[0, 0]:
        return a < out[0, 0]
    if b != out[0, 1]:
        return b < out[0, 1]
    return c < out[0, 2]


@kernel
def _sort_found(work: FinderWork, size: int, num_found: int, Y: int, Z: int, out: Box) -> None:
    """Write the boxes of ``work.found`` into ``out`` by shape; bases of a shape were found in order."""
    first, end = work.shape_first[size], work.shape_first[size + 1]
    nodes = work.shapes.shape[0]
    for slot in range(end - first + 1):
        work.counts[slot] = 0
    for at in range(num_found):
        work.counts[work.found[at] // nodes - first + 1] += 1
    for slot in range(1, end - first + 1):
        work.counts[slot] += work.counts[slot - 1]
    for at in range(num_found):
        row, base = work.found[at] // nodes, work.found[at] % nodes
        place = work.counts[row - first]
        work.counts[row - first] += 1
        a, b, c = work.shapes[row, 0], work.shapes[row, 1], work.shapes[row, 2]
        write_box(out, place, a, b, c, base // (Y * Z), base // Z % Y, base % Z)
