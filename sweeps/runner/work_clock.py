"""How long a task has worked: on a busy machine, that is less than the time that has passed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_SCHEDULED = "/proc/thread-self/schedstat"
"""Where Linux tells of a thread for how long it has run, and has waited for a processor, ns."""


class WorkClock:
    """The time since it was made, in the thread that made it, but for pauses."""

    def __init__(self) -> None:
        """Begin at 0."""
        self._began_s, self._waited_s = time.perf_counter(), _waited_s()

    def passed_s(self) -> float:
        """Return the time, s."""
        return time.perf_counter() - self._began_s

    def work_s(self) -> float:
        """Return the time without that for which the thread has waited for a processor, s.

        All else that it waits for counts: sleep, files, other threads and processes. Where the system does not tell, it
        is the time that has passed. To find it takes 10 us.
        """
        waited_s = _waited_s() - self._waited_s  # first: a wait in between counts as work, and is not taken off
        return max(0.0, self.passed_s() - waited_s)

    def is_over(self, most_s: float, most_work_s: float) -> bool:
        """Tell whether so much time has passed, or so much work is done."""
        passed_s = self.passed_s()
        return passed_s > most_s or (passed_s > most_work_s and self.work_s() > most_work_s)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what happens meanwhile."""
        start_s, waited_s = time.perf_counter(), _waited_s()
        try:
            yield
        finally:
            self._waited_s += _waited_s() - waited_s
            self._began_s += time.perf_counter() - start_s


def _waited_s() -> float:
    """Return for how long this thread has waited for a processor since it began, s."""
    try:
        with open(_SCHEDULED, "rb") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0
