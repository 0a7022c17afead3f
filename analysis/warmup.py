"""Warm-up deletion: where a run of jobs begins to be steady, by the marginal standard error rule.

MSER-5 (White, Cobb and Spratt, A comparison of five steady-state truncation heuristics for simulation, 2000): of all
numbers of first batches of five that can be deleted, it deletes the one that leaves the smallest standard error of the
mean. Where that number is in the second half the run has no steady part: a queue grows to the end, beyond saturation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH = 5
FEWEST_BATCHES = 10


def warm_up(values: NDArray[np.float64], batch: int = BATCH) -> tuple[int, bool]:
    """Return how many of the first values are warm-up, and whether what follows is steady.

    Parameters
    ----------
    values : shape (n,), in the order in which they came about, such as the waits of jobs in the order of submission.
    batch : values of a batch; what does not fill the last one counts with none.

    Returns
    -------
    The number of values to delete, a multiple of ``batch``; not steady if the best one is beyond the first half, or if
    there are fewer than ten batches: then (0, False).
    """
    batches = len(values) // batch
    if batches < FEWEST_BATCHES:
        return 0, False
    means = values[: batches * batch].reshape(batches, batch).mean(1)
    left = np.arange(batches, 0, -1)
    # sums over what is left after deleting d batches; centred first, so that squares of large means do not cancel
    centred = means - means.mean()
    sums, squares = np.cumsum(centred[::-1])[::-1], np.cumsum(centred[::-1] ** 2)[::-1]
    error = (squares - sums**2 / left) / left.astype(float) ** 2
    best = int(np.argmin(error[: batches - FEWEST_BATCHES // 2]))  # a handful of batches is steady by chance
    if best > batches // 2:
        return 0, False
    return best * batch, True
