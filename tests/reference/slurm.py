"""SLURM's main and backfilling passes on a site, for the reference simulator.

Written from the definitions in docs/model.md alone; it shares no code with the engine.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any

from .state import Job

if TYPE_CHECKING:
    from .site import SiteSimulator

KINDS = ("main", "full", "backfill", "grace")
GROUP = 30  # seconds: of the first groups of expected ends
LOOKS = 1  # second: between looks whether a backfilling pass has anything to do


class Passes:
    """When passes are due, and what they do."""

    def __init__(self, site: SiteSimulator):
        self.site = site
        self.due: dict[str, Any] = {}
        self.ran: dict[str, Any] = {}
        self.changed, self.left_at = False, None  # when a preempted job left last

    def next_tick(self) -> Any:
        return min((time for time in self.due.values() if time > self.site.now), default=inf)

    def tick_of(self, kind: str, time: Any) -> Any:
        """The first tick of a kind at a time or after it."""
        interval = getattr(self.site.options, f"{kind}_interval")
        if interval == 0 or self.site.options.scheduler != "slurm":
            return time
        first = self.site.first_submit + self.site.options.first_ticks[KINDS.index(kind)]
        if kind == "backfill" and interval > LOOKS:
            first, interval = self.ran.get(kind, first - interval) + interval, LOOKS
        return first + max(0, ceil(Fraction(time - first) / interval)) * interval

    def schedule(self) -> None:
        site, before = self.site, list(self.site.running)
        self.wait()
        due = [kind for kind, time in self.due.items() if time <= site.now]
        if "full" in due:
            self.main(len(site.queue))
        elif "main" in due or self.left_at == site.now:
            self.main(site.options.main_depth)
        if "backfill" in due:
            self.backfill()
        for kind in due:
            del self.due[kind]
            self.ran[kind] = site.now
        if site.running != before:
            self.changed = True
            self.wait(behind=True)

    def wait(self, behind: bool = False) -> None:
        """Have passes at the next ticks, but no second one at a tick, if something has changed.

        behind: the passes of now have been.
        """
        for kind in KINDS[:3] if self.changed and self.site.queue else ():
            tick = self.tick_of(kind, self.site.now)
            interval = getattr(self.site.options, f"{kind}_interval")
            if interval and (tick == self.ran.get(kind) or (behind and tick == self.site.now)):
                tick += min(interval, LOOKS) if kind == "backfill" else interval
            self.due.setdefault(kind, tick)
        self.changed = False

    def main(self, depth: int) -> None:
        """Start jobs in order; the nodes of the partition, or advance reservation, of one that cannot start are left to
        it."""
        site, barred = self.site, set()
        refused, full = set(), set()
        for job in list(site.queue)[:depth]:
            partition, site.inside = site.needs[job].partition, site.window_of(job)
            if (partition in refused and site.inside is None) or site.inside in full or site.at_limit(job):
                continue
            free = [(0, 0, 0) if node in barred else bag for node, bag in enumerate(site.free())]
            site.row = 0
            if site.room(job, free) >= site.needs[job].chunks:
                site.start_on(job, site.held_of(job, site.choose_nodes(job, free)))
            elif site.inside is not None:
                full.add(site.inside)
            elif bags := site.suspension.place(job, set(range(len(free))) - barred):
                site.start_on(job, bags)
            else:
                site.preemption.make_room(job, set(range(len(free))) - barred)
                if not self.is_shut_out(job):
                    refused.add(partition)
                    barred |= {node for node, has in enumerate(site.nodes) if partition in has.partitions}
        site.inside = None

    def is_shut_out(self, job: Job) -> bool:
        """Whether a job has too few nodes beside advance reservations, even if nothing ran."""
        site = self.site
        room = site.room(job, [node.has for node in site.nodes])
        return room < site.needs[job].chunks and any(
            site.is_reserved(job, node, site.now) for node in range(len(site.nodes))
        )

    def backfill(self) -> None:
        """Start what can start now beside what is planned for the jobs before it."""
        site, looked_at = self.site, Counter()
        self.plans: list[tuple[Any, Any, set[int]]] = []
        for job in list(site.queue)[: site.options.backfill_depth]:
            if site.at_limit(job):
                continue  # a start of this pass has brought it there
            if site.options.backfill_user_depth and looked_at[job.user] >= site.options.backfill_user_depth:
                continue
            looked_at[job.user] += 1
            site.inside = site.window_of(job)
            start, bags = self.earliest(job)
            if start == site.now and any(set(bags) & set(site.bags[a]) for a in site.running if a.is_going):
                start = site.now + 1
            if start == site.now and self.others_leave:  # it waits for them
                usable = self.unplanned(job, site.now)
                self.plans.append((self.rounded(site.now), self.planned_end(job, site.now), set(bags)))
                site.preemption.make_room(job, usable)
            elif start == site.now:
                site.start_on(job, bags)
            elif start <= site.now + site.options.backfill_window * 3600:
                self.plans.append((self.rounded(start), self.planned_end(job, start), set(bags)))
        site.inside = None

    def nodes_for(self, job: Job) -> set[int]:
        """Those of its partition, and of the advance reservation that it asks for."""
        site = self.site
        mine = {node for node, has in enumerate(site.nodes) if site.needs[job].partition in has.partitions}
        return mine if site.inside is None else mine & set(site.windows[site.inside][2])

    def second(self, time: Any) -> Any:
        return self.site.first_submit + floor(Fraction(time - self.site.first_submit))

    def rounded(self, time: Any) -> Any:
        origin, step = self.site.first_submit, self.site.options.backfill_resolution
        return origin + floor(Fraction(time - origin) / step) * step if step else time

    def planned_end(self, job: Job, start: Any) -> Any:
        end = self.rounded(start + self.site.duration(job))
        return max(end, self.rounded(start) + self.site.options.backfill_resolution)

    def planned(self, begin: Any, end: Any) -> set[int]:
        """The nodes that are in a plan at some time from ``begin`` on and before ``end``."""
        return set().union(*(nodes for b, e, nodes in self.plans if b < end and begin < e))

    def earliest(self, job: Job) -> tuple[Any, Any]:
        """When a job can start beside the plans, and what it holds then."""
        site, mine = self.site, self.nodes_for(job)
        time, end = site.now, inf if site.inside is None else site.windows[site.inside][1]
        while time < end:
            last = self.second(time) + site.duration(job)
            later = min(self.next_opening(self.unreserved(job, time), time, last), self.next_end(job, mine, time))
            found, bags = self.first_fit(job, time, self.unplanned(job, time))
            start = max(time, found)
            if start == inf or (start > site.now and later < start):
                time = later
            elif start in (site.now, time) or not self.meets_plan(job, start, bags):
                return start, bags
            else:
                time = start
        return inf, {}

    def meets_plan(self, job: Job, start: Any, bags: Any) -> bool:
        return not self.planned(self.rounded(start), self.planned_end(job, start)).isdisjoint(bags)

    def unreserved(self, job: Job, time: Any) -> set[int]:
        """Those for it where it would meet no advance reservation."""
        return {node for node in self.nodes_for(job) if not self.site.is_reserved(job, node, time)}

    def unplanned(self, job: Job, time: Any) -> set[int]:
        """The nodes of its partition that are in no plan while a job would run."""
        last = self.second(time) + self.site.duration(job)
        return self.unreserved(job, time) - set().union(
            *(nodes for begin, end, nodes in self.plans if begin <= last and time < end)
        )

    def next_opening(self, mine: set[int], time: Any, last: Any) -> Any:
        """The first change of plans after a time from which on a node is free that is not free up to it."""
        edges = sorted({edge for begin, end, _ in self.plans for edge in (begin, end)})
        for at, edge in enumerate(edges):
            if edge <= time:
                continue
            since = edges[at - 1] if at else -inf
            up_to_now = mine - self.planned(time, edge)
            behind = edges[at + 1] if at + 1 < len(edges) else inf
            if (mine - self.planned(edge, behind)) - up_to_now:
                return edge
            if since > last:
                break
        return inf

    def next_end(self, job: Job, mine: set[int], time: Any) -> Any:
        """The first end of an advance reservation, if the job would meet one on a node of its partition."""
        if any(self.site.is_reserved(job, node, time) for node in mine):
            return min(end for _, end, _ in self.site.windows if end > time)
        return inf

    def first_fit(self, job: Job, time: Any, usable: set[int]) -> tuple[Any, Any]:
        """When the running jobs leave a job enough of some nodes, whatever is planned, and what it holds then."""
        site, gone = self.site, []
        ends = {attempt: attempt.estimated_end for attempt in site.running}
        ends |= {attempt: site.expected_moments()[attempt][0] for attempt in site.keepers()}
        ends |= {attempt: attempt.estimated_end for attempt in site.halted}  # as if nobody had suspended them
        site.suspension.over = set()
        bags = self.bags_without(job, time, usable, site.free())
        if site.inside is None:  # else it has no others make way
            bags = bags or site.suspension.place(job, usable, time)
        self.others_leave = False
        if bags:
            return site.now, bags
        lower = site.preemption.lower(job) if site.inside is None else []
        if lower and any(set(site.bags[a]) & usable for a in lower):
            bags = self.bags_without(job, time, usable, site.free(lower))
            if bags:
                self.others_leave = True
                return site.now, bags
        ends = {a: end for a, end in ends.items() if a not in lower}
        if site.suspension.is_on and site.inside is None:
            ends = {a: end for a, end in ends.items() if not site.options.preempts(job, a.job)}
        running = sorted(ends, key=lambda a: (self.second(ends[a]), a.job.listed, a.job.index))
        group_end = span = None
        for at, attempt in enumerate(running):
            holds = bool((set(site.bags[attempt]) - set(site.down)) & usable)
            end = self.second(ends[attempt])
            if holds:
                gone.append(attempt)
                if group_end is None:
                    since = Fraction(end - site.first_submit)
                    group_end, span = site.first_submit + (since // GROUP + 1) * GROUP, GROUP
            is_last = at + 1 == len(running)
            following = inf if is_last else self.second(ends[running[at + 1]])
            go_first = attempt.is_going and not (is_last or running[at + 1].is_going)
            if is_last or (holds and (following > group_end + span or go_first)):
                bags = self.bags_without(job, time, usable, self.free_later(job, lower + gone))
                if gone and bags:
                    end = self.second(ends[gone[-1]])
                    return (end if end > site.now else site.now + 1), bags
                while group_end is not None and group_end + span < following < inf:
                    span *= 2
        return inf, {}

    def free_later(self, job: Job, gone: list[Any]) -> list[Any]:
        """What is free when some jobs have ended, of the cores of those that the job may have suspended, too."""
        site = self.site
        free = site.free(gone, later=True)
        for attempt in site.running + site.halted if site.suspension.is_on and site.inside is None else []:
            if site.options.preempts(job, attempt.job):
                for node, bag in site.bags[attempt].items():
                    free[node] = (free[node][0] + bag[0], *free[node][1:])
        return free

    def bags_without(self, job: Job, time: Any, usable: set[int], free: list) -> Any:
        """What a job would hold of some nodes, of what is free of all; nothing if that is not enough."""
        site = self.site
        free = [bag if node in usable else (0, 0, 0) for node, bag in enumerate(free)]
        if site.room(job, free, time) < site.needs[job].chunks:
            return {}
        site.row = 0
        return site.held_of(job, site.choose_nodes(job, free, time))
