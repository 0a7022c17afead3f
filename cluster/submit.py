"""A detached run: one batch job that holds scheduler, workers and client, and what is known of it later.

Beside a store, in ``STORE.run/slurm/``: ``job.sh`` (the script), ``job.json`` (this file's ``Job``), ``job-N.log``
(what job N wrote), ``outcome.json`` (how it ended), and while it runs a folder with its TLS credentials, which only
the user can read.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from faultsweep.cluster.allocation import JOB, OUTCOME
from faultsweep.cluster.batch_systems import check_recorded, default_system, find, remember
from faultsweep.cluster.batch_systems.common import (
    FORGOTTEN,
    BatchSystemError,
    NoAnswerError,
    Partition,
    is_over,
)
from faultsweep.cluster.elastic import cancel_workers
from faultsweep.cluster.imports import ELASTIC_MODULES, JOB_MODULES, check_imports
from faultsweep.cluster.script import SITE_COPY, Work, batch_script, memory_of_node
from faultsweep.cluster.settings import DASHBOARD
from faultsweep.cluster.site import Site, least_nodes, to_toml
from faultsweep.cluster.times import parse_time

from faultsweep.errors import InputError, UnreachableError, unknown_name
from faultsweep.extras import require
from faultsweep.files import read_fields

UNKNOWN = "UNKNOWN"
"""State of a job of which its batch system says nothing, because it does not answer here."""
_LAST = ("finished", "failed", "stopped", "cancelled")
"""Outcomes after which a job does nothing more."""
_NUMBER = re.compile(r"\w[\w.\[\]:@-]*", re.ASCII)
"""Numbers and names of jobs, none of which is an option of a command or a path."""
_LOOK_S = 2.0
"""How long a batch system is given to answer who only looks; it is asked twice at most."""


@dataclass(frozen=True)
class Job:
    """A job that was submitted: number and name, when (seconds since 1970), and the folder where it keeps its files.

    ``system`` is its batch system, ``requeues`` says how often it has submitted itself again, where that is how it goes
    on.
    """

    job: str
    submitted: float
    folder: str
    nodes: str
    workers_per_node: int
    partition: str
    time: str
    name: str = ""
    system: str = "slurm"
    requeues: int = 0

    @property
    def log(self) -> Path:
        """Return the file that the job writes into."""
        return Path(self.folder) / f"job-{self.job}.log"

    def ask(self, **patience: float) -> dict[str, Any]:
        """Return what is known of this job; one of another name, with the same number, is not this one."""
        return dict(find(self.system).job_state(self.job, self.name, **patience))


_FIELDS = {
    **{"job": str, "submitted": (int, float), "nodes": str, "workers_per_node": int, "partition": str, "time": str},
    **{"name": (str, type(None)), "system": (str, type(None)), "requeues": (int, type(None))},
}
"""What the file of a job holds; the last three are not in those of earlier versions."""


def plan_job(site: Site, work: Work, elastic: bool = False) -> tuple[str, int]:
    """Return script and workers per node of a job, after checking it; nothing is made or submitted.

    Raises
    ------
    InputError
        The batch system would not take or never start it: one sentence that names the option.
    """
    system = find(site.system or default_system())
    system.check_options(site)
    if elastic and site.python is None:
        require("--elastic", "dask_jobqueue")
    partitions = _partitions(site, system)
    workers = 0 if elastic else site.workers_per_node or min(_fitting(site, work, one) for one in partitions)
    _check_limits(site, partitions, work, workers)
    whole = bool(workers) and site.workers_per_node is None and any(one.is_mixed for one in partitions)
    cores = any(one.cpus > one.cores for one in partitions) and 0 < workers <= min(one.cores for one in partitions)
    script = batch_script(site, work, workers, whole, cores)
    try:
        system.test(script, [one.name for one in partitions])
    except NoAnswerError:
        raise
    except BatchSystemError as error:
        raise InputError(system.describe_refusal(str(error), site)) from None
    check_imports(site.python, [*JOB_MODULES, *(ELASTIC_MODULES if elastic else ()), *work.imports], work.modules)
    return script, workers


def _fitting(site: Site, work: Work, partition: Partition) -> int:
    """Return how many workers a node of a partition has cores and memory for, at least one."""
    room = partition.memory_mb * 2**20 or math.inf
    fitting = (number for number in range(partition.cores, 1, -1) if (memory_of_node(site, work, number) or 0) <= room)
    return next(fitting, 1)


def _partitions(site: Site, system: ModuleType) -> list[Partition]:
    """Return the partition that is meant, or all of "debug,short", of which SLURM takes the first that can."""
    found: dict[str, Partition] = system.partitions()
    if site.partition is not None:
        names = site.partition.split(",")
        for name in names:
            if name not in found:
                raise unknown_name("partition", name, found, where="--partition")
        return [found[name] for name in names]
    default = next((partition for partition in found.values() if partition.default), None)
    if default is None:
        valid = ", ".join(sorted(found))
        raise InputError(f"--partition: this {system.TITLE} has no default partition; name one of {valid}")
    return [default]


def _check_limits(site: Site, partitions: list[Partition], work: Work, workers: int) -> None:
    """Say what ``sbatch`` lets pass on many sites, and what then waits for ever; one partition is enough."""
    problems = []
    for partition in partitions:
        try:
            _check_partition(site, partition, work, workers)
        except InputError as error:
            problems.append(error)
    if len(problems) == len(partitions):
        raise problems[0]


def _check_partition(site: Site, partition: Partition, work: Work, workers: int) -> None:
    name, nodes = partition.name, least_nodes(site.nodes)
    if not partition.up:
        raise InputError(f"--partition: {name} is down; try another one")
    if site.time is not None and partition.most_s is not None and parse_time(site.time) > partition.most_s:
        raise InputError(
            f"--time: {site.time} is more than the {partition.most_s / 3600:.3g} h that the partition {name!r} allows;"
            " a shorter time is enough, because the job requeues itself and resumes"
        )
    walltime = parse_time(site.time) if site.time else partition.most_s
    if walltime is not None and walltime <= site.grace_s:
        raise InputError(f"--time: {walltime:g} s leaves no time to run: {site.grace_s} s (grace_s) are for saving")
    if partition.nodes and nodes > partition.nodes:
        raise InputError(f"--nodes: the partition {name!r} has {partition.nodes}, not {nodes}")
    if workers > partition.cpus:
        raise InputError(f"--workers-per-node: the nodes of {name!r} have {partition.cpus} processors, not {workers}")
    wanted = (memory_of_node(site, work, workers) or 0) / 2**20
    if partition.memory_mb and wanted > partition.memory_mb:
        raise InputError(
            f"--memory-per-worker, --controller-memory or --workers-per-node: {wanted:,.0f} MiB for {workers} workers,"
            f" scheduler and sweep are more than the {partition.memory_mb:,} MiB that a node of {name!r} has"
        )


def submit_job(site: Site, script: str, workers: int, folder: Path, files: Mapping[str, bytes]) -> Job:
    """Write a checked script and what it needs into ``folder``, and submit it.

    If it is refused after all, or the disk is full, a folder that was not there before is removed, and no job is
    left that is not known here. If there is no answer, the job may have been taken, and needs the folder.
    """
    system_name = site.system or default_system()
    system = find(system_name)
    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        _remove_credentials(folder)
        for name, content in {**files, SITE_COPY: to_toml(site).encode(), "job.sh": script.encode()}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        (folder / OUTCOME).unlink(missing_ok=True)
        number = system.submit(script)
        try:
            asked = (site.nodes, workers, site.partition or "", site.time or "")
            job = Job(number, time.time(), str(folder), *asked, system.name_of(number), system_name)
            draft = folder / f"{JOB}.partial"
            draft.write_text(json.dumps(asdict(job), indent=1))
            os.replace(draft, folder / JOB)
            remember(system_name)
        except BaseException:  # a full disk, Ctrl-C: nobody would know of this job
            system.cancel(number)
            raise
        return job
    except NoAnswerError as error:
        shown = f"{system.LOOK!r} shows it, and {system.END!r} ends it"
        text = f"{error}; if {system.TITLE} has taken the job all the same, {shown}"
        raise UnreachableError(text) from None
    except (OSError, BatchSystemError) as error:
        if not was_there:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise
        raise InputError(system.describe_refusal(str(error), site)) from None


def read_job(folder: Path) -> Job | None:
    """Return the last job that was submitted with this folder, None if there was none.

    Raises
    ------
    InputError
        There was one, but what is known of it is damaged, its owner's alone, or names a batch system of a stranger's.
    """
    fields = read_fields(folder / JOB, _FIELDS)
    if fields is None:
        return None
    if not (fields and _NUMBER.fullmatch(fields["job"])):
        if not os.access(folder / JOB, os.R_OK):
            raise InputError(f"{folder / JOB}: only the user who submitted the job may read this file")
        raise InputError(
            f"{folder / JOB}: is damaged, so the number of the job is unknown; look for the job in the queue, and"
            " remove the file when it has ended"
        )
    # a store may have been moved, with what is beside it
    job = Job(**{name: fields[name] for name in _FIELDS if fields.get(name) is not None} | {"folder": str(folder)})
    check_recorded(job.system)
    return job


def describe_job(job: Job) -> dict[str, Any]:
    """Return what is known of a job: from SLURM, and from what it wrote at its end.

    ``over`` is None where neither tells: another machine, or a controller that does not answer.
    """
    found: dict[str, Any] = {**asdict(job), "log": str(job.log), "outcome": "", "text": ""}
    note = read_fields(Path(job.folder) / OUTCOME, {"job": str, "outcome": str, "text": str})
    if note and note["job"] == job.job:
        found |= {"outcome": note["outcome"], "text": note["text"]}
    try:
        found |= job.ask(timeout_s=_LOOK_S)
        found["over"] = is_over(found["state"])
    except InputError as error:
        found |= {**FORGOTTEN, "state": UNKNOWN, "over": True if found["outcome"] in _LAST else None}
        found["text"] = found["text"] if found["over"] else str(error)
    if found["over"] and not found["outcome"] and found["state"] != "COMPLETED":
        found["text"] = _last_line(job.log)
    found["dashboard"] = "" if found["over"] else _read_dashboard(Path(job.folder))
    return found


def _last_line(path: Path) -> str:
    """Return the last line of a log, "" if there is none."""
    try:
        lines = path.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _read_dashboard(folder: Path) -> str:
    """Return how Dask's dashboard is reached, "" if there is none (or others ask: the folder is its owner's alone)."""
    try:
        return "\n".join(path.read_text() for path in folder.glob(f"*/{DASHBOARD}"))
    except OSError:
        return ""


def cancel_job(job: Job, wait_s: float = 60.0, tidy: bool = True) -> bool:
    """Cancel a job and wait until it is over; returns whether there was anything to cancel.

    Without ``tidy``, worker jobs and credentials in its folder stay: they are another run's.
    """
    was_over = is_over(job.ask()["state"])
    system = find(job.system)
    if tidy:
        cancel_workers(Path(job.folder), system)
    if not was_over:
        system.cancel(job.job)
        end = time.monotonic() + wait_s
        while not is_over(job.ask()["state"]) and time.monotonic() < end:
            time.sleep(0.3)
    if tidy:
        cancel_workers(Path(job.folder), system)  # those that it submitted meanwhile
        _remove_credentials(Path(job.folder))
    return not was_over


def _remove_credentials(folder: Path) -> None:
    """Remove the credentials that jobs left which were ended by force; no job runs."""
    for pattern in ("*-*-*", "tls-*"):
        for left in folder.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
