"""``faultsweep reproduce``: run what the papers' claims need, and judge the claims."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import JsonOption, LogsOption, QuietOption, WorkersOption, unset
from faultsweep.cli.output import print_table
from faultsweep.errors import InputError, unknown_name
from faultsweep.extras import require
from faultsweep.files import check_folder

if TYPE_CHECKING:
    from faultsweep.analysis.claims.claim import Claim, Reading
    from faultsweep.analysis.claims.judge import Judgement
    from faultsweep.sweeps.sweep import Sweep

app = App()

QUICK_REPLICATES = 3


@dataclass(frozen=True)
class _Outputs:
    """What is written of the verdicts."""

    page: Annotated[Path | None, unset("Write the results as a page of Markdown.")] = None
    figure: Annotated[Path | None, unset("Draw claim by reading (.png, .pdf or .svg); best with --readings.")] = None
    accept: Annotated[
        bool, typer.Option("--accept", help="Store the verdicts in the package's list of accepted ones.")
    ] = False

    def check(self) -> None:
        """Refuse what cannot be drawn before anything runs."""
        from faultsweep.analysis.pictures.picture import check_suffix

        if self.figure is not None:
            check_suffix(self.figure)

    def write(
        self, claims: dict[str, list[Claim]], found: dict[str, dict[str, dict[str, Judgement]]], quick: bool
    ) -> list[str]:
        """Write what is asked for; return which verdicts are not the accepted ones."""
        from faultsweep.analysis.claims.page import FULL, QUICK, accept, changed, read_accepted, write_page
        from faultsweep.analysis.pictures.claims import draw

        kind = QUICK if quick else FULL
        news = changed(found, read_accepted(kind))
        if self.accept:
            accept(found, kind)
            news = []
        if self.page is not None:
            write_page(found, self.page)
        if self.figure is not None:
            draw(claims, found, self.figure)
        return news


@app.command()
def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="[PAPER]", help="A paper, or one claim of it as PAPER/CLAIM. [default: all papers]")
    ] = "",
    *,
    store: Annotated[Path, typer.Option("--store", help="Folder of the stores of the experiments.")] = Path("figures"),
    logs: LogsOption = None,
    failure_logs: Annotated[
        Path | None, unset("Folder with the failure logs of readings.", "--failure-logs", metavar="DIR")
    ] = None,
    workers: WorkersOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"At most {QUICK_REPLICATES} replicates, in separate stores.")
    ] = False,
    reading: Annotated[str | None, unset("Also judge under this reading.", "--reading", metavar="NAME")] = None,
    readings: Annotated[
        bool, typer.Option("--readings", help="Judge under every reading, and say which fits most claims.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would run and how long it would take; run nothing.")
    ] = False,
    outputs: _Outputs,
    json_: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Check the printed claims of the papers: run what is missing, and judge claim by claim.

    A claim agrees, agrees in part, does not agree, or cannot be told, by its interval and the region that it names.
    Exit code 0: all verdicts are the accepted ones; 3: some are not.
    """
    outputs.check()
    claims = _claims(paper)
    chosen = {one: _readings(one, reading, readings, failure_logs) for one in claims}
    lane = _Lane(store / "quick" if quick else store, logs, quick, workers, quiet)
    if plan:
        _print_plan(lane, claims, chosen, json_)
        return
    require("the judging of claims", "scipy")  # before hours of simulations
    found = _judge_all(lane, claims, chosen)
    news = outputs.write(claims, found, quick)
    _print(claims, found, news, json_)
    if news:
        raise typer.Exit(3)


@dataclass(frozen=True)
class _Lane:
    """Where and how experiments run."""

    folder: Path
    logs: Path | None
    quick: bool
    workers: int | None
    quiet: bool

    def sweep(self, name: str, reading: Reading | None) -> tuple[Sweep, Path, dict[str, str]]:
        """Return the sweep of an experiment under a reading, its store, and which logs are replaced."""
        from faultsweep.sweeps.precision import with_replicates
        from faultsweep.sweeps.substitutes import with_substitutes
        from faultsweep.sweeps.sweep import Sweep

        own = reading is not None and reading.fixed
        folder = self.folder / reading.name if reading is not None and own else self.folder
        fixed = reading.fixed if reading is not None else None
        sweep, place, substitutes = with_substitutes(name, self.logs, None, folder, fixed)
        count = len(sweep.spec.axes[-1].labels)
        if self.quick and sweep.spec.axes[-1].name == "replicate" and count > QUICK_REPLICATES:
            sweep = Sweep.of(replace(sweep.spec, axes=with_replicates(sweep.spec.axes, QUICK_REPLICATES)))
        return sweep, place, substitutes


def _readings(paper: str, name: str | None, every: bool, failure_logs: Path | None) -> list[Reading]:
    """Return the readings of a paper that are asked for, besides the shipped one; of all, those whose log is there."""
    from faultsweep.analysis.claims.claim import read_readings

    known = {reading.name: reading for reading in read_readings(paper)}
    if name is not None:
        if name not in known:
            raise unknown_name("reading", name, list(known), where=paper)
        return [known[name].with_log(failure_logs)]
    found = []
    for one in known.values() if every else ():
        try:
            found.append(one.with_log(failure_logs))
        except InputError as error:
            typer.echo(f"Left out: {error}", err=True)
    return found


def _claims(wanted: str) -> dict[str, list[Claim]]:
    """Return the claims by paper that are asked for."""
    from faultsweep.analysis.claims.claim import papers, read_claims

    paper, _, name = wanted.partition("/")
    found = {one: read_claims(one) for one in ([paper] if paper else papers())}
    if name:
        names = [claim.name for claim in found[paper]]
        if name not in names:
            raise unknown_name("claim", name, names, where=paper)
        found[paper] = [claim for claim in found[paper] if claim.name == name]
    return found


def _experiments(
    claims: dict[str, list[Claim]], chosen: dict[str, list[Reading]]
) -> dict[tuple[str, str], Reading | None]:
    """Return what has to be run: (experiment, reading) -> the reading, None as shipped."""
    found: dict[tuple[str, str], Reading | None] = {}
    for paper, part in claims.items():
        for claim in part:
            if claim.parts:
                found[claim.experiment, ""] = None
            for reading in chosen[paper]:
                if reading.changes(claim) and reading.fixed:
                    found[claim.experiment, reading.name] = reading
    return found


def _judge_all(
    lane: _Lane, claims: dict[str, list[Claim]], chosen: dict[str, list[Reading]]
) -> dict[str, dict[str, dict[str, Judgement]]]:
    """Return what comes out of each claim under each reading; what is missing is run."""
    from faultsweep.analysis.claims.joint import SHIPPED

    results = _results(lane, _experiments(claims, chosen))
    found: dict[str, dict[str, dict[str, Judgement]]] = {}
    for paper, part in claims.items():
        shipped = {claim.name: _judged(claim, results.get((claim.experiment, ""))) for claim in part}
        found[paper] = {SHIPPED: shipped}
        for reading in chosen[paper]:
            changed = {
                claim.name: _judged(
                    reading.applied(claim), results[claim.experiment, reading.name if reading.fixed else ""]
                )
                for claim in part
                if reading.changes(claim)
            }
            found[paper][reading.name] = {**shipped, **changed}
    return found


def _results(lane: _Lane, wanted: dict[tuple[str, str], Reading | None]) -> dict[tuple[str, str], Any]:
    """Return the results of experiments, after what is missing of them was run."""
    from faultsweep.cluster.connect import connect
    from faultsweep.sweeps.open import open_results
    from faultsweep.sweeps.substitutes import describe_substitutes, lacks_results

    check_folder(lane.folder)
    found: dict[tuple[str, str], Any] = {}
    with ExitStack() as stack:
        cluster: Any = None
        for (name, of), reading in wanted.items():
            sweep, place, substitutes = lane.sweep(name, reading)
            for text in describe_substitutes(name, place, substitutes):
                typer.echo(text, err=True)
            if lacks_results(sweep, place):
                cluster = cluster or stack.enter_context(connect(None, lane.workers, None))
                typer.echo(f"{name}: into {place}", err=True)
                place.parent.mkdir(parents=True, exist_ok=True)
                sweep.run(place, cluster=cluster, progress=not lane.quiet, results=False)
            found[name, of] = open_results(place)
    return found


def _judged(claim: Claim, data: Any) -> Judgement:
    from faultsweep.analysis.claims.judge import judge

    try:
        return judge(claim, data if claim.parts else None)
    except InputError as error:
        raise InputError(f"{claim.paper}, {claim.name}: {error}") from None


def _print_plan(lane: _Lane, claims: dict[str, list[Claim]], chosen: dict[str, list[Reading]], as_json: bool) -> None:
    """Print what each experiment still needs, and the processor hours of all."""
    rows, hours = [], 0.0
    for (name, of), reading in _experiments(claims, chosen).items():
        sweep, place, _ = lane.sweep(name, reading)
        found = sweep.plan(place, workers=lane.workers)
        seconds = sum(found.run_s) / len(found.run_s) * found.missing if found.run_s else 0.0
        hours += seconds / 3600
        missing = {"simulations": found.simulations, "missing": found.missing}
        rows.append({"experiment": name, "reading": of, **missing, "processor_h": seconds / 3600})
    if as_json:
        typer.echo(json.dumps({"experiments": rows, "processor_h": hours}))
        return
    for row in rows:
        count = f"{row['missing']:,} of {row['simulations']:,} simulations"
        under = f", {row['reading']}" if row["reading"] else ""
        typer.echo(f"{row['experiment']}{under}: {count}, {row['processor_h']:.2g} h")
    typer.echo(f"Together {hours:.2g} hours of one processor.")


def _print(
    claims: dict[str, list[Claim]], found: dict[str, dict[str, dict[str, Judgement]]], news: list[str], as_json: bool
) -> None:
    if as_json:
        out = {
            paper: {reading: {name: asdict(one) for name, one in part.items()} for reading, part in readings.items()}
            for paper, readings in found.items()
        }
        typer.echo(json.dumps({"claims": out, "changed": news}, ensure_ascii=False))
        return
    for paper, part in claims.items():
        for reading, judgements in found[paper].items():
            _print_table(paper, reading, part, judgements)
        if len(found[paper]) > 1:
            _print_joint(paper, found[paper])
    for text in news:
        typer.echo(f"Changed: {text}", err=True)


def _print_table(paper: str, reading: str, claims: list[Claim], judgements: dict[str, Judgement]) -> None:

    found = [(claim, judgements[claim.name]) for claim in claims]
    typer.echo(f"\n{paper}, {reading}")
    print_table(
        ("claim", "here", "verdict"),
        ((f"{one.text} ({one.place})", "\n".join(its.found) or one.untestable, its.verdict) for one, its in found),
    )
    count = Counter(one.verdict for one in judgements.values())
    typer.echo(f"{paper}, {reading}: " + ", ".join(f"{number} {verdict}" for verdict, number in count.items()))


def _print_joint(paper: str, found: dict[str, dict[str, Judgement]]) -> None:
    """Print which reading satisfies most claims, and which claims exclude each other."""
    from faultsweep.analysis.claims.joint import describe_joint

    typer.echo(f"\n{paper}: {' '.join(describe_joint(found))}")
