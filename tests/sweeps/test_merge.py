"""Stores that were run in different places become one, and no result is ever chosen over another."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.compare import compare
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.store.merge import merge
from faultsweep.sweeps.store.statuses import COPY, DONE, NOT_REQUESTED
from faultsweep.sweeps.store.store import Store, commit, run_folder
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError
from tests.sweeps import functions
from tests.sweeps.merged import simulator_store


@pytest.fixture(scope="module")
def make(tmp_path_factory, client):
    """Run a sweep of ``add`` into a new store, once for the same settings."""
    known = {}

    def run(**changes):
        settings = {"name": "n", "axes": {"a": [1, 2], "b": [0.5]}, "function": functions.add, "outputs": ["sum"]}
        key = repr(changes)
        if key not in known:
            known[key] = tmp_path_factory.mktemp("merge") / "s.zarr"
            Sweep(**{**settings, **changes}).run(known[key], cluster=client, progress=False)
        return known[key]

    return run


def altered(store, tmp_path, name="altered.zarr", **values):
    """A copy of a store with other values in its first cell."""
    copy = shutil.copytree(store, tmp_path / name)
    for variable, value in values.items():
        array = Store(copy).arrays[variable]
        array[(0,) * array.ndim] = value
    return copy


def test_stores_of_different_rows_are_joined(make, tmp_path):
    one, two = make(), make(axes={"b": [1.5, 0.5], "a": [2, 3]})
    merged = merge([one, two], tmp_path / "m.zarr")
    data = xr.open_zarr(tmp_path / "m.zarr", chunks=None).load()
    assert data["a"].values.tolist() == [1, 2, 3]
    assert data["b"].values.tolist() == [0.5, 1.5]
    for source in (one, two):
        part = xr.open_zarr(source, chunks=None).load()
        same = data["sum"].sel(a=part["a"], b=part["b"]).transpose(*part["sum"].dims)
        assert (same.values == part["sum"].values).all()
    assert data["status"].sel(a=1, b=1.5).item() == NOT_REQUESTED
    assert np.isnan(data["sum"].sel(a=1, b=1.5)).all()
    assert {run["time"] for run in merged.text("provenance")} == {
        run["time"] for source in (one, two) for run in Store(source, mode="r").text("provenance")
    }
    assert not run_folder(tmp_path / "m.zarr").exists()


def test_a_merged_store_goes_on_without_running_anything_twice(make, tmp_path, client):
    merge([make(), make(axes={"a": [2, 3], "b": [0.5, 1.5]})], tmp_path / "m.zarr")
    whole = Sweep(name="n", axes={"a": [1, 2, 3], "b": [0.5, 1.5]}, function=functions.add, outputs=["sum"])
    assert whole.plan(tmp_path / "m.zarr", measure=False).missing == 1
    data = whole.run(tmp_path / "m.zarr", cluster=client, progress=False)
    assert data["sum"].notnull().all()


def test_conflicting_cells_are_named_and_nothing_is_done(make, tmp_path):
    other = altered(make(), tmp_path, sum=99.0)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        merge([make(), other], tmp_path / "m.zarr")
    first, last = str(caught.value).splitlines()
    stored = float(xr.open_zarr(make(), chunks=None)["sum"][0, 0, 0])
    assert first == f"merge: a=1, b=0.5, replicate=0: sum is {stored} in {make()}, 99.0 in {other}"
    assert last == "merge: 1 cells are in conflict; nothing done"
    assert sorted(tmp_path.iterdir()) == before
    merge([make(), altered(make(), tmp_path, "slower.zarr", wall_s=99.0)], tmp_path / "m.zarr")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"fixed": {"mode": "y"}}, "fixed.mode: 'x' in "),
        ({"axes": {"a": [1], "mode": ["x"]}}, "the axes differ: a, b, replicate in "),
        ({"function": functions.slow}, "target: add in "),
        ({"formulas": {"mode": "b"}, "axes": {"a": [1], "b": [0.5]}}, "formulas: {} in "),
    ],
)
def test_what_does_not_belong_together_is_refused(make, tmp_path, changes, sentence):
    with pytest.raises(InputError) as caught:
        merge([make(), make(**changes)], tmp_path / "m.zarr")
    assert f"merge: {sentence}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_row_with_two_meanings_is_refused(make, tmp_path):
    stores = [make(axes={"p": [{"label": "u", "a": 1, "b": b}]}) for b in (2, 3)]
    with pytest.raises(InputError) as caught:
        merge(stores, tmp_path / "m.zarr")
    assert str(caught.value) == f"merge: axis p, row 'u': b is 2 in {stores[0]}, 3 in {stores[1]}"


def test_other_content_of_a_log_is_refused(make, tmp_path):
    other = altered(make(), tmp_path)
    commit(other, {"pins": json.dumps(dict.fromkeys(Store(make()).text("pins"), "sha256:0"))})
    with pytest.raises(InputError, match=r"function add: 'sha256:[0-9a-f]+' in .*, 'sha256:0' in"):
        merge([make(), other], tmp_path / "m.zarr")


def test_every_pair_of_stores_is_compared(make, tmp_path):
    stores = [make(), altered(make(), tmp_path, "b.zarr"), altered(make(), tmp_path, "c.zarr")]
    for number, store in enumerate(stores[1:]):
        commit(store, {"pins": json.dumps({"log x": f"sha256:{number}"})})
    with pytest.raises(InputError) as caught:
        merge(stores, tmp_path / "m.zarr")
    assert str(caught.value) == f"merge: log x: 'sha256:0' in {stores[1]}, 'sha256:1' in {stores[2]}"


def test_a_parameter_that_an_older_store_does_not_name_has_its_default(tmp_path):
    one, two = (simulator_store(tmp_path / f"{k}.zarr", growth_limit=[k], wait=5.0) for k in (0, 1))
    older = Store(one, mode="r").text("configuration")
    commit(one, {"configuration": json.dumps({k: v for k, v in older.items() if k != "checkpoint_cost_s"})})
    assert merge([one, two], tmp_path / "m.zarr").text("configuration")["checkpoint_cost_s"] == 300.0
    commit(two, {"configuration": json.dumps({**older, "checkpoint_cost_s": 60.0})})
    with pytest.raises(InputError, match=r"merge: fixed.checkpoint_cost_s: 300\.0 in .*0\.zarr, 60\.0 in .*1\.zarr"):
        merge([one, two], tmp_path / "n.zarr")


def test_failed_cells_give_way_to_results_and_keep_their_errors(tmp_path, client, make):
    def moody(what):
        return make(axes={"a": [2, 3]}, function=functions.moody, outputs=["y"], fixed={"what": what})

    raised = moody("raise")
    merged = merge([raised, moody("raise")], tmp_path / "m.zarr")
    assert merged.status().tolist() == [1, 2]
    assert "three is not liked" in str(merged.arrays["error"][1, 0])
    done = altered(raised, tmp_path, y=4.0)
    Store(done).arrays["status"][...] = DONE
    Store(done).arrays["y"][...] = [[4.0], [6.0]]
    assert merge([raised, done], tmp_path / "n.zarr").status().tolist() == [1, 1]


def test_metrics_that_one_store_lacks_are_run_later(make, tmp_path, client):
    wide = make(axes={"a": [3], "b": [0.5]}, outputs=["sum", "product"])
    merge([make(), wide], tmp_path / "m.zarr")
    settings = {"name": "n", "function": functions.add, "outputs": ["sum", "product"]}
    data = Sweep(axes={"a": [1, 2, 3], "b": [0.5]}, **settings).run(tmp_path / "m.zarr", cluster=client, progress=False)
    assert data["product"].sel(b=0.5, replicate=0).values.tolist() == [a * 0.5 / 3 for a in (1, 2, 3)]


def test_per_job_results_come_along(make, tmp_path):
    settings = {"function": functions.with_jobs, "outputs": ["y"], "keep_jobs": True}
    one, two = make(axes={"a": [1, 2]}, **settings), make(axes={"a": [2, 5]}, **settings)
    merge([one, two], tmp_path / "m.zarr")
    data = open_results(tmp_path / "m.zarr")
    for a in (1, 2, 5):
        assert open_jobs(data, a=a)["wait_s"].values.tolist() == [i / 7 + a for i in range(a + 1)]


def test_vector_metrics_come_along(make, tmp_path):
    from faultsweep.sweeps.target import Output

    settings = {"function": functions.vector, "outputs": ["total", Output("parts", dim="part", labels=(1, 2, 3))]}
    merge([make(axes={"a": [1.0]}, **settings), make(axes={"a": [2.0]}, **settings)], tmp_path / "m.zarr")
    data = open_results(tmp_path / "m.zarr")
    assert data["parts"].sel(a=2.0, replicate=0).values.tolist() == [2.0, 4.0, 8.0]


def test_equal_simulations_of_two_stores_count_once(tmp_path):
    """A parameter that does nothing on a flat machine: what two stores ran apart is one simulation."""
    one = simulator_store(tmp_path / "a.zarr", growth_limit=[0], wait=5.0)
    two = simulator_store(tmp_path / "b.zarr", growth_limit=[1, 2], wait=5.0)
    merged = merge([one, two], tmp_path / "m.zarr")
    assert merged.status().tolist() == [DONE, COPY, COPY]
    assert compare(str(one), str(tmp_path / "m.zarr"), metrics=["mean_wait_s"]).equal == 1
    three = simulator_store(tmp_path / "c.zarr", growth_limit=[3], wait=6.0)
    with pytest.raises(InputError) as caught:
        merge([one, three], tmp_path / "n.zarr")
    assert (
        "growth_limit=3, replicate=0: is the same simulation as growth_limit=0, replicate=0, but mean_wait_s is 6.0,"
        " 5.0 there" in str(caught.value)
    )
