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


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end what runs as Ctrl-C does: KeyboardInterrupt, so that all is tidied up, and the user is told.

    Where the exception may be dropped, it comes again a moment later. While kernels are compiled that is likely: the
    compiler itself runs no Python but the functions that it calls back, and what those raise is lost. Compiled modules
    that are imported, such as NumPy's, pass over whatever is raised meanwhile.
    """
    main = threading.get_ident()
    if main != threading.main_thread().ident:
        yield
        return
    again: list[threading.Timer] = []

    def end(_number: int, frame: FrameType | None) -> None:
        is_repeated = bool(again)
        again.clear()
        if is_repeated and isinstance(sys.exception(), KeyboardInterrupt):
            return  # it was not dropped: what it ends is being tidied up
        if _is_import(frame):
            come_again()
        raise KeyboardInterrupt

    def come_again() -> None:
        again.append(threading.Timer(_AGAIN_S, signal.pthread_kill, [main, signal.SIGINT]))
        again[-1].daemon = True
        again[-1].start()

    def take(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            come_again()
        else:
            report(dropped)

    is_plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    before = {number: signal.signal(number, end) for number in (_BOTH if is_plain else (signal.SIGTERM,))}
    report = sys.unraisablehook
    sys.unraisablehook = take
    try:
        yield
    finally:
        for timer in again:
            timer.cancel()
        sys.unraisablehook = report
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_import(frame: FrameType | None) -> bool:
    """Tell whether a module is being imported."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


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
