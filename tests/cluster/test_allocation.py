"""When a batch job gives up: the limits of the site's file. The command is a real process; SLURM is not asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from faultsweep.cluster.allocation import _has_gained
from faultsweep.cluster.phases import NO_SPACE, has_room, read_phase
from faultsweep.sweeps.runner.progress import Progress

from tests.cluster.sweeping import wait
from tests.sweeps.disks import small_disk

__all__ = ["small_disk"]  # a fixture

FAILS = """
import json, pathlib, sys
starts = pathlib.Path("starts")
number = len(starts.read_text()) if starts.exists() else 0
starts.write_text("x" * (number + 1))
pathlib.Path("progress.json").write_text(json.dumps({"done": min(number, int(sys.argv[1]))}))
sys.exit(f"start {number + 1} has failed")
"""
WAITS = """
import json, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
pathlib.Path("progress.json").write_text(json.dumps({"done": 5}))
time.sleep(60)
"""


FULL = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
with open(folder / "starts", "a") as file:
    file.write("x")
if (folder / "fill").exists():
    sys.exit("s.zarr: the disk is full; make room and run again")
"""


def start(folder, limits, program, *arguments, requeued=0, workers=0):
    """Be the first process of a job: without workers, whose nodes there are not, unless the test has an ``srun``."""
    command = [sys.executable, "-P", "-m", "faultsweep.cluster.allocation", *map(str, limits)]
    command += ["--workers-per-node", str(workers)] if workers else ["--elastic"]
    command += ["--folder", str(folder / "slurm"), "--progress", "progress.json"]
    command += ["--", sys.executable, "-c", program, *map(str, arguments)]
    (folder / "slurm").mkdir(mode=0o700)
    environment = {**os.environ, "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(requeued)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)


def pretend(folder, monkeypatch, name, script):
    """Let a command be a shell script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def outcome(folder):
    return json.loads((folder / "slurm" / "outcome.json").read_text())


@pytest.mark.parametrize(("results", "starts"), [(0, 3), (2, 5)])
def test_restarts_without_a_new_result_are_limited(tmp_path, results, starts):
    """Two restarts in a row may bring nothing; every new result allows two more."""
    process = start(tmp_path, ("--max-restarts", 2), FAILS, results)
    assert process.wait(60) == 1
    assert len((tmp_path / "starts").read_text()) == starts
    assert (outcome(tmp_path)["outcome"], outcome(tmp_path)["text"]) == ("failed", f"start {starts} has failed")


def test_a_sweep_that_found_too_little_room_waits_for_more(small_disk):
    """There is a mebibyte, which is enough to say something, and not for its chunks."""
    (small_disk / "fill").write_bytes(bytes(800_000))
    process = start(small_disk, ("--max-restarts", 0), FULL, small_disk)
    wait("the phase", lambda: (read_phase(small_disk / "slurm") or {}).get("phase") == NO_SPACE)
    assert has_room(small_disk)
    time.sleep(6)
    assert (small_disk / "starts").read_text() == "x"
    (small_disk / "fill").unlink()
    assert process.wait(60) == 0
    assert (small_disk / "starts").read_text() == "xx"


@pytest.mark.parametrize(("code", "starts"), [(2, 1), (75, 2)])
def test_what_may_work_later_is_tried_again_and_wrong_input_is_not(tmp_path, code, starts):
    program = f"import pathlib, sys; pathlib.Path('starts').open('a').write('x'); sys.exit({code})"
    start(tmp_path, ("--max-restarts", 1), program).wait(60)
    assert len((tmp_path / "starts").read_text()) == starts


def test_a_step_of_workers_that_never_starts_ends_the_job_with_its_last_line(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch, "srun", "echo '0: No module named faultsweep' >&2; exit 1")
    process = start(tmp_path, ("--max-restarts", 0), WAITS, workers=1)
    assert process.wait(100) == 1
    text = "the step of the workers ends as soon as it starts: 0: No module named faultsweep"
    assert (outcome(tmp_path)["outcome"], outcome(tmp_path)["text"]) == ("failed", text)


def test_a_requeue_waits_for_a_controller_that_is_away(tmp_path, monkeypatch):
    away = 'echo "slurm_requeue error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
    pretend(tmp_path, monkeypatch, "scontrol", f"echo x >> asked; [ $(wc -l < asked) -gt 1 ] || {{ {away}; }}")
    process = start(tmp_path, (), WAITS)
    while not (tmp_path / "progress.json").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    end = time.monotonic() + 60
    while not (asked := (tmp_path / "asked").exists() and (tmp_path / "asked").read_text()) or len(asked) < 4:
        assert process.poll() is None, outcome(tmp_path)
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.5)
    process.terminate()
    assert process.wait(60) == 0
    assert outcome(tmp_path)["outcome"] == "requeued"


def test_a_requeue_that_nobody_has_answered_ends_with_the_job(tmp_path, monkeypatch):
    pretend(tmp_path, monkeypatch, "scontrol", 'touch asked; echo "Unable to contact slurm controller" >&2; exit 1')
    process = start(tmp_path, (), WAITS)
    while not (tmp_path / "progress.json").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    while not (tmp_path / "asked").exists():
        time.sleep(0.02)
    process.terminate()
    assert process.wait(60) == 1
    assert outcome(tmp_path)["outcome"] == "stopped"
    assert "SLURM's controller does not answer" in outcome(tmp_path)["text"]


@pytest.mark.parametrize("requeued", [1, 2])
def test_requeues_are_limited(tmp_path, monkeypatch, requeued):
    """At the limit the job ends instead; below it, it asks SLURM, which is not there and so does not take it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    process = start(tmp_path, ("--max-requeues", 2), WAITS, requeued=requeued)
    while not (tmp_path / "progress.json").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 1
    assert outcome(tmp_path)["outcome"] == "stopped"
    sentence = "the job was requeued 2 times (max_requeues)" if requeued == 2 else "SLURM would not requeue the job"
    assert sentence in outcome(tmp_path)["text"]


def test_a_job_looks_at_its_clock_where_nobody_warns_it(tmp_path, monkeypatch):
    """PBS sends no signal before the walltime."""
    (tmp_path / "unkind.py").write_text(
        "from faultsweep.cluster.batch_systems.slurm import *\n"
        "from faultsweep.cluster.batch_systems.common import BatchSystemError\n"
        "seconds_left = lambda: 6.0\n"
        "def requeue(job, folder):\n    raise BatchSystemError('not here')\n"
        "TITLE, JOB_VARIABLE, OPTIONS, LOOK, END = 'Unkind', 'SLURM_JOB_ID', 'sbatch', 'look', 'end'\n"
    )
    monkeypatch.setenv("FAULTSWEEP_BATCH_SYSTEM", str(tmp_path / "unkind.py"))
    process = start(tmp_path, ("--grace", 5), WAITS)
    assert process.wait(100) == 1
    text = process.stdout.read()
    assert "the walltime is near: saving" in text or "no simulation ended within a whole walltime" in text
    assert outcome(tmp_path)["outcome"] in ("stopped", "failed")


RECOMPUTES = """
import json, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
pathlib.Path("progress.json").write_text(json.dumps({"already": 0, "done": int(sys.argv[1])}))
time.sleep(60)
"""


@pytest.mark.parametrize(("results", "sentence"), [(0, "within a whole walltime"), (3, "would not requeue the job")])
def test_results_count_where_fewer_are_there_than_an_earlier_job_had(tmp_path, monkeypatch, results, sentence):
    """As with --recompute: the file of the run before says that all is done."""
    monkeypatch.setenv("PATH", str(tmp_path))
    progress = tmp_path / "progress.json"
    progress.write_text('{"already": 0, "done": 9}')
    process = start(tmp_path, (), RECOMPUTES, results)
    while json.loads(progress.read_text() or '{"done": 9}')["done"] == 9:
        time.sleep(0.02)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(60) == 1
    assert sentence in outcome(tmp_path)["text"]


def test_a_sweep_says_what_was_there_when_it_began(tmp_path):
    file = tmp_path / "progress.json"
    with Progress(10, show=False, already=2, file=file) as progress:
        first = json.loads(file.read_text())
        progress.add(1)
    assert not _has_gained({}, first)
    assert _has_gained(first, json.loads(file.read_text()))
