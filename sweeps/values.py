"""A result of a run as an array of the type that it has, exactly, or a sentence that says why there is none.

NumPy makes text of ``[1, "a"]``, cuts nulls off the ends of texts and rounds what has more digits than a number. So the
type of a list is found from what stands in it, and each conversion is compared with what it was made from.
"""

from __future__ import annotations

import contextlib
import datetime
import operator
import reprlib
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faultsweep.errors import InputError

LARGEST_EXACT = 2**53
"""Whole numbers up to here are the same as floating-point numbers."""
LONGEST_LABEL = 10_000
"""Characters of a label."""
_KINDS = {"f": "float64", "i": "int64", "u": "int64", "b": "bool", "c": "complex", "M": "datetime", "m": "timedelta"}
_KINDS |= {"U": "text", "T": "text"}
_TYPES = {"float64": np.float64, "int64": np.int64, "bool": np.bool_, "complex": np.complex128}
_MIXED = (({"bool", "int64"}, "int64"), ({"int64", "float64"}, "float64"), ({"int64", "float64", "complex"}, "complex"))
"""Kinds that may stand in one list, and what it is then."""
_NAT = np.iinfo(np.int64).min
_NOTHING = "nothing"
"""The kind of pd.NaT, which is a time or a duration."""


def to_values(name: str, part: Any, dtype: str = "") -> tuple[str, NDArray[Any]]:
    """Return the type of a result, and it as an array: times as whole nanoseconds, text as objects.

    Parameters
    ----------
    name : of the result, for the sentence of an error.
    part : what a run gave: a value, nested lists, or an array of NumPy, pandas or xarray.
    dtype : the type that is expected, for what could be of two types.

    Raises
    ------
    InputError
        It is of no type, or of several, or no type holds it exactly.
    """
    if np.ma.is_masked(part):
        raise InputError(f"{name}: some of its values are masked; fill them")
    if getattr(getattr(part, "dtype", None), "tz", None) is not None:
        raise InputError(f"{name}: its times have time zones; give them in UTC, without one")
    values = part if isinstance(part, Mapping) else getattr(part, "values", part)
    is_array = hasattr(values, "__array__") and not isinstance(values, str | datetime.date | datetime.timedelta)
    if is_array:
        array = np.asarray(values)
        if array.dtype != object:
            return _of_array(name, array, part)
        shape, leaves = array.shape, array.ravel().tolist()
    else:
        leaves = []
        shape = _flatten(name, values, leaves)
    return _of_leaves(name, leaves, shape, part, dtype)


def exact_number(name: str, value: Any) -> float:
    """Return any real number as a float64 that is equal to it, or reads as it does (a Decimal such as 0.1).

    Raises
    ------
    InputError
        There is none. What is no number raises what ``float`` does.
    """
    number = float(value)
    with contextlib.suppress(AttributeError, TypeError):
        value = operator.index(value)  # NumPy compares its whole numbers with a float64 as float64
    if isinstance(value, Decimal):
        same = value.is_nan() or Decimal(repr(number)) == value
    else:
        same = bool(value == number) or (number != number and bool(value != value))
    if not same:
        advice = "give it dtype int64" if isinstance(value, int) else "round it, such as with float(x)"
        raise InputError(f"{name}: {shown(value)} needs more than the 53 bits of a number; {advice}")
    return number


def check_text(name: str, text: str) -> str:
    """Return a text if every reader of a store gets it back as it is."""
    if text.endswith("\0") or any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(
            f"{name}: the text {shown(text)} is not valid Unicode, or ends with a null, which cannot be stored"
        )
    return str.__str__(text)  # of an enum of texts, the value


def check_label(name: str, text: str) -> None:
    """Raise InputError unless a text can be a label: all labels of an axis take the room of the longest."""
    check_text(name, text)
    if len(text) > LONGEST_LABEL:
        raise InputError(f"{name}: {shown(text)} has {len(text):,} characters; a label has at most {LONGEST_LABEL:,}")


def shown(value: Any) -> str:
    """Return a value in short, or its type where the text would have an address."""
    plain = bool | int | float | complex | str | bytes | list | tuple | set | frozenset | np.ndarray
    plain |= datetime.date | datetime.timedelta | np.generic | Decimal | Fraction
    if value is None or isinstance(value, plain):
        return reprlib.repr(value)
    return f"an object of type {type(value).__qualname__}"


def _of_array(name: str, array: NDArray[Any], part: Any) -> tuple[str, NDArray[Any]]:
    """Return an array of one of NumPy's types as a store has it."""
    kind = _KINDS.get(array.dtype.kind)
    if kind is None:
        raise _refusal(name, part)
    if kind == "text":
        leaves = array.ravel().tolist()
        if not all(isinstance(leaf, str) for leaf in leaves):  # what stands for a missing text
            raise _refusal(name, part)
        texts = [check_text(name, text) for text in leaves]
        return kind, _objects(texts, array.shape)
    if kind in ("datetime", "timedelta"):
        return kind, _nanoseconds(name, array, part)
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name}: whole numbers have at most 63 bits, got {array.max()}")
    with np.errstate(over="ignore"):
        made: NDArray[Any] = array.astype(_TYPES[kind])
    if array.dtype.itemsize > made.dtype.itemsize and not np.array_equal(made, array, equal_nan=True):
        raise InputError(
            f"{name}: {shown(part)} needs more than the 53 bits of a number; round it, such as with float(x)"
        )
    return kind, made


def _nanoseconds(name: str, array: NDArray[Any], part: Any) -> NDArray[np.int64]:
    unit = np.datetime_data(array.dtype)[0]
    if array.dtype.kind == "m" and unit in ("generic", "Y", "M") and not np.isnat(array).all():
        raise InputError(f"{name}: {shown(part)} has no unit of a fixed length; give durations in days or smaller")
    exact = array.astype(f"{array.dtype.kind}8[ns]")
    if not np.array_equal(exact.astype(array.dtype), array, equal_nan=True):
        raise InputError(f"{name}: {shown(part)} is beyond what fits 64 bits of nanoseconds")
    return exact.view(np.int64)


def _flatten(name: str, values: Any, leaves: list[Any]) -> tuple[int, ...]:
    """Append what stands in nested lists to ``leaves``; returns their shape."""
    if not isinstance(values, list | tuple | range):
        if not hasattr(values, "__array__") or not getattr(values, "ndim", 0):
            leaves.append(values)
            return ()
        array = np.asarray(values)
        leaves.extend(list(array.ravel()))  # scalars of NumPy, which know their type
        return array.shape
    shapes = {_flatten(name, value, leaves) for value in values}
    if len(shapes) > 1:
        raise InputError(f"{name}: {shown(values)} has rows of several lengths; an array has one")
    return (len(values), *next(iter(shapes), ()))


def _of_leaves(name: str, leaves: list[Any], shape: tuple[int, ...], part: Any, dtype: str) -> tuple[str, NDArray[Any]]:
    """Return values, laid flat, as an array of the one type that all of them have."""
    kinds = {_kind_of(name, leaf, part) for leaf in leaves} or {"float64"}
    if _NOTHING in kinds:
        kinds.discard(_NOTHING)
        kinds = kinds or {dtype}
        if not kinds <= {"datetime", "timedelta"}:
            raise InputError(
                f"{name}: {shown(part)} does not tell whether it is a time or a duration; give outputs with a dtype"
            )
    kind = next((whole for mixed, whole in _MIXED if kinds <= mixed and whole in kinds), next(iter(kinds)))
    if len(kinds) > 1 and not any(kinds <= mixed and whole == kind for mixed, whole in _MIXED):
        raise InputError(f"{name}: cannot store {shown(part)}, which mixes {' and '.join(sorted(kinds))}")
    if kind == "text":
        return kind, _objects([check_text(name, leaf) for leaf in leaves], shape)
    if kind in ("datetime", "timedelta"):
        counts = [_one_time(name, leaf, kind) for leaf in leaves]
        return kind, np.array(counts, dtype=np.int64).reshape(shape)
    values: list[Any]
    if kind in ("float64", "complex"):
        exact = exact_number if kind == "float64" else _exact_complex
        try:
            values = [exact(name, leaf) for leaf in leaves]
        except (TypeError, ValueError, OverflowError):
            raise _refusal(name, part) from None
    else:
        values = [int(leaf) for leaf in leaves]
        if values and not (min(values) >= -(2**63) and max(values) < 2**63):
            raise InputError(f"{name}: whole numbers have at most 63 bits, got {shown(max(values, key=abs))}")
    return kind, np.array(values, dtype=_TYPES[kind]).reshape(shape)


def _kind_of(name: str, leaf: Any, part: Any) -> str:
    """Return the type of one value."""
    if isinstance(leaf, str):
        return "text"
    if isinstance(leaf, bool):
        return "bool"
    if isinstance(leaf, datetime.date | datetime.timedelta):
        if leaf != leaf:  # pd.NaT
            return _NOTHING
        if getattr(leaf, "tzinfo", None) is not None:
            raise InputError(f"{name}: {leaf} has a time zone; give times in UTC, without one")
        return "timedelta" if isinstance(leaf, datetime.timedelta) else "datetime"
    if isinstance(leaf, int | float | complex):
        return "int64" if isinstance(leaf, int) else "float64" if isinstance(leaf, float) else "complex"
    if isinstance(leaf, np.generic | np.ndarray):
        return _KINDS.get(leaf.dtype.kind, "")
    if isinstance(leaf, bytes | Iterable) or not hasattr(leaf, "__float__"):
        raise _refusal(name, part)
    return "float64"


def _refusal(name: str, part: Any) -> InputError:
    return InputError(f"{name}: cannot store {shown(part)}")


def _one_time(name: str, leaf: Any, kind: str) -> int:
    if leaf != leaf and not isinstance(leaf, np.generic):
        return _NAT
    if hasattr(leaf, "to_datetime64"):
        leaf = leaf.to_datetime64()
    elif hasattr(leaf, "to_timedelta64"):
        leaf = leaf.to_timedelta64()
    made = np.asarray(np.datetime64(leaf) if kind == "datetime" else np.timedelta64(leaf))
    return int(_nanoseconds(name, made, leaf))


def _exact_complex(name: str, leaf: Any) -> complex:
    real, imaginary = (leaf.real, leaf.imag) if isinstance(leaf, complex | np.complexfloating) else (leaf, 0.0)
    return complex(exact_number(name, real), exact_number(name, imaginary))


def _objects(texts: list[str], shape: tuple[int, ...]) -> NDArray[np.object_]:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)
