"""``faultsweep figure``: run what is missing of a sweep, and draw its figure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from faultsweep.simcore.errors import InputError
from faultsweep.sweeps.cli.sweep import ClusterOption, CredentialsOption, LogsOption, SpecArgument, WorkersOption

if TYPE_CHECKING:
    from faultsweep.sweeps.figure import Layout
    from faultsweep.sweeps.sweep import Sweep

app = typer.Typer()

STAND_INS = {
    "nasa": ("nasa-model",),
    "sdsc-sp2": ("sdsc-model",),
    "llnl-t3d": ("llnl-atlas", "atlas-model"),
    "anl-intrepid": ("anl-intrepid-1200", "intrepid-model"),
}
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
    cluster: ClusterOption = None,
    workers: WorkersOption = None,
    credentials: CredentialsOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Run what is missing of a sweep and draw its figure: a PNG, and an HTML page that works offline.

    A spec says what is drawn in its table [figure]; without one it is the first metric over the first axis of numbers.
    The name of a paper, such as krevat2003, makes all its figures. A complete store needs neither logs nor a cluster.
    In a new store, a log that is not on this machine is replaced by the model that was calibrated to it, and the figure
    says so ('faultsweep logs fetch NAME' gets the log). For LLNL T3D stands LLNL Atlas where that is here.
    """
    from faultsweep.analysis.figures import draw
    from faultsweep.analysis.open import open_results

    names = _experiments_of(spec)
    with ExitStack() as stack:
        for name in names:
            sweep, place, stand_ins = _sweep(name, logs, store, output, len(names) > 1)
            layout = _layout(name, sweep)
            for log, other in stand_ins.items():
                typer.echo(f"{name}: {other} stands in for the log {log} in {place}")
            if _lacks_results(sweep, place):
                cluster = _connected(stack, cluster, workers, credentials)
                sweep.run(place, cluster=cluster, progress=not quiet)
            results = open_results(place)
            drawn = _figure(sweep, layout, results)
            for path in draw(replace(drawn, caption=[*drawn.caption, *_thanks(results)]), output):
                typer.echo(str(path))


def _layout(name: str, sweep: Sweep) -> Layout:
    """Return what is drawn: of a shipped experiment the figure of its name, else what the spec's table says."""
    from faultsweep.sweeps.figure import Layout
    from faultsweep.sweeps.spec import experiments, find_spec

    path = find_spec(name)
    if path in experiments().values():
        return Layout(kind=path.stem, x="", along="", y=())
    try:
        return sweep.spec.layout()
    except InputError as error:
        raise InputError(f"{path}: figure: {error}") from None


def _figure(sweep: Sweep, layout: Layout, results: Any) -> Any:
    """Return the figure of results, of the rows that the spec asks for."""
    from faultsweep.analysis.figures import FIGURES, sweep_figure
    from faultsweep.analysis.warmup import without_warm_up

    if layout.kind not in FIGURES:
        parts = asdict(layout)
        drawn = results.sel({axis.name: axis.labels for axis in sweep.spec.axes})
        if parts.pop("delete_warm_up"):
            drawn = without_warm_up(drawn, layout.y)
        return sweep_figure(drawn, sweep.spec.name, sweep.spec.title, **parts)
    try:
        return replace(FIGURES[layout.kind](results), name=sweep.spec.name)
    except (KeyError, ValueError) as error:
        raise InputError(f"figure.kind: {layout.kind} draws what {sweep.spec.name} does not have: {error}") from None


def _lacks_results(sweep: Sweep, place: Path) -> bool:
    """Tell whether something has to run; raise InputError if it cannot, because a log of the store's is not here."""
    from faultsweep.sweeps.prepare import values_of

    plan = sweep.plan(place, measure=False)
    absent = sweep.spec.target.absent(values_of(sweep.spec))
    if plan.missing and absent:
        raise InputError(
            f"{place}: {plan.missing:,} of {plan.simulations:,} simulations are missing, and what they need is not on "
            f"this machine: {', '.join(absent)}; name the folder that has it by --logs DIR"
        )
    return plan.missing + plan.journalled > 0


def _thanks(results: Any) -> list[str]:
    """Return a sentence that acknowledges whom the logs' headers name, as their terms ask."""
    from faultsweep.analysis.figures.describe import unique
    from faultsweep.sweeps.logs import acknowledgements, is_name

    return acknowledgements([str(log) for log in unique(results, "log") if is_name(str(log))])


def _experiments_of(name: str) -> list[str]:
    """Return the experiments that have a figure and belong to a paper, or the one that is named."""
    from faultsweep.analysis.figures import FIGURES

    return [figure for figure in FIGURES if figure.startswith(f"{name}-")] or [name]


def _connected(stack: ExitStack, cluster: Any, workers: int | None, credentials: Path | None) -> Any:
    """Return a client, connected once for all figures and only when something has to run."""
    from faultsweep.cluster.connect import connect

    return stack.enter_context(connect(cluster, workers, credentials))


def _sweep(
    name: str, logs: Path | None, store: Path | None, output: Path, many: bool
) -> tuple[Sweep, Path, dict[str, str]]:
    """Return the sweep of a spec, its store, and which logs of it another log or a model stands in for.

    A store that exists decides which logs it has. Results of a stand-in never go into the store of a log.
    """
    from faultsweep.sweeps.built_in import SIMULATOR, built_in_target
    from faultsweep.sweeps.logs import is_model
    from faultsweep.sweeps.spec import find_spec, load_toml, read_spec
    from faultsweep.sweeps.sweep import Sweep

    path = find_spec(name)
    raw = {"name": path.stem, **load_toml(path)}
    place = store if store is not None and not many else (store or output) / f"{raw['name']}.zarr"
    pins = _pins(place)
    stand_ins: dict[str, str] = {}
    changed = _stand_in(raw, logs, stand_ins, pins)
    if any(is_model(other) for other in stand_ins.values()) and isinstance(raw.get("replicates", 1), int):
        changed["replicates"] = max(raw.get("replicates", 1), STAND_IN_REPLICATES)
    if stand_ins and not pins and (store is None or many):
        place = place.with_name(f"{'-'.join([str(raw['name']), *dict.fromkeys(stand_ins.values())])}.zarr")
        pins = _pins(place)
    target = built_in_target(raw.get("target", SIMULATOR), logs, [path.parent], pins)
    return Sweep.of(read_spec(changed, target, where=str(path))), place, stand_ins


def _pins(place: Path) -> dict[str, str]:
    """Return the content hashes of the logs that a store has; nothing if there is no store yet."""
    import json

    from faultsweep.sweeps.store import check_format

    return dict(json.loads(check_format(place)["pins"])) if place.exists() else {}


def _stand_in(part: Any, logs: Path | None, stand_ins: dict[str, str], pins: Mapping[str, str], key: str = "") -> Any:
    """Return a part of a raw spec with each log that is absent replaced by its stand-in, noted in ``stand_ins``."""
    if isinstance(part, Mapping):
        return {name: _stand_in(value, logs, stand_ins, pins, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_stand_in(value, logs, stand_ins, pins, key) for value in part]
    if key == "log" and isinstance(part, str) and (other := _other_than(part, logs, pins)):
        stand_ins[part] = other
        return other
    return part


def _other_than(log: str, logs: Path | None, pins: Mapping[str, str]) -> str | None:
    """Return what stands in for a named log: what the store has, or else what there is if the log is not here."""
    from faultsweep.sweeps.logs import NAMED_LOGS, find, is_model, named_log

    try:
        named = named_log(log)
    except InputError:
        return None
    others = STAND_INS.get(next(name for name, entry in NAMED_LOGS.items() if entry is named), ())
    if pins:
        return None if f"log {log}" in pins else next((other for other in others if f"log {other}" in pins), None)
    if find(named, logs):
        return None
    return next((other for other in others if is_model(other) or find(NAMED_LOGS[other], logs)), None)
