"""Advancing a run and timing it; going through it instant by instant to time the scheduling, or to check the state."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.engine.state import ALL_DONE, CONTINUE
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS

Advance = Callable[[Any, int], int]
"""What runs a state by up to a number of instants and returns why it stopped: ``engine.advance``, or one of these."""


class Meter:
    """Advances a run and adds up the processor time of the threads that do it.

    The time of a whole process has to be added up over all its threads: on a busy machine that takes up to 0.1 ms.

    Attributes
    ----------
    taken_s : the time so far, s.
    """

    def __init__(self, advance_on: Advance = advance) -> None:
        """Advance runs by ``advance_on``."""
        self._advance_on = advance_on
        self.taken_s = 0.0

    def __call__(self, state: Any, budget: int) -> int:
        """Run up to ``budget`` instants."""
        began = time.thread_time()
        try:
            return self._advance_on(state, budget)
        finally:
            self.taken_s += time.thread_time() - began


_CALLS = 100  # empty calls whose least time is the cost of a call


class Stopwatch:
    """Measures the processor time of every instant: its events and its scheduling pass.

    The cost of a call from Python, found with empty calls, is left out.

    Attributes
    ----------
    passes_s : the times so far, s.
    """

    def __init__(self, state: Any, advance_on: Advance = advance) -> None:
        """Measure what a call costs; ``state`` is not changed."""
        self._advance_on = advance_on
        self.passes_s: list[float] = []
        self._call_s = 0.0
        self._call_s = min(self._timed(state, 0)[1] for _ in range(_CALLS))

    def advance(self, state: Any, budget: int) -> int:
        """Run up to ``budget`` instants one by one."""
        code, until = CONTINUE, time.monotonic_ns() + RETURN_AFTER_NS
        for _ in range(budget):
            code, took = self._timed(state, 1)
            self.passes_s.append(took)
            if code != CONTINUE or time.monotonic_ns() >= until:
                break
        return code

    def _timed(self, state: Any, budget: int) -> tuple[int, float]:
        began = time.thread_time_ns()
        code = int(self._advance_on(state, budget))
        return code, max(0.0, (time.thread_time_ns() - began) * 1e-9 - self._call_s)


def checked(advance_on: Advance, check: Callable[[Any], None]) -> Advance:
    """Return an advance that goes instant by instant and calls ``check`` after each."""

    def advance_and_check(state: Any, budget: int) -> int:
        code, until = CONTINUE, time.monotonic_ns() + RETURN_AFTER_NS
        for _ in range(budget):
            code = advance_on(state, 1)
            if code in (CONTINUE, ALL_DONE):
                check(state)
            if code != CONTINUE or time.monotonic_ns() >= until:
                break
        return code

    return advance_and_check
