"""``faultsweep submit | cancel``, and ``faultsweep cluster init | check``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import Again, JsonOption, LogsOption, RunArgument, StoreOption, given, unset
from faultsweep.errors import InputError
from faultsweep.terminal import plain, print_json

if TYPE_CHECKING:
    from faultsweep.cluster.site import Site
    from faultsweep.cluster.submit import Job
    from faultsweep.sweeps.detached import Submission

app = App()

_flag = partial(unset, rich_help_panel="Batch job (overrides the site file)")

PartitionOption = Annotated[str | None, _flag("Partition (queue), or several: debug,short.", "--partition", "-p")]
AccountOption = Annotated[str | None, _flag("Account that is charged.", "--account", "-A")]
NodesOption = Annotated[str | None, _flag("Nodes: 4, or 1-4 for what is free.", "--nodes", "-N", metavar="N")]
InterfaceOption = Annotated[str | None, _flag("Network interface between the nodes, such as ib0.", metavar="NAME")]
SiteOption = Annotated[
    Path | None, _flag("The site's settings. [default: what 'cluster init' wrote]", "--site", metavar="FILE")
]
BatchSystemOption = Annotated[
    str | None, unset("Batch system: slurm, pbs, or a site's FILE.py. [default: the one found here]", "--cluster")
]


@dataclass(frozen=True)
class _Settings:
    """Settings of a batch job, over those of the site's file."""

    partition: PartitionOption = None
    account: AccountOption = None
    qos: Annotated[str | None, _flag("Quality of service.")] = None
    time: Annotated[
        str | None,
        _flag("Walltime of a job (minutes, HH:MM:SS, D-HH:MM:SS); the job is requeued and resumes.", "--time", "-t"),
    ] = None
    nodes: NodesOption = None
    workers_per_node: Annotated[int | None, _flag("Workers per node. [default: its cores]", min=1, metavar="K")] = None
    memory_per_worker: Annotated[str | None, _flag("Such as 2GB. [default: what plan computes]", metavar="SIZE")] = None
    controller_memory: Annotated[
        str | None, _flag("Of scheduler and sweep. [default: what plan computes of the grid]", metavar="SIZE")
    ] = None
    interface: InterfaceOption = None
    sbatch: Annotated[list[str] | None, _flag("One more option of sbatch; may be repeated.", metavar="OPTION")] = None
    submit_options: Annotated[
        list[str] | None,
        _flag("The same of another system's command; may be repeated.", "--submit-option", metavar="OPTION"),
    ] = None
    site: SiteOption = None
    elastic: Annotated[
        bool, _flag("A small job that controls worker jobs of one processor each, as they start.", "--elastic")
    ] = False
    max_jobs: Annotated[int | None, _flag("Worker jobs at most, with --elastic.", min=1)] = None
    dask_dashboard: Annotated[
        bool, _flag("Dask's own dashboard, on loopback; status tells how to reach it.", "--dask-dashboard")
    ] = False

    def read(self, cluster: str | None) -> Site:
        """Return the site with these settings; refuse those that contradict each other."""
        from faultsweep.cluster.site import read_site

        _check_system(cluster)
        if self.max_jobs is not None and not self.elastic:
            raise InputError(
                "--max-jobs: this is for --elastic; without it, --nodes and --workers-per-node say how many"
            )
        if self.elastic and (self.nodes is not None or self.workers_per_node is not None):
            raise InputError(
                "--elastic: every worker is a job of its own, and --max-jobs says how many; leave out --nodes and"
                " --workers-per-node"
            )
        settings = given(self)
        named, _ = settings.pop("site", None), settings.pop("elastic")
        settings["dask_dashboard"] = self.dask_dashboard or None
        return read_site(named, system=_absolute(cluster), **settings)


@app.command()
def submit(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC-NAME-or-PROGRAM", help="A TOML file, a shipped experiment, or a .py file that runs a sweep."
        ),
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENTS]", help="Arguments of the program.", show_default=False)
    ] = None,
    *,
    cluster: BatchSystemOption = None,
    store: StoreOption = None,
    logs: LogsOption = None,
    again: Again,
    settings: _Settings,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, print the batch script, and do nothing.")] = False,
    json_: JsonOption = False,
) -> None:
    """Run a sweep as one detached batch job of SLURM or PBS, which resumes after kills and walltimes.

    Example: faultsweep submit my.toml --nodes 4 --time 12:00:00, then faultsweep status my.toml
    """
    site = settings.read(cluster)
    options = {"logs": logs, **vars(again)}
    submission = _prepare(spec, arguments or [], store, site, settings.elastic, options)
    for text in submission.assumptions:
        typer.echo(plain(f"assumed: {text}"), err=True)
    if dry_run:
        _say_script(submission, json_)
    elif submission.complete:
        _say_complete(submission, json_)
    else:
        at_most = f"up to {site.max_jobs} worker jobs"
        where = at_most if settings.elastic else f"{site.nodes} x {submission.workers} workers"
        _say_submitted(submission, submission.submit(), spec, where, json_)


def _check_system(cluster: str | None) -> None:
    """Refuse what is no batch system, such as the address of a running cluster."""
    from faultsweep.cluster.batch_systems import SYSTEMS

    if cluster is not None and cluster not in SYSTEMS and not cluster.endswith(".py"):
        raise InputError(
            f"--cluster: submit knows {' and '.join(SYSTEMS)}, not {cluster!r}; a site's own batch system is a FILE.py"
            " (docs/batch-systems.md), and 'faultsweep run --cluster ADDRESS' uses any running Dask cluster"
        )


def _absolute(cluster: str | None) -> str | None:
    """Return a batch system by its name, or the whole path of a site's file, which flags name from here."""
    return str(Path(cluster).resolve()) if cluster is not None and cluster.endswith(".py") else cluster


def _prepare(
    spec: str, arguments: list[str], store: Path | None, site: Site, elastic: bool, options: dict[str, Any]
) -> Submission:
    """Return what is to be submitted of a spec or of a program; ``options`` are for a spec only."""
    from faultsweep.sweeps.detached import prepare_script, prepare_submission

    if spec.endswith(".py"):
        if store is None:
            raise InputError("--store: name the store that the program makes")
        if any(options.values()):
            raise InputError(
                "--logs, --time-limit, --retry-failed, --recompute: these are for a spec; a program sets them itself"
            )
        return prepare_script(Path(spec), arguments, store, site, elastic)
    if arguments:
        raise InputError(f"submit: got unexpected extra argument ({arguments[0]}); only a program has arguments")
    return prepare_submission(spec, store, site, elastic=elastic, **options)


def _say_script(submission: Submission, as_json: bool) -> None:
    if as_json:
        known = {"store": str(submission.store), "missing": submission.missing, "script": submission.script}
        print_json({"job": None, **known, "log": None})
    else:
        typer.echo(submission.script, nl=False)


def _say_complete(submission: Submission, as_json: bool) -> None:
    """Say that there is nothing to do; cells that failed are an error, as they are of a run."""
    if as_json:
        print_json({"job": None, "store": str(submission.store), "missing": 0, "log": None})
    else:
        state = "no cell is missing" if submission.failures else "is complete"
        typer.echo(f"{submission.store}: {state}; nothing was submitted")
    if submission.failures:
        raise InputError(submission.failures)


def _say_submitted(submission: Submission, job: Job, spec: str, where: str, as_json: bool) -> None:
    """Say what job it is and how to look after it."""
    store, missing = submission.store, submission.missing
    if as_json:
        print_json({"job": job.job, "store": str(store), "missing": missing, "log": str(job.log)})
        return
    work = f"{missing:,} simulations" if missing is not None else spec
    commands = "".join(f"\n  faultsweep {command} {store}" for command in ("status", "logs", "cancel"))
    typer.echo(f"job {job.job}: {work}, {where}{commands}")


@app.command()
def cancel(spec: RunArgument, store: StoreOption = None, json_: JsonOption = False) -> None:
    """Cancel the batch job of a store; finished results stay, and submit resumes from there."""
    from faultsweep.sweeps import batch_job
    from faultsweep.sweeps.status import find_store
    from faultsweep.sweeps.store.lock import say_owner

    path = find_store(spec, store).resolve()
    job, cancelled, other = batch_job.cancel(path)
    if json_:
        print_json({"job": job.job, "store": str(path), "cancelled": cancelled, "running": other})
        return
    goes_on = f"; {say_owner(other)} has the store and goes on" if other else ""
    typer.echo(f"job {job.job} was {'cancelled' if cancelled else 'over already'}{goes_on}")


cluster_app = App(no_args_is_help=True)


@cluster_app.command("init")
def init(
    site: SiteOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    cluster: BatchSystemOption = None,
) -> None:
    """Write a commented file of settings for this cluster, from what it says of itself; look at it, then submit."""
    from faultsweep.cluster.probe import write_site
    from faultsweep.cluster.site import site_file

    path = site_file(site)
    write_site(path, force, _absolute(cluster))
    typer.echo(f"{path}: look at it, then 'faultsweep cluster check'")


@cluster_app.command("check")
def check(
    site: SiteOption = None,
    partition: PartitionOption = None,
    account: AccountOption = None,
    nodes: NodesOption = None,
    interface: InterfaceOption = None,
    cluster: BatchSystemOption = None,
    wait: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="Longest time to wait for the probe.")] = 600.0,
    json_: JsonOption = False,
) -> None:
    """Submit a probe of a minute, from a folder that the nodes see, and say what works; exit code 1 if not all does."""
    from faultsweep.cluster.probe import check_site
    from faultsweep.cluster.site import read_site

    settings = read_site(
        site, system=_absolute(cluster), partition=partition, account=account, nodes=nodes, interface=interface
    )
    said: list[str] = []
    works = check_site(settings, said.append if json_ else typer.echo, wait)
    if json_:
        print_json({"works": works, "found": said})
    if not works:
        raise typer.Exit(1)
