"""A disk that is full, or broken, at each write of a store: of chunks, metadata, labels, manifest and its copies.

The cluster is simulated (its clock, too), the files are real. A write that fails has written half of it.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from faultsweep.sweeps import sweep as sweep_module
from faultsweep.sweeps.open import open_jobs
from faultsweep.sweeps.runner.watch import SweepStoppedError
from faultsweep.sweeps.store import manifest as manifest_module
from faultsweep.sweeps.store import store as store_module
from faultsweep.sweeps.store.repair import check
from faultsweep.sweeps.store.statuses import COPY, DONE
from faultsweep.sweeps.sweep import Sweep
from zarr.storage import _local as zarr_files

import faultsweep as fs
from faultsweep.errors import InputError
from tests.sweeps.simulated import Cluster, simulated

SENTENCES = {
    errno.ENOSPC: "the disk is full; make room and run again, nothing that was finished is lost",
    errno.EIO: os.strerror(errno.EIO),
}


def lengths(a: int, word: str) -> dict[str, Any]:
    """Results of several types, and per-job results."""
    return {"y": a / 7 + len(word), "z": a * len(word), "said": word * a, "jobs": {"size": [a] * (a + 1)}}


def sweep(a, words):
    return Sweep(name="s", axes={"a": list(a), "word": list(words)}, function=lengths, keep_jobs=True, outputs=OUTPUTS)


OUTPUTS = [fs.Output("y"), fs.Output("z", dtype="int64"), fs.Output("said", dtype="text")]
SMALL = sweep(range(3), ["x", "yy"])
GROWN = sweep(range(4), ["x", "yy", "a longer word"])


class Disk:
    """The writes of this process below a folder, counted; those from ``at`` on fail, or that one alone."""

    def __init__(self, folder: Path, number: int = 0, at: int = -1, lasting: bool = False) -> None:
        self.folder, self.number, self.at, self.lasting = str(folder), number, at, lasting
        self.writes: list[str] = []
        self.failed: list[str] = []

    def fails(self, path: Any) -> bool:
        """Count a write; tell whether it fails."""
        if not str(path).startswith(self.folder):
            return False
        self.writes.append(str(path).removeprefix(self.folder))
        count = len(self.writes) - 1
        if count == self.at or (self.lasting and 0 <= self.at <= count):
            self.failed.append(self.writes[-1])
            return True
        return False

    def error(self, path: Any) -> OSError:
        """Return what the system says."""
        return OSError(self.number, os.strerror(self.number), str(path))


def attach(patch: pytest.MonkeyPatch, disk: Disk) -> None:
    """Let a store of this process stand on the disk."""
    put, replace, write = zarr_files._put, manifest_module._replace, manifest_module._write

    def failing_put(path: Path, value: Any, exclusive: bool = False) -> int:
        if disk.fails(path):
            content = value.to_bytes()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(f"{path.name}.0123.partial").write_bytes(content[: len(content) // 2])
            raise disk.error(path)
        return put(path, value, exclusive)

    def failing_replace(path: Path, content: bytes) -> None:
        if disk.fails(path):
            path.with_name(f"{path.name}.partial").write_bytes(content[: len(content) // 2])
            raise disk.error(path)
        replace(path, content)

    def failing_first_write(path: Path, content: bytes) -> None:
        if disk.fails(path):
            write(path, content[: len(content) // 2])
            raise disk.error(path)
        write(path, content)

    def failing_write(file: int, data: bytes) -> int:
        if disk.fails(os.readlink(f"/proc/self/fd/{file}")):
            if disk.number == errno.ENOSPC:
                return os.write(file, data[: len(data) // 2])
            raise disk.error(disk.folder)
        return os.write(file, data)

    calls = {name: getattr(os, name) for name in dir(os)} | {"write": failing_write, "fsync": lambda file: None}
    patch.setattr(zarr_files, "_put", failing_put)
    patch.setattr(manifest_module, "_replace", failing_replace)
    patch.setattr(manifest_module, "_write", failing_first_write)
    patch.setattr(manifest_module, "os", SimpleNamespace(**calls))


def run(monkeypatch: pytest.MonkeyPatch, path: Path, wanted: Sweep, disk: Disk | None = None) -> str:
    """Run a sweep; returns what it says if it stops early."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with simulated(monkeypatch, Cluster()), monkeypatch.context() as patch:  # which is undone first
        patch.setattr(store_module, "CHUNK_CELLS", 4)
        patch.setattr(sweep_module, "_sync", lambda path: None)  # of all disks of this machine
        if disk is not None:
            attach(patch, disk)
        try:
            wanted.run(path, workers=2, progress=False)
        except (SweepStoppedError, InputError) as error:
            return str(error)
        finally:
            assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    return ""


def assert_right(path: Path, wanted: Sweep) -> None:
    """Compare all that a store has with the function itself."""
    assert check(path).is_sound
    assert not list(path.rglob("*.partial"))
    data = fs.open_results(path, masked=False)
    assert np.isin(data.status.values, (DONE, COPY)).all()
    assert data.sizes["a"] == len(wanted.spec.axes[0])
    assert data.sizes["word"] == len(wanted.spec.axes[1])
    for a in data.a.values.tolist():
        for word in data.word.values.tolist():
            cell = data.sel(a=a, word=word).squeeze()
            expected = lengths(a, word)
            assert {name: cell[name].item() for name in ("y", "z", "said")} == {
                name: expected[name] for name in ("y", "z", "said")
            }
            jobs = open_jobs(data, a=a, word=word)
            assert jobs["size"].values.tolist() == expected["jobs"]["size"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A store that is about to grow, and how many writes that takes; and how many it took to make it."""
    path = tmp_path_factory.mktemp("small") / "s.zarr"
    with pytest.MonkeyPatch.context() as monkeypatch:
        making = Disk(path.parent)
        assert run(monkeypatch, path, SMALL, making) == ""
        assert_right(path, SMALL)
        shutil.copytree(path, path.with_name("t.zarr"))
        growing = Disk(path.parent)
        assert run(monkeypatch, path.with_name("t.zarr"), GROWN, growing) == ""
        assert_right(path.with_name("t.zarr"), GROWN)
    return path, making.writes, growing.writes


def test_every_kind_of_file_is_among_the_writes(small):
    _, making, growing = small
    for writes in (making, growing):
        kinds = Counter(
            "manifest" if "manifest" in name else "metadata" if name.endswith("zarr.json") else name.split("/")[-1]
            for name in writes
        )
        assert kinds["manifest"] > 40
        assert kinds["metadata"] > 5
        for array in ("y", "z", "said", "status", "word", "jobs", "jobs_offset", "copies"):
            assert any(f"/{array}/" in name for name in writes), array


SHARE = 96
"""One write of so many is tried by default, all of them with the slow tests."""
SHARES = [pytest.param(i, id=str(i), marks=[pytest.mark.slow] if i else []) for i in range(SHARE)]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("number", SENTENCES, ids=errno.errorcode.get)
@pytest.mark.parametrize("grows", [False, True], ids=["makes", "grows"])
@pytest.mark.sampled(4)
def test_a_disk_that_fails_at_each_write(monkeypatch, tmp_path, small, grows, number, lasting, share):
    first, making, growing = small
    start = (share + 5 * (number == errno.EIO) + 3 * lasting) % SHARE
    for at in range(start, len(growing if grows else making), SHARE):
        path = tmp_path / str(at) / "s.zarr"
        path.parent.mkdir()
        if grows:
            shutil.copytree(first, path)
        disk = Disk(path.parent, number, at, lasting)
        said = run(monkeypatch, path, GROWN, disk)
        assert disk.failed
        assert "Traceback" not in said
        assert SENTENCES[number] in said or not said, (said, disk.failed)
        if path.exists():
            for damage in check(path).damage:  # a torn line of the manifest at most: what it was of was not written
                assert damage.name.startswith("integrity/manifest"), (damage, disk.failed)
            if grows:
                kept = fs.open_results(path, masked=False).sel(a=[0, 1, 2], word=["x", "yy"]).squeeze("replicate")
                assert kept.y.values.tolist() == [[a / 7 + 1, a / 7 + 2] for a in range(3)]
        assert run(monkeypatch, path, GROWN) == ""
        assert_right(path, GROWN)
        shutil.rmtree(path.parent)
