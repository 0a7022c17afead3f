"""``faultsweep dashboard | report``."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import unset
from faultsweep.extras import require
from faultsweep.files import check_writable

app = App()


@app.command()
def dashboard(
    store: Annotated[str, typer.Argument(metavar="STORE-or-URL", help="A store, finished or being written.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any free port.")] = 0,
    view: Annotated[str, unset("The view to start with, as the page prints it.", metavar="VIEW")] = "",
    browser: Annotated[bool, typer.Option(help="Open the link in a browser.")] = False,
    compare: Annotated[str, unset("An earlier store to compare with.", metavar="STORE-or-URL")] = "",
    allow_rerun: Annotated[
        bool, typer.Option("--allow-rerun", help="Let the page simulate a run again; for a store of your own.")
    ] = False,
) -> None:
    """Look at a store in a browser, by any axis and metric, also while it is being written.

    The printed link carries a token; nobody gets in without it, on this machine either. Ctrl-C ends it. From another
    machine: ssh -L 8888:127.0.0.1:8888 HOST, with --port 8888 here, and open the link there.
    """
    require("the dashboard", "panel", "hvplot", "matplotlib", "scipy")
    from faultsweep.analysis.dashboard.follow import FollowedStore
    from faultsweep.analysis.dashboard.server import serve

    def started(link: str) -> None:
        typer.echo(link)
        if browser:
            webbrowser.open(link)

    followed = FollowedStore(store, wait=True, may_rerun=allow_rerun, other=compare)
    if not followed.is_there:
        typer.echo(f"{store} does not exist yet; the page waits for it", err=True)
    serve(followed, port, view, started)


@app.command()
def report(
    store: Annotated[str, typer.Argument(metavar="STORE-or-URL", help="A store, finished or not.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page.")] = Path(
        "report.html"
    ),
    metric: Annotated[
        list[str] | None, typer.Option(help="A metric to report on; may be repeated. [default: the usual ones]")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="AXIS", help="The axis that is ranked. [default: scheduler, or the first of names]"),
    ] = None,
) -> None:
    """Write one page about a store, to read or print: results, effects, the best policy per region, provenance.

    It has no scripts and works offline.
    """
    from faultsweep.analysis.report import write_report
    from faultsweep.sweeps.open import open_results

    require("a report", "matplotlib", "scipy")
    check_writable([output])
    write_report(open_results(store), output, metric, policy)
    typer.echo(str(output))
