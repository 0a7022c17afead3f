"""Ctrl-C and SIGTERM: what they end, and when they have to wait."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

_AGAIN_S = 0.05
_BOTH = (signal.SIGINT, signal.SIGTERM)
_MOST_WAITS = 40


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does: KeyboardInterrupt, so that all is tidied up, and the user is told.

    While a module is imported it waits, two seconds at most: compiled modules such as NumPy's pass over whatever is
    raised then. Where Python can only drop the exception, it comes again a moment later. While kernels are compiled
    that is likely: the compiler itself runs no Python but the functions that it calls back, and what those raise is
    lost. A block within another one changes nothing.
    """
    frame = sys._getframe(2)  # the one that has the block; between are this one and that of contextlib
    if threading.current_thread() is not threading.main_thread() or _Ending.is_begun:
        yield
        return
    ending = _Ending(frame)
    try:
        yield
    finally:
        ending.close()
    if ending.is_due:
        raise KeyboardInterrupt


class _Ending:
    """What answers Ctrl-C and SIGTERM from now on until it is closed."""

    is_begun = False

    def __init__(self, block: FrameType) -> None:
        """Begin; an import that the block itself is a part of is none."""
        self.is_due = False
        self._block, self._main = block, threading.get_ident()
        self._is_closed = self._is_coming = False
        self._waits = 0
        self._timer: threading.Timer | None = None
        handler = signal.getsignal(signal.SIGINT)
        answered = _BOTH if handler is signal.default_int_handler else (signal.SIGTERM,)
        self._before = {number: signal.signal(number, self._end) for number in answered}
        self._report, sys.unraisablehook = sys.unraisablehook, self._take
        _Ending.is_begun = True

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.is_due = True
        if self._is_closed:
            return
        if self._waits < _MOST_WAITS and self._is_import(frame):
            self._waits += 1
            self._come_again(number)
            return
        self.is_due, self._waits = False, 0
        raise KeyboardInterrupt

    def _take(self, dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            self._report(dropped)
            return
        self.is_due = True
        self._come_again(next(iter(self._before)))

    def _is_import(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self._block:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                return True
            frame = frame.f_back
        return False

    def _come_again(self, number: int) -> None:
        if not self._is_coming:
            self._is_coming = True
            self._timer = threading.Timer(_AGAIN_S, self._send, [number])
            self._timer.daemon = True
            self._timer.start()

    def _send(self, number: int) -> None:
        self._is_coming = False
        signal.pthread_kill(self._main, number)

    def close(self) -> None:
        """Answer no more, as before the beginning; ``is_due`` tells whether a signal is still to be answered."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        sys.unraisablehook = self._report
        for number, handler in self._before.items():
            signal.signal(number, handler)
        _Ending.is_begun = False


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


@contextmanager
def handlers_stay() -> Iterator[None]:
    """Let no import of the block change what Ctrl-C does: dask-jobqueue has it end the process, silently and with exit
    code 0 (0.9)."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)
