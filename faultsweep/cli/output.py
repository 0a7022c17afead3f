"""What commands print and write: tables, JSON and CSV."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultsweep.files import check_writable
from faultsweep.terminal import make_console, plain
from faultsweep.units import counted, time_unit

if TYPE_CHECKING:
    from faultsweep.simcore.simulate import Run


def check_picture(path: Path, read: str | Path) -> None:
    """Raise InputError, before anything is read, if a picture cannot be written as this file, or is what is read."""
    from faultsweep.analysis.pictures.picture import check_suffix

    check_suffix(path)
    check_writable([path], [read])


def say_compiling() -> None:
    """Say on standard error that the simulator is compiled now."""
    from faultsweep.simcore.engine.machine_code import cache_dir, is_cache_writable

    if is_cache_writable():
        note = "this happens once and takes up to a minute."
    else:
        note = (
            f"it takes up to a minute, each time, because {cache_dir()} cannot be written: "
            "name a folder that can in FAULTSWEEP_CACHE_DIR."
        )
    sys.stderr.write(f"Compiling the simulator for this machine; {note}\n")
    sys.stderr.flush()


def _readable(name: str, value: float, unit: str) -> str:
    """Return a value in a unit to read: times in minutes or hours, shares of the capacity in percent."""
    if unit == "s":
        unit, seconds = time_unit(value)
        return f"{value / seconds:,.4g} {unit}"
    if unit == "node s":
        return f"{value / 3600:,.4g} node-h"
    if name.startswith("lost_to_") or name in _SHARES:
        return f"{100 * round(value, 12) + 0.0:.4g} %"  # a share that rounding leaves just below 0 is 0
    return f"{value:,.6g} {unit}".rstrip()


def print_table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Collection[int] = ()) -> None:
    """Print rows under headings, or without any; ``right`` are the columns of numbers.

    No lines are drawn, and in a pipe each row is one line, so that other programs can read it.
    """
    from rich.table import Table
    from rich.text import Text

    console = make_console(highlight=False)
    shown = [[plain(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, show_header=bool(heads), header_style="bold")
    for number, head in enumerate(heads or (shown[0] if shown else ())):
        style = "" if number else "bold"
        table.add_column(Text(head), style=style, justify="right" if number in right else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(cell if console.is_terminal else " ".join(cell.split("\n"))) for cell in row))
    with console.capture() as captured:
        console.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


_ALWAYS = ("mean_wait_s", "p90_wait_s", "mean_bounded_slowdown", "utilisation")
_IF_ANY = (
    *("unfinished_jobs", "failure_slowdown", "mean_scheduling_s", "gini_wait", "jain_bounded_slowdown", "share_gap"),
    *("failures_that_hit", "lost_to_failures", "restarts", "checkpoint_overhead_ratio", "checkpoints_wasted"),
    *("jobs_co_allocated", "saturated_time_frac", "congestion_slowdown", "jobs_taken"),
    *("migrations_successful", "migrations_attempted", "credit_refusals"),
)
"""Metrics that are shown if what they count or measure happened, the most telling first."""
_OTHERWISE = (
    "lost_capacity",
    "offered_load",
    "makespan_s",
    "median_wait_s",
    "mean_response_s",
    "lost_to_fragmentation",
)
_SHARES = ("utilisation", "unused_capacity", "lost_capacity", "trunk_utilisation", "saturated_time_frac")
HEADLINE = 10
"""Metrics that ``simulate`` shows."""


def headline(metrics: Mapping[str, float], config: Mapping[str, Any]) -> list[str]:
    """Return the names of the ten metrics that matter for what was run."""
    with_failures = config.get("failures", "none") != "none"
    asked = ("failures_seen", "failures_that_hit", "lost_to_failures") if with_failures else ()
    happened = [name for name in _IF_ANY if metrics.get(name, 0) > 0]  # a NaN is not above 0
    known = [name for name in (*_ALWAYS, *asked, *happened, *_OTHERWISE) if not math.isnan(metrics.get(name, math.nan))]
    chosen = list(dict.fromkeys(known))[:HEADLINE]
    return [name for name in metrics if name in chosen]


MOST_OWNERS = 20
"""Owners of jobs that ``simulate`` shows; all are in its JSON."""


def print_owners(table: Mapping[str, Any]) -> None:
    """Print what users, accounts, partitions or QOS got, a row each; a share of nothing is left out, and said."""
    known = {name: values.tolist() for name, values in table.items()}
    nothing = all(map(math.isnan, known["share"]))
    if nothing:
        del known["share"]
    rows = list(zip(*known.values(), strict=True))
    shown = ([_of_owner(name, value) for name, value in zip(known, row, strict=True)] for row in rows[:MOST_OWNERS])
    print_table(list(known), shown, right=range(1, len(known)))
    if len(rows) > MOST_OWNERS:
        sys.stdout.write(f"{len(rows) - MOST_OWNERS:,} more: --json\n")
    if nothing:
        why = "it is of the node-seconds up to the last submission, and no finished job had run by then"
        sys.stdout.write(f"no share: {why}\n")


def _of_owner(column: str, value: str | float) -> str:
    """Return a cell of the table of owners; "-" for what is not known."""
    if isinstance(value, str):
        return value or "-"
    if math.isnan(value):
        return "-"
    if column == "share":
        return f"{100 * value:.4g} %"
    return {"jobs": f"{value:,}", "mean_wait_s": f"{value:,.6g} s"}.get(column, f"{value:,.4g}")


def print_metrics(run: Run, speed: Mapping[str, float], every: bool = False) -> None:
    """Print the metrics of a run that matter as a table, or every one that it has."""
    from rich.text import Text

    from faultsweep.simcore.engine.metrics import METRICS

    known = [name for name, value in run.metrics.items() if not math.isnan(value)]
    shown = known if every else headline(run.metrics, run.config)
    console = make_console()
    console.print(Text(f"{run.config['scheduler']} on {run.config['machine']}, {run.status}", style="bold"))
    rows = ((name, _readable(name, run.metrics[name], METRICS[name].unit), METRICS[name].doc) for name in shown)
    print_table(("metric", "value", "meaning"), rows, right=(1,))
    if len(shown) < len(known):
        console.print(f"{len(known) - len(shown)} more metrics: --all; as JSON: --json")
    for sentence in run.doubts:
        console.print(Text(sentence))
    for reason, count in run.dropped.items():
        were = "was" if count == 1 else "were"
        console.print(f"{counted(count, 'job')} of the log {were} not simulated: {reason}")
    console.print(f"simulated in {speed['elapsed_s']:.4g} s, {speed['jobs_per_s']:,.0f} jobs per second")
