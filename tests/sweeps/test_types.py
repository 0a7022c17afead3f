"""Results of any type, and axes of any values, on their way from a function into a store and to its readers."""

from __future__ import annotations

import datetime
import enum
import importlib.util
from typing import Any

import numpy as np
import pytest
import xarray as xr
from faultsweep.sweeps.built_in import built_in_target
from faultsweep.sweeps.outputs import infer_outputs, udunits
from faultsweep.sweeps.store.repair import check
from faultsweep.sweeps.store.statuses import DONE, FAILED, PENDING
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep
from faultsweep.sweeps.target import Output

import faultsweep as fs
from faultsweep.errors import InputError
from tests.sweeps.functions import everything, field

BIG = 2**60 + 1


@pytest.fixture
def run(client):
    return lambda sweep, store, **options: sweep.run(store, cluster=client, progress=False, **options)


def typed(**changes):
    return Sweep(**{"name": "typed", "axes": {"a": [1, 2, 3]}, "function": everything, **changes})


def test_types_are_inferred_from_the_first_cell(tmp_path, run):
    data = run(typed(), tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert (data.status == DONE).all()
    kinds = {name: data[name].dtype.kind for name in data.data_vars}
    assert kinds["real"] == "f"
    assert kinds["whole"] == "i"
    assert kinds["flag"] == "b"
    assert kinds["when"] == "M"
    assert kinds["lasts"] == "m"
    assert kinds["wave"] == "c"
    assert data.whole.values.tolist() == [BIG + a for a in (1, 2, 3)]
    assert data.flag.values.tolist() == [False, True, False]
    assert data.word.values.tolist() == ["a", "aa", "äöü" * 3]
    assert (data.when.values == np.array(["2026-01-02", "2026-01-03", "2026-01-04"], "M8[ns]")).all()
    assert (data.lasts.values == np.array([1, 2, 3], "m8[h]")).all()
    assert data.wave.values.tolist() == [1 - 1j, 2 - 1j, 3 - 1j]
    assert data.matrix.dims == ("a", "matrix_0", "matrix_1")
    assert data.matrix.dtype == np.int64
    assert data.matrix.values[2].tolist() == [[3, 6], [9, 12], [15, 18]]


def test_plain_xarray_reads_the_same(tmp_path, run):
    ours = run(typed(), tmp_path / "s.zarr")
    plain = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
    for name in ("real", "whole", "flag", "when", "lasts", "wave", "matrix"):
        assert plain[name].dtype == ours[name].dtype
        assert np.array_equal(plain[name].values, ours[name].values)
    assert plain.word.values.astype(object).tolist() == ours.word.values.tolist()
    assert "status" in plain.whole.attrs["comment"]


def test_arrays_of_xarray_keep_names_labels_and_units(tmp_path, run):
    sweep = Sweep(name="f", axes={"a": [1, 2]}, function=field)
    data = run(sweep, tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data.temperature.dims == ("a", "time", "place")
    assert data.place.values.tolist() == ["here", "there"]
    assert data.time.dtype.kind == "M"
    assert data.temperature.attrs["units"] == "K"
    assert data.temperature.attrs["long_name"] == "how warm"
    xr.testing.assert_equal(data.temperature.sel(a=2, drop=True), field(2)["temperature"])
    assert sweep.rerun(tmp_path / "s.zarr", select={"a": 2}).different == []


def test_other_attributes_are_kept(tmp_path, run):
    """Of what a function gives, and declared ones; those that would change how a reader decodes the numbers are not."""
    attributes = {"standard_name": "air_temperature", "source": "a\n", "level": 2, "scale_factor": 10.0, "odd": [[1]]}
    path = tmp_path / "s.zarr"
    run(Sweep(name="f", axes={"a": [1, 2]}, function=lambda a: xr.DataArray(a / 7, name="y", attrs=attributes)), path)
    for data in (fs.open_results(path), xr.open_zarr(path, chunks=None)):
        found = {name: data.y.attrs.get(name) for name in attributes}
        assert found == attributes | {"scale_factor": None, "odd": None}
        assert data.y.values.ravel().tolist() == [1 / 7, 2 / 7]
    declared = [Output("y", more={"standard_name": "air_temperature"})]
    data = run(Sweep(name="f", axes={"a": [1]}, function=lambda a: {"y": a / 7}, outputs=declared), tmp_path / "d.zarr")
    assert data.y.attrs["standard_name"] == "air_temperature"
    with pytest.raises(InputError, match="more: expected names of attributes"):
        Sweep(axes={"a": [1]}, function=lambda a: {"y": a}, outputs=[Output("y", more={"scale_factor": 2.0})])


ABOUT = {"institution": "here", "level": 3, "share": 0.5, "final": True, "comment": "of a test"}
LISTS = {"valid_range": np.array([0.5, 2.0]), "flag_values": (1, 2, 4), "authors": ["A", "B"]}


def described(a: int) -> xr.Dataset:
    """Attributes of everything: the whole, a variable, and labels."""
    depth = xr.DataArray([0.0, 0.5], dims="depth", attrs={"units": "m", "long_name": "below", "positive": "down"})
    warm = ("depth", np.array([a, a / 2.0]), {"units": "K", "comment": "of warm"})
    data = xr.Dataset({"warm": warm, "many": ((), a, {"comment": "of many"})}, {"depth": depth})
    return data.assign_attrs(ABOUT, title="mine", odd=[1, "x"], empty=[], deep=[[1]], _hidden="x", **LISTS)


def assert_described(data):
    assert {name: data.attrs[name] for name in ABOUT} == ABOUT
    assert data.attrs["result_title"] == "mine"
    assert data.attrs["title"] == "of the sweep"
    assert {name: list(data.attrs[name]) for name in LISTS} == {name: list(value) for name, value in LISTS.items()}
    assert not {"odd", "empty", "deep", "_hidden"} & set(data.attrs)
    assert data.depth.attrs == {"units": "m", "long_name": "below", "positive": "down"}
    assert data.warm.attrs == {"units": "K", "comment": "of warm"}
    assert data.many.attrs["comment"].startswith("of many; holds no result where status")


def test_attributes_of_a_dataset_and_of_its_labels_are_kept(tmp_path, run):
    """In the store, by every reader of it, when it grows, is merged or packed, and in exports."""
    from faultsweep.sweeps.store.merge import merge
    from faultsweep.sweeps.store.pack import pack

    path = tmp_path / "s.zarr"
    for values in ([1, 2], [1, 2, 3]):
        run(Sweep(name="f", title="of the sweep", axes={"a": values}, function=described), path)
        assert_described(fs.open_results(path))
        assert_described(xr.open_zarr(path, chunks=None))
    run(Sweep(name="f", title="of the sweep", axes={"a": [4]}, function=described), tmp_path / "t.zarr")
    merge([path, tmp_path / "t.zarr"], tmp_path / "m.zarr")
    assert_described(fs.open_results(tmp_path / "m.zarr"))
    pack(path, tmp_path / "s.zarr.zip")
    data = fs.open_results(tmp_path / "s.zarr.zip")
    assert_described(data)
    data.to_zarr(tmp_path / "two.zarr", zarr_format=2)
    assert_described(xr.open_zarr(tmp_path / "two.zarr", chunks=None))
    if importlib.util.find_spec("h5netcdf") is not None:
        data.sweep.to_netcdf(tmp_path / "s.nc")
        with xr.open_dataset(tmp_path / "s.nc", engine="h5netcdf") as back:
            assert_described(back)


def placed(a: int) -> xr.Dataset:
    """A variable with scalar coordinates: a parameter, one that a store has no type of, and others."""
    values = xr.DataArray(a / 7).assign_coords(a=a, height=2.5 * a, when=np.datetime64("2026-01-01"), odd=object())
    values["height"].attrs["units"] = "m"
    return xr.Dataset({"y": values})


def test_scalar_coordinates_are_variables_over_the_grid(tmp_path, run):
    path = tmp_path / "s.zarr"
    run(Sweep(name="p", axes={"a": [1, 2]}, function=placed), path)
    data = run(Sweep(name="p", axes={"a": [1, 2, 3]}, function=placed), path)
    for found in (data, xr.open_zarr(path, chunks=None)):
        assert found.height.dims == ("a", "replicate")
        assert found.height.values.ravel().tolist() == [2.5, 5.0, 7.5]
        assert found.height.attrs["units"] == "m"
        assert (found.when == np.datetime64("2026-01-01")).all()
        assert "odd" not in found
    assert data.a.values.tolist() == [1, 2, 3]


def test_a_scalar_coordinate_with_two_values_is_not_kept():
    parts = {"x": xr.DataArray(1).assign_coords(z=1), "y": xr.DataArray(1).assign_coords(z=2)}
    assert [out.name for out in infer_outputs(parts)] == ["x", "y"]
    same = {"x": xr.DataArray(1).assign_coords(z=1), "y": xr.DataArray(1).assign_coords(z=1)}
    assert [out.name for out in infer_outputs(same)] == ["x", "y", "z"]


def test_a_result_in_another_unit_fails_its_cell(tmp_path, run):
    units = {0: "m", 1: "km", 2: "m"}
    sweep = Sweep(
        name="u", axes={"a": [0, 1, 2]}, function=lambda a: xr.DataArray(a, name="y", attrs={"units": units[a]})
    )
    data = run(sweep, tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data.status.values.tolist() == [DONE, FAILED, DONE]
    assert str(data.error.values[1]) == "y: is in km here, in m elsewhere"
    declared = {"axes": {"a": [5]}, "function": lambda a: {"y": a}, "name": "u"}
    run(Sweep(outputs={"y": "m"}, **declared), tmp_path / "d.zarr")
    with pytest.raises(InputError, match="y is in m in the store, in km in the spec"):
        run(Sweep(outputs={"y": "km"}, **declared), tmp_path / "d.zarr")


def test_attributes_of_labels_are_declared(tmp_path, run):
    out = Output("y", dims={"x": [0, 1], "n": 2}, coordinates={"x": {"units": "m"}})
    sweep = Sweep(name="l", axes={"a": [1]}, function=lambda a: {"y": np.ones((2, 2))}, outputs=[out])
    assert run(sweep, tmp_path / "s.zarr").x.attrs == {"units": "m"}
    for wrong in ({"z": {"units": "m"}}, {"n": {"units": "m"}}, {"x": {"scale_factor": 2}}, [1]):
        with pytest.raises(InputError, match="y: coordinates: expected"):
            Sweep(axes={"a": [1]}, function=lambda a: 1, outputs=[Output("y", dims=out.dims, coordinates=wrong)])


def test_the_first_cell_runs_once_and_first(tmp_path, run):
    calls = tmp_path / "calls"
    sweep = typed(axes={"a": [5, 1, 2]}, fixed={"calls": str(calls)})
    run(sweep, tmp_path / "s.zarr")
    lines = calls.read_text().split()
    assert lines[0] == "5"
    assert sorted(lines) == ["1", "2", "5"]


def test_a_store_tells_what_the_function_gives(tmp_path, run):
    run(typed(), tmp_path / "s.zarr")
    calls = tmp_path / "calls"
    data = run(typed(axes={"a": [1, 2, 3, 4]}), tmp_path / "s.zarr")
    assert not calls.exists()
    assert data.whole.values.ravel().tolist() == [BIG + a for a in (1, 2, 3, 4)]
    assert typed().plan(tmp_path / "s.zarr", measure=False, progress=False).missing == 0


@pytest.mark.parametrize("masked", [True, False])
def test_whole_numbers_are_masked_where_there_is_no_result(tmp_path, run, masked):
    with pytest.raises(InputError, match="first cell"):
        run(typed(axes={"a": [-1, 1]}), tmp_path / "x.zarr")
    run(typed(axes={"a": [1, -1, 3]}), tmp_path / "s.zarr")
    data = fs.open_results(tmp_path / "s.zarr", masked=masked).sortby("a").squeeze("replicate", drop=True)
    assert data.status.values.tolist() == [FAILED, DONE, DONE]
    if masked:
        assert np.isnan(data.flag.values[0])
        assert data.flag.values[1:].tolist() == [0.0, 0.0]
        assert data.small.values[1:].tolist() == [1.0, 3.0]
        with pytest.raises(InputError, match=r"2\*\*53"):
            data.whole.load()
    else:
        assert data.whole.values.tolist() == [0, BIG + 1, BIG + 3]
        assert data.flag.dtype == bool
    assert np.isnat(data.when.values[0])


def test_pending_cells_hold_nothing(tmp_path, run):
    run(typed(), tmp_path / "s.zarr")
    store = Store(tmp_path / "s.zarr")
    store.forget(np.array([False, True, False]))
    data = fs.open_results(tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data.status.values[1] == PENDING
    assert data.word.values[1] == ""
    assert np.isnan(data.small.values[1])


def test_a_large_number_beside_a_failed_cell_says_what_the_cell_is(tmp_path, run):
    """Not that its result has yet to come."""
    sweep = Sweep(
        name="d",
        axes={"a": [0, 1]},
        function=lambda a: "no number" if a else 2**53 + 1,
        outputs=[Output("y", dtype="int64")],
    )
    data = run(sweep, tmp_path / "s.zarr")
    with pytest.raises(InputError, match=r"some cells have no result \(1 failed\)"):
        data.y.values  # noqa: B018
    assert int(fs.open_results(tmp_path / "s.zarr", masked=False).y.sel(a=0).squeeze()) == 2**53 + 1


def declared(dtype, value):
    """A function of one result, and the sweep of it."""
    return Sweep(name="d", axes={"a": [0, 1]}, function=lambda a: value if a else 1, outputs=[Output("y", dtype=dtype)])


@pytest.mark.parametrize(
    ("dtype", "value", "sentence"),
    [
        ("int64", 0.5, "y: expected a whole number, got 0.5"),
        ("int64", "x", "y: expected a whole number, got 'x'"),
        ("int64", 2**63, "at most 63 bits"),
        ("int64", np.uint64(2**63), "at most 63 bits"),
        ("int64", None, "cannot store None"),
        ("float64", 2**53 + 1, "dtype int64"),
        ("float64", np.int64(-(2**53) - 1), "dtype int64"),
        ("float64", np.uint64(2**64 - 2), "dtype int64"),
        ("float64", np.array(2**53 + 1), "dtype int64"),
        ("bool", 2, "expected true or false"),
        ("text", 2, "expected text, got 2"),
        ("datetime", 2, "expected a date or time"),
        ("datetime", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "time zone"),
        ("datetime", datetime.date(1, 1, 1), "64 bits of nanoseconds"),
        ("int64", [1, 2], "expected one value, got \\[1, 2\\] of shape"),
        ("int64", np.ma.array([1, 2], mask=[True, False]), "masked"),
    ],
)
def test_what_is_of_another_type_fails_its_cell(tmp_path, run, dtype, value, sentence):
    data = run(declared(dtype, value), tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data.status.values[1] == FAILED
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(str(data.error.values[1]))


def test_other_names_than_in_the_first_cell_fail(tmp_path, run):
    sweep = Sweep(name="n", axes={"a": [0, 1]}, function=lambda a: {"y": 1.0, "z": 2.0} if a else {"y": 1.0})
    data = run(sweep, tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data.status.values.tolist() == [DONE, FAILED]
    assert "y, z here, and y in the first cell" in str(data.error.values[1])


def test_copies_merging_and_growing_keep_types(tmp_path, run):
    run(typed(axes={"a": [1, 2]}), tmp_path / "a.zarr")
    run(typed(axes={"a": [3, 2]}), tmp_path / "b.zarr")
    from faultsweep.sweeps.store.merge import merge

    merge([tmp_path / "a.zarr", tmp_path / "b.zarr"], tmp_path / "c.zarr")
    data, whole = fs.open_results(tmp_path / "c.zarr"), run(typed(), tmp_path / "d.zarr")
    for name in ("real", "whole", "flag", "word", "when", "lasts", "wave", "matrix"):
        assert np.array_equal(data[name].values, whole[name].values), name


class Colour(enum.Enum):
    """Two colours."""

    RED = 1
    BLUE = 2


def tell(
    day: Any = None, when: Any = None, lasts: Any = None, flag: Any = None, limit: Any = None, colour: Any = None
) -> dict[str, str]:
    """Say what each argument is."""
    return {"told": " ".join(repr(value) for value in (day, when, lasts, flag, limit, colour) if value is not None)}


DAYS = [datetime.date(2026, 3, 1), datetime.date(2025, 12, 31)]
TIMES = [datetime.datetime(2026, 3, 1, 12), datetime.datetime(2026, 3, 1, 13, 0, 0, 5)]
SPANS = [datetime.timedelta(hours=1), datetime.timedelta(days=2, microseconds=7)]
AXES = {
    "day": (DAYS, "M", DAYS),
    "when": (np.array(TIMES, "M8[us]"), "M", TIMES),
    "lasts": (SPANS, "m", SPANS),
    "flag": ([True, False], "b", [True, False]),
    "limit": ([None, 3, 10], "U", [None, 3, 10]),
    "colour": ([Colour.RED, Colour.BLUE], "U", [Colour.RED, Colour.BLUE]),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_of_any_values(tmp_path, run, name):
    values, kind, python = AXES[name]
    sweep = Sweep(name="axes", axes={name: values}, function=tell)
    data = run(sweep, tmp_path / "s.zarr").squeeze("replicate", drop=True)
    assert data[name].dtype.kind == kind
    given = {data.sel({name: label}).told.item() for label in data[name].values}
    expected = {repr(value) if value is not None else "" for value in python}
    assert given == expected
    assert xr.open_zarr(tmp_path / "s.zarr", chunks=None)[name].dtype.kind == kind
    assert run(sweep, tmp_path / "s.zarr").identical(fs.open_results(tmp_path / "s.zarr"))
    label = str(python[1].name if name == "colour" else python[1])
    assert sweep.rerun(tmp_path / "s.zarr", select={name: label}).different == []
    grown = run(Sweep(name="axes", axes={name: list(values)[::-1]}, function=tell), tmp_path / "s.zarr")
    assert grown.sizes[name] == len(python)
    if name != "limit":  # TOML has no None
        assert fs.Sweep.from_toml(written(sweep, tmp_path), function=tell).spec.axes[0].name == name


def written(sweep, folder):
    (folder / "spec.toml").write_text(sweep.spec.to_toml())
    return folder / "spec.toml"


def test_times_may_be_fixed(tmp_path, run):
    sweep = Sweep(name="fixed", axes={"flag": [True]}, fixed={"day": DAYS[0], "lasts": SPANS[0]}, function=tell)
    data = run(sweep, tmp_path / "s.zarr")
    assert repr(DAYS[0]) in data.told.item()
    assert sweep.rerun(tmp_path / "s.zarr").different == []
    assert run(sweep, tmp_path / "s.zarr").told.item() == data.told.item()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], "has a time zone"),
        ([DAYS[0], TIMES[0]], "all times"),
        ([True, 1], "all booleans"),
        ([None, "none"], "stands twice"),
        ([np.datetime64("2026-01-01T00:00:00.000000001")], "whole microseconds"),
        (["a\0"], "cannot be stored"),
    ],
)
def test_values_that_no_axis_takes(values, sentence):
    with pytest.raises(InputError, match=sentence):
        Sweep(name="x", axes={"limit": values}, function=tell)


def test_a_longer_label_makes_the_labels_wider(tmp_path, run):
    def sweep(*labels):
        return Sweep(name="w", axes={"limit": list(labels)}, function=tell)

    run(sweep("a", "b"), tmp_path / "s.zarr")
    before = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
    for number, label in enumerate(("ccc", "ddddddd", "é" * 20), 3):
        data = run(sweep("a", label), tmp_path / "s.zarr")
        plain = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
        assert data.limit.values.tolist() == plain.limit.values.tolist()
        assert len(data.limit) == number
        assert plain.limit.values[-1] == label
        assert plain.limit.dtype.kind == "U"
        if number == 3:
            assert before.limit.values.tolist() == ["a", "b"], "a reader of the old metadata sees the old labels"


@pytest.mark.parametrize("target", ["simulator", "failures"])
def test_units_of_the_simulator_are_those_of_udunits(target):
    """Of metrics, and of parameters as coordinates have them; these are all that there are."""
    made = built_in_target(target, None, ["."])
    units = {out.unit for out in made.outputs if out.dtype not in ("text", "bool")}
    units |= {udunits(parameter.unit) for parameter in made.parameters.values() if parameter.unit}
    assert units <= {"1", "%", "s", "h", "d", "1/d", "Mbit/s"}


LONG_AGO = datetime.timedelta(days=-1, seconds=5, microseconds=7)
MIXED = {
    "a number, then None": ([3], [3, None]),
    "None, then fractions": ([3, None], [3, None, 2.5]),
    "dates": ([DAYS[0], None], [None, *DAYS]),
    "durations": ([LONG_AGO], [LONG_AGO, None, *SPANS]),
}


def say(limit):
    return {"told": str(limit).removesuffix(".0")}


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
def test_an_axis_with_none_grows_by_values_of_its_type(tmp_path, run, values):
    """By rows that stand for themselves: 3 does not stand again as 3.0."""
    for given in values:
        sweep = Sweep(name="axes", axes={"limit": given}, function=say)
        data = run(sweep, tmp_path / "s.zarr").squeeze("replicate", drop=True)
        assert (data.status == DONE).all()
        assert data.sizes["limit"] == len(given)
    assert set(Store(tmp_path / "s.zarr").column("limit")) == set(given)
    assert "None" in data.sel(limit="none").told.item()
    for value in (*values[-1], *data.limit.values.tolist()):
        assert sweep.rerun(tmp_path / "s.zarr", select={"limit": value}).different == []


def test_labels_of_none_are_told_from_the_text_none(tmp_path, run):
    path = tmp_path / "s.zarr"
    run(Sweep(name="axes", axes={"limit": [None]}, function=tell), path)
    with pytest.raises(InputError, match="'none' is that of None"):
        run(Sweep(name="axes", axes={"limit": ["none"]}, function=tell), path)


@pytest.mark.parametrize("unit", ["seconds since the start", "days since 2000-01-01"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_unit_that_makes_readers_decode_times_is_refused(tmp_path, run, unit, declared):
    """One infinite value, or no date behind the word since, and xarray opens nothing of the store."""
    arrays = [xr.DataArray(np.inf, name="y", attrs={"units": unit})]
    arrays.append(xr.DataArray([1.0], {"t": ("t", [2], {"units": unit})}, "t", name="y"))
    for array in arrays:
        about = {dim: dict(array[dim].attrs) for dim in array.dims}
        dims = {str(dim): array[dim].values.tolist() for dim in array.dims}
        out = Output("y", array.attrs.get("units", ""), dims=dims, coordinates=about)
        options = {"outputs": [out]} if declared else {}
        with pytest.raises(InputError, match=r"for times; give (it|t) as times"):
            run(Sweep(name="u", axes={"a": [1]}, function=giving(array), **options), tmp_path / "s.zarr")
    assert not (tmp_path / "s.zarr").exists()


def test_what_no_reader_would_take_is_refused_before_it_is_written(tmp_path, run, monkeypatch):
    """A label, or a grid, that grows beyond what a store may have leaves the results that are there."""
    path = tmp_path / "s.zarr"
    before = run(Sweep(name="axes", axes={"limit": ["a"]}, function=tell), path)
    with pytest.raises(InputError, match="a label has at most 10,000"):
        run(Sweep(name="axes", axes={"limit": ["a", "b" * 10_001]}, function=tell), path)
    with monkeypatch.context() as patch:
        patch.setattr("faultsweep.sweeps.store.opener.MOST_LABELS", 2)
        with pytest.raises(InputError, match="3 labels; an axis has at most 2"):
            run(Sweep(name="axes", axes={"limit": ["a", "b", "c"]}, function=tell), path)
    assert fs.open_results(path).identical(before)
    after = run(Sweep(name="axes", axes={"limit": ["a", "b", "c"]}, function=tell), path)
    assert (after.status == DONE).all()
    assert check(path).is_sound
    for value, sentence in ((np.zeros(1_000_001), "1,000,001 values"), (labelled("b" * 10_001), "10,001 characters")):
        with pytest.raises(InputError, match=sentence):
            run(Sweep(name="w", axes={"a": [1]}, function=giving(value)), tmp_path / "w.zarr")
        assert not (tmp_path / "w.zarr").exists()


def giving(value):
    return lambda a: value


def labelled(label):
    return xr.DataArray([1.0], {"t": [label]}, "t", name="y")


@pytest.mark.parametrize("words", [1, 3])
def test_a_store_with_text_and_a_failed_cell_grows(tmp_path, run, words):
    """Its texts stay beside the text of the error, and new ones come."""

    def function(a):
        return {f"word {number}": "x" * (a + number) for number in range(words // (a != 2))}

    for values in ([1, 2], [1, 2, 3]):
        data = run(Sweep(name="g", axes={"a": values}, function=function), tmp_path / "s.zarr")
        data = data.squeeze("replicate", drop=True)
        assert data.status.values.tolist() == [DONE, FAILED, DONE][: len(values)]
        assert "division" in data.error.item(1)
        for number in range(words):
            found = data[f"word {number}"].values.tolist()
            assert found == ["x" * (1 + number), "", "x" * (3 + number)][: len(values)]
    assert check(tmp_path / "s.zarr").is_sound


def test_texts_that_no_reader_could_open_fail_their_cells(tmp_path, run, monkeypatch):
    """The others stay: a chunk that is too large would be refused as a whole."""
    monkeypatch.setattr("faultsweep.sweeps.store.collector.MOST_TEXT_BYTES", 1000)

    def sweep(values):
        return Sweep(name="t", axes={"a": values}, function=lambda a: {"word": "x" * 400, "y": a / 2})

    for values in ([1, 2, 3], [1, 2, 3, 4]):
        data = run(sweep(values), tmp_path / "s.zarr").squeeze("replicate", drop=True)
        assert sorted(data.status.values.tolist()) == [DONE, DONE, *[FAILED] * (len(values) - 2)]
        failed = data.isel(a=data.status.values == FAILED)
        assert set(failed.word.values.tolist()) == {""}
        assert np.isnan(failed.y).all()
        sentence = f"no room for 404 bytes of text: {len(values)} cells share 1,000 bytes of text in all"
        assert failed.error.item(-1) == sentence


def test_a_text_of_numpy_that_is_missing_is_refused():
    missing = np.array(["a", None], dtype=np.dtypes.StringDType(na_object=None))
    with pytest.raises(InputError, match="result: cannot store"):
        infer_outputs(missing)
