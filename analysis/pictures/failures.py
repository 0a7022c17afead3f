"""A picture of a failure log: when and where, times between failures, skew of the nodes, and down times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from faultsweep.analysis.pictures.picture import draw_panels
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.failure_logs.statistics import autocorrelation, equal_worst_share, fit_gaps, worst_share
from faultsweep.simcore.policies.failures.source import DAY_S

from faultsweep.extras import OptionalModule

stats = OptionalModule("scipy.stats", "the picture of a failure log")

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA_COLOUR, FIT_COLOURS, EQUAL_COLOUR = "#3a6ea5", ("#e07b39", "#5a9e6f", "#8c6bb1"), "#7a7a7a"
TICKS_S = {
    1e-3: "1 ms",
    1: "1 s",
    60: "1 min",
    3600: "1 h",
    DAY_S: "1 day",
    30 * DAY_S: "30 days",
    365 * DAY_S: "1 year",
}
MAX_LAG = 30


def draw(records: FailureRecords, path: str | Path) -> None:
    """Write the picture to a file (.png, .pdf or .svg).

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    days = records.span_s / DAY_S
    rate = f", {len(records) / days:,.2f} a day" if days else ""
    nodes = "node" if records.num_nodes == 1 else "nodes"
    failures = "failure" if len(records) == 1 else "failures"
    title = f"{records.name}: {len(records):,} {failures} of {records.num_nodes:,} {nodes} in {days:,.1f} days{rate}"
    draw_panels(path, records, [[_where, _gaps, _nodes], [_counts, _correlation, _down]], (14, 7.8), title)


def _days(records: FailureRecords) -> np.ndarray:
    return (records.time_s - records.time_s[0]) / DAY_S


def _where(records: FailureRecords, axis: Axes) -> None:
    opacity = float(np.clip(600 / len(records), 0.12, 0.8))
    axis.scatter(_days(records), records.node, s=5, color=DATA_COLOUR, alpha=opacity, linewidths=0, rasterized=True)
    axis.set(title="When and where", xlabel="days since the first failure", ylabel="node")
    axis.set_ylim(-0.02 * records.num_nodes, 1.02 * records.num_nodes)


def _gaps(records: FailureRecords, axis: Axes) -> None:
    gaps = np.diff(records.time_s)
    positive = np.sort(gaps[gaps > 0])
    axis.set(title="Times between failures", xlabel="time (logarithmic)", ylabel="share that is longer (logarithmic)")
    if len(positive) < 2:
        _nothing(axis, "too few different times")
        return
    share = 1.0 - np.arange(len(positive)) / len(positive)
    axis.step(positive, share, where="pre", color=DATA_COLOUR, linewidth=2, label="log")
    grid = np.geomspace(positive[0], positive[-1], 300)
    for fit, colour in zip(fit_gaps(positive), FIT_COLOURS, strict=False):
        shape = f", shape {fit.parameters['shape']:.2f}" if "shape" in fit.parameters else ""
        axis.plot(grid, fit.survival(grid), color=colour, linewidth=1.3, label=f"{fit.name}{shape} (KS {fit.ks:.3f})")
    axis.set_yscale("log")
    axis.set_ylim(0.5 / len(positive), 1.6)
    _time_axis(axis, positive[0], positive[-1])
    if len(positive) < len(gaps):
        left_out = 1 - len(positive) / len(gaps)
        axis.set_xlabel(f"time (logarithmic); {100 * left_out:.1f} % are 0 s and not shown")
    axis.legend(frameon=False, loc="lower left", title="best AIC first")


def _time_axis(axis: Axes, shortest: float, longest: float) -> None:
    axis.set_xscale("log")
    axis.minorticks_off()
    low, high = min(shortest, longest) / 1.5, longest * 1.5
    ticks = {at: text for at, text in TICKS_S.items() if low <= at <= high}
    if len(ticks) < 2:
        ticks = {at: f"{at:,.3g} s" for at in (shortest, longest)}
    axis.set_xticks(list(ticks), list(ticks.values()))
    axis.set_xlim(low, high)


def _nodes(records: FailureRecords, axis: Axes) -> None:
    per_node = np.bincount(records.node, minlength=records.num_nodes)
    share = np.concatenate([[0], np.cumsum(np.sort(per_node)[::-1])]) / len(records)
    at = np.linspace(0, 1, records.num_nodes + 1)
    axis.plot(100 * at, 100 * share, color=DATA_COLOUR, linewidth=2, label="log")
    grid = np.linspace(0, 1, 50)
    alike = [equal_worst_share(len(records), records.num_nodes, x) if x else 0.0 for x in grid]
    axis.plot(100 * grid, 100 * np.array(alike), color=EQUAL_COLOUR, linestyle="--", label="if all nodes were alike")
    worst = worst_share(per_node)
    axis.plot([10], [100 * worst], "o", color=FIT_COLOURS[0], label=f"worst tenth: {100 * worst:.0f} %")
    axis.set(title="Skew of the nodes", xlabel="worst nodes (% of nodes)", ylabel="their share of the failures (%)")
    axis.set(xlim=(0, 100), ylim=(0, 103))
    axis.legend(frameon=False, loc="lower right")


def _counts(records: FailureRecords, axis: Axes) -> None:
    days = records.span_s / DAY_S
    width, period = next(
        ((width, name) for width, name in ((30, "30 days"), (7, "week"), (1, "day")) if days >= 20 * width),
        (max(days, 1e-9) / 20, "twentieth of the span"),
    )
    edges = np.arange(0, max(days, 1e-9) + width, width)
    counts = np.histogram(_days(records), edges)[0]
    whole = min(width, max(days, 1e-9))
    axis.stairs(counts, edges, fill=True, color=DATA_COLOUR, alpha=0.85)
    mean = len(records) / max(days, 1e-9) * whole
    axis.axhline(mean, color="black", linewidth=1, linestyle=":", label="mean")
    axis.set(title="Rate", xlabel="days since the first failure", ylabel=f"failures in each {period}")
    axis.set(xlim=(0, max(days, 1e-9)), ylim=(0, 1.15 * max(counts.max(), mean)))
    axis.legend(frameon=False, loc="upper right")


def _correlation(records: FailureRecords, axis: Axes) -> None:

    ranks = stats.rankdata(np.diff(records.time_s)).astype(float)
    lags = np.arange(1, min(MAX_LAG, len(ranks) - 3) + 1)
    axis.set(title="Do short times follow short times?", xlabel="lag (failures)", ylabel="autocorrelation of ranks")
    if len(lags) < 2 or np.isnan(autocorrelation(ranks, 1)):
        _nothing(axis, "too few different times")
        return
    values = [autocorrelation(ranks, int(lag)) for lag in lags]
    axis.bar(lags, values, 0.75, color=DATA_COLOUR)
    band = 1.96 / np.sqrt(len(ranks))
    axis.axhspan(-band, band, color=EQUAL_COLOUR, alpha=0.25, linewidth=0, label="95 % if independent")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xlim(0.3, lags[-1] + 0.7)
    top = max(np.nanmax(values), band)
    axis.set_ylim(min(np.nanmin(values), -band) * 1.2, top * 1.3)
    axis.legend(frameon=False, loc="upper right")


def _down(records: FailureRecords, axis: Axes) -> None:
    known = np.sort(records.down_s[~np.isnan(records.down_s)])
    axis.set(title="Down times", xlabel="time (logarithmic)", ylabel="share with at most this time (%)", ylim=(0, 103))
    positive = known[known > 0]
    if not len(positive):
        _nothing(axis, "all are 0 s" if len(known) else "the log has none")
        return
    zeros = len(known) - len(positive)
    share = 100 * (zeros + np.arange(1, len(positive) + 1)) / len(known)
    axis.step(positive, share, where="post", color=DATA_COLOUR, linewidth=2, label="log")
    for value, name in ((np.median(known), "median"), (known.mean(), "mean")):
        if value > 0:
            style = "--" if name == "median" else ":"
            axis.axvline(value, color="black", linewidth=1, linestyle=style, label=f"{name} {duration(value)}")
    _time_axis(axis, positive[0], positive[-1])
    if zeros:
        axis.set_xlabel(f"time (logarithmic); {100 * zeros / len(known):.1f} % are 0 s")
    axis.legend(frameon=False, loc="lower right")


def _nothing(axis: Axes, reason: str) -> None:
    axis.text(0.5, 0.5, reason, transform=axis.transAxes, ha="center", va="center", color=EQUAL_COLOUR)
    axis.set(xticks=[], yticks=[], xlabel="", ylabel="")


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it; "-" for one that is not known."""
    if np.isnan(seconds):
        return "-"
    for unit, length in (("years", 365 * DAY_S), ("days", DAY_S), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.3g} s"
