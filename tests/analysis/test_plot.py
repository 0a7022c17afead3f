"""``fs.plot``: a figure of results in one line."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.analysis.statistics import mean_interval
from faultsweep.sweeps.open import open_results

import faultsweep as fs
from faultsweep.errors import InputError

from .stores import make_results, write_results

AXES = {"scheduler": ["fcfs", "backfill"], "load_scale": [0.5, 1.0, 2.0], "machine": ["flat:8", "flat:16"]}


@pytest.fixture
def data(tmp_path):
    waits = np.random.default_rng(4).gamma(5, 10, (2, 3, 2, 4))
    found = make_results(AXES, {"mean_wait_s": waits, "utilisation": 1 / (1 + waits)}, replicates=4)
    found["mean_wait_s"].attrs["units"] = "s"
    return open_results(write_results(tmp_path / "a.zarr", found))


def test_a_line_draws_what_the_results_have(data, tmp_path):
    shown = fs.plot(data)
    [panel] = shown.figure.panels
    assert [curve.label for curve in panel.curves] == ["FCFS", "Backfill"]
    expected = mean_interval(data["mean_wait_s"].sel(scheduler="fcfs", machine="flat:8"), data["status"])["mean"]
    assert panel.curves[0].y.tolist() == pytest.approx(expected.values.tolist())
    mime = shown._repr_mimebundle_()
    assert mime["image/svg+xml"].count("<svg") == 1
    assert "prefers-color-scheme" in mime["image/svg+xml"]
    assert "Mean wait over load scale" in mime["text/plain"]
    for name in ("a.png", "a.html"):
        assert shown.save(tmp_path / name).stat().st_size > 5_000


def test_axes_baselines_and_kinds_can_be_chosen(data):
    panels = fs.plot(data, "utilisation", x="scheduler", panels="machine").figure.panels
    assert [(panel.categories, len(panel.bars)) for panel in panels] == [(["FCFS", "Backfill"], 1)] * 2
    ratio = fs.plot(data, baseline="scheduler=fcfs", ratio=True, at={"machine": "flat:16"}).figure.panels[0]
    assert ratio.curves[0].y.tolist() == [1, 1, 1]
    named = fs.plot(data, baseline="scheduler=EASY", ratio=True).figure.panels[0]
    assert named.curves[1].y.tolist() == [1, 1, 1]
    heat = fs.plot(data, kind="heat map", x="load_scale", curves="machine").figure.panels[0].heat
    assert heat.value.shape == (2, 3)
    assert fs.plot(data, kind="heat map", x="scheduler").figure.panels[0].heat.value.shape == (3, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"metric": "mean_wait"}, "unknown metric 'mean_wait'"),
        ({"x": "load"}, "unknown x 'load'"),
        ({"kind": "pie"}, "unknown kind 'pie'"),
        ({"ratio": True}, "ratio: to what"),
        ({"x": "scheduler", "baseline": "scheduler=fcfs"}, "baseline: scheduler is the axis that is drawn over"),
        ({"baseline": "scheduler=sjf"}, "sjf"),
        ({"at": {"machine": "flat:9"}}, "flat:9"),
    ],
)
def test_mistakes_are_one_sentence(data, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        fs.plot(data, **arguments)
