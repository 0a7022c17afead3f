"""``faultsweep logs list | describe | fetch | fit``."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App, HelpGroup
from faultsweep.cli.options import JsonOption, LogsOption, RunArgument, ZoneOption, unset
from faultsweep.cli.output import check_picture, print_table
from faultsweep.extras import require
from faultsweep.files import check_writable, writing
from faultsweep.sweeps.times import describe_time
from faultsweep.terminal import make_console, plain, print_json
from faultsweep.units import counted

if TYPE_CHECKING:
    from faultsweep.simcore.model.workload import Workload
    from faultsweep.simcore.workloads.fitted import Quality


class _LogsGroup(HelpGroup):
    """``faultsweep logs STORE`` is short for ``faultsweep logs show STORE``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and _is_store_or_spec(args[0]):
            args = ["show", *args]
        return super().resolve_command(ctx, args)


def _is_store_or_spec(text: str) -> bool:
    from faultsweep.sweeps.status import has_run

    return Path(text).suffix in (".zarr", ".toml") or has_run(Path(text))


app = App(no_args_is_help=True, cls=_LogsGroup)

JobsOption = Annotated[int, typer.Option(min=0, help="Valid jobs to use; 0: all.")]
OffsetOption = Annotated[int, typer.Option(min=0, help="Valid jobs to skip.")]


@app.command("list")
def list_logs(logs: LogsOption = None, json_: JsonOption = False) -> None:
    """List the named logs and where they are on this machine, and the models that need no network."""
    from faultsweep.simcore.workloads.models import MODELS
    from faultsweep.sweeps.logs import NAMED_LOGS, cache_folder, find

    places = {name: find(log, logs) for name, log in NAMED_LOGS.items()}
    if json_:
        known = {
            name: {"machine": log.machine, "path": str(places[name]) if places[name] else None}
            for name, log in NAMED_LOGS.items()
        }
        print_json({"logs": known, "models": {name: model.doc for name, model in MODELS.items()}})
        return

    def place(found: Path | None) -> str:
        return "-" if found is None else "cache" if found.parent == cache_folder() else str(found.parent)

    rows = ((name, log.machine, place(places[name])) for name, log in NAMED_LOGS.items())
    print_table(("name", "machine", "here"), rows)
    typer.echo()
    print_table(("model", ""), ((name, model.doc) for name, model in MODELS.items()))
    typer.echo()
    typer.echo("A log that is not here is fetched at its first use; the path of an SWF file is valid everywhere, too.")


@app.command()
def describe(
    log: Annotated[str, typer.Argument(metavar="NAME-or-FILE", help="Named log, model, or SWF file.")],
    logs: LogsOption = None,
    num_jobs: JobsOption = 0,
    offset: OffsetOption = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of a model.")] = 0,
    timezone: ZoneOption = "",
    skip_malformed: Annotated[
        bool, typer.Option("--skip-malformed", help="Leave malformed lines of a file out and count them.")
    ] = False,
    picture: Annotated[Path | None, unset("Draw the log (.png, .pdf or .svg).", metavar="FILE")] = None,
    json_: JsonOption = False,
) -> None:
    """Describe a log or a model: jobs, span, load, sizes, run times, and whom to acknowledge."""
    from faultsweep.simcore.workloads.models import DEFAULT_JOBS
    from faultsweep.simcore.workloads.transforms import span
    from faultsweep.sweeps.logs import is_model, load_workload

    if picture is not None:
        check_picture(picture, log)
    on_error = "skip" if skip_malformed else "raise"
    reach = offset + (num_jobs or DEFAULT_JOBS) if is_model(log) else 0
    whole = load_workload(log, logs, num_jobs=reach, seed=seed, on_error=on_error, timezone=timezone)
    workload = span(whole, offset, num_jobs)
    if json_:
        print_json(_as_json(whole, workload))
    else:
        _print(whole, workload)
    if picture is not None:
        from faultsweep.analysis.pictures.logs import draw

        draw(workload, picture)
        if not json_:
            typer.echo(f"picture: {picture}")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Named logs, or 'all'.")],
    logs: LogsOption = None,
    json_: JsonOption = False,
) -> None:
    """Download logs of the Parallel Workloads Archive into the user's cache, once, and check their content."""
    from faultsweep.sweeps.logs import NAMED_LOGS, find, load_workload, named_log

    fetched = []
    for name in NAMED_LOGS if names == ["all"] else names:
        log, workload = named_log(name), load_workload(name, logs)
        known = {"file": str(find(log, logs)), "content_hash": workload.content_hash, "valid_jobs": len(workload)}
        fetched.append({"name": name, **known, "thanks": log.thanks})
        if not json_:
            typer.echo(f"{'  '.join(map(str, known.values()))} valid jobs; thanks to {log.thanks}")
    if json_:
        print_json({"logs": fetched})


@app.command()
def fit(
    log: Annotated[str, typer.Argument(metavar="NAME-or-FILE", help="Named log, or SWF file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.toml", help="Where to write the model.")],
    logs: LogsOption = None,
    num_jobs: JobsOption = 0,
    offset: OffsetOption = 0,
    nodes: Annotated[int, typer.Option(min=0, help="Scale sizes to a machine of so many nodes; 0: the log's.")] = 0,
    users: Annotated[bool, typer.Option("--users", help="Give jobs users, with their shares in the log.")] = False,
    json_: JsonOption = False,
) -> None:
    """Fit a workload model to a log by size class, write it for --log FILE.toml, and show how well it fits.

    Interarrival times and run times are hyper-Erlang of common order with the first three moments of the log.
    """
    from faultsweep.simcore.workloads.fitted import fit_model, fit_quality, generate, model_text
    from faultsweep.simcore.workloads.shaping import knobs
    from faultsweep.simcore.workloads.transforms import map_sizes, span
    from faultsweep.sweeps.logs import load_workload

    require("a hyper-Erlang model of jobs", "scipy")
    check_writable([output], [log])
    workload = span(load_workload(log, logs), offset, num_jobs)
    if nodes:
        workload = map_sizes(workload, nodes, size_map="scale")
    model = fit_model(workload, users)
    with writing(output):
        output.write_text(model_text(model), "utf-8")
    quality = list(fit_quality(workload, model))
    if json_:
        print_json({"model": str(output), "fit": [one._asdict() for one in quality], "knobs": knobs(workload)})
    else:
        _print_quality(quality)
        _print_knobs(knobs(workload), knobs(generate(model, len(workload))))
        typer.echo(f"model: {output}")


def _print_knobs(log: dict[str, float], model: dict[str, float]) -> None:
    """Print what the parameters that shape workloads are of a log, and of as many jobs of its model."""

    rows = ((name, f"{value:.4g}", f"{model[name]:.4g}") for name, value in log.items())
    print_table(("as a parameter", "log", "model"), rows)


def _print_quality(quality: list[Quality]) -> None:

    heads = ("size", "jobs", "of", "order", "mean", "deviation / mean", "moments off by", "distance")
    print_table(heads, map(_quality_row, quality), right=range(1, len(heads)))
    typer.echo("moments off by: the largest relative difference of the first three moments of log and model")
    typer.echo("distance: the largest difference of their distribution functions (Kolmogorov-Smirnov)")
    typer.echo()


def _quality_row(found: Quality) -> tuple[str, ...]:
    mean, second, _ = found.log
    spread = max(0.0, second / mean**2 - 1.0) ** 0.5
    off = max(abs(ours / theirs - 1.0) for ours, theirs in zip(found.model, found.log, strict=True))
    order = str(found.order) if found.order else "constant"
    fit = (f"{spread:.2f}", f"{off:.1g}", f"{found.distance:.3f}")
    what = {"gap": "interarrival time", "run": "run time"}[found.what]
    return found.sizes, f"{found.jobs:,}", what, order, describe_time(mean), *fit


def _print(whole: Workload, workload: Workload) -> None:
    from rich.text import Text

    from faultsweep.simcore.workloads.summary import acknowledgement

    console = make_console()
    console.print(Text(workload.name, style="bold"))
    print_table((), _facts(whole, workload))
    console.print()
    _print_sizes(workload)
    console.print()
    for line in acknowledgement(workload):
        console.print(Text(line, style="dim"))


def _as_json(whole: Workload, workload: Workload) -> dict[str, Any]:
    """Return what ``_print`` shows, in seconds and shares of 1."""
    import numpy as np

    from faultsweep.simcore.workloads import summary

    of_work = summary.work(workload)
    known = ~np.isnan(workload.requested_s)
    return {
        "name": workload.name,
        "content_hash": workload.content_hash,
        "jobs_in_log": len(whole) + sum(whole.dropped.values()),
        "valid_jobs": len(whole),
        "not_valid": dict(whole.dropped),
        "notes": list(whole.notes.values()),
        "jobs": len(workload),
        "nodes": workload.nodes,
        "procs_per_node": workload.procs_per_node,
        "span_s": summary.span_s(workload),
        "offered_load": summary.offered_load(workload),
        "offered_load_of_nodes": summary.offered_load_of_nodes(workload),
        "size": _numbers(workload.size),
        "run_s": _numbers(workload.run_s),
        "requested_s": _numbers(workload.requested_s[known]),
        "interarrival_s": _numbers(np.diff(workload.submit_s)),
        "sizes": [
            {
                "from": low,
                "to": high,
                "jobs": int(rows.sum()),
                "work_frac": float(of_work[rows].sum() / of_work.sum()),
                "run_s": _numbers(workload.run_s[rows]),
            }
            for low, high, rows in summary.size_classes(workload)
        ],
        "acknowledgement": summary.acknowledgement(workload),
    }


def _numbers(values: Any) -> dict[str, float | int]:
    """Return how many values there are, and, if any, their mean, standard deviation and quantiles."""
    import numpy as np

    found: dict[str, float | int] = {"n": len(values)}
    if len(values):
        levels = {"median": 0.5, "quantile_0.9": 0.9, "quantile_0.99": 0.99, "largest": 1.0}
        found |= {"mean": float(np.mean(values)), "std": float(np.std(values))}
        found |= {name: float(np.quantile(values, level)) for name, level in levels.items()}
    return found


def _facts(whole: Workload, workload: Workload) -> list[tuple[str, str]]:
    import numpy as np

    from faultsweep.simcore.workloads.shaping import concentration
    from faultsweep.simcore.workloads.summary import processors, span_s, work
    from faultsweep.sweeps.logs import is_model

    size, run = workload.size, workload.run_s
    total = len(whole) + sum(whole.dropped.values())
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in whole.dropped.items())
    machine = counted(workload.nodes, "node") if workload.nodes else "unknown"
    if workload.procs_per_node > 1:
        rounded = processors(workload) != workload.nodes * workload.procs_per_node
        machine += f" of {workload.procs_per_node} processors"
        machine += (
            f" at most, {processors(workload):,} in all (nodes of several kinds: procs_per_node)" if rounded else ""
        )
    gaps = np.diff(workload.submit_s)
    known = ~np.isnan(workload.requested_s)
    facts = [
        ("jobs", f"{total:,} in the log, {len(whole):,} valid" + (f" (not: {reasons})" if reasons else "")),
        ("reading", "; ".join(whole.notes.values())),
        ("jobs shown", f"{len(workload):,}" if len(workload) < len(whole) else ""),
        ("machine", machine),
        ("span", describe_time(span_s(workload))),
        ("offered load", _load(workload)),
        ("work per node", f"{work(workload).sum() / workload.nodes:,.4g} processor-seconds" if workload.nodes else ""),
        ("concentration", f"{concentration(size, run):.3g}: mean of the squared work of a job / square of its mean"),
        ("size", f"mean {size.mean():.2f}, standard deviation {size.std():.2f}, largest {size.max():,}"),
        ("run time", f"mean {describe_time(run.mean())}, " + _quantiles(run)),
        ("requested time", _requested(workload) if known.any() else "none in the log"),
        ("interarrival time", f"mean {describe_time(gaps.mean())}, " + _quantiles(gaps) if len(gaps) else ""),
        ("parameters" if is_model(whole.name) else "content", workload.content_hash),
    ]
    return [(name, value) for name, value in facts if value]


def _load(workload: Workload) -> str:
    """Return the offered load, of processors and, where that is another, of whole nodes."""
    from faultsweep.simcore.workloads.summary import capacity, offered_load, offered_load_of_nodes

    if not capacity(workload):
        return ""
    of_processors, of_nodes = f"{offered_load(workload):.3f}", f"{offered_load_of_nodes(workload):.3f}"
    if of_processors == of_nodes:
        return of_processors
    return f"{of_processors} of the processors; {of_nodes} of the nodes, as simulated: jobs share none"


def _requested(workload: Workload) -> str:
    import numpy as np

    known = ~np.isnan(workload.requested_s)
    requested = workload.requested_s[known]
    used = workload.run_s[known] / requested
    return (
        f"{100 * known.mean():.1f} % of jobs, median {describe_time(float(np.median(requested)))}; "
        f"of it used: mean {100 * np.minimum(used, 1).mean():.0f} %, overrun by {100 * (used > 1).mean():.1f} % of jobs"
    )


def _quantiles(values: Any) -> str:
    import numpy as np

    return ", ".join(
        f"{name} {describe_time(float(np.quantile(values, level)))}"
        for name, level in (("median", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("longest", 1.0))
    )


def _print_sizes(workload: Workload) -> None:
    import numpy as np

    from faultsweep.simcore.workloads.summary import size_classes, work

    of_work = work(workload)
    shown = []
    for low, high, rows in size_classes(workload):
        run = workload.run_s[rows]
        shares = (f"{100 * rows.mean():.1f}", f"{100 * of_work[rows].sum() / of_work.sum():.1f}")
        times = (describe_time(float(value)) for value in (run.mean(), np.median(run), np.quantile(run, 0.9)))
        shown.append((str(high) if low == high else f"{low}-{high}", f"{rows.sum():,}", *shares, *times))
    heads = ("size", "jobs", "jobs %", "work %", "mean run", "median", "90 %")
    print_table(heads, shown, right=range(len(heads)))


@app.command()
def show(
    spec: RunArgument,
    store: Annotated[Path | None, unset("The store, if a spec is named.")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines to print.")] = 40,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as it grows; Ctrl-C ends.")] = False,
) -> None:
    """Print what the batch job of a store, or without one its last run, has written: the end of its log file.

    Example: faultsweep logs my.zarr --follow
    """
    from faultsweep.sweeps.detached import find_log
    from faultsweep.sweeps.status import find_store

    _print_end(find_log(find_store(spec, store).resolve()), lines, follow)


def _print_end(path: Path, lines: int, follow: bool) -> None:
    """Print the last lines of a file, and, if asked to, what is appended to it."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in deque(file, maxlen=lines):
            typer.echo(plain(line), nl=False)
        while follow:
            typer.echo(plain(file.read()), nl=False)
            time.sleep(0.5)
