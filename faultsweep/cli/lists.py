"""``faultsweep list``: what there is to choose from, with one line on each."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from faultsweep.cli.app import App
from faultsweep.cli.logs import list_logs
from faultsweep.cli.options import JsonOption
from faultsweep.cli.output import print_table
from faultsweep.terminal import print_json

if TYPE_CHECKING:
    from faultsweep.simcore.contract import Parameter

app = App()


class Kind(StrEnum):
    """What can be listed."""

    machines = "machines"
    schedulers = "schedulers"
    placements = "placements"
    finders = "finders"
    checkpoints = "checkpoints"
    predictors = "predictors"
    node_choices = "node-choices"
    queue_orders = "queue-orders"
    recoveries = "recoveries"
    meta_schedulers = "meta-schedulers"
    agents = "agents"
    logs = "logs"
    metrics = "metrics"
    experiments = "experiments"
    parameters = "parameters"


_SELECTORS = {
    Kind.schedulers: "scheduler",
    Kind.placements: "placement",
    Kind.finders: "finder",
    Kind.checkpoints: "checkpoint",
    Kind.predictors: "predictor",
    Kind.node_choices: "node_choice",
    Kind.queue_orders: "queue_order",
    Kind.recoveries: "recovery",
    Kind.meta_schedulers: "meta_scheduler",
    Kind.agents: "agent",
}
"""The parameters that name policies."""


@app.command("list")
def list_(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help=f"{', '.join(list(Kind)[:-1])} or {list(Kind)[-1]}.")],
    json_: JsonOption = False,
) -> None:
    """List machines, policies, logs, metrics, experiments or parameters, with one line on each."""

    if kind is Kind.logs:
        list_logs(json_=json_)
        return
    listed = {
        Kind.machines: _machines,
        Kind.metrics: _metrics,
        Kind.experiments: _experiments,
        Kind.parameters: _parameters,
    }
    rows = _policies(_SELECTORS[kind]) if kind in _SELECTORS else listed[kind]()
    if json_:
        print_json(dict(rows))
    else:
        print_table((), rows)


def _policies(selector: str) -> list[tuple[str, str]]:
    from faultsweep.simcore import installed
    from faultsweep.simcore.parameters import OWN_PARAMETERS, PARAMETERS

    built_in = {name: [*role.policies, *PARAMETERS[name].aliases] for name, role in OWN_PARAMETERS.items()}
    for sentence in installed.problems(built_in):
        typer.echo(sentence, err=True)
    brought = installed.names(selector) if selector in OWN_PARAMETERS else {}
    return list({**brought, **with_other_names(PARAMETERS[selector])}.items())


def with_other_names(parameter: Parameter) -> dict[str, str]:
    """Return the choices of a parameter, each with its sentence and the other names that are accepted for it."""
    found = {}
    for name, sentence in parameter.choices.items():
        others = ", ".join(alias for alias, of in parameter.aliases.items() if of == name)
        found[name] = f"{sentence} Also: {others}." if others else sentence
    return found


def _machines() -> list[tuple[str, str]]:
    from faultsweep.simcore.model.machines import MACHINE_FORMS

    return list(MACHINE_FORMS.items())


def _metrics() -> list[tuple[str, str]]:
    from faultsweep.simcore.engine.metrics import METRICS

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


@app.command("check-policy")
def check_policy(
    parameter: Annotated[
        str, typer.Argument(metavar="PARAMETER", help="The parameter that names the policy, such as queue_order.")
    ],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="A name, or FILE.py:FUNCTION, which is executed.")],
    draws: Annotated[int, typer.Option(min=1, help="Configurations on each kind of machine.")] = 6,
    json_: JsonOption = False,
) -> None:
    """Check that a policy meets what is required of every policy, with other policies on every kind of machine.

    Example: faultsweep check-policy queue_order rules.py:aged_area
    """
    from faultsweep.simcore.conformance import check_policy as check

    report = check(parameter, value, draws)
    counts = f"{report.ran} configurations ran, {report.refused} are refused as they should be"
    if json_:
        print_json({"parameter": parameter, "value": value, **asdict(report)})
    else:
        typer.echo("".join(f"{sentence}\n" for sentence in report.problems) + f"{parameter} {value}: {counts}")
    if report.problems:
        raise typer.Exit(1)
