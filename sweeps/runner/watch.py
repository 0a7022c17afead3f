"""Whether a cluster is still there, its scheduler and at least one worker: whoever waits for a task asks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from faultsweep.cluster.connect import is_local, mend_workers
from faultsweep.sweeps.runner.progress import format_seconds
from faultsweep.sweeps.runner.task import tasks_begun

LOCAL_ABSENCE_S = 120.0
"""A run on worker processes of its own stops when there has been none of them for so long."""
ABSENCE_S = 600.0
"""A run on another cluster stops when, after the first, there has been no worker for so long."""
IDLE_S = 120.0
"""Tasks that no worker is at for so long, while there are workers and no result comes, are handed out again."""
MOST_IDLE = 5
"""Times in a row that this happens, after which a run on workers of its own gives up."""
QUIET_S = 600.0
"""A run without a result for so long says what it waits for, and again after as long."""
_SILENT_S = 5.0
_ANSWER_S = 10.0


class SweepStoppedError(Exception):
    """A run ended before the sweep did; what is finished is in the store. The text says why, and how to go on."""

    exit_code = 1


class InterruptedSweepError(SweepStoppedError):
    """The user stopped the run."""

    exit_code = 130


class Watch:
    """Looks after the cluster of a client.

    Attributes
    ----------
    client, local : the client; whether its workers are processes started for this run.
    limit_s : for how long there may be no worker.
    is_mended : whether workers that are gone for good are replaced by this process.
    had_workers : whether there has been any.
    """

    def __init__(self, client: Any, local: bool) -> None:
        """Take both."""
        self.client, self.local = client, local
        self.limit_s = LOCAL_ABSENCE_S if local else ABSENCE_S
        self.is_mended = is_local(client.cluster)
        self._gone: dict[Any, float] = {}
        self._lost_since: float | None = None
        self._seen = time.monotonic()
        self._told: float | None = None
        self.had_workers = False

    def threads(self) -> dict[str, int]:
        """Return the workers with their threads.

        Raises
        ------
        SweepStoppedError
            The scheduler cannot be reached, or does not answer.
        """
        try:
            found = dict(self.client.nthreads(callback_timeout=ABSENCE_S))
        except OSError:  # a lost or refused connection, or a TimeoutError
            raise SweepStoppedError("the scheduler has ended") from None
        if found:
            self._seen, self._told, self.had_workers = time.monotonic(), None, True
        return found

    def mend(self) -> None:
        """Replace worker processes of this machine that are gone for good."""
        if self.is_mended:
            self._gone = mend_workers(self.client.cluster, self._gone)

    def tasks_begun(self, run_id: str) -> tuple[dict[int, float], bool]:
        """Ask all workers which tasks of a run they are at; returns these with seconds, and whether all have answered.

        A worker answers beside what it runs, unless that is native code that keeps the interpreter.
        """
        answers: dict[str, Any] = {}
        complete = threading.Event()

        def ask() -> None:
            with contextlib.suppress(Exception):
                answers.update(self.client.run(tasks_begun, run_id, on_error="return"))
                complete.set()

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_ANSWER_S)
        told = [answer for answer in list(answers.values()) if isinstance(answer, dict)]
        return dict(one for tasks in told for one in tasks.items()), complete.is_set() and len(told) == len(answers)

    def check_scheduler(self) -> None:
        """Give up when the scheduler has been out of reach for a while."""
        if self.client.status == "running":
            self._lost_since = None
            return
        self._lost_since = self._lost_since or time.monotonic()
        if self.client.status == "closed" or time.monotonic() - self._lost_since > _SILENT_S:
            raise SweepStoppedError("the scheduler has ended")

    def say_absence(self, say: Callable[[str], None]) -> None:
        """Say that there is no worker, at once and now and then; a batch system may take days to start the first."""
        now = time.monotonic()
        if self._told is None:
            say("waiting for workers (Ctrl-C stops)")
        elif now - self._told > QUIET_S:
            say(f"no worker for {format_seconds(now - self._seen)}; waiting for one (Ctrl-C stops)")
        else:
            return
        self._told = now

    def check_absence(self) -> None:
        """Give up when there has been no worker for a while."""
        if time.monotonic() - self._seen > self.limit_s:
            raise SweepStoppedError(f"there has been no worker for {format_seconds(self.limit_s)}")
