"""The text of a batch script: readable, and all that there is to the job."""

from __future__ import annotations

import math
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faultsweep.cluster.site import SITE_VARIABLE, Site, parse_memory

from faultsweep.errors import InputError

SITE_COPY = "site.toml"
OVERHEAD_MIB = 1500
"""Memory of a node beside its workers: their nannies and, on the first node, scheduler and sweep."""


@dataclass(frozen=True)
class Work:
    """What a job is to do: ``command`` are arguments of Python.

    ``folder`` is where the job keeps what is its own, ``progress`` the file in which the sweep says how far it is.
    ``modules`` is a folder of Python modules that sweep and workers import; ``imports`` names what the command imports
    beside this package.
    """

    name: str
    folder: Path
    progress: Path
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    modules: Path | None = None
    imports: tuple[str, ...] = ()


def batch_script(site: Site, work: Work, workers: int) -> str:
    """Return the script of a job that does ``work`` in one allocation; ``workers`` is the number per node.

    With no workers it is the controller of worker jobs, which are set up by ``SITE_COPY`` in the work's folder.
    """
    if re.search(r'["\\\n\r]', str(work.folder)):
        place = str(work.folder)
        raise InputError(f"{place!r}: SLURM takes no double quote, backslash or line break in the path of a job's log")
    python = site.python or sys.executable
    environment = {**work.environment, **({} if workers else {SITE_VARIABLE: str(work.folder / SITE_COPY)})}
    options = {
        "job-name": job_name(work.name),
        "output": f'"{str(work.folder).replace("%", "%%")}/job-%j.log"',
        "open-mode": "append",
        "signal": f"B:USR1@{site.grace_s}",
        "partition": site.partition,
        "account": site.account,
        "qos": site.qos,
        "time": site.time,
        "nodes": site.nodes if workers else 1,
        "ntasks-per-node": 1,
        "cpus-per-task": workers or 1,
        "mem": _memory(site, workers) if workers else f"{OVERHEAD_MIB}M",
    }
    what = "Scheduler, workers and sweep in one job" if workers else "Scheduler and sweep, whose workers are other jobs"
    lines = [
        "#!/bin/bash",
        f"# {what}. Before its walltime it saves, requeues itself, and then goes on.",
        "# Written by 'faultsweep submit', which knows the job then, and none of 'sbatch'.",
        *(f"#SBATCH --{key}={value}" for key, value in options.items() if value is not None),
        "#SBATCH --requeue",
        *(f"#SBATCH {option}" for option in site.sbatch),
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
    allocation += ["--dashboard"] if workers and site.dask_dashboard else []
    if workers and site.memory_per_worker is not None:
        allocation.append(f"--memory-bytes {parse_memory(site.memory_per_worker)}")
    allocation += [f"--{key} {shlex.quote(value)}" for key in ("interface", "scratch") if (value := getattr(site, key))]
    quoted = shlex.quote(python)
    run = " ".join(shlex.quote(str(word)) for word in work.command)
    call = [f"exec {quoted} -P -m faultsweep.cluster.allocation", *allocation, f"-- {quoted} {run}"]
    return "\n".join([*lines, " \\\n    ".join(call)]) + "\n"


def _memory(site: Site, workers: int) -> str | None:
    if site.memory_per_worker is None:
        return None
    return f"{math.ceil(workers * parse_memory(site.memory_per_worker) / 2**20) + OVERHEAD_MIB}M"


def job_name(name: str) -> str:
    """Return a name for a job that SLURM takes."""
    return f"faultsweep-{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}"
