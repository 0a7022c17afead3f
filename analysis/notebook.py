"""A Jupyter notebook to begin with: coverage of a store, means with intervals, a picture, paired differences."""

from __future__ import annotations

import json
import os
import shlex
from html import escape
from pathlib import Path
from typing import Any

import xarray as xr
from faultsweep.sweeps.open import metric_names, open_results

from faultsweep.arguments import PATH, takes
from faultsweep.errors import InputError
from faultsweep.files import writing

_OPEN = """\
import faultsweep as fs

results = fs.open_results({place!r})
results"""
_COVERAGE = """\
status = results["status"]
codes = dict(zip(status.attrs["flag_meanings"].split(), status.attrs["flag_values"]))
{{name: int((status == code).sum()) for name, code in codes.items() if (status == code).any()}}"""
_MEANS = """\
from faultsweep.analysis.statistics import mean_interval

METRIC = {metric!r}  # one of: results.data_vars
X = {x!r}
mean = mean_interval(results[METRIC], results["status"])
mean.to_dataframe()[["mean", "low", "high", "n"]]"""
_CURVES = """\
import matplotlib.pyplot as plt

figure, axis = plt.subplots(figsize=(8, 5))
others = [dim for dim in mean["mean"].dims if dim != X and mean.sizes[dim] > 1]
curves = mean.stack(curve=others) if others else mean.expand_dims(curve=["all"])
for curve in curves["curve"].values[:12]:
    one = curves.sel(curve=curve)
    one = one.squeeze([dim for dim in one["mean"].dims if dim != X])
    label = ", ".join(map(str, curve)) if isinstance(curve, tuple) else str(curve)
    error = [(one["mean"] - one["low"]).fillna(0), (one["high"] - one["mean"]).fillna(0)]
    axis.errorbar(one[X].values.astype({kind}), one["mean"], error, marker="o", capsize=3, label=label)
units = results[METRIC].attrs.get("units", "")
axis.set(xlabel=X, ylabel=f"{{METRIC}} ({{units}})" if units not in ("", "1") else METRIC)
axis.set_title("Mean over replicates, 95 % confidence intervals")
axis.legend(frameon=False, title=", ".join(others))
axis.grid(alpha=0.3)"""
_DIFFERENCE = """\
from faultsweep.analysis.statistics import paired_difference

ALONG, BASELINE = {along!r}, {baseline!r}
against = paired_difference(results[METRIC], ALONG, BASELINE, results["status"], relative=True)
against.to_dataframe()[["mean", "low", "high"]]"""


@takes(store=PATH, path=PATH)
def write_notebook(store: str | Path, path: str | Path) -> None:
    """Write a notebook for a store; its paths are relative to the notebook's folder.

    Parameters
    ----------
    store : a store, a packed store, or the URL of either.
    path : of the notebook, which ends with ``.ipynb``; it is never replaced.

    Raises
    ------
    InputError
        The store cannot be opened or has nothing to plot over, or the file exists or cannot be written.
    """
    path = Path(path)
    if path.suffix != ".ipynb":
        raise InputError(f"{path}: the name of a notebook ends with .ipynb")
    if path.exists():
        raise InputError(f"{path}: exists already; remove it, or name another file")
    content = make_notebook(open_results(store), _place(str(store), path.parent))
    with writing(path):
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _place(store: str, folder: Path) -> str:
    return store if "://" in store else os.path.relpath(store, folder)


def make_notebook(results: xr.Dataset, place: str) -> dict[str, Any]:
    """Return the notebook (format 4.5) of results that are opened at ``place``."""
    metrics = metric_names(results)
    axes = [str(dim) for dim in results["status"].dims if dim != "replicate"]
    if not axes or not metrics:
        raise InputError(f"{place}: a sweep without axes or metrics has nothing to plot")
    varied = [name for name in axes if results.sizes[name] > 1] or axes
    x = next((name for name in varied if results[name].dtype.kind in "if"), varied[0])
    along = next((name for name in varied if name != x), x)
    baseline = results[along].values.tolist()[0]
    kind = "float" if results[x].dtype.kind in "if" else "object"
    fill = {"place": place, "metric": metrics[0], "x": x, "along": along, "baseline": baseline, "kind": kind}
    cells = [
        _markdown(_introduction(results, place)),
        _code(_OPEN.format(**fill)),
        _markdown("## Coverage\n\nHow many cells have each status. A `copy` is no observation of its own."),
        _code(_COVERAGE.format(**fill)),
        _markdown("## Means\n\nOver the replicates, with confidence intervals; copies do not count."),
        _code(_MEANS.format(**fill)),
        _code(_CURVES.format(**fill)),
        _markdown(
            f"## Differences\n\nRelative to {_line(f'{along} = {baseline}')}, replicate by replicate: all have the "
            "same jobs and failures, so these intervals are sharper than those of the means."
        ),
        _code(_DIFFERENCE.format(**fill)),
        _markdown(
            "## Single cells\n\n"
            f"    {_command('rerun', place, along, baseline)}   # bit by bit\n"
            f"    {_command('view', place, along, baseline)}    # what happened in it"
        ),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def _command(name: str, place: str, along: str, label: Any) -> str:
    return _line(f"faultsweep {name} {shlex.quote(place)} --select {shlex.quote(f'{along}={label}')}")


def _line(text: str) -> str:
    """Return text of a store, which a stranger may have written, as one line without markup."""
    return escape(" ".join(text.split()), quote=False)


def _introduction(results: xr.Dataset, place: str) -> str:
    shape = ", ".join(f"{name} ({results.sizes[name]})" for name in results["status"].dims)
    title = results.attrs.get("title") or results.attrs.get("name") or place
    lines = [f"# {_line(str(title))}", f"Axes: {_line(shape)}."]
    for name in ("licence", "citation", "acknowledgements"):
        if results.attrs.get(name):
            lines.append(f"{name.capitalize()}: {_line(str(results.attrs[name]))}")
    return "\n\n".join(lines)


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> dict[str, Any]:
    source = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
