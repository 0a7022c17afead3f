"""Results of a stranger's function: axes named as columns are, and numbers that no picture can reach."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.analysis.report import write_report
from faultsweep.analysis.statistics import OF_INTERVALS, OF_TABLES

import faultsweep as fs
from faultsweep.errors import InputError
from tests.analysis.stores import make_results

BARS, CURVES = {"scheduler": ["fcfs", "backfill"]}, {"load": [0.5, 1.0], "scheduler": ["fcfs", "backfill"]}
METRICS = ["mean_bounded_slowdown", "mean_wait_s"]


@pytest.mark.parametrize("axis", ["n", "mean", "replicates", "p", "best", "ratio_low"])
def test_an_axis_named_as_a_column_is_one_sentence_and_can_be_renamed(axis, tmp_path):
    waits = np.random.default_rng(1).lognormal(1, 1, (2, 2, 3))
    axes = {"scheduler": ["fcfs", "backfill"], axis: [1.0, 2.0]}
    results = make_results(axes, dict.fromkeys(METRICS, waits), replicates=3)
    tables = [fs.compare_policies, lambda data: fs.pareto_front(data, METRICS)]
    drawn = [fs.plot, lambda data: write_report(data, tmp_path / "a.html")]
    for made in [*tables, *(drawn if axis in OF_INTERVALS else [])]:
        with pytest.raises(InputError, match=f"^{axis}: the table of results has a column of this name"):
            made(results)
    assert len(fs.compare_policies(results.rename({axis: "size"}))) == 4
    assert {"n", "mean", "replicates"} < OF_INTERVALS < OF_TABLES


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("value", "axes"), [(0.0, BARS), (np.inf, BARS), (1e308, BARS), (1e308, CURVES), (5e-324, CURVES), (np.nan, CURVES)]
)
def test_odd_numbers_are_drawn_or_said_not_to_be(value, axes, tmp_path):
    shape = (*(len(labels) for labels in axes.values()), 2)
    results = make_results(axes, dict.fromkeys(METRICS, np.full(shape, value)), replicates=2)
    drawn = fs.plot(results)
    assert drawn.save(tmp_path / "a.png").stat().st_size > 1000
    assert ("Infinite means (1e300 and more) are not drawn." in drawn.figure.caption) == (abs(value) > 1e300)
    assert ("Means below 1e-280 are drawn as 0." in drawn.figure.caption) == (0 < value < 1e-280)
    assert len(fs.pareto_front(results, METRICS)) == (np.prod(shape[:-1]) if abs(value) < 1e300 else 0)
    write_report(results, tmp_path / "a.html")


def test_results_without_a_metric_are_one_sentence(tmp_path):
    results = make_results({"scheduler": ["fcfs", "backfill"]}, {})
    for made in (fs.compare_policies, fs.plot, lambda data: write_report(data, tmp_path / "a.html")):
        with pytest.raises(InputError, match="no metric"):
            made(results)


def test_a_best_mean_of_zero_is_said(tmp_path):
    waits = np.array([[[0.0], [0.0]], [[3.0], [5.0]]])
    write_report(
        make_results({"scheduler": ["fcfs", "backfill"], "load": [1.0, 2.0]}, {"mean_wait_s": waits}),
        tmp_path / "a.html",
    )
    words = (tmp_path / "a.html").read_text()
    assert "second is Backfill, above a best mean of zero: one replicate cannot tell them apart" in words


def test_a_selection_that_cannot_be_made_does_not_keep_the_report_away(tmp_path):
    spec = "[axes]\npolicy = ['a', 'b']\n[best]\nmetric = 'y'\n[better]\ny = 'lower'\n"
    data = make_results({"policy": ["a", "b"]}, {"y": np.array([[-1.0], [-2.0]])}, spec=spec, target="a.py:f")
    write_report(data, tmp_path / "a.html")
    words = (tmp_path / "a.html").read_text()
    assert "best: y is negative in some results, so there is no ratio to the best." in words
    assert "b has the lowest y" in words
