"""Processes that end with the one that started them, and that are started again when they die."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
_RESTART_PAUSES_S = (0.2, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEADY_S = 60.0
"""A process that ran so long was sound: early ends are counted anew."""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def log(text: str) -> None:
    """Write ``text`` to standard output, which is the log of a batch job; a full disk ends no job."""
    with contextlib.suppress(OSError):
        sys.stdout.write(text)
        sys.stdout.flush()


def say(text: str) -> None:
    """Write a line with the time into the log."""
    log(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


def start(command: Sequence[str], **options: Any) -> subprocess.Popen:
    """Start a process; on Linux the kernel kills it when this one is killed (call it from the main thread)."""
    if sys.platform == "linux":
        options["preexec_fn"] = _end_with_parent
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)  # noqa: S603 - a list, no shell


def end(process: subprocess.Popen | None, patience_s: float = 5.0) -> None:
    """End a process: kindly, then not."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a call of the kernel that does not return holds it
            process.wait(patience_s)


class Kept:
    """A process that is started again when it ends, at growing intervals; ``early`` counts ends soon after a start."""

    def __init__(self, command: Sequence[str], make: Callable[[Sequence[str]], subprocess.Popen] = start) -> None:
        """Start it; ``make`` starts a process."""
        self.command = list(command)
        self.early = 0
        self._make = make
        self._start()

    def _start(self) -> None:
        self.process: subprocess.Popen = self._make(self.command)
        self._started = time.monotonic()
        self._ended: float | None = None

    def look(self) -> int | None:
        """Start it again if it has ended and the pause is over; returns how it ended when that is noticed."""
        code = self.process.poll()
        if code is None:
            return None
        now = time.monotonic()
        if self._ended is None:
            self._ended = now
            self.early = 0 if now - self._started > _STEADY_S else self.early + 1
            return code
        if now - self._ended > _RESTART_PAUSES_S[min(max(self.early - 1, 0), len(_RESTART_PAUSES_S) - 1)]:
            self._start()
        return None

    def end(self) -> None:
        """End it for good."""
        end(self.process)

    def wait(self, patience_s: float) -> None:
        """Let it end by itself, for a while."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience_s)


def main() -> None:
    """Keep a command running until SIGTERM, or until it ends with 0: ``python -m faultsweep.cluster.processes CMD``."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kept = Kept(sys.argv[1:])
    try:
        while True:
            code = kept.look()
            if code == 0:
                return
            if code is not None:
                say(f"{' '.join(kept.command[:4])} ended with {code}; it is started again")
            time.sleep(0.1)
    finally:
        kept.end()


if __name__ == "__main__":
    main()
