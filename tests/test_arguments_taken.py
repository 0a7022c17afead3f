"""What is an argument of a kind: also scalars of NumPy and xarray, paths of other libraries, and what is read once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from faultsweep.arguments import LABEL, NAMES, NUMBER, PATH, TRUTH, takes
from faultsweep.errors import InputError


@dataclass
class Place:
    """A path of another library."""

    name: str

    def __fspath__(self) -> str:
        return self.name


@takes(path=PATH, names=NAMES, label=LABEL, number=NUMBER, truth=TRUTH)
def collect(path="a", names=(), label="a", number=1.0, truth=False, other=None):
    """Return what was given, names as a list."""
    return path, list(names), label, number, truth, other


TAKEN = {
    "path": [Path("a"), np.str_("a")],
    "names": [{"a": 1}.keys(), np.array(["a", "b"]), iter(["a"]), (name for name in "ab"), {"a"}],
    "label": [None, True, 3, np.float64(2.5), np.datetime64("2020-01-01"), xr.DataArray("fcfs")],
    "number": [1, np.int8(1), np.float32(0.5), np.inf],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in TAKEN.items() for value in values])
def test_it_is_taken(name, value):
    given = collect(**{name: value})
    if name == "names":
        assert given[1]
    else:
        assert any(each is value for each in given)


@pytest.mark.parametrize("value", [True, np.True_, 1, np.array(True), xr.DataArray(True)])
def test_true_is_true_however_it_is_written(value):
    assert collect(truth=value)[4] is True


def test_paths_of_other_libraries_are_paths():
    assert collect(path=Place("a"))[0] == Path("a")


class Gone:
    """Raises an error of the file system as it is looked at."""

    def __iter__(self):
        raise OSError("gone")


class Strange:
    """Raises whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError("repr")

    __iter__ = __eq__ = __bool__ = __repr__


STRANGE = {
    "raises": Strange(),
    "gone": Gone(),
    "too long": 10**5000,
    "no dimension": np.array("x"),
    "NUL": "a\0b",
    "bytes": b"a",
    "mapping": {"a": 1.5, 2: 1},
}


@pytest.mark.parametrize("what", STRANGE)
@pytest.mark.parametrize("name", ["path", "names", "number", "truth"])
def test_strange_values_are_refused_in_a_sentence(name, what):
    with pytest.raises(InputError, match=rf"^{name}: expected .{{1,30}}, got .{{1,60}}$"):
        collect(**{name: STRANGE[what]})


@pytest.mark.parametrize("path", ["a" * 300, "/".join(["a" * 200] * 30)])
def test_a_path_that_no_file_can_have_is_refused(path):
    with pytest.raises(InputError, match=r"^path: '.{1,60}' is no path here \(File name too long\)$"):
        collect(path)
    assert collect(f"https://example.org/{path}")[0].startswith("https")


def test_arguments_by_place_are_checked_too():
    assert collect("a", ["b"], other=object)[5] is object
    with pytest.raises(InputError, match=r"^names: expected a list of names, got 'b'$"):
        collect("a", "b")


def test_none_is_taken_where_it_is_the_default_alone():
    assert takes(path=PATH)(lambda path=None: path)() is None
    with pytest.raises(InputError, match=r"^path: expected a path, got None$"):
        collect(None)


def test_what_is_shown_is_short_and_on_one_line():
    with pytest.raises(InputError, match=r"^truth: expected True or False, got .{1,60}$"):
        collect(truth=np.zeros((50, 50)))
