"""The best policy in every region of a sweep, with its margin over the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.effects import variance_shares, varied
from faultsweep.analysis.ranking import higher_is_better, rank
from faultsweep.analysis.statistics import REPLICATE, check_axes, count_observations
from faultsweep.simcore.parameters import MEASURING
from faultsweep.sweeps.open import check_results, metric_names
from numpy.typing import NDArray

from faultsweep.arguments import NAMES, TEXT, takes
from faultsweep.errors import InputError, unknown_name

MOST_REGIONS = 40


def policy_axis(data: xr.Dataset) -> str | None:
    """Return the axis whose labels are compared: the scheduler, or else the first axis of names with two or more."""
    measured = measuring_axes(data)
    axes = [axis for axis in varied(data["status"]) if data[axis].dtype.kind not in "iuf" and axis not in measured]
    return "scheduler" if "scheduler" in axes else next(iter(axes), None)


def measuring_axes(data: xr.Dataset) -> list[str]:
    """Return the axes along which it differs what is measured, such as whose jobs; labels of theirs have no order."""
    return list(measured_groups(data))


def measured_groups(data: xr.Dataset) -> dict[str, NDArray[np.int64]]:
    """Return, for each axis along which it differs what is measured, the number of the group of each label.

    Labels of a group measure the same: an axis may set an owner together with a policy, and policies of one owner are
    compared.
    """
    columns = _measured_columns(data)
    found = {}
    for axis in dict.fromkeys(axis for axis, _ in columns):
        own = zip(*(data[name].values.tolist() for at, name in columns if at == axis), strict=True)
        found[axis] = pd.factorize(pd.Series(list(own), dtype=object))[0].astype(np.int64)
    return found


def measured_names(data: xr.Dataset) -> list[str]:
    """Return what has a Pareto front for each value: an axis each label of which measures something else, or the
    parameters that say it where labels of an axis share them."""
    found: list[str] = []
    columns = _measured_columns(data)
    for axis, groups in measured_groups(data).items():
        whole = len(np.unique(groups)) == len(groups)
        found += [axis] if whole else [name for at, name in columns if at == axis]
    return found


def _measured_columns(data: xr.Dataset) -> list[tuple[str, str]]:
    """Return the parameters that say what is measured and differ along an axis, as (axis, parameter)."""
    if data.attrs.get("target", "simulator") != "simulator":
        return []
    names = sorted(MEASURING & set(map(str, data.coords)))
    return [
        (axis, name)
        for axis in varied(data["status"])
        for name in names
        if data[name].dims == (axis,) and len(set(data[name].values.tolist())) > 1
    ]


def region_axes(values: xr.DataArray, policy: str) -> list[str]:
    """Return the axes that make regions: those that matter most, while there are at most 40 regions."""
    others = [axis for axis in varied(values) if axis != policy]
    try:
        shares = variance_shares(values)
    except InputError:
        shares = {}
    chosen: list[str] = []
    count = 1
    for axis in sorted(others, key=lambda axis: -shares.get((axis,), 0.0)):
        if count * values.sizes[axis] <= MOST_REGIONS:
            chosen.append(axis)
            count *= values.sizes[axis]
    return [axis for axis in others if axis in chosen]


@takes(metric=TEXT, policy=TEXT, regions=NAMES)
def best_policies(
    data: xr.Dataset, metric: str, policy: str, regions: Sequence[str] | None = None, level: float = 0.95
) -> pd.DataFrame:
    """Return the best label of an axis in every region, with its margin over the next one.

    Parameters
    ----------
    data, metric : results and the metric that decides; ``ranking.higher_is_better`` says whether more of it is better.
    policy : the axis whose labels are compared.
    regions : axes whose combinations of labels are the regions; those that matter most if not given. Axes that are
        neither are averaged over, within each replicate, where all labels of ``policy`` have a result.
    level : of the intervals; those of margins hold together over the pairs of a region.

    Returns
    -------
    A row per region that has results: its labels; ``best`` and its ``mean, low, high``; ``next``, the ``margin`` to it
    (how much worse it is, of the best's mean) with ``margin_low, margin_high``; the adjusted ``p``; and ``as_good``,
    the labels that do not differ significantly from the best.

    Raises
    ------
    InputError
        There is no such metric or axis, or nothing says whether more of the metric is better.
    """
    check_results(data)
    _check_names(data, metric, regions or ())
    values, higher = data[metric].load(), higher_is_better(data, metric)
    status: xr.DataArray | None = data["status"]
    if policy not in values.dims:
        raise unknown_name("axis", policy, map(str, values.dims))
    check_axes(values.dims)
    chosen = region_axes(values, policy) if regions is None else list(regions)
    averaged = [dim for dim in values.dims if dim not in (policy, REPLICATE, *chosen) and values.sizes[dim] > 1]
    single = [dim for dim in values.dims if values.sizes[dim] == 1 and dim not in (policy, REPLICATE)]
    values, status = values.squeeze(single, drop=True), data["status"].squeeze(single, drop=True)
    if averaged:
        values, status = values.where(values.notnull().all(policy)).mean(averaged), None
    rows = []
    for labels in product(*(data[axis].values.tolist() for axis in chosen)):
        at = dict(zip(chosen, labels, strict=True))
        here = None if status is None else status.sel(at)
        table = rank(values.sel(at), policy, here, level, higher)
        if table.sizes[policy]:
            rows.append({**at, **_row(table, policy)})
    return pd.DataFrame(rows)


def _check_names(data: xr.Dataset, metric: str, regions: Sequence[str]) -> None:
    """Raise InputError for a metric or an axis that results do not have."""
    metrics = [name for name in metric_names(data) if REPLICATE in data[name].dims]
    if metric not in metrics:
        raise unknown_name("metric", metric, metrics)
    axes = [str(dim) for dim in data["status"].dims if dim != REPLICATE]
    for axis in regions:
        if axis not in axes:
            raise unknown_name("axis", axis, axes, where="regions")


def is_as_good(row: Mapping[str, Any], label: str) -> bool:
    """Tell whether a label does not differ significantly from the best of a row; labels may have commas."""
    return f", {label}, " in f", {row['as_good']}, "


def not_significant(values: xr.DataArray, status: xr.DataArray, row: Mapping[str, Any]) -> str:
    """Return what follows a margin that is not significant; nothing behind one that is."""
    if not is_as_good(row, row["next"]):
        return ""
    one = int(count_observations(values, status).max()) < 2
    return ": one replicate cannot tell them apart" if one else ": no significant difference"


def _row(table: xr.Dataset, policy: str) -> dict[str, Any]:
    labels = [str(label) for label in table[policy].values]
    best = {name: float(table[name][0]) for name in ("mean", "low", "high")}
    row: dict[str, Any] = {"best": labels[0], **best, "next": "", "margin": np.nan}
    row |= {"margin_low": np.nan, "margin_high": np.nan, "p": np.nan, "as_good": ""}
    if len(labels) > 1:
        margin, low, high = _margin(table)
        row |= {"next": labels[1], "margin": margin, "margin_low": low, "margin_high": high, "p": float(table["p"][1])}
        row["as_good"] = ", ".join(
            label for label, as_good in zip(labels, table["as_good"].values, strict=True) if as_good
        )
    return row


def _margin(table: xr.Dataset) -> tuple[float, float, float]:
    """Return how much worse the second label is, as a share of the best's mean, with the bounds of its interval."""
    shares = [float(table[f"ratio{bound}"][1]) - 1 for bound in ("", "_low", "_high")]
    if np.isnan(shares[0]):
        scale = abs(float(table["mean"][0])) or np.nan
        shares = [float(table[f"difference{bound}"][1]) / scale for bound in ("", "_low", "_high")]
    sign = 1 if shares[0] >= 0 else -1
    low, high = sorted(sign * share for share in shares[1:])
    return abs(shares[0]), low, high
