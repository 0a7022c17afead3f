"""A real SLURM of 16 virtual nodes with accounts, which plays traces of jobs for one feature each, or several.

``python -m tests.cluster.recorded_features FOLDER [TRACE ...]`` (``make against-slurm``) plays each trace five times,
each time on daemons of its own, which takes three to six minutes, and writes the corpus of tests/simcore/recorded. It
must be run by root, who may submit jobs of others: these users exist in the daemons alone (libnss-wrapper).
"""

from __future__ import annotations

import random
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from glob import glob
from math import floor
from pathlib import Path
from typing import NamedTuple

from tests.cluster.accounting_slurm import Database
from tests.cluster.recorded_slurm import (
    CONFIG,
    TASKS_AT_A_TIME,
    Asked,
    PlayingSlurm,
    _passes,
    hosts,
    part_of,
    record_all,
    shared_nodes,
    ticks_of,
)
from tests.cluster.virtual_slurm import _free_ports, _wait_for
from tests.recorded import OF_ONE_PASS_S, PLAYING_S, Noted, Played, Preemption, Recording

FIRST_UID = 70001
SAMPLED_S = 1.0
STEP_S = 0.25  # of the sleep of jobs that others suspend
LEAVES_S = 0.035  # from the order to leave to the end, which the log has of requeued jobs alone
ACCOUNTS = {"physics": (50, {"u1": 1, "u2": 2}), "chem": (30, {"u3": 1, "u4": 1}), "bio": (20, {"u5": 3, "u6": 1})}
"""Shares of accounts, and of the users in them."""
ACCOUNT_OF = {user: account for account, (_, users) in ACCOUNTS.items() for user in users}
HALF_LIFE_S, MAX_AGE_S, PERIOD_S = 120, 600, 60
WEIGHTS = {"Age": 1000, "Fairshare": 10000}
"""By which the jobs of a trace with fair share come; in others, by nice values alone."""


class Event(NamedTuple):
    """A command of the operator, some seconds after the first submission."""

    at: float
    command: tuple[str, ...]


@dataclass(frozen=True)
class Feature:
    """A trace: jobs, when they come, what the operator does, and how SLURM and ours are set."""

    jobs: tuple[Asked, ...]
    passes: tuple[str, dict[str, float]]
    between_s: float = 0.3
    config: str = ""  # lines of slurm.conf
    partitions: tuple[str, ...] = ()  # beside batch and gpu
    accounts: tuple[str, ...] = ()  # further commands of sacctmgr
    events: tuple[Event, ...] = ()
    settings: dict[str, object] = field(default_factory=dict)
    site: dict[str, list] = field(default_factory=dict)


class FeatureSlurm(Database, PlayingSlurm):
    """The daemons with an accounting database, and users that root submits for."""

    def __init__(self, feature: Feature) -> None:
        """Remember the trace."""
        super().__init__(feature.passes[0])
        self.feature = feature
        changed = {line.split("=")[0] for line in feature.config.splitlines()}
        lines = [line for line in CONFIG.splitlines() if line.split("=")[0] not in changed | {"AccountingStorageType"}]
        own = [f"PartitionName={text} DefMemPerCPU=500 MaxTime=60 State=UP" for text in feature.partitions]
        self.template = "\n".join([*lines[:2], feature.config, *ACCOUNTING, *lines[2:], *own, ""])

    def _start(self) -> None:
        self._know_users()
        (self.base / "db").mkdir()
        self.dbd_port = _free_ports(1)[0]
        super()._start()

    def command(self, job: Asked) -> str:
        """Return what a job runs: where others suspend it many short sleeps, since a long one goes on meanwhile."""
        if self.feature.settings.get("preemption") != "suspend":
            return super().command(job)
        nothing, (rounds, rest) = "exec 3<> <(:)", divmod(job.sleep, STEP_S)
        first = f"for ((k = 0; k < {rounds:.0f}; k++)); do read -t {STEP_S} -u 3; done"
        return f"bash -c '{nothing}; {first}; read -t {rest:.2f} -u 3'"

    def _know_users(self) -> None:
        base, wrapper = self.base, glob("/usr/lib/*/libnss_wrapper.so")
        for name in ("passwd", "group"):
            shutil.copy(f"/etc/{name}", base / name)
        with (base / "passwd").open("a") as lines:
            for number, user in enumerate(ACCOUNT_OF):
                lines.write(f"{user}:x:{FIRST_UID + number}:{FIRST_UID}::/tmp:/bin/sh\n")
        with (base / "group").open("a") as lines:
            lines.write(f"players:x:{FIRST_UID}:\n")
        files = {"NSS_WRAPPER_PASSWD": str(base / "passwd"), "NSS_WRAPPER_GROUP": str(base / "group")}
        self.environment |= {"LD_PRELOAD": wrapper[0], **files}

    def _start_nodes(self, *nodes: str) -> None:
        self.config.write_text(self.config.read_text().replace("DBD_PORT", str(self.dbd_port)))
        self._start_database(self.dbd_port)
        self._launch("slurmdbd", "-D")
        _wait_for("slurmdbd", lambda: "Cluster" in self.ask("sacctmgr", "list", "cluster"))
        manage = ("sacctmgr", "-i", "-Q")
        self.ask(*manage, "add", "cluster", "played")
        for command in self.feature.accounts:
            if command.startswith("add qos"):
                self.ask(*manage, *command.split())
        names = "normal" + "".join(f",{each['name']}" for each in self.feature.site.get("qos", ()))
        for account, (shares, users) in ACCOUNTS.items():
            self.ask(*manage, "add", "account", account, f"fairshare={shares}")
            for user, own in users.items():
                self.ask(*manage, "add", "user", user, f"account={account}", f"fairshare={own}", f"qos={names}")
        for command in self.feature.accounts:
            if not command.startswith("add qos"):
                self.ask(*manage, *command.split())
        super()._start_nodes(*nodes)


ACCOUNTING = (
    "AccountingStorageType=accounting_storage/slurmdbd",
    "AccountingStorageHost=localhost",
    "AccountingStoragePort=DBD_PORT",
    "AccountingStoragePass={base}/munge.socket",
    "AccountingStorageEnforce=associations,limits,qos",
)


@dataclass
class Material:
    """What a run left: the controller's log, names by number, and printed priorities whenever they changed."""

    log: str
    numbers: dict[str, str]
    priorities: list[tuple[float, dict[str, int]]]


def _sample(slurm: FeatureSlurm, found: list[tuple[float, dict[str, int]]], over: threading.Event) -> None:
    """Note the priorities of waiting jobs once a second, those that are new or have changed."""
    known: dict[str, int] = {}
    while not over.wait(SAMPLED_S):
        lines = slurm.ask("squeue", "-h", "-r", "-t", "PD", "-o", "%i %Q").splitlines()
        now = {number: int(value) for number, value in (line.split() for line in lines)}
        if changed := {number: value for number, value in now.items() if known.get(number) != value}:
            found.append((time.time(), changed))
        known |= now


def play(slurm: FeatureSlurm, feature: Feature, part: float) -> Material:
    """Submit the jobs while the operator does what is to be done, and wait for their ends."""
    slurm.settle(part)
    over, sampled = threading.Event(), []
    sampler = threading.Thread(target=_sample, args=(slurm, sampled, over))
    sampler.start()
    numbers: dict[str, str] = {}
    things = [(place * feature.between_s, job) for place, job in enumerate(feature.jobs)]
    begin = time.monotonic()
    for at, thing in sorted([*things, *feature.events], key=lambda pair: pair[0]):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        if isinstance(thing, Asked):
            known, place = list(numbers), len(numbers)
            numbers[slurm.submit(f"t{place}", thing, [known[other] for other in thing.after])] = f"t{place}"
        else:
            slurm.ask(*thing)
    _wait_for("the end of all jobs", lambda: not slurm.jobs(), 1200)
    over.set()
    sampler.join()
    return Material(slurm.log(), numbers, sampled)


def of_users(seed: int, jobs: Iterator[Asked], skew: float = 1.0) -> Iterator[Asked]:
    """Give jobs users, the first of them the most."""
    draw = random.Random(seed)
    users = list(ACCOUNT_OF)
    weights = [1 / (place + 1) ** skew for place in range(len(users))]
    for asked in jobs:
        user = draw.choices(users, weights)[0]
        yield asked._replace(user=user, account=ACCOUNT_OF[user])


def _fair_share() -> str:
    weights = "\n".join(f"PriorityWeight{name}={value}" for name, value in WEIGHTS.items())
    times = f"PriorityDecayHalfLife=00:0{HALF_LIFE_S // 60}:00\nPriorityCalcPeriod=1\nPriorityMaxAge=00:10:00"
    return f"{weights}\n{times}\nPriorityWeightPartition=0"


SHARES = {
    "priority_age_weight": 1000.0,
    "priority_share_weight": 10000.0,
    "priority_fair_share": "fair-tree",
    "priority_half_life_h": HALF_LIFE_S / 3600,
    "priority_max_age_h": MAX_AGE_S / 3600,
    "priority_period_s": float(PERIOD_S),
}
TREE = [
    {"account": "root", "user": "root", "shares": 1},
    *({"account": account, "shares": shares} for account, (shares, _) in ACCOUNTS.items()),
    *(
        {"account": account, "user": user, "shares": shares}
        for account, (_, users) in ACCOUNTS.items()
        for user, shares in users.items()
    ),
]


def shares() -> Feature:
    """Users with different shares: ranks change once a minute."""
    jobs = (asked._replace(nice=0) for asked in of_users(31, shared_nodes(31, 180)))
    return Feature(tuple(jobs), _passes(1, 1, 1000), 0.6, _fair_share(), settings=SHARES, site={"accounts": TREE})


QOS = (
    {"name": "few", "max_jobs_user": 2},
    {"name": "narrow", "max_cores_user": 8},
    {"name": "small", "max_cores": 20},
)
LIMITS = (
    "add qos few",
    "add qos narrow",
    "add qos small",
    "modify qos few set MaxJobsPerUser=2",
    "modify qos narrow set MaxTRESPerUser=cpu=8",
    "modify qos small set GrpTRES=cpu=20",
    "modify account chem set GrpJobs=4",
)


def _with_qos(seed: int, jobs: Iterator[Asked]) -> Iterator[Asked]:
    draw = random.Random(seed)
    for asked in jobs:
        qos = draw.choice(("normal", "normal", "few", "narrow", "small"))
        if qos == "narrow":
            asked = asked._replace(nodes=min(asked.nodes, 8 // asked.cores))
        if qos == "small":
            asked = asked._replace(nodes=min(asked.nodes, 20 // asked.cores))
        yield asked._replace(qos=qos)


def limits() -> Feature:
    """Limits of the running jobs and cores of a user, a QOS and an account."""
    jobs = _with_qos(32, of_users(32, shared_nodes(32, 110), 0.5))
    site = {"qos": [{"name": "normal"}, *QOS], "accounts": [{"account": "chem", "group_jobs": 4}]}
    return Feature(tuple(jobs), _passes(1, 1, 1000), accounts=LIMITS, settings={"site_limits": True}, site=site)


def _arrays(seed: int, jobs: Iterator[Asked], part: float) -> Iterator[Asked]:
    draw = random.Random(seed)
    for asked in jobs:
        if draw.random() < part and not asked.after:
            yield asked._replace(nodes=min(asked.nodes, 2), tasks=draw.randint(3, 8))
        else:
            yield asked


def arrays() -> Feature:
    """Arrays of jobs, of which two tasks run at a time."""
    jobs = _arrays(33, of_users(33, shared_nodes(33, 60)), 0.4)
    return Feature(tuple(jobs), _passes(1, 1, 1000), 0.5, settings={"array_max_jobs": TASKS_AT_A_TIME})


TIERS = {"mid": ("n[1-12]", 5), "high": ("n[5-16]", 10)}


def _tiered(mode: str) -> dict:
    parts = [f"{name} Nodes={where} PriorityTier={tier}" for name, (where, tier) in TIERS.items()]
    site = {
        "partitions": [
            {"name": "batch", "first": 0, "last": 11, "priority_tier": 1},
            {"name": "gpu", "first": 12, "last": 15, "priority_tier": 1},
            {"name": "mid", "first": 0, "last": 11, "priority_tier": 5},
            {"name": "high", "first": 4, "last": 15, "priority_tier": 10},
        ],
        "preempt_by": "partition",
    }
    config = f"PreemptType=preempt/partition_prio\nPreemptMode={mode}\nDebugFlags=Backfill,Gang"
    return {"partitions": tuple(parts), "config": config, "site": site}


def _tiers(seed: int, count: int, urgent: float, most: int = 40) -> Iterator[Asked]:
    """Jobs of the lowest tier that fill the nodes, and urgent ones."""
    draw = random.Random(seed)
    for nice in draw.sample(range(1, 5000), count):
        where = draw.choice(("mid", "high")) if draw.random() < urgent else draw.choice(("batch", "batch", "gpu"))
        sizes = {"batch": (1, 1, 2, 2, 3, 4), "gpu": (1, 1, 2, 3)}.get(where, (1, 2, 3, 5))
        nodes, cores = draw.choice(sizes), draw.choice((1, 2, 4, 4))
        sleep = round(draw.uniform(10, most) if where in ("batch", "gpu") else draw.uniform(6, 15), 2)
        yield Asked(sleep, draw.choice((1, 2, 3)), nice, nodes, cores, partition=where)


URGENT = (
    "add qos low",
    "add qos high",
    "modify qos high set priority=100 preempt=low",
    "modify qos low set preemptmode=requeue",
)
OF_QOS = {"qos": [{"name": "low"}, {"name": "high", "priority": 100, "preempts": ["low"]}], "preempt_by": "qos"}
HOLD = {"preemption": "requeue", "requeue_hold_s": 121.0, "preempt_wait_s": 12.0}
"""KillWait is 2 s, MessageTimeout 10 s."""


def requeued() -> Feature:
    """Jobs of higher tiers requeue others, which are then held."""
    return Feature(tuple(_tiers(34, 60, 0.3)), _passes(1, 1, 1000), 1.5, settings=HOLD, **_tiered("REQUEUE"))


def requeued_by_backfill() -> Feature:
    """Jobs of a QOS requeue others that need not come behind them in the queue. The main pass sees but the first job of
    the queue, so most preempt in backfilling passes."""
    text, passes = _passes(2, 1, 1000)
    text = text.replace("sched_interval=1", "sched_interval=3600") + ",default_queue_depth=1"
    passes |= {"full_interval_s": 3600.0, "main_depth": 2}  # SLURM looks at one job more than it says
    draw, jobs = random.Random(35), []
    for asked in of_users(35, shared_nodes(35, 80)):
        qos = draw.choice(("high", "low", "low"))
        jobs.append(asked._replace(qos=qos, sleep=asked.sleep if qos == "high" else asked.sleep + 10))
    config = "PreemptType=preempt/qos\nPreemptMode=REQUEUE"
    return Feature(tuple(jobs), (text, passes), 0.8, config, accounts=URGENT, settings=HOLD, site=OF_QOS)


def cancelled() -> Feature:
    """Jobs of higher tiers cancel others."""
    settings = {"preemption": "cancel"}
    return Feature(tuple(_tiers(41, 60, 0.3)), _passes(1, 1, 1000), 1.5, settings=settings, **_tiered("CANCEL"))


GRACE_S, EXEMPT_S = 7, 12


def _of_two_qos(seed: int, count: int, urgent: float) -> Iterator[Asked]:
    """Jobs of a QOS that others preempt, and some of the other one."""
    draw = random.Random(seed)
    for asked in of_users(seed, shared_nodes(seed, count)):
        qos = "high" if draw.random() < urgent else "low"
        yield asked._replace(qos=qos, sleep=asked.sleep if qos == "high" else asked.sleep + 15)


def graced() -> Feature:
    """Jobs of a QOS requeue others, which have a grace time."""
    accounts = (*URGENT, f"modify qos low set GraceTime={GRACE_S}")
    low, high = OF_QOS["qos"]
    site = OF_QOS | {"qos": [low | {"grace_s": float(GRACE_S)}, high]}
    config = "PreemptType=preempt/qos\nPreemptMode=REQUEUE"
    settings = HOLD | {"site_grace": True}
    jobs = tuple(_of_two_qos(42, 80, 0.3))
    return Feature(jobs, _passes(1, 1, 1000), 1.0, config, accounts=accounts, settings=settings, site=site)


def exempt() -> Feature:
    """Jobs of a QOS requeue others that have run for some time."""
    config = f"PreemptType=preempt/qos\nPreemptMode=REQUEUE\nPreemptExemptTime=00:00:{EXEMPT_S}"
    settings = HOLD | {"preempt_exempt_s": float(EXEMPT_S)}
    jobs = tuple(_of_two_qos(43, 80, 0.3))
    return Feature(jobs, _passes(1, 1, 1000), 0.8, config, accounts=URGENT, settings=settings, site=OF_QOS)


def suspended() -> Feature:
    """Jobs of higher tiers suspend others."""
    jobs = (asked._replace(memory_mb=250) for asked in _tiers(36, 60, 0.35, 25))
    tiered, modes = _tiered("SUSPEND,GANG"), {"preemption": "suspend"}
    return Feature(tuple(jobs), _passes(1, 1, 1000), 1.5, settings=modes, **tiered)


COURSE = "course"
"""The name of an advance reservation."""


def _of_course(seed: int, jobs: Iterator[Asked]) -> Iterator[Asked]:
    """Have small jobs run in the advance reservation, which they need not outlast."""
    draw = random.Random(seed)
    for place, asked in enumerate(jobs):
        if place < 80 and not asked.gpus and draw.random() < 0.25:
            yield asked._replace(nodes=min(asked.nodes, 3), user="root", account="root", reservation=COURSE)
        else:
            yield asked


def reserved() -> Feature:
    """A maintenance window of some nodes and an advance reservation of others, both for root, some of whose jobs ask
    for the second."""
    make = ("scontrol", "create", "reservation", "users=root", "flags=ignore_jobs")
    first = Event(0.0, (*make, "reservationname=repair", "starttime=now+60", "duration=1", "nodes=n[1-6]"))
    first = first._replace(command=tuple(part.replace("=ignore_jobs", "=maint,ignore_jobs") for part in first.command))
    other = Event(0.0, (*make, f"reservationname={COURSE}", "starttime=now+40", "duration=3", "nodes=n[8-14]"))
    jobs = tuple(_of_course(37, shared_nodes(37, 100)))
    settings = {"site_reservations": True}
    return Feature(jobs, _passes(1, 1, 1000), 0.6, events=(first, other), settings=settings)


def _break(at: float, node: str, for_s: float) -> tuple[Event, Event]:
    change = ("scontrol", "update", f"nodename={node}")
    return Event(at, (*change, "state=down", "reason=test")), Event(at + for_s, (*change, "state=resume"))


def failing() -> Feature:
    """Nodes fail, and their jobs are requeued and held."""
    breaks = (*_break(20, "n3", 30), *_break(35, "n14", 20), *_break(50, "n7", 60), *_break(51, "n8", 40))
    jobs = shared_nodes(38, 90)
    return Feature(tuple(jobs), _passes(1, 1, 1000), 0.5, events=breaks, settings={"requeue_hold_s": 121.0})


def _chain(seed: int, jobs: Iterator[Asked]) -> Iterator[Asked]:
    draw = random.Random(seed)
    for place, asked in enumerate(jobs):
        others = draw.choice((0, 0, 0, 1, 1, 2)) if place >= 12 else 0
        yield asked._replace(after=tuple(sorted(draw.sample(range(place - 12, place), others))))


def mixed() -> Feature:
    """Fair share with limits, arrays and dependencies."""
    jobs = _arrays(39, _chain(39, _with_qos(39, of_users(39, shared_nodes(39, 110)))), 0.15)
    chosen = [asked._replace(nice=0, nodes=1 if asked.tasks else asked.nodes) for asked in jobs]
    tree = [row | {"group_jobs": 4} if row == {"account": "chem", "shares": 30} else row for row in TREE]
    site = {"qos": [{"name": "normal"}, *QOS], "accounts": tree}
    settings = SHARES | {"site_limits": True, "array_max_jobs": TASKS_AT_A_TIME}
    return Feature(
        tuple(chosen), _passes(2, 1, 1000), 0.8, _fair_share(), accounts=LIMITS, settings=settings, site=site
    )


def mixed_urgent() -> Feature:
    """Preemption by QOS with requeue, fair share, a maintenance window, and a node that fails."""
    draw, chosen = random.Random(40), []
    for asked in of_users(40, shared_nodes(40, 110)):
        qos = draw.choice(("high", "low", "low", "low"))
        chosen.append(asked._replace(nice=0, qos=qos, sleep=asked.sleep if qos == "high" else asked.sleep + 10))
    config = f"{_fair_share()}\nPriorityWeightQOS=20000\nPreemptType=preempt/qos\nPreemptMode=REQUEUE"
    make = ("scontrol", "create", "reservation", "users=root", "flags=maint,ignore_jobs")
    events = (Event(0.0, (*make, "reservationname=repair", "starttime=now+90", "duration=1", "nodes=n[1-5]")),)
    events += _break(40, "n15", 60)
    return Feature(
        tuple(chosen),
        _passes(1, 1, 1000),
        0.7,
        config,
        accounts=URGENT,
        events=events,
        settings=SHARES | HOLD | {"priority_qos_weight": 20000.0},
        site=OF_QOS | {"accounts": TREE},
    )


FEATURES = {
    function.__name__.replace("_", "-"): function
    for function in (
        shares,
        limits,
        arrays,
        requeued,
        requeued_by_backfill,
        cancelled,
        graced,
        exempt,
        suspended,
        reserved,
        failing,
        mixed,
        mixed_urgent,
    )
}


_KINDS = (
    ("submit", r"_slurm_rpc_submit_batch_job: {job} InitPrio=(?P<value>\d+)"),
    ("main", r"sched: Allocate {job} NodeList=(?P<value>\S+)"),
    ("backfill", r"sched/backfill: _start_job: Started {job} in \S+ on (?P<value>\S+)"),
    ("end", r"_job_complete: {job} done"),
    ("fail", r"requeue job {job} due to failure of node (?P<value>\S+)"),
    ("preempt", r"preempted {job} has been requeued to reclaim resources for JobId=(?P<value>\d+(?:_\d+)?)"),
    ("cancel", r"preempted {job} has been killed to reclaim resources for JobId=(?P<value>\d+(?:_\d+)?)"),
    (
        "told",
        r"debug:  setting \d+ sec preemption grace time for {job} to reclaim resources for "
        r"JobId=(?P<value>\d+(?:_\d+)?)",
    ),
    ("waits", r"sched/backfill: _attempt_backfill: BACKFILL: planned start of {job} failed: Requested nodes are busy"),
    ("requeued", r"Requeuing {job}"),
    ("halt", r"gang: suspending {job}"),
    ("resume", r"gang: resuming {job}"),
    ("begin", r"sched/backfill: _attempt_backfill: beginning"),
    ("over", r"sched/backfill: _attempt_backfill: completed testing"),
    ("calculated", r"priority/multifactor: _read_last_decay_ran: No last decay"),
    ("down", r"update_node: node (?P<value>\S+) state set to DOWN"),
    ("up", r"Node (?P<value>\S+) now responding"),
)
_JOB = r"JobId=(?P<job>\d+(?:_\d+)?)(?:\(\d+\))?"
_LINES = [(kind, re.compile(text.replace("{job}", _JOB))) for kind, text in _KINDS]


def lines_of(log: str) -> Iterator[tuple[float, str, str, str]]:
    """Yield what the controller's log says, in order of time: a time, what it was, the job and a value."""
    for at, text in sorted(re.findall(r"\[(\S+)\] (.*)", log), key=lambda pair: pair[0]):
        for kind, pattern in _LINES:
            if found := pattern.match(text):
                values = found.groupdict()
                time_s = datetime.fromisoformat(at).timestamp()
                yield time_s, kind, values.get("job") or "", values.get("value") or ""
                break


class Reading:
    """What the log says of the jobs, of preemptions and of nodes."""

    def __init__(self, feature: Feature, material: Material) -> None:
        """Read it."""
        self.names = {}
        for number, name in material.numbers.items():
            tasks = feature.jobs[int(name[1:])].tasks
            self.names |= {f"{number}_{task}": f"{name}_{task}" for task in range(tasks)} or {number: name}
        self.submits: dict[str, tuple[float, int]] = {}
        self.runs: dict[str, list[list]] = {name: [] for name in self.names.values()}
        self.halts: dict[str, list[list[float]]] = {name: [] for name in self.names.values()}
        self.preempted: list[tuple[float, str, str, list[str]]] = []
        self.told: dict[str, float] = {}
        self.waits: dict[str, float] = {}
        self.down: dict[str, list] = {}
        self.fails: list[tuple[int, float, float]] = []
        self.calculated, self.in_backfill = 0.0, False
        for time_s, kind, number, value in lines_of(material.log):
            if kind == "submit":
                self.submits[number] = (time_s, int(value))
            elif not number:
                self._of_site(time_s, kind, value)
            elif number in self.names:
                self._of_job(time_s, kind, self.names[number], value)
        self._note_halts()

    def _of_site(self, time_s: float, kind: str, value: str) -> None:
        if kind in ("begin", "over"):
            self.in_backfill = kind == "begin"
        elif kind == "calculated":
            self.calculated = time_s
        elif kind == "down":
            self.down[value] = [time_s]
        elif kind == "up" and value in self.down:
            self.fails.append((int(value[1:]) - 1, *self.down.pop(value), time_s))

    def _of_job(self, time_s: float, kind: str, name: str, value: str) -> None:
        if kind in ("main", "backfill"):
            self.runs[name].append([time_s, 0.0, kind, hosts(value)])
        elif kind == "waits":
            self.waits.setdefault(name, time_s)
        elif kind in ("preempt", "cancel", "told"):
            if value in self.names:  # else SLURM found that a grace is over
                self.waits.setdefault(self.names[value], time_s)
            if self.told.get(name, 0.0) <= self.runs[name][-1][0]:  # else it had a grace time
                self.told[name] = time_s
                self._note(time_s, "backfill" if self.in_backfill else "main", self.names[value], name)
            if kind == "cancel":
                self.runs[name][-1][1] = time_s + LEAVES_S
        elif kind in ("end", "fail", "requeued") and self.runs[name][-1][1] == 0.0:
            self.runs[name][-1][1] = time_s
        elif kind == "halt":
            self.halts[name].append([time_s])
        elif kind == "resume" and self.halts[name]:
            self.halts[name][-1].append(time_s)

    def _note_halts(self) -> None:
        """Count a suspension to the pass that started a job at about that time."""
        started = [run for runs in self.runs.values() for run in runs]
        for time_s, name in sorted((span[0], name) for name, spans in self.halts.items() for span in spans):
            nearest = min(started, key=lambda run: abs(run[0] - time_s))
            self._note(nearest[0], nearest[2], "", name)

    def _note(self, time_s: float, by: str, job: str, victim: str) -> None:
        if self.preempted and self.preempted[-1][1:3] == (by, job) and time_s - self.preempted[-1][0] < OF_ONE_PASS_S:
            self.preempted[-1][3].append(victim)
        else:
            self.preempted.append((time_s, by, job, [victim]))


def recording_of(name: str, material: Material) -> Recording:
    """Return a run as it is kept in the corpus."""
    feature = FEATURES[name]()
    reading = Reading(feature, material)
    jobs, tasks_of = [], {}
    for number, key in reading.names.items():
        place = key.partition("_")[0]
        tasks_of.setdefault(place, []).append(key)
        asked = feature.jobs[int(place[1:])]
        submit, priority = reading.submits[number.partition("_")[0]]
        *earlier, (start, end, by, where) = reading.runs[key]
        size = {"nodes": asked.nodes, "cores": asked.cores, "gpus": asked.gpus}
        size["memory_mb"] = asked.cores * asked.memory_mb
        owner = {"user": asked.user, "account": asked.account, "qos": asked.qos}
        owner |= {"array": place if asked.tasks else "", "reservation": asked.reservation}
        times = {"submit": submit, "run_s": asked.sleep + PLAYING_S, "limit_s": 60.0 * asked.minutes}
        seen = {"start": start, "end": end, "by": by, "hosts": where, "priority": priority}
        more = {"earlier": tuple(earlier), "halts": tuple((*span, end)[:2] for span in reading.halts[key])}
        part = asked.partition or ("gpu" if asked.gpus else "batch")
        after = tuple(f"t{other}" for other in asked.after)
        jobs.append(Played(key, **times, **seen, **size, **owner, **more, partition=part, after=after))
    found = [replace(job, after=tuple(key for other in job.after for key in tasks_of[other])) for job in jobs]
    found.sort(key=lambda job: job.submit)
    settings = feature.passes[1] | feature.settings
    return Recording(name, settings, tuple(found), feature.site, _noted(feature, reading, material, found))


def _noted(feature: Feature, reading: Reading, material: Material, jobs: list[Played]) -> Noted:
    preempted = tuple(Preemption(*row[:3], tuple(row[3])) for row in reading.preempted)
    first = jobs[0].submit
    shares = "priority_share_weight" in feature.settings
    closed = tuple(_window(event, first) for event in feature.events if "reservation" in event.command)
    return Noted(
        reading.calculated if shares else 0.0,
        tuple(_changes(material, reading)) if shares else (),
        preempted,
        tuple(reading.fails),
        closed,
        reading.waits,
        ticks_of(material.log, first),
    )


def _window(event: Event, first: float) -> tuple[float, float, tuple[int, ...], str]:
    """When a reservation begins and ends, its nodes and its name: SLURM counts from the second in which it is made."""
    said = dict(part.split("=", 1) for part in event.command if "=" in part)
    start = floor(first + event.at) + float(said["starttime"].removeprefix("now+"))
    return start, start + 60 * float(said["duration"]), hosts(said["nodes"]), said["reservationname"]


def _changes(material: Material, reading: Reading) -> Iterator[tuple[float, dict[str, int]]]:
    """Yield how the priorities of waiting jobs changed, each at the calculation before it was printed."""
    known = {name: reading.submits[number.partition("_")[0]][1] for number, name in reading.names.items()}
    found: dict[float, dict[str, int]] = {}
    for time_s, printed in material.priorities:
        for number, value in printed.items():
            name = reading.names.get(number)
            if name and known[name] != value:
                periods = (time_s - reading.calculated) // PERIOD_S
                found.setdefault(round(reading.calculated + PERIOD_S * periods, 3), {})[name] = value
                known[name] = value
    yield from sorted(found.items())


def record(name: str, run: int) -> Recording:
    """Play a trace, one of its runs."""
    feature = FEATURES[name]()
    with FeatureSlurm(feature) as slurm:
        material = play(slurm, feature, part_of(run))
    return recording_of(name, material)


if __name__ == "__main__":
    record_all(Path(sys.argv[1]), sys.argv[2:] or list(FEATURES), record)
