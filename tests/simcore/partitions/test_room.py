"""Whether a box leaves room for the head job: words of starts per axis against a search of what stays free."""

import numpy as np
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.finders import FINDERS, columns
from hypothesis import given, settings
from hypothesis import strategies as st


@entry_kernel
def rooms(masks, dims, size, box, footprints, extents, boxes):
    """Return whether a box of a shape at a place leaves room for ``size`` nodes."""
    X, Y, Z = dims
    a, b, c, x, y, z = box
    columns.build_footprints(masks, X, Y, footprints, extents)
    count = columns.maximal_boxes(footprints, extents, X, Y, Z, size, boxes)
    along_x = columns.starts_with_room(boxes, count, size, 0, a, X)
    along_y = columns.starts_with_room(boxes, count, size, 1, b, Y)
    along_z = columns.starts_with_room(boxes, count, size, 2, c, Z)
    found = (along_x >> np.uint64(x)) | (along_y >> np.uint64(y)) | (along_z >> np.uint64(z))
    return found & ONE == ONE


@st.composite
def cases(draw):
    """An occupancy, a size, and a box anywhere on the torus."""
    dims = draw(st.tuples(*[st.integers(1, 5)] * 2, st.integers(1, 9)))
    share = draw(st.sampled_from([0.3, 0.7, 0.95, 1.0]))
    free = np.random.default_rng(draw(st.integers(0, 2**32))).random(dims) < share
    sides = [draw(st.integers(1, side)) for side in dims]
    base = [draw(st.integers(0, side - 1)) if length < side else 0 for side, length in zip(dims, sides, strict=True)]
    return free, draw(st.integers(1, int(np.prod(dims)))), (*sides, *base)


@settings(max_examples=500)
@given(cases())
def test_words_of_starts_equal_a_search(case):
    free, size, box = case
    X, Y, Z = free.shape
    masks = np.array([sum(1 << z for z in range(Z) if free[x, y, z]) for x in range(X) for y in range(Y)], np.uint64)
    footprints = np.zeros((X * (X - 1) + 1, Y * (Y - 1) + 1), np.uint64)
    extents = np.zeros(len(footprints), np.int64)
    found = rooms(masks, free.shape, size, box, footprints, extents, np.zeros((2000, 7), np.int64))
    left = free.copy()
    nodes = [
        (start + np.arange(length)) % side for length, start, side in zip(box[:3], box[3:], free.shape, strict=True)
    ]
    left[np.ix_(*nodes)] = False
    assert found == (FINDERS["columns"].largest_free_box(left)[0] >= size)
