"""``faultsweep figure``: run what is missing of an experiment, and draw its figure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from faultsweep.simcore.errors import InputError, unknown_name
from faultsweep.sweeps.cli.sweep import ClusterOption, CredentialsOption, LogsOption, SpecArgument, WorkersOption

app = typer.Typer()

STAND_INS = {"nasa": ("nasa-model",), "sdsc-sp2": ("sdsc-model",), "llnl-t3d": ("llnl-atlas", "atlas-model")}
"""What stands in for a log that is not on this machine: the first log that is, or else the workload model."""
STAND_IN_REPLICATES = 5


@app.command()
def figure(
    spec: SpecArgument,
    store: Annotated[
        Path | None,
        typer.Option(
            help="Zarr store of the results; for a paper, the folder of its stores. [default: in --output]",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for NAME.png and NAME.html.")] = Path(),
    logs: LogsOption = None,
    cluster: ClusterOption = "local",
    workers: WorkersOption = None,
    credentials: CredentialsOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run what is missing of an experiment and draw its figure: a PNG, and an HTML page that works offline.

    The name of a paper, such as krevat2003, makes all its figures. A log that is not on this machine is replaced by
    the model that was calibrated to it, and the figure says so ('faultsweep logs fetch NAME' gets the log). For LLNL
    T3D stands LLNL Atlas where that is here.
    """
    from faultsweep.analysis.figures import FIGURES, draw
    from faultsweep.analysis.open import open_results

    names = _experiments_of(spec)
    with ExitStack() as stack:
        for name in names:
            sweep, replaced = _sweep(name, logs)
            if sweep.spec.name not in FIGURES and name not in FIGURES:
                raise unknown_name("figure", sweep.spec.name, FIGURES)
            place = _place(store, output, sweep.spec.name, replaced, len(names) > 1)
            for log, other in replaced.items():
                typer.echo(f"{name}: the log {log} is not on this machine; {other} stands in for it")
            if sweep.plan(place, measure=False).missing:
                cluster = _connected(stack, cluster, workers, credentials)
                sweep.run(place, cluster=cluster, progress=not quiet)
            make = FIGURES.get(name) or FIGURES[sweep.spec.name]
            results = open_results(place)
            drawn = make(results)
            drawn = replace(drawn, caption=[*drawn.caption, *_thanks(results)])
            for path in draw(drawn, output):
                typer.echo(str(path))


def _thanks(results: Any) -> list[str]:
    """Return a sentence that acknowledges whom the logs' headers name, as their terms ask."""
    from faultsweep.analysis.figures.describe import unique
    from faultsweep.sweeps.logs import NAMED_LOGS, named_log

    models = {"nasa-model": "nasa", "sdsc-model": "sdsc-sp2", "atlas-model": "llnl-atlas"}
    logs = [models.get(str(log), str(log)) for log in unique(results, "log")]
    thanks = dict.fromkeys(named_log(log).thanks for log in logs if log in NAMED_LOGS)
    return [f"Logs of the Parallel Workloads Archive, with thanks to {'; '.join(thanks)}."] if thanks else []


def _experiments_of(name: str) -> list[str]:
    """Return the experiments that have a figure and belong to a paper, or the one that is named."""
    from faultsweep.analysis.figures import FIGURES

    return [figure for figure in FIGURES if figure.startswith(f"{name}-")] or [name]


def _place(store: Path | None, output: Path, name: str, replaced: Mapping[str, str], many: bool) -> Path:
    """Return the store's path; results of a stand-in never go into the store of a log, unless the user names it."""
    if store is not None and not many:
        return store
    return (store or output) / f"{'-'.join([name, *dict.fromkeys(replaced.values())])}.zarr"


def _connected(stack: ExitStack, cluster: Any, workers: int | None, credentials: Path | None) -> Any:
    """Return a client, connected once for all figures and only when something has to run."""
    from faultsweep.cluster.connect import connect

    return stack.enter_context(connect(cluster, workers, credentials))


def _sweep(name: str, logs: Path | None) -> tuple[Any, dict[str, str]]:
    """Return the sweep of a spec, and which logs of it another log or a model stands in for."""
    from faultsweep.sweeps.logs import is_model
    from faultsweep.sweeps.spec import find_spec, load_toml
    from faultsweep.sweeps.sweep import Sweep

    path = find_spec(name)
    replaced: dict[str, str] = {}
    raw = _stand_in({"name": path.stem, **load_toml(path)}, logs, replaced)
    if not replaced:
        return Sweep.from_toml(name, logs=logs), {}
    if any(is_model(other) for other in replaced.values()):
        raw["replicates"] = max(raw.get("replicates", 1), STAND_IN_REPLICATES)
    try:
        return Sweep(**raw, logs=logs, folder=path.parent), replaced
    except TypeError:  # an unknown key: let the reader of specs say so
        return Sweep.from_toml(name, logs=logs), {}


def _stand_in(part: Any, logs: Path | None, replaced: dict[str, str], key: str = "") -> Any:
    """Return a part of a raw spec with each log that is absent replaced by its stand-in, noted in ``replaced``."""
    if isinstance(part, Mapping):
        return {name: _stand_in(value, logs, replaced, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_stand_in(value, logs, replaced, key) for value in part]
    if key == "log" and isinstance(part, str) and (other := _other_than(part, logs)):
        replaced[part] = other
        return other
    return part


def _other_than(log: str, logs: Path | None) -> str | None:
    """Return what stands in for a named log that is not on this machine; None for all others."""
    from faultsweep.sweeps.logs import NAMED_LOGS, find, is_model, named_log

    try:
        named = named_log(log)
    except InputError:
        return None
    if find(named, logs):
        return None
    name = next(name for name, entry in NAMED_LOGS.items() if entry is named)
    return next((other for other in STAND_INS.get(name, ()) if is_model(other) or find(NAMED_LOGS[other], logs)), None)
