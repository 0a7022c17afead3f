"""Priorities of waiting jobs that a real SLURM printed, with those of associations and site factors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Printed(NamedTuple):
    """A job, its priority at submission, and what ``sprio`` printed once its site factor was set."""

    user: str
    account: str
    nice: int
    site_factor: int
    submitted: int = 0
    priority: int = 0
    site: int = 0
    association: int = 0


def read(path: Path) -> tuple[str, list[Printed]]:
    """Return what scontrol and sacctmgr printed of the site, and the jobs."""
    found = json.loads(path.read_text())
    return "\n".join(found["config"] + found["dump"]), [Printed(**row) for row in found["jobs"]]
