"""The text of a batch script: readable, and all that there is to the job."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faultsweep.cluster.batch_systems import SYSTEM_VARIABLE, SYSTEMS, default_system, find
from faultsweep.cluster.batch_systems.common import Asked
from faultsweep.cluster.site import SITE_VARIABLE, Site, most_nodes, parse_memory

SITE_COPY = "site.toml"
CONTROLLER_BYTES = 1_500_000_000
"""Memory of scheduler and sweep where the grid is not known: a program's own."""
_NANNIES_BYTES, _NANNY_BYTES = 100_000_000, 500_000
"""Memory of the process that starts the workers of a node, and what each of them adds (65 and 0.3 MB measured)."""


@dataclass(frozen=True)
class Work:
    """What a job is to do: ``command`` are arguments of Python.

    ``folder`` is where the job keeps what is its own, ``progress`` the file in which the sweep says how far it is.
    ``modules`` is a folder of Python modules that sweep and workers import; ``imports`` names what the command imports
    beside this package. ``controller_bytes`` returns the memory of scheduler and sweep for so many workers, None if
    that is not known; ``worker_bytes`` is that of a worker, 0 if it is not known.
    """

    name: str
    folder: Path
    progress: Path
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: Path | None = None
    imports: tuple[str, ...] = ()
    controller_bytes: Callable[[int], int] | None = None
    worker_bytes: int = 0


def batch_script(site: Site, work: Work, workers: int, whole: bool = False, cores: bool = False) -> str:
    """Return the script of a job that does ``work`` in one allocation; ``workers`` is the number per node.

    ``whole`` and ``cores`` are those of ``batch_systems.common.Asked``.

    With no workers it is the controller of worker jobs, which are set up by ``SITE_COPY`` in the work's folder.
    """
    name = site.system or default_system()
    system = find(name)
    python = site.python or sys.executable
    environment = {**work.environment, SYSTEM_VARIABLE: name}
    if not workers:
        environment[SITE_VARIABLE] = str(work.folder / SITE_COPY)
    asked = Asked(job_name(work.name), work.folder, site, workers, _memory(site, work, workers), whole, cores)
    command = SYSTEMS.get(name, system.TITLE)
    what = "Scheduler, workers and sweep in one job" if workers else "Scheduler and sweep, whose workers are other jobs"
    lines = [
        "#!/bin/bash",
        f"# {what}. Before its walltime it saves, requeues itself, and then resumes.",
        f"# Written by 'faultsweep submit', which knows the job then, and none of '{command}'.",
        *system.directives(asked),
        "",
        *site.setup,
        *(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
    ]
    if work.modules is not None:
        lines.append(f"export PYTHONPATH={shlex.quote(str(work.modules))}${{PYTHONPATH:+:$PYTHONPATH}}")
    allocation = [f"--folder {shlex.quote(str(work.folder))}", f"--progress {shlex.quote(str(work.progress))}"]
    allocation += [f"--workers-per-node {workers}" if workers else "--elastic", f"--grace {site.grace_s}"]
    allocation.append(f"--max-restarts {site.max_restarts}")
    allocation += [f"--max-requeues {site.max_requeues}"] if site.max_requeues is not None else []
    if workers and site.workers_per_node is None:
        memory = memory_of_node(site, work, 1), memory_of_node(site, work, 2)
        each = (memory[1] or 0) - (memory[0] or 0)
        allocation.append(f"--by-node {(memory[0] or 0) - each} {each}")
    allocation += ["--dashboard"] if workers and site.dask_dashboard else []
    if workers and site.memory_per_worker is not None:
        allocation.append(f"--memory-bytes {parse_memory(site.memory_per_worker)}")
    allocation += [f"--{key} {shlex.quote(value)}" for key in ("interface", "scratch") if (value := getattr(site, key))]
    quoted = shlex.quote(python)
    run = " ".join(shlex.quote(str(word)) for word in work.command)
    call = [f"exec {quoted} -P -m faultsweep.cluster.allocation", *allocation, f"-- {quoted} {run}"]
    return "\n".join([*lines, " \\\n    ".join(call)]) + "\n"


def memory_of_node(site: Site, work: Work, workers: int) -> int | None:
    """Return the memory that a node needs for so many workers, in bytes, None if it is not known.

    A batch system gives every node of a job the same, so all of them get what the first one needs, where scheduler and
    sweep are. With no workers it is what the controller of worker jobs needs.
    """
    all_workers = workers * most_nodes(site.nodes) if workers else site.max_jobs
    if site.controller_memory is not None:
        controller = parse_memory(site.controller_memory)
    else:
        controller = CONTROLLER_BYTES if work.controller_bytes is None else work.controller_bytes(all_workers)
    each = parse_memory(site.memory_per_worker) if site.memory_per_worker is not None else work.worker_bytes
    if not workers:
        return controller
    return controller + _NANNIES_BYTES + workers * (each + _NANNY_BYTES) if each else None


def _memory(site: Site, work: Work, workers: int) -> int | None:
    needed = memory_of_node(site, work, workers)
    return None if needed is None else math.ceil(needed / 2**20)


def job_name(name: str) -> str:
    """Return a name for a job that SLURM takes."""
    return f"faultsweep-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"
