"""Whole runs on clusters (akshitha2011), event by event in exact fractions: slow, and meant to be obviously right."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf
from typing import Any

from tests.reference.clusters import traffic

META = ("local", "migration-only", "naive", "bandwidth-aware")


@dataclass(eq=False)
class Job:
    """A job; times in seconds, bandwidths in Mbit/s; ``stated`` is None where nothing is stated."""

    index: int
    submit: Fraction
    compute: Fraction
    communicate: Fraction
    size: int
    home: int
    bandwidth: Fraction
    stated: Fraction | None
    estimate: Fraction
    parts: tuple[int, ...] = ()
    nodes: tuple[int, ...] = ()
    phase: str = "future"
    until: Any = inf  # end of the checkpoint or of the restoration under way
    since: Fraction = Fraction(0)  # when the pause began
    done: Fraction = Fraction(0)  # work, in seconds of run time
    saved: Fraction = Fraction(0)
    saturation: Any = Fraction(1)
    understated: bool = False
    offences: int = 0
    checkpoints: int = 0
    restarts: int = 0
    front: int = 0  # larger for later checkpoints
    start: Any = None
    finish: Any = None
    lost: Fraction = Fraction(0)
    overhead: Fraction = Fraction(0)
    slowed: Fraction = Fraction(0)

    @property
    def run(self) -> Fraction:
        return self.compute + self.communicate

    def stretch(self) -> Any:
        """How much longer than on one cluster the job takes at its saturation."""
        if self.saturation == 1 or self.communicate == 0:
            return Fraction(1)
        if self.saturation == inf:
            return inf
        return (self.compute + self.saturation * self.communicate) / self.run

    @property
    def spans(self) -> bool:
        return sum(part > 0 for part in self.parts) > 1

    def end(self, now: Fraction) -> Any:
        """When the job ends at its present rate; while it restores, after that."""
        if self.phase == "saves":
            return inf
        begin = max(now, self.until) if self.phase == "restores" else now
        return begin + (self.run - self.done) * self.stretch() if self.stretch() != inf else inf


@dataclass
class Options:
    """The parameters of a run, named as those of the engine."""

    meta: str = "bandwidth-aware"
    scheduler: str = "first-fit"
    one_queue: bool = False
    minimum_cut: bool = False
    mesh: Fraction = Fraction(0)
    agent: str = "none"
    overhead: Fraction = Fraction(0)
    believed_overhead: Fraction | None = None
    cp_frac: Fraction = Fraction(4, 100)
    interval: Fraction = Fraction(0)
    restart_cost: Fraction = Fraction(0)
    stalls: bool = False


@dataclass
class Simulator:
    """Clusters, trunks, jobs and failures (time, node or nodes + trunk, down time)."""

    sizes: tuple[int, ...]
    capacities: tuple[Fraction, ...]
    jobs: list[Job]
    failures: list[tuple[Fraction, int, Fraction]]
    options: Options
    now: Any = -inf
    queue: list[Job] = field(default_factory=list)
    events: list[tuple[Any, str, int, tuple[int, ...]]] = field(default_factory=list)
    decisions: list[tuple[Any, int, Any, int, str]] = field(default_factory=list)
    down: dict[int, Fraction] = field(default_factory=dict)
    wake: Any = inf
    checkpointed: int = 0
    changes: int = 0  # co-allocated starts, ends, checkpoints and restarts, and changes of trunks
    looked_at: int = 0  # those that the agent has looked at

    def __post_init__(self) -> None:
        self.first = [sum(self.sizes[:c]) for c in range(len(self.sizes))]
        self.total = sum(self.sizes)
        for job in self.jobs:
            job.understated = job.stated is not None and job.stated < job.bandwidth

    # what is where

    def running(self) -> list[Job]:
        return [job for job in self.jobs if job.phase in ("works", "saves", "restores")]

    def talking(self) -> list[Job]:
        return [job for job in self.running() if job.phase == "works" and job.spans]

    def free_nodes(self, cluster: int) -> list[int]:
        taken = {node for job in self.running() for node in job.nodes} | set(self.down)
        nodes = range(self.first[cluster], self.first[cluster] + self.sizes[cluster])
        return [node for node in nodes if node not in taken]

    def free(self) -> list[int]:
        return [len(self.free_nodes(c)) for c in range(len(self.sizes))]

    def demands(self, job: Job, bandwidth: Fraction, parts: tuple[int, ...] | None = None) -> list[Fraction]:
        return traffic(job.parts if parts is None else parts, bandwidth, self.options.mesh)

    def saturations(self) -> list[Any]:
        demand = [sum((self.demands(job, job.bandwidth)[c] for job in self.talking()), Fraction(0)) for c in self.range]
        return [
            inf if self.total + c in self.down and demand[c] > 0 else demand[c] / self.capacities[c] for c in self.range
        ]

    @property
    def range(self) -> range:
        return range(len(self.sizes))

    def worst(self, job: Job, saturations: list[Any]) -> Any:
        demand = self.demands(job, job.bandwidth)
        return max([Fraction(1), *(saturations[c] for c in self.range if demand[c] > 0)])

    # time

    def run(self) -> Simulator:
        waiting = sorted(self.jobs, key=lambda job: (job.submit, job.index))
        failures = list(self.failures)
        while any(job.finish is None for job in self.jobs):
            times = [self.wake, *self.down.values()]
            times += [job.until for job in self.running() if job.phase == "saves" or job.spans]
            times += [job.end(self.now) for job in self.running()]
            times += [waiting[0].submit] if waiting else []
            times += [failures[0][0]] if failures else []
            then = min(times)
            assert then < inf, "jobs wait for ever"
            self.advance(then)
            self.apply(waiting, failures)
            self.decide()
        return self

    def advance(self, then: Any) -> None:
        for job in self.running():
            if job.phase == "works" or (job.phase == "restores" and not job.spans):
                passed = then - self.now if job.phase == "works" else max(Fraction(0), then - max(self.now, job.until))
                gained = Fraction(0) if job.stretch() == inf else passed / job.stretch()
                job.done += gained
                job.slowed += passed - gained
        self.now = then

    def tell(self, kind: str, job: Job | None, nodes: tuple[int, ...] = ()) -> None:
        self.events.append((self.now, kind, -1 if job is None else job.index, nodes))

    def apply(self, waiting: list[Job], failures: list[Any]) -> None:
        """All events of an instant: completions, checkpoints, failures, repairs, restorations, arrivals."""
        for job in self.running():
            if job.phase != "saves" and job.done == job.run:
                self.finish(job)
        self.complete_checkpoints()
        touched = []
        while failures and failures[0][0] == self.now:
            _, node, lasts = failures.pop(0)
            self.tell("fail", None, (node,))
            self.fail(node)
            if lasts > 0 or node in self.down:
                self.down[node] = max(self.down.get(node, self.now), self.now + lasts)
            elif node not in touched:
                touched.append(node)
        for node in touched:
            if node not in self.down:
                self.tell("repair", None, (node,))
        for node in sorted(self.down):
            if self.down[node] == self.now:
                del self.down[node]
                self.changes += node >= self.total
                self.tell("repair", None, (node,))
        for job in self.running():
            if job.phase == "restores" and job.spans and job.until == self.now:
                job.phase, job.until = "works", inf
                self.changes += 1
        while waiting and waiting[0].submit == self.now:
            job = waiting.pop(0)
            job.phase = "waits"
            self.tell("arrive", job)

    def complete_checkpoints(self) -> None:
        for job in self.running():
            if job.phase == "saves" and job.until == self.now:
                job.overhead += self.now - job.since
                job.saved = job.done
                job.checkpoints += 1
                self.checkpointed += 1
                job.front = self.checkpointed
                self.leave(job)
                self.tell("checkpoint", job)
                self.tell("requeue", job)

    def finish(self, job: Job) -> None:
        self.leave(job)
        job.phase, job.finish = "done", self.now
        self.tell("finish", job)

    def leave(self, job: Job) -> None:
        self.changes += job.spans
        job.phase, job.until, job.nodes, job.saturation = "waits", inf, (), Fraction(1)

    def fail(self, node: int) -> None:
        if node < self.total:
            victims = [job for job in self.running() if node in job.nodes]
        else:
            self.changes += 1
            victims = [
                job
                for job in self.running()
                if job.spans and job.phase != "saves" and self.demands(job, job.bandwidth)[node - self.total] > 0
            ]
            victims = [] if self.options.stalls else victims
        for job in victims:
            if job.phase == "restores":
                unspent = max(Fraction(0), job.until - self.now)
                job.overhead -= min(unspent, self.options.overhead / 2) if job.checkpoints else 0
            if job.phase == "saves":
                job.overhead += self.now - job.since
            job.lost += job.done - job.saved
            job.done = job.saved
            job.restarts += 1
            job.front = 0
            self.leave(job)
            self.tell("kill", job)
            self.tell("requeue", job)

    def update_rates(self) -> None:
        saturations = self.saturations()
        for job in self.talking():
            job.saturation = self.worst(job, saturations)

    # decisions

    def decide(self) -> None:
        """Recompute shares, run the agent, then the scheduler, and again while that changes the shares."""
        while True:
            self.update_rates()
            if self.options.agent != "none" and (self.looked_at != self.changes or self.wake <= self.now):
                self.activate()
            computed = self.changes
            self.complete_checkpoints()
            self.schedule()
            if self.changes == computed:
                return

    def waits(self) -> list[Job]:
        return sorted((job for job in self.jobs if job.phase == "waits"), key=lambda job: (-job.front, job.index))

    def schedule(self) -> None:
        blocked: set[int] = set()
        reserved: dict[int, tuple[Any, int]] = {}
        for job in self.waits():
            queue = 0 if self.options.one_queue else job.home
            if self.options.scheduler == "fcfs" and queue in blocked:
                continue
            parts = self.place(job, self.free(), self.believed(), reserved)
            if parts:
                for c in reserved:
                    if parts[c] and self.expected_end_of(job) > reserved[c][0]:
                        reserved[c] = (reserved[c][0], reserved[c][1] - parts[c])
                self.start(job, parts)
            elif queue not in blocked:
                blocked.add(queue)
                if self.options.scheduler == "backfill":
                    self.reserve(job, reserved)

    def believed(self, without: Job | None = None) -> list[Fraction]:
        jobs = [job for job in self.running() if job.spans and job.phase != "saves" and job is not without]
        total = [Fraction(0) for _ in self.range]
        for job in jobs:
            if job.stated is not None:
                total = [a + b for a, b in zip(total, self.demands(job, job.stated), strict=True)]
        return total

    def place(
        self, job: Job, free: list[int], believed: list[Fraction], reserved: dict[int, tuple[Any, int]]
    ) -> tuple[int, ...]:
        """Where a job could start with these free nodes: nodes in each cluster, () if nowhere."""

        def may(c: int, nodes: int) -> bool:
            return c not in reserved or nodes <= reserved[c][1] or self.expected_end_of(job) <= reserved[c][0]

        def whole(c: int) -> tuple[int, ...]:
            return tuple(job.size if c == other else 0 for other in self.range)

        if free[job.home] >= job.size and may(job.home, job.size):
            return whole(job.home)
        if self.options.meta == "local":
            return ()
        others = [c for c in self.range if c != job.home and free[c] >= job.size and may(c, job.size)]
        if others:
            return whole(max(others, key=lambda c: (free[c], -c)))
        informed = self.options.meta == "naive" or (self.options.meta == "bandwidth-aware" and job.stated is not None)
        if not informed or job.offences >= 2:
            return ()
        usable = [0 if self.total + c in self.down else free[c] for c in self.range]
        if sum(usable) < job.size:
            return ()
        parts = self.least_cut(job, usable) if self.options.minimum_cut else self.largest_first(job, usable)
        if max(parts) == job.size or not all(may(c, parts[c]) for c in self.range if parts[c]):
            return ()
        if self.options.meta == "bandwidth-aware":
            needed = self.demands(job, job.stated, parts)
            if any(parts[c] and believed[c] + needed[c] > self.capacities[c] for c in self.range):
                return ()
        return parts

    def largest_first(self, job: Job, usable: list[int]) -> tuple[int, ...]:
        parts = [0] * len(self.sizes)
        for c in sorted(self.range, key=lambda c: (-usable[c], c)):
            parts[c] = min(usable[c], job.size - sum(parts))
        return tuple(parts)

    def least_cut(self, job: Job, usable: list[int]) -> tuple[int, ...]:
        """All partitions, one by one: the least traffic, of equals the lexicographically largest."""
        ways = (parts for parts in product(*(range(n + 1) for n in usable)) if sum(parts) == job.size)
        return min(ways, key=lambda parts: (sum(self.demands(job, Fraction(1), parts)), [-part for part in parts]))

    def pause(self, job: Job) -> Fraction:
        return (self.options.overhead / 2 if job.checkpoints else 0) + (
            self.options.restart_cost if job.restarts else Fraction(0)
        )

    def expected_end_of(self, job: Job) -> Any:
        return self.now + self.pause(job) + max(Fraction(0), job.estimate - job.saved)

    def expected_release(self, job: Job) -> Any:
        if job.phase == "saves":
            return job.until
        begin = max(self.now, job.until) if job.phase == "restores" else self.now
        left = max(Fraction(0), job.estimate - job.done)
        return inf if left and job.stretch() == inf else begin + (left * job.stretch() if left else 0)

    def reserve(self, job: Job, reserved: dict[int, tuple[Any, int]]) -> None:
        at_home = self.sizes[job.home] >= job.size and (not self.options.one_queue or self.options.meta == "local")
        found = []
        for c in [job.home] if at_home else self.range:
            if c in reserved or self.sizes[c] < job.size:
                continue
            releases = [(max(self.now, self.expected_release(r)), r.parts[c]) for r in self.running() if r.parts[c]]
            nodes = range(self.first[c], self.first[c] + self.sizes[c])
            releases += [(until, 1) for node, until in self.down.items() if node in nodes]
            for time in sorted({self.now, *(time for time, _ in releases)}):
                free = self.free()[c] + sum(count for end, count in releases if end <= time)
                if free >= job.size and time < inf:
                    found.append((time, c, free - job.size))
                    break
        if found:
            time, c, extra = min(found)
            reserved[c] = (time, extra)

    def start(self, job: Job, parts: tuple[int, ...]) -> None:
        job.nodes = tuple(node for c in self.range for node in self.free_nodes(c)[: parts[c]])
        job.parts, job.start, job.done = parts, self.now, job.saved
        pause = self.pause(job)
        job.overhead += self.options.overhead / 2 if job.checkpoints else 0
        job.phase, job.until = ("restores", self.now + pause) if pause else ("works", inf)
        job.since = self.now
        self.changes += job.spans and not pause
        self.tell("start", job, job.nodes)

    # the agent

    def activate(self) -> None:
        """Step by step: find the most saturated trunk, a candidate on it, take it, and look again."""
        options = self.options
        self.wake = inf
        while True:
            saturations = self.saturations()
            trunk = saturations.index(max(saturations))
            if saturations[trunk] <= 1:
                self.decisions.append((self.now, trunk, saturations[trunk], -1, "fine"))
                break
            self.decisions.append((self.now, trunk, saturations[trunk], -1, "saturated"))
            taken = self.candidate(trunk, saturations[trunk])
            if taken is None:
                self.wake = self.now + options.interval if options.interval else inf
                break
            taken.offences += 1
            taken.understated, taken.stated = True, taken.bandwidth
            taken.phase, taken.since = "saves", self.now
            taken.until = self.now + options.overhead / 2
            self.changes += 1
            self.update_rates()
        self.looked_at = self.changes

    def candidate(self, trunk: int, saturation: Any) -> Job | None:
        options = self.options
        believed = options.overhead if options.believed_overhead is None else options.believed_overhead
        on_trunk = [job for job in self.talking() if self.demands(job, job.bandwidth)[trunk] > 0]
        for job in sorted(on_trunk, key=lambda job: (-self.demands(job, job.bandwidth)[trunk], job.index)):
            verdict = "taken"
            if job.offences and job.size > max(self.sizes):
                verdict = "nowhere"
            elif options.agent == "ctmr":
                remaining = job.end(self.now) - self.now
                if not job.understated:
                    verdict = "honest"
                elif not believed < options.cp_frac * remaining if remaining != inf else False:
                    verdict = "costly"
                elif self.user_of(job) is None:
                    verdict = "useless"
            self.decisions.append((self.now, trunk, saturation, job.index, verdict))
            if verdict == "taken":
                return job
        return None

    def user_of(self, job: Job) -> Job | None:
        """The first waiting job that could start with the nodes of a job and cannot without."""
        queue = self.waits()
        if self.options.scheduler == "fcfs":
            heads: dict[int, Job] = {}
            for waiting in queue:
                heads.setdefault(0 if self.options.one_queue else waiting.home, waiting)
            queue = list(heads.values())
        more = [a + b for a, b in zip(self.free(), job.parts, strict=True)]
        for waiting in queue:
            with_it = self.place(waiting, more, self.believed(without=job), {})
            if with_it and not self.place(waiting, self.free(), self.believed(), {}):
                return waiting
        return None
