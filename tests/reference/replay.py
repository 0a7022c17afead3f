"""Every metric recomputed from the event trace alone (and the table of jobs), by another way than the engine's.

The trace is turned into intervals per job and node; every integral is a sum over the pieces between neighbouring
event times, each piece evaluated from scratch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor, inf
from typing import Any

from .state import Event, exact


@dataclass
class Stay:
    """One attempt of a job: it holds nodes from ``held_from``, runs from ``start`` and leaves at ``end``."""

    attempt: int
    held_from: Any
    start: Any = None
    end: Any = inf
    completed: bool = False
    moves: list[tuple[Any, tuple[int, ...]]] = field(default_factory=list)

    def nodes_at(self, time: Any) -> tuple[int, ...]:
        return [nodes for since, nodes in self.moves if since <= time][-1]


@dataclass
class History:
    """What the trace says about one job."""

    job_id: int
    submit: Any
    run: Any
    size: int
    stays: list[Stay] = field(default_factory=list)
    waits_from: list[Any] = field(default_factory=list)
    kills: list[Any] = field(default_factory=list)
    checkpoints: list[Any] = field(default_factory=list)
    migrations: list[Any] = field(default_factory=list)

    @property
    def finish(self) -> Any:
        return self.stays[-1].end if self.stays and self.stays[-1].completed else None

    @property
    def start(self) -> Any:
        return self.stays[-1].start

    @property
    def wait(self) -> Any:
        return self.start - self.submit

    @property
    def response(self) -> Any:
        return self.finish - self.submit

    @property
    def slowdown(self) -> Any:
        return Fraction(self.response) / self.run

    def bounded_slowdown(self, bound: Any) -> Any:
        return Fraction(max(self.response, bound)) / max(self.run, bound)

    def waiting(self) -> list[tuple[Any, Any]]:
        """The intervals in which the job is in the queue."""
        ends = [stay.held_from for stay in self.stays]
        return [(since, min((end for end in ends if end >= since), default=inf)) for since in self.waits_from]


class Replay:
    """The trace of a run, read again.

    Parameters
    ----------
    events : the trace.
    jobs : rows (id, submit, run as simulated, size asked for).
    nodes : of the machine.
    end : of the run.
    """

    def __init__(self, events: Iterable[Event], jobs: Iterable[Sequence], nodes: int, end: Any):
        self.nodes, self.end = nodes, end
        self.events = list(events)
        self.jobs = {row[0]: History(row[0], exact(row[1]), exact(row[2]), row[3]) for row in jobs}
        self.down: dict[int, list[list[Any]]] = defaultdict(list)
        self.failures = 0
        self.begin = min(job.submit for job in self.jobs.values())
        for event in self.events:
            getattr(self, f"read_{event.kind}")(event)

    # -- one reader for each kind of row -------------------------------------------------------------------------

    def read_arrive(self, event: Event) -> None:
        job = self.jobs[event.job_id]
        assert event.time == job.submit
        job.waits_from.append(event.time)

    def read_requeue(self, event: Event) -> None:
        self.jobs[event.job_id].waits_from.append(event.time)

    def read_schedule(self, event: Event) -> None:
        """With a start delay the nodes are held from here on."""
        self.jobs[event.job_id].stays.append(Stay(event.attempt, event.time, moves=[(event.time, event.nodes)]))

    def read_start(self, event: Event) -> None:
        job = self.jobs[event.job_id]
        if not job.stays or job.stays[-1].end < inf:
            self.read_schedule(event)
        assert event.nodes == job.stays[-1].moves[-1][1]
        job.stays[-1].start = event.time

    def read_migrate(self, event: Event) -> None:
        job = self.jobs[event.job_id]
        job.migrations.append(event.time)
        job.stays[-1].moves.append((event.time, event.nodes))

    def read_checkpoint(self, event: Event) -> None:
        self.jobs[event.job_id].checkpoints.append(event.time)

    def read_finish(self, event: Event) -> None:
        stay = self.jobs[event.job_id].stays[-1]
        stay.end, stay.completed = event.time, True

    def read_kill(self, event: Event) -> None:
        job = self.jobs[event.job_id]
        job.kills.append(event.time)
        job.stays[-1].end = event.time

    def read_fail(self, event: Event) -> None:
        self.failures += event.time >= self.begin
        node = event.nodes[0]
        if not self.down[node] or self.down[node][-1][1] != inf:
            self.down[node].append([event.time, inf])

    def read_repair(self, event: Event) -> None:
        self.down[event.nodes[0]][-1][1] = event.time

    # -- integrals -----------------------------------------------------------------------------------------------

    def pieces(self) -> Iterable[tuple[Any, Any]]:
        """The intervals between neighbouring times at which anything changes, within the span of the run."""
        times = {self.begin, self.end} | {event.time for event in self.events}
        times |= {stay.held_from for job in self.jobs.values() for stay in job.stays}
        inside = sorted(time for time in times if self.begin <= time <= self.end)
        return pairwise(inside)

    def stays_at(self, time: Any) -> list[tuple[History, Stay]]:
        return [(j, s) for j in self.jobs.values() for s in j.stays if s.held_from <= time < s.end]

    def down_at(self, time: Any) -> set[int]:
        return {node for node, spans in self.down.items() for since, until in spans if since <= time < until}

    def held_at(self, time: Any) -> set[int]:
        """Nodes held for a job that waits for their repair: between a kill and a restart without a requeue."""
        held: set[int] = set()
        for job in self.jobs.values():
            for before, after in pairwise(job.stays):
                requeued = any(before.end <= since <= after.held_from for since in job.waits_from)
                if not requeued and before.end <= time < after.held_from:
                    held |= set(before.nodes_at(time))
        return held

    def integrate(self, value) -> Any:
        """The integral of ``value(time)`` over the span, ``value`` being constant between events."""
        return sum((Fraction(value(since) * (until - since)) for since, until in self.pieces()), Fraction(0))

    def allocated_at(self, time: Any) -> set[int]:
        return set().union(*(stay.nodes_at(time) for _, stay in self.stays_at(time)))

    def free_at(self, time: Any, hold: bool = True) -> int:
        busy = self.allocated_at(time) | self.down_at(time) | (self.held_at(time) if hold else set())
        return self.nodes - len(busy)

    def wanted_at(self, time: Any) -> int:
        return sum(size for size, since, until in self.queued if since <= time < until)

    @cached_property
    def queued(self) -> list[tuple[int, Any, Any]]:
        """The size of each job with each interval in which it is in the queue."""
        return [(job.size, *interval) for job in self.jobs.values() for interval in job.waiting()]

    def capacities(self, hold: bool = True) -> dict[str, Any]:
        """Utilised, unused and lost capacity (krevat2003, 4.1 to 4.3), each from its own definition."""
        whole = Fraction((self.end - self.begin) * self.nodes)
        done = [job for job in self.jobs.values() if job.finish is not None]
        utilised = sum((Fraction(job.size * job.run) for job in done), Fraction(0)) / whole
        unused = self.integrate(lambda t: max(0, self.free_at(t, hold) - self.wanted_at(t))) / whole
        return {"utilised": utilised, "unused": unused, "lost": 1 - utilised - unused}

    def shares_of_lost(
        self, lost_work: dict[tuple[int, int], Any], kept_work: dict[tuple[int, int], Any], hold: bool = True
    ) -> dict[str, Any]:
        """Where the lost capacity went, in parts that do not overlap; work lost and kept (s) is by job and attempt.

        What a job holds beyond its size is growth only while it does work that counts; the other parts count all
        that it holds. ``overhead`` is what remains of the held time: checkpoints, moves, migrations, restarts.
        """
        held = self.integrate(lambda t: sum(len(s.nodes_at(t)) for _, s in self.stays_at(t)))
        delayed = failed = grown = useful = Fraction(0)
        for job in self.jobs.values():
            for stay in job.stays:
                nodes = len(stay.moves[-1][1])
                delayed += ((stay.end if stay.start is None else stay.start) - stay.held_from) * nodes
                failed += lost_work.get((job.job_id, stay.attempt), 0) * nodes
                kept = kept_work.get((job.job_id, stay.attempt), 0)
                useful += kept * job.size
                grown += kept * (nodes - job.size)
        parts = {
            "fragmentation": self.integrate(lambda t: min(self.free_at(t, hold), self.wanted_at(t))),
            "kept": self.integrate(lambda t: len(self.held_at(t) - self.down_at(t))) if hold else Fraction(0),
            "down": self.integrate(lambda t: len(self.down_at(t))),
            "delayed": delayed,
            "failed": failed,
            "grown": grown,
            "overhead": held - useful - delayed - failed - grown,
        }
        return {name: value / ((self.end - self.begin) * self.nodes) for name, value in parts.items()}


def percentile(values: Iterable[Any], percent: int) -> Any:
    """The percentile with linear interpolation between the neighbouring values."""
    ordered = sorted(values)
    position = Fraction(percent, 100) * (len(ordered) - 1)
    low = floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def statistics(values: Iterable[Any]) -> dict[str, Any]:
    """Mean, median, p90, p99 and max."""
    values = list(values)
    return {
        "mean": Fraction(sum(values)) / len(values),
        "median": percentile(values, 50),
        "p90": percentile(values, 90),
        "p99": percentile(values, 99),
        "max": max(values),
    }
