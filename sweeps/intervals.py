"""Confidence intervals of means of few, skewed observations, and how often such intervals cover the truth.

The estimand is always the arithmetic mean. Means of waits and slowdowns are positive and skewed: their interval is made
on the logarithm of the mean, whose standard error is that of the mean divided by the mean (the delta method: Oehlert,
A note on the delta method, The American Statistician 46, 1992), with Student's quantile, and exponentiated. It is not
the exponential of an interval of logarithms, which is one of the geometric mean (Zhou and Gao, Confidence intervals for
the log-normal mean, Statistics in Medicine 16, 1997).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from faultsweep.extras import OptionalModule

special = OptionalModule("scipy.special", "a confidence interval")
stats = OptionalModule("scipy.stats", "a confidence interval")

SCALES = ("log", "logit", "identity", "cut")
"""On what an interval of a mean is made: "log" for positive observations, "logit" for fractions, "identity" for
others; "cut" is the identity for observations of which none is negative and some are zero: no bound is below zero."""
FRACTIONS = frozenset(
    {
        *("utilisation", "unused_capacity", "lost_capacity", "lost_to_fragmentation", "lost_to_failures"),
        *("lost_to_growth", "lost_to_down_time", "lost_to_hold", "lost_to_delay", "lost_to_congestion"),
        *("lost_to_overhead", "lost_to_preemption"),
        *("trunk_utilisation", "saturated_time_frac", "migrations_per_attempt"),
        *("gini_wait", "jain_bounded_slowdown", "share_gap", "owner_share"),
    }
)
"""Metrics between 0 and 1, whose intervals are made on the logit of the mean."""
TOLERANCE = 0.02
"""How far the measured coverage may be from the level before an interval is called approximate."""
_EQUAL = 1e-12  # relative differences between observations that are rounding
_RUNS, _NUMBERS = 4_000, 400_000  # of a measured coverage: runs at least, and numbers that are drawn otherwise
_WIDEST = 3.0


def moments(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return mean, standard error of the mean and number of the observations in each row; NaN is no observation."""
    count = np.isfinite(rows).sum(-1)
    rows, power = scaled(rows)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # none, one, or infinite
        mean = np.nansum(rows, -1) / count
        error = np.sqrt(np.nansum((rows - mean[..., None]) ** 2, -1) / (count - 1) / count)
        return np.ldexp(mean, power), np.ldexp(error, power), count


def scaled(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return rows of at most 1, and the powers of two that make them what they were: their squares are numbers, too."""
    power = np.frexp(np.fmax.reduce(np.abs(rows), -1, initial=0.0, where=np.isfinite(rows)))[1]
    return np.ldexp(rows, -power[..., None]), power


def choose_scales(rows: NDArray[np.float64], fraction: bool = False) -> NDArray[np.str_]:
    """Return the scale of each row of observations, shape (..., observations); one negative number decides for all.

    A row whose mean a logarithm or a logit does not exist of, gets the identity.
    """
    mean = moments(rows)[0]
    if fraction:
        return np.where((mean > 0) & (mean < 1), "logit", "identity")
    lowest = np.fmin.reduce(rows, -1, initial=np.nan)
    if np.any(lowest < 0):
        return np.full(mean.shape, "identity")
    return np.where(lowest > 0, "log", "cut")


def student_bounds(
    mean: NDArray[np.float64],
    error: NDArray[np.float64],
    count: NDArray[np.int64],
    level: float | NDArray[np.float64],
    scale: NDArray[np.str_],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of intervals of means by the delta method on the scale of each; NaN of infinite means."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        half = stats.t.ppf((1 + level) / 2, np.maximum(count - 1, 1)) * error
        low, high = mean - half, mean + half
        low = np.where(scale == "cut", np.maximum(low, 0.0), low)
        factor = np.exp(half / mean)
        low, high = np.where(scale == "log", mean / factor, low), np.where(scale == "log", mean * factor, high)
        centre, spread = special.logit(mean), half / (mean * (1 - mean))
        low = np.where(scale == "logit", special.expit(centre - spread), low)
        high = np.where(scale == "logit", special.expit(centre + spread), high)
    unknown = ~np.isfinite(mean)
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def repeated_copies(copies: NDArray[np.bool_], *keys: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which replicates repeat, as copies, the observation of another one; all of shape (replicates,)."""
    seen = {tuple(key[i] for key in keys) for i in range(len(copies)) if not copies[i]}
    repeated = np.zeros(len(copies), dtype=bool)
    for i in np.flatnonzero(copies):
        observation = tuple(key[i] for key in keys)
        repeated[i] = observation in seen
        seen.add(observation)
    return repeated


def differ(rows: NDArray[np.float64], size: float = 0.0) -> NDArray[np.bool_]:
    """Return which rows have two observations that differ, by more than rounding of numbers of this size."""
    with np.errstate(invalid="ignore"):
        return np.fmax.reduce(rows, -1, initial=np.nan) - np.fmin.reduce(rows, -1, initial=np.nan) > _EQUAL * size


def mean_bounds(
    rows: NDArray[np.float64], level: float | NDArray[np.float64], scale: NDArray[np.str_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of the interval of the mean of each row, which may have a level of its own.

    They are NaN where fewer than two observations differ.
    """
    mean, error, count = moments(rows)
    known = (count > 1) & differ(rows)
    low, high = student_bounds(mean, error, count, level, scale)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def log_spread(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of the logarithms of each row.

    Of a row with zeros, that of log-normal numbers with its coefficient of variation; NaN of one with negative numbers,
    and of fewer than two.
    """
    mean, error, count = moments(rows)
    lowest = np.fmin.reduce(rows, -1, initial=np.nan)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        logs = np.log(np.where(lowest[..., None] > 0, rows, np.nan))
        found = moments(logs)[1] * np.sqrt(count)
        by_moments = np.sqrt(np.log1p((error / mean) ** 2 * count))
    return np.where(lowest > 0, found, np.where(lowest == 0, by_moments, np.nan))


@cache
def measured_coverage(n: int, log_sd: float, level: float = 0.95, scale: str = "log") -> float:
    """Return how often the interval of the mean of n log-normal observations covers the truth, by simulation.

    The estimate has a standard error of 0.5 % at most, and is the same at every call. Intervals of ratios of paired
    means cover about as often, or a little more often.
    """
    rng = np.random.default_rng([n, round(1000 * log_sd)])
    rows = rng.lognormal(0, log_sd, (max(_RUNS, _NUMBERS // n), n))
    low, high = student_bounds(*moments(rows), level, np.full(len(rows), scale))
    truth = np.exp(log_sd**2 / 2)
    return float(((low <= truth) & (truth <= high)).mean())


def coverage_of(
    n: NDArray[np.int64], log_sd: NDArray[np.float64], level: float, scale: NDArray[np.str_]
) -> NDArray[np.float64]:
    """Return the measured coverage of intervals of these numbers and spreads, rounded to a grid, NaN where unknown.

    Intervals on the logit are taken to cover as often as they say: fractions are not skewed as waits are.
    """
    found = np.full(np.shape(n), np.nan)
    for index in np.ndindex(found.shape):
        count, spread = int(n[index]), float(log_sd[index])
        if scale[index] == "logit":
            found[index] = level
        elif count > 1 and spread == spread:
            kind = "log" if scale[index] == "log" else "identity"
            found[index] = measured_coverage(_near(count), min(_WIDEST, round(spread, 1)) or 0.01, level, kind)
    return found


def _near(n: int) -> int:
    """Return n with two digits, so that few coverages are measured, and at most 400."""
    step = 10 ** max(0, len(str(n)) - 2)
    return min(400, n // step * step)
