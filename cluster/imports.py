"""What a job will import, tried at submission: a missing module is reported now, not after days in the queue."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from faultsweep.errors import InputError

JOB_MODULES = ("faultsweep.cluster.allocation", "faultsweep.cluster.nannies", "faultsweep.sweeps.runner.task")
"""What every job imports."""
ELASTIC_MODULES = ("dask_jobqueue",)
_TIMEOUT_S = 120.0
_TRY = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        sys.exit(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}")
"""


def imported_modules(program: Path) -> list[str]:
    """Return the modules that a Python file imports when it starts: those of its top level, in order."""
    found: dict[str, None] = {}
    for node in ast.parse(program.read_bytes()).body:
        if isinstance(node, ast.Import):
            found |= dict.fromkeys(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found[node.module] = None
    return list(found)


def check_imports(python: str | None, modules: Sequence[str], folder: Path | None = None) -> None:
    """Import modules in a process of the Python of the job; ``folder`` is where it finds modules of the user.

    Another Python than this one (the site's ``python``) is tried only if it is on this machine.

    Raises
    ------
    InputError
        A module cannot be imported: which, and why.
    """
    program = python or sys.executable
    if python is not None and not os.access(python, os.X_OK):
        return
    environment = dict(os.environ)
    if folder is not None:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), environment.get("PYTHONPATH")]))
    command = [program, "-P", "-c", _TRY, *modules]
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{program}: cannot import what the job needs ({error})") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else f"it ended with {done.returncode}"
        raise InputError(f"the job cannot import {reason} (with {program})")
