"""Ctrl-C and SIGTERM: what they end, and when they have to wait."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

_BOTH = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does: KeyboardInterrupt, so that all is tidied up, and the user is told."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupts_wait() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C and SIGTERM wait until the block is over; yields what tells whether one of them has come.

    Processes that are started in it never see Ctrl-C: the terminal sends it to all, and the client answers it. They
    inherit the mask of the thread that starts them, as threads do. The mask alone would not make Ctrl-C wait: a thread
    without it takes the signal, and Python lets the main thread answer.
    """
    resource_tracker.ensure_running()  # whichever thread starts it takes SIGINT out of its mask
    came: list[int] = []
    handlers = {}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _BOTH}
    try:
        yield lambda: bool(came) or signal.SIGINT in signal.sigpending()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if came:
            signal.raise_signal(came[0])
