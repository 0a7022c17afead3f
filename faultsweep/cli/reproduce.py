"""``faultsweep reproduce``: run what the papers' claims need, and judge the claims."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.sweep import LogsOption, WorkersOption
from faultsweep.errors import InputError

if TYPE_CHECKING:
    from faultsweep.analysis.claims.claim import Claim
    from faultsweep.analysis.claims.judge import Judgement
    from faultsweep.sweeps.sweep import Sweep

app = App()

QUICK_REPLICATES = 3


@app.command()
def reproduce(
    paper: Annotated[
        str, typer.Argument(metavar="[PAPER]", help="A paper, or one claim of it as PAPER/CLAIM. [default: all papers]")
    ] = "",
    store: Annotated[Path, typer.Option("--store", help="Folder of the stores of the experiments.")] = Path("figures"),
    logs: LogsOption = None,
    workers: WorkersOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"With {QUICK_REPLICATES} replicates at most, in stores of their own.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what has to run and how long it takes; run nothing.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write what came out as a page of Markdown.", show_default=False)
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Keep the verdicts in the package's list of accepted ones.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Say which printed claims of the papers come out here: run what is missing, and judge claim by claim.

    A claim agrees, agrees in part, does not agree, or cannot be told, by its interval and the region that it names.
    Exit code 0: all verdicts are the accepted ones; 3: some are not.
    """
    from faultsweep.analysis.claims.page import FULL, QUICK, changed, read_accepted, write_page
    from faultsweep.analysis.claims.page import accept as keep

    claims = _claims(paper)
    folder = store / "quick" if quick else store
    if plan:
        _print_plan(claims, folder, logs, quick, workers, json_)
        return
    found = _judge_all(claims, folder, logs, quick, workers, quiet)
    lane = QUICK if quick else FULL
    news = changed(found, read_accepted(lane))
    if accept:
        keep(found, lane)
    if page is not None:
        write_page(found, page)
    _print(claims, found, [] if accept else news, json_)
    if news and not accept:
        raise typer.Exit(3)


def _claims(wanted: str) -> dict[str, list[Claim]]:
    """Return the claims by paper that are asked for."""
    from faultsweep.analysis.claims.claim import papers, read_claims
    from faultsweep.errors import unknown_name

    paper, _, name = wanted.partition("/")
    found = {one: read_claims(one) for one in ([paper] if paper else papers())}
    if name:
        names = [claim.name for claim in found[paper]]
        if name not in names:
            raise unknown_name("claim", name, names, where=paper)
        found[paper] = [claim for claim in found[paper] if claim.name == name]
    return found


def _sweep(name: str, folder: Path, logs: Path | None, quick: bool) -> tuple[Sweep, Path, dict[str, str]]:
    """Return the sweep of an experiment, its store, and which logs are replaced."""
    from dataclasses import replace

    from faultsweep.sweeps.precision import with_replicates
    from faultsweep.sweeps.substitutes import with_substitutes
    from faultsweep.sweeps.sweep import Sweep

    sweep, place, substitutes = with_substitutes(name, logs, None, folder)
    count = len(sweep.spec.axes[-1].labels)
    if quick and sweep.spec.axes[-1].name == "replicate" and count > QUICK_REPLICATES:
        sweep = Sweep.of(replace(sweep.spec, axes=with_replicates(sweep.spec.axes, QUICK_REPLICATES)))
    return sweep, place, substitutes


def _experiments(claims: dict[str, list[Claim]]) -> list[str]:
    return list(dict.fromkeys(claim.experiment for part in claims.values() for claim in part if claim.parts))


def _judge_all(
    claims: dict[str, list[Claim]], folder: Path, logs: Path | None, quick: bool, workers: int | None, quiet: bool
) -> dict[str, dict[str, Judgement]]:
    from faultsweep.analysis.claims.judge import judge
    from faultsweep.analysis.open import open_results
    from faultsweep.cluster.connect import connect
    from faultsweep.files import check_folder
    from faultsweep.sweeps.substitutes import describe_substitutes, lacks_results

    check_folder(folder)
    results: dict[str, Any] = {}
    with ExitStack() as stack:
        cluster: Any = None
        for name in _experiments(claims):
            sweep, place, substitutes = _sweep(name, folder, logs, quick)
            for text in describe_substitutes(name, place, substitutes):
                typer.echo(text, err=True)
            if lacks_results(sweep, place):
                cluster = cluster or stack.enter_context(connect(None, workers, None))
                typer.echo(f"{name}: into {place}", err=True)
                sweep.run(place, cluster=cluster, progress=not quiet)
            results[name] = open_results(place)
    return {
        paper: {claim.name: _judged(judge, claim, results.get(claim.experiment)) for claim in part}
        for paper, part in claims.items()
    }


def _judged(judge: Any, claim: Claim, data: Any) -> Judgement:
    try:
        return judge(claim, data if claim.parts else None)
    except InputError as error:
        raise InputError(f"{claim.paper}, {claim.name}: {error}") from None


def _print_plan(
    claims: dict[str, list[Claim]], folder: Path, logs: Path | None, quick: bool, workers: int | None, as_json: bool
) -> None:
    """Print what each experiment still needs, and the processor hours of all."""
    import json

    rows, hours = [], 0.0
    for name in _experiments(claims):
        sweep, place, _ = _sweep(name, folder, logs, quick)
        found = sweep.plan(place, workers=workers)
        seconds = sum(found.run_s) / len(found.run_s) * found.missing if found.run_s else 0.0
        hours += seconds / 3600
        missing = {"simulations": found.simulations, "missing": found.missing}
        rows.append({"experiment": name, **missing, "processor_h": seconds / 3600})
    if as_json:
        typer.echo(json.dumps({"experiments": rows, "processor_h": hours}))
        return
    for row in rows:
        typer.echo(
            f"{row['experiment']}: {row['missing']:,} of {row['simulations']:,} simulations, {row['processor_h']:.2g} h"
        )
    typer.echo(f"Together {hours:.2g} hours of one processor.")


def _print(
    claims: dict[str, list[Claim]], found: dict[str, dict[str, Judgement]], news: list[str], as_json: bool
) -> None:
    import json
    from collections import Counter
    from dataclasses import asdict

    from rich.table import Table

    from faultsweep.terminal import make_console

    if as_json:
        out = {paper: {name: asdict(one) for name, one in part.items()} for paper, part in found.items()}
        typer.echo(json.dumps({"claims": out, "changed": news}, ensure_ascii=False))
        return
    console = make_console(highlight=False, markup=False)
    for paper, part in claims.items():
        table = Table("claim", "here", "verdict", box=None, pad_edge=False, header_style="bold")
        for claim in part:
            one = found[paper][claim.name]
            table.add_row(f"{claim.text} ({claim.place})", "\n".join(one.found) or claim.untestable, one.verdict)
        console.print(f"\n{paper}", style="bold")
        console.print(table)
        count = Counter(one.verdict for one in found[paper].values())
        console.print(f"{paper}: " + ", ".join(f"{number} {verdict}" for verdict, number in count.items()))
    for text in news:
        typer.echo(f"Changed: {text}", err=True)
