"""The list of maximal free boxes against all free boxes that no other one contains; and kept up to date as boxes are
taken, against a list that is made anew."""

import numpy as np
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.finders import columns
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.finder import free_places, maximal_free_boxes
from tests.strategies import examples, occupancies


@entry_kernel
def list_boxes(masks, dims, least, footprints, extents, boxes):
    """Return the number of maximal free boxes of at least ``least`` nodes, listed in ``boxes``."""
    X, Y, Z = dims
    columns.build_footprints(masks, X, Y, footprints, extents)
    return columns.maximal_boxes(footprints, extents, X, Y, Z, least, boxes)


@entry_kernel
def take(boxes, count, parts, box, dims, least):
    """Take a box out of a list; return the new number of boxes."""
    a, b, c, x, y, z = box
    X, Y, Z = dims
    return columns.take_box(boxes, count, parts, a, b, c, x, y, z, X, Y, Z, least)


def listed(free, least):
    """Return the maximal free boxes of an occupancy, and their number."""
    X, Y, Z = free.shape
    masks = np.array([sum(1 << z for z in range(Z) if free[x, y, z]) for x in range(X) for y in range(Y)], np.uint64)
    footprints = np.zeros((X * (X - 1) + 1, Y * (Y - 1) + 1), np.uint64)
    extents = np.zeros(len(footprints), np.int64)
    boxes = np.zeros((2000, 7), np.int64)
    return boxes, list_boxes(masks, free.shape, least, footprints, extents, boxes)


def as_set(boxes, count):
    """Return the boxes, having seen that none is listed twice and that they are sorted."""
    rows = [tuple(row) for row in boxes[:count].tolist()]
    assert len(set(rows)) == len(rows)
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    return set(rows)


@examples(60)
@given(occupancies(), st.sampled_from((1, 1, 2, 5, 12)))
def test_the_list_has_the_boxes_that_no_free_box_contains(free, least):
    expected = maximal_free_boxes(free_places(free), free.shape)
    assert as_set(*listed(free, least)) == {row for row in expected if row[0] >= least}


@entry_kernel
def fill(masks, X, Y, footprints, extents):
    """Fill a table of footprints."""
    columns.build_footprints(masks, X, Y, footprints, extents)


@examples(60)
@given(st.tuples(st.integers(1, 7), st.integers(1, 7)), st.integers(0, 2**32))
def test_a_table_that_is_filled_again_is_the_one_that_is_made_anew(dims, seed):
    """After changes of some columns, of none and of all, and on either side of where a ring begins."""
    X, Y = dims
    rng = np.random.default_rng(seed)
    masks = np.zeros(X * Y, np.uint64)
    kept = np.zeros((X * (X - 1) + 1, Y * (Y - 1) + 1), np.uint64), np.zeros(X * (X - 1) + 1, np.int64)
    for share in rng.choice([0.0, 0.1, 0.5, 1.0], 6):
        some = rng.random(len(masks)) < share
        masks[some] = rng.choice(np.array([0, 1, 6, 255, 2**64 - 1], np.uint64), some.sum())
        fill(masks, X, Y, *kept)
        anew = np.zeros_like(kept[0]), np.zeros_like(kept[1])
        fill(masks, X, Y, *anew)
        np.testing.assert_array_equal(kept[0], anew[0])
        np.testing.assert_array_equal(kept[1], anew[1])


@st.composite
def part_of(draw, row, dims):
    """A box within a maximal box, normalised as finders list them: base 0 where it spans an axis."""
    sides = [draw(st.integers(1, length)) for length in row[1:4]]
    shift = [
        draw(st.integers(0, dim - 1 if long == dim else long - short))
        for short, long, dim in zip(sides, row[1:4], dims, strict=True)
    ]
    base = [
        0 if short == dim else (start + by) % dim
        for short, start, by, dim in zip(sides, row[4:], shift, dims, strict=True)
    ]
    return (*sides, *base)


@examples(100)
@given(st.data())
def test_taking_boxes_leaves_the_maximal_boxes_of_what_is_free(data):
    dims = data.draw(st.tuples(*[st.integers(1, 5)] * 2, st.integers(1, 9)))
    share = data.draw(st.sampled_from([0.7, 0.9, 0.97, 1.0]))
    free = np.random.default_rng(data.draw(st.integers(0, 2**32))).random(dims) < share
    least = data.draw(st.sampled_from([1, 1, 2, 4, int(np.prod(dims)) // 4 + 1]))
    boxes, count = listed(free, least)
    parts = np.zeros_like(boxes)
    for _ in range(data.draw(st.integers(1, 4))):
        if not count:
            break
        box = data.draw(part_of(boxes[data.draw(st.integers(0, count - 1))].tolist(), dims))
        count = take(boxes, count, parts, box, dims, least)
        free[np.ix_(*[(np.arange(n) + at) % side for n, at, side in zip(box[:3], box[3:], dims, strict=True)])] = False
        assert as_set(boxes, count) == as_set(*listed(free, least))
