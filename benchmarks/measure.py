"""How benchmarks measure: processor time, which other programs on the machine hardly change."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def processor_time(call: Callable[[], _T]) -> tuple[float, _T]:
    """Return the processor time of a call in this thread, s, and what it returned."""
    began = time.thread_time()
    result = call()
    return time.thread_time() - began, result
