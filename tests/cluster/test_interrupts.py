"""Ctrl-C and SIGTERM end what runs, wherever they arrive."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import pytest
from faultsweep.cluster.interrupts import ended_by_sigterm

NUMBERS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@NUMBERS
def test_a_signal_that_arrives_where_exceptions_are_dropped_comes_again(number, capfd):
    """As while LLVM compiles: Python answers the signal in a function that it calls back."""
    came = []

    @ctypes.CFUNCTYPE(None)
    def called_back():
        os.kill(os.getpid(), number)
        came.append(number)  # at the latest here it is answered

    def compile_it():
        called_back()
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        compile_it()
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_exceptions_that_are_dropped_are_reported_as_ever(monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    with ended_by_sigterm():
        ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert [dropped.exc_type for dropped in reported] == [ZeroDivisionError]
