"""The figures of a failure log against closed forms, SciPy, and logs whose properties are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.failure_logs.statistics import (
    autocorrelation,
    dispersion,
    equal_worst_share,
    fit_gaps,
    summary,
    worst_share,
)
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures.bursts import synthetic_year
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from scipy import stats

from tests.failures import AS_SHIPPED


def records_of(times, nodes, num_nodes=10, down=None):
    down_s = np.full(len(times), np.nan) if down is None else np.array(down, float)
    names = tuple(map(str, range(num_nodes)))
    return FailureRecords(np.array(times, float), np.array(nodes, np.int64), down_s, num_nodes, node_name=names)


def test_figures_of_a_small_log():
    figures = summary(records_of([0, 0, 10, 86400], [3, 3, 4, 3], down=[0, 60, np.nan, 120]))
    assert figures["rate"]["failures_per_day"] == 4
    assert (figures["rate"]["mtbf_h"], figures["rate"]["node_mtbf_h"]) == (6, 60)
    assert figures["rate"]["nodes_that_failed"] == 2
    assert figures["gaps"]["mean_s"] == 28800
    assert figures["gaps"]["share_of_0_s"] == pytest.approx(1 / 3)
    assert figures["space"]["bursts"] == 2
    assert figures["space"]["largest_burst"] == 3
    assert figures["space"]["failures_in_bursts_over_several_nodes"] == 0.75
    assert figures["space"]["share_of_worst_tenth"] == 0.75
    assert figures["space"]["next_failure_on_the_same_node"] == pytest.approx(1 / 3)
    assert figures["space"]["next_failure_on_the_same_node_if_independent"] == 10 / 16
    assert figures["down"]["known"] == 0.75
    assert figures["down"]["mean_s"] == figures["down"]["quantile_0.5_s"] == 60


def test_shortest_logs():
    for times in ([5.0], [5.0, 5.0], [1.0, 2.0], [1.0, 2.0, 3.0]):
        figures = summary(records_of(times, [0] * len(times)))
        assert figures["fits"] == {}
        assert all(math.isnan(value) for value in figures["time"]["autocorrelation_of_gaps"].values())


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("Weibull", stats.weibull_min(0.6, scale=5000)),
        ("exponential", stats.expon(scale=5000)),
        ("lognormal", stats.lognorm(1.8, scale=300)),
    ],
)
def test_the_right_distribution_fits_best(name, law):
    gaps = law.rvs(4000, random_state=np.random.default_rng(3))
    fits = fit_gaps(gaps)
    assert [fit.aic for fit in fits] == sorted(fit.aic for fit in fits)
    best = fits[0]
    if name != "exponential":  # Weibull of shape 1 is within chance of it
        assert best.name == name
    fit = next(fit for fit in fits if fit.name == name)
    assert fit.aic - best.aic < 6
    assert fit.ks < 1.36 / math.sqrt(4000)
    expected = {
        "Weibull": {"shape": 0.6, "scale_s": 5000},
        "exponential": {"mean_s": 5000},
        "lognormal": {"mu": math.log(300), "sigma": 1.8},
    }
    assert fit.parameters == pytest.approx(expected[name], rel=0.05)


def test_fits_are_maxima_of_the_likelihood():
    gaps = stats.weibull_min(0.7, scale=100).rvs(500, random_state=np.random.default_rng(0))
    for fit in fit_gaps(gaps):
        values = list(fit.parameters.values())
        assert fit.log_likelihood == pytest.approx(likelihood(fit.name, values, gaps), rel=1e-9)
        assert fit.aic == pytest.approx(2 * len(values) - 2 * fit.log_likelihood)
        for at in range(len(values)):
            for factor in (0.98, 1.02):
                moved = [*values[:at], values[at] * factor, *values[at + 1 :]]
                assert likelihood(fit.name, moved, gaps) < fit.log_likelihood


def likelihood(name, values, t):
    if name == "exponential":
        return (-np.log(values[0]) - t / values[0]).sum()
    if name == "Weibull":
        k, scale = values
        return (np.log(k / scale) + (k - 1) * np.log(t / scale) - (t / scale) ** k).sum()
    mu, sigma = values
    return (-np.log(t * sigma * math.sqrt(2 * math.pi)) - (np.log(t) - mu) ** 2 / (2 * sigma**2)).sum()


def test_autocorrelation():
    assert autocorrelation(np.array([1.0, 2, 1, 2, 1, 2]), 1) == pytest.approx(-1)
    assert autocorrelation(np.array([1.0, 2, 1, 2, 1, 2]), 2) == pytest.approx(1)
    assert math.isnan(autocorrelation(np.ones(9), 1))


def test_dispersion_is_one_without_correlation_and_more_with_bursts():
    rng = np.random.default_rng(1)
    poisson = np.sort(rng.random(20_000) * 2000 * DAY_S)
    assert dispersion(poisson, DAY_S) == pytest.approx(1, abs=0.1)
    assert dispersion(np.arange(5000) * 3600.0, DAY_S) < 0.02
    assert dispersion(np.repeat(np.sort(rng.random(5000)) * 2000 * DAY_S, 4), DAY_S) == pytest.approx(4, rel=0.1)
    assert math.isnan(dispersion(poisson, 300 * DAY_S))


def test_skew():
    assert worst_share(np.array([0, 7, 1, 2, 0, 0, 0, 0, 0, 0])) == 0.7
    assert worst_share(np.array([4, 4, 4, 4, 4]), 0.1) == pytest.approx(0.1)
    rng = np.random.default_rng(0)
    sampled = [worst_share(np.bincount(rng.integers(0, 128, 1000), minlength=128)) for _ in range(200)]
    assert equal_worst_share(1000, 128) == pytest.approx(np.mean(sampled), abs=0.005)


def test_generated_correlation_and_skew_are_found():
    def figures(**parameters):
        config = resolve({"machine": "flat:320", "failures": "weibull", **parameters})
        trace = source_for(config, 320, Span(0.0, 1.0, 1.0)).until(4e7)
        return summary(records_of(trace.time_s, trace.node, 320, trace.down_s))

    plain, bursty = figures(), figures(burst_window=64, zipf_alpha=0.99)
    assert plain["fits"]["Weibull"]["shape"] == pytest.approx(0.85, abs=0.03)
    assert plain["fits"]["Weibull"]["scale_s"] == pytest.approx(18_000, rel=0.05)
    for name in ("shape", "scale_s"):  # the marginal is untouched
        assert bursty["fits"]["Weibull"][name] == pytest.approx(plain["fits"]["Weibull"][name], rel=0.02)
    assert abs(plain["time"]["autocorrelation_of_ranks"]["1"]) < 0.06
    assert bursty["time"]["autocorrelation_of_ranks"]["1"] > 0.8
    assert bursty["time"]["dispersion_of_counts"]["week"] > 2 * plain["time"]["dispersion_of_counts"]["week"]
    assert plain["space"]["share_of_worst_tenth"] < 0.25 < 0.5 < bursty["space"]["share_of_worst_tenth"]
    assert plain["down"]["mean_s"] == 120
    year = summary(synthetic_year(0, 0, AS_SHIPPED).records)
    assert year["space"]["failures_in_bursts_over_several_nodes"] > 0.3
