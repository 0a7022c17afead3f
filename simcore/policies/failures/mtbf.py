"""Failures given by a mean time between failures, of the system or of a node, and a mean time to repair (tang2010).

Times between failures are Weibull with a shape of 0.7 by default (1 is exponential), as in Schroeder and Gibson, "A
Large-Scale Study of Failures in High-Performance Computing Systems", DSN 2006. A system-wide MTBF makes one renewal
process, in which all nodes fail alike, a per-node MTBF one of each node. On a site, whose classes of nodes may have an
MTBF each, that is what holds if neither is given. They go on during repairs.

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
from faultsweep.simcore.model.machines import parse_machine
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
_EITHER = "failures: mtbf needs either mtbf_h (of the system) or node_mtbf_h (of a node)"
OF_CLASSES = "mtbf_h of a class of nodes"
MOST_WAITING = 1_000_000  # failures drawn for some nodes while others may still fail before them


def mtbf_source(config: dict[str, Any], nodes: int, span: Span) -> DrawnSource:
    """Return failures with a mean time between failures of the system (``mtbf_h``), of a node (``node_mtbf_h``), or, on
    a site, of a node of each class."""
    name, mean_h = _means_h(config, nodes)
    least_h = float(mean_h.min())
    if least_h * HOUR_S < SHORTEST_MEAN_S:
        raise InputError(f"{name}: {least_h:g} h is less than one millisecond, the resolution of failure times")
    drawn = _system(config, least_h, nodes) if name == "mtbf_h" else _of_nodes(config, mean_h)

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
    if name == OF_CLASSES:
        facts["class_mtbf_h"] = mean_h.tolist()
    per_day = float(np.sum(np.multiply(*_rates(mean_h))))
    return DrawnSource("mtbf", blocks(), per_day, facts)


def _rates(mean_h: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the different rates of processes, failures per day, and how many processes have each."""
    values, counts = np.unique(mean_h, return_counts=True)
    return DAY_S / (values * HOUR_S), counts


def _means_h(config: dict[str, Any], nodes: int) -> tuple[str, NDArray[np.float64]]:
    """Return what gives the mean times between failures, and those of the processes, h; infinite for none."""
    system, node = config["mtbf_h"], config["node_mtbf_h"]
    if system > 0 and node > 0:
        raise InputError(f"{_EITHER}; both are given")
    if system > 0:
        return "mtbf_h", np.array([system])
    if node > 0:
        return "node_mtbf_h", np.full(nodes, node)
    site = parse_machine(config["machine"]).site
    if site is None or not np.isfinite(site.mtbf_h).any():
        classes = "" if site is None else f", and no class of nodes of {config['machine']} has an mtbf_h"
        raise InputError(f"{_EITHER}; neither is given{classes}")
    return OF_CLASSES, site.mtbf_h


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


Failures = Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Blocks of failures in order: times in ms, and nodes."""


def _system(config: dict[str, Any], mean_h: float, nodes: int) -> Failures:
    """Draw the failures of the system, each of any node."""
    places = stream(config["seed"], config["replicate"], "failures/nodes")
    times, shape, scale_s = stream(config["seed"], config["replicate"], "failures/times"), *_weibull(config, mean_h)
    time_ms = first_gaps_ms(times, 1, shape, scale_s, config["failure_start"])
    while True:
        yield time_ms, np.floor(places.random(len(time_ms)) * nodes).astype(np.int64)
        time_ms = time_ms[-1] + np.cumsum(weibull_gaps_ms(exponentials(times, BLOCK), shape, scale_s))


def _weibull(config: dict[str, Any], mean_h: float) -> tuple[float, float]:
    """Return shape and scale of times between failures, the scale in s."""
    shape = config["mtbf_shape"]
    return shape, mean_h * HOUR_S / gamma(1.0 + 1.0 / shape)


def _of_nodes(config: dict[str, Any], mean_h: NDArray[np.float64]) -> Failures:
    """Draw the failures of nodes that have a mean time between failures each, or none, infinity."""
    values = np.unique(mean_h[np.isfinite(mean_h)])
    parts = []
    for value in values.tolist():
        purpose = "failures/times" if len(values) == 1 else f"failures/times of {value!r} h"
        times = stream(config["seed"], config["replicate"], purpose)
        parts.append(_alike(times, np.flatnonzero(mean_h == value), *_weibull(config, value), config["failure_start"]))
    return parts[0] if len(parts) == 1 else _merged(parts)


def _merged(parts: list[Failures]) -> Failures:
    """Merge failures of several groups of nodes, each as far as all of them are known."""
    known = [np.zeros((2, 0), np.int64) for _ in parts]
    while True:
        for at, part in enumerate(parts):
            while known[at].shape[1] == 0:
                known[at] = np.stack(next(part))
        last_ms = min(rows[0, -1] for rows in known)
        counts = [int(np.searchsorted(rows[0], last_ms, side="right")) for rows in known]
        found = np.concatenate([rows[:, :count] for rows, count in zip(known, counts, strict=True)], axis=1)
        found = found[:, np.lexsort((found[1], found[0]))]
        yield found[0], found[1]
        known = [rows[:, count:] for rows, count in zip(known, counts, strict=True)]


def _alike(times: np.random.Generator, places: NDArray[np.int64], shape: float, scale_s: float, start: str) -> Failures:
    """Draw the next failure of each of some nodes in turn; yield those before which none of them can still fail."""
    nodes = len(places)
    last = first_gaps_ms(times, nodes, shape, scale_s, start)
    waiting = np.stack([last, places])
    rounds = max(1, BLOCK // nodes)  # more and more: what is drawn does not depend on it
    while True:
        gaps = weibull_gaps_ms(exponentials(times, rounds * nodes), shape, scale_s).reshape(rounds, nodes)
        drawn = last + np.cumsum(gaps, axis=0)
        last = drawn[-1]
        fresh = np.stack([drawn.ravel(), np.tile(places, rounds)])
        waiting = np.concatenate([waiting, fresh], axis=1)
        if waiting.shape[1] > MOST_WAITING:
            raise InputError("failures: mtbf draws too many failures at nearly the same time to put them in order")
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
                "Mean time between failures of each node under mtbf; 0: not given (on a site: that of its class).",
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
