"""Every parameter of a run, in one table, and what follows from the policies that a configuration names.

The command line, the specs, the store's coordinates and the documentation are all made from this table. A configuration
is a plain mapping from parameter names to values; parameters that it does not name have their defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from faultsweep.simcore.contract import (
    CLUSTERS,
    EVERYWHERE,
    FLAT,
    MENU,
    OWN,
    OWN_POLICY,
    SITE,
    TORUS,
    Config,
    Parameter,
    Policy,
    Role,
    Run,
)
from faultsweep.simcore.model import machines
from faultsweep.simcore.outside import Shape, address_of, function_of
from faultsweep.simcore.policies.catalogue import ROLES, parameters

from faultsweep.errors import InputError, unknown_name

PARAMETERS: dict[str, Parameter] = parameters()


def resolve(values: Config) -> dict[str, Any]:
    """Return the full configuration: checked values, and defaults for what is not named.

    Raises
    ------
    InputError
        One sentence for every unknown name and every invalid value, joined by newlines.
    """
    config, problems = {name: p.default for name, p in PARAMETERS.items()}, []
    for name, value in values.items():
        try:
            if name not in PARAMETERS:
                raise unknown_name("parameter", name, PARAMETERS)
            config[name] = PARAMETERS[name].check(value)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return config


def run_of(config: Config) -> Run:
    """Return a resolved configuration as its policies see it."""
    return Run(ROLES, config)


def inert(config: Config, root: str = "run", is_own_trace: Callable[[str], bool] | None = None) -> frozenset[str]:
    """Return the parameters of a resolved configuration that do nothing in it (MODEL, section 10).

    root : the role that is asked first: ``run``, or ``failures`` where failures alone are drawn.
    is_own_trace : tells of a failure log whether ``auto`` takes it as it is; no log if not given.
    """
    return frozenset(config) - Run(ROLES, config, root, is_own_trace).live(root)


def canonical(values: Config) -> dict[str, Any]:
    """Return the canonical form: every parameter that does nothing in this configuration at its default.

    Configurations with equal canonical forms are the same run.
    """
    config = resolve(values)
    neutral = inert(config)
    return {name: p.default if name in neutral else config[name] for name, p in PARAMETERS.items()}


OWN_PARAMETERS: tuple[str, ...] = tuple(
    role.selector.name
    for role in ROLES.values()
    if role.selector is not None and (OWN in role.policies or role.selector.form == OWN_POLICY)
)
"""The parameters that may name a policy of the user's, FILE.py:NAME."""


def is_own(name: str, value: str) -> bool:
    """Tell whether the value of a parameter names a policy of the user's."""
    return name in OWN_PARAMETERS and value not in PARAMETERS[name].choices and bool(re.fullmatch(OWN_POLICY, value))


def check_own(name: str, value: str) -> None:
    """Execute and compile the file of a policy of the user's; raise InputError if that does not work."""
    role = next(role for role in ROLES.values() if role.selector is not None and role.selector.name == name)
    shape: Shape = role.policies[OWN].facts["shape"]
    function_of(value, shape)
    if shape.template:
        address_of(value, shape)


def kind_of(machine: machines.Machine) -> str:
    """Return what policies call the kind of a machine."""
    if machine.kind == machines.CLUSTERS:
        return CLUSTERS
    if machine.kind == machines.SITE:
        return SITE
    if machine.menu is not None:
        return MENU
    return TORUS if machine.kind == machines.TORUS else FLAT


def check_combination(config: Config, machine: machines.Machine) -> None:
    """Raise InputError for parameters of a resolved configuration that are each valid, and not together."""
    kind, run = kind_of(machine), run_of(config)
    for role in ROLES.values():
        policy = role.policies[role.named(run)]
        if kind not in policy.machines and role.selector is not None:
            valid = ", ".join(name for name, other in role.policies.items() if kind in other.machines and name != OWN)
            value = config[role.selector.name]
            raise InputError(f"{role.selector.name}: {value!r} is not for {kind} (valid there: {valid})")
        for refusal in (*role.refuses, *policy.refuses):
            sentence = refusal.sentence(config, kind, machine.name)
            if sentence:
                raise InputError(sentence)


def _deciding() -> Iterable[str]:
    yield "machine"
    for role in ROLES.values():
        policies = role.policies.values()
        if role.selector is not None and any(_is_limited(policy) for policy in policies):
            yield role.selector.name
        for refusal in _refusals(role):
            yield from refusal.reads


def _is_limited(policy: Policy) -> bool:
    return policy.machines != EVERYWHERE or bool(policy.refuses)


def _refusals(role: Role) -> Iterable[Any]:
    yield from role.refuses
    for policy in role.policies.values():
        yield from policy.refuses


COMBINED: tuple[str, ...] = tuple(dict.fromkeys(_deciding()))
"""The parameters that ``check_combination`` looks at."""
