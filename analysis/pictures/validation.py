"""A picture and a page of a validation: real waits beside simulated ones."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from faultsweep.analysis.pictures.picture import draw_panels
from faultsweep.sweeps.times import describe_time
from faultsweep.sweeps.validation import Group, Interval, Validation

from faultsweep.files import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REAL, SIMULATED = "#3a6ea5", "#e07b39"
_MOST_BARS = 24


def draw(found: Validation, path: str | Path) -> None:
    """Write the picture to a file (.png, .pdf or .svg).

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    settings = ", ".join(str(value) for value in found.settings.values()) or "backfill, requested"
    title = (
        f"{found.log} on {found.machine} ({settings}): explained share {in_words(found.explained)}, "
        f"rank correlation {in_words(found.rank_correlation)}"
    )
    panels: list[list[Callable[[Validation, Axes], None]]] = [
        [_utilisation, _queue],
        [_bars("size"), _bars("hour")],
        [_bars("partition"), _explained],
    ]
    draw_panels(path, found, panels, (12.5, 11), title, grid="y")


def in_words(value: Interval) -> str:
    """Return a value with its interval."""
    if np.isnan(value.value):
        return "undefined"
    shown, low, high = (f"{round(number, 2) + 0.0:.2f}" for number in value)  # + 0.0: no -0.00
    return shown if np.isnan(value.low) else f"{shown} [{low}, {high}]"


def _curve(found: Validation, axis: Axes, what: str, scale: float) -> None:
    days = found.curves["hours"] / 24
    width = max(1, len(days) // 400)  # hours of which the mean is drawn
    whole = len(days) // width * width
    for name, colour, label in (("real", REAL, "real"), ("sim", SIMULATED, "simulated")):
        values = found.curves[f"{name} {what}"][:whole].reshape(-1, width).mean(axis=1) * scale
        axis.plot(days[:whole:width], values, color=colour, linewidth=1, label=label, alpha=0.85)
    axis.set_xlabel("days since the cut")
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, ncols=2, loc="upper right")


def _utilisation(found: Validation, axis: Axes) -> None:
    _curve(found, axis, "nodes", 100 / int(found.machine.split(":")[1]))
    axis.set(title="Nodes in use", ylabel="share of nodes (%)")
    axis.set_ylim(0, 1.2 * axis.get_ylim()[1])


def _queue(found: Validation, axis: Axes) -> None:
    _curve(found, axis, "waiting", 1.0)
    axis.set(title="Jobs that wait", ylabel="jobs")


def _bars(by: str) -> Callable[[Validation, Axes], None]:
    def panel(found: Validation, axis: Axes) -> None:
        groups = [group for group in found.groups if group.by == by]
        left_out = max(0, len(groups) - _MOST_BARS)
        if left_out:
            groups = sorted(groups, key=lambda group: -group.jobs)[:_MOST_BARS]
        place = np.arange(len(groups))
        axis.bar(place - 0.2, [group.real_mean_s / 3600 for group in groups], 0.4, color=REAL, label="real")
        axis.bar(place + 0.2, [group.sim_mean_s / 3600 for group in groups], 0.4, color=SIMULATED, label="simulated")
        crowded = len(groups) > 9
        axis.set_xticks(place, [group.name for group in groups], rotation=60 if crowded else 0, fontsize=8)
        what = {"size": "size class (nodes)", "hour": "hour of submission"}.get(by, by)
        more = f" ({left_out} more with fewer jobs)" if left_out else ""
        axis.set(title=f"Mean wait by {what}{more}", ylabel="hours")
        axis.legend(frameon=False)

    return panel


def _explained(found: Validation, axis: Axes) -> None:
    rows = [("simulation", found.explained.value), *found.names.items()]
    place = np.arange(len(rows))
    axis.barh(place, [value for _, value in rows], color=[SIMULATED, *["#7a7a7a"] * len(found.names)])
    for row, (_, value) in enumerate(rows):
        axis.text(max(value, 0), row, f" {value:.2f}", va="center", fontsize=8)
    axis.set_yticks(
        place, [rows[0][0], *(f"past median by\n{name.replace(' and ', chr(10) + 'and ')}" for name in found.names)]
    )
    axis.invert_yaxis()
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set(title="Explained share (1: perfect, 0: one constant)")


STYLE = (
    "body{font-family:sans-serif;max-width:62em;margin:2em auto;padding:0 1em;line-height:1.4}table{border-collapse:"
    "collapse;margin:1em 0}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd}td:nth-child(-n+2),"
    "th:nth-child(-n+2){text-align:left}img{max-width:100%}"
)


def write_page(found: Validation, path: str | Path) -> None:
    """Write one page that works offline: the figures, the picture, all groups, and what is not modelled.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        draw(found, Path(folder) / "picture.png")
        picture = base64.b64encode((Path(folder) / "picture.png").read_bytes()).decode()
    rows = "".join(
        f"<tr><td>{escape(group.by)}</td><td>{escape(group.name)}</td><td>{group.jobs:,}</td>"
        + "".join(f"<td>{describe_time(value)}</td>" for value in waits(group))
        + f"<td>{group.explained:.2f}</td></tr>"
        for group in found.groups
    )
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    settings = ", ".join(f"{name} = {value}" for name, value in found.settings.items()) or "the defaults of validate"
    told = "; ".join(f"{name} {value:.2f}" for name, value in found.names.items()) or "too few jobs before the cut"
    facts = "".join(f"<li>{escape(text)}</li>" for text in found.notes)
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(found.log)}</title><style>{STYLE}</style>'
        f"<h1>{escape(found.log)}: real and simulated waits</h1><p>{escape(summary(found))}</p>"
        f"<p>Settings: {escape(settings)}.</p>"
        f'<img alt="real and simulated waits" src="data:image/png;base64,{picture}">'
        f"<h2>Waits by group</h2><table><tr>{head}</tr>{rows}</table>"
        f"<p>Explained share of the past medians by name, without a simulation: {escape(told)}.</p>"
        f"<h2>Left out and not modelled</h2><ul>{facts}</ul></html>\n"
    )
    with writing(path):
        Path(path).write_text(text, "utf-8")


COLUMNS = ("by", "group", "jobs", "real mean", "simulated mean", "real median", "simulated median", "explained")


def waits(group: Group) -> tuple[float, float, float, float]:
    """Return the waits of a group in the order of COLUMNS."""
    return group.real_mean_s, group.sim_mean_s, group.real_median_s, group.sim_median_s


def summary(found: Validation) -> str:
    """Return the result in one sentence."""
    over = "" if np.isnan(found.explained.low) else " (95 % over weeks)"
    return (
        f"{found.judged:,} of {found.jobs:,} jobs judged: explained share {in_words(found.explained)}, "
        f"rank correlation {in_words(found.rank_correlation)}{over}; "
        f"mean wait {describe_time(found.real_mean_s)} really, "
        f"{describe_time(found.sim_mean_s)} simulated; nodes in use {100 * found.real_utilisation:.1f} % really, "
        f"{100 * found.sim_utilisation:.1f} % simulated"
    )
