"""The event trace of a run: what happened when, to which job, on which nodes.

Columns ``time_s, kind, job_id, attempt, nodes``. Kinds: ``arrive``, ``start`` and ``migrate`` (nodes: the allocation),
``finish``, ``kill``, ``requeue``, ``checkpoint``, ``fail`` and ``repair`` (nodes: the node). With a start delay a row
``schedule`` (nodes: the allocation) precedes each start by the delay, because nodes are held from then on. Replaying
the trace alone suffices to recompute every metric.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faultsweep.simcore.engine import state as st
from numpy.typing import NDArray

from faultsweep.arguments import PATH, takes
from faultsweep.errors import InputError
from faultsweep.files import write_csv

COLUMNS = ("time_s", "kind", "job_id", "attempt", "nodes")


@dataclass(frozen=True)
class EventTrace:
    """Events in the order in which they happened.

    Attributes
    ----------
    time_s : float64 (rows,).
    kind : int64 (rows,), positions in ``state.EVENT_NAMES``.
    job_id : int64 (rows,), the log's job number; -1 where an event is of a node.
    attempt : int64 (rows,), restarts of the job so far.
    first_node : int64 (rows + 1,); the nodes of row k are ``node[first_node[k]:first_node[k + 1]]``.
    node : int64, node indices, ascending within a row.
    """

    time_s: NDArray[np.float64]
    kind: NDArray[np.int64]
    job_id: NDArray[np.int64]
    attempt: NDArray[np.int64]
    first_node: NDArray[np.int64]
    node: NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.time_s)

    def __repr__(self) -> str:
        """Show in one line how many events there are, and of which time."""
        span = f", {self.time_s[0]:.10g} to {self.time_s[-1]:.10g} s" if len(self) else ""
        return f"EventTrace({len(self):,} events{span})"

    def rows(self) -> Iterator[tuple[float, str, int, int, list[int]]]:
        """Yield (time_s, kind, job_id, attempt, nodes) of every event."""
        for k in range(len(self)):
            nodes = self.node[self.first_node[k] : self.first_node[k + 1]].tolist()
            yield float(self.time_s[k]), st.EVENT_NAMES[self.kind[k]], int(self.job_id[k]), int(self.attempt[k]), nodes

    @takes(path=PATH)
    def write_csv(self, path: str | Path) -> None:
        """Write the trace as CSV; nodes are separated by spaces, the job of a node's event is empty."""
        write_csv(path, COLUMNS, self._texts())

    def _texts(self) -> Iterator[tuple[str, ...]]:
        for time_s, kind, job_id, attempt, nodes in self.rows():
            job = ("", "") if kind in ("fail", "repair") else (str(job_id), str(attempt))
            yield (f"{time_s:.17g}", kind, *job, " ".join(map(str, nodes)))

    @classmethod
    def read_csv(cls, path: str | Path) -> EventTrace:
        """Read a trace that ``write_csv`` wrote.

        Raises
        ------
        InputError
            There is no such file, or it is not an event trace; says which line.
        """
        try:
            with open(path, newline="", encoding="utf-8") as file:
                reader = csv.reader(file)
                if tuple(next(reader, ())) != COLUMNS:
                    raise InputError(f"{path}: not an event trace; its first line is not {','.join(COLUMNS)}")
                return cls._of_rows(reader, path)
        except FileNotFoundError:
            raise InputError(f"{path}: no such file") from None
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path}: cannot be read ({error})") from None

    @classmethod
    def _of_rows(cls, rows: Iterator[list[str]], path: str | Path) -> EventTrace:
        kinds = {name: number for number, name in enumerate(st.EVENT_NAMES)}
        times: list[float] = []
        heads: list[tuple[int, int, int]] = []
        nodes: list[int] = []
        lengths = [0]
        for line, row in enumerate(rows, 2):
            try:
                time_s, kind, job_id, attempt, held = row
                times.append(float(time_s))
                heads.append((kinds[kind], _number(job_id or "-1"), _number(attempt or "-1")))
                nodes += map(_number, held.split())
            except (ValueError, KeyError):
                raise InputError(f"{path}, line {line}: not an event: {','.join(row)[:80]!r}") from None
            needs_nodes = kind in ("fail", "repair", "start", "schedule", "migrate")
            if (len(times) > 1 and times[-1] < times[-2]) or not math.isfinite(times[-1]) or (needs_nodes and not held):
                raise InputError(f"{path}, line {line}: an event without nodes, or earlier than the previous event")
            lengths.append(len(nodes))
        if nodes and min(nodes) < 0:
            raise InputError(f"{path}: has a node with a number below 0")
        head = np.array(heads, np.int64).reshape(-1, 3)
        return cls(
            np.array(times), head[:, 0], head[:, 1], head[:, 2], np.array(lengths, np.int64), np.array(nodes, np.int64)
        )


def _number(text: str) -> int:
    """Return a number of a trace; raise ValueError if it is none, or has no room in 64 bits."""
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


class TraceBuffer:
    """Collects what a state's trace buffer can hold at a time."""

    def __init__(self, state: st.Common) -> None:
        """Record from a state that was built with tracing."""
        self._state = state
        self._parts: list[NDArray[np.float64]] = []

    def drain(self) -> None:
        """Take what the state has recorded and empty its buffer."""
        self._parts.append(self._state.trace[: self._state.trace_end].copy())
        self._state.trace_end = 0

    def move_to(self, state: st.Common) -> None:
        """Go on with a state that took the place of the one before; the buffer of that must be drained."""
        self._state = state

    def _split(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Return times, rows (kind, job, attempt, unused, number of nodes) and nodes of the recorded events."""
        buffer = np.concatenate(self._parts)
        heads, at, step = [], 0, st.TRACE_HEAD
        while at < len(buffer):
            heads.append(at)
            at += step + int(buffer[at + 4])
        first = np.array(heads, np.int64)
        if len(first) == 0:
            return np.zeros(0), np.zeros((0, 5), np.int64), np.zeros(0, np.int64)
        rows = np.stack([buffer[first + k] for k in (1, 2, 3, 3, 4)], axis=1).astype(np.int64)
        is_node = np.ones(len(buffer), bool)
        is_node[first[:, None] + np.arange(step)] = False
        return buffer[first], rows, buffer[is_node].astype(np.int64)

    def finish(self, job_id: NDArray[np.int64], start_delay_s: float) -> EventTrace:
        """Return the whole trace, with the starts that follow a start delay in their places."""
        times, rows, nodes = self._split()
        if start_delay_s > 0:
            times, rows, nodes = _add_starts(times, rows, nodes, start_delay_s)
        kinds, jobs = rows[:, 0], rows[:, 1]
        return EventTrace(
            time_s=times,
            kind=kinds,
            job_id=np.where(jobs >= 0, job_id[np.maximum(jobs, 0)], -1),
            attempt=rows[:, 2],
            first_node=np.concatenate([[0], np.cumsum(rows[:, 4])]),
            node=nodes,
        )


def _add_starts(
    times: NDArray[np.float64], rows: NDArray[np.int64], nodes: NDArray[np.int64], delay_s: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Add a start row after every schedule row whose job is not killed before it starts.

    A job that a failure hits at the instant of its start has not started: failures come first. A job that is moved
    during its start delay starts on the nodes that it moved to. Starts come first in their instant, because a job may
    be moved at the very instant of its start.
    """
    pending: dict[tuple[int, int], tuple[float, list[int]]] = {}
    first = np.concatenate([[0], np.cumsum(rows[:, 4])])
    starts: list[tuple[float, int, int, list[int]]] = []
    for k in range(len(times)):
        kind, key = rows[k, 0], (int(rows[k, 1]), int(rows[k, 2]))
        if kind == st.SCHEDULE_EVENT:
            pending[key] = (float(times[k]) + delay_s, nodes[first[k] : first[k + 1]].tolist())
        elif kind == st.MIGRATE_EVENT and key in pending and times[k] < pending[key][0]:
            pending[key] = (pending[key][0], nodes[first[k] : first[k + 1]].tolist())
        elif kind in (st.KILL_EVENT, st.FINISH_EVENT) and key in pending:
            start, held = pending.pop(key)
            if kind == st.FINISH_EVENT or times[k] > start:
                starts.append((start, *key, held))
    starts += [(start, *key, held) for key, (start, held) in pending.items()]
    all_rows = [
        (float(t), 1, k, int(r[0]), int(r[1]), int(r[2]), nodes[first[k] : first[k + 1]].tolist())
        for k, (t, r) in enumerate(zip(times, rows, strict=True))
    ]
    all_rows += [(t, 0, 0, st.START_EVENT, job, attempt, held) for t, job, attempt, held in starts]
    all_rows.sort(key=lambda row: (row[0], row[1], row[2], row[4]))
    return (
        np.array([row[0] for row in all_rows]),
        np.array([[row[3], row[4], row[5], 0, len(row[6])] for row in all_rows], np.int64).reshape(-1, 5),
        np.array([node for row in all_rows for node in row[6]], np.int64),
    )
