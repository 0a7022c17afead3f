"""Whatever happens at whatever point, a run ends, goes on, or says why; and no result is lost or mixed up."""

from __future__ import annotations

import random
import signal
from collections import Counter

import numpy as np
import pytest
from faultsweep.sweeps.runner import task
from faultsweep.sweeps.runner.watch import ABSENCE_S, IDLE_S, SweepStoppedError
from faultsweep.sweeps.store.journal import read_journal
from faultsweep.sweeps.store.statuses import DONE, FAILED
from faultsweep.sweeps.sweep import Sweep

import faultsweep as fs
from faultsweep.errors import InputError
from tests.sweeps.simulated import KINDS, Cluster, Fault, Worker, simulated

CALLS: Counter = Counter()


def square(a: int, b: int = 0) -> dict[str, float]:
    """Numbers that tell which cell they are of; every call is counted."""
    CALLS[a, b] += 1
    return {"y": a * a + b / 7, "z": float(a) - 1000 * b}


def sweep(outputs=("y", "z")):
    return Sweep(name="s", axes={"a": list(range(8)), "b": [0, 1, 2]}, function=square, outputs=outputs)


def run(monkeypatch, path, cluster, outputs=("y", "z"), **options):
    """Run the sweep on a simulated cluster; returns what it says if it stops early, "" if it is over."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        with simulated(monkeypatch, cluster):
            sweep(outputs).run(path, workers=2, progress=False, **options)
        return ""
    except (SweepStoppedError, InputError) as error:
        return str(error)
    finally:
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def written(path):
    """Return the keys of all results that journals hold."""
    folder = path.with_name(path.name + ".run")
    keys = [
        records.keys[:, records.status < 100]
        for file in folder.glob("journals/*.journal")
        for records in read_journal(file)
    ]
    return {tuple(key) for part in keys for key in part.T.tolist()}


def assert_right(path):
    with fs.open_results(path) as data:
        assert (data.status.values == DONE).all(), np.unique(data.status.values)
        a, b = np.meshgrid(data.a.values, data.b.values, indexing="ij")
        assert np.array_equal(data.y.values.squeeze(), a * a + b / 7)
        assert np.array_equal(data.z.values.squeeze(), a - 1000.0 * b)


def check(monkeypatch, path, faults, deadly=False):
    """Run with faults, and again without: the first run ends in time, the second one runs only what was not done.

    Where workers die again and again (``deadly``), configurations are quarantined.
    """
    cluster = Cluster(faults)
    said = run(monkeypatch, path, cluster)
    assert cluster.now - cluster.begin < 2 * ABSENCE_S + 60 * len(cluster.points), "not over in the stated time"
    assert "Traceback" not in said
    if not said and deadly:
        with fs.open_results(path) as data:
            failed = data.status.values == FAILED
            assert all("its worker process died" in text for text in data.error.values[failed])
        assert run(monkeypatch, path, Cluster(), retry_failed=True) == ""
    if not said:
        assert_right(path)
        return cluster
    assert len(said) > 10, said
    saved = len(written(path)) if path.exists() else 0
    CALLS.clear()
    again = run(monkeypatch, path, Cluster())
    assert again == "", again
    assert_right(path)
    assert sum(CALLS.values()) <= 24 - saved, "a result that was written down is run again"
    return cluster


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """The points of a run without faults."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        path = tmp_path_factory.mktemp("plain") / "s.zarr"
        cluster = Cluster()
        assert run(monkeypatch, path, cluster) == ""
        assert_right(path)
    assert len(cluster.points) > 100
    return cluster.points


@pytest.fixture(scope="module")
def number(points):
    """How many these are."""
    return len(points)


SHARE = 16
"""One point of so many is tried by default, another one for each kind of fault; all of them with the slow tests."""
SHARES = [pytest.param(i, id=str(i), marks=[pytest.mark.slow] if i else []) for i in range(SHARE)]


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(6)
def test_one_fault_at_each_point(monkeypatch, tmp_path, number, kind, share):
    happened = 0
    for at in range((share + KINDS.index(kind)) % SHARE, number, SHARE):
        happened += bool(check(monkeypatch, tmp_path / f"{at}.zarr", [Fault(kind, at)]).happened)
    assert happened


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("SIG")])
@pytest.mark.sampled(3)
def test_a_fault_that_stays(monkeypatch, tmp_path, number, kind, share):
    for at in range((share + KINDS.index(kind)) % SHARE, number, 2 * SHARE):
        check(monkeypatch, tmp_path / f"{at}.zarr", [Fault(kind, at, lasting=True)], deadly=kind.startswith("death"))


@pytest.mark.parametrize("share", [pytest.param(i, marks=[pytest.mark.slow] if i else []) for i in range(10)])
def test_several_faults(monkeypatch, tmp_path, number, share):
    chance = random.Random(share)
    for trial in range(15):
        faults = [Fault(chance.choice(KINDS), chance.randrange(number)) for _ in range(chance.randint(2, 4))]
        check(monkeypatch, tmp_path / f"{trial}.zarr", faults)


def test_a_task_that_reaches_no_worker_is_handed_out_again(monkeypatch, tmp_path, points):
    """One, or each that is handed out from then on: then the run gives up."""
    handed_out = [number for number, name in enumerate(points) if name == "submit"]
    assert len(handed_out) > 5
    for at in handed_out:
        cluster = check(monkeypatch, tmp_path / f"{at}.zarr", [Fault("lost task", at)])
        assert cluster.happened == ["lost task"]
    check(monkeypatch, tmp_path / "all.zarr", [Fault("lost task", handed_out[3], lasting=True)])
    assert not (tmp_path / "all.zarr.run" / "lock").exists()


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("sees", [False, True])
def test_a_lost_task_of_workers_of_others_is_handed_out_again(monkeypatch, tmp_path, foreign, sees):
    """Whether they see the folder of the run or not: those that do not leave no marks, and are asked."""
    if not sees:
        monkeypatch.setattr(task._Session, "_sees", lambda session, folder: False)
    plain, path = Cluster(foreign=foreign), tmp_path / "s.zarr"
    assert run(monkeypatch, tmp_path / "plain.zarr", plain) == ""
    at = [number for number, name in enumerate(plain.points) if name == "submit"][4]
    cluster = Cluster([Fault("lost task", at)], foreign=foreign)
    assert run(monkeypatch, path, cluster) == ""
    assert_right(path)
    assert cluster.happened == ["lost task"]
    assert IDLE_S < cluster.now - cluster.begin < 2 * IDLE_S
    assert sees != (f"workers cannot see {path}.run" in (tmp_path / "s.zarr.run" / "log.txt").read_text())


@pytest.mark.parametrize("foreign", [False, True])
def test_a_first_cell_that_reaches_no_worker_is_handed_out_again(monkeypatch, tmp_path, foreign):
    """Its time limit is not over while it waits for a worker."""
    cluster = Cluster([Fault("lost task", 0)], foreign=foreign)
    assert run(monkeypatch, tmp_path / "s.zarr", cluster, outputs=None, time_limit_s=30) == ""
    assert cluster.happened == ["lost task"]
    assert IDLE_S < cluster.now - cluster.begin < 2 * IDLE_S
    assert_right(tmp_path / "s.zarr")


def test_own_workers_that_never_begin_the_first_cell_are_not_waited_for(monkeypatch, tmp_path):
    said = run(monkeypatch, tmp_path / "s.zarr", Cluster([Fault("lost task", 0, lasting=True)]), outputs=None)
    assert "no worker has begun the first cell" in said
    assert run(monkeypatch, tmp_path / "s.zarr", Cluster(), outputs=None) == ""


@pytest.mark.parametrize("outputs", [None, ("y", "z")])
def test_workers_of_a_batch_system_may_come_late_and_the_run_says_that_it_waits(monkeypatch, tmp_path, outputs):
    cluster = Cluster(foreign=True)
    for worker in cluster.workers:
        worker.back_at = cluster.now + 4.5 * ABSENCE_S
    assert run(monkeypatch, tmp_path / "s.zarr", cluster, outputs) == ""
    assert_right(tmp_path / "s.zarr")
    log = (tmp_path / "s.zarr.run" / "log.txt").read_text()
    assert log.count("waiting for workers") == 1
    assert log.count("waiting for one (Ctrl-C stops)") == 4


def test_workers_of_others_that_go_before_the_first_cell_is_over_are_waited_for_with_a_limit(monkeypatch, tmp_path):
    cluster = Cluster([Fault("lost task", 0), Fault("last death", 10, lasting=True)], foreign=True)
    assert "there has been no worker for" in run(monkeypatch, tmp_path / "s.zarr", cluster, outputs=None)


@pytest.mark.parametrize("at", ["begin", ""])
def test_workers_that_die_at_one_address_are_not_waited_for(monkeypatch, tmp_path, at):
    """With a fixed port each process has the address of the one before."""
    monkeypatch.setattr(Worker, "address", property(lambda worker: worker.name))
    said = run(monkeypatch, tmp_path / "s.zarr", Cluster([Fault("deaths", 0, lasting=True, at=at)]))
    assert "before they run anything" in said if at else "no worker has begun anything" in said
    assert run(monkeypatch, tmp_path / "s.zarr", Cluster()) == ""
    assert_right(tmp_path / "s.zarr")


FAST = [pytest.param(1, True, id="lasting")]
SLOW = [pytest.param(at, lasting, marks=pytest.mark.slow) for at in range(5) for lasting in (False, True)]


@pytest.mark.parametrize(("at", "lasting"), FAST + SLOW)
@pytest.mark.parametrize("kind", KINDS[: KINDS.index("ENOSPC")])
def test_the_first_cell_is_not_waited_for_without_a_limit(monkeypatch, tmp_path, kind, at, lasting):
    """It is run before all others where nothing declares outputs; a fault that stays is over for the next run."""
    path = tmp_path / "s.zarr"
    said = run(monkeypatch, path, Cluster([Fault(kind, at, lasting)]), outputs=None)
    assert len(said) > 10 or not lasting or kind == "slow result", said
    if said:
        assert run(monkeypatch, path, Cluster(), outputs=None, retry_failed=True) == ""
    assert_right(path)
