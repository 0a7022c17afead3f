"""What the process that workers are forked from imports first (``forking.py``).

Python begins it in the folder at hand, with modules from there: it is told by its environment where they are instead,
and has the one of its parent from then on.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
from multiprocessing import forkserver
from typing import Any

VARIABLE = "FAULTSWEEP_FORKED"
"""What the environment has been, of what is changed for this process: a JSON object, null for what it had not."""


def _give_back() -> None:
    for name, value in json.loads(os.environ.pop(VARIABLE)).items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _remove_socket() -> None:
    """Leave no folder behind: this process ends after all that use it, and a killed one could not."""
    server: Any = forkserver
    address: str = server._forkserver._forkserver_address or ""
    with contextlib.suppress(OSError):
        os.unlink(address)
        os.rmdir(os.path.dirname(address))


if VARIABLE in os.environ:
    _give_back()
    atexit.register(_remove_socket)
