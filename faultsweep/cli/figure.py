"""``faultsweep figure``: run what is missing of a sweep, and draw its figure."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import LogsOption, QuietOption, SpecArgument, Workers, unset
from faultsweep.errors import InputError
from faultsweep.files import check_folder

if TYPE_CHECKING:
    from faultsweep.sweeps.figure import Layout
    from faultsweep.sweeps.sweep import Sweep

app = App()


@app.command()
def figure(
    spec: SpecArgument,
    *,
    store: Annotated[
        Path | None, unset("Zarr store of the results; for a paper, the folder of its stores. [default: in --output]")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the picture and its texts.")] = Path(),
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", help="png, pdf, svg or html; may be repeated. [default: png and html]"),
    ] = None,
    logs: LogsOption = None,
    workers: Workers,
    quiet: QuietOption = False,
) -> None:
    """Run what is missing of a sweep and draw its figure, as a PNG and as an HTML page that works offline.

    The caption is a text beside them, NAME.md and NAME.tex; NAME-data.md is the data sheet.
    The table [figure] of a spec sets the metric and the axes; by default, the first metric over the first axis of
    numbers.
    The name of a paper, such as krevat2003, makes all its figures. A complete store needs neither logs nor a cluster.
    In a new store, a log that is not on this machine is replaced by the model that was calibrated to it, and the figure
    says so ('faultsweep logs fetch NAME' gets the log). If the LLNL T3D log is missing, LLNL Atlas is used.
    """
    from faultsweep.analysis.figures.draw import USUAL_FORMATS, check_formats, draw
    from faultsweep.cluster.connect import connect
    from faultsweep.sweeps.open import open_results
    from faultsweep.sweeps.substitutes import describe_substitutes, lacks_results, with_substitutes

    check_folder(output)
    check_formats(formats or USUAL_FORMATS)
    names = _experiments_of(spec)
    cluster: Any = None  # connected once, and only when something has to run
    with ExitStack() as stack:
        for name in names:
            chosen, folder = (store, output) if len(names) == 1 else (None, store or output)
            sweep, place, substitutes = with_substitutes(name, logs, chosen, folder)
            layout = _layout(name, sweep)
            for text in describe_substitutes(name, place, substitutes):
                typer.echo(text)
            if lacks_results(sweep, place):
                cluster = cluster or stack.enter_context(connect(**vars(workers)))
                sweep.run(place, cluster=cluster, progress=not quiet, results=False)
            results = open_results(place)
            drawn = _figure(sweep, layout, results)
            drawn = replace(drawn, facts=[*drawn.facts, *_thanks(results)])
            for path in draw(drawn, output, formats or USUAL_FORMATS):
                typer.echo(str(path))


def _layout(name: str, sweep: Sweep) -> Layout:
    """Return what is drawn: of a shipped experiment the figure of its name, else what the spec's table says."""
    from faultsweep.analysis.figures import FIGURES
    from faultsweep.sweeps.figure import Layout
    from faultsweep.sweeps.spec import find_spec
    from faultsweep.sweeps.substitutes import is_shipped

    path = find_spec(name)
    if is_shipped(path) and path.stem in FIGURES:
        return Layout(kind=path.stem, x="", along="", y=())
    try:
        return sweep.spec.layout()
    except InputError as error:
        raise InputError(f"{path}: figure: {error}") from None


def _figure(sweep: Sweep, layout: Layout, results: Any) -> Any:
    """Return the figure of results, of the rows that the spec asks for."""
    from faultsweep.analysis.figures import FIGURES, sweep_figure
    from faultsweep.analysis.shown import with_numbers_and_names
    from faultsweep.analysis.warmup import without_warm_up

    if layout.kind not in FIGURES:
        parts = asdict(layout)
        drawn = results.sel({axis.name: axis.labels for axis in sweep.spec.axes})
        if parts.pop("delete_warm_up"):
            drawn = without_warm_up(drawn, layout.y)
        drawn = with_numbers_and_names(drawn)
        return sweep_figure(drawn, sweep.spec.name, sweep.spec.title, **parts)
    try:
        return replace(FIGURES[layout.kind](results), name=sweep.spec.name)
    except (KeyError, ValueError) as error:
        what = str(error.args[0]).partition(". ")[0]  # xarray goes on about what else there is
        raise InputError(f"figure.kind: {layout.kind} draws what {sweep.spec.name} does not have: {what}") from None


def _thanks(results: Any) -> list[str]:
    """Return a sentence that acknowledges whom the logs' headers name, as their terms ask."""
    from faultsweep.analysis.figures.describe import unique
    from faultsweep.sweeps.logs import acknowledgements, is_name

    return acknowledgements([str(log) for log in unique(results, "log") if is_name(str(log))])


def _experiments_of(name: str) -> list[str]:
    """Return the experiments that have a figure and belong to a paper, or the one that is named."""
    from faultsweep.analysis.figures import FIGURES

    return [figure for figure in FIGURES if figure.startswith(f"{name}-")] or [name]
