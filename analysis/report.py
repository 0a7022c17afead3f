"""A store as one page that needs nothing else: what was run, what came out, how sure that is, and how to repeat it."""

from __future__ import annotations

import base64
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.choices import default_choices
from faultsweep.analysis.dashboard.view import figure_of
from faultsweep.analysis.effects import binned_effect, main_effect, variance_shares, varied
from faultsweep.analysis.figures.describe import describe_values, short_number
from faultsweep.analysis.figures.draw import draw_picture
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Panel
from faultsweep.analysis.figures.sweep import quantity, row_label
from faultsweep.analysis.open import RESULTS, count_cells, fixed_parameters, is_one_of, metric_names
from faultsweep.analysis.ranking import HIGHER_IS_BETTER
from faultsweep.analysis.regions import best_policies, policy_axis
from faultsweep.analysis.sensitivity import sampled_axes, sobol_indices
from faultsweep.analysis.warmup import MOST_RUNS, steady_means

from faultsweep.errors import InputError, unknown_name
from faultsweep.files import writing

USUAL_METRICS = ("mean_bounded_slowdown", "mean_wait_s", "utilisation")
_MOST_SHOWN = 12
_SMALL_SHARE = 0.01
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
)
_STYLE = """
body { font: 15px/1.45 sans-serif; color: #111; max-width: 60em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.7em } h2 { margin-top: 2em; border-bottom: 1px solid #999 } h3 { margin-top: 1.5em }
table { border-collapse: collapse; margin: .7em 0; font-size: .92em } th, td { padding: .2em .7em; text-align: left;
border-bottom: 1px solid #ccc; vertical-align: top } td.n { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100%; break-inside: avoid }
pre { white-space: pre-wrap; background: #f4f4f4; padding: .7em; font-size: .85em }
tr, h2, h3 { break-inside: avoid } h2, h3 { break-after: avoid }
.small { font-size: .85em } .warn { border-left: 4px solid #D55E00; padding-left: .8em }
@media print { body { font-size: 10pt; max-width: none; margin: 0 } }
"""


def write_report(data: xr.Dataset, path: Path, metrics: Sequence[str] | None = None, policy: str | None = None) -> None:
    """Write the report of a store as one HTML file without scripts, that asks nothing of a network.

    Parameters
    ----------
    data : results opened by ``open_results``; of a sweep that is not finished what there is, and it says so.
    path : the file.
    metrics : that are reported on; the usual ones, or the first three, if not given.
    policy : the axis whose labels are ranked; the scheduler, or the first axis of names, if not given.

    Raises
    ------
    InputError
        A metric or an axis that the store does not have, or no result at all.
    """
    chosen = _metrics(data, metrics)
    policy = policy_axis(data) if policy is None else policy
    if policy is not None and policy not in data["status"].dims:
        raise unknown_name("axis", policy, map(str, data["status"].dims))
    if not bool(is_one_of(data["status"], RESULTS).any()):
        raise InputError(f"{data.encoding.get('source', 'the store')}: no cell has a result yet; run the sweep first")
    parts = [_what_was_run(data), _coverage(data), _failures(data)]
    parts += [_of_metric(data, metric, policy) for metric in chosen]
    parts += [_steadiness(data), _provenance(data)]
    title = str(data.attrs.get("title") or data.attrs.get("name") or "sweep")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{_POLICY}<title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )
    with writing(path):
        path.write_text(page, encoding="utf-8")


def _metrics(data: xr.Dataset, wanted: Sequence[str] | None) -> list[str]:
    known = [name for name in metric_names(data) if data[name].dims == data["status"].dims]
    for name in wanted or ():
        if name not in known:
            raise unknown_name("metric", name, known)
    usual = [name for name in USUAL_METRICS if name in known]
    return list(wanted or usual or known[:3])


# Parts of the page


def _what_was_run(data: xr.Dataset) -> str:
    axes = []
    for dim in data["status"].dims:
        values = describe_values(data[dim].values.tolist())
        parameters = [str(name) for name in data.coords if data[name].dims == (dim,) and name != dim]
        axes.append([str(dim), data.sizes[dim], values, ", ".join(parameters)])
    fixed = fixed_parameters(data)
    named = set(tomllib.loads(str(data.attrs.get("spec", ""))).get("fixed", {}))
    held, unnamed = (
        "; ".join(f"{name} = {value}" for name, value in fixed.items() if (name in named) == wanted)
        for wanted in (True, False)
    )
    return (
        f"<h2>What was run</h2><p>{escape(str(data.attrs.get('target', 'simulator')))}, "
        f"{data['status'].size:,} cells.</p>"
        + _table(["axis", "labels", "values", "parameters that it sets"], axes)
        + (f"<p>The same in every cell: {escape(held)}.</p>" if held else "")
        + (f'<p class="small">By default, where they matter: {escape(unnamed)}.</p>' if unnamed else "")
    )


def _coverage(data: xr.Dataset) -> str:
    counts = count_cells(data)
    total = data["status"].size
    rows = [[name.replace("_", " "), count, f"{count / total:.1%}"] for name, count in counts.items()]
    text = "<h2>Coverage</h2>" + _table(["status", "cells", "share"], rows)
    if counts.get("pending"):
        text += _warning(
            f"The sweep is not finished: {counts['pending']:,} cells are pending. What follows is of the rest."
        )
    cut = counts.get("truncated", 0) + counts.get("truncated_copy", 0)
    if cut:
        text += _warning(
            f"{cut:,} cells were truncated at their horizon or a job's most restarts: their means are of what had "
            "finished, and would be others with a longer horizon."
        )
    return text


def _failures(data: xr.Dataset) -> str:
    failed = is_one_of(data["status"], ("failed", "failed_copy")).values
    if not failed.any() or "error" not in data:
        return "<h2>Failures</h2><p>No cell failed.</p>"
    cells = np.argwhere(failed)
    errors = data["error"].values[failed]
    first = {str(text): cells[np.flatnonzero(errors == text)[0]] for text in set(errors)}
    rows = []
    for text, count in Counter(map(str, errors)).most_common(_MOST_SHOWN):
        at = zip(data["status"].dims, first[text], strict=True)
        rows.append([count, text, ", ".join(f"{dim} = {data[dim].values[row]}" for dim, row in at)])
    return "<h2>Failures</h2>" + _table(["cells", "error", "first cell"], rows)


def _of_metric(data: xr.Dataset, metric: str, policy: str | None) -> str:
    words = quantity(data, metric)
    values = data[metric].load()
    text = f"<h2>{escape(words)}</h2>"
    if not bool(values.notnull().any()):
        return text + "<p>No cell has a value.</p>"
    if varied(values):
        choices = replace(default_choices(data), metric=metric)
        text += _picture(figure_of(data, choices)) + _effects(data, metric) + _interactions(data, metric)
    if policy is not None and data.sizes[policy] > 1:
        text += _regions(data, metric, policy)
    return text + _sensitivities(data, metric)


def _effects(data: xr.Dataset, metric: str) -> str:
    words, panels, notes = quantity(data, metric), [], []
    sampled = sampled_axes(data)
    for axis, table in sampled.items():
        for name in table["sample"]:
            binned = binned_effect(data[metric], axis, data[name].values)
            at, mean, low, high = (binned[part].values for part in ("x", "mean", "low", "high"))
            panels.append(Panel("", quantity(data, name), words, curves=[Curve(words, at, mean, low, high, LOOKS[0])]))
    for axis in [axis for axis in varied(data[metric]) if axis not in sampled][:_MOST_SHOWN]:
        found = main_effect(data[metric], axis)
        mean = found["mean"].values
        low, high = (mean + (found[bound] - found["effect"]).values for bound in ("low", "high"))
        labels, x = data[axis].values.tolist(), quantity(data, axis) if axis in data.coords else axis
        if isinstance(labels[0], str):
            names = [row_label(axis, label, short=True) for label in labels]
            panels.append(Panel("", x, words, bars=[Bars(words, mean, LOOKS[0], low, high)], categories=names))
        else:
            curve = Curve(words, np.asarray(labels, float), mean, low, high, LOOKS[0])
            panels.append(Panel("", x, words, curves=[curve]))
        if int(found["combinations"]) < int(found["of"]):
            notes.append(
                f"{axis}: over {int(found['combinations']):,} of {int(found['of']):,} combinations of the others"
            )
    caption = [
        "Each axis alone, the others averaged over; error bars are 95\u00a0% t intervals of the effect over replicates."
    ]
    if sampled:
        caption.append("Parameters of a sampled axis: means over bins of its points, and their intervals.")
    caption += [f"Compared where all labels have results: {'; '.join(notes)}."] if notes else []
    return "<h3>Main effects</h3>" + _picture(Figure("effects", f"Main effects on {words}", caption, panels))


def _interactions(data: xr.Dataset, metric: str) -> str:
    if sampled_axes(data):
        return ""  # a point of a sample is no factor: Sobol indices say what its parameters do
    try:
        shares = variance_shares(data[metric])
    except InputError as error:
        return f"<h3>Interactions</h3><p>{escape(str(error))}.</p>"
    rows = [
        [" × ".join(axes), f"{share:.1%}"]
        for axes, share in sorted(shares.items(), key=lambda item: -item[1])
        if len(axes) == 1 or share >= _SMALL_SHARE
    ]
    rest = 1 - sum(shares.values())
    return (
        "<h3>Interactions</h3><p>Shares of the variance between cells. A pair stands for what its two axes do together "
        f"beyond what each does alone; pairs below {_SMALL_SHARE:.0%} are left out. Three axes or more: "
        f"{max(rest, 0):.1%}.</p>" + _table(["axes", "share of the variance"], rows)
    )


def _regions(data: xr.Dataset, metric: str, policy: str) -> str:
    found = best_policies(data, metric, policy)
    if found.empty:
        return ""
    regions = list(found.columns[: list(found.columns).index("best")])
    averaged = [axis for axis in varied(data[metric]) if axis not in (policy, *regions)]
    rows = [
        [
            *(str(row[axis]) for axis in regions),
            row["best"],
            _number(row["mean"], row["low"], row["high"]),
            row["next"],
            _margin(row),
            "" if np.isnan(row["p"]) else f"{row['p']:.2g}",
            row["as_good"],
        ]
        for row in found.to_dict("records")
    ]
    which = "highest" if metric in HIGHER_IS_BETTER else "lowest"
    text = (
        f"<h3>Best {escape(policy)} per region</h3><p>The {which} mean is the best. The margin is how much worse the "
        "next one is, of the best's mean, by paired differences over replicates; intervals and p-values are corrected "
        "for all pairs of a region (Bonferroni, Holm). What cannot be told from the best at 95\u00a0% is as good."
    )
    text += f" Averaged over: {escape(', '.join(averaged))}.</p>" if averaged else "</p>"
    return text + _table([*regions, "best", "mean", "next", "margin", "p", "as good"], rows)


def _sensitivities(data: xr.Dataset, metric: str) -> str:
    text = ""
    for axis in sampled_axes(data):
        text += f"<h3>Sensitivities over {escape(axis)}</h3>"
        try:
            found = sobol_indices(data, metric, axis)
        except InputError as error:
            text += f"<p>{escape(str(error))}.</p>"
            continue
        frame = found.to_dataframe().reset_index()
        rows = []
        for row in frame.to_dict("records"):
            labels = [str(row[dim]) for dim in found.dims]
            indices = [f"{row[kind]:.2f} ± {row[f'{kind}_half']:.2f}" for kind in ("first", "total") if kind in row]
            rows.append([*labels, *indices])
        heads = [kind for kind in ("first", "total") if kind in found]
        text += (
            "<p>Sobol indices: the share of the variance that a parameter causes alone (first), and with all its "
            "interactions (total); ± is half the width of the 95\u00a0% interval.</p>"
        ) + _table([*map(str, found.dims), *heads], rows)
    return text


def _steadiness(data: xr.Dataset) -> str:
    """Return what warm-up deletion finds in the waits of a sweep that keeps per-job results."""
    if "jobs_offset" not in data or data["status"].size > MOST_RUNS:
        return ""
    found = steady_means(data)
    steady = found["steady"].values & is_one_of(data["status"], RESULTS).values
    runs = int(np.isfinite(found["mean"].values).sum())
    text = f"{int(steady.sum()):,} of {runs:,} runs have a steady part by MSER-5 over the jobs' waits."
    if steady.any() and "mean_wait_s" in data:
        deleted = found["deleted"].values[steady]
        change = found["mean"].values[steady] / data["mean_wait_s"].values[steady] - 1
        middle = f"{np.nanmedian(np.abs(change)):.1%}" if np.isfinite(change).any() else "nothing"
        text += (
            f" There, warm-up is {np.median(deleted):.1%} of the jobs (median; at most {deleted.max():.1%}), and "
            f"without it the mean wait differs by {middle} (median). The means above are of all jobs."
        )
    return f"<h2>Warm-up</h2><p>{escape(text)}</p>"


def _provenance(data: xr.Dataset) -> str:
    runs = json.loads(data.attrs.get("provenance") or "[]")
    runs = runs if isinstance(runs, list) else [runs]
    rows = [[name, _plain(value)] for run in runs[-1:] for name, value in run.items() if value not in ("", None)]
    pins = json.loads(data.attrs.get("pins") or "{}")
    which = "One run:" if len(runs) == 1 else f"{len(runs)} runs; the last one:"
    text = f"<h2>Provenance</h2><p>{which}</p>" + _table(["", ""], rows)
    if pins:
        text += "<p>Content that the results depend on:</p>" + _table(
            ["what", "hash"], [[*pair] for pair in pins.items()]
        )
    text += f"<p>Model version {escape(str(data.attrs.get('model_version', '')))}. The spec:</p>"
    return text + f"<pre>{escape(str(data.attrs.get('spec', '')))}</pre>"


# What parts are made of


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = ""
    for row in rows:
        cells = [f"{value:,}" if isinstance(value, int) else str(value) for value in row]
        kinds = [' class="n"' if isinstance(value, int) else "" for value in row]
        body += "<tr>" + "".join(f"<td{kind}>{escape(c)}</td>" for kind, c in zip(kinds, cells, strict=True)) + "</tr>"
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def _warning(text: str) -> str:
    return f'<p class="warn">{escape(text)}</p>'


def _picture(figure: Figure) -> str:
    """Return a figure as an image in the page; as vectors, so that it is sharp on paper."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        draw_picture(figure, path)
        content = base64.b64encode(path.read_bytes()).decode()
    words = escape(f"{figure.title}. {' '.join(figure.caption)}", quote=True)
    return f'<img alt="{words}" src="data:image/svg+xml;base64,{content}">'


def _plain(value: Any) -> str:
    """Return a value of the provenance in words: python 3.11.7, numpy 2.4.6."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(mean: float, low: float, high: float) -> str:
    return short_number(mean, 4) + ("" if np.isnan(low) else f" [{short_number(low, 4)}, {short_number(high, 4)}]")


def _margin(row: pd.Series | dict[str, Any]) -> str:
    if np.isnan(row["margin"]):
        return ""
    bounds = "" if np.isnan(row["margin_low"]) else f" [{row['margin_low']:.1%}, {row['margin_high']:.1%}]"
    return f"{row['margin']:.1%}{bounds}"
