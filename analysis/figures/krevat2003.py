"""The figures and the table of krevat2003 (E. Krevat, Job scheduling on toroidal interconnects), chapters 3 to 5.

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``.
"""

from __future__ import annotations

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
from faultsweep.analysis.open import open_jobs
from faultsweep.analysis.statistics import mean_interval, saturation

UTILISATION = "Utilisation of the machine"
_HELD = ("machine", "start_delay_s", "estimates", "growth_limit")


def figure_4_1(data: xr.Dataset) -> Figure:
    """Return figure 4-1: how many jobs there are of each size, and how much of the work they are."""
    panels = []
    for measure in ("jobs", "work"):
        for workload in names(data, "workload"):
            size, run_s = _jobs(data, workload)
            weights = np.ones(len(size)) if measure == "jobs" else size * run_s
            labels, shares = _by_size_class(size, weights)
            bars = Bars(f"share of the {measure}", shares, Style(BLUE if measure == "jobs" else ORANGE))
            what = "Job sizes" if measure == "jobs" else "Workload by job size"
            title = f"{what}: {workload_title(data, workload)}"
            panels.append(Panel(title, "Job size (nodes)", f"Share of the {measure}", bars=[bars], categories=labels))
    caption = [describe_logs(data), "Workload: size × run time. Size classes are between powers of two."]
    return Figure("krevat2003-fig-4-1", "Job sizes and workload (krevat2003, figure 4-1)", caption, panels)


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
    header = ["Log", "Jobs", "Size: mean", "Size: s. d.", "Workload: mean", "Workload: s. d."]
    caption = [
        describe_logs(data),
        "Sizes in nodes; workload (size × run time) in 10⁶ node-seconds, multiplied by jobs / 128: on this scale the "
        "paper's means agree (the span's whole work over 128 nodes), as a mean over jobs they do not.",
        "The paper's NASA span is of the raw log, with the one-node system jobs that the cleaned log leaves out.",
    ]
    title = "Statistics of the logs (krevat2003, table 4.1)"
    return Figure("krevat2003-table-4-1", title, caption, table=Table(header, rows))


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
        describe_logs(data),
        f"{label_of(str(unique(data, 'scheduler')[0]))}; processor time of the events and the scheduling passes, "
        "measured on one core of the machine that ran this; the paper's times are of 2003. All finders give the same "
        "schedule. exhaustive and pop: the paper's; divisor: oliner2004; columns: this project's.",
        describe_held(data, ("machine", "start_delay_s", "load_scale")),
    ]
    title = "Scheduling time with each finder (krevat2003, chapter 3)"
    return Figure("krevat2003-finders", title, caption, table=Table(header, rows))


def figure_5_1(data: xr.Dataset) -> Figure:
    """Return figure 5-1: mean wait against utilisation, four schedulers."""
    return _curves(data, "krevat2003-fig-5-1", "Mean wait (krevat2003, figure 5-1)", "mean_wait_s")


def figure_5_2(data: xr.Dataset) -> Figure:
    """Return figure 5-2: mean bounded slowdown against utilisation, four schedulers."""
    title = "Mean bounded slowdown (krevat2003, figure 5-2)"
    return _curves(data, "krevat2003-fig-5-2", title, "mean_bounded_slowdown")


def figure_5_3(data: xr.Dataset) -> Figure:
    """Return figure 5-3: mean bounded slowdown against utilisation, torus (solid) and flat machine (dashed)."""
    title = "Mean bounded slowdown, torus and flat machine (krevat2003, figure 5-3)"
    return _curves(data, "krevat2003-fig-5-3", title, "mean_bounded_slowdown", "policy")


def demo(data: xr.Dataset) -> Figure:
    """Return the figure of the demonstration: mean bounded slowdown against utilisation, torus and flat machine."""
    title = "What a torus costs: mean bounded slowdown against utilisation"
    return _curves(data, "demo", title, "mean_bounded_slowdown", "policy")


def figure_5_4(data: xr.Dataset) -> Figure:
    """Return figure 5-4: number of migrations, and the time between them, against utilisation."""
    panels = []
    for count in (True, False):
        for workload in names(data, "workload"):
            part = data.sel(workload=workload)
            label = "Migrations" if count else "Time between migrations (min)"
            curves = _migration_curves(part, count)
            panels.append(
                Panel(f"{label}: {workload_title(data, workload)}", UTILISATION, label, curves, log_y=not count)
            )
    caption = [
        describe_logs(data),
        "Total and successful attempts under FN_tor = 0.1 and FN_max = 0.7; most possible: successes when every "
        "opportunity is tried (FN_tor = 0, FN_max = 1). Time between migrations: between attempts.",
        _describe_success(data),
        describe_varied(data),
        describe_held(data, (*_HELD, *set_parameters(data))),
        describe_replicates(mean_interval(data["utilisation"], data["status"])["n"]),
    ]
    return Figure("krevat2003-fig-5-4", "Migrations (krevat2003, figure 5-4)", caption, panels)


def figure_5_5(data: xr.Dataset) -> Figure:
    """Return figure 5-5: mean wait against utilisation, standard migration policy and always trying."""
    title = "Mean wait, selective and full migration (krevat2003, figure 5-5)"
    figure = _curves(data, "krevat2003-fig-5-5", title, "mean_wait_s", "policy")
    extra = "Solid: attempts under FN_tor = 0.1 and FN_max = 0.7; dashed: every opportunity is tried."
    return Figure(figure.name, figure.title, [extra, *figure.caption], figure.panels)


def figure_5_6(data: xr.Dataset) -> Figure:
    """Return figure 5-6: capacity utilised, lost and unused at c = 1.0."""
    return _capacities(data, "krevat2003-fig-5-6", "Where the capacity went at c = 1.0 (krevat2003, figure 5-6)")


def figure_5_7(data: xr.Dataset) -> Figure:
    """Return figure 5-7: capacity utilised, lost and unused at c = 1.2."""
    return _capacities(data, "krevat2003-fig-5-7", "Where the capacity went at c = 1.2 (krevat2003, figure 5-7)")


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
    return [str(top) if low == top else f"{low}-{top}" for low, top in zip(lows, tops, strict=True)], shares


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
        describe_logs(data),
        describe_varied(data),
        describe_held(data, (*_HELD, *set_parameters(data))),
        describe_replicates(mean_interval(data[metric], data["status"])["n"]),
        _describe_saturation(data, axis),
    ]
    return Figure(name, title, caption, panels)


def _curve(part: xr.Dataset, metric: str, row: str, divisor: float = 1.0) -> Curve:
    """Return the curve of one scheduler or policy of one workload over its utilisation."""
    x = mean_interval(part["utilisation"], part["status"])["mean"]
    y = mean_interval(part[metric], part["status"]) / divisor
    return Curve(label_of(row), x.values, y["mean"].values, y["low"].values, y["high"].values, style_of(part, row))


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
        describe_logs(data),
        describe_held(data, ("load_scale", *_HELD, *set_parameters(data))),
        f"Means of {count} replicates." if count > 1 else "",
        _describe_gains(data),
    ]
    return Figure(name, title, [text for text in caption if text], panels)


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
