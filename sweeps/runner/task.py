"""What a worker does: run some configurations, one after the other, each with its own result, error and time.

A thread of a worker keeps one ``_Session`` per run: the target (loaded once, so that logs are read once), its journal,
and its mark: a small file that says which configuration is being run. When the process dies, it tells which.
"""

from __future__ import annotations

import errno
import faulthandler
import hashlib
import math
import os
import pickle
import resource
import socket
import struct
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.runner.work_clock import WorkClock
from faultsweep.sweeps.store.journal import JournalWriter, follow, jobs_beside, journal_texts, pack_jobs
from faultsweep.sweeps.store.statuses import DONE, FAILED, TRUNCATED
from faultsweep.sweeps.target import Output, Target
from numpy.typing import NDArray

from faultsweep.errors import InputError

_LONGEST_ERROR = 1000
MARK = struct.Struct("<QQQ")
"""Content of a mark: number of the task (0: none), and the key of the configuration."""


def output_columns(outputs: Sequence[Output]) -> list[str]:
    """Return the names of the numbers that outputs are: an output's, numbered for a vector."""
    names = {out.name: out.name if out.dtype == "float64" else f"{out.name}:{out.dtype}" for out in outputs}
    return [f"{names[out.name]}.{i}" if out.along else names[out.name] for out in outputs for i in range(out.width)]


@dataclass(frozen=True)
class Context:
    """What is the same for all tasks of a run.

    Attributes
    ----------
    run_id : different for every run.
    target : what to run, with the chosen outputs.
    outputs : the outputs that are stored.
    fixed : the parameters that do not vary.
    folder : the run's folder, as the client sees it; None to keep no journal.
    nonce : content of the file ``nonce`` in it; a worker that reads it there sees the same folder.
    time_limit_s : of one configuration; the process is ended at it. 0 is none.
    keep_jobs : whether per-job results are kept.
    """

    run_id: str
    target: Target
    outputs: tuple[Output, ...]
    fixed: Mapping[str, Any]
    folder: Path | None
    nonce: str
    time_limit_s: float = 0.0
    keep_jobs: bool = False

    @property
    def columns(self) -> list[str]:
        """Return the names of the stored numbers."""
        return output_columns(self.outputs)

    def chosen(self) -> list[int] | None:
        """Return which of the target's numbers are stored, None for all of them in order."""
        if self.outputs == self.target.outputs:
            return None
        return _chosen(self.target.outputs, self.outputs, lambda out: out.width)

    def chosen_texts(self) -> list[int]:
        """Return which of the target's texts are stored."""
        return _chosen(self.target.outputs, self.outputs, lambda out: out.texts)

    def pack(self) -> bytes:
        """Return the context as bytes; functions of ``__main__`` travel by value."""
        from distributed.protocol.pickle import dumps

        return dumps(self)


def _chosen(given: Sequence[Output], stored: Sequence[Output], count: Callable[[Output], int]) -> list[int]:
    """Return the places of the stored outputs' values among those of all given ones."""
    starts, start = {}, 0
    for out in given:
        starts[out.name], start = start, start + count(out)
    return [starts[out.name] + i for out in stored for i in range(count(out))]


@dataclass(frozen=True)
class Columns:
    """The varying parameters of some configurations, one list per parameter.

    Dask looks for tasks and futures in every element of a list that it is given, and not within this.
    """

    values: Mapping[str, Sequence[Any]]

    def rows(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield the parameters of each configuration; there are ``number`` of them, also where nothing varies."""
        names = list(self.values)
        for values in zip(*self.values.values(), strict=True) if names else [()] * number:
            yield dict(zip(names, values, strict=True))


@dataclass
class BatchResult:
    """What a task gives back; arrays over the ``done`` configurations that it got through (the first ones).

    ``work_s`` is how long they took in all, without ``waited_s``, for which others had the processors; ``problem`` the
    error number and text of a journal that could not be written; ``memory_bytes`` the most memory that the process has
    taken so far; ``texts`` the values of text of the runs that have any. ``segment`` is the name of the journal that
    has these results, ``closed`` how many records those have that the process has left since.
    """

    done: int
    status: NDArray[np.int8]
    wall_s: NDArray[np.float64]
    values: NDArray[np.float64]
    errors: dict[int, str]
    work_s: float
    journalled: bool
    problem: tuple[int, str] | None = None
    jobs: list[Any] | None = None
    memory_bytes: int = 0
    texts: dict[int, list[str]] = field(default_factory=dict)
    segment: str = ""
    closed: dict[str, int] = field(default_factory=dict)
    waited_s: float = 0.0


_stopped: set[str] = set()
_begun: dict[tuple[str, int], float] = {}
"""Run and number of the tasks that the threads of this process are at, and since when."""
_sessions: dict[tuple[str, int], _Session] = {}
"""By the context and the thread: a worker may have several threads, and each is at a configuration of its own."""


def request_stop(run_id: str) -> None:
    """Let the tasks of a run in this process return after the configuration that they are at."""
    _stopped.add(run_id)


@contextmanager
def beginning(run_id: str, task: int) -> Iterator[None]:
    """Let this process tell whoever asks that it is at a task."""
    _begun[run_id, task] = time.monotonic()
    try:
        yield
    finally:
        _begun.pop((run_id, task), None)


def tasks_begun(run_id: str) -> dict[int, float]:
    """Return the tasks of a run that this process is at, and for how many seconds."""
    now = time.monotonic()
    return {task: now - since for (run, task), since in list(_begun.items()) if run == run_id}


def leave_run(run_id: str) -> None:
    """Close the files that this process has open for a run."""
    for session in list(_sessions.values()):
        if session.context.run_id == run_id:
            session.close()


def warm(context: bytes, configs: Sequence[Mapping[str, Any]]) -> str:
    """Prepare this process for its first runs; returns what went wrong, or nothing."""
    return "; ".join(filter(None, map(_session(context).prepare, configs)))


def look(context: bytes) -> tuple[str, bool]:
    """Return what compiled code depends on in this process, and whether it keeps a journal."""
    session = _session(context)
    return session.context.target.processor(), session.journal is not None


def run_batch(
    context: bytes,
    task: int,
    columns: Columns,
    keys: NDArray[np.uint64],
    slice_s: float,
    most_work_s: float = math.inf,
) -> BatchResult:
    """Run configurations until all are done, ``slice_s`` is over, or they have worked for ``most_work_s``; what is left
    is the client's to hand out again."""
    session = _session(context)
    with beginning(session.context.run_id, task):
        return _run_batch(session, task, columns, keys, (slice_s, most_work_s))


def _run_batch(
    session: _Session, task: int, columns: Columns, keys: NDArray[np.uint64], limits_s: tuple[float, float]
) -> BatchResult:
    session.turn()
    clock = session.clock = WorkClock()
    batch = _Batch(session, task, keys)
    try:
        for varying in columns.rows(keys.shape[1]):
            if batch.problem or session.context.run_id in _stopped or clock.is_over(*limits_s):
                break
            batch.run({**session.context.fixed, **varying})
    finally:
        session.leave()
    return batch.finish(clock)


class _Batch:
    """Collects the results of one task."""

    def __init__(self, session: _Session, task: int, keys: NDArray[np.uint64]) -> None:
        self.session = session
        self.task = task
        self.keys: list[list[int]] = keys.T.tolist()
        self.status: list[int] = []
        self.wall_s: list[float] = []
        self.values: list[Sequence[float] | NDArray[np.float64]] = []
        self.errors: dict[int, str] = {}
        self.texts: dict[int, list[str]] = {}
        self.jobs: list[Any] = []
        self.problem = session.problem

    def run(self, config: dict[str, Any]) -> None:
        number = len(self.status)
        context = self.session.context
        error = ""
        self.session.enter(self.task, self.keys[number], config)
        start = time.perf_counter()
        try:
            outcome = context.target.run(config, context.keep_jobs)
            status, values = (TRUNCATED if outcome.truncated else DONE), outcome.values
            if self.session.chosen is not None:
                values = [values[i] for i in self.session.chosen]
            if outcome.texts:
                self.texts[number] = [outcome.texts[i] for i in self.session.chosen_texts]
            jobs = outcome.jobs if context.keep_jobs else None
        except BaseException as caught:  # whatever a run raises, sys.exit() too, is the error of its cell
            status, values, jobs = FAILED, self.session.nothing, None
            error = self.errors[number] = describe_error(caught)
            self.texts.pop(number, None)
        wall = time.perf_counter() - start
        self.session.pause()
        note = error or journal_texts(self.texts.get(number, ()))
        place = self._journal(self.keys[number], status, wall, values, note, jobs)
        self.status.append(status)
        self.wall_s.append(wall)
        self.values.append(values)
        if context.keep_jobs:
            self.jobs.append(jobs if place is None else place)

    def _journal(
        self, key: list[int], status: int, wall: float, values: Any, note: str, jobs: Any
    ) -> tuple[str, int, int] | None:
        """Write one result down; returns where its per-job results stand if they are in this worker's file."""
        journal = self.session.journal
        if journal is None:
            return None
        try:
            place = journal.keep(pack_jobs(jobs)) if jobs is not None else (0, 0)
            journal.write((key[0], key[1]), status, wall, values, note, place)
        except OSError as caught:
            self.session.fail(caught)
            self.problem = self.session.problem
            return None
        if journal.is_full:  # this result is written, in the room that was reserved; the next one might not be
            self.problem = (errno.ENOSPC, f"{journal.path}: No space left on device")
        return (str(jobs_beside(journal.path)), *place) if jobs is not None else None

    def finish(self, clock: WorkClock) -> BatchResult:
        work_s = clock.work_s()
        waited_s = max(0.0, clock.passed_s() - work_s)
        journal = self.session.journal
        if journal is not None:
            try:
                journal.sync()
            except OSError as caught:
                self.session.fail(caught)
                self.problem = self.session.problem
        segment = journal.path.name if journal is not None else ""
        return BatchResult(
            len(self.status),
            np.array(self.status, dtype=np.int8),
            np.array(self.wall_s),
            np.array(self.values, dtype=np.float64).reshape(len(self.status), len(self.session.nothing)),
            self.errors,
            work_s,
            self.session.journal is not None,
            self.problem,
            self.jobs if self.session.context.keep_jobs else None,
            _peak_memory_bytes(),
            self.texts,
            segment,
            self.session.take_closed(),
            waited_s,
        )


def _peak_memory_bytes() -> int:
    """Return the largest resident size that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


class _Session:
    """What a worker process keeps for one run."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.nothing = [float("nan")] * len(context.columns)
        self.chosen = context.chosen()
        self.chosen_texts = context.chosen_texts()
        self.problem: tuple[int, str] | None = None
        self.journal: JournalWriter | None = None
        self._mark = -1
        self._hang_file = -1
        self._closed: dict[str, int] = {}
        self._segments = 0
        self._prepared: set[Hashable] = set()
        self._last_named: list[Any] | None = None
        self.clock = WorkClock()
        self.name = name = f"{context.run_id}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        if context.folder is not None and self._sees(context.folder):
            self._open_files(context.folder, name)
        if context.time_limit_s > 0 and self._hang_file < 0:
            self._hang_file = os.open(os.devnull, os.O_WRONLY)

    def _sees(self, folder: Path) -> bool:
        """Tell whether this process sees the client's folder; tried again for a while, since NFS caches names."""
        for pause in (0, 0.2, 1, 2):
            time.sleep(pause)
            try:
                if (folder / "nonce").read_text() == self.context.nonce:
                    return True
            except OSError:
                if not folder.parent.exists():
                    return False
        return False

    def _open_files(self, folder: Path, name: str) -> None:
        try:
            self.journal = JournalWriter(folder / "journals" / f"{name}.journal", self.context.columns)
            self._mark = os.open(folder / "marks" / f"{name}.mark", os.O_CREAT | os.O_WRONLY, 0o644)
            if self.context.time_limit_s > 0:
                self._hang_file = os.open(folder / "marks" / f"{name}.hang", os.O_CREAT | os.O_WRONLY, 0o644)
        except OSError as error:
            self.fail(error)

    def turn(self) -> None:
        """Begin another journal if this one is long; what a task writes is in one of them."""
        if self.journal is None:
            return
        old = self.journal
        self.journal = follow(old, old.path.with_name(f"{self.name}.{self._segments + 1}.journal"))
        if self.journal is not old:
            self._segments += 1
            self._closed[old.path.name] = old.records

    def take_closed(self) -> dict[str, int]:
        """Return the journals that were left since this was asked, with their numbers of records."""
        closed, self._closed = self._closed, {}
        return closed

    def prepare(self, config: Mapping[str, Any]) -> str:
        """Get ready for configurations of this kind, once; returns what went wrong, or nothing.

        Every process does it, those that start late or again, too: it is no part of a run's time.
        """
        target = self.context.target
        try:
            named = [config.get(name) for name in target.compiled_by]
            if named and named == self._last_named:
                return ""
            kind = target.preparation(config)
            if kind not in self._prepared:
                with self.clock.paused():
                    target.warm(config)
                self._prepared.add(kind)
            self._last_named = named
        except BaseException as error:  # whatever a target raises: the run that follows gives it to its cell
            return describe_error(error)
        return ""

    def enter(self, task: int, key: Sequence[int], config: Mapping[str, Any]) -> None:
        """Note what is run next, get ready for it, and see that the process ends if it takes too long."""
        if self._mark >= 0:
            os.pwrite(self._mark, MARK.pack(task, key[0], key[1]), 0)
        self.prepare(config)
        if self.context.time_limit_s > 0:
            _alarm.set(self._hang_file, self.context.time_limit_s)

    def pause(self) -> None:
        """Pause the clock of the limit: what follows a run depends on the file system."""
        if self.context.time_limit_s > 0:
            _alarm.clear(self._hang_file)

    def leave(self) -> None:
        """Note that no configuration is being run."""
        self.pause()
        if self._mark >= 0:
            os.pwrite(self._mark, MARK.pack(0, 0, 0), 0)

    def close(self) -> None:
        """Close the files; a task that comes later keeps no journal (the run is over)."""
        if self.journal is not None:
            self.journal.close()
        for file in (self._mark, self._hang_file):
            if file >= 0:
                os.close(file)
        self.journal = None
        self._mark = self._hang_file = -1

    def fail(self, error: OSError) -> None:
        """Go on without a journal; the client keeps the results, or stops."""
        self.problem = (error.errno or errno.EIO, f"{error.filename or self.context.folder}: {error.strerror or error}")
        self.journal = None


class _Alarm:
    """Ends this process when one of its threads is not back in time; native code, too: the timer needs no GIL.

    A process has one such timer. It is set to the earliest deadline of all threads, and what it writes when it goes off
    goes to the file of the thread that missed it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._deadlines: dict[int, float] = {}
        self._armed: tuple[int, float] | None = None

    def set(self, file: int, limit_s: float) -> None:
        """Give the thread whose file this is ``limit_s`` from now (which takes some 30 us: it starts a thread)."""
        now = time.monotonic()
        with self._lock:
            self._deadlines[file] = now + limit_s
            self._arm(now)

    def clear(self, file: int) -> None:
        """Forget a thread's deadline."""
        with self._lock:
            self._deadlines.pop(file, None)
            self._arm(time.monotonic())

    def _arm(self, now: float) -> None:
        first = min(self._deadlines.items(), key=lambda item: item[1], default=None)
        if first == self._armed:
            return
        self._armed = first
        if first is None:
            faulthandler.cancel_dump_traceback_later()
        else:
            faulthandler.dump_traceback_later(max(1e-3, first[1] - now), exit=True, file=first[0])


_alarm = _Alarm()


def _session(context: bytes) -> _Session:
    thread = threading.get_ident()
    key = hashlib.blake2b(context, digest_size=16).hexdigest(), thread
    if key not in _sessions:
        # a thread that is used for one run after the other keeps the last one's logs only
        for other in [other for other in list(_sessions) if other[1] == thread]:
            _sessions.pop(other).close()
        _sessions[key] = _Session(pickle.loads(context))  # noqa: S301 - the client's own bytes, as every Dask task
    return _sessions[key]


def describe_error(error: BaseException) -> str:
    """Return one printable line: type, message and place; an InputError is a sentence already."""
    try:
        text = str(error)
    except Exception:  # a user's own exception may be broken, too
        text = "(its text cannot be had)"
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
    if len(text) > _LONGEST_ERROR:
        text = f"{text[:_LONGEST_ERROR]}..."
    if isinstance(error, InputError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    return f"{type(error).__name__}{text and ': '}{text}{where}"
