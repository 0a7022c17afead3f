"""Results of a sweep that runs are shown from its journals, before chunks of the store have them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.sweeps.open import has_result, open_results
from faultsweep.sweeps.store import newest as newest_module
from faultsweep.sweeps.store.journal import JournalWriter
from faultsweep.sweeps.store.newest import CELLS, Newest, list_cells

SWEEP = """
import sys, time
from pathlib import Path
from faultsweep import Sweep

def wait(x, y):
    if x >= 6:
        while not Path("gate").exists():
            time.sleep(0.02)
    elif x > 0:
        time.sleep(0.01)
    return {"twice": 2.0 * x + y, "whole": int(x), "odd": bool(x % 2), "word": "w" * int(x)}

if __name__ == "__main__":
    axes = {"x": [3.0, 1.0, 2.0, 0.0, 5.0, 4.0, 6.0, 7.0], "y": [0.0, 0.5]}
    sweep = Sweep(name="gated", axes=axes, function=wait)
    sweep.run("gated.zarr", workers=1, progress=False)
"""


def until(true, seconds=60):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it was waited for in vain"
        time.sleep(0.05)


@pytest.fixture
def running(tmp_path):
    """A sweep whose last cells wait for a file."""
    (tmp_path / "gated.py").write_text(SWEEP)
    with (tmp_path / "errors.txt").open("w") as errors:
        process = subprocess.Popen([sys.executable, "gated.py"], cwd=tmp_path, stderr=errors)
    yield tmp_path, process
    (tmp_path / "gate").touch()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    process.kill()


@pytest.mark.slow
def test_a_cell_that_only_a_journal_has_is_shown(running, request):
    folder, process = running
    until(lambda: (folder / "gated.zarr" / "zarr.json").exists() or process.poll() is not None)
    assert process.poll() is None, (folder / "errors.txt").read_text()
    store = FollowedStore(str(folder / "gated.zarr"))
    store.start()
    request.addfinalizer(store.stop)
    until(lambda: has_result(store.data["status"]).sum() > 8, seconds=10)
    shown = store.data
    known = has_result(shown["status"]).squeeze("replicate", drop=True)
    assert known.sum() > has_result(open_results(store.place)["status"]).sum(), "chunks have none of these yet"
    x, y = xr.broadcast(known["x"], known["y"])
    for name, expected in (("twice", 2.0 * x + y), ("whole", x), ("odd", x % 2)):
        own = shown[name].squeeze("replicate").values
        assert np.array_equal(own, expected.where(known).values, equal_nan=True)
        assert own[3, 1] == shown[name].isel(x=3, y=1).item()
    (folder / "gate").touch()
    assert process.wait(60) == 0, (folder / "errors.txt").read_text()
    until(lambda: has_result(store.data["status"]).all())
    store.stop()
    store.look()
    assert store.data.identical(FollowedStore(store.place).data)
    assert not (folder / "gated.zarr.run" / CELLS).exists()


def records(folder, keys, values, status=1):
    """Write a journal of the run ``r``."""
    (folder / "journals").mkdir(exist_ok=True)
    writer = JournalWriter(folder / "journals" / f"r-{len(list((folder / 'journals').iterdir()))}.journal", ["a"])
    for key, value in zip(keys, values, strict=True):
        writer.write((key, 7), status, 0.1, [value])
    return writer


@pytest.fixture
def listed(tmp_path):
    """A run of six cells, of which two are the same simulation; and the folder beside its store."""
    folder = tmp_path / "s.zarr.run"
    folder.mkdir()
    keys = np.array([[50, 40, 30, 40, 20, 10], [7, 7, 7, 7, 7, 8]], np.uint64)
    list_cells(folder, "r", (2, 3), np.ones(6, bool), keys)
    return tmp_path / "s.zarr", folder


def found(newest, status=(0, 0, 0, 0, 0, 0), runs='[{"id": "r"}]'):
    newer = newest.beyond(np.array(status, np.int8).reshape(2, 3), runs)
    return {int(cell): value for cell, value in zip(newer.cells, newer.values.get("a", []), strict=True)}


def test_records_go_to_all_cells_of_their_key_and_each_is_read_once(listed):
    path, folder = listed
    newest = Newest(path)
    assert not newest.read()
    writer = records(folder, [40, 10, 99], [1.5, 2.5, 3.5])
    assert newest.read()
    assert found(newest) == {1: 1.5, 3: 1.5}, "a key is right in both of its words, or no cell's"
    assert not newest.read(), "nothing is read twice"
    writer.write((50, 7), 1, 0.1, [4.5])
    records(folder, [20, 30], [5.5, 6.5], status=2).close()  # failed
    assert newest.read()
    assert found(newest, (0, 1, 0, 0, 0, 0)) == {0: 4.5, 3: 1.5}, "the store has one of them by now"
    assert found(newest, runs="[]") == {}, "a run that the store does not list is over"
    writer.close()


def test_a_record_that_is_not_whole_is_read_when_it_is(listed):
    path, folder = listed
    newest = Newest(path)
    records(folder, [50, 40], [1.5, 2.5]).close()
    (file,) = (folder / "journals").iterdir()
    whole = file.read_bytes()
    missing = []
    for size in range(len(whole) + 1):
        file.write_bytes(whole[:size])
        if newest.read():
            missing.append(len(whole) - size)
    assert missing == [8 + 40 + 8, 0]  # a frame, what is fixed, and one value
    assert found(newest) == {0: 1.5, 1: 2.5, 3: 2.5}


@pytest.mark.parametrize("harm", ["cut", "outside", "other grid", "objects"])
def test_a_list_of_cells_that_is_not_sound_shows_nothing(listed, harm):
    path, folder = listed
    records(folder, [40], [1.5]).close()
    keys = np.full((2, 1), 40, np.uint64)
    if harm == "cut":
        (folder / CELLS).write_bytes((folder / CELLS).read_bytes()[:-30])
    elif harm == "objects":
        np.savez(folder / CELLS, run=np.array("r"), shape=np.array([2, 3]), cells=np.array([{}]), keys=keys)
    else:
        wanted = np.array([False] * 6 + [True]) if harm == "outside" else np.array([True])
        shape = (3, 2) if harm == "other grid" else (2, 3)
        list_cells(folder, "r", shape, wanted, np.repeat(keys, len(wanted), axis=1))
    newest = Newest(path)
    newest.read()
    assert found(newest) == {}


def test_no_more_is_held_than_there_is_room_for(listed, monkeypatch):
    path, folder = listed
    monkeypatch.setattr(newest_module, "MOST_HELD_BYTES", 10)
    for key in (50, 40, 30):
        records(folder, [key], [float(key)]).close()
    newest, stored, seen = Newest(path), np.zeros(6, np.int8), []
    for _ in range(3):
        assert newest.read()
        assert not newest.read(), "there is no room before the store has some"
        seen += [held := found(newest, stored)]
        stored[list(held)] = 1
        assert found(newest, stored) == {}
    assert seen == [{0: 50.0}, {1: 40.0, 3: 40.0}, {2: 30.0}]
