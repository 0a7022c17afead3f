"""What Python callers give the functions of results: another type, name or number is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.compare import compare
from faultsweep.analysis.notebook import write_notebook
from faultsweep.analysis.regions import best_policies
from faultsweep.analysis.report import write_report
from faultsweep.analysis.sensitivity import sobol_indices
from faultsweep.analysis.statistics import mean_interval, paired_difference
from faultsweep.analysis.warmup import steady_means, unsteady, without_warm_up
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.sweep import Sweep

import faultsweep
from faultsweep.errors import InputError


@pytest.fixture(scope="module")
def store(client, tmp_path_factory):
    fixed = {"log": "sdsc-model", "machine": "flat:128", "num_jobs": 30}
    sweep = Sweep(axes={"scheduler": ["fcfs", "backfill"], "load_scale": [0.8, 1.2]}, fixed=fixed, keep_jobs=True)
    place = tmp_path_factory.mktemp("arguments") / "a.zarr"
    sweep.run(place, cluster=client, progress=False)
    return place


OTHERS = [3, "a.zarr", None, [], xr.Dataset({"mean_wait_s": 1.0})]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(
    "ask",
    [
        faultsweep.plot,
        faultsweep.compare_policies,
        lambda data: faultsweep.pareto_front(data, ["mean_wait_s", "utilisation"]),
        lambda data: best_policies(data, "mean_wait_s", "scheduler"),
        lambda data: sobol_indices(data, "mean_wait_s"),
        lambda data: write_report(data, "a.html"),
        lambda data: without_warm_up(data, ["mean_wait_s"]),
        steady_means,
        unsteady,
        open_jobs,
    ],
)
def test_results_are_those_of_a_sweep(ask, other):
    with pytest.raises(InputError, match=r"^results: expected those of a sweep, as open_results returns them, got "):
        ask(other)


def test_names_of_metrics_and_axes_are_looked_up(store):
    results = open_results(store)
    with pytest.raises(InputError, match=r"^unknown metric 'mean_wait'; did you mean 'mean_wait_s'"):
        best_policies(results, "mean_wait", "scheduler")
    with pytest.raises(InputError, match=r"^unknown axis 'load'"):
        best_policies(results, "mean_wait_s", "load")
    with pytest.raises(InputError, match=r"^regions: unknown axis 'load' \(valid: load_scale, scheduler"):
        best_policies(results, "mean_wait_s", "scheduler", ["load"])
    assert len(best_policies(results, "mean_wait_s", "scheduler", ["load_scale"])) == 2


@pytest.mark.parametrize("label", ["x", [], ["x"], {}, object()])
def test_a_label_of_another_type_selects_no_cell(store, label):
    with pytest.raises(InputError, match="no cell with the label"):
        open_jobs(open_results(store), scheduler="fcfs", load_scale=label)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, "0.9", None, [], float("nan")])
def test_a_confidence_level_is_between_zero_and_one(level):
    values = xr.DataArray(np.random.default_rng(1).random((2, 5)), {"policy": ["a", "b"]}, ("policy", "replicate"))
    for ask in (mean_interval, lambda values, level: paired_difference(values, "policy", "a", level=level)):
        with pytest.raises(InputError, match=r"^level: expected a number between 0 and 1, got "):
            ask(values, level=level)


@pytest.mark.parametrize("tolerance", [-1e-9, float("nan"), float("inf"), "0", None])
def test_a_tolerance_is_not_negative(store, tolerance):
    with pytest.raises(InputError, match=r"^tolerance: expected a number of 0 or more, got "):
        compare(store, store, tolerance=tolerance)


def test_files_are_named_by_text_too(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_report(open_results(store), "report.html")
    write_notebook(str(store), "notebook.ipynb")
    assert {path.name for path in Path().iterdir()} == {"report.html", "notebook.ipynb"}


@pytest.mark.parametrize("log", ["sdsc-model", "lublin"])
@pytest.mark.parametrize("given", [{"seed": "x"}, {"seed": -1}, {"replicate": 1.5}, {"num_jobs": None}])
def test_numbers_of_a_model_are_those_of_parameters(log, given):
    (name,) = given
    with pytest.raises(InputError, match=f"^{name}: "):
        faultsweep.load_workload(log, **given)


def test_what_happens_to_malformed_lines_is_checked_for_models_too():
    with pytest.raises(InputError, match="unknown on_error 'ignore'"):
        faultsweep.load_workload("sdsc-model", num_jobs=5, on_error="ignore")
