"""The reference simulator on a site of shared nodes: every pass recounts what is free from what the jobs hold.

Written from the definitions in docs/model.md alone; it shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, inf
from typing import Any

from .conservative import Conservative, Reservation, TopJobs
from .preemption import Preemption
from .simulator import PassAgainError, Simulator
from .slurm import Passes
from .state import Attempt, Job, Moment, Options, exact
from .suspension import Suspension

Bag = tuple[int, int, int]
"""Cores, GPUs and memory."""


@dataclass(frozen=True)
class Need:
    """What a job asks for: alike chunks, none on more than one node."""

    chunks: int
    each: Bag
    per_node: int = 0
    whole: bool = False
    partition: int = 0


@dataclass(frozen=True)
class Node:
    """A node and the partitions that it belongs to."""

    has: Bag
    partitions: frozenset[int]


@dataclass
class _Machine:
    nodes: int
    is_torus: bool = False

    def round_up(self, size: int) -> int:
        return size


class SiteSimulator(Simulator):
    """Jobs are rows (id, submit, run, estimate or None, need[, option])."""

    def __init__(self, rows, nodes: list[Node], failures: Iterable = (), windows: Iterable = (), **options):
        """Windows, advance reservations, are (begin, end, nodes)."""
        self.windows = [(exact(begin), exact(end), set(members)) for begin, end, members in windows]
        options = {k: exact(v) if isinstance(v, float) else v for k, v in options.items()}
        order = sorted(rows, key=lambda row: row[1])
        sizes = [row[4].chunks * row[4].each[0] for row in order]
        plain = [(*row[:4], size, *row[5:]) for row, size in zip(order, sizes, strict=True)]
        self.nodes = nodes
        self.bags: dict[Attempt, dict[int, Bag]] = {}
        super().__init__(plain, "flat:1", list(failures), Options(**options))
        self.machine = _Machine(len(nodes))
        self.conservative = (SiteTopJobs if self.options.scheduler == "top-jobs" else SiteReservations)(self)
        self.passes = Passes(self)
        self.preemption = Preemption(self)
        self.suspension = Suspension(self)
        self.failed_so_far = [0] * len(nodes)
        self.needs = {job: row[4] for job, row in zip(self.jobs, order, strict=True)}

    def make_job(self, index, job_id, submit, run, estimate, size, option="A") -> Job:
        run, estimate = exact(run), exact(run if estimate is None else estimate)
        return Job(index, job_id, exact(submit), run, estimate, size, size, option)

    def share_of_machine(self, job: Job) -> Fraction:
        """The mean of the shares of nodes, as few as chunks may be on, and of cores."""
        need = self.needs[job]
        nodes = ceil(need.chunks / need.per_node) if need.per_node else 1
        cores = Fraction(job.requested_size, sum(node.has[0] for node in self.nodes))
        return (Fraction(nodes, len(self.nodes)) + cores) / 2

    def terms(self, job: Job) -> dict[str, int]:
        need = self.needs[job]
        nodes = ceil(need.chunks / need.per_node) if need.per_node else 1
        held = [need.chunks * each for each in need.each]
        return {"ncpus": held[0], "nodect": nodes, "ngpus": held[1], "mem": held[2] * 1024}

    def part_of_partition(self, job: Job, name: str) -> Fraction:
        need, here = self.needs[job], [n.has for n in self.nodes if self.needs[job].partition in n.partitions]
        if name == "node":
            return Fraction(ceil(need.chunks / need.per_node) if need.per_node else 1, len(here))
        kind = ("cpu", "gpu", "mem").index(name)
        total = sum(has[kind] for has in here)
        return Fraction(need.chunks * need.each[kind], total) if total else Fraction(0)

    def partition_of(self, job: Job) -> str:
        return f"p{self.needs[job].partition}"

    # -- what is free --------------------------------------------------------------------------------------------

    def free(self, without: Iterable[Attempt] = (), up: Iterable[int] = (), later: bool = False) -> list[Bag]:
        """What is free of each node, as if some jobs had ended and some nodes had come up.

        later: when jobs that are suspended for others have gone on, if they have not ended: of a node whose cores
        others have now there is less than nothing.
        """
        gone, up_again = set(without), set(up)
        shut = set(self.down) - up_again
        found = [(0, 0, 0) if k in shut else node.has for k, node in enumerate(self.nodes)]
        for holder in [*self.running, *self.keepers()]:
            if holder not in gone:
                for node, bag in self.bags[holder].items():
                    found[node] = less(found[node], bag) if node not in shut else (0, 0, 0)
        for holder in self.halted:
            if holder not in gone:
                for node, bag in self.bags[holder].items():
                    found[node] = less(found[node], bag if later else (self.suspension.kept(holder, node), *bag[1:]))
        return found

    # -- jobs that wait for their own nodes ----------------------------------------------------------------------

    def keepers(self) -> list[Attempt]:
        """The killed attempts whose jobs keep what they had of the nodes that are up, and get the rest with them."""
        return [attempt for _, attempt in self.suspended] if self.options.hold else []

    def kill(self, attempt: Attempt) -> None:
        self.killed = attempt
        super().kill(attempt)

    def decide_recovery(self, job: Job, nodes) -> None:
        super().decide_recovery(job, nodes)
        if self.suspended and self.suspended[-1] == (job, nodes):
            self.suspended[-1] = (job, self.killed)

    def restart_suspended(self) -> None:
        for job, attempt in sorted(self.suspended, key=lambda entry: entry[0].index):
            bags = self.bags[attempt]
            if set(bags) & set(self.down) or any(self.is_reserved(job, node, self.now) for node in bags):
                continue
            free = self.free([attempt])
            if all(fits(bag, free[node]) for node, bag in bags.items()):
                self.suspended.remove((job, attempt))
                self.start_on(job, dict(bags))
                self.conservative.broken = True

    def expected_moments(self) -> dict[Attempt, Moment]:
        """When what runs, or is kept, is expected to be free."""
        found = {attempt: attempt.expected_end(self.now) for attempt in self.running}
        found |= {attempt: self.suspension.expected_end(attempt) for attempt in self.halted}
        for attempt in self.keepers():
            job, nodes = attempt.job, self.bags[attempt]
            up = max([self.now, *(self.down[node] for node in nodes if node in self.down)])
            times = [up, *sorted(end for _, end, _ in self.windows if end > up)]
            start = next(time for time in times if not any(self.is_reserved(job, node, time) for node in nodes))
            found[attempt] = (max(start, start + self.duration(job)), 0)
        return found

    def times_to_come(self) -> list[Any]:
        times = super().times_to_come()
        times += [end for _, end, _ in self.windows if end > self.now]
        times += [begin for begin in self.begins() if begin > self.now]
        return [*times, self.passes.next_tick(), *self.preemption.next_times()]

    def whole_instant(self) -> None:
        o = self.options
        calculates = o.queue_order == "multifactor" and o.period and self.calculated() == self.now
        comes_back = any(time == self.now for time, _ in self.resubmissions)
        comes_up = self.now in self.down.values()
        if (
            calculates
            or comes_back
            or comes_up
            or any(end == self.now for _, end, _ in self.windows)
            or self.now in self.begins()
        ):
            self.passes.changed = True
        if self.now in (*self.preemption.preempts_from.values(), *(a.leaves_from for a in self.running)):
            self.passes.changed = True
        is_safe = self.preemption.has_leave and o.preempt_exempt > 0
        if is_safe and any(self.preemption.exempt_until(a) == self.now for a in self.running):
            self.passes.changed = True
        super().whole_instant()

    # -- advance reservations ------------------------------------------------------------------------------------

    inside: int | None = None  # the one whose nodes are looked at for a job that asks for it

    def window_of(self, job: Job) -> int | None:
        return self.options.asks(job) if self.options.asks else None

    def begins(self) -> set:
        """When those begin that a job asks for."""
        return {self.windows[place][0] for place in map(self.window_of, self.jobs) if place is not None}

    def set_aside(self) -> list[Job]:
        """Start the jobs of advance reservations in the order of the queue, of each until one does not fit.

        Passes of SLURM see those whose reservation has begun, before all others.
        """
        everyone, full, first = list(self.queue), set(), []
        self.aside = [job for job in everyone if self.window_of(job) is not None]
        self.queue = [job for job in everyone if job not in self.aside]
        for job in list(self.aside):
            place = self.window_of(job)
            begin, end, _ = self.windows[place]
            if self.now >= end:
                job.is_late = True
                self.log("refuse", job)
                self.end_for_good(job)
                self.aside.remove(job)
            elif self.options.scheduler == "slurm":
                if begin <= self.now:
                    self.aside.remove(job)
                    first.append(job)
            elif begin <= self.now and place not in full and not self.at_limit(job):
                self.inside, self.row = place, 0
                free = self.free()
                if self.room(job, free) < self.needs[job].chunks:
                    full.add(place)
                else:
                    self.queue.append(job)  # which it leaves
                    self.start_on(job, self.held_of(job, self.choose_nodes(job, free)))
                    self.aside.remove(job)
                    self.conservative.broken = True
                self.inside = None
        self.queue = first + self.queue
        return everyone

    def go_on(self) -> None:
        self.suspension.settle()

    def leave(self) -> None:
        self.preemption.leave_those_due()

    def arrive(self, job: Job) -> None:
        self.passes.changed = True
        super().arrive(job)

    def finish(self, attempt: Attempt) -> None:
        self.passes.changed = True
        super().finish(attempt)

    def is_reserved(self, job: Job, node: int, time) -> bool:
        """Whether a job that starts at a time on a node would meet an advance reservation of it."""
        begun = self.passes.second(time) if self.options.scheduler == "slurm" else time
        for place, (begin, end, members) in enumerate(self.windows):
            if (
                place != self.inside
                and node in members
                and time < end
                and (begin <= time or begin < begun + self.duration(job))
            ):
                return True
        return False

    def chunks_on(self, job: Job, node: int, free: Bag, time=None) -> int:
        """How many chunks of a job that starts at a time (now) fit into what is free of a node: tried one by one."""
        need = self.needs[job]
        if self.is_reserved(job, node, self.now if time is None else time):
            return 0
        if self.inside is not None and node not in self.windows[self.inside][2]:
            return 0
        if need.partition not in self.nodes[node].partitions:
            return 0
        if need.whole and not self.is_whole(free, node):
            return 0
        count = 0
        while (not need.per_node or count < need.per_node) and fits(times(need.each, count + 1), free):
            count += 1
        return count

    def is_whole(self, free: Bag, node: int) -> bool:
        """Whether a node is free for who wants it for itself: a suspended job may have memory and GPUs of it."""
        has = self.nodes[node].has
        return free[0] == has[0] if self.options.preemption == "suspend" else free == has

    def room(self, job: Job, free: list[Bag], time=None) -> int:
        return sum(self.chunks_on(job, node, bag, time) for node, bag in enumerate(free))

    # -- node choice ---------------------------------------------------------------------------------------------

    def choose_nodes(self, job: Job, free: list[Bag], time=None) -> dict[int, int]:
        """How many chunks each node gets; there are enough."""
        self.chooses = job
        left, chosen = self.needs[job].chunks, {}
        takes = {node: self.chunks_on(job, node, bag, time) for node, bag in enumerate(free)}
        self.shuffled = self.shuffle(job, [node for node, count in takes.items() if count > 0])
        while left > 0:
            usable = {node: count for node, count in takes.items() if count > 0 and node not in chosen}
            node = getattr(self, "next_" + self.options.node_choice.replace("-", "_"))(usable, left, free)
            chosen[node] = min(left, usable[node])
            left -= chosen[node]
        return chosen

    def next_first_fit(self, usable, left, free) -> int:
        return min(usable)

    def shuffle(self, job: Job, nodes: list[int]) -> list[int]:
        if self.options.node_choice == "random":
            for k in range(len(nodes)):
                drawn = k + int(self.options.draw(k, job.index, job.restarts) * (len(nodes) - k))
                nodes[k], nodes[drawn] = nodes[drawn], nodes[k]
        return nodes

    def next_random(self, usable, left, free) -> int:
        return next(node for node in self.shuffled if node in usable)

    def next_lff(self, usable, left, free) -> int:
        return min(usable, key=lambda node: (self.failed_so_far[node], node))

    def next_round_robin(self, usable, left, free) -> int:
        return min(usable, key=lambda node: (node - self.last_node - 1) % len(self.nodes))

    def next_best_fit(self, usable, left, free) -> int:
        enough = [node for node, count in usable.items() if count >= left]
        if enough:
            return min(enough, key=lambda node: (free[node][0], node))
        return min(usable, key=lambda node: (-usable[node], node))

    def next_consecutive(self, usable, left, free) -> int:
        rows: list[list[int]] = []
        for node in sorted(usable):
            if rows and rows[-1][-1] == node - 1:
                rows[-1].append(node)
            else:
                rows.append([node])
        if self.row:  # a row is used up before another one is looked for
            begun = [row for row in rows if row[0] == self.row]
            if begun:
                self.row += 1
                return begun[0][0]
        need, best, members = self.needs[self.chooses], None, []
        nodes_wanted = ceil(left / need.per_node) if need.per_node else 1
        for row in rows:
            cores = sum(self.usable_cores(need, free[node]) for node in row)
            is_enough = cores >= left * need.each[0] and len(row) >= nodes_wanted
            if (
                best is None
                or (is_enough and not best[1])
                or (is_enough and cores < best[0])
                or (not is_enough and cores > best[0])
            ):
                best, members = (cores, is_enough), row
        alone = [n for n in members if usable[n] >= left and need.each[1] == 0]
        node = min(alone, key=lambda n: (self.usable_cores(need, free[n]), n), default=members[0])
        self.row = node + 1
        return node

    @staticmethod
    def usable_cores(need: Need, free: Bag) -> int:
        """The free cores that have as much memory each as a core of the job."""
        return min(free[0], free[2] * need.each[0] // need.each[2]) if need.each[2] else free[0]

    row = 0

    def held_of(self, job: Job, chosen: dict[int, int]) -> dict[int, Bag]:
        need = self.needs[job]
        if need.whole and self.options.preemption == "suspend":
            return {n: (self.nodes[n].has[0], *times(need.each, count)[1:]) for n, count in chosen.items()}
        return {n: self.nodes[n].has if need.whole else times(need.each, count) for n, count in chosen.items()}

    # -- the pass ------------------------------------------------------------------------------------------------

    def start_jobs(self) -> None:
        if self.options.scheduler in ("conservative", "top-jobs", "slurm"):
            (self.passes if self.options.scheduler == "slurm" else self.conservative).schedule()
            return
        if self.options.rule is not None:
            while self.start_allowed():
                pass
            return
        easy = self.options.scheduler == "backfill"
        blocked: set[int] = set()
        heads: list[tuple[Job, Any, list[Bag]]] = []
        for job in list(self.queue):
            partition = self.needs[job].partition
            if not easy and partition in blocked:
                continue
            free, self.row = self.free(), 0
            if self.room(job, free) >= self.needs[job].chunks:
                bags = self.held_of(job, self.choose_nodes(job, free))
                if all(self.leaves_room(job, bags, *head) for head in heads):
                    for _, moment, then in heads:
                        if not self.ends_by(job, moment):
                            take(then, bags)
                    self.start_on(job, bags)
                    continue
            everywhere = set(range(len(free)))
            if not self.shares_nodes_with(partition, blocked):
                bags = self.suspension.place(job, everywhere)
                if bags:
                    self.start_on(job, bags)
                if bags or self.preemption.make_room(job, everywhere):
                    raise PassAgainError
            if partition not in blocked:
                if easy:
                    blocked.add(partition)
                    heads.append((job, *self.reservation_of(job)))
                else:
                    blocked |= {p for node in self.nodes if partition in node.partitions for p in node.partitions}

    def start_allowed(self) -> bool:
        """Start the first job that has room and may overtake, by the rule, the first refused job of each partition
        that shares nodes with its own; tell whether there was one."""
        heads: dict[int, Job] = {}
        for overtaken, job in enumerate(self.queue):
            free, self.row, here = self.free(), 0, {self.needs[job].partition}
            if self.room(job, free) >= self.needs[job].chunks:
                bags = self.held_of(job, self.choose_nodes(job, free))
                near = [head for place, head in heads.items() if self.shares_nodes_with(place, here)]
                if all(self.may_overtake(job, bags, head, overtaken) for head in near):
                    self.start_on(job, bags)
                    return True
            heads.setdefault(self.needs[job].partition, job)
        return False

    def may_overtake(self, job: Job, bags: dict[int, Bag], head: Job, overtaken: int) -> bool:
        moment, then = self.reservation_of(head)
        return self.options.rule(
            nodes=job.requested_size,
            estimate_s=float(job.remaining_estimate),
            wait_s=float(self.now - job.eligible),
            free=sum(bag[0] for bag in self.free()),
            head_nodes=head.requested_size,
            until_reservation_s=float(max(moment[0], self.now) - self.now),
            extra=self.room(head, then, moment[0]) - self.needs[head].chunks,
            delays=not self.leaves_room(job, bags, head, moment, then),
            overtaken=overtaken,
        )

    def shares_nodes_with(self, partition: int, others: set[int]) -> bool:
        return any(partition in node.partitions and node.partitions & others for node in self.nodes)

    def ends_by(self, job: Job, moment) -> bool:
        return job.remaining_estimate > 0 and (self.now + self.duration(job), 0) <= moment

    def leaves_room(self, job: Job, bags: dict[int, Bag], head: Job, moment, then: list[Bag]) -> bool:
        """Whether a job may start beside the reservation of another one."""
        if self.ends_by(job, moment):
            return True
        partitions = (self.needs[job].partition, self.needs[head].partition)
        if not any(all(p in node.partitions for p in partitions) for node in self.nodes):
            return True
        left = list(then)
        take(left, bags)
        return self.room(head, left, moment[0]) >= self.needs[head].chunks

    def reservation_of(self, job: Job) -> tuple[Any, list[Bag]]:
        """The first expected release at which a job could be placed, and what is free then."""
        ends = self.expected_moments()
        reserved = {(end, 0) for _, end, _ in self.windows if end > self.now}
        moments = sorted({*ends.values(), *((until, 0) for until in self.down.values() if until < inf), *reserved})
        for moment in moments:
            free = self.free(
                (a for a, end in ends.items() if end <= moment),
                (n for n in self.down if (self.down[n], 0) <= moment),
                later=True,
            )
            if self.room(job, free, moment[0]) >= self.needs[job].chunks:
                return moment, free
        return (inf, 0), self.free(ends, (n for n in self.down if self.down[n] < inf), later=True)

    def start_on(self, job: Job, bags: dict[int, Bag]) -> None:
        self.start(job, frozenset(bags))
        self.bags[self.running[-1]] = bags
        job.held_size = job.held[-1][2] = sum(bag[0] for bag in bags.values())
        self.suspension.take(self.running[-1])
        self.stop_if_at_limit()

    def started(self) -> None:
        """What it holds is known only later."""

    # -- least failure first -------------------------------------------------------------------------------------

    def move_to_safer_nodes(self, finished_start) -> None:
        """Each part of a less safe node, from the least safe one on, moves to the safest node that has room for it."""
        safety = {node: (self.failed_so_far[node], node) for node in range(len(self.nodes))}
        movable = [a for a in self.running if finished_start < a.start <= self.now and not a.is_paused(self.now)]
        movable = [a for a in movable if self.window_of(a.job) is None]
        parts = [(node, attempt) for attempt in movable for node in self.bags[attempt]]
        moved = []
        for node, attempt in sorted(parts, key=lambda part: (*(-k for k in safety[part[0]]), part[1].job.index)):
            safer = (n for n in safety if safety[node][0] - safety[n][0] > self.options.move_threshold)
            room = [other for other in safer if self.could_hold(attempt, node, other)]
            if room:
                best = min(room, key=safety.get)
                self.bags[attempt][best] = self.bags[attempt].pop(node)
                self.suspension.move(attempt, node, best, self.bags[attempt][best][0])
                attempt.nodes = frozenset(self.bags[attempt])
                moved.append(attempt)
        for attempt in sorted(set(moved), key=lambda a: a.job.index):
            attempt.job.migrations += 1
            self.log("migrate", attempt.job, attempt.nodes)
            self.begin_saving(attempt, self.options.move_cost, "move")
            self.conservative.broken = True
        if moved:
            self.suspension.settle()

    def could_hold(self, attempt: Attempt, node: int, other: int) -> bool:
        """Whether a node has room for what a running job holds of another one until the job is expected to end."""
        need, end = self.needs[attempt.job], attempt.estimated_end + self.options.move_cost
        for begin, until, members in self.windows:
            if other in members and self.now < until and (begin <= self.now or begin < end):
                return False
        if other in self.bags[attempt] or need.partition not in self.nodes[other].partitions:
            return False
        free = self.free()[other]
        if need.whole:
            return self.is_whole(free, other) and self.nodes[other].has == self.nodes[node].has
        return fits(self.bags[attempt][node], free)

    # -- failures ------------------------------------------------------------------------------------------------

    def fail(self, time, node: int, down_time) -> None:
        """A failure kills all jobs on its node."""
        self.passes.changed = True
        if time >= self.first_submit:
            self.failures_seen += 1
            self.failed_so_far[node] += 1
        self.log("fail", None, [node])
        self.conservative.broken = True
        self.down[node] = max(self.down.get(node, -inf), time + down_time)
        victims = sorted((a for a in self.running + self.halted if node in a.nodes), key=lambda a: a.job.index)
        self.failures_hitting += bool(victims)
        for attempt in victims:
            if attempt in self.halted:
                self.suspension.resume(attempt)
            self.kill(attempt)

    def size_of(self, nodes) -> int:
        """The cores that the job on these nodes holds: it is asked of running attempts only."""
        return next((sum(b[0] for b in self.bags[a].values()) for a in self.bags if a.nodes is nodes), len(nodes))


@dataclass(eq=False)
class SiteReservation(Reservation):
    """What is reserved for a job of each node, or is held of it by a job that runs."""

    bags: dict[int, Bag] = field(default_factory=dict)


class SiteReservations(Conservative):
    """Conservative backfilling: every waiting job has a time and what it will get of which nodes."""

    simulator: SiteSimulator

    def earliest(self, job: Job) -> Reservation:
        site, present = self.simulator, (self.simulator.now, 0)
        blocks = []
        for holder, end in site.expected_moments().items():
            for node, bag in site.bags[holder].items():
                begin = (site.down[node], 0) if node in site.down else present
                blocks.append(SiteReservation(begin, end, None, 0, {node: bag}))
        for node, until in site.down.items():
            blocks.append(SiteReservation(present, (until, 0), None, 0, {node: site.nodes[node].has}))
        blocks += self.reservations.values()  # type: ignore[arg-type]
        ends = {block.end for block in blocks} | {(end, 0) for _, end, _ in site.windows}
        for begin in sorted({present} | {end for end in ends if end > present}):
            end: Moment = (begin[0] + site.duration(job), begin[1])
            end = end if end > begin else (begin[0], begin[1] + 1)
            free = self.free_throughout(begin, end, blocks)
            if site.room(job, free, begin[0]) >= site.needs[job].chunks:
                site.row = 0
                bags = site.held_of(job, site.choose_nodes(job, free, begin[0]))
                return SiteReservation(begin, end, None, 0, bags)
        raise AssertionError(f"no reservation for job {job.job_id}")

    def free_throughout(self, begin: Moment, end: Moment, blocks: list[SiteReservation]) -> list[Bag]:
        """The least that is free of each node between two moments: at the first and wherever it gets less."""
        moments = [begin] + [block.begin for block in blocks if begin < block.begin < end]
        least = [node.has for node in self.simulator.nodes]
        for moment in moments:
            free = [node.has for node in self.simulator.nodes]
            for block in blocks:
                if block.begin <= moment < block.end:
                    take(free, block.bags)
            least = [tuple(map(min, a, b)) for a, b in zip(least, free, strict=True)]  # type: ignore[misc]
        return least

    def begin_job(self, job: Job, reservation: Reservation) -> None:
        self.simulator.start_on(job, reservation.bags)  # type: ignore[attr-defined]


class SiteTopJobs(TopJobs, SiteReservations):
    """The same for the first jobs that must wait."""


def fits(wanted: Bag, free: Bag) -> bool:
    return all(w <= f for w, f in zip(wanted, free, strict=True))


def times(bag: Bag, count: int) -> Bag:
    return tuple(count * part for part in bag)  # type: ignore[return-value]


def less(bag: Bag, taken: Bag) -> Bag:
    return tuple(a - b for a, b in zip(bag, taken, strict=True))  # type: ignore[return-value]


def take(free: list[Bag], bags: dict[int, Bag]) -> None:
    for node, bag in bags.items():
        free[node] = less(free[node], bag)
