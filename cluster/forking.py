"""Workers are forked from one process of the node that has imported what they need, where that is possible.

A worker that starts from nothing takes a second of processor time, most of it for imports. The process lives as long as
this one; what it has not taken over from the environment since it began is given to each worker.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import dask
from faultsweep.cluster.forked import VARIABLE
from faultsweep.cluster.interrupts import interrupts_wait
from faultsweep.cluster.settings import SETTINGS

_EARLY = re.compile("PYTHON|LD_|GLIBC|MALLOC|NPY|OMP|MKL|OPENBLAS|NUMBA|TZ|LANG|LC_|LOCPATH")
"""Variables that a process reads before a worker can be told of them."""
_METHOD = "distributed.worker.multiprocessing-method"
_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
_THREADS = {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1}
"""What Dask has there by itself."""
_FIRST = "faultsweep.cluster.forked"
_ALWAYS = (
    "distributed",
    "faultsweep.cluster.steady",
    "faultsweep.sweeps.runner.task",
)
"""What workers of a sweep import."""
_TO_SIMULATE = {"faultsweep.sweeps.simulator", "faultsweep.simcore.simulate"}
"""What workers that simulate import, too."""
_KNOWN = ("faultsweep", "dask", "numpy", "pandas", "xarray", "zarr")
"""Packages that start no threads when they are imported, and may be forked."""
_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


class _Begun(NamedTuple):
    """The process that runs, and how it began."""

    pid: int
    environment: dict[str, str]
    rights: list[Any]


_lock = threading.Lock()
_begun: list[_Begun] = []
"""At most one: if that ends, workers start from nothing."""


def begin_early(simulates: bool) -> None:
    """Begin what workers are forked from, so that it imports what they need while this process does other things.

    ``simulates`` tells whether it imports the simulator; if not, workers that need the simulator import it themselves.
    How Dask starts workers is not known before it is imported, which takes long; ``begin`` sees whether that is alike.
    """
    with _lock, interrupts_wait(), dask.config.set(SETTINGS):
        if _may_start():
            _start({**_THREADS, **dask.config.get(_ENVIRONMENT)}, simulates)


def begin() -> dict[str, Any]:
    """Return Dask's setting of how worker processes start, with what they are forked from running, if they are.

    A process of another's, such as the user's script, has begun with another environment: then they are not.
    """
    script: Any = sys.modules["__main__"]
    if getattr(script, "__file__", None) == "<stdin>":
        del script.__file__  # workers would look for a file of that name, and end
    with _lock, interrupts_wait(), dask.config.set(SETTINGS):
        if _may_start():
            _start(dask.config.get(_ENVIRONMENT), simulates=True)
        if _begun:
            from distributed import utils

            utils._forkserver_preload_set = True  # Dask would import pandas and PyArrow, for a process of its own
            _set_environment(dask.config.get(_ENVIRONMENT))
        return {_METHOD: "forkserver" if _is_of_use() else "spawn"}


def _may_start() -> bool:
    return not _begun and sys.platform == "linux" and not sys.flags.ignore_environment and _pid() is None


def _set_environment(variables: dict[str, Any]) -> None:
    """Set what workers find in their environment, as Dask does before it starts one."""
    os.environ.update({name: str(value) for name, value in variables.items()})


def _pid() -> int | None:
    """Return which process multiprocessing forks from now."""
    server: Any = forkserver
    pid: int | None = server._forkserver._forkserver_pid
    return pid


def _start(environment: dict[str, Any], simulates: bool) -> None:
    _set_environment(environment)
    multiprocessing.set_forkserver_preload([_FIRST])
    try:
        with _told([*_ALWAYS, *sorted((_TO_SIMULATE if simulates else set()) | _of_script())]):
            forkserver.ensure_running()
    except OSError:  # no place for a socket: the folder for temporary files has too long a name, say
        return
    finally:
        multiprocessing.set_forkserver_preload([])  # one that is started in its place has modules from elsewhere
    pid = _pid()
    if pid is not None:
        _begun.append(_Begun(pid, dict(os.environ), _rights()))


@contextmanager
def _told(modules: list[str]) -> Iterator[None]:
    """Tell a process that is started what to import, from where this one has its modules, not from the folder at
    hand."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if isinstance(entry, str))
    given = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given, **{VARIABLE: json.dumps({"modules": modules, "environment": before})})
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _is_of_use() -> bool:
    """Tell whether the process runs, and would fork what this one would start, but for variables that it can tell.

    What has been forked from this process by the user is not its parent, and cannot ask it for workers.
    """
    if not _begun or not _is_running(_begun[0].pid):
        return False
    now, then = dict(os.environ), _begun[0].environment
    return _early(now) == _early(then) and then.keys() <= now.keys() and _rights() == _begun[0].rights


def _is_running(pid: int) -> bool:
    try:
        return _pid() == pid and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _early(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _EARLY.match(name)}


def _rights() -> list[Any]:
    """Return what a process takes over from the one that starts it, beside the environment."""
    return [os.sched_getaffinity(0), os.nice(0), _umask(), *map(resource.getrlimit, _LIMITS)]


def _umask() -> str:
    """Return the umask; asking the system would change it for a moment, for all threads."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith("Umask:")), "")


def _of_script() -> set[str]:
    """Return what the user's script has of some packages: each worker runs its imports again."""
    script = sys.modules["__main__"]
    values = list(vars(script).values()) if hasattr(script, "__file__") else []
    named = {value.__name__ for value in values if type(value) is ModuleType}
    named |= {value.__module__ for value in values if type(value) in (FunctionType, type)}
    return {name for name in named & sys.modules.keys() if name.partition(".")[0] in _KNOWN}
