"""``faultsweep site import | describe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faultsweep.cli.app import App

if TYPE_CHECKING:
    from faultsweep.simcore.sites.site import Site

app = App(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("import")
def import_site(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="What scontrol, sacctmgr or qmgr print, or slurm.conf.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="SITE.toml", help="Where to write the site.")],
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of the times of reservations.")] = "UTC",
    nodes: Annotated[int, typer.Option(min=0, help="PBS: nodes, where no file describes them.")] = 0,
    cores: Annotated[int, typer.Option(min=1, help="PBS: cores of each of them.")] = 1,
    json_: JsonOption = False,
) -> None:
    """Make site.toml of what an operator can print, and list what it cannot hold.

    SLURM: scontrol show config, show partition -o, show node -o, show reservation -o; sacctmgr -P list qos, -P list
    assoc (or sacctmgr dump). PBS: qmgr -c 'print server', qmgr -c 'print node @default'.
    """
    from faultsweep.files import check_writable, writing
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
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the site (.png, .pdf or .svg).", show_default=False)
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Show the nodes, partitions, QOS and rules of a site, and what it does not hold."""
    from faultsweep.cli.output import check_picture
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
    from faultsweep.terminal import print_json

    if as_json:
        counts = {"num_nodes": site.num_nodes, "num_cores": site.num_cores, "not_simulated": not_simulated(site)}
        print_json({**site.model_dump(mode="json"), **counts})
    else:
        _print_tables(site)


def _print_tables(site: Site) -> None:
    from rich.text import Text

    from faultsweep.cli.logs import _table
    from faultsweep.simcore.sites.not_simulated import not_simulated
    from faultsweep.sweeps.times import describe_time
    from faultsweep.terminal import make_console

    console = make_console()
    title = f"{site.name}: {site.num_nodes:,} nodes, {site.num_cores:,} cores ({site.scheduler or 'no scheduler'})"
    console.print(Text(title, style="bold"))
    table = _table("class", "nodes", "cores", "GPUs", "memory", "features")
    for of_class in site.nodes:
        gpus = f"{of_class.gpus} {of_class.gpu_type}".strip() if of_class.gpus else ""
        memory = f"{of_class.memory_mb / 1024:,.0f} GiB" if of_class.memory_mb else ""
        table.add_row(
            of_class.name, f"{of_class.count:,}", str(of_class.cores), gpus, memory, " ".join(of_class.features)
        )
    console.print(table)
    if site.partitions:
        table = _table("partition", "nodes", "longest", "tier", "factor", "")
        for part in site.partitions:
            longest = "no limit" if part.max_time_s is None else describe_time(part.max_time_s)
            notes = [word for word, holds in (("default", part.default), ("exclusive", part.exclusive)) if holds]
            notes += [] if part.up else ["down"]
            counts = str(sum(part.nodes.values()))
            table.add_row(
                part.name, counts, longest, str(part.priority_tier), str(part.priority_factor), ", ".join(notes)
            )
        console.print(table)
    if site.qos:
        table = _table("QOS", "priority", "preempts", "running jobs of a user", "longest")
        for qos in site.qos:
            longest = "" if qos.max_wall_s is None else describe_time(qos.max_wall_s)
            table.add_row(qos.name, str(qos.priority), " ".join(qos.preempts), str(qos.max_jobs_user or ""), longest)
        console.print(table)
    rules = _table("", "")
    rules.show_header = False
    weights = ", ".join(f"{name} {weight:g}" for name, weight in site.priority.weights.items())
    rules.add_row("priority", f"{site.priority.kind}{f': {weights}' if weights else ''}")
    settings = site.backfill.model_dump(exclude_none=True)
    rules.add_row("backfill", ", ".join(f"{name} {value}" for name, value in settings.items()))
    if site.preempt_by:
        rules.add_row("preemption", f"by {site.preempt_by}, {site.preempt_mode}")
    for name, count in (("accounts and users", len(site.accounts)), ("reservations", len(site.reservations))):
        rules.add_row(name, str(count))
    console.print(rules)
    ignored = not_simulated(site)
    if ignored:
        console.print(Text("described, and not simulated:", style="bold"))
        for line in ignored:
            console.print(Text(f"  {line}"), soft_wrap=True)
    if site.not_represented:
        console.print(Text("not represented:", style="bold"))
        for line in site.not_represented:
            console.print(Text(f"  {line}"), soft_wrap=True)
