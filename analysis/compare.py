"""Comparing two stores cell by cell: which cells differ, in what, and by how much."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.shown import with_plain_labels
from faultsweep.simcore.engine.metrics import MEASURED
from faultsweep.sweeps.open import fixed_parameters, has_result, metric_names, open_results, unit_of
from numpy.typing import NDArray

from faultsweep.arguments import NAMES, PATH, takes
from faultsweep.errors import InputError, unknown_name

_LISTED = 20


@dataclass(frozen=True)
class MetricDifference:
    """How one metric differs between two stores, over the cells that have a result in both.

    Attributes
    ----------
    metric, unit : its name and unit.
    cells : how many cells differ, of ``compared``.
    mean : mean of B - A over the compared cells.
    largest, relative : B - A, and that over |A|, of the cell with the largest relative difference.
    at : the labels of that cell.
    a, b : its values. Times differ by seconds; text, which has no difference, by NaN.
    """

    metric: str
    unit: str
    cells: int
    compared: int
    mean: float
    largest: float
    relative: float
    at: dict[str, Any]
    a: Any
    b: Any


@dataclass
class Comparison:
    """What differs between the stores A and B.

    Attributes
    ----------
    a, b : the stores.
    settings : name -> (value in A, value in B) of fixed parameters, model version, target and pins that differ.
    rows : axis -> (labels only in A, labels only in B).
    both, only_a, only_b : cells with a result in both, or in one store (among those whose labels both have).
    equal : cells of both whose metrics are equal, to the bit or within the tolerance.
    differing : the labels of cells that differ, the worst first, each with its worst metric.
    metrics : the metrics that differ, in the order of the stores.
    only_metrics : metrics that only one of the stores has.
    """

    a: str
    b: str
    settings: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    rows: dict[str, tuple[list[Any], list[Any]]] = field(default_factory=dict)
    both: int = 0
    only_a: int = 0
    only_b: int = 0
    equal: int = 0
    differing: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[MetricDifference] = field(default_factory=list)
    only_metrics: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))

    @property
    def same(self) -> bool:
        """Tell whether both have the same cells with the same results."""
        return self.equal == self.both and not self.only_a and not self.only_b and not self.rows


@takes(a=PATH, b=PATH, metrics=NAMES)
def compare(a: str | Path, b: str | Path, *, metrics: Sequence[str] = (), tolerance: float = 0.0) -> Comparison:
    """Compare the results of two stores, cell by cell, by the labels of their axes.

    Parameters
    ----------
    a, b : stores, packed stores, or URLs of either.
    metrics : the metrics to compare; all that both have, but for those that are measured, if none is named.
    tolerance : relative differences up to this count as equal; 0: equal to the bit.

    Raises
    ------
    InputError
        One cannot be opened, they have different axes, a metric is unknown, or the tolerance is no such number.
    """
    if not isinstance(tolerance, int | float) or not 0 <= tolerance <= sys.float_info.max:
        raise InputError(f"tolerance: expected a number of 0 or more, got {tolerance!r:.60}")
    first, second = open_results(a), open_results(b)
    first, second = _with_all_axes(first, second, str(a)), _with_all_axes(second, first, str(b))
    first, second = with_plain_labels(first), with_plain_labels(second)
    found = Comparison(str(a), str(b), _settings(first, second))
    dims = [str(dim) for dim in first["status"].dims]
    shared = {}
    for dim in dims:
        left, right = first[dim].values.tolist(), second[dim].values.tolist()
        shared[dim] = [label for label in left if label in set(right)]
        only = [label for label in left if label not in set(right)], [label for label in right if label not in left]
        if any(only):
            found.rows[dim] = only
    one, two = (_at(data, shared).transpose(*dims, ...) for data in (first, second))
    known = has_result(one["status"]).values, has_result(two["status"]).values
    both = known[0] & known[1]
    found.both, found.only_a, found.only_b = (
        int(part.sum()) for part in (both, known[0] & ~known[1], known[1] & ~known[0])
    )
    names = _metrics(one, two, metrics, found)
    _compare_cells(one, two, names, both, tolerance, found)
    return found


def _with_all_axes(data: xr.Dataset, other: xr.Dataset, place: str) -> xr.Dataset:
    """Return results with an axis of one row for what is an axis in the other store and fixed here."""
    fixed = fixed_parameters(data)
    axes = list(map(str, data["status"].dims))
    lacking = [str(dim) for dim in other["status"].dims if dim not in axes]
    unknown = [dim for dim in lacking if dim not in fixed]
    if unknown:
        raise InputError(
            f"{place}: {' and '.join(unknown)}: neither an axis nor fixed here; the axes are {', '.join(axes)} here and"
            f" {', '.join(map(str, other['status'].dims))} in the other store"
        )
    return data.expand_dims({dim: [fixed[dim]] for dim in lacking})


def _at(data: xr.Dataset, labels: Mapping[str, Sequence[Any]]) -> xr.Dataset:
    """Return the rows with these labels, in this order."""
    rows = {}
    for dim, wanted in labels.items():
        row_of = {label: row for row, label in enumerate(data[dim].values.tolist())}
        rows[dim] = [row_of[label] for label in wanted]
    return data.isel(rows)


def _settings(a: xr.Dataset, b: xr.Dataset) -> dict[str, tuple[Any, Any]]:
    """Return what differs in fixed parameters (of both stores), model version, target and content hashes."""
    fixed = fixed_parameters(a), fixed_parameters(b)
    pins = json.loads(a.attrs.get("pins", "{}")), json.loads(b.attrs.get("pins", "{}"))
    out = {}
    for one, two in (fixed, pins):
        out.update({name: (one[name], two[name]) for name in one if name in two and one[name] != two[name]})
    for name in ("model_version", "target"):
        if a.attrs.get(name) != b.attrs.get(name):
            out[name] = (a.attrs.get(name), b.attrs.get(name))
    return out


def _metrics(a: xr.Dataset, b: xr.Dataset, wanted: Sequence[str], found: Comparison) -> list[str]:
    left, right = metric_names(a), metric_names(b)
    shared = [name for name in left if name in right]
    found.only_metrics = [n for n in left if n not in right], [n for n in right if n not in left]
    for name in wanted:
        if name not in shared:
            raise unknown_name("metric", name, shared, where="--metric")
    return list(wanted) or [name for name in shared if name not in MEASURED]


def _compare_cells(
    a: xr.Dataset, b: xr.Dataset, names: Sequence[str], both: NDArray[np.bool_], tolerance: float, found: Comparison
) -> None:
    """Compare metric by metric (one at a time is in memory), and note each cell's worst metric."""
    worst = np.zeros(both.shape)
    worst_metric = np.full(both.shape, -1, dtype=np.int16)
    for number, name in enumerate(names):
        one, two = (data[name].values[both] for data in (a, b))
        if one.shape != two.shape:
            raise InputError(f"{name}: has {one.shape[1:]} numbers per cell in {found.a}, {two.shape[1:]} in {found.b}")
        relative = _relative(one, two)
        if not (relative > tolerance).any():
            continue
        relative = relative.reshape(len(one), -1)
        component = relative.argmax(1)
        relative = relative.max(1)
        cells = np.argwhere(both)
        at = int(relative.argmax())
        x, y = (v.reshape(len(v), -1)[at, component[at]] for v in (one, two))
        difference = _numbers(two) - _numbers(one)
        if np.iscomplexobj(difference):
            difference = np.abs(difference)
        size = difference.reshape(len(one), -1)[at, component[at]]
        mean = np.nan_to_num(difference).mean() if one.dtype.kind != "O" else np.nan
        found.metrics.append(
            MetricDifference(
                name,
                unit_of(a[name]),
                int((relative > tolerance).sum()),
                len(one),
                float(mean),
                float(size),
                float(relative[at]),
                _labels(a, cells[at]),
                _plain(x),
                _plain(y),
            )
        )
        more = np.zeros(both.shape)
        more[both] = np.where(relative > tolerance, relative, 0)
        worst_metric[more > worst] = number
        worst = np.maximum(worst, more)
    different = np.flatnonzero(worst_metric >= 0)
    found.equal = found.both - len(different)
    order = different[np.argsort(-worst.ravel()[different], kind="stable")][:_LISTED]
    for cell in order:
        rows = tuple(int(row) for row in np.unravel_index(int(cell), both.shape))
        name = names[int(worst_metric[rows])]
        found.differing.append(
            {**_labels(a, rows), "metric": name, "a": _value(a, name, rows), "b": _value(b, name, rows)}
        )


def _relative(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Return |B - A| / max(|A|, |B|): 0 if equal to the bit or both NaN, 1 if one is NaN, or for other text."""
    equal = a == b
    if a.dtype.kind in "fcMm":
        equal |= (a != a) & (b != b)
    if a.dtype.kind == "f":
        equal &= (np.signbit(a) == np.signbit(b)) | np.isnan(a)
    one, two = _numbers(a), _numbers(b)
    size = np.fmax(np.abs(one), np.abs(two))
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(size > 0, np.abs(two - one) / size, 0.0)
    least = np.finfo(float).tiny  # of whole numbers that differ by less than float64 tells
    return np.where(equal, 0.0, np.where(np.isfinite(relative), np.maximum(relative, least), 1.0))


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as numbers, times in seconds; NaN for text."""
    if values.dtype.kind == "M":
        values = values - np.datetime64(0, "s")
    if values.dtype.kind == "m":
        return np.asarray(values / np.timedelta64(1, "s"))
    if values.dtype.kind in "fc":
        return values
    return values.astype(float) if values.dtype.kind in "iub" else np.full(values.shape, np.nan)


def _plain(value: Any) -> Any:
    """Return a value as a number or text."""
    if isinstance(value, np.datetime64 | np.timedelta64 | np.complexfloating):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _value(data: xr.Dataset, name: str, rows: tuple[int, ...]) -> Any:
    values = np.asarray(data[name].values[rows])
    if values.dtype.kind in "fiub":
        return values.tolist()
    return _plain(values[()]) if values.ndim == 0 else [_plain(value) for value in values.ravel()]


def _labels(data: xr.Dataset, rows: Sequence[Any]) -> dict[str, Any]:
    return {str(dim): data[dim].values.tolist()[int(row)] for dim, row in zip(data["status"].dims, rows, strict=True)}
