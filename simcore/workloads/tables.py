"""The parameters of the calibrated models, as ``calibrate.py`` has written them.

What is derived from the SDSC log stands apart, in sdsc.toml: that log has terms of its own (NOTICE).
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

FILES = ("models.toml", "sdsc.toml")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("faultsweep.simcore.workloads") / name).read_text("utf-8"))


TABLES: dict[str, Any] = {key: value for name in FILES for key, value in _read(name).items()}
"""Name of a model -> its parameters; ``levels`` of all quantiles, and ``requested-times``."""
