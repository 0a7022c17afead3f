"""Tasks are sized by the work of finished ones, and return after a while."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from faultsweep.sweeps.runner import task_sizes
from faultsweep.sweeps.runner.runner import Runner
from faultsweep.sweeps.runner.task import BatchResult
from faultsweep.sweeps.runner.task_sizes import TASK_S, TaskSizes, count_tasks

RUN_S = 0.002
USUAL_S = 2 * TASK_S


def learned(slowdowns: list[float], workers: int = 2) -> TaskSizes:
    """Return what is learned from tasks of 16 runs on machines that are so many times slower than if idle."""
    sizes = TaskSizes()
    sizes.workers = workers
    for slowdown in slowdowns:
        sizes.learn(16, 16 * RUN_S, (slowdown - 1) * 16 * RUN_S)
    return sizes


class Folded(Runner):
    """What learns from results, and nothing that hands out tasks."""

    def __init__(self, sizes: TaskSizes) -> None:
        self._sizes = sizes
        self._segments = self._unexplained = self.progress = MagicMock(worker_bytes=0)

    def _deliver(self, cells: Any, result: Any) -> None:
        pass


def test_a_runner_tells_work_and_waiting_of_each_result():
    sizes = learned([])
    runner = Folded(sizes)
    for _ in range(4):
        arrays = np.full(16, 1), np.full(16, 4 * RUN_S), np.zeros((16, 1))
        result = BatchResult(16, *arrays, {}, work_s=16 * RUN_S, journalled=True, waited_s=48 * RUN_S)
        runner._fold(SimpleNamespace(cells=np.arange(16)), result)
    assert sizes.next_size(10**6) == round(TASK_S / RUN_S)
    assert sizes.slice_s() == 4 * USUAL_S


@pytest.mark.parametrize("slowdown", [1.0, 10.0, 1e9])
def test_the_next_tasks_are_sized_by_work(slowdown):
    assert learned(3 * [slowdown]).next_size(10**6) == round(TASK_S / RUN_S), "whatever else the processors do"


@pytest.mark.parametrize(
    ("slowdowns", "times"),
    [
        ([], 1),
        (3 * [5.0], 1),  # too few to tell
        (4 * [5.0], 5),
        ([1.0, 5.0, 4.0, 3.0, 9.0], 3),  # the first one is forgotten
        ([5.0, 4.0, 1.0, 5.0], 1),  # one processor is fast
        ([1.0, 1.0, 1.0, 1.0], 1),
        (4 * [1e9], 8),
        ([4.0, 4.0, 4.0, 0.5], 1),
    ],
)
def test_tasks_take_longer_where_all_workers_wait(slowdowns, times):
    assert learned(slowdowns).slice_s() == pytest.approx(times * USUAL_S)
    assert learned(slowdowns).most_work_s() == USUAL_S


def test_tasks_of_many_workers_are_not_cut_short():
    """They are as long as a scheduler of so many wants them, busy or not."""
    workers = 3200
    assert learned(2 * workers * [1.5], workers).slice_s() == 2 * workers / task_sizes.TASKS_A_SECOND > 8.0


def test_a_task_of_no_time_teaches_no_nonsense():
    sizes = learned([])
    for _ in range(8):
        sizes.learn(16, 0.0, 0.0)
    assert sizes.slice_s() == USUAL_S
    assert sizes.next_size(10**9) == 16_384


def test_cells_that_a_slow_worker_left_are_shared_out_at_the_end():
    """Else a worker that is slow gets all that it left once more, and the others wait for it."""
    cells = np.arange(60)
    sizes = learned([])
    sizes.learn(1, TASK_S / 32, 0.0)
    runner = SimpleNamespace(_waiting=deque([cells[:40], cells[40:]]), _sizes=sizes)
    early = Runner._take_waiting(runner, 1000)
    late = [Runner._take_waiting(runner, 0).tolist() for _ in range(4)]
    assert early.tolist() == list(range(32))
    assert late == [list(range(32, 39)), [39], list(range(40, 45)), list(range(45, 49))]


@pytest.mark.parametrize(("runs", "run_s"), [(0, 1.0), (1, 1.0), (7, 100.0), (10**8, 1e-3), (10**8, 100.0)])
def test_tasks_are_counted_at_once_and_at_most_one_for_each_run(runs, run_s):
    tasks = [count_tasks(runs, run_s, workers) for workers in (1, 3, 1000)]
    least = runs * min(run_s, 0.5) / 5  # a thousand workers get tasks of 5 s
    assert all(least <= number <= runs for number in tasks)
