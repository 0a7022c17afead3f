"""``faultsweep site import | describe``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import JsonOption, unset
from faultsweep.cli.output import check_picture, print_table
from faultsweep.files import check_writable, writing
from faultsweep.sweeps.times import describe_time
from faultsweep.terminal import make_console, print_json
from faultsweep.units import counted

if TYPE_CHECKING:
    from faultsweep.simcore.sites.site import NodeClass, Partition, Qos, Site

app = App(no_args_is_help=True)


@app.command("import")
def import_site(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="What scontrol, sacctmgr or qmgr print, or slurm.conf.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="SITE.toml", help="Where to write the site.")],
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of the times of reservations.")] = "UTC",
    nodes: Annotated[int, typer.Option(min=0, help="PBS: number of nodes, if no file describes them.")] = 0,
    cores: Annotated[int, typer.Option(min=1, help="PBS: cores of each node.")] = 1,
    json_: JsonOption = False,
) -> None:
    """Write site.toml from what SLURM or PBS prints about itself, and list what it cannot hold.

    SLURM: scontrol show config, show partition -o, show node -o, show reservation -o; sacctmgr -P list qos, -P list
    assoc (or sacctmgr dump). PBS: qmgr -c 'print server', qmgr -c 'print node @default'.
    """
    from faultsweep.simcore.sites import pbs, slurm
    from faultsweep.simcore.sites.facts import read_facts
    from faultsweep.simcore.sites.site import site_text

    check_writable([output], [str(file) for file in files])
    facts = read_facts(files)
    site = pbs.build(facts, nodes, cores) if facts.queues or facts.pbs_nodes else slurm.build(facts, timezone)
    with writing(output):
        output.write_text(site_text(site), "utf-8")
    _print(site, json_)
    if not json_:
        typer.echo(f"site: {output}")


@app.command()
def describe(
    file: Annotated[Path, typer.Argument(metavar="SITE.toml", help="A site, as site import writes it.")],
    picture: Annotated[Path | None, unset("Draw the site (.png, .pdf or .svg).", metavar="FILE")] = None,
    json_: JsonOption = False,
) -> None:
    """Show the nodes, partitions, QOS and rules of a site, and what it does not hold."""
    from faultsweep.simcore.sites.site import read_site

    if picture is not None:
        check_picture(picture, str(file))
    site = read_site(file)
    _print(site, json_)
    if picture is not None:
        from faultsweep.analysis.pictures.sites import draw

        draw(site, picture)
        if not json_:
            typer.echo(f"picture: {picture}")


def _print(site: Site, as_json: bool) -> None:
    from faultsweep.simcore.sites.not_simulated import not_simulated

    if as_json:
        counts = {"num_nodes": site.num_nodes, "num_cores": site.num_cores, "not_simulated": not_simulated(site)}
        print_json({**site.model_dump(mode="json"), **counts})
    else:
        _print_tables(site)


def _print_tables(site: Site) -> None:
    from rich.text import Text

    from faultsweep.simcore.sites.not_simulated import not_simulated

    console = make_console()
    size = f"{counted(site.num_nodes, 'node')}, {counted(site.num_cores, 'core')}"
    title = f"{site.name}: {size} ({site.scheduler or 'no scheduler'})"
    console.print(Text(title, style="bold"))
    for heads, rows in (
        (("class", "nodes", "cores", "GPUs", "memory", "features"), map(_class_row, site.nodes)),
        (("partition", "nodes", "longest", "tier", "factor", ""), map(_partition_row, site.partitions)),
        (("QOS", "priority", "preempts", "running jobs of a user", "longest"), map(_qos_row, site.qos)),
        ((), _rules(site)),
    ):
        if shown := list(rows):
            print_table(heads, shown)
            console.print()
    ignored = not_simulated(site)
    if ignored:
        console.print(Text("described but not simulated:", style="bold"))
        for line in ignored:
            console.print(Text(f"  {line}"), soft_wrap=True)
    if site.not_represented:
        console.print(Text("not represented:", style="bold"))
        for line in site.not_represented:
            console.print(Text(f"  {line}"), soft_wrap=True)


def _class_row(one: NodeClass) -> tuple[object, ...]:
    gpus = f"{one.gpus} {one.gpu_type}".strip() if one.gpus else ""
    memory = f"{one.memory_mb / 1024:,.0f} GiB" if one.memory_mb else ""
    return one.name, f"{one.count:,}", one.cores, gpus, memory, " ".join(one.features)


def _partition_row(one: Partition) -> tuple[object, ...]:
    longest = "no limit" if one.max_time_s is None else describe_time(one.max_time_s)
    notes = (("default", one.default), ("exclusive", one.exclusive), ("down", not one.up))
    said = ", ".join(word for word, holds in notes if holds)
    return one.name, sum(one.nodes.values()), longest, one.priority_tier, one.priority_factor, said


def _qos_row(one: Qos) -> tuple[object, ...]:
    longest = "" if one.max_wall_s is None else describe_time(one.max_wall_s)
    return one.name, one.priority, " ".join(one.preempts), one.max_jobs_user or "", longest


def _rules(site: Site) -> Iterator[tuple[str, object]]:
    weights = ", ".join(f"{name} {weight:g}" for name, weight in site.priority.weights.items())
    yield "priority", f"{site.priority.kind}{f': {weights}' if weights else ''}"
    settings = site.backfill.model_dump(exclude_none=True)
    yield "backfill", ", ".join(f"{name} {value}" for name, value in settings.items())
    if site.preempt_by:
        yield "preemption", f"by {site.preempt_by}, {site.preempt_mode}"
    yield "accounts and users", len(site.accounts)
    yield "reservations", len(site.reservations)
