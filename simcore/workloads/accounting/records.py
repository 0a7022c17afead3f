"""The extended workload: what accounting knows of each job, one row a job, and how it becomes jobs to simulate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.dependencies import Dependencies
from faultsweep.simcore.model.workload import LABELS, NUMBERS, Demand, Label, Workload
from faultsweep.simcore.workloads.accounting.dependencies import pairs_of
from numpy.typing import NDArray

from faultsweep.errors import InputError

Numbers = NDArray[np.float64]


class Column(NamedTuple):
    """A column of the extended workload: ``kind`` is time, seconds, whole, number, signed or text."""

    kind: str
    doc: str


COLUMNS: dict[str, Column] = {
    "job": Column("text", "the name of the job in its accounting, such as 1234, 1234_7 (a task of an array) or 1234+0"),
    "submit_s": Column("time", "first submission"),
    "eligible_s": Column("time", "when it could first have started, after its holds, dependencies and begin time"),
    "start_s": Column("time", "start of the last run"),
    "end_s": Column("time", "end of the last run"),
    "first_start_s": Column("time", "start of the first run, for a job that was restarted"),
    "cancel_s": Column("time", "when a job was cancelled that never started"),
    "nodes": Column("whole", "nodes allocated; of a job that never started, requested"),
    "cores": Column("whole", "cores (SLURM: CPUs) allocated or requested, of the whole job"),
    "gpus": Column("whole", "GPUs allocated or requested, of the whole job"),
    "memory_mb": Column("number", "memory allocated or requested, of the whole job, MiB"),
    "requested_s": Column("seconds", "time limit; infinite where there is none"),
    "run_s": Column("seconds", "run time of the last run, without the time in which it was suspended"),
    "lost_s": Column("seconds", "run time of the runs before the last"),
    "restarts": Column("whole", "runs before the last"),
    "user": Column("text", "who submitted it"),
    "account": Column("text", "account, project or group that pays"),
    "partition": Column("text", "partition or queue"),
    "qos": Column("text", "quality of service"),
    "reservation": Column("text", "advance reservation that it ran in"),
    "dependency": Column("text", "dependency, as the accounting writes it"),
    "priority": Column("number", "priority, as the accounting last knew it"),
    "nice": Column("signed", "nice value, by which its user lowers its priority"),
    "site_factor": Column("signed", "site factor, by which a site raises its priority"),
    "state": Column("text", "how it ended: one of STATES"),
    "exit_code": Column("whole", "exit code of the batch script"),
    "exit_signal": Column("whole", "signal that ended it, 0 for none"),
    "node_list": Column("text", "names of its nodes, as a host list such as n[1-3]"),
}
"""The columns by name, in order. Times are seconds since 1970 UTC, or on the clock of a log that has no date."""

STATES = (
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "node_fail",
    "preempted",
    "out_of_memory",
    "boot_fail",
    "deadline",
    "requeued",
    "running",
    "suspended",
    "pending",
)
"""How a job ended, or where it is."""


class Text(NamedTuple):
    """A column of text: ``codes`` index ``names``, -1 is missing."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]

    def values(self) -> list[str | None]:
        """Return the text of each row, None where it is missing."""
        names: tuple[str | None, ...] = (*self.names, None)
        return [names[code] for code in self.codes.tolist()]


MISSING_TEXT = frozenset(("", "None assigned", "(null)", "None", "none", "N/A", "n/a", "Unknown"))


def to_text(values: Iterable[str | None]) -> Text:
    """Return a column of text; empty values and those of MISSING_TEXT are missing."""
    places: dict[str, int] = {}
    codes = [
        -1 if value is None or value in MISSING_TEXT else places.setdefault(value, len(places)) for value in values
    ]
    return Text(np.array(codes, np.int32), tuple(places))


def compact(text: Text) -> Text:
    """Return a column of text whose names all stand in a row, in the order in which they first do."""
    used, first = np.unique(text.codes[text.codes >= 0], return_index=True)
    used = used[np.argsort(first)]
    lookup = np.full(len(text.names) + 1, -1, np.int32)
    lookup[used] = np.arange(len(used))
    return Text(lookup[text.codes], tuple(text.names[code] for code in used.tolist()))


def take_column(column: Any, rows: Any) -> Any:
    """Return some rows of a column."""
    return Text(column.codes[rows], column.names) if isinstance(column, Text) else column[rows]


TAKEN_AS_UTC = "times, taken as UTC (--timezone names the zone of the machine)"
"""What is guessed of times that name no zone, when none is given."""


@dataclass
class Report:
    """What a reader did with the rows of a dump.

    Attributes
    ----------
    rows : rows (or records, or lines) of the files.
    left_out : rows that are no jobs of the result, by reason.
    joined : rows that became a part of another row's job, by reason.
    added : jobs beyond one for each row, by reason.
    guessed : jobs of which something was assumed, by what.
    """

    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    joined: Counter[str] = field(default_factory=Counter)
    added: Counter[str] = field(default_factory=Counter)
    guessed: Counter[str] = field(default_factory=Counter)

    def parts(self) -> Iterable[tuple[str, Counter[str]]]:
        """Yield the counters that have counts, with a heading for each."""
        for name, title in (
            ("left_out", "left out"),
            ("joined", "joined to another row"),
            ("added", "added"),
            ("guessed", "guessed"),
        ):
            counts = Counter({reason: count for reason, count in getattr(self, name).items() if count})
            if counts:
                yield title, counts


@dataclass(frozen=True)
class JobRecords:
    """The jobs of an accounting dump, in order of submission.

    Attributes
    ----------
    columns : by name of COLUMNS, those that the dump has: float64 of shape (jobs,), NaN where a value is missing, or
        Text. A column that the dump lacks is not there.
    name : what the dump is called.
    kind : its format, a name of FORMATS.
    timezone : the zone that local times were read in, "" where the dump has times in UTC or a clock of its own.
    nodes : nodes of the machine: stated, or the different nodes in its node lists; 0 when unknown.
    report : what was read, left out and guessed.
    content_hash : "sha256:..." of the files and of the options that they were read with.
    """

    columns: Mapping[str, Any]
    name: str
    kind: str
    timezone: str = ""
    nodes: int = 0
    header: tuple[str, ...] = ()
    report: Report = field(default_factory=Report)
    content_hash: str = ""

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.columns["submit_s"])

    def numbers(self, name: str) -> Numbers:
        """Return a column of numbers, NaN in all rows if the dump lacks it."""
        found = self.columns.get(name)
        return np.full(len(self), np.nan) if found is None else found

    def text(self, name: str) -> Text:
        """Return a column of text, missing in all rows if the dump lacks it."""
        found = self.columns.get(name)
        return Text(np.full(len(self), -1, np.int32), ()) if found is None else found

    def take(self, rows: Any, **changes: Any) -> JobRecords:
        """Return the jobs of ``rows`` (a slice, indices or a mask), with further fields changed."""
        columns = {name: take_column(column, rows) for name, column in self.columns.items()}
        return replace(self, columns=columns, **changes)

    def from_eligible(self) -> tuple[JobRecords, int]:
        """Return the jobs as if they had been submitted when they became eligible, and of how many that is later.

        Before, a hold, a begin time or a dependency kept a job from starting, and no scheduler could have.
        """
        submit, eligible = self.columns["submit_s"], self.numbers("eligible_s")
        starts = np.fmin(self.numbers("first_start_s"), self.numbers("start_s"))
        since = np.fmax(submit, np.fmin(eligible, np.where(np.isnan(starts), np.inf, starts)))
        since = np.where(np.isnan(eligible), submit, since)
        order = np.argsort(since, kind="stable")
        moved = replace(self, columns={**self.columns, "submit_s": since}).take(order)
        return moved, int((since > submit).sum())

    def dependencies(self) -> Dependencies | None:
        """Return which jobs wait for others; None where none is known to."""
        if "dependency" not in self.columns:
            return None
        return pairs_of(self.text("job").values(), self.text("dependency").values())

    def has_state(self, *states: str) -> NDArray[np.bool_]:
        """Return which jobs are in one of these states."""
        state = self.text("state")
        wanted = [code for code, name in enumerate(state.names) if name in states]
        return np.isin(state.codes, wanted)


def concat(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows of several tables as one; a column that a table lacks is missing in its rows."""
    names = [name for name in COLUMNS if any(name in chunk for chunk in chunks)]
    sizes = [len(chunk["submit_s"]) for chunk in chunks]
    return {name: _concat_column(name, chunks, sizes) for name in names}


def _concat_column(name: str, chunks: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> Any:
    if COLUMNS[name].kind != "text":
        parts = [chunk.get(name, np.full(size, np.nan)) for chunk, size in zip(chunks, sizes, strict=True)]
        return np.concatenate(parts)
    places: dict[str, int] = {}
    codes = []
    for chunk, size in zip(chunks, sizes, strict=True):
        text = chunk.get(name, Text(np.full(size, -1, np.int32), ()))
        lookup = np.array([*(places.setdefault(value, len(places)) for value in text.names), -1], np.int32)
        codes.append(lookup[text.codes])
    return Text(np.concatenate(codes), tuple(places))


SIZES = ("nodes", "cores", "gpus")
"""What the size of a simulated job counts."""

LEFT_OUT: dict[str, Callable[[JobRecords, Numbers], Any]] = {
    "pending: not started yet": lambda jobs, _: jobs.has_state("pending"),
    "running: not ended yet": lambda jobs, _: jobs.has_state("running", "suspended", "requeued"),
    "cancelled before it started": lambda jobs, _: np.isnan(jobs.numbers("run_s")) & jobs.has_state("cancelled"),
    "run time missing": lambda jobs, _: np.isnan(jobs.numbers("run_s")),
    "run time of 0 s": lambda jobs, _: jobs.numbers("run_s") <= 0,
    "size missing": lambda _, size: ~(size >= 1),
}
"""Why a job cannot be simulated; it counts under the first reason that holds."""


def to_workload(jobs: JobRecords, size: str = "nodes") -> Workload:
    """Return the jobs that can be simulated, on a clock that starts with the first submission.

    Job numbers count the jobs of the records from 1, in order of submission. The requested time of a job without a time
    limit is the largest of the dump.

    Raises
    ------
    InputError
        If no job can be simulated.
    """
    sizes = jobs.numbers(size)
    valid = np.ones(len(jobs), bool)
    dropped: dict[str, int] = {}
    for reason, rule in LEFT_OUT.items():
        here = valid & rule(jobs, sizes)
        if here.any():
            dropped[reason] = int(here.sum())
        valid &= ~here
    if not valid.any():
        why = "; ".join(f"{count} x {reason}" for reason, count in dropped.items())
        raise InputError(f"{jobs.name}: the dump has no job that can be simulated ({why or 'it has no job'})")
    kept = jobs.take(valid)
    origin = float(jobs.columns["submit_s"][0])
    machine = jobs.nodes if size == "nodes" else 0
    return Workload(
        job_id=np.flatnonzero(valid).astype(np.int64) + 1,
        submit_s=kept.columns["submit_s"] - origin,
        run_s=kept.columns["run_s"].copy(),
        requested_s=finite_requests(kept),
        size=sizes[valid].astype(np.int64),
        user=kept.text("user").codes.astype(np.int64),
        name=jobs.name,
        nodes=machine,
        header=jobs.header,
        dropped=dropped,
        content_hash=jobs.content_hash,
        epoch_s=origin,
        demand=demand_of(kept),
        labels=_labels(kept),
        user_names=kept.text("user").names,
        dependencies=kept.dependencies(),
        timezone=jobs.timezone,
        notes=notes_of(jobs),
    )


def notes_of(jobs: JobRecords) -> dict[str, str]:
    """Return what the reader of a dump left out or guessed, a sentence by what it is about."""
    report, found = jobs.report, {}
    for about, what, counts in (
        ("left_out", "left out when it was read", report.left_out),
        ("guessed", "guessed when it was read", report.guessed),
    ):
        parts = [f"{count:,} x {reason}" for reason, count in counts.items() if count and reason != TAKEN_AS_UTC]
        if parts:
            found[about] = f"{what}: {'; '.join(parts)}"
    if local := report.guessed[TAKEN_AS_UTC]:
        how = "logs import --timezone" if jobs.kind == "jobs" else "timezone = Europe/Berlin, for example,"
        jobs_are = f"the times of {local:,} job{'' if local == 1 else 's'} of the file name"
        found["timezone"] = f"{jobs_are} no zone, and are taken as UTC ({how} reads them in that of the machine)"
    return found


def _labels(jobs: JobRecords) -> dict[str, Label]:
    """Return what the jobs belong to, as far as some of them say it."""
    found = {name: compact(jobs.text(name)) for name in LABELS if name not in ("array", *NUMBERS)}
    found |= {"array": arrays_of(jobs)}
    for name in NUMBERS:
        found[name] = to_text(None if value != value else f"{value:.12g}" for value in jobs.numbers(name).tolist())
    return {name: Label(text.codes.astype(np.int64), text.names) for name, text in found.items() if text.names}


_TASK = re.compile(r"(\d+)(?:_\d+|\[\d+\](?:\..*)?)")
"""A task of an array, such as 1234_7 (SLURM, LSF) or 1234[7].server (PBS)."""


def arrays_of(jobs: JobRecords) -> Text:
    """Return the array of each job, by its name without the number of the task; missing for one that is in none."""
    names = jobs.text("job")
    tasks = [_TASK.fullmatch(name) for name in names.names]
    arrays = to_text(task and task[1] for task in tasks)
    return compact(Text(np.append(arrays.codes, np.int32(-1))[names.codes], arrays.names))


def demand_of(jobs: JobRecords) -> Demand | None:
    """Return what jobs need of the nodes of a site; None if the dump does not tell it of all of them.

    A job whose cores divide by its nodes needs so many on each of as many nodes; another one its cores, or as many for
    each GPU, of any nodes. GPUs and memory are shared out alike, rounded up.
    """
    nodes, gpus, memory = (np.nan_to_num(jobs.numbers(name)) for name in ("nodes", "gpus", "memory_mb"))
    cores = jobs.numbers("cores") if "cores" in jobs.columns else nodes
    if not (cores >= 1).all():
        return None
    by_node = (nodes >= 1) & (cores % np.maximum(nodes, 1) == 0)
    by_gpu = ~by_node & (gpus >= 1) & (cores % np.maximum(gpus, 1) == 0)
    chunks = np.where(by_node, nodes, np.where(by_gpu, gpus, cores))
    partition = jobs.text("partition")

    def whole(values: Numbers) -> NDArray[np.int64]:
        return values.astype(np.int64)

    return Demand(
        chunks=whole(chunks),
        cores=whole(cores / chunks),
        gpus=whole(np.ceil(gpus / chunks)),
        memory_mb=whole(np.ceil(memory / chunks)),
        per_node=whole(1.0 * by_node),
        whole=np.full(len(jobs), int("cores" not in jobs.columns)),
        partition=partition.codes.astype(np.int64),
        partitions=partition.names,
    )


def finite_requests(jobs: JobRecords) -> Numbers:
    """Return requested times in seconds: NaN where missing, the largest of all where a job has no limit."""
    requested = jobs.numbers("requested_s").copy()
    endless = np.isinf(requested)
    if endless.any():
        known = np.concatenate((requested[np.isfinite(requested)], jobs.numbers("run_s")))
        requested[endless] = np.nanmax(known) if np.isfinite(known).any() else np.nan
    return np.where(requested > 0, requested, np.nan)
