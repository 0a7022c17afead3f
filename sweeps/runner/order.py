"""The order in which cells are handed out: chunk by chunk, and within a few chunks the longest first.

Long simulations that start last leave workers idle at the end. Finished cells tell how long others will take: the time
is about a product of what each row of each axis contributes, so means of logarithms by row predict it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from faultsweep.sweeps.grid import Cells
from numpy.typing import NDArray

WINDOW_CELLS = 65_536
"""Cells that are put in order at a time: about four chunks, so that chunks still become whole one after the other."""
FIRST_TIMES = 8
"""So many times are wanted before anything is put in order."""


class Durations:
    """Learns from finished cells how long others will take."""

    def __init__(self, shape: Sequence[int]) -> None:
        """Prepare for a grid of this shape."""
        self._shape = tuple(shape)
        self._sums = [np.zeros(n) for n in shape]
        self._counts = [np.zeros(n) for n in shape]
        self.number = 0
        self._total = 0.0

    def add(self, cells: Cells, wall_s: NDArray[np.float64]) -> None:
        """Take the times of finished cells; NaN is passed over."""
        known = np.isfinite(wall_s)
        cells, logs = cells[known], np.log(np.maximum(wall_s[known], 1e-7))
        for rows, sums, counts in zip(np.unravel_index(cells, self._shape), self._sums, self._counts, strict=True):
            if len(sums) > len(rows):
                np.add.at(sums, rows, logs)
                np.add.at(counts, rows, 1)
            else:  # several times as fast
                sums += np.bincount(rows, logs, len(sums))
                counts += np.bincount(rows, minlength=len(sums))
        self.number += len(cells)
        self._total += float(logs.sum())

    def predict(self, cells: Cells) -> NDArray[np.float64]:
        """Return the logarithm of the expected time of each cell; a row without any time counts as an average one."""
        mean = self._total / max(1, self.number)
        expected = np.full(len(cells), mean)
        for rows, sums, counts in zip(np.unravel_index(cells, self._shape), self._sums, self._counts, strict=True):
            effect = np.where(counts > 0, sums / np.maximum(counts, 1) - mean, 0.0)
            expected += effect[rows]
        return expected


class Cursor:
    """The cells that were never handed out."""

    def __init__(self, cells: Cells, durations: Durations) -> None:
        """Prepare to hand out ``cells``, given chunk by chunk."""
        self._cells = cells
        self._durations = durations
        self._window = cells[:0]
        self._next = 0  # place in the window
        self._end = 0  # of the window among the cells
        self._ordered_by = 0

    @property
    def left(self) -> int:
        """Return how many cells are left."""
        return len(self._cells) - self._end + len(self._window) - self._next

    def __bool__(self) -> bool:
        """Tell whether any cell is left."""
        return self.left > 0

    def take(self, number: int) -> Cells:
        """Return the next cells, at most ``number`` and at least one; never of two windows."""
        self._order()
        part = self._window[self._next : self._next + max(1, number)]
        self._next += len(part)
        return part

    def _order(self) -> None:
        """Put the window in order when it is new, and whenever twice as many times are known."""
        if self._next >= len(self._window):
            self._window = self._cells[self._end : self._end + WINDOW_CELLS].copy()
            self._end += len(self._window)
            self._next = self._ordered_by = 0
        if self._durations.number < max(FIRST_TIMES, 2 * self._ordered_by):
            return
        self._ordered_by = self._durations.number
        window = self._window[self._next :]
        window[:] = window[np.argsort(-self._durations.predict(window), kind="stable")]
