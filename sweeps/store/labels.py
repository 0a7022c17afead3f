"""Labels and parameters as arrays of a store, and back as the Python values that they were written from.

Text is of fixed length (UTF-32), because that is what plotting libraries take from ``xarray.open_zarr``. A longer label
makes the whole array another one: see ``Store.grow``. Times are whole nanoseconds with the attributes that xarray
decodes.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from faultsweep.sweeps.outputs import NOTHING, to_text
from numpy.typing import NDArray

from faultsweep.errors import InputError

_KINDS = ("boolean", "whole", "optional", "date", "calendar", "dtype")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_SINCE = {"units": "nanoseconds since 1970-01-01", "calendar": "proleptic_gregorian"}
_LASTING = {"units": "nanoseconds", "dtype": "timedelta64[ns]"}
_OPTIONAL: dict[str, Callable[[str], Any]] = {
    "text": str,
    "date": datetime.date.fromisoformat,
    "datetime": datetime.datetime.fromisoformat,
    "timedelta": lambda text: int(Decimal(text.removesuffix(" s")) * 1_000_000) * _MICROSECOND,
}
"""How the labels beside None are read, by the type that they are of; others are JSON."""


def to_array(values: Sequence[Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return values of one type (None among them, maybe) as an array, and the attributes that say how to read it.

    Raises
    ------
    InputError
        A time is not between the years 1678 and 2261, in nanoseconds.
    """
    kinds = {type(value) for value in values}
    if type(None) in kinds:
        names = {"text" if kind is str else kind.__name__ for kind in kinds}
        optional = next((name for name in names if name in _OPTIONAL), "json")
        return _text([to_text(value) for value in values]), {"optional": optional}
    if kinds <= {str}:
        return _text(values), {}
    if kinds == {bool}:
        return np.array(values, dtype=bool), {"boolean": 1}
    if kinds <= {datetime.date}:
        return _nanoseconds([datetime.datetime(day.year, day.month, day.day) - _EPOCH for day in values]), {
            **_SINCE,
            "date": 1,
        }
    if kinds <= {datetime.datetime}:
        return _nanoseconds([time - _EPOCH for time in values]), dict(_SINCE)
    if kinds <= {datetime.timedelta}:
        return _nanoseconds(values), dict(_LASTING)
    if float in kinds:  # whole numbers beside it are exact in 53 bits; where a formula has no value it is NaN
        return np.array(values, dtype=np.float64), {"whole": 1} if int in kinds else {}
    return np.array(values, dtype=np.int64), {}


def _text(values: Sequence[str]) -> NDArray[np.str_]:
    return np.array(values, dtype=f"<U{max(1, *(len(value) for value in values), 1)}")


def _nanoseconds(values: Sequence[datetime.timedelta]) -> NDArray[np.int64]:
    counts = [1000 * (value // _MICROSECOND) for value in values]
    if any(abs(count) >= 2**63 for count in counts):
        raise InputError("times in a store are between the years 1678 and 2261, durations below 292 years")
    return np.array(counts, dtype=np.int64)


def from_array(values: Any, attributes: Mapping[str, Any], as_label: bool = False) -> Any:
    """Return what ``to_array`` was given, of an array and its attributes; nested lists if it has several dimensions.

    ``as_label`` keeps what stands for None, and for what is beside it, as text. Booleans of earlier stores are text.
    """
    array = np.asarray(values)
    if attributes.get("calendar") == _SINCE["calendar"]:
        times = [_EPOCH + count // 1000 * _MICROSECOND for count in array.ravel().tolist()]
        return [time.date() for time in times] if attributes.get("date") else times
    if attributes.get("dtype") == _LASTING["dtype"]:
        return [count // 1000 * _MICROSECOND for count in array.ravel().tolist()]
    listed = array.tolist()
    if attributes.get("optional") and not as_label:
        read = _OPTIONAL.get(str(attributes["optional"]), json.loads)
        return [None if text == NOTHING else read(text) for text in listed]
    if attributes.get("boolean"):
        return [value == "true" if isinstance(value, str) else value for value in listed]
    return listed


def without_kinds(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes without those that say how values are to be read."""
    return {key: value for key, value in attributes.items() if key not in _KINDS}
