"""Our finder: columns of nodes as bit masks, and the maximal free boxes of the torus.

A torus of X x Y x Z nodes, Z <= 64, is X*Y masks of *free* nodes, one per column along z. The AND of the columns of a
footprint (an interval of x times an interval of y) has a set bit wherever the whole footprint is free, so a run of c
set bits on the ring is a free box of depth c, and a search over boxes is a loop over footprints.

A free box is maximal when no free box contains it. Every free box lies in a maximal one, so the largest box that stays
free when a box B is taken is the largest part of any maximal box beside B: whole if they are disjoint, else the best
of the slabs left and right of B along one axis. There are few maximal boxes, kept by falling size, and the search ends
at the first that cannot win any more. Taking a box splits the maximal boxes that it meets; releasing one rebuilds
them.

Boxes are rows (size, a, b, c, x, y, z) of int64: shape a, b, c at base x, y, z, wrapping around in every axis; an axis
that is spanned whole has base 0.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import (
    ONE,
    ZERO,
    longest_run,
    low_bits,
    lowest_bit,
    popcount,
    ring_run,
    rotate_down,
    run_starts,
)
from faultsweep.simcore.engine.jit import entry_kernel, inlined, kernel
from faultsweep.simcore.finders.boxes import (
    Box,
    Boxes,
    Columns,
    Extents,
    FinderWork,
    FootprintRow,
    Footprints,
    Masks,
    Occupancy,
    Plane,
    write_box,
)

BOX_FIELDS = 7
OVERFLOW = -1


@inlined
def interval_count(side: int) -> int:
    """Return the number of different intervals on a ring: side - 1 lengths at every start, and the whole ring once."""
    return side * (side - 1) + 1


@inlined
def interval_index(length: int, start: int, side: int) -> int:
    """Return the row of an interval in footprint tables: by length, then by start."""
    return (length - 1) * side + start


@kernel
def build_footprints(columns: Columns, X: int, Y: int, footprints: Footprints, extents: Extents) -> None:
    """Fill the table of footprints from the columns.

    columns: uint64 (X*Y,); footprints: uint64 (intervals of x, intervals of y), the AND of the columns of each
    footprint. extents: int64 (intervals of x,), for each row the longest interval of y at which it is not empty; rows
    are 0 behind it, and neither filled nor read there. Both arrays are those of the last call, or 0: only rows that
    have a column that has changed are filled anew.
    """
    changed = ZERO  # bits of the first 64 x
    any_changed = False
    for x in range(X):
        if _fill_first(columns, x, Y, footprints[x], extents):
            any_changed = True
            changed |= ONE << np.uint64(x & 63)
    if not any_changed:
        return
    for a in range(2, X + 1):
        for x in range(X if a < X else 1):
            if X > 64 or changed & ring_run(x, a, X) != ZERO:
                _fill_longer(footprints, X, Y, a, x, extents)


@inlined
def _fill_first(columns: Columns, x: int, Y: int, row: FootprintRow, extents: Extents) -> bool:
    """Fill the row of footprints of one x; return whether its columns have changed since the last time."""
    differs, some = ZERO, ZERO
    for y in range(Y):
        differs |= row[y] ^ columns[x * Y + y]
        row[y] = columns[x * Y + y]
        some |= row[y]
    if differs == ZERO:
        return False
    b = 1
    while some != ZERO and b < Y:
        some = ZERO
        here, before = b * Y, (b - 1) * Y
        b += 1
        for y in range(Y if b < Y else 1):
            last = y + b - 1
            if last >= Y:
                last -= Y
            row[here + y] = row[before + y] & row[last]
            some |= row[here + y]
    _note_extent(row, Y, b if some != ZERO else b - 1, x, extents)
    return True


@inlined
def _fill_longer(footprints: Footprints, X: int, Y: int, a: int, x: int, extents: Extents) -> None:
    """Fill the row of footprints of ``a`` columns from x on from the row that is shorter by one."""
    last = x + a - 1
    if last >= X:
        last -= X
    at, shorter = (a - 1) * X + x, (a - 2) * X + x
    row, before, column = footprints[at], footprints[shorter], footprints[last]
    b, most = 0, min(extents[shorter], extents[last])
    some = ~ZERO
    while some != ZERO and b < most:
        some = ZERO
        for col in range(b * Y, b * Y + (Y if b + 1 < Y else 1)):
            row[col] = before[col] & column[col]
            some |= row[col]
        b += 1
    _note_extent(row, Y, b if some != ZERO else b - 1, at, extents)


@inlined
def _note_extent(row: FootprintRow, Y: int, extent: int, at: int, extents: Extents) -> None:
    """Clear a row of footprints behind its extent as far as the last one went, and note the new one."""
    for col in range(extent * Y, min(extents[at] * Y, interval_count(Y))):
        row[col] = ZERO
    extents[at] = extent


@inlined
def _neighbours(start: int, length: int, side: int) -> tuple[int, int]:
    """Return the rows of the two intervals that are longer by one than an interval; of itself if it is the ring."""
    longer = length * side
    if length == side:
        return longer - side, longer - side
    if length + 1 == side:
        return longer, longer
    return longer + start, longer + (start - 1 if start else side - 1)


@inlined
def insert_box(boxes: Boxes, count: int, size: int, a: int, b: int, c: int, x: int, y: int, z: int) -> int:
    """Insert a box into the list that is sorted by falling size; return the new count, or OVERFLOW."""
    if count >= boxes.shape[0]:
        return OVERFLOW
    at = count
    while at > 0 and boxes[at - 1, 0] < size:
        for field in range(BOX_FIELDS):
            boxes[at, field] = boxes[at - 1, field]
        at -= 1
    boxes[at, 0] = size
    boxes[at, 1] = a
    boxes[at, 2] = b
    boxes[at, 3] = c
    boxes[at, 4] = x
    boxes[at, 5] = y
    boxes[at, 6] = z
    return count + 1


@inlined
def _insert_runs(
    mask: np.uint64,
    x_after: np.uint64,
    x_before: np.uint64,
    y_after: np.uint64,
    y_before: np.uint64,
    a: int,
    x: int,
    b: int,
    y: int,
    Z: int,
    least: int,
    boxes: Boxes,
    count: int,
) -> int:
    """Insert the maximal boxes of one footprint: one per run of its mask that has a node outside of each longer one."""
    if mask == low_bits(Z):
        return insert_box(boxes, count, a * b * Z, a, b, Z, x, y, 0)
    firsts = mask & ~(((mask << ONE) | (mask >> np.uint64(Z - 1))) & low_bits(Z))
    while firsts != ZERO:
        z = lowest_bit(firsts)
        firsts &= firsts - ONE
        turned = mask if z == 0 else rotate_down(mask, z, Z)
        c = lowest_bit(~turned)
        if a * b * c < least:
            continue
        run = ring_run(z, c, Z)
        if run & x_after != ZERO and run & x_before != ZERO and run & y_after != ZERO and run & y_before != ZERO:
            count = insert_box(boxes, count, a * b * c, a, b, c, x, y, z)
            if count == OVERFLOW:
                return OVERFLOW
    return count


@inlined
def _stands_out(footprints: Footprints, row: int, after: int, before: int, first: int, count: int) -> bool:
    """Tell whether one of some footprints of an interval of x has a node that the next longer one after it has not, and
    one that the longer one before it has not: without a branch, so that several are asked at once."""
    here, longer, earlier = footprints[row], footprints[after], footprints[before]
    found = 0
    for col in range(first, first + count):
        mask = here[col]
        found += int(mask & ~longer[col] != ZERO) & int(mask & ~earlier[col] != ZERO)
    return found > 0


@kernel
def maximal_boxes(
    footprints: Footprints,
    extents: Extents,
    X: int,
    Y: int,
    Z: int,
    least: int,
    boxes: Boxes,
) -> int:
    """List the maximal free boxes of at least ``least`` nodes by falling size.

    footprints, extents: of ``build_footprints``. boxes: int64 (capacity, 7), filled. Returns their number, or OVERFLOW
    if the capacity is too small. Most footprints have no such box, because one that is longer by one has all of their
    mask: one comparison tells. Going from long footprints to short ones, most boxes are found in the order of the list.
    """
    count = 0
    for a in range(X, 0, -1):
        most = 0
        for x in range(X if a < X else 1):
            most = max(most, extents[interval_index(a, x, X)])
        for b in range(most, 0, -1):
            if a * b * Z < least:
                break
            for x in range(X if a < X else 1):
                row = interval_index(a, x, X)
                if extents[row] < b:
                    continue
                row_after, row_before = _neighbours(x, a, X)
                if a < X and not _stands_out(footprints, row, row_after, row_before, (b - 1) * Y, Y if b < Y else 1):
                    continue
                for y in range(Y if b < Y else 1):
                    col = interval_index(b, y, Y)
                    mask = footprints[row, col]
                    x_after, x_before, y_after, y_before = mask, mask, mask, mask  # what a longer one does not have
                    if a < X:
                        x_after, x_before = mask & ~footprints[row_after, col], mask & ~footprints[row_before, col]
                    if b < Y:
                        after, before = _neighbours(y, b, Y)
                        y_after, y_before = mask & ~footprints[row, after], mask & ~footprints[row, before]
                    if (x_after == ZERO) | (x_before == ZERO) | (y_after == ZERO) | (y_before == ZERO):
                        continue
                    if a * b * popcount(mask) < least:
                        continue
                    count = _insert_runs(mask, x_after, x_before, y_after, y_before, a, x, b, y, Z, least, boxes, count)
                    if count == OVERFLOW:
                        return OVERFLOW
    return count


@inlined
def gaps_beside(start: int, length: int, other_start: int, other_length: int, side: int) -> tuple[int, int]:
    """Return the parts of an interval before and after another one on a ring, or (-1, -1) if they are disjoint.

    If the interval is the whole ring the part is one, the complement, given as the part after.
    """
    if length == side:
        return 0, side - other_length
    offset = other_start - start
    if offset < 0:
        offset += side
    end = offset + other_length
    if offset >= length:
        if end <= side:
            return -1, -1
        return 0, max(0, length - (end - side))
    if end > side:
        return max(0, offset - (end - side)), 0
    return offset, max(0, length - end)


@inlined
def largest_beside(
    boxes: Boxes, at: int, a: int, b: int, c: int, x: int, y: int, z: int, X: int, Y: int, Z: int
) -> int:
    """Return the size of the largest part of maximal box ``at`` beside the box a, b, c at x, y, z."""
    A, B, C = boxes[at, 1], boxes[at, 2], boxes[at, 3]
    x0, x1 = gaps_beside(boxes[at, 4], A, x, a, X)
    if x0 < 0:
        return boxes[at, 0]
    y0, y1 = gaps_beside(boxes[at, 5], B, y, b, Y)
    if y0 < 0:
        return boxes[at, 0]
    z0, z1 = gaps_beside(boxes[at, 6], C, z, c, Z)
    if z0 < 0:
        return boxes[at, 0]
    return max(max(x0, x1) * B * C, A * max(y0, y1) * C, A * B * max(z0, z1))


@inlined
def mfp_after(
    boxes: Boxes,
    count: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
    floor: int,
) -> int:
    """Return the size of the maximal free partition after a free box is taken, exact if it is above ``floor``."""
    best = floor
    for at in range(count):
        if boxes[at, 0] <= best:
            return best
        best = max(best, largest_beside(boxes, at, a, b, c, x, y, z, X, Y, Z))
    return best


@inlined
def starts_with_room(boxes: Boxes, count: int, size: int, axis: int, length: int, side: int) -> np.uint64:
    """Return where an interval of an axis, up to 64 nodes long, may begin so that a box across it leaves room for
    ``size`` nodes along that axis.

    boxes: maximal ones by falling size. A box that is taken leaves room along x, along y or along z, or not at all: so
    a few words answer for every candidate.
    """
    starts = ZERO
    for at in range(count):
        if boxes[at, 0] < size:
            break
        extent, first = boxes[at, 1 + axis], boxes[at, 4 + axis]
        layer = boxes[at, 1 + (axis + 1) % 3] * boxes[at, 1 + (axis + 2) % 3]
        depth = (size + layer - 1) // layer
        fitting = side - depth - length + 1
        if fitting <= 0:
            continue
        if extent == side:
            return low_bits(side)
        # beside the layers that stay at one end of the box, at the other, or anywhere between
        begin, run = first + depth, min(side, fitting + extent - depth)
        starts |= ring_run(begin - side if begin >= side else begin, run, side)
    return starts


@kernel
def _contained(
    boxes: Boxes,
    first: int,
    last: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
) -> bool:
    """Tell whether one of the boxes first..last-1 contains the box a, b, c at x, y, z."""
    for at in range(first, last):
        if boxes[at, 1] < a or boxes[at, 2] < b or boxes[at, 3] < c:
            continue
        if (
            _spans(boxes[at, 4], boxes[at, 1], x, a, X)
            and _spans(boxes[at, 5], boxes[at, 2], y, b, Y)
            and _spans(boxes[at, 6], boxes[at, 3], z, c, Z)
        ):
            return True
    return False


@inlined
def _spans(start: int, length: int, other_start: int, other_length: int, side: int) -> bool:
    """Tell whether an interval on a ring contains another one."""
    if length == side:
        return True
    offset = other_start - start
    if offset < 0:
        offset += side
    return offset + other_length <= length


@kernel
def _keep_part(
    boxes: Boxes,
    count: int,
    kept: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
    least: int,
) -> int:
    """Append a part of a split box behind ``count`` unless it is empty, too small or contained in a kept box."""
    if a <= 0 or b <= 0 or c <= 0 or a * b * c < least:
        return count
    x, y, z = (x - X if x >= X else x), (y - Y if y >= Y else y), (z - Z if z >= Z else z)
    if _contained(boxes, 0, kept, a, b, c, x, y, z, X, Y, Z):
        return count
    if count >= boxes.shape[0]:
        return OVERFLOW
    boxes[count, 0] = a * b * c
    boxes[count, 1] = a
    boxes[count, 2] = b
    boxes[count, 3] = c
    boxes[count, 4] = x
    boxes[count, 5] = y
    boxes[count, 6] = z
    return count + 1


@kernel
def take_box(
    boxes: Boxes,
    count: int,
    parts: Boxes,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
    least: int,
) -> int:
    """Update the list of maximal free boxes when a box is taken: split those that it meets.

    parts: int64 (capacity, 7) scratch. Returns the new number of boxes, or OVERFLOW.
    """
    kept = 0
    hit = 0
    for at in range(count):
        if largest_beside(boxes, at, a, b, c, x, y, z, X, Y, Z) == boxes[at, 0]:
            if kept != at:
                for field in range(BOX_FIELDS):
                    boxes[kept, field] = boxes[at, field]
            kept += 1
        else:
            for field in range(BOX_FIELDS):
                parts[hit, field] = boxes[at, field]
            hit += 1
    total = kept
    for at in range(hit):
        total = _split(boxes, total, kept, parts, at, a, b, c, x, y, z, X, Y, Z, least)
        if total == OVERFLOW:
            return OVERFLOW
    return _merge_parts(boxes, kept, total, parts, X, Y, Z)


@kernel
def _split(
    boxes: Boxes,
    total: int,
    kept: int,
    parts: Boxes,
    at: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
    least: int,
) -> int:
    """Append the slabs of box ``at`` of ``parts`` beside the box a, b, c at x, y, z."""
    A, B, C = parts[at, 1], parts[at, 2], parts[at, 3]
    u, v, w = parts[at, 4], parts[at, 5], parts[at, 6]
    before, after = gaps_beside(u, A, x, a, X)
    total = _keep_part(boxes, total, kept, before, B, C, _gap_start(u, A, before, x, a, X, False), v, w, X, Y, Z, least)
    if total != OVERFLOW:
        total = _keep_part(
            boxes, total, kept, after, B, C, _gap_start(u, A, before, x, a, X, True), v, w, X, Y, Z, least
        )
    before, after = gaps_beside(v, B, y, b, Y)
    if total != OVERFLOW:
        total = _keep_part(
            boxes, total, kept, A, before, C, u, _gap_start(v, B, before, y, b, Y, False), w, X, Y, Z, least
        )
    if total != OVERFLOW:
        total = _keep_part(
            boxes, total, kept, A, after, C, u, _gap_start(v, B, before, y, b, Y, True), w, X, Y, Z, least
        )
    before, after = gaps_beside(w, C, z, c, Z)
    if total != OVERFLOW:
        total = _keep_part(
            boxes, total, kept, A, B, before, u, v, _gap_start(w, C, before, z, c, Z, False), X, Y, Z, least
        )
    if total != OVERFLOW:
        total = _keep_part(
            boxes, total, kept, A, B, after, u, v, _gap_start(w, C, before, z, c, Z, True), X, Y, Z, least
        )
    return total


@inlined
def _gap_start(
    start: int, length: int, before: int, other_start: int, other_length: int, side: int, want_after: bool
) -> int:
    """Return where the part of an interval before (or after) another one starts on the ring.

    The part before ends where the other begins; the part after begins where the other ends. They differ from the
    interval's own start only when the other one wraps over it.
    """
    if want_after:
        after = other_start + other_length
        return after - side if after >= side else after
    first = other_start - before
    return first + side if first < 0 else first


@kernel
def _merge_parts(boxes: Boxes, kept: int, total: int, parts: Boxes, X: int, Y: int, Z: int) -> int:
    """Drop new parts contained in other new parts, and sort the rest into the kept boxes; return the count."""
    num_parts = 0
    for at in range(kept, total):
        a, b, c, x, y, z = boxes[at, 1], boxes[at, 2], boxes[at, 3], boxes[at, 4], boxes[at, 5], boxes[at, 6]
        if _contained(boxes, at + 1, total, a, b, c, x, y, z, X, Y, Z):
            continue
        if _contained(parts, 0, num_parts, a, b, c, x, y, z, X, Y, Z):
            continue
        for field in range(BOX_FIELDS):
            parts[num_parts, field] = boxes[at, field]
        num_parts += 1
    count = kept
    for at in range(num_parts):
        count = insert_box(
            boxes,
            count,
            parts[at, 0],
            parts[at, 1],
            parts[at, 2],
            parts[at, 3],
            parts[at, 4],
            parts[at, 5],
            parts[at, 6],
        )
    return count


@inlined
def _meets(start: int, length: int, other_start: int, other_length: int, side: int) -> bool:
    """Tell whether two intervals on a ring have a place in common."""
    offset = other_start - start
    if offset < 0:
        offset += side
    return offset < length or side - offset < other_length


@kernel
def has_box_at(
    columns: Columns,
    X: int,
    Y: int,
    Z: int,
    size: int,
    u: int,
    a0: int,
    v: int,
    b0: int,
    plane: Plane,
) -> bool:
    """Tell whether a free box of at least ``size`` nodes, size >= 1, meets the footprint of a0 x b0 columns at (u, v).

    columns: uint64 (X*Y or more,). plane: uint64 (Y,) scratch.
    """
    for x in range(X):
        for a in range(1, (X if x == 0 else X - 1) + 1):
            area = _narrow_plane(columns, x + a - 1 if x + a <= X else x + a - 1 - X, Y, a == 1, plane)
            if area * X < size:  # longer intervals of x have no more free
                break
            if area * a >= size and _meets(x, a, u, a0, X) and _plane_has_box(plane, a, Y, Z, size, v, b0):
                return True
    return False


@inlined
def _narrow_plane(columns: Columns, x: int, Y: int, begin: bool, plane: Plane) -> int:
    """Take the columns at x into the AND of those of an interval, or begin with them; return its number of set bits."""
    area = 0
    for y in range(Y):
        mask = columns[x * Y + y]
        if not begin:
            mask &= plane[y]
        plane[y] = mask
        area += popcount(mask)
    return area


@kernel
def _plane_has_box(plane: Plane, a: int, Y: int, Z: int, size: int, v: int, b0: int) -> bool:
    """Tell whether the columns of one interval of x hold such a box that meets the b0 columns from v on."""
    least = (size + a * Z - 1) // (a * Z)  # shorter intervals of y are too small
    for y in range(Y):
        mask = plane[y]
        for b in range(1, Y + 1):
            if b > 1:
                last = y + b - 1
                mask &= plane[last - Y if last >= Y else last]
            if popcount(mask) * a * Y < size:  # longer intervals of y have no more free
                break
            if b < least or not _meets(y, b, v, b0, Y):
                continue
            depth = (size + a * b - 1) // (a * b)
            if popcount(mask) >= depth and run_starts(mask, depth, Z) != ZERO:
                return True
    return False


# --- the finder as a function of an occupancy, with the signatures of its siblings ------------------------------------


@entry_kernel
def largest_free_box_kernel(free: Occupancy, work: FinderWork, out: Box) -> int:
    """Write the first largest free box into out[0] and return its size; 0, and out untouched, if no node is free.

    out: one row or more.
    """
    X, Y, Z = free.shape
    _fill_columns(free, work.masks)
    best = 0
    for a in range(1, X + 1):
        if not _widen(work.masks, a):
            break
        for b in range(1, Y + 1):
            if not _lengthen(work.masks, b):
                break
            c = best // (a * b) + 1  # the depth that would be better; later footprints of this shape must beat it too
            for x in range(X if a < X else 1):
                if c > Z:
                    break
                for y in range(Y if b < Y else 1):
                    mask = work.masks[2, x, y]
                    if popcount(mask) < c or run_starts(mask, c, Z) == ZERO:
                        continue
                    depth = longest_run(mask, Z)
                    best, c = a * b * depth, depth + 1
                    write_box(out, 0, a, b, depth, x, y, lowest_bit(run_starts(mask, depth, Z)))
                    if c > Z:
                        break
    return best


@entry_kernel
def free_boxes_kernel(free: Occupancy, size: int, work: FinderWork, out: Box) -> int:
    """Write all free boxes of ``size`` nodes into ``out`` in search order and return their number.

    out: ``num_boxes`` rows or more.
    """
    X, Y, Z = free.shape
    _fill_columns(free, work.masks)
    count = width = length = 0
    for row in range(work.shape_first[size], work.shape_first[size + 1]):
        a, b, c = work.shapes[row, 0], work.shapes[row, 1], work.shapes[row, 2]
        while width < a:
            width += 1
            length = 0
            if not _widen(work.masks, width):
                return count
        while length < b:
            length += 1
            _lengthen(work.masks, length)
        for x in range(X if a < X else 1):
            for y in range(Y if b < Y else 1):
                starts = run_starts(work.masks[2, x, y], c, Z)
                while starts != ZERO:
                    write_box(out, count, a, b, c, x, y, lowest_bit(starts))
                    count += 1
                    starts &= starts - ONE
    return count


@kernel
def _fill_columns(free: Occupancy, masks: Masks) -> None:
    """Set masks[0] to the free nodes of each column."""
    X, Y, Z = free.shape
    for x in range(X):
        for y in range(Y):
            mask = ZERO
            for z in range(Z):
                if free[x, y, z]:
                    mask |= ONE << np.uint64(z)
            masks[0, x, y] = mask


@kernel
def _widen(masks: Masks, a: int) -> bool:
    """Take masks[1] from intervals of a - 1 columns along x to those of a; tell whether any free node is left."""
    _, X, Y = masks.shape
    left = ZERO
    for x in range(X):
        last = x + a - 1 if x + a - 1 < X else x + a - 1 - X
        for y in range(Y):
            mask = masks[0, last, y]
            if a > 1:
                mask &= masks[1, x, y]
            masks[1, x, y] = mask
            left |= mask
    return left != ZERO


@kernel
def _lengthen(masks: Masks, b: int) -> bool:
    """Take masks[2] from footprints of length b - 1 along y to those of b; tell whether any free node is left."""
    _, X, Y = masks.shape
    left = ZERO
    for x in range(X):
        for y in range(Y):
            mask = masks[1, x, y + b - 1 if y + b - 1 < Y else y + b - 1 - Y]
            if b > 1:
                mask &= masks[2, x, y]
            masks[2, x, y] = mask
            left |= mask
    return left != ZERO
