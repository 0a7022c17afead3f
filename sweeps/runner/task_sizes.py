"""How many configurations a task has, and after how long it returns.

Tasks have about half a second of work each, by measured times: a Dask scheduler tops out near 450 tasks a second, and a
bounded number of tasks in flight keeps its memory small (both measured).
"""

from __future__ import annotations

from collections import deque

TASK_S = 0.5
"""Time that a task should work at least."""
TASKS_A_SECOND = 200
"""Tasks that a scheduler is given at most; many workers get longer tasks."""
_LARGEST = 16_384
_FIRST = 16
_PARTS = 8
"""Into so many a task may be split at the end of a sweep; a smaller one takes the scheduler as long as the worker."""
_LONGEST_S = 8.0
"""The longest time that a task may take on a busy machine."""


class TaskSizes:
    """Learns from finished tasks how large the next ones should be.

    Attributes
    ----------
    workers : the threads that work now.
    """

    def __init__(self) -> None:
        """Begin with small tasks."""
        self.workers = 1
        self._run_s = 0.0
        self._most = _FIRST
        self._slowdowns: deque[float] = deque()

    def learn(self, runs: int, work_s: float, waited_s: float) -> None:
        """Take from a task how long its runs worked, and for how long others had the processors meanwhile."""
        run_s = work_s / runs
        self._run_s = run_s if not self._run_s else 0.7 * self._run_s + 0.3 * run_s
        self._most = min(_usual_size(self._run_s, self.workers), 8 * self._most)
        self._slowdowns.append(1 + waited_s / max(work_s, 1e-7))
        while len(self._slowdowns) > 2 * self.workers:
            self._slowdowns.popleft()

    def next_size(self, left: int) -> int:
        """Return how many runs the next task has if so many are left."""
        return _next_size(left, self._most, self.workers)

    def most_work_s(self) -> float:
        """Return after how much work the next task returns, done or not: twice as much as it should have."""
        return 2 * _task_s(self.workers)

    def slice_s(self) -> float:
        """Return after how much time the next task returns, done or not.

        This is the most that it may work, times the least slowdown of recent tasks. Where all were slow, small tasks
        would be no faster; where one worker is fast, a slow one has to give work back soon.
        """
        usual_s = self.most_work_s()
        if len(self._slowdowns) < 2 * self.workers:
            return usual_s
        return max(usual_s, min(usual_s * min(self._slowdowns), _LONGEST_S))


def count_tasks(runs: int, run_s: float, workers: int) -> int:
    """Return in about how many tasks a run hands out so many runs that take so long."""
    usual, left, tasks = _usual_size(run_s, workers), runs, 0
    while left > 0:
        is_first = tasks <= 2 * workers  # handed out before anything is known
        size = _next_size(left, min(usual, _FIRST) if is_first else usual, workers)
        alike = 1 if is_first else max(1, left // usual - 2 * workers)
        left -= alike * size
        tasks += alike
    return tasks


def _task_s(workers: int) -> float:
    return max(TASK_S, workers / TASKS_A_SECOND)


def _usual_size(run_s: float, workers: int) -> int:
    """Return how many runs a task should have that take so long."""
    return int(min(max(1.0, _task_s(workers) / max(run_s, 1e-7)), _LARGEST))


def _next_size(left: int, usual: int, workers: int) -> int:
    """Return how many runs the next task has: fewer towards the end, so that no worker waits for the last large one,
    and enough to be worth a task."""
    return min(usual, left, max(-(-left // (2 * workers)), usual // _PARTS))
