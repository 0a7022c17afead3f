"""``faultsweep list``: what there is to choose from, with one line on each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer()


class Kind(StrEnum):
    """What can be listed."""

    machines = "machines"
    schedulers = "schedulers"
    finders = "finders"
    logs = "logs"
    metrics = "metrics"
    experiments = "experiments"
    parameters = "parameters"


@app.command("list")
def list_(kind: Annotated[Kind, typer.Argument(help="What to list.")]) -> None:
    """List machines, schedulers, finders, logs, metrics, experiments or parameters, with one line on each."""
    if kind is Kind.logs:
        from faultsweep.sweeps.cli.logs import list_logs

        list_logs()
        return
    from rich.console import Console
    from rich.table import Table

    rows = {
        Kind.machines: _machines,
        Kind.schedulers: _schedulers,
        Kind.finders: _finders,
        Kind.metrics: _metrics,
        Kind.experiments: _experiments,
        Kind.parameters: _parameters,
    }[kind]()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    Console(highlight=False, markup=False).print(table)


def _machines() -> list[tuple[str, str]]:
    from faultsweep.simcore.machines import MACHINE_FORMS

    return list(MACHINE_FORMS.items())


SCHEDULERS = {
    "fcfs": "First come, first served: nobody overtakes the head of the queue.",
    "backfill": "Weak (EASY) backfilling: a job may overtake if it does not delay the head of the queue.",
    "conservative": "Strong backfilling: a job may overtake if it delays no job ahead of it.",
    "migration": "FCFS, and running jobs move together on the torus when its free nodes are scattered.",
    "backfill+migration": "FCFS, then migration, then backfilling (B+M).",
}


def _schedulers() -> list[tuple[str, str]]:
    return list(SCHEDULERS.items())


FINDERS = {
    "columns": "Ours: bit masks of columns, and a list of the maximal free boxes. The default, and the fastest.",
    "exhaustive": "Every shape at every base, node by node (krevat2003, ch. 3).",
    "pop": "Projection of partitions: tables of free runs, planes projected onto each other (krevat2003, ch. 3).",
    "divisor": "Shapes whose sides divide the size, runs of free cross sections (oliner2004, appendix).",
}


def _finders() -> list[tuple[str, str]]:
    return list(FINDERS.items())


def _metrics() -> list[tuple[str, str]]:
    from faultsweep.simcore.metrics import METRICS

    return [(name, f"{metric.doc}{f' [{metric.unit}]' if metric.unit else ''}") for name, metric in METRICS.items()]


def _experiments() -> list[tuple[str, str]]:
    from faultsweep.sweeps.spec import experiments, load_toml

    return [(name, load_toml(path).get("title", "")) for name, path in experiments().items()]


def _parameters() -> list[tuple[str, str]]:
    from faultsweep.simcore.parameters import PARAMETERS

    return [
        (name, f"{p.doc}{f' [{p.unit}]' if p.unit else ''} Default: {p.default!r}.{_choices(p)}")
        for name, p in PARAMETERS.items()
    ]


def _choices(parameter: object) -> str:
    choices = getattr(parameter, "choices", ())
    return f" One of {', '.join(choices)}." if choices else ""
