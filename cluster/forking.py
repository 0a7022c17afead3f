"""Workers are forked from one process of the node that has imported what they need, where that is possible.

A worker that starts from nothing takes a second of processor time, most of it for imports. The process lives as long as
this one; what it has not taken over from the environment since it began is given to each worker.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from multiprocessing import forkserver
from types import FunctionType, ModuleType
from typing import Any

import dask

_EARLY = re.compile("PYTHON|LD_|GLIBC|MALLOC|NPY|OMP|MKL|OPENBLAS")
"""Variables that a process reads before a worker can be told of them."""
_METHOD = "distributed.worker.multiprocessing-method"
_ALWAYS = (
    "distributed",
    "faultsweep.cluster.steady",
    "faultsweep.sweeps.runner.task",
    "faultsweep.sweeps.simulator",
)
"""What workers of a sweep import."""
_ENGINE = {"faultsweep.simcore.simulate"}
"""What they import to simulate, if this process has it: not all sweeps do."""
_KNOWN = ("faultsweep", "dask", "numpy", "pandas", "xarray", "zarr")
"""Packages that start no threads when they are imported, and may be forked."""
_begun_with: dict[str, str] = {}
"""The environment in which the process began, empty before."""


def start_method() -> dict[str, Any]:
    """Return Dask's setting of how worker processes start."""
    return {_METHOD: "forkserver" if sys.platform == "linux" and _is_of_use() else "spawn"}


def _is_of_use() -> bool:
    """Tell whether the environment has lost nothing, and changed nothing that processes read early."""
    now = dict(os.environ)
    return not _begun_with or (_early(now) == _early(_begun_with) and _begun_with.keys() <= now.keys())


def _early(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _EARLY.match(name)}


def begin() -> None:
    """Start the process, unless it runs. Dask is set up as above."""
    if _begun_with or dask.config.get(_METHOD) != "forkserver":
        return
    for name, value in dask.config.get("distributed.nanny.pre-spawn-environ").items():
        os.environ[name] = str(value)  # as Dask does before it starts a worker
    multiprocessing.set_forkserver_preload([*_ALWAYS, *sorted(_ENGINE & sys.modules.keys() | _of_script())])
    forkserver.ensure_running()
    _begun_with.update(os.environ)


def _of_script() -> set[str]:
    """Return what the user's script has of some packages: each worker runs its imports again."""
    script = sys.modules["__main__"]
    values = list(vars(script).values()) if hasattr(script, "__file__") else []
    named = {value.__name__ for value in values if type(value) is ModuleType}
    named |= {value.__module__ for value in values if type(value) in (FunctionType, type)}
    return {name for name in named & sys.modules.keys() if name.partition(".")[0] in _KNOWN}
