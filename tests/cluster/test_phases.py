"""What a job says of itself, also on a full disk, and what ``status`` makes of it."""

from __future__ import annotations

import json
import os
import time

import pytest
from faultsweep.cluster import phases
from faultsweep.cluster.phases import PhaseFile, has_room, keep_reserve, read_phase, use_reserve
from faultsweep.sweeps.batch_job import _read_phase
from faultsweep.sweeps.status import say_phase

from tests.sweeps.disks import small_disk

__all__ = ["small_disk"]  # a fixture


def fill(disk):
    with (disk / "fill").open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_job_can_say_that_the_disk_is_full(small_disk):
    file = PhaseFile(small_disk, "7-0")
    file.enter(phases.STARTING)
    assert has_room(small_disk)
    fill(small_disk)
    assert not has_room(small_disk)
    file.enter(phases.NO_SPACE, "the disk is full")
    found = read_phase(small_disk)
    assert (found["phase"], found["text"], found["life"]) == (phases.NO_SPACE, "the disk is full", "7-0")
    assert found["since"] == pytest.approx(time.time(), abs=30)
    (small_disk / "fill").unlink()
    assert has_room(small_disk)
    assert sorted(os.listdir(small_disk)) == [phases.PHASE]


def test_a_phase_that_is_said_again_keeps_its_time(tmp_path):
    file = PhaseFile(tmp_path, "7-0")
    file.enter(phases.RUNNING)
    since = read_phase(tmp_path)["since"]
    file.enter(phases.RUNNING)
    assert read_phase(tmp_path)["since"] == since
    file.enter(phases.RESTARTING, "x" * 10_000)
    assert len(read_phase(tmp_path)["text"]) == 400
    assert (tmp_path / phases.PHASE).stat().st_size == 1024


@pytest.mark.parametrize("content", ["", "{}", '{"phase": "running"', '{"phase": 1, "since": "x"}', "[]"])
def test_a_damaged_phase_is_none(tmp_path, content):
    assert read_phase(tmp_path) is None
    (tmp_path / phases.PHASE).write_text(content)
    assert read_phase(tmp_path) is None


def job(state="RUNNING", outcome="", reason=""):
    return {"state": state, "outcome": outcome, "reason": reason}


def progress(phase, at, is_over=False):
    return {"phase": phase, "since": at, "time": at, "is_over": is_over}


@pytest.mark.parametrize(
    ("state", "known", "told", "reported", "phase"),
    [
        ("idle", None, None, None, None),
        ("waiting", job("PENDING", reason="Priority"), None, None, "queued"),
        ("waiting", job("PENDING", "requeued", "BeginTime"), "running", None, "requeued"),
        ("running", job(), None, None, "starting"),
        ("running", job(), "running", None, "starting workers"),
        ("running", job(), "running", progress("running", 1.0), "starting workers"),  # said by an earlier life
        ("running", job(), "running", progress("compiling", 9e9), "compiling"),
        ("running", job(), "running", progress("running", 9e9, is_over=True), "ending"),
        ("running", job(), phases.NO_SPACE, progress("running", 9e9), phases.NO_SPACE),
        ("running", job(), phases.SAVING_BEFORE_WALLTIME, progress("saving", 9e9), phases.SAVING_BEFORE_WALLTIME),
        ("running", None, None, progress("waiting for workers", 9e9), "waiting for workers"),
    ],
)
def test_the_phase_of_a_run(tmp_path, state, known, told, reported, phase):
    if told:
        PhaseFile(tmp_path, "7-0").enter(told)
    found = _read_phase(tmp_path, state, known, reported)
    assert (found and found["phase"]) == phase
    if state == "waiting":
        assert found["text"]


def test_a_phase_in_words():
    now = time.time()
    assert say_phase({"phase": "compiling", "since": now - 40, "text": ""}) == "phase: compiling for 40 s"
    told = json.loads('{"phase": "queued", "since": null, "text": "waiting for free nodes (Resources)"}')
    assert say_phase(told) == "phase: queued: waiting for free nodes (Resources)"


def test_a_reserve_lets_a_job_say_how_it_ended_on_a_full_disk(small_disk):
    keep_reserve(small_disk)
    fill(small_disk)
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "outcome.json").write_text("x" * 8192)
    (small_disk / "outcome.json").unlink(missing_ok=True)
    keep_reserve(small_disk)
    assert (small_disk / "reserve").stat().st_size == 65_536, "it is there already"
    use_reserve(small_disk)
    (small_disk / "outcome.json").write_text("x" * 8192)
    fill(small_disk)
    keep_reserve(small_disk)
    assert not (small_disk / "reserve").exists()
