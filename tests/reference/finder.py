"""Free boxes of a torus by sets of nodes: every box is listed once, and every question looks at all of them."""

from __future__ import annotations

from functools import cache
from itertools import product


def interval(start, length, side):
    """The places of an interval on a ring."""
    return [(start + step) % side for step in range(length)]


def bases(length, side):
    """The starts that are told apart: a whole ring has one."""
    return [0] if length == side else list(range(side))


@cache
def all_boxes(dims):
    """Every box as (size, shape, base, set of nodes): by shape, then by base, lexicographically (krevat2003, ch. 2)."""
    boxes = []
    for shape in product(*(range(1, side + 1) for side in dims)):
        for base in product(*(bases(length, side) for length, side in zip(shape, dims, strict=True))):
            axes = [interval(*ring) for ring in zip(base, shape, dims, strict=True)]
            nodes = frozenset(product(*axes))
            boxes.append((len(nodes), shape, base, nodes))
    return boxes


def free_places(free):
    """The places (x, y, z) of the free nodes of an occupancy, shape (X, Y, Z), as a set."""
    return {place for place in product(*map(range, free.shape)) if free[place]}


def free_boxes(free_nodes, dims, size):
    """All free boxes (shape, base) of exactly this size, in search order; free_nodes: set of (x, y, z)."""
    return [
        (shape, base) for here, shape, base, nodes in all_boxes(dims) if here == size and nodes.issubset(free_nodes)
    ]


def largest_free_box(free_nodes, dims):
    """(size, shape, base) of the first largest free box, or None if no node is free."""
    free = [(size, shape, base) for size, shape, base, nodes in all_boxes(dims) if nodes.issubset(free_nodes)]
    return max(free, key=lambda box: box[0], default=None)


def maximal_free_boxes(free_nodes, dims):
    """All free boxes that no other free box contains, as rows (size, *shape, *base)."""
    free = sorted((box for box in all_boxes(dims) if box[3].issubset(free_nodes)), key=lambda box: -box[0])
    found = []
    for box in free:
        if not any(box[3] < larger[3] for larger in found):
            found.append(box)
    return [(size, *shape, *base) for size, shape, base, _ in found]
