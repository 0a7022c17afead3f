"""Two stores on one page: what a change has changed, with intervals."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.dashboard.choices import default_choices, scalar_metrics
from faultsweep.analysis.dashboard.overview import interval, table
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import label_in_words, quantity, row_label
from faultsweep.analysis.regions import policy_axis
from faultsweep.analysis.statistics import REPLICATE, mean_interval
from faultsweep.sweeps.open import has_result

from faultsweep.errors import InputError

_USUAL = ("mean_bounded_slowdown", "mean_wait_s", "utilisation")
_MOST_CHANGED = 10


class Difference:
    """What differs between a store and an earlier one, cell by cell, over the labels that both have.

    Attributes
    ----------
    cells, equal : cells with a result in both, and how many of these have equal main metrics, to the bit.
    rows : per label of the policies, and over all: words, metric in words, before, after, difference, its interval.
    most : the configurations that changed most, likewise.
    """

    def __init__(self, now: xr.Dataset, before: xr.Dataset) -> None:
        """Compare the usual metrics, or the main one; InputError if the stores have other axes or no cell in common."""
        if set(now["status"].dims) != set(before["status"].dims):
            raise InputError(
                f"the stores have other axes: {', '.join(map(str, now['status'].dims))} here, "
                f"{', '.join(map(str, before['status'].dims))} there; faultsweep compare says more"
            )
        main = default_choices(now).metric
        shared = [name for name in (main, *_USUAL) if name in scalar_metrics(now) and name in scalar_metrics(before)]
        names = list(dict.fromkeys(shared))
        old, new = xr.align(before[[*names, "status"]], now[[*names, "status"]], join="inner")
        new = new.transpose(*old["status"].dims)
        if not new["status"].size or not names:
            raise InputError("the stores have no cell and metric in common")
        both = (has_result(old["status"]) & has_result(new["status"])).load()
        self.cells = int(both.sum())
        if not self.cells:
            raise InputError("no cell has a result in both stores")
        policy = policy_axis(now)
        self.equal = self.cells
        self.rows: list[list[Any]] = []
        self.most: list[list[Any]] = []
        for name in names:
            both_stores = xr.concat([old[name].load(), new[name].load()], dim="store")
            pair = in_units_to_read(xr.Dataset({name: both_stores.assign_attrs(now[name].attrs)}), [name])
            values, words = pair[name].where(both), quantity(pair, name)
            if name == main:
                same = (old[name].values == new[name].values) | (
                    np.isnan(old[name].values) & np.isnan(new[name].values)
                )
                self.equal = int((same & both.values).sum())
                self.most = _most_changed(values, words)
            self.rows.append(["all", words, *_changed(values)])
            for label in now[policy].values if policy is not None else []:
                if label in values[policy].values and bool(both.sel({policy: label}).any()):
                    own = row_label(str(policy), label)
                    self.rows.append([own, words, *_changed(values.sel({policy: label}))])


def _changed(values: xr.DataArray) -> list[str]:
    """Return mean before, mean after, and the mean difference with its interval over replicates."""
    others = [dim for dim in values.dims if dim not in ("store", REPLICATE)]
    means = values.mean(others)
    difference = means.isel(store=1) - means.isel(store=0)
    found = mean_interval(difference, scale="identity")
    before, after = (float(means.isel(store=part).mean()) for part in (0, 1))
    text = interval(*(float(found[name]) for name in ("mean", "low", "high")))
    return [f"{before:.4g}", f"{after:.4g}", text]


def _most_changed(values: xr.DataArray, words: str) -> list[list[str]]:
    """Return the configurations whose means changed most, with the intervals of the differences."""
    found = mean_interval(values.isel(store=1) - values.isel(store=0), scale="identity")
    dims = [str(dim) for dim in found["mean"].dims]
    flat = np.abs(found["mean"].values).ravel()
    order = [row for row in np.argsort(-np.nan_to_num(flat), kind="stable")[:_MOST_CHANGED] if flat[row] > 0]
    rows = []
    for row in order:
        at = dict(zip(dims, np.unravel_index(int(row), found["mean"].shape), strict=True))
        one = found.isel(at)
        varied = [dim for dim in dims if values.sizes[dim] > 1]
        labels = ", ".join(label_in_words(values.to_dataset(name="own"), d, values[d].values[at[d]]) for d in varied)
        rows.append([labels, words, interval(*(float(one[name]) for name in ("mean", "low", "high")))])
    return rows


def difference_html(now: xr.Dataset, before: xr.Dataset) -> str:
    """Return the comparison as HTML; whatever a store says is text."""
    try:
        found = Difference(now, before)
    except InputError as error:
        return f"<p role='alert' class='alert'>{escape(str(error))}</p>"
    place = str(before.encoding.get("source", ""))
    text = (
        f"<p>Before: <code>{escape(place)}</code>. {found.equal:,} of {found.cells:,} cells that both have are equal "
        "to the bit in the main metric. Differences are after less before, replicate by replicate, with 95 % "
        "intervals; means are over the axes that are not named.</p>"
    )
    text += table(["Of", "Metric", "Before", "After", "Difference"], found.rows, "Differences")
    if found.most:
        head = ["Configuration", "Metric", "Difference"]
        text += "<p>Changed most:</p>" + table(head, found.most, "Changed most")
    return text
