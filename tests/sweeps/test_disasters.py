"""What kills, hangs, full disks, second runs and readers do to a sweep: nothing. All of them are real."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr
from faultsweep.sweeps.runner import runner as runner_module
from faultsweep.sweeps.runner import task_sizes
from faultsweep.sweeps.runner import watch as watch_module
from faultsweep.sweeps.runner.order import Cursor
from faultsweep.sweeps.runner.prepare import prepare
from faultsweep.sweeps.runner.watch import SweepStoppedError
from faultsweep.sweeps.store import store as store_module
from faultsweep.sweeps.store.journal import read_journal
from faultsweep.sweeps.store.replay import count_journalled
from faultsweep.sweeps.store.statuses import COPY, DONE
from faultsweep.sweeps.store.store import Store

from faultsweep.errors import InputError
from tests.sweeps.disks import slow_disk, small_disk
from tests.sweeps.functions import add, zero
from tests.sweeps.script import CHUNK_CELLS, GROWTH, long_sweep

__all__ = ["slow_disk", "small_disk"]  # fixtures
SCRIPT = Path(__file__).parent / "script.py"
MOMENTS = [pytest.param(i, id=str(i), marks=[pytest.mark.slow] if i >= 1 else []) for i in range(30)]
"""One moment by default, thirty with the slow tests (``make test-slow``)."""


def start(*arguments, **options):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


def journalled(folder: Path) -> int:
    """Count the results that workers have written down."""
    return sum(len(records.status) for path in folder.glob("journals/*.journal") for records in read_journal(path))


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end and not is_true():
        time.sleep(0.02)


def started(store: Path, process: subprocess.Popen, results: int = 0) -> Path:
    """Wait until workers are there, and have written down so many results; returns the run's folder."""
    folder = store.with_name(store.name + ".run")
    end = time.monotonic() + 60
    while time.monotonic() < end and not (list(folder.glob("marks/*.mark")) and journalled(folder) >= results):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    return folder


def finish(process: subprocess.Popen, code: int = 0) -> str:
    text = process.communicate(timeout=120)[1]
    assert process.returncode == code, text
    return text


def is_server(process: psutil.Process | None) -> bool:
    """Whether workers are forked from a process, or it is one of them: they have its command line."""
    return process is not None and "multiprocessing.forkserver" in " ".join(process.cmdline())


def worker_processes(process: subprocess.Popen) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end, or be a zombie, while it is looked at
            if "spawn_main" in " ".join(child.cmdline()) or (is_server(child) and is_server(child.parent())):
                found.append(child)
    return found


def finished(store: Path) -> int:
    """Count the different simulations that a store and the journals beside it have a result of."""
    if not store.exists():
        return 0
    prepared = prepare(long_sweep().spec, store)
    return 230 - len(prepared.todo) + count_journalled(prepared)


def assert_complete(store: Path, rows: int = 12, replicates: int = 2, chunks: bool = False) -> None:
    """Compare a store with the function itself: coordinates, metrics, jobs and status, to the bit."""
    if chunks:
        assert Store(store, mode="r").chunks.num >= 6
    results = xr.open_zarr(store, chunks=None)
    assert results.a.values.tolist() == [float(i) for i in range(rows)]
    assert results.b.values.tolist() == [i / 7 for i in range(10)]
    expected = np.array(
        [
            [
                [list(add(float(a), b / 7, replicate=0 if a == 3 else r).values()) for r in range(replicates)]
                for b in range(10)
            ]
            for a in range(rows)
        ]
    )
    assert np.array_equal(results["sum"].values.view(np.int64), expected[..., 0].view(np.int64))
    assert np.array_equal(
        results["product"].values.view(np.int64), np.ascontiguousarray(expected[..., 1]).view(np.int64)
    )
    status = np.full(results.status.shape, DONE)
    status[3, :, 1:] = COPY
    assert np.array_equal(results.status.values, status)
    if "jobs_offset" in results:
        jobs = xr.open_zarr(store, group="jobs", chunks=None).a.values
        spans = zip(results.jobs_offset.values.ravel(), results.jobs_length.values.ravel(), strict=True)
        of_rows = np.repeat(results.a.values, results.status[0].size)
        for a, (first, number) in zip(of_rows.tolist(), spans, strict=True):
            assert jobs[first : first + number].tolist() == [a] * (int(a) + 1)
    assert not list(store.rglob("*.partial"))


@pytest.fixture
def small_chunks(monkeypatch):
    """Let runs of this process make the chunks that the script makes."""
    monkeypatch.setattr(store_module, "CHUNK_CELLS", CHUNK_CELLS)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.sampled(1)
def test_kill_9_of_workers(tmp_path, moment):
    """At any moment from the start of the first worker's process on, twice."""
    chance = random.Random(moment)
    process = start("run", tmp_path / "s.zarr")
    for _ in range(2):
        while process.poll() is None and not worker_processes(process):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 3))
        if process.poll() is None and (workers := worker_processes(process)):
            with contextlib.suppress(psutil.NoSuchProcess):
                chance.choice(workers).send_signal(signal.SIGKILL)
    finish(process)
    assert_complete(tmp_path / "s.zarr", chunks=True)


def test_kill_9_of_what_workers_are_forked_from(tmp_path):
    process = start("run", tmp_path / "s.zarr")
    while not (workers := worker_processes(process)):
        time.sleep(0.01)
    assert is_server(workers[0])
    time.sleep(1)
    workers[0].parent().send_signal(signal.SIGKILL)
    finish(process)
    assert_complete(tmp_path / "s.zarr", chunks=True)
    assert not psutil.wait_procs(workers, timeout=30)[1]


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_of_the_client(tmp_path, client, small_chunks, moment):
    """At any moment from the start of its process on, and again while it goes on."""
    chance = random.Random(100 + moment)
    store = tmp_path / "s.zarr"
    kept = [0]
    for _ in range(2):
        process = start("run", store)
        time.sleep(chance.uniform(0, 6))
        workers = worker_processes(process) if process.poll() is None else []
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=30)
        assert not alive, "workers outlive their client"
        kept.append(finished(store))
    long_sweep().run(store, cluster=client, progress=False)
    assert_complete(store, chunks=True)
    log = (tmp_path / "s.zarr.run" / "log.txt").read_text()
    missing = [int(line.split(": ")[1].split(" of ")[0]) for line in log.splitlines() if "are missing" in line]
    assert kept == sorted(kept), "a kill has lost results"
    assert not missing or missing[-1] <= 230 - kept[-1] or kept[-1] == 230


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.sampled(1)
def test_kill_9_of_the_client_while_results_get_more(tmp_path, client, small_chunks, moment):
    """A metric, per-job results and rows, at any moment, twice; no result changes meanwhile, and a reader can tell."""
    chance = random.Random(300 + moment)
    store = tmp_path / "s.zarr"
    long_sweep(rows=8, metrics=["sum"]).run(store, cluster=client, progress=False)
    before = xr.open_zarr(store, chunks=None).load()
    folder = tmp_path / "s.zarr.run"
    for _ in range(2):
        process = start("run", store, json.dumps({"keep_jobs": True}))
        until = time.monotonic() + chance.uniform(0, 6)
        while process.poll() is None and (journalled(folder) < 40 if moment == 0 else time.monotonic() < until):
            now = xr.open_zarr(store, chunks=None)
            status, has = now.status.values[:8], now["sum"].values[:8]
            assert np.array_equal(status, before.status.values)
            assert np.array_equal(has, before["sum"].values)
            if "product" in now and json.loads(now.attrs["adding"]) == []:
                assert not np.isnan(now["product"].values[:8]).any()
        process.kill()
        process.wait()
        assert np.array_equal(xr.open_zarr(store, chunks=None)["sum"].values[:8], before["sum"].values)
    long_sweep(keep_jobs=True).run(store, cluster=client, progress=False)
    assert_complete(store, chunks=True)


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_of_the_scheduler(tmp_path, client, small_chunks, moment):
    """At any moment from the start of the client's process on; the first one is while it simulates.

    (A client that finds no scheduler waits for half a minute.)
    """
    chance = random.Random(200 + moment)
    processes = []

    def cluster():
        (tmp_path / "scheduler.json").unlink(missing_ok=True)
        processes.append(start("scheduler", tmp_path))
        while not (tmp_path / "scheduler.json").exists():
            time.sleep(0.02)
        processes.append(start("workers", tmp_path))

    try:
        cluster()
        settings = json.dumps({"cluster": str(tmp_path / "scheduler.json")})
        process = start("run", tmp_path / "s.zarr", settings)
        if moment == 0:
            started(tmp_path / "s.zarr", process, results=40)
        else:
            time.sleep(chance.uniform(0, 4))
        processes[0].kill()
        code = process.wait(timeout=120)
        text = process.stderr.read()
        if code:  # else it had finished
            assert ("the scheduler has ended" if code == 1 else "cannot reach the scheduler") in text, text
            assert "Traceback" not in text
            long_sweep().run(tmp_path / "s.zarr", cluster=client, progress=False)
        assert_complete(tmp_path / "s.zarr", chunks=True)
    finally:
        for process in processes:
            process.kill()


def test_a_run_without_workers_stops_after_a_while(tmp_path, monkeypatch, client):
    import distributed

    folder = tmp_path / "s.zarr.run"
    log = folder / "log.txt"
    monkeypatch.setattr(watch_module, "ABSENCE_S", 0.5)
    monkeypatch.setattr(runner_module, "_LOOK_S", 0.1)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as lonely:

        def leave_one_by_one():
            wait_until(lambda: journalled(folder) >= 2)
            cluster.scale(1)
            wait_until(lambda: "1 of 2 workers remain" in log.read_text())
            cluster.scale(0)

        leave = threading.Thread(target=leave_one_by_one)
        leave.start()
        with pytest.raises(
            SweepStoppedError, match=r"no worker for 500 ms; .* has \d+ .*; run again to resume"
        ) as caught:
            long_sweep(sleep_s=0.02).run(tmp_path / "s.zarr", cluster=lonely, progress=False)
        leave.join()
    assert "1 of 2 workers remain" in log.read_text()
    assert "no worker is left; waiting for one" in log.read_text()
    assert len(str(caught.value).splitlines()) == 1
    assert (xr.open_zarr(tmp_path / "s.zarr", chunks=None).status == DONE).any()
    long_sweep(sleep_s=0.02).run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert_complete(tmp_path / "s.zarr")


def test_journals_of_a_store_that_is_gone_are_not_believed(tmp_path, client):
    store = tmp_path / "s.zarr"
    process = start("run", store)
    started(store, process, results=20)
    process.kill()
    process.wait()
    shutil.rmtree(store)
    sweep = long_sweep(sleep_s=0.0)
    sweep.spec.target.function = zero
    results = sweep.run(store, cluster=client, progress=False)
    assert (results["sum"] == 0).all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.sampled(1)
def test_an_interrupt_while_workers_start(tmp_path, number):
    process = start("run", tmp_path / "s.zarr", '{"sleep_s": 0.5}')  # it cannot be at its end before the signal comes
    while not (workers := worker_processes(process)):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(number)
    text = finish(process, 130)
    assert text == f"stopped; {tmp_path / 's.zarr'} has 240 pending; run again to resume\n"
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert not (tmp_path / "s.zarr.run" / "lock").exists()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.sampled(1)
def test_ctrl_c(tmp_path, client, times):
    # an own process group: the terminal sends Ctrl-C to workers, too
    process = start("run", tmp_path / "s.zarr", start_new_session=True)
    started(tmp_path / "s.zarr", process, results=20)
    begin = time.monotonic()
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
    text = finish(process, 130)
    assert time.monotonic() - begin < 60, "it did not stop, but went on to the end or waited for something"
    assert "Traceback" not in text
    assert "run again to resume" in text.splitlines()[-1]
    done = int(re.search(r"(\d+) done", text.splitlines()[-1])[1])
    saved = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
    assert (saved.status == DONE).sum() == done > 0
    long_sweep().run(tmp_path / "s.zarr", cluster=client, progress=False)
    assert_complete(tmp_path / "s.zarr")


@pytest.mark.sampled(0)
def test_a_clock_that_jumps_does_not_matter(tmp_path):
    finish(start("clock", tmp_path / "s.zarr"))
    assert_complete(tmp_path / "s.zarr")
    results = xr.open_zarr(tmp_path / "s.zarr", chunks=None)
    wall_s = results.wall_s.values[results.status.values == DONE]
    assert (wall_s > 0.015).all()
    assert (wall_s < 2).all()


def test_a_store_has_one_writer_by_whatever_name_it_goes(tmp_path):
    """And a copy of it, which may have the status of cells without their metrics, is none that goes on."""
    store, link, copy = tmp_path / "s.zarr", tmp_path / "link.zarr", tmp_path / "copy.zarr"

    def refused(path, sentence):
        with pytest.raises(InputError, match=rf"^[^\n]*{sentence}[^\n]*$"):
            long_sweep().run(path, progress=False)

    process = start("run", store)
    started(store, process)
    link.symlink_to(store)
    shutil.copytree(store, copy, ignore=shutil.ignore_patterns("*.partial"))
    refused(store, f"s.zarr.run/lock: process {process.pid} on ")
    refused(link, f"s.zarr.run/lock: process {process.pid} on ")
    refused(copy, "copy.zarr: a copy of .*s.zarr, made while a run was writing it; wait until the run that has ")
    finish(process)
    assert_complete(store)
    for _ in range(2):  # a refusal changes nothing
        refused(copy, "copy.zarr: a copy of .*s.zarr from before the end of its last run.*; copy that store again")
    shutil.rmtree(copy)
    shutil.copytree(store, copy)
    long_sweep().run(copy, progress=False)
    assert_complete(copy)


def test_a_reader_never_sees_an_inconsistent_cell(tmp_path):
    """It opens and reads all the time, status first, while a sweep runs and its axes grow."""
    store = tmp_path / "s.zarr"
    looks = 0
    shapes = set()
    process = start("grow", store)
    while process.poll() is None:
        if not (store / "zarr.json").exists():
            time.sleep(0.01)
            continue
        results = xr.open_zarr(store, chunks=None)
        status, total = results.status.values, results["sum"].values
        shapes.add(status.shape)
        assert status.shape == (results.sizes["a"], 10, results.sizes["replicate"])
        a, b = results.a.values, results.b.values
        values = [
            add(float(a[i]), float(b[j]), replicate=int(k) if i != 3 else 0)["sum"]
            for i, j, k in np.argwhere(status > 0).tolist()
        ]
        assert np.array_equal(total[status > 0], values)
        looks += 1
    finish(process)
    assert looks > 10
    assert shapes == {(rows, 10, replicates) for rows, replicates in GROWTH}
    assert_complete(store)


@pytest.mark.parametrize(("workers", "task_s", "first"), [(1, 0.5, 16), (2, 0.001, 1), (4, 0.05, 7), (2, 100.0, 1000)])
def test_results_do_not_depend_on_workers_batches_or_order(tmp_path, monkeypatch, client, workers, task_s, first):
    monkeypatch.setattr(task_sizes, "TASK_S", task_s)
    monkeypatch.setattr(task_sizes, "_FIRST", first)
    rng = np.random.default_rng(workers)
    monkeypatch.setattr(runner_module, "Cursor", lambda cells, durations: Cursor(rng.permutation(cells), durations))
    cluster = client if workers == 2 else "local"
    long_sweep(sleep_s=0.0).run(tmp_path / "s.zarr", workers=workers, cluster=cluster, progress=False)
    assert_complete(tmp_path / "s.zarr")


def test_a_store_that_was_moved_goes_on(tmp_path, client):
    long_sweep(rows=4, sleep_s=0.0).run(tmp_path / "s.zarr", cluster=client, progress=False)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s.zarr").rename(tmp_path / "elsewhere" / "t.zarr")
    long_sweep(sleep_s=0.0).run(tmp_path / "elsewhere" / "t.zarr", cluster=client, progress=False)
    assert_complete(tmp_path / "elsewhere" / "t.zarr")


@pytest.mark.parametrize("folder", ["stays", "is lost"])
@pytest.mark.sampled(1)
def test_a_store_that_was_moved_after_a_kill(tmp_path, client, folder):
    """The journals are beside the old place: they are found there, or else the user is told."""
    store, moved = tmp_path / "s.zarr", tmp_path / "elsewhere" / "t.zarr"
    process = start("run", store)
    folder_of_run = started(store, process, results=40)
    while journalled(folder_of_run) - np.count_nonzero(Store(store, mode="r").status() == DONE) < 5:
        assert process.poll() is None, "nothing was left in the journals"
        time.sleep(0.01)
    workers = worker_processes(process)
    process.kill()
    process.wait()
    assert not psutil.wait_procs(workers, timeout=30)[1]  # they finish what they write
    kept = journalled(folder_of_run)
    moved.parent.mkdir()
    store.rename(moved)
    if folder == "is lost":
        (tmp_path / "s.zarr.run").rename(tmp_path / "lost")
    planned = long_sweep().plan(moved, measure=False)
    assert 0 < planned.journalled <= kept if folder == "stays" else planned.journalled == 0
    long_sweep().run(moved, cluster=client, progress=False)
    assert_complete(moved)
    log = (moved.parent / "t.zarr.run" / "log.txt").read_text()
    missing = int(re.search(r"(\d+) of 230 simulations are missing", log)[1])
    assert missing == planned.missing
    if folder == "stays":
        assert missing <= 230 - kept
        assert f"taking what was finished from {tmp_path / 's.zarr.run'}" in log
    else:
        assert f"left what was not saved yet in {tmp_path / 's.zarr.run'}" in log


def test_a_store_that_is_moved_while_it_is_written(tmp_path, client):
    store, moved = tmp_path / "s.zarr", tmp_path / "t.zarr"
    process = start("run", store)
    started(store, process, results=20)
    process.send_signal(signal.SIGSTOP)  # or it might see first that its store is gone, and end
    store.rename(moved)
    with pytest.raises(
        InputError, match=r"t.zarr: was moved while a run writes it; stop the run that has .*s\.zarr\.run.lock"
    ):
        long_sweep().run(moved, cluster=client, progress=False)
    process.send_signal(signal.SIGCONT)
    text = finish(process, 1)
    assert "s.zarr: the store no longer exists here; if it was moved, run the sweep there" in text
    assert len(text.splitlines()) == 1
    assert not store.exists()
    long_sweep().run(moved, cluster=client, progress=False)
    assert_complete(moved)


def test_a_full_disk_loses_nothing(small_disk, client):
    store = small_disk / "s.zarr"
    fill = small_disk / "fill"
    long_sweep(rows=4, sleep_s=0.0).run(store, cluster=client, progress=False)
    before = xr.open_zarr(store, chunks=None).load()
    left = os.statvfs(small_disk)
    fill.write_bytes(b"x" * (left.f_bavail * left.f_frsize - 60_000))
    with pytest.raises(SweepStoppedError, match="the disk is full; make room and run again"):
        long_sweep(rows=12, replicates=200, sleep_s=0.0).run(store, cluster=client, progress=False)
    during = xr.open_zarr(store, chunks=None)
    assert np.array_equal(during["sum"].values[:4, :, :2], before["sum"].values)
    fill.unlink()
    long_sweep(rows=12, replicates=200, sleep_s=0.0).run(store, cluster=client, progress=False)
    assert_complete(store, replicates=200)


def test_a_disk_that_is_full_at_the_start(small_disk, client):
    left = os.statvfs(small_disk)
    (small_disk / "fill").write_bytes(b"x" * (left.f_bavail * left.f_frsize))
    with pytest.raises((SweepStoppedError, InputError), match="the disk is full"):
        long_sweep(sleep_s=0.0).run(small_disk / "s.zarr", cluster=client, progress=False)
    assert not (small_disk / "s.zarr").exists()
    (small_disk / "fill").unlink()
    long_sweep(sleep_s=0.0).run(small_disk / "s.zarr", cluster=client, progress=False)
    assert_complete(small_disk / "s.zarr")


@pytest.mark.sampled(0)
def test_a_slow_disk_slows_the_sweep_and_nothing_else(slow_disk, client):
    """What waits for the disk waits where it is: few tasks are out, and no configuration is over its time limit."""
    limit_s, writes_per_s = 0.3, 60
    store = slow_disk.folder / "s.zarr"
    long_sweep(rows=1, replicates=1, sleep_s=0.0).run(store, cluster=client, progress=False)
    tasks, stop, others = [], threading.Event(), set(client.cluster.scheduler.tasks)

    def count() -> None:
        while not stop.wait(0.05):
            new = set(client.cluster.scheduler.tasks) - others
            tasks.append(sum(key.startswith("faultsweep-") for key in map(str, new)))

    watcher = threading.Thread(target=count)
    watcher.start()
    slow_disk.allow(writes_per_s)
    begin, written = time.monotonic(), slow_disk.writes()
    try:
        sweep = long_sweep(rows=4, sleep_s=0.0)
        results = sweep.run(store, cluster=client, progress=False, time_limit_s=limit_s)
    finally:
        stop.set()
        watcher.join()
    took, written = time.monotonic() - begin, slow_disk.writes() - written
    assert took > 0.8 * written / writes_per_s > 10 * limit_s, "the disk was not slow"
    assert (results.wall_s.values[results.status.values == DONE] < limit_s).all()
    assert 0 < max(tasks) <= 2 * 2 + 1
    assert_complete(store, rows=4)
