"""What the cells of a table say: amounts, durations and times, in the units that a mapping of columns names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from faultsweep.simcore.workloads.accounting.units import FIRST_S, LARGEST, LAST_S, NAN, clock, number, stamp

_NULLS = frozenset(("", "Unknown", "None", "N/A", "NaT", "nan", "NULL", "null", "-"))
UNITS: dict[str, float] = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "b": 2.0**-20,
    "kib": 2.0**-10,
    "mib": 1.0,
    "gib": 1024.0,
    "tib": 1024.0**2,
    "kb": 1e3 / 2**20,
    "mb": 1e6 / 2**20,
    "gb": 1e9 / 2**20,
    "tb": 1e12 / 2**20,
}
"""Units of times and durations in seconds, and of memory in MiB."""


def delimiter(line: str) -> str:
    """Return what separates the columns of a table, by its header."""
    return max(",;\t|", key=line.count)


def split_unit(theirs: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the column and the unit of NAME:UNIT."""
    name, _, unit = theirs.rpartition(":")
    return (name, unit) if name and unit.lower() in UNITS and theirs not in names else (theirs, "")


def is_null(value: Any) -> bool:
    """Tell whether a cell says nothing."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in _NULLS


def amount(unit: str, signed: bool = False) -> Callable[[Any], float]:
    """Return what reads a number in a unit, of 0 or more unless it is signed; NaN where a cell says nothing."""
    scale = UNITS[unit.lower()] if unit else 1.0

    def parse(value: Any) -> float:
        if is_null(value) or isinstance(value, bool):
            return NAN
        found = float(value) if isinstance(value, (int, float, Decimal)) else number(str(value).strip())
        if (found < 0 and not signed) or abs(found) > LARGEST:
            raise ValueError("not a number" if signed else "not a number of 0 or more")
        return found * scale

    return parse


def duration(unit: str) -> Callable[[Any], float]:
    """Return what reads a duration: a number in a unit, or a clock such as 1-02:03:04, in seconds."""
    in_unit = amount(unit)

    def parse(value: Any) -> float:
        if hasattr(value, "total_seconds"):
            return float(value.total_seconds())
        text = str(value).strip()
        return clock(text) if ":" in text else in_unit(value)

    return parse


def timer(unit: str) -> Callable[[Any], tuple[float, bool]]:
    """Return what reads a time: seconds since 1970 or text such as 2026-11-22T10:00:38, and whether it is in UTC."""
    scale = UNITS[unit.lower()] if unit else 1.0
    epoch = datetime(1970, 1, 1)

    def parse(value: Any) -> tuple[float, bool]:
        if is_null(value):
            return NAN, True
        own_zone = True
        if isinstance(value, datetime):
            own_zone = value.tzinfo is not None
            value = value.astimezone(UTC).replace(tzinfo=None) if own_zone else value
            seconds = (value - epoch).total_seconds()
        elif isinstance(value, (int, float)):
            seconds = float(value) * scale
        else:
            text = str(value).strip() if not isinstance(value, date) else f"{value}T00:00:00"
            if text.lstrip("-").replace(".", "", 1).isdigit():
                seconds = number(text) * scale
            else:
                when, own_zone = stamp(text)
                seconds = (when - epoch).total_seconds()
        if not FIRST_S <= seconds <= LAST_S:
            raise ValueError("not a time from 1970 to 2200")
        return seconds, own_zone

    return parse
