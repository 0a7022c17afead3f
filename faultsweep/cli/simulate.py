"""``faultsweep simulate``: one run, its metrics, its jobs and its events.

Every parameter of a run is an option; they are made from the table of parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.output import print_metrics, print_owners, say_compiling
from faultsweep.errors import InputError, unknown_name
from faultsweep.files import check_csv, check_writable, write_jobs
from faultsweep.terminal import print_json

if TYPE_CHECKING:
    from faultsweep.simcore.contract import Parameter
    from faultsweep.simcore.simulate import Run

app = App()

_NOT_PARAMETERS: dict[str, tuple[Any, Any]] = {
    "log": (str, typer.Option(..., help="Named log, path of a log (SWF, also .gz or .xz), or workload model.")),
    "logs": (str, typer.Option("", help="Folder with job logs, which is searched first.", metavar="DIR")),
    "skip_malformed": (
        bool,
        typer.Option(False, "--skip-malformed", help="Leave malformed lines of the log out and count them."),
    ),
    "all_metrics": (bool, typer.Option(False, "--all", help="Print every metric, not only the ten that matter.")),
    "by": (
        str,
        typer.Option("", help="Print jobs, waits and shares of each user, account, partition or qos.", metavar="OWNER"),
    ),
    "json_output": (bool, typer.Option(False, "--json", help="Print the metrics as JSON.")),
    "debug": (bool, typer.Option(False, "--debug", help="Check the whole state after every event time; slow.")),
    "repeat": (int, typer.Option(1, min=1, help="Simulate this many times; elapsed_s is the median.")),
    "jobs_out": (str, typer.Option("", help="Write the results of every job.", metavar="FILE.csv")),
    "accounts_out": (str, typer.Option("", help="Write the users' credits.", metavar="FILE.csv")),
    "options_out": (str, typer.Option("", help="Write the outcome of jobs by recovery option.", metavar="FILE.csv")),
    "events_out": (str, typer.Option("", help="Write every event; times on the log's clock.", metavar="FILE.csv")),
    "trace": (bool, typer.Option(False, "--trace", help="Print every step of the agent on clusters, and why.")),
    "trace_out": (str, typer.Option("", help="Write every step of the agent on clusters.", metavar="FILE.csv")),
    "failures_out": (
        str,
        typer.Option(
            "",
            help="Write the failures of the run; times since the first submission, as --failures reads them.",
            metavar="FILE.csv",
        ),
    ),
}


def parameter_option(parameter: Parameter) -> tuple[Any, Any]:
    """Return the type and the option of a parameter; None as default tells what was not given."""
    flag = "--" + parameter.name.replace("_", "-")
    default = parameter.default if parameter.default != "" else "none"
    text = parameter.doc.replace("[", "(").replace("]", ")") + (
        f" One of {', '.join(parameter.choices)}." if parameter.choices else ""
    )
    name = f"{flag}/--no-{flag[2:]}" if parameter.kind is bool else flag
    option = typer.Option(
        None,
        name,
        help=f"{text} (default: {default})",
        show_default=False,
        rich_help_panel=parameter.group.capitalize(),
        metavar={float: "NUMBER", int: "N", str: "TEXT", bool: None}[parameter.kind],
    )
    return parameter.kind, option


def _parameters(arguments: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Return the type and the option of all that the command takes; files that are named may declare more."""
    from faultsweep.simcore.parameters import PARAMETERS, known_parameters

    options = dict(_NOT_PARAMETERS)
    known = known_parameters(dict(_named(arguments)))
    taken = known.keys() & options.keys() - PARAMETERS.keys()
    if taken:
        raise InputError(f"{min(taken)}: the command has an option of that name; rename the parameter of your policy")
    return options | {name: parameter_option(each) for name, each in known.items() if name != "log"}


def _named(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options with their values, as far as they are written in full."""
    for at, argument in enumerate(arguments):
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            yield name.replace("-", "_"), value if equals else "".join(arguments[at + 1 : at + 2])


@app.command_with(_parameters)
def simulate(**options: Any) -> None:
    """Simulate one configuration and print the ten metrics that matter for it.

    Example: faultsweep simulate --log nasa-model --num-jobs 1000 --machine torus:4x4x8 --scheduler backfill
    """
    from faultsweep.simcore.engine.fairness import OWNERS
    from faultsweep.simcore.parameters import resolve
    from faultsweep.simcore.simulate import simulate as run_simulation
    from faultsweep.sweeps.logs import load_configured

    if options["by"] and options["by"] not in OWNERS:
        raise unknown_name("owner of jobs", options["by"], OWNERS, where="by")
    parameters = [name for name in options if name not in _NOT_PARAMETERS or name == "log"]
    given = {name: options.pop(name) for name in parameters if options[name] is not None}
    config = resolve(given)
    names = ("jobs_out", "accounts_out", "options_out", "events_out", "trace_out", "failures_out")
    outputs = [options[name] for name in names if options[name]]
    check_csv(outputs)
    check_writable(outputs, inputs=[value for value in config.values() if isinstance(value, str)])
    if config["machine"].startswith("clusters:") and (options["accounts_out"] or options["options_out"]):
        raise InputError("accounts_out, options_out: joined clusters have neither recovery nor accounts of credits")
    workload = load_configured(
        config, logs_dir=options["logs"] or None, on_error="skip" if options["skip_malformed"] else "raise"
    )
    run = run_simulation(
        workload,
        events=bool(options["events_out"]),
        trace=bool(options["trace"] or options["trace_out"]),
        repeat=options["repeat"],
        debug=options["debug"],
        before_compiling=say_compiling,
        **given,
    )
    _write(run, options)
    if options["trace"] and run.decisions is not None:
        for sentence in run.decisions.sentences():
            typer.echo(sentence, err=options["json_output"])
    _report(run, workload.content_hash, options["json_output"], options["all_metrics"], options["by"])


def _write(run: Run, options: Mapping[str, Any]) -> None:
    from faultsweep.simcore.failure_logs.plain import write_failures
    from faultsweep.simcore.policies.recovery.credits import accounts, write_accounts
    from faultsweep.simcore.policies.recovery.measures import option_report, write_option_report

    if options["jobs_out"]:
        write_jobs(run.jobs, options["jobs_out"])
    if options["accounts_out"]:
        write_accounts(accounts(run.jobs), options["accounts_out"])
    if options["options_out"]:
        write_option_report(option_report(run.jobs), options["options_out"])
    if options["events_out"] and run.events is not None:
        run.events.write_csv(options["events_out"])
    if options["trace_out"] and run.decisions is not None:
        run.decisions.write_csv(options["trace_out"])
    if options["failures_out"]:
        write_failures(run.failures, options["failures_out"])


def _report(run: Run, content_hash: str, as_json: bool, every: bool, by: str) -> None:

    speed = {"elapsed_s": run.elapsed_s, "jobs_per_s": len(run.jobs["job_id"]) / run.elapsed_s}
    if as_json:
        about = {
            "status": run.status,
            "dropped": dict(run.dropped),
            "doubts": list(run.doubts),
            "content_hash": content_hash,
            "config": run.config,
        }
        owners = {"by": {name: values.tolist() for name, values in run.by(by).items()}} if by else {}
        print_json({**run.metrics, **speed, **about, **owners})
    else:
        table = run.by(by) if by else None
        print_metrics(run, speed, every)
        if table is not None:
            print_owners(table)
