"""Shapes, sizes and nodes of boxes, checked against lists of all boxes as sets of nodes."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.finders import boxes
from faultsweep.simcore.finders.papers.pop import fill_partition_tables
from faultsweep.simcore.model.machines import parse_machine, round_up
from hypothesis import given, settings
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.reference import finder as reference

DIMS = [(1, 1, 1), (1, 1, 7), (2, 3, 1), (3, 3, 3), (4, 4, 8), (5, 4, 6)]


def _torus(dims):
    return parse_machine("torus:" + "x".join(map(str, dims)))


def index(node, dims):
    return (node[0] * dims[1] + node[1]) * dims[2] + node[2]


@pytest.mark.parametrize("dims", DIMS)
def test_shapes_sizes_and_counts_equal_the_reference(dims):
    listed = reference.all_boxes(dims)
    nodes = int(np.prod(dims))
    sizes = sorted({size for size, *_ in listed})
    assert boxes.possible_sizes(dims).tolist() == sizes
    every = np.arange(1, nodes + 1)
    assert round_up(_torus(dims), every).tolist() == [min(s for s in sizes if s >= size) for size in every]
    counts = [sum(1 for here, *_ in listed if here == size) for size in range(1, nodes + 1)]
    assert [boxes.num_boxes(dims, size) for size in range(1, nodes + 1)] == counts
    assert boxes.max_boxes(dims) == max(counts)
    for size in range(1, nodes + 1):
        shapes = list(dict.fromkeys(shape for here, shape, *_ in listed if here == size))
        assert list(map(tuple, boxes.shapes_of_size(dims, size).tolist())) == shapes


def test_rounding_on_the_machine_of_the_papers():
    # 4 x 4 x 8 supernodes: 5 = 1x1x5, but 11 = 1x1x11 does not fit and neither does 13.
    sizes = np.array([1, 5, 11, 13, 65, 97, 113, 128])
    assert round_up(_torus((4, 4, 8)), sizes).tolist() == [1, 5, 12, 14, 72, 112, 128, 128]


@pytest.mark.parametrize("dims", [(1, 1, 1), (2, 3, 1), (3, 3, 3), (2, 4, 5)])
def test_nodes_of_a_box(dims):
    for _, shape, base, nodes in reference.all_boxes(dims):
        box = [*shape, *base]
        indices = boxes.box_nodes(dims, box)
        assert indices.tolist() == sorted(index(node, dims) for node in nodes)


@settings(max_examples=50, deadline=None)
@given(st.tuples(*[st.integers(1, 6)] * 3), st.integers(0, 2**32 - 1), st.sampled_from((0.0, 0.1, 0.5, 1.0)))
def test_partition_tables_count_the_free_nodes_that_follow(dims, seed, taken):
    free = (np.random.default_rng(seed).random(dims) >= taken).astype(np.uint8)
    runs = np.zeros((3, *dims), dtype=np.int64)
    fill_partition_tables(free, runs)
    for node in np.ndindex(dims):
        for axis, side in enumerate(dims):
            ring = [free[*node[:axis], (node[axis] + step) % side, *node[axis + 1 :]] for step in range(side)]
            assert runs[axis][node] == next((step for step, here in enumerate(ring) if not here), side)


@pytest.mark.parametrize(
    "box", [[1, 1, 1], [0, 1, 1, 0, 0, 0], [3, 1, 1, 0, 0, 0], [2, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 4], [1.5] * 6]
)
def test_a_box_that_is_none_is_refused(box):
    with pytest.raises(InputError, match="box: expected a, b, c, x, y, z"):
        boxes.box_nodes((2, 3, 4), box)


@pytest.mark.parametrize("dims", [(1, 2), (0, 1, 1), (1, 1, 1.5), "444"])
def test_a_torus_that_is_none_is_refused(dims):
    with pytest.raises(InputError, match="torus: expected three sides"):
        boxes.shape_table(dims)
