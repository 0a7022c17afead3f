"""``faultsweep failures describe | fit | generate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import JsonOption, unset
from faultsweep.cli.output import check_picture, print_table
from faultsweep.cli.simulate import parameter_option
from faultsweep.errors import InputError, unknown_name
from faultsweep.files import check_writable, writing
from faultsweep.terminal import make_console, print_json
from faultsweep.units import counted

app = App(no_args_is_help=True)

_SHOWN = ("seed", "replicate", "machine")
_NOT_HERE = ("failures", "num_failures", "failure_system", "failure_filter_s", "failure_columns")

SystemOption = Annotated[
    int,
    typer.Option(min=0, help="System of a LANL file, or platform of a Failure Trace Archive table; 0: the only one."),
]
FilterOption = Annotated[
    float, typer.Option("--filter-s", min=0, help="Blue Gene/L RAS lines at most this far apart are one failure.")
]
ColumnsOption = Annotated[
    str, unset("Columns of a table in CSV (time=occurred,node=host,down=minutes:min), or a mapping: titan-gpu.")
]


@app.command()
def describe(
    file: Annotated[
        str, typer.Argument(metavar="FILE-or-FOLDER", help="A failure log, or a folder whose logs are listed.")
    ],
    system: SystemOption = 0,
    filter_s: FilterOption = 300.0,
    columns: ColumnsOption = "",
    json_: JsonOption = False,
    picture: Annotated[Path | None, unset("Draw the log (.png, .pdf or .svg).", metavar="FILE")] = None,
) -> None:
    """Describe a failure log: rate, times between failures, bursts, skew of the nodes, down times.

    Example: faultsweep failures describe failures.csv --picture failures.png
    """
    from faultsweep.simcore.failure_logs.files import read_failures
    from faultsweep.simcore.failure_logs.statistics import summary

    if Path(file).is_dir():
        _list_files(Path(file), json_)
        return
    if picture is not None:
        check_picture(picture, file)
    records = read_failures(file, system=system, filter_s=filter_s, columns=columns)
    figures = summary(records)
    if json_:
        print_json(figures)
    else:
        _print(figures)
    if picture is not None:
        from faultsweep.analysis.pictures.failures import draw

        draw(records, picture)
        if not json_:
            typer.echo(f"picture: {picture}")


@app.command()
def fit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A failure log.")],
    output: Annotated[
        Path | None, unset("Write the parameters for a spec.", "-o", "--output", metavar="FILE.toml")
    ] = None,
    system: SystemOption = 0,
    filter_s: FilterOption = 300.0,
    columns: ColumnsOption = "",
    json_: JsonOption = False,
) -> None:
    """Estimate the parameters of the generator bursts from a failure log, and show how well the model fits.

    Example: faultsweep failures fit failures.csv -o incidents.toml
    """
    from faultsweep.simcore.failure_logs.estimate import estimate_bursts
    from faultsweep.simcore.failure_logs.files import read_failures

    if output is not None:
        check_writable([output], [file])
    records = read_failures(file, system=system, filter_s=filter_s, columns=columns)
    found = {"failures": "bursts", **estimate_bursts(records)}
    if output is not None:
        with writing(output):
            output.write_text(_as_fixed(found, records.name), "utf-8")
    if json_:
        print_json(found)
        return
    _print_fit(found, records)
    if output is not None:
        typer.echo(f"parameters: {output}")


def _as_fixed(found: dict[str, Any], name: str) -> str:
    """Return parameters as the [fixed] table of a spec."""
    lines = [f"# Bursts as in {' '.join(name.split())}.", "[fixed]"]
    return "\n".join([*lines, *(f"{key} = {json.dumps(value)}" for key, value in found.items()), ""])


def _print_fit(found: dict[str, Any], records: Any) -> None:
    """Print the parameters, and what log and model have in common: ten years drawn for as long on as many nodes."""

    print_table(
        (),
        (
            (name.replace("_", "-"), f"{value:g}" if isinstance(value, float) else str(value))
            for name, value in found.items()
        ),
    )
    typer.echo()
    rows = ((name, _figure(log), _figure(model)) for name, log, model in _likeness(found, records))
    print_table(("", "log", "model, mean of ten"), rows)


def _likeness(found: dict[str, Any], records: Any) -> list[tuple[str, float, float]]:
    """Return figures of a log beside their means over ten traces of the model."""
    import numpy as np

    from faultsweep.simcore.failure_logs.records import FailureRecords
    from faultsweep.simcore.failure_logs.statistics import summary
    from faultsweep.simcore.policies.failures.source import DAY_S
    from faultsweep.sweeps.failure_target import generate

    machine = {"machine": f"flat:{records.num_nodes}", "node_map": "permutation"}
    drawn = []
    for replicate in range(10):
        trace, nodes = generate(found | machine | {"replicate": replicate}, records.span_s / DAY_S)
        drawn.append(summary(FailureRecords(trace.time_s, trace.node, np.full(len(trace), np.nan), nodes)))
    log = summary(records)
    return [
        (what, log[group][name], float(np.nanmean([one[group][name] for one in drawn]))) for what, group, name in _ALIKE
    ]


_ALIKE = (
    ("failures a day", "rate", "failures_per_day"),
    ("coefficient of variation of times between failures", "gaps", "coefficient_of_variation"),
    ("failures per burst", "space", "failures_per_burst"),
    ("share of failures in bursts over several nodes", "space", "failures_in_bursts_over_several_nodes"),
    ("share of the worst tenth of the nodes", "space", "share_of_worst_tenth"),
    ("next failure on the same node", "space", "next_failure_on_the_same_node"),
)


def _list_files(folder: Path, as_json: bool) -> None:
    """Print the failure logs of a folder with their formats, and what else there is."""
    from faultsweep.simcore.failure_logs.files import FORMATS, recognise

    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    found = {str(path): kind for path in files if (kind := recognise(path))}
    if not found:
        raise InputError(f"{folder}: has no failure log among its {len(files):,} files; name a file")
    if as_json:
        print_json(found)
    else:
        print_table((), ((path, FORMATS[kind].description) for path, kind in found.items()))


def _generate_options(_arguments: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Return the options of the command: one for every parameter that a generator heeds."""
    from faultsweep.simcore.parameters import PARAMETERS
    from faultsweep.sweeps.failure_target import GENERATORS

    *others, last = GENERATORS
    options: dict[str, tuple[Any, Any]] = {
        "source": (str, typer.Argument(help=f"{', '.join(others)} or {last}.", metavar="SOURCE")),
        "output": (str, typer.Option(..., "--output", "-o", help="The file (.csv, .csv.gz, .csv.xz).", metavar="FILE")),
        "days": (float, typer.Option(365.0, min=1e-6, max=1e6, help="Length of the trace.")),
        "json_output": (bool, typer.Option(False, "--json", help="Print JSON.")),
    }
    names = [name for name, p in PARAMETERS.items() if p.group == "failures" and name not in _NOT_HERE]
    return options | {name: parameter_option(PARAMETERS[name]) for name in (*_SHOWN, *names)}


@app.command_with(_generate_options, "generate")
def _generate(**options: Any) -> None:
    """Write random failures as a file that simulate, sweeps and describe read.

    Example: faultsweep failures generate weibull --machine flat:320 --days 62 --burst-window 32 -o failures.csv
    """
    from faultsweep.simcore.failure_logs.plain import write_failures
    from faultsweep.simcore.parameters import resolve
    from faultsweep.simcore.policies.failures.excess import excess_sentence
    from faultsweep.simcore.policies.failures.source import DAY_S
    from faultsweep.sweeps.failure_target import GENERATORS, generate

    kind, days, output, as_json = (options.pop(name) for name in ("source", "days", "output", "json_output"))
    if kind not in GENERATORS:
        raise unknown_name("generator", kind, GENERATORS, where="SOURCE")
    check_writable([output])
    given = {name: value for name, value in options.items() if value is not None}
    trace, nodes = generate({"failures": kind, **given}, days)
    write_failures(trace, output, num_nodes=nodes)
    notes = excess_sentence(resolve({"failures": kind, **given}), days * DAY_S)
    if as_json:
        print_json({"file": output, "failures": len(trace), "nodes": nodes, "days": days, "notes": notes})
        return
    made = f"{counted(len(trace), 'failure')} of {counted(nodes, 'node')}"
    typer.echo(f"{output}: {made} in {days:g} days, {len(trace) / days:.3g} a day")
    if notes:
        typer.echo(notes)


def _print(figures: dict[str, Any]) -> None:
    from rich.text import Text

    from faultsweep.simcore.failure_logs.files import FORMATS

    console = make_console()
    log = dict(figures["log"])
    console.print(Text(str(log.pop("name")), style="bold"))
    log.pop("content_hash")
    read = f"{FORMATS[log.pop('format')].description}: "
    read += "; ".join(f"{count:,} {reason}" for reason, count in log.items())
    print_table((), [("read", read), *_facts(figures)])
    console.print()
    if figures["fits"]:
        rows = (
            (name, _parameters(fit), f"{fit['ks']:.4f}", f"{fit['aic']:,.1f}") for name, fit in figures["fits"].items()
        )
        print_table(("times between failures", "parameters", "KS distance", "AIC"), rows)
        console.print(Text("fitted by maximum likelihood to times of more than 0 s; best first", style="dim"))
    console.print(Text(figures["log"]["content_hash"], style="dim"))


def _parameters(fit: dict[str, float]) -> str:
    return ", ".join(f"{key} {fit[key]:,.4g}" for key in fit if key not in ("ks", "aic", "log_likelihood"))


def _facts(figures: dict[str, Any]) -> list[tuple[str, str]]:
    from faultsweep.analysis.pictures.failures import duration

    rate, gaps, time, space, down = (figures[group] for group in ("rate", "gaps", "time", "space", "down"))
    per_day = f", {rate['failures_per_day']:.3g} a day" if rate["span_days"] else ""
    facts = [
        ("failures", f"{rate['failures']:,} in {rate['span_days']:,.1f} days{per_day}"),
        ("nodes", f"{rate['nodes']:,}, of which {rate['nodes_that_failed']:,} failed"),
        ("MTBF", f"{_hours(rate['mtbf_h'])} of the system, {_hours(rate['node_mtbf_h'])} of a node"),
    ]
    if gaps:
        facts.append(
            (
                "time between failures",
                f"mean {duration(gaps['mean_s'])}, median {duration(gaps['median_s'])}, coefficient of variation "
                f"{gaps['coefficient_of_variation']:.2f}, {100 * gaps['share_of_0_s']:.1f} % of 0 s",
            )
        )
    for name, key in (("autocorrelation", "autocorrelation_of_gaps"), ("  of ranks", "autocorrelation_of_ranks")):
        facts.append((name, ", ".join(f"lag {lag}: {_figure(value)}" for lag, value in time[key].items())))
    counts = ", ".join(f"{name} {_figure(value)}" for name, value in time["dispersion_of_counts"].items())
    same = space["next_failure_on_the_same_node"]
    facts += [
        ("dispersion", f"variance / mean of the counts per {counts} (independent: 1)"),
        ("bursts", f"{space['bursts']:,} (closer than a tenth of the mean time between failures), of "
                   f"{space['failures_per_burst']:.2f} failures, largest {space['largest_burst']:,}; "
                   f"{100 * space['failures_in_bursts_over_several_nodes']:.1f} % of failures in one of several nodes"),
        ("skew", f"worst tenth of the nodes: {100 * space['share_of_worst_tenth']:.1f} % of the failures (if all were "
                 f"alike: {100 * space['share_of_worst_tenth_if_nodes_were_alike']:.1f} %), "
                 f"worst node: {100 * space['share_of_worst_node']:.1f} %"),
        ("repetition", f"the next failure is on the same node: {_figure(100 * same)} % "
                       f"(if independent: {100 * space['next_failure_on_the_same_node_if_independent']:.1f} %)"),
    ]  # fmt: skip
    if "mean_s" not in down:
        return [*facts, ("down times", "unknown")]
    quantiles = ", ".join(f"{name} {duration(down[key])}" for name, key in _DOWN)
    known = "" if down["known"] == 1 else f"; known of {100 * down['known']:.1f} %"
    return [*facts, ("down times", f"{quantiles}, {100 * down['share_of_0_s']:.1f} % of 0 s{known}")]


_DOWN = (
    ("mean", "mean_s"),
    ("median", "quantile_0.5_s"),
    ("90 %", "quantile_0.9_s"),
    ("99 %", "quantile_0.99_s"),
    ("longest", "longest_s"),
)


def _hours(hours: float) -> str:
    from faultsweep.analysis.pictures.failures import duration

    return duration(hours * 3600)


def _figure(value: float) -> str:
    return "-" if value != value else f"{value:.2f}"
