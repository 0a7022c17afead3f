"""Machines as sets of nodes: every box is listed, every question is answered by looking at all of them."""

from __future__ import annotations

from functools import cache
from itertools import product


class Torus:
    """A torus of X x Y x Z nodes on which a job occupies a contiguous box that may wrap around in every axis.

    Node (x, y, z) has the index (x·Y + y)·Z + z (krevat2003, 4.1).
    """

    is_torus = True

    def __init__(self, x: int, y: int, z: int):
        self.sides = (x, y, z)
        self.nodes = x * y * z
        self.possible_sizes = sorted({a * b * c for a, b, c in product(*(range(1, n + 1) for n in self.sides))})
        self._largest_first = [box for size in reversed(self.possible_sizes) for box in self.boxes(size)]

    def index(self, x: int, y: int, z: int) -> int:
        X, Y, Z = self.sides
        return ((x % X) * Y + y % Y) * Z + z % Z

    def round_up(self, size: int) -> int | None:
        """The smallest possible size that is not smaller, or None if the machine is too small."""
        return min((s for s in self.possible_sizes if s >= size), default=None)

    def box(self, shape: tuple[int, int, int], base: tuple[int, int, int]) -> frozenset[int]:
        (a, b, c), (x, y, z) = shape, base
        return frozenset(self.index(x + i, y + j, z + k) for i in range(a) for j in range(b) for k in range(c))

    @cache  # noqa: B019  (machines live as long as the tests)
    def boxes(self, size: int) -> tuple[frozenset[int], ...]:
        """All boxes of a size: shapes, then bases, lexicographically; a spanned axis has base 0 only."""
        found = []
        for shape in product(*(range(1, side + 1) for side in self.sides)):
            if shape[0] * shape[1] * shape[2] == size:
                bases = (
                    range(1) if extent == side else range(side) for extent, side in zip(shape, self.sides, strict=True)
                )
                found += [self.box(shape, base) for base in product(*bases)]
        return tuple(found)

    def free_boxes(self, size: int, occupied: set[int], order=None) -> list[frozenset[int]]:
        """The free boxes of exactly this size, in search order."""
        return [box for box in self.boxes(size) if occupied.isdisjoint(box)]

    def sizes_from(self, size: int, limit: float) -> list[int]:
        """The sizes a job of this size may grow to with at most ``limit`` more nodes, smallest first."""
        return [s for s in self.possible_sizes if size <= s <= size + limit]

    def can_hold(self, size: int, occupied: set[int]) -> bool:
        """Whether a job of this size could be placed, growing as far as necessary."""
        return self.mfp(occupied) >= size

    def mfp(self, occupied: set[int]) -> int:
        """The size of the largest free box (maximal free partition)."""
        return next((len(box) for box in self._largest_first if occupied.isdisjoint(box)), 0)


class Flat:
    """A machine on which a job may have any free nodes."""

    is_torus = False

    def __init__(self, nodes: int):
        self.nodes = nodes

    def round_up(self, size: int) -> int | None:
        return size if size <= self.nodes else None

    def free_boxes(self, size: int, occupied: set[int], order=None) -> list[frozenset[int]]:
        """The one choice of nodes: the first free ones, by index or by the ``order`` of a node choice."""
        free = [node for node in (order or range(self.nodes)) if node not in occupied]
        return [frozenset(free[:size])] if len(free) >= size else []

    def sizes_from(self, size: int, limit: float) -> list[int]:
        return [size]

    def can_hold(self, size: int, occupied: set[int]) -> bool:
        return self.nodes - len(occupied) >= size

    def mfp(self, occupied: set[int]) -> int:
        return self.nodes - len(occupied)


@cache
def machine(name: str) -> Torus | Flat:
    """The machine of a name, torus:XxYxZ or flat:N."""
    kind, _, shape = name.partition(":")
    if kind == "torus":
        return Torus(*(int(side) for side in shape.split("x")))
    if kind == "flat":
        return Flat(int(shape))
    raise ValueError(f"no machine {name!r} here")
