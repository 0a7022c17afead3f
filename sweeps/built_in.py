"""The targets that a spec can name (``target = "..."``): the simulator, and the failure generators alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from faultsweep.sweeps.spec import read_spec
from faultsweep.sweeps.target import FunctionTarget, Target

from faultsweep.errors import InputError, unknown_name

SIMULATOR, FAILURES = "simulator", "failures"
TARGETS = (SIMULATOR, FAILURES)
_OF_A_TARGET = ("target", "formulas", "exclude", "metrics", "figure", "precision", "best", "refine")
"""Keys of a spec that cannot be checked without its target."""


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


def check_target(raw: Mapping[str, Any], where: str) -> None:
    """Raise InputError if a spec names no target that there is; it tells what else is wrong, as far as that is known.

    ``where`` is the file of the spec.
    """
    name = raw.get("target", SIMULATOR)
    if name in TARGETS:
        return
    problems = [f"{where}: {unknown_name('target', str(name), TARGETS, where='target')}"]
    rest = {key: value for key, value in raw.items() if key not in _OF_A_TARGET}
    try:
        read_spec(rest, FunctionTarget(lambda seed=0, replicate=0, **anything: 0, "result"), where)
    except InputError as error:
        problems.append(str(error))
    raise InputError("\n".join(problems))
