"""A picture of a job log: sizes, run times, the daily cycle, and the load over time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from faultsweep.analysis.pictures.picture import draw_panels
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads.summary import capacity, offered_load, processors, size_classes, span_s, work
from faultsweep.sweeps.times import UNITS_S, describe_time, unit_of
from numpy.typing import NDArray

from faultsweep.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

JOBS_COLOUR, WORK_COLOUR, REQUESTED_COLOUR = "#3a6ea5", "#e07b39", "#7a7a7a"
TICKS_S = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h", 360_000: "100 h"}
_MOST_DECADES = 7  # of time, in which these ticks are read; others have powers of ten
_MOST_BARS = 1000


def draw(workload: Workload, path: str | Path) -> None:
    """Write the picture to a file (.png, .pdf or .svg).

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    load = f", offered load {offered_load(workload):.2f}" if capacity(workload) else ""
    title = f"{workload.name}: {counted(len(workload), 'job')} in {describe_time(span_s(workload))}{load}"
    draw_panels(path, workload, [[_sizes, _times], [_hours, _load]], (11, 7.5), title, grid="y")


def _sizes(workload: Workload, axis: Axes) -> None:
    classes = size_classes(workload)
    share = [100 * rows.mean() for _, _, rows in classes]
    of_work = work(workload)
    work_share = [100 * of_work[rows].sum() / of_work.sum() for _, _, rows in classes]
    place = np.arange(len(classes))
    axis.bar(place - 0.2, share, 0.4, color=JOBS_COLOUR, label="of jobs")
    axis.bar(place + 0.2, work_share, 0.4, color=WORK_COLOUR, label="of work (size × run time)")
    labels = [str(high) if low == high else f"{low}-{high}" for low, high, _ in classes]
    crowded = len(labels) > 9
    axis.set_xticks(place, labels, rotation=40 if crowded else 0, ha="right" if crowded else "center")
    top = 1.25 * max(share + work_share)  # room for the legend
    axis.set(title="Sizes", xlabel="size (processors)", ylabel="share (%)", ylim=(0, top))
    axis.legend(frameon=False)


def _times(workload: Workload, axis: Axes) -> None:
    _cumulative(axis, workload.run_s, np.ones(len(workload)), color=JOBS_COLOUR, label="run time, by jobs")
    _cumulative(axis, workload.run_s, work(workload), color=WORK_COLOUR, label="run time, by work")
    known = ~np.isnan(workload.requested_s)
    if known.any():
        requested = workload.requested_s[known]
        _cumulative(
            axis,
            requested,
            np.ones(len(requested)),
            color=REQUESTED_COLOUR,
            linestyle="--",
            label="requested time, by jobs",
        )
    longest = max(workload.run_s.max(), np.nanmax(workload.requested_s) if known.any() else 0)
    shortest = min(1.0, workload.run_s.min())
    wide = np.log10(longest) - np.log10(shortest) > _MOST_DECADES
    axis.set_xscale("log")
    axis.minorticks_off()
    if not wide:
        axis.set_xticks(list(TICKS_S), list(TICKS_S.values()))
    axis.set_xlim(shortest, longest * 1.3)
    label = "time (s, logarithmic)" if wide else "time (logarithmic)"
    axis.set(title="Times", xlabel=label, ylabel="share with at most this time (%)", ylim=(0, 135))
    axis.set_yticks(range(0, 101, 20))  # above 100 is room for the legend
    axis.legend(frameon=False, loc="upper left")


def _cumulative(axis: Axes, values: NDArray[np.float64], weights: NDArray[np.float64], **style: Any) -> None:
    order = np.argsort(values)
    share = 100 * weights[order].cumsum() / weights.sum()
    thin = np.unique(np.linspace(0, len(order) - 1, 4000).astype(int))  # a curve of 300,000 steps helps nobody
    axis.step(values[order][thin], share[thin], where="post", **style)


def _hours(workload: Workload, axis: Axes) -> None:
    start, local = _start_of_day_s(workload)
    hour = ((workload.submit_s + start) / 3600).astype(int) % 24
    share = 100 * np.bincount(hour, minlength=24) / len(workload)
    axis.bar(np.arange(24) + 0.5, share, 0.85, color=JOBS_COLOUR)
    axis.set_xticks(range(0, 25, 3))
    clock = "local time" if local else "the log's clock, 0 at its start"
    axis.set(title="Arrivals over the day", xlabel=f"hour ({clock})", ylabel="share of jobs (%)", xlim=(0, 24))


def _start_of_day_s(workload: Workload) -> tuple[int, bool]:
    """Return the local time of day, in seconds, of the log's time 0 by its header, and whether it is known."""
    for line in workload.header:
        found = re.match(r"\s*;\s*StartTime:.*?(\d\d):(\d\d):(\d\d)", line)
        if found:
            hours, minutes, seconds = (int(text) for text in found.groups())
            return hours * 3600 + minutes * 60 + seconds, True
    return 0, False


def _load(workload: Workload, axis: Axes) -> None:
    unit = unit_of(span_s(workload))
    length = UNITS_S[unit]
    reach = span_s(workload) / length or 1.0  # jobs of one instant stand over one second
    width = 1 if unit != "days" or reach <= 60 else max(7, int(reach / _MOST_BARS))
    edges = np.arange(0, reach, width)
    if len(edges) > 1 and reach - edges[-1] < width / 2:  # in so short a rest the last job would be a peak
        edges = edges[:-1]
    edges = np.append(edges, reach)
    since = (workload.submit_s - workload.submit_s[0]) / length
    total, _ = np.histogram(since, edges, weights=work(workload))
    available = processors(workload) * np.diff(edges) * length
    one = {"days": "day", "h": "hour", "min": "minute", "s": "second"}[unit]
    period = {1: one, 7: "week"}.get(width, f"{width:,} days")
    if capacity(workload):
        axis.stairs(total / available, edges, fill=True, color=WORK_COLOUR, alpha=0.8)
        axis.axhline(offered_load(workload), color="black", linewidth=1, linestyle=":", label="whole span")
        axis.set(ylabel=f"offered load of each {period}")
        axis.legend(frameon=False)
    else:
        axis.stairs(total / 3600, edges, fill=True, color=WORK_COLOUR, alpha=0.8)
        axis.set(ylabel=f"work of each {period} (processor-hours)")
    axis.set(title="Load over time", xlabel=f"{unit} since the first submission", xlim=(0, reach))
    axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
