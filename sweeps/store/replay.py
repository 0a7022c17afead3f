"""Journals that runs left which ended early: where they are, and which cells of a store their records belong to.

A store lists its open runs (attribute ``open_runs``): a run that has started and has not yet left everything in the
store. Only journals of these are believed, by the number of the run in their names; so neither a store that was made
anew nor one that was moved takes results that are not its own. They are looked for beside the store, and where the run
had its folder.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.grid import Cells
from faultsweep.sweeps.runner.prepare import Prepared
from faultsweep.sweeps.runner.task import output_columns
from faultsweep.sweeps.store.journal import DIED, Records, read_journal
from faultsweep.sweeps.store.lock import owner_of
from faultsweep.sweeps.store.statuses import FAILED
from faultsweep.sweeps.store.store import Store, check_format, run_folder, store_of
from numpy.typing import NDArray

from faultsweep.errors import InputError


@dataclass(frozen=True)
class Left:
    """What earlier runs of a store left: their journals, and sentences about what is not where the store is."""

    journals: list[Path]
    notes: list[str]


def open_run(run_id: str, folder: Path, saved: bool = False) -> dict[str, Any]:
    """Return how a store lists a run; ``saved`` tells that its journals have nothing that the store lacks."""
    return {"id": run_id, "folder": str(folder), "host": socket.gethostname(), "saved": saved}


def find_journals(store: Store) -> Left:
    """Return the journals of the open runs of a store.

    Raises
    ------
    InputError
        One of these runs is going on, in another folder: the store was moved, or copied, meanwhile. Or it has ended
        since it was copied: the copy may have the status of cells without their metrics.
    """
    here = run_folder(store.path)
    journals: list[Path] = []
    notes = []
    for run in store.open_runs:
        beside = sorted((here / "journals").glob(f"{run['id']}-*.journal"))
        there = Path(run["folder"])
        moved = there.resolve() != here.resolve()
        if moved and not run.get("saved"):
            _check_origin(store, run["id"], there)
        elsewhere = sorted((there / "journals").glob(f"{run['id']}-*.journal")) if moved else []
        journals += [*beside, *elsewhere]
        if elsewhere:
            notes.append(f"taking what was finished from {there}, where the store was")
        elif moved and not beside and not run.get("saved"):
            notes.append(
                f"the last run ended early and left what was not saved yet in {there} on {run['host']}, which is not"
                f" beside the store; it is simulated again, unless you stop now and move that folder to {here}"
            )
    return Left(journals, notes)


def _check_origin(store: Store, run_id: str, folder: Path) -> None:
    """Raise InputError if an open run, whose folder is elsewhere, goes on there, or has gone on without this store."""
    path, origin, lock = store.path, store_of(folder), folder / "lock"
    if not (origin / "zarr.json").exists() or origin.samefile(path):
        if owner_of(lock):
            raise InputError(f"{path}: was moved while a run writes it; stop the run that has {lock}")
        return
    other = check_format(origin)
    history = store.text("provenance")
    if json.loads(other["provenance"])[: len(history)] != history:
        return  # another store, which has been made where this one was
    if owner_of(lock):
        raise InputError(
            f"{path}: a copy of {origin}, made while a run was writing it; wait until the run that has {lock} is"
            " over, or stop it, and copy the store again"
        )
    if run_id not in [run["id"] for run in json.loads(other.get("open_runs", "[]"))]:
        raise InputError(
            f"{path}: a copy of {origin} from before the end of its last run, which may lack parts of results; copy"
            " that store again"
        )


def check_at_rest(store: Store) -> None:
    """Raise InputError if a run writes a store, or ended before all that it has finished was in the store."""
    owner = owner_of(run_folder(store.path) / "lock")
    if owner is not None:
        raise InputError(
            f"{store.path}: process {owner.get('pid')} on {owner.get('host')} is writing it; wait, or stop that run"
        )
    if store.recomputing or find_journals(store).journals:
        raise InputError(
            f"{store.path}: the last run ended early, and what it finished is not in the store; run it again first"
        )


def match_records(
    prepared: Prepared, journals: Iterable[Path], skip_failed: bool = False
) -> Iterator[tuple[Path, Records, Cells, NDArray[np.int64], list[int]]]:
    """Yield journals' records with the cells that they belong to: path, records, cells, their places, columns.

    Only records of cells that are simulated, and that have all that the store keeps of a run: its outputs, ``columns``
    are where these are, and per-job results. ``skip_failed`` passes over failures. Records of deaths are among them.
    """
    simulated = np.flatnonzero(prepared.source == np.arange(len(prepared.source)))
    if not len(simulated):
        return
    ordered = simulated[np.argsort(prepared.keys[0][simulated], kind="stable")]
    first = prepared.keys[0][ordered]
    names = output_columns(prepared.outputs)
    for path in journals:
        for records in read_journal(path):
            if set(names) <= set(records.outputs):
                at = ordered[np.minimum(np.searchsorted(first, records.keys[0]), len(first) - 1)]
                matching = (prepared.keys[:, at] == records.keys).all(0)
                if prepared.keep_jobs:  # a run from before they were asked for has none
                    matching &= np.isin(records.status, (FAILED, DIED)) | (records.jobs[1] > 0)
                if skip_failed:
                    matching &= records.status != FAILED
                known = np.flatnonzero(matching)
                yield path, records, at[known], known, [records.outputs.index(name) for name in names]


def count_journalled(prepared: Prepared) -> int:
    """Return how many of the cells that are to be simulated have a result in the journals of the store's open runs."""
    if prepared.store is None:
        return 0
    found = [
        cells[records.status[numbers] != DIED]
        for _, records, cells, numbers, _ in match_records(
            prepared, find_journals(prepared.store).journals, prepared.retry_failed
        )
    ]
    return len(np.intersect1d(np.concatenate(found), prepared.todo)) if found else 0
