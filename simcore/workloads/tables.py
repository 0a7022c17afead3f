"""The parameters of the calibrated models, as ``calibrate.py`` has written them to ``models.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

TABLES: dict[str, Any] = tomllib.loads((files("faultsweep.simcore.workloads") / "models.toml").read_text("utf-8"))
