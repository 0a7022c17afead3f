"""What all batch systems have in common: how their commands are called, and what is said of jobs, nodes and times."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultsweep.cluster.site import Site

from faultsweep.errors import InputError, UnreachableError

TIMEOUT_S = 60.0
NANNY_MIB = 200
"""Memory of a worker job beside its worker: the nanny that limits the worker's, and what it starts (74 measured)."""
OVER = (
    *("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"),
    "PREEMPTED",  # where the site cancels such jobs; one that it requeues is PENDING
)
"""States of a job that will do nothing more."""
FORGOTTEN: dict[str, Any] = {
    **dict.fromkeys(("state", "reason", "nodes", "walltime_left", "start", "elapsed"), ""),
    "num_nodes": 0,
}
"""What ``job_state`` returns of a job that the batch system does not know: all keys that it has, too."""


class BatchSystemError(InputError):
    """A batch system refused something, or did not answer."""


class NoAnswerError(BatchSystemError, UnreachableError):
    """A batch system did not answer; it may have done what it was asked."""


@dataclass(frozen=True)
class Partition:
    """A partition, or queue; ``most_s`` is None where there is no limit, ``nodes`` counts those there are (0: unknown).

    Of nodes of different kinds, which ``is_mixed`` tells, ``cpus``, ``cores`` and ``memory_mb`` (0: unknown) are the
    least.
    """

    name: str
    default: bool
    up: bool
    most_s: float | None
    nodes: int
    cpus: int
    memory_mb: int
    cores: int
    is_mixed: bool = False


@dataclass(frozen=True)
class Node:
    """What a job has of a node: cores, and memory in MiB (0: not known)."""

    name: str
    cores: int
    memory_mb: int


@dataclass(frozen=True)
class Asked:
    """What the head of a job's script asks for.

    ``workers`` is their number per node (0: a controller of worker jobs, on one node), ``memory_mb`` what each node
    needs (None: not known), ``whole`` tells that the nodes differ, so that the job has them whole, ``cores`` that a
    worker gets a core of several hardware threads.
    """

    name: str
    folder: Path
    site: Site
    workers: int
    memory_mb: int | None
    whole: bool = False
    cores: bool = False


def call(
    title: str,
    command: Sequence[str],
    no_answer: Sequence[str] = (),
    text: str | None = None,
    timeout_s: float | None = None,
) -> str:
    """Run a command of a batch system and return what it prints; it is given ``timeout_s`` (None: a minute).

    Raises
    ------
    NoAnswerError
        It does not answer: it takes too long, or says one of ``no_answer``.
    BatchSystemError
        The command is not there, or refuses.
    """
    timeout_s = timeout_s or TIMEOUT_S
    name = command[0]
    if shutil.which(name) is None:
        raise BatchSystemError(f"{name} was not found: this is not a login node of a {title} cluster")
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            command, input=text, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{name} has not answered for {timeout_s:g} s; try again later") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        if any(sign in said for sign in no_answer):
            raise NoAnswerError(f"{name}: {title}'s controller does not answer; try again later ({said})")
        raise BatchSystemError(f"{name}: {said}")
    return done.stdout


def is_over(state: str) -> bool:
    """Tell whether a job in this state will do nothing more; one that is forgotten will not, either."""
    return not state or state in OVER
