"""The figures of tang2010 (Tang, Lan, Desai and Buettner, Automatic and coordinated job recovery, slides 16 to 21).

Every function takes the Dataset of the experiment of the same name and returns a ``Figure``. RESP is the mean response
of all jobs; FSD, the failure slowdown, is over failed jobs and paired with the run of the same jobs without failures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.curves import curve_over, means_over
from faultsweep.analysis.figures.describe import (
    describe_held,
    describe_logs,
    describe_replicates,
    describe_values,
    names,
    unique,
)
from faultsweep.analysis.figures.figure import BLACK, LOOKS, SKY, Bars, Figure, Panel, Style
from faultsweep.analysis.figures.layout import asks_for_log
from faultsweep.analysis.statistics import mean_interval, paired_difference, paired_ratio

RESP, FSD = "mean_response_s", "failure_slowdown"
GROUPS = "abcde"
MANUAL = "MR"
RATIO = "Response over that by hand"
_WORDS = {"FF": "no failures", MANUAL: "by hand", "Even": "even mix", "Normal": "normal mix"}
"""Cases of the slides -> what figures call them; others bear their own names."""
_LABELS = {RESP: "Mean response (h)", FSD: "Failure slowdown"}
_SCALE = {RESP: 1 / 3600.0, FSD: 1.0}
ORDERS = {"fcfs": "FCFS order", "wfp": "WFP order"}
_BARS = (*LOOKS[:5], Style(SKY))  # an interval would not be seen on a narrow black bar
_STYLES = (Style(BLACK, "o", dashed=True), *LOOKS[:5], Style(SKY, "s"))


def baseline(data: xr.Dataset) -> Figure:
    """Return slide 16: RESP and FSD without failures, with resubmission by hand, and with automatic recovery."""
    panels = []
    for metric in (RESP, FSD):
        for order in names(data, "queue_order"):
            cases = [case for case in names(data, "case") if metric == RESP or case != "FF"]  # it has no failed jobs
            part = data.sel(queue_order=order, case=cases)
            bars = [_bars(part[metric], part, "mean", LOOKS[0], metric)]
            label, log_y = _LABELS[metric], _is_wide(bars)
            panels.append(Panel(ORDERS[order], "", label, bars=bars, categories=_words(cases), log_y=log_y))
    title = "Response and failure slowdown with and without automatic recovery"
    return _figure("baseline", title, "slide 16", data, panels, _changes(data, "case", "MR", skip=("FF",)))


def options(data: xr.Dataset) -> Figure:
    """Return slides 17 and 18: several options at a time against one for all, by group of jobs."""
    panels = []
    for metric in (RESP, FSD):
        for groups in names(data, "groups"):
            for order in names(data, "queue_order"):
                part = data.sel(groups=groups, queue_order=order)
                panels.append(_by_group(part, metric, f"{groups} groups: {ORDERS[order]}"))
    title = "Several recovery options against one for all, by group of jobs"
    return _figure("options", title, "slides 17 and 18", data, panels, "", columns=2)


def mttr(data: xr.Dataset) -> Figure:
    """Return slide 19: RESP and FSD against the mean time to repair."""
    return _over(data, "mttr", "mttr_h", "Mean time to repair (h)", "Recovery against the time to repair", 19)


def mtbf(data: xr.Dataset) -> Figure:
    """Return slide 20: RESP and FSD against the mean time between failures."""
    return _over(data, "mtbf", "mtbf_h", "System MTBF (h)", "Recovery against the time between failures", 20)


def arrivals(data: xr.Dataset) -> Figure:
    """Return slide 21: RESP and FSD against the rate of arrivals."""
    return _over(data, "arrivals", "arrival_scale", "Rate of arrivals (of the log's)", "Recovery against arrivals", 21)


def credits(data: xr.Dataset) -> Figure:
    """Return what honest and gaming users get, with and without credits, by the group their jobs belong to."""
    panels = []
    for metric in (RESP, FSD):
        for order in names(data, "queue_order"):
            panels.append(_by_group(data.sel(queue_order=order), metric, ORDERS[order]))
    refused = data["credit_refusals"].mean([dim for dim in data["credit_refusals"].dims if dim != "case"])
    counts = zip(names(data, "case"), refused.values, strict=True)
    told = ", ".join(f"{case} {count:.0f}" for case, count in counts if case.endswith("credits"))
    title = "Honest and gaming users, with and without credits"
    text = f"Jobs whose option could not be paid (of {int(data['jobs_submitted'].max())}, means): {told}."
    return _figure("credits", title, "slides 10 and 11", data, panels, text)


FIGURES: dict[str, Callable[[xr.Dataset], Figure]] = {
    "tang2010-baseline": baseline,
    "tang2010-options": options,
    "tang2010-mttr": mttr,
    "tang2010-mtbf": mtbf,
    "tang2010-arrivals": arrivals,
    "tang2010-credits": credits,
}
"""Experiment -> the function that makes its figure from its results."""


def _bars(values: xr.DataArray, data: xr.Dataset, label: str, style: Style, metric: str) -> Bars:
    found = mean_interval(values, data["status"]) * _SCALE[metric]
    mean, low, high = (found[name].values for name in ("mean", "low", "high"))
    return Bars(label, mean, style, low, high)


def _words(cases: list[str]) -> list[str]:
    return [_WORDS.get(case, case) for case in cases]


def _is_wide(bars: list[Bars]) -> bool | None:
    """Tell whether most bars would be flat beside the highest: failure slowdowns of few jobs may be."""
    return asks_for_log([bar.y[bar.y > 0] for bar in bars]) or None


def _by_group(part: xr.Dataset, metric: str, title: str) -> Panel:
    """Return one metric by group of jobs: bars of every case beside each other, and all jobs last."""
    stem = "mean_response_{}_s" if metric == RESP else "failure_slowdown_{}"
    bars = []
    for case, style in zip(names(part, "case"), _BARS, strict=False):
        one = part.sel(case=case)
        each = [_bars(one[name], one, case, style, metric) for name in (*(stem.format(g) for g in GROUPS), metric)]
        mean, low, high = (np.array([getattr(bar, side) for bar in each], float) for side in ("y", "low", "high"))
        bars.append(Bars(case, mean, style, low, high))
    categories = [*GROUPS.upper(), "all"]
    return Panel(title, "Group of jobs", _LABELS[metric], bars=bars, categories=categories, log_y=_is_wide(bars))


def _over(data: xr.Dataset, name: str, x: str, x_label: str, title: str, slide: int) -> Figure:
    """Return both metrics and the paired ratio of the first over an axis, a column per order of the queue."""
    orders = names(data, "queue_order")
    log_x = x != "arrival_scale"
    rows: dict[str, list[Panel]] = {"mean": [], "ratio": [], "slowdown": []}
    for order in orders:
        part = data.sel(queue_order=order)
        cases = list(zip(names(data, "case"), _words(names(data, "case")), _STYLES, strict=False))
        found = mean_interval(part[RESP], part["status"]) * _SCALE[RESP]
        curves = [means_over(word, found.sel(case=case), x, style) for case, word, style in cases]
        rows["mean"].append(Panel(ORDERS[order], x_label, _LABELS[RESP], curves, log_x=log_x))
        found = paired_ratio(part[RESP], "case", MANUAL, part["status"])
        curves = [curve_over(word, found.sel(case=case), x, style) for case, word, style in cases if case != MANUAL]
        rows["ratio"].append(Panel(ORDERS[order], x_label, RATIO, curves, ratio=True, scale=order, log_x=log_x))
        found = mean_interval(part[FSD], part["status"])
        curves = [curve_over(word, found.sel(case=case), x, style) for case, word, style in cases]
        rows["slowdown"].append(Panel(ORDERS[order], x_label, _LABELS[FSD], curves, log_x=log_x))
    panels = [panel for row in rows.values() for panel in row]
    text = _changes(data.sel({x: [data[x].values[0], data[x].values[-1]]}), "case", "MR", over=x)
    figure = _figure(name, title, f"slide {slide}", data, panels, text)
    first, *others = figure.caption
    return replace(
        figure, caption=[first, "Ratios to resubmission by hand are paired, replicate by replicate.", *others]
    )


def _changes(data: xr.Dataset, axis: str, base: str, skip: tuple[str, ...] = (), over: str = "") -> str:
    """Return a sentence with the change of RESP against a case, replicate by replicate, in %."""
    found = paired_difference(data[RESP], axis, base, data["status"], relative=True) * 100
    sentences = []
    for order in names(data, "queue_order"):
        part, told = found.sel(queue_order=order), []
        for case in (row for row in names(data, axis) if row != base and row not in skip):
            one = part.sel({axis: case})
            ends = [one.sel({over: value}) for value in data[over].values] if over else [one]
            told.append(f"{_WORDS.get(case, case)} {' and '.join(_percent(end) for end in ends)}")
        sentences.append(f"{ORDERS[order]}: {', '.join(told)}.")
    at = f" at {describe_values(data[over].values.tolist())}" if over else ""
    return f"Mean response against {_WORDS.get(base, base)}, paired{at} (95\u00a0% intervals): {' '.join(sentences)}"


def _percent(found: xr.Dataset) -> str:
    mean, low, high = (float(found[name]) for name in ("mean", "low", "high"))
    return f"{mean:+.1f}\u00a0%" + (f" ({low:+.1f} to {high:+.1f})" if np.isfinite(low) else "")


def _figure(
    name: str, title: str, where: str, data: xr.Dataset, panels: list[Panel], text: str, columns: int = 2
) -> Figure:
    caption = [
        "Mean response of all jobs; failure slowdown: delay by failures over run time, of the jobs that failed.",
        describe_logs(data),
        "Substitute log: an excerpt of the log of Intrepid." if "anl-intrepid-1200" in unique(data, "log") else "",
        describe_replicates(mean_interval(data[RESP], data["status"])),
    ]
    facts = [_describe_failures(data), describe_held(data, ("machine", "scheduler", "estimates")), text]
    caption, facts = ([words for words in texts if words] for texts in (caption, facts))
    source = f"Tang et al. (2010), {where}"
    return Figure(f"tang2010-{name}", title, caption, panels, columns, facts=facts, source=source)


def _describe_failures(data: xr.Dataset) -> str:
    """Return a sentence on failures, repairs and resubmission by hand, and how many failures hit a job."""
    hits = float(data["failures_that_hit"].where(data["failures_seen"] > 0).mean())
    values = [
        f"{word} {describe_values(unique(data, name))} h" for word, name in (("MTBF", "mtbf_h"), ("MTTR", "mttr_h"))
    ]
    delay = unique(data, "manual_delay_h")
    by_hand = f"; users resubmit after {delay[0]:g} h in the mean" if delay else ""
    return f"Failures: {', '.join(values)}, Weibull of shape 0.7{by_hand}; {hits:.1f} of a run hit a job."
