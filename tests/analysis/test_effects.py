"""Main effects and interactions against cases worked by hand and a plain analysis of variance."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.analysis.effects import binned_effect, main_effect, variance_shares
from scipy import stats

from faultsweep.errors import InputError

from .stores import make_results


def results(values):
    values = np.asarray(values, float)
    axes = {name: [float(i) for i in range(n)] for name, n in zip("abc", values.shape[:-1], strict=False)}
    return make_results(axes, {"x": values}, replicates=values.shape[-1])["x"]


def test_effects_by_hand():
    # a adds 0 or 2, b adds 0, 1 or 5
    values = np.array([0, 2])[:, None, None] + np.array([0, 1, 5])[None, :, None]
    found = main_effect(results(values), "b")
    assert found["mean"].values.tolist() == [1, 2, 6]
    assert found["effect"].values.tolist() == [-2, -1, 3]
    assert np.isnan(found["low"]).all()
    assert variance_shares(results(values)) == pytest.approx({("a",): 3 / 17, ("b",): 14 / 17, ("a", "b"): 0})


@pytest.mark.parametrize("power", [-1000, -600, 600, 1000])
def test_shares_of_very_large_and_small_numbers_are_those_of_others(power):
    values = np.random.default_rng(5).lognormal(0, 1, (3, 4, 2))
    assert variance_shares(results(np.ldexp(values, power))) == variance_shares(results(values))


def test_gaps_do_not_bias_an_effect():
    """Where a's second label lacks the large values of b, a plain mean would make it look small."""
    values = np.array([0.0, 2])[:, None, None] + np.array([0, 1, 50])[None, :, None]
    values[1, 2] = np.nan
    found = main_effect(results(values), "a")
    assert found["effect"].values.tolist() == [-1, 1]
    assert (found["combinations"].item(), found["of"].item()) == (2, 3)
    assert variance_shares(results(values))["a",] == pytest.approx(1 / (1 + 0.25))


def test_the_interval_of_an_effect_pairs_replicates():
    rng = np.random.default_rng(8)
    values = rng.normal(0, 100, 6) + np.array([0, 3.0])[:, None, None] + rng.normal(0, 1, (2, 4, 6))
    found = main_effect(results(values), "a")
    per_replicate = values[1].mean(0) - values.mean((0, 1))
    expected = stats.ttest_1samp(per_replicate, 0).confidence_interval()
    assert (found["low"][1].item(), found["high"][1].item()) == pytest.approx(tuple(expected))


def test_shares_are_those_of_an_analysis_of_variance():
    rng = np.random.default_rng(9)
    cells = rng.normal(0, 1, (3, 4, 2))
    shares = variance_shares(results(cells[..., None]))
    total = ((cells - cells.mean()) ** 2).sum()
    squares = 8 * ((cells.mean((1, 2)) - cells.mean()) ** 2).sum()
    assert shares["a",] == pytest.approx(squares / total)
    table = cells.mean(2) - cells.mean((1, 2))[:, None] - cells.mean((0, 2))[None, :] + cells.mean()
    assert shares["a", "b"] == pytest.approx(2 * (table**2).sum() / total)
    assert sum(shares.values()) < 1


def test_a_constant_and_an_empty_grid():
    assert variance_shares(results(np.ones((2, 2, 3)))) == {("a",): 0, ("b",): 0}
    with pytest.raises(InputError, match="no combination of labels has all its results"):
        variance_shares(results(np.full((2, 2, 1), np.nan)))
    with pytest.raises(InputError, match="unknown axis 'load'"):
        main_effect(results(np.ones((2, 2, 1))), "load")


def test_a_parameter_of_a_sample_is_followed_over_bins():
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1, 80)
    values = (10 * x)[:, None, None] + np.array([0, 1.0])[None, :, None] + rng.normal(0, 0.1, (80, 2, 3))
    values[5] = np.nan
    found = binned_effect(results(values), "a", x)
    assert found["n"].values.tolist() == [10] * 7 + [9]
    order = [i for i in np.argsort(x) if i != 5][:10]
    expected = stats.ttest_1samp(values[order].mean((1, 2)), 0).confidence_interval()
    assert found["x"][0].item() == pytest.approx(x[order].mean())
    assert (found["low"][0].item(), found["high"][0].item()) == pytest.approx(tuple(expected))
    assert np.abs(found["mean"].values - 10 * found["x"].values - 0.5).max() < 0.05
