"""The figures of oliner2004 (Oliner et al., Fault-aware job scheduling for BlueGene/L systems), section 7.

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``. The paper's panels are
above; below each is its ratio to no prediction (a = 0), or its change, paired: replicate by replicate, under the same
jobs and the same failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.curves import curve_over, means_over
from faultsweep.analysis.figures.describe import (
    CAPACITIES,
    describe_held,
    describe_logs,
    describe_replicates,
    describe_truncated,
    names,
    unique,
    workload_title,
)
from faultsweep.analysis.figures.figure import (
    LOOKS,
    Bars,
    Curve,
    Figure,
    Panel,
    Style,
)
from faultsweep.analysis.statistics import mean_interval, paired_difference

FAILURES = "Failures in the whole log's span"
SLOWDOWN = "Mean bounded slowdown"
_PARAMETER = {"balancing": "Confidence of predictions", "tie-breaking": "Accuracy of predictions"}
_SOURCES = {
    "bursts": "a synthetic year of 350 nodes with the bursts and the skew of the paper's trace, which cannot be had",
    "weibull": "the generator weibull",
    "weibull-copula": "the generator weibull-copula",
    "mtbf": "the generator mtbf",
}


def figure_3(data: xr.Dataset) -> Figure:
    """Return figure 3: mean bounded slowdown against the number of failures, without prediction and with."""
    labels = {value: _accuracy(value) for value in unique(data, "accuracy")}
    curves = _slowdowns(data, "num_failures", "accuracy", labels)
    ratios = _ratios(data, "num_failures", "accuracy", labels)
    panels = [
        _mean_panel(_only_workload(data), FAILURES, curves),
        _ratio_panel(_only_workload(data), FAILURES, ratios),
    ]
    return _figure(data, 3, "Mean bounded slowdown against failures, with and without prediction", panels)


def figure_4(data: xr.Dataset) -> Figure:
    """Return figure 4: mean bounded slowdown against the number of failures, for different loads."""
    labels = _load_labels(data)
    panels, labels_of_a = [], unique(data, "accuracy")
    for accuracy in labels_of_a:
        curves = _slowdowns(data.sel(accuracy=accuracy), "num_failures", "load_scale", labels)
        panels.append(_mean_panel(f"{_only_workload(data)}, {_accuracy(accuracy)}", FAILURES, curves))
    curves = _ratios(data, "num_failures", "load_scale", labels)
    panels.append(_ratio_panel(f"{_only_workload(data)}, {_accuracy(max(labels_of_a))}", FAILURES, curves))
    return _figure(data, 4, "Mean bounded slowdown against failures, for different loads", panels, columns=3)


def figure_5(data: xr.Dataset) -> Figure:
    """Return figure 5: capacity utilised, lost and unused against the number of failures, for two loads."""
    part = data.sel(accuracy=max(unique(data, "accuracy")))
    panels = [_capacity_panel(part.sel(load_scale=c), "num_failures", FAILURES, c) for c in unique(data, "load_scale")]
    for c in unique(data, "load_scale"):
        changes = _capacity_changes(data.sel(load_scale=c), "num_failures")
        panels.append(_change_panel(f"Load scale {c:g}", FAILURES, changes))
    return _figure(data, 5, "Where the capacity went against failures", panels)


def figure_6(data: xr.Dataset) -> Figure:
    """Return figure 6: mean bounded slowdown against the confidence of the balancing rule, three logs, two loads."""
    return _against_accuracy(data, 6, "Mean bounded slowdown against confidence, balancing")


def figure_7(data: xr.Dataset) -> Figure:
    """Return figure 7: capacity utilised, lost and unused against the confidence of the balancing rule, NASA."""
    return _capacity_figure(data, 7, "Where the capacity went against confidence, balancing")


def figure_8(data: xr.Dataset) -> Figure:
    """Return figure 8: capacity utilised, lost and unused against the confidence of the balancing rule, LLNL."""
    return _capacity_figure(data, 8, "Where the capacity went against confidence, balancing")


def figure_9(data: xr.Dataset) -> Figure:
    """Return figure 9: mean bounded slowdown against the accuracy of the tie-breaking rule, three logs, two loads."""
    return _against_accuracy(data, 9, "Mean bounded slowdown against accuracy, tie-breaking")


def figure_10(data: xr.Dataset) -> Figure:
    """Return figure 10: capacity utilised, lost and unused against the accuracy of the tie-breaking rule, LLNL."""
    return _capacity_figure(data, 10, "Where the capacity went against accuracy, tie-breaking")


def loads(data: xr.Dataset) -> Figure:
    """Return what the paper ran and did not print: both rules for loads c from 0.5 to 1.5, three logs."""
    panels = []
    for changed in (False, True):
        for workload in names(data, "workload"):
            curves = []
            for row, style in zip(names(data, "policy"), LOOKS, strict=False):
                part = data.sel(workload=workload)
                if not changed:
                    found = mean_interval(part["mean_bounded_slowdown"], part["status"]).sel(policy=row)
                    curves.append(means_over(row, found, "load_scale", style))
                elif row != "no prediction":
                    found = _paired(part, "mean_bounded_slowdown", "policy", "no prediction").sel(policy=row)
                    curves.append(curve_over(row, found + 1, "load_scale", style))
            title = _title(data, workload)
            draw = _ratio_panel if changed else _mean_panel
            panels.append(replace(draw(title, "Load scale", curves), scale=workload))
    title, source = "Mean bounded slowdown against the load, both rules", "Oliner et al. (2004), section 6.2"
    caption, columns = (
        _caption(data, "Ratios to no prediction are paired, replicate by replicate.", of="ratios"),
        len(names(data, "workload")),
    )
    return Figure("oliner2004-loads", title, caption, panels, columns, facts=_facts(data), source=source)


FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "oliner2004-fig-3": figure_3,
    "oliner2004-fig-4": figure_4,
    "oliner2004-fig-5": figure_5,
    "oliner2004-fig-6": figure_6,
    "oliner2004-fig-7": figure_7,
    "oliner2004-fig-8": figure_8,
    "oliner2004-fig-9": figure_9,
    "oliner2004-fig-10": figure_10,
    "oliner2004-loads": loads,
}
"""Experiment -> the function that makes its figure from its results."""


def _figure(data: xr.Dataset, number: int, title: str, panels: list[Panel], columns: int = 2) -> Figure:
    source = f"Oliner et al. (2004), figure {number}"
    of = "ratios" if any(panel.ratio for panel in panels) else "changes"
    what = "Ratios to" if of == "ratios" else "Changes against"
    caption = _caption(data, f"{what} no prediction are paired, replicate by replicate.", of)
    return Figure(f"oliner2004-fig-{number}", title, caption, panels, columns, facts=_facts(data), source=source)


def _against_accuracy(data: xr.Dataset, number: int, title: str) -> Figure:
    """Return a column of panels per workload over a: the mean bounded slowdown, and its ratio to that of a = 0."""
    labels = _load_labels(data)
    what = _PARAMETER[unique(data, "placement")[0]]
    above, below = [], []
    for workload in names(data, "workload"):
        part = data.sel(workload=workload)
        name, means = _title(data, workload), _slowdowns(part, "accuracy", "load_scale", labels)
        above.append(replace(_mean_panel(name, what, means), scale=workload))
        ratios = _ratios(part, "accuracy", "load_scale", labels)
        below.append(replace(_ratio_panel(name, what, ratios), scale=workload))
    return _figure(data, number, title, [*above, *below], columns=len(above))


def _capacity_figure(data: xr.Dataset, number: int, title: str) -> Figure:
    """Return a column of panels per load over a: the shares of the capacity, and their change against a = 0."""
    what = _PARAMETER[unique(data, "placement")[0]]
    panels = [_capacity_panel(data.sel(load_scale=c), "accuracy", what, c) for c in unique(data, "load_scale")]
    for c in unique(data, "load_scale"):
        changes = _capacity_changes(data.sel(load_scale=c), "accuracy")
        panels.append(_change_panel(f"Load scale {c:g}", what, changes))
    return _figure(data, number, title, panels)


def _load_labels(data: xr.Dataset) -> dict[float, str]:
    return {c: f"load scale {c:g}" for c in unique(data, "load_scale")}


def _accuracy(value: float) -> str:
    return f"accuracy {value:g}" if value else "no prediction"


def _only_workload(data: xr.Dataset) -> str:
    return _title(data, names(data, "workload")[0])


def _title(data: xr.Dataset, workload: str) -> str:
    """Return the title of a workload's panel, which says so where it is of a substitute log."""
    log = str(data.sel(workload=workload)["log"].values)
    return f"{workload} (Atlas, not T3D)" if log == "llnl-atlas" else workload_title(data, workload)


def _slowdowns(data: xr.Dataset, x: str, axis: str, labels: dict[float, str]) -> list[Curve]:
    """Return the mean bounded slowdown over ``x``, a curve per row of ``axis``."""
    found = mean_interval(data["mean_bounded_slowdown"], data["status"]).squeeze(drop=True)
    return [
        means_over(label, found.sel({axis: row}), x, style)
        for (row, label), style in zip(labels.items(), LOOKS, strict=False)
    ]


def _ratios(data: xr.Dataset, x: str, axis: str, labels: dict[float, str]) -> list[Curve]:
    """Return the ratio of the mean bounded slowdown to that of a = 0 over ``x``, a curve per row of ``axis``."""
    found = _paired(data, "mean_bounded_slowdown", "accuracy", 0.0) + 1
    if axis != "accuracy" and x != "accuracy":
        found = found.sel(accuracy=max(unique(data, "accuracy")))
    found = found.squeeze(drop=True)
    return [
        curve_over(label, found.sel({axis: row}), x, style)
        for (row, label), style in zip(labels.items(), LOOKS, strict=False)
        if not (axis == "accuracy" and row == 0)
    ]


def _paired(data: xr.Dataset, metric: str, along: str, baseline: object, relative: bool = True) -> xr.Dataset:
    return paired_difference(data[metric], along, baseline, data["status"], relative=relative)


def _mean_panel(title: str, x_label: str, curves: list[Curve]) -> Panel:
    return Panel(title, x_label, SLOWDOWN, curves)


def _ratio_panel(title: str, x_label: str, curves: list[Curve]) -> Panel:
    return Panel(title, x_label, "Ratio to no prediction", curves, ratio=True)


def _change_panel(title: str, x_label: str, curves: list[Curve]) -> Panel:
    return Panel(title, x_label, "Against no prediction (points of capacity)", curves, signed=True)


def _capacity_panel(data: xr.Dataset, x: str, x_label: str, c: float) -> Panel:
    """Return stacked bars of utilised, lost and unused capacity over ``x``."""
    bars = []
    for metric, (label, colour) in CAPACITIES.items():
        mean = mean_interval(data[metric], data["status"])["mean"].squeeze(drop=True)
        bars.append(Bars(label, mean.values, Style(colour)))
    categories = [f"{value:g}" for value in data[x].values]
    title = f"{_only_workload(data)}, load scale {c:g}"
    return Panel(title, x_label, "Share of the capacity", bars=bars, categories=categories, stacked=True)


def _capacity_changes(data: xr.Dataset, x: str) -> list[Curve]:
    """Return the change of each share of the capacity against a = 0 over ``x``, in points of the capacity."""
    curves = []
    for metric, (label, colour) in CAPACITIES.items():
        found = 100 * _paired(data, metric, "accuracy", 0.0, relative=False)
        if x != "accuracy":
            found = found.sel(accuracy=max(unique(data, "accuracy")))
        curves.append(curve_over(label, found.squeeze(drop=True), x, Style(colour)))
    return curves


def _caption(data: xr.Dataset, what: str, of: str) -> list[str]:
    found = mean_interval(data["mean_bounded_slowdown"], data["status"])
    texts = [what, describe_logs(data), describe_replicates(found, of=of), describe_truncated(data)]
    return [text for text in texts if text]


def _facts(data: xr.Dataset) -> list[str]:
    texts = [
        _describe_atlas(data),
        _describe_failures(data),
        _describe_prediction(data),
        describe_held(data, ("machine", "scheduler", "estimates", "load_scale")),
        "Differences are taken replicate by replicate, under the same jobs and the same failures.",
    ]
    return [text for text in texts if text]


def _describe_atlas(data: xr.Dataset) -> str:
    """Return a sentence on the substitute of the paper's LLNL log, if there is one."""
    if "llnl-atlas" in unique(data, "log"):
        return "LLNL: the Atlas log of 2006-2007, its sizes scaled to 128 nodes, in place of the T3D log."
    if "atlas-model" in unique(data, "log"):
        return "LLNL: a model of the Atlas log, its sizes scaled to 128 nodes, in place of the T3D log."
    return ""


def _describe_failures(data: xr.Dataset) -> str:
    """Return a sentence with the source of the failures, their number and their rate."""
    source = str(unique(data, "failures")[0])
    counts = []
    for workload in names(data, "workload"):
        part = data.sel(workload=workload)
        given = unique(part, "num_failures")
        per_day = part["failures_seen_per_day"].where(part["failures_seen"] > 0)
        rates = [f"{value:.3g}" for value in (float(per_day.min()), float(per_day.max())) if np.isfinite(value)]
        rate = f" ({' to '.join(dict.fromkeys(rates))} a day of the runs)" if rates else ""
        number = f"{given[0]:,}" if len(given) == 1 else f"{given[0]:,} to {given[-1]:,}"
        counts.append(f"{workload} {number}{rate}")
    words = _SOURCES.get(source, f"the log {source}")
    return f"Failures: {words}; in the span of the whole log: {', '.join(counts)}; nodes are up again at once."


def _describe_prediction(data: xr.Dataset) -> str:
    rules = [str(rule) for rule in unique(data, "placement") if rule != "mfp"]
    known = unique(data, "accuracy")
    values = ", ".join(f"{a:g}" for a in known) if len(known) <= 3 else f"{min(known):g} to {max(known):g}"
    return f"Placement: {' and '.join(rules)}, a = {values}." if rules else ""
