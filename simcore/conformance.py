"""Whether a policy holds what every policy must: one suite for those of the package and those of the user's.

Its parameters resolve; the canonical form of a configuration is its own, and means the same policies; each combination
is refused in one sentence, or it runs with all invariants checked; a run is the same to the bit when it is repeated,
and when what is inert in it is changed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Parameter
from faultsweep.simcore.engine.metrics import MEASURED
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.workload import LABELS, NUMBERS, Label, Workload
from faultsweep.simcore.parameters import (
    PARAMETERS,
    canonical,
    check_own,
    inert,
    is_own,
    known_parameters,
    resolve,
    run_of,
)
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.simulate import Run, simulate

from faultsweep.errors import InputError, InvariantError, unknown_name

SELECTORS = {role.selector.name: role for role in ROLES.values() if role.selector is not None}
"""The parameters that name policies, with their roles."""
MACHINES = ("flat:64", "torus:4x4x4", "midplanes:8", "clusters:40+40")
_SITE = """
format = "faultsweep site, 1"
preempt_by = "qos"
[[nodes]]
name = "thin"
count = 8
cores = 4
[[nodes]]
name = "fat"
count = 2
cores = 8
[[qos]]
name = "1"
preempts = ["2"]
[[qos]]
name = "2"
[[partitions]]
name = "all"
nodes = { thin = 8, fat = 2 }
"""
_JOBS = 40
_CONTEXT = ("scheduler", "placement", "node_choice", "checkpoint", "recovery", "queue_order", "estimates")
"""The other policies of a run, which are drawn."""
_ELSEWHERE = ("workload", "metrics", "run", "clusters")
"""The groups of parameters that are not of policies on one machine."""
_ERRS = ("accuracy", "recall", "false_positive_rate")
_NEVER = frozenset({"log", "machine", "failures", "event_order", "horizon_s", "time_scheduling"})
"""What is not changed where it is inert: it needs files, or decides more than the run."""


@dataclass
class Report:
    """How often a policy ran and was refused, and a sentence for each property that it does not hold."""

    ran: int = 0
    refused: int = 0
    problems: list[str] = field(default_factory=list)


def check_policy(parameter: str, value: str, draws: int = 6) -> Report:
    """Check a policy on every kind of machine, ``draws`` times each among other policies.

    Parameters
    ----------
    parameter : the one that names it, such as ``queue_order``.
    value : as in a configuration: a built-in name, FILE.py:NAME, or the name that a package brings.

    Raises
    ------
    InputError
        If there is no such parameter or value, or the user's file does not work at all.
    """
    if parameter not in SELECTORS:
        raise unknown_name("parameter of a policy", parameter, SELECTORS)
    PARAMETERS[parameter].check(value)
    if is_own(parameter, value):
        check_own(parameter, value)
    report = Report()
    for own in _own_parameters(parameter, value):
        _check_parameter(parameter, value, own, report)
    with TemporaryDirectory() as folder:
        site = Path(folder) / "site.toml"
        site.write_text(_SITE)
        for machine in (*MACHINES, str(site)):
            for config in _configurations(parameter, value, machine, draws):
                _check_configuration(config, report)
    if not report.ran and not report.problems:
        report.problems.append(f"{parameter} = {value!r} is refused in every configuration that was drawn")
    return report


def _own_parameters(parameter: str, value: str) -> tuple[Parameter, ...]:
    """Return the parameters that a policy declares itself."""
    if is_own(parameter, value):
        known = known_parameters({parameter: value})
        return tuple(known[name] for name in known if name not in PARAMETERS)
    return SELECTORS[parameter].policies[value].parameters


def _check_parameter(parameter: str, value: str, own: Parameter, report: Report) -> None:
    """Check that a declared parameter takes its default and its bounds, and nothing beyond them."""
    for tried in values_of(own):
        if resolve({parameter: value, own.name: tried})[own.name] != tried:
            report.problems.append(f"{own.name}: {tried!r} does not resolve to itself")
    if own.kind in (int, float):
        for beyond in (own.minimum - 1, own.maximum + 1):
            if math.isfinite(beyond) and beyond != own.default and _is_valid(own, beyond):
                report.problems.append(f"{own.name}: {beyond!r} is beyond its bounds, and is not refused")


def values_of(parameter: Parameter) -> tuple[Any, ...]:
    """Return values to try of a parameter: its names, or its default, its bounds and what lies between."""
    if parameter.kind is bool:
        return (False, True)
    if parameter.kind is str:
        return tuple(name for name in parameter.choices if name != "given") or (parameter.default,)
    low = parameter.minimum if abs(parameter.minimum) <= 1e6 else parameter.default
    high = parameter.maximum if abs(parameter.maximum) <= 1e6 else max(1, 2 * parameter.default)
    found = dict.fromkeys(parameter.kind(each) for each in (low, high, (low + high) / 2) if abs(each) <= 1e6)
    return (parameter.default, *(each for each in found if each != parameter.default and _is_valid(parameter, each)))


def _is_valid(parameter: Parameter, value: Any) -> bool:
    try:
        parameter.check(value)
    except InputError:
        return False
    return True


def _configurations(parameter: str, value: str, machine: str, draws: int) -> Iterator[dict[str, Any]]:
    """Yield configurations of a policy: its own parameters at any value, among other policies; failures in most."""
    draw = random.Random(f"{parameter} {value} {Path(machine).name}")  # not of the folder of a site
    own = _own_parameters(parameter, value)
    for number in range(draws):
        config: dict[str, Any] = {name: draw.choice((0.0, 0.5, 1.0)) for name in _ERRS}
        if number:  # the first is among the defaults
            config |= {name: draw.choice(values_of(PARAMETERS[name])) for name in _CONTEXT}
        if machine.startswith("clusters"):
            config = {"scheduler": draw.choice(("fcfs", "backfill"))}
        if machine.endswith(".toml"):
            config["num_qos"] = 2
        if draw.random() < 0.8:
            config |= {"failures": "weibull", "weibull_scale_s": 2000.0, "down_time_s": draw.choice((0.0, 600.0))}
        config |= {each.name: draw.choice(values_of(each)) for each in own}
        yield {**config, "machine": machine, "max_restarts": 200, "seed": number, parameter: value}


def _check_configuration(given: dict[str, Any], report: Report) -> None:
    where = ", ".join(f"{name} = {value!r}" for name, value in given.items() if name != "max_restarts")
    config = resolve(given)
    plain = canonical(config)
    if canonical(plain) != plain or _tree(plain) != _tree(config):
        report.problems.append(f"{where}: the canonical form is not the same run")
    try:
        first = _outcome(config, debug=True)
    except InvariantError as error:
        report.problems.append(f"{where}: {error}")
        return
    except InputError as error:
        report.refused += 1
        if "\n" in str(error):
            report.problems.append(f"{where}: refused in more than a sentence")
        return
    report.ran += 1
    draw = random.Random(where)
    neutral = sorted(inert(plain) & plain.keys() - _NEVER - SELECTORS.keys())
    known = known_parameters(plain)
    changed = {name: draw.choice(values_of(known[name])) for name in neutral if known[name].group not in _ELSEWHERE}
    others = {
        "is repeated": config,
        "is canonical": plain,
        f"has other values of {', '.join(changed)}": plain | changed,
    }
    for what, other in others.items():
        try:
            different = _difference(first, _outcome(other))
        except InputError as error:
            different = "" if other is not config and other is not plain else str(error)  # what is inert may be refused
        if different:
            report.problems.append(f"{where}: a run that {what} differs in {different}")


def _tree(config: dict[str, Any]) -> dict[str, str]:
    return {role: policy.name for role, policy in run_of(config).reached().items()}


def _outcome(config: dict[str, Any], debug: bool = False) -> dict[str, Any]:
    """Return the per-job results and metrics of a run, to the bit."""
    known = known_parameters(config)
    given = {name: value for name, value in config.items() if name in known and name != "log"}
    run: Run = simulate(_workload(config["machine"]), debug=debug, **given)
    found = {name: values.tobytes() for name, values in run.jobs.items()}
    kept = {name: value for name, value in run.metrics.items() if name not in MEASURED and value == value}
    return found | {name: repr(value) for name, value in kept.items()}


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Return what two runs differ in; recovery has results of its own, which are not looked at where one has none."""
    both = [name for name in one if name in other and not name.startswith("recovery_")]
    return ", ".join(name for name in both if one[name] != other[name])


def _workload(machine: str) -> Workload:
    """Return jobs in bursts, with ties, wrong estimates and sizes up to half of the machine."""
    draw = np.random.default_rng(17)
    unit = parse_machine(machine).node_size
    largest = max(1, min(parse_machine(machine).clusters or (parse_machine(machine).nodes,)) // 2)
    submit = np.cumsum(draw.choice((0.0, 60.0, 900.0), _JOBS)) + 1000.0
    run = draw.choice((30.0, 600.0, 5400.0), _JOBS) + 100.0 * draw.random(_JOBS)
    size = unit * draw.integers(1, largest + 1, _JOBS)
    requested = run * draw.choice((0.5, 1.0, 3.0), _JOBS)
    user = draw.integers(0, 5, _JOBS)
    names = {name: ("0", "50") if name in NUMBERS else ("a", "b") for name in LABELS}
    labels = {name: Label((user + at) % 3 - 1, names[name]) for at, name in enumerate(LABELS)}
    return Workload(np.arange(1, _JOBS + 1), submit, run, requested, size, user, name="conformance", labels=labels)
