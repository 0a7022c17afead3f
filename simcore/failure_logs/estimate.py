"""The parameters of ``bursts`` that a failure log is most like."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs.fitting import bursts_of
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.failure_logs.statistics import worst_share
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.policies.failures.bursts import ADJACENT, NODES, SCATTERED
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.policies.failures.weibull import draw_nodes
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.extras import OptionalModule

stats = OptionalModule("scipy.stats", "the fit of a failure log")
optimize = OptionalModule("scipy.optimize", "the fit of a failure log")

FEWEST = 30
"""Failures below which nothing is estimated."""
_DRAWS = 20
_STEPS = 40


class _Bursts(NamedTuple):
    """The bursts of a log: number of the burst of each failure, place of the first of each, failures of each."""

    number: NDArray[np.int64]
    first: NDArray[np.int64]
    size: NDArray[np.int64]


def estimate_bursts(records: FailureRecords) -> dict[str, Any]:
    """Return the parameters of ``bursts``, and ``failures_per_day``, that a failure log is most like.

    A burst is a run of failures closer than a tenth of the mean time between failures. Estimates: ``burst_tail`` and
    ``burst_shape`` by maximum likelihood; ``burst_spacing_s`` the mean time within bursts; ``burst_same_node`` from the
    share of later failures that are of the first's node, less those that are by chance; ``burst_zipf_alpha`` such that
    the worst tenth of the nodes bears as much as in the log, at as many failures; ``burst_locality`` is ``adjacent`` if
    most nodes of a burst have the number behind the one before.

    Raises
    ------
    InputError
        If the log has fewer than 30 failures, or all at once.
    """
    if len(records) < FEWEST or records.span_s <= 0:
        raise InputError(
            f"{records.name}: {len(records):,} failures in {records.span_s:g} s are not enough to estimate bursts "
            f"(valid: {FEWEST} failures or more, not all at once)"
        )
    number = bursts_of(records.time_s)
    number -= number[0]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    bursts = _Bursts(number, first, np.bincount(number))
    later = np.ones(len(records), bool)
    later[first] = False
    found: dict[str, Any] = {
        "failures_per_day": len(records) / records.span_s * DAY_S,
        "burst_shape": _shape(np.diff(records.time_s[first])),
        "burst_tail": _tail(bursts.size),
        "burst_largest": int(bursts.size.max()),
        "burst_spacing_s": float(np.diff(records.time_s, prepend=0.0)[later].mean()) if later.any() else 0.0,
        "burst_same_node": _same_node(records, bursts, later),
        "burst_zipf_alpha": _alpha(records, first),
        "burst_locality": _locality(records.node, number),
    }
    return {name: _within(name, value) for name, value in found.items()}


def _within(name: str, value: Any) -> Any:
    """Return a value with four digits, within the bounds of its parameter."""
    if isinstance(value, str):
        return value
    parameter = PARAMETERS[name]
    rounded = value if isinstance(value, int) else float(f"{value:.4g}")
    return parameter.kind(min(max(rounded, parameter.minimum), parameter.maximum))


def _shape(times_s: NDArray[np.float64]) -> float:
    """Return the shape of Weibull times between the starts of bursts; 1 where there are too few."""
    positive = times_s[times_s > 0]
    return float(stats.weibull_min.fit(positive, floc=0)[0]) if len(np.unique(positive)) > 1 else 1.0


def _tail(size: NDArray[np.int64]) -> float:
    """Return the exponent t of P(size >= s) = s^-t under which sizes, cut at their largest, are likeliest."""
    largest = size.max()
    if largest == 1:
        return float(PARAMETERS["burst_tail"].maximum)
    values, counts = np.unique(size, return_counts=True)

    def unlikelihood(tail: float) -> float:
        here = values.astype(np.float64) ** -tail
        beyond = np.where(values < largest, (values + 1.0) ** -tail, 0.0)
        return -float(np.sum(counts * np.log(np.maximum(here - beyond, 1e-300))))

    bounds = (PARAMETERS["burst_tail"].minimum, PARAMETERS["burst_tail"].maximum)
    return float(optimize.minimize_scalar(unlikelihood, bounds=bounds, method="bounded").x)


def _same_node(records: FailureRecords, bursts: _Bursts, later: NDArray[np.bool_]) -> float:
    if not later.any():
        return 0.0
    first = records.node[bursts.first][bursts.number]
    shares = np.bincount(records.node[bursts.first], minlength=records.num_nodes) / len(bursts.first)
    chance = float(shares[first[later]].mean())
    same = float(np.mean(records.node[later] == first[later]))
    return (same - chance) / (1.0 - chance) if chance < 1.0 else 1.0


def _alpha(records: FailureRecords, first: NDArray[np.int64]) -> float:
    """Return the exponent under which the worst tenth of the nodes begins as many of the bursts, in the mean, when the
    model's nodes are laid over those of the log."""
    nodes, count = records.num_nodes, len(first)
    wanted = worst_share(np.bincount(records.node[first], minlength=nodes))

    def share(alpha: float) -> float:
        rng = np.random.default_rng(0)
        laid = ((draw_nodes(rng, count, NODES, alpha) + rng.random(count)) * (nodes / NODES) for _ in range(_DRAWS))
        return float(np.mean([worst_share(np.bincount(each.astype(np.int64), minlength=nodes)) for each in laid]))

    low, high = 0.0, float(PARAMETERS["burst_zipf_alpha"].maximum)
    if nodes == 1 or wanted <= share(low):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if share(middle) < wanted else (low, middle)
    return (low + high) / 2.0


def _locality(node: NDArray[np.int64], number: NDArray[np.int64]) -> str:
    """Return whether other nodes of bursts are mostly next to the one before."""
    step = np.diff(node)[np.diff(number) == 0]
    away = step[step != 0]
    return ADJACENT if len(away) and np.mean(np.abs(away) == 1) > 0.5 else SCATTERED
