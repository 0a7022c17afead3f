"""The per-job results of a run, made when somebody asks for them: most cells of a sweep keep none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ON_CLOCK = ("submit_s", "first_start_s", "start_s", "finish_s")
_MOST_KEPT = 2
"""Bytes that may be kept for each byte of the results, until they are made."""

Arrays = Mapping[str, NDArray[Any]]


@lru_cache(typed=True)  # typed, or 0 would be 0.0
def constant(value: float, jobs: int) -> NDArray[Any]:
    """Return the row of a result that is the same for all jobs: shape (jobs,), read only, in the memory of one value.

    value : int for int64, float for float64.
    """
    return np.broadcast_to(np.asarray(value), jobs)


class JobResults:
    """Results that are arrays of a run's own, or parts of its state, with times since its first submission."""

    def __init__(self, arrays: Arrays, origin_s: float, state_bytes: int) -> None:
        """Take the results; of a state that is much larger than they are, nothing is kept."""
        self._origin_s = origin_s
        self._arrays: Arrays | None = arrays
        self._made: list[dict[str, NDArray[Any]]] = []
        if state_bytes > _MOST_KEPT * sum(array.nbytes for array in arrays.values()):
            self.made()

    def made(self) -> dict[str, NDArray[Any]]:
        """Return arrays of shape (jobs,) that nobody else has, with times on the log's clock; always the same ones."""
        arrays = self._arrays
        if arrays is not None:
            made = {name: array.copy() for name, array in arrays.items()}
            for name in _ON_CLOCK:
                made[name] += self._origin_s
            self._made.append(made)  # of two threads one is first
            self._arrays = None
        return self._made[0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without the state."""
        return _received, (self.made(),)


def _received(made: dict[str, NDArray[Any]]) -> JobResults:
    """Return results that have travelled."""
    received = JobResults({}, 0.0, 0)
    received._arrays, received._made = None, [made]
    return received
