"""A store that is looked at while it may be written: opened again when it has changed."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from faultsweep.analysis.dashboard.cells import Sample
from faultsweep.analysis.dashboard.metrics import in_one_unit, varying
from faultsweep.analysis.dashboard.overview import Overview, make_overview
from faultsweep.analysis.shown import with_numbers_and_names
from faultsweep.sweeps.batch_job import read_run
from faultsweep.sweeps.open import RESULTS, count_cells, open_results, open_with_journals
from faultsweep.sweeps.runner.progress import format_seconds
from faultsweep.sweeps.store.newest import Newest

from faultsweep.errors import InputError

LOOK_EVERY_S = 1.0
LOOK_AT_URL_EVERY_S = 15.0
"""A web server is asked for the whole status each time."""
_LAST_LOOK_S = 10.0
"""So long the end waits for a store that is read just now."""


@dataclass(frozen=True)
class Facts:
    """What every page over a store shows, computed once for all."""

    overview: Overview
    sample: Sample
    metrics: list[str]


class FollowedStore:
    """The results of a store, as they are now.

    Attributes
    ----------
    place : path or URL.
    data : results as ``open_results`` gives them; replaced, never changed, when the store has changed.
    share : which share of it is done, and in words; counted once, which takes some time in a store of many cells.
    version : how often it has been replaced.
    is_there : whether it has been opened; ``data`` must not be asked for before.
    may_rerun : whether pages may simulate a run again.
    other : results of the store that it is compared with, None without one.
    """

    def __init__(self, place: str, wait: bool = False, may_rerun: bool = False, other: str = "") -> None:
        """Open the store; InputError if it cannot be, unless it is waited for while there is none."""
        self.place = place
        self.version = 0
        self.may_rerun = may_rerun and "://" not in place
        self.other = with_numbers_and_names(open_results(other)) if other else None
        self._stamp = self._look()
        self.data: xr.Dataset
        self.share: tuple[float, str]
        self._stored: tuple[float, str]
        self._facts: tuple[int, Facts] | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._newest = Newest(Path(place)) if "://" not in place else None
        self.is_there = self._is_behind = False
        if not (wait and "://" not in place and not os.path.lexists(place)):
            if self._newest is not None:
                self._newest.read()
            self._take(self._open())

    def _open(self) -> xr.Dataset:
        found = open_results(self.place) if self._newest is None else open_with_journals(self.place, self._newest)
        return in_one_unit(with_numbers_and_names(found))

    def _take(self, data: xr.Dataset) -> None:
        self.data = data
        self.share = self._stored = describe_share(data)
        self.is_there = True

    def facts(self) -> Facts:
        """Return what every page shows of the store as it is now."""
        with self._lock:
            if self._facts is None or self._facts[0] != self.version:
                data = self.data
                self._facts = (self.version, Facts(make_overview(data), Sample(data), varying(data)))
            return self._facts[1]

    def start(self) -> None:
        """Look at the store now and then, in a thread of its own, until ``stop``."""
        self._thread = threading.Thread(target=self._follow, name="follow the store", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that reads just now would be cut off at the end of the process, with a traceback."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_LAST_LOOK_S)

    def _follow(self) -> None:
        pause = LOOK_AT_URL_EVERY_S if "://" in self.place else LOOK_EVERY_S
        while not self._stopped.wait(pause):
            began = time.monotonic()
            if self.look():
                with suppress(InputError):  # nothing to show, which each page says
                    self.facts()  # here, so that no page waits for it
            self._look_at_run()
            pause = max(pause, 20 * (time.monotonic() - began))  # a large store is not read all the time

    def look(self) -> bool:
        """Open the store again if it, or a journal of its run, has changed; returns whether it has.

        What cannot be read is tried again later.
        """
        stamp = self._look()
        if self._newest is not None and self._newest.read():  # before the store: what leaves journals is in it
            self._is_behind = True
        if stamp == self._stamp and stamp is not None and not self._is_behind:
            return False
        try:
            data = self._open()
        except (InputError, OSError):
            return False
        self._stamp, self._is_behind = stamp, False
        if self.is_there and data["status"].identical(self.data["status"]) and data.attrs == self.data.attrs:
            return False
        self._take(data)
        self.version += 1
        return True

    def _look_at_run(self) -> None:
        """Say how far a run is that writes the store: it knows results that are not in chunks yet."""
        if "://" in self.place or not self.is_there:
            return
        try:
            found = read_run(Path(self.place))
        except (InputError, OSError):
            return
        progress = found["progress"]
        if found["state"] == "running" and progress and progress.get("total"):
            self.share = describe_run(progress, self._stored)
        else:
            self.share = self._stored

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


def describe_run(progress: dict[str, Any], stored: tuple[float, str] = (0.0, "")) -> tuple[float, str]:
    """Return the share that a run has done, and in words how fast it is and what is left.

    A run counts whole tasks, and its journals have each result (``stored``, as ``describe_share`` gives it); large
    stores are read without journals. What says more is said.
    """
    done, total = int(progress["done"]), int(progress["total"])
    share = done / max(1, total)
    words = f"Running: {done:,} of {total:,} simulations are done" if share >= stored[0] else f"Running: {stored[1]}"
    words += f", {progress['failed']:,} failed" if progress.get("failed") else ""
    words += f", {progress['per_s']:.3g} a second" if progress.get("per_s") else ""
    words += f", about {format_seconds(progress['left_s'])} left" if progress.get("left_s") else ""
    return max(share, stored[0]), words


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
