"""The Pareto front: against its definition, and what it says of odd sweeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from faultsweep.analysis.dashboard.cells import Sample, pareto_figure
from faultsweep.analysis.pareto import is_on_front, pareto_front
from faultsweep.analysis.regions import policy_axis
from faultsweep.analysis.verdict import compare_policies, selection_of
from hypothesis import given
from hypothesis import strategies as st

import faultsweep as fs
from faultsweep.errors import InputError
from tests.cluster.sweeping import command
from tests.strategies import examples

VALUES = st.sampled_from((0.0, 1.0, 2.0, 3.0, np.nan, np.inf))


@examples(200)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=12), st.tuples(*[st.booleans()] * 3))
def test_on_the_front_is_whom_nobody_beats(points, higher):
    found = is_on_front(list(np.array(points).T), higher)
    costs = np.array(points) * np.where(higher, -1.0, 1.0)
    for row, own in zip(found, costs, strict=True):
        known = np.isfinite(own).all()
        others = costs[np.isfinite(costs).all(1)]
        beaten = any((other <= own).all() and (other < own).any() for other in others)
        assert row == (known and not beaten)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("front") / "a.zarr"
    sweep = fs.Sweep(
        axes={"scheduler": ["fcfs", "backfill"], "load_scale": [1.0, 1.3]},
        fixed={"log": "sdsc-model", "num_jobs": 100, "machine": "flat:128", "fairness": True, "num_users": 5},
        replicates=2,
    )
    sweep.run(path, workers=1, progress=False)
    return path


def test_the_front_of_a_sweep(store):
    results = fs.open_results(store)
    every = pareto_front(results, ["mean_wait_s", "gini_wait"], every=True)
    assert list(every.columns) == ["scheduler", "load_scale", "mean_wait_s", "gini_wait", "n", "on_front"]
    assert len(every) == 4
    assert every["n"].tolist() == [2] * 4
    assert every["mean_wait_s"].is_monotonic_increasing
    row = every.iloc[0]
    cell = results.sel(scheduler=row["scheduler"], load_scale=row["load_scale"])
    assert row["mean_wait_s"] == pytest.approx(float(cell["mean_wait_s"].mean()))
    front = pareto_front(results, ["mean_wait_s", "gini_wait"])
    assert front["mean_wait_s"].tolist() == every[every["on_front"]]["mean_wait_s"].tolist()
    assert pareto_front(results, ["utilisation", "mean_wait_s"])["utilisation"].is_monotonic_decreasing


def test_a_sweep_of_one_configuration_is_its_front(store):
    one = fs.open_results(store).isel(scheduler=[0], load_scale=[0])
    assert pareto_front(one, ["mean_wait_s", "gini_wait"]).columns.tolist() == ["mean_wait_s", "gini_wait", "n"]


def test_configurations_without_a_result_are_left_out(store):
    results = fs.open_results(store)
    results["status"] = results["status"].copy()
    results["status"][0] = 0
    assert set(pareto_front(results, ["mean_wait_s", "gini_wait"], every=True)["scheduler"]) == {"backfill"}


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        (["mean_wait_s"], "a Pareto front is of two metrics or more"),
        (["mean_wait_s", "mean_wait_s"], "a Pareto front is of two metrics or more"),
        (["mean_wait_s", "wait"], "unknown metric 'wait'"),
    ],
)
def test_what_has_no_front_is_one_sentence(store, metrics, sentence):
    with pytest.raises(InputError, match=sentence):
        pareto_front(fs.open_results(store), metrics)


def test_the_command_prints_the_front_with_units(store):
    said = command("pareto", store, "utilisation", "mean_wait_s")
    assert said.returncode == 0
    assert "of 4 configurations are on the Pareto front" in said.stdout
    rows = json.loads(command("pareto", store, "utilisation", "mean_wait_s", "--json").stdout)
    assert rows["configurations"] == 4
    assert len(rows["front"]) == int(said.stdout.split()[0])
    assert command("pareto", store, "utilisation", code=2).stderr.strip() == "a Pareto front is of two metrics or more"


@pytest.fixture(scope="module")
def owners(tmp_path_factory):
    path = tmp_path_factory.mktemp("owners") / "o.zarr"
    fixed = {"log": "sdsc-model", "num_jobs": 100, "machine": "flat:128", "num_users": 3, "load_scale": 1.3}
    axes = {"owner": ["user:2", "user:1", "user:3"], "scheduler": ["fcfs", "backfill"]}
    fs.Sweep(axes=axes, fixed=fixed, replicates=2).run(path, workers=1, progress=False)
    return path


def test_owners_are_not_compared_with_each_other(owners):
    """An owner says whose jobs are measured: each has the front that it has alone."""
    results, metrics = fs.open_results(owners), ["owner_mean_wait_s", "owner_share"]
    front = pareto_front(results, metrics)
    assert list(front["owner"].unique()) == ["user:2", "user:1", "user:3"]
    for owner, rows in front.groupby("owner"):
        alone = pareto_front(results.sel(owner=[owner]), metrics)
        assert rows.drop(columns="owner").reset_index(drop=True).equals(alone)
    every = pareto_front(results, metrics, every=True)
    assert len(every) == 6
    assert len(front) > is_on_front([every[name].to_numpy() for name in metrics], [False, True]).sum()
    sample = Sample(results)
    assert sample.on_front(metrics).sum() == len(front)
    assert any("has a front of its own" in line for line in pareto_figure(results, sample, metrics).caption)


def test_the_command_says_that_owners_are_apart(owners, store):
    said = command("pareto", owners, "owner_mean_wait_s", "owner_share").stdout.splitlines()
    assert said[1].lower() == "each owner has a front of its own, because it says what is measured"
    found = json.loads(command("pareto", owners, "owner_mean_wait_s", "owner_share", "--json").stdout)
    assert found["apart"] == ["owner"]
    assert {row["owner"] for row in found["front"]} == {"user:1", "user:2", "user:3"}
    assert json.loads(command("pareto", store, "utilisation", "mean_wait_s", "--json").stdout)["apart"] == []


def test_an_owner_is_no_policy(owners):
    """Neither of its own accord, as the first axis of names, nor asked for."""
    results = fs.open_results(owners)
    assert policy_axis(results) == "scheduler"
    assert policy_axis(results.isel(scheduler=[0])) is None
    axes = {"owner": ["user:1", "user:2"], "placing": [{"label": "a", "size_map": "drop"}, {"label": "b"}]}
    sweep = fs.Sweep(axes=axes, fixed={"log": "sdsc-model", "machine": "flat:128"}, best={})
    assert sweep.spec.best.axis == "placing"
    with pytest.raises(InputError, match=r"axis: owner says what is measured, .* another one \(valid: placing\)"):
        fs.Sweep(axes=axes, fixed={"log": "sdsc-model", "machine": "flat:128"}, best={"axis": "owner"})


def test_an_axis_may_set_an_owner_together_with_a_policy(tmp_path):
    """Its labels of one owner are compared; a selection among all of them is refused, with the reason."""
    fixed = {"log": "sdsc-model", "num_jobs": 100, "machine": "flat:128", "num_users": 3, "load_scale": 1.3}
    bundles = {"owner": ["user:2", "user:1", "user:2"], "scheduler": ["fcfs", "backfill", "conservative"]}
    axes = {"what": {"zip": bundles}}
    fs.Sweep(axes=axes, fixed=fixed, replicates=2).run(tmp_path / "o.zarr", workers=1, progress=False)
    results, metrics = fs.open_results(tmp_path / "o.zarr"), ["owner_mean_wait_s", "owner_mean_bounded_slowdown"]
    front = pareto_front(results, metrics)
    own = pareto_front(results.isel(what=[0, 2]), metrics)
    assert set(front["what"]) == {*own["what"], results["what"].values[1]}
    assert len(own) == 1
    sample = Sample(results)
    assert sample.on_front(metrics).sum() == len(front) == 2
    assert sample.apart_words().startswith("Each owner has a front of its own")
    with pytest.raises(InputError, match="or more but what, along which it differs what is measured; name"):
        compare_policies(results)
    old = results.assign_attrs(spec='[best]\nmetric = "mean_wait_s"\n')  # run before such axes were refused
    assert selection_of(old).axis == "what"
    for best in ({}, {"axis": "what"}):
        with pytest.raises(InputError, match="axis: what sets owner, which says what is measured, together with"):
            fs.Sweep(axes=axes, fixed=fixed, best=best)


def cost(owner, replicate):
    return float(len(owner) + replicate)


def test_an_axis_called_owner_of_a_function_is_like_any_other():
    sweep = fs.Sweep(axes={"owner": ["a", "b"]}, function=cost, outputs=["cost_s"], better={"cost_s": "lower"}, best={})
    assert sweep.spec.best.axis == "owner"
