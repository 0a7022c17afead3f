"""What the reference simulator knows of jobs, and the options of a run. Numbers are kept as exact fractions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

Moment = tuple[Any, int]
"""A time in the scheduler's plans: (t, 0) is t, (t, 1) is "just after t" (decision 6)."""


def exact(value: Any) -> Any:
    """A number as the fraction it stands for; a decimal like 0.7 is seven tenths."""
    if value in (inf, -inf):
        return value
    return value if isinstance(value, (int, Fraction)) else Fraction(repr(float(value)))


@dataclass(frozen=True)
class Options:
    """The parameters of a run. Times in seconds."""

    scheduler: str = "fcfs"
    rule: Callable[..., bool] | None = None  # who may overtake, by a discipline of the user's (sites)
    event_order: str = "instant"
    start_delay: Any = 0
    growth_limit: int = 1
    migration_free_frac: Any = Fraction(1, 10)
    migration_mfp_frac: Any = Fraction(7, 10)
    migration_empty_queue: bool = False
    migration_repeats: bool = False
    migration_cost: Any = 0
    kill_at_estimate: bool = False
    slowdown_bound: Any = 10
    # prediction
    placement: str = "mfp"  # mfp, balancing, tie-breaking
    a: Any = 0
    partition_risk: str = "product"  # product, max
    recall: Any = 1  # of balancing; that of tie-breaking is a
    false_positive_rate: Any = 0
    precision: Any = 1
    coin: Callable[[int, int, int], float] | None = None  # (node, job, restarts), in [0, 1)
    # checkpoints
    checkpoint: str = "none"  # none, periodic, risk, exact, bucket
    checkpoint_cost: Any = 300
    checkpoint_interval: Any = 7200
    bucket: Any = 3600
    bucket_jobs: str = "all"  # all, long, biggest
    bucket_repeat: Any = None
    biggest: int = 1
    long_running: Any = 300
    restart_cost: Any = 0
    # node choice
    node_choice: str = "first-fit"  # first-fit, lff, random, round-robin
    draw: Callable[[int, int, int], float] | None = None  # (number of the draw, job, restarts) -> [0, 1)
    lff_moves: bool = True
    move_threshold: int = 1
    move_cost: Any = 300
    queue_order: str = "fcfs"  # fcfs, wfp, sjf, ljf, saf, random, f1, f2, f3, f4, multifactor, pbs, lsf
    age_weight: Any = 1000
    longest_age: Any = 168  # h
    share_weight: Any = 1000
    fair_share: str = "users"  # users, classic, fair-tree
    tree: tuple[tuple[str, str, str, int], ...] = ()  # (account, user or "", parent account or "", shares)
    half_life: Any = 168  # h
    damping: Any = 1
    size_weight: Any = 0
    small_first: bool = False
    partition_weight: Any = 0
    partition_factors: tuple[tuple[str, int], ...] = ()
    qos_weight: Any = 0
    qos_factors: tuple[tuple[str, int], ...] = ()
    association_weight: Any = 0
    association_priorities: dict[tuple[str, str], int] = field(default_factory=dict)  # of (account, user or "")
    tres_weights: tuple[tuple[str, int], ...] = ()  # cpu, gpu, mem, node
    nice: bool = True
    site_factor: bool = True
    formula: str = "eligible_time"  # of pbs
    lsf_cpu_time: Any = Fraction(7, 10)
    lsf_run_time: Any = Fraction(7, 10)
    lsf_run_job: Any = 3
    hist_hours: Any = 5
    lsf_shares: tuple[tuple[str, int], ...] = ()  # of users
    period: Any = 300
    # limits of running jobs: 0 is none
    user_max_jobs: int = 0
    user_max_nodes: int = 0
    account_max_jobs: int = 0
    account_max_nodes: int = 0
    partition_max_jobs: int = 0
    partition_max_nodes: int = 0
    qos_max_jobs: int = 0
    qos_max_nodes: int = 0
    array_max_jobs: int = 0
    array_max_nodes: int = 0
    submit_limits: Callable | None = None  # of a site's file, on a job: (whether another counts, most of them)
    limits: Callable | None = None  # of a site's file, on a job: (whether another counts, most jobs, most cores)
    # passes (slurm)
    main_interval: Any = 1
    full_interval: Any = 60
    backfill_interval: Any = 30
    grace_interval: Any = 30
    preempt_wait: Any = 40
    preempt_leave: Any = 0.04
    first_ticks: tuple[Any, ...] = (
        0,
        0,
        0,
        0,
    )  # of passes and of graces, after the first submission
    main_depth: int = 100
    backfill_depth: int = 500
    backfill_user_depth: int = 0
    backfill_window: Any = 24  # h
    backfill_resolution: Any = 60
    # preemption (site): none, requeue, checkpoint, cancel, suspend
    preemption: str = "none"
    preempt_grace: Any = 0
    site_grace: bool = False
    grace: Callable | None = None  # of a job, by the site's file; 0 is none
    preempt_exempt: Any = 0
    asks: Callable | None = None  # of a job: the place of the advance reservation that it asks for, or None
    preempts: Callable | None = None  # of two jobs: whether the first may preempt the second
    preempt_order: Callable | None = None  # of a job: those with the lowest leave first
    preempt_class: Callable | None = None  # of a job: the place of its partition or QOS in the file
    rank: Callable | None = None  # of a job: the highest comes first in the queue
    top_jobs: int = 1  # with a reservation
    lot: Callable[[int], float] | None = None  # of a job, for the order random, in [0, 1)
    dependencies: str = "none"  # none, log
    # recovery: None requeues by arrival; otherwise each job's option A to E decides
    recovery: bool = False
    manual_delay: Callable[[int, int], Any] = lambda job, restarts: 0
    hold: bool = True
    requeue_hold: Any = 0
    # run control
    max_restarts: float = inf
    horizon: Any = inf


@dataclass(eq=False)
class Job:
    """A job and its whole history."""

    index: int
    job_id: int
    submit: Any
    run: Any
    estimate: Any
    requested_size: int
    size: int
    option: str = "A"
    key: Any = None
    waits_since: Any = None  # of the utility (wfp)
    fixed_utility: Any = None
    restarts: int = 0
    saved: Any = 0
    first_start: Any = None
    listed: Any = None  # since when SLURM's list has it at a place of its own, once it has started
    start: Any = None
    finish: Any = None
    work_lost: Any = 0
    node_seconds_lost: Any = 0
    overhead: Any = 0
    checkpoints: int = 0
    checkpoints_used: int = 0
    migrations: int = 0
    preemptions: int = 0
    suspensions: int = 0
    suspended: Any = 0  # for how long
    preempted_seconds: Any = 0  # node-seconds of work lost by that
    is_cancelled: bool = False
    is_late: bool = False  # its advance reservation was over
    is_refused: bool | None = None  # None before it is submitted
    eligible: Any = None  # since when it may start
    ended: Any = None  # finished, cancelled or refused
    is_held: bool = False  # for the end of others, or its think time
    place: int = 0  # of its partition among those of a site
    held_size: int | None = None
    time_at_limit: Any = 0
    held: list[list[Any]] = field(default_factory=list)  # [begin, end or None, nodes] of each attempt

    @property
    def user(self) -> int:
        """Three users take turns."""
        return self.job_id % 3

    @property
    def account(self) -> str:
        """Two accounts; user 0 is in both."""
        return "ab"[self.job_id % 6 // 3 if self.user == 0 else self.user - 1]

    @property
    def partition(self) -> str:
        return "pq"[self.job_id % 4 // 2]

    @property
    def qos(self) -> str:
        return "xyz"[self.job_id % 5 % 3]

    @property
    def nice(self) -> int:
        """None of the first jobs, which are those of cases by hand."""
        return (0, 150, -80)[self.job_id % 3] if self.job_id > 7 else 0

    @property
    def site_factor(self) -> int:
        return (0, -120, 0, 90)[self.job_id % 4] if self.job_id > 7 else 0

    @property
    def array(self) -> str:
        """Pairs of jobs, of three arrays."""
        return str(self.job_id % 6 // 2)

    @property
    def attempts(self) -> int:
        """Those that have not ended well."""
        return self.restarts + self.preemptions

    @property
    def follows(self) -> list[tuple[int, int]]:
        """The jobs that it waits for, of those before it, each with a think time."""
        others = range(1, min(self.index, (0, 1, 0, 2, 1)[self.job_id % 5]) + 1)
        return [(self.index - back, (0, 7, 100)[(self.job_id + back) % 3]) for back in others]

    lost_by_attempt: dict[int, Any] = field(default_factory=dict)
    saved_by_attempt: dict[int, Any] = field(default_factory=dict)

    @property
    def remaining_estimate(self) -> Any:
        return self.estimate - self.saved


@dataclass(eq=False)
class Attempt:
    """A job on its nodes: it has done ``work`` by ``resume`` and goes on from there without a pause."""

    job: Job
    nodes: frozenset[int]
    number: int
    start: Any
    resume: Any
    work: Any
    estimated_end: Any
    paused_since: Any = None
    saving: tuple[Any, str] | None = None  # (time of completion, "checkpoint" or "move")
    asked: Any = 0  # work up to which a checkpoint under "risk" was refused
    saved_by: str = ""  # what made the saved state in this attempt: "checkpoint" or "move"
    order: int = 0
    is_leaving: bool = False  # makes way for another job ...
    is_going: bool = False  # ... in a moment, whatever comes ...
    leaves_from: Any = None  # ... when its grace is over, in a pass that needs its place ...
    leaves_at: Any = None  # ... or at the next tick ...
    saves_last: bool = False  # ... after a last checkpoint
    halted_since: Any = None  # suspended for another job
    start_row: Event | None = None

    @property
    def end(self) -> Any:
        return self.resume + (self.job.run - self.work)

    def work_at(self, now: Any) -> Any:
        assert self.halted_since is None
        return self.work + max(0, now - self.resume)

    def is_paused(self, now: Any) -> bool:
        return now < self.resume

    def pause(self, now: Any, cost: Any) -> None:
        """Stop working for ``cost``; a pause that is still going on is prolonged by it."""
        self.work = self.work_at(now)
        self.resume = max(now, self.resume) + cost
        self.estimated_end += cost

    def expected_end(self, now: Any) -> Moment:
        """The end that the scheduler expects: an overrunning job ends just after now."""
        return (self.estimated_end, 0) if self.estimated_end > now else (now, 1)


@dataclass(eq=False)
class Event:
    """One row of the event trace."""

    time: Any
    kind: str
    job_id: int
    attempt: int
    nodes: tuple[int, ...]
