"""What a store has, read from the store alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.cluster.batch_systems import find
from faultsweep.sweeps.batch_job import read_run
from faultsweep.sweeps.runner.progress import format_bytes, format_count, format_seconds, recommend_memory
from faultsweep.sweeps.spec import find_spec, load_spec
from faultsweep.sweeps.store.collector import describe_counts
from faultsweep.sweeps.store.lock import say_owner
from faultsweep.sweeps.store.manifest import Damage
from faultsweep.sweeps.store.repair import Checked, check
from faultsweep.sweeps.store.statuses import DAMAGED, FAILED, FAILURES, FINAL, PENDING, STATUS_NAMES
from faultsweep.sweeps.store.store import Store, check_format, run_folder

from faultsweep.errors import InputError
from faultsweep.terminal import make_console, print_json

DAMAGED_CODE = 7
"""Exit code where files of a store are absent or damaged."""
_SHOWN = 20
_SENTENCES = 5


def find_store(store_or_spec: str, store: Path | None = None) -> Path:
    """Return the store that is meant: given itself, or by the spec whose results it has."""
    if store is not None:
        return store
    path = Path(store_or_spec)
    if path.is_dir() or path.suffix == ".zarr" or has_run(path):
        return path
    if path.suffix == ".zip" and path.is_file():
        raise InputError(f"{path}: an archive: faultsweep check compares it, open_results reads it as it is")
    spec = find_spec(store_or_spec)
    try:
        return Path(f"{load_spec(spec)['name']}.zarr")
    except InputError as error:
        raise InputError(f"{error}; nor is it a store, which is a folder") from None


def has_run(path: Path) -> bool:
    """Tell whether a run or a job has left something beside a store, which it may not have made yet."""
    path = path.resolve()
    return bool(path.name) and run_folder(path).is_dir()


def read_status(path: Path) -> dict[str, Any]:
    """Return what is known of a store and its run: counts, failed cells with errors, size, batch job, progress.

    A store that a submitted job has not made yet has no cells.
    """
    run = read_run(path)
    if run["job"] is not None and not path.exists():
        return {"store": str(path), "complete": False, **run}
    found = check(path, quick=True)
    try:
        return {**_read_cells(path), "damage": _damage(found), **run}
    except (InputError, ValueError, RuntimeError):
        if not found.damage:
            raise
        return {"store": str(path), "complete": False, "damage": _damage(found), **run}


def _damage(found: Checked) -> dict[str, Any]:
    """Return what is absent or damaged, as ``status`` tells it."""
    return {
        "verifiable": found.verifiable,
        "content_read": found.whole,
        "files": [{"name": one.name, "what": one.what} for one in found.damage],
        "older": found.older,
        "cells": found.cells,
    }


def _read_cells(path: Path) -> dict[str, Any]:
    """Return what a store says of its cells."""
    attributes = check_format(path)
    store = Store(path, mode="r")
    status = store.status()
    counts = np.bincount(status, minlength=len(STATUS_NAMES))
    wall = store.arrays["wall_s"][...].ravel() if len(status) else np.zeros(0)
    ran = np.isin(status, FINAL)
    return {
        "store": str(path),
        "name": attributes["name"],
        "title": attributes["title"],
        "target": attributes["target"],
        "model_version": attributes["model_version"],
        "shape": dict(zip(store.dims, store.chunks.shape, strict=True)),
        "cells": len(status),
        "status": {name: int(number) for name, number in zip(STATUS_NAMES, counts, strict=True)},
        "complete": not counts[PENDING] and not counts[DAMAGED],
        "simulated_s": float(np.nansum(wall[ran])),
        "size_bytes": store.size_bytes(),
        "failed": _failures(store, status),
        "pins": store.text("pins"),
        "runs": store.text("provenance"),
    }


def exit_code(found: dict[str, Any]) -> int:
    """Return 0 for a complete store, 3 while it is worked on, 4 if nothing runs and cells lack, 5 if cells failed.

    6 if cells lack and it is not known whether anything runs; 7 if files are absent or damaged.
    """
    if found["state"] in ("running", "waiting"):
        return 3
    if found.get("damage") and (found["damage"]["files"] or found["damage"]["cells"]):
        return DAMAGED_CODE
    if not found["complete"]:
        return 6 if found["state"] == "unknown" else 4
    return 5 if found["status"]["failed"] else 0


def _failures(store: Store, status: np.ndarray) -> list[dict[str, Any]]:
    """Return labels and error of failed cells, at most a thousand."""
    cells = np.flatnonzero(status == FAILED)[:1000]
    axes = store.axes() if len(cells) else []
    failed = []
    for cell in cells:
        rows = np.unravel_index(int(cell), store.chunks.shape)
        labels = {axis.name: axis.labels[row] for axis, row in zip(axes, rows, strict=True)}
        failed.append({**labels, "error": str(store.arrays["error"][tuple(int(row) for row in rows)])})
    return failed


def print_status(path: Path, as_json: bool = False, brief: bool = False) -> int:
    """Print the status of a store, as text or JSON; returns the exit code that says it in a number."""

    found = read_status(path)
    console = make_console(highlight=False, soft_wrap=True, markup=False)
    if as_json:
        print_json({**found, "exit_code": exit_code(found)})
        return exit_code(found)
    _print_damage(console, path, found)
    if "cells" not in found:
        console.print(f"{path}: {'damaged' if found.get('damage') else 'not made yet'}")
        _print_run(console, found)
        return exit_code(found)
    shape = " x ".join(f"{n} {dim}" for dim, n in found["shape"].items())
    counts = {i: found["status"][name] for i, name in enumerate(STATUS_NAMES)}
    console.print(f"{path}: {format_count(found['cells'], 'cell')} ({shape})")
    console.print(f"  {describe_counts(counts, STATUS_NAMES)}")
    if not brief:
        console.print(
            f"  {format_seconds(found['simulated_s'])} simulated, {format_bytes(found['size_bytes'])} on disk"
        )
        _print_run(console, found)
    if brief:
        return exit_code(found)
    for failure in found["failed"][:_SHOWN]:
        where = ", ".join(f"{name}={label}" for name, label in failure.items() if name != "error")
        console.print(f"  failed at {where}: {failure['error']}")
    if counts[FAILED] > _SHOWN:
        console.print("  ... faultsweep status --json lists more")
    return exit_code(found)


def _print_damage(console: Any, path: Path, found: Mapping[str, Any]) -> None:
    """Print what is absent or damaged, and what mends it."""
    damage = found.get("damage")
    if not damage:
        return
    files = [Damage(**one) for one in damage["files"]]
    checked = Checked(damage=files, older=damage["older"], cells=damage["cells"])
    for text in checked.sentences(path):
        console.print(text)
    if not checked.is_sound:
        console.print(f"mend it: faultsweep check --repair {path}, or run the sweep again")


def _print_run(console: Any, found: dict[str, Any]) -> None:
    """Print what the run or the batch job is doing, or how it ended, and what memory it took."""
    owner, job, progress = found["running"], found["job"], found["progress"]
    if job is not None:
        _print_job(console, job)
    if owner:
        console.print(f"  running: {say_owner(owner)}")
    elif job is None:
        console.print("  no run is active")
    if found["phase"] is not None:
        console.print(f"  {say_phase(found['phase'])}")
    if progress is None:
        return
    if found["state"] == "running" and not progress["is_over"]:
        pace = f", {progress['per_s']:.3g} a second" if progress["per_s"] else ""
        left = f", about {format_seconds(progress['left_s'])} left" if progress["left_s"] is not None else ""
        ago = format_seconds(max(0.0, time.time() - progress["time"]))
        console.print(
            f"  {progress['done']:,} of {progress['total']:,} simulations, {progress['workers']:,} workers{pace}{left}"
            f" ({ago} ago)"
        )
    if progress["worker_bytes"]:
        console.print(
            f"  a worker took at most {format_bytes(progress['worker_bytes'])} of memory:"
            f" --memory-per-worker {recommend_memory(progress['worker_bytes']) / 1e9:.1f}GB will do"
        )


def say_phase(phase: dict[str, Any]) -> str:
    """Return in words what a run is doing: ``phase: compiling for 40 s``."""
    since = phase["since"]
    lasting = f" for {format_seconds(max(1.0, round(time.time() - since)))}" if since is not None else ""
    more = f": {phase['text']}" if phase["text"] else ""
    return f"phase: {phase['phase']}{lasting}{more}"


def _print_job(console: Any, job: dict[str, Any]) -> None:
    """Print the state of a batch job in words."""
    console.print(f"  {say_state(job)}")
    if job["text"]:
        console.print(f"    {job['text']}")
    for text in job.get("dashboard", "").splitlines():
        console.print(f"  {text}")


def say_state(job: dict[str, Any]) -> str:
    """Return number and state of a batch job in words, and why it waits or has ended where that is known."""
    if not job["job"]:
        return "a job of which nothing is known here"
    if job["over"] is None:
        return f"job {job['job']}: its state is not known here"
    system = find(job["system"])
    line = f"job {job['job']}: {job['state'].lower() or f'{system.TITLE} does not know it any more'}"
    if job["over"]:
        # SLURM keeps the reason that a job waited for when it is cancelled
        told = job["outcome"] or job["text"] or job["state"] == "CANCELLED" or not job["reason"]
        line += "" if told else f": {system.explain(job['reason'])}"
        new = job["outcome"] and job["outcome"] != job["state"].lower()
        return line + (f"; {job['outcome']}" if new else "")
    if job["state"] == "RUNNING":
        left = f", {job['walltime_left']} of the walltime left" if job["walltime_left"] else ""
        return f"{line} on {job['nodes']}{left}"
    line += f": {system.explain(job['reason'])}" if job["reason"] else ""
    return line + (f", expected to start at {job['start']}" if job["start"] else "")


def describe_failures(path: Path) -> str:
    """Return the errors of failed cells with their counts, the most frequent first, one a line; "" if none failed."""
    store = Store(path, mode="r")
    failed = np.flatnonzero(np.isin(store.status(), FAILURES))
    if not len(failed):
        return ""
    errors = Counter(map(str, np.asarray(store.arrays["error"][...]).ravel()[failed]))
    lines = [f"{text} (in {format_count(count, 'cell')})" for text, count in errors.most_common(_SENTENCES)]
    if len(errors) > _SENTENCES:
        lines.append(f"{len(errors) - _SENTENCES:,} more errors: faultsweep status {path}")
    return "\n".join([*lines, f"{path}: {format_count(len(failed), 'cell')} failed; --retry-failed runs them again"])
