"""Stores open lazily from folders, archives and URLs, and show nothing wrong; anything else is one sentence."""

from __future__ import annotations

import functools
import json
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from faultsweep.sweeps.open import fixed_parameters, has_result, metric_names, open_results, status_code

from faultsweep.errors import InputError

from .stores import STATUSES, make_results, write_results


@pytest.fixture
def store(tmp_path):
    """Seven cells, one of each status, with a number behind every one of them."""
    data = make_results(
        {"load_scale": [1.0, 0.5, 0.7, 0.6, 1.1, 0.9, 0.8]},
        {"mean_wait_s": np.arange(7.0)},
        status=np.arange(7),
        fixed={"machine": "flat:128"},
    )
    data["mean_wait_s"].attrs = {"units": "s", "long_name": "Mean wait"}
    return write_results(tmp_path / "a.zarr", data)


def test_only_cells_with_a_result_are_shown_and_axes_are_sorted(store):
    data = open_results(store)
    assert data["load_scale"].values.tolist() == sorted(data["load_scale"].values)
    shown = data["mean_wait_s"].isel(replicate=0)
    known = shown.dropna("load_scale")
    assert dict(zip(known["load_scale"].values, known.values, strict=True)) == {0.5: 1.0, 0.6: 3.0, 1.1: 4.0}
    assert data["mean_wait_s"].attrs == {"units": "s", "long_name": "Mean wait"}
    assert fixed_parameters(data) == {"machine": "flat:128"}
    assert metric_names(data) == ["mean_wait_s"]
    assert int(has_result(data["status"]).sum()) == 3
    assert [status_code(data["status"], name) for name in STATUSES] == list(range(7))


def test_names_keep_the_order_of_the_sweep(tmp_path):
    data = make_results({"scheduler": ["fcfs", "backfill"], "load_scale": [2.0, 1.0]}, {"x": np.arange(4.0)})
    opened = open_results(write_results(tmp_path / "a.zarr", data))
    assert opened["scheduler"].values.tolist() == ["fcfs", "backfill"]
    assert opened["x"].sel(scheduler="fcfs", load_scale=2.0, replicate=0).item() == 0.0


@pytest.mark.parametrize(
    "select",
    [
        {"load_scale": 2},
        {"load_scale": [5, 0, 3]},
        {"load_scale": slice(1, 6, 2)},
        {"load_scale": slice(None, None, -1)},
    ],
)
def test_parts_read_as_the_whole(store, select):
    whole = open_results(store)["mean_wait_s"].load()
    assert whole.isel(select).identical(open_results(store)["mean_wait_s"].isel(select).load())


def test_pointwise_selection(store):
    rows = xr.DataArray([3, 0, 6], dims="point")
    whole = open_results(store)["mean_wait_s"].load()
    assert whole.isel(load_scale=rows).identical(open_results(store)["mean_wait_s"].isel(load_scale=rows).load())


def test_parameters_are_coordinates(tmp_path):
    data = make_results({"policy": ["a", "b"]}, {"x": np.ones(2)}).assign_coords(scheduler=("policy", ["fcfs", "fcfs"]))
    opened = open_results(write_results(tmp_path / "a.zarr", data))
    assert set(opened.data_vars) == {"x", "status"}
    assert opened["x"].sel(policy="b").coords["scheduler"].item() == "fcfs"


def test_a_metric_is_read_when_it_is_used(store):
    data = open_results(store)
    shutil.rmtree(store / "mean_wait_s" / "c")
    assert data["mean_wait_s"].isnull().all()


def test_a_vector_metric_is_hidden_as_a_whole(tmp_path):
    data = make_results({"load_scale": [1.0, 2.0]}, {"x": np.ones(2)}, status=[1, 2])
    data["by_size"] = (("load_scale", "replicate", "size_class"), np.ones((2, 1, 3)))
    data.attrs["metrics"] = json.dumps(["x", "by_size"])
    opened = open_results(write_results(tmp_path / "a.zarr", data))
    assert opened["by_size"].notnull().sum("size_class").values.ravel().tolist() == [3, 0]


def test_a_packed_store_opens(store, tmp_path):
    packed = shutil.make_archive(str(tmp_path / "a.zarr"), "zip", store)
    assert open_results(packed).load().identical(open_results(store).load())


@pytest.mark.parametrize("ranges", [True, False])
def test_stores_open_by_url(store, tmp_path, ranges):
    shutil.make_archive(str(tmp_path / "a.zarr"), "zip", store)
    handler = functools.partial(_Ranges if ranges else _Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        local = open_results(store).load()
        assert open_results(f"{place}/a.zarr").load().identical(local)
        assert open_results(f"{place}/a.zarr.zip").load().identical(local)
        with pytest.raises(InputError, match="not a store of a sweep"):
            open_results(f"{place}/b.zarr")
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    """A server that only sends whole files."""

    def log_message(self, *args):
        """Keep the tests' output clean."""


class _Ranges(_Quiet):
    """A server that sends parts of files, as web servers do."""

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()

    def do_GET(self):
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = slice(int(first), int(last or len(content) - 1) + 1) if first else slice(-int(last), None)
        start = part.indices(len(content))[0]
        body = content[part]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def broken(path, how):
    if how == "absent":
        return
    path.mkdir()
    if how == "other zarr":
        zarr.open_group(path, mode="a")
        zarr.consolidate_metadata(path)
    elif how == "bare zarr":
        zarr.open_group(path, mode="a")
    elif how == "torn":
        (path / "zarr.json").write_text('{"zarr_format": 3, "node')


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("absent", "no such store"),
        ("empty folder", "a folder that is not a store of a sweep"),
        ("other zarr", "not a store of a sweep"),
        ("bare zarr", r"Zarr data, but not a store of a sweep \(it has no consolidated metadata\)$"),
        ("torn", "not a store of a sweep that can be read"),
    ],
)
def test_what_is_not_a_store_is_one_sentence(tmp_path, how, sentence):
    path = tmp_path / "x.zarr"
    broken(path, how)
    with pytest.raises(InputError, match=sentence) as caught:
        open_results(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_file_is_not_a_store(tmp_path):
    for name in ("notes.txt", "notes.zip"):
        (tmp_path / name).write_text("hello")
        with pytest.raises(InputError, match="not a store of a sweep"):
            open_results(tmp_path / name)


def test_another_version_is_named(tmp_path):
    data = make_results({"load_scale": [1.0]}, {"x": np.ones(1)}, faultsweep_format=99)
    with pytest.raises(InputError, match=r"store of format 99; this version of faultsweep reads format 1"):
        open_results(write_results(tmp_path / "a.zarr", data))
