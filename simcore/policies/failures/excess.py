"""How many more failures than its nominal rate an ordinary renewal process has that begins with its machine all new.

It is at the mean of its first time between failures when it begins, not somewhere in it: with a shape below 1 the first
failures come faster (Cox, "Renewal Theory", 1962, chapter 4).
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Config
from faultsweep.simcore.policies.failures.mtbf import HOUR_S
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.policies.failures.weibull import weibull_mean_s

from faultsweep.extras import is_installed

_STEPS = 1 << 15
_FEW = 1e-6
"""So seldom is there a renewal at all that there is never a second one."""
_NOTED = 0.01
"""Fewer failures, or a smaller share of them, are nothing that a user has to be told."""


def expected_renewals(shape: float, scale_s: float, time_s: float) -> float:
    """Return the mean number of renewals up to a time, of Weibull interarrival times: the renewal function.

    Interarrival times are spread over the two multiples beside them of a 32,768th of the time, so that their mean
    stays; then the mean numbers of renewals at each multiple are the coefficients of 1 / (1 - f(z)), f that of the
    times.
    """
    if shape == 1.0:
        return time_s / scale_s
    from scipy.special import gammainc

    with np.errstate(over="ignore", under="ignore"):
        first = -np.expm1(-((np.float64(time_s) / scale_s) ** shape))  # probability of a renewal
    if first < _FEW:
        return float(first)
    step, mean_s = time_s / _STEPS, weibull_mean_s(shape, scale_s)
    edges = np.arange(_STEPS + 2) * step
    with np.errstate(over="ignore", under="ignore"):
        within = gammainc(1.0 / shape, (edges / scale_s) ** shape)
        survived = mean_s * within / step  # integral of P(interarrival time > t), in steps
    series = np.diff(survived, n=2, prepend=0.0)  # one minus the times' chances at 0, 1, ... steps
    series[0] = survived[1]
    renewals = _reciprocal(series[: _STEPS + 1])
    return float(renewals.sum() - renewals[-1] / 2.0) - 1.0


def largest_excess(shape: float) -> float:
    """Return a bound on how far the renewal function is from the nominal rate times the time, at any time.

    With a shape below 1 it is its limit (Brown, Annals of Probability 8, 1980), else 1 (Barlow and Proschan, 1965).
    """
    if shape >= 1.0:
        return 1.0
    with np.errstate(over="ignore"):
        second = np.float64(weibull_mean_s(shape / 2.0, 1.0)) / weibull_mean_s(shape, 1.0) ** 2
    return float(second) / 2.0 - 1.0


def _reciprocal(series: np.ndarray) -> np.ndarray:
    """Return the coefficients of the reciprocal of a power series, by Newton's method."""
    found = np.array([1.0 / series[0]])
    while len(found) < len(series):
        length = 2 * len(found)
        error = -_product(series[:length], found)[:length]
        error[0] += 2.0
        found = _product(found, error)[:length]
    return found[: len(series)]


def _product(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the coefficients of the product of two polynomials; importing scipy.signal for it would take 0.5 s."""
    size = len(first) + len(other) - 1
    padded = 1 << (size - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(first, padded) * np.fft.rfft(other, padded), padded)[:size]


def excess_sentence(config: Config, span_s: float) -> str:
    """Return the sentence on the excess of the failures of a configuration; "" for a small one, and without scipy."""
    process = _ordinary(config)
    if process is None or not 0.0 < span_s < np.inf or not is_installed("scipy"):  # a note is worth no package
        return ""
    shape, scale_s, mean_s = process
    if not 0.0 < mean_s < np.inf:
        return ""
    nominal = span_s / mean_s
    if largest_excess(shape) < _NOTED * nominal:
        return ""
    expected = expected_renewals(shape, scale_s, span_s)
    if max(expected, nominal) < _NOTED or abs(expected - nominal) < _NOTED * nominal:
        return ""
    factor = expected / nominal
    return (
        f"{config['failures']}: the first failures come {'faster' if factor > 1 else 'more slowly'}, since it begins "
        f"anew with the run (shape {shape:g}): over the {span_s / DAY_S:.3g} days of submissions {factor:.3g} times "
        "the failures of its nominal rate are expected"
    )


def _ordinary(config: Config) -> tuple[float, float, float] | None:
    """Return shape, scale and mean of the interarrival times of a renewal process that begins anew, s.

    None for other failures.
    """
    if config["failures"] == "weibull":
        shape, scale_s = config["weibull_shape"], config["weibull_scale_s"]
        return shape, scale_s, weibull_mean_s(shape, scale_s)
    if config["failures"] == "mtbf" and config["failure_start"] == "new":
        shape, mean_s = config["mtbf_shape"], (config["mtbf_h"] or config["node_mtbf_h"]) * HOUR_S
        return shape, mean_s / weibull_mean_s(shape, 1.0), mean_s
    return None
