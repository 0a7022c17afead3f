"""``faultsweep view``: looking inside one run, from its event trace or from a cell of a store."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import LogsOption, RunCodeOption, unset
from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import check_folder, writing

if TYPE_CHECKING:
    from faultsweep.simcore.engine.event_trace import EventTrace

app = App()

_LONGEST_NAME = 200  # of a file, in bytes, without its ending; file systems take 255


@app.command()
def view(
    run: Annotated[
        Path, typer.Argument(metavar="RUN.csv-or-STORE", help="An event trace (simulate --events-out), or a store.")
    ],
    select: Annotated[str, typer.Option(help="The cell of a store, such as scheduler=backfill,load_scale=1.2")] = "",
    machine: Annotated[
        str, typer.Option(help="Machine of a trace, such as torus:4x4x8. [default: flat, of the nodes in the trace]")
    ] = "",
    jobs: Annotated[
        Path | None, unset("Jobs of a trace (--jobs-out): the sizes they asked for.", metavar="FILE.csv")
    ] = None,
    start_h: Annotated[float, typer.Option(help="Start of the window, hours since the first arrival.")] = 0.0,
    stop_h: Annotated[float | None, unset("End of the window. [default: that of the run]")] = None,
    at_h: Annotated[float | None, unset("Time of the occupancy in the PNG, h. [default: the most fragmented]")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for NAME.png and NAME.html.")] = Path(),
    logs: LogsOption = None,
    run_code: RunCodeOption = False,
) -> None:
    """Draw one run: which job held which nodes when, failures, checkpoints, migrations, the queue, lost capacity.

    For a torus also its occupancy, step by step in the HTML page. A cell of a store is simulated again for it. Beyond
    100,000 rectangles the chart is a raster; --start-h and --stop-h look closer.
    """
    from faultsweep.analysis.view import Pauses, draw_html, draw_png, make_content, replay
    from faultsweep.simcore.model.machines import parse_machine

    require("the picture of a run", "matplotlib", "bokeh", "datashader")
    check_folder(output)
    if run.is_dir():
        if machine or jobs is not None:
            raise InputError("--machine and --jobs are for an event trace; a store contains both")
        name, title, caption, events, machine, sizes, config = _cell(run, select, logs, run_code)
    else:
        if select:
            raise InputError(f"--select is for a store, and {run} is none")
        name, title, caption, events, machine, sizes, config = _trace(run, machine, jobs)
    known = (True, None) if config is None else (config["hold_nodes"], Pauses.of(config))
    read = replay(events, parse_machine(machine), sizes, *known)
    content = make_content(read, title, caption, start_h, stop_h)
    if at_h is not None and content.frames is None:
        raise InputError("--at-h is the time of a torus' occupancy, and this machine is flat")
    with writing(output):
        output.mkdir(parents=True, exist_ok=True)
    png, html = output / f"{name}.png", output / f"{name}.html"
    draw_png(content, png, at_h)
    draw_html(content, html)
    typer.echo(f"{png}\n{html}")


_Run = tuple[str, str, list[str], "EventTrace", str, Mapping[int, int] | None, Mapping[str, Any] | None]


def _trace(path: Path, machine: str, jobs: Path | None) -> _Run:
    """Return name, title, caption, events, machine and sizes of an event trace, and no parameters."""
    from faultsweep.analysis.figures.describe import machine_name
    from faultsweep.simcore.engine.event_trace import EventTrace

    if path.suffix == ".zip":
        raise InputError(f"{path}: a packed store; unpack it first (faultsweep unpack)")
    events = EventTrace.read_csv(path)
    caption = [f"Event trace: {path.name}."]
    if not machine:
        machine = f"flat:{int(events.node.max()) + 1 if len(events.node) else 1}"
        caption.append("No machine was named: its nodes are taken to be those of the trace.")
    return path.stem, f"{path.name} on a {machine_name(machine)}", caption, events, machine, _sizes(jobs), None


def _sizes(path: Path | None) -> dict[int, int] | None:
    """Return the nodes that each job of ``--jobs`` asked for."""
    if path is None:
        return None
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {int(row["job_id"]): int(row["requested_size"]) for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{path}: not a table of jobs (--jobs-out writes one, with job_id and requested_size)"
        ) from None


def _cell(store: Path, select: str, logs: Path | None, run_code: bool) -> _Run:
    """Run a cell of a store again; return name, title, caption, events, machine, sizes, and all parameters."""
    from faultsweep.analysis.figures.describe import SCHEDULERS, machine_name
    from faultsweep.sweeps.grid import parse_select
    from faultsweep.sweeps.rerun import rerun

    again = rerun(store, parse_select(select), logs=logs, events=True, run_code=run_code)
    if again.run is None:
        raise InputError(f"{store}: results of a function of your own; only runs of the simulator can be looked into")
    config = again.configuration
    labels = ", ".join(f"{name} = {label}" for name, label in again.labels.items())
    title = (
        f"{SCHEDULERS.get(config['scheduler'], config['scheduler'])} on a {machine_name(config['machine'])}: {labels}"
    )
    caption = [f"A cell of {store.name}, simulated again.", _held(config, again.labels)]
    if again.different:
        caption.append(f"This run differs from the store in {', '.join(again.different)}.")
    if again.run.status == "truncated":
        caption.append("The run was truncated: jobs are unfinished.")
    name = re.sub(r"[^\w.=-]+", "-", "-".join([store.stem, *(f"{k}={v}" for k, v in again.labels.items())]))
    name = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
    jobs = again.run.jobs
    sizes = dict(zip(jobs["job_id"].tolist(), jobs["requested_size"].tolist(), strict=True))
    return name, title, caption, again.run.events, config["machine"], sizes, config


def _held(config: Mapping[str, Any], labels: Mapping[str, Any]) -> str:
    """Return a sentence with the parameters that are not as by default."""
    from faultsweep.simcore.parameters import PARAMETERS

    held = [
        f"{name} = {value}" + (f" {PARAMETERS[name].unit}" if PARAMETERS[name].unit else "")
        for name, value in config.items()
        if name not in labels and value != PARAMETERS[name].default
    ]
    return f"Held: {', '.join(held)}; all else by default." if held else "All else by default."
