"""Table I of zhang2004, which is one sample, in its sampling distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from faultsweep.simcore.failures.source import DAY_S, Span
from faultsweep.simcore.failures.weibull import weibull_source
from faultsweep.simcore.parameters import resolve

PAPER = {0.2: 78, 0.55: 138, 0.65: 198, 0.85: 266}
"""Failures of the paper by shape; the scale is 18,000 s and the jobs span about 62 days."""


class Row(NamedTuple):
    """The number of failures under one shape.

    ``mean`` with its 95 % confidence interval (normal); ``low`` and ``high`` hold 95 % of the samples; ``paper``: its
    figure; ``paper_rank``: the share of samples at most as large.
    """

    shape: float
    mean: float
    mean_low: float
    mean_high: float
    low: float
    high: float
    paper: int
    paper_rank: float


def sampling_distribution(*, days: float = 62.0, replicates: int = 1000, seed: int = 0) -> list[Row]:
    """Return the distribution of the number of failures in a span of days, for every shape of the table."""
    span = Span(0.0, days * DAY_S, days * DAY_S)
    rows = []
    for shape, paper in PAPER.items():
        counts = np.empty(replicates)
        for replicate in range(replicates):
            config = resolve({"failures": "weibull", "weibull_shape": shape, "seed": seed, "replicate": replicate})
            counts[replicate] = len(weibull_source(config, 320, span).until(span.end_s))
        half = 1.96 * counts.std(ddof=1) / np.sqrt(replicates)
        low, high = np.quantile(counts, [0.025, 0.975])
        mean = float(counts.mean())
        rank = float(np.mean(counts <= paper))
        rows.append(Row(shape, mean, mean - half, mean + half, float(low), float(high), paper, rank))
    return rows
