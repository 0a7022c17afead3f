"""Coverage of intervals of means and of ratios of paired means, where the truth is known: log-normal replicates."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.statistics import mean_interval, paired_ratio
from faultsweep.sweeps.intervals import measured_coverage
from scipy import stats

RUNS = 40_000


def covered(found: xr.Dataset, truth: float) -> float:
    return float(((found["low"] <= truth) & (truth <= found["high"])).mean())


def coverage_of_means(n: int, sd: float, **options) -> float:
    rows = np.random.default_rng([n, int(10 * sd)]).lognormal(3, sd, (RUNS, n))
    found = mean_interval(xr.DataArray(rows, dims=("run", "replicate")), **options)
    return covered(found, float(np.exp(3 + sd**2 / 2)))


def coverage_of_ratios(n: int, sd: float, correlation: float) -> float:
    rng = np.random.default_rng([n, int(10 * sd), int(10 * correlation)])
    first, own = rng.normal(size=(2, RUNS, n))
    second = correlation * first + np.sqrt(1 - correlation**2) * own
    rows = np.stack([np.exp(sd * first), 1.5 * np.exp(sd * second)], axis=1)
    values = xr.DataArray(rows, dims=("run", "policy", "replicate"), coords={"policy": ["a", "b"]})
    return covered(paired_ratio(values, "policy", "a").sel(policy="b"), 1.5)


@pytest.mark.parametrize("n", [10, 15, 20, 50])
@pytest.mark.parametrize("sd", [0.1, 0.3, 0.5])
@pytest.mark.sampled(3)
def test_intervals_cover_as_often_as_they_say(n, sd):
    assert 0.93 <= coverage_of_means(n, sd) <= 0.97
    assert 0.93 <= coverage_of_ratios(n, sd, 0.0) <= 0.97
    assert 0.93 <= coverage_of_ratios(n, sd, 0.8) <= 0.97


def test_intervals_on_the_identity_cover_less_often():
    assert coverage_of_means(10, 0.5, scale="identity") < 0.93 < coverage_of_means(10, 0.5)


@pytest.mark.parametrize(("n", "sd"), [(5, 0.5), (10, 0.5), (10, 1.0), (20, 1.5)])
def test_the_coverage_that_is_printed_is_the_measured_one(n, sd):
    """Two simulations of the same quantity, each with a standard error of at most 0.4 %."""
    assert measured_coverage(n, sd) == pytest.approx(coverage_of_means(n, sd), abs=0.015)


@pytest.mark.parametrize("mean", [0.3, 0.9, 0.97])
def test_intervals_of_fractions_cover_as_often_as_they_say(mean):
    rows = stats.beta(40 * mean, 40 * (1 - mean)).rvs((RUNS, 10), random_state=3)
    found = mean_interval(xr.DataArray(rows, dims=("run", "replicate"), name="utilisation"))
    assert 0.93 <= covered(found, mean) <= 0.97
    assert float(found["high"].max()) < 1


def test_intervals_of_what_is_at_times_zero_cover_as_often_as_they_say():
    rng = np.random.default_rng(9)
    rows = np.where(rng.random((RUNS, 30)) < 0.2, 0, rng.lognormal(0, 0.3, (RUNS, 30)))
    found = mean_interval(xr.DataArray(rows, dims=("run", "replicate")))
    assert 0.93 <= covered(found, 0.8 * float(np.exp(0.3**2 / 2))) <= 0.97
