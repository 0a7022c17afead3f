"""Sequential replication: replicates are added where the interval of a mean is wider than the spec allows.

precision = "5%"                                   # of the first metric, at most 100 replicates
precision = {within = "5%", metrics = ["mean_wait_s", "utilisation"], most = 40, level = 0.9}

Every configuration begins with ``replicates`` (5 if the spec does not say). After each round, one whose interval
reaches further than ``within`` of its mean, for any of the metrics, gets as many replicates as its spread so far
suggests, at most twice as many as it has; until all intervals are narrow enough or have ``most`` replicates. Intervals
are those of ``analysis.statistics.mean_interval``, or Student's t in a store that began with them. A run that was
stopped goes on with the round that it was at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.intervals import FRACTIONS, choose_scales, mean_bounds, moments, repeated_copies
from faultsweep.sweeps.store.opener import stored_spec
from faultsweep.sweeps.store.statuses import COPY, NOT_REQUESTED, PENDING, TRUNCATED_COPY, WITH_RESULT
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.target import Output
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

KEYS = ("within", "metrics", "most", "level")
RULES = {"delta": "auto", "t": "identity"}
"""Rules by which a store decides, each with the scale of its intervals: "t" was that of all stores once."""
NEW_RULE = "delta"
FIRST_REPLICATES = 5
MOST_REPLICATES = 100


@dataclass(frozen=True)
class Precision:
    """How precise means have to be.

    Attributes
    ----------
    within : half the width of the interval, of the mean; 0.05 is 5 %.
    metrics : whose intervals count.
    most : replicates of a configuration at most.
    level : of the intervals.
    first : replicates of every configuration, from which the first decision is made.
    """

    within: float
    metrics: tuple[str, ...]
    most: int = MOST_REPLICATES
    level: float = 0.95
    first: int = FIRST_REPLICATES


def read_precision(raw: Any, outputs: Sequence[Output], replicates: int) -> Precision:
    """Return the precision that a spec asks for.

    Raises
    ------
    InputError
        One sentence that says which key is wrong and what is valid.
    """
    table = raw if isinstance(raw, dict) else {"within": raw}
    for key in table:
        if key not in KEYS:
            raise unknown_name("key", key, KEYS)
    known = [out.name for out in outputs if out.is_number]
    metrics = table.get("metrics", known[:1])
    metrics = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(metrics, list) or not metrics:
        raise InputError(f"metrics: expected a list of metrics, got {metrics!r}")
    for name in metrics:
        if name not in known:
            raise unknown_name("metric", str(name), known, where="metrics")
    most = table.get("most", max(MOST_REPLICATES, replicates))
    if isinstance(most, bool) or not isinstance(most, int) or most < replicates:
        raise InputError(f"most: expected a whole number of at least {replicates} (replicates), got {most!r}")
    level = table.get("level", 0.95)
    if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
        raise InputError(f"level: expected a number between 0 and 1, got {level!r}")
    if replicates < 2:
        raise InputError("an interval needs two replicates or more; set replicates = 5, or leave it out")
    return Precision(read_share(table.get("within")), tuple(metrics), most, level, replicates)


def read_share(raw: Any, key: str = "within") -> float:
    """Return "5%" or 0.05 as 0.05."""
    try:
        if isinstance(raw, str) and raw.strip().endswith("%"):
            share = float(raw.strip()[:-1]) / 100
        else:
            share = float("nan") if isinstance(raw, str | bool) or raw is None else float(raw)
    except (TypeError, ValueError):
        share = float("nan")
    if not (math.isfinite(share) and 0 < share < 1):
        raise InputError(f'{key}: expected a share of the mean such as "5%" or 0.05, got {raw!r}')
    return share


def with_replicates(axes: Sequence[Axis], count: int) -> list[Axis]:
    """Return the axes with so many replicates."""
    numbers = list(range(count))
    last = axes[-1]
    return [*axes[:-1], replace(last, labels=numbers, columns=dict.fromkeys(last.columns, numbers))]


def rule_of(store: Store) -> str:
    """Return the rule that the store began with; one that does not say so, and has asked for a precision, with "t"."""
    stored = store.attributes.get("precision_rule")
    if stored is None:
        stored = "t" if "precision" in stored_spec(store.attributes) else NEW_RULE
    if stored not in RULES:
        raise InputError(f"{store.path}: precision_rule: {unknown_name('rule', str(stored), RULES)}")
    return str(stored)


def replicates_needed(store: Store, precision: Precision) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many replicates each configuration has of those that it needs, and how many it needs.

    All rounds are decided again, each from its own replicates, which are the first ones, and only if it is whole. So
    the answer does not depend on what else is finished: of a round that was stopped, or by another spec.

    Returns
    -------
    Two arrays over all axes of the store but ``replicate``, the last one. A configuration whose replicates are all one
    simulation (nothing in it is random) needs no more than the first round, and neither does one without a result.
    """
    shape = store.chunks.shape
    status = store.status().reshape(-1, shape[-1])
    values = {name: store.arrays[name][...].reshape(status.shape) for name in precision.metrics}
    over = ~np.isin(status, (PENDING, NOT_REQUESTED))
    scale = RULES[rule_of(store)]
    leading = np.where(over.all(1), shape[-1], over.argmin(1))
    needed = np.full(len(status), precision.first)
    for count in range(precision.first, min(precision.most, shape[-1] + 1)):
        at = np.flatnonzero((needed == count) & (leading >= count))
        for name in precision.metrics if len(at) else ():
            metric = values[name][at, :count]
            needed[at] = np.maximum(needed[at], _next_round(name, metric, status[at, :count], precision, scale))
    have = (over & (np.arange(shape[-1]) < needed[:, None])).sum(1)
    return have.reshape(shape[:-1]), needed.reshape(shape[:-1])


def _next_round(
    name: str, values: NDArray[Any], status: NDArray[np.int8], precision: Precision, scale: str
) -> NDArray[np.int64]:
    """Return how many replicates configurations should have by one metric of a round, shape (configurations, count)."""
    count = values.shape[1]
    rows = np.where(np.isin(status, WITH_RESULT), values.astype(float), np.nan)
    copies = np.isin(status, (COPY, TRUNCATED_COPY))
    for row in np.flatnonzero(copies.any(1)):
        rows[row, repeated_copies(copies[row], rows[row])] = np.nan
    mean = moments(rows)[0]
    scales = choose_scales(rows, name in FRACTIONS) if scale == "auto" else np.full(mean.shape, scale)
    high = mean_bounds(rows, precision.level, scales)[1]
    n = (~np.isnan(rows)).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = (high - mean) / (precision.within * np.abs(mean))
        wanted = np.ceil(n * np.minimum(excess, 1e3) ** 2)
    wanted = np.clip(wanted, count + 1, min(2 * count, precision.most))
    return np.where(excess > 1, wanted, count).astype(np.int64)


def replicates_wanted(
    store: Store, precision: Precision, asked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the same, where configurations of which no cell is ``asked`` for, shape (cells,), need no more."""
    have, needed = replicates_needed(store, precision)
    return have, np.where(asked.reshape(store.chunks.shape).any(-1), needed, have)
