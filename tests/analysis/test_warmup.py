"""Warm-up deletion against a plain search, and saturated runs in figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.dashboard.choices import default_choices, read_query
from faultsweep.analysis.dashboard.view import cells_of, figure_of
from faultsweep.analysis.figures.draw import draw_html, draw_picture
from faultsweep.analysis.figures.sweep import sweep_figure
from faultsweep.analysis.warmup import steady_means, tail_share, unsteady, warm_up, without_warm_up
from faultsweep.sweeps.open import open_results
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError

from .stores import STATUSES, make_results, write_results


def search(values, batch=5):
    """The rule as it is written: for each number of batches to delete, the squared standard error of what is left."""
    means = [sum(values[i : i + batch]) / batch for i in range(0, len(values) // batch * batch, batch)]
    if len(means) < 10:
        return 0, False
    errors = []
    for deleted in range(len(means) - 5):
        left = means[deleted:]
        centre = sum(left) / len(left)
        errors.append(sum((one - centre) ** 2 for one in left) / len(left) ** 2)
    best = errors.index(min(errors))
    return (best * batch, True) if best <= len(means) // 2 else (0, False)


@given(st.lists(st.integers(-1000, 1000), min_size=0, max_size=120))
def test_it_deletes_what_a_search_would(values):
    found = warm_up(np.array(values, float))
    expected = search(values)
    if found != expected:  # of two numbers that are equally good to the last bit, either may be taken
        assert found[1] == expected[1]
        assert search_error(values, found[0]) == pytest.approx(search_error(values, expected[0]), abs=1e-6)


def search_error(values, deleted):
    left = np.array(values[deleted : len(values) // 5 * 5], float).reshape(-1, 5).mean(1)
    return ((left - left.mean()) ** 2).sum() / len(left) ** 2


def test_a_start_from_an_empty_machine_is_deleted():
    rng = np.random.default_rng(1)
    values = 100 * (1 - np.exp(-np.arange(2000) / 100)) + rng.normal(0, 5, 2000)
    deleted, steady = warm_up(values)
    assert steady
    assert 150 <= deleted <= 600
    assert abs(values[deleted:].mean() - 100) < 1 < abs(values.mean() - 100)


def test_a_queue_that_grows_to_the_end_is_never_steady():
    assert warm_up(np.arange(1000.0)) == (0, False)
    assert warm_up(np.arange(40.0)) == (0, False)


def test_steady_means_of_stored_jobs(tmp_path):
    rng = np.random.default_rng(2)
    warm = np.concatenate([np.zeros(100), 50 + rng.normal(0, 1, 400)])
    runs = [warm, np.arange(500.0), np.array([3.0, np.nan, 5.0])]
    lengths = np.array([len(run) for run in runs] + [0])
    offsets = np.array([0, 500, 1000, -1])
    data = make_results({"load": [1.0, 2.0, 3.0, 4.0]}, {"x": np.ones(4)})
    for name, values in (("jobs_offset", offsets), ("jobs_length", lengths)):
        data[name] = (("load", "replicate"), values[:, None])
    write_results(tmp_path / "a.zarr", data)
    xr.Dataset({"wait_s": ("job", np.concatenate(runs))}).to_zarr(tmp_path / "a.zarr", group="jobs", mode="a")
    opened = open_results(tmp_path / "a.zarr")
    found = steady_means(opened).isel(replicate=0)
    assert found["steady"].values.tolist() == [True, False, False, False]
    assert found["deleted"].values[:3].tolist() == [0.2, 0, 0]
    assert found["mean"].values[:3].tolist() == pytest.approx([warm[100:].mean(), 249.5, 4])
    assert np.isnan(found["mean"].values[3])
    with pytest.raises(InputError, match="unknown per-job result 'waits'"):
        steady_means(opened, "waits")
    with pytest.raises(InputError, match="no per-job results"):
        steady_means(make_results({"load": [1.0]}, {"x": [1.0]}))


@pytest.fixture
def kept(tmp_path):
    """Per-job results of four runs: warm-up of a fifth, none that is steady, too few, and no result yet."""
    rng = np.random.default_rng(2)
    runs = [np.concatenate([np.zeros(100), 50 + rng.normal(0, 1, 400)]), np.arange(500.0), np.array([3.0, 5.0])]
    means = [run.mean() for run in runs] + [np.nan]
    status = np.array([1, 1, 1, 0])
    data = make_results({"load": [1.0, 2.0, 3.0, 4.0]}, {"mean_wait_s": means, "restarts": np.ones(4)}, status)
    data["mean_wait_s"].attrs["units"] = "s"
    for name, values in (("jobs_offset", [0, 500, 1000, -1]), ("jobs_length", [500, 500, 2, 0])):
        data[name] = (("load", "replicate"), np.array(values)[:, None])
    write_results(tmp_path / "a.zarr", data)
    xr.Dataset({"wait_s": ("job", np.concatenate(runs))}).to_zarr(tmp_path / "a.zarr", group="jobs", mode="a")
    return open_results(tmp_path / "a.zarr"), runs


def test_a_metric_without_warm_up(kept):
    data, runs = kept
    found = without_warm_up(data, ["mean_wait_s"])["mean_wait_s"]
    expected = [runs[0][100:].mean(), runs[1].mean(), 4.0]
    assert found.values[:3, 0].tolist() == pytest.approx(expected)
    assert np.isnan(found.values[3, 0])
    assert found.attrs["units"] == "s"
    assert found.attrs["warm_up"] == (
        "Warm-up is deleted by MSER-5: 20.0% of a run's jobs (median; at most 20.0%). "
        "2 of 3 runs have no steady part; their means are of all jobs."
    )
    part = without_warm_up(data.sel(load=[1.0]), ["mean_wait_s"])
    assert part["mean_wait_s"].item() == found.values[0, 0]


def test_figures_and_the_dashboard_delete_warm_up(kept):
    data, runs = kept
    layout = {"kind": "curves", "x": "load", "along": "load", "y": ["mean_wait_s"]}
    figure = sweep_figure(without_warm_up(data, ["mean_wait_s"]), "a", "A", **layout)
    chosen = replace(default_choices(data), delete_warm_up=True)
    assert read_query(data, chosen.query()) == chosen
    for drawn in (figure, figure_of(data, chosen)):
        assert drawn.panels[0].curves[0].y[0] == pytest.approx(runs[0][100:].mean() / 60)
        assert "Warm-up is deleted by MSER-5" in " ".join(drawn.caption)
    assert cells_of(data, chosen, {"load": 0})["mean_wait_s"].item() == runs[0][100:].mean()
    assert figure_of(data, replace(chosen, delete_warm_up=False)).panels[0].curves[0].y[0] == pytest.approx(
        runs[0].mean() / 60
    )


def test_a_warm_up_that_cannot_be_deleted_is_one_sentence(kept):
    data, _ = kept
    with pytest.raises(InputError, match="restarts: warm-up cannot be deleted; it is no mean over jobs"):
        without_warm_up(data, ["restarts"])
    with pytest.raises(InputError, match="mean_wait_s: warm-up cannot be deleted; the spec needs keep_jobs = true"):
        without_warm_up(data.drop_vars(["jobs_offset", "jobs_length"]), ["mean_wait_s"])
    with pytest.raises(InputError, match="delete_warm_up: restarts is no mean over jobs that the store keeps"):
        read_query(data, {"metric": "restarts", "delete_warm_up": "true"})


def saturating(replicates=2):
    """Offered loads up to 1.4 on a machine that can use 0.8 of itself."""
    loads = [0.5, 0.8, 1.1, 1.4]
    offered = np.array(loads)[None, :, None] * np.ones((2, 1, replicates))
    used = np.minimum(offered, np.array([0.8, 2.0])[:, None, None])
    metrics = {"mean_wait_s": offered, "utilisation": used, "offered_load": offered}
    return make_results({"scheduler": ["fcfs", "backfill"], "load_scale": loads}, metrics, None, replicates)


def test_the_tail_is_what_is_left_of_the_run_after_the_last_submission():
    data = saturating()
    share = tail_share(data).sel(scheduler="fcfs", replicate=0)
    assert share.values.tolist() == pytest.approx([0, 0, 1 - 0.8 / 1.1, 1 - 0.8 / 1.4])
    assert unsteady(data)[0].values.tolist() == [[False, False, True, True], [False] * 4]
    assert tail_share(data.drop_vars("offered_load")) is None
    assert not unsteady(data.drop_vars("offered_load"))[0].any()


def test_saturated_points_are_ringed_and_the_caption_says_so(tmp_path):
    data = saturating()
    layout = {"kind": "curves", "x": "load_scale", "along": "load_scale", "y": ["mean_wait_s"], "curves": ["scheduler"]}
    figure = sweep_figure(data, "a", "A", **layout)
    first, second = figure.panels[0].curves
    assert first.flagged.tolist() == [False, False, True, True]
    assert not second.flagged.any()
    assert "Ringed: saturated; more than 10\u00a0% of the run came after the last job was submitted" in " ".join(
        figure.caption
    )
    draw_picture(figure, tmp_path / "a.png")
    draw_html(figure, tmp_path / "a.html")
    bars = {**layout, "kind": "bars", "x": "scheduler", "along": "scheduler", "curves": []}
    flagged = sweep_figure(data.sel(load_scale=[1.4]), "a", "A", **bars).panels[0].bars[0].flagged
    assert flagged.tolist() == [True, False]


def test_truncated_runs_are_ringed():
    data = saturating().drop_vars("offered_load")
    data["status"][0, 3] = STATUSES.index("truncated")
    layout = {"kind": "curves", "x": "load_scale", "along": "load_scale", "y": ["mean_wait_s"], "curves": ["scheduler"]}
    figure = sweep_figure(data, "a", "A", **layout)
    assert figure.panels[0].curves[0].flagged.tolist() == [False, False, False, True]
    assert "Ringed: truncated runs" in figure.text
    assert "saturated" not in figure.text
