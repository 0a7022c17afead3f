"""Sweeps for the tests on SLURM: commands, the processes of a job, and waiting for what they do."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from faultsweep import cli

PROGRAM = Path(__file__).resolve().parent.parent / "sweeps" / "script.py"
RUNS = 230
"""Different simulations of ``long_sweep``; until its gate is opened, two workers take half a minute."""
SPEC = """
[fixed]
log = "sdsc-model"
num_jobs = 50
machine = "flat:128"
[axes]
scheduler = ["fcfs", "backfill"]
load_scale = [0.8, 1.0]
"""


def faultsweep(*arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run a command of faultsweep and check its exit code (None: any)."""
    command = [sys.executable, "-P", "-m", "faultsweep", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return _checked(done, code)


def command(*arguments: object, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Do the same in this process, which takes a tenth of the time."""
    out, err = io.StringIO(), io.StringIO()
    given, sys.argv = sys.argv, ["faultsweep", *map(str, arguments)]
    ended = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
    except SystemExit as end:
        ended = int(end.code or 0)
    finally:
        sys.argv = given
    return _checked(subprocess.CompletedProcess(list(arguments), ended, out.getvalue(), err.getvalue()), code)


def _checked(done: subprocess.CompletedProcess[str], code: int | None) -> subprocess.CompletedProcess[str]:
    assert code is None or done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def gated(**settings: Any) -> str:
    """Return the settings of a sweep of functions that sleep for a while each, until ``open_gate``."""
    gate = Path("gate").resolve()
    gate.touch()
    return json.dumps({"sleep_s": 0.25, "gate": str(gate), **settings})


def open_gate() -> None:
    """Let the sweep hurry to its end."""
    Path("gate").unlink()


def submit(*options: object, store: str | Path = "s.zarr") -> str:
    """Submit the program of a gated sweep; returns the number of the job."""
    arguments = ("run", store, gated())
    said = command("submit", PROGRAM, "--store", store, "--json", *options, "--", *arguments).stdout
    return json.loads(said)["job"]


def status(store: Path | str = "s.zarr") -> dict[str, Any]:
    return json.loads(command("status", store, "--json", code=None).stdout)


def wait(what: str, is_there: Callable[[], Any], timeout_s: float = 300.0) -> Any:
    """Wait until ``is_there`` gives something true, and return it."""
    end = time.monotonic() + timeout_s
    while not (found := is_there()):
        if time.monotonic() > end:
            logs = [path.read_text() for path in Path().rglob("job-*.log")]
            raise AssertionError(f"waited {timeout_s:g} s for {what}\n" + "\n".join(logs))
        time.sleep(0.05)
    return found


def progress(what: str, store: Path | str = "s.zarr") -> int:
    """Return a number that the sweep says, such as how many simulations are done; 0 before it says anything."""
    try:
        return int(json.loads(Path(f"{store}.run/progress.json").read_text())[what])
    except (OSError, ValueError):
        return 0


def done(store: Path | str = "s.zarr") -> int:
    """Return how many simulations are done, as the sweep says."""
    return progress("done", store)


def missing_at_starts(store: Path | str = "s.zarr") -> list[int]:
    """Return how many simulations were missing at each start of the sweep."""
    try:
        text = Path(f"{store}.run/log.txt").read_text()
    except FileNotFoundError:
        return []
    return [int(number) for number in re.findall(r": (\d+) of \d+ simulations are missing", text)]


def processes(kind: str) -> list[psutil.Process]:
    """Return the processes of the job that are of a kind: allocation, scheduler, nannies, sweep or worker."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        line = process.info["cmdline"] or []
        mine = (process.info["environ"] or {}).get("SLURM_CONF") == os.environ["SLURM_CONF"]
        if mine and line and "SLURM_JOB_ID" in process.info["environ"] and _is_of(process, line, kind):
            found.append(process)
    return found


def _is_of(process: psutil.Process, line: list[str], kind: str) -> bool:
    if kind == "sweep":
        return line[1:3] == [str(PROGRAM), "run"]
    if kind == "worker":  # forked from a process with its own command line, or started from nothing
        parent = process.parent()
        forked = parent is not None and parent.cmdline() == line and "multiprocessing.forkserver" in " ".join(line)
        return forked or any("spawn_main" in word for word in line)
    return line[1:4] == ["-P", "-m", f"faultsweep.cluster.{kind}"]
