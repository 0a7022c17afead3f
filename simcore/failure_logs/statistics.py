"""What a failure log is like: its rate, and how far it is from independent failures of equal nodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs.fitting import bursts_of
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.policies.failures.source import DAY_S
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

stats = OptionalModule("scipy.stats", "the description of a failure log")

LAGS = (1, 2, 5, 10)
WINDOWS_S = {"hour": 3600.0, "day": DAY_S, "week": 7 * DAY_S, "30 days": 30 * DAY_S}
QUANTILES = (0.5, 0.9, 0.99)


class Fit(NamedTuple):
    """A distribution of times between failures, fitted by maximum likelihood.

    ``parameters`` by name; ``log_likelihood``; ``aic`` = 2 (number of parameters) - 2 log-likelihood; ``ks``: the
    Kolmogorov-Smirnov distance (its usual p-value does not hold where the parameters are fitted to the same data);
    ``survival``: P(T > t).
    """

    name: str
    parameters: dict[str, float]
    log_likelihood: float
    aic: float
    ks: float
    survival: Callable[[NDArray[np.float64]], NDArray[np.float64]]


def fit_gaps(gaps_s: NDArray[np.float64]) -> list[Fit]:
    """Fit Weibull, exponential and lognormal distributions to times between failures, best (lowest AIC) first.

    ``gaps_s`` has shape (k,), all > 0. Fewer than two different gaps fit nothing: the list is empty.
    """
    if len(np.unique(gaps_s)) < 2:
        return []
    log = np.log(gaps_s)
    shape, _, scale = stats.weibull_min.fit(gaps_s, floc=0)
    candidates = [
        ("Weibull", {"shape": shape, "scale_s": scale}, stats.weibull_min(shape, scale=scale)),
        ("exponential", {"mean_s": gaps_s.mean()}, stats.expon(scale=gaps_s.mean())),
        ("lognormal", {"mu": log.mean(), "sigma": log.std()}, stats.lognorm(log.std(), scale=math.exp(log.mean()))),
    ]
    fits = []
    for name, parameters, law in candidates:
        likelihood = float(law.logpdf(gaps_s).sum())
        aic = 2.0 * len(parameters) - 2.0 * likelihood
        ks = float(stats.kstest(gaps_s, law.cdf).statistic)
        values = {key: float(value) for key, value in parameters.items()}
        fits.append(Fit(name, values, likelihood, aic, ks, law.sf))
    return sorted(fits, key=lambda fit: fit.aic)


def autocorrelation(values: NDArray[np.float64], lag: int) -> float:
    """Return the correlation of values with those ``lag`` places on; NaN where there are too few or they are equal."""
    if len(values) < lag + 3:
        return math.nan
    early, late = values[:-lag], values[lag:]
    if early.std() == 0 or late.std() == 0:
        return math.nan
    return float(np.corrcoef(early, late)[0, 1])


def dispersion(time_s: NDArray[np.float64], window_s: float) -> float:
    """Return variance / mean of the counts in windows of a length; 1 for a Poisson process. NaN below ten windows."""
    windows = math.floor((time_s[-1] - time_s[0]) / window_s)
    if windows < 10:
        return math.nan
    counts = np.histogram(time_s - time_s[0], windows, (0.0, windows * window_s))[0]
    return float(counts.var(ddof=1) / counts.mean())


def worst_share(per_node: NDArray[np.int64], share: float = 0.1) -> float:
    """Return the share of all failures that the worst ``share`` of the nodes has; a node at the edge counts in part."""
    ordered = np.concatenate([[0.0], np.cumsum(np.sort(per_node)[::-1])]) / per_node.sum()
    return float(np.interp(share * len(per_node), np.arange(len(per_node) + 1), ordered))


def equal_worst_share(failures: int, nodes: int, share: float = 0.1) -> float:
    """Return what ``worst_share`` would be, about, if all nodes were alike: of Poisson counts of the same mean."""

    counts = stats.poisson.ppf((np.arange(nodes) + 0.5) / nodes, failures / nodes).astype(np.int64)
    return worst_share(counts, share) if counts.sum() else 1.0


def summary(records: FailureRecords) -> dict[str, Any]:
    """Return the figures of a failure log, by group and name; what a log is too short for is NaN.

    Groups: ``log``, ``rate``, ``gaps`` (times between failures of the system), ``fits`` (of gaps of more than 0 s),
    ``time`` (autocorrelation of gaps and of their ranks, dispersion of counts), ``space`` (skew, bursts, repetition),
    ``down`` (down times).
    """
    time_s, gaps = records.time_s, np.diff(records.time_s)
    return {
        "log": {"name": records.name, "format": records.kind, "content_hash": records.content_hash, **records.counts},
        "rate": _rate(records),
        "gaps": _gaps(gaps),
        "fits": {
            fit.name: {**fit.parameters, "log_likelihood": fit.log_likelihood, "aic": fit.aic, "ks": fit.ks}
            for fit in fit_gaps(gaps[gaps > 0])
        },
        "time": {
            "autocorrelation_of_gaps": {str(lag): autocorrelation(gaps, lag) for lag in LAGS},
            "autocorrelation_of_ranks": {str(lag): autocorrelation(_ranks(gaps), lag) for lag in LAGS},
            "dispersion_of_counts": {name: dispersion(time_s, length) for name, length in WINDOWS_S.items()},
        },
        "space": _space(records),
        "down": _down(records),
    }


def _rate(records: FailureRecords) -> dict[str, float]:
    days = records.span_s / DAY_S
    nodes = records.num_nodes
    rate = len(records) / days if days else math.nan
    return {
        "failures": len(records),
        "span_days": days,
        "failures_per_day": rate,
        "mtbf_h": 24.0 / rate if days else math.nan,
        "node_mtbf_h": 24.0 * nodes / rate if days else math.nan,
        "nodes": nodes,
        "nodes_that_failed": len(np.unique(records.node)),
    }


def _gaps(gaps: NDArray[np.float64]) -> dict[str, float]:
    if not len(gaps):
        return {}
    mean = float(gaps.mean())
    return {
        "mean_s": mean,
        "median_s": float(np.median(gaps)),
        "coefficient_of_variation": float(gaps.std() / mean) if mean else math.nan,
        "share_of_0_s": float(np.mean(gaps == 0)),
    }


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return stats.rankdata(values).astype(np.float64)


def _space(records: FailureRecords) -> dict[str, float]:
    per_node = np.bincount(records.node, minlength=records.num_nodes)
    burst = bursts_of(records.time_s)
    pairs = np.unique(np.stack([burst, records.node]), axis=1)
    nodes_of_burst = np.bincount(pairs[0])
    shares = per_node / len(records)
    return {
        "share_of_worst_tenth": worst_share(per_node),
        "share_of_worst_tenth_if_nodes_were_alike": equal_worst_share(len(records), records.num_nodes),
        "share_of_worst_node": float(shares.max()),
        "bursts": len(nodes_of_burst),
        "failures_per_burst": len(records) / len(nodes_of_burst),
        "largest_burst": int(np.bincount(burst).max()),
        "failures_in_bursts_over_several_nodes": float(np.mean(nodes_of_burst[burst] > 1)),
        "next_failure_on_the_same_node": float(np.mean(np.diff(records.node) == 0)) if len(records) > 1 else math.nan,
        "next_failure_on_the_same_node_if_independent": float((shares**2).sum()),
    }


def _down(records: FailureRecords) -> dict[str, float]:
    known = records.down_s[~np.isnan(records.down_s)]
    figures = {"known": len(known) / len(records)}
    if len(known):
        figures |= {"share_of_0_s": float(np.mean(known == 0)), "mean_s": float(known.mean())}
        figures |= {f"quantile_{level:g}_s": float(np.quantile(known, level)) for level in QUANTILES}
        figures |= {"longest_s": float(known.max())}
    return figures
