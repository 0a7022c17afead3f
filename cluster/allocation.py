"""What a batch job runs: a scheduler, workers on all its nodes, and the sweep, all kept alive until the sweep is over.

``python -m faultsweep.cluster.allocation --folder FOLDER ... -- COMMAND``; COMMAND finds the scheduler by an
environment variable.

- The scheduler or COMMAND dies: both, and the workers, are started anew, and COMMAND goes on where its results are.
- A worker dies: its nanny starts it again. A node's nannies die: they are started again. The step of all workers ends:
  it is started again; if it ends soon, again and again, that counts as a death of the sweep.
- SIGUSR1 comes before the walltime, from the batch system or this process itself: COMMAND is asked to stop, and the job
  goes back into the queue.
- SIGTERM (scancel, preemption): COMMAND is asked to stop, and the job ends.

This process imports nothing heavy, so that it is not what a node kills when its memory is full.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faultsweep.cluster.batch_systems import default_system, find
from faultsweep.cluster.batch_systems.common import BatchSystemError, NoAnswerError, Node
from faultsweep.cluster.phases import (
    DISK_FULL,
    NO_SPACE,
    REQUEUED,
    RESTARTING,
    ROOM,
    RUNNING,
    SAVING,
    SAVING_BEFORE_WALLTIME,
    STARTING,
    STARTING_WORKERS,
    PhaseFile,
    free_bytes,
    has_room,
    keep_reserve,
    says_full,
    use_reserve,
)
from faultsweep.cluster.processes import Kept, end, log, say, start
from faultsweep.cluster.settings import SCHEDULER, SCHEDULER_VARIABLE, WORKERS

from faultsweep.files import read_fields

JOB = "job.json"
"""File that says what was submitted: ``submit.Job``."""
OUTCOME = "outcome.json"
"""File that says how the last job ended: ``job``, ``outcome`` (finished, failed, stopped, cancelled, requeued) and
``text``."""
FINAL = (0, 2)
"""Exit codes of a sweep that need no second try: all is done; some cells failed, or the input is wrong."""
_PAUSES_S = (0, 1, 5, 20, 60, 120)
_SCHEDULER_S = 120.0
_TERM_AGAIN_S = 4.0
_KILL_S = 12.0
_STEP_S = 8.0
"""Time that the workers are given to end with the scheduler, and to tidy up; srun would kill them at once."""
_FINISHED_STEP_S = 60.0
"""The same after a sweep that has finished: nothing is in a hurry, and SLURM writes no "Killed" into the log."""
_EARLY_ENDS = 5
"""So many early ends of the workers' step in a row are no accident."""
_ASK_AGAIN_S = 5.0
_TRY_ROOM_S = 300.0
"""A sweep that found too little room, where there is some, is tried again after so long, or when there is more."""


class _Heard:
    """A process, with the last lines that it wrote."""

    def __init__(self, command: list[str], **environment: str) -> None:
        everything = {**os.environ, **environment}
        self.process = start(command, stderr=subprocess.PIPE, text=True, errors="replace", env=everything)
        self.lines: deque[str] = deque(maxlen=3)
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        for line in self.process.stderr or ():
            log(line)
            if line.strip():
                self.lines.append(line.strip())

    def last_words(self) -> str:
        self._thread.join(2)
        return self.lines[-1] if self.lines else ""


class Allocation:
    """One life of a batch job, from its start to its end or to its return into the queue."""

    def __init__(self, options: argparse.Namespace, command: list[str]) -> None:
        """Prepare."""
        self.options = options
        self.command = command
        self.folder: Path = options.folder
        self.system = find(default_system())
        self.job = os.environ.get(self.system.JOB_VARIABLE, "")
        self.requeues = self._count_requeues()
        self.life = f"{self.job}-{self.requeues}"
        self.warned = False
        self.told_to_end = False
        self._generation = 0
        self._phase = PhaseFile(self.folder, self.life)

    def run(self) -> int:
        """Keep the sweep going; returns the exit code of the job."""
        signal.signal(signal.SIGUSR1, self._note_warning)
        signal.signal(signal.SIGTERM, self._note_end)
        self._remove_credentials()
        say(f"job {self.job} of {self.system.TITLE} on {socket.gethostname()}")
        self._watch_clock()
        self._phase.enter(STARTING)
        fruitful = False
        fruitless = -1  # restarts since the last result; the first start is none
        try:
            while True:
                before = self._progress()
                try:
                    code, words = self._live_once()
                except OSError as error:  # a full disk, too many processes
                    code, words = None, str(error)
                if self.told_to_end:
                    return self._finish("cancelled", "by scancel, faultsweep cancel or preemption", 143)
                if code in FINAL:
                    return self._finish("failed", words, code) if code else self._finish("finished", "", code)
                gained = _has_gained(before, self._progress())
                waited = self._wait_for_room(words)
                fruitful = waited or fruitful or gained
                if self.told_to_end:
                    return self._finish("cancelled", "by scancel, faultsweep cancel or preemption", 143)
                if self.warned:
                    return self._requeue(fruitful)
                if gained or not waited:  # for room is waited as long as the walltime lasts
                    fruitless = 0 if gained else fruitless + 1
                if not waited and fruitless >= self.options.max_restarts:
                    return self._finish("failed", words or f"the sweep ended with {code}", 1)
                why = words or f"the sweep ended with {code}"
                say(f"{why}: everything is started again")
                self._phase.enter(RESTARTING, why)
                self._rest(_PAUSES_S[max(0, min(fruitless, len(_PAUSES_S) - 1))])
        finally:
            self._remove_credentials()

    def _count_requeues(self) -> int:
        """Return how often this job, or those before it, went back into the queue."""
        counted = self.system.restarts()
        return int(self._read_job().get("requeues", 0)) if counted is None else int(counted)

    def _read_job(self) -> dict[str, Any]:
        return read_fields(self.folder / JOB, {}) or {}

    def _watch_clock(self) -> None:
        """See that this process is warned before the walltime, by itself where the batch system does not do it."""
        left = self.system.seconds_left()
        if left is not None:
            timer = threading.Timer(max(1.0, left - self.options.grace), os.kill, [os.getpid(), signal.SIGUSR1])
            timer.daemon = True
            timer.start()

    def _note_warning(self, *_: object) -> None:
        self.warned = True

    def _note_end(self, *_: object) -> None:
        self.told_to_end = True

    def _wait_for_room(self, words: str) -> bool:
        """Wait while the disk of the store is full; returns whether it was. The walltime or a signal ends the wait.

        It also is if the sweep said so in its last ``words``, which needs more than what is asked for here.
        """
        place, too_little = self.options.progress.parent, says_full(words)
        if not too_little and has_room(place):
            return False
        text = f"{place}: {DISK_FULL}; the job resumes when there is room"
        say(text)
        self._phase.enter(NO_SPACE, text)
        begin, before = time.monotonic(), free_bytes(place)
        while not (self.warned or self.told_to_end):
            is_new = time.monotonic() - begin > _TRY_ROOM_S or free_bytes(place) > before + ROOM // 2
            if (is_new or not too_little) and has_room(place):
                break
            self._rest(_ASK_AGAIN_S)
        return True

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not (self.warned or self.told_to_end):
            time.sleep(0.1)

    def _live_once(self) -> tuple[int | None, str]:
        """Start scheduler, workers and sweep, and wait until one of them ends; returns how the sweep ended."""
        self._generation += 1
        folder = self.folder / f"{self.life}-{self._generation}"
        shutil.rmtree(folder, ignore_errors=True)
        use_reserve(self.folder)
        folder.mkdir(mode=0o700)
        scheduler, workers, sweep = None, None, None
        try:
            self._phase.enter(STARTING_WORKERS)
            if self.options.elastic:
                self._phase.enter(RUNNING)
                keep_reserve(self.folder)
                sweep = _Heard(self.command, **{SCHEDULER_VARIABLE: "slurm"})
                return self._watch(None, None, sweep.process), sweep.last_words()
            shown = ["--dashboard"] if self.options.dashboard else []
            scheduler = _Heard(self._python("scheduler", str(folder), *self._interface(), *shown))
            if not self._wait_for_scheduler(scheduler.process, folder / SCHEDULER):
                end(scheduler.process)
                return None, scheduler.last_words() or "the scheduler did not start"
            keep_reserve(self.folder)
            workers = Kept(self._workers(folder), self._start_step)
            self._phase.enter(RUNNING)
            sweep = _Heard(self.command, **{SCHEDULER_VARIABLE: str(folder / SCHEDULER)})
            code = self._watch(scheduler.process, workers, sweep.process)
            return code, sweep.last_words()
        finally:
            end(sweep.process if sweep else None)
            end(scheduler.process if scheduler else None)
            if workers:
                hurry = self.warned or self.told_to_end or sweep is None or sweep.process.returncode not in FINAL
                workers.wait(_STEP_S if hurry else _FINISHED_STEP_S)
                workers.end()
            shutil.rmtree(folder, ignore_errors=True)

    def _start_step(self, command: Sequence[str]) -> subprocess.Popen:
        self._step = _Heard([*command])
        return self._step.process

    def _wait_for_scheduler(self, scheduler: subprocess.Popen, file: Path) -> bool:
        until = time.monotonic() + _SCHEDULER_S
        while not file.exists():
            if scheduler.poll() is not None or time.monotonic() > until or self.warned or self.told_to_end:
                return False
            time.sleep(0.05)
        return True

    def _watch(self, scheduler: subprocess.Popen | None, workers: Kept | None, sweep: subprocess.Popen) -> int | None:
        """Wait for an end of the sweep or of the scheduler; ask the sweep to stop when it is time.

        Raises
        ------
        ChildProcessError
            The workers' step does not start.
        """
        asked: list[float] = []
        while sweep.poll() is None:
            if scheduler is not None and scheduler.poll() is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):  # the sweep notices, and saves what there is
                    sweep.wait(30)
                break
            if not (self.warned or self.told_to_end):
                self._look_at(workers)
            else:
                self._ask_to_stop(sweep, asked)
            time.sleep(0.1)
        return sweep.poll()

    def _look_at(self, workers: Kept | None) -> None:
        code = workers.look() if workers else None
        if workers is None or code is None:
            return
        if workers.early >= _EARLY_ENDS:
            words = self._step.last_words() or f"it ended with {code}"
            raise ChildProcessError(f"the step of the workers ends as soon as it starts: {words}")
        say(f"the step of the workers ended with {code}; it is started again")

    def _ask_to_stop(self, sweep: subprocess.Popen, asked: list[float]) -> None:
        """Let the sweep stop: after what runs, then at once, then by force.

        SLURM signals all processes of a cancelled job itself, so the sweep has had its first signal then.
        """
        now = time.monotonic()
        if not asked:
            say("cancelled: saving" if self.told_to_end else "the walltime is near: saving")
            self._phase.enter(SAVING if self.told_to_end else SAVING_BEFORE_WALLTIME)
            asked.append(now)
            if not self.told_to_end:
                sweep.terminate()
        grace = 0.0 if self.told_to_end else self.options.grace * 0.5
        if len(asked) == 1 and now - asked[0] > max(grace, _TERM_AGAIN_S if self.told_to_end else 0.0):
            asked.append(now)
            sweep.terminate()
        if len(asked) > 1 and now - asked[1] > _KILL_S:
            sweep.kill()

    def _python(self, module: str, *arguments: str) -> list[str]:
        # -P: in the folder of the job there may be files with names of Python's own modules
        return [sys.executable, "-P", "-m", f"faultsweep.cluster.{module}", *arguments]

    def _interface(self) -> list[str]:
        return ["--interface", self.options.interface] if self.options.interface else []

    def _workers(self, folder: Path) -> list[str]:
        """Return the command that runs its workers on every node of the job."""
        number = self.options.workers_per_node
        differ = self._count_workers(folder)
        nannies = self._python("nannies", str(folder), str(number), *self._interface())
        nannies += ["--memory-bytes", str(self.options.memory_bytes)]
        nannies += ["--scratch", self.options.scratch] if self.options.scratch else []
        command = [*self._python("processes"), *nannies]
        return list(self.system.on_each_node(command, folder, None if differ else number))

    def _count_workers(self, folder: Path) -> bool:
        """Write down how many workers each node gets, by its own cores and memory; returns whether they differ."""
        if self.options.by_node is None:
            return False
        base, each = self.options.by_node
        least = self.options.workers_per_node
        try:
            nodes = self.system.nodes_of_job()
        except BatchSystemError as error:
            say(f"{error}; every node gets {least} workers")
            return False
        workers = {node.name: _most_workers(node, base, each) for node in nodes}
        if set(workers.values()) <= {least}:
            return False
        (folder / WORKERS).write_text(json.dumps(workers))
        say("workers: " + ", ".join(f"{number} on {name}" for name, number in workers.items()))
        return True

    def _progress(self) -> dict[str, Any]:
        """Return what the sweep said last of how far it is; the last one of an earlier job until this one speaks."""
        return read_fields(self.options.progress, {}) or {}

    def _finish(self, outcome: str, text: str, code: int) -> int:
        self._note(outcome, text)
        say(f"{outcome}{': ' + text if text else ''}")
        return code

    def _note(self, outcome: str, text: str, job: str = "") -> None:
        note: dict[str, Any] = {"job": job or self.job, "outcome": outcome, "text": text, "time": time.time()}
        use_reserve(self.folder)
        with contextlib.suppress(OSError):  # a full disk; the job's log says it, too
            draft = self.folder / f"{OUTCOME}.partial"
            draft.write_text(json.dumps(note))
            os.replace(draft, self.folder / OUTCOME)

    def _requeue(self, was_fruitful: bool) -> int:
        """Put this job back into the queue; it goes on where it is now."""
        if not was_fruitful:
            text = "no simulation ended within a whole walltime; submit again with a longer --time"
            return self._finish("failed", text, 1)
        limit, requeued = self.options.max_requeues, self.requeues
        if limit is not None and requeued >= limit:
            text = f"the walltime was over, and the job was requeued {requeued} times (max_requeues); submit goes on"
            return self._finish("stopped", text, 1)
        self._note("requeued", "the walltime was over; the job resumes when its turn comes")
        self._phase.enter(REQUEUED)
        self._remove_credentials()
        try:
            number = self._ask_for_requeue()
        except BatchSystemError as error:
            return self._finish("stopped", f"{self.system.TITLE} would not requeue the job ({error}); submit again", 1)
        self._follow(number)
        say("back into the queue")
        return 0  # at once: the batch system lets the job wait until all of it has ended

    def _ask_for_requeue(self) -> str:
        """Ask the batch system until it answers, or ends this process at the walltime; returns the job that goes on."""
        self.warned = False  # which would let nothing rest
        while True:
            try:
                return str(self.system.requeue(self.job, self.folder))
            except NoAnswerError as error:
                if self.told_to_end:
                    raise
                say(str(error))
                self._rest(_ASK_AGAIN_S)

    def _follow(self, number: str) -> None:
        """Let ``status`` ask for the job that goes on, where that is another one."""
        known = self._read_job()
        if number == self.job or not known:
            return
        use_reserve(self.folder)
        draft = self.folder / f"{JOB}.partial"
        draft.write_text(json.dumps({**known, "job": number, "requeues": self.requeues + 1}, indent=1))
        os.replace(draft, self.folder / JOB)
        self._note("requeued", "the walltime was over; the job resumes when its turn comes", number)

    def _remove_credentials(self) -> None:
        for folder in (*self.folder.glob(f"{self.job}-*-*"), *self.folder.glob("tls-*")):
            shutil.rmtree(folder, ignore_errors=True)


def _most_workers(node: Node, base: int, each: int) -> int:
    """Return how many workers a node has cores and memory for; ``base`` is what a node needs beside them, in bytes."""
    if not (node.memory_mb and each > 0):
        return node.cores
    return max(1, min(node.cores, (node.memory_mb * 2**20 - base) // each))


def _has_gained(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Tell whether simulations have finished between two reports of a sweep.

    A sweep that recomputes, or retries failed cells, starts with fewer than the report of an earlier job has.
    """
    known = [report[key] for report, key in ((before, "done"), (now, "already")) if key in report]
    return bool(now != before and now.get("done", 0) > min(known, default=0))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description="Run a sweep in the nodes of a batch job")
    parser.add_argument("--folder", type=Path, required=True, help="where job, log and credentials are")
    parser.add_argument("--progress", type=Path, required=True, help="where the sweep says how much is 'done' (JSON)")
    parser.add_argument("--workers-per-node", type=int, default=0)
    what = "each node gets workers by its cores, and by its memory: bytes beside them, and of each (0: not known)"
    parser.add_argument("--by-node", type=int, nargs=2, metavar=("BYTES", "BYTES"), help=what)
    parser.add_argument("--elastic", action="store_true", help="the workers are jobs of their own")
    parser.add_argument("--memory-bytes", type=int, default=0, help="of one worker; 0: no limit")
    parser.add_argument("--interface", help="network interface between the nodes")
    parser.add_argument("--scratch", help="folder of each node for temporary files")
    parser.add_argument("--grace", type=float, default=120, help="seconds between SIGUSR1 and the walltime")
    parser.add_argument("--max-restarts", type=int, default=6, help="in a row, without any new result")
    parser.add_argument("--max-requeues", type=int, help="requeues by the job itself; default: no limit")
    parser.add_argument("--dashboard", action="store_true", help="Dask's own, on the loopback, with a token")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    sys.exit(Allocation(options, options.command).run())


if __name__ == "__main__":
    main()
