"""The figures and the table of zhang2004 (Zhang et al., Performance implications of failures in large-scale cluster
scheduling), sections III to V.

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``. The paper's panels are
drawn for both readings of its backfilling: conservative (its words), and EASY.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.curves import curve_over
from faultsweep.analysis.figures.describe import (
    describe_held,
    describe_jobs,
    describe_truncated,
    names,
    unique,
)
from faultsweep.analysis.figures.figure import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Curve,
    Figure,
    Panel,
    Style,
    Table,
)
from faultsweep.analysis.statistics import describe_intervals, mean_interval, paired_difference
from faultsweep.sweeps.open import open_jobs

X = "target_utilisation"
UTILISATION = "Offered utilisation"
SLOWDOWN, LOSS, OVERHEAD = "mean_slowdown", "work_loss_ratio", "checkpoint_overhead_ratio"
_LABELS = {
    SLOWDOWN: "Mean slowdown",
    LOSS: "Mean work loss ratio (%)",
    OVERHEAD: "Mean checkpoint overhead ratio (%)",
}
READINGS = {"conservative": "conservative", "backfill": "EASY"}
NO_FAILURE = "no failure"
DAY_S = 86400.0
_SYMBOLS = {
    "β": "β is the shape",
    "W": "W failures make a wave (2: independent)",
    "α": "α is the skewness over the nodes",
}
SHORTEST_MIN = 0.01  # of the times between failures that figures tell apart
_BASELINES = {NO_FAILURE: Style(BLACK, "P", dashed=True), "no checkpoint": Style(VERMILION, "s")}
_BASELINES["no prediction"] = _BASELINES["no checkpoint"]
_STYLES = (Style(BLUE, "o"), Style(GREEN, "^"), Style(ORANGE, "D"), Style(PURPLE, "v"))
_FIGURE_3 = {
    "β = 0.20": Style(BLUE, "o"),
    "β = 0.55": Style(GREEN, "^"),
    "β = 0.65": Style(ORANGE, "D"),
    "β = 0.85": Style(VERMILION, "s"),
    "W = 2": Style(SKY, "o"),
    "W = 64": Style(PURPLE, "v"),
    "α = 0.01": Style(VERMILION, "P", dashed=True),
    "α = 0.99": Style(BLUE, "v", dashed=True),
}
PAPER_TABLE_1 = {0.2: (78, 1.2), 0.55: (138, 2.2), 0.65: (198, 3.2), 0.85: (266, 4.3)}
"""Shape -> failures and failures per day that the paper's Table I prints; the scale is 18,000 s."""


def figure_1(data: xr.Dataset) -> Figure:
    """Return figure 1: times between failures and times of failures, different shapes of the Weibull distribution."""
    return _times(data, 1, "Times of failures, different shapes", "weibull_shape", "β")


def figure_2(data: xr.Dataset) -> Figure:
    """Return figure 2: times between failures and times of failures, different windows of correlation."""
    return _times(data, 2, "Times of failures, different correlation", "burst_window", "W")


def table_1(data: xr.Dataset) -> Figure:
    """Return table I: the number of failures under each shape, and where the paper's one sample is among many."""
    rows = []
    for shape in unique(data, "weibull_shape"):
        part = data.sel(weibull_shape=shape)
        counts = part["failures_drawn"].values.ravel()
        found = mean_interval(part["failures_drawn"], part["status"])
        per_day = mean_interval(part["failures_drawn_per_day"], part["status"])["mean"]
        low, high = np.nanquantile(counts, [0.025, 0.975])
        row = [f"{shape:g}", _interval(found), f"{low:.0f} to {high:.0f}", f"{float(per_day):.2f}"]
        if shape in PAPER_TABLE_1:
            count, rate = PAPER_TABLE_1[shape]
            row += [f"{count}", f"{rate}", f"{100 * np.mean(counts[np.isfinite(counts)] <= count):.1f} %"]
        rows.append([*row, *[""] * (7 - len(row))])
    header = ["β", "Mean (95 % interval)", "95 % of samples", "A day", "Paper", "Paper, a day", "Samples ≤ paper"]
    caption = [
        f"Failures in {unique(data, 'days')[0]:g} days; {data.sizes['replicate']:,} independent samples of each shape, "
        "of which the paper prints one.",
    ]
    generator, scale_h = unique(data, "failures")[0], unique(data, "weibull_scale_s")[0] / 3600
    facts = [f"Generator {generator}, scale {scale_h:g} h."]
    table = Table(header, rows)
    source = _source("table I")
    return Figure("zhang2004-table-1", "Numbers of failures", caption, table=table, facts=facts, source=source)


def figure_3(data: xr.Dataset) -> Figure:
    """Return figure 3: slowdown and work loss against utilisation, different shapes, correlation and skewness."""
    groups = {
        "(a) shape; W = 2, α = 0.01": ("β = 0.20", "β = 0.55", "β = 0.65", "β = 0.85"),
        "(b) correlation; β = 0.85, α = 0.5": ("W = 2", "W = 64"),
        "(c) skewness; β = 0.85, W = 2": ("α = 0.01", "α = 0.99"),
    }
    panels = []
    for scheduler in names(data, "scheduler"):
        for metric in (SLOWDOWN, LOSS):
            for title, rows in groups.items():
                part = data.sel(scheduler=scheduler, pattern=[*rows, NO_FAILURE])
                panels.append(_panel(part, metric, "pattern", f"{title}: {READINGS[scheduler]}"))
    title = "Impact of the failures' arrivals"
    figure = _figure(data, 3, title, panels, _describe_changes(data, "pattern", NO_FAILURE), columns=3)
    symbols = f"Failures: {'; '.join(_SYMBOLS.values())}."
    return replace(figure, caption=[symbols, *figure.caption])


def figure_4(data: xr.Dataset) -> Figure:
    """Return figure 4: slowdown and work loss against utilisation, different down times."""
    return _by_pattern(data, 4, "Impact of the down time", (SLOWDOWN, LOSS), "down 2 min")


def figure_5(data: xr.Dataset) -> Figure:
    """Return figure 5: periodic checkpoints under independent failures: slowdown, work loss and overhead."""
    return _by_metric(data, 5, "Periodic checkpoints, independent failures", "pattern", "no checkpoint")


def figure_6(data: xr.Dataset) -> Figure:
    """Return figure 6: periodic checkpoints under correlated failures: slowdown, work loss and overhead."""
    return _by_metric(data, 6, "Periodic checkpoints, correlated failures", "pattern", "no checkpoint")


def figure_7(data: xr.Dataset) -> Figure:
    """Return figure 7: slowdown with checkpoints that are complete at the instant of the failure."""
    return _by_pattern(data, 7, "Exact prediction and checkpointing", (SLOWDOWN,), NO_FAILURE)


def figure_8(data: xr.Dataset) -> Figure:
    """Return figure 8: slowdown with checkpoints by buckets of 1, 4 and 8 h; of all, long and the biggest jobs."""
    panels = []
    for words, part in _readings(data):
        for letter, who in zip("abc", ("all", "long", "big"), strict=True):
            rows = [row for row in names(data, "policy") if row.endswith(f", {who}")]
            shown = part.sel(policy=[*rows, "no prediction", NO_FAILURE])
            panel = _panel(shown, SLOWDOWN, "policy", f"({letter}) {who} jobs: {words}", _styles(rows))
            # the title says whose checkpoints, so a legend of three lengths serves all panels
            curves = [replace(curve, label=curve.label.removesuffix(f", {who}")) for curve in panel.curves]
            panels.append(replace(panel, curves=curves))
    title = "Checkpoints by buckets"
    return _figure(data, 8, title, panels, _describe_changes(data, "policy", "no prediction"), columns=3)


def figure_9(data: xr.Dataset) -> Figure:
    """Return figure 9: which jobs a bucket of 4 h checkpoints: slowdown, work loss and overhead."""
    return _by_metric(data, 9, "Jobs to checkpoint in buckets of 4 h", "", "no prediction")


def figure_10(data: xr.Dataset) -> Figure:
    """Return figure 10: which jobs a bucket of 4 h checkpoints under correlated failures: slowdown."""
    title = "Jobs to checkpoint in buckets of 4 h, correlated failures"
    return _by_pattern(data, 10, title, (SLOWDOWN,), "no prediction")


def figure_11(data: xr.Dataset) -> Figure:
    """Return figure 11: least failure first: slowdown and work loss."""
    return _by_pattern(data, 11, "Least failure first", (SLOWDOWN, LOSS), "no prediction")


FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "zhang2004-table-1": table_1,
    "zhang2004-fig-1": figure_1,
    "zhang2004-fig-2": figure_2,
    "zhang2004-fig-3": figure_3,
    "zhang2004-fig-4": figure_4,
    "zhang2004-fig-5": figure_5,
    "zhang2004-fig-6": figure_6,
    "zhang2004-fig-7": figure_7,
    "zhang2004-fig-8": figure_8,
    "zhang2004-fig-9": figure_9,
    "zhang2004-fig-10": figure_10,
    "zhang2004-fig-11": figure_11,
}
"""Experiment -> the function that makes its figure from its results."""


def _times(data: xr.Dataset, number: int, title: str, axis: str, symbol: str) -> Figure:
    """Return the distribution of the times between failures, and the failures of one sample in order, over time."""
    distributions, series, counts = [], [], []
    for value, style in zip(unique(data, axis), _STYLES, strict=False):
        label, line = f"{symbol} = {value:g}", Style(style.colour, "")
        times = [open_jobs(data.sel({axis: [value]}), replicate=r)["time_s"].values for r in data["replicate"].values]
        gaps = np.sort(np.concatenate([np.diff(each, prepend=0.0) for each in times])) / 60
        none = np.full(len(gaps), np.nan)
        share = np.arange(1, len(gaps) + 1) / max(1, len(gaps))
        distributions.append(Curve(label, np.maximum(gaps, SHORTEST_MIN), share, none, none, line))
        order, none = np.arange(1.0, len(times[0]) + 1), np.full(len(times[0]), np.nan)
        series.append(Curve(label, order, times[0] / DAY_S, none, none, line))
        part = data.sel({axis: value})
        counts.append(f"{label}: {_interval(mean_interval(part['failures_drawn'], part['status']))}")
    gap = "Time between failures (min)"
    panels = [
        Panel("(a) Times between failures", gap, "Share of shorter times", distributions, log_x=True),
        Panel("(b) Failures of one sample", "Failure", "Time (days)", series),
    ]
    samples = data.sizes["replicate"]
    alike = "; the order of the times does not change their distribution" if axis == "burst_window" else ""
    scale_h, days = unique(data, "weibull_scale_s")[0] / 3600, unique(data, "days")[0]
    caption = [
        f"Weibull distribution of scale {scale_h:g} h, {days:g} days; {_SYMBOLS[symbol]}.",
        f"(a) All {samples} samples, times below {SHORTEST_MIN:g} min at its end{alike}; (b) the first of them.",
    ]
    facts = [f"Failures in a sample: {'; '.join(counts)} (means of {samples} samples, 95 % confidence intervals)."]
    source = _source(f"figure {number}")
    return Figure(f"zhang2004-fig-{number}", title, caption, panels, facts=facts, source=source)


def _source(place: str) -> str:
    return f"Zhang et al. (2004), {place}"


def _interval(found: xr.Dataset) -> str:
    """Return a mean with its interval as text."""
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    return f"{mean:.1f}" + (f" ({low:.1f} to {high:.1f})" if np.isfinite(low) else "")


def _readings(data: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Return the results of each scheduler, and of each interval of checkpoints in a bucket, that there are."""
    parts = []
    for scheduler in names(data, "scheduler"):
        part, words = data.sel(scheduler=scheduler), READINGS[scheduler]
        for repeat in names(data, "repeat") if "repeat" in data.dims else [None]:
            one = part if repeat is None else part.sel(repeat=repeat)
            if bool(one[SLOWDOWN].notnull().any()):
                parts.append((words if repeat is None else f"{words}, {repeat}", one))
    return parts


def _styles(rows: Sequence[str]) -> dict[str, Style]:
    """Return the styles of curves: fixed ones for what others are compared to, and for figure 3."""
    others = [row for row in rows if row not in _BASELINES and row not in _FIGURE_3]
    return {**_BASELINES, **_FIGURE_3, **dict(zip(others, _STYLES, strict=False))}


def _panel(part: xr.Dataset, metric: str, axis: str, title: str, styles: dict[str, Style] | None = None) -> Panel:
    """Return one metric against the utilisation, a curve per row of ``axis``."""
    styles = styles or _styles(names(part, axis))
    found = mean_interval(part[metric], part["status"]) * (1 if metric == SLOWDOWN else 100)
    curves = [curve_over(row, found.sel({axis: row}), X, styles[row]) for row in names(part, axis)]
    return Panel(title, UTILISATION, _LABELS[metric], curves, log_y=metric == SLOWDOWN)


def _by_pattern(data: xr.Dataset, number: int, title: str, metrics: Sequence[str], baseline: str) -> Figure:
    """Return a column of panels per pattern of failures, a row per metric and scheduler."""
    panels = []
    for words, part in _readings(data):
        for metric in metrics:
            for letter, pattern in zip("abc", names(data, "pattern"), strict=False):
                one = part.sel(pattern=pattern)
                panels.append(_panel(one, metric, "policy", f"({letter}) {pattern}: {words}"))
    changes = _describe_changes(data, "policy", baseline)
    return _figure(data, number, title, panels, changes, columns=data.sizes["pattern"])


def _by_metric(data: xr.Dataset, number: int, title: str, along: str, baseline: str) -> Figure:
    """Return a column of panels per metric, a row per row of ``along`` (if any) and scheduler."""
    panels = []
    for words, part in _readings(data):
        for row in names(data, along) if along else [None]:
            one = part if row is None else part.sel({along: row})
            of = words if row is None else f"{row}: {words}"
            panels += [_panel(one, metric, "policy", of) for metric in (SLOWDOWN, LOSS, OVERHEAD)]
    return _figure(data, number, title, panels, _describe_changes(data, "policy", baseline), columns=3)


def _figure(data: xr.Dataset, number: int, title: str, panels: list[Panel], changes: str, columns: int) -> Figure:
    model = "Substitute log: a model of LLNL Atlas, because that of ASCI Blue-Pacific cannot be had."
    caption = [
        "Means over jobs against the offered utilisation. Conservative and EASY: two readings of the paper.",
        describe_jobs(data),
        model if "llnl-model" in unique(data, "log") else "",
        _describe_replicates(data),
        describe_truncated(data),
    ]
    facts = [_describe_failures(data), describe_held(data, ("machine", "estimates")), changes]
    caption, facts = ([text for text in texts if text] for texts in (caption, facts))
    source = _source(f"figure {number}")
    return Figure(f"zhang2004-fig-{number}", title, caption, panels, columns, facts=facts, source=source)


def _describe_failures(data: xr.Dataset) -> str:
    """Return a sentence with the rates of failures that runs saw, by pattern."""
    axis = "pattern" if "pattern" in data.dims else "policy"
    seen = data["failures_seen_per_day"].where(data["failures_seen"] > 0)
    rates = seen.mean([dim for dim in seen.dims if dim != axis])
    parts = [f"{row} {float(rate):.1f}" for row, rate in zip(names(data, axis), rates.values, strict=True) if rate > 0]
    if axis == "policy":
        parts = [f"{float(seen.mean()):.1f}"]
    return f"Failures a day, over all runs: {', '.join(parts)}."


def _describe_replicates(data: xr.Dataset) -> str:
    found = mean_interval(data[SLOWDOWN], data["status"])
    counts = found["n"]
    each = [f"{int(counts.sel(scheduler=row).max())} ({READINGS[row]})" for row in names(data, "scheduler")]
    return f"Means of {' and '.join(each)} replicates; intervals are {describe_intervals(found)}."


def _describe_changes(data: xr.Dataset, axis: str, baseline: str) -> str:
    """Return a sentence with the paired change of the slowdown against a baseline, at the ends of the utilisation."""
    ends = [float(data[X].min()), float(data[X].max())]
    sentences = []
    for words, part in _readings(data):
        for pattern in names(data, "pattern") if axis == "policy" and "pattern" in data.dims else [None]:
            one = part if pattern is None else part.sel(pattern=pattern)
            found = paired_difference(one[SLOWDOWN], axis, baseline, one["status"], relative=True) * 100
            rows = [row for row in names(data, axis) if row not in (baseline, NO_FAILURE)]
            parts = [f"{row} {' and '.join(_change(found.sel({axis: row, X: end})) for end in ends)}" for row in rows]
            sentences.append(f"{words}{'' if pattern is None else f', {pattern}'}: {'; '.join(parts)}.")
    return (
        f"Slowdown against {baseline}, paired, at utilisation {ends[0]:g} and {ends[1]:g} (95\u00a0% intervals): "
        + " ".join(sentences)
    )


def _change(found: xr.Dataset) -> str:
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    return f"{mean:+.0f}\u00a0%" + (f" ({low:+.0f} to {high:+.0f})" if np.isfinite(low) else "")
