"""The command line: ``faultsweep COMMAND``.

Modules of commands import only typer at their top; everything heavy is imported by the command that needs it, so that
``--help`` answers at once.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import typer

from faultsweep import __version__
from faultsweep.cli import (
    accounting,
    best,
    cluster,
    dashboard,
    failures,
    figure,
    lists,
    reproduce,
    share,
    simulate,
    site,
    sweep,
    validate,
    view,
)
from faultsweep.cli.app import App
from faultsweep.cli.damage import describe_damage
from faultsweep.cli.dask_settings import describe_settings
from faultsweep.cli.usage import describe_usage
from faultsweep.cluster.interrupts import ended_by_sigterm
from faultsweep.errors import InputError
from faultsweep.extras import EXTRAS, missing
from faultsweep.terminal import plain

_INTERRUPTED = 130

app = App(
    name="faultsweep",
    help="Which scheduler, checkpoint and recovery policy should a large machine run when nodes fail?",
    epilog="A first sweep: faultsweep plan demo, then faultsweep run demo. Every command has --help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.add_typer(simulate.app)
app.add_typer(validate.app)
app.add_typer(sweep.app)
app.add_typer(best.app)
app.add_typer(cluster.app)
app.add_typer(cluster.cluster_app, name="cluster", help="Settings of this cluster: init, check.")
app.add_typer(figure.app)
app.add_typer(reproduce.app)
app.add_typer(view.app)
app.add_typer(share.app)
app.add_typer(dashboard.app)
app.add_typer(lists.app)
app.add_typer(site.app, name="site", help="The machine of a site: import, describe.")
app.add_typer(failures.app, name="failures", help="Failure logs and generators: describe, fit, generate.")
app.add_typer(
    accounting.app,
    name="logs",
    help="Job logs and workload models: list, describe, fetch, fit, import, anonymise; the log of a run: logs STORE.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from faultsweep.simcore.simulate import MODEL_VERSION
        from faultsweep.sweeps.store.store import FORMAT

        typer.echo(f"faultsweep {__version__} (model {MODEL_VERSION}, store format {FORMAT})")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main() -> None:
    """Run the command line; what the user got wrong is one sentence on standard error and exit code 2 (75: try later).

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C, or SIGTERM.
    """
    try:
        _refuse_empty(sys.argv[1:])
        with ended_by_sigterm():
            code = app(prog_name="faultsweep", standalone_mode=False) or 0
        if code == _INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()  # a reader who has left is noticed here, not when Python ends
        sys.exit(code)
    except InputError as error:
        sys.stderr.write(f"{plain(error)}\n")
        sys.exit(error.exit_code)
    except BrokenPipeError:  # who reads the output has left, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        sys.stderr.write(f"{missing(error.name)}\n")
        sys.exit(2)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        sys.stderr.write(f"{plain(place)}cannot be read or written ({error.strerror or error})\n")
        sys.exit(2)
    except MemoryError:
        sys.stderr.write("there is not enough memory for this: name a smaller file, or ask for less\n")
        sys.exit(2)
    except Exception as error:  # typer's own errors, whose classes are private; others are raised again
        code = getattr(error, "exit_code", None)
        known = describe_damage(error) or describe_settings(error) if code is None else _describe(error)
        if not known:
            raise
        sys.stderr.write(f"{plain(known)}\n")
        sys.exit(2 if code is None else code)


def _refuse_empty(arguments: Sequence[str]) -> None:
    if any(argument == "" or (argument[:2] == "--" and argument[-1] == "=") for argument in arguments):
        shown = shlex.join(arguments)
        raise InputError(
            f"faultsweep {shown}: an argument is empty, perhaps an unset variable of the shell; leave it out"
        )


def _describe(error: Any) -> str:
    """Return an error as text: what typer finds wrong as one sentence, or the help of a command that needs more."""

    if not hasattr(error, "format_message"):
        return str(error)
    return error.format_message() if type(error).__name__ == "NoArgsIsHelpError" else describe_usage(error)
