"""Preemption on a site, for the reference simulator: who makes way for whom, and what becomes of them.

Written from the definitions in docs/model.md alone; it shares no code with the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .state import Attempt, Job

if TYPE_CHECKING:
    from .site import SiteSimulator

ROUNDS = 3


class Preemption:
    """The rules of a run: ``options.preempts`` tells of two jobs whether the first may preempt the second."""

    def __init__(self, site: SiteSimulator):
        self.site = site
        self.preempts_from: dict[int, Any] = {}  # when a job that has had others leave may do so again

    @property
    def has_leave(self) -> bool:
        return self.site.options.preemption not in ("none", "suspend")

    def next_times(self) -> list[Any]:
        """When a grace ends, and when a job has run for long enough to be preempted."""
        site = self.site
        going = [a.leaves_at for a in site.running if a.is_going and a.leaves_at is not None]
        times = [t for a in site.running if a.leaves_at is not None for t in (a.leaves_from, a.leaves_at)]
        if self.has_leave and site.options.preempt_exempt > 0:
            times += [self.exempt_until(a) for a in site.running]
        return going + [time for time in [*times, *self.preempts_from.values()] if time > site.now]

    def exempt_until(self, attempt: Attempt) -> Any:
        """When a job can be preempted; under slurm its start counts as a whole second."""
        options, start = self.site.options, attempt.start
        return (self.site.passes.second(start) if options.scheduler == "slurm" else start) + options.preempt_exempt

    def candidates(self, job: Job) -> list[Attempt]:
        site, mine = self.site, self.nodes_of_partition(job)
        found = [
            a
            for a in site.running
            if site.options.preempts(job, a.job)
            and mine & set(site.bags[a])
            and not (a.saves_last or a.is_going)
            and site.now >= self.exempt_until(a)
        ]
        return sorted(found, key=lambda a: (site.options.preempt_order(a.job), len(site.bags[a]), a.job.index))

    def make_room(self, job: Job, usable: set[int]) -> bool:
        """Tell the jobs to leave whose place a job needs, and have those leave whose time is over; whether one has."""
        if self.preempts_from.get(job.index, 0) > self.site.now:
            return False
        victims, before = self.victims(job, usable), (list(self.site.running), self.site.free())
        if victims:
            wait = self.site.options.preempt_wait if self.site.options.scheduler == "slurm" else 0
            self.preempts_from.setdefault(job.index, self.site.now + wait)
        for attempt in victims:
            if not attempt.is_leaving:
                self.tell(attempt)
            elif attempt.leaves_from <= self.site.now:
                self.go(attempt)
        return before != (self.site.running, self.site.free())

    def victims(self, job: Job, usable: set[int]) -> list[Attempt]:
        if not self.has_leave:
            return []
        candidates, leaving = self.candidates(job), [a for a in self.site.running if a.saves_last]
        rounds = 0
        while True:
            if self.nodes_without(job, usable, leaving):
                return []
            for last in range(len(candidates)):
                chosen = self.nodes_without(job, usable, leaving + candidates[: last + 1])
                if chosen:
                    break
            else:
                return []
            rounds += 1
            overlap = {a: len(set(self.site.bags[a]) & chosen) for a in candidates}
            if rounds == ROUNDS or len(candidates) <= rounds:
                return [a for a in candidates[: last + 1] if overlap[a]]
            first = sorted(candidates[:last], key=lambda a: -overlap[a])
            candidates = [candidates[last], *first, *candidates[last + 1 :]]

    def lower(self, job: Job) -> list[Attempt]:
        """Those that a job may preempt, and of such those that make their last checkpoint."""
        if not self.has_leave:
            return []
        mine = self.nodes_of_partition(job)
        saving = [a for a in self.site.running if a.saves_last and self.site.options.preempts(job, a.job)]
        return self.candidates(job) + [a for a in saving if mine & set(self.site.bags[a])]

    def nodes_of_partition(self, job: Job) -> set[int]:
        partition = self.site.needs[job].partition
        return {node for node, has in enumerate(self.site.nodes) if partition in has.partitions}

    def nodes_without(self, job: Job, usable: set[int], gone: list[Attempt]) -> set[int]:
        """The nodes that a job would get if some jobs had gone; none if that is not enough."""
        site = self.site
        free = [bag if node in usable else (0, 0, 0) for node, bag in enumerate(site.free(gone))]
        site.row = 0
        return set(site.choose_nodes(job, free)) if site.room(job, free) >= site.needs[job].chunks else set()

    def tell(self, attempt: Attempt) -> None:
        attempt.is_leaving = True
        options = self.site.options
        grace = (options.grace(attempt.job) if options.site_grace else 0) or options.preempt_grace
        if grace == 0:
            self.go(attempt)
            return
        attempt.leaves_from = self.site.now + grace
        attempt.leaves_at = self.site.passes.tick_of("grace", attempt.leaves_from)
        attempt.estimated_end = min(attempt.estimated_end, attempt.leaves_from)

    def go(self, attempt: Attempt) -> None:
        """Have a job leave that has no grace, or no more: under slurm after the pass."""
        attempt.leaves_at = None
        if self.site.options.scheduler != "slurm":
            self.leave(attempt)
            return
        attempt.is_going = True
        attempt.leaves_from = attempt.leaves_at = self.site.now + self.site.options.preempt_leave
        attempt.estimated_end = min(attempt.estimated_end, attempt.leaves_at)

    def leave_those_due(self) -> None:
        for attempt in sorted(self.site.running, key=lambda a: a.job.index):
            if attempt.leaves_at == self.site.now or (attempt.saves_last and not attempt.saving):
                attempt.leaves_at = None
                self.leave(attempt)

    def leave(self, attempt: Attempt) -> None:
        site, job = self.site, attempt.job
        cost = site.options.checkpoint_cost
        if site.options.preemption == "checkpoint" and not attempt.saves_last:
            attempt.saves_last = True
            if attempt.saving:
                return
            if attempt.resume < site.now:
                site.begin_saving(attempt, cost, "checkpoint")
                if cost > 0:
                    return
        lost = attempt.work_at(site.now) - job.saved
        held = sum(bag[0] for bag in site.bags[attempt].values())
        site.end(attempt)
        site.log("preempt", job)
        job.preemptions += 1
        job.preempted_seconds += lost * held
        site.passes.changed, site.passes.left_at = True, site.now
        if site.options.preemption == "cancel":
            job.preempted_seconds += job.saved * held
            job.is_cancelled = True
            site.end_for_good(job)
        else:
            site.resubmissions.append((site.now + site.options.requeue_hold, job))
