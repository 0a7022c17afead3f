"""Finders of free rectangular partitions in a torus.

All give the same answers; they differ in how they search, and so in speed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.finders import columns
from faultsweep.simcore.finders.boxes import Box, Dims, check_occupancy, check_size, finder_work, num_boxes
from faultsweep.simcore.finders.papers import divisor, exhaustive, pop
from numpy.typing import ArrayLike, NDArray

from faultsweep.errors import InputError


class Finder(NamedTuple):
    """A finder as functions of an occupancy, a bool or 0/1 array of shape (X, Y, Z), True = free."""

    largest_free_box_kernel: Any
    free_boxes_kernel: Any
    deepest: int = 0
    """The most nodes along z; 0: any number."""

    def largest_free_box(self, free: ArrayLike) -> tuple[int, Dims, Dims]:
        """Return (size, shape, base) of the first largest free box in search order; size 0 if no node is free.

        Raises InputError for any other array.
        """
        occupancy = self._check(free)
        out = np.zeros((1, 6), dtype=np.int64)
        size = self.largest_free_box_kernel(occupancy, finder_work(occupancy.shape), out)
        a, b, c, x, y, z = (int(value) for value in out[0])
        return int(size), (a, b, c), (x, y, z)

    def free_boxes(self, free: ArrayLike, size: int) -> Box:
        """Return all free boxes of exactly ``size`` nodes in search order, int64 (k, 6): a, b, c, x, y, z.

        Raises InputError for any other array, and for a size below 1 or above the number of nodes.
        """
        occupancy = self._check(free)
        size = check_size(size, occupancy.size)
        out = np.zeros((num_boxes(occupancy.shape, size), 6), dtype=np.int64)
        return out[: self.free_boxes_kernel(occupancy, size, finder_work(occupancy.shape), out)]

    def _check(self, free: ArrayLike) -> NDArray[np.uint8]:
        occupancy = check_occupancy(free)
        if 0 < self.deepest < occupancy.shape[2]:
            raise InputError(
                f"occupancy: a column of {occupancy.shape[2]} nodes does not fit a mask (valid: Z up to {self.deepest})"
            )
        return occupancy


FINDERS: dict[str, Finder] = {
    "columns": Finder(columns.largest_free_box_kernel, columns.free_boxes_kernel, deepest=64),
    "exhaustive": Finder(exhaustive.largest_free_box_kernel, exhaustive.free_boxes_kernel),
    "pop": Finder(pop.largest_free_box_kernel, pop.free_boxes_kernel),
    "divisor": Finder(divisor.largest_free_box_kernel, divisor.free_boxes_kernel),
}
"""The finders by the names of the parameter ``finder``."""
