"""Reads an event trace again: who held which nodes from when to when, what came of it, and what the queue was.

A *stay* is a time during which a job holds the same nodes and all that it does has one fate: it counted, a failure
destroyed it, it was the wait between being scheduled and starting, or the trace ends before its fate is known. A job
that is killed and starts again without a return to the queue (recovery option C) keeps its healthy nodes meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from faultsweep.simcore.engine.event_trace import EventTrace
from faultsweep.simcore.model.machines import CLUSTERS, SITE, TORUS, Machine, parse_machine
from numpy.typing import NDArray

from faultsweep.arguments import MAPPING, TRUTH, instance, takes
from faultsweep.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COUNTED, DESTROYED, DELAYED, RUNNING, KEPT, PAUSED = range(6)
FATES = (
    "work that counts",
    "work that a failure destroyed",
    "start delay",
    "running when the trace ends",
    "kept for a job that waits for its nodes",
    "pause for a checkpoint, a move or a restart",
)


@dataclass(frozen=True)
class Pauses:
    """How long jobs pause, s, which a trace does not tell and the run's parameters do.

    Attributes
    ----------
    checkpoint_s : until the event of a checkpoint.
    migration_s : from the event of a migration on, behind a pause that goes on then.
    restart_s, restore_s : from a start on, after a kill and (of clusters) after a checkpoint.
    moves_save : whether a migration saves the work done before it, once it is complete.
    """

    checkpoint_s: float = 0.0
    migration_s: float = 0.0
    restart_s: float = 0.0
    restore_s: float = 0.0
    moves_save: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Pauses:
        """Return the pauses of a run of the simulator with all of its parameters."""
        kind = parse_machine(config["machine"]).kind
        if kind == CLUSTERS:
            half = 0.5 * config["overhead_s"]
            return cls(half, 0.0, config["restart_cost_s"], half)
        moves = kind != TORUS
        cost = config["move_cost_s" if moves else "migration_cost_s"]
        return cls(config["checkpoint_cost_s"], cost, config["restart_cost_s"], 0.0, moves)


@dataclass(frozen=True)
class Stays:
    """Stays in the order of their ends; the nodes of stay k are ``node[first_node[k]:first_node[k + 1]]``, ascending.

    Arrays of shape (stays,): ``start_s``, ``end_s``, ``job_id``, ``attempt``, ``fate`` (one of the constants).
    """

    start_s: Floats
    end_s: Floats
    job_id: Ints
    attempt: Ints
    fate: Ints
    first_node: Ints
    node: Ints

    def __len__(self) -> int:
        """Return the number of stays."""
        return len(self.start_s)

    @property
    def num_nodes(self) -> Ints:
        """Return how many nodes each holds."""
        return np.diff(self.first_node)


@dataclass(frozen=True)
class Marks:
    """Instants on nodes: shape (marks,) each; ``job_id`` is -1 for what is of a node."""

    time_s: Floats
    node: Floats
    job_id: Ints


@dataclass(frozen=True)
class Replay:
    """A run, read again from its trace.

    Attributes
    ----------
    machine : what it ran on.
    begin_s, end_s : first arrival, and last finish (the last event if nothing finished).
    stays : who held which nodes.
    down : node, from, until, each of shape (times that a node was down,).
    marks : "failure", "checkpoint", "restart", "migration" -> where they were.
    queue_s, queue_jobs, queue_nodes : when the queue changed, how many jobs wait then and how many nodes they want.
    size : job -> nodes that it asked for.
    sizes_known : whether the sizes are those of the jobs' table; else they are what each job held first.
    never_started : jobs of unknown size, because they never started.
    pauses : how long jobs pause, None where that is not known: pauses are work then.
    """

    machine: Machine
    begin_s: float
    end_s: float
    stays: Stays
    down: tuple[Ints, Floats, Floats]
    marks: dict[str, Marks]
    queue_s: Floats
    queue_jobs: Ints
    queue_nodes: Floats
    size: dict[int, int]
    sizes_known: bool
    never_started: int
    pauses: Pauses | None = None


@takes(
    events=instance(EventTrace, "an EventTrace"),
    machine=instance(Machine, "a Machine"),
    sizes=MAPPING,
    hold_nodes=TRUTH,
    pauses=instance(Pauses, "Pauses"),
)
def replay(
    events: EventTrace,
    machine: Machine,
    sizes: Mapping[int, int] | None = None,
    hold_nodes: bool = True,
    pauses: Pauses | None = None,
) -> Replay:
    """Read a trace again.

    Parameters
    ----------
    events : the trace.
    machine : of the run; its number of nodes, and its sides if it is a torus.
    sizes : nodes that each job asked for; from each job's first start if not given.
    hold_nodes : whether a job that waits for its own nodes keeps the healthy ones (the parameter of that name).
    pauses : how long jobs pause; without it pauses are work. A checkpoint that a kill cuts short is destroyed work in
        any case: no event tells when it began.

    Raises
    ------
    InputError
        A node is not one of the machine, there is no event, or the events contradict each other.
    """
    if not len(events):
        raise InputError("the trace has no events")
    if machine.kind == SITE:
        raise InputError(
            f"{machine.name}: a trace does not say which part of a node a job holds (valid: another machine)"
        )
    if len(events.node) and events.node.max() >= machine.nodes + len(machine.clusters):
        raise InputError(
            f"the trace has node {events.node.max()}, and {machine.name} has nodes 0 to {machine.nodes - 1}; "
            "name the machine of the run by --machine"
        )
    reader = _Reader(machine, dict(sizes or {}), sizes is not None, hold_nodes, pauses)
    for time_s, kind, job_id, attempt, nodes in events.rows():
        if kind in _ON_SITES:
            raise InputError(
                f"the trace has a {kind} of job {job_id}, so it is of a site: a trace does not tell which part of a "
                "node a job holds (valid: a trace of another machine)"
            )
        getattr(reader, kind)(time_s, job_id, attempt, nodes)
    return reader.result(float(events.time_s[-1]))


_ON_SITES = frozenset(("preempt", "suspend", "resume"))
"""Kinds of events that only runs on sites have."""


@dataclass
class _Stay:
    """A stay that goes on.

    ``unsaved`` are earlier ones of the attempt whose fate is not known yet; ``pauses`` the times without work, the last
    of which is over at ``works_s``; ``owed_s`` is a pause that follows the start delay; ``saved_s`` is when a move will
    have saved the work.
    """

    start_s: float
    nodes: list[int]
    attempt: int
    fate: int
    unsaved: list[tuple[float, float, list[int]]] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    works_s: float = -np.inf
    owed_s: float = 0.0
    saved_s: float = np.inf

    def pause(self, time_s: float, length_s: float) -> None:
        """Stop the work for a while, beginning after any pause that it is already in."""
        begin_s = max(time_s, self.works_s)
        if length_s > 0:
            self.works_s = begin_s + length_s
            self.pauses.append((begin_s, self.works_s))

    def parts(self, start_s: float, end_s: float) -> Iterator[tuple[float, float, bool]]:
        """Yield the parts of a time: from, until, and whether it is a pause."""
        at_s = start_s
        for begin_s, until_s in sorted(self.pauses):
            begin_s, until_s = max(begin_s, at_s), min(until_s, end_s)
            if until_s > begin_s:
                yield at_s, begin_s, False
                yield begin_s, until_s, True
                at_s = until_s
        yield at_s, end_s, False


class _Reader:
    """One method per kind of event."""

    def __init__(
        self, machine: Machine, sizes: dict[int, int], sizes_known: bool, hold_nodes: bool, pauses: Pauses | None
    ) -> None:
        self.machine, self.sizes, self.sizes_known, self.hold_nodes = machine, sizes, sizes_known, hold_nodes
        self.known_pauses = pauses
        self.pauses = pauses or Pauses()
        self.saved: set[int] = set()
        """Jobs that have a checkpoint."""
        self.killed: dict[int, tuple[float, int, list[int]]] = {}
        """Jobs since their kill: when, which attempt, on which nodes."""
        self.kept: list[tuple[float, float, int, int, list[int]]] = []
        self.open: dict[int, _Stay] = {}
        self.stays: list[tuple[float, float, int, int, int, list[int]]] = []
        self.down_since: dict[int, float] = {}
        self.down: list[tuple[int, float, float]] = []
        self.marks: dict[str, list[tuple[float, float, int]]] = {
            "failure": [],
            "checkpoint": [],
            "restart": [],
            "migration": [],
        }
        self.waiting: list[tuple[float, int, int]] = []
        self.queued: set[int] = set()
        self.begin_s = np.inf
        self.finish_s = -np.inf

    def _stay_of(self, time_s: float, job_id: int, what: str) -> _Stay:
        if job_id not in self.open:
            raise InputError(f"the trace has a {what} of job {job_id} at {time_s:.17g} s, which holds no nodes then")
        stay = self.open[job_id]
        if stay.saved_s <= time_s:  # a move is complete
            self._end(stay, stay.saved_s, job_id, COUNTED)
            stay.start_s, stay.saved_s = stay.saved_s, np.inf
        return stay

    def _mark(self, kind: str, time_s: float, job_id: int, nodes: list[int]) -> None:
        self.marks[kind].append((time_s, float(_middle(nodes)), job_id))

    def arrive(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        self.begin_s = min(self.begin_s, time_s)
        self._queue_up(time_s, job_id)

    def requeue(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        self.killed.pop(job_id, None)
        if job_id in self.open:  # the agent of clusters has saved it and takes its nodes
            self._end(self.open.pop(job_id), time_s, job_id, COUNTED)
        self._queue_up(time_s, job_id)

    def _queue_up(self, time_s: float, job_id: int) -> None:
        self.queued.add(job_id)
        self.waiting.append((time_s, job_id, 1))

    def schedule(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        self._take(time_s, job_id, attempt, nodes, DELAYED)

    def _take(self, time_s: float, job_id: int, attempt: int, nodes: list[int], fate: int) -> None:
        if job_id in self.open:
            raise InputError(f"the trace starts job {job_id} at {time_s:.17g} s, which holds nodes already")
        if job_id in self.queued:  # a job that restarts on its own nodes (recovery option C) was not
            self.queued.remove(job_id)
            self.waiting.append((time_s, job_id, -1))
        if job_id in self.killed:
            since, killed_attempt, held = self.killed.pop(job_id)
            self.kept.append((since, time_s, job_id, killed_attempt, held))
        self.open[job_id] = _Stay(time_s, nodes, attempt, fate)
        self.sizes.setdefault(job_id, len(nodes))

    def start(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        owed_s = 0.0
        if job_id in self.open and self.open[job_id].fate == DELAYED:
            delayed = self.open.pop(job_id)
            self._end(delayed, time_s, job_id, DELAYED)
            owed_s = delayed.owed_s
            self.open[job_id] = _Stay(time_s, nodes, attempt, RUNNING)
        else:
            self._take(time_s, job_id, attempt, nodes, RUNNING)
        if attempt > 0:
            self._mark("restart", time_s, job_id, nodes)
            owed_s += self.pauses.restart_s
        owed_s += self.pauses.restore_s if job_id in self.saved else 0.0
        self.open[job_id].pause(time_s, owed_s)

    def migrate(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        stay = self._stay_of(time_s, job_id, "migration")
        self._mark("migration", time_s, job_id, nodes)
        cost_s = self.pauses.migration_s
        moved = replace(stay, start_s=time_s, nodes=nodes)
        self.open[job_id] = moved
        if stay.fate == DELAYED:
            self._end(stay, time_s, job_id, DELAYED)
            moved.owed_s += cost_s
            return
        moved.unsaved.append((stay.start_s, time_s, stay.nodes))
        moved.pause(time_s, cost_s)
        if self.pauses.moves_save:
            moved.saved_s = time_s + cost_s

    def checkpoint(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        stay = self._stay_of(time_s, job_id, "checkpoint")
        self._mark("checkpoint", time_s, job_id, stay.nodes)
        self.saved.add(job_id)
        stay.pauses.append((time_s - self.pauses.checkpoint_s, time_s))
        self._end(stay, time_s, job_id, COUNTED)
        stay.start_s = time_s

    def finish(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        self._end(self._stay_of(time_s, job_id, "finish"), time_s, job_id, COUNTED)
        del self.open[job_id]
        self.finish_s = time_s

    def kill(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        stay = self._stay_of(time_s, job_id, "kill")
        self._end(stay, time_s, job_id, DELAYED if stay.fate == DELAYED else DESTROYED)
        del self.open[job_id]
        self.killed[job_id] = time_s, stay.attempt, stay.nodes

    def fail(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        trunk = nodes[0] - self.machine.nodes
        if trunk >= 0:  # of a cluster: marked in the middle of its nodes, none of which is down
            clusters = self.machine.clusters
            self.marks["failure"].append((time_s, sum(clusters[:trunk]) + (clusters[trunk] - 1) / 2, -1))
            return
        self.marks["failure"].append((time_s, float(nodes[0]), -1))
        self.down_since.setdefault(nodes[0], time_s)

    def repair(self, time_s: float, job_id: int, attempt: int, nodes: list[int]) -> None:
        since = self.down_since.pop(nodes[0], time_s)
        if time_s > since:
            self.down.append((nodes[0], since, time_s))

    def _end(self, stay: _Stay, time_s: float, job_id: int, fate: int) -> None:
        """End a stay, and those before it that share its fate; what was a pause is one whatever the fate."""
        for start_s, end_s, nodes in [*stay.unsaved, (stay.start_s, time_s, stay.nodes)]:
            for since_s, until_s, paused in stay.parts(start_s, end_s):
                if until_s > since_s:
                    self.stays.append((since_s, until_s, job_id, stay.attempt, PAUSED if paused else fate, nodes))
        stay.unsaved.clear()

    def result(self, last_s: float) -> Replay:
        for job_id, stay in self.open.items():
            self._end(stay, last_s, job_id, stay.fate)
        self.down += [(node, since, last_s) for node, since in self.down_since.items() if last_s > since]
        if self.hold_nodes:
            by_node = self._down_by_node()
            self.stays += [(*part[:4], KEPT, part[4]) for kept in self.kept for part in _healthy(by_node, *kept)]
        stays = sorted(self.stays, key=lambda row: row[1])
        columns = list(zip(*stays, strict=True)) or [()] * 6
        started = set(columns[2]) | set(self.sizes)
        arrived = [row[1] for row in self.waiting if row[2] > 0]
        begin_s = self.begin_s if np.isfinite(self.begin_s) else 0.0
        queue_s, queue_jobs, queue_nodes = self._queue()
        down = list(zip(*self.down, strict=True)) or [()] * 3
        return Replay(
            machine=self.machine,
            begin_s=begin_s,
            end_s=self.finish_s if self.finish_s > begin_s else max(last_s, begin_s),
            stays=Stays(
                start_s=np.array(columns[0], float),
                end_s=np.array(columns[1], float),
                job_id=np.array(columns[2], np.int64),
                attempt=np.array(columns[3], np.int64),
                fate=np.array(columns[4], np.int64),
                first_node=np.concatenate([[0], np.cumsum([len(nodes) for nodes in columns[5]])]).astype(np.int64),
                node=np.array([node for nodes in columns[5] for node in nodes], np.int64),
            ),
            down=(np.array(down[0], np.int64), np.array(down[1], float), np.array(down[2], float)),
            marks={kind: _marks(rows) for kind, rows in self.marks.items()},
            queue_s=queue_s,
            queue_jobs=queue_jobs,
            queue_nodes=queue_nodes,
            size=self.sizes,
            sizes_known=self.sizes_known,
            never_started=len(set(arrived) - started),
            pauses=self.known_pauses,
        )

    def _down_by_node(self) -> dict[int, tuple[list[float], list[float]]]:
        """Return node -> when it went down and came up again; times of one node do not overlap."""
        found: dict[int, tuple[list[float], list[float]]] = {}
        for node, since_s, until_s in sorted(self.down):
            spans = found.setdefault(node, ([], []))
            spans[0].append(since_s)
            spans[1].append(until_s)
        return found

    def _queue(self) -> tuple[Floats, Ints, Floats]:
        rows = sorted(self.waiting, key=lambda row: row[0])
        times = np.array([row[0] for row in rows])
        step = np.array([row[2] for row in rows], np.int64)
        nodes = np.array([row[2] * self.sizes.get(row[1], 0) for row in rows], float)
        return times, np.cumsum(step), np.cumsum(nodes)


def _healthy(
    down: Mapping[int, tuple[list[float], list[float]]],
    since_s: float,
    until_s: float,
    job_id: int,
    attempt: int,
    nodes: list[int],
) -> list[tuple[float, float, int, int, list[int]]]:
    """Return the parts of a time in which a job keeps nodes, each with the nodes that are up in it."""
    broken = []
    for node in nodes:
        begins, ends = down.get(node, ([], []))
        broken += [(node, begins[k], ends[k]) for k in range(bisect_right(ends, since_s), bisect_left(begins, until_s))]
    edges = {since_s, until_s} | {time for _, *span in broken for time in span if since_s < time < until_s}
    parts = []
    for start_s, end_s in pairwise(sorted(edges)):
        out = {node for node, since, until in broken if since <= start_s < until}
        healthy = [node for node in nodes if node not in out]
        if healthy:
            parts.append((start_s, end_s, job_id, attempt, healthy))
    return parts


def _marks(rows: list[tuple[float, float, int]]) -> Marks:
    times, nodes, jobs = list(zip(*rows, strict=True)) or [()] * 3
    return Marks(np.array(times, float), np.array(nodes, float), np.array(jobs, np.int64))


def _middle(nodes: list[int]) -> int:
    """Return the middle node of the longest run of neighbours: a mark there is on the job, also on one in pieces."""
    runs = np.split(np.sort(nodes), np.flatnonzero(np.diff(np.sort(nodes)) != 1) + 1)
    longest = max(runs, key=len)
    return int(longest[len(longest) // 2])
