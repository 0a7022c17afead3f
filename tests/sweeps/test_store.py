"""Stores: what is refused (naming both values), what grows, per-job results, journals, locks and clocks."""

# ruff: noqa: E501 - a table of cases reads best with one case a line

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
import zarr
from faultsweep.cluster.submit import Job
from faultsweep.sweeps.runner.runner import Runner
from faultsweep.sweeps.runner.watch import SweepStoppedError
from faultsweep.sweeps.store import lock as lock_module
from faultsweep.sweeps.store.collector import Collector
from faultsweep.sweeps.store.journal import JournalWriter, read_journal
from faultsweep.sweeps.store.lock import Lock, owner_of
from faultsweep.sweeps.store.manifest import manifest_size, replace_file, root_text
from faultsweep.sweeps.store.statuses import COPY, DONE, EXCLUDED, FAILED, NOT_REQUESTED, PENDING
from faultsweep.sweeps.store.store import Store, commit
from faultsweep.sweeps.sweep import SUBMISSION_VARIABLE, Sweep

from faultsweep.errors import InputError
from tests.sweeps import functions


def sweep(**changes):
    settings = {"name": "n", "axes": {"a": [1, 2], "b": [0.5, 1.5]}, "function": functions.add, "outputs": ["sum"]}
    return Sweep(**{**settings, **changes})


@pytest.fixture
def store(tmp_path, client):
    sweep().run(tmp_path / "s.zarr", cluster=client, progress=False)
    return tmp_path / "s.zarr"


def changed(a=0, b=0, mode="x", replicate=0, seed=0):
    return {"sum": a + b, "product": 0}


changed.__qualname__ = "add"

REFUSED = {
    "other axes": (
        {"axes": {"a": [1], "c": [{"label": "x", "b": 1}]}},
        "the store has the axes a, b, replicate, the spec a, c, replicate",
    ),
    "other fixed": ({"fixed": {"mode": "y"}}, "fixed.mode: the store has 'x', the spec 'y'"),
    "other seed": ({"seed": 5}, "fixed.seed: the store has 0, the spec 5"),
    "other parameters of an axis": (
        {"axes": {"a": [1], "b": {"zip": {"b": [0.5, 1.5], "mode": ["x", "y"]}}}},
        "axes.b: labels differ",
    ),
    "other kind of label": (
        {"axes": {"a": [{"label": "x", "a": 1}], "b": [0.5]}},
        "axes.a: labels differ",
    ),
    "formula for what is fixed": (
        {"formulas": {"mode": "1"}},
        "formulas.mode: the store has none, the spec '1'; what is fixed or computed makes another sweep",
    ),
    "other function": ({"function": functions.slow}, "the store has results of add, the spec runs slow"),
    "changed function": (
        {"function": changed, "fixed": {}, "seed": None},
        "function add has changed: the store has sha256:",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_belong_together_is_refused(store, client, case):
    changes, sentence = REFUSED[case]
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as caught:
        sweep(**changes).run(store, cluster=client, progress=False)
    assert sentence in str(caught.value)
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_a_changed_row_is_refused_naming_both_values(tmp_path, client):
    sweep(axes={"p": [{"label": "u", "a": 1, "b": 2}]}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    with pytest.raises(InputError, match="axis p, row 'u': b is 2 in the store, 3 in the spec"):
        sweep(axes={"p": [{"label": "u", "a": 1, "b": 3}]}).run(tmp_path / "s.zarr", cluster=client, progress=False)


def test_a_changed_formula_is_refused(tmp_path, client):
    sweep(axes={"a": [1, 2]}, formulas={"b": "2 * a"}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    with pytest.raises(InputError, match=r"formulas.b: the store has '2 \* a', the spec '3 \* a'"):
        sweep(axes={"a": [1, 2]}, formulas={"b": "3 * a"}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert sweep(axes={"a": [1, 2]}, formulas={"b": "(2*a)"}).plan(tmp_path / "s.zarr", measure=False).missing == 0


def test_an_axis_of_whole_numbers_grows_by_fractions(store, client):
    """Readers of the present grid see it unchanged until the grown one appears; nothing runs again."""
    before = xr.open_zarr(store, chunks=None)
    rows = [{"label": "x", "b": 1}, {"label": "y", "b": 2}]
    sweep(axes={"a": [1, 2], "p": rows}).run(store.with_name("t.zarr"), cluster=client, progress=False)
    for name, axes in (
        ("s.zarr", {"a": [2.5, 1.0], "b": [0.5, 1.5, 3]}),
        ("t.zarr", {"a": [2.5], "p": [{"label": "z", "b": 0.25}]}),
    ):
        path = store.with_name(name)
        assert sweep(axes=axes).plan(path, measure=False).missing == (4 if name == "s.zarr" else 1)
        results = sweep(axes=axes).run(path, cluster=client, progress=False)
        assert results.a.values.tolist() == [1.0, 2.0, 2.5]
        for cell in np.argwhere(results.status.values == DONE):
            cell = (
                results.isel(a=cell[0], b=cell[1], replicate=cell[2])
                if name == "s.zarr"
                else results.isel(a=cell[0], p=cell[1], replicate=cell[2])
            )
            assert float(cell["sum"]) == functions.add(float(cell.a), float(cell.b))["sum"]
    assert before.a.values.tolist() == [1, 2]
    assert sweep(axes={"a": [3], "b": [0.5]}).plan(store, measure=False).missing == 1
    with pytest.raises(InputError, match=r"axis a cannot grow by these rows: a: 9007199254740993 beside"):
        sweep(axes={"a": [2**53 + 1], "b": [0.5]}).run(store, cluster=client, progress=False)


def test_a_widening_that_was_killed_is_undone(store, client):
    from faultsweep.sweeps.store.store import _change_type

    _change_type(store, "a/zarr.json", np.dtype("float64"), {})
    assert xr.open_zarr(store).a.values.tolist() == [1, 2]
    assert sweep().run(store, cluster=client, progress=False).a.values.tolist() == [1, 2]
    assert zarr.open_array(store / "a")[:].tolist() == [1, 2]


def test_recompute_replaces_all_results(store, client):
    again = sweep(function=changed).run(store, cluster=client, progress=False, recompute=True)
    assert again["sum"].values[:, :, 0].tolist() == [[1.5, 2.5], [2.5, 3.5]]
    assert (again.status == DONE).all()
    sweep(function=changed).run(store, cluster=client, progress=False)


@pytest.mark.parametrize("moment", ["forgetting", "running"])
def test_a_recomputation_that_was_interrupted_goes_on(tmp_path, client, monkeypatch, moment):
    """Rows that the spec does not have are recomputed too, and no old result is left among new ones."""
    path = tmp_path / "s.zarr"
    sweep(axes={"a": range(30), "b": [0.5]}, exclude=[{"a": 29}]).run(path, cluster=client, progress=False)
    narrow = sweep(axes={"a": [1, 2, 40], "b": [0.5]}, function=changed)
    with monkeypatch.context() as patch:
        if moment == "running":
            stop_after(patch, 1)
        else:
            patch.setattr(Store, "forget", lambda *_: 1 / 0)
        with pytest.raises((MemoryError, ZeroDivisionError)):
            narrow.run(path, cluster=client, progress=False, recompute=True)
    if moment == "forgetting":  # all old results are still there
        with pytest.raises(InputError, match=r"function add has changed: .* --recompute replaces all results"):
            narrow.run(path, cluster=client, progress=False)
    again = moment == "forgetting"
    results = narrow.run(path, cluster=client, progress=False, recompute=again)
    assert results["sum"].values[:29, 0, 0].tolist() == [a + 0.5 for a in range(29)]
    assert results["sum"].sel(a=40).values.ravel().tolist() == [40.5]
    assert (results.status.values[:29] == DONE).all()
    assert int(results.status.sel(a=29).item()) in (EXCLUDED, NOT_REQUESTED)
    assert narrow.plan(path, measure=False).missing == 0


@pytest.mark.parametrize("place", ["moved", "copied", "stayed"])
def test_a_recomputation_after_a_kill_takes_no_old_result(tmp_path, client, monkeypatch, place):
    """Wherever the journals are that the killed run has left."""
    old, new = tmp_path / "s.zarr", tmp_path / "elsewhere" / "s.zarr"
    settings = {"axes": {"a": range(40), "b": [0.5]}}
    with monkeypatch.context() as patch:
        stop_after(patch, 0)
        with pytest.raises(MemoryError):
            sweep(**settings).run(old, cluster=client, progress=False)
    assert sweep(**settings).plan(old, measure=False).journalled > 0
    new.parent.mkdir()
    if place == "moved":
        old.rename(new)
    elif place == "copied":
        shutil.copytree(old, new)
    path = old if place == "stayed" else new
    results = sweep(**settings, function=changed).run(path, cluster=client, progress=False, recompute=True)
    assert results["sum"].values[:, 0, 0].tolist() == [a + 0.5 for a in range(40)]
    assert (results.status == DONE).all()


def test_a_store_that_left_its_slurm_behind_is_run_anywhere(store, client, monkeypatch, tmp_path):
    folder = tmp_path / "s.zarr.run" / "slurm"
    folder.mkdir()
    job = Job("7", 0.0, str(folder), "1", 1, "", "")
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    monkeypatch.setenv("PATH", str(tmp_path))
    results = sweep(axes={"a": [1, 2, 3], "b": [0.5, 1.5]}).run(store, cluster=client, progress=False)
    assert (results.status == DONE).all()


@pytest.mark.parametrize("option", ["retry_failed", "recompute"])
def test_a_batch_job_that_starts_again_does_not_begin_again(tmp_path, client, monkeypatch, option):
    """What is to be done once per submission is done once, in however many lives of the job."""
    path, calls = tmp_path / "s.zarr", tmp_path / "calls"
    settings = {"axes": {"a": range(200)}, "fixed": {"calls": str(calls)}, "outputs": ["y"]}
    job = sweep(**settings, function=functions.grumpy)

    def live(**options):
        """Run; returns how many calls there were."""
        calls.write_text("")
        job.run(path, cluster=client, progress=False, **options)
        return len(calls.read_text().split())

    assert live() == 200
    wanted = 100 if option == "retry_failed" else 200
    monkeypatch.setenv(SUBMISSION_VARIABLE, "the first")
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(MemoryError):
            live(**{option: True})
    assert 0 < live(**{option: True}) < wanted
    assert live(**{option: True}) == 0
    assert (xr.open_zarr(path, chunks=None).status == FAILED).sum() == 100

    monkeypatch.setenv(SUBMISSION_VARIABLE, "the second")
    Path(f"{calls}.mended").touch()
    assert live(**{option: True}) == wanted
    results = xr.open_zarr(path, chunks=None)
    assert (results.status == DONE).all()
    assert set(results.error.values.ravel().tolist()) == {""}, "an error is left at a cell that is done"


def test_ctrl_c_while_a_stopped_sweep_saves_leaves_the_sentence(tmp_path, client, monkeypatch):
    stopped, flush = [], Collector.flush

    def stop(self):
        stopped.append(True)
        raise SweepStoppedError("the scheduler has ended")

    def press(self):
        if stopped:
            signal.raise_signal(signal.SIGINT)
        flush(self)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_receive", stop)
        patch.setattr(Collector, "flush", press)
        try:
            with pytest.raises(SweepStoppedError, match=r"the scheduler has ended; .* run again to resume"):
                sweep(axes={"a": range(20), "b": [0.5]}).run(tmp_path / "s.zarr", cluster=client, progress=False)
        except KeyboardInterrupt:
            pytest.fail("Ctrl-C ends the saving")
    results = sweep(axes={"a": range(20), "b": [0.5]}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert (results.status == DONE).all()


def test_a_leftover_draft_that_stays_is_refused(tmp_path, client):
    """It would become part of the store; a link is what rmtree leaves, whoever runs the test."""
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "s.zarr.run").mkdir()
    (tmp_path / "s.zarr.run" / "new.zarr").symlink_to(other)
    with pytest.raises(InputError, match=r"new\.zarr: a leftover .* remove it, then run again"):
        sweep().run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert not list(other.iterdir())
    assert not (tmp_path / "s.zarr").exists()


def test_a_recomputation_does_not_keep_old_per_job_results(tmp_path, client):
    path = tmp_path / "s.zarr"
    settings = {"function": functions.with_many_jobs, "outputs": "y", "keep_jobs": True, "axes": {"a": range(8)}}
    sweep(**settings).run(path, cluster=client, progress=False)
    before = Store(path).size_bytes()
    for _ in range(2):
        results = sweep(**settings).run(path, cluster=client, progress=False, recompute=True)
        assert Store(path).size_bytes() < 1.05 * before
    jobs = xr.open_zarr(path, group="jobs", chunks=None)
    for a in range(8):
        cell = results.sel(a=a, replicate=0)
        rows = slice(int(cell.jobs_offset), int(cell.jobs_offset) + int(cell.jobs_length))
        assert np.array_equal(jobs.wait_s.values[rows], functions.with_many_jobs(a)["jobs"]["wait_s"])


def test_a_store_of_another_model_version_is_refused(store, client):
    commit(store, {"model_version": "0"})
    with pytest.raises(
        InputError, match="the store has results of version 0 of add, which now has no version; --recompute"
    ):
        sweep().run(store, cluster=client, progress=False)


def test_a_store_of_another_format_is_refused(store, client):
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"]["faultsweep_format"] = 99
    replace_file(store, "zarr.json", root_text(root, manifest_size(store)))
    with pytest.raises(InputError, match=r"s\.zarr: a store of format 99; this version of faultsweep reads format 1"):
        sweep().run(store, cluster=client, progress=False)


@pytest.mark.parametrize("content", ["nothing", "file", "array", "damaged"])
def test_what_is_not_a_store_is_left_alone(tmp_path, client, content):
    path = tmp_path / "s.zarr"
    if content == "file":
        path.write_text("mine")
    else:
        path.mkdir()
        (path / "mine").write_text("mine")
    if content == "array":
        zarr.open_group(path, mode="a")
    if content == "damaged":
        (path / "zarr.json").write_text("{")
    with pytest.raises(InputError, match=r"s\.zarr: "):
        sweep().run(path, cluster=client, progress=False)
    assert (path if content == "file" else path / "mine").read_text() == "mine"


def test_a_read_only_folder_is_one_sentence(read_only, client):
    with pytest.raises(InputError, match="cannot write here"):
        sweep().run(read_only / "s.zarr", cluster=client, progress=False)


def test_a_store_inside_a_file_is_one_sentence(tmp_path, client):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"cannot write here \(Not a directory\); give another --store"):
        sweep().run(tmp_path / "file" / "s.zarr", cluster=client, progress=False)
    assert (tmp_path / "file").read_text() == "mine"


def test_metrics_can_be_added(tmp_path, client):
    calls = tmp_path / "calls"
    settings = {
        "function": functions.both,
        "outputs": ["y", "z"],
        "fixed": {"calls": str(calls)},
        "axes": {"a": [1, 2]},
    }
    sweep(**settings, metrics=["y"]).run(tmp_path / "s.zarr", cluster=client, progress=False)
    results = sweep(**settings).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert results.z.values[:, 0].tolist() == [10, 20]
    assert results.y.values[:, 0].tolist() == [1, 2]
    sweep(**settings, metrics=["z"]).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert len(calls.read_text().split()) == 4


@pytest.mark.parametrize("wanted", [{"metrics": ["y", "double"]}, {"keep_jobs": True}], ids=["a metric", "jobs"])
def test_what_cannot_be_added_to_a_result_leaves_it_as_it_is(tmp_path, client, wanted):
    """Of copies and new rows, too; and what is missed is told, and tried again."""
    path, calls = tmp_path / "s.zarr", tmp_path / "calls"
    settings = {
        "function": functions.brittle,
        "outputs": ["y", "double"],
        "metrics": ["y"],
        "fixed": {"calls": str(calls)},
        "inert": {"b": lambda config: config["a"] == 4},
    }
    first = sweep(**settings, axes={"a": range(5), "b": [0, 1]})
    first.run(path, cluster=client, progress=False)
    calls.touch()
    more = sweep(**{**settings, **wanted}, axes={"a": [*range(5), 5], "b": [0, 1]})
    what = "double" if "metrics" in wanted else "per-job results"
    sentence = rf"s.zarr: {what} could not be added to 3 results, .* \(3: ValueError: broken by now"
    for _ in range(2):
        with pytest.raises(InputError, match=sentence):
            more.run(path, cluster=client, progress=False)
        results = xr.open_zarr(path, chunks=None).isel(replicate=0)
        assert np.array_equal(results.y.values[:5], np.repeat(np.arange(5.0), 2).reshape(5, 2))
        assert results.status.values.tolist() == [[DONE] * 2] * 4 + [[DONE, COPY], [FAILED] * 2]
        has_more = results.double >= 0 if "metrics" in wanted else results.jobs_length > 0
        assert has_more.values.tolist() == [[True] * 2] * 3 + [[False] * 2] * 3
        assert more.plan(path, measure=False).missing == 3
    calls.unlink()
    results = more.run(path, cluster=client, progress=False, retry_failed=True)
    assert results.status.values[:, :, 0].tolist() == [[DONE] * 2] * 4 + [[DONE, COPY], [DONE] * 2]
    assert (results.double >= 0 if "metrics" in wanted else results.jobs_length > 0).all()
    assert results.attrs["adding"] == "[]"


def test_a_time_limit_that_is_too_short_to_add_a_metric_replaces_no_result(tmp_path, client):
    path = tmp_path / "s.zarr"
    settings = {"function": functions.slow, "outputs": ["sum", "product"], "fixed": {"sleep_s": 0.6}}
    settings["axes"] = {"a": [1.0, 2.0]}
    before = sweep(**settings, metrics=["sum"]).run(path, cluster=client, progress=False)["sum"].values
    with pytest.raises(InputError, match=r"product could not be added to 2 results, .* time limit of 0.3 s"):
        sweep(**settings).run(path, cluster=client, progress=False, time_limit_s=0.3)
    results = xr.open_zarr(path, chunks=None)
    assert results["sum"].values.tolist() == before.tolist()
    assert (results.status == DONE).all()


@pytest.mark.parametrize("wanted", [{"outputs": ["sum", "nope"]}, {"keep_jobs": True}], ids=["an output", "jobs"])
def test_what_a_function_does_not_give_can_be_left_out_again(store, client, monkeypatch, wanted):
    with pytest.raises(InputError, match="could not be added to 4 results, which stay as they were"):
        sweep(**wanted).run(store, cluster=client, progress=False)
    more = sweep(axes={"a": [1, 2, 3], "b": [0.5, 1.5]})
    commit, seen = Store.commit, []

    def dying(self, **attributes):
        seen.append(attributes)
        return commit(self, **attributes) if "metrics" not in attributes else 1 / 0

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", dying)
        with pytest.raises(ZeroDivisionError):
            more.run(store, cluster=client, progress=False)
    assert len(seen) == 1, "it was to be killed while what was to be added is dropped"
    assert (xr.open_zarr(store, chunks=None).load().status == DONE).all()
    results = more.run(store, cluster=client, progress=False)
    assert set(results.data_vars) == {"sum", "status", "wall_s", "error"}
    assert (results.status == DONE).all()
    assert not list(store.glob("nope")) + list(store.glob("jobs_*"))


def test_leaving_out_an_output_names_the_way(tmp_path, client):
    settings = {"function": functions.with_jobs, "axes": {"a": [1, 2]}}
    sweep(**settings, outputs=["y", "double"]).run(tmp_path / "s.zarr", cluster=client, progress=False)
    sentence = (
        "the store has double, which the outputs of with_jobs do not name; let outputs name all that it gives, and"
    )
    with pytest.raises(InputError, match=sentence):
        sweep(**settings, outputs=["y"]).run(tmp_path / "s.zarr", cluster=client, progress=False)
    named = sweep(**settings, outputs=["y", "double"], metrics=["y"])
    assert named.run(tmp_path / "s.zarr", cluster=client, progress=False).double.values.ravel().tolist() == [2, 4]


def stop_after(monkeypatch, number):
    """Let the client die, without saving anything, when so many tasks have been taken."""
    taken = []
    deliver = Runner._deliver

    def dying(self, cells, result):
        taken.append(cells)
        if len(taken) > number:
            raise MemoryError("the client dies here")
        deliver(self, cells, result)

    monkeypatch.setattr(Runner, "_deliver", dying)


def test_adding_a_metric_goes_on_after_a_kill(tmp_path, client, monkeypatch):
    calls = tmp_path / "calls"
    settings = {
        "function": functions.both,
        "outputs": ["y", "z"],
        "fixed": {"calls": str(calls)},
        "axes": {"a": range(40)},
    }
    sweep(**settings, metrics=["y"]).run(tmp_path / "s.zarr", cluster=client, progress=False)
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(MemoryError):
            sweep(**settings).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert (xr.open_zarr(tmp_path / "s.zarr").status == DONE).all()
    results = sweep(**settings).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert results.z.values[:, 0].tolist() == [10 * a for a in range(40)]


@pytest.mark.parametrize("kill", [False, True])
def test_per_job_results_are_kept_on_demand(tmp_path, client, monkeypatch, kill):
    path = tmp_path / "s.zarr"
    settings = {
        "function": functions.with_jobs,
        "outputs": "y",
        "keep_jobs": True,
        "inert": {"b": lambda config: config["a"] == 2},
    }
    if kill:
        with monkeypatch.context() as patch:
            stop_after(patch, 1)
            with pytest.raises(MemoryError):
                sweep(**settings, axes={"a": range(30), "b": [0, 1]}).run(path, cluster=client, progress=False)
    else:
        sweep(**settings, axes={"a": range(3), "b": [0, 1]}).run(path, cluster=client, progress=False)
    results = sweep(**settings, axes={"a": range(30), "b": [0, 1]}).run(path, cluster=client, progress=False)
    jobs = xr.open_zarr(path, group="jobs", chunks=None)
    for a in range(30):
        for b in (0, 1):
            cell = results.sel(a=a, b=b, replicate=0)
            assert int(cell.status) == (COPY if (a, b) == (2, 1) else DONE)
            rows = slice(int(cell.jobs_offset), int(cell.jobs_offset) + int(cell.jobs_length))
            expected = functions.with_jobs(a, 0 if a == 2 else b)["jobs"]
            assert jobs.job_id.values[rows].tolist() == expected["job_id"].tolist()
            assert jobs.wait_s.values[rows].tolist() == expected["wait_s"].tolist()


def test_per_job_results_can_be_asked_for_later(tmp_path, client):
    path = tmp_path / "s.zarr"
    settings = {"function": functions.with_jobs, "outputs": "y", "axes": {"a": range(4)}}
    sweep(**settings).run(path, cluster=client, progress=False)
    results = sweep(**settings, keep_jobs=True).run(path, cluster=client, progress=False)
    assert results.jobs_length.values[:, 0].tolist() == [1, 2, 3, 4]
    assert sweep(**settings, keep_jobs=True).plan(path, measure=False).missing == 0
    more = sweep(**{**settings, "axes": {"a": range(6)}}).run(path, cluster=client, progress=False)
    assert more.jobs_length.values[:, 0].tolist() == [1, 2, 3, 4, 5, 6]


def test_per_job_results_that_are_asked_for_after_a_kill(tmp_path, client, monkeypatch):
    """What the killed run has finished has none."""
    path = tmp_path / "s.zarr"
    settings = {"function": functions.with_jobs, "outputs": "y", "axes": {"a": range(30)}}
    with monkeypatch.context() as patch:
        stop_after(patch, 0)
        with pytest.raises(MemoryError):
            sweep(**settings).run(path, cluster=client, progress=False)
    assert sweep(**settings).plan(path, measure=False).journalled > 0
    asked = sweep(**settings, keep_jobs=True)
    plan = asked.plan(path, measure=False)
    assert (plan.missing, plan.journalled) == (30, 0)
    results = asked.run(path, cluster=client, progress=False)
    assert (results.status == DONE).all()
    assert results.jobs_length.values[:, 0].tolist() == list(range(1, 31))


def test_a_function_without_per_job_results_says_so(tmp_path, client):
    results = sweep(keep_jobs=True).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert 'result lacks "jobs"' in str(results.error.values[0, 0, 0])


def test_metrics_that_per_job_results_give_are_added_without_a_run(tmp_path, client):
    path = tmp_path / "s.zarr"
    settings = {
        "name": "derived",
        "fixed": {"log": "nasa-model", "num_jobs": 60, "failures": "mtbf", "mtbf_h": 0.1, "mttr_h": 0.01},
        "axes": {"scheduler": ["fcfs", "backfill"], "growth_limit": [0, 1]},
        "keep_jobs": True,
    }
    Sweep(**settings, metrics=["utilisation"]).run(path, cluster=client, progress=False)
    wanted = [
        "mean_wait_s",
        "p90_bounded_slowdown",
        "work_loss_ratio",
        "jobs_submitted",
        "restarts",
        "work_lost_node_s",
    ]
    assert Sweep(**settings, metrics=wanted).plan(path, measure=False).missing == 0
    added = Sweep(**settings, metrics=wanted).run(path, cluster=client, progress=False)
    direct = Sweep(**settings).run(tmp_path / "t.zarr", cluster=client, progress=False)
    for name in (*wanted, "utilisation", "status"):
        assert added[name].values.tobytes() == direct[name].values.tobytes()
    assert (added["restarts"] > 0).any()
    assert "makespan_s" not in added


def test_a_store_stays_with_its_metrics_when_the_simulator_learns_new_ones(tmp_path, client):
    """Nothing is run again for a metric that nobody asked for; who asks for it gets it."""
    path = tmp_path / "s.zarr"
    fixed = {"log": "nasa-model", "num_jobs": 60, "failures": "mtbf", "mtbf_h": 1.0}
    settings = {"name": "older", "fixed": fixed, "axes": {"load_scale": [0.8, 1.0]}}
    whole = Sweep(**settings).run(path, cluster=client, progress=False)
    Store(path, mode="r+").drop(["work_loss_ratio"])
    plan = Sweep(**settings).plan(path, measure=False)
    assert plan.missing == 0
    assert any("the store stays without work_loss_ratio" in text for text in plan.assumptions)
    grown = Sweep(**{**settings, "axes": {"load_scale": [0.8, 1.0, 1.2]}})
    assert grown.plan(path, measure=False).missing == 1
    assert "work_loss_ratio" not in grown.run(path, cluster=client, progress=False)
    assert Sweep(**settings).plan(path, measure=False, recompute=True).missing == 3
    asked = Sweep(**settings, metrics=["work_loss_ratio"])
    assert asked.plan(path, measure=False).missing == 3
    added = asked.run(path, cluster=client, progress=False)
    assert added.work_loss_ratio.values[:2].tobytes() == whole.work_loss_ratio.values.tobytes()


def test_a_metric_that_jobs_give_is_simulated_where_there_are_none(tmp_path, client, monkeypatch):
    """Because the run that was to keep them was killed."""
    path = tmp_path / "s.zarr"
    settings = {"fixed": {"log": "nasa-model", "num_jobs": 60}, "axes": {"load_scale": [0.8, 1.0, 1.2]}}
    Sweep(**settings, metrics=["utilisation"]).run(path, cluster=client, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Sweep(**settings, metrics=["utilisation"], keep_jobs=True).run(path, cluster=client, progress=False)
    more = Sweep(**settings, metrics=["utilisation", "mean_wait_s"])
    assert more.plan(path, measure=False).missing == 3
    added = more.run(path, cluster=client, progress=False)
    direct = more.run(tmp_path / "t.zarr", cluster=client, progress=False)
    assert added.mean_wait_s.values.tolist() == direct.mean_wait_s.values.tolist()
    assert more.plan(path, measure=False).missing == 0


def _elsewhere(pack):
    """Let workers look for the folder of the run where it is not."""

    def elsewhere(self):
        object.__setattr__(self, "folder", self.folder.with_name("missing") / "x")
        return pack(self)

    return elsewhere


@pytest.mark.parametrize("keep_jobs", [pytest.param(False, marks=pytest.mark.slow), True])
def test_workers_that_do_not_see_the_folder_leave_the_journal_to_the_client(tmp_path, client, monkeypatch, keep_jobs):
    from faultsweep.sweeps.runner import task

    settings = {"function": functions.with_jobs, "outputs": "y", "axes": {"a": range(80)}, "keep_jobs": keep_jobs}
    monkeypatch.setattr(task.Context, "pack", _elsewhere(task.Context.pack))
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(MemoryError):
            sweep(**settings).run(tmp_path / "s.zarr", cluster=client, progress=False)
    journals = list((tmp_path / "s.zarr.run" / "journals").iterdir())
    assert {path.name.partition("-")[2] for path in journals} - {"client.jobs"} == {"client.journal"}
    assert (xr.open_zarr(tmp_path / "s.zarr").status == PENDING).all()
    assert sweep(**settings).plan(tmp_path / "s.zarr", measure=False).journalled > 0
    results = sweep(**settings).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert (results.status == DONE).all()
    if keep_jobs:
        jobs = xr.open_zarr(tmp_path / "s.zarr", group="jobs", chunks=None)
        for a in range(80):
            cell = results.sel(a=a, replicate=0)
            rows = slice(int(cell.jobs_offset), int(cell.jobs_offset + cell.jobs_length))
            assert jobs.wait_s.values[rows].tolist() == functions.with_jobs(a)["jobs"]["wait_s"].tolist()
    log = (tmp_path / "s.zarr.run" / "log.txt").read_text()
    assert f"workers cannot see {tmp_path / 's.zarr.run'}: this process stores what they send" in log
    kill = Sweep(axes={"a": range(20)}, fixed={"what": "kill"}, function=functions.moody, outputs=["y"])
    results = kill.run(tmp_path / "k.zarr", cluster=client, progress=False)
    assert (results.status.values[:, 0] == DONE).sum() == 19
    assert "died 3 times" in str(results.error.values[3, 0])


@pytest.mark.slow
@pytest.mark.parametrize("sees", [True, False])
def test_tasks_behind_work_of_others_are_handed_out_again(tmp_path, client, monkeypatch, sees):
    """First no worker has time; then one call takes longer than an unbegun task is waited for."""
    from faultsweep.sweeps.runner import first, runner, task, watch

    if not sees:
        monkeypatch.setattr(task.Context, "pack", _elsewhere(task.Context.pack))
    for module in (first, runner):
        monkeypatch.setattr(module, "IDLE_S", 0.5)
    asked, ask = [], watch.Watch.tasks_begun

    def counting(self, run_id):
        asked.append(ask(self, run_id))
        if len(asked) == 3:
            (tmp_path / "gate").touch()
        return asked[-1]

    monkeypatch.setattr(watch.Watch, "tasks_begun", counting)
    calls, path = tmp_path / "calls", tmp_path / "s.zarr"
    calls.mkdir()
    client.wait_for_workers(2, timeout=60)  # on a busy machine one may be away for a moment
    others = [
        client.submit(functions.opened, str(tmp_path / "gate"), workers=[w], pure=False) for w in client.nthreads()
    ]
    fixed = {"folder": str(calls), "sleep_s": 1.2}
    begin = Sweep(axes={"a": [1, 2]}, fixed=fixed, function=functions.tallied)
    try:
        results = begin.run(path, cluster=client, progress=False)
    finally:
        (tmp_path / "gate").touch()
    assert [others[0].status, asked[0]] == ["finished", ({}, True)]
    assert any(begun for begun, _ in asked[3:]), "the call that takes long was asked for"
    names = [file.name.partition("-")[0] for file in calls.iterdir()]
    assert names.count("2") == 1, "it had begun, and was not handed out again"
    assert names.count("1") <= 2, "the first cell may begin as it is handed out again"
    assert results.y.values.ravel().tolist() == [1 / 7, 2 / 7]


def test_a_growth_that_was_killed_is_undone_or_repeated(store, client):
    group = zarr.open_group(store, mode="r+", use_consolidated=False)
    for name in ("sum", "status"):
        group[name].resize((5, 2, 1))
    (store / "sum" / "c.0123.partial").write_text("torn")
    seen = xr.open_zarr(store)
    assert seen["sum"].shape == (2, 2, 1)
    results = sweep(axes={"a": [1, 2, 3], "b": [0.5, 1.5]}).run(store, cluster=client, progress=False)
    assert results["sum"].shape == (3, 2, 1)
    assert (results.status == DONE).all()
    assert not list(store.rglob("*.partial"))


@pytest.mark.parametrize("following", ["the old spec", "the new spec"])
def test_arrays_of_a_growth_that_was_killed_do_no_harm(tmp_path, client, monkeypatch, following):
    """Those that were made for it have the shape that the grid was to have."""
    path = tmp_path / "s.zarr"
    settings = {"function": functions.with_jobs, "outputs": ["y", "double"]}
    old = sweep(**settings, axes={"a": range(3)}, metrics=["y"])
    new = sweep(**settings, axes={"a": range(5)}, keep_jobs=True)
    old.run(path, cluster=client, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", lambda *_, **attributes: 1 / ("metrics" not in attributes))
        with pytest.raises(ZeroDivisionError):
            new.run(path, cluster=client, progress=False)
    assert (path / "double").is_dir()
    assert (path / "jobs_offset").is_dir()
    rows = 3 if following == "the old spec" else 5
    (old if rows == 3 else new).run(path, cluster=client, progress=False)
    results = xr.open_zarr(path, chunks=None)
    assert results.y.values[:, 0].tolist() == list(range(rows))
    assert (results.status == DONE).all()
    assert ("double" in results, "jobs_offset" in results) == (rows == 5, rows == 5)
    if rows == 5:
        assert results.double.values[:, 0].tolist() == [2.0 * a for a in range(5)]


def test_long_labels_survive_growth(tmp_path, client):
    rows = [{"label": "u", "a": 1}, {"label": "a rather long name, with ünïcode", "a": 2}]
    sweep(axes={"p": rows[:1]}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    results = sweep(axes={"p": rows}).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert results.p.values.tolist() == [row["label"] for row in rows]
    assert results.a.values.tolist() == [1, 2]


# --- journals ---


def journal(path, number, error=""):
    writer = JournalWriter(path, ["x", "y"])
    for i in range(number):
        failed = bool(error) and i % 2 == 1
        writer.write((i, 2**63 + i), 1 + failed, i / 7, [i, -i], error * failed, jobs=(10 * i, i))
    writer.sync()
    writer.close()


def test_a_journal_gives_back_what_was_written(tmp_path):
    journal(tmp_path / "j", 1001, "ä long error")
    (records,) = read_journal(tmp_path / "j")
    assert records.outputs == ("x", "y")
    assert records.keys.T.tolist() == [[i, 2**63 + i] for i in range(1001)]
    assert records.values.tolist() == [[i, -i] for i in range(1001)]
    assert records.wall_s.tolist() == [i / 7 for i in range(1001)]
    assert records.errors == dict.fromkeys(range(1, 1001, 2), "ä long error")
    assert records.jobs.T.tolist() == [[10 * i, i] for i in range(1001)]


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_journal_gives_what_stands_before_the_damage(tmp_path, damage):
    journal(tmp_path / "j", 50)
    whole = (tmp_path / "j").read_bytes()
    for position in range(0, len(whole), 17):
        broken = bytearray(whole[:position] if damage == "cut" else whole)
        if damage == "flip":
            broken[position] ^= 0x20
        (tmp_path / "broken").write_bytes(broken)
        found = list(read_journal(tmp_path / "broken"))
        values = found[0].values.tolist() if found else []
        assert values == [[i, -i] for i in range(len(values))]
        assert len(values) <= 50 - (damage == "flip" and position >= len(whole) - 64)


def test_a_million_records_are_read_in_seconds(tmp_path):
    journal(tmp_path / "j", 200_000)
    start = time.process_time()  # what other processes do does not count
    assert sum(len(records.status) for records in read_journal(tmp_path / "j")) == 200_000
    assert time.process_time() - start < 2


# --- locks ---


def test_a_lock_keeps_a_second_owner_out_and_is_gone_afterwards(tmp_path):
    with Lock(tmp_path / "lock"):
        assert owner_of(tmp_path / "lock")["pid"] == os.getpid()
        with pytest.raises(InputError, match=f"lock: process {os.getpid()} on .* is running this sweep"):
            Lock(tmp_path / "lock").acquire()
    assert not (tmp_path / "lock").exists()


def test_a_lock_that_is_being_written_names_its_owner(tmp_path):
    lock = tmp_path / "lock"
    lock.touch()
    owner = dict.fromkeys(("started", "boot", "token", "batch_job", "batch_system"), "")
    written = json.dumps({**owner, "host": "elsewhere", "pid": 7, "beats": 0})
    writer = threading.Timer(0.3, lock.write_text, [written])
    writer.start()
    with pytest.raises(InputError, match="process 7 on elsewhere"):
        Lock(lock, wait_s=2).acquire()
    writer.join()


def test_a_lock_of_a_dead_process_is_taken_over(tmp_path):
    code = f"from faultsweep.sweeps.store.lock import Lock; import os, pathlib; Lock(pathlib.Path({str(tmp_path / 'lock')!r})).acquire(); os._exit(1)"
    subprocess.run([sys.executable, "-c", code], check=False, timeout=60, cwd=tmp_path)
    assert (tmp_path / "lock").exists()
    assert owner_of(tmp_path / "lock") is None
    start = time.monotonic()
    with Lock(tmp_path / "lock"):
        assert time.monotonic() - start < 1


@pytest.mark.parametrize("field", ["pid", "started", "boot"])
def test_a_process_number_that_is_used_again_does_not_count(tmp_path, field):
    lock = Lock(tmp_path / "lock").acquire()
    lock._stop.set()
    owner = json.loads((tmp_path / "lock").read_text())
    (tmp_path / "lock").write_text(json.dumps({**owner, field: 4_194_305 if field == "pid" else "other"}))
    with Lock(tmp_path / "lock"):
        pass


def other_host(path, beats=0):
    owner = {"host": "elsewhere", "pid": 1, "started": "1", "boot": "x", "token": "t", "beats": beats}
    fresh = path.with_name("fresh")
    fresh.write_text(json.dumps(owner))
    os.replace(fresh, path)


def test_a_silent_lock_of_another_host_is_taken_over_after_a_while(tmp_path):
    other_host(tmp_path / "lock")
    start = time.monotonic()
    with Lock(tmp_path / "lock", wait_s=0.5):
        assert time.monotonic() - start >= 0.5


def test_a_beating_lock_of_another_host_is_respected_whatever_the_clocks_say(tmp_path, monkeypatch):
    """Its file's times lie a year back or ahead, and this host's clock jumps: only the counter matters."""
    path = tmp_path / "lock"
    other_host(path)
    stop = threading.Event()

    def beat():
        beats = 0
        while not stop.wait(0.1):
            beats += 1
            other_host(path, beats)
            os.utime(path, (time.time() - 3e7, time.time() + (3e7 if beats % 2 else -3e7)))

    thread = threading.Thread(target=beat)
    thread.start()
    jumps = iter(range(10**6))
    # for the lock alone: the tests' own cluster lives in this process
    clock = SimpleNamespace(**{**vars(time), "time": lambda: 1e9 * (next(jumps) % 3)})
    monkeypatch.setattr(lock_module, "time", clock)
    try:
        with pytest.raises(InputError, match="process 1 on elsewhere"):
            Lock(path, wait_s=5).acquire()
    finally:
        stop.set()
        thread.join()


def test_a_lost_lock_stops_its_owner(tmp_path):
    with Lock(tmp_path / "lock", beat_s=0.05) as lock:
        lock.check()
        other_host(tmp_path / "lock")
        with pytest.raises(InputError, match="another process has taken the store over"):
            lock.check()
    assert json.loads((tmp_path / "lock").read_text())["host"] == "elsewhere"


def test_of_many_who_find_a_dead_lock_one_gets_it(tmp_path):
    for _ in range(20):
        other_host(tmp_path / "lock")
        won, lost = [], []

        def take(won=won, lost=lost):
            try:
                won.append(Lock(tmp_path / "lock", wait_s=0.05).acquire())
            except InputError:
                lost.append(1)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(lost)) == (1, 7)
        won[0].release()
