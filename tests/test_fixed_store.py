"""A store and a spec of an earlier version are read as they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from faultsweep.sweeps.built_in import built_in_target
from faultsweep.sweeps.spec import load_toml, read_spec
from faultsweep.sweeps.store.pack import unpack
from faultsweep.sweeps.store.store import Store

import faultsweep as fs

FIXED = Path(__file__).parent / "fixed"


def test_a_packed_store_of_format_1_is_read():
    data = fs.open_results(FIXED / "store-1.zarr.zip")
    assert dict(data.sizes) == {"policy": 2, "checkpoint": 2, "load_scale": 3, "replicate": 2}
    assert data["policy"].values.tolist() == ["FCFS", "EASY"]
    assert data["down_time_s"].values.tolist() == [480.0, 600.0, 720.0]
    wait = data["mean_wait_s"].sel(policy="FCFS", checkpoint="none")
    assert wait.values[:2].tolist() == [[2378.371887500002, 8.797500000000037], [3713.0892625, 33.5]]
    assert np.isnan(wait.values[2]).all()
    assert int(np.isnan(data["utilisation"].values).sum()) == 4


def test_an_unpacked_store_of_format_1_is_complete(tmp_path):
    unpack(FIXED / "store-1.zarr.zip", tmp_path / "store.zarr")
    counts = np.bincount(Store(tmp_path / "store.zarr").status().reshape(-1))
    assert sorted(counts[counts > 0].tolist()) == [4, 20]


def test_the_spec_of_that_store_means_what_it_meant():
    spec = read_spec(load_toml(FIXED / "sweep.toml"), built_in_target("simulator", None))
    stored = fs.open_results(FIXED / "store-1.zarr.zip")
    assert [axis.name for axis in spec.axes] == list(stored["mean_wait_s"].dims)
