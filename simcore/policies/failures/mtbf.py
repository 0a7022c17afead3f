"""Failures given by a mean time between failures, of the system or of a node, and a mean time to repair (tang2010).

Times between failures are Weibull with a shape of 0.7 by default (1 is exponential), as in Schroeder and Gibson, "A
Large-Scale Study of Failures in High-Performance Computing Systems", DSN 2006; all nodes fail alike. A system-wide MTBF
makes one renewal process, a per-node MTBF one of each node, all new at the start of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, gamma
from typing import Any

import numpy as np
from faultsweep.simcore.policies.failures.source import DAY_S, Block, DrawnSource, Span
from faultsweep.simcore.policies.failures.weibull import BLOCK, exponentials, weibull_gaps_ms
from faultsweep.simcore.streams import round_ms, stream
from numpy.typing import NDArray

from faultsweep.errors import InputError

HOUR_S = 3600.0
SHORTEST_MEAN_S = 1e-3
MOST_WAITING = 1_000_000  # failures drawn for some nodes while others may still fail before them


def mtbf_source(config: dict[str, Any], nodes: int, span: Span) -> DrawnSource:
    """Return failures with a mean time between failures of the system (``mtbf_h``) or of a node (``node_mtbf_h``)."""
    system, node = config["mtbf_h"], config["node_mtbf_h"]
    if (system > 0) == (node > 0):
        which = "both are" if system > 0 else "neither is"
        raise InputError(
            f"failures: mtbf needs either mtbf_h (of the system) or node_mtbf_h (of a node); {which} given"
        )
    shape = config["mtbf_shape"]
    mean_s = (system or node) * HOUR_S
    if mean_s < SHORTEST_MEAN_S:
        name = "mtbf_h" if system > 0 else "node_mtbf_h"
        raise InputError(f"{name}: {system or node:g} h is less than the millisecond to which failures are timed")
    scale_s = mean_s / gamma(1.0 + 1.0 / shape)
    times = stream(config["seed"], config["replicate"], "failures/times")
    places = stream(config["seed"], config["replicate"], "failures/nodes")
    drawn = _system(times, places, shape, scale_s, nodes) if system else _per_node(times, shape, scale_s, nodes)

    def blocks() -> Iterator[Block]:
        repairs = stream(config["seed"], config["replicate"], "failures/repairs")
        for time_ms, node_index in drawn:
            yield Block(time_ms, node_index, draw_repairs(repairs, len(time_ms), config))

    names = (
        "seed",
        "replicate",
        "mtbf_h",
        "node_mtbf_h",
        "mtbf_shape",
        "mttr_h",
        "repair_distribution",
        "repair_sigma",
    )
    facts = {name: config[name] for name in (*names, "down_time_s")} | {"nodes": nodes}
    rate = DAY_S / mean_s * (1 if system else nodes)
    return DrawnSource("mtbf", blocks(), span.start_s, rate, facts)


def draw_repairs(rng: np.random.Generator, count: int, config: dict[str, Any]) -> NDArray[np.float64]:
    """Draw down times with the mean ``mttr_h``, in seconds; ``down_time_s`` >= 0 stands for them all."""
    sigma = config["repair_sigma"]
    if config["down_time_s"] >= 0:
        return draw_times(rng, count, config["down_time_s"], "constant", sigma)
    return draw_times(rng, count, float(round_ms(config["mttr_h"] * HOUR_S)), config["repair_distribution"], sigma)


def draw_times(rng: np.random.Generator, count: int, mean_s: float, kind: str, sigma: float) -> NDArray[np.float64]:
    """Draw times with a mean, in seconds; random ones are rounded to 1 ms.

    "constant", "exponential", or "lognormal" with the standard deviation ``sigma`` of the logarithm; as many numbers
    are drawn for each kind.
    """
    from scipy.special import ndtri

    uniform = rng.random(count)
    if kind == "exponential":
        return round_ms(-mean_s * np.log1p(-uniform))
    if kind == "lognormal":
        return round_ms(mean_s * np.exp(sigma * ndtri(np.maximum(uniform, 2.0**-54))) * exp(-sigma * sigma / 2.0))
    return np.full(count, mean_s)


def _system(
    times: np.random.Generator, places: np.random.Generator, shape: float, scale_s: float, nodes: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    now = 0
    while True:
        time_ms = now + np.cumsum(weibull_gaps_ms(exponentials(times, BLOCK), shape, scale_s))
        now = int(time_ms[-1])
        yield time_ms, np.floor(places.random(BLOCK) * nodes).astype(np.int64)


def _per_node(
    times: np.random.Generator, shape: float, scale_s: float, nodes: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Draw the next failure of every node in turn; yield those before which no node can still fail."""
    last = np.zeros(nodes, np.int64)
    waiting = np.empty((2, 0), np.int64)
    rounds = max(1, BLOCK // nodes)
    while True:
        gaps = weibull_gaps_ms(exponentials(times, rounds * nodes), shape, scale_s).reshape(rounds, nodes)
        drawn = last + np.cumsum(gaps, axis=0)
        last = drawn[-1]
        fresh = np.stack([drawn.ravel(), np.tile(np.arange(nodes), rounds)])
        waiting = np.concatenate([waiting, fresh], axis=1)
        if waiting.shape[1] > MOST_WAITING:
            raise InputError("failures: those of mtbf come so much in crowds that none can be placed before the others")
        waiting = waiting[:, np.lexsort((waiting[1], waiting[0]))]
        known = int(np.searchsorted(waiting[0], last.min(), side="left"))
        yield waiting[0, :known], waiting[1, :known]
        waiting = waiting[:, known:]
