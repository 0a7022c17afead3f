"""Failures given by a mean time between failures, of the system or of a node, and a mean time to repair (tang2010).

Times between failures are Weibull with a shape of 0.7 by default (1 is exponential), as in Schroeder and Gibson, "A
Large-Scale Study of Failures in High-Performance Computing Systems", DSN 2006; all nodes fail alike. A system-wide MTBF
makes one renewal process, a per-node MTBF one of each node. They go on during repairs.

The processes are stationary unless ``failure_start`` says that they are new: the run looks at them from some time on,
so the first time to a failure has the equilibrium distribution, and a run sees its length / MTBF failures on average
(Cox, "Renewal Theory", 1962, chapter 4). Nodes that are all new have three times as many in a month of their 16,384 h.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gamma
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Parameter, Policy, Role, Run
from faultsweep.simcore.distributions import DISTRIBUTIONS, draw_times
from faultsweep.simcore.policies.failures.source import DAY_S, Block, DrawnSource, Span
from faultsweep.simcore.policies.failures.weibull import BLOCK, LARGEST_BLOCK, exponentials, weibull_gaps_ms
from faultsweep.simcore.streams import round_ms, stream
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "this distribution of failures or repairs")

FAILURE_STARTS = {
    "stationary": "As if they had begun long before the run: its length / MTBF failures on average.",
    "new": "With the run: all nodes are new, and shapes below 1 have more failures at first.",
}

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
    first = first_gaps_ms(times, 1 if system else nodes, shape, scale_s, config["failure_start"])
    drawn = _system(times, places, first, shape, scale_s, nodes) if system else _per_node(times, first, shape, scale_s)

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
        "failure_start",
        "mttr_h",
        "repair_distribution",
        "repair_sigma",
    )
    facts = {name: config[name] for name in (*names, "down_time_s")} | {"nodes": nodes}
    rate = DAY_S / mean_s * (1 if system else nodes)
    return DrawnSource("mtbf", blocks(), rate, facts)


def first_gaps_ms(rng: np.random.Generator, count: int, shape: float, scale_s: float, start: str) -> NDArray[np.int64]:
    """Draw times to the first failure of processes, in whole milliseconds, int64 (count,).

    "new": a Weibull time. "stationary": what is left of the one that is under way, whose distribution function is
    P(1 / shape, (t / scale)^shape), the regularised incomplete gamma function; a shape of 1 has no memory.
    """
    if start == "new" or shape == 1.0:
        return weibull_gaps_ms(exponentials(rng, count), shape, scale_s)
    return weibull_gaps_ms(special.gammaincinv(1.0 / shape, rng.random(count)), shape, scale_s)


def draw_repairs(rng: np.random.Generator, count: int, config: dict[str, Any]) -> NDArray[np.float64]:
    """Draw down times with the mean ``mttr_h``, in seconds; ``down_time_s`` >= 0 stands for them all."""
    sigma = config["repair_sigma"]
    if config["down_time_s"] >= 0:
        return draw_times(rng, count, config["down_time_s"], "constant", sigma)
    return draw_times(rng, count, float(round_ms(config["mttr_h"] * HOUR_S)), config["repair_distribution"], sigma)


def _system(
    times: np.random.Generator,
    places: np.random.Generator,
    first_ms: NDArray[np.int64],
    shape: float,
    scale_s: float,
    nodes: int,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Draw the failures of the system, each of any node."""
    now = int(first_ms[0])
    yield first_ms, np.floor(places.random(1) * nodes).astype(np.int64)
    while True:
        time_ms = now + np.cumsum(weibull_gaps_ms(exponentials(times, BLOCK), shape, scale_s))
        now = int(time_ms[-1])
        yield time_ms, np.floor(places.random(BLOCK) * nodes).astype(np.int64)


def _per_node(
    times: np.random.Generator, first_ms: NDArray[np.int64], shape: float, scale_s: float
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Draw the next failure of every node in turn; yield those before which no node can still fail."""
    nodes = len(first_ms)
    last = first_ms
    waiting = np.stack([first_ms, np.arange(nodes)])
    rounds = max(1, BLOCK // nodes)  # more and more: what is drawn does not depend on it
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
        rounds = min(2 * rounds, max(1, LARGEST_BLOCK // nodes))


def _has_own_repair(run: Run) -> bool:
    return bool(run["down_time_s"] < 0)


def _has_age(run: Run) -> bool:
    """Tell whether something depends on when the times between failures began."""
    return bool(run["mtbf_shape"] != 1)


ROLES = (
    Role(
        "Distribution of times to repair.",
        Parameter(
            "repair_distribution",
            str,
            "constant",
            "Distribution of the times to repair of mtbf.",
            "failures",
            choices=DISTRIBUTIONS,
        ),
        name="repair",
    ),
)

POLICIES = (
    Policy(
        "mtbf",
        "Renewals with a mean time between failures, of the machine or of each node (tang2010).",
        parameters=(
            Parameter(
                "mtbf_h",
                float,
                0.0,
                "Mean time between failures of the whole machine under mtbf; 0: not given.",
                "failures",
                minimum=0,
                maximum=1e7,
                unit="h",
            ),
            Parameter(
                "node_mtbf_h",
                float,
                0.0,
                "Mean time between failures of each node under mtbf; 0: not given.",
                "failures",
                minimum=0,
                maximum=1e7,
                unit="h",
            ),
            Parameter(
                "mtbf_shape",
                float,
                0.7,
                "Weibull shape of the times between failures of mtbf; 1 is exponential.",
                "failures",
                minimum=0.05,
                maximum=20,
            ),
            Parameter(
                "failure_start",
                str,
                "stationary",
                "How the times between failures of mtbf begin.",
                "failures",
                choices=FAILURE_STARTS,
                live=_has_age,
            ),
            Parameter(
                "mttr_h",
                float,
                1.0,
                "Mean time to repair of mtbf.",
                "failures",
                minimum=0,
                unit="h",
                live=_has_own_repair,
            ),
        ),
        uses=("down_time_s",),
        consults=("seed", ("repair", lambda run: _has_own_repair(run) and run["mttr_h"] > 0)),
        facts={"source": mtbf_source},
    ),
    *(Policy(name, "", role="repair", uses=("repair_sigma",) if name == "lognormal" else ()) for name in DISTRIBUTIONS),
)
