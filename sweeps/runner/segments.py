"""Removes the journals of a run while it goes on: those whose results the store has, on the disk.

A worker leaves a journal for the next one when it is long, and says how many records it has. When that many results of
it were taken, all of them are written into chunks, and these have reached the disk, nothing in it is needed any more.
A kill at any time leaves a result in a journal, in the store, or in both.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from faultsweep.sweeps.runner.progress import LOG
from faultsweep.sweeps.store.journal import jobs_beside

_PATIENCE_S = 60.0


class Segments:
    """The journals of a run's workers, as far as their results were taken."""

    def __init__(self, folder: Path, store: Path, check: Callable[[], None]) -> None:
        """Take the folder of the journals; ``check`` raises if the store belongs to another process by now."""
        self._folder = folder
        self._store = store
        self._check = check
        self._taken: Counter[str] = Counter()
        self._records: dict[str, int] = {}
        self._thread: threading.Thread | None = None

    def add(self, segment: str, results: int, closed: Mapping[str, int]) -> None:
        """Note that results were taken that a journal has, and which journals have been left, with how many records."""
        if segment:
            self._taken[segment] += results
        self._records |= closed

    def remove_saved(self) -> None:
        """Remove the journals whose results were all taken; call it when all that was taken is written.

        It happens in a thread, since the disk may take a while; until that is over, nothing else is removed.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        names = [name for name, records in self._records.items() if self._taken[name] >= records]
        if not names:
            return
        for name in names:
            del self._records[name], self._taken[name]
        self._thread = threading.Thread(target=self._remove, args=(names,), daemon=True)
        self._thread.start()

    def _remove(self, names: list[str]) -> None:
        try:
            sync_disk(self._store)
            self._check()
            for name in names:
                for path in (self._folder / name, jobs_beside(self._folder / name)):
                    path.unlink(missing_ok=True)
        except Exception as error:  # what stays is removed when the run is over
            LOG.info("journals stay: %s", error)

    def join(self) -> None:
        """Wait until nothing is being removed; a disk that hangs is not waited for."""
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)


def sync_disk(folder: Path) -> None:
    """Wait until all that was written to the file system of a folder is on its disk."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # macOS
        os.sync()
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        if library.syncfs(file):
            raise OSError(ctypes.get_errno(), "syncfs", str(folder))
    finally:
        os.close(file)
