"""Every parameter of a run, in one table, and what follows from the policies that a configuration names.

The command line, the specs, the store's coordinates and the documentation are all made from this table. A configuration
is a plain mapping from parameter names to values; parameters that it does not name have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import compress
from operator import is_, ne
from typing import Any

from faultsweep.simcore.contract import (
    CLUSTERS,
    EVERYWHERE,
    FLAT,
    MENU,
    OWN,
    SITE,
    TORUS,
    Config,
    Parameter,
    Policy,
    Role,
    Run,
)
from faultsweep.simcore.model import machines
from faultsweep.simcore.outside import Shape, address_of, declares, function_of, provided, source_of
from faultsweep.simcore.policies.catalogue import ROLES, parameters

from faultsweep.errors import InputError, unknown_name

PARAMETERS: dict[str, Parameter] = parameters()
MEASURING = frozenset(name for name, parameter in PARAMETERS.items() if parameter.group == "metrics")
"""The parameters that say what is measured: results that differ in one are not better or worse than each other."""
_DEFAULTS = {name: parameter.default for name, parameter in PARAMETERS.items()}
_KINDS = {name: type(default) for name, default in _DEFAULTS.items()}


def resolve(values: Config) -> dict[str, Any]:
    """Return the full configuration: checked values, and defaults for what is not named.

    Raises
    ------
    InputError
        One sentence for every unknown name and every invalid value, joined by newlines.
    """
    known, problems = known_parameters(values), []
    config = dict(_DEFAULTS) if known is PARAMETERS else {name: p.default for name, p in known.items()}
    for name, value in _not_defaults(values):
        try:
            if name not in known:
                raise unknown_name("parameter", name, known)
            config[name] = known[name].check(value)
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return config


def _not_defaults(values: Config) -> Iterable[tuple[str, Any]]:
    """Return the values that are not defaults, or of another type: most of those of a sweep are, and are valid."""
    if all(map(is_, map(type, values.values()), map(_KINDS.get, values))):
        return compress(values.items(), map(ne, values.values(), map(_DEFAULTS.get, values)))
    return (item for item in values.items() if not _is_default(*item))


def _is_default(name: str, value: Any) -> bool:
    return name in _DEFAULTS and type(value) is _KINDS[name] and bool(value == _DEFAULTS[name])


def known_parameters(values: Config) -> Mapping[str, Parameter]:
    """Return the parameters of a configuration by name: all of the table, and those that its files declare.

    Raises
    ------
    InputError
        If a file declares them wrongly, or two parameters have one name.
    """
    found = own_parameters(own_values(values).items())
    return {**PARAMETERS, **found} if found else PARAMETERS


def own_parameters(named: Iterable[tuple[str, str]]) -> dict[str, Parameter]:
    """Return what files declare that values of parameters name; nothing is executed."""
    found: dict[str, tuple[Parameter, str]] = {}
    for name, value in named:
        for parameter in declares(value, shape_of(name)):
            if parameter.name in PARAMETERS:
                raise InputError(f"{name}: {value} declares the parameter {parameter.name}, which exists; rename it")
            other, by = found.setdefault(parameter.name, (parameter, value))
            if other != parameter:
                raise InputError(f"{name}: {value} and {by} define the parameter {parameter.name} differently")
    return {name: parameter for name, (parameter, _) in found.items()}


def plain_name(parameter: str, value: Any) -> Any:
    """Return a text as the parameter has it, "easy" as "backfill"; all else, and what it does not take, as it is."""
    if not isinstance(value, str) or parameter not in PARAMETERS:
        return value
    try:
        return PARAMETERS[parameter].check(value)
    except InputError:
        return value


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
    found = {name: p.default if name in neutral else config[name] for name, p in known_parameters(config).items()}
    kept = known_parameters(found)  # without those of files that are no longer named
    return {name: value for name, value in found.items() if name in kept}


OWN_PARAMETERS: Mapping[str, Role] = {
    role.selector.name: role for role in ROLES.values() if role.selector is not None and OWN in role.policies
}
"""The parameters that may name a policy of the user's, FILE.py:NAME or what a package brings, with their roles."""


def is_own(name: str, value: Any) -> bool:
    """Tell whether the value of a parameter names a policy of the user's."""
    return name in OWN_PARAMETERS and isinstance(value, str) and OWN_PARAMETERS[name].is_own(value)


def own_values(values: Config) -> dict[str, str]:
    """Return the parameters that name policies of the user's, with their values."""
    return {
        name: text
        for name, role in OWN_PARAMETERS.items()
        if isinstance(text := values.get(name), str) and text not in role.policies and role.is_own(text)
    }


def files_read(values: Config) -> AbstractContextManager[None]:
    """Read the files of a user's policies once for all that follows; whoever needs one that is not there says so."""
    texts = {}
    for name, value in own_values(values).items():
        with suppress(InputError):
            texts[name, value] = source_of(value, name)
    return provided(texts)


def shape_of(name: str) -> Shape:
    """Return how functions look that a parameter may name."""
    shape: Shape = OWN_PARAMETERS[name].policies[OWN].facts["shape"]
    return shape


def check_own(name: str, value: str) -> None:
    """Execute and compile the file of a policy of the user's; raise InputError if that does not work."""
    shape = shape_of(name)
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
