"""The divisor finder of oliner2004 (appendix, section 9): only the shapes whose sides divide the size.

The possible shapes of size s are the triples of its divisors that fit on the torus, tabled once for a machine. For
each of them the bases are visited in increasing order, and "there is no need to search in any of the dimensions
further, once we hit the value for that dimension of required length". The paper does not say more; here, a run of
free a x b cross sections along z is counted. The check of a section ends at its first taken node, and with it all
bases whose box holds it; a box is found as soon as the run is c long, so no section is checked twice. With f(s)
divisors of s, the boxes of one size take O(f(s)^2 M^3 ab) time on an M x M x M torus.

The largest free box is the first one found from the number of free nodes down, size by size. The paper calls this "a
O(M^3) solution"; it holds where one of the first sizes fits, not where many sizes are tried in vain.
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
    num_free = 0
    for x in range(X):
        for y in range(Y):
            for z in range(Z):
                num_free += 1 if free[x, y, z] else 0
    for size in range(num_free, 0, -1):
        if _append_free_boxes(free, size, work, out, 1) > 0:
            return size
    return 0


@entry_kernel
def free_boxes_kernel(free: Occupancy, size: int, work: FinderWork, out: Box) -> int:
    """Write all free boxes of ``size`` nodes into ``out`` in search order and return their number.

    out: ``num_boxes`` rows or more.
    """
    return _append_free_boxes(free, size, work, out, out.shape[0])


@kernel
def _append_free_boxes(free: Occupancy, size: int, work: FinderWork, out: Box, limit: int) -> int:
    """Write the first ``limit`` free boxes of a size into ``out``; return how many there are."""
    X, Y, _ = free.shape
    count = 0
    for row in range(work.shape_first[size], work.shape_first[size + 1]):
        a, b, c = work.shapes[row, 0], work.shapes[row, 1], work.shapes[row, 2]
        for x in range(X if a < X else 1):
            for y in range(Y if b < Y else 1):
                count = _append_column(free, a, b, c, x, y, out, count, limit)
                if count == limit:
                    return count
    return count


@kernel
def _append_column(free: Occupancy, a: int, b: int, c: int, x: int, y: int, out: Box, count: int, limit: int) -> int:
    """Write the free boxes of one shape with bases x, y, 0 ... Z - 1 into ``out`` until it holds ``limit``."""
    Z = free.shape[2]
    last_base = Z - 1 if c < Z else 0
    run = 0
    for k in range(last_base + c):
        run = run + 1 if _is_section_free(free, a, b, x, y, k % Z) else 0
        if run >= c:
            write_box(out, count, a, b, c, x, y, k - c + 1)
            count += 1
            if count == limit:
                break
    return count


@kernel
def _is_section_free(free: Occupancy, a: int, b: int, x: int, y: int, z: int) -> bool:
    """Tell whether all nodes of an a x b cross section at height z are free."""
    X, Y, _ = free.shape
    for i in range(x, x + a):
        for j in range(y, y + b):
            if not free[i - X if i >= X else i, j - Y if j >= Y else j, z]:
                return False
    return True
