"""Tasks are measured by the time for which they work, which on a busy machine is not the time that they take."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from faultsweep.sweeps.runner import task as task_module
from faultsweep.sweeps.runner import work_clock
from faultsweep.sweeps.runner.task import BatchResult, Columns, Context, run_batch
from faultsweep.sweeps.runner.work_clock import WorkClock
from faultsweep.sweeps.sweep import Sweep

ON_LINUX = pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="this system does not tell")
BUSY = "import os; os.sched_setaffinity(0, {%d}); print(flush=True)\nwhile True: pass"


def work(seconds: float) -> None:
    """Keep a processor busy for so much processor time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@contextmanager
def crowded(processor: int) -> Iterator[None]:
    """Let three other programs run on a processor."""
    command = [sys.executable, "-c", BUSY % processor]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) for _ in range(3)]
    try:
        for other in others:
            other.stdout.readline()
        yield
    finally:
        for other in others:
            other.kill()
            other.communicate()


def on_a_crowded_processor(action: Callable[[], Any]) -> Any:
    """Return what an action gives in a thread that shares its processor with three other programs."""
    processor, found = min(os.sched_getaffinity(0)), []

    def act() -> None:
        os.sched_setaffinity(0, {processor})  # of this thread
        found.append(action())

    with crowded(processor):
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
    return found[0]


@ON_LINUX
def test_the_time_of_others_does_not_count():
    def measure() -> tuple[float, float]:
        clock, start = WorkClock(), time.perf_counter()
        work(0.2)
        return clock.work_s(), time.perf_counter() - start

    work_s, passed_s = on_a_crowded_processor(measure)
    assert passed_s > 0.35
    assert 0.2 <= work_s < 0.5 * (0.2 + passed_s)


def test_sleeping_counts():
    clock = WorkClock()
    time.sleep(0.1)
    assert clock.work_s() > 0.09


def mass(x: float) -> float:
    """Return a number after 2 ms of work."""
    work(0.002)
    return x


def run_crowded(number: int, *limits_s: float) -> BatchResult:
    """Run a task of so many configurations of 2 ms on a processor that others use, too."""
    xs = [float(i) for i in range(number)]
    spec = Sweep(axes={"x": xs}, function=mass, outputs=["y"]).spec
    context = Context("crowd", spec.target, spec.outputs, {}, None, "").pack()
    keys = np.arange(2 * number, dtype=np.uint64).reshape(2, -1)
    try:
        return on_a_crowded_processor(lambda: run_batch(context, 1, Columns({"x": xs}), keys, *limits_s))
    finally:
        task_module.leave_run("crowd")


@ON_LINUX
def test_a_task_tells_how_long_it_has_worked():
    result = run_crowded(100, 60.0)
    assert not result.errors
    assert result.done == 100
    assert result.wall_s.sum() > 0.35
    assert 0.2 <= result.work_s < 0.5 * (0.2 + result.wall_s.sum())
    assert result.work_s + result.waited_s >= result.wall_s.sum(), "what comes between runs counts, too"


@ON_LINUX
def test_a_task_returns_after_so_much_work_or_time():
    by_work, by_time = run_crowded(400, 60.0, 0.2), run_crowded(400, 0.4, 60.0)
    assert 0.2 < by_work.work_s < 0.3
    assert 0.4 < by_time.work_s + by_time.waited_s < 1.0
    assert 0 < by_time.done < by_work.done < 400


@pytest.mark.parametrize("content", [None, b"", b"12", b"1 two 3"])
def test_a_system_that_does_not_tell(content, tmp_path, monkeypatch):
    path = tmp_path / "schedstat"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(work_clock, "_SCHEDULED", str(path))
    clock, start = WorkClock(), time.perf_counter()
    work(0.01)
    assert clock.work_s() >= 0.01
    assert clock.work_s() == pytest.approx(time.perf_counter() - start, abs=0.1)


def test_pauses_and_waits_that_come_between_two_looks(monkeypatch):
    now = SimpleNamespace(passed=5.0, waited=3.0)
    monkeypatch.setattr(work_clock, "time", SimpleNamespace(perf_counter=lambda: now.passed))
    monkeypatch.setattr(work_clock, "_waited_s", lambda: now.waited)
    clock = WorkClock()
    now.passed, now.waited = 7.0, 3.5
    assert (clock.passed_s(), clock.work_s()) == (2.0, 1.5)
    with clock.paused():
        now.passed, now.waited = 17.0, 8.5
    assert (clock.passed_s(), clock.work_s()) == (2.0, 1.5)
    assert clock.is_over(1.9, 9.0)
    assert clock.is_over(9.0, 1.4)
    assert not clock.is_over(2.0, 1.5)
    assert not clock.is_over(9.0, 1.9), "it has passed, but not worked so long"
    now.waited = 11.0
    assert clock.work_s() == 0.0
