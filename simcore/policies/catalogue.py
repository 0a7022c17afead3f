"""All roles and their policies, found in the folders: a file that is added here is known everywhere.

A module of a folder may have ``ROLE`` or ``ROLES``, and ``POLICY`` or ``POLICIES``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType

from faultsweep.simcore import policies
from faultsweep.simcore.contract import Parameter, Policy, Role

_PREFIX = f"{policies.__name__}."


def _modules() -> Iterator[ModuleType]:
    """Yield the packages and modules of all roles, in order of their names."""
    for found in pkgutil.walk_packages(policies.__path__, _PREFIX):
        if found.name != __name__:
            yield importlib.import_module(found.name)


def _collect() -> dict[str, Role]:
    roles: dict[str, Role] = {}
    named: dict[str, dict[str, Policy]] = {}
    for module in _modules():
        folder = module.__name__.removeprefix(_PREFIX).partition(".")[0]
        for role in (*getattr(module, "ROLES", ()), *((module.ROLE,) if hasattr(module, "ROLE") else ())):
            roles[role.name or folder] = role
        for policy in (*getattr(module, "POLICIES", ()), *((module.POLICY,) if hasattr(module, "POLICY") else ())):
            named.setdefault(policy.role or folder, {})[policy.name] = policy
    return {name: roles[name].filled(name, named[name]) for name in _order("run", named, [])}


def _order(role: str, named: Mapping[str, Mapping[str, Policy]], found: list[str]) -> list[str]:
    """Return a role and those that its policies consult, in the order in which they are first consulted."""
    if role not in found:
        found.append(role)
        for policy in named[role].values():
            for entry in policy.consults:
                _order(entry if isinstance(entry, str) else entry[0], named, found)
    return found


ROLES: Mapping[str, Role] = _collect()
"""All roles that a run can ask, by the name of their folder."""

_GROUPS = (
    "workload",
    "machine",
    "scheduling",
    "failures",
    "checkpoints",
    "clusters",
    "recovery",
    "metrics",
    "run",
)
"""The groups of parameters in the order in which they are shown."""


def parameters() -> dict[str, Parameter]:
    """Return all parameters by name, those of a group together: selectors, then what policies have."""
    found: dict[str, Parameter] = {}
    for role in ROLES.values():
        own = (parameter for policy in role.policies.values() for parameter in policy.parameters)
        for parameter in (*([role.selector] if role.selector else []), *role.parameters, *own):
            if found.setdefault(parameter.name, parameter) is not parameter:
                raise ValueError(f"two policies have a parameter {parameter.name}; let their role have it")
    return {p.name: p for p in sorted(found.values(), key=lambda p: _GROUPS.index(p.group))}
