"""Distributions of times with a given mean: of repairs, and of users' delays."""

from __future__ import annotations

from math import exp

import numpy as np
from faultsweep.simcore.contract import Parameter
from faultsweep.simcore.streams import round_ms
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "this distribution of failures or repairs")

DISTRIBUTIONS = {
    "constant": "Every repair takes the mean.",
    "exponential": "Exponentially distributed.",
    "lognormal": "Lognormally distributed.",
}
CONSTANT, EXPONENTIAL, LOGNORMAL = range(len(DISTRIBUTIONS))
"""Their numbers in kernels."""

REPAIR_SIGMA = Parameter(
    "repair_sigma",
    float,
    1.94,
    "Standard deviation of the logarithm of lognormal repair times (1.94: mean 355 min, median 54 min).",
    "failures",
    minimum=0,
    maximum=5,
)
"""Shared by the repairs of nodes and those of trunks."""


def draw_times(rng: np.random.Generator, count: int, mean_s: float, kind: str, sigma: float) -> NDArray[np.float64]:
    """Draw times with a mean, in seconds; random ones are rounded to 1 ms.

    ``kind`` is one of DISTRIBUTIONS, "lognormal" with the standard deviation ``sigma`` of the logarithm; as many
    numbers are drawn for each kind.
    """
    uniform = rng.random(count)
    if kind == "exponential":
        return round_ms(-mean_s * np.log1p(-uniform))
    if kind == "lognormal":
        return round_ms(
            mean_s * np.exp(sigma * special.ndtri(np.maximum(uniform, 2.0**-54))) * exp(-sigma * sigma / 2.0)
        )
    return np.full(count, mean_s)
