"""Every finder gives the reference finder's boxes, in the reference finder's order."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from faultsweep.simcore.finders import FINDERS, boxes
from hypothesis import given, settings
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.reference import finder as reference
from tests.reference.finder import free_places
from tests.strategies import occupancies

ANY_FINDER = [pytest.param(name, marks=[pytest.mark.compiled] if name == "exhaustive" else []) for name in FINDERS]


def rows(found):
    return [(tuple(box[:3]), tuple(box[3:])) for box in found.tolist()]


def assert_equals_reference(finder, free):
    nodes, dims = free_places(free), free.shape
    size, shape, base = finder.largest_free_box(free)
    assert ((size, shape, base) if size else None) == reference.largest_free_box(nodes, dims)
    for size in range(1, free.size + 1):
        assert rows(finder.free_boxes(free, size)) == reference.free_boxes(nodes, dims, size)


def test_registry_has_our_finder_and_those_of_the_papers():
    assert tuple(FINDERS) == ("columns", "exhaustive", "pop", "divisor")


@pytest.mark.parametrize("name", ANY_FINDER)
@settings(max_examples=60, deadline=None)
@given(free=occupancies())
def test_equal_to_the_reference(name, free):
    assert_equals_reference(FINDERS[name], free)


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize("dims", [(1, 1, 1), (1, 1, 6), (1, 5, 1), (4, 1, 1), (2, 2, 2), (3, 1, 4), (3, 3, 4)])
def test_full_empty_and_all_but_one_node(name, dims):
    finder = FINDERS[name]
    nodes = int(np.prod(dims))
    assert finder.largest_free_box(np.zeros(dims, dtype=bool))[0] == 0
    assert finder.largest_free_box(np.ones(dims, dtype=bool)) == (nodes, dims, (0, 0, 0))
    assert all(len(finder.free_boxes(np.zeros(dims, dtype=bool), size)) == 0 for size in range(1, nodes + 1))
    for place in ((0, 0, 0), tuple(side - 1 for side in dims), tuple(side // 2 for side in dims)):
        free = np.ones(dims, dtype=bool)
        free[place] = False
        assert_equals_reference(finder, free)


@pytest.mark.parametrize("name", FINDERS)
def test_every_occupancy_of_a_small_torus(name):
    for bits in product((False, True), repeat=8):
        assert_equals_reference(FINDERS[name], np.array(bits).reshape(2, 1, 4))


@pytest.mark.parametrize("name", ANY_FINDER)
@settings(max_examples=30, deadline=None)
@given(free=occupancies(), order=st.sampled_from(list(permutations(range(3)))))
def test_permuting_the_axes_keeps_the_sizes(name, free, order):
    finder, turned = FINDERS[name], free.transpose(order)
    assert finder.largest_free_box(turned)[0] == finder.largest_free_box(free)[0]
    for size in boxes.possible_sizes(free.shape):
        found, again = finder.free_boxes(free, size), finder.free_boxes(turned, size)
        columns = [*order, *(3 + axis for axis in order)]
        assert set(map(tuple, found[:, columns].tolist())) == set(map(tuple, again.tolist()))


@pytest.mark.slow  # without the compiler
@settings(max_examples=20, deadline=None)
@given(
    free=occupancies(st.sampled_from([(8, 8, 8), (4, 4, 8), (7, 9, 6), (1, 6, 16)])),
    size=st.sampled_from((1, 4, 12, 24)),
)
def test_finders_equal_each_other_on_larger_tori(free, size):
    first, *others = FINDERS.values()
    for finder in others:
        assert finder.largest_free_box(free) == first.largest_free_box(free)
        np.testing.assert_array_equal(finder.free_boxes(free, size), first.free_boxes(free, size))


@pytest.mark.parametrize("name", FINDERS)
def test_accepts_zeros_and_ones_in_any_memory_order(name):
    free = np.zeros((3, 4, 5), dtype=np.int16)
    free[1:, 2, 3:] = 1
    expected = (4, (2, 1, 2), (1, 2, 3))
    assert FINDERS[name].largest_free_box(free) == expected
    assert FINDERS[name].largest_free_box(np.asfortranarray(free)) == expected
    assert FINDERS[name].largest_free_box(free.tolist()) == expected


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize(
    ("free", "size", "sentence"),
    [
        (np.ones((2, 2), dtype=bool), 1, "occupancy: expected an array of shape (X, Y, Z)"),
        ([[[1, 0], [1]]], 1, "occupancy: expected an array of shape (X, Y, Z), got rows of different lengths"),
        (np.ones((2, 0, 2), dtype=bool), 1, "occupancy: expected an array of shape (X, Y, Z)"),
        (np.full((2, 2, 2), 2), 1, "occupancy: expected booleans or zeros and ones"),
        (np.ones((2, 2, 2)), 1, "occupancy: expected booleans or zeros and ones"),
        (np.ones((2, 2, 2), dtype=bool), 0, "size: expected a whole number of nodes from 1 to 8, got 0"),
        (np.ones((2, 2, 2), dtype=bool), 9, "size: expected a whole number of nodes from 1 to 8, got 9"),
        (np.ones((2, 2, 2), dtype=bool), 2.0, "size: expected a whole number of nodes from 1 to 8, got 2.0"),
        (np.ones((2, 2, 2), dtype=bool), True, "size: expected a whole number of nodes from 1 to 8, got True"),
    ],
)
def test_bad_input_is_one_sentence(name, free, size, sentence):
    with pytest.raises(InputError) as raised:
        FINDERS[name].free_boxes(free, size)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    if sentence.startswith("occupancy"):
        with pytest.raises(InputError, match="occupancy"):
            FINDERS[name].largest_free_box(free)
