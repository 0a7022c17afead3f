"""What a worker process of a cluster started here loads before anything else (``distributed``'s option ``preload``).

It has to come first: a process that changes its clock after it has sent a message can wait for ever to send the next.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from distributed import batched

_HEARTBEAT_MS = 5000.0


def use_monotonic_clock() -> None:
    """Let ``distributed`` pace its messages by a clock that does not jump.

    It compares time.time() with a deadline; a clock that is set back by a day stops all messages for a day (2026.8).
    """
    if hasattr(batched, "time"):
        batched.time = time.monotonic


def dask_setup(worker: Any) -> None:
    """Let a worker ignore Ctrl-C, too: the terminal sends it to all processes, and the client alone answers it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _slow_down(worker)


def _slow_down(worker: Any) -> None:
    """Let a worker report how it is every few seconds, as those of clusters of 800 do.

    Dask has those of small ones do it twice a second, most of what they and their scheduler do in long tasks, and on a
    busy machine that takes time from the tasks. A worker that ends is noticed by its connection.
    """
    timer, report = worker.periodic_callbacks.get("heartbeat"), worker.heartbeat
    if timer is None:
        return

    async def report_and_rest() -> None:
        await report()
        timer.callback_time = max(timer.callback_time, _HEARTBEAT_MS)

    timer.callback = report_and_rest


def let_rest(scheduler: Any) -> None:
    """Stop two checks that a scheduler makes four times a second: whether it has been idle for too long, or without
    workers. A sweep makes its own. Call it in the scheduler's event loop."""
    for name in ("idle-timeout", "no-workers-timeout"):
        timer = scheduler.periodic_callbacks.pop(name, None)
        if timer is not None:
            timer.stop()


use_monotonic_clock()
