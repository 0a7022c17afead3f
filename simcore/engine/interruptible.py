"""Compiled code that Ctrl-C and SIGTERM need not wait for.

Python answers signals in the main thread, between two of its own instructions, and one scheduling pass on a large
machine with a long queue may take seconds, compiling the kernels a minute. So calls from the main thread are made by
another one, while the main thread waits, which a signal ends. Kernels hold no lock of Python, so heartbeats go on.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from faultsweep.simcore.engine.jit import is_interpreted


class _Helper:
    """A thread that makes calls, one at a time."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._work, name="kernels", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # they are the main thread's
        while (call := self._calls.get()) is not None:
            function, arguments = call
            try:
                self._answers.put((function(*arguments), None))
            except BaseException as error:  # it is the caller's, whatever it is
                self._answers.put((None, error))
            del call, function, arguments  # no state is kept while it waits

    def call(self, function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
        """Return what the function returns and what it raises."""
        self._calls.put((function, arguments))
        return self._answers.get()

    def dismiss(self) -> None:
        """Let the thread end after the call that it is at."""
        self._calls.put(None)


_helper: _Helper | None = None
_abandoned: list[threading.Thread] = []


def interruptible(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function so that a signal in the main thread is answered at once: what its handler raises leaves here.

    What was called goes on to its end then; its result is dropped.
    """
    global _helper
    if threading.current_thread() is not threading.main_thread() or is_interpreted():
        return function(*arguments)
    helper, _helper = _helper or _Helper(), None  # none while it is busy: a signal's handler may call this, too
    try:
        result, error = helper.call(function, *arguments)
    except BaseException:  # of a signal's handler
        helper.dismiss()
        _abandoned.append(helper.thread)
        raise
    _helper = helper
    if error is not None:
        raise error
    return result


def is_abandoned() -> bool:
    """Tell whether a call that was left still goes on: its process is to end without waiting for it."""
    return any(thread.is_alive() for thread in _abandoned)


def _forget() -> None:
    global _helper
    _helper = None


os.register_at_fork(after_in_child=_forget)
