"""Ctrl-C and SIGTERM end what runs, wherever they arrive."""

from __future__ import annotations

import contextlib
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
    """A signal that waits while a module is imported ends what runs once, whatever is handled meanwhile."""
    monkeypatch.delitem(sys.modules, "ending", raising=False)
    (tmp_path / "ending.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\nsum(range(1000))\n")
    monkeypatch.syspath_prepend(tmp_path)
    tidied = []

    def end():
        try:
            import_module("ending")
            time.sleep(10)
        finally:
            with contextlib.suppress(OSError):
                os.remove(tmp_path / "absent")
            time.sleep(0.3)
            tidied.append(True)

    with pytest.raises(KeyboardInterrupt), ended_by_sigterm(), ended_by_sigterm():
        end()
    assert tidied == [True]


def test_a_signal_that_waits_when_the_block_ends_is_answered_there(tmp_path, monkeypatch):
    (tmp_path / "last.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\nsum(range(1000))\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        import_module("last")
    time.sleep(0.2)  # nothing comes after it


@NUMBERS
def test_two_signals_end_what_runs_once(number, tmp_path, monkeypatch):
    two = f"import os\nfor number in ({int(number)}, 2):\n    os.kill(os.getpid(), number)\n    sum(range(1000))\n"
    (tmp_path / "twice.py").write_text(two)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "twice", raising=False)
    came = []

    def go_on():
        try:
            import_module("twice")
            time.sleep(10)
        except KeyboardInterrupt:
            time.sleep(0.3)
            came.append(True)

    with ended_by_sigterm():
        go_on()
    assert came == [True]


def test_sigterm_ends_what_ignores_ctrl_c(tmp_path, monkeypatch):
    """As what is started in the background of a script does."""
    (tmp_path / "ignoring.py").write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGTERM)})\nsum(range(9))\n")
    monkeypatch.syspath_prepend(tmp_path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a fixture of all tests restores it

    def go_on():
        import_module("ignoring")
        time.sleep(10)

    with pytest.raises(KeyboardInterrupt), ended_by_sigterm():
        go_on()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_other_exceptions_that_are_dropped_are_reported_as_ever(monkeypatch):
    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    with ended_by_sigterm():
        ctypes.CFUNCTYPE(None)(lambda: 1 / 0)()
    assert [dropped.exc_type for dropped in reported] == [ZeroDivisionError]
