"""Intervals and differences against scipy and against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.statistics import mean_interval, paired_difference, saturation
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

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
    got = mean_interval(data["x"], data["status"], level=0.9)
    for i, row in enumerate(data["x"].values):
        expected = stats.ttest_1samp(row, 0).confidence_interval(0.9)
        assert got["mean"][i].item() == pytest.approx(row.mean(), rel=1e-12)
        assert (got["low"][i].item(), got["high"][i].item()) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert got["n"].values.tolist() == [7] * 4


def test_interval_by_hand():
    # mean 2, standard deviation 1, t(0.975; 2) = 4.302653: half-width 4.302653 / sqrt(3)
    got = mean_interval(results([[1, 2, 3]])["x"])
    assert got["high"].item() - 2 == pytest.approx(4.302653 / 3**0.5, rel=1e-6)


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


def test_relative_difference_is_taken_replicate_by_replicate():
    data = results([[1, 2, 4], [2, 3, 4]])
    got = paired_difference(data["x"], "scheduler", "s0", relative=True)
    assert got["mean"][1].item() == pytest.approx((1 + 0.5 + 0) / 3)


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
    got = mean_interval(results([[2, 2, 2], [1, np.nan, np.nan]])["x"], method="bootstrap")
    assert np.isnan(got["low"]).all()
    with pytest.raises(InputError, match="unknown method 'normal'"):
        mean_interval(results([[1, 2]])["x"], method="normal")
    data = results([[1, 2, 4, 7], [2, 3, 9, 4]])
    got = paired_difference(data["x"], "scheduler", "s0", method="bootstrap")
    assert got["low"][1] < got["mean"][1] < got["high"][1]
