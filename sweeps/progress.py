"""What a running sweep says: a live bar on a terminal, a line now and then elsewhere, and everything in a log file."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

LOG = logging.getLogger("faultsweep.sweep")
_LINE_EVERY_S = 30.0


class Progress:
    """Counts simulations; use as a context manager."""

    def __init__(self, total: int, show: bool = True, already: int = 0) -> None:
        """Prepare to count to ``total``, of which ``already`` were done before."""
        self.total = total
        self.done = already
        self.failed = 0
        self._show = show
        self._already = already
        self._start = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        """Show the bar."""
        if self._show and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            left = TimeRemainingColumn(compact=True)
            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                left,
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("simulations", total=self.total, completed=self.done, note="")
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()

    def add(self, done: int, failed: int = 0) -> None:
        """Count finished simulations."""
        self.done += done
        self.failed += failed
        if self._bar is not None:
            note = f"[red]{self.failed:,} failed" if self.failed else ""
            self._bar.update(self._task, completed=self.done, note=note)
        elif time.monotonic() - self._last > _LINE_EVERY_S:
            self._last = time.monotonic()
            self.say(f"{self.done:,} of {self.total:,} simulations, {self._left()}")

    def _left(self) -> str:
        rate = (self.done - self._already) / max(1e-9, time.monotonic() - self._start)
        return f"about {format_seconds((self.total - self.done) / rate)} left" if rate else "just started"

    def say(self, text: str) -> None:
        """Tell the user, and the log file."""
        LOG.info(text)
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        elif self._show:
            sys.stderr.write(text + "\n")


def format_seconds(seconds: float) -> str:
    """Return a duration in words: "12 s", "3 min", "2.5 h", "4 days"."""
    for limit, unit, size in ((1, "ms", 1e-3), (120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:.3g} days"


def format_bytes(size: float) -> str:
    """Return a size in words: "12 kB", "3.4 GB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


class LogFile:
    """Writes what the package logs to a file, while in use."""

    def __init__(self, path: Path) -> None:
        """Prepare to append to ``path``."""
        self._path = path
        self._handler: logging.Handler | None = None

    def __enter__(self) -> LogFile:
        """Open the file."""
        self._handler = logging.FileHandler(self._path, delay=True)
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._handler.handleError = lambda record: None  # type: ignore[method-assign]  # a full disk is told elsewhere
        LOG.addHandler(self._handler)
        LOG.setLevel(logging.DEBUG)
        LOG.propagate = False
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        if self._handler is not None:
            LOG.removeHandler(self._handler)
            self._handler.close()
