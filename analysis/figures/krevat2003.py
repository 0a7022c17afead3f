"""The figures and the table of krevat2003 (E. Krevat, Job scheduling on toroidal interconnects), chapters 3 to 5.

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.describe import (
    CAPACITIES,
    SCHEDULERS,
    STYLES,
    describe_held,
    describe_logs,
    describe_replicates,
    describe_varied,
    names,
    set_parameters,
    short_number,
    unique,
    workload_title,
)
from faultsweep.analysis.figures.figure import (
    BLUE,
    GREEN,
    ORANGE,
    SKY,
    Bars,
    Curve,
    Figure,
    Panel,
    Style,
    Table,
)
from faultsweep.analysis.figures.sweep import replicates
from faultsweep.analysis.statistics import REPLICATE, mean_interval, saturation
from faultsweep.sweeps.open import open_jobs

UTILISATION = "Utilisation of the machine"
_HELD = ("machine", "start_delay_s", "estimates", "growth_limit")


def figure_4_1(data: xr.Dataset) -> Figure:
    """Return figure 4-1: how many jobs there are of each size, and how much of the work they are."""
    panels = []
    for workload in names(data, "workload"):
        size, run_s = _jobs(data, workload)
        labels, jobs = _by_size_class(size, np.ones(len(size)))
        work = _by_size_class(size, size * run_s)[1]
        bars = [Bars("jobs", 100 * jobs, Style(BLUE)), Bars("work", 100 * work, Style(ORANGE))]
        title = workload_title(data, workload)
        panels.append(Panel(title, "Job size (nodes)", "Share of all (%)", bars=bars, categories=labels))
    caption = [
        "Share of the jobs and of the work (size × run time); sizes in powers of two.",
        describe_logs(data),
    ]
    return Figure("krevat2003-fig-4-1", "Jobs and work by job size", caption, panels, source=_source("figure 4-1"))


def table_4_1(data: xr.Dataset) -> Figure:
    """Return table 4.1: statistics of the spans of the logs, beside the paper's."""
    printed = {"NASA": ("6.3", "14.4", "0.881", "5.41"), "SDSC": ("9.7", "14.8", "7.1", "25.5")}
    rows = []
    for workload in names(data, "workload"):
        size, run_s = _jobs(data, workload)
        work = size * run_s * len(size) / 128 / 1e6
        found = [f"{value:.2f}" for value in (size.mean(), size.std(ddof=1))]
        found += [f"{value:.3f}" for value in (work.mean(), work.std(ddof=1))]
        rows.append([f"{workload_title(data, workload)}, here", f"{len(size):,}", *found])
        if workload in printed:
            rows.append([f"{workload}, paper", "10,000", *printed[workload]])
    header = ["Log", "Jobs", "Size (nodes)", "s. d.", "Workload (10⁶ node-s)", "s. d."]
    caption = [
        "Means of job sizes and of the workload of a job, with standard deviations (s. d.).",
        describe_logs(data),
    ]
    facts = [
        "Workload (size × run time) is multiplied by jobs / 128: on this scale the paper's means agree (the span's "
        "whole work over 128 nodes), as a mean over jobs they do not.",
        "The paper's NASA span is of the raw log, with the one-node system jobs that the cleaned log leaves out.",
    ]
    title, table = "Statistics of the logs", Table(header, rows)
    return Figure("krevat2003-table-4-1", title, caption, table=table, facts=facts, source=_source("table 4.1"))


def finders(data: xr.Dataset) -> Figure:
    """Return the study of finders of chapter 3: mean and longest scheduling time with each, beside the paper's."""
    printed = {
        ("NASA", "exhaustive"): ("510", "38,000"),
        ("NASA", "pop"): ("160", "8,300"),
        ("SDSC", "exhaustive"): ("125", "50,000"),
        ("SDSC", "pop"): ("63", "8,500"),
    }
    means = data[["mean_scheduling_s", "max_scheduling_s"]].mean("replicate")
    rows = []
    for workload in names(data, "workload"):
        for finder in names(data, "finder"):
            cell = means.sel(workload=workload, finder=finder)
            paper = printed.get((workload, finder), ("", ""))
            here = [short_number(float(cell[name]) * 1e3) for name in ("mean_scheduling_s", "max_scheduling_s")]
            rows.append([f"{workload_title(data, workload)}: {finder}", here[0], paper[0], here[1], paper[1]])
    header = ["Finder", "Mean per job (ms)", "Paper: mean (ms)", "Longest pass (ms)", "Paper: longest (ms)"]
    caption = [
        f"{label_of(str(unique(data, 'scheduler')[0]))}: processor time of one core beside the paper's of 2003.",
        describe_logs(data),
    ]
    facts = [
        "Processor time of the events and the scheduling passes, measured on the machine that ran this.",
        "All finders give the same schedule. exhaustive and pop: the paper's; divisor: Oliner et al. (2004); columns: "
        "this project's.",
        describe_held(data, ("machine", "start_delay_s", "load_scale")),
    ]
    title, table = "Scheduling time with each finder", Table(header, rows)
    return Figure("krevat2003-finders", title, caption, table=table, facts=facts, source=_source("chapter 3"))


def figure_5_1(data: xr.Dataset) -> Figure:
    """Return figure 5-1: mean wait against utilisation, four schedulers."""
    return _curves(data, "fig-5-1", "Mean wait", "mean_wait_s")


def figure_5_2(data: xr.Dataset) -> Figure:
    """Return figure 5-2: mean bounded slowdown against utilisation, four schedulers."""
    return _curves(data, "fig-5-2", "Mean bounded slowdown", "mean_bounded_slowdown")


def figure_5_3(data: xr.Dataset) -> Figure:
    """Return figure 5-3: mean bounded slowdown against utilisation, torus (solid) and flat machine (dashed)."""
    return _curves(data, "fig-5-3", "Mean bounded slowdown, torus and flat machine", "mean_bounded_slowdown", "policy")


def demo(data: xr.Dataset) -> Figure:
    """Return the figure of the demonstration: mean bounded slowdown against utilisation, torus and flat machine."""
    figure = _curves(data, "", "What a torus costs: mean bounded slowdown", "mean_bounded_slowdown", "policy")
    return replace(figure, name="demo", source="")


def figure_5_4(data: xr.Dataset) -> Figure:
    """Return figure 5-4: number of migrations, and the time between them, against utilisation."""
    panels = []
    for count in (True, False):
        for workload in names(data, "workload"):
            part = data.sel(workload=workload)
            label = "Migrations" if count else "Time between migrations (min)"
            curves = _migration_curves(part, count)
            panels.append(Panel(workload_title(data, workload), UTILISATION, label, curves, log_y=not count))
    caption = [
        "Attempts, successes, and the successes if every opportunity is tried (most possible); a point per load.",
        describe_logs(data),
        describe_replicates(mean_interval(data["utilisation"], data["status"])),
    ]
    facts = [
        "Total and successful attempts under FN_tor = 0.1 and FN_max = 0.7; most possible under FN_tor = 0 and "
        "FN_max = 1. Time between migrations: between attempts.",
        _describe_success(data),
        describe_varied(data),
        describe_held(data, (*_HELD, *set_parameters(data))),
    ]
    return Figure("krevat2003-fig-5-4", "Migrations", caption, panels, facts=facts, source=_source("figure 5-4"))


def figure_5_5(data: xr.Dataset) -> Figure:
    """Return figure 5-5: mean wait against utilisation, standard migration policy and always trying."""
    figure = _curves(data, "fig-5-5", "Mean wait, selective and full migration", "mean_wait_s", "policy")
    extra = (
        "Solid: tried where 10 % of the nodes are free and at most 70 % of those in one piece; dashed: always tried."
    )
    return replace(figure, caption=[extra, *figure.caption])


def figure_5_6(data: xr.Dataset) -> Figure:
    """Return figure 5-6: capacity utilised, lost and unused at c = 1.0."""
    return _capacities(data, "fig-5-6", "Where the capacity went at a load scale of 1.0")


def figure_5_7(data: xr.Dataset) -> Figure:
    """Return figure 5-7: capacity utilised, lost and unused at c = 1.2."""
    return _capacities(data, "fig-5-7", "Where the capacity went at a load scale of 1.2")


FIGURES = {
    "demo": demo,
    "krevat2003-finders": finders,
    "krevat2003-fig-4-1": figure_4_1,
    "krevat2003-table-4-1": table_4_1,
    "krevat2003-fig-5-1": figure_5_1,
    "krevat2003-fig-5-2": figure_5_2,
    "krevat2003-fig-5-3": figure_5_3,
    "krevat2003-fig-5-4": figure_5_4,
    "krevat2003-fig-5-5": figure_5_5,
    "krevat2003-fig-5-6": figure_5_6,
    "krevat2003-fig-5-7": figure_5_7,
}
"""Experiment -> the function that makes its figure from its results."""


def _jobs(data: xr.Dataset, workload: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sizes (nodes) and run times (s) of the jobs of a workload, shape (jobs,)."""
    jobs = open_jobs(data, workload=workload)
    return jobs["requested_size"].values.astype(float), jobs["run_s"].values


def _by_size_class(size: np.ndarray, weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return labels and shares of the classes 1, 2, 3-4, 5-8, ... up to the largest size."""
    tops = 2 ** np.arange(int(np.ceil(np.log2(size.max()))) + 1)
    place = np.searchsorted(tops, size)
    shares = np.bincount(place, weights, len(tops)) / weights.sum()
    lows = np.concatenate([[0], tops[:-1]]) + 1
    return [str(top) if low == top else f"{low}–{top}" for low, top in zip(lows, tops, strict=True)], shares


def _curves(data: xr.Dataset, name: str, title: str, metric: str, axis: str = "scheduler") -> Figure:
    """Return a figure with a panel per workload and a curve per scheduler or policy, over utilisation."""
    hours = metric == "mean_wait_s"
    label = "Mean wait (h)" if hours else "Mean bounded slowdown"
    panels = []
    for workload in names(data, "workload"):
        part = data.sel(workload=workload)
        curves = [_curve(part.sel({axis: row}), metric, row, 3600 if hours else 1) for row in names(data, axis)]
        panels.append(Panel(workload_title(data, workload), UTILISATION, label, curves, log_y=True))
    caption = [
        f"{label.partition(' (')[0]} against the utilisation that is reached; a point per load.",
        describe_logs(data),
        describe_replicates(mean_interval(data[metric], data["status"]), dots=replicates(data, metric) is not None),
    ]
    facts = [
        describe_varied(data),
        describe_held(data, (*_HELD, *set_parameters(data))),
        _describe_saturation(data, axis),
    ]
    return _figure(name, title, caption, panels, facts)


def _figure(name: str, title: str, caption: list[str], panels: list[Panel], facts: list[str]) -> Figure:
    source = _source(name.replace("fig-", "figure "))
    known = [text for text in facts if text]
    return Figure(f"krevat2003-{name}", title, [text for text in caption if text], panels, facts=known, source=source)


def _source(place: str) -> str:
    return f"Krevat (2003), {place}"


def _curve(part: xr.Dataset, metric: str, row: str, divisor: float = 1.0) -> Curve:
    """Return the curve of one scheduler or policy of one workload over its utilisation."""
    x = mean_interval(part["utilisation"], part["status"])["mean"]
    y = mean_interval(part[metric], part["status"]) / divisor
    curve = Curve(label_of(row), x.values, y["mean"].values, y["low"].values, y["high"].values, style_of(part, row))
    points = replicates(part, metric)
    return curve if points is None else replace(curve, replicates=points.transpose(..., REPLICATE).values / divisor)


def label_of(row: str) -> str:
    """Return the label of a scheduler or policy in a legend."""
    return SCHEDULERS.get(row, row)


def style_of(part: xr.Dataset, row: str) -> Style:
    """Return the style of a scheduler, dashed on a flat machine and where migration is always tried."""
    scheduler = str(part["scheduler"].values) if "scheduler" in part.coords else row
    flat = "machine" in part.coords and str(part["machine"].values).startswith("flat:")
    always = "migration_free_frac" in part.coords and float(part["migration_free_frac"]) == 0
    style = STYLES[scheduler]
    return Style(style.colour, style.marker, dashed=flat or always)


def _describe_saturation(data: xr.Dataset, axis: str) -> str:
    """Return a sentence with the saturation utilisations; ≥ where the loads do not reach it."""
    found = []
    for workload in names(data, "workload"):
        curve = data["utilisation"].sel(workload=workload).dropna("load_scale", how="all")
        if curve["load_scale"].size < 2:
            continue
        result = saturation(curve.where(curve.notnull()))
        parts = []
        for row in names(data, axis):
            at = result.sel({axis: row})
            least = "" if bool(at["reached"]) else "at least "
            parts.append(f"{label_of(row)} {least}{100 * float(at['saturation']):.0f}\u00a0%")
        found.append(f"{workload}: {', '.join(parts)}")
    return f"Saturation utilisation (the highest reached): {'; '.join(found)}." if found else ""


def _migration_curves(part: xr.Dataset, count: bool) -> list[Curve]:
    """Return the curves of one workload: attempts, successes and most possible successes of both schedulers."""
    curves = []
    for row in names(part, "policy"):
        one = part.sel(policy=row)
        style = style_of(one, row)
        scheduler = label_of(str(one["scheduler"].values))
        if not count and not style.dashed:
            total = _curve(one, "mean_time_between_migrations_s", row, 60)
            curves.append(_renamed(total, f"{scheduler}: total", style))
        elif not count:
            continue
        elif style.dashed:
            light = Style(style.colour, "P", dashed=True)
            curves.append(_renamed(_curve(one, "migrations_successful", row), f"{scheduler}: most possible", light))
        else:
            curves.append(_renamed(_curve(one, "migrations_attempted", row), f"{scheduler}: total", style))
            pale = Style(SKY if style.colour == ORANGE else GREEN, style.marker)
            curves.append(_renamed(_curve(one, "migrations_successful", row), f"{scheduler}: successful", pale))
    return curves


def _describe_success(data: xr.Dataset) -> str:
    """Return a sentence with the ranges of the share of attempts that succeed, over the loads."""
    found = []
    for workload in names(data, "workload"):
        share = data["migrations_per_attempt"].sel(workload=workload)
        ends = [share.sel(policy=row) for row in names(data, "policy")]
        parts = [
            f"{row} {100 * float(end.min()):.0f} to {100 * float(end.max()):.0f}\u00a0%"
            for row, end in zip(names(data, "policy"), ends, strict=True)
        ]
        found.append(f"{workload}: {', '.join(parts)}")
    return f"Successful of all attempts, over the loads: {'; '.join(found)}."


def _renamed(curve: Curve, label: str, style: Style) -> Curve:
    return Curve(label, curve.x, curve.y, curve.low, curve.high, style)


def _capacities(data: xr.Dataset, name: str, title: str) -> Figure:
    """Return stacked bars of utilised, lost and unused capacity per scheduler, a panel per workload."""
    if "load_scale" in data.dims:
        data = data.squeeze("load_scale")
    panels = []
    for workload in names(data, "workload"):
        part = data.sel(workload=workload)
        bars = [
            Bars(label, mean_interval(part[metric], part["status"])["mean"].values, Style(colour))
            for metric, (label, colour) in CAPACITIES.items()
        ]
        categories = [label_of(row) for row in names(data, "scheduler")]
        panels.append(
            Panel(
                workload_title(data, workload),
                "",
                "Share of the capacity",
                bars=bars,
                categories=categories,
                stacked=True,
            )
        )
    count = int(mean_interval(data["utilisation"], data["status"])["n"].max())
    caption = [
        "Capacity utilised, lost (wanted by jobs that did not fit) and unused.",
        describe_logs(data),
        f"Means of {count} replicates." if count > 1 else "",
    ]
    facts = [describe_held(data, ("load_scale", *_HELD, *set_parameters(data))), _describe_gains(data)]
    return _figure(name, title, caption, panels, facts)


def _describe_gains(data: xr.Dataset) -> str:
    """Return a sentence with the change of utilised and lost capacity against FCFS."""
    found = []
    for workload in names(data, "workload"):
        part = data[["utilisation", "lost_capacity"]].sel(workload=workload).mean("replicate").squeeze()
        change = part / part.sel(scheduler="fcfs") - 1
        rows = [row for row in names(data, "scheduler") if row != "fcfs"]
        parts = [
            f"{label_of(row)} {float(change['utilisation'].sel(scheduler=row)) * 100:+.0f}\u00a0% and "
            f"{float(change['lost_capacity'].sel(scheduler=row)) * 100:+.0f}\u00a0%"
            for row in rows
        ]
        found.append(f"{workload}: {', '.join(parts)}")
    return f"Utilised and lost capacity against FCFS: {'; '.join(found)}."
