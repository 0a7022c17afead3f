"""Ctrl-C and SIGTERM end what runs, wherever they arrive."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import textwrap
import time
from importlib import import_module

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


@NUMBERS
def test_a_signal_that_a_module_drops_while_it_is_imported_comes_again(number, tmp_path, monkeypatch):
    """As compiled modules do that try something at first, NumPy's random numbers among them."""
    dropping = """
        import os
        try:
            os.kill(os.getpid(), {number})
            sum(range(1000))  # at the latest here it is answered
        except BaseException:
            pass
    """
    (tmp_path / "dropping.py").write_text(textwrap.dedent(dropping).format(number=int(number)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dropping", raising=False)

    def go_on():
        import_module("dropping")
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        go_on()


@NUMBERS
def test_what_ends_is_tidied_up_without_another_signal(number, tmp_path, monkeypatch):
    """A signal that is answered while a module is imported does not come again."""
    (tmp_path / "ending.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\nsum(range(1000))\n")
    monkeypatch.syspath_prepend(tmp_path)
    tidied = []

    def end():
        try:
            import_module("ending")
        finally:
            time.sleep(0.3)
            tidied.append(True)

    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        end()
    assert tidied == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_exceptions_that_are_dropped_are_reported_as_ever(monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    with ended_by_sigterm():
        ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert [dropped.exc_type for dropped in reported] == [ZeroDivisionError]
