"""``faultsweep logs import`` and ``logs anonymise``: accounting dumps of real machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faultsweep.cli.logs import app
from faultsweep.cli.options import JsonOption, SkipOption, ZoneOption, unset
from faultsweep.cli.output import print_table
from faultsweep.errors import InputError, unknown_name
from faultsweep.files import check_writable
from faultsweep.terminal import print_json
from faultsweep.units import counted

if TYPE_CHECKING:
    from faultsweep.simcore.workloads.accounting.records import JobRecords

OutputOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="NAME.swf.gz|NAME.parquet", help="Where to write the jobs.")
]
ColumnsOption = Annotated[
    str,
    unset(
        "Columns of a table (submit=time_submit,requested=limit:min,...), or a mapping: pm100, f-data, eagle, alcf.",
        "--columns",
        metavar="OURS=THEIRS,...",
    ),
]
RuleOption = Annotated[
    str,
    typer.Option(
        "--nodes-rule",
        metavar="RULE",
        help="How nodes are counted in a log in the Standard Workload Format: header, descriptor, processors, or the "
        "processors of a node.",
        show_default="header",
    ),
]


@app.command("import")
def import_dump(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="sacct, pbs, cobalt, lsf, swf or table; auto recognises it by the content."
        ),
    ],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Dumps of one machine, in order of time.")],
    output: OutputOption,
    timezone: ZoneOption = "",
    columns: ColumnsOption = "",
    nodes_rule: RuleOption = "",
    size: Annotated[
        str, typer.Option(help="What sizes count in the Standard Workload Format: nodes, cores or gpus.")
    ] = ("nodes"),
    skip_malformed: SkipOption = False,
    as_json: JsonOption = False,
) -> None:
    """Import jobs from the accounting of a machine, and say what was left out and what was guessed.

    Parquet keeps everything; the Standard Workload Format keeps times, sizes, users, accounts, QOS and partitions.
    """
    from faultsweep.simcore.workloads.accounting.files import read_records
    from faultsweep.simcore.workloads.accounting.records import SIZES
    from faultsweep.simcore.workloads.accounting.table import parse_mapping
    from faultsweep.simcore.workloads.accounting.write import check_output, write_records

    if size not in SIZES:
        raise unknown_name("size", size, SIZES, "--size")
    check_output(output)
    check_writable([output], [str(file) for file in files])
    jobs = read_records(
        files,
        "" if kind == "auto" else kind,
        timezone=timezone,
        on_error="skip" if skip_malformed else "raise",
        columns=parse_mapping(columns) if columns else None,
        nodes_rule=nodes_rule,
    )
    if not len(jobs):
        raise InputError(f"{files[0]}: the dump has no job ({_sentence(jobs)})")
    write_records(jobs, output, size)
    if as_json:
        print_json(_as_json(jobs))
    else:
        _print(jobs)
        typer.echo(f"jobs: {output}")


@app.command()
def anonymise(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A dump, or jobs that logs import has written.")],
    output: OutputOption,
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="KEY.json", help="File with the number of each name, created if absent. Keep it private."
        ),
    ],
    keep: Annotated[
        str, typer.Option(metavar="COLUMN,...", help="Columns whose names are public, such as partition,qos.")
    ] = "",
    shift: Annotated[bool, typer.Option("--shift", help="Move all times by the key's number of weeks.")] = False,
    timezone: ZoneOption = "",
    skip_malformed: SkipOption = False,
) -> None:
    """Write a copy of jobs that can be made public, with numbers for users, accounts, nodes and other names.

    With the same key, later dumps get the same numbers for the same names. Whoever has the key can undo it.
    """
    from faultsweep.simcore.workloads.accounting import anonymise as anonymising
    from faultsweep.simcore.workloads.accounting.files import read_records
    from faultsweep.simcore.workloads.accounting.write import check_output, write_records

    check_output(output)
    check_writable([output, key], [str(file)])
    jobs = read_records([file], timezone=timezone, on_error="skip" if skip_malformed else "raise")
    names = anonymising.read_key(key)
    kept = tuple(name for name in keep.split(",") if name)
    public = anonymising.anonymise(jobs, names, kept, shift)
    anonymising.write_key(names, key)
    write_records(public, output)
    typer.echo(f"jobs: {output}")
    typer.echo(f"key: {key} (keep it private: it reverses the anonymisation)")


def _sentence(jobs: JobRecords) -> str:
    counts = [f"{count:,} {reason}" for _, reasons in jobs.report.parts() for reason, count in reasons.items()]
    return "; ".join(counts) or "it has no row"


def _as_json(jobs: JobRecords) -> dict[str, object]:
    report: dict[str, object] = {"rows": jobs.report.rows}
    report |= {title.replace(" ", "_"): dict(counts) for title, counts in jobs.report.parts()}
    about = {"kind": jobs.kind, "jobs": len(jobs), "nodes": jobs.nodes, "timezone": jobs.timezone}
    return {**about, "columns": list(jobs.columns), "report": report, "content_hash": jobs.content_hash}


def _print(jobs: JobRecords) -> None:
    from faultsweep.simcore.workloads.accounting.records import COLUMNS

    rows = [("read", f"{counted(jobs.report.rows, 'row')} of {jobs.kind}, {counted(len(jobs), 'job')}")]
    for title, counts in jobs.report.parts():
        for reason, count in counts.items():
            rows.append((title, f"{count:,} {reason}"))
            title = ""
    states = jobs.text("state")
    ended = [f"{int((states.codes == code).sum()):,} {name}" for code, name in enumerate(states.names)]
    machine = (
        f"{counted(jobs.nodes, 'node')}, {'in the node lists' if 'node_list' in jobs.columns else 'as the dump says'}"
    )
    lacking = [name for name in COLUMNS if name not in jobs.columns]
    for title, text in (
        ("states", ", ".join(ended)),
        ("machine", machine if jobs.nodes else "unknown"),
        ("not in the dump", ", ".join(lacking)),
        ("content", jobs.content_hash),
    ):
        if text:
            rows.append((title, text))
    print_table((), rows)
