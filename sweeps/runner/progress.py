"""What a running sweep says: a live bar on a terminal, a line now and then elsewhere, and everything in a log file."""

from __future__ import annotations

import contextlib
import html
import json
import logging
import math
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faultsweep.terminal import make_console, plain

LOG = logging.getLogger("faultsweep.sweep")
PROGRESS = "progress.json"
"""File beside a store that says how far a run is, for whoever asks from another machine."""
STARTING, COMPILING, RUNNING = "starting workers", "compiling", "running"
WAITING, SAVING = "waiting for workers", "saving"
"""Phases of a run, as the progress file and ``faultsweep status`` name them."""
_LINE_EVERY_S = 30.0
_FILE_EVERY_S = 2.0
_NOTEBOOK_S = 0.3
_BLOCK_S = 1.0
_BLOCK_RUNS = 8
_BLOCKS = 15


class Pace:
    """How long a simulation takes lately: the median over the latest blocks of finished ones.

    Only time at work counts, so neither compiling nor waiting for workers makes an estimate longer; and one stall (of a
    disk, say) is one block of fifteen. A block has at least 8 simulations and takes at least a second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing counts before ``work``."""
        self._clock = clock
        self._since: float | None = None
        self._worked_s = 0.0
        self._done = 0
        self._block_start_s = 0.0
        self._block_done = 0
        self._blocks: deque[float] = deque(maxlen=_BLOCKS)

    def work(self) -> None:
        """Start the clock."""
        if self._since is None:
            self._since = self._clock()

    def rest(self) -> None:
        """Pause the clock."""
        self._worked_s = self.worked_s()
        self._since = None

    @property
    def resting(self) -> bool:
        """Tell whether time does not count now."""
        return self._since is None

    def worked_s(self) -> float:
        """Return the time at work so far."""
        return self._worked_s + (self._clock() - self._since if self._since is not None else 0.0)

    def add(self, done: int) -> None:
        """Count finished simulations."""
        self._done += done
        self._block_done += done
        now = self.worked_s()
        took = now - self._block_start_s
        if took >= _BLOCK_S and self._block_done >= _BLOCK_RUNS:
            self._blocks.append(took / self._block_done)
            self._block_start_s, self._block_done = now, 0

    def seconds_each(self) -> float | None:
        """Return the wall time per simulation lately, None before the first; until there are three blocks, the mean."""
        if len(self._blocks) >= 3:
            return statistics.median(self._blocks)
        return self.worked_s() / self._done if self._done else None


class Progress:
    """Counts simulations and estimates the time that is left; use as a context manager."""

    def __init__(self, total: int, show: bool = True, already: int = 0, file: Path | None = None) -> None:
        """Prepare to count to ``total``, of which ``already`` were done before; ``file`` is kept up to date."""
        self.total = total
        self.done = self.already = already
        self.failed = 0
        self.workers = 0
        self.worker_bytes = 0
        self.phase = STARTING
        self._since = time.time()
        self._file = file
        self._last_file = -math.inf
        self.pace = Pace()
        self._show = show
        self._last_line = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._notebook: NotebookBar | None = None

    def __enter__(self) -> Progress:
        """Show the bar."""
        if self._show and is_notebook():
            self._notebook = NotebookBar()
            self._show_in_notebook()
        elif self._show and sys.stderr.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
                TextColumn("{task.fields[note]}"),
                console=make_console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("simulations", total=self.total, completed=self.done, left="", note="")
        self._write_file()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the bar as it stands."""
        self._show_in_notebook(is_over=True)
        if self._bar is not None:
            self._bar.stop()
        self._write_file(is_over=True)
        if self.worker_bytes:
            LOG.info(
                "a worker took at most %s of memory; %s each will do",
                format_bytes(self.worker_bytes),
                format_bytes(recommend_memory(self.worker_bytes)),
            )

    def enter(self, phase: str) -> None:
        """Say at once which phase the run is in now, and since when."""
        if phase != self.phase:
            LOG.info("phase: %s", phase)
            self.phase, self._since = phase, time.time()
            self._write_file()

    def _write_file(self, is_over: bool = False) -> None:
        """Say in the file how far this is."""
        if self._file is None:
            return
        self._last_file = time.monotonic()
        each = self.pace.seconds_each()
        content = {
            "time": time.time(),
            "total": self.total,
            "done": self.done,
            "already": self.already,
            "failed": self.failed,
            "workers": 0 if is_over else self.workers,
            "per_s": 1 / each if each and not is_over else None,
            "left_s": (self.total - self.done) * each if each and not (self.pace.resting or is_over) else None,
            "worker_bytes": self.worker_bytes,
            "phase": "over" if is_over else self.phase,
            "since": self._since,
            "is_over": is_over,
        }
        with contextlib.suppress(OSError):  # a full disk stops the sweep elsewhere
            draft = self._file.with_name(f"{self._file.name}.partial")
            draft.write_text(json.dumps(content))
            os.replace(draft, self._file)

    def add(self, done: int, failed: int = 0) -> None:
        """Count finished simulations."""
        self.done += done
        self.failed += failed
        self.pace.add(done)
        self.show()

    def show(self) -> None:
        """Bring the bar up to date, or print a line if the last one is half a minute old; and the file."""
        if time.monotonic() - self._last_file > _FILE_EVERY_S:
            self._write_file()
        failed = f"{self.failed:,} failed" if self.failed else ""
        if self._notebook is not None:
            self._show_in_notebook()
        elif self._bar is not None:
            note = f"[red]{failed}" if failed else ""
            self._bar.update(self._task, completed=self.done, left=self.left(), note=note)
        elif time.monotonic() - self._last_line > _LINE_EVERY_S:
            self._last_line = time.monotonic()
            parts = (f"{self.done:,} of {self.total:,} simulations", failed, self.left())
            self.say(", ".join(filter(None, parts)))

    def _show_in_notebook(self, is_over: bool = False) -> None:
        """Bring the bar of a notebook up to date."""
        if self._notebook is not None:
            failed = f"{self.failed:,} failed" if self.failed else ""
            parts = (f"{self.done:,} of {self.total:,} simulations", failed, "" if is_over else self.left())
            self._notebook.update(self.done, self.total, ", ".join(filter(None, parts)), at_once=is_over)

    def left(self) -> str:
        """Return in words how long the rest will take."""
        if self.pace.resting:
            return "waiting"
        each = self.pace.seconds_each()
        if each is None:
            return "just started"
        seconds = max(1.0, (self.total - self.done) * each)
        return f"about {format_seconds(float(f'{seconds:.2g}'))} left"

    def say(self, text: str) -> None:
        """Tell the user, and the log file."""
        LOG.info(text)
        if self._bar is not None:
            self._bar.console.print(text, highlight=False)
        elif self._show:
            sys.stderr.write(plain(text) + "\n")


def is_notebook() -> bool:
    """Tell whether this runs in a notebook, whose front end shows HTML."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """A bar in the output of a notebook's cell; it needs no widgets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare; nothing is shown before the first update."""
        self._clock = clock
        self._handle: Any = None
        self._last = -math.inf

    def update(self, done: int, total: int, text: str, at_once: bool = False) -> None:
        """Show how far it is, a few times a second at most."""
        if not at_once and self._clock() - self._last < _NOTEBOOK_S:
            return
        from IPython.display import HTML, display

        self._last = self._clock()
        bar = HTML(f'<progress value="{done}" max="{max(1, total)}"></progress> {html.escape(text)}')
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)


def recommend_memory(worker_bytes: int) -> int:
    """Return the memory to ask for per worker: a quarter more than the most that one took, in whole 100 MB."""
    return math.ceil(1.25 * worker_bytes / 1e8) * 100_000_000


def format_count(count: float, what: str) -> str:
    """Return a number with what it counts, in the singular for one: 1 cell, 1,200 cells."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


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
            with contextlib.suppress(OSError):  # a full disk
                self._handler.close()
