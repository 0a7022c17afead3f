"""Metrics, parameters and their labels in words: one name for each, wherever it is shown."""

from __future__ import annotations

from math import isclose
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.describe import SCHEDULERS, machine_name, short_number
from faultsweep.analysis.figures.units import SUFFIX, unit_of

from faultsweep.units import SECONDS, time_unit

_ABBREVIATIONS = {"mtbf": "MTBF", "mttr": "MTTR", "ram": "RAM", "id": "ID"}
_DAYS_FROM_S = 1_728_000.0
"""Labels of 20 days and more are read in days, as times of results are."""


def quantity(data: xr.Dataset, name: str) -> str:
    """Return a metric or parameter in words, with its unit: ``mean_wait_s`` is "Mean wait (s)"."""
    unit = unit_of(data, name)
    known = data.variables[name].attrs if name in data.variables else {}
    words = words_of(name, str(known.get(SUFFIX, unit)))
    return f"{words} ({unit})" if unit and unit != "1" else words


def words_of(name: str, unit: str) -> str:
    """Return a name in words, without the unit that it ends with."""
    words = name.removesuffix(f"_{unit.replace(' ', '_')}") if unit else name
    words = " ".join(_ABBREVIATIONS.get(word, word) for word in words.split("_"))
    return words[:1].upper() + words[1:]


def in_words(data: xr.Dataset, name: str) -> str:
    """Return a metric or a parameter as it stands within a sentence: "checkpoint interval"."""
    words = quantity(data, name).partition(" (")[0]
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def row_label(axis: str, label: Any) -> str:
    """Return a label by itself: policies as papers print them, numbers without zeros at their ends."""
    if isinstance(label, str):
        return machine_name(label) if axis == "machine" else SCHEDULERS.get(label, label)
    return f"{label:g}"


def label_to_read(data: xr.Dataset, axis: str, label: Any) -> str:
    """Return a label of an axis with its unit: "4 h" for 14400 s. The label may be text, as links have it."""
    kind = data.variables[axis].dtype.kind if axis in data.variables else np.asarray(label).dtype.kind
    if kind not in "iuf":
        return row_label(axis, str(label))
    unit, value = unit_of(data, axis), float(label)
    if unit == "s":
        value, unit = _time_to_read(value)
    short = (f"{value:g}", f"{value:.12g}")  # 0.3 for 0.1 + 0.2
    text = next((own for own in short if isclose(float(own), value, rel_tol=1e-14)), str(label))
    return f"{text} {unit}" if unit and unit != "1" else text


def labels_to_read(data: xr.Dataset, axis: str) -> list[str]:
    """Return all labels of an axis with their unit; as the store has them where two would read alike."""
    labels = data.variables[axis].values.tolist()
    words = [label_to_read(data, axis, label) for label in labels]
    return words if len(set(words)) == len(words) else [str(label) for label in labels]


def label_in_words(data: xr.Dataset, axis: str, label: Any) -> str:
    """Return a label with what it is of: "checkpoint interval = 4 h"."""
    return f"{in_words(data, axis)} = {label_to_read(data, axis, label)}"


def range_in_words(data: xr.Dataset, axis: str, *ends: float) -> str:
    """Return places along an axis with what they are of, in one unit: "load scale 0.73 to 0.75"."""
    unit, divisor = unit_of(data, axis), 1.0
    if unit == "s":
        unit, divisor = time_unit(max(map(abs, ends)))
    text = f"{in_words(data, axis)} {' to '.join(f'{end / divisor:.4g}' for end in ends)}"
    return f"{text} {unit}" if unit and unit != "1" else text


def signed_number(value: float, digits: int) -> str:
    """Return a number in so many digits, with the sign of less than nothing that texts have."""
    return short_number(value, digits).replace("-", "−", 1) if value < 0 else short_number(value, digits)


def interval_in_words(low: float, high: float) -> str:
    """Return an interval: "4 to 21", "4 or more" where it has no end, and "none" where there is none."""
    if np.isnan(low) or np.isnan(high):
        return "none"
    known = [signed_number(end, 4) for end in (low, high) if np.isfinite(end)]
    if len(known) == 1:
        return f"{known[0]} {'or more' if np.isfinite(low) else 'or less'}"
    return " to ".join(known) or "open at both ends"


def _time_to_read(seconds: float) -> tuple[float, str]:
    """Return a time in the largest unit that loses nothing: a label is exact."""
    for unit in ("days", "h", "min"):
        value = seconds / SECONDS[unit]
        least = _DAYS_FROM_S / SECONDS["days"] if unit == "days" else 1.0
        if np.isfinite(value) and abs(value) >= least and float(f"{value:.4g}") * SECONDS[unit] == seconds:
            return value, unit
    return seconds, "s"
