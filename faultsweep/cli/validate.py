"""``faultsweep validate`` and ``calibrate``: how much of a machine's real waits a simulation explains."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import JsonOption, LogsOption, SkipOption, ZoneOption
from faultsweep.cli.output import check_picture, print_table
from faultsweep.errors import InputError, unknown_name
from faultsweep.files import check_writable
from faultsweep.sweeps.times import describe_time
from faultsweep.terminal import make_console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from faultsweep.simcore.workloads.accounting.records import JobRecords
    from faultsweep.sweeps.contributions import Step
    from faultsweep.sweeps.validation import Validation

app = App()


@dataclass(frozen=True)
class _Compared:
    """The real waits, and how they are simulated and shown."""

    log: Annotated[str, typer.Argument(metavar="LOG", help="Accounting dump, jobs of logs import, or named log.")]
    machine: Annotated[
        str,
        typer.Option(
            metavar="flat:N|SITE.toml", help="The machine: whole nodes, or a site.", show_default="nodes of the log"
        ),
    ] = ""
    cut: Annotated[
        float, typer.Option(min=0, max=0.95, help="Share of the log's span before the part that judges; 0: all judges.")
    ] = 0.5
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the simulation, such as scheduler=conservative."
        ),
    ] = None
    logs: LogsOption = None
    timezone: ZoneOption = ""
    skip_malformed: SkipOption = False
    picture: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw real and simulated waits.")] = None
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a page that works offline.")] = None


@app.command()
def validate(
    given: _Compared,
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions",
            help="Also judge what queue names, priorities, limits and outages of the log add, one after another.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare real waits of a log with simulated ones, by partition, size and hour, and load and queue over time.

    The simulation starts warm at the cut: with the jobs that ran and waited then. Only jobs that were submitted at
    least one longest run time after the cut are judged.
    """
    from faultsweep.sweeps.validation import validate as compare

    _check_outputs(given)
    settings, site = _settings(given.set_), _site(given.machine)
    records, nodes, missing = _given(given)
    steps = _contributions(records, nodes, settings, given.cut, site) if contributions else []
    found = compare(records, nodes, settings, given.cut, missing, site)
    _report(found, given, as_json, {"contributions": [_step_as_json(step) for step in steps]} if steps else {})
    if steps and not as_json:
        _print_steps(steps)


@app.command()
def calibrate(given: _Compared, as_json: JsonOption = False) -> None:
    """Choose scheduler, estimates and queue order on the first part of a log, and judge them on the rest."""
    from faultsweep.sweeps.validation import calibrate as choose
    from faultsweep.sweeps.validation import validate as compare

    if given.cut <= 0:
        raise InputError("--cut: calibrating needs a part of the log before the cut (valid: more than 0)")
    _check_outputs(given)
    settings, site = _settings(given.set_), _site(given.machine)
    records, nodes, missing = _given(given)
    best, tried = choose(records, nodes, settings, given.cut, site)
    if not as_json:
        _print_tried(tried)
    found = compare(records, nodes, best, given.cut, missing, site)
    keys = ("settings", "explained", "rank_correlation")
    _report(found, given, as_json, {"tried": [dict(zip(keys, one, strict=True)) for one in tried]})


def _contributions(
    records: JobRecords, nodes: int, settings: dict[str, Any], cut: float, machine: str
) -> Sequence[Step]:
    from faultsweep.sweeps.contributions import contributions

    if cut <= 0:
        raise InputError("--contributions: settings are chosen on a part of the log before the cut (valid: --cut > 0)")
    return contributions(records, nodes, settings, cut, machine)


def _check_outputs(given: _Compared) -> None:
    if given.picture is not None:
        check_picture(given.picture, given.log)
    check_writable([given.page] if given.page is not None else [], [given.log])


def _given(given: _Compared) -> tuple[JobRecords, int, list[str]]:
    """Return the jobs, the nodes of the machine, and what the site has that no simulation knows."""
    from faultsweep.simcore.model.machines import FLAT, parse_machine
    from faultsweep.simcore.sites.not_simulated import not_simulated
    from faultsweep.simcore.sites.site import read_site
    from faultsweep.sweeps.logs import load_records

    log, machine = given.log, given.machine
    on_error = "skip" if given.skip_malformed else "raise"
    records = load_records(log, given.logs, timezone=given.timezone, on_error=on_error)
    if machine.endswith(".toml"):
        site = read_site(machine)
        lines = (*not_simulated(site), *site.not_represented)
        return records, site.num_nodes, [f"site: {line}" for line in lines]
    if machine:
        parsed = parse_machine(machine)
        if parsed.kind != FLAT:
            raise InputError(f"--machine: {machine} has a shape (valid: flat:N, or a site as SITE.toml)")
        return records, parsed.nodes, []
    if not records.nodes:
        raise InputError(f"{log}: does not tell its number of nodes (--machine flat:N or --machine SITE.toml does)")
    return records, records.nodes, []


def _site(machine: str) -> str:
    """Return the file of a site, "" for another machine."""
    return machine if machine.endswith(".toml") else ""


def _settings(given: list[str] | None) -> dict[str, Any]:
    from faultsweep.simcore.parameters import PARAMETERS

    settings: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if name in ("machine", "timezone"):
            raise InputError(f"--set: {name} has an option of its own (--{name})")
        if name not in PARAMETERS or name == "log" or not equals:
            raise unknown_name("parameter", name, PARAMETERS, "--set")
        kind = PARAMETERS[name].kind
        if kind is bool and value not in ("true", "false"):
            raise InputError(f"--set: {name} is {value!r} (valid: true, false)")
        try:
            settings[name] = value == "true" if kind is bool else kind(value)
        except ValueError:
            raise InputError(f"--set: {name} is {value!r}, not {kind.__name__}") from None
    return settings


def _report(found: Validation, given: _Compared, as_json: bool, more: dict[str, Any]) -> None:
    from faultsweep.analysis.pictures import validation as drawing

    picture, page = given.picture, given.page
    if picture is not None:
        drawing.draw(found, picture)
    if page is not None:
        drawing.write_page(found, page)
    if as_json:
        print_json(_as_json(found) | more)
        return
    _print(found)
    for what, path in (("picture", picture), ("page", page)):
        if path is not None:
            typer.echo(f"{what}: {path}")


def _as_json(found: Validation) -> dict[str, Any]:
    content = asdict(found)
    del content["curves"]
    content |= {name: getattr(found, name)._asdict() for name in ("explained", "rank_correlation")}
    return content


def _step_as_json(step: Step) -> dict[str, Any]:
    return asdict(step) | {name: getattr(step, name)._asdict() for name in ("explained", "rank_correlation")}


def _print_steps(steps: Sequence[Step]) -> None:
    from faultsweep.analysis.pictures.validation import in_words

    rows = [
        (
            step.what if step is steps[0] else f"and {step.what}",
            in_words(step.explained),
            in_words(step.rank_correlation),
            describe_time(step.sim_mean_s),
            ", ".join(f"{name} = {value}" for name, value in step.added.items()) or ("-" if step.tried else ""),
        )
        for step in steps
    ]
    print_table(("what counts", "explained", "rank correlation", "mean wait", "added (-: nothing helps)"), rows)


def _print(found: Validation) -> None:
    from rich.text import Text

    from faultsweep.analysis.pictures.validation import summary, waits

    console = make_console()
    console.print(Text(f"{found.log} on {found.machine}", style="bold"))
    console.print(Text(f"{summary(found)}."))
    rows = []
    for group in found.groups:
        if group.by != "hour":
            times = [describe_time(value) for value in waits(group)]
            name = group.name if group.by == "all" else f"{group.by} {group.name}"
            rows.append((name, f"{group.jobs:,}", *times, _shown(group.explained)))
    heads = ("mean and median wait", "jobs", "real", "sim", "real", "sim", "explained")
    print_table(heads, rows, right=range(1, len(heads)))
    if found.names:
        told = ", ".join(f"{name} {_shown(value)}" for name, value in found.names.items())
        console.print(Text(f"explained without a simulation, by past medians of the same: {told}"))
    for line in found.notes:
        console.print(Text(f"- {line}"), soft_wrap=True)


def _shown(value: float, digits: int = 2) -> str:
    """Return a number for a table; where all waits are the same there is none."""
    return "-" if math.isnan(value) else f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no -0.00


def _print_tried(tried: list[Any]) -> None:

    rows = ((", ".join(map(str, settings.values())), _shown(share, 3), _shown(tau)) for settings, share, tau in tried)
    print_table(("before the cut", "explained", "rank correlation"), rows)
