"""What the process that workers are forked from imports first (``forking.py``).

Python begins it in the folder at hand, with modules from there: it is told by its environment where they are instead,
and has the one of its parent from then on.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
from multiprocessing import forkserver
from typing import Any

VARIABLE = "FAULTSWEEP_FORKED"
"""What this process is told, a JSON object: the modules that workers need, and what the environment has been of what is
changed for it, null for what it had not."""


def _give_back(environment: dict[str, str | None]) -> None:
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _import(modules: list[str]) -> None:
    """Import what is there of modules, without a look for garbage, neither now nor in workers nor at the end."""
    gc.disable()
    for module in modules:
        with contextlib.suppress(Exception):  # a worker that needs it will say why it cannot have it
            importlib.import_module(module)
    gc.freeze()
    gc.enable()


def _remove_socket() -> None:
    """Leave no folder behind: this process ends after all that use it, and a killed one could not."""
    server: Any = forkserver
    address: str = server._forkserver._forkserver_address or ""
    with contextlib.suppress(OSError):
        os.unlink(address)
        os.rmdir(os.path.dirname(address))


if VARIABLE in os.environ:
    _told = json.loads(os.environ.pop(VARIABLE))
    _give_back(_told["environment"])
    _import(_told["modules"])
    atexit.register(_remove_socket)
