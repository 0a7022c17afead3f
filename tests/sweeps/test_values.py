"""Values of every type and its limits come back from a store exactly, or are refused in a sentence."""

from __future__ import annotations

import datetime
import enum
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from faultsweep.sweeps.store.statuses import DONE, FAILED
from faultsweep.sweeps.sweep import Sweep
from faultsweep.sweeps.target import FunctionTarget, Output
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import faultsweep as fs
from faultsweep.errors import InputError

LAST = 2**63 - 1
FIRST_TIME, LAST_TIME = datetime.datetime(1677, 9, 22), datetime.datetime(2262, 4, 11)
TEXT = st.text(st.characters(exclude_categories=[]), max_size=6)
WHOLE = st.integers(-(2**65), 2**65) | st.sampled_from([2**53 + 1, LAST, LAST + 1, -LAST - 1, -LAST - 2])
REAL = st.floats() | st.sampled_from([-0.0, 5e-324, 1.7976931348623157e308])
COUNT = st.integers(-LAST - 1, LAST)
TYPES: dict[str, Any] = {
    "float64": REAL | st.floats(width=16).map(np.float16) | st.floats(width=32).map(np.float32),
    "int64": WHOLE | st.integers(0, 2**64 - 1).map(np.uint64) | st.integers(-128, 127).map(np.int8),
    "bool": st.booleans() | st.booleans().map(np.bool_),
    "text": TEXT | TEXT.map(np.str_),
    "complex": st.complex_numbers() | st.complex_numbers(width=64).map(np.complex64),
    "datetime": st.datetimes()
    | st.dates()
    | st.just(pd.NaT)
    | COUNT.map(lambda count: np.datetime64(count, "ns"))
    | COUNT.map(lambda count: pd.Timestamp(count))
    | st.integers(-(2**60), 2**60).map(lambda count: np.datetime64(count, "ps"))
    | st.integers(-2000, 5000).map(lambda year: np.datetime64(year, "Y")),
    "timedelta": st.timedeltas()
    | COUNT.map(lambda count: np.timedelta64(count, "ns"))
    | COUNT.map(lambda count: pd.Timedelta(count, "ns"))
    | st.integers(-(2**62), 2**62).map(lambda count: np.timedelta64(count, "D"))
    | st.integers(0, 9).map(lambda count: np.timedelta64(count, "M")),
}
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.fractions() | REAL.map(np.longdouble)
ODD = st.none() | st.binary(max_size=2) | st.just(pd.NA) | st.times() | st.builds(object)
ANY = st.one_of(*TYPES.values(), NUMBERS, ODD)
LISTS = st.one_of(*(st.lists(each, min_size=1) for each in (*TYPES.values(), ANY)))
PARTS = ANY | LISTS


def is_same(stored: Any, given_: Any) -> bool:
    """Tell, independently of what stores, whether a stored value is what a run gave."""
    if isinstance(stored, np.datetime64 | np.timedelta64):
        if given_ is pd.NaT or (isinstance(given_, np.generic) and np.isnat(given_)):
            return bool(np.isnat(stored))
        unit = int(stored.astype(np.int64))
        return not np.isnat(stored) and unit == nanoseconds(given_)
    if isinstance(stored, str):
        return isinstance(given_, str) and list(stored) == list(str(given_))
    if isinstance(given_, Decimal):
        stored = stored.real if stored.imag == 0 else None
        return float(given_) == stored and Decimal(repr(float(stored))) == given_
    if isinstance(stored, complex | np.complexfloating) and not isinstance(given_, Decimal):
        return is_same(stored.real, given_.real) and is_same(stored.imag, given_.imag)
    if given_ != given_:
        return bool(stored != stored)
    plain = stored.item() if isinstance(stored, np.generic) else stored
    signs = np.signbit(plain) == np.signbit(given_) if isinstance(given_, float) else True
    return bool(plain == given_) and bool(signs)


def nanoseconds(value: Any) -> int | None:
    """Return a time or duration as a whole number of nanoseconds, by Python's own whole numbers."""
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        factor = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[value.unit]
        return int(value.asm8.astype(np.int64)) * factor
    if isinstance(value, np.generic):
        unit = np.datetime_data(value.dtype)[0]
        if unit == "Y":
            return nanoseconds(datetime.date(int(value.astype(int)) + 1970, 1, 1))
        count, size = int(value.astype(np.int64)), {"D": 86_400_000_000_000_000, "ns": 1000, "ps": 1}[unit]
        return count * size // 1000 if count * size % 1000 == 0 else None
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1) * 1000
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    return nanoseconds(value - datetime.datetime(1970, 1, 1))


def decoded(outputs: Any, words: Any, texts: list[str]) -> np.ndarray:
    """Return the only result of a run as an array."""
    (out,) = outputs
    if out.dtype == "text":
        return np.array(texts, dtype=object).reshape(out.shape)
    values = out.decode(np.asarray(words, dtype=np.float64)[None])[0]
    return values.view(f"{'M' if out.dtype == 'datetime' else 'm'}8[ns]") if "time" in out.dtype else values


def check(stored: np.ndarray, part: Any) -> None:
    expected = part if isinstance(part, list) else [part]
    assert stored.size == len(expected)
    for value, wanted in zip(stored.ravel(), expected, strict=True):
        assert is_same(value, wanted), (value, wanted)


@settings(max_examples=800, deadline=None)
@given(part=PARTS)
def test_any_result_is_laid_out_exactly_or_refused(part):
    target = FunctionTarget(lambda: part)
    try:
        outputs = target.infer(part)
    except InputError:
        return
    check(decoded(outputs, *target.with_outputs(outputs).lay_out(part)), part)


@settings(max_examples=800, deadline=None)
@given(dtype=st.sampled_from(sorted(TYPES)), part=ANY)
def test_any_result_fits_a_declared_type_exactly_or_is_refused(dtype, part):
    target = FunctionTarget(lambda: part, [Output("y", dtype=dtype)])
    try:
        laid_out = target.lay_out(part)
    except InputError:
        return
    check(decoded(target.outputs, *laid_out), part)


QUICK = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


@QUICK
@given(values=st.fixed_dictionaries({name: st.lists(each, min_size=40, max_size=40) for name, each in TYPES.items()}))
def test_what_is_stored_is_read_back(tmp_path_factory, client, values):
    path = tmp_path_factory.mktemp("values") / "s.zarr"
    sound = {name: [value for value in given_ if fits(name, value)] for name, given_ in values.items()}
    number = min(map(len, sound.values()))
    table = {name: given_[:number] for name, given_ in sound.items()}

    def give(a: int) -> dict[str, Any]:
        return {name: given_[a] for name, given_ in table.items()}

    outputs = [Output(name, dtype=name) for name in TYPES]
    sweep = Sweep(axes={"a": range(number)}, function=give, outputs=outputs)
    ours = sweep.run(path, cluster=client, progress=False).squeeze("replicate", drop=True)
    assert (ours.status == DONE).all(), ours.error.values
    plain = xr.open_zarr(path, chunks=None).squeeze("replicate", drop=True)
    for name, given_ in table.items():
        check(ours[name].values, given_)
        check(np.array(plain[name].values, dtype=object) if name == "text" else plain[name].values, given_)
        if name == "text":
            check(np.array(ours[name].astype(str).values.tolist(), dtype=object), given_)


def fits(dtype: str, value: Any) -> bool:
    try:
        FunctionTarget(lambda: value, [Output("y", dtype=dtype)]).lay_out(value)
    except InputError:
        return False
    return True


class Level(str, enum.Enum):  # noqa: UP042 - whose text is not its value
    """Texts with names."""

    LOW = "low"


@pytest.mark.parametrize(
    ("part", "dtype", "stored"),
    [
        (pd.Timedelta(1, "ns"), "timedelta", [1]),
        (pd.Timestamp("2020-01-01 00:00:00.000000001"), "datetime", [1577836800000000001]),
        ([pd.NaT, datetime.timedelta(seconds=1)], "timedelta", [-LAST - 1, 10**9]),
        ([np.uint64(2**60 + 1), -1], "int64", [2**60 + 1, -1]),
        ([1.0, 2.5], "float64", [1.0, 2.5]),
        ([1, 2.5], "float64", [1.0, 2.5]),
        (Decimal("0.1"), "float64", [0.1]),
        (Fraction(1, 4), "float64", [0.25]),
        (Level.LOW, "text", ["low"]),
        ("a\0b", "text", ["a\0b"]),
    ],
)
def test_values_that_look_like_others(part, dtype, stored):
    target = FunctionTarget(lambda: part)
    (out,) = target.infer(part)
    words, texts = target.with_outputs([out]).lay_out(part)
    values = texts if dtype == "text" else out.decode(np.asarray(words, dtype=np.float64)[None]).ravel().tolist()
    assert (out.dtype, values) == (dtype, stored)


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("a\0", "ends with a null"),
        ("\ud800", "is not valid Unicode"),
        (Decimal(2**53 + 1), "53 bits"),
        (Fraction(2**53 + 1), "53 bits"),
        (np.longdouble(1) / 3, "53 bits"),
        ([2**53 + 1, 0.5], "53 bits"),
        ([2**53 + 1, 1j], "53 bits"),
        ([1, "a"], "mixes int64 and text"),
        ([2.5, True], "mixes bool and float64"),
        ([b"x", "a"], "cannot store"),
        (pd.NaT, "a time or a duration"),
        (np.timedelta64(1, "M"), "no unit of a fixed length"),
        (pd.DatetimeIndex(["2020-01-01"], tz="UTC"), "time zones"),
        ([[1], [2, 3]], "rows of several lengths"),
        ([2**63, -1], "at most 63 bits"),
        (xr.DataArray([1], dims="x", coords={"x": ["a\0"]}), None),
        (xr.DataArray([1, 2], dims="x", coords={"x": np.array([2**53 + 1, 0.5], dtype=object)}), "53 bits"),
        (xr.DataArray([1], dims="x", coords={"x": [np.nan]}), "nan is not a label"),
        ({"integrity": 1}, "none of error, integrity"),
        ({"n" * 201: 1}, "at most 200 bytes"),
    ],
)
def test_what_cannot_be_stored_is_told(part, sentence):
    if sentence is None:  # NumPy's own texts of fixed length have no nulls at their ends
        assert FunctionTarget(lambda: part).infer(part)[0].labels == ("a",)
        return
    with pytest.raises(InputError, match=sentence):
        FunctionTarget(lambda: part).infer(part)


@pytest.mark.parametrize("name", ["status", "error", "wall_s", "integrity", "jobs_offset", "a", "replicate", "b"])
def test_a_result_with_a_name_that_is_taken_is_refused(tmp_path, client, name):
    axes = {"a": [1, 2], "p": [{"label": "x", "b": 1}, {"label": "y", "b": 2}]}
    sweep = Sweep(axes=axes, function=lambda a, b: {name: a * b})
    with pytest.raises(InputError, match=rf"\b{name}\b"):
        sweep.run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert not (tmp_path / "s.zarr").exists()


@pytest.mark.parametrize("name", ["status", "a", "replicate", "b", "p"])
def test_a_dimension_with_a_name_that_is_taken_is_refused(tmp_path, client, name):
    axes = {"a": [1, 2], "p": [{"label": "x", "b": 1}, {"label": "y", "b": 2}]}
    sweep = Sweep(axes=axes, function=lambda a, b: xr.DataArray([a, b], dims=name, name="y"))
    with pytest.raises(InputError, match=rf"\b{name}\b"):
        sweep.run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert not (tmp_path / "s.zarr").exists()


def test_text_of_a_bundle_is_stored_as_it_is_or_refused():
    with pytest.raises(InputError, match="ends with a null"):
        Sweep(axes={"p": [{"label": "x", "mode": "a\0"}]}, function=lambda mode: 1, outputs="y")


def test_a_cell_that_mixes_types_fails_alone(tmp_path, client):
    sweep = Sweep(axes={"a": [0, 1]}, function=lambda a: [1, "a"] if a else ["1", "a"])
    data = sweep.run(tmp_path / "s.zarr", cluster=client, progress=False).squeeze("replicate", drop=True)
    assert data.status.values.tolist() == [DONE, FAILED]
    assert "mixes int64 and text" in str(data.error.values[1])
    assert fs.open_results(tmp_path / "s.zarr").status.shape == (2, 1)
