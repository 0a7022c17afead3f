"""Exhaustive search: every shape at every base, node by node (the baseline of krevat2003, ch. 3).

"A straightforward exhaustive search of all possible partitions takes O(M^9) time" on an M x M x M torus: M^3 shapes,
M^3 bases, and up to M^3 nodes of a box. All of them are looked at when the torus is empty; the check of a box ends at
its first taken node. The boxes of one size are had by finding all free boxes of any size and selecting (oliner2004,
appendix), so that takes O(M^9) as well.
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import entry_kernel, kernel
from faultsweep.simcore.finders.boxes import Box, FinderWork, Occupancy, write_box


@entry_kernel
def largest_free_box_kernel(free: Occupancy, work: FinderWork, out: Box) -> int:
    """Write the first largest free box into out[0] and return its size; 0, and out untouched, if no node is free.

    out: one row or more.
    """
    X, Y, Z = free.shape
    best = 0
    for a in range(1, X + 1):
        for b in range(1, Y + 1):
            for c in range(1, Z + 1):
                found = _append_free_bases(free, a, b, c, work.boxes, 0)
                if found > 0 and a * b * c > best:
                    best = a * b * c
                    write_box(out, 0, a, b, c, work.boxes[0, 3], work.boxes[0, 4], work.boxes[0, 5])
    return best


@entry_kernel
def free_boxes_kernel(free: Occupancy, size: int, work: FinderWork, out: Box) -> int:
    """Write all free boxes of ``size`` nodes into ``out`` in search order and return their number.

    out: ``num_boxes`` rows or more.
    """
    X, Y, Z = free.shape
    count = 0
    for a in range(1, X + 1):
        for b in range(1, Y + 1):
            for c in range(1, Z + 1):
                if a * b * c == size:
                    count = _append_free_bases(free, a, b, c, out, count)
                else:
                    _append_free_bases(free, a, b, c, work.boxes, 0)
    return count


@kernel
def _append_free_bases(free: Occupancy, a: int, b: int, c: int, out: Box, count: int) -> int:
    """Write the free boxes of one shape into ``out`` from row ``count`` on; return the new count."""
    X, Y, Z = free.shape
    for x in range(X if a < X else 1):
        for y in range(Y if b < Y else 1):
            for z in range(Z if c < Z else 1):
                if _is_free(free, a, b, c, x, y, z):
                    write_box(out, count, a, b, c, x, y, z)
                    count += 1
    return count


@kernel
def _is_free(free: Occupancy, a: int, b: int, c: int, x: int, y: int, z: int) -> bool:
    """Tell whether all nodes of a box are free."""
    X, Y, Z = free.shape
    for i in range(x, x + a):
        for j in range(y, y + b):
            for k in range(z, z + c):
                if not free[i - X if i >= X else i, j - Y if j >= Y else j, k - Z if k >= Z else k]:
                    return False
    return True
