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


class Menu:
    """A machine on which a job has one partition of a list: midplanes, and wires, as nodes above the machine's own.

    Partitions are in order of size, equal ones in the order of the list.
    """

    is_torus = False

    def __init__(self, nodes: int, partitions: list[tuple[list[int], list[str]]]):
        self.nodes = nodes
        wires = sorted({wire for _, names in partitions for wire in names})
        number = {wire: nodes + place for place, wire in enumerate(wires)}
        sets = [frozenset(midplanes) | {number[wire] for wire in names} for midplanes, names in partitions]
        self.partitions = sorted(sets, key=self.size_of)
        self.possible_sizes = sorted({self.size_of(one) for one in sets})

    def size_of(self, partition) -> int:
        return sum(node < self.nodes for node in partition)

    def round_up(self, size: int) -> int | None:
        return min((s for s in self.possible_sizes if s >= size), default=None)

    def free_boxes(self, size: int, occupied: set[int], order=None) -> list[frozenset[int]]:
        """The usable partitions of exactly this size."""
        return [one for one in self.partitions if self.size_of(one) == size and occupied.isdisjoint(one)]

    def sizes_from(self, size: int, limit: float) -> list[int]:
        return [size]

    def can_hold(self, size: int, occupied: set[int]) -> bool:
        return bool(self.free_boxes(size, occupied))

    def least_blocking(self, boxes: list[frozenset[int]], occupied: set[int]) -> frozenset[int]:
        """The box that makes the fewest usable partitions unusable, the first of equal ones."""
        usable = [one for one in self.partitions if occupied.isdisjoint(one)]
        return min(boxes, key=lambda box: sum(not box.isdisjoint(one) for one in usable))


MENUS = {
    # Two rows of four; the whole machine; the pairs that close their torus over the same cable of their row.
    "menu:rows": (
        8,
        [([n], []) for n in range(8)]
        + [([n, n + 1], [f"row{n // 4}"]) for n in (0, 2, 4, 6)]
        + [(list(range(n, n + 4)), [f"row{n // 4}"]) for n in (0, 4)]
        + [(list(range(8)), ["row0", "row1"])],
    ),
    # Partitions that overlap without containing each other, and a size that is no power of two.
    "menu:overlap": (
        6,
        [([n], []) for n in (3, 1, 0, 5)]
        + [([n, n + 1, n + 2], ["x"] if n % 2 else []) for n in range(4)]
        + [([0, 5], ["x"]), ([2, 4], []), (list(range(6)), [])],
    ),
}
"""Small menus: nodes, and partitions as (midplanes, wires)."""


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
def machine(name: str) -> Torus | Flat | Menu:
    """The machine of a name: torus:XxYxZ, flat:N, midplanes:N (at most 16, a row) or one of MENUS."""
    kind, _, shape = name.partition(":")
    if kind == "torus":
        return Torus(*(int(side) for side in shape.split("x")))
    if kind == "flat":
        return Flat(int(shape))
    if kind == "midplanes" and int(shape) <= 16:
        nodes, powers = int(shape), [2**k for k in range(4) if 2**k < int(shape)]
        blocks = [list(range(b, b + p)) for p in powers for b in range(0, nodes - p + 1, p)]
        return Menu(nodes, [(block, []) for block in [*blocks, list(range(nodes))]])
    if name in MENUS:
        return Menu(*MENUS[name])
    raise ValueError(f"no machine {name!r} here")
