"""Whether a cluster is still there, its scheduler and at least one worker: whoever waits for a task asks."""

from __future__ import annotations

import time
from typing import Any

from faultsweep.cluster.connect import is_local, mend_workers
from faultsweep.sweeps.runner.progress import format_seconds

LOCAL_ABSENCE_S = 120.0
"""A run on worker processes of its own stops when there has been none of them for so long."""
ABSENCE_S = 600.0
"""A run on another cluster stops when, after the first, there has been no worker for so long."""
_SILENT_S = 5.0


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
    """

    def __init__(self, client: Any, local: bool) -> None:
        """Take both."""
        self.client, self.local = client, local
        self.limit_s = LOCAL_ABSENCE_S if local else ABSENCE_S
        self.is_mended = is_local(client.cluster)
        self._gone: dict[Any, float] = {}
        self._lost_since: float | None = None
        self._seen = time.monotonic()

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
            raise SweepStoppedError("the scheduler is gone") from None
        if found:
            self._seen = time.monotonic()
        return found

    def mend(self) -> None:
        """Replace worker processes of this machine that are gone for good."""
        if self.is_mended:
            self._gone = mend_workers(self.client.cluster, self._gone)

    def check_scheduler(self) -> None:
        """Give up when the scheduler has been out of reach for a while."""
        if self.client.status == "running":
            self._lost_since = None
            return
        self._lost_since = self._lost_since or time.monotonic()
        if self.client.status == "closed" or time.monotonic() - self._lost_since > _SILENT_S:
            raise SweepStoppedError("the scheduler is gone")

    def check_absence(self) -> None:
        """Give up when there has been no worker for a while."""
        if time.monotonic() - self._seen > self.limit_s:
            raise SweepStoppedError(f"there has been no worker for {format_seconds(self.limit_s)}")
