"""``faultsweep plan | run | status | check | rerun``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import (
    Again,
    ClusterOption,
    JsonOption,
    LogsOption,
    QuietOption,
    RecomputeOption,
    RetryOption,
    RunArgument,
    RunCodeOption,
    SpecArgument,
    StoreArgument,
    StoreOption,
    Workers,
    WorkersOption,
    unset,
)
from faultsweep.errors import InputError

if TYPE_CHECKING:
    from faultsweep.sweeps.sweep import Sweep

app = App()

FolderOption = Annotated[
    Path | None, unset("Where relative paths in the spec start. [default: the spec's folder]", "--folder")
]


@app.command()
def run(
    spec: SpecArgument,
    *,
    store: StoreOption = None,
    logs: LogsOption = None,
    workers: Workers,
    folder: FolderOption = None,
    again: Again,
    dask_dashboard: Annotated[
        bool, typer.Option("--dask-dashboard", help="Serve Dask's own dashboard on loopback; print how to reach it.")
    ] = False,
    quiet: QuietOption = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print what goes to the log file.")] = False,
) -> None:
    """Run the simulations that the store lacks: a new sweep, the rest of a stopped one, or what an extended spec adds.

    Ctrl-C once finishes what is running and saves; twice stops now. Run the same command again to resume. Where cells
    fail, the others go on; the errors are printed at the end, and the exit code is 2. For a log of a shipped experiment
    that is not on this machine a substitute is used, as in 'faultsweep figure'.
    """
    from faultsweep.sweeps.status import describe_failures, print_status

    sweep, store = open_sweep(spec, store, logs, folder)
    if verbose:
        _log_to_stderr()
    sweep.run(store, **vars(workers), **vars(again), progress=not quiet, dask_dashboard=dask_dashboard, results=False)
    print_status(sweep.store_path(store), brief=True)
    failures = describe_failures(sweep.store_path(store))
    if failures:
        raise InputError(failures)


def open_sweep(
    spec: str, store: Path | None, logs: Path | None, folder: Path | None = None
) -> tuple[Sweep, Path | None]:
    """Return a sweep and its store; say on standard error what the substitutes for logs of a shipped experiment are."""
    from faultsweep.sweeps.substitutes import describe_substitutes, is_shipped, with_substitutes
    from faultsweep.sweeps.sweep import Sweep

    if not is_shipped(spec):
        return Sweep.from_toml(spec, logs=logs, folder=folder), store
    sweep, place, substitutes = with_substitutes(spec, logs, store)
    for text in describe_substitutes(sweep.spec.name, place, substitutes):
        typer.echo(text, err=True)
    return sweep, place


def _log_to_stderr() -> None:
    from faultsweep.sweeps.runner.progress import LOG

    LOG.addHandler(logging.StreamHandler())


@app.command()
def plan(
    spec: SpecArgument,
    store: StoreOption = None,
    logs: LogsOption = None,
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    folder: FolderOption = None,
    retry_failed: RetryOption = False,
    recompute: RecomputeOption = False,
    measure: Annotated[bool, typer.Option(help="Time a few cells for the estimates.")] = True,
    resolved: Annotated[bool, typer.Option("--resolved", help="Also print the resolved configuration.")] = False,
    json_: JsonOption = False,
) -> None:
    """Say what a run would do: cells, different simulations, tasks, time and size, and what the store already has.

    It asks no cluster: --workers says for how many workers the time is estimated.
    """
    from faultsweep.sweeps.plan import print_plan

    sweep, store = open_sweep(spec, store, logs, folder)
    sweep.spec.refuse_search()
    plan = sweep.plan(store, workers=workers, measure=measure, recompute=recompute, retry_failed=retry_failed)
    print_plan(plan, resolved=resolved, as_json=json_)


@app.command()
def status(
    spec: RunArgument,
    store: StoreOption = None,
    logs: LogsOption = None,
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    json_: JsonOption = False,
) -> None:
    """Say which results a store has, and what its run or batch job is doing: cells, failures, workers, rate, time left.

    Exit code 0: complete; 3: running, or waiting in a queue; 4: incomplete, and nothing runs; 5: complete, but cells
    failed; 6: incomplete, and SLURM does not say whether its job runs; 7: files are absent or damaged. The scheduler of
    the run is not asked: --logs, --cluster and --workers of a run do nothing here.
    """
    from faultsweep.sweeps.status import find_store, print_status

    raise typer.Exit(print_status(find_store(spec, store), as_json=json_))


@app.command()
def check(
    store: StoreArgument,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Restore files that are stored twice, and run exactly the damaged cells again."),
    ] = False,
    seal: Annotated[
        bool, typer.Option("--seal", help="Add checksums to a store of an earlier format, with its files as they are.")
    ] = False,
    logs: LogsOption = None,
    workers: WorkersOption = None,
    json_: JsonOption = False,
) -> None:
    """Compare every file of a store with its checksum, and name files that are absent, damaged or too old.

    Exit code 0: sound; 6: of an earlier format, which has no checksums; 7: damaged. Cells of a function of your own are
    marked by --repair, and its next run simulates them. The file that pack makes may be named as well.
    """
    from faultsweep.sweeps.check import print_check

    raise typer.Exit(print_check(store, repair, seal, logs, workers, as_json=json_))


@app.command()
def rerun(
    store: StoreArgument,
    select: Annotated[str, typer.Option(help="The cell, such as scheduler=backfill,load_scale=1.2")] = "",
    logs: LogsOption = None,
    events_out: Annotated[
        Path | None, unset("Write the event trace; times on the log's clock.", metavar="FILE.csv")
    ] = None,
    jobs_out: Annotated[Path | None, unset("Write per-job results.", metavar="FILE.csv")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print every step of the agent on clusters, and why.")] = False,
    trace_out: Annotated[Path | None, unset("Write every step of the agent on clusters.", metavar="FILE.csv")] = None,
    run_code: RunCodeOption = False,
    json_: JsonOption = False,
) -> None:
    """Run one cell of a store again, from the store and its logs alone, and compare the results bit by bit."""
    from faultsweep.sweeps.rerun import print_rerun

    print_rerun(
        store, select, logs, events_out, jobs_out, run_code=run_code, as_json=json_, trace=trace, trace_out=trace_out
    )
