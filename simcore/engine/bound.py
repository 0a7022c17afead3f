"""Binds the hooks of the engine to the kernels of all policies; imported by whoever compiles the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
from faultsweep.simcore.contract import Role
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.meaning import WITH_KERNELS
from faultsweep.simcore.policies.catalogue import ROLES


def _dispatch(name: str, hook: hooks.Hook, role: Role) -> Any:
    """Return the kernel of a hook: it looks at the number of the policy and passes on, the default first."""
    arguments = ", ".join(("s", hook.arguments)) if hook.arguments else "s"
    lines: list[str] = [f"def {name}({arguments}):"]
    namespace: dict[str, Any] = {"np": np}
    for code, policy in enumerate(role.policies.values()):
        if name in policy.kernels:
            namespace[f"policy_{code}"] = policy.kernels[name]
            lines += [f"    if s.{hook.field} == {code}:", f"        return policy_{code}({arguments})"]
    lines.append(f"    return {hook.otherwise}")
    # Numba calls no function out of a table: the branches must be in the source. All names in it are our own.
    exec("\n".join(lines), namespace)  # noqa: S102 - no text of a user's is in it
    return inlined(namespace[name])


def _bind() -> None:
    for name, hook in hooks.HOOKS.items():
        if hook.role not in WITH_KERNELS:
            raise ValueError(f"{hook.role} is not among the roles that decide what is compiled (meaning.py)")
        setattr(hooks, name, _dispatch(name, hook, ROLES[hook.role]))
    for role in ROLES.values():
        for policy in role.policies.values():
            for name in policy.kernels:
                if name not in hooks.HOOKS or hooks.HOOKS[name].role not in (role.name, policy.role):
                    raise ValueError(f"{role.name} {policy.name}: its role has no hook {name}")


_bind()
