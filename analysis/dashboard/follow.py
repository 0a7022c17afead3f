"""A store that is looked at while it may be written: opened again when it has changed."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import xarray as xr
from faultsweep.analysis.open import RESULTS, count_cells, open_results

from faultsweep.errors import InputError

LOOK_EVERY_S = 1.0
LOOK_AT_URL_EVERY_S = 15.0
"""A web server is asked for the whole status each time."""


class FollowedStore:
    """The results of a store, as they are now.

    Attributes
    ----------
    place : path or URL.
    data : results as ``open_results`` gives them; replaced, never changed, when the store has changed.
    share : which share of it is done, and in words; counted once, which takes some time in a store of many cells.
    version : how often it has been replaced.
    """

    def __init__(self, place: str) -> None:
        """Open the store; InputError if it cannot be."""
        self.place = place
        self.version = 0
        self._stamp = self._look()
        self.data: xr.Dataset = open_results(place)
        self.share = describe_share(self.data)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Look at the store now and then, in a thread of its own, until ``stop``."""
        threading.Thread(target=self._follow, name="follow the store", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _follow(self) -> None:
        pause = LOOK_AT_URL_EVERY_S if "://" in self.place else LOOK_EVERY_S
        while not self._stopped.wait(pause):
            began = time.monotonic()
            self.look()
            pause = max(pause, 20 * (time.monotonic() - began))  # a large store is not read all the time

    def look(self) -> bool:
        """Open the store again if it has changed; returns whether it has. What cannot be read is tried again later."""
        stamp = self._look()
        if stamp == self._stamp and stamp is not None:
            return False
        try:
            data = open_results(self.place)
        except (InputError, OSError):
            return False
        self._stamp = stamp
        if data["status"].identical(self.data["status"]) and data.attrs == self.data.attrs:
            return False
        self.data, self.share = data, describe_share(data)
        self.version += 1
        return True

    def _look(self) -> tuple[int, ...] | None:
        """Return something that differs when the store does, None where that is not known without reading it."""
        root = Path(self.place)
        if "://" in self.place or not (root / "zarr.json").is_file():
            return None
        found = []
        for folder, _, files in os.walk(root / "status"):
            for name in sorted(files):
                try:
                    entry = os.stat(os.path.join(folder, name))
                except FileNotFoundError:
                    continue  # a temporary file that has been renamed since
                found += [entry.st_mtime_ns, entry.st_ino]
        return (*found, (root / "zarr.json").stat().st_mtime_ns)


def describe_share(data: xr.Dataset) -> tuple[float, str]:
    """Return the share of the requested cells that is done, and the counts in words."""
    counts = count_cells(data)
    results = sum(counts.get(name, 0) for name in RESULTS)
    failed, pending = (
        counts.get("failed", 0) + counts.get("failed_copy", 0),
        counts.get("pending", 0) + counts.get("damaged", 0),
    )
    requested = results + failed + pending
    share = (results + failed) / requested if requested else 1.0
    words = f"{share:.0%} done: {results:,} of {requested:,} cells have a result"
    more = [
        f"{counts[name]:,} {name}" for name in ("failed", "truncated", "excluded", "not requested") if name in counts
    ]
    return share, words + (f" ({', '.join(more)})" if more else "")
