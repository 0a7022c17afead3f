"""Journals while a sweep runs: they are removed when the store has their results, and have room ahead on the disk."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from faultsweep.sweeps.runner import segments as segments_module
from faultsweep.sweeps.runner import task as task_module
from faultsweep.sweeps.runner import task_sizes
from faultsweep.sweeps.runner.segments import Segments
from faultsweep.sweeps.runner.task import Columns, Context, run_batch
from faultsweep.sweeps.runner.watch import SweepStoppedError
from faultsweep.sweeps.store import journal as journal_module
from faultsweep.sweeps.store.journal import DIED, RESERVE_BYTES, JournalWriter, read_journal
from faultsweep.sweeps.sweep import Sweep

from tests.sweeps.disks import small_disk
from tests.sweeps.simulated import Cluster, Fault, simulated

__all__ = ["small_disk"]  # a fixture
AXES = {"a": [float(i) for i in range(60)], "b": [float(i) for i in range(50)]}


def product(a, b):
    return a * b


def sweep():
    return Sweep(axes=AXES, function=product, outputs=["y"])


def assert_complete(path):
    results = xr.open_zarr(path)
    assert (results.status == 1).all()
    assert np.array_equal(results.y.values[:, :, 0], np.multiply.outer(*AXES.values()))


def journals(path):
    return list(Path(f"{path}.run/journals").glob("*.journal"))


class Watch:
    """Small tasks and short journals; notes how many there are, and how large, whenever some are to be removed."""

    def __init__(self, monkeypatch, path):
        self.path, self.most, self.removed = path, 0, 0
        monkeypatch.setattr(task_sizes, "_PARTS", 16_384)
        # a sync waits for all that other tests write: then few journals would be removed before the end
        monkeypatch.setattr(segments_module, "sync_disk", lambda folder: None)
        monkeypatch.setattr(journal_module, "SEGMENT_BYTES", 2000)
        remove = Segments._remove

        def watched(segments, names):
            self.most = max(self.most, len(journals(path)))
            remove(segments, names)
            self.removed += len(names)
            assert not {path.name for path in journals(path)} & set(names)

        monkeypatch.setattr(Segments, "_remove", watched)


def test_journals_are_removed_while_a_sweep_runs(tmp_path, monkeypatch):
    path = tmp_path / "s.zarr"
    watch = Watch(monkeypatch, path)
    with simulated(monkeypatch, Cluster(workers=3)):
        sweep().run(path, progress=False)
    assert_complete(path)
    assert watch.removed > 20, "3,000 records of 56 bytes are more than 80 journals of 2,000"
    assert watch.most < watch.removed


def let_workers_be_blind(monkeypatch):
    """Let no worker see the folder of the run, so that the run itself keeps the journal."""
    monkeypatch.setattr(task_module._Session, "_sees", lambda session, folder: False)


def test_the_journal_of_the_run_itself_is_removed_while_it_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "s.zarr"
    watch = Watch(monkeypatch, path)
    let_workers_be_blind(monkeypatch)
    with simulated(monkeypatch, Cluster(workers=3)):
        sweep().run(path, progress=False)
    assert_complete(path)
    assert watch.removed > 20
    assert watch.most < watch.removed


def test_deaths_are_known_after_journals_were_removed(tmp_path, monkeypatch):
    """A configuration at which workers die is no result: what is known of it stays as long as the run does."""
    path = tmp_path / "s.zarr"
    watch = Watch(monkeypatch, path)
    with simulated(monkeypatch, plain := Cluster(workers=3)):
        sweep().run(tmp_path / "plain.zarr", progress=False)
    at = next(number for number, name in enumerate(plain.points) if name == "write" and number > 1500)
    cluster = Cluster([Fault("death", at), Fault("scheduler", 4001)], workers=3)
    with simulated(monkeypatch, cluster), pytest.raises(SweepStoppedError):
        sweep().run(path, progress=False)
    assert cluster.happened == ["death", "scheduler"]
    assert watch.removed
    assert [int(status) for file in journals(path) for part in read_journal(file) for status in part.status].count(DIED)


@pytest.mark.parametrize("kind", ["scheduler", "ENOSPC", "death"])
def test_a_journal_of_the_run_itself_holds_what_was_taken(tmp_path, monkeypatch, kind):
    path = tmp_path / "s.zarr"
    Watch(monkeypatch, path)
    let_workers_be_blind(monkeypatch)
    cluster = Cluster([Fault(kind, 400, lasting=kind == "ENOSPC")], workers=3)
    with simulated(monkeypatch, cluster), contextlib.suppress(SweepStoppedError):
        sweep().run(path, progress=False)
    assert cluster.happened[0] == kind
    if kind != "death":
        assert 0 < sweep().plan(path, measure=False).missing < 3000
    with simulated(monkeypatch, Cluster(workers=3)):
        sweep().run(path, progress=False)
    assert_complete(path)


@pytest.mark.parametrize("kind", ["scheduler", "ENOSPC", "SIGINT twice", "death", "deaths", "last death"])
@pytest.mark.parametrize("number", [400, 4001])
def test_a_run_that_ends_early_has_lost_nothing_with_its_journals(tmp_path, monkeypatch, kind, number):
    """What was counted as done before a fault is not run again, wherever it is kept by then."""
    path = tmp_path / "s.zarr"
    Watch(monkeypatch, path)
    calls = []
    run = task_module._Batch.run

    def counted(batch, config):
        run(batch, config)
        calls.append((config["a"], config["b"]))

    monkeypatch.setattr(task_module._Batch, "run", counted)
    cluster = Cluster([Fault(kind, number, lasting=kind == "ENOSPC")], workers=3)
    with simulated(monkeypatch, cluster), contextlib.suppress(SweepStoppedError):
        sweep().run(path, progress=False)
    first, number = set(calls), len(calls)
    with simulated(monkeypatch, Cluster(workers=3)):
        sweep().run(path, progress=False)
    assert_complete(path)
    if kind in ("scheduler", "SIGINT twice"):
        assert 0 < len(calls) - number < 3000
        assert not first & set(calls[number:]), "what was finished is simulated again"


def test_a_journal_has_room_ahead_on_a_full_disk(small_disk):
    writer = JournalWriter(small_disk / "x.journal", ["y"])
    fill(small_disk)
    written = 0
    while not writer.is_full:
        writer.write((written, 0), 1, 0.5, [float(written)])
        written += 1
    assert written > 100
    for extra in range(20):
        writer.write((written + extra, 0), 1, 0.5, [0.0])
    writer.close()
    (records,) = read_journal(small_disk / "x.journal")
    assert len(records.keys[0]) == written + 20
    with pytest.raises(OSError, match="No space left"):
        JournalWriter(small_disk / "y.journal", ["y"])


def test_a_worker_stops_before_the_room_is_used_up(small_disk, tmp_path):
    """The result at which the reserve ends is kept, and the next one is not begun."""
    for part in ("journals", "marks"):
        (small_disk / part).mkdir()
    (small_disk / "nonce").write_text("n")
    target = sweep().spec.target
    context = Context("r", target, sweep().spec.outputs, {"b": 2.0}, small_disk, "n").pack()
    keys = np.arange(20_000, dtype=np.uint64).reshape(2, -1)
    columns = {"a": [float(i) for i in range(10_000)]}
    first = run_batch(context, 1, Columns({"a": columns["a"][:3]}), keys[:, :3], 60.0)
    assert first.problem is None
    assert not first.errors
    fill(small_disk)
    result = run_batch(context, 2, Columns(columns), keys, 60.0)
    assert result.problem[0] == errno.ENOSPC
    assert 0 < result.done < 1000
    (journal,) = (small_disk / "journals").iterdir()
    (records,) = read_journal(journal)
    assert len(records.keys[0]) == 3 + result.done, "all that is reported is kept"
    task_module.leave_run("r")


def test_without_fallocate_there_is_no_reserve_and_a_journal_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_module, "_C", object())
    writer = JournalWriter(tmp_path / "x.journal", ["y"])
    writer.write((1, 0), 1, 0.5, [2.0])
    writer.close()
    assert len(next(read_journal(tmp_path / "x.journal")).keys[0]) == 1


def test_a_closed_journal_takes_no_more_than_its_records(tmp_path):
    writer = JournalWriter(tmp_path / "x.journal", ["y"])
    assert (tmp_path / "x.journal").stat().st_blocks * 512 >= RESERVE_BYTES
    writer.close()
    assert (tmp_path / "x.journal").stat().st_blocks * 512 < RESERVE_BYTES


def test_nothing_is_removed_of_a_store_that_another_process_has(tmp_path, monkeypatch):
    def lost():
        raise RuntimeError("another process has taken the store over")

    (tmp_path / "a.journal").touch()
    for check, left in ((lost, ["a.journal"]), (lambda: None, [])):
        segments = Segments(tmp_path, tmp_path, check)
        segments.add("a.journal", 2, {})
        segments.remove_saved()
        segments.join()
        assert os.listdir(tmp_path) == ["a.journal"], "it was not left yet"
        segments.add("a.journal", 2, {"a.journal": 5})
        segments.remove_saved()
        segments.join()
        assert os.listdir(tmp_path) == ["a.journal"], "a result of it was not taken yet"
        segments.add("a.journal", 1, {})
        segments.remove_saved()
        segments.join()
        assert os.listdir(tmp_path) == left
    monkeypatch.setattr(segments_module.ctypes, "CDLL", lambda *_, **__: object())
    segments_module.sync_disk(tmp_path)


def fill(disk):
    with (disk / "fill").open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_plan_states_the_files_of_a_sweep(tmp_path):
    """None of its runs has more at any time, and the complete store has most of them."""
    path = tmp_path / "s.zarr"
    axes = {name: [float(i) for i in range(n)] for name, n in (("a", 200), ("b", 200), ("c", 3))}
    wide = Sweep(axes=axes, function=lambda a, b, c: {"x": a, "y": b, "z": c}, outputs=["x", "y", "z"])
    plan = wide.plan(path, workers=2, measure=False)
    wide.run(path, workers=2, progress=False)
    files = sum(1 for file in path.rglob("*") if file.is_file())
    assert 0.5 * plan.files < files <= plan.files
