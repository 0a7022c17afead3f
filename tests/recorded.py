"""Recorded runs of a real SLURM, and what the scheduler ``slurm`` does with their jobs: pass by pass, or all of them.

A recording is a file of JSON: the settings of the passes, the jobs, and what the controller did with each of them in
each of several runs; with accounts, tiers, QOS or reservations also these, and what happened to nodes and priorities.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from math import floor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.state import BACKFILL_PASS, FULL_PASS, MAIN_PASS, State
from faultsweep.simcore.model.dependencies import dependencies_of
from faultsweep.simcore.model.failure_trace import NO_FAILURES, FailureTrace
from faultsweep.simcore.model.workload import Demand, Label, Workload
from faultsweep.simcore.simulate import Run, simulate
from faultsweep.simcore.sites.site import Account, NodeClass, Partition, Qos, Reservation, Site, site_text

NODES, CORES, MEMORY_MB, GPUS = 16, 4, 8000, 2
PARTITIONS = {"batch": tuple(range(12)), "gpu": tuple(range(12, 16))}
OF_ONE_PASS_S = 0.06
"""Starts of one pass lie closer than this in the controller's log."""
BEFORE_THEY_LEAVE_S = 0.02
"""Another pass follows so soon after one that had jobs leave, or later: when they have left."""
LATE_S = (0.02, 0.04, OF_ONE_PASS_S, -OF_ONE_PASS_S)
LABELS = ("account", "qos", "array", "reservation")
LEAVES_S = 1 / 128  # what a job takes to leave, in a single pass of ours
TICKS = ("main_interval_s", "full_interval_s", "backfill_interval_s")
PLAYING_S = 0.04  # what a job takes beyond its sleep, about
SETTINGS = {
    "scheduler": "slurm",
    "estimates": "requested",
    "node_choice": "consecutive",
    "queue_order": "multifactor",
    "priority_age_weight": 0.0,
    "priority_share_weight": 0.0,
}


@dataclass(frozen=True)
class Played:
    """What the controller did with a job: times of its log in seconds, nodes from 0 on."""

    name: str
    submit: float
    start: float
    end: float
    by: str  # the pass that started it: main or backfill
    hosts: tuple[int, ...]
    priority: int
    run_s: float
    limit_s: float
    partition: str
    nodes: int
    cores: int = CORES  # of each node, and so on
    gpus: int = 0
    memory_mb: int = 0
    after: tuple[str, ...] = ()  # names of the jobs whose end it waits for
    user: str = ""
    account: str = ""
    qos: str = ""
    array: str = ""  # the name of the array of which it is a task
    reservation: str = ""  # in which it wants to run
    earlier: tuple[Sequence[Any], ...] = ()  # start, end, by and hosts of runs that were cut short
    halts: tuple[Sequence[float], ...] = ()  # when it was suspended, and resumed


@dataclass(frozen=True)
class Preemption:
    """A job that had others leave: when, in which pass, its name and theirs."""

    time: float
    by: str
    job: str
    victims: tuple[str, ...]


@dataclass(frozen=True)
class Noted:
    """What else happened in a run, at times of its log in seconds.

    calculated : when priorities were calculated first.
    priorities : printed ones: a time, and jobs with theirs, if they are new or have changed.
    preempted : the preemptions.
    down : a node, when it failed, and when it was up again.
    closed : the begin and the end of a reservation, its nodes and its name; root may use it.
    waits : when a job was first refused nodes because others were to leave them.
    ticks : when main, full and backfilling passes began, also those that started nothing, and when jobs left whose
        grace was over, in seconds since the first submission; backfilling passes begin only if a job waits.
    """

    calculated: float = 0.0
    priorities: tuple[tuple[float, dict[str, int]], ...] = ()
    preempted: tuple[Preemption, ...] = ()
    down: tuple[tuple[int, float, float], ...] = ()
    closed: tuple[tuple[float, float, tuple[int, ...], str], ...] = ()
    waits: Mapping[str, float] = field(default_factory=dict)
    ticks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """A run: parameters of the passes, its jobs in order of submission, and what the site has beside its nodes."""

    name: str
    settings: dict[str, Any]
    jobs: tuple[Played, ...]
    site: Mapping[str, Any] = field(default_factory=dict)
    noted: Noted = Noted()
    decisions: dict[tuple[float, str, float], Pass | None] = field(default_factory=dict, init=False, compare=False)
    """What passes of ours did, once asked; a recording that is changed begins with none."""

    @cached_property
    def stays(self) -> tuple[Played, ...]:
        """Each run of each job as a job, in order of submission, the later ones submitted when the hold was over."""
        found, hold = [], self.settings.get("requeue_hold_s", 0.0)
        for job in self.jobs:
            submit = job.submit
            for start, end, by, hosts in job.earlier:
                found.append(replace(job, submit=submit, start=start, end=end, by=by, hosts=tuple(hosts)))
                submit = floor(end) + hold  # SLURM counts in whole seconds
            found.append(replace(job, submit=submit))
        return tuple(found)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each job in SLURM's list: the first task of an array to start is where that was submitted, each
        other one where the rest of the array was put when the one before it started."""
        first = {job.name: min(job.start, *(stay[0] for stay in job.earlier), np.inf) for job in self.jobs}
        since, last = {}, {}
        for job in sorted(self.jobs, key=lambda job: first[job.name]):
            since[job.name] = max(job.submit, last.get(job.array, job.submit))
            last |= {job.array: first[job.name]} if job.array else {}
        in_order = sorted(self.jobs, key=lambda job: since[job.name])
        return {job.name: place for place, job in enumerate(in_order)}


SEEN = ("submit", "start", "end", "by", "hosts")
MAYBE_SEEN = ("priority", "earlier", "halts")
"""What differs from run to run, or may: under fair share the priority at submission does."""


def write(runs: list[Recording], path: Path) -> None:
    """Write several runs of one trace: its settings, what its jobs ask for, and of each run what became of each job."""
    names = SEEN + tuple(name for name in MAYBE_SEEN if _differs(runs, name))
    left_out = {each.name: each.default for each in fields(Played)} | dict.fromkeys(SEEN + MAYBE_SEEN[1:], ())
    asked = [
        {name: value for name, value in asdict(job).items() if name not in names and left_out[name] != value}
        for job in runs[0].jobs
    ]
    seen = [[[_rounded(getattr(job, name)) for name in names] for job in run.jobs] for run in runs]
    text = [f'{{"settings": {json.dumps(runs[0].settings)},']
    text += [f'"site": {json.dumps(runs[0].site)},'] if runs[0].site else []
    noted = [_rounded(asdict(run.noted)) for run in runs if run.noted != Noted()]
    text += ['"noted": [', ",\n".join(map(json.dumps, noted)), "],"] if noted else []
    text += [f'"seen": {json.dumps(names)},', '"jobs": [']
    text += [",\n".join(map(json.dumps, asked)), "],", '"runs": [']
    text += [",\n".join("[" + ",\n".join(map(json.dumps, run)) + "]" for run in seen), "]}", ""]
    path.write_text("\n".join(text))


def _differs(runs: list[Recording], name: str) -> bool:
    """Whether something is not what another run, or most jobs, have."""
    seen = [tuple(getattr(job, name) for job in run.jobs) for run in runs]
    return any(each != seen[0] for each in seen) or (name != "priority" and any(seen[0]))


def _rounded(value: Any) -> Any:
    """Times of the log are in milliseconds."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items() if part not in ((), 0.0)}
    if isinstance(value, (list, tuple)):
        return [_rounded(part) for part in value]
    return round(value, 3) if isinstance(value, float) else value


def read(path: Path) -> list[Recording]:
    """Read the runs of a trace."""
    found = json.loads(path.read_text())
    runs = []
    for number, run in enumerate(found["runs"]):
        seen = [dict(zip(found["seen"], row, strict=True)) for row in run]
        jobs = [{**job, **what} for job, what in zip(found["jobs"], seen, strict=True)]
        jobs = [
            job | {name: tuple(job.get(name, ())) for name in ("hosts", "after", "earlier", "halts")} for job in jobs
        ]
        noted = dict(found["noted"][number]) if "noted" in found else {}
        if noted:
            of_all = [Preemption(**{**each, "victims": tuple(each["victims"])}) for each in noted.get("preempted", ())]
            noted |= {"preempted": tuple(of_all)}
        played = tuple(Played(**job) for job in jobs)
        name = f"{path.stem}-{number + 1}"
        runs.append(Recording(name, found["settings"], played, found.get("site", {}), Noted(**noted)))
    return runs


@dataclass(frozen=True)
class Row:
    """A job as it is simulated."""

    submit: float
    run_s: float
    limit_s: float
    partition: str
    priority: int
    nodes: int = 1
    cores: int = 1
    gpus: int = 0
    memory_mb: int = 0
    after: tuple[int, ...] = ()  # rows of the jobs that it waits for
    user: str = ""
    account: str = ""
    qos: str = ""
    array: str = ""
    reservation: str = ""


def site_of(partitions: Mapping[str, tuple[int, ...]], tiers: Mapping[str, int], site: Mapping[str, Any]) -> Site:
    """The nodes, each a class of its own, so that a partition may have any of them, and what else the site has."""
    nodes = [
        NodeClass(name=f"n{k}", count=1, cores=CORES, memory_mb=MEMORY_MB, gpus=GPUS * (k in PARTITIONS["gpu"]))
        for k in range(NODES)
    ]
    parts = [
        Partition(name=name, nodes={f"n{k}": 1 for k in members}, priority_tier=tiers.get(name, 1))
        for name, members in partitions.items()
    ]
    closed = [
        Reservation(name=name, start_s=start, end_s=end, classes={f"n{k}": 1 for k in members}, users=["root"])
        for start, end, members, name in site.get("closed", ())
    ]
    return Site(
        nodes=nodes,
        partitions=parts,
        qos=[Qos(**each) for each in site.get("qos", ())],
        accounts=[Account(**each) for each in site.get("accounts", ())],
        reservations=closed,
        preempt_by=site.get("preempt_by", ""),
    )


def _label(values: list[str]) -> Label:
    names = sorted(set(values) - {""})
    return Label(np.array([names.index(value) if value else -1 for value in values], np.int64), tuple(names))


def simulated(
    folder: Path,
    rows: list[Row],
    partitions: Mapping[str, tuple[int, ...]],
    site: Mapping[str, Any],
    tiers: Mapping[str, int] | None = None,
    down: Sequence[tuple[int, float, float]] = (),
    **settings,
) -> Run:
    """A run of jobs, which come by their priorities unless fair share has a weight."""
    path = folder / "site.toml"
    path.write_text(site_text(site_of(partitions, tiers or {}, site)))
    count, one = len(rows), np.ones(len(rows), np.int64)
    chunks, cores, gpus, memory = (
        np.array([getattr(row, name) for row in rows], np.int64) for name in ("nodes", "cores", "gpus", "memory_mb")
    )
    place = np.array([list(partitions).index(row.partition) for row in rows], np.int64)
    found = {name: _label([getattr(row, name) for row in rows]) for name in ("user", *LABELS)}
    labels = {name: label for name, label in found.items() if name != "user" and label.names}
    if "array" not in labels:
        settings.pop("array_max_jobs", None)
    if not settings.get("priority_share_weight"):
        labels["nice"] = _label([str(-row.priority) for row in rows])
    workload = Workload(
        np.arange(count),
        np.array([row.submit for row in rows]),
        np.array([row.run_s for row in rows]),
        np.array([row.limit_s for row in rows]),
        chunks * cores,
        found["user"].codes,
        name="recorded",
        demand=Demand(chunks, cores, gpus, memory, one, 0 * one, place, partitions=tuple(partitions)),
        labels=labels,
        user_names=found["user"].names,
    )
    pairs = [(place, other) for place, row in enumerate(rows) for other in row.after]
    if pairs:
        waits, after = (np.array(column) for column in zip(*pairs, strict=True))
        workload = replace(workload, dependencies=dependencies_of(waits, after, np.zeros(len(pairs))))
        settings = {"dependencies": "log"} | settings
    failures = NO_FAILURES
    if down:
        node, since, until = (np.array(column) for column in zip(*sorted(down, key=lambda each: each[1]), strict=True))
        failures = FailureTrace(since, node, until - since)
    return simulate(workload, failures=failures, machine=str(path), **(SETTINGS | settings))


def _row(job: Played, submit: float, **changes) -> Row:
    same = ("limit_s", "partition", "priority", "nodes", "cores", "gpus", "memory_mb", "run_s")
    own = {name: getattr(job, name) for name in (*same, "user", *LABELS)}
    return Row(**(own | {"submit": submit} | changes))


def _on_clock(time: float, begin: float) -> float:
    """A time since another one, a multiple of a binary fraction, so that sums are exact."""
    return round((time - begin) * 1024) / 1024


@dataclass(frozen=True)
class Ticks:
    """When passes come: of the main, or full, and the backfilling ones, the first after the first submission and the
    time between two; and when jobs leave whose grace is over, s."""

    main_s: float
    main_interval_s: float
    backfill_s: float
    backfill_interval_s: float
    grace_s: float

    @classmethod
    def of(cls, recording: Recording) -> Ticks | None:
        """Those of a recording, in which times between two vary by a few milliseconds; if it has them."""
        found, settings = recording.noted.ticks, recording.settings
        if not found:
            return None
        every = min(settings["main_interval_s"], settings["full_interval_s"])
        main = _line(found.get("full") or cls.regular(recording), every)
        _, second = _line(found["backfill"], 1.0)  # where it is idle it looks each second
        interval = settings["backfill_interval_s"] * second
        return cls(*main, found["backfill"][0], interval, found.get("grace", (0.0,))[0] % 30.0)

    @staticmethod
    def regular(recording: Recording) -> list[float]:
        """When main passes began that did not follow the end of a preempted job."""
        left = [stay[1] - recording.jobs[0].submit for job in recording.jobs for stay in job.earlier]
        times = recording.noted.ticks["main"]
        return [time for time in times if not any(-0.005 < time - other < 0.02 for other in left)]

    def drawn(self, seed: int) -> Ticks:
        """The same at other times: main passes come as long after backfilling ones as in the recording."""
        draw = np.random.default_rng(seed)
        later = draw.uniform(0.0, self.backfill_interval_s)
        firsts = {"main_s": self.main_s + later, "backfill_s": self.backfill_s + later}
        return replace(self, **firsts, grace_s=draw.uniform(0.0, 30.0))

    def set_in(self, state: State, since: float) -> None:
        """Give a run these ticks, whose first submission is a time after that of its first row."""
        ticks = {MAIN_PASS: (self.main_s, self.main_interval_s)}
        ticks[BACKFILL_PASS] = (self.backfill_s, self.backfill_interval_s)
        if state.tick_interval[FULL_PASS] <= state.tick_interval[MAIN_PASS]:
            ticks[FULL_PASS] = ticks[MAIN_PASS]
        for kind, (first, interval) in ticks.items():
            if state.tick_interval[kind] < 2 * interval:  # else there are no such passes
                state.first_tick[kind] = _on_clock((first + since) % interval, 0.0)
                state.tick_interval[kind] = interval
        state.first_grace_tick = _on_clock((self.grace_s + since) % 30.0, 0.0)


def _line(times: Sequence[float], interval: float) -> tuple[float, float]:
    """The first of times that are about an interval apart, or several ones, and the mean of the intervals."""
    place = np.cumsum(np.round(np.diff(times, prepend=times[0]) / interval))
    step, first = np.polyfit(place, times, 1)
    step = max(step, interval)
    return first % step, step


def starts_of(folder: Path, recording: Recording, seed: int | None = 0, **settings) -> dict[str, float]:
    """The starts of the jobs of a recording under our scheduler, since the first submission; of a job that was cut
    short, the start of its last run."""
    return {name: start for name, (start, _) in placed(folder, recording, seed, **settings).items()}


def placed(
    folder: Path, recording: Recording, seed: int | None = 0, **settings
) -> dict[str, tuple[float, tuple[int, ...]]]:
    """The same starts and the nodes of the jobs.

    seed : draws when passes are, None for the ticks of the recording.
    """
    first, noted = recording.jobs[0].submit, recording.noted
    begin = noted.calculated or first
    place = {job.name: row for row, job in enumerate(recording.jobs)}
    rows = [
        _row(job, _on_clock(job.submit, begin), run_s=took, after=tuple(place[name] for name in job.after))
        for job, took in zip(recording.jobs, _took(recording), strict=True)
    ]
    if noted.calculated:  # periods of priorities begin with a first job, of nobody
        rows = [replace(row, after=tuple(other + 1 for other in row.after)) for row in rows]
        rows.insert(0, Row(0.0, 1.0, 1.0, "batch", 1, user="root", account="root"))
    closed = [(_on_clock(start, begin), _on_clock(end, begin), *rest) for start, end, *rest in noted.closed]
    down = [(node, _on_clock(start, begin), _on_clock(end, begin)) for node, start, end in noted.down]
    site = {**recording.site, "closed": closed}
    settings = recording.settings | settings | {"events": True}
    ticks = Ticks.of(recording)
    if ticks and seed is not None:
        ticks = ticks.drawn(seed)

    def set_clocks(state: State) -> None:
        state.clock_origin = _on_clock(60 * (floor(begin / 60) - 1), begin)
        if ticks:
            ticks.set_in(state, first - begin)

    with begun_with(set_clocks):
        run = simulated(folder, rows, partitions_of(site), site, tiers_of(site), down, seed=seed or 0, **settings)
    assert run.events is not None
    found = {row[2]: (row[0] + begin - first, tuple(row[4])) for row in run.events.rows() if row[1] == "start"}
    before = len(rows) - len(recording.jobs)
    return {job.name: found[before + row] for row, job in enumerate(recording.jobs)}


def _took(recording: Recording) -> Iterator[float]:
    """For how long each job runs: as it did, or, if it was cancelled, as long as it sleeps."""
    for job in recording.jobs:
        ran = job.end - job.start - sum(until - since for since, until in job.halts)
        yield ran if ran > job.run_s - PLAYING_S else job.run_s


@contextmanager
def begun_with(change: Callable[[State], None]) -> Iterator[None]:
    """Change the state with which runs begin."""

    def build(*args, **kwargs) -> State:
        state = build_state(*args, **kwargs)
        change(state)
        return state

    with mock.patch("faultsweep.simcore.simulate.build_state", build):
        yield


def partitions_of(site: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The nodes of each partition."""
    rows = site.get("partitions", ())
    return {row["name"]: tuple(range(row["first"], row["last"] + 1)) for row in rows} or dict(PARTITIONS)


def tiers_of(site: Mapping[str, Any]) -> dict[str, int]:
    """The tiers of the partitions that have some."""
    return {row["name"]: row["priority_tier"] for row in site.get("partitions", ())}


@dataclass(frozen=True)
class Pass:
    """A pass that did something: when, of which kind, which jobs it started, on which nodes, and which it had leave."""

    time: float
    kind: str
    starts: frozenset[str]
    leave: frozenset[str] = frozenset()
    hosts: Mapping[str, frozenset[int]] = field(default_factory=dict)


def passes_of(recording: Recording) -> list[Pass]:
    """The passes that started jobs or had some leave, by the time of the first of them."""
    did = [(stay.start, stay.by, {stay.name: frozenset(stay.hosts)}, set()) for stay in recording.stays]
    did += [(each.time, each.by, {}, set(each.victims)) for each in recording.noted.preempted]
    found: list[tuple[float, str, dict[str, frozenset[int]], set[str]]] = []
    last = -np.inf
    for time, by, hosts, leave in sorted(did, key=lambda each: each[0]):
        within = BEFORE_THEY_LEAVE_S if found and found[-1][3] else OF_ONE_PASS_S
        if found and found[-1][1] == by and time - last < within:
            found[-1][2].update(hosts)
            found[-1][3].update(leave)
        else:
            found.append((time, by, hosts, leave))
        last = time
    return [Pass(time, by, frozenset(hosts), frozenset(leave), hosts) for time, by, hosts, leave in found]


def decided(folder: Path, recording: Recording, time: float, kind: str, late: float = 0.0) -> Pass | None:
    """What one pass of ours does (``_decided``), kept for the next test that asks the same."""
    asked = (time, kind, late)
    if asked not in recording.decisions:
        recording.decisions[asked] = _decided(folder, recording, time, kind, late)
    return recording.decisions[asked]


def _decided(folder: Path, recording: Recording, time: float, kind: str, late: float) -> Pass | None:
    """What one pass of ours does with the running and waiting jobs as they were, without those that wait for the end of
    others.

    The running jobs come before, each in a partition of the nodes that it held. SLURM counts time in whole seconds, and
    half minutes since 1970, so the clock begins at a whole minute.

    late : jobs that ended so long before or less had not ended yet, or, below 0, those had that end so soon; None if
        others run in their place.
    """
    recorded = _gone_when_told(recording, time)
    stays = [_changed(stay, time, late) for stay in recorded]
    places = recording.places
    running = sorted((stay for stay in stays if stay.start < time < stay.end), key=lambda stay: places[stay.name])
    history = _history(stays, time) if recording.settings.get("preemption") == "suspend" else []
    if history:
        running = [stay for stay, _, _ in history]
    over = {stay.name for stay in stays if stay.end <= time}
    gone = over - {stay.name for stay in stays if stay.end > time}
    waiting = [stay for stay in stays if stay.submit < time <= stay.start and gone.issuperset(stay.after)]
    now, said = floor(time), _priorities_at(recording, time)
    begin = (now // 60 - 1) * 60
    told, grace_s = _told(recording, time), _grace_of(recording)
    rows = [Row(0.0, 1.0, 1.0, "gpu", 1)]  # so that the clock begins there
    for place, job in enumerate(running):
        since = history[place][1] if history else (len(running) - place) / 64
        ran = now - floor(job.start) - _halted_s(job, time)
        left, own = job.limit_s - ran + since, {}
        if job.end <= time:
            left = history[place][2]
        elif job.name in told:
            left = min(left, max(floor(told[job.name]) + grace_s - now, 1.0) + since)
        elif ran < recording.settings.get("preempt_exempt_s", 0.0):
            own = {"qos": ""}
        own |= {"run_s": left, "limit_s": left, "partition": _of_nodes(job), "priority": 100_000}
        rows.append(_row(job, now - begin - since, **own))
    rows += [_row(job, now - begin, run_s=job.limit_s, priority=said.get(job.name, job.priority)) for job in waiting]
    if history:  # which partition a job is of matters, whatever nodes it is kept to
        recording, kept = _with_qos(recording), [replace(rows[0], qos="gpu")]
        rows = kept + [replace(row, qos=job.partition) for row, job in zip(rows[1:], running + waiting, strict=True)]
    wait_s = recording.settings.get("preempt_wait_s", 0.0)
    since_s = {each.job: each.time for each in reversed(recording.noted.preempted)} | dict(recording.noted.waits)
    again = {
        row: floor(since_s[job.name]) + wait_s - begin
        for row, job in enumerate(waiting, 1 + len(running))
        if since_s.get(job.name, time) < time
    }
    with begun_with(partial(_begin_pass, kinds=_kinds(recording.settings, kind), again=again)):
        run = _one_pass(folder, recording, rows, running, (time, begin), kind)
    assert run.events is not None
    rows_then = [row for row in run.events.rows() if row[0] <= now - begin]
    begun = {row[2] - 1 for row in rows_then if row[1] == "start"}
    if not begun.issuperset(range(len(running))):
        return None
    names = [job.name for job in (*running, *waiting)]
    gone_at = (now - begin, now - begin + (grace_s or LEAVES_S))
    left = [row[2] - 1 for row in run.events.rows() if row[0] in gone_at and row[1] in ("preempt", "suspend")]
    hosts = {names[row[2] - 1]: frozenset(row[4]) for row in rows_then if row[1] == "start" and row[2] > len(running)}
    return Pass(time, kind, frozenset(hosts), frozenset(names[place] for place in left) - set(told), hosts)


def _kinds(settings: Mapping[str, Any], kind: str) -> list[int]:
    """The numbers of a kind of pass that is main or backfill."""
    is_full = settings["full_interval_s"] <= settings["main_interval_s"]
    return [BACKFILL_PASS] if kind == "backfill" else [MAIN_PASS, FULL_PASS][: 1 + is_full]


def _begin_pass(state: State, kinds: list[int], again: Mapping[int, float]) -> None:
    """Begin with ticks of some kinds of passes that are 1/64 s apart, and with jobs that have had others leave, and may
    do so again from some times on."""
    state.tick_interval[kinds], state.first_tick[kinds] = 1 / 64, 0.0
    for row, time in again.items():
        state.job.preempts_from[row] = time


def _grace_of(recording: Recording) -> float:
    """The one grace time of the QOS that jobs have."""
    return max((qos.get("grace_s", 0.0) for qos in recording.site.get("qos", ())), default=0.0)


def _told(recording: Recording, time: float) -> dict[str, float]:
    """The jobs that were told to leave before a time, and when, if they have a grace time."""
    if not _grace_of(recording):
        return {}
    last = {name: each.time for each in recording.noted.preempted if each.time < time for name in each.victims}
    running = [stay for stay in recording.stays if stay.start < time < stay.end and stay.name in last]
    return {stay.name: last[stay.name] for stay in running if stay.start < last[stay.name]}


def _history(stays: list[Played], time: float) -> list[tuple[Played, float, float]]:
    """The stays that have begun before a time, one after another 1/64 s apart, so that each gets the cores that it had:
    each with how long before that time it begins, and for how long it runs, if it is over."""
    begun = sorted((stay for stay in stays if stay.start < time), key=lambda stay: stay.start)
    events = sorted({at for stay in begun for at in (stay.start, stay.end) if at < time})

    def before(at: float) -> float:
        if at >= time:
            return 0.0
        nearest = min(events, key=lambda event: abs(event - at))  # for which a job was suspended, or resumed
        return (len(events) - events.index(nearest)) / 64

    found = []
    for stay in begun:
        stood = sum(before(since) - before(until) for since, until in stay.halts if since < time)
        found.append((stay, before(stay.start), before(stay.start) - before(stay.end) - stood))
    return found


def _with_qos(recording: Recording) -> Recording:
    """The same with a QOS for each partition, by which jobs preempt others."""
    tiers = tiers_of(recording.site)
    qos = [
        {"name": name, "priority": tier, "preempts": [other for other, below in tiers.items() if below < tier]}
        for name, tier in tiers.items()
    ]
    return replace(recording, site={**recording.site, "preempt_by": "qos", "qos": qos})


def _gone_when_told(recording: Recording, time: float) -> Sequence[Played]:
    """The stays, those over that were told before a time to leave, which they do a little later."""
    stays = recording.stays
    if any(stay.halts for stay in stays) or _grace_of(recording):
        return stays
    told = [(each.time, name) for each in recording.noted.preempted if each.time < time for name in each.victims]
    leave: dict[str, list[float]] = defaultdict(list)
    for at, name in told:
        leave[name].append(at)

    def gone(stay: Played) -> Played:
        end = min((at for at in leave.get(stay.name, ()) if at > stay.start), default=stay.end)
        return replace(stay, end=end) if end < stay.end else stay

    return [gone(stay) for stay in stays]


def _changed(stay: Played, time: float, late: float) -> Played:
    """A stay that ended just before a time or after it, as if it had not, or had."""
    if late < 0.0:
        return replace(stay, end=time) if time < stay.end <= time - late else stay
    return replace(stay, end=time + late) if time - late < stay.end <= time else stay


def _of_nodes(job: Played) -> str:
    """A partition of the nodes that a job held, of the tier of its own."""
    return f"r{job.partition}-" + "-".join(map(str, job.hosts))


def _one_pass(folder, recording, rows, running, times: tuple[float, float], kind: str) -> Run:
    """A run of rows whose first pass of a kind is that of a time."""
    (time, begin), site = times, recording.site
    down = {node for node, since, until in recording.noted.down if since < time <= until}
    held = {_of_nodes(job): job.hosts for job in running}
    partitions = {name: tuple(set(nodes) - down) for name, nodes in partitions_of(site).items()} | held
    tiers = tiers_of(site) | {_of_nodes(job): tiers_of(site).get(job.partition, 1) for job in running}
    closed = [
        (max(0.0, floor(start) - begin), floor(end) - begin, *rest)
        for start, end, *rest in recording.noted.closed
        if end > begin
    ]
    settings = recording.settings
    ticks = dict.fromkeys(TICKS, 1e9)
    alone = {"priority_share_weight": 0.0, "priority_age_weight": 0.0, "priority_qos_weight": 0.0}
    settings = settings | ticks | alone
    if settings.get("preemption", "suspend") != "suspend":  # jobs that are to leave do so behind the pass
        settings |= {"preempt_exempt_s": 0.0, "preempt_leave_s": LEAVES_S, "grace_interval_s": 0.0}
    site = {**site, "closed": closed}
    return simulated(folder, rows, partitions, site, tiers, events=True, **settings)


def _halted_s(job: Played, time: float) -> float:
    """For how long a job had been suspended when it was last resumed: by so much its expected end is later."""
    return sum(until - since for since, until in job.halts if until < time)


def _priorities_at(recording: Recording, time: float) -> dict[str, int]:
    """The printed priorities of jobs at a time."""
    found: dict[str, int] = {}
    for at, changed in recording.noted.priorities:
        if at < time:
            found |= changed
    return found


@dataclass(frozen=True)
class Difference:
    """A pass that does something else than ours."""

    time: float
    theirs: Pass
    ours: Pass

    @property
    def jobs(self) -> int:
        """How many jobs only one of the two starts or has leave."""
        return _apart(self.theirs, self.ours)


def _apart(theirs: Pass, ours: Pass) -> int:
    return len(theirs.leave ^ ours.leave) + len(theirs.starts ^ ours.starts)


def differences(folder: Path, recording: Recording, unseen: bool = False) -> list[Difference]:
    """The passes in which ours does something else.

    unseen : of what SLURM may have seen of the jobs that ended just before, none of the last or all, take what is
        nearest: the log has the time of a start, and the pass had begun before.
    """
    found = []
    for theirs in passes_of(recording):
        mine = decided(folder, recording, theirs.time, theirs.kind)
        mine = mine or decided(folder, recording, theirs.time, theirs.kind, -OF_ONE_PASS_S)
        if mine is None:
            continue
        if unseen and _apart(theirs, mine):
            others = (decided(folder, recording, theirs.time, theirs.kind, late) for late in LATE_S)
            mine = min((mine, *filter(None, others)), key=lambda each: _apart(theirs, each))
        if _apart(theirs, mine):
            found.append(Difference(theirs.time - recording.jobs[0].submit, theirs, mine))
    return found


SOON_S = (1.0, -1.0, 2.0, -2.0, -4.0)
"""By how much later or earlier a pass may have known the priorities that the recorder found."""
WITHIN_S = (0.1, -0.1, 0.5, -0.5, 1.0, -1.0)
"""By how much later or earlier jobs may have ended for a pass."""


def cause_of(folder: Path, recording: Recording, difference: Difference) -> str:
    """Name a difference by what makes it smaller: priorities of a moment before or after, the end of a job or the begin
    of the pass within a second, or no limits. Else it is who leaves (node choice), or a plan for a job in front."""
    theirs, run = difference.theirs, recording

    def explains(run: Recording, time: float = theirs.time, late: float = 0.0) -> bool:
        mine = decided(folder, run, time, theirs.kind, late)
        return mine is not None and _apart(theirs, mine) < difference.jobs

    then = [_priorities_at(run, theirs.time + soon) for soon in SOON_S]
    others = [replace(run, noted=replace(run.noted, priorities=((0.0, each),))) for each in then if each]
    if any(map(explains, others)):
        return "priority"
    if any(explains(run, late=late) or explains(run, time=theirs.time + late) for late in WITHIN_S):
        return "pass"
    off = {name: none for name, none in (("site_limits", False), ("array_max_jobs", 0)) if name in run.settings}
    if off and explains(replace(run, settings={**run.settings, **off})):
        return "limit"
    return "node choice" if theirs.starts == difference.ours.starts else "plan"
