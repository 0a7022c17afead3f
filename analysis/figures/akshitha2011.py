"""The figures of akshitha2011 (Akshitha et al., Establishing job scheduling and checkpointing in multi-cluster
systems).

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``. The paper prints the mean
turnaround of figures 1 to 6 and describes the rest; beside each stands its change against a baseline, paired: replicate
by replicate, under the same jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.curves import curve_over, means_over
from faultsweep.analysis.figures.describe import (
    describe_jobs,
    describe_models,
    describe_replicates,
    is_model,
    names,
    unique,
    workload_title,
)
from faultsweep.analysis.figures.figure import (
    BLACK,
    BLUE,
    GREEN,
    LOOKS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Curve,
    Figure,
    Heat,
    Panel,
    Style,
)
from faultsweep.analysis.statistics import mean_interval, paired_difference

TURNAROUND = "mean_response_s"
BASELINE = "Migration Only"
AWARE = "bandwidth-aware"
NAIVE = "naive co-allocation"
"""It takes so many times as long as all others that it would hide them beside itself, but on a logarithmic axis."""
HOURS = "Mean turnaround (h)"
CHANGE = "Change of turnaround (%)"
AGAINST_BASELINE = f"Turnaround vs {BASELINE} (%)"
ERROR = "Largest error of estimates (%)"
INFORMATION = "Jobs that state their bandwidth (%)"
MINUTES = "Overhead (min)"
WORTH = "Limit of overhead / remaining time"
_POLICIES = {
    BASELINE: Style(BLACK, "P", dashed=True),
    "local": Style(SKY, "v"),
    AWARE: Style(BLUE, "o"),
    "no error": Style(BLUE, "o"),
    "no agent": Style(VERMILION, "s"),
    "100 % error": Style(VERMILION, "s"),
    "bandwidth-aware, 80 % error": Style(VERMILION, "s"),
    "CTMR": Style(GREEN, "^"),
    "the same with CTMR": Style(GREEN, "^"),
    "CTMR, overhead unknown": Style(GREEN, "D", dashed=True),
    "naive agent": Style(ORANGE, "v"),
    NAIVE: Style(PURPLE, "D"),
}
PAPER = {150: 22, 300: 16, 400: 12}
"""PPBW, Mbit/s -> the best improvement over migration only that the paper reports, %."""


def surface_figure(data: xr.Dataset, number: int) -> Figure:
    """Return figure 1, 3 or 5: turnaround, and its change against migration only, over error and information."""
    found = mean_interval(data[TURNAROUND], data["status"])
    change = 100 * paired_difference(data[TURNAROUND], "policy", BASELINE, data["status"], relative=True)
    turnaround = _heat(found / 3600, HOURS)
    panels = [
        Panel("", INFORMATION, ERROR, heat=turnaround, surface=True),
        Panel("", INFORMATION, ERROR, heat=turnaround),
        Panel(f"Against {BASELINE}, paired", INFORMATION, ERROR, heat=_heat(change, CHANGE, centre=0.0)),
    ]
    title = "Turnaround over error and information"
    facts = [_compared_with_paper(data, change)]
    figure = _figure(data, f"fig-{number}", f"{title}, {_ppbw(data)}", panels, facts, f"figure {number}", columns=3)
    replicates = f"Means of {int(found['n'].max())} replicates."  # a map has no intervals
    return replace(figure, caption=[*figure.caption[:-1], replicates])


def curve_figure(data: xr.Dataset, number: int) -> Figure:
    """Return figure 2, 4 or 6: turnaround against information at four errors, and migration only."""
    found = mean_interval(data[TURNAROUND], data["status"]) / 3600
    change = 100 * paired_difference(data[TURNAROUND], "policy", BASELINE, data["status"], relative=True)
    errors = unique(data, "estimate_error_pct")
    labels = {value: f"error {value:g}\u00a0%" for value in errors}
    turnaround, changes = [], []
    for value, style in zip(errors, LOOKS, strict=False):
        at = {"policy": AWARE, "estimate_error_pct": value}
        turnaround.append(means_over(labels[value], found.sel(at), "information_pct", style))
        changes.append(curve_over(labels[value], change.sel(at), "information_pct", style))
    at = {"policy": BASELINE, "estimate_error_pct": errors[0]}
    turnaround.append(means_over(BASELINE, found.sel(at), "information_pct", _POLICIES[BASELINE]))
    panels = [
        Panel("", INFORMATION, HOURS, turnaround),
        Panel(f"Against {BASELINE}, paired", INFORMATION, CHANGE, changes, signed=True),
    ]
    facts = [_compared_with_paper(data, change), _rmspe(data)]
    title = f"Turnaround against information, {_ppbw(data)}"
    return _figure(data, f"fig-{number}", title, panels, facts, f"figure {number}")


def direction(data: xr.Dataset) -> Figure:
    """Return the change against migration only of estimates too low, too high, and both, a panel per PPBW."""
    change = 100 * paired_difference(data[TURNAROUND], "policy", BASELINE, data["status"], relative=True)
    words = {"under": "too low", "both": "too low or too high", "over": "too high"}
    panels = []
    for ppbw in unique(data, "ppbw_mbps"):
        curves = []
        for way, style in zip(words, (LOOKS[1], LOOKS[0], LOOKS[2]), strict=True):
            part = change.sel(policy=AWARE, ppbw_mbps=ppbw, error_direction=way)
            curves.append(curve_over(f"estimates {words[way]}", part, "estimate_error_pct", style))
        panels.append(Panel(_demand(ppbw), ERROR, AGAINST_BASELINE, curves, signed=True))
    title = "Under- against overestimation"
    return _figure(data, "direction", title, panels, [], "section V", columns=3)


def ctmr(data: xr.Dataset) -> Figure:
    """Return turnaround with the agent on, off and naive against the error, its change, and what was checkpointed."""
    panels = _by_ppbw(data, "estimate_error_pct", ERROR)
    change, policies = _changes(data)
    for ppbw in unique(data, "ppbw_mbps"):
        curves = _curves(change.sel(ppbw_mbps=ppbw), policies, "estimate_error_pct")
        panels.append(Panel(_demand(ppbw), ERROR, AGAINST_BASELINE, curves, signed=True))
    taken = mean_interval(data["jobs_taken"], data["status"])
    for ppbw in unique(data, "ppbw_mbps"):
        curves = _curves(taken.sel(ppbw_mbps=ppbw), ["CTMR", "naive agent"], "estimate_error_pct")
        panels.append(Panel(_demand(ppbw), ERROR, "Checkpoints by the agent", curves))
    facts = [_change_at_most(data, "no agent", ["CTMR", "naive agent"])]
    return _figure(data, "ctmr", "The agent on, off and naive", panels, facts, "section II.E", columns=3)


def _changes(data: xr.Dataset) -> tuple[xr.Dataset, list[str]]:
    """Return every policy's change against migration only, in %, and the policies that can be shown side by side."""
    change = 100 * paired_difference(data[TURNAROUND], "policy", BASELINE, data["status"], relative=True)
    return change, [row for row in names(data, "policy") if row not in (BASELINE, "local", NAIVE)]


def overhead(data: xr.Dataset) -> Figure:
    """Return the change by the agent against its overhead, a row per error and a column per PPBW."""
    change, policies = _changes(data.assign_coords(overhead_s=data["overhead_s"] / 60))
    panels = []
    for error in unique(data, "estimate_error_pct"):
        for ppbw in unique(data, "ppbw_mbps"):
            part = change.sel(estimate_error_pct=error, ppbw_mbps=ppbw)
            title = f"{_demand(ppbw)}, error {error:g}\u00a0%"
            curves = _curves(part, policies, "overhead_s")
            panels.append(Panel(title, MINUTES, AGAINST_BASELINE, curves, even=True, signed=True))
    return _figure(data, "overhead", "Overhead of the agent", panels, [], "section IV", columns=3)


def cp_frac(data: xr.Dataset) -> Figure:
    """Return the change by the agent against CP_frac, a curve per overhead and a panel per PPBW."""
    change = 100 * paired_difference(data[TURNAROUND], "policy", "no agent", data["status"], relative=True)
    panels = []
    for ppbw in unique(data, "ppbw_mbps"):
        curves = []
        for seconds, style in zip(unique(data, "overhead_s"), LOOKS, strict=False):
            part = change.sel(policy="CTMR", ppbw_mbps=ppbw, overhead_s=seconds)
            curves.append(curve_over(f"overhead {seconds / 60:g} min", part, "cp_frac", style))
        title = _demand(ppbw)
        panels.append(Panel(title, WORTH, "Turnaround vs no agent (%)", curves, log_x=True, signed=True))
    facts = ["The paper finds about 4 % (0.04) best in almost every case that it tried."]
    return _figure(data, "cp-frac", "How much overhead is worth it", panels, facts, "section II.E", columns=3)


def logs(data: xr.Dataset) -> Figure:
    """Return turnaround against the load under logs split over the clusters, and its change against migration only."""
    found = mean_interval(data[TURNAROUND], data["status"]) / 3600
    change, policies = _changes(data)
    x, above, below = "target_utilisation", [], []
    for workload in names(data, "workload"):
        title = workload_title(data, workload)
        curves = _means(found.sel(workload=workload), names(data, "policy"), x)
        above.append(Panel(title, "Offered utilisation", HOURS, curves, log_y=True))
        curves = _curves(change.sel(workload=workload), policies, x)
        below.append(Panel(title, "Offered utilisation", AGAINST_BASELINE, curves, signed=True))
    title = "Meta-schedulers under logs split over four clusters"
    return _figure(data, "logs", title, [*above, *below], [], "", columns=len(above))


def trunks(data: xr.Dataset) -> Figure:
    """Return turnaround over the capacity of the trunks, and its change against migration only, a column per load."""
    scaled = data.assign_coords(trunk_mbps=data["trunk_mbps"] / 1000)
    found = mean_interval(scaled[TURNAROUND], scaled["status"]) / 3600
    change, policies = _changes(scaled)
    x, label, above, below = "trunk_mbps", "Trunk (Gbit/s)", [], []
    for load in unique(data, "target_utilisation"):
        title = f"Offered utilisation {load:g}"
        curves = _means(found.sel(target_utilisation=load), names(data, "policy"), x)
        above.append(Panel(title, label, HOURS, curves, log_x=True, log_y=True))
        curves = _curves(change.sel(target_utilisation=load), policies, x)
        below.append(Panel(title, label, AGAINST_BASELINE, curves, log_x=True, signed=True))
    return _figure(
        data, "trunks", "Turnaround against trunk capacity, three loads", [*above, *below], [], "", columns=3
    )


FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "akshitha2011-fig-1": lambda data: surface_figure(data, 1),
    "akshitha2011-fig-2": lambda data: curve_figure(data, 2),
    "akshitha2011-fig-3": lambda data: surface_figure(data, 3),
    "akshitha2011-fig-4": lambda data: curve_figure(data, 4),
    "akshitha2011-fig-5": lambda data: surface_figure(data, 5),
    "akshitha2011-fig-6": lambda data: curve_figure(data, 6),
    "akshitha2011-direction": direction,
    "akshitha2011-ctmr": ctmr,
    "akshitha2011-overhead": overhead,
    "akshitha2011-cp-frac": cp_frac,
    "akshitha2011-logs": logs,
    "akshitha2011-trunks": trunks,
}
"""Experiment -> the function that makes its figure from its results."""


def _figure(
    data: xr.Dataset, name: str, title: str, panels: list[Panel], facts: list[str], where: str, columns: int = 2
) -> Figure:
    models = [str(log) for log in unique(data, "log") if is_model(str(log)) and str(log) != "lublin"]
    caption = [
        "Turnaround is the mean response of all jobs; changes are paired, replicate by replicate.",
        describe_models(models),
        describe_replicates(mean_interval(data[TURNAROUND], data["status"]), of="changes"),
    ]
    caption, facts = ([text for text in texts if text] for texts in (caption, [*_facts(data), *facts]))
    source = f"Akshitha et al. (2011), {where}" if where else ""
    return Figure(f"akshitha2011-{name}", title, caption, panels, columns, facts=facts, source=source)


def _heat(found: xr.Dataset, quantity: str, centre: float | None = None) -> Heat:
    """Return the bandwidth-aware results over error and information."""
    ordered = found.sel(policy=AWARE).transpose("estimate_error_pct", "information_pct")
    labels = {name: [f"{value:g}" for value in ordered[name].values] for name in ordered.dims}
    digits = 1 if centre is not None else 2  # what a cell has room for; and no minus before a zero
    value, low, high = (np.round(ordered[name].values, digits) + 0.0 for name in ("mean", "low", "high"))
    return Heat(labels["information_pct"], labels["estimate_error_pct"], value, low, high, quantity, centre)


def _curves(found: xr.Dataset, policies: Sequence[str], x: str) -> list[Curve]:
    return [curve_over(row, found.sel(policy=row), x, _POLICIES[row]) for row in policies]


def _means(found: xr.Dataset, policies: Sequence[str], x: str) -> list[Curve]:
    return [means_over(row, found.sel(policy=row), x, _POLICIES[row]) for row in policies]


def _by_ppbw(data: xr.Dataset, x: str, label: str) -> list[Panel]:
    """Return a panel per PPBW with the turnaround of every policy."""
    found = mean_interval(data[TURNAROUND], data["status"]) / 3600
    panels = []
    for ppbw in unique(data, "ppbw_mbps"):
        curves = _means(found.sel(ppbw_mbps=ppbw), names(data, "policy"), x)
        panels.append(Panel(_demand(ppbw), label, HOURS, curves, log_y=True))
    return panels


def _ppbw(data: xr.Dataset) -> str:
    return _demand(unique(data, "ppbw_mbps")[0])


def _demand(ppbw: float) -> str:
    return f"{ppbw:g} Mbit/s per processor"


def _facts(data: xr.Dataset) -> list[str]:
    """Return what all data sheets say: jobs, clusters, and what the paper does not print."""
    held = [
        f"{'+'.join(str(machine).partition(':')[2] for machine in unique(data, 'machine'))} nodes",
        *_held(data, "trunk_mbps", "trunks of {:g} Mbit/s"),
        *_held(data, "target_utilisation", "utilisation offered {:g}"),
        *_held(data, "communication_share", "share of T_C {:g}"),
        *_held(data, "mesh_share", "mesh share {:g}"),
        *_held(data, "ppbw_distribution", "{} bandwidths"),
        *_held(data, "scheduler", "{} queues"),
    ]
    return [
        describe_jobs(data),
        f"Clusters: {', '.join(held)}; the paper prints none of these.",
    ]


def _held(data: xr.Dataset, name: str, words: str) -> list[str]:
    values = unique(data, name)
    return [words.format(values[0])] if len(values) == 1 else []


def _rmspe(data: xr.Dataset) -> str:
    """Return a sentence with the root mean square percentage error at each largest error."""
    everyone = max(unique(data, "information_pct"))
    found = data["estimate_rmspe_pct"].sel(policy=AWARE, information_pct=everyone).mean("replicate")
    parts = [
        f"{float(found.sel(estimate_error_pct=error)):.1f} at {error:g} %"
        for error in unique(data, "estimate_error_pct")
    ]
    return f"RMSPE of the statements: {', '.join(parts)}; the paper gives 57.7 at 100 %."


def _compared_with_paper(data: xr.Dataset, change: xr.Dataset) -> str:
    """Return a sentence with the improvement without errors, with its interval, and the paper's."""
    ppbw = unique(data, "ppbw_mbps")[0]
    best = change.sel(policy=AWARE, estimate_error_pct=0.0, information_pct=max(unique(data, "information_pct")))
    mean, low, high = (float(best[name]) for name in ("mean", "low", "high"))
    interval = f" ({low:+.1f} to {high:+.1f})" if np.isfinite(low) else ""
    paper = f"; the paper reports -{PAPER[int(ppbw)]} %" if int(ppbw) in PAPER else ""
    return f"All jobs stating their bandwidth rightly changes the turnaround by {mean:+.1f} %{interval}{paper}."


def _change_at_most(data: xr.Dataset, baseline: str, policies: Sequence[str]) -> str:
    """Return a sentence with the paired change against a baseline at the largest error, by policy and PPBW."""
    change = 100 * paired_difference(data[TURNAROUND], "policy", baseline, data["status"], relative=True)
    error = max(unique(data, "estimate_error_pct"))
    sentences = []
    for row in policies:
        parts = []
        for ppbw in unique(data, "ppbw_mbps"):
            at = change.sel(policy=row, ppbw_mbps=ppbw, estimate_error_pct=error)
            mean, low, high = (float(at[name]) for name in ("mean", "low", "high"))
            parts.append(
                f"{mean:+.0f} %" + (f" ({low:+.0f} to {high:+.0f})" if np.isfinite(low) else "") + f" at {ppbw:g}"
            )
        sentences.append(f"{row}: {', '.join(parts)}")
    return f"Turnaround against {baseline} at {error:g} % error, paired: {'; '.join(sentences)} Mbit/s."
