"""A store as one page that needs nothing else: the verdict, what it rests on, how sure it is, and how to repeat it."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Panel
from faultsweep.analysis.figures.layout import DARK, LIGHT, caption_of
from faultsweep.analysis.figures.picture import svg_text
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import in_words, label_to_read, quantity, row_label
from faultsweep.analysis.ranking import higher_is_better
from faultsweep.analysis.regions import best_policies, is_as_good, policy_axis
from faultsweep.analysis.sensitivity import sampled_axes, sobol_indices
from faultsweep.analysis.shown import with_numbers_and_names
from faultsweep.analysis.statistics import REPLICATE, count_observations
from faultsweep.analysis.verdict import (
    Verdict,
    describe_promise,
    how_much_worse,
    scope_of,
    second_place,
    selected,
    selection_of,
)
from faultsweep.analysis.warmup import MOST_RUNS, steady_means
from faultsweep.simcore.parameters import PARAMETERS, canonical, inert, run_of
from faultsweep.sweeps.open import RESULTS, check_results, count_cells, fixed_parameters, is_one_of, metric_names
from faultsweep.sweeps.store.opener import stored_spec

from faultsweep.arguments import NAMES, PATH, TEXT, takes
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import require
from faultsweep.files import writing

USUAL_METRICS = ("mean_bounded_slowdown", "mean_wait_s", "utilisation")
_MOST_SHOWN = 12
_MOST_ROWS = 60  # of the table of a selection
_OF_ROW = ("worse", "worse_low", "worse_high")
_SMALL_SHARE = 0.01
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
)
_WIDE_IN, _NARROW_IN, _NARROW_PX = 8.6, 3.9, 640
"""Widths of pictures, and of the window below which the narrow ones are shown."""
_MOST_CONFIGURATIONS = 300  # that are asked which parameters matter in them
_STYLE = (
    ":root{color-scheme:light dark;"
    f"--paper:light-dark({LIGHT.paper},{DARK.paper});--ink:light-dark({LIGHT.ink},{DARK.ink});"
    f"--faint:light-dark({LIGHT.faint},{DARK.faint});--grid:light-dark({LIGHT.grid},{DARK.grid})}}"
    """
body { font: 16px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 54rem;
  margin: 0 auto; padding: 1rem; box-sizing: border-box }
h1 { font-size: 1.5rem; margin: .3em 0 } h2 { font-size: 1.2rem; margin: 1.6em 0 .4em;
  border-bottom: 1px solid var(--grid) } h3 { font-size: 1rem; margin: 1em 0 .3em }
.verdict { font-size: 1.2rem; margin: .4em 0 } .wide { overflow-x: auto }
table { border-collapse: collapse; margin: .5em 0; font-size: .92em } th, td { padding: .15em .7em .15em 0;
  text-align: left; border-bottom: 1px solid var(--grid); vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
img { max-width: 100%; height: auto; display: block } .narrow-only { display: none }
figure { margin: .5em 0; break-inside: avoid }
figcaption, .small { font-size: .85em; color: var(--faint) }
.provenance { overflow-wrap: anywhere } .provenance td:first-child { overflow-wrap: normal }
pre { white-space: pre-wrap; font-size: .8em; border-left: 3px solid var(--grid); padding-left: .7em }
tr, h2, h3 { break-inside: avoid } h2, h3 { break-after: avoid }
.warn { border-left: 4px solid #D55E00; padding-left: .8em }
@media (max-width: """
    f"{_NARROW_PX}px"
    """) { .wide-only { display: none } .narrow-only { display: block } }
@page { size: A4; margin: 14mm }
@media print { :root { color-scheme: light } body { font-size: 9pt; max-width: none; padding: 0; line-height: 1.3 }
  h2 { margin: .8em 0 .3em } h3, p, table, figure { margin: .3em 0 } figure img { max-height: 70mm; margin: 0 auto }
  .effects { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 0 4mm } .effects img { max-height: 230mm }
  .effects .wide-only { display: none } .effects .narrow-only { display: block }
  body { font-size: 8.5pt } .provenance { columns: 2; font-size: .75em } .wide { overflow: visible } }
"""
)


@takes(path=PATH, metrics=NAMES, policy=TEXT)
def write_report(
    data: xr.Dataset, path: str | Path, metrics: Sequence[str] | None = None, policy: str | None = None
) -> None:
    """Write the report of a store as one HTML file without scripts, that asks nothing of a network.

    Parameters
    ----------
    data : results opened by ``open_results``; of a sweep that is not finished what there is, and it says so.
    path : the file.
    metrics : that are reported on; the one that a selection decides by, and the usual ones or the first, if not given.
    policy : the axis whose labels are ranked; the scheduler, or the first axis of names, if not given.

    Raises
    ------
    InputError
        A metric or an axis that the store does not have, or no result at all.
    """
    require("a report", "matplotlib", "scipy")
    check_results(data)
    data = with_numbers_and_names(data)
    chosen = _metrics(data, metrics)
    policy = policy_axis(data) if policy is None else policy
    if policy is not None and policy not in (axes := [str(dim) for dim in data["status"].dims if dim != REPLICATE]):
        raise unknown_name("axis", policy, axes)
    if not bool(is_one_of(data["status"], RESULTS).any()):
        raise InputError(f"{_source(data)}: no cell has a result yet; run the sweep first")
    shown = in_units_to_read(data, chosen)
    with np.errstate(over="ignore", invalid="ignore"):  # means of infinite numbers are infinite, or none
        verdict, why = _selected(shown)
        ranked = [name for name in chosen if verdict is None or name != verdict.decides]
        regions = _best_per_region(shown, ranked, policy)
        parts = [_verdict(shown, ranked, policy, regions, verdict) + why]
        parts += [_warnings(data), _first_figure(shown, chosen[0])]
        parts += [_effects(shown, chosen), _importance(shown, chosen), _sensitivities(shown, chosen)]
        parts += [
            _regions(shown, regions, policy, verdict),
            _failures(data),
            _steadiness(data),
            _provenance(data),
        ]
    title = str(data.attrs.get("title") or data.attrs.get("name") or "sweep")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{_POLICY}<title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{''.join(parts)}</body></html>\n"
    )
    with writing(Path(path)):
        Path(path).write_text(page, encoding="utf-8")


def _source(data: xr.Dataset) -> str:
    return str(data.encoding.get("source", "the store"))


def _metrics(data: xr.Dataset, wanted: Sequence[str] | None) -> list[str]:
    known = [name for name in metric_names(data) if data[name].dims == data["status"].dims]
    for name in wanted or ():
        if name not in known:
            raise unknown_name("metric", name, known)
    usual = [name for name in USUAL_METRICS if name in known] or known[:3]
    best = selection_of(data)
    if best is not None:  # the figure below the verdict is of the metric that decides
        usual = list(dict.fromkeys([best.metric, *usual]))[: max(1, len(usual))]
    if not usual:
        raise InputError(f"{_source(data)}: the store has no metric with a number for each simulation to report")
    return list(wanted or usual)


# Parts of the page


_DEFAULTS = "Defaults that matter here (what is off is left out)"


def _is_off(value: Any) -> bool:
    return value in (0, -1, np.inf, "none", "")


def _what_was_run(data: xr.Dataset) -> str:
    axes = []
    for dim in data["status"].dims:
        values = describe_values(data[dim].values.tolist())
        parameters = [str(name) for name in data.coords if data[name].dims == (dim,) and name != dim]
        axes.append([str(dim), data.sizes[dim], values, ", ".join(parameters)])
    fixed = fixed_parameters(data)
    named = set(stored_spec(data.attrs).get("fixed", {}))
    on = [name for name, value in fixed.items() if name not in named and (name == "seed" or not _is_off(value))]
    matter = named | _that_matter(data, on)
    held, unnamed = (
        "; ".join(f"{name} = {value}" for name, value in fixed.items() if name in matter and (name in named) == wanted)
        for wanted in (True, False)
    )
    return (
        f"<h2>What was run</h2><p>{escape(str(data.attrs.get('target', 'simulator')))}, "
        f"{data['status'].size:,} cells.</p>"
        + _table(["axis", "labels", "values", "parameters that it sets"], axes)
        + (f"<p>The same in every cell: {escape(held)}.</p>" if held else "")
        + (f'<p class="small">{_DEFAULTS}: {escape(unnamed)}.</p>' if unnamed else "")
    )


def _that_matter(data: xr.Dataset, names: Iterable[str]) -> set[str]:
    """Return the parameters that do something in some configuration of the sweep; of a function of one's own all."""
    if data.attrs.get("target", "simulator") != "simulator":
        return set(names)
    found: set[str] = set()
    for config in _configurations(data):
        found |= {name for name in names if name in PARAMETERS} - inert(config) - run_of(config).idle()
    return found


def _configurations(data: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yield canonical configurations of the sweep: of every combination of rows, or of so many spread over them."""
    dims = [dim for dim in data["status"].dims if dim != REPLICATE]
    sizes = [data.sizes[dim] for dim in dims]
    count = int(np.prod(sizes))
    for cell in np.unique(np.linspace(0, count - 1, min(count, _MOST_CONFIGURATIONS)).astype(int)):
        place = dict(zip(dims, np.unravel_index(cell, sizes), strict=True))
        row = data.coords.to_dataset().isel(place)
        own = {str(name): row[name].item() for name in row.coords if name in PARAMETERS and row[name].ndim == 0}
        fixed = {name: value for name, value in fixed_parameters(data).items() if name in PARAMETERS}
        try:
            yield canonical({**fixed, **own})
        except InputError:
            continue  # a combination that the spec excludes


def _coverage(data: xr.Dataset) -> str:
    total = data["status"].size
    rows = [[name.replace("_", " "), count, f"{count / total:.1%}"] for name, count in count_cells(data).items()]
    return "<h3>Coverage</h3>" + _table(["status", "cells", "share"], rows)


def _warnings(data: xr.Dataset) -> str:
    """Return what a reader has to know before the verdict is believed."""
    counts, text = count_cells(data), ""
    if counts.get("pending"):
        text += _warning(
            f"The sweep is not finished: {counts['pending']:,} cells are pending. This page covers the others."
        )
    cut = counts.get("truncated", 0) + counts.get("truncated_copy", 0)
    if cut:
        text += _warning(
            f"{cut:,} cells were truncated at their horizon or a job's most restarts: their means cover only jobs that "
            "had finished, and would differ with a longer horizon."
        )
    failed = counts.get("failed", 0) + counts.get("failed_copy", 0)
    return text + (_warning(f"{failed:,} cells failed; their errors are below.") if failed else "")


def _best_per_region(data: xr.Dataset, metrics: Sequence[str], policy: str | None) -> dict[str, pd.DataFrame]:
    """Return the best policies of every region by each metric that has a better end and differs between cells."""
    if policy is None or data.sizes[policy] < 2:
        return {}
    known = [name for name in metrics if _has_direction(data, name)]
    return {name: best_policies(data, name, policy) for name in _with_values(data, known)}


def _selected(data: xr.Dataset) -> tuple[Verdict | None, str]:
    """Return the verdict of the selection that the sweep was run for, and a paragraph on why there is none."""
    try:
        return selected(data), ""
    except InputError as error:  # the metric of the selection has results below zero
        return None, f'<p class="small">{escape(str(error))}.</p>'


def _verdict(
    data: xr.Dataset,
    metrics: Sequence[str],
    policy: str | None,
    regions: Mapping[str, pd.DataFrame],
    verdict: Verdict | None,
) -> str:
    """Return which policy is best, in large: by the selection, if the sweep is one; then a sentence per metric."""
    known = [metric for metric in metrics if _has_direction(data, metric)]
    rest: list[str] = []
    if policy is not None and data.sizes[policy] > 1:
        rest = [text for text in (_best_of(data, metric, policy, regions) for metric in known) if text]
    first = verdict.sentence if verdict is not None else rest.pop(0) if rest else ""
    more = f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in rest)}</ul>" if rest else ""
    rests = _rests_on(data, verdict) if first else ""
    silent = [metric for metric in metrics if metric not in known]
    if silent and policy is not None:
        rests += (
            f'<p class="small">No best policy by {escape(_named(data, silent))}: nothing says whether more is better. '
            "The table [better] of the spec does.</p>"
        )
    return (f'<p class="verdict">{escape(first)}</p>' if first else "") + more + rests


def _has_direction(data: xr.Dataset, metric: str) -> bool:
    try:
        higher_is_better(data, metric)
    except InputError:
        return False
    return True


def _rests_on(data: xr.Dataset, verdict: Verdict | None) -> str:
    """Return what the first sentence rests on."""
    if verdict is not None:
        return f'<p class="small">{escape(describe_promise(selection_of(data), verdict))}</p>'
    most = int(max(count_observations(data[name], data["status"]).max() for name in metric_names(data)[:1]))
    scope = scope_of(data)
    return (
        f'<p class="small">It rests on the means of {most} replicate{"s" * (most > 1)}, compared in pairs'
        f"{', and holds ' + scope if scope else ''}; 'faultsweep best' selects the best policy with a stated "
        "probability.</p>"
    )


def _best_of(data: xr.Dataset, metric: str, policy: str, regions: Mapping[str, pd.DataFrame]) -> str:
    found = best_policies(data, metric, policy, regions=[])
    if found.empty or not varied(data[metric]):
        return ""
    row = found.to_dict("records")[0]
    words = quantity(data, metric).partition(" (")[0].lower()
    if not _differs(data[metric]):
        return f"All have the same {words}."
    which = "highest" if higher_is_better(data, metric) else "lowest"
    text = f"{row_label(policy, row['best'])} has the {which} {words}{second_place(data, metric, policy, row)}"
    rest = [axis for axis in varied(data[metric]) if axis != policy]
    text += f". Means over {_named(data, rest)}" if rest else ""
    return text + _where_another_is_best(regions[metric], policy, row["best"])


def _where_another_is_best(regions: pd.DataFrame, policy: str, best: str) -> str:
    """Return a sentence on the regions in which another policy than the best of all is significantly better."""
    axes = list(regions.columns[: list(regions.columns).index("best")]) if not regions.empty else []
    if not axes:
        return "."
    others = [row for row in regions.to_dict("records") if best != row["best"] and not is_as_good(row, best)]
    if not others:
        return f"; no other is significantly better in any of {len(regions)} regions."
    most = Counter(row["best"] for row in others).most_common(3)
    names = ", ".join(f"{row_label(policy, name)} {count}" for name, count in most)
    return f"; another is significantly better in {len(others)} of {len(regions)} regions ({names})."


def _first_figure(data: xr.Dataset, metric: str) -> str:
    if not varied(data[metric].load()) or not bool(data[metric].notnull().any()):
        return ""
    choices = replace(default_choices(data), metric=metric)
    figure = figure_of(data, choices)
    return _picture(replace(figure, panels=[replace(panel, log_y=None) for panel in figure.panels]))


def _failures(data: xr.Dataset) -> str:
    failed = is_one_of(data["status"], ("failed", "failed_copy")).values
    if not failed.any() or "error" not in data:
        return ""
    cells = np.argwhere(failed)
    errors = data["error"].values[failed]
    first = {str(text): cells[np.flatnonzero(errors == text)[0]] for text in set(errors)}
    rows = []
    for text, count in Counter(map(str, errors)).most_common(_MOST_SHOWN):
        at = zip(data["status"].dims, first[text], strict=True)
        rows.append([count, text, ", ".join(f"{dim} = {data[dim].values[row]}" for dim, row in at)])
    return "<h2>Failures</h2>" + _table(["cells", "error", "first cell"], rows)


def _with_values(data: xr.Dataset, metrics: Sequence[str]) -> list[str]:
    """Return the metrics that differ between cells."""
    return [name for name in metrics if _differs(data[name].load()) and varied(data[name])]


def _differs(values: xr.DataArray) -> bool:
    """Tell whether there are values that are not all the same."""
    return bool(values.max() > values.min())


def _effects(data: xr.Dataset, metrics: Sequence[str]) -> str:
    """Return what each axis does to each metric, as pictures of effects: differences to the mean of all its labels."""
    shown = "".join(_effects_on(data, metric) for metric in _with_values(data, metrics))
    return f'<h2>Effects</h2><div class="effects">{shown}</div>' if shown else ""


def _effects_on(data: xr.Dataset, metric: str) -> str:
    words, panels, notes = quantity(data, metric), [], []
    bounds = []
    sampled = sampled_axes(data)
    for axis, table in sampled.items():
        for name in table["sample"]:
            binned = binned_effect(data[metric], axis, data[name].values)
            at, mean, low, high = (binned[part].values for part in ("x", "mean", "low", "high"))
            panels.append(Panel("", quantity(data, name), words, curves=[Curve(words, at, mean, low, high, LOOKS[0])]))
    for axis in [axis for axis in varied(data[metric]) if axis not in sampled][:_MOST_SHOWN]:
        found = main_effect(data[metric], axis)
        effect, low, high = (found[part].values for part in ("effect", "low", "high"))
        bounds.append(low)
        labels, x = data[axis].values.tolist(), quantity(data, axis) if axis in data.coords else axis
        if isinstance(labels[0], str):
            names = [row_label(axis, label) for label in labels]
            bars = [Bars(words, effect, LOOKS[0], low, high)]
            panels.append(Panel("", x, f"Effect on {_low(words)}", bars=bars, categories=names, signed=True))
        else:
            curve = Curve(words, np.asarray(labels, float), effect, low, high, LOOKS[0])
            panels.append(Panel("", x, f"Effect on {_low(words)}", curves=[curve], signed=True))
        if int(found["combinations"]) < int(found["of"]):
            count, every = int(found["combinations"]), int(found["of"])
            notes.append(f"{in_words(data, axis)}: over {count:,} of {every:,} combinations of the others")
    known = any(np.isfinite(low).any() for low in bounds)
    caption = ["Difference to the mean of all labels, the other axes averaged over"]
    caption[0] += ", with 95\u00a0% confidence intervals." if known else "; one replicate has no interval."
    if sampled:
        caption.append("Parameters of a sampled axis: means over bins of its points, and their intervals.")
    caption += [f"Compared where all labels have results: {'; '.join(notes)}."] if notes else []
    return _picture(Figure("effects", f"Main effects on {words}", caption, panels, columns=3))


def _low(words: str) -> str:
    return words[0].lower() + words[1:]


def _importance(data: xr.Dataset, metrics: Sequence[str]) -> str:
    """Return which share of each metric's variance each axis, and each pair of axes, explains."""
    if sampled_axes(data):
        return ""  # a point of a sample is no factor: Sobol indices say what its parameters do
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for metric in _with_values(data, metrics):
        try:
            found[metric] = variance_shares(data[metric])
        except InputError as error:
            return f"<h2>Importance and interactions</h2><p>{escape(str(error))}.</p>"
    if not found:
        return ""
    axes = {pair: max(shares.get(pair, 0.0) for shares in found.values()) for one in found.values() for pair in one}
    shown = [
        pair for pair in sorted(axes, key=lambda pair: -axes[pair]) if len(pair) == 1 or axes[pair] >= _SMALL_SHARE
    ]
    rows = [
        [
            " × ".join(_heading(data, axis) for axis in pair),
            *(f"{shares[pair]:.1%}" if pair in shares else "" for shares in found.values()),
        ]
        for pair in shown
    ]
    if sum(len(pair) == 1 for pair in axes) > 2:
        rows.append(["three axes or more", *(f"{max(1 - sum(shares.values()), 0):.1%}" for shares in found.values())])
    return (
        "<h2>Importance and interactions</h2>"
        + _table(["share of the variance between cells", *(quantity(data, metric) for metric in found)], rows)
        + '<p class="small">A pair stands for what its two axes do together beyond what each does alone; pairs below '
        f"{_SMALL_SHARE:.0%} are left out.</p>"
    )


def _regions(data: xr.Dataset, regions: Mapping[str, pd.DataFrame], policy: str | None, verdict: Verdict | None) -> str:
    """Return the best policy of every region, a table per metric, where there are regions."""
    if policy is None:
        return ""
    tables = "".join(_regions_of(data, metric, policy, found) for metric, found in regions.items())
    if tables:
        tables += (
            '<p class="small">How much worse the second one is: paired ratios of means over replicates; intervals and '
            "p-values are corrected for all pairs of a region by Holm's method. What is not significantly different "
            "from the best (5\u00a0% level) is as good.</p>"
        )
    chosen = "" if verdict is None else _selection_table(data, verdict)
    return f"<h2>Best {escape(in_words(data, policy))} per region</h2>{chosen}{tables}" if chosen + tables else ""


def _selection_table(data: xr.Dataset, verdict: Verdict) -> str:
    """Return how the policies of a selection compare in every region, by the tests that decided."""
    places = list(verdict.shown.columns[: list(verdict.shown.columns).index("policy")])
    rows = [
        [
            *(row[place] for place in places),
            row["policy"],
            *(["", ""] if np.isnan(row["n"]) else [short_number(row["mean"], 4), int(row["n"])]),
            "" if not row["worse"] or np.isnan(row["worse"]) else how_much_worse(*(row[part] for part in _OF_ROW)),
            row["result"],
        ]
        for row in verdict.shown.head(_MOST_ROWS).to_dict("records")
    ]
    left = len(verdict.shown) - _MOST_ROWS
    more = f'<p class="small">{left} more rows: faultsweep best prints all.</p>' if left > 0 else ""
    heads = [*places, "Policy", "Mean", "Replicates", "Against the best", "Result"]
    return f"<h3>{escape(quantity(data, verdict.decides))}, by the selection</h3>{_table(heads, rows)}{more}"


def _regions_of(data: xr.Dataset, metric: str, policy: str, found: pd.DataFrame) -> str:
    if found.empty:
        return ""
    regions = list(found.columns[: list(found.columns).index("best")])
    averaged = [axis for axis in varied(data[metric]) if axis not in (policy, *regions)]
    labels = [str(label) for label in data[policy].values]
    rows = [
        [
            *(label_to_read(data, axis, row[axis]) for axis in regions),
            row_label(policy, row["best"]),
            _number(row["mean"], row["low"], row["high"]),
            row_label(policy, row["next"]),
            _worse(row),
            "" if np.isnan(row["p"]) else f"{row['p']:.2g}",
            "not tested"
            if np.isnan(row["p"])
            else ", ".join(row_label(policy, label) for label in labels if is_as_good(row, label)),
        ]
        for row in found.to_dict("records")
    ]
    which = "highest is best" if higher_is_better(data, metric) else "lowest is best"
    text = f"<h3>{escape(quantity(data, metric))}, {which}</h3>"
    text += f'<p class="small">Averaged over: {escape(_named(data, averaged))}.</p>' if averaged else ""
    heads = [_heading(data, axis) for axis in regions]
    return text + _table([*heads, "Best", "Mean", "Second", "Second is", "p", "As good"], rows)


def _sensitivities(data: xr.Dataset, metrics: Sequence[str]) -> str:
    pairs = [(axis, metric) for metric in metrics for axis in sampled_axes(data)]
    text = ""
    for axis, metric in pairs:
        text += f"<h3>Sensitivities of {escape(quantity(data, metric))} over {escape(in_words(data, axis))}</h3>"
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
    text = _what_was_run(data) + _coverage(data)
    text += f'<h2>Provenance</h2><div class="provenance"><p>{which}</p>' + _table(["", ""], rows)
    if pins:
        text += "<p>Content that the results depend on:</p>" + _table(
            ["what", "hash"], [[*pair] for pair in pins.items()]
        )
    text += f"<p>Model version {escape(str(data.attrs.get('model_version', '')))}. The spec:</p>"
    return text + f"<pre>{escape(str(data.attrs.get('spec', '')))}</pre></div>"


# What parts are made of


def _named(data: xr.Dataset, names: Iterable[str]) -> str:
    return ", ".join(in_words(data, name) for name in names)


def _heading(data: xr.Dataset, axis: str) -> str:
    return quantity(data, axis).partition(" (")[0]


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    body = ""
    for row in rows:
        cells = [f"{value:,}" if isinstance(value, int) else str(value) for value in row]
        kinds = [' class="n"' if isinstance(value, int) else "" for value in row]
        body += "<tr>" + "".join(f"<td{kind}>{escape(c)}</td>" for kind, c in zip(kinds, cells, strict=True)) + "</tr>"
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    return f'<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>'


def _warning(text: str) -> str:
    return f'<p class="warn">{escape(text)}</p>'


def _picture(figure: Figure) -> str:
    """Return a figure as an image in the page: vectors, for a wide and for a narrow window, in light and in dark."""
    wide, narrow = (
        "data:image/svg+xml;base64," + base64.b64encode(svg_text(figure, width).encode()).decode()
        for width in (_WIDE_IN, _NARROW_IN)
    )
    words = escape(f"{figure.title}. {figure.text}", quote=True)
    caption = escape(" ".join(caption_of(figure)))
    return (
        f'<figure><img class="wide-only" alt="{words}" src="{wide}">'
        f'<img class="narrow-only" alt="{words}" src="{narrow}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _plain(value: Any) -> str:
    """Return a value of the provenance in words: python 3.11.7, numpy 2.4.6."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {part}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _number(mean: float, low: float, high: float) -> str:
    return short_number(mean, 4) + ("" if np.isnan(low) else f" [{short_number(low, 4)}, {short_number(high, 4)}]")


def _worse(row: dict[str, Any]) -> str:
    """Return a margin in words: 12 % worse (4.0 to 21 %)."""
    if np.isnan(row["margin"]) or not row["margin"]:
        return "" if row["margin"] else "equal"
    return how_much_worse(*(float(row[part]) for part in ("margin", "margin_low", "margin_high")))
