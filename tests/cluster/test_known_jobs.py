"""What is said, later and elsewhere, of a job that was submitted; SLURM's answers are scripted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from faultsweep.cluster.batch_systems import slurm
from faultsweep.cluster.submit import Job, read_job
from faultsweep.sweeps.store.lock import Lock

from tests.cluster.sweeping import command

JOB = Job("7", 0.0, "", "1", 1, "", "", "faultsweep-s")


def answer(state, reason="None", name=JOB.name):
    return f"{state}|{reason}|n1|1|1:00|N/A|0:10|{name}\n"


class Answers:
    """What SLURM says of the job (an error is raised), and what it was asked."""

    def __init__(self):
        self.squeue = answer("RUNNING")
        self.asked = []

    def call(self, *words, text=None, timeout_s=None):
        self.asked.append(words)
        if isinstance(self.squeue, Exception):
            raise self.squeue
        if words[0] == "scancel":
            self.squeue = answer("CANCELLED")
        if words[0] == "squeue":
            return self.squeue if JOB.job in words else answer("RUNNING")
        return ""


@pytest.fixture
def answers(monkeypatch, tmp_path):
    """A job was submitted for s.zarr, which it has not made yet."""
    made = Answers()
    monkeypatch.setattr(slurm, "call", made.call)
    monkeypatch.chdir(tmp_path)
    keep("s.zarr")
    return made


def keep(store, **more):
    folder = Path(f"{store}.run/slurm").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.json").write_text(json.dumps({**asdict(JOB), "folder": str(folder), **more}))
    return folder


def status(store="s.zarr", code=None):
    return json.loads(command("status", store, "--json", code=code).stdout)


def test_that_slurm_does_not_answer_is_not_taken_for_an_end(answers):
    known = status(code=3)
    answers.squeue = slurm.BatchSystemError("squeue: SLURM's controller does not answer")
    found = status(code=6)
    assert found["state"] == "unknown"
    assert set(found["job"]) == set(known["job"])
    said = command("status", "s.zarr", code=6).stdout
    assert "job 7: its state is not known here" in said
    assert "does not answer" in said
    for outcome, code in (("requeued", 6), ("stopped", 4)):
        note = {"job": "7", "outcome": outcome, "text": "so it is"}
        Path("s.zarr.run/slurm/outcome.json").write_text(json.dumps(note))
        found = status(code=code)
    assert (found["state"], found["job"]["text"]) == ("idle", "so it is")


def test_the_job_of_another_with_the_same_number_is_left_alone(answers):
    answers.squeue = answer("RUNNING", name="another")
    assert (status()["state"], status()["job"]["state"]) == ("idle", "")
    assert "job 7 was over already" in command("cancel", "s.zarr").stdout
    assert ("scancel", "7") not in answers.asked
    answers.squeue = answer("RUNNING")
    assert "job 7 was cancelled" in command("cancel", "s.zarr").stdout
    assert ("scancel", "7") in answers.asked


def test_accounting_tells_of_a_job_by_number_and_name(answers, monkeypatch):
    lines = {"squeue": "", "sacct": "COMPLETED|n1|0:10|faultsweep-s\n"}
    monkeypatch.setattr(slurm, "call", lambda *words, **_: lines[words[0]])
    assert slurm.job_state("7", "faultsweep-s")["state"] == "COMPLETED"
    assert slurm.job_state("7", "another") == slurm.FORGOTTEN


def test_what_is_known_of_a_job_may_be_damaged_or_its_owners_alone(answers, monkeypatch):
    file = Path("s.zarr.run/slurm/job.json").resolve()
    file.write_text(file.read_text()[:20])
    assert status(code=6)["state"] == "unknown"
    said = command("status", "s.zarr", code=6).stdout
    assert "a job of which nothing is known here" in said
    assert f"{file}: is damaged" in said
    assert "look for the job in the queue, and remove the file" in command("cancel", "s.zarr", code=2).stderr

    access = os.access  # which allows root everything
    monkeypatch.setattr(os, "access", lambda path, mode, **how: path != file and access(path, mode, **how))
    assert "only the user who submitted the job may read" in command("status", "s.zarr", code=6).stdout
    with Lock(Path("s.zarr.run/lock")):
        assert f"running: process {os.getpid()}" in command("status", "s.zarr", code=3).stdout


def test_a_job_that_could_not_start_says_why(answers):
    answers.squeue = answer("FAILED", "JobLaunchFailure")
    sentence = "job 7: failed: SLURM could not start it on the node (JobLaunchFailure)"
    assert sentence in command("status", "s.zarr", code=4).stdout
    assert f"nothing was written by {sentence}" in command("logs", "s.zarr", code=2).stderr
    answers.squeue = answer("CANCELLED", "Resources")
    assert "by job 7: cancelled\n" in command("logs", "s.zarr", code=2).stderr
    answers.squeue = answer("FAILED", "NonZeroExitCode")
    Path("s.zarr.run/slurm/job-7.log").write_text("first\nexec: /nowhere/python: cannot execute\n\n")
    said = command("status", "s.zarr", code=4).stdout
    assert "job 7: failed\n    exec: /nowhere/python: cannot execute\n" in said


def test_a_store_that_was_moved_has_its_log_with_it(answers):
    keep("s.zarr", folder="/where/it/was")
    folder = Path("s.zarr.run/slurm").resolve()
    assert read_job(folder).log == folder / "job-7.log"
    (folder / "job-7.log").write_text("a line\n")
    assert command("logs", "s.zarr").stdout == "a line\n"


def test_a_store_may_have_any_name_and_be_a_link(answers):
    folder = keep("results/foo")
    (folder / "job-7.log").write_text("a line\n")
    Path("link").symlink_to("results/foo")
    Path("link.zarr").symlink_to("results/foo")
    for store in ("results/foo", "link", "link.zarr"):
        assert status(store, code=3)["job"]["job"] == "7"
        assert command("logs", store).stdout == "a line\n"
    assert json.loads(command("cancel", "results/foo", "--json").stdout)["cancelled"] is True
    assert "did you mean 'list'?" in command("logs", "lists", code=2).stderr


def test_cancel_leaves_another_run_of_the_store_alone(answers):
    """A job that sbatch submitted with the script, perhaps, of which the folder knows nothing."""
    credentials = Path("s.zarr.run/slurm/8-0-1")
    credentials.mkdir()
    lock = "import sys, time, pathlib; from faultsweep.sweeps.store.lock import Lock; Lock(pathlib.Path(sys.argv[1]))"
    program = f"{lock}.acquire(); print('taken', flush=True); time.sleep(60)"
    other = subprocess.Popen(
        [sys.executable, "-c", program, "s.zarr.run/lock"],
        env={**os.environ, "SLURM_JOB_ID": "8"},
        stdout=subprocess.PIPE,
    )
    try:
        other.stdout.readline()
        answers.squeue = answer("COMPLETED")
        said = command("cancel", "s.zarr").stdout
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    assert said.startswith(f"job 7 was over already; process {other.pid} on ")
    assert "(batch job 8) has the store and goes on" in said
    assert credentials.exists()
    assert not [words for words in answers.asked if words[0] == "scancel"]
    command("cancel", "s.zarr")
    assert not credentials.exists()
