"""The targets that a spec can name (``target = "..."``): the simulator, and the failure generators alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from faultsweep.simcore.errors import unknown_name
from faultsweep.sweeps.target import Target

SIMULATOR, FAILURES = "simulator", "failures"
TARGETS = (SIMULATOR, FAILURES)


def built_in_target(
    name: Any,
    logs: str | Path | None = None,
    folders: Sequence[str | Path] = (),
    pinned: Mapping[str, str] | None = None,
) -> Target:
    """Return the target of a name; ``logs``, ``folders`` and ``pinned`` are those of ``SimulatorTarget``.

    Raises
    ------
    InputError
        If there is no target of this name.
    """
    if name == SIMULATOR:
        from faultsweep.sweeps.simulator import SimulatorTarget

        return SimulatorTarget(logs, folders, pinned)
    if name == FAILURES:
        from faultsweep.sweeps.failure_target import FailureTarget

        return FailureTarget()
    raise unknown_name("target", str(name), TARGETS, where="target")
