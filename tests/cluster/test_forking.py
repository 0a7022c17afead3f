"""Workers are forked from a process that has what they need, and have the environment of now."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def seen_by_workers(number: int = 2) -> tuple[str | None, bool]:
    """The variable, and whether the workers of a new cluster are forked: all of them, or none."""
    with connect("local", number) as client:
        found = set(client.run(seen).values())
    [(value, line, loaded)] = found
    forked = "multiprocessing.forkserver" in line
    assert loaded or not forked
    return value, forked


def begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start from the environment in which the process began, if it did, without the variable."""
    for begun in forking._begun:
        for name, value in begun.environment.items():
            monkeypatch.setenv(name, value)
    monkeypatch.delenv(NAME, raising=False)


@pytest.fixture(scope="module")
def forked_here():
    """Workers of this process are forked as long as it stays as it is."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        begin_again(monkeypatch)
        assert seen_by_workers() == (None, True)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    begin_again(monkeypatch)


def test_workers_have_the_environment_of_now(monkeypatch):
    assert seen_by_workers() == (None, True)
    monkeypatch.setenv(NAME, "1")
    assert seen_by_workers() == ("1", True)
    monkeypatch.setenv(NAME, "2")
    assert seen_by_workers() == ("2", True)
    monkeypatch.delenv(NAME)
    assert seen_by_workers() == (None, True)


def test_workers_start_from_nothing_where_a_variable_is_gone(forked_here, monkeypatch):
    monkeypatch.setitem(forking._begun[0].environment, NAME, "1")
    assert seen_by_workers(1) == (None, False)


@pytest.mark.parametrize(("name", "value"), [("PYTHONOPTIMIZE", "1"), ("TZ", "Asia/Tokyo"), ("NUMBA_BOUNDSCHECK", "1")])
def test_workers_start_from_nothing_where_they_would_not_see_a_variable(forked_here, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert seen_by_workers(1) == (None, False)


def test_workers_start_from_nothing_where_they_would_have_other_limits(forked_here):
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0 if soft else hard, hard))
    try:
        assert seen_by_workers(1) == (None, soft == hard == 0)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def test_workers_start_from_nothing_where_their_files_would_have_other_rights(forked_here):
    before = os.umask(0o027)
    try:
        assert seen_by_workers(1) == (None, before == 0o027)
    finally:
        os.umask(before)


EARLY = """
import os, sys
from faultsweep.cluster import forking
from faultsweep.cluster.connect import connect

def parent():
    import psutil

    return psutil.Process().ppid(), os.environ["OPENBLAS_NUM_THREADS"]

if __name__ == "__main__":
    forking.begin_early(True)
    begun, early = forking._begun[0].pid, "distributed" not in sys.modules
    with connect("local", 1) as client:
        print(early, set(client.run(parent).values()) == {(begun, "1")})
"""


def test_what_workers_are_forked_from_may_begin_before_dask_is_imported(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(EARLY)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    bare = {name: value for name, value in os.environ.items() if name not in names}
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=bare)
    assert said.stdout == "True True\n"


SIMULATES = """
import sys
import faultsweep as fs

def plain(x):
    return float("faultsweep.sweeps.simulator" in sys.modules)

def naming(x):
    fs.Workload
    return float("faultsweep.sweeps.simulator" in sys.modules)

if __name__ == "__main__":
    fs.Sweep(axes={{"x": [1.0]}}, function={function}, outputs=["y"]).run("s.zarr", workers=1, progress=False)
    print(fs.open_results("s.zarr").y.item())
"""


@pytest.mark.parametrize(("function", "has"), [("plain", "0.0"), ("naming", "1.0")])
def test_workers_have_the_simulator_where_a_function_names_the_package(tmp_path, function, has):
    (tmp_path / "script.py").write_text(SIMULATES.format(function=function))
    command = [sys.executable, "script.py"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == f"{has}\n"


def test_a_sweep_begins_it_before_dask_is_imported(tmp_path):
    script = tmp_path / "script.py"
    text = """
import sys
from unittest.mock import patch
import faultsweep as fs
from faultsweep.cluster import forking

def double(a):
    return 2.0 * a

if __name__ == "__main__":
    early = []
    start = forking._start
    def note(*arguments):
        early.append("distributed" not in sys.modules)
        start(*arguments)

    with patch.object(forking, "_start", note):
        for name in ("a", "a", "b"):
            sweep = fs.Sweep(function=double, axes={"a": [1.0, 2.0]}, outputs=["y"])
            sweep.run(f"{name}.zarr", workers=1, progress=False, results=False)
    print(early)
"""
    script.write_text(text)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert said.stdout == "[True]\n"


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
    """What is forked has NumPy's global generator, which Dask seeds anew, and must have one thread."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert said.stdout == "3 {1} {0}\n"


def test_a_script_has_its_imports_forked():
    assert forking._of_script() <= sys.modules.keys()
    assert not {name for name in forking._of_script() if name.partition(".")[0] not in forking._KNOWN}


ROOT = Path(__file__).resolve().parents[2]
PLACES = """
import sys

sys.path.insert(0, {tree!r})

from faultsweep.cluster.connect import connect

def look():
    import os
    import faultsweep.sweeps.simulator
    import psutil
    forked = "multiprocessing.forkserver" in " ".join(psutil.Process().parent().cmdline())
    return faultsweep.sweeps.simulator.__file__, forked, os.environ.get("PYTHONPATH"), os.environ.get("PYTHONSAFEPATH")

if __name__ == "__main__":
    with connect("local", 1) as client:
        print(*client.run(look).values())
"""


def run(script, folder=None, **variables):
    """Run a script in a folder, or in its own, and return what it says."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    command, folder = [sys.executable, script], folder or script.parent
    return subprocess.run(
        command, cwd=folder, env=environment | variables, stdout=subprocess.PIPE, text=True, timeout=100, check=True
    ).stdout


def test_forked_workers_have_the_modules_of_the_script(tmp_path):
    """Of two versions of the simulator, theirs has to be the one of the script."""
    tree = tmp_path / "tree"
    for part in ("faultsweep", "simcore", "sweeps", "cluster"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "script.py"
    script.write_text(PLACES.format(tree=str(tree)))
    assert run(script) == f"{(str(tree / 'sweeps/simulator.py'), True, None, None)}\n"


def test_the_folder_at_hand_has_no_modules_for_workers(tmp_path):
    """The command of an installed package does not look there, either."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("toolz", "yaml", "faultsweep", "psutil"):
        (folder / f"{name}.py").write_text("raise SystemExit('no module of yours')")
    script = tmp_path / "script.py"
    script.write_text(PLACES.format(tree=str(ROOT / "docs")))
    assert run(script, folder) == f"{(str(ROOT / 'sweeps/simulator.py'), True, None, None)}\n"


OTHERS = """
import contextlib
import multiprocessing
import os
import signal
from multiprocessing import forkserver

import psutil
from faultsweep.cluster.connect import connect

def parent():
    return "forked" if "multiprocessing.forkserver" in " ".join(psutil.Process().parent().cmdline()) else "new"

def sweep(name):
    with connect("local", 1) as client:
        print(name, *client.run(parent).values(), flush=True)

def in_child(method):
    child = multiprocessing.get_context(method).Process(target=sweep, args=(method,))
    child.start()
    child.join(30)
    child.kill()

def end_server():
    pid = forkserver._forkserver._forkserver_pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

if __name__ == "__main__":
    {steps}
"""


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("sweep('first'); in_child('fork'); sweep('last')", "first forked fork new last forked"),
        ("sweep('first'); in_child('forkserver'); in_child('spawn')", "first forked forkserver forked spawn forked"),
        ("in_child('forkserver'); sweep('last')", "forkserver forked last new"),
        ("sweep('first'); end_server(); sweep('last')", "first forked last new"),
    ],
)
@pytest.mark.sampled(2)
def test_a_script_may_have_processes_of_its_own(tmp_path, steps, said):
    script = tmp_path / "script.py"
    script.write_text(OTHERS.format(steps=steps))
    assert run(script).split() == said.split()


def test_a_script_may_come_from_standard_input(tmp_path):
    text = OTHERS.format(steps="sweep('first')")
    command = [sys.executable, "-"]
    said = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=100, check=True)
    assert (said.stdout, said.stderr) == ("first forked\n", "")


def test_workers_start_from_nothing_where_there_is_no_place_for_a_socket(tmp_path):
    """The name of a socket has at most 107 bytes."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(OTHERS.format(steps="sweep('first')"))
    assert run(script, TMPDIR=str(folder)) == "first new\n"


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_no_socket(tmp_path):
    """Its worker ends first, when it has given up the scheduler, which may take half a minute."""
    script = tmp_path / "script.py"
    steps = "cluster = connect('local', 1); cluster.__enter__(); os.kill(os.getpid(), signal.SIGKILL)"
    script.write_text(OTHERS.format(steps=steps))
    with tempfile.TemporaryDirectory(prefix="s") as folder:  # the name of a socket is short: 108 bytes at most
        subprocess.run([sys.executable, script], env=os.environ | {"TMPDIR": folder}, check=False)
        end = time.monotonic() + 120
        while list(Path(folder).glob("pymp-*")) and time.monotonic() < end:
            time.sleep(0.1)
        assert not list(Path(folder).glob("pymp-*"))


GARBAGE = """
import gc

def look():
    import gc
    return gc.isenabled(), gc.get_freeze_count() > 10_000

if __name__ == "__main__":
    import sys
    from faultsweep.cluster.connect import connect
    with connect("local", 1) as client:
        print(*client.run(look).values())
    import faultsweep
    faultsweep.Sweep
    print(gc.isenabled(), gc.get_freeze_count(), sorted({"pandas", "pyarrow", "pydantic"} & sys.modules.keys()))
"""


def test_nothing_is_imported_in_vain_and_garbage_is_looked_for(tmp_path):
    """Workers do not look through what they were forked with."""
    script = tmp_path / "script.py"
    script.write_text(GARBAGE)
    assert run(script) == "(True, True)\nTrue 0 []\n"
