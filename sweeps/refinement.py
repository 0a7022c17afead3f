"""Where along a numeric axis something changes: an interval of stated confidence, halved by tests at points inside it.

At a point it is tested which of two means is greater, the one or ``ratio`` times the other, by Student's statistic of
the paired differences of batches of replicates (``sweeps.selection``), at growing numbers of replicates until it is
certain. The place is between two points at which the answers differ. The interval is halved while it is too wide; where
a point in the middle is so close to the place that its answer stays open, points on both sides of it are tried. All
tests share the error equally (Bonferroni), so with the stated confidence every answer is right. This is bisection with
sequential tests, as in Waeber, Frazier and Henderson, Bisection search with noisy responses, SIAM Journal on Control
and Optimization 51, 2013, with the answers made certain at each point instead of weighed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from faultsweep.sweeps.selection import FEWEST, looks, normal_batches
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "refining an axis")

Pairs = NDArray[np.float64]  # shape (2, replicates)


@dataclass
class Refined:
    """How far the search for a place is.

    Attributes
    ----------
    low, high : bounds of the interval; answers at them differ, if ``low_answer`` and ``high_answer`` do.
    low_answer, high_answer : whether the first mean is greater, True or False; None while that is open.
    needs : the point and the number of replicates that are needed next; None if the search is over.
    open : points whose answer is open at the cap, or for good.
    equal : those of them with two equal results in each of the first replicates: more would say the same.
    points : all points that were tested, with their numbers of replicates.
    lacks : the point that has no result for all replicates, at which the search ended; None if all that it needed have.
    """

    low: float
    high: float
    low_answer: bool | None = None
    high_answer: bool | None = None
    needs: tuple[float, int] | None = None
    open: list[float] = field(default_factory=list)
    equal: list[float] = field(default_factory=list)
    points: dict[float, int] = field(default_factory=dict)
    lacks: float | None = None

    @property
    def found(self) -> bool:
        """Tell whether the place is in the interval."""
        return None not in (self.low_answer, self.high_answer) and self.low_answer != self.high_answer


def refine(
    pairs_at: Callable[[float], Pairs],
    low: float,
    high: float,
    width: float,
    *,
    ratio: float = 1.0,
    confidence: float = 0.95,
    first: int = FEWEST,
    most: int = 200,
) -> Refined:
    """Decide again all tests that a search has had, and return how far it is; nothing else decides.

    Parameters
    ----------
    pairs_at : the two results of each of the first replicates that are finished at a point, shape (2, replicates).
    low, high : where the search begins; ``width`` is how wide the interval may be at its end.
    ratio : that the first mean is compared to, times the second.
    confidence : that all answers are right.
    first, most : replicates of the first look at a point, and of the last one.
    """
    found = Refined(low, high)
    halvings = max(1, math.ceil(math.log2((high - low) / width)))
    error = (1 - confidence) / (2 + 3 * halvings)  # the two ends, the middles, and both sides of what stays open

    def answer(x: float) -> bool | None:
        pairs = pairs_at(x)
        for look, count in enumerate(looks(first, most), 1):
            if pairs.shape[1] < count:
                found.needs = x, count
                return None
            found.points[x] = count
            if look == 1 and ratio == 1 and np.array_equal(pairs[0, :count], pairs[1, :count]):
                found.equal.append(x)
                break
            greater = _greater(pairs[:, :count], ratio, error / 2 / (look * (look + 1)))
            if greater is not None:
                return greater
        found.open.append(x)
        return None

    found.low_answer = answer(low)
    if found.needs is None:
        found.high_answer = answer(high)
    while found.found and found.needs is None and found.high - found.low > width:
        x = _next(found, width)
        if x is None:
            break
        given = answer(x)
        if given is not None:
            if given == found.low_answer:
                found.low = x
            else:
                found.high = x
    return found


def _next(found: Refined, width: float) -> float | None:
    """Return the point to test next: the middle, or the middle of the wider part beside points that stay open."""
    inside = [x for x in found.open if found.low < x < found.high]
    if not inside:
        return (found.low + found.high) / 2
    parts = [(found.low, min(inside)), (max(inside), found.high)]
    start, end = max(parts, key=lambda part: part[1] - part[0])
    return (start + end) / 2 if end - start > width else None


def _greater(pairs: Pairs, ratio: float, error: float) -> bool | None:
    """Return whether the first mean is greater than ratio times the second; None while that is not certain."""
    means = normal_batches(pairs)
    if means is None:
        return None
    difference = means[0] - ratio * means[1]
    n = len(difference)
    bound = -float(special.stdtrit(n - 1, error)) * difference.std(ddof=1) / math.sqrt(n)
    mean = float(difference.mean())
    return None if abs(mean) <= bound else mean > 0
