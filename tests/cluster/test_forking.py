"""Workers are forked from a process that has what they need, and have the environment of now."""

import os
import subprocess
import sys

import psutil
import pytest
from faultsweep.cluster import forking
from faultsweep.cluster.connect import connect

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux alone")
NAME = "FAULTSWEEP_TEST_OF_FORKING"


def seen() -> tuple[str | None, str, bool]:
    """A variable of a worker, the command line of where it comes from, and whether the simulator is there."""
    parent = psutil.Process().parent()
    return os.environ.get(NAME), " ".join(parent.cmdline()), "faultsweep.sweeps.simulator" in sys.modules


def seen_by_workers() -> tuple[str | None, bool]:
    """The variable, and whether the workers of a new cluster are forked."""
    with connect("local", 2) as client:
        (value, line, loaded), other = client.run(seen).values()
    assert (value, line, loaded) == other
    forked = "multiprocessing.forkserver" in line
    assert loaded or not forked
    return value, forked


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """Start from the environment in which the process began, if it did, without the variable."""
    for name, value in forking._begun_with.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(NAME, raising=False)


def test_workers_have_the_environment_of_now(monkeypatch):
    assert seen_by_workers() == (None, True)
    monkeypatch.setenv(NAME, "1")
    assert seen_by_workers() == ("1", True)
    monkeypatch.setenv(NAME, "2")
    assert seen_by_workers() == ("2", True)
    monkeypatch.delenv(NAME)
    assert seen_by_workers() == (None, True)


def test_workers_start_from_nothing_where_a_variable_is_gone(monkeypatch):
    assert seen_by_workers() == (None, True)
    monkeypatch.setitem(forking._begun_with, NAME, "1")
    assert seen_by_workers() == (None, False)


def test_workers_start_from_nothing_where_their_python_would_be_another_one(monkeypatch):
    assert seen_by_workers() == (None, True)
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    assert seen_by_workers() == (None, False)


SCRIPT = """
import signal
from pathlib import Path
from numpy import random
import psutil
from faultsweep.cluster.connect import connect

def look():
    blocked = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("SigBlk"))
    terminated = int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1
    return random.random(), psutil.Process().parent().num_threads(), terminated

if __name__ == "__main__":
    with connect("local", 3) as client:
        numbers, threads, blocked = zip(*client.run(look).values())
    print(len(set(numbers)), set(threads), set(blocked))
"""


def test_forked_workers_draw_different_numbers_and_end_on_sigterm(tmp_path):
    """What is forked has NumPy's global generator, and must have one thread."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert said.stdout == "3 {1} {0}\n"


def test_a_script_has_its_imports_forked():
    assert forking._of_script() <= sys.modules.keys()
    assert not {name for name in forking._of_script() if name.partition(".")[0] not in forking._KNOWN}
