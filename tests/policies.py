"""The policies that tests go through."""

from __future__ import annotations

from faultsweep.simcore.conformance import SELECTORS
from faultsweep.simcore.parameters import PARAMETERS


def named_policies() -> list[tuple[str, str]]:
    """Return the built-in policies that a run may name, but for logs of failures: parameter and name."""
    found = []
    for parameter, role in SELECTORS.items():
        names = PARAMETERS[parameter].choices or [name for name, policy in role.policies.items() if policy.doc]
        found += [(parameter, name) for name in names if name not in ("given", "log")]
    return found
