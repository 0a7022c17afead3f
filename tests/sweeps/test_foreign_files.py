"""Files beside a store that another program, version or stranger has written: they end no command with a traceback."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from unittest.mock import patch

import pytest
from faultsweep.cluster.allocation import OUTCOME
from faultsweep.sweeps.sweep import Sweep

from faultsweep.cli import main
from faultsweep.files import read_fields
from tests.sweeps.functions import add

CONTROLS = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\r"
FILES = {
    "lock": {
        **{"host": socket.gethostname(), "pid": os.getpid(), "started": "1", "boot": "b", "token": "t", "beats": 1},
        **{"batch_job": "12", "batch_system": "slurm"},
    },
    "progress.json": {
        **{"time": 1.8e9, "total": 8, "done": 8, "already": 0, "failed": 0, "workers": 0, "per_s": None, "left_s": 1.0},
        **{"worker_bytes": 1, "phase": "running", "since": 1.0, "is_over": False},
    },
    "state.json": {"manifest": 5906, "root": "3a57"},
    "slurm/job.json": {
        **{"job": "12", "submitted": 1.0, "folder": "x", "nodes": "1", "workers_per_node": 2, "partition": "p"},
        **{"time": "1:00", "name": "s", "system": "slurm", "requeues": 0},
    },
    "slurm/phase.json": {"life": "12-0", "phase": "running", "since": 1.0, "text": "x"},
    f"slurm/{OUTCOME}": {"job": "12", "outcome": "requeued", "text": "x"},
}
VALUES = [None, True, -1, 10**400, 1e308, float("nan"), CONTROLS, "", [], {}, [[1]], {"a": CONTROLS}]
WHOLE = ["", "[]", "7", "null", "{", '"x"', "[" * 100_000, '{"a":' * 100_000, "\xff", "{}"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("foreign") / "s.zarr"
    Sweep(function=add, axes={"a": [1], "b": [2]}).run(path, workers=1, progress=False)
    return path


def say(store, files, command, capfd, monkeypatch):
    """Return what a command prints of a store with these files beside it."""
    folder = store.with_name("s.zarr.run")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "slurm").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    (folder / "log.txt").write_text(CONTROLS)
    (folder / "slurm" / "job-12.log").write_text(CONTROLS)
    monkeypatch.setenv("PATH", "")  # no batch system answers
    with pytest.raises(SystemExit), patch.object(sys, "argv", ["faultsweep", command, str(store)]):
        main()
    return "".join(capfd.readouterr())


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_file_beside_a_store_is_passed_over_or_named(store, name, capfd, monkeypatch):
    changed = [*WHOLE, *({**FILES[name], field: value} for field in FILES[name] for value in VALUES[:: len(FILES)])]
    changed += [{**FILES[name], field: VALUES[n % len(VALUES)]} for n, field in enumerate(FILES[name])]
    for content in changed:
        for command in ("status", "logs", "cancel") if name == "slurm/job.json" else ("status",):
            text = say(store, {**FILES, name: content}, command, capfd, monkeypatch)
            assert not [char for char in text if char in CONTROLS and not char.isprintable()], (content, text)


@pytest.mark.parametrize(
    "content", [*WHOLE[:-1], '{"a": NaN}', '{"a": 1e30}', '{"a": "x"}', '{"b": 1}', "[" * (2 << 20)]
)
def test_a_file_of_another_shape_has_no_fields(tmp_path, content):
    assert read_fields(tmp_path / "x", {"a": (int, float)}) is None
    (tmp_path / "x").write_text(content)
    assert read_fields(tmp_path / "x", {"a": (int, float)}) == {}


def test_fields_are_read(tmp_path):
    (tmp_path / "x").write_text('{"a": 1.5, "b": "text"}')
    assert read_fields(tmp_path / "x", {"a": (int, float), "c": (str, type(None))}) == {"a": 1.5, "b": "text"}
