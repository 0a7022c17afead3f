"""Arguments and options that several commands have; each is declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


def unset(text: str, *names: str, **more: Any) -> Any:
    """Return an option that is None unless it is given; its help says what holds then."""
    return typer.Option(*names, help=text, show_default=False, **more)


SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC-or-NAME", help="A TOML file, or the name of a shipped experiment.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="STORE-SPEC-or-NAME", help="A store, a TOML file or a shipped experiment.")
]
StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="The store.")]
StoreOption = Annotated[Path | None, unset("The Zarr store of the results. [default: NAME.zarr]", "--store")]
LogsOption = Annotated[Path | None, unset("Folder with job logs, which is searched first.", "--logs", metavar="DIR")]
WorkersOption = Annotated[int | None, unset("Worker processes, or worker jobs. [default: one per processor]", min=1)]
ClusterOption = Annotated[
    str | None,
    unset(
        "'local': worker processes here; 'slurm': worker jobs, while this runs; or a Dask scheduler's address"
        " or file. [default: local]"
    ),
]
RetryOption = Annotated[bool, typer.Option("--retry-failed", help="Run failed cells again.")]
RecomputeOption = Annotated[
    bool, typer.Option("--recompute", help="Replace all results, because logs, code or versions have changed.")
]
RunCodeOption = Annotated[
    bool, typer.Option("--run-code", help="Execute the Python files of policies that the store names.")
]
SkipOption = Annotated[bool, typer.Option("--skip-malformed", help="Leave malformed rows out and count them.")]
ZoneOption = Annotated[
    str,
    typer.Option("--timezone", metavar="ZONE", help="Zone of local times, such as Europe/Berlin.", show_default="UTC"),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def given(options: Any) -> dict[str, Any]:
    """Return the options of a group that were given, by name."""
    return {name: value for name, value in vars(options).items() if value is not None}


@dataclass(frozen=True)
class Workers:
    """Where simulations run, as ``connect`` and ``Sweep.run`` take it."""

    cluster: ClusterOption = None
    workers: WorkersOption = None
    credentials: Annotated[Path | None, unset("TLS credentials of a running cluster.")] = None


@dataclass(frozen=True)
class Again:
    """What of a sweep runs, and for how long, as ``Sweep.run`` takes it."""

    time_limit_s: Annotated[
        float,
        typer.Option(
            "--time-limit", min=0, metavar="SECONDS", help="A configuration that takes longer fails; 0: no limit."
        ),
    ] = 0.0
    retry_failed: RetryOption = False
    recompute: RecomputeOption = False
