"""What a worker process of a cluster started here loads before anything else (``distributed``'s option ``preload``).

It has to come first: a process that changes its clock after it has sent a message can wait for ever to send the next.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

from distributed import batched


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


use_monotonic_clock()
