"""The results of a run that goes on, from its journals: what it has finished, before the chunks of the store have it.

A record of a journal has the key of a simulation. Which cells have this key is known to the run, and takes long to find
out again; so the run lists it in a file, ``cells.npz``. Readers need neither the spec nor the code that it names.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.grid import Cells, Keys
from faultsweep.sweeps.store.journal import JournalTail, Records
from faultsweep.sweeps.store.statuses import DONE, TRUNCATED, WITH_RESULT
from faultsweep.sweeps.store.store import run_folder
from numpy.typing import NDArray

CELLS = "cells.npz"
MOST_CELLS = 2_000_000
"""Cells that a run lists; the results of a larger one are seen when chunks have them."""
_CELL_BYTES = 24
_ROOM = 20
"""Times its size that has to be free for the list of cells."""
MOST_READ_BYTES = 16_000_000
"""Journals are read up to this at a time, or a file more."""
MOST_HELD_BYTES = 64_000_000
"""Memory of results that the store does not have yet; more is read when it has some of them."""


def list_cells(folder: Path, run_id: str, shape: tuple[int, ...], wanted: NDArray[np.bool_], keys: Keys) -> None:
    """Write which cells of a grid a run will have results of, and the key of each; ``keys`` are those of all cells.

    It is for lookers-on alone: where there is not much room on the disk, results need it.
    """
    place, partial = folder / CELLS, folder / f"{CELLS}.partial"
    with contextlib.suppress(OSError):
        place.unlink(missing_ok=True)
        number = int(np.count_nonzero(wanted))
        if 0 < number <= MOST_CELLS and shutil.disk_usage(folder).free > _ROOM * _CELL_BYTES * number:
            cells = np.flatnonzero(wanted)
            cells = cells[np.argsort(keys[0, cells], kind="stable")]
            with partial.open("wb") as file:
                np.savez(file, run=np.array(run_id), shape=np.array(shape), cells=cells, keys=keys[:, cells])
            os.replace(partial, place)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Run:
    """A run that goes on, or ended early: its grid, and its cells by their keys, which are in order."""

    id: str
    shape: tuple[int, ...]
    cells: Cells
    keys: Keys

    @property
    def is_sound(self) -> bool:
        """Tell whether all cells are of the grid."""
        size = int(np.prod(self.shape))
        fits = self.cells.ndim == 1 and self.keys.shape == (2, len(self.cells)) and self.keys.dtype == np.uint64
        return bool(fits and self.cells.dtype.kind == "i" and ((self.cells >= 0) & (self.cells < size)).all())

    def match(self, keys: Keys) -> tuple[NDArray[np.int64], Cells]:
        """Return the records that have cells, a time for each of these, and the cells."""
        first = np.searchsorted(self.keys[0], keys[0], "left")
        counts = np.searchsorted(self.keys[0], keys[0], "right") - first
        record = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(record)) - np.repeat(np.cumsum(counts) - counts, counts) + first[record]
        same = self.keys[1, place] == keys[1, record]
        return record[same], self.cells[place[same]]


@dataclass(frozen=True)
class Newer:
    """Results that the store lacks; arrays over them, ``values`` by output, in words of 64 bits."""

    cells: Cells
    status: NDArray[np.int8]
    values: dict[str, NDArray[np.float64]]

    @property
    def size(self) -> int:
        """Return its bytes."""
        return 9 * len(self.cells) + sum(values.nbytes for values in self.values.values())

    def part(self, keep: NDArray[Any]) -> Newer:
        """Return some of them."""
        return Newer(self.cells[keep], self.status[keep], {name: own[keep] for name, own in self.values.items()})


NOTHING = Newer(np.zeros(0, np.int64), np.zeros(0, np.int8), {})


class Newest:
    """What the journals of a store's run have and the store has not; read piece by piece, and kept until it has."""

    def __init__(self, store: Path) -> None:
        """Nothing is read before ``read``."""
        self._folder = run_folder(store.resolve())
        self._stamp: tuple[int, int] | None = None
        self._run: _Run | None = None
        self._tails: dict[Path, JournalTail] = {}
        self._held: list[Newer] = []

    def read(self) -> bool:
        """Read what journals have got; returns whether there are results that were not held before."""
        self._take_run()
        run, before = self._run, len(self._held)
        if run is None:
            return False
        left = MOST_READ_BYTES
        files = sorted((self._folder / "journals").glob(f"{run.id}-*.journal"))
        self._tails = {path: self._tails.get(path) or JournalTail(path) for path in files}
        for tail in self._tails.values():
            if left <= 0 or sum(part.size for part in self._held) > MOST_HELD_BYTES:
                break
            for records in tail.read():
                self._hold(run, records)
            left -= tail.bytes_read
        return len(self._held) > before

    def _hold(self, run: _Run, records: Records) -> None:
        number, cells = run.match(records.keys)
        good = np.isin(records.status[number], (DONE, TRUNCATED))
        number, cells = number[good], cells[good]
        if len(cells):
            values = {name: records.values[number, column] for column, name in enumerate(records.outputs)}
            self._held.append(Newer(cells, records.status[number], values))

    def _take_run(self) -> None:
        """Look which run there is now; what an earlier one had is forgotten."""
        path = self._folder / CELLS
        try:
            about = path.stat()
            stamp = (about.st_mtime_ns, about.st_ino)
            if stamp == self._stamp:
                return
            with np.load(path, allow_pickle=False) as file:
                run = _Run(str(file["run"]), tuple(file["shape"].tolist()), file["cells"], file["keys"])
        except FileNotFoundError:
            return  # the run is over; what it had stays until the store is opened
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return
        self._stamp = stamp
        if self._run is None or run.id != self._run.id:
            self._held, self._tails = [], {}
        self._run = run if run.is_sound else None

    def beyond(self, status: NDArray[np.int8], open_runs: str) -> Newer:
        """Return the results that a store lacks, by the status of its cells, and forget those that it has.

        ``open_runs`` is the attribute of the store: runs that are not in it are over, and the store has what they had.
        """
        run = self._run
        listed = {each.get("id") for each in json.loads(open_runs or "[]")}
        if run is None or run.id not in listed or run.shape != status.shape:
            self._held = []
            return NOTHING
        lacks = ~np.isin(status.ravel(), WITH_RESULT)
        self._held = [part.part(keep) for part in self._held if (keep := lacks[part.cells]).any()]
        if not self._held:
            return NOTHING
        names = set.intersection(*(set(part.values) for part in self._held))
        joined = Newer(
            np.concatenate([part.cells for part in self._held]),
            np.concatenate([part.status for part in self._held]),
            {name: np.concatenate([part.values[name] for part in self._held]) for name in sorted(names)},
        )
        self._held = [joined]
        return joined
