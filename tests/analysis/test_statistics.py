"""Intervals and differences against scipy and against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.statistics import (
    describe_intervals,
    interval_coverage,
    mean_interval,
    observations,
    paired_difference,
    paired_ratio,
    saturation,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from faultsweep.errors import InputError

from .stores import make_results

DONE, FAILED, COPY = 1, 2, 4


def results(rows, status=None, replicates=None):
    rows = np.asarray(rows, float)
    axes = {"scheduler": [f"s{i}" for i in range(len(rows))]}
    return make_results(axes, {"x": rows}, status, replicates or rows.shape[1])


def test_interval_is_that_of_scipy():
    rng = np.random.default_rng(1)
    data = results(rng.normal(10, 3, (4, 7)))
    got = mean_interval(data["x"], data["status"], level=0.9, scale="identity")
    for i, row in enumerate(data["x"].values):
        expected = stats.ttest_1samp(row, 0).confidence_interval(0.9)
        assert got["mean"][i].item() == pytest.approx(row.mean(), rel=1e-12)
        assert (got["low"][i].item(), got["high"][i].item()) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert got["n"].values.tolist() == [7] * 4


def test_interval_by_hand():
    # mean 2, standard deviation 1, t(0.975; 2) = 4.302653: half-width 4.302653 / sqrt(3)
    got = mean_interval(results([[1, 2, 3]])["x"], scale="identity")
    assert got["high"].item() - 2 == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


def test_interval_of_positive_replicates_by_hand():
    """Mean 2, standard error 1 / sqrt(3): on the logarithm 1 / (2 sqrt(3)), with Student's quantile 4.302653."""
    got = mean_interval(results([[1, 2, 3]])["x"])
    factor = np.exp(4.302653 / (2 * 3**0.5))
    assert (got["low"].item(), got["high"].item()) == pytest.approx((2 / factor, 2 * factor), rel=1e-6)
    assert got["interval_scale"].item() == "log"
    assert got["interval_log_sd"].item() == pytest.approx(np.log([1, 2, 3]).std(ddof=1))


@pytest.mark.parametrize("power", [-1000, -700, 600, 1000])
@pytest.mark.parametrize("method", ["delta", "bootstrap"])
def test_intervals_of_very_large_and_small_numbers_are_those_of_others(power, method):
    """Their squares are no numbers that a computer holds."""
    rows = np.random.default_rng(4).lognormal(0, 0.5, (3, 20))
    plain, far = (results(np.ldexp(rows, exponent)) for exponent in (0, power))
    one, other = (mean_interval(data["x"], method=method) for data in (plain, far))
    for bound in ("mean", "low", "high"):
        assert other[bound].values.tolist() == np.ldexp(one[bound].values, power).tolist()
    one, other = (mean_interval(data["x"], scale="identity") for data in (plain, far))
    assert other["low"].values.tolist() == np.ldexp(one["low"].values, power).tolist()
    ratios = [paired_ratio(data["x"], "scheduler", "s0", method=method) for data in (plain, far)]
    xr.testing.assert_allclose(*ratios, rtol=1e-12)


def test_interval_of_a_fraction_stays_between_0_and_1():
    data = make_results({"load": [1.0]}, {"utilisation": [[0.99, 0.93, 0.999, 0.98]]}, replicates=4)["utilisation"]
    got = mean_interval(data)
    mean, error = np.mean(data.values), stats.sem(data.values, axis=None)
    half = stats.t.ppf(0.975, 3) * error / (mean * (1 - mean))
    expected = special.expit(special.logit(mean) + np.array([-half, half]))
    assert (got["low"].item(), got["high"].item()) == pytest.approx(tuple(expected))
    assert mean_interval(data, scale="identity")["high"] > 1 > got["high"]


@pytest.mark.parametrize("name", ["mean_wait_s", "utilisation", "work_lost_node_s"])
def test_a_mean_that_is_infinite_has_no_interval(name):
    values = xr.DataArray([[1.0, np.inf, 2.0]], dims=("scheduler", "replicate"), coords={"scheduler": ["a"]}, name=name)
    found = mean_interval(values)
    assert np.isnan([found["low"].item(), found["high"].item()]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["mean_wait_s", "utilisation"])
@pytest.mark.parametrize(
    "row",
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, 0.5, 0.5], [0.5], [np.nan] * 3, [0.5, np.nan, np.nan], [0.1, np.inf, 0.2]],
    ids=["zeros", "ones", "constant", "one", "none", "one known", "infinite"],
)
def test_what_does_not_vary_or_is_not_known_has_a_mean_and_no_interval(name, row):
    found = mean_interval(xr.DataArray([row], dims=("scheduler", "replicate"), coords={"scheduler": ["a"]}, name=name))
    known = [value for value in row if not np.isnan(value)]
    assert found["mean"].item() == (np.mean(known) if known else pytest.approx(np.nan, nan_ok=True))
    assert found["n"].item() == len(known)
    assert np.isnan([found["low"].item(), found["high"].item()]).all()


def test_zeros_and_negative_numbers_decide_the_scale():
    got = mean_interval(results([[1, 2, 30], [0, 0, 9]])["x"])
    assert got["interval_scale"].values.tolist() == ["log", "cut"]
    assert (got["low"].values >= 0).all()
    assert got["high"][1] == mean_interval(results([[0, 0, 9]])["x"], scale="identity")["high"][0]
    signed = mean_interval(results([[1, 2, 30], [-1, 0, 9]])["x"])
    assert signed["interval_scale"].values.tolist() == ["identity"] * 2
    with pytest.raises(InputError, match="unknown scale 'ln'"):
        mean_interval(results([[1, 2]])["x"], scale="ln")


def test_paired_ratio_by_hand():
    """The logarithm of a ratio of means has the variance of x / mean(x) - b / mean(b), over n."""
    rows = np.array([[10.0, 20.0, 60.0], [12.0, 30.0, 66.0]])
    got = paired_ratio(results(rows)["x"], "scheduler", "s0")
    error = (rows[1] / 36 - rows[0] / 30).std(ddof=1) / 3**0.5
    factor = np.exp(4.302653 * error)
    assert got["mean"].values.tolist() == [1, 1.2]
    assert (got["low"][1].item(), got["high"][1].item()) == pytest.approx((1.2 / factor, 1.2 * factor), rel=1e-6)
    assert np.isnan(got["low"][0])
    back = paired_ratio(results(rows)["x"], "scheduler", "s1")
    assert back["low"][0].item() == pytest.approx(1 / got["high"][1].item())


def test_ratios_use_the_replicates_that_both_have():
    got = paired_ratio(results([[1, 2, np.nan, 4], [2, 3, 100, np.nan]])["x"], "scheduler", "s0")
    assert (got["mean"][1].item(), got["n"][1].item()) == (5 / 3, 2)
    assert paired_difference(results([[1, np.nan], [2, 3]])["x"], "scheduler", "s0")["n"].values.tolist() == [1, 1]


def test_a_ratio_of_what_is_always_the_same_factor_has_no_interval():
    got = paired_ratio(results([[0.1, 0.2, 0.7], [0.3, 0.6, 2.1], [0, 0, 0]])["x"], "scheduler", "s0")
    assert got["mean"].values.tolist() == pytest.approx([1, 3, 0])
    assert np.isnan(got["low"]).all()


def test_intervals_that_cover_too_rarely_are_called_approximate():
    rng = np.random.default_rng(21)
    narrow, wide = (mean_interval(results(rng.lognormal(3, sd, (3, 10)))["x"]) for sd in (0.2, 1.5))
    assert describe_intervals(narrow) == "95\u00a0% confidence intervals"
    assert describe_intervals(100 * narrow) == describe_intervals(narrow)
    signed = mean_interval(results(rng.normal(0, 1, (3, 10)))["x"])
    assert describe_intervals(signed).endswith(" (coverage not measured where some are negative)")
    text = describe_intervals(wide)
    assert text.startswith("approximate 95\u00a0% confidence intervals (measured coverage ")
    lowest = interval_coverage(wide).min().item()
    assert 0.7 < lowest < 0.9
    assert f"{100 * lowest:.0f}" in text
    assert interval_coverage(mean_interval(results([[1, np.nan]])["x"])).isnull().all()


def test_points_are_those_that_the_mean_is_made_of():
    data = results([[5, 5, 6]], [[DONE, COPY, COPY]])
    assert observations(data["x"], data["status"]).values.tolist()[0][::2] == [5, 6]
    assert np.isnan(observations(data["x"], data["status"]).values[0, 1])


def test_missing_replicates_do_not_count():
    got = mean_interval(results([[1, np.nan, 3], [np.nan] * 3])["x"])
    assert got["n"].values.tolist() == [2, 0]
    assert got["mean"].values[0] == 2
    assert np.isnan(got["mean"].values[1])


def test_copies_count_once():
    # row 0: one simulation and four copies of it; row 1: copies of five different simulations of another row
    data = results([[5] * 5, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], [[DONE] + [COPY] * 4, [COPY] * 5, [DONE] * 5])
    got = mean_interval(data["x"], data["status"])
    assert got["n"].values.tolist() == [1, 5, 5]
    assert got["mean"].values.tolist() == [5, 3, 3]
    assert np.isnan(got["low"][0])
    assert got["low"][1] == got["low"][2]


def test_copies_do_not_shift_the_mean():
    data = results([[1, 2, 2, 2]], [[DONE, DONE, COPY, COPY]])
    got = mean_interval(data["x"], data["status"])
    assert (got["mean"].item(), got["n"].item()) == (1.5, 2)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.integers(1, 6))
def test_there_is_no_interval_of_zero_width(values, repeats):
    data = results([values * repeats], [[DONE] * len(values) + [COPY] * (len(values) * (repeats - 1))])
    got = mean_interval(data["x"], data["status"])
    once = mean_interval(results([values])["x"])
    assert not (got["high"] - got["low"] == 0).any() or len(set(values)) > 1
    assert got["n"].item() == len(values)
    assert got.identical(once.assign(n=got["n"])) or np.allclose(got["mean"], once["mean"], rtol=1e-12)


def test_equal_replicates_have_no_interval():
    got = mean_interval(results([[2, 2, 2]])["x"])
    assert np.isnan(got["low"].item())


def test_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(7)
    got = mean_interval(results(rng.normal(3, 2, (4000, 5)))["x"])
    covered = ((got["low"] < 3) & (got["high"] > 3)).mean().item()
    assert covered == pytest.approx(0.95, abs=0.012)  # 3.5 standard errors


def test_paired_difference_is_that_of_scipy():
    rng = np.random.default_rng(2)
    common = rng.normal(100, 30, 6)
    data = results(common + rng.normal(0, 1, (3, 6)))
    got = paired_difference(data["x"], "scheduler", "s0", data["status"])
    expected = stats.ttest_rel(data["x"].values[2], data["x"].values[0]).confidence_interval(0.95)
    assert (got["low"][2].item(), got["high"][2].item()) == pytest.approx((expected.low, expected.high), rel=1e-9)
    alone = mean_interval(data["x"], data["status"])
    assert got["high"][2] - got["low"][2] < (alone["high"][2] - alone["low"][2]) / 5
    assert got["mean"][0] == 0
    assert np.isnan(got["low"][0])


def test_a_baseline_may_have_another_name_of_the_field():
    data = results([[1, 2, 4], [2, 3, 4]])["x"].assign_coords(scheduler=["fcfs", "backfill"])
    assert paired_difference(data, "scheduler", "easy").equals(paired_difference(data, "scheduler", "backfill"))
    own = data.assign_coords(scheduler=["easy", "backfill"])  # of a function of one's own, whose names are its own
    assert paired_difference(own, "scheduler", "easy")["mean"].values.tolist() == pytest.approx([0, 2 / 3])


def test_a_relative_difference_is_that_of_the_means():
    data = results([[1, 2, 4], [2, 3, 4]])
    got = paired_difference(data["x"], "scheduler", "s0", relative=True)
    assert got["mean"][1].item() == pytest.approx(9 / 7 - 1)


def test_pairs_with_a_deterministic_baseline_stay_different():
    data = results([[4, 4, 4], [5, 6, 7]], [[DONE, COPY, COPY], [DONE] * 3])
    got = paired_difference(data["x"], "scheduler", "s0", data["status"])
    assert got["n"].values.tolist() == [1, 3]
    assert got["mean"].values.tolist() == [0, 2]


def test_pairs_of_copies_count_once():
    data = results([[4, 4, 4], [5, 5, 5]], [[DONE, COPY, COPY], [DONE, COPY, COPY]])
    got = paired_difference(data["x"], "scheduler", "s0", data["status"])
    assert got["n"].values.tolist() == [1, 1]
    assert np.isnan(got["low"][1])


def test_unknown_baseline_is_one_sentence():
    with pytest.raises(InputError, match="unknown value of scheduler 's9'"):
        paired_difference(results([[1, 2], [3, 4]])["x"], "scheduler", "s9")
    with pytest.raises(InputError, match="unknown axis 'loads'"):
        paired_difference(results([[1, 2]])["x"], "loads", "s0")


def capacity_curve(limits, loads, base=0.7):
    """Utilisation that follows the offered load up to a limit."""
    rows = [np.minimum(base * np.asarray(loads), limit) for limit in limits]
    return xr.DataArray(rows, dims=("scheduler", "load_scale"), coords={"load_scale": loads})


def test_saturation_is_where_more_load_does_not_help():
    got = saturation(capacity_curve([0.63, 0.85, 2.0], np.arange(0.7, 1.45, 0.05)))
    assert got["saturation"].values[:2] == pytest.approx([0.63, 0.85])
    assert got["reached"].values.tolist() == [True, True, False]
    assert got["load"].values[2] == pytest.approx(1.4)


def test_saturation_takes_the_mean_of_replicates_and_needs_loads():
    curve = capacity_curve([0.6], [0.5, 1.0, 1.5])
    two = xr.concat([curve - 0.1, curve + 0.1], "replicate")
    assert saturation(two)["saturation"].item() == pytest.approx(0.6)
    with pytest.raises(InputError, match="two loads or more"):
        saturation(curve.isel(load_scale=[0]))
    with pytest.raises(InputError, match="unknown axis"):
        saturation(curve, along="c")


def test_bootstrap_interval_is_that_of_scipy():
    rng = np.random.default_rng(11)
    rows = rng.exponential(10, (3, 25))
    rows[2, 20:] = np.nan
    got = mean_interval(results(rows)["x"], level=0.9, method="bootstrap")
    for i, row in enumerate(rows):
        expected = stats.bootstrap((row[np.isfinite(row)],), np.mean, confidence_level=0.9, n_resamples=20_000, rng=1)
        width = expected.confidence_interval.high - expected.confidence_interval.low
        assert got["low"][i].item() == pytest.approx(expected.confidence_interval.low, abs=0.05 * width)
        assert got["high"][i].item() == pytest.approx(expected.confidence_interval.high, abs=0.05 * width)
    again = mean_interval(results(rows)["x"], level=0.9, method="bootstrap")
    assert got.identical(again)


def test_bootstrap_interval_leans_where_the_replicates_do():
    rows = np.random.default_rng(12).lognormal(0, 1, (1, 40))
    got = mean_interval(results(rows)["x"], method="bootstrap")
    assert got["high"] - got["mean"] > 1.2 * (got["mean"] - got["low"])


def test_bootstrap_has_no_interval_where_nothing_differs():
    got = mean_interval(results([[2.0] * 20, [1.0] + [np.nan] * 19])["x"], method="bootstrap")
    assert np.isnan(got["low"]).all()
    with pytest.raises(InputError, match="unknown method 'normal'"):
        mean_interval(results([[1, 2]])["x"], method="normal")


def test_few_observations_are_not_resampled():
    rows = np.random.default_rng(13).lognormal(0, 1, (2, 20))
    rows[1, 19] = np.nan
    got, plain = (mean_interval(results(rows)["x"], method=method) for method in ("bootstrap", "delta"))
    assert got["high"][0] != plain["high"][0]
    assert got["high"][1] == plain["high"][1]


def test_bootstrap_of_a_ratio_resamples_pairs():
    rng = np.random.default_rng(15)
    common = rng.lognormal(0, 1, 30)
    rows = np.stack([common, 2 * common * rng.lognormal(0, 0.1, 30)])
    got = paired_ratio(results(rows)["x"], "scheduler", "s0", method="bootstrap")
    expected = stats.bootstrap(
        (rows[1], rows[0]),
        lambda x, b, axis: x.mean(axis) / b.mean(axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        rng=1,
    ).confidence_interval
    assert (got["low"][1].item(), got["high"][1].item()) == pytest.approx(tuple(expected), rel=0.02)
    assert got["high"][1] / got["low"][1] < 1.3
