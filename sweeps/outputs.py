"""What a run gives: numbers, whole numbers, booleans, text, times, complex numbers, and arrays of them.

On its way from a worker to the store a result is a row of float64 *words*, whatever its type: an int64, or a time in
nanoseconds, is a word with the same 64 bits, a complex number is two. So journals, buffers and copies need to know no
types, and nothing is rounded. Text goes beside them.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import re
import reprlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from faultsweep.sweeps.selection import HIGHER_IS_BETTER
from faultsweep.sweeps.values import LARGEST_EXACT, check_label, exact_number, shown, to_values
from numpy.typing import NDArray

from faultsweep.errors import InputError

WORDS = {"float64": 1, "int64": 1, "bool": 1, "datetime": 1, "timedelta": 1, "complex": 2, "text": 0}
"""The types of results, and how many words a value of each takes."""
NUMBERS = ("float64", "int64", "bool")
"""Types that can be averaged."""
_UNITLESS = ("text", "bool", "datetime", "timedelta")
_STORED = {"float64": "float64", "int64": "int64", "bool": "bool", "complex": "complex128", "text": "string"}
_STORED |= {"datetime": "int64", "timedelta": "int64"}
_NAT = np.iinfo(np.int64).min
_FILLS = {"float64": np.nan, "complex": complex(np.nan, np.nan), "datetime": _NAT, "timedelta": _NAT, "text": ""}
_TIME_ATTRIBUTES = {
    "datetime": {"units": "nanoseconds since 1970-01-01", "calendar": "proleptic_gregorian"},
    "timedelta": {"units": "nanoseconds", "dtype": "timedelta64[ns]"},
}
_DECODED = frozenset(
    (
        *("units", "long_name", "better", "dtype", "calendar", "missing_value", "scale_factor"),
        *("add_offset", "coordinates", "grid_mapping", "bounds", "flag_values", "flag_meanings"),
    )
)
"""Attributes that say how a variable is read, or that an output has by another name."""
_EXPECTED = {
    "float64": "a number",
    "int64": "a whole number",
    "bool": "true or false",
    "datetime": "a date or time",
    "timedelta": "a duration",
    "complex": "a complex number",
    "text": "text",
}
UNMASKED = "holds no result where status is not done, truncated, copy or truncated_copy"
"""Comment of variables whose type has no value for "nothing"."""


NOTHING = "none"
"""The label of None."""
MOST_WIDE = 1_000_000
"""Values of one output in one run."""
_LONGEST_NAME = 200
"""Bytes of a name: an array is a folder of that name."""


class Dim(NamedTuple):
    """A dimension of a result: its name, its length, and its labels, if it has any."""

    name: str
    length: int
    labels: tuple[Any, ...] | None


DIRECTIONS = ("", "higher", "lower")


@dataclass(frozen=True)
class Output:
    """One result of a run: a value, or an array of them.

    ``dtype`` is float64, int64, bool, text, datetime, timedelta or complex. A vector has the name of its dimension
    (``dim``) and its ``labels``; any array has ``dims``, a mapping of names to labels, or to lengths where there are no
    labels: ``Output("field", "K", dims={"x": [0.0, 0.5, 1.0], "step": 100})``. A ``measured`` result, such as a
    duration, differs from run to run. ``better`` says which values are better: "higher", "lower", or "" if neither is.
    ``more`` has other attributes of its variable, with text, numbers or lists as values; ``coordinates`` has attributes
    of the labels along each dimension, such as their units.
    """

    name: str
    unit: str = ""
    doc: str = ""
    dim: str = ""
    labels: tuple[Any, ...] = ()
    measured: bool = False
    dtype: str = "float64"
    dims: Any = ()
    better: str = ""
    more: Any = field(default=(), compare=False)
    coordinates: Any = field(default=(), compare=False)

    @property
    def higher_is_better(self) -> bool:
        """Tell whether more of it is better; raise InputError if nothing says so, or the opposite."""
        return more_is_better(self.name, self.better)

    @property
    def along(self) -> tuple[Dim, ...]:
        """Return the dimensions, in order."""
        return self.dims or ((Dim(self.dim, len(self.labels), self.labels),) if self.dim else ())

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the length of each dimension."""
        return tuple(dim.length for dim in self.along)

    @property
    def items(self) -> int:
        """Return the number of values."""
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        """Return the number of words; text has none."""
        return self.items * WORDS[self.dtype]

    @property
    def texts(self) -> int:
        """Return the number of texts."""
        return self.items if self.dtype == "text" else 0

    @property
    def is_number(self) -> bool:
        """Tell whether it is one number per run."""
        return not self.along and self.dtype in NUMBERS

    @property
    def is_plain(self) -> bool:
        """Tell whether it is one float64, or a vector of them with labels."""
        return self.dtype == "float64" and not self.dims

    @property
    def stored(self) -> str:
        """Return the type of its variable in a store."""
        return _STORED[self.dtype]

    @property
    def fill(self) -> Any:
        """Return what stands in a store where there is no result."""
        return _FILLS.get(self.dtype, 0)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of its variable: units, name, and how a reader finds what is no result."""
        attributes: dict[str, Any] = dict(self.more)
        attributes |= {"units": self.unit} if self.unit else {}
        attributes |= {"long_name": self.doc} if self.doc else {}
        attributes |= {"better": self.better} if self.better else {}
        attributes |= _TIME_ATTRIBUTES.get(self.dtype, {})
        if self.dtype in ("int64", "bool"):
            attributes["comment"] = "; ".join(filter(None, (attributes.get("comment"), UNMASKED)))
        return attributes

    def about(self, dim: str) -> dict[str, Any]:
        """Return the attributes of the labels along a dimension."""
        return dict(dict(self.coordinates).get(dim, ()))

    def decode(self, words: NDArray[np.float64]) -> NDArray[Any]:
        """Return words, shape (runs, width), as values of the stored type, shape (runs, *shape)."""
        words = np.ascontiguousarray(words)
        values: NDArray[Any] = words
        if self.dtype == "bool":
            values = words.view(np.int64) != 0
        elif self.dtype != "float64":
            values = words.view(self.stored)
        return values.reshape(len(words), *self.shape)

    def encode(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return stored values, shape (runs, *shape), as words."""
        kind = "int64" if self.dtype == "bool" else self.stored
        flat = np.ascontiguousarray(values, dtype=kind).reshape(len(values), -1)
        return flat.view(np.float64)


def udunits(unit: str) -> str:
    """Return a unit of the simulator as UDUNITS, and so CF, writes it: "1" for ratios and counts."""
    return {"": "1", "failures": "1", "jobs": "1", "nodes": "1", "node s": "s"}.get(unit, unit)


def stored_output(
    name: str,
    array: Any,
    dims: Sequence[str],
    labels: Mapping[str, Sequence[Any]],
    coordinates: Mapping[str, Mapping[str, Any]],
) -> Output:
    """Return the output that a variable of a store holds.

    ``dims`` are those beyond the grid's, ``labels`` theirs where there are any, with the attributes ``coordinates``.
    """
    attributes = dict(array.attrs)
    kinds = {"int64": "int64", "bool": "bool", "complex128": "complex", "float64": "float64"}
    dtype = kinds.get(str(array.dtype), "text")
    for kind, known in _TIME_ATTRIBUTES.items():
        if dtype == "int64" and all(attributes.get(key) == text for key, text in known.items()):
            dtype = kind
    unit = "" if dtype in _TIME_ATTRIBUTES else str(attributes.get("units", ""))
    along = {
        dim: labels.get(dim, length) for dim, length in zip(dims, array.shape[array.ndim - len(dims) :], strict=True)
    }
    doc, better = (str(attributes.get(key, "")) for key in ("long_name", "better"))
    about = {dim: _coordinate_attributes(found) for dim, found in coordinates.items()}
    more = _plain_attributes(attributes)
    return read_output(Output(name, unit, doc, dtype=dtype, dims=along, better=better, more=more, coordinates=about))


def more_is_better(name: str, declared: str = "") -> bool:
    """Tell whether more of a metric is better, by what is declared or by the simulator's metric of that name.

    Raises
    ------
    InputError
        Nothing is declared, and the simulator has no such metric.
    """
    from faultsweep.simcore.engine.metrics import METRICS

    if declared or name in METRICS:
        return declared == "higher" if declared else name in HIGHER_IS_BETTER
    raise InputError(
        f"{name}: is a higher value better, or a lower one? Say so in the spec with better = {{{name} = 'lower'}}, or "
        f"where the function declares its outputs, Output('{name}', better='lower')"
    )


def check_name(name: str, where: str = "") -> None:
    """Raise InputError unless a name can be that of an array, which is a folder of a store."""
    if not re.fullmatch(r"(?!__)\w[\w +-]*", name) or len(name.encode()) > _LONGEST_NAME:
        raise InputError(
            f"{where}{shown(name)} cannot be a name in a store; use letters, digits, spaces, _ + -, at most"
            f" {_LONGEST_NAME} bytes"
        )


def read_output(out: Output) -> Output:
    """Return an output with its dimensions and labels as tuples of plain values, or say what is wrong with it."""
    for name, text in (("name", out.name), ("unit", out.unit), ("doc", out.doc), ("dim", out.dim)):
        if not isinstance(text, str):
            raise InputError(f"outputs: {out.name}: expected text as its {name}, got {text!r}")
    if out.better not in DIRECTIONS:
        raise InputError(f"outputs: {out.name}: better: expected higher or lower, got {out.better!r}")
    if out.dtype not in WORDS:
        raise InputError(f"outputs: {out.name}: expected {', '.join(WORDS)} as its dtype, got {out.dtype!r}")
    if out.unit and out.dtype in _UNITLESS:
        raise InputError(f"outputs: {out.name}: {out.dtype} has no unit, got {out.unit!r}")
    if bool(out.dim) != bool(len(out.labels)) or (out.dim and isinstance(out.labels, str)) or (out.dim and out.dims):
        raise InputError(
            f"outputs: {out.name}: a vector has both, the name of its dimension (dim) and a list of labels"
        )
    more = _plain_attributes(dict(out.more)) if isinstance(out.more, Mapping | tuple) else None
    if more is None or set(more) != set(dict(out.more)):
        raise InputError(
            f"outputs: {out.name}: more: expected names of attributes with text or numbers, single or in a list, got"
            f" {out.more!r}"
        )
    out = replace(out, more=tuple(more.items()))
    raw = {out.dim: out.labels} if out.dim else out.dims
    if isinstance(raw, tuple):
        raw = {dim.name: dim.labels if dim.labels is not None else dim.length for dim in raw}
    if not isinstance(raw, Mapping) or not all(isinstance(name, str) for name in raw):
        raise InputError(f"outputs: {out.name}: expected dims as a mapping of names to labels, or lengths, got {raw!r}")
    dims = tuple(_read_dim(out.name, name, labels) for name, labels in raw.items())
    if (count := math.prod(dim.length for dim in dims)) > MOST_WIDE:
        raise InputError(f"outputs: {out.name}: {count:,} values; a result has at most {MOST_WIDE:,}")
    out = replace(out, coordinates=_read_coordinates(out, {dim.name for dim in dims if dim.labels is not None}))
    if len(dims) == 1 and dims[0].labels is not None:
        return replace(out, dim=dims[0].name, labels=dims[0].labels, dims=())
    return replace(out, dim="", labels=(), dims=dims)


def check_encoding(out: Output) -> None:
    """Raise InputError if every reader of a store would take numbers for times because of their unit.

    One number that is no time, or a unit that is none, and xarray could open nothing of the store.
    """
    units = {out.name: out.unit, **{dim.name: str(out.about(dim.name).get("units", "")) for dim in out.along}}
    for name, unit in units.items():
        if "since" in unit:
            raise InputError(
                f"outputs: {out.name}: readers of a store interpret numbers in {unit!r} for times; give "
                f"{'it' if name == out.name else name} as times, or in a unit without the word since"
            )


def _read_coordinates(out: Output, labelled: set[str]) -> tuple[Any, ...]:
    """Return the attributes of labels as tuples, or say what is wrong with them."""
    if not isinstance(out.coordinates, Mapping | tuple):
        raise InputError(f"outputs: {out.name}: coordinates: expected attributes by dimension, got {out.coordinates!r}")
    given = {dim: dict(found) for dim, found in dict(out.coordinates).items()}
    for dim, found in given.items():
        if dim not in labelled or set(found) != set(_coordinate_attributes(found)):
            raise InputError(
                f"outputs: {out.name}: coordinates: expected dimensions that have labels, with attributes that are text"
                f" or numbers, single or in a list, got {dim}: {found!r}"
            )
    return tuple((dim, tuple(_coordinate_attributes(found).items())) for dim, found in given.items())


def _read_dim(output: str, name: str, labels: Any) -> Dim:
    check_name(name, f"outputs: {output}: ")
    if isinstance(labels, int) and not isinstance(labels, bool):
        if labels < 1:
            raise InputError(f"outputs: {output}: {name}: expected a length of 1 or more, got {labels}")
        return Dim(name, labels, None)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError(f"outputs: {output}: {name}: expected a list of labels, or a length, got {labels!r}")
    values = tuple(plain_value(label) for label in labels)
    kinds = {float if isinstance(value, int | float) else type(value) for value in values}
    known = all(isinstance(v, str | int | float | datetime.date | datetime.timedelta) for v in values)
    if not values or not known or bool in map(type, values) or len(kinds) > 1 or len(set(values)) < len(values):
        raise InputError(
            f"outputs: {output}: labels are different, and all text, all numbers or all times, got {values}"
        )
    where = f"outputs: {output}: {name}"
    to_values(where, list(values))
    for value in values:
        if isinstance(value, str):
            check_label(where, value)
    if any(value != value for value in values):
        raise InputError(f"{where}: nan is not a label")
    return Dim(name, len(values), values)


def plain_value(value: Any) -> Any:
    """Return a NumPy or pandas scalar as the Python value it is: times, too, as ``datetime`` has them."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        exact = value.astype("M8[us]" if isinstance(value, np.datetime64) else "m8[us]")
        if np.isnat(value) or exact != value:
            raise InputError(f"{value}: times of labels and axes have whole microseconds")
        return exact.item()
    if hasattr(value, "to_pydatetime"):
        return plain_value(value.to_datetime64()) if value.tzinfo is None else value.to_pydatetime()
    if hasattr(value, "to_pytimedelta"):
        return plain_value(value.to_timedelta64())
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


def to_text(value: Any) -> str:
    """Return a value as a label of an axis that has None, too; durations are in seconds."""
    if value is None:
        return NOTHING
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return f"{Decimal(value // datetime.timedelta(microseconds=1)) / 1_000_000:f} s"
    return value if isinstance(value, str) else json.dumps(value)


def to_json(values: Any) -> str:
    """Return values of parameters as JSON; times are tables of one key, which says what they are."""

    def convert(value: Any) -> Any:
        if isinstance(value, datetime.timedelta):
            return {"duration_us": value // datetime.timedelta(microseconds=1)}
        if isinstance(value, datetime.date):
            return {"datetime" if isinstance(value, datetime.datetime) else "date": value.isoformat()}
        raise TypeError(f"no JSON for {value!r}")

    return json.dumps(values, default=convert)


def from_json(text: str) -> Any:
    """Return what ``to_json`` wrote."""
    kinds = {
        "duration_us": lambda count: datetime.timedelta(microseconds=int(count)),
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
    }

    def convert(table: dict[str, Any]) -> Any:
        kind = next(iter(table)) if len(table) == 1 else ""
        is_time = kind in kinds and isinstance(table[kind], int if kind == "duration_us" else str)
        return kinds[kind](table[kind]) if is_time else table

    return json.loads(text, object_hook=convert)


def lay_out(parts: Sequence[Any], outputs: Sequence[Output]) -> tuple[NDArray[np.float64], list[str]]:
    """Return the results of one run as words and texts, in the order of the outputs.

    Raises
    ------
    InputError
        A result is of another type, shape or along other labels than its output says.
    """
    words: list[NDArray[np.float64]] = [np.empty(0)]
    texts: list[str] = []
    for out, part in zip(outputs, parts, strict=True):
        values = _values(out, part)
        if out.dtype == "text":
            texts += [str(text) for text in values.ravel().tolist()]
        else:
            words.append(out.encode(values[None])[0])
    return np.concatenate(words), texts


def _values(out: Output, part: Any) -> NDArray[Any]:
    """Return a result as an array of its output's stored type and shape."""
    part = _in_order(out, part)
    kind, array = to_values(out.name, part, out.dtype)
    if array.shape != out.shape:
        wanted = " x ".join(f"{dim.length} {dim.name}" for dim in out.along) or "one value"
        raise InputError(f"{out.name}: expected {wanted}, got {shown(part)} of shape {array.shape}")
    if kind == out.dtype or (array.size == 0 and kind == "float64"):
        return array
    if (out.dtype, kind) == ("complex", "float64"):
        return array.astype(np.complex128)
    if kind == "int64" and out.dtype in ("float64", "complex"):
        if array.size and max(abs(int(array.max())), abs(int(array.min()))) > LARGEST_EXACT:
            return np.array([exact_number(out.name, value) for value in array.ravel().tolist()]).reshape(array.shape)
        return array.astype(out.stored)
    if kind == "bool" and out.dtype in ("float64", "int64"):
        return array.astype(out.stored)
    raise InputError(f"{out.name}: expected {_EXPECTED[out.dtype]}, got {shown(part)}")


def _in_order(out: Output, part: Any) -> Any:
    """Return an array of xarray with its dimensions in the output's order, if its labels are the output's."""
    if not hasattr(part, "dims") or not hasattr(part, "coords"):
        return part
    names = [dim.name for dim in out.along]
    if set(part.dims) != set(names):
        raise InputError(
            f"{out.name}: expected the dimensions {', '.join(names) or 'none'}, got {', '.join(part.dims)}"
        )
    for dim in out.along:
        if dim.labels is not None and dim.name in part.coords:
            labels = tuple(plain_value(label) for label in part.coords[dim.name].values)
            if labels != dim.labels:
                raise InputError(
                    f"{out.name}: the labels along {dim.name} are not those of the output: {reprlib.repr(labels)}"
                    f" where {reprlib.repr(dim.labels)} is expected"
                )
    return part.transpose(*names)


def infer_outputs(result: Any, default_name: str = "result", taken: Container[str] = ()) -> tuple[Output, ...]:
    """Return outputs as what one run gave says: names, types, dimensions, labels, units and names in words.

    Scalar coordinates of arrays of xarray are outputs, too, if they have one value and a type of a store; not those
    with names that are ``taken``, such as those of parameters.

    Raises
    ------
    InputError
        The result has no names that a store could use, or values of a type that no store has.
    """
    parts = named_parts(result, default_name)
    if not parts:
        raise InputError("the function gave nothing to store")
    outputs = [_infer(name, part) for name, part in parts.items() if name != "jobs"]
    for name, part in scalar_coordinates(parts).items():
        with contextlib.suppress(InputError):
            outputs += [] if name in taken else [_infer(name, part)]
    return tuple(outputs)


def scalar_coordinates(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scalar coordinates of arrays of xarray that have no name of a part, and one value in all of them."""
    found: dict[str, list[Any]] = {}
    for part in parts.values():
        coords = getattr(part, "coords", {})
        for name in (name for name in coords if not coords[name].ndim and name not in parts):
            found.setdefault(str(name), []).append(coords[name])
    return {name: same[0] for name, same in found.items() if all(one.equals(same[0]) for one in same)}


def named_parts(result: Any, default_name: str = "result") -> dict[str, Any]:
    """Return a result by the names that it has of itself: of a mapping, a Dataset, a named tuple; or one default."""
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return dict(zip(result._fields, result, strict=True))
    if hasattr(result, "data_vars"):
        return {str(name): result[name] for name in result.data_vars}
    if hasattr(result, "keys"):
        return {name: result[name] for name in result.keys()}  # noqa: SIM118 - of a pandas Series, too
    return {str(getattr(result, "name", None) or default_name): result}


def _infer(name: Any, part: Any) -> Output:
    if not isinstance(name, str):
        raise InputError(f"the function's result has the name {name!r}; names are text")
    check_name(name, "the function's result: ")
    kind, array = to_values(name, part)
    attributes = getattr(part, "attrs", {})
    names = [str(dim) for dim in getattr(part, "dims", ())] or [f"{name}_{i}" for i in range(array.ndim)]
    if array.ndim == 1 and not getattr(part, "dims", ()):
        names = [f"{name}_index"]
    coords = getattr(part, "coords", {})
    for coord in coords:
        if coord not in names and coords[coord].ndim:
            raise InputError(f"{name}: the coordinate {coord} is not that of a dimension; leave it out")
    dims = {
        dim: [plain_value(label) for label in coords[dim].values] if dim in coords else length
        for dim, length in zip(names, array.shape, strict=True)
    }
    unit = "" if kind in _UNITLESS else str(attributes.get("units", ""))
    doc, more = str(attributes.get("long_name", "")), _plain_attributes(attributes)
    about = {dim: _coordinate_attributes(coords[dim].attrs) for dim in names if dim in coords}
    return read_output(Output(name, unit, doc, dtype=kind, dims=dims, more=more, coordinates=about))


def infer_attributes(result: Any) -> dict[str, Any]:
    """Return the attributes of a Dataset as a whole that are text or numbers; of anything else there are none."""
    attributes = getattr(result, "attrs", {}) if hasattr(result, "data_vars") else {}
    return {name: value for name, value in _kept(attributes).items() if name != "coordinates"}


def check_units(out: Output, part: Any) -> None:
    """Raise InputError if an array of xarray is in another unit than the output."""
    unit = str(part.attrs.get("units", "")) if hasattr(part, "coords") else ""
    if unit and unit != out.unit and out.dtype not in _UNITLESS:
        raise InputError(
            f"{out.name}: is in {unit} here, {f'in {out.unit}' if out.unit else 'without a unit'} elsewhere"
        )


def _plain_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the attributes that are text or numbers, and that mean nothing to whoever decodes a store."""
    kept = _kept(attributes)
    if isinstance(comment := kept.get("comment"), str):
        kept["comment"] = comment.removesuffix(UNMASKED).removesuffix("; ")
        if not kept["comment"]:
            del kept["comment"]
    return {name: value for name, value in kept.items() if name not in _DECODED}


def _kept(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the attributes that are text, numbers, or lists of either (arrays and tuples, too), as plain values."""
    names = (name for name in attributes if isinstance(name, str) and not name.startswith("_"))
    values = {name: _as_attribute(attributes[name]) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _as_attribute(value: Any) -> Any:
    """Return an attribute as JSON has it; None if a store does not keep it."""
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1:
        listed = [plain_value(one) for one in value]
        kinds = {type(one) for one in listed}
        return listed if kinds == {str} or (kinds and kinds <= {int, float}) else None
    plain = plain_value(value)
    return plain if type(plain) in (str, int, float, bool) else None


def _coordinate_attributes(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the attributes of labels that a store keeps."""
    own = {name: attributes[name] for name in ("units", "long_name") if isinstance(attributes.get(name), str)}
    return {**own, **_plain_attributes(attributes)}
