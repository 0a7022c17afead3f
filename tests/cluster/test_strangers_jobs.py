"""What a stranger has put beside a store: nothing of it is run, and status says a sentence."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from faultsweep.cluster.batch_systems import check_recorded, remember
from faultsweep.cluster.submit import Job, read_job
from faultsweep.sweeps.batch_job import job_folder
from faultsweep.sweeps.store.store import run_folder
from typer.testing import CliRunner

from faultsweep.cli import app
from faultsweep.errors import InputError
from tests.analysis.test_strangers import harmful


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("FAULTSWEEP_BATCH_SYSTEM", raising=False)
    path = harmful(tmp_path / "s.zarr", text="x", name="policy")
    job_folder(path).mkdir(parents=True)
    (tmp_path / "evil.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'harmed')!r})\n")
    return path


def job(**more):
    return {**asdict(Job("12", 0.0, "", "1", 1, "", "", "x")), **more}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("command", ["status", "logs", "cancel", "lock"])
def test_no_batch_system_of_a_stranger_is_loaded(store, tmp_path, command):
    evil = str(tmp_path / "evil.py")
    if command == "lock":
        owner = {"batch_job": "12", "batch_system": evil, "pid": 1, "host": "elsewhere", "boot": "x"}
        (run_folder(store) / "lock").write_text(json.dumps(owner))
    else:
        (job_folder(store) / "job.json").write_text(json.dumps(job(system=evil)))
    result = run("status" if command == "lock" else command, store)
    assert not (tmp_path / "harmed").exists()
    told = " ".join(f"{result.output} {result.exception}".split())
    assert command == "lock" or "you have submitted no job with this batch system" in told
    assert result.exception is None or isinstance(result.exception, SystemExit | InputError)


def test_a_batch_system_by_which_one_has_submitted_is_known(store, tmp_path, monkeypatch):
    evil, other = str(tmp_path / "evil.py"), str(tmp_path / "other.py")
    remember("slurm")
    remember(evil)
    remember(evil)
    assert (tmp_path / "state" / "faultsweep" / "batch_systems").read_text() == f"{evil}\n"
    assert check_recorded(evil) == evil
    with pytest.raises(InputError, match="submitted no job"):
        check_recorded(other)
    monkeypatch.setenv("FAULTSWEEP_BATCH_SYSTEM", other)
    assert [check_recorded(name) for name in (other, "slurm")] == [other, "slurm"]


@pytest.mark.parametrize("number", ["--user=me", "../../x", "1\x1b[2J", "1 2", "", 7])
def test_a_number_that_no_job_has_is_not_given_to_a_batch_system(store, number):
    (job_folder(store) / "job.json").write_text(json.dumps(job(job=number)))
    with pytest.raises(InputError, match="is damaged"):
        read_job(job_folder(store))


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        None,
        {"done": "x"},
        {"time": 0.0, "is_over": True, "done": 1, "total": 1, "workers": 0, "per_s": None, "left_s": None},
        {"time": 0.0, "is_over": True, "done": 1, "total": 1, "workers": 0, "worker_bytes": 1, "left_s": float("inf")},
    ],
)
def test_a_progress_file_of_another_kind_says_nothing(store, content):
    (run_folder(store) / "progress.json").write_text(json.dumps(content))
    result = run("status", store)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert "no run is active" in result.output
