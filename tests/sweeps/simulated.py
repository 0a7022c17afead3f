"""A cluster that is simulated: one process, one thread, a clock that only the simulation moves, and faults at will.

The runner, the collector, the store and the code of the workers are the real ones. What stands for the rest: a client
with its futures, workers that run their tasks when the client waits, and the calls of the operating system that write.
Every call of these is a *point*, numbered in order; a ``Fault`` happens at one of them. So a test can walk through all
interleavings of a sweep with one fault (or several), each of which is the same in every run.
"""

from __future__ import annotations

import errno
import itertools
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from faultsweep.cluster import connect as connect_module
from faultsweep.sweeps import sweep as sweep_module
from faultsweep.sweeps.runner import first as first_module
from faultsweep.sweeps.runner import progress as progress_module
from faultsweep.sweeps.runner import runner as runner_module
from faultsweep.sweeps.runner import task as task_module
from faultsweep.sweeps.runner import watch as watch_module
from faultsweep.sweeps.store import collector as collector_module
from faultsweep.sweeps.store import journal as journal_module
from faultsweep.sweeps.store import manifest as manifest_module
from faultsweep.sweeps.store import store as store_module

RESTART_S = 3.0
"""After this a worker that died is there again, if anything starts it."""
TASK_S = 0.3
"""Simulated time of a task."""
LONGEST_S = 6 * watch_module.ABSENCE_S
"""No run may take longer, by the simulated clock, whatever happens: then it hangs."""


class HangError(BaseException):
    """The run waits for something that never comes."""


class DeathError(BaseException):
    """The worker process that is being simulated has ended: nothing of what it would do next is done."""


@dataclass(frozen=True)
class Fault:
    """What happens at a point, or at every point from it on (``lasting``).

    ``kind`` is one of KINDS; ``number`` is that of the point, ``at`` its name if it matters.
    """

    kind: str
    number: int
    lasting: bool = False
    at: str = ""


KINDS = (
    "death",  # of the worker that runs a task, or of the one that has a result that is being fetched
    "deaths",  # of all workers
    "last death",  # of all workers, and nothing starts them again
    "slow result",  # a result takes half a minute to arrive
    "stuck result",  # a result never arrives, though its worker lives
    "lost task",  # what is handed out reaches no worker, and nobody says so
    "scheduler",  # it is gone
    "silent scheduler",  # it does not answer, and the connection stays
    "ENOSPC",
    "EIO",
    "slow disk",  # a write takes a minute
    "SIGINT",
    "SIGTERM",
    "SIGINT twice",
)


@dataclass
class Worker:
    """A worker process; ``born`` changes when it is started again, as the number of a process does."""

    name: str
    born: int
    back_at: float | None = None
    task: Any = None

    @property
    def address(self) -> str:
        return f"{self.name}-{self.born}"

    @property
    def alive(self) -> bool:
        return self.back_at is None


@dataclass
class Future:
    """A future of the simulated client, as much of it as the runner uses."""

    cluster: Cluster
    call: Callable[[], Any]
    only: Sequence[str] | None
    state: str = "pending"
    value: Any = None
    error: BaseException | None = None
    holder: Worker | None = None
    deaths: int = 0
    slow_s: float = 0.0
    callbacks: list[Callable[[Any], None]] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.state

    def done(self) -> bool:
        return self.state != "pending"

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.callbacks.append(callback)

    def settle(self, state: str, value: Any = None, error: BaseException | None = None) -> None:
        self.state, self.value, self.error = state, value, error
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback(self)

    def result(self, timeout: float | None = None) -> Any:
        """Fetch the result: whoever asks without a limit for what is not there waits for ever."""
        self.cluster.point("result", self)
        end = None if timeout is None else self.cluster.now + timeout
        while self.state in ("pending", "lost") or self.slow_s > 0:
            if self.state == "cancelled":
                break
            left = self.slow_s if self.slow_s > 0 else None
            if left is not None and (end is None or self.cluster.now + left <= end):
                self.slow_s = 0.0
                self.cluster.advance(left)
                continue
            if end is None:
                raise HangError("result() without a limit, and nothing to come")
            self.cluster.advance(max(0.0, end - self.cluster.now))
            raise TimeoutError
        if self.state == "cancelled":
            from concurrent.futures import CancelledError

            raise CancelledError
        if self.error is not None:
            raise self.error
        return self.value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self.state == "pending" and timeout is None:
            raise HangError("exception() without a limit")
        return self.error

    def release(self) -> None:
        self.cluster.point("release", self)
        if self in self.cluster.queue:
            self.cluster.queue.remove(self)


class Client:
    """Stands for ``distributed.Client``."""

    def __init__(self, cluster: Cluster) -> None:
        self.simulated = cluster
        self.cluster = None  # none that the runner may mend

    @property
    def status(self) -> str:
        return "closed" if self.simulated.gone else "running"

    def submit(
        self, function: Any, *arguments: Any, workers: Any = None, key: str = "", pure: bool = True, **options: Any
    ) -> Future:
        self.simulated.point("submit")
        if self.simulated.gone:
            from distributed.client import ClosedClientError

            raise ClosedClientError("Tried sending message after closing")
        future = Future(self.simulated, lambda: function(*arguments), workers)
        if self.simulated.loses:
            self.simulated.loses = False
        else:
            self.simulated.queue.append(future)
        self.simulated.futures.append(future)
        return future

    def nthreads(self, callback_timeout: float | None = None) -> dict[str, int]:
        self.simulated.point("nthreads")
        if self.simulated.silent:
            if callback_timeout is None:
                raise HangError("nthreads() without a limit")
            self.simulated.advance(callback_timeout)
            raise TimeoutError
        if self.simulated.gone:
            raise OSError("no connection")
        self.simulated.revive()
        return {worker.address: 1 for worker in self.simulated.workers if worker.alive}

    def run(self, function: Any, *arguments: Any, on_error: str = "raise") -> dict[str, Any]:
        """Call a function in the workers; the runner does it in a thread, so nothing is simulated here."""
        return {"all": function(*arguments)}


class Cluster:
    """The simulation: clock, points, faults, workers."""

    def __init__(self, faults: Sequence[Fault] = (), workers: int = 2, foreign: bool = False) -> None:
        """Take what happens; ``foreign`` workers are not processes that the run has started."""
        self.foreign = foreign
        self.faults = list(faults)
        self.now = 1000.0
        self.begin = self.now
        self.points: list[str] = []
        self.happened: list[str] = []
        self.workers = [Worker(f"w{i}", i) for i in range(workers)]
        self.births = itertools.count(workers)
        self.queue: deque[Future] = deque()
        self.futures: list[Future] = []
        self.gone = self.silent = self.is_final = self.loses = False
        self.running: Worker | None = None
        self.thread = threading.get_ident()
        self.wrote: list[tuple[int, int]] = []

    # time

    def advance(self, seconds: float) -> None:
        """Let time pass; whatever waits longer than a run may take, hangs."""
        self.now += seconds
        if self.now - self.begin > LONGEST_S:
            raise HangError(f"not over after {LONGEST_S:.0f} s; last points: {self.points[-8:]}")

    def revive(self) -> None:
        for worker in self.workers:
            if worker.back_at is not None and self.now >= worker.back_at and not self.is_final:
                worker.back_at, worker.born = None, next(self.births)

    def step(self) -> bool:
        """Let one worker run one task; tells whether there was one."""
        self.revive()
        if self.gone or self.silent:
            return False
        for future in list(self.queue):
            for worker in self.workers:
                if worker.alive and (future.only is None or worker.address in future.only):
                    self.queue.remove(future)
                    self._run(worker, future)
                    return True
        return False

    def _run(self, worker: Worker, future: Future) -> None:
        self.running = worker
        try:
            self.point("begin", future)
            value = future.call()
            self.point("end", future)
        except DeathError:
            self.bury(future, worker)
            return
        finally:
            self.running = None
        self.advance(TASK_S)
        future.holder = worker
        future.settle("finished", value)

    def bury(self, future: Future, worker: Worker) -> None:
        """A task whose worker dies fails, as with ``allowed-failures`` 0."""
        from distributed import KilledWorker

        last = SimpleNamespace(address=worker.address, server_id=str(worker.born))
        future.settle("error", error=KilledWorker("task", last, 0))

    def kill(self, worker: Worker) -> None:
        """End a worker: what it has, and does, is lost."""
        if not worker.alive:
            return
        worker.back_at = self.now + RESTART_S
        for future in self.futures:
            if future.holder is worker and future.state == "finished":
                future.state = "lost"
        for key in [key for key in task_module._sessions if key[1] == worker.born]:
            session = task_module._sessions.pop(key)
            with self.real():
                session.close()

    # points and faults

    def point(self, name: str, future: Future | None = None) -> None:
        """Count a call, and let happen what is to happen at it."""
        if threading.get_ident() != self.thread:
            return
        number = len(self.points)
        self.points.append(name)
        for fault in self.faults:
            if fault.at in ("", name) and (fault.number == number or (fault.lasting and number > fault.number)):
                self._happen(fault.kind, name, future)

    def _happen(self, kind: str, name: str, future: Future | None) -> None:
        self.happened.append(kind)
        if kind in ("SIGINT", "SIGTERM", "SIGINT twice"):
            for _ in range(2 if kind == "SIGINT twice" else 1):
                signal.raise_signal(signal.SIGTERM if kind == "SIGTERM" else signal.SIGINT)
        elif kind == "scheduler":
            self.gone = True
            for each in self.futures:
                if each.state == "pending":
                    each.settle("cancelled")
        elif kind == "silent scheduler":
            self.silent = True
        elif kind == "lost task":
            self.loses |= name == "submit"
        elif kind == "slow disk" and name in WRITES:
            self.begin += 60.0  # of these there may be many: a slow disk is slow
            self.advance(60.0)
        elif kind in ("ENOSPC", "EIO") and name in WRITES:
            number = getattr(errno, kind)
            raise OSError(number, os.strerror(number), "/the/disk")
        elif kind in ("slow result", "stuck result") and future is not None and name == "result":
            future.slow_s = 30.0 if kind == "slow result" else 1e9
        elif kind in ("death", "deaths", "last death"):
            self._end_workers(kind, future)

    def _end_workers(self, kind: str, future: Future | None) -> None:
        at = self.running
        holder = future.holder if future is not None else None
        victims = list(self.workers) if kind != "death" else [w for w in (at or holder,) if w is not None]
        self.is_final |= kind == "last death"
        for worker in victims:
            self.kill(worker)
        if at is not None and at in victims:
            raise DeathError

    @contextmanager
    def real(self) -> Any:
        """Let nothing happen meanwhile: this is the operating system that tidies up after a process."""
        faults, self.faults = self.faults, []
        points = len(self.points)
        try:
            yield
        finally:
            self.faults = faults
            del self.points[points:]

    # what the modules see

    def get_ident(self) -> int:
        """Return the thread of the code that runs: a worker process has one of its own."""
        return self.running.born if self.running is not None else -1


WRITES = ("write", "mark", "sync", "block", "replace")


class _Queue:
    """A queue whose ``get`` lets the cluster work while it waits."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.items = cluster, deque()

    def put(self, item: Any) -> None:
        self.items.append(item)

    def get_nowait(self) -> Any:
        if not self.items:
            raise queue.Empty
        return self.items.popleft()

    def get(self, timeout: float | None = None) -> Any:
        self.cluster.point("wait")
        if not self.items and not self.cluster.step():
            if timeout is None:
                raise HangError("get() without a limit")
            self.cluster.advance(timeout)
        return self.get_nowait()


@contextmanager
def simulated(monkeypatch: Any, cluster: Cluster) -> Any:
    """Let sweeps of this process run on the simulated cluster."""

    def sleep(seconds: float) -> None:
        cluster.point("sleep")
        if not cluster.step():
            cluster.advance(seconds)

    def monotonic() -> float:
        return cluster.now if threading.get_ident() == cluster.thread else time.monotonic()

    clock = SimpleNamespace(monotonic=monotonic, sleep=sleep, time=time.time, perf_counter=time.perf_counter)

    def watched(name: str, call: Any) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            cluster.point(name)
            return call(*arguments, **options)

        return run

    system = {
        "write": watched("write", os.write),
        "pwrite": watched("mark", os.pwrite),
        "fdatasync": watched("sync", lambda file: None),  # processes end here, the power does not
        "replace": watched("replace", os.replace),
    }
    calls = SimpleNamespace(**vars(os) | system)

    @contextmanager
    def local(workers: int | None, dashboard: Any) -> Any:
        yield Client(cluster)

    with monkeypatch.context() as patch:
        patch.setattr(connect_module, "_local", local)
        if cluster.foreign:
            patch.setattr(sweep_module._Workers, "client", lambda workers: (Client(cluster), False))
        for module in (runner_module, watch_module, first_module, collector_module, progress_module):
            patch.setattr(module, "time", clock)
        for module in (journal_module, task_module, store_module):
            patch.setattr(module, "os", calls)
        patch.setattr(task_module, "threading", SimpleNamespace(get_ident=cluster.get_ident, Lock=threading.Lock))
        patch.setattr(runner_module, "queue", SimpleNamespace(SimpleQueue=lambda: _Queue(cluster), Empty=queue.Empty))
        patch.setattr(manifest_module, "os", SimpleNamespace(**vars(os) | {"fsync": lambda file: None}))
        patch.setattr(sweep_module, "_sync", lambda path: None)  # of the disk of this machine, with what others write
        patch.setattr(store_module.Store, "write_block", watched("block", store_module.Store.write_block))
        try:
            yield
        finally:
            for key in [key for key in task_module._sessions if key[1] < 10_000]:
                with cluster.real():
                    task_module._sessions.pop(key).close()
