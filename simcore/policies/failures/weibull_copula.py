"""``weibull-copula``: as ``weibull``, with its times between failures correlated by a stationary process."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Parameter, Policy
from faultsweep.simcore.policies.failures.source import DrawnSource, Span
from faultsweep.simcore.policies.failures.weibull import BLOCK, WEIBULL, weibull_gaps_ms, zipf_source
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "a source of correlated failures")


def copula_source(config: dict[str, Any], nodes: int, span: Span) -> DrawnSource:
    """Return failures whose times between them are Weibull, with the copula of a Gaussian AR(1) process.

    z_i = rho z_(i-1) + sqrt(1 - rho^2) e_i, gap_i = F^-1(Phi(z_i)): stationary, and rho = 0 is uncorrelated.
    """
    rho = config["copula_rho"]

    def gaps() -> Iterator[NDArray[np.int64]]:
        rng = stream(config["seed"], config["replicate"], "failures/times")
        last = float(special.ndtri(_open_unit(rng.random(1)))[0])
        while True:
            z = np.empty(BLOCK)
            for at, noise in enumerate((sqrt(1.0 - rho * rho) * special.ndtri(_open_unit(rng.random(BLOCK)))).tolist()):
                z[at] = last = rho * last + noise
            yield weibull_gaps_ms(-special.log_ndtr(-z), config["weibull_shape"], config["weibull_scale_s"])

    return zipf_source(config, nodes, gaps(), BLOCK, ("copula_rho",))


def _open_unit(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keep the normal quantile finite where a uniform number is 0."""
    return np.maximum(uniform, 2.0**-54)


POLICY = Policy(
    "weibull-copula",
    "Weibull times between failures, correlated by a stationary process.",
    parameters=(
        Parameter(
            "copula_rho",
            float,
            0.5,
            "Lag-one correlation of the Gaussian process behind weibull-copula; 0 is uncorrelated.",
            "failures",
            minimum=-0.99,
            maximum=0.99,
        ),
    ),
    uses=WEIBULL,
    consults=("seed",),
    facts={"source": copula_source},
)
