"""Selection of the best of k policies: fully sequential, with a promised probability of a correct selection.

KN (Kim and Nelson, A fully sequential procedure for indifference-zone selection in simulation, ACM TOMACS 11, 2001) is
built on normal observations and trusts the variances of its first stage. Waits and slowdowns are positive and skewed:
there it breaks its promise. This is a successor of the kind that keeps confidence intervals of all pairs and ends as
soon as they leave no doubt (Ma and Henderson, An efficient fully sequential selection procedure guaranteeing probably
approximately correct selection, Winter Simulation Conference 2017), made for such data:

- The indifference zone is a ratio to the best mean. Two policies are compared by the paired differences x - r y, at
  r = 1 and at the ratio of the zone (Fieller, Some problems in interval estimation, JRSS B 16, 1954). Where the
  policies' distributions differ by a scale alone, the difference is symmetric at the truth, and Student's statistic of
  symmetric observations exceeds its quantile less often than of normal ones, however heavy their tails are (Efron,
  Student's t-test under symmetry conditions, JASA 64, 1969).
- Observations are means of batches of replicates: the smallest batches, of 1, 2, 4, ... replicates, for which the
  differences pass a check of normality by their skewness and kurtosis. While ten batches do not, nothing is decided.
- It is decided where the number of replicates has grown by a fifth. The chance of an error is shared over the looks,
  1/(j (j + 1)) of it to the j-th, and over the k - 1 pairs with the best and the regions (Bonferroni).

So with the promised probability, in all regions at once, what is selected is the best or within the zone of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from faultsweep.sweeps.intervals import scaled
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "a comparison of policies")

HIGHER_IS_BETTER = frozenset({"utilisation", "unused_capacity", "migrations_per_attempt", "jain_bounded_slowdown"})
"""Metrics of the simulator of which more is better; of all its others less is."""
FEWEST = 10
"""Replicates of the first stage at least, and batches of which means are compared."""
_NORMAL = 3.0  # standard errors that skewness and kurtosis may be off by
_GROWTH = 0.2


@dataclass
class Selection:
    """How far a selection of the best policy of one region is.

    Attributes
    ----------
    alive : rows that are still in it; one if it is decided.
    looked : replicates of each row at the last look that it was in.
    needed : replicates that the rows in it need for the next look; 0 if it is over.
    decided : whether there is a best one; if not, and ``needed`` is 0, the cap was reached.
    ties : rows with the same results as a row that stands for them -> that row.
    """

    alive: list[int]
    looked: NDArray[np.int64]
    needed: int = 0
    decided: bool = False
    ties: dict[int, int] = field(default_factory=dict)


def looks(first: int, most: int) -> Iterator[int]:
    """Yield the numbers of replicates at which is decided."""
    count = min(first, most)
    while count < most:
        yield count
        count = min(most, count + max(1, int(_GROWTH * count)))
    yield most


def select(
    values: NDArray[np.float64],
    have: NDArray[np.int64],
    *,
    error: float,
    zone: float,
    first: int = FEWEST,
    most: int = 1000,
    higher_is_better: bool = False,
    policies: int = 0,
) -> Selection:
    """Decide again all looks that a selection has had, and return how far it is.

    Each look uses the first replicates alone, so the answer does not depend on what else there is.

    Parameters
    ----------
    values : a metric, none of it negative, shape (policies, replicates), replicates of one number under common random
        numbers; NaN where there is no result.
    have : how many of the first replicates of each policy are finished, shape (policies,).
    error : chance of a wrong selection, 0.05 for a promise of 95 %, divided by the number of regions.
    zone : the indifference zone: 0.05 if a mean 5 % worse than the best is as good.
    first, most : replicates of the first look, and of the last one.
    policies : how many share the error, if more than there are values of.
    """
    found = Selection(list(range(len(values))), np.zeros(len(values), np.int64))
    pairs = max(policies, len(values)) - 1
    for look, replicates in enumerate(looks(first, most), 1):
        if (have[found.alive] < replicates).any():
            found.needed = replicates
            return found
        found.looked[found.alive] = replicates
        if look == 1:
            _tie(found, values[:, :replicates])
        if len(found.alive) > 1:
            part = values[found.alive, :replicates]
            share = error / pairs / (look * (look + 1))
            kept = survivors(part, share, zone, higher_is_better)
            found.alive = [row for row, keep in zip(found.alive, kept, strict=True) if keep]
        if len(found.alive) == 1:
            found.decided = True
            return found
    return found


def _tie(found: Selection, values: NDArray[np.float64]) -> None:
    """Let the first of rows with the same results stand for all."""
    seen: dict[bytes, int] = {}
    for row in found.alive:
        first = seen.setdefault(values[row].tobytes(), row)
        if first != row:
            found.ties[row] = first
    found.alive = [row for row in found.alive if row not in found.ties]


def survivors(
    values: NDArray[np.float64], error: float, zone: float, higher_is_better: bool = False
) -> NDArray[np.bool_]:
    """Return which of these policies may still be the best, shape (policies,); one if it is selected.

    ``error`` is the chance that one statement about a pair may be wrong by.
    """
    means = normal_batches(values)
    if means is None:
        return np.ones(len(values), bool)
    better = _better_than(means, 1.0, error, higher_is_better)
    np.fill_diagonal(better, False)
    kept: NDArray[np.bool_] = np.logical_not(np.any(better, axis=0))
    near = _better_than(means, 1.0 + zone, error, higher_is_better)
    np.fill_diagonal(near, True)
    best = np.flatnonzero(near.all(1) & kept)
    if len(best):
        centre = means.mean(1)[best]
        kept[:] = False
        kept[best[centre.argmax() if higher_is_better else centre.argmin()]] = True
    return kept


def _better_than(means: NDArray[np.float64], ratio: float, error: float, higher: bool) -> NDArray[np.bool_]:
    """Return, shape (k, k), whether it is certain that the mean of row i is better than ratio times that of row j.

    Of a metric of which more is better: that ratio times the mean of row i is above that of row j.
    """
    n = means.shape[1]
    centre, cov = means.mean(1), np.atleast_2d(np.cov(means))
    variance = np.diag(cov)
    if higher:
        difference = ratio * centre[:, None] - centre
        spread = ratio**2 * variance[:, None] + variance - 2 * ratio * cov
    else:
        difference = ratio * centre - centre[:, None]
        spread = ratio**2 * variance + variance[:, None] - 2 * ratio * cov
    quantile = -float(special.stdtrit(n - 1, error))
    certain: NDArray[np.bool_] = difference > quantile * np.sqrt(np.maximum(spread, 0) / n)
    return certain


def ratio_bounds(
    selection: Selection, values: NDArray[np.float64], row: int, base: int, *, error: float, first: int, most: int
) -> tuple[float, float, float]:
    """Return the ratio of the mean of a row to that of a base, and its bounds, by the test that decided about the row.

    The bounds are the ratios that this test does not exclude at the last look that the row was in, so they leave out 1
    exactly where it tells the two apart (Fieller 1954).

    Parameters
    ----------
    selection : of these values, by ``select``.
    values : as ``select`` takes them.
    row, base : the base was in the selection for as long as the row was, and its mean is not zero.
    error : chance of a wrong selection, divided by the number of regions and by the number of policies less one.
    first, most : as ``select`` takes them.

    Returns
    -------
    The ratio, its lower bound and its upper one; both are NaN while too few batches look normal or where the ratio of
    all is the same, and the upper one is infinite where the mean of the base may be zero.
    """
    count = int(selection.looked[row])
    inside = [at for at, looked in enumerate(selection.looked) if looked >= count and at not in selection.ties]
    part = values[inside, :count]
    means = normal_batches(part)
    one, other = inside.index(row), inside.index(base)
    if means is None:
        return float(part[one].mean() / part[other].mean()), np.nan, np.nan
    look = list(looks(first, most)).index(count) + 1
    n = means.shape[1]
    scale = float(special.stdtrit(n - 1, error / (look * (look + 1)))) ** 2 / n
    return _fieller(means[one], means[other], scale)


def _fieller(values: NDArray[np.float64], base: NDArray[np.float64], scale: float) -> tuple[float, float, float]:
    """Return the ratio of two means, and the ratios r for which (x - r y)^2 is at most ``scale`` times its variance."""
    (xx, xy), (_, yy) = np.cov(values, base)
    x, y = float(values.mean()), float(base.mean())
    square, cross, rest = y * y - scale * yy, x * y - scale * xy, x * x - scale * xx
    root = float(np.sqrt(max(0.0, cross * cross - square * rest)))
    if square > 0:
        low, high = float(cross - root) / square, float(cross + root) / square
        same = high - low <= 1e-7 * high  # one ratio in all replicates says nothing about how far others would spread
        return (x / y, np.nan, np.nan) if same else (x / y, max(0.0, low), high)
    low = float(cross - root) / square if square < 0 else 0.0
    return x / y, (low if root > 0 and 0 < low <= x / y else 0.0), np.inf


def normal_batches(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return means of the smallest batches whose differences look normal, shape (policies, batches); None if none do.

    ``values`` has shape (policies, replicates); the means are of what they are on a scale on which none is above 1.
    The differences are those of the policies' means over their averages.
    """
    size, total, values = 1, values.shape[1], scaled(values.ravel())[0].reshape(values.shape)
    first, second = np.triu_indices(len(values), 1)
    while total // size >= FEWEST:
        count = total // size
        means = values[:, : count * size].reshape(len(values), count, size).mean(2)
        centre = means.mean(1, keepdims=True)
        parts = means / np.where(centre == 0, 1.0, centre)
        if _looks_normal(parts[first] - parts[second]):
            return means
        size *= 2
    return None


def _looks_normal(rows: NDArray[np.float64]) -> bool:
    """Tell whether skewness and kurtosis of all rows are those of normal numbers, but for what n of them vary by."""
    n = rows.shape[1]
    centred = rows - rows.mean(1, keepdims=True)
    variance = (centred**2).mean(1)
    known = variance > 1e-24  # of shares of a mean: below it, differences are rounding
    z = centred[known] / np.sqrt(variance[known])[:, None]
    square = z * z
    skewness, kurtosis = (square * z).mean(1), (square * square).mean(1) - 3
    off = (np.abs(skewness) > _NORMAL * np.sqrt(6 / n)) | (kurtosis > _NORMAL * np.sqrt(24 / n))
    return not bool(off.any())
