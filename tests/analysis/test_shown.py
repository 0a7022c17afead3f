"""Reports, figures, the dashboard and comparisons of stores whose labels and results are of every type."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pytest
import zarr
from faultsweep.analysis.compare import compare
from faultsweep.analysis.dashboard.choices import axes_of, baselines, complete, default_choices, scalar_metrics
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.analysis.dashboard.view import figure_of, heat_map
from faultsweep.analysis.report import write_report
from faultsweep.sweeps.sweep import Sweep

import faultsweep as fs
from faultsweep import cli
from tests.sweeps.functions import everything

AXES = {
    "day": [date(2026, 1, 1), date(2026, 1, 2)],
    "pause": [timedelta(hours=1), timedelta(hours=2)],
    "yes": [True, False],
    "who": [None, "x"],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory, client):
    path = tmp_path_factory.mktemp("shown") / "s.zarr"
    Sweep(
        name="typed",
        axes=AXES,
        function=lambda day, pause, yes, who=None: {
            **everything(day.day + yes),
            "real": day.day / 7 + pause.seconds,
            "long": pause,
        },
    ).run(path, cluster=client, progress=False)
    return path


def test_a_report(store, tmp_path):
    write_report(fs.open_results(store), tmp_path / "report.html")
    assert "2026-01-01" in (tmp_path / "report.html").read_text()


def test_figures_over_each_axis(store):
    data = FollowedStore(str(store)).data
    chosen = default_choices(data)
    assert data.pause.attrs["units"] == "s"
    assert data.yes.values.tolist() == ["true", "false"]
    metrics = scalar_metrics(data)
    assert {"real", "long"} <= set(metrics)
    assert all(data[name].dtype.kind in "iuf" for name in metrics)
    for x in axes_of(data):
        for metric in metrics:
            choices = complete(data, replace(chosen, x=x, along=x, metric=metric, curves="", show="value"))
            [panel] = figure_of(data, choices).panels
            assert len(panel.curves or panel.bars) == 1
            for baseline in baselines(data, x):
                figure_of(data, complete(data, replace(choices, show="difference", baseline=baseline)))
        others = [axis for axis in axes_of(data) if axis != x]
        heat_map(data, complete(data, replace(chosen, view="heat map", heat_x=x, heat_y=others[0])))


@pytest.mark.parametrize("name", [*everything(1), "real", "long"])
@pytest.mark.sampled(5)
def test_a_difference_of_any_type_is_found(store, tmp_path, capsys, monkeypatch, name):
    assert compare(str(store), str(store)).same
    other = tmp_path / "other.zarr"
    shutil.copytree(store, other)
    array = zarr.open_array(other / name, mode="r+")
    values = array[...]
    first = values[0, 0, 0, 0]
    values[0, 0, 0, 0] = ~first if values.dtype.kind == "b" else "other" if values.dtype.kind in "TO" else first + 1
    array[...] = values
    found = compare(str(store), str(other))
    assert (found.equal, [one.metric for one in found.metrics]) == (15, [name])
    assert found.metrics[0].at == {"day": "2026-01-01", "pause": 3600.0, "yes": "true", "who": "none", "replicate": 0}
    assert found.metrics[0].a != found.metrics[0].b or np.ndim(first)
    monkeypatch.setattr("sys.argv", ["faultsweep", "compare", str(store), str(other)])
    with pytest.raises(SystemExit):
        cli.main()
    assert name in capsys.readouterr().out
