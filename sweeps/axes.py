"""An axis is a small table: one row per value, with a label and one or more parameters.

A list, a range, zipped parameters, labelled bundles and a sampled design are five ways to write such a table:

    scheduler = ["fcfs", "backfill"]                                   list
    load_scale = {start = 0.5, stop = 1.5, step = 0.1}                 range: step, num or geometric (stop included)
    machine = {zip = {machine = ["torus:4x4x8", "flat:128"], growth_limit = [1, 0]}, labels = ["torus", "flat"]}
    policy = [{label = "none", checkpoint = "none"}, {label = "2h", checkpoint = "periodic", interval_h = 2}]
    sample = {sample = {load_scale = {low = 0.5, high = 2, log = true}}, num = 64, design = "latin-hypercube", seed = 1}
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.outputs import plain_value, to_text
from faultsweep.sweeps.values import LARGEST_EXACT, check_label

from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import OptionalModule

qmc = OptionalModule("scipy.stats.qmc", "a sampled design")  # half a second, and few sweeps need it

DESIGNS = ("latin-hypercube", "sobol", "halton", "random", "saltelli")
LONGEST_AXIS = 1_000_000
_STEP_ROUNDING = Decimal("1e-14")
"""How much a step such as 1/3 may be off, as a floating-point number, to end at the stop."""
LEFT_OUT = object()
"""Stands for the value of a parameter that a bundle does not name."""
_VALUES = (bool, int, float, str, date, timedelta, Enum, type(None))


@dataclass(frozen=True)
class Axis:
    """One dimension of a sweep.

    Attributes
    ----------
    name : the dimension's name.
    labels : one per row, all different and of one type, as the values of parameters are.
    columns : parameter -> one value per row, all text, all numbers, all booleans or all times; None may be among them.
    """

    name: str
    labels: list[Any]
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.labels)

    def varies(self, parameters: Collection[str]) -> bool:
        """Tell whether one of these parameters has several values on the axis."""
        own = (values for name, values in self.columns.items() if name in parameters)
        return any(value != values[0] for values in own for value in values)


def read_axis(name: str, raw: Any) -> Axis:
    """Return the axis that a spec writes as ``raw`` (bundle cells that a row leaves out are LEFT_OUT).

    Raises
    ------
    InputError
        One sentence that says what is wrong and which forms there are; the caller adds the place.
    """
    raw = plain(raw)
    if isinstance(raw, Mapping):
        axis = _read_table(name, raw)
    elif isinstance(raw, list):
        axis = _read_bundles(name, raw) if any(isinstance(row, Mapping) for row in raw) else _read_list(name, raw)
    else:
        raise InputError(f"expected a list of values, or a table with start and stop, zip or sample, got {raw!r}")
    if not len(axis):
        raise InputError("an axis without values; give at least one")
    _check_labels(axis)
    return axis


def plain(raw: Any) -> Any:
    """Return arrays, ranges, tuples and NumPy scalars as the lists and numbers of TOML."""
    if isinstance(raw, Mapping):
        return {str(key): plain(value) for key, value in raw.items()}
    if isinstance(raw, list | tuple | range):
        return [plain(value) for value in raw]
    if hasattr(raw, "__array__") and getattr(raw, "ndim", None):  # NumPy's, pandas' or xarray's
        array = np.asarray(raw)
        return plain(list(array) if array.dtype.kind in "Mm" else array.tolist())
    return os.fspath(raw) if isinstance(raw, Path) else plain_value(raw)


def _check_labels(axis: Axis) -> None:
    seen = set()
    columns = axis.columns.values()
    for name, values in {"label": axis.labels, **axis.columns}.items():
        for value in values:
            if isinstance(value, str):
                check_label(name, value)
    for number, label in enumerate(axis.labels):
        if not isinstance(label, str | int | float | date | timedelta):
            raise InputError(f"row {number + 1}: expected a label as text, number or time, got {label!r}")
    if len({float if type(label) is int else type(label) for label in axis.labels}) > 1:
        raise InputError(
            "labels are all text, all numbers, all booleans or all times; a bundle without one has its value as label"
        )
    for number, label in enumerate(axis.labels):
        if isinstance(label, float) and math.isnan(label) and not any(col[number] is label for col in columns):
            raise InputError("nan is not a value of an axis")  # as a value, it is the parameter that refuses it
        if label in seen:
            raise InputError(f"the label {label!r} stands twice; labels of an axis are all different")
        seen.add(label)


def _read_list(name: str, values: list[Any]) -> Axis:
    _check_values(values)
    return Axis(name, label_values(values), {name: list(values)})


def label_values(values: list[Any]) -> list[Any]:
    """Return a parameter's values as labels: themselves, the names of an enum, and text where None is among them."""
    named = [value.name if isinstance(value, Enum) else value for value in values]
    if None not in named:
        return named
    fractions = any(isinstance(value, float) for value in named)
    return [to_text(float(value) if fractions and type(value) is int else value) for value in named]


def _check_values(values: list[Any]) -> None:
    for value in values:
        if not isinstance(value, _VALUES):
            raise InputError(f"expected numbers, text, times, true or false in the list, got {value!r}")
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise InputError(f"{value} has a time zone; give times in UTC, without one")


def _read_bundles(name: str, rows: list[Any]) -> Axis:
    columns: dict[str, list[Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise InputError(f"a list mixes bundles (tables) and plain values: {row!r}")
        columns.update({key: [] for key in row if key != "label"})
    if rows and not columns:
        raise InputError("bundles name a label only; give at least one parameter in one of them")
    labels = []
    for number, row in enumerate(rows):
        for key, column in columns.items():
            column.append(row.get(key, LEFT_OUT))
            if column[-1] is not LEFT_OUT and not isinstance(column[-1], _VALUES):
                raise InputError(
                    f"bundle {number + 1}: {key}: expected one number, text, time, true or false, got {column[-1]!r}"
                )
        labels.append(row.get("label", _label_of({k: v for k, v in row.items() if k != "label"})))
    return Axis(name, labels, columns)


def _label_of(values: Mapping[str, Any]) -> Any:
    """Return the label of a row without one: its value, or its values joined."""
    shown = [value.name if isinstance(value, Enum) else value for value in values.values()]
    if len(shown) == 1 and shown[0] is not None:
        return shown[0]
    return ", ".join(str(value).lower() if isinstance(value, bool | None) else str(value) for value in shown)


def _read_table(name: str, raw: Mapping[str, Any]) -> Axis:
    if "zip" in raw:
        _check_keys(raw, ("zip", "labels"))
        return _read_zip(name, raw)
    if "sample" in raw:
        _check_keys(raw, ("sample", "num", "design", "seed"))
        return _read_sample(name, raw)
    _check_keys(raw, ("start", "stop", "step", "num", "geometric"))
    return _read_list(name, read_range(raw))


def _check_keys(raw: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    for key in raw:
        if key not in valid:
            raise unknown_name("key", key, (*valid, *(() if "zip" in raw or "sample" in raw else ("zip", "sample"))))


def one_type(name: str, values: list[Any]) -> list[Any]:
    """Return the values of one column as one type: all text, all booleans, all whole numbers or all numbers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        inexact = [value for value in values if isinstance(value, int) and abs(value) > LARGEST_EXACT]
        if inexact:
            raise InputError(
                f"{name}: {inexact[0]} beside numbers with a fraction, which have 53 bits; write it as one"
            )
        return [value if value is None else float(value) for value in values]
    if kinds == {int} and not all(value is None or -(2**63) <= value < 2**63 for value in values):
        raise InputError(
            f"{name}: whole numbers of an axis have at most 63 bits; write larger ones with a fraction (1e30)"
        )
    if len(kinds) > 1:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(
            f"{name}: values of one axis are all text, all numbers, all booleans or all times, got {shown}"
        )
    return list(values)


def _number(raw: Mapping[str, Any], key: str, whole: bool = False) -> Any:
    value = raw.get(key)
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not abs(value) <= sys.float_info.max:
        shown = "none" if value is None else "a larger one" if type(value) is int else repr(value)
        raise InputError(f"{key}: expected a finite {'whole ' if whole else ''}number, got {shown}")
    return value


def _flag(raw: Mapping[str, Any], key: str) -> bool:
    value = raw.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{key}: expected true or false, got {value!r}")
    return value


def read_range(raw: Mapping[str, Any]) -> list[Any]:
    """Return the values of {start, stop, step | num | geometric}, the stop included: steps have to end there.

    Decimal arithmetic, so that 0.1, 0.2, 0.3 are exactly these and not 0.30000000000000004. Whole numbers stay whole:
    1 to 1024 in 11 geometric values are powers of two that a parameter of whole numbers takes.
    """
    start, stop = _number(raw, "start"), _number(raw, "stop")
    ways = [key for key in ("step", "num", "geometric") if key in raw]
    if len(ways) != 1:
        raise InputError("a range needs start, stop and exactly one of step, num, geometric")
    way = ways[0]
    first, last = Decimal(repr(start)), Decimal(repr(stop))
    if way == "step":
        step = Decimal(repr(_number(raw, "step")))
        if not step or (last - first) / step < 0:
            raise InputError(f"step: {raw['step']!r} does not lead from {start!r} to {stop!r}")
        steps = (last - first) / step
        count = int(steps) + 1
        _check_count("step", count, 1)
        if steps % 1 and round(steps) and abs(steps / round(steps) - 1) < _STEP_ROUNDING:  # 1/3 or 1/11 as a float
            return [float(start), *_even_values(first, last, round(steps) + 1)[1:-1], float(stop)]
        if steps % 1:
            raise InputError(_no_such_step(first, last, step, steps))
        values = [first + i * step for i in range(count)]
        whole = all(isinstance(raw[key], int) for key in ("start", "stop", "step"))
        return [int(value) if whole else float(value) for value in values]
    count = _number(raw, way, whole=True)
    _check_count(way, count, 1 if start == stop else 2)
    if way == "geometric" and (start <= 0 or stop <= 0):
        raise InputError(f"geometric: start and stop must be above 0, got {start!r} and {stop!r}")
    inner = (_even_values if way == "num" else _geometric_values)(first, last, count)[1:-1]
    spaced = [start, *inner, stop] if count > 1 else [start]  # the ends are what was written, to the bit
    whole = isinstance(start, int) and isinstance(stop, int) and all(x % 1 == 0 and abs(x) < 1e15 for x in spaced)
    return [int(x) if whole else float(x) for x in spaced]


def _no_such_step(first: Decimal, last: Decimal, step: Decimal, steps: Decimal) -> str:
    """Return a sentence for a range whose steps do not end at its stop: the nearest steps, and stops, that would do."""
    before, after = int(steps), int(steps) + 1
    by = [f"{float((last - first) / count):.12g} ({count + 1} values)" for count in (before, after) if count]
    stops = [f"{float(first + count * step):.12g}" for count in (before, after)]
    return (
        f"step: from {first} in steps of {step} the stop {last} is not reached; a step of {' or '.join(by)} does, or a"
        f" stop of {' or '.join(stops)}"
    )


def _even_values(first: Decimal, last: Decimal, count: int) -> list[float]:
    return [float(first + (last - first) * i / max(1, count - 1)) for i in range(count)]


def _geometric_values(first: Decimal, last: Decimal, count: int) -> list[float]:
    """Return evenly spaced logarithms, rounded to 15 digits so that 1, 10, 100 are exactly these."""
    with localcontext() as context:
        context.prec = 40
        growth = (last / first).ln() / max(1, count - 1)
        return [float(f"{float(first * (growth * i).exp()):.15g}") for i in range(count)]


def _check_count(key: str, count: int, least: int) -> None:
    if not least <= count <= LONGEST_AXIS:
        shown = f"{count:,}" if count < 1e15 else "far more"
        raise InputError(f"{key}: expected {least} to {LONGEST_AXIS:,} values, this gives {shown}")


def _values_of(raw: Any) -> list[Any]:
    """Return the values of a list or a range inside a zip."""
    if isinstance(raw, Mapping):
        _check_keys(raw, ("start", "stop", "step", "num", "geometric"))
        return read_range(raw)
    if isinstance(raw, list):
        _check_values(raw)
        return raw
    raise InputError(f"expected a list of values or a range, got {raw!r}")


def _read_zip(name: str, raw: Mapping[str, Any]) -> Axis:
    if not isinstance(raw["zip"], Mapping) or not raw["zip"]:
        raise InputError("zip: expected a table of parameters, each with its list of values")
    columns = {}
    for key, values in raw["zip"].items():
        try:
            columns[key] = _values_of(values)
        except InputError as error:
            raise InputError(f"zip.{key}: {error}") from None
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise InputError(f"zip: parameters need equally many values ({shown})")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    labels = raw.get("labels", [_label_of(row) for row in rows])
    if not isinstance(labels, list) or len(labels) != len(rows):
        raise InputError(f"labels: expected a list of {len(rows)} labels")
    return Axis(name, labels, columns)


def _read_sample(name: str, raw: Mapping[str, Any]) -> Axis:
    design = raw.get("design", "latin-hypercube")
    if design not in DESIGNS:
        raise unknown_name("design", design, DESIGNS)
    num = _number(raw, "num", whole=True)
    _check_count("num", num, 1)
    if design in ("sobol", "saltelli") and num & (num - 1):
        raise InputError(f"num: a {design} design is balanced for powers of two only, got {num}")
    seed = _number({"seed": 0, **raw}, "seed", whole=True)
    if seed < 0:
        raise InputError(f"seed: expected a whole number of 0 or more, got {seed}")
    if not isinstance(raw["sample"], Mapping) or not raw["sample"]:
        raise InputError("sample: expected a table of parameters, each with low and high")
    unit = _unit_cube(design, len(raw["sample"]), num, seed)
    columns = {}
    for column, (key, bounds) in enumerate(raw["sample"].items()):
        try:
            columns[key] = _scale_sample(unit[:, column], bounds)
        except InputError as error:
            raise InputError(f"sample.{key}: {error}") from None
    return Axis(name, list(range(len(unit))), columns)


def _unit_cube(design: str, dimensions: int, num: int, seed: int) -> np.ndarray:
    """Return the design as an array (points, dimensions) in [0, 1); a Saltelli design has num (dimensions + 2) points.

    That one is for Sobol indices (Saltelli et al. 2010, radial by columns): for each of num pairs of points (A, B) of a
    Sobol sequence come A, A with one coordinate after the other taken from B, and B.
    """
    if design == "random":
        return np.random.default_rng(seed).random((num, dimensions))
    if design == "saltelli":
        pair = _unit_cube("sobol", 2 * dimensions, num, seed)
        a, b = pair[:, :dimensions], pair[:, dimensions:]
        mixed = [np.where(np.arange(dimensions) == column, b, a) for column in range(dimensions)]
        return np.stack([a, *mixed, b], axis=1).reshape(-1, dimensions)
    maker = {"latin-hypercube": qmc.LatinHypercube, "sobol": qmc.Sobol, "halton": qmc.Halton}[design]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return maker(d=dimensions, rng=np.random.default_rng(seed)).random(num)


def _scale_sample(unit: np.ndarray, bounds: Any) -> list[Any]:
    if isinstance(bounds, list) and len(bounds) == 2:
        bounds = {"low": bounds[0], "high": bounds[1]}
    if not isinstance(bounds, Mapping):
        raise InputError(f"expected [low, high] or a table with low and high, got {bounds!r}")
    for key in bounds:
        if key not in ("low", "high", "log", "whole"):
            raise unknown_name("key", key, ("low", "high", "log", "whole"))
    low, high = _number(bounds, "low"), _number(bounds, "high")
    if low > high:
        raise InputError(f"low {low!r} is above high {high!r}")
    log, whole = _flag(bounds, "log"), _flag(bounds, "whole")
    if log and low <= 0:
        raise InputError(f"log: low must be above 0, got {low!r}")
    if whole:
        if low % 1 or high % 1 or max(abs(low), abs(high)) > LARGEST_EXACT:
            raise InputError(f"whole: low and high must be whole numbers of at most 53 bits, got {low!r} and {high!r}")
        # every whole number has the share of the numbers that round to it: half a step beyond the ends
        low, high = (low - 0.5, high + 0.5) if log else (low, high + 1)
    spread = [low * (high / low) ** float(value) for value in unit] if log else (low + unit * (high - low)).tolist()
    if not whole:
        return spread
    return [min(math.floor(value + 0.5 * log), math.ceil(high) - 1) for value in spread]
