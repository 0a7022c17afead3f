"""``weibull``: the failure model of zhang2004 (section III-B).

Times between failures are Weibull(shape, scale), correlated in segments, which leaves their marginal distribution as it
is. Locations follow Zipf's law with rank 1 = node 0; the down time is constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import gamma
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Parameter, Policy
from faultsweep.simcore.policies.failures.source import DAY_S, Block, DrawnSource, Span
from faultsweep.simcore.streams import Kept, stream
from numpy.typing import NDArray

from faultsweep.errors import InputError

WEIBULL = ("down_time_s", "weibull_shape", "weibull_scale_s", "zipf_alpha")
"""The parameters of what has Weibull times between failures."""

BLOCK = 512  # failures drawn at a time, about
LARGEST_BLOCK = 65_536
_KEPT_NUMBERS = 4096
"""Random numbers of a stream, about, that are kept for other runs."""
_STEPS = 1024
MAX_GAP_MS = 2.0**52  # 143,000 years: longer gaps are cut, so that a block of them can be summed in int64
OWN_DOWN_TIME_S = 120.0  # the paper's shortest and most used, r = 2 min


def weibull_gaps_ms(exponential: NDArray[np.float64], shape: float, scale_s: float) -> NDArray[np.int64]:
    """Turn standard exponential numbers into Weibull times between failures, in whole milliseconds."""
    with np.errstate(over="ignore"):
        gaps = np.rint(scale_s * 1000.0 * exponential ** (1.0 / shape))
    return np.minimum(gaps, MAX_GAP_MS).astype(np.int64)


def weibull_mean_s(shape: float, scale_s: float) -> float:
    """Return the mean of a Weibull distribution."""
    try:
        return scale_s * gamma(1.0 + 1.0 / shape)
    except OverflowError:
        return float("inf")


def exponentials(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Draw standard exponential numbers by inversion."""
    return -np.log1p(-rng.random(count))


def order_segments(gaps: NDArray[Any], window: int) -> NDArray[Any]:
    """Order times between failures within segments of ``window``: the first half descending, the rest ascending.

    ``gaps`` has shape (k,), k a multiple of the even ``window``. No gap leaves its half and the end of no segment
    moves, so the marginal distribution is untouched; a window of 2 changes nothing (zhang2004, section III-B.0.a).
    """
    if window == 2:
        return gaps
    segments = np.sort(gaps.reshape(-1, 2, window // 2), axis=2)
    segments[:, 0] = segments[:, 0, ::-1]
    return segments.reshape(-1)


def zipf_cumulative(nodes: int, alpha: float) -> NDArray[np.float64]:
    """Return the cumulative shares of nodes 0, 1, ... under P(node k) ~ (k + 1)^-alpha; shape (nodes,)."""
    weights = np.arange(1, nodes + 1, dtype=np.float64) ** -alpha
    cumulative = np.cumsum(weights)
    return cumulative / cumulative[-1]


@lru_cache(maxsize=2)  # 8 MB of a million nodes
def _zipf_tables(nodes: int, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the cumulative shares of nodes, and the node of 0, 1 / _STEPS, 2 / _STEPS, ..."""
    cumulative = zipf_cumulative(nodes, alpha)
    return cumulative, np.searchsorted(cumulative, np.arange(_STEPS) / _STEPS, side="right").astype(np.int64)


def draw_nodes(rng: np.random.Generator, count: int, nodes: int, alpha: float) -> NDArray[np.int64]:
    """Draw so many of nodes 0, 1, ... by Zipf's law, as ``zipf_cumulative`` has it."""
    cumulative, first = _zipf_tables(nodes, alpha)
    drawn = rng.random(count)
    node = first[(drawn * _STEPS).astype(np.int64)]
    later = cumulative[node] <= drawn  # few, and to look for all in the whole table takes three times as long
    node[later] = np.searchsorted(cumulative, drawn[later], side="right")
    return node


def weibull_source(config: dict[str, Any], nodes: int, span: Span) -> DrawnSource:
    """Return the failures of zhang2004, correlated in segments of ``burst_window``."""
    window = config["burst_window"]
    if window % 2:
        raise InputError(f"burst_window: {window} is odd (valid: even numbers of failures; 2 is uncorrelated)")

    size = window * max(1, BLOCK // window)

    def gaps() -> Iterator[NDArray[np.int64]]:
        for drawn in _exponentials(config["seed"], config["replicate"], size):
            scaled = weibull_gaps_ms(drawn, config["weibull_shape"], config["weibull_scale_s"])
            yield order_segments(scaled, window)

    return zipf_source(config, nodes, gaps(), size, ("burst_window",))


@lru_cache(maxsize=4)
def _exponentials(seed: int, replicate: int, size: int) -> Kept[NDArray[np.float64]]:
    """Return the standard exponential numbers of a run, so many at a time; many runs of a sweep have the same."""

    def drawn() -> Iterator[NDArray[np.float64]]:
        rng = stream(seed, replicate, "failures/times")
        while True:
            yield _read_only(exponentials(rng, size))

    return Kept(drawn, _most_kept(size))


@lru_cache(maxsize=4)
def _places(seed: int, replicate: int, size: int, nodes: int, alpha: float) -> Kept[NDArray[np.int64]]:
    """Return the nodes that fail in a run, so many at a time."""

    def drawn() -> Iterator[NDArray[np.int64]]:
        rng = stream(seed, replicate, "failures/nodes")
        while True:
            yield _read_only(draw_nodes(rng, size, nodes, alpha))

    return Kept(drawn, _most_kept(size))


def _read_only(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers that nobody can change, since other runs get them, too."""
    numbers.flags.writeable = False
    return numbers


def _most_kept(size: int) -> int:
    return max(1, _KEPT_NUMBERS // size)


def zipf_source(
    config: dict[str, Any], nodes: int, gaps: Iterator[NDArray[np.int64]], size: int, own: tuple[str, ...]
) -> DrawnSource:
    """Return failures with these Weibull times between them, ms, ``size`` at a time, at nodes by Zipf's law; ``own``
    are the parameters of the source."""
    down_s = config["down_time_s"] if config["down_time_s"] >= 0 else OWN_DOWN_TIME_S

    def blocks() -> Iterator[Block]:
        now = 0
        places = _places(config["seed"], config["replicate"], size, nodes, config["zipf_alpha"])
        for drawn, node in zip(gaps, places, strict=False):  # both are endless
            time_ms = now + np.cumsum(drawn)
            now = int(time_ms[-1])
            yield Block(time_ms, node, np.full(size, down_s))

    names = ("seed", "replicate", "weibull_shape", "weibull_scale_s", "zipf_alpha", *own)
    facts = {name: config[name] for name in names} | {"nodes": nodes, "down_s": down_s}
    rate = DAY_S / weibull_mean_s(config["weibull_shape"], config["weibull_scale_s"])
    return DrawnSource(config["failures"], blocks(), rate, facts)


POLICY = Policy(
    "weibull",
    "Weibull times between failures, correlated in segments (zhang2004).",
    parameters=(
        Parameter(
            "burst_window",
            int,
            2,
            "W: failures in a segment within which weibull orders its times between failures; even, 2 is uncorrelated.",
            "failures",
            minimum=2,
            maximum=65536,
        ),
    ),
    uses=WEIBULL,
    consults=("seed",),
    facts={"source": weibull_source},
)
