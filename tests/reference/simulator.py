"""The reference simulator: slow, exact and without a trick, to compare the compiled engine with.

It is written from the papers and from DECISIONS.md alone and shares no code with the engine. Occupancies are sets of
nodes, every pass recomputes everything, and times are fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import floor, inf, log, log2, log10, sqrt
from typing import Any

from .conservative import Conservative, TopJobs
from .fair_share import Tree, association_factor, of_largest
from .machines import Menu
from .machines import machine as machine_of
from .placement import choose, false_positive_rate, reported_nodes, risk
from .state import Attempt, Event, Job, Moment, Options, exact


@dataclass
class Result:
    """A finished run: jobs in order of submission, the event trace, and what the trace does not tell."""

    jobs: list[Job]
    events: list[Event]
    status: str
    end: Any
    migrations_attempted: int
    migrations_successful: int
    migration_times: list[Any]
    failures: int
    failures_hitting: int
    nodes: int
    machine: str


def simulate(jobs: Iterable[Sequence], machine: str, failures: Iterable[Sequence] = (), **options) -> Result:
    """Simulate jobs (id, submit, run, estimate or None, size[, option]) with failures (time, node, down time)."""
    exact_options = {k: exact(v) if isinstance(v, float) else v for k, v in options.items()}
    simulator = Simulator(list(jobs), machine, list(failures), Options(**exact_options))
    simulator.simulate()
    return simulator.result()


class PassAgainError(Exception):
    """A start has brought a waiting job to a limit: the pass begins again."""


@lru_cache(maxsize=1000)  # it is asked again for each job of the queue
def usage_by_periods(
    held: tuple[tuple[Any, Any, int], ...], since: Any, calculated: Any, period: Any, half_life: float
) -> float:
    """Node-seconds of the times in which a job held nodes, (begin, end or None, nodes), counted once in a period."""

    def counts(node_seconds: float, span: Any) -> float:
        return node_seconds * (0.5 ** (float(span) / half_life) if half_life else 1.0)

    used = 0.0
    while since < calculated:
        until, ran, ended = since + period, 0.0, 0.0
        for begin, end, nodes in held:
            span = min(until if end is None else end, until) - max(begin, since)
            if span > 0 and (end is None or end >= until):
                ran += counts(nodes * float(span), span)
            elif span > 0:
                ended += counts(nodes * float(span), span)
        used, since = counts(used + ended, period) + ran, until
    return used


class Simulator:
    """The state of a run between two instants."""

    def __init__(self, rows: list[Sequence], machine: str, failures: list[Sequence], options: Options):
        self.machine_name, self.machine = machine, machine_of(machine)
        self.options = options
        self.failures = [(exact(time), node, exact(down)) for time, node, down in failures]
        if failures and options.event_order != "instant":
            raise ValueError("failures need the event order instant")
        self.jobs = [self.make_job(index, *row) for index, row in enumerate(sorted(rows, key=lambda row: row[1]))]
        self.now: Any = -inf
        self.coming = list(self.jobs)
        self.first_submit = min((job.submit for job in self.jobs), default=0)
        self.last_submit = max((job.submit for job in self.jobs), default=0)
        self.pending_failures = list(self.failures)
        self.queue: list[Job] = []
        self.running: list[Attempt] = []
        self.down: dict[int, Any] = {}
        self.failed_so_far = [0] * self.machine.nodes
        self.resubmissions: list[tuple[Any, Job]] = []  # also of jobs that are held until then
        self.suspended: list[tuple[Job, frozenset[int]]] = []
        self.halted: list[Attempt] = []  # suspended for other jobs (site)
        self.events: list[Event] = []
        self.migrations_attempted = self.migrations_successful = 0
        self.migration_times: list[Any] = []
        self.last_seen: Any = None  # who holds which nodes, and what is down
        self.changed = True  # since the last migration attempt that counted
        self.failures_seen = self.failures_hitting = 0
        self.starts = 0
        self.last_node = -1
        self.last_start: dict[str, Any] = {}  # of a task, by array
        self.status = "done"
        self.conservative = (TopJobs if options.scheduler == "top-jobs" else Conservative)(self)
        self.timers = self.checkpoint_timers()
        self.kept_out: dict[Job, Any] = {}  # jobs at a limit, and since when
        self.in_pass = False

    def make_job(self, index, job_id, submit, run, estimate, size, option="A") -> Job:
        rounded = self.machine.round_up(size)
        if rounded is None:
            raise ValueError(f"job {job_id} is larger than the machine")
        run, estimate = exact(run), exact(run if estimate is None else estimate)
        if self.options.kill_at_estimate:
            run = min(run, estimate)
        return Job(index, job_id, exact(submit), run, estimate, size, rounded, option)

    def result(self) -> Result:
        self.events.sort(key=lambda event: event.time)
        return Result(
            self.jobs,
            self.events,
            self.status,
            self.now,
            self.migrations_attempted,
            self.migrations_successful,
            self.migration_times,
            self.failures_seen,
            self.failures_hitting,
            self.machine.nodes,
            self.machine_name,
        )

    def log(self, kind: str, job: Job | None, nodes: Iterable[int] = (), time=None) -> None:
        time = self.now if time is None else time
        job_id, attempt = (job.job_id, job.restarts + job.preemptions) if job else (-1, -1)
        self.events.append(
            Event(time, kind, job_id, attempt, tuple(sorted(n for n in nodes if n < self.machine.nodes)))
        )

    def size_of(self, nodes: frozenset[int]) -> int:
        """The nodes of a set that may have wires of a menu beside them."""
        return sum(node < self.machine.nodes for node in nodes)

    # -- instants ------------------------------------------------------------------------------------------------

    def simulate(self) -> None:
        while any(job.ended is None for job in self.jobs):
            self.now = self.next_instant()
            if self.now - self.first_submit > self.options.horizon:
                self.now = self.first_submit + self.options.horizon
                self.status = "truncated"
                return
            if self.options.event_order == "instant":
                self.whole_instant()
            else:
                self.one_by_one()
            if any(job.restarts > self.options.max_restarts for job in self.jobs):
                self.status = "truncated"
                return

    def next_instant(self) -> Any:
        """The next event, or calculation of priorities if any event is still to come and a job waits."""
        times = [time for time in self.times_to_come() if time < inf]
        if times and self.options.queue_order == "multifactor" and self.options.period and self.queue:
            times.append(self.calculated() + self.options.period)
        return min(times, default=inf)

    def times_to_come(self) -> list[Any]:
        times = [job.submit for job in self.coming]
        times += [attempt.end for attempt in self.running]
        times += [attempt.saving[0] for attempt in self.running if attempt.saving]
        times += [failure[0] for failure in self.pending_failures]
        times += list(self.down.values())
        times += [time for time, _ in self.resubmissions]
        times += [time for time in self.timers if time > self.now and self.checkpoints_to_start(time)]
        times += [self.periodic_due(attempt) for attempt in self.running]
        return times

    def whole_instant(self) -> None:
        """All events of the instant in their order, then one pass."""
        finished = sorted((a for a in self.running if a.end == self.now), key=lambda a: a.job.index)
        for attempt in finished:
            self.finish(attempt)
        self.complete_checkpoints()
        self.leave()
        while self.pending_failures and self.pending_failures[0][0] == self.now:
            self.fail(*self.pending_failures.pop(0))
        self.repair()
        self.start_checkpoints()
        self.resubmit()
        while self.coming and self.coming[0].submit == self.now:
            self.arrive(self.coming.pop(0))
        self.go_on()
        if finished and self.options.node_choice == "lff" and self.options.lff_moves:
            self.move_to_safer_nodes(min(attempt.start for attempt in finished))
        self.restart_suspended()
        self.schedule()

    def one_by_one(self) -> None:
        """A pass after each event: submissions first (pyss) or completions first (CQSim)."""
        ends_first = self.options.event_order == "ends-first"
        if ends_first:
            self.one_by_one_ends()
        while self.coming and self.coming[0].submit == self.now:
            self.arrive(self.coming.pop(0))
            self.schedule()
        if not ends_first:
            self.one_by_one_ends()

    def one_by_one_ends(self) -> None:
        while ending := [a for a in self.running if a.end == self.now]:
            ends_first = self.options.event_order == "ends-first"
            self.finish(min(ending, key=lambda a: a.job.index if ends_first else a.order))
            self.schedule()
        for time, job in sorted(self.resubmissions, key=lambda entry: entry[1].index):
            if time == self.now:
                self.resubmissions.remove((time, job))
                self.become_eligible(job)
                self.schedule()

    # -- events --------------------------------------------------------------------------------------------------

    def arrive(self, job: Job) -> None:
        if job.is_refused is None:
            self.submit(job)
        if job.is_refused:
            self.log("refuse", job)
            self.end_for_good(job)
            return
        if self.free_from(job) > self.now:
            job.is_held = True
            self.hold(job)
            return
        job.eligible = job.submit
        self.log("arrive", job)
        self.enqueue(job, (job.submit, job.index))

    def submit(self, job: Job) -> None:
        """Submit a job, and with it the tasks of its array that come at the same time, unless one exceeds a limit."""
        tasks = [other for other in self.coming if (other.array, other.submit) == (job.array, job.submit)]
        for task in [job, *tasks]:
            there = [other for other in self.jobs if other.is_refused is False and other.ended is None]
            rules = self.options.submit_limits(task, self.partition_of) if self.options.submit_limits else ()
            task.is_refused = any(sum(map(counts, there)) >= most for counts, most in rules)
            if task.is_refused:
                for each in [job, *tasks]:
                    each.is_refused = True
                return

    def free_from(self, job: Job) -> Any:
        """When the jobs that it follows have ended and its think times are over; infinity if that is not known."""
        times = [-inf]
        for index, think in job.follows if self.options.dependencies == "log" else ():
            ended = self.jobs[index].ended
            times.append(inf if ended is None else ended + think)
        return max(times)

    def hold(self, job: Job) -> None:
        """Let a job become eligible once all that it follows have ended."""
        if self.free_from(job) < inf:
            self.resubmissions.append((max(self.now, self.free_from(job)), job))

    def end_for_good(self, job: Job) -> None:
        job.ended = self.now
        for other in self.jobs:
            if other.is_held and job.index in [index for index, _ in other.follows]:
                self.hold(other)

    def become_eligible(self, job: Job) -> None:
        job.is_held = False
        job.eligible = job.waits_since = self.now
        self.log("arrive", job)
        if not self.options.recovery:
            self.enqueue(job, (job.submit, job.index))
            return
        job.key, place = (job.submit, job.index), len(self.queue)
        while place > 0 and self.comes_later(self.queue[place - 1], job):
            place -= 1
        self.queue.insert(place, job)

    def comes_later(self, other: Job, job: Job) -> bool:
        """Whether a job that has not run yet comes behind another one."""
        return not other.attempts and (-self.rank(other), other.index) > (-self.rank(job), job.index)

    def go_on(self) -> None:
        """Jobs that were suspended for others take back their cores, on a site."""

    def leave(self) -> None:
        """Jobs whose grace is over make way for others, on a site."""

    def rank(self, job: Job) -> Any:
        return self.options.rank(job) if self.options.rank else 0

    def enqueue(self, job: Job, key: tuple) -> None:
        """Insert by key; jobs that were given a place (options D and E) are not overtaken."""
        job.key = key
        if job.waits_since is None:
            job.waits_since = job.submit
        if self.options.rank and not self.options.recovery:
            later = [(-self.rank(other), other.key) > (-self.rank(job), key) for other in self.queue]
            self.queue.insert(later.index(True) if True in later else len(self.queue), job)
            return
        if self.options.queue_order != "fcfs":  # sorted before it is used: the place decides between equal utilities
            later = [] if self.options.recovery else [other.key > key for other in self.queue]
            self.queue.insert(later.index(True) if True in later else len(self.queue), job)
            return
        place = len(self.queue)
        while place > 0 and self.queue[place - 1].key is not None and self.queue[place - 1].key > key:
            place -= 1
        self.queue.insert(place, job)

    def finish(self, attempt: Attempt) -> None:
        self.running.remove(attempt)
        attempt.job.held[-1][1] = self.now
        attempt.job.finish = self.now
        self.log("finish", attempt.job)
        self.end_for_good(attempt.job)
        self.conservative.released = True

    def fail(self, time, node: int, down_time) -> None:
        if time >= self.first_submit:
            self.failures_seen += 1
            self.failed_so_far[node] += 1
        self.log("fail", None, [node])
        self.conservative.broken = True
        self.down[node] = max(self.down.get(node, -inf), time + down_time)
        for attempt in self.running:
            if node in attempt.nodes:
                self.failures_hitting += 1
                self.kill(attempt)
                return

    def kill(self, attempt: Attempt) -> None:
        job = attempt.job
        lost = attempt.work_at(self.now) - job.saved
        job.work_lost += lost
        job.node_seconds_lost += lost * self.size_of(attempt.nodes)
        job.lost_by_attempt[job.restarts] = lost
        job.saved_by_attempt[job.restarts] = job.saved
        self.end(attempt)
        self.log("kill", job, attempt.nodes)
        job.restarts += 1
        self.decide_recovery(job, attempt.nodes)

    def end(self, attempt: Attempt) -> None:
        """End an attempt that is not complete."""
        job = attempt.job
        self.running.remove(attempt)
        job.held[-1][1] = self.now
        if attempt.saving:
            job.overhead += self.now - attempt.paused_since
        job.checkpoints_used += attempt.saved_by == "checkpoint"
        if self.now <= attempt.start and self.options.start_delay > 0:
            self.events.remove(attempt.start_row)
            job.first_start = None if job.first_start == attempt.start else job.first_start

    def repair(self) -> None:
        for node in sorted(self.down):
            if self.down[node] == self.now:
                del self.down[node]
                self.log("repair", None, [node])
                self.conservative.released = True

    # -- recovery (tang2010) -------------------------------------------------------------------------------------

    def decide_recovery(self, job: Job, nodes: frozenset[int]) -> None:
        if self.options.recovery and job.option == "C":
            self.suspended.append((job, nodes))
        elif self.options.recovery and job.option == "A":
            delay = exact(self.options.manual_delay(job.index, job.restarts))
            self.resubmissions.append((self.now + delay, job))
        else:
            self.resubmissions.append((self.now + self.options.requeue_hold, job))

    def resubmit(self) -> None:
        due = sorted((job for time, job in self.resubmissions if time == self.now), key=lambda job: job.index)
        self.resubmissions = [(time, job) for time, job in self.resubmissions if time != self.now]
        for job in due:
            if job.is_held:
                self.become_eligible(job)
                continue
            self.log("requeue", job)
            if not self.options.recovery:
                if self.options.queue_order == "multifactor":
                    job.waits_since = self.now
                self.enqueue(job, (job.submit, job.index))
            elif job.option in "ABC":  # one of C has made way for another one
                job.waits_since = self.now
                job.fixed_utility = None
                job.key = (self.now, job.index)
                self.queue.append(job)
            else:
                job.key = None
                self.insert(job)

    def insert(self, job: Job) -> None:
        """Insert a job of option D or E; under another order than fcfs with a utility that keeps it there for now."""
        job.waits_since = self.now
        place = 0 if job.option == "E" else len(self.queue) // 2
        if self.options.queue_order != "fcfs":
            self.order()
            utilities = [self.utility(other) for other in self.queue]
            if job.option == "E":
                job.fixed_utility = inf
            elif not self.queue:
                job.fixed_utility = None
            elif place == 0 or utilities[place - 1] == inf:
                job.fixed_utility = utilities[place]
            else:
                job.fixed_utility = (utilities[place - 1] + utilities[place]) / 2
        self.queue.insert(place, job)

    def utility(self, job: Job) -> Any:
        """The highest comes first. WFP: the cube of the wait over the estimate, times the size asked for."""
        if job.fixed_utility is not None:
            return job.fixed_utility
        if self.options.queue_order == "fcfs":
            return 0
        if self.options.queue_order in ("multifactor", "pbs", "lsf"):
            return getattr(self, self.options.queue_order)(job)
        if self.options.queue_order != "wfp":
            return self.priority(job)
        return (Fraction(self.now - job.waits_since) / Fraction(job.estimate)) ** 3 * job.requested_size

    def calculated(self) -> Any:
        """When priorities were calculated last: at whole periods since the first submission."""
        period = self.options.period
        return self.first_submit + (self.now - self.first_submit) // period * period if period else self.now

    def multifactor(self, job: Job) -> int:
        """Age, fair share and size as of the last calculation."""
        o, time = self.options, self.calculated()
        age = min(1, Fraction(max(0, time - job.waits_since)) / Fraction(o.longest_age * 3600))
        size = self.share_of_machine(job)
        value = float(o.age_weight * age) + float(o.size_weight * (1 - size if o.small_first else size))
        value += float(o.partition_weight) * of_largest(self.partition_of(job), o.partition_factors, 1)
        value += float(o.qos_weight) * of_largest(job.qos, o.qos_factors, 0)
        value += sum(float(weight * self.part_of_partition(job, name)) for name, weight in o.tres_weights)
        value += float(o.association_weight) * association_factor(job, o)
        value += (job.site_factor if o.site_factor else 0) - (job.nice if o.nice else 0)
        value += float(o.share_weight) * self.fair_share(job, time) if o.share_weight else 0.0
        return max(1, floor(value + 1e-6))

    def share_of_machine(self, job: Job) -> Fraction:
        return Fraction(job.requested_size, self.machine.nodes)

    def pbs(self, job: Job) -> Any:
        """The formula, as Python has it."""
        names = {"max": max, "min": min, "abs": abs, **self.terms(job)}
        factors = dict(self.options.partition_factors)
        names |= {"walltime": job.estimate, "eligible_time": self.now - job.waits_since, "job_priority": -job.nice}
        names["queue_priority"] = factors.get(self.partition_of(job), 0)
        return eval(self.options.formula, {"__builtins__": {}}, names)  # noqa: S307

    def terms(self, job: Job) -> dict[str, int]:
        return {"ncpus": job.requested_size, "nodect": job.requested_size, "ngpus": 0, "mem": 0}

    def lsf(self, job: Job) -> float:
        """By what the jobs of its user have used, how long those have run that run, and what they hold."""
        o, shares = self.options, dict(self.options.lsf_shares)
        used = ran = slots = 0.0
        for other in self.jobs:
            if other.user == job.user:
                used += self.usage(other, self.now, float(o.hist_hours) * log10(2))
                running = [(begin, nodes) for begin, end, nodes in other.held if end is None]
                ran += sum(float(self.now - begin) for begin, _ in running)
                slots += sum(nodes for _, nodes in running)
        share = shares.get(str(job.user), 1)
        if not share:
            return -inf
        share /= sum(shares.get(str(user), 1) for user in {each.user for each in self.jobs})
        weighed = float(o.lsf_cpu_time) * used / 3600 + float(o.lsf_run_time) * ran / 3600
        return floor(log2(share / (weighed + float(o.lsf_run_job) * (1 + slots))) * 1e9 + 0.5) / 1e9

    def part_of_partition(self, job: Job, name: str) -> Fraction:
        """Of the nodes; there are no GPUs and no memory."""
        return self.share_of_machine(job) if name in ("cpu", "node") else Fraction(0)

    def partition_of(self, job: Job) -> str:
        return job.partition

    def fair_share(self, job: Job, time: Any) -> float:
        accounts = self.options.fair_share != "users"

        def leaf(other: Job) -> tuple[str, str]:
            return (other.account if accounts else "root", str(other.user))

        used: dict[tuple[str, str], float] = {}
        for other in self.jobs:
            used[leaf(other)] = used.get(leaf(other), 0.0) + self.counted_usage(other, time)
        tree = Tree(used, self.options.tree if accounts else ())
        return tree.rank(leaf(job)) if self.options.fair_share == "fair-tree" else tree.classic(leaf(job), self.options)

    def usage(self, job: Job, time: Any, half_life_h: Any) -> float:
        """Node-seconds of a job up to a time; those of t seconds ago count 2^(-t / half-life)."""
        total, half_life = 0.0, float(half_life_h * 3600)
        for begin, end, nodes in job.held:
            age = [float(time - at) for at in (begin, time if end is None else min(end, time))]
            if begin < time:
                area = [0.5 ** (a / half_life) * half_life / log(2) if half_life else -a for a in age]
                total += nodes * (area[1] - area[0])
        return total

    def counted_usage(self, job: Job, calculated: Any) -> float:
        """The same up to a calculation, as SLURM counts it: period by period."""
        period, half_life = self.options.period, self.options.half_life
        if not period:
            return self.usage(job, calculated, half_life)
        return usage_by_periods(
            tuple(map(tuple, job.held)), self.first_submit, calculated, period, float(half_life * 3600)
        )

    def priority(self, job: Job) -> Any:
        """What a job is worth whatever its wait."""
        e, n, order = job.estimate, job.requested_size, self.options.queue_order
        if order in ("sjf", "ljf", "saf"):
            return {"sjf": -e, "ljf": e, "saf": -e * n}[order]
        if order == "random":
            return self.options.lot(job.index)
        e, s = float(e), round(log10(job.submit - min(other.submit for other in self.jobs) + 1), 9)
        value = {
            "f1": round(log10(e), 9) * n + 870 * s,
            "f2": sqrt(e) * n + 25600 * s,
            "f3": e * n + 6860000 * s,
            "f4": e * sqrt(n) + 530000 * s,
        }[order]
        return -value

    def order(self) -> None:
        before = list(self.queue)
        self.queue.sort(key=lambda job: (self.rank(job), self.utility(job)), reverse=True)
        if self.queue != before:  # all reservations are made anew in the new order
            self.conservative.broken = True

    def held(self) -> set[int]:
        """The nodes kept idle for jobs that wait for the repair of their own nodes (option C)."""
        return set().union(*(nodes for _, nodes in self.suspended)) if self.options.hold else set()

    def restart_suspended(self) -> None:
        for job, nodes in sorted(self.suspended, key=lambda entry: entry[0].index):
            taken = set().union(*(attempt.nodes for attempt in self.running))
            if not nodes & set(self.down) and not nodes & taken:
                self.suspended.remove((job, nodes))
                self.start(job, nodes)
                self.conservative.broken = True

    # -- checkpoints and moves (zhang2004) -----------------------------------------------------------------------

    def checkpoint_timers(self) -> list[Any]:
        """The times at which exact and bucketed checkpoints may start."""
        options = self.options
        if options.checkpoint == "exact":
            return sorted({time - options.checkpoint_cost for time, _, _ in self.failures})
        if options.checkpoint != "bucket":
            return []
        times = set()
        for time, _, _ in self.failures:
            since = time - self.first_submit
            begin = at = self.first_submit + since // options.bucket * options.bucket
            while at < begin + options.bucket:
                times.add(at)
                if options.bucket_repeat is None:
                    break
                at += options.bucket_repeat
        return sorted(times)

    def periodic_due(self, attempt: Attempt) -> Any:
        """When the attempt's next periodic checkpoint starts, inf if never."""
        work = max(attempt.job.saved, attempt.asked) + self.options.checkpoint_interval
        enough_left = attempt.job.run - work >= self.options.checkpoint_interval
        asks = self.options.a > 0 and self.failures  # without failures no predictor is asked
        saves = self.options.checkpoint == "periodic" or (self.options.checkpoint == "risk" and asks)
        if not saves or attempt.saving or not enough_left:
            return inf
        return attempt.resume + (work - attempt.work)

    def checkpoints_to_start(self, time: Any) -> list[Attempt]:
        """The attempts that start a checkpoint at this time, as things stand."""
        if time not in self.timers:
            return []
        options = self.options
        ready = [a for a in self.running if a.start <= time and not a.is_paused(time) and a.end > time]
        if options.checkpoint == "exact":
            failure = time + options.checkpoint_cost
            victims = {node for at, node, _ in self.failures if at == failure}
            return [a for a in ready if a.nodes & victims and a.end > failure]
        if options.bucket_jobs == "long":
            return [a for a in ready if time - a.start >= options.long_running]
        if options.bucket_jobs == "biggest":
            return sorted(ready, key=lambda a: (-len(a.nodes), a.job.index))[: options.biggest]
        return ready

    def start_checkpoints(self) -> None:
        due = [a for a in self.running if self.periodic_due(a) == self.now]
        for attempt in list(due):
            if self.options.checkpoint == "risk" and not self.pays(attempt):
                attempt.asked = attempt.work_at(self.now)
                due.remove(attempt)
        for attempt in due + self.checkpoints_to_start(self.now):
            self.begin_saving(attempt, self.options.checkpoint_cost, "checkpoint")

    def pays(self, attempt: Attempt) -> bool:
        """Whether the predicted loss, if the job fails within the next interval, exceeds the cost of a checkpoint."""
        options, end = self.options, self.now + self.options.checkpoint_interval
        if not self.machine.is_torus:
            options = replace(options, placement="mfp")  # no rule places, so the recall is the predictor's own
        count, window = self.machine.nodes, self.options.checkpoint_interval
        span = self.first_submit, self.last_submit
        false_rate = false_positive_rate(self.failures, count, window, *span, options)
        nodes = [node for node in attempt.nodes if node < count]  # wires, which it holds on a menu, do not fail
        reported = reported_nodes(nodes, attempt.job, self.failures, self.now, end, false_rate, options)
        return risk(reported, options) * (attempt.work_at(self.now) - attempt.job.saved) > options.checkpoint_cost

    def begin_saving(self, attempt: Attempt, cost: Any, kind: str) -> None:
        attempt.pause(self.now, cost)
        attempt.paused_since = self.now
        attempt.saving = (self.now + cost, kind)
        if cost > 0:
            self.conservative.broken = True
        else:
            self.complete_checkpoints()

    def complete_checkpoints(self) -> None:
        for attempt in sorted(self.running, key=lambda a: a.job.index):
            if attempt.saving and attempt.saving[0] == self.now:
                attempt.job.saved = attempt.work
                attempt.job.overhead += self.now - attempt.paused_since
                attempt.saved_by = attempt.saving[1]
                if attempt.saving[1] == "checkpoint":
                    attempt.job.checkpoints += 1
                    self.log("checkpoint", attempt.job)
                attempt.saving = None

    def node_order(self, job: Job) -> list[int]:
        nodes = range(self.machine.nodes)
        if self.options.node_choice == "round-robin":
            return sorted(nodes, key=lambda node: (node - self.last_node - 1) % len(nodes))
        if self.options.node_choice == "random":
            free = sorted(set(nodes) - self.occupied())
            for k in range(len(free)):
                drawn = k + int(self.options.draw(k, job.index, job.restarts) * (len(free) - k))
                free[k], free[drawn] = free[drawn], free[k]
            return free
        if self.options.node_choice == "lff":
            return sorted(nodes, key=lambda node: (self.failed_so_far[node], node))
        return list(nodes)

    def move_to_safer_nodes(self, finished_start: Any) -> None:
        """Exchange the least safe node of later-started jobs with the safest idle one while it pays (zhang2004)."""
        safety = {node: (self.failed_so_far[node], node) for node in range(self.machine.nodes)}
        movable = [a for a in self.running if finished_start < a.start <= self.now and not a.is_paused(self.now)]
        moved = []
        while movable:
            idle = set(safety) - self.occupied()
            worst, attempt = max(((node, a) for a in movable for node in a.nodes), key=lambda pair: safety[pair[0]])
            best = min(idle, key=safety.get, default=None)
            if best is None or safety[worst][0] - safety[best][0] <= self.options.move_threshold:
                break
            attempt.nodes = attempt.nodes - {worst} | {best}
            moved.append(attempt)
        for attempt in sorted(set(moved), key=lambda a: a.job.index):
            attempt.job.migrations += 1
            self.log("migrate", attempt.job, attempt.nodes)
            self.begin_saving(attempt, self.options.move_cost, "move")

    # -- what the scheduler sees ---------------------------------------------------------------------------------

    def present(self) -> list[Attempt]:
        """The running jobs that count as running in this pass (decision 5)."""
        if self.options.event_order != "submits-first":
            return self.running
        return [a for a in self.running if a.end > self.now or a.estimated_end > self.now]

    def occupied(self) -> set[int]:
        return set().union(*(a.nodes for a in self.present()), self.down, self.held())

    def occupancies(self) -> list[tuple[frozenset[int], Moment]]:
        """(nodes, the moment at which they are expected to be free) of all that is occupied now."""
        found = [(a.nodes, a.expected_end(self.now)) for a in self.present()]
        held = self.held()
        found += [(frozenset([node]), (until, 0)) for node, until in self.down.items() if node not in held]
        if self.options.hold:
            for job, nodes in self.suspended:
                up = max(self.down[node] for node in nodes if node in self.down)
                found.append((nodes, (max(up, up + self.duration(job)), 0)))
        return found

    def duration(self, job: Job) -> Any:
        """How long the scheduler expects a job that starts now to hold its nodes."""
        restart = self.options.restart_cost if job.restarts + job.preemptions else 0
        return self.options.start_delay + restart + job.remaining_estimate

    # -- the pass ------------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        self.look()
        if self.options.queue_order != "fcfs" or self.options.rank:
            self.order()
        everyone = self.set_aside()
        while not self.whole_pass():
            self.conservative.broken = True
        self.queue = [job for job in everyone if job in self.queue or job in self.aside]
        self.look()

    def set_aside(self) -> list[Job]:
        """Take those out of the queue that a pass does not see; return the queue as it was."""
        return list(self.queue)

    aside: tuple[Job, ...] | list[Job] = ()

    def whole_pass(self) -> bool:
        """One pass without the jobs at a limit; False if it must begin again."""
        waiting = list(self.queue)
        for job in waiting:
            self.note_limit(job)
        self.queue = [job for job in waiting if job not in self.kept_out]
        self.in_pass = True
        try:
            self.start_jobs()
            return True
        except PassAgainError:
            return False
        finally:
            self.in_pass = False
            self.queue = [job for job in waiting if job in self.queue or job in self.kept_out]
            if self.options.scheduler == "slurm":
                for job in self.queue:
                    self.note_limit(job)

    def note_limit(self, job: Job) -> None:
        if self.at_limit(job):
            if job not in self.kept_out:
                self.kept_out[job] = self.now
                if self.conservative.reservations.pop(job, None):
                    self.conservative.broken = True
        elif job in self.kept_out:
            job.time_at_limit += self.now - self.kept_out.pop(job)
            self.conservative.broken = True

    def at_limit(self, job: Job) -> bool:
        """Whether one more job of its user, account, partition or QOS would be too many, or its nodes would."""
        runs = [attempt.job for attempt in self.running + self.halted] + [other for other, _ in self.suspended]
        return any(self.exceeds(limit, job, runs) for limit in self.limits_of(job))

    def limits_of(self, job: Job):
        """The limits that a job counts towards: (whether another one does, too, most jobs, most nodes)."""
        for owner, whose in (
            ("user", lambda job: job.user),
            ("account", lambda job: job.account),
            ("partition", self.partition_of),
            ("qos", lambda job: job.qos),
            ("array", lambda job: job.array),
        ):
            most = [getattr(self.options, f"{owner}_max_{what}") or inf for what in ("jobs", "nodes")]
            if most != [inf, inf]:
                yield (lambda other, whose=whose: whose(other) == whose(job)), *most
        if self.options.limits:
            for together, *most in self.options.limits(job, self.partition_of):
                yield together, *(inf if value is None else value for value in most)

    def exceeds(self, limit, job: Job, runs: list[Job]) -> bool:
        together, most_jobs, most_nodes = limit
        others = [other for other in runs if together(other)]
        return len(others) + 1 > most_jobs or sum(o.requested_size for o in [*others, job]) > most_nodes

    def stop_if_at_limit(self) -> None:
        if self.options.scheduler == "slurm":
            return  # its passes go on, and keep what they have planned
        if self.in_pass and any(self.at_limit(job) for job in self.queue):
            raise PassAgainError

    def start_jobs(self) -> None:
        if self.options.scheduler in ("conservative", "top-jobs"):
            self.conservative.schedule()
            return
        self.first_come_first_served()
        if (self.queue or self.options.migration_empty_queue) and "migration" in self.options.scheduler:
            self.migrate()
            self.first_come_first_served()
        if self.queue and "backfill" in self.options.scheduler:
            self.backfill()

    def first_come_first_served(self) -> None:
        while self.queue:
            nodes = self.place(self.queue[0], inf)
            if nodes is None:
                return
            self.start(self.queue[0], nodes)

    def place(self, job: Job, growth: float, admissible=lambda box: True) -> frozenset[int] | None:
        """The nodes that a job gets now, None if there are none for it."""
        occupied = self.occupied()
        for size in self.machine.sizes_from(job.size, growth):
            boxes = [b for b in self.machine.free_boxes(size, occupied, self.node_order(job)) if admissible(b)]
            if boxes:
                return self.choose(job, boxes, occupied)
        return None

    def choose(self, job: Job, boxes, occupied, until=None, oblivious=False) -> frozenset[int]:
        until = self.now + job.remaining_estimate if until is None else until
        if isinstance(self.machine, Menu):
            return self.machine.least_blocking(boxes, occupied)
        rule = "mfp" if oblivious else self.options.placement
        window = (self.now, until)
        span = self.first_submit, self.last_submit
        return choose(self.machine, occupied, boxes, job, *window, self.failures, self.options, *span, rule)

    def start(self, job: Job, nodes: frozenset[int]) -> None:
        if job in self.queue:  # not one that restarts on its own nodes (option C)
            self.queue.remove(job)
            self.last_node = max(nodes, key=lambda node: (node - self.last_node - 1) % self.machine.nodes)
        start = self.now + self.options.start_delay
        restart_cost = self.options.restart_cost if job.restarts + job.preemptions else 0
        job.start = start
        if job.first_start is None:
            job.first_start = start
            job.listed = max(job.listed or job.submit, self.last_start.get(job.array, job.submit))
            self.last_start[job.array] = self.now
        job.held_size = self.size_of(nodes)
        job.held.append([self.now, None, job.held_size])
        self.starts += 1
        attempt = Attempt(
            job,
            nodes,
            job.restarts,
            start,
            resume=start + restart_cost,
            work=job.saved,
            estimated_end=start + restart_cost + job.remaining_estimate,
            order=self.starts,
        )
        self.running.append(attempt)
        if self.options.start_delay > 0:
            self.log("schedule", job, nodes)
        self.log("start", job, nodes, time=start)
        attempt.start_row = self.events[-1]
        self.started()

    def started(self) -> None:
        self.stop_if_at_limit()

    # -- backfilling (krevat2003, scheduler 2) -------------------------------------------------------------------

    def backfill(self) -> None:
        head = self.queue[0]
        reserved = self.reservation(head)
        for job in self.queue[1:]:
            ends_by_then = job.remaining_estimate > 0 and (self.now + self.duration(job), 0) <= reserved

            def admissible(box, ends_by_then=ends_by_then):
                return ends_by_then or self.machine.can_hold(head.size, self.occupied_at(reserved) | box)

            nodes = self.place(job, self.options.growth_limit, admissible)
            if nodes is not None:
                self.start(job, nodes)

    def occupied_at(self, moment: Moment) -> set[int]:
        return set().union(*(nodes for nodes, free in self.occupancies() if free > moment))

    def reservation(self, head: Job) -> Moment:
        """The earliest moment at which the head job could be placed."""
        for moment in sorted({free for _, free in self.occupancies()}):
            if self.machine.can_hold(head.size, self.occupied_at(moment)):
                return moment
        return (inf, 0)

    # -- migration (krevat2003, scheduler 3) ---------------------------------------------------------------------

    def migrate(self) -> None:
        occupied, total = self.occupied(), self.machine.nodes
        free, before = total - len(occupied), self.machine.mfp(occupied)
        if not self.machine.is_torus or free == 0:
            return
        if Fraction(free, total) < self.options.migration_free_frac:
            return
        if Fraction(before, free) > self.options.migration_mfp_frac:
            return
        self.look()
        counts = self.changed or self.options.migration_repeats
        if counts:
            self.migrations_attempted += 1
            self.migration_times.append(self.now)
        places = self.replace_all()
        after = self.machine.mfp(set().union(*places.values(), self.down, self.held()))
        if after >= before:
            self.migrations_successful += counts and after > before
            self.move(places)
        self.look()
        self.changed = self.changed and not counts

    def look(self) -> None:
        """Note whether anything has changed on the machine since the last look."""
        seen = {(a.job, a.number, a.nodes) for a in self.present()}, set(self.down)
        self.changed = self.changed or seen != self.last_seen
        self.last_seen = seen

    def move(self, places: dict[Attempt, frozenset[int]]) -> None:
        for attempt in self.present():
            if places[attempt] != attempt.nodes:
                attempt.nodes = places[attempt]
                attempt.job.migrations += 1
                if self.now < attempt.start:
                    attempt.start_row.nodes = tuple(sorted(attempt.nodes))
                attempt.pause(self.now, self.options.migration_cost)
                self.log("migrate", attempt.job, attempt.nodes)

    def replace_all(self) -> dict[Attempt, frozenset[int]]:
        """New places of all running jobs, largest first; one that would have to grow keeps its place."""
        movers = sorted(self.present(), key=lambda a: (-len(a.nodes), a.job.index))
        kept: dict[Attempt, frozenset[int]] = {}
        while True:
            places = dict(kept)
            for attempt in movers:
                if attempt in kept:
                    continue
                occupied = set().union(*places.values(), self.down, self.held())
                boxes = self.machine.free_boxes(len(attempt.nodes), occupied)
                if not boxes:
                    kept[attempt] = attempt.nodes
                    break
                until = max(self.now, attempt.estimated_end)
                places[attempt] = self.choose(attempt.job, boxes, occupied, until)
            else:
                return places
