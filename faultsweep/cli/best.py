"""``faultsweep best | refine | pareto``."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import (
    JsonOption,
    LogsOption,
    QuietOption,
    SpecArgument,
    StoreArgument,
    StoreOption,
    Workers,
    given,
    unset,
)
from faultsweep.cli.output import print_table
from faultsweep.cli.sweep import open_sweep
from faultsweep.errors import InputError
from faultsweep.extras import is_installed, missing, require
from faultsweep.files import check_folder
from faultsweep.units import counted, time_unit

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from faultsweep.analysis.figures.figure import Figure
    from faultsweep.analysis.verdict import Verdict
    from faultsweep.sweeps.best import Best
    from faultsweep.sweeps.refinement import Refined
    from faultsweep.sweeps.search import Search
    from faultsweep.sweeps.sweep import Sweep

app = App()

_MOST_ERRORS = 3
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="Folder of the picture.")]


@dataclass(frozen=True)
class _Choice:
    """The options that stand for keys of the table [best]."""

    axis: Annotated[str | None, unset("The axis of the policies. [default: the scheduler, or the first of names]")] = (
        None
    )
    metric: Annotated[str | None, unset("The metric that decides. [default: mean_bounded_slowdown]")] = None
    zone: Annotated[str | None, unset("A policy at most this much worse than the best is as good. [default: 5%]")] = (
        None
    )
    confidence: Annotated[float | None, unset("Probability of a right answer in all regions. [default: 0.95]")] = None
    most: Annotated[int | None, unset("Most replicates of a configuration. [default: 200]")] = None


@app.command()
def best(
    spec: SpecArgument,
    *,
    choice: _Choice,
    store: StoreOption = None,
    logs: LogsOption = None,
    workers: Workers,
    output: OutputOption = Path("."),
    quiet: QuietOption = False,
    json_: JsonOption = False,
) -> None:
    """Find the best policy in every region of the other axes, with as few simulations as possible.

    Replicates are added to policies that may still be the best, until all but one are worse or within the zone of the
    best. The options can also stand in the table [best] of the spec. Run it again to resume. If the
    cap is reached first, the answer is "not decided".
    """
    from faultsweep.analysis.figures.units import unit_of
    from faultsweep.analysis.verdict import judge, verdict_figure
    from faultsweep.sweeps.best import regions
    from faultsweep.sweeps.open import open_results
    from faultsweep.sweeps.runner.prepare import prepare
    from faultsweep.sweeps.store.store import Store

    require("the choice of the best policy", "scipy")
    check_folder(output)
    sweep, store = open_sweep(spec, store, logs)
    sweep, wanted = _selecting(sweep, given(choice))
    sweep.run(store, **vars(workers), progress=not quiet, results=False)
    path = sweep.store_path(store)
    found = regions(Store(path, mode="r"), wanted, prepare(sweep.spec, path).asked)
    results = open_results(path)
    verdict = judge(results, wanted, found)
    paths = _draw(verdict_figure(sweep.spec.name, wanted, verdict), output)
    _print(verdict, unit_of(results, wanted.metric), paths, json_)
    if not json_ and any(region.failed_labels for region in found):
        for error, count in results.sweep.errors()["error"].value_counts().head(_MOST_ERRORS).items():
            typer.echo(f"{counted(count, 'cell')} failed: {error}")


def _draw(figure: Figure, folder: Path) -> list[Path]:
    """Draw a figure, where what that needs is installed, and return the paths."""
    from faultsweep.analysis.figures import draw

    return draw(figure, folder) if is_installed("matplotlib") else []


def _said_of(paths: Sequence[Path]) -> str:
    """Return where a picture is, or why there is none."""
    if paths:
        return f"drawn in {', '.join(map(str, paths))}"
    return str(missing("matplotlib", "no picture: that"))


def _selecting(sweep: Sweep, options: dict[str, Any]) -> tuple[Sweep, Best]:
    """Return the sweep with a selection, and the selection: that of its spec, with these options instead."""
    from faultsweep.sweeps.spec import read_spec
    from faultsweep.sweeps.sweep import Sweep

    raw = {key: value for key, value in sweep.spec.raw.items() if key not in ("precision", "refine")}
    raw["best"] = {**raw.get("best", {}), **options}
    spec = read_spec(raw, sweep.spec.target, sweep.spec.where)
    if spec.best is None:
        raise InputError(f"{spec.name}: has no [best]")
    return Sweep.of(spec), spec.best


def _print(verdict: Verdict, unit: str, paths: list[Path], as_json: bool) -> None:
    if as_json:
        rows = json.loads(verdict.table.to_json(orient="records"))
        answer = {"verdict": verdict.sentence, "simulations": verdict.simulations, "saved": verdict.saved}
        typer.echo(json.dumps({**answer, "scope": verdict.scope, "table": rows}, indent=1))
        return

    typer.echo(verdict.sentence)
    frame = verdict.shown
    places = list(frame.columns[: list(frame.columns).index("policy")])
    metric, divisor = f"{verdict.metric[:1].upper()}{verdict.metric[1:]}", 1.0
    if unit == "s":
        unit, divisor = time_unit(frame["mean"].abs().max())
        metric = f"{metric} ({unit})"
    rows = ((*(row[place] for place in places), *_policy_row(row, divisor)) for row in frame.to_dict("records"))
    print_table((*places, "Policy", metric, "Replicates", "Against the best", "Result"), rows)
    typer.echo(
        f"{counted(verdict.simulations, 'simulation')}, {verdict.saved:,} fewer than with equal numbers for all "
        f"policies; {_said_of(paths)}"
    )


def _policy_row(row: Mapping[Hashable, Any], divisor: float) -> tuple[str, ...]:
    from faultsweep.analysis.verdict import how_much_worse

    mean = "" if math.isnan(row["mean"]) else f"{row['mean'] / divisor:,.4g}"
    share = (row["worse"], row["worse_low"], row["worse_high"])
    worse = how_much_worse(*share) if share[0] and not math.isnan(share[0]) else ""
    count = "" if math.isnan(row["n"]) else f"{row['n']:.0f}"
    return str(row["policy"]), mean, count, worse, row["result"]


@dataclass(frozen=True)
class _Search:
    """The options that stand for keys of the table [refine]."""

    along: Annotated[str | None, unset("The numeric axis. [default: the first]")] = None
    axis: Annotated[str | None, unset("The axis of the policies. [default: the one that has them]")] = None
    find: Annotated[str | None, unset("'crossing' or 'saturation'. [default: crossing]")] = None
    policies: Annotated[str | None, unset("The two labels that cross, as A,B, or the one that saturates.")] = None
    metric: Annotated[str | None, unset("The metric whose means cross. [default: mean_bounded_slowdown]")] = None
    width: Annotated[float | None, unset("Width of the final interval. [default: a sixteenth of the axis]")] = None
    confidence: Annotated[float | None, unset("[default: 0.95]")] = None
    most: Annotated[int | None, unset("Most replicates at a point. [default: 200]")] = None

    def given(self) -> dict[str, Any]:
        """Return the keys that were given."""
        keys = given(self)
        if self.policies is not None:
            keys["policies"] = [label.strip() for label in self.policies.split(",")]
        return keys


@app.command()
def refine(
    spec: SpecArgument,
    *,
    search: _Search,
    store: StoreOption = None,
    logs: LogsOption = None,
    workers: Workers,
    output: OutputOption = Path("."),
    quiet: QuietOption = False,
    json_: JsonOption = False,
) -> None:
    """Find where along an axis two policies cross or one saturates, as an interval of a given width.

    There is an answer for each region of the other axes. Points are added between the ends of the axis, and replicates
    to a point until its answer is certain. The options can also stand in the table [refine] of the spec. Run it again
    to go on where it was stopped. Results are in a store of their own, NAME-refined.zarr.
    """
    from xarray import Dataset

    from faultsweep.analysis.verdict import search_figure
    from faultsweep.cluster.connect import connect
    from faultsweep.sweeps.open import open_results
    from faultsweep.sweeps.refine import look, run_search

    require("refinement", "scipy")
    check_folder(output)
    sweep, _ = open_sweep(spec, store, logs)
    searches = _searches(sweep, search.given())
    path = (store or Path(f"{sweep.spec.name}-refined.zarr")).resolve()
    with ExitStack() as stack:
        found = [look(one, path) for one in searches]
        if any(one.needs is not None for one in found):
            client = stack.enter_context(connect(**vars(workers)))
            found = [run_search(sweep, one, path, cluster=client, progress=not quiet) for one in searches]
    results = open_results(path) if path.exists() else Dataset()  # all that was needed may be excluded
    paths = []
    if any(one.points for one in found):
        paths = _draw(search_figure(sweep.spec.name, results, searches, found), output)
    _print_found(searches, found, results, paths, json_)


def _searches(sweep: Sweep, options: dict[str, Any]) -> list[Search]:
    """Return the searches of the sweep's spec, one for each region, with these options instead."""
    from faultsweep.sweeps.search import read_search

    table = {**sweep.spec.raw.get("refine", {}), **options}
    return read_search(table, sweep.spec.axes, sweep.spec.outputs, sweep.spec.target.plain_name)


def _print_found(
    searches: Sequence[Search], found: Sequence[Refined], results: xr.Dataset, paths: list[Path], as_json: bool
) -> None:
    from faultsweep.analysis.verdict import describe_scope, describe_search, describe_searches

    answers = [describe_search(search, one, results) for search, one in zip(searches, found, strict=True)]
    if as_json:
        every = [
            {"at": dict(search.at), "answer": answer, **asdict(one)}
            for search, answer, one in zip(searches, answers, found, strict=True)
        ]
        whole = {"answer": describe_searches(searches, found, results), "regions": every}
        typer.echo(json.dumps({**(every[0] if len(every) == 1 else {}), **whole}, indent=1))
        return
    for line in [*answers, *filter(None, [describe_scope(results).strip()])]:
        typer.echo(line)
    count = sum(len(one.points) for one in found)
    typer.echo(f"{counted(count, 'point')} tested" + (f"; {_said_of(paths)}" if count else ""))


@app.command()
def pareto(
    store: StoreArgument,
    metrics: Annotated[list[str], typer.Argument(metavar="METRIC METRIC...", help="Two metrics or more.")],
    json_: JsonOption = False,
) -> None:
    """Print the Pareto front: the configurations that no other one beats in all of these metrics.

    Metrics are means over replicates. What two of them cost each other is drawn by the dashboard. An axis of owners has
    a front for each owner.
    """
    from faultsweep.analysis.figures.units import in_units_to_read
    from faultsweep.analysis.pareto import pareto_front
    from faultsweep.analysis.regions import measured_names
    from faultsweep.sweeps.open import open_results

    results = open_results(store)
    apart = measured_names(results)
    results = results if json_ else in_units_to_read(results, metrics)
    every = pareto_front(results, metrics, every=True)
    front = every[every["on_front"]].drop(columns="on_front")
    if json_:
        rows = json.loads(front.to_json(orient="records", double_precision=15))
        typer.echo(json.dumps({"configurations": len(every), "apart": apart, "front": rows}, indent=1))
        return
    _print_front(results, front, len(every), apart)


def _print_front(results: xr.Dataset, front: pd.DataFrame, count: int, apart: Sequence[str]) -> None:
    from faultsweep.analysis.figures.words import label_to_read, quantity

    names = {name: quantity(results, name) for name in front.columns.drop("n")}
    heads = [words.partition(" (")[0] if name in results.dims else words for name, words in names.items()]
    rows = (
        [label_to_read(results, name, value) if name in results.dims else f"{value:.4g}" for name, value in row.items()]
        for row in front.to_dict("records")
    )
    typer.echo(f"{len(front):,} of {count:,} configurations are on the Pareto front")
    if apart:
        what = " and ".join(quantity(results, name).partition(" (")[0] for name in apart)
        typer.echo(f"each {what} has a front of its own, because it says what is measured")
    print_table([*heads, "Replicates"], rows)
