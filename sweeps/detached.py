"""A sweep as one detached batch job: what is submitted, and what it has written."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faultsweep.cluster.imports import imported_modules
from faultsweep.cluster.script import Work
from faultsweep.cluster.site import Site
from faultsweep.cluster.submit import Job, describe_job, plan_job, read_job, submit_job
from faultsweep.sweeps.batch_job import job_folder, refuse_if_taken
from faultsweep.sweeps.memory import grid_bytes, measured_worker_bytes, worker_bytes
from faultsweep.sweeps.rounds import replicates_wanted
from faultsweep.sweeps.runner.prepare import Prepared, assumptions, check_store, prepare
from faultsweep.sweeps.runner.progress import PROGRESS
from faultsweep.sweeps.spec import Spec, find_spec
from faultsweep.sweeps.status import describe_failures, say_state
from faultsweep.sweeps.store.lock import Lock
from faultsweep.sweeps.store.store import run_folder
from faultsweep.sweeps.substitutes import is_shipped, with_substitutes
from faultsweep.sweeps.sweep import STORE_VARIABLE, SUBMISSION_VARIABLE, Sweep

from faultsweep.errors import InputError


@dataclass(frozen=True)
class Submission:
    """A sweep that is ready to be submitted; ``missing`` simulations (None: a script, which is not run here).

    ``complete`` says that there is nothing to do, ``failures`` what failed in a store that there is, ``assumptions``
    what the missing simulations assume because a log does not say it.
    """

    store: Path
    site: Site
    script: str
    workers: int
    files: dict[str, bytes]
    missing: int | None
    complete: bool = False
    failures: str = ""
    assumptions: Sequence[str] = ()

    def submit(self) -> Job:
        """Submit it; refused if another run or job has the store."""
        folder = job_folder(self.store)
        was_there = folder.parent.exists()
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with Lock(folder.parent / "submit.lock"):
                refuse_if_taken(self.store)
                job = submit_job(self.site, self.script, self.workers, folder, self.files)
        except (InputError, OSError) as error:
            if not was_there and folder.parent.is_dir() and not any(folder.parent.iterdir()):
                folder.parent.rmdir()
            if isinstance(error, OSError):
                where = error.filename or folder
                raise InputError(f"{where}: cannot be written ({error.strerror}); nothing was submitted") from None
            raise
        return job


def prepare_submission(
    spec_or_name: str,
    store: Path | None,
    site: Site,
    *,
    logs: Path | None = None,
    time_limit_s: float = 0.0,
    recompute: bool = False,
    retry_failed: bool = False,
    elastic: bool = False,
) -> Submission:
    """Check a sweep, its store and the job; nothing is made or submitted.

    The job runs a copy of the spec, so that it does not matter what becomes of the file while the job waits.

    Raises
    ------
    InputError
        The spec is wrong, the store cannot take it or belongs to a run, or the batch system would not take the job.
    """
    spec = find_spec(spec_or_name).resolve()
    content = spec.read_bytes()
    if is_shipped(spec):
        sweep, store, substitutes = with_substitutes(spec, logs, store)
        content = sweep.spec.to_toml().encode() if substitutes else content
    else:
        sweep = Sweep.from_toml(spec, logs=logs)
    sweep.spec.refuse_search()
    path = sweep.store_path(store)
    check_store(sweep.spec, path, recompute)
    refuse_if_taken(path)
    folder = job_folder(path)
    copy = f"spec/{spec.name}"  # in a folder of its own: it may have any name
    command = ["-P", "-m", "faultsweep", "run", str(folder / copy), "--folder", str(spec.parent), "--store", str(path)]
    command += ["--logs", str(logs.resolve())] if logs is not None else []
    command += ["--time-limit", f"{time_limit_s:g}"] if time_limit_s else []
    command += ["--recompute"] if recompute else []
    command += ["--retry-failed"] if retry_failed else []
    once = {SUBMISSION_VARIABLE: uuid.uuid4().hex}
    prepared = prepare(sweep.spec, path, recompute, retry_failed)
    work = Work(
        sweep.spec.name,
        folder,
        run_folder(path) / PROGRESS,
        tuple(command),
        once,
        controller_bytes=partial(grid_bytes, prepared),
        worker_bytes=worker_bytes(sweep.spec, path),
    )
    script, workers = plan_job(site, work, elastic)
    missing, complete = count_missing(sweep.spec, prepared)
    failures = describe_failures(path) if complete else ""
    assumed = assumptions(sweep.spec, prepared)
    return Submission(path, site, script, workers, {copy: content}, missing, complete, failures, assumed)


def count_missing(spec: Spec, prepared: Prepared) -> tuple[int, bool]:
    """Return how many simulations are missing as far as is known now, and whether a run would do nothing."""
    store, missing = prepared.store, len(prepared.todo)
    if store is None or missing or prepared.grows:
        return missing, False
    if spec.adds_replicates:
        have, needed = replicates_wanted(store, spec, prepared.asked)
        missing = int((needed - have).clip(0).sum())
    return missing, not (missing or store.adding or store.recomputing)


def prepare_script(
    program: Path, arguments: Sequence[str], store: Path, site: Site, elastic: bool = False
) -> Submission:
    """Check the job of a Python program that runs one sweep into ``store``; nothing is made, submitted or executed."""
    program, path = program.resolve(), store.resolve()
    try:
        compile(program.read_bytes(), program, "exec")
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{program}: cannot be run ({error})") from None
    refuse_if_taken(path)
    work = Work(
        program.stem,
        job_folder(path),
        run_folder(path) / PROGRESS,
        (str(program), *arguments),
        {STORE_VARIABLE: str(path), SUBMISSION_VARIABLE: uuid.uuid4().hex},
        program.parent,
        tuple(imported_modules(program)),
        worker_bytes=measured_worker_bytes(path),
    )
    script, workers = plan_job(site, work, elastic)
    return Submission(path, site, script, workers, {}, None)


def find_log(store: Path) -> Path:
    """Return the log file of the batch job of a store, or of its last run if there is no job.

    Raises
    ------
    InputError
        There is neither, or the job has not started yet, or could not.
    """
    job = read_job(job_folder(store))
    path = job.log if job is not None else run_folder(store) / "log.txt"
    if path.is_file():
        return path
    if job is not None:
        raise InputError(f"{store}: nothing was written by {say_state(describe_job(job))}")
    raise InputError(f"{store}: no run has written a log beside it")
