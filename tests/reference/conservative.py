"""Conservative (strong) backfilling: every queued job has a reservation (decisions 12 to 14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .state import Job, Moment

if TYPE_CHECKING:
    from .simulator import Simulator


@dataclass(eq=False)
class Reservation:
    """Nodes (a box of a torus) or a number of nodes (flat) reserved for a job from ``begin`` to ``end``."""

    begin: Moment
    end: Moment
    box: frozenset[int] | None
    count: int

    def covers(self, begin: Moment, end: Moment) -> bool:
        return self.begin < end and begin < self.end


class Conservative:
    """The reservations of a run and the passes that keep them."""

    def __init__(self, simulator: Simulator):
        self.simulator = simulator
        self.reservations: dict[Job, Reservation] = {}
        self.released = False
        self.broken = False
        self.slips: list[tuple[Any, Job]] = []

    def schedule(self) -> None:
        simulator, now = self.simulator, self.simulator.now
        if self.must_start_anew():
            self.reservations.clear()
        elif self.released:
            for job in simulator.queue:
                if job in self.reservations:
                    old = self.reservations.pop(job)
                    self.reservations[job] = self.earliest(job)
                    if self.reservations[job].begin > old.begin:
                        raise AssertionError(f"compression delayed job {job.job_id} at {now}")
        self.released = self.broken = False
        for job in simulator.queue:
            if job not in self.reservations:
                self.reservations[job] = self.earliest(job)
        for job in list(simulator.queue):
            if self.reservations[job].begin == (now, 0):
                self.begin_job(job, self.reservations.pop(job))

    def begin_job(self, job: Job, reservation: Reservation) -> None:
        self.simulator.start(job, reservation.box or self.simulator.place(job, 0))

    def must_start_anew(self) -> bool:
        now = self.simulator.now
        overrun = any(a.expected_end(now) == (now, 1) for a in self.simulator.present())
        stale = any(r.begin < (now, 0) for r in self.reservations.values())
        return self.broken or overrun or stale

    def earliest(self, job: Job) -> Reservation:
        """The earliest reservation for a job beside everything that runs or is reserved."""
        simulator = self.simulator
        present: Moment = (simulator.now, 0)
        blocks = [Reservation(present, free, nodes, len(nodes)) for nodes, free in simulator.occupancies()]
        blocks += self.reservations.values()
        for begin in sorted({present} | {block.end for block in blocks if block.end > present}):
            end = (begin[0] + simulator.duration(job), begin[1])
            if end <= begin:
                end = (begin[0], begin[1] + 1)
            for size in simulator.machine.sizes_from(job.size, simulator.options.growth_limit):
                if simulator.machine.is_torus:
                    box = self.box(job, size, begin, end, blocks)
                    if box:
                        return Reservation(begin, end, box, size)
                elif self.fits(size, begin, end, blocks):
                    return Reservation(begin, end, None, size)
        raise AssertionError(f"no reservation for job {job.job_id}")

    def fits(self, size: int, begin: Moment, end: Moment, blocks: list[Reservation]) -> bool:
        """Whether a number of nodes is free at every moment of the interval: at its start and after every change."""
        inside = [block for block in blocks if block.covers(begin, end)]
        moments = [begin] + [block.begin for block in inside if begin < block.begin]
        busy = (sum(b.count for b in inside if b.begin <= m < b.end) for m in moments)
        return max(busy) + size <= self.simulator.machine.nodes

    def box(self, job: Job, size: int, begin: Moment, end: Moment, blocks: list[Reservation]):
        busy = set().union(*(block.box for block in blocks if block.covers(begin, end)))
        boxes = self.simulator.machine.free_boxes(size, busy)
        if not boxes:
            return None
        at_begin = set().union(*(block.box for block in blocks if block.begin <= begin < block.end))
        return self.simulator.choose(job, boxes, at_begin, oblivious=begin != (self.simulator.now, 0))


class TopJobs(Conservative):
    """The first jobs that must wait have reservations, made anew in every pass; others start beside them."""

    def schedule(self) -> None:
        simulator = self.simulator
        self.reservations.clear()
        self.released = self.broken = False
        for job in list(simulator.queue):
            found = self.earliest(job)
            if found.begin == (simulator.now, 0):
                self.begin_job(job, found)
            elif len(self.reservations) < simulator.options.top_jobs:
                self.reservations[job] = found
