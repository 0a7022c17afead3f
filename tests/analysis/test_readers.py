"""What other packages make of results: plots, tables, files of other formats, and xarray without this package."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from faultsweep.sweeps.sweep import Sweep

import faultsweep as fs
from faultsweep.errors import InputError
from tests.sweeps.functions import everything

mpl.use("Agg")


@pytest.fixture(scope="module")
def store(tmp_path_factory, client):
    """A sweep over text and numbers, with results of every type, one of them failed."""
    path = tmp_path_factory.mktemp("readers") / "s.zarr"
    sweep = Sweep(
        name="readers",
        axes={"a": [1, 2, 3, -1], "who": ["fcfs", "backfill"]},
        function=lambda a, who: {**everything(a), "real": a / 7 + len(who)},
    )
    sweep.run(path, cluster=client, progress=False)
    return path


@pytest.fixture(params=["open_results", "open_zarr"])
def data(request, store):
    """The same results as both ways of opening show them."""
    if request.param == "open_results":
        return fs.open_results(store)
    return xr.open_zarr(store, chunks=None)


def test_xarray_plots(data):
    import matplotlib.pyplot as plt

    mean = data["real"].where(data.sweep.ok).mean("replicate")
    mean.plot()
    mean.isel(a=0).plot.line(x="who")
    mean.plot.line(x="a", hue="who")
    data["who"].astype(str)
    plt.close("all")


def test_hvplot(data):
    import hvplot.xarray  # noqa: F401

    flat = data["real"].where(data.sweep.ok).isel(replicate=0, drop=True)
    curve = flat.hvplot.line(x="a", by="who")
    assert len(curve) == 2
    assert flat.hvplot.heatmap(x="a", y="who", C="real") is not None


def test_pandas_and_seaborn(data):
    seaborn = pytest.importorskip("seaborn")
    table = data[["real", "status"]].to_dataframe().reset_index()
    assert len(table) == 8
    assert set(table.who) == {"fcfs", "backfill"}
    axes = seaborn.lineplot(data=table.dropna(), x="a", y="real", hue="who")
    assert len(axes.get_lines()) >= 2


def test_the_accessor_tells_what_failed(data):
    assert int(data.sweep.ok.sum()) == 6
    assert data.sweep.counts() == {"done": 6, "failed": 2}
    errors = data.sweep.errors()
    assert errors.index.get_level_values("a").tolist() == [-1, -1]
    assert set(errors.index.get_level_values("who")) == {"fcfs", "backfill"}
    assert errors.error.str.contains("ValueError: negative").all()
    with pytest.raises(InputError, match="open a store"):
        _ = xr.Dataset({"x": 1}).sweep


def test_netcdf(store, tmp_path):
    pytest.importorskip("h5netcdf")
    data = fs.open_results(store)
    with pytest.raises(InputError, match="no complex numbers; store real and imaginary parts of wave"):
        data.sweep.to_netcdf(tmp_path / "x.nc")
    kept = data.drop_vars(["wave", "whole"])  # two cells have no result, and whole has more than 53 bits
    kept.sweep.to_netcdf(tmp_path / "x.nc")
    with xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf") as back:
        assert np.array_equal(back["real"].values, kept["real"].values, equal_nan=True)
        assert back.word.values.tolist() == kept.word.values.tolist()
        assert (back.when.values == kept.when.values)[kept.sweep.ok.values].all()
        assert back.who.values.tolist() == kept.who.values.tolist()
        assert back.real.dims == kept.real.dims


def test_zarr_of_version_2(store, tmp_path):
    data = fs.open_results(store).drop_vars("whole")
    data.to_zarr(tmp_path / "two.zarr", zarr_format=2)
    back = xr.open_zarr(tmp_path / "two.zarr", chunks=None)
    for name in ("real", "word", "wave", "who"):
        assert [*map(str, back[name].values.ravel().tolist())] == [*map(str, data[name].values.ravel().tolist())]


ALONE = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "faultsweep":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
import numpy as np, xarray as xr
data = xr.open_zarr(sys.argv[1], chunks=None)
ok = np.isin(data.status, [1, 3, 4, 7])
assert ok.sum() == 6
assert data.whole.dtype == np.int64 and data.flag.dtype == bool and data.when.dtype.kind == "M"
assert data.whole.values[ok].min() == 2**60 + 2
assert "status" in data.whole.attrs["comment"]
assert data.attrs["Conventions"].startswith("CF-")
assert data.who.dtype.kind == "U"
assert "faultsweep" not in sys.modules
"""


def test_an_environment_without_this_package(store):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, str(store)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
