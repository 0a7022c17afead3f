"""The batch job of a store, if it has one: whose the store is, and what has become of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faultsweep.cluster.batch_systems import check_recorded, find, own_job
from faultsweep.cluster.batch_systems.common import FORGOTTEN, is_over
from faultsweep.cluster.phases import ENDING, QUEUED, REQUEUED, RUNNING, STARTING, STARTING_WORKERS, read_phase
from faultsweep.cluster.submit import UNKNOWN, Job, cancel_job, describe_job, read_job
from faultsweep.sweeps.runner.progress import PROGRESS
from faultsweep.sweeps.store.lock import Lock, owner_of
from faultsweep.sweeps.store.store import run_folder

from faultsweep.errors import InputError
from faultsweep.files import read_fields


def job_folder(store: Path) -> Path:
    """Return the folder beside a store that holds what belongs to its batch job."""
    return run_folder(store) / "slurm"


def refuse_if_submitted(store: Path) -> None:
    """Raise InputError if a job that writes this store is in the queue, unless this process belongs to that job.

    Where no batch system answers (the store was moved to another machine, say), the store's lock alone decides.
    """
    job = read_job(job_folder(store))
    if job is None or job.job == own_job():
        return
    try:
        state = job.ask()["state"]
    except InputError:
        return
    if not is_over(state):
        raise InputError(
            f"{store}: job {job.job} ({state.lower()}) runs this sweep already; 'faultsweep status {store}' looks"
            f" at it, 'faultsweep cancel {store}' ends it"
        )


def refuse_if_taken(store: Path) -> None:
    """Raise InputError if a run writes this store, or if a job that will is in the queue.

    A lock that a dead process left is passed over: the job takes it over itself.
    """
    refuse_if_submitted(store)
    path = run_folder(store) / "lock"
    owner = owner_of(path)
    if owner and not _belongs_to_a_dead_job(owner):
        lock = Lock(path)
        if not lock.is_stale():
            raise InputError(lock.describe_owner())


def _belongs_to_a_dead_job(owner: dict[str, Any]) -> bool:
    job = str(owner.get("batch_job") or "")
    if not job:
        return False
    try:
        return is_over(find(check_recorded(str(owner.get("batch_system") or "slurm"))).job_state(job)["state"])
    except InputError:
        return False


def read_run(store: Path) -> dict[str, Any]:
    """Return what is known of the run of a store without asking its scheduler.

    ``job`` (None without one), ``running`` (the owner of the lock, None if it is dead or its job is over), ``progress``
    (what the sweep said last; None without any), ``phase`` (what is being done, and since when; None if nothing is),
    and ``state``: running, waiting, idle, or unknown, where the batch system does not answer, or what is known of the
    job cannot be read.
    """
    store = store.resolve()
    job = _read_known(store)
    owner = _living_owner(store, job)
    if owner or (job and job["state"] == "RUNNING"):
        state = "running"
    elif job is None or job["over"]:
        state = "idle"
    else:
        state = "unknown" if job["over"] is None else "waiting"
    progress = _read_progress(store, state)
    phase = _read_phase(job_folder(store), state, job, progress)
    return {"state": state, "running": owner, "job": job, "progress": progress, "phase": phase}


def _read_phase(
    folder: Path, state: str, job: dict[str, Any] | None, progress: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the ``phase`` of what works on a store, ``since`` when (seconds since 1970, or None) and a ``text``.

    None if nothing works on it. A job says where it is itself; while its sweep runs, the sweep says it.
    """
    if state not in ("running", "waiting"):
        return None
    if job is not None and job["state"] != "RUNNING" and state == "waiting":
        again = job["outcome"] == REQUEUED
        text = find(job.get("system") or "slurm").explain(job["reason"])
        return {"phase": REQUEUED if again else QUEUED, "since": None, "text": text}
    told = read_phase(folder) if job is not None else None
    if told is not None and (told["phase"] != RUNNING or progress is None or progress["time"] < told["since"]):
        starting = told["phase"] == RUNNING
        return {"phase": STARTING_WORKERS if starting else told["phase"], **{k: told[k] for k in ("since", "text")}}
    if progress is None or progress["is_over"]:
        return {"phase": STARTING if progress is None else ENDING, "since": None, "text": ""}
    return {"phase": progress.get("phase", RUNNING), "since": progress.get("since"), "text": ""}


def _read_known(store: Path) -> dict[str, Any] | None:
    """Return what is known of the job of a store, None if it has none."""
    try:
        job = read_job(job_folder(store))
    except InputError as error:
        told = {"state": UNKNOWN, "over": None, "outcome": "", "text": str(error)}
        return {"job": "", "log": "", **FORGOTTEN, **told}
    return describe_job(job) if job is not None else None


def _living_owner(store: Path, job: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the owner of a store's lock, None if it is dead or its job is over; ``job`` is known already."""
    owner = owner_of(run_folder(store) / "lock")
    if owner and job is not None and str(owner.get("batch_job") or "") == job["job"]:
        return None if job["over"] else owner  # its scheduler was asked, and may be slow
    return None if owner and _belongs_to_a_dead_job(owner) else owner


def cancel(store: Path) -> tuple[Job, bool, dict[str, Any] | None]:
    """Cancel the job of a store; returns it, whether there was anything to cancel, and whose run goes on all the same.

    Raises
    ------
    InputError
        There is no job, or its batch system does not answer.
    """
    job = read_job(job_folder(store))
    if job is None:
        raise InputError(f"{store}: no batch job was submitted for this store")
    other = _living_owner(store)
    if other and (other.get("batch_job") == job.job or Lock(run_folder(store) / "lock").is_stale()):
        other = None
    return job, cancel_job(job, tidy=other is None), other


_NUMBER = (int, float)
_PROGRESS = {
    **{"time": _NUMBER, "is_over": bool, "done": int, "total": int, "workers": int, "worker_bytes": int},
    **{"per_s": (*_NUMBER, type(None)), "left_s": (*_NUMBER, type(None)), "since": (*_NUMBER, type(None))},
    "phase": (str, type(None)),
}
"""What the progress file of a run holds; a file with anything else says nothing."""


def _read_progress(store: Path, state: str) -> dict[str, Any] | None:
    progress = read_fields(run_folder(store) / PROGRESS, _PROGRESS)
    if not progress:
        return None
    if state != "running":
        progress |= {"workers": 0, "per_s": None, "left_s": None}
    return progress
