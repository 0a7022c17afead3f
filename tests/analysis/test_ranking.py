"""Ranked tables against scipy, and Holm's method against its definition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.ranking import higher_is_better, holm, holm_levels, rank
from faultsweep.simcore.engine.metrics import METRICS
from faultsweep.sweeps.intervals import FRACTIONS
from faultsweep.sweeps.selection import HIGHER_IS_BETTER
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from faultsweep.errors import InputError

from .stores import make_results

DONE, COPY = 1, 4


def results(rows, status=None):
    rows = np.asarray(rows, float)
    return make_results({"policy": [f"p{i}" for i in range(len(rows))]}, {"x": rows}, status, rows.shape[1])


def holm_by_definition(p):
    """Reject the smallest while it is at most alpha / (number left); the adjusted value is the least such alpha."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted = [0.0] * len(p)
    for place, i in enumerate(order):
        adjusted[i] = max(min(1.0, p[j] * (len(p) - r)) for r, j in enumerate(order[: place + 1]))
    return adjusted


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_is_its_definition(p):
    assert holm(p).tolist() == pytest.approx(holm_by_definition(p))


def test_holm_by_hand_and_without_what_is_missing():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, np.nan, 0.04])[[0, 2]].tolist() == pytest.approx([0.02, 0.04])
    assert np.isnan(holm([np.nan])).all()


def test_levels_by_hand():
    """Of four, the second is tested at 0.05 / 3 and is not significant: nor are those behind it."""
    assert (1 - holm_levels([0.2, 0.001, 0.03, 0.04], 0.95)).tolist() == pytest.approx([0.05 / k for k in (3, 4, 3, 3)])
    assert (1 - holm_levels([0.001, 0.002], 0.95)).tolist() == pytest.approx([0.025, 0.05])
    assert (1 - holm_levels([np.nan, 0.01], 0.95)).tolist() == pytest.approx([0.025, 0.05])


@given(st.integers(0, 10_000), st.integers(2, 5), st.sampled_from((0.02, 0.1, 0.5)), st.sampled_from((3, 8, 25)))
def test_an_interval_leaves_out_one_exactly_where_the_difference_is_significant(seed, count, effect, replicates):
    rng = np.random.default_rng(seed)
    rows = (
        rng.lognormal(3, 0.5, replicates)
        * (1 + effect * rng.random((count, 1)))
        * rng.lognormal(0, 0.1, (count, replicates))
    )
    table = rank(results(rows)["x"], "policy")
    for low, high, p in zip(table["ratio_low"].values, table["ratio_high"].values, table["p"].values, strict=True):
        assert np.isnan(p) or (low > 1 or high < 1) == (p <= 0.05)


def test_a_table_has_the_p_values_of_paired_t_tests():
    rng = np.random.default_rng(4)
    rows = rng.normal(-100, 30, 8) + np.array([[5], [0], [2], [9]]) + rng.normal(0, 2, (4, 8))
    data = results(rows)
    table = rank(data["x"], "policy", data["status"])
    order = np.argsort(rows.mean(1))
    assert table["policy"].values.tolist() == [f"p{i}" for i in order]
    pairs = list(combinations(order, 2))
    adjusted = dict(zip(pairs, holm([stats.ttest_rel(rows[a], rows[b]).pvalue for a, b in pairs]), strict=True))
    assert table["p"].values[1:] == pytest.approx([adjusted[order[0], other] for other in order[1:]], rel=1e-6)
    raw = sorted(stats.ttest_rel(rows[a], rows[b]).pvalue for a, b in pairs)
    test = stats.ttest_rel(rows[order[2]], rows[order[0]])
    assert [value * left > 0.05 for value, left in zip(raw, range(6, 0, -1), strict=True)].index(True) > 1
    expected = test.confidence_interval(1 - 0.05 / (6 - raw.index(test.pvalue)))
    assert (table["difference_low"][2].item(), table["difference_high"][2].item()) == pytest.approx(tuple(expected))
    assert table["as_good"].values.tolist() == [True, *(table["p"].values[1:] > 0.05)]


def test_a_positive_metric_is_compared_by_ratios_of_means():
    """Waits of replicates that differ by factors: eighteen times better is no draw, though no difference is certain."""
    rng = np.random.default_rng(14)
    rows = rng.lognormal(5, 0.8, 5) * np.array([[1.0], [18.0], [40.0]]) * rng.lognormal(0, 0.1, (3, 5))
    table = rank(results(rows)["x"], "policy")
    means = rows.mean(1)
    assert table["ratio"].values == pytest.approx(means / means[0])
    assert table["as_good"].values.tolist() == [True, False, False]
    assert stats.ttest_rel(rows[0], rows[1]).pvalue > 0.05 / 3
    parts = rows[1] / means[1] - rows[0] / means[0]
    statistic = np.log(means[1] / means[0]) / (parts.std(ddof=1) / 5**0.5)
    third = np.log(means[2] / means[1]) / ((rows[2] / means[2] - rows[1] / means[1]).std(ddof=1) / 5**0.5)
    raw = 2 * stats.t.sf([statistic, abs(third)], 4)
    assert 2 * raw[0] <= table["p"].values[1] <= 3 * raw[0] < raw[1]
    assert (table["ratio_low"] < table["ratio"])[1:].all()
    assert (table["ratio_low"] > 1)[1:].all()


def test_intervals_hold_together_as_often_as_they_say():
    """Of six equal policies no difference is real: at most one table in twenty may claim one."""
    rng = np.random.default_rng(5)
    claims = 0
    for _ in range(150):
        rows = rng.normal(50, 10, 6) + rng.normal(0, 1, (6, 6))
        claims += not rank(results(rows)["x"], "policy")["as_good"].all()
    assert claims <= 15  # 7.5 expected at most, three standard errors above


def test_more_can_be_better_and_gaps_are_left_out():
    data = results([[1, 2, 3], [4, 5, 7], [np.nan] * 3])
    table = rank(data["x"], "policy", data["status"], higher_is_better=True)
    assert table["policy"].values.tolist() == ["p1", "p0"]
    assert table["difference"].values[1] == pytest.approx(-10 / 3)


def test_which_metrics_are_better_if_higher_and_which_are_fractions():
    assert set(METRICS) >= HIGHER_IS_BETTER | FRACTIONS
    data = make_results({"policy": ["a"]}, {name: np.ones((1, 1)) for name in METRICS}, target="simulator")
    assert higher_is_better(data, "jain_bounded_slowdown")  # 1 where all users are served alike
    assert not higher_is_better(data, "gini_wait")


def test_one_simulation_each_says_nothing_of_differences():
    data = results([[3, 3], [4, 4]], [[DONE, COPY], [DONE, COPY]])
    table = rank(data["x"], "policy", data["status"])
    assert np.isnan(table["p"]).all()
    assert table["as_good"].all()


def test_a_table_of_one_policy_or_of_two_axes():
    assert rank(results([[3, 4]])["x"], "policy")["mean"].values == [3.5]
    data = make_results({"policy": ["a"], "load": [1.0]}, {"x": np.ones((1, 1, 2))}, replicates=2)
    with pytest.raises(InputError, match="choose a label of load"):
        rank(data["x"], "policy")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", [np.inf, 1e200, 1e308, 0.0, np.nan])
def test_odd_values_raise_no_warnings(odd):
    values = xr.DataArray([[1.0, 2.0, 3.0], [2.0, 3.0, odd], [odd, odd, odd]], dims=("policy", "replicate"))
    found = rank(values.assign_coords(policy=["a", "b", "c"]), "policy")
    assert found["mean"].sel(policy="a") == 2.0
