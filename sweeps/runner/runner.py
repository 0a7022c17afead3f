"""Runs the missing simulations of a sweep on a Dask cluster, and survives what happens to workers meanwhile.

A task returns when its time is over even if it was cut too large (``task_sizes``); what it left is handed out again.

A worker that dies leaves a mark that names the configuration it was at. That one is run again in a task of its own, and
after a second death at the end, with nothing beside it: another task on the node may have exhausted the memory. If its
worker dies then, too, it is quarantined: it fails with a sentence. Deaths are written down, so that a run that goes on
after a kill knows them.
"""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from faultsweep.sweeps.grid import Cells, Grid, Keys
from faultsweep.sweeps.runner import task
from faultsweep.sweeps.runner.order import Cursor, Durations
from faultsweep.sweeps.runner.progress import (
    COMPILING,
    LOG,
    RUNNING,
    SAVING,
    WAITING,
    Progress,
    format_seconds,
)
from faultsweep.sweeps.runner.segments import Segments
from faultsweep.sweeps.runner.task_sizes import TaskSizes
from faultsweep.sweeps.runner.watch import (
    IDLE_S,
    MOST_IDLE,
    QUIET_S,
    InterruptedSweepError,
    SweepStoppedError,
    Watch,
)
from faultsweep.sweeps.store.collector import Collector, Results
from faultsweep.sweeps.store.journal import (
    DIED,
    JournalWriter,
    follow,
    jobs_beside,
    journal_texts,
    pack_jobs,
    read_journal,
    unpack_jobs,
)
from faultsweep.sweeps.store.statuses import DONE, FAILED, TRUNCATED
from numpy.typing import NDArray

MOST_DEATHS = 3
"""Deaths of its worker, the last one alone, at which a configuration is quarantined."""
_IDLE_DEATHS = 20
"""Workers that die one after another, none of them at a configuration, after which a run gives up."""
_PREPARED_CONFIGURATIONS = 1024
"""Configurations, at most, that are looked at for what there is to prepare before work is spread."""
_KNOWN_CELLS = 1_000_000
"""Finished cells, at most, whose times are looked at for those of others."""
FETCH_S = 60.0
"""A finished task whose result does not arrive within this time is run again."""
_FIRST_FETCH_S = 2.0
_MOST_UNFETCHED = 5
"""Results in a row that do not arrive in time, after which a run gives up."""
_MOST_LOST = 50
"""Results in a row, and as many for each worker, that are lost with their workers, after which a run gives up."""
LOAD_S = 600.0
"""A worker that has not loaded the target after so long is waited for no longer."""
PREPARE_S = 1800.0
"""A worker that is not ready after so long is waited for no longer."""
_LOOK_S = 1.0
_PATIENCE_S = 2.0


@dataclass
class _Flying:
    """A task that was handed out; ``fetch_s`` is how long its result is waited for when it is fetched next, and
    ``waited_s`` how long it has been."""

    number: int
    future: Any
    cells: Cells
    solo: bool
    fetch_s: float = _FIRST_FETCH_S
    waited_s: float = 0.0


class Runner:
    """Hands out simulations and collects their results."""

    def __init__(
        self,
        client: Any,
        context: task.Context,
        folder: Path,
        grid: Grid,
        keys: Keys,
        collector: Collector,
        progress: Progress,
        local: bool = False,
        deaths: Mapping[int, int] | None = None,
    ) -> None:
        """Prepare; ``folder`` is the run's, ``keys`` are the canonical keys of all cells, shape (2, cells).

        ``local`` tells that the workers are processes started for this run, so that nothing queues for them. ``deaths``
        are those of earlier runs: cell -> number.
        """
        self.client = client
        self.context = context
        self.folder = folder
        self.packed = context.pack()
        self.grid = grid
        self._durations = _known_durations(collector, grid)
        self.keys = keys
        self.collector = collector
        self.progress = progress
        self.watch = Watch(client, local)
        self.local = local
        self.interrupts = 0
        self.is_unwanted: Callable[[], bool] = lambda: False
        self._finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._flying: dict[int, _Flying] = {}
        self._waiting: deque[Cells] = deque()
        self._suspects: deque[int] = deque()
        self._told_stop = False
        self._deaths: dict[int, int] = dict(deaths or {})
        self._explained: set[str] = set()
        self._unexplained: set[str] = set()
        self._most_workers = 0
        self._told_loss = False
        self._number = 0
        self._sizes = TaskSizes()
        self._looked = -_LOOK_S
        self._heard = self._progressed = self._given = time.monotonic()
        self._unfetched = self._lost = self._idle = 0
        self._arrived: set[str] = set()
        self._journal: JournalWriter | None = None
        self._own_segments = 0
        self._death_journal: JournalWriter | None = None
        self._blind = False
        self._segments = Segments(folder / "journals", collector.store.path, collector.check)

    def run(self, cells: Cells) -> None:
        """Simulate these cells, in about this order.

        Raises
        ------
        InterruptedSweepError
            The user stopped the run.
        SweepStoppedError
            The scheduler or all workers were lost, or no worker can run anything.
        OSError
            The disk is full.
        """
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        suspects = [cell for cell in self._deaths if self._is_suspect(cell)]
        if suspects:
            is_suspect = np.isin(cells, suspects)
            self._suspects.extend(cells[is_suspect].tolist())
            cells = cells[~is_suspect]
        todo = Cursor(cells, self._durations)
        try:
            with self._signals():
                self._wait_for_workers()
                self.progress.enter(COMPILING)
                self._warm(cells)
                self.progress.pace.work()
                self._progress()
                self.progress.enter(RUNNING)
                while self._flying or (self._left(todo) and not self.interrupts):
                    self._count_workers()
                    self.interrupts = self.interrupts or int(self.is_unwanted())
                    if self.interrupts:
                        self._ask_to_stop()
                    else:
                        self._hand_out(todo)
                    self._receive()
                    self.progress.show()
                    if self.collector.save_sometimes():
                        self._segments.remove_saved()
        except (ClosedClientError, CommClosedError, CancelledError, TimeoutError):
            raise SweepStoppedError("the scheduler has ended") from None
        finally:
            self._segments.join()
            for journal in filter(None, (self._journal, self._death_journal)):
                journal.close()
        self._tell_workers(task.leave_run).join(2)
        if self.interrupts and self._left(todo):
            raise InterruptedSweepError("stopped")

    def _left(self, todo: Cursor) -> bool:
        return bool(todo or self._waiting or self._suspects)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM: once, finish what runs; twice, stop now."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupts += 1
        if self.interrupts > 1:
            raise InterruptedSweepError("stopped at once")

    def _warm(self, cells: Cells) -> None:
        """Let one worker per kind of processor prepare (compile) before the others do, with their first tasks."""
        first: dict[str, str] = {}
        for worker, (kind, sees_folder) in self._on_each(self.watch.threads(), task.look, limit_s=LOAD_S).items():
            first.setdefault(kind, worker)
            if not sees_folder:
                self._tell_blind()
        start = time.monotonic()
        configs = self._preparations(cells)
        note = self.context.target.preparing_note(configs)
        for worker, problem in self._on_each(first.values(), task.warm, configs, note=note).items():
            LOG.info("warmed %s in %.1f s %s", worker, time.monotonic() - start, problem)

    def _tell_blind(self) -> None:
        """Say, once, that a worker does not see the folder of the run, and what follows from that."""
        if self._blind:
            return
        self._blind = True
        self.progress.say(
            f"workers cannot see {self.folder}: this process stores what they send, and results that are"
            " on their way when it ends are computed again; a folder that all machines share avoids this"
        )

    def _preparations(self, cells: Cells) -> list[dict[str, Any]]:
        """Return a configuration of each kind that has something of its own to prepare."""
        target = self.context.target
        different, _ = self.grid.different(cells, target.compiled_by)
        configs = [self.grid.config(int(cell)) for cell in different[:_PREPARED_CONFIGURATIONS]]
        return list({target.preparation(config): config for config in reversed(configs)}.values())

    def _on_each(
        self,
        workers: Iterable[str],
        what: Callable[..., Any],
        *arguments: Any,
        note: str = "",
        limit_s: float = PREPARE_S,
    ) -> dict[str, Any]:
        """Call a function on these workers and return what they gave; a worker that dies here is left out.

        If it takes a while, the user is told ``note``.
        """
        start = looked = time.monotonic()
        calls = {
            worker: self.client.submit(what, self.packed, *arguments, workers=[worker], pure=False)
            for worker in workers
        }
        pause_s = 0.01
        while not all(call.done() for call in calls.values()) and not self.interrupts:
            time.sleep(pause_s)
            pause_s = min(1.1 * pause_s, 0.25)
            if time.monotonic() - start > limit_s:
                late = [worker for worker, call in calls.items() if not call.done()]
                self.progress.say(f"not ready after {format_seconds(limit_s)}, and not waited for: {', '.join(late)}")
                break
            self.watch.check_scheduler()
            if time.monotonic() - looked > _LOOK_S:  # a call of a worker that is gone would wait for it for ever
                looked, here = time.monotonic(), self.watch.threads()
                calls = {worker: call for worker, call in calls.items() if worker in here}
            if note and time.monotonic() - start > _PATIENCE_S:
                self.progress.say(note)
                note = ""
        given = {}
        for worker, call in calls.items():
            with contextlib.suppress(TimeoutError):  # it died with what it gave
                if self._is_given(call):
                    given[worker] = call.result(_PATIENCE_S)
        return given

    def _is_given(self, call: Any) -> bool:
        """Tell whether a call has a result; raise if none of the workers could have one."""
        if call.status == "cancelled":
            raise SweepStoppedError("the scheduler has ended")
        error = call.exception(_PATIENCE_S) if call.status == "error" else None
        if error is not None and type(error).__name__ != "KilledWorker":
            raise SweepStoppedError(f"the workers cannot load what they should run: {task.describe_error(error)}")
        return call.status == "finished"

    def _wait_for_workers(self) -> None:
        """Wait for the first worker; a batch system may take days to start it, this machine may not."""
        while not self.watch.threads() and not self.interrupts:
            self.watch.say_absence(self.progress.say)
            time.sleep(0.2)
            self.watch.check_scheduler()
            if self.local:
                self.watch.check_absence()
            self.watch.mend()

    def _count_workers(self) -> None:
        """Look now and then how many workers there are; time without any is no time at work."""
        if time.monotonic() - self._looked < _LOOK_S:
            return
        threads = self.watch.threads()
        self._looked = time.monotonic()
        self._sizes.workers = max(1, sum(threads.values()))
        self._mend_workers(threads)
        self.progress.workers = len(threads)
        self._arrived |= set(threads)
        self._check_arrivals()
        if threads:
            self.progress.pace.work()
            self.progress.enter(SAVING if self.interrupts else RUNNING)
            return
        self.progress.enter(WAITING)
        if not self.progress.pace.resting:
            self.progress.say("no worker is left; waiting for one (Ctrl-C stops)")
            self.progress.pace.rest()
        self.watch.check_absence()

    def _mend_workers(self, threads: Mapping[str, int]) -> None:
        """Replace worker processes of this machine that are gone for good; say when another cluster has lost some."""
        self.watch.mend()
        if not self.watch.is_mended and len(threads) < self._most_workers and threads and not self._told_loss:
            self.progress.say(f"{len(threads)} of {self._most_workers} workers remain")
        self._told_loss = len(threads) < self._most_workers
        self._most_workers = max(self._most_workers, len(threads))

    def _check_arrivals(self) -> None:
        """Give up when workers come and go, one after another, and none of them gives anything."""
        limit = self.watch.limit_s
        if len(self._arrived) > _IDLE_DEATHS + 2 * self._most_workers and time.monotonic() - self._progressed > limit:
            raise SweepStoppedError(
                f"no result for {format_seconds(limit)}, in which {len(self._arrived)} workers started and ended; they"
                " end before any configuration has finished"
            )

    def _progress(self) -> None:
        """Note that a task has given something: results, or what ended its worker."""
        self._unfetched = self._lost = self._idle = 0
        self._heard = self._progressed = self._given = time.monotonic()
        self._arrived.clear()

    def _hand_out(self, todo: Cursor) -> None:
        while len(self._flying) < 2 * self._sizes.workers + 1:
            if self._waiting:
                self._submit(self._take_waiting(todo.left))
            elif todo:
                self._submit(todo.take(self._sizes.next_size(todo.left)))
            elif self._suspects and not self._flying:
                self._submit(np.array([self._suspects.popleft()]), solo=True)
                return
            else:
                return

    def _take_waiting(self, left: int) -> Cells:
        """Return cells that have come back: few of them towards the end, since a slow worker may have left them."""
        cells = self._waiting.popleft()
        size = self._sizes.next_size(left + len(cells) + sum(map(len, self._waiting)))
        if size < len(cells):
            self._waiting.appendleft(cells[size:])
        return cells[:size]

    def _submit(self, cells: Cells, solo: bool = False) -> None:
        self._number += 1
        future = self.client.submit(
            task.run_batch,
            self.packed,
            self._number,
            task.Columns(self.grid.columns(cells)),
            self.keys[:, cells],
            self._sizes.slice_s(),
            self._sizes.most_work_s(),
            key=f"faultsweep-{self.context.run_id}-{self._number}",
            pure=False,
        )
        self._flying[self._number] = _Flying(self._number, future, cells, solo)
        number = self._number
        future.add_done_callback(lambda _: self._finished.put(number))

    def _receive(self) -> None:
        """Wait a little for finished tasks, and take all there are; results that have not arrived are for next time."""
        try:
            number = self._finished.get(timeout=0.25)
        except queue.Empty:
            self.watch.check_scheduler()
            self._take_back_idle()
            self._say_quiet()
            return
        late = []
        while True:
            if number in self._flying:  # else it was handed out again
                if self._take(self._flying[number]):
                    del self._flying[number]
                else:
                    late.append(number)
            try:
                number = self._finished.get_nowait()
            except queue.Empty:
                break
        for number in late:
            self._finished.put(number)

    def _take_back_idle(self) -> None:
        """Hand out again what no worker is at, whatever has gone wrong between scheduler and workers.

        Workers of others may be busy with other work for as long as they like.
        """
        if not self._flying or time.monotonic() - self._given <= IDLE_S:
            return
        self._given = time.monotonic()
        begun, is_sure = self.watch.tasks_begun(self.context.run_id)
        # a task that was taken back as it began keeps its worker busy all the same
        if begun or _at_work(self.folder, self.context.run_id) & set(self._flying):
            return
        if self._blind and not is_sure:  # of workers that leave no marks, those that are silent may be at work
            return
        self._idle += 1
        if self.local and self._idle >= MOST_IDLE:
            raise SweepStoppedError(f"no worker has begun anything for {format_seconds(MOST_IDLE * IDLE_S)}")
        LOG.warning("no worker runs any of %d tasks; they are handed out again", len(self._flying))
        for flying in list(self._flying.values()):
            del self._flying[flying.number]
            self._take_back(flying)

    def _take_back(self, flying: _Flying) -> None:
        """Want a task's result no longer, and hand out again what it was to run."""
        flying.future.release()
        if flying.solo:
            self._suspects.appendleft(int(flying.cells[0]))
        else:
            self._waiting.appendleft(flying.cells)

    def _say_quiet(self) -> None:
        """Say what is waited for when nothing has come for a while: nothing but a time limit ends a run that hangs."""
        if self._flying and time.monotonic() - self._heard > QUIET_S:
            self._heard = time.monotonic()
            oldest = self._flying[min(self._flying)]
            labels = ", ".join(f"{name}={label}" for name, label in self.grid.labels(int(oldest.cells[0])).items())
            where = f"the oldest one begins at {labels} (a time limit ends a configuration that hangs)"
            if self._idle:
                where = f"none of which any of the {self.progress.workers} workers has begun: they are busy, or stopped"
            self.progress.say(
                f"no result for {format_seconds(QUIET_S)}; handed out: {len(self._flying)} tasks, {where}"
            )

    def _ask_to_stop(self) -> None:
        """Tell the workers to return after what they are at, and take back what has not started."""
        if self._told_stop:
            return
        self._told_stop = True
        self.progress.enter(SAVING)
        self.progress.say("finishing what is running, then saving; Ctrl-C again stops now")
        self._tell_workers(task.request_stop)

    def _tell_workers(self, what: Callable[[str], None]) -> threading.Thread:
        """Call a function of the run's id in every worker, in a thread: a worker may answer late, or never."""

        def tell() -> None:
            with contextlib.suppress(Exception):
                self.client.run(what, self.context.run_id)

        thread = threading.Thread(target=tell, daemon=True)
        thread.start()
        return thread

    def _take(self, flying: _Flying) -> bool:
        """Take one finished task, whatever became of it; returns False if its result has yet to arrive."""
        from distributed import KilledWorker

        status = flying.future.status
        if status == "cancelled":
            raise SweepStoppedError("the scheduler has ended")
        is_lost = status in ("lost", "pending")  # the latter after its worker was asked for it, and had gone
        left_s = FETCH_S - flying.waited_s
        if is_lost or left_s <= 0:
            self._give_up(flying, is_lost)
            return True
        fetch_s = min(flying.fetch_s, left_s)
        try:
            # a worker that dies between the status and this line takes the result with it: without a limit this
            # would wait until somebody computes it again, which needs a worker
            result = flying.future.result(fetch_s)
        except KilledWorker as error:
            self._bury(flying, error)
            return True
        except TimeoutError:
            flying.waited_s += fetch_s
            flying.fetch_s *= 2
            return False
        except (SweepStoppedError, OSError, CancelledError):
            raise
        except Exception as error:  # whatever importing the task on a worker raises
            raise SweepStoppedError(f"the workers cannot run this: {task.describe_error(error)}") from None
        flying.future.release()
        self._progress()
        self._fold(flying, result)
        return True

    def _give_up(self, flying: _Flying, is_lost: bool) -> None:
        """Hand out again what has ended, and whose result was lost with its worker or does not arrive."""
        self._take_back(flying)
        self._lost += is_lost
        self._unfetched += not is_lost
        if self._unfetched >= _MOST_UNFETCHED:
            raise SweepStoppedError(f"{self._unfetched} results in a row took longer than a minute to arrive")
        if self._lost >= _MOST_LOST * (1 + self._sizes.workers):
            raise SweepStoppedError(f"{self._lost} results in a row were lost with the workers that had them")

    def _fold(self, flying: _Flying, result: task.BatchResult) -> None:
        cells = flying.cells[: result.done]
        rest = flying.cells[result.done :]
        if len(rest):
            self._waiting.append(rest)
        self._deliver(cells, result)
        if result.problem:
            raise OSError(*result.problem)
        if not result.journalled:
            self._tell_blind()
            self._write_down(cells, result)
        self._segments.add(result.segment, result.done, result.closed)
        self._unexplained.clear()
        self.progress.worker_bytes = max(self.progress.worker_bytes, result.memory_bytes)
        if result.done:
            self._sizes.learn(result.done, result.work_s, result.waited_s)

    def _deliver(self, cells: Cells, result: task.BatchResult) -> None:
        texts = self.collector.table_of_texts(result.texts, len(cells))
        results = Results(cells, result.status, result.wall_s, result.values, result.errors, texts=texts)
        if result.jobs is not None and self.collector.jobs is not None:
            results = self.collector.with_jobs(results, (part and _load_jobs(part) for part in result.jobs))
        self.collector.add(results)
        self._durations.add(cells, result.wall_s)
        self.progress.add(len(cells), int((results.status == FAILED).sum()))
        for number, text in results.errors.items():
            LOG.warning("failed: %s: %s", self.grid.labels(int(cells[number])), text)

    def _write_down(self, cells: Cells, result: task.BatchResult) -> None:
        """Journal results here, for workers that do not see the run's folder."""
        journal = self._own_journal()
        parts = result.jobs or [None] * len(cells)
        for number, (key, part) in enumerate(zip(self.keys[:, cells].T.tolist(), parts, strict=True)):
            journal.write(
                (key[0], key[1]),
                int(result.status[number]),
                float(result.wall_s[number]),
                result.values[number],
                result.errors.get(number) or journal_texts(result.texts.get(number, ())),
                journal.keep(pack_jobs(_load_jobs(part))) if part else (0, 0),
            )
        journal.sync()
        self._segments.add(journal.path.name, len(cells), {})

    def _own_journal(self) -> JournalWriter:
        """Return the journal of this process; another one if it is long."""
        if self._journal is None:
            self._journal = JournalWriter(self._own_path("client"), self.context.columns)
        old = self._journal
        self._journal = follow(old, self._own_path(f"client.{self._own_segments + 1}"))
        if self._journal is not old:
            self._own_segments += 1
            self._segments.add("", 0, {old.path.name: old.records})
        return self._journal

    def _own_path(self, name: str) -> Path:
        return self.folder / "journals" / f"{self.context.run_id}-{name}.journal"

    def _bury(self, flying: _Flying, error: Any) -> None:
        """Find out which configuration a dead worker was at, keep what it had finished, and hand out the rest again."""
        found = _marks(self.folder, self.context.run_id, flying.number)
        worker = getattr(error.last_worker, "server_id", "") or getattr(error.last_worker, "address", flying.number)
        self._explain(str(worker), bool(found) or self._blind)
        if not found and self._blind:
            self._split(flying)
            return
        key_of = {(int(a), int(b)): i for i, (a, b) in enumerate(self.keys[:, flying.cells].T)}
        finished: set[int] = set()
        self._segments.join()
        for _, stem, _ in found:
            for journal in sorted((self.folder / "journals").glob(f"{stem}*.journal")):
                finished |= self._recover(journal, flying.cells, key_of)
        culprits: dict[int, list[bool]] = {}
        for key, _, hung in found:  # a scheduler that tries again on other workers leaves a mark for each
            if key in key_of and key_of[key] not in finished:
                culprits.setdefault(key_of[key], []).append(hung)
        for i, hangs in culprits.items():
            self._suspect(int(flying.cells[i]), len(hangs), any(hangs), flying.solo)
        rest = flying.cells[[i for i in range(len(flying.cells)) if i not in finished and i not in culprits]]
        if len(rest):
            self._waiting.appendleft(rest)

    def _explain(self, worker: str, explained: bool) -> None:
        """Note whether a dead worker was at a configuration; give up when many die, one after another, that were not.

        ``worker`` is a process: the next one may have its address. What only waits at a worker that dies comes back,
        too: that death is explained by the task that was running.
        """
        if explained:
            self._progress()
            self._explained.add(worker)
            self._unexplained.clear()
        elif worker not in self._explained:
            self._unexplained.add(worker)
        if len(self._unexplained) > _IDLE_DEATHS:
            raise SweepStoppedError("worker processes die before they run anything")

    def _is_suspect(self, cell: int) -> bool:
        return self._deaths.get(cell, 0) >= MOST_DEATHS - 1

    def _suspect(self, cell: int, deaths: int, hung: bool, solo: bool) -> None:
        """Run a configuration again whose worker died, or quarantine it."""
        self._deaths[cell] = self._deaths.get(cell, 0) + deaths
        LOG.warning("a worker died at %s (death %d)", self.grid.labels(cell), self._deaths[cell])
        key = tuple(int(part) for part in self.keys[:, cell])
        if self._death_journal is None:  # one of its own: it stays as long as the run does
            self._death_journal = JournalWriter(self._own_path("client-deaths"), self.context.columns)
        for _ in range(deaths):
            self._death_journal.write((key[0], key[1]), DIED, 0.0, [np.nan] * len(self.context.columns))
        self._death_journal.sync()
        if hung:
            self._quarantine(cell, f"exceeded the time limit of {self.context.time_limit_s:g} s")
        elif solo and self._deaths[cell] >= MOST_DEATHS:
            limit = f", or the time limit of {self.context.time_limit_s:g} s" if self.context.time_limit_s else ""
            cause = f"a crash, or more memory than there is{limit}"
            self._quarantine(cell, f"its worker process died {self._deaths[cell]} times running this ({cause})")
        elif self._is_suspect(cell):
            self._suspects.append(cell)
        else:
            self._waiting.append(np.array([cell]))

    def _split(self, flying: _Flying) -> None:
        """Look for the configuration that kills workers by halving, where no mark can be seen.

        A task dies with its worker even if it only waited there. So a configuration that is left over is run at the
        end, with nothing beside it, and only these deaths count.
        """
        cells = flying.cells
        if len(cells) > 1:
            half = len(cells) // 2
            self._waiting.extend([cells[:half], cells[half:]])
        elif flying.solo:
            self._suspect(int(cells[0]), 1, hung=False, solo=True)
        else:
            self._suspects.append(int(cells[0]))

    def _recover(self, journal: Path, cells: Cells, key_of: Mapping[tuple[int, int], int]) -> set[int]:
        """Take from a dead worker's journal what it had finished of this task."""
        found: set[int] = set()
        for records in read_journal(journal):
            numbers = [key_of.get((int(a), int(b)), -1) for a, b in records.keys.T]
            keep = np.flatnonzero(np.array(numbers) >= 0)
            if not len(keep):
                continue
            places = np.array(numbers)[keep]
            errors = {new: records.errors[old] for new, old in enumerate(keep.tolist()) if old in records.errors}
            texts = {new: records.texts[old] for new, old in enumerate(keep.tolist()) if old in records.texts}
            jobs: list[Any] | None = None
            if self.context.keep_jobs:
                path = str(jobs_beside(journal))
                jobs = [(path, int(a), int(n)) if n else None for a, n in records.jobs[:, keep].T]
            result = task.BatchResult(
                len(keep),
                records.status[keep],
                records.wall_s[keep],
                records.values[keep],
                errors,
                0.0,
                True,
                None,
                jobs,
                texts=texts,
            )
            self._deliver(cells[places], result)
            found |= set(places.tolist())
        return found

    def _quarantine(self, cell: int, text: str) -> None:
        """Let a configuration fail without running it again."""
        width = len(self.context.columns)
        result = task.BatchResult(
            1,
            np.array([FAILED], dtype=np.int8),
            np.array([np.nan]),
            np.full((1, width), np.nan),
            {0: text},
            0.0,
            False,
            None,
            [None] if self.context.keep_jobs else None,
        )
        self._write_down(np.array([cell]), result)
        self._deliver(np.array([cell]), result)


def _known_durations(collector: Collector, grid: Grid) -> Durations:
    """Return what earlier runs into the store tell about how long cells take."""
    durations = Durations(grid.shape)
    done = np.flatnonzero(np.isin(collector.status, (DONE, TRUNCATED)))
    done = done[:: 1 + len(done) // _KNOWN_CELLS]
    if len(done):
        durations.add(done, np.asarray(collector.store.arrays["wall_s"][...]).ravel()[done])
    return durations


def _load_jobs(part: Any) -> Mapping[str, NDArray[Any]]:
    """Return per-job arrays: sent by the worker, or from their place in its file."""
    return part if isinstance(part, Mapping) else unpack_jobs(Path(part[0]), part[1], part[2])


def _at_work(folder: Path, run_id: str) -> set[int]:
    """Return the tasks that processes of a run are at, or were when they ended."""
    contents = (mark.read_bytes() for mark in (folder / "marks").glob(f"{run_id}-*.mark"))
    return {task.MARK.unpack(content)[0] for content in contents if len(content) == task.MARK.size}


def _marks(folder: Path, run_id: str, number: int) -> list[tuple[tuple[int, int], str, bool]]:
    """Return, for each process that was at this task when it ended: key, stem of its journals, whether it had hung."""
    found = []
    for mark in (folder / "marks").glob(f"{run_id}-*.mark"):
        content = mark.read_bytes()
        if len(content) != task.MARK.size:
            continue
        at, first, second = task.MARK.unpack(content)
        if at == number:
            hang = mark.with_suffix(".hang")
            hung = hang.exists() and hang.stat().st_size > 0
            found.append(((first, second), mark.stem, hung))
    return found
