"""Hyper-Erlang distributions of common order: a mixture of two Erlang distributions with as many stages each.

Jann, Pattnaik, Franke, Wang, Skovira and Riordan (JSSPP 1997) fit gaps between arrivals and run times of parallel jobs
with them, by size class and by the first three moments; zhang2004 draws its jobs from such a model.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "a hyper-Erlang model of jobs")

MAX_ORDER = 1000
_SAME = 1e-9  # relative variance below which all values count as the same


class HyperErlang(NamedTuple):
    """With probability ``share`` an Erlang distribution of ``order`` stages and mean ``means[0]``, else ``means[1]``.

    An order of 0 stands for a constant, ``means[0]``.
    """

    order: int
    share: float
    means: tuple[float, float]

    def moments(self) -> tuple[float, float, float]:
        """Return the first three moments."""
        if self.order == 0:
            return self.means[0], self.means[0] ** 2, self.means[0] ** 3
        weights = (self.share, 1.0 - self.share)
        rising, found = 1.0, []
        for k in (1, 2, 3):
            rising *= (self.order + k - 1) / self.order
            found.append(rising * sum(w * mean**k for w, mean in zip(weights, self.means, strict=True)))
        return found[0], found[1], found[2]

    def cumulative(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of at most each value."""
        if self.order == 0:
            return (values >= self.means[0]).astype(np.float64)
        weights = (self.share, 1.0 - self.share)
        parts = [
            w * special.gammainc(self.order, self.order * values / m) for w, m in zip(weights, self.means, strict=True)
        ]
        return np.asarray(parts[0] + parts[1])

    def draw(self, branch: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn two uniform numbers in [0, 1) each, which choose branch and value, into draws."""
        if self.order == 0:
            return np.full(len(u), self.means[0])
        mean = np.where(branch < self.share, *self.means)
        return np.asarray(special.gammaincinv(self.order, u) * mean / self.order)


def fit(values: NDArray[np.float64]) -> HyperErlang:
    """Return the distribution of least order whose first three moments are those of ``values``, shape (n,), positive.

    Divided by those of an Erlang distribution of mean 1, the moments must be those of two values with a share each.
    That is possible from some order on, unless the values are all the same or, within ``MAX_ORDER``, too nearly so;
    these give a constant.
    """
    scale = float(values.mean()) if len(values) else 0.0
    if scale <= 0.0:
        return HyperErlang(0, 1.0, (scale, scale))
    moments = [float(np.mean((values / scale) ** k)) for k in (1, 2, 3)]
    if moments[1] - 1.0 <= _SAME:
        return HyperErlang(0, 1.0, (scale, scale))
    for order in range(1, MAX_ORDER + 1):
        found = _of_order(order, moments, scale)
        if found is not None:
            return found
    return HyperErlang(0, 1.0, (scale, scale))


def _of_order(order: int, moments: list[float], scale: float) -> HyperErlang | None:
    """Return the distribution of an order with these moments (mean 1), or None if there is none."""
    second = moments[1] * order / (order + 1)
    third = moments[2] * order**2 / ((order + 1) * (order + 2))
    variance = second - 1.0
    if variance <= 0.0:
        return None
    total = (third - second) / variance  # the two means are the roots of x^2 - total x + product
    product = total - second
    if product <= 0.0:
        return None
    root = np.sqrt(total * total - 4.0 * product)
    low, high = (total - root) / 2.0, (total + root) / 2.0
    share = (high - 1.0) / (high - low)
    return HyperErlang(order, float(share), (float(low) * scale, float(high) * scale))
