"""Jobs that a real SLURM accepted or refused by its limits of submitted jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Submitted(NamedTuple):
    """A job or an array: when it was submitted, and when its tasks ended, s; none if it was refused."""

    user: str
    account: str
    qos: str
    submit: float
    ends: list[float]
    tasks: int


def read(path: Path) -> tuple[str, list[Submitted]]:
    """Return what scontrol and sacctmgr printed of the site, and the jobs."""
    found = json.loads(path.read_text())
    return "\n".join(found["printed"]), [Submitted(**row) for row in found["jobs"]]
