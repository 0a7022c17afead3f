"""The jobs of a run, as arrays: what every log reader and every workload model produces."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.dependencies import Dependencies, check_dependencies
from faultsweep.simcore.model.dtypes import as_dtype
from numpy.typing import NDArray

from faultsweep.errors import InputError


@dataclass(frozen=True)
class Demand:
    """What jobs need of the nodes of a site: alike chunks, none of them on more than one node; int64 arrays (n,).

    Attributes
    ----------
    chunks : how many, >= 1.
    cores : of a chunk, >= 1.
    gpus, memory_mb : of a chunk, >= 0.
    per_node : the most chunks on one node; 0 is no limit.
    whole : 1 for a job that shares its nodes with no other one.
    partition : index into ``partitions``, -1 where unknown.
    partitions : their names.
    """

    chunks: NDArray[np.int64]
    cores: NDArray[np.int64]
    gpus: NDArray[np.int64]
    memory_mb: NDArray[np.int64]
    per_node: NDArray[np.int64]
    whole: NDArray[np.int64]
    partition: NDArray[np.int64]
    partitions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take arrays of other whole numbers."""
        for name in DEMANDED:
            object.__setattr__(self, name, as_dtype(getattr(self, name), np.int64))

    def take(self, rows: slice | NDArray[Any]) -> Demand:
        """Return what the jobs of ``rows`` need."""
        return replace(self, **{name: getattr(self, name)[rows] for name in DEMANDED})


class Label(NamedTuple):
    """What each job of a workload belongs to: ``codes`` (int64, shape (n,)) index ``names``, -1 where unknown."""

    codes: NDArray[np.int64]
    names: tuple[str, ...]


NUMBERS = ("nice", "site_factor")
"""The labels that are numbers."""
LABELS = ("account", "partition", "qos", "array", "reservation", *NUMBERS)
"""What jobs may belong to, beside their user: an array is jobs that were submitted as one, a reservation an advance
reservation."""


DEMANDED = ("chunks", "cores", "gpus", "memory_mb", "per_node", "whole", "partition")
"""The arrays of a Demand."""


def _as_label(label: Any) -> Any:
    codes = as_dtype(label.codes, np.int64) if isinstance(label, Label) else None
    return label if codes is None or codes is label.codes else label._replace(codes=codes)


_DTYPES: dict[str, type[np.int64 | np.float64]] = {
    **dict.fromkeys(("job_id", "size", "user", "home"), np.int64),
    **dict.fromkeys(("submit_s", "run_s", "requested_s"), np.float64),
}


@dataclass(frozen=True)
class Workload:
    """Jobs in order of submission; jobs submitted at one time keep the order of the log.

    All arrays have shape (n,). Times are seconds on the log's own clock, or, of jobs that are about to be simulated,
    seconds since their first submission (``origin_s``).

    Attributes
    ----------
    job_id : int64, the log's job number.
    submit_s : float64, non-decreasing.
    run_s : float64, > 0 (a job of 0 s is one that cannot be simulated).
    requested_s : float64, the user's estimate; NaN where the log has none.
    size : int64, processors or nodes as the log counts them, >= 1.
    user : int64, -1 where unknown.
    name : what the workload is called in tables and figures.
    nodes : nodes of the machine the log comes from; 0 when unknown.
    procs_per_node : processors in a node of that machine (sizes count processors).
    origin_s : time zero of ``submit_s`` on the log's clock: 0 as read, the first submission as simulated.
    log_span_s : of a model, time of the last submission of the whole log that it was calibrated to, s; 0 otherwise.
    header : comment lines of the log, kept for acknowledgement and for writing it again.
    dropped : how many jobs of the log cannot be simulated, by reason.
    content_hash : "sha256:..." of the uncompressed log or of the model's parameters (not its seed).
    epoch_s : time zero of the log's clock in seconds since 1970 UTC; 0 where the log has no date.
    home : int64, index of the cluster that each job is submitted to; None where the parameter ``split`` decides that.
    demand : what the jobs need of the nodes of a site; None where each needs its processors as cores of any nodes.
    labels : account, partition, QOS, array, reservation, nice value and site factor of each job, by name of LABELS;
        those that the log does not tell are not there.
    user_names : names of the users that ``user`` counts; empty where the log has numbers alone.
    dependencies : which jobs wait for the end of others; None where none is known to.
    timezone : the zone that times without one were read in; "" where the log has none of these.
    notes : what the reader left out or guessed, a sentence by what it is about.
    """

    job_id: NDArray[np.int64]
    submit_s: NDArray[np.float64]
    run_s: NDArray[np.float64]
    requested_s: NDArray[np.float64]
    size: NDArray[np.int64]
    user: NDArray[np.int64]
    name: str = "workload"
    nodes: int = 0
    procs_per_node: int = 1
    origin_s: float = 0.0
    log_span_s: float = 0.0
    header: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    content_hash: str = ""
    epoch_s: float = 0.0
    home: NDArray[np.int64] | None = None
    demand: Demand | None = None
    labels: Mapping[str, Label] = field(default_factory=dict)
    user_names: tuple[str, ...] = ()
    dependencies: Dependencies | None = None
    timezone: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take arrays of other whole numbers and floats."""
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, as_dtype(getattr(self, name), dtype))
        labels = (
            {name: _as_label(label) for name, label in self.labels.items()} if isinstance(self.labels, Mapping) else {}
        )
        if any(label is not self.labels[name] for name, label in labels.items()):
            object.__setattr__(self, "labels", labels)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.job_id)

    def __repr__(self) -> str:
        """Show what it is in one line, without its arrays; or why it is none."""
        try:
            check_workload(self)
        except InputError as error:
            return f"Workload({error})"
        span_s = float(self.submit_s[-1] - self.submit_s[0]) if len(self) else 0.0
        machine = f", from a machine of {self.nodes:,} nodes" if self.nodes else ""
        jobs = f"{len(self):,} job{'' if len(self) == 1 else 's'}"
        return f"Workload({self.name}: {jobs}, submitted in {span_s / 86400:.4g} days{machine})"


def check_is_workload(workload: Any) -> None:
    """Raise InputError for what is no Workload, such as the name of a log."""
    if not isinstance(workload, Workload):
        raise InputError(f"workload: expected a Workload (load_workload gives that of a log), got {workload!r:.60}")


def check_workload(workload: Workload) -> None:
    """Raise InputError, naming the job, unless the arrays are what a Workload has."""
    check_is_workload(workload)
    jobs = workload.job_id.shape[:1] if isinstance(workload.job_id, np.ndarray) else ()
    count = f"{jobs[0]} " if jobs else ""
    for name in ("job_id", "size", "user", *_TIMES):
        array = getattr(workload, name)
        if not isinstance(array, np.ndarray) or array.dtype != _DTYPES[name] or not jobs or array.shape != jobs:
            kind = "numbers" if name in _TIMES else "whole numbers"
            raise InputError(f"{workload.name}: {name}: expected an array of {count}{kind}, got {array!r:.60}")
    _check_others(workload)
    _refuse(workload, "submit_s", ~np.isfinite(workload.submit_s), "a finite time")
    _refuse(workload, "submit_s", np.diff(workload.submit_s, prepend=-np.inf) < 0, "jobs in order of submission")
    _refuse(workload, "run_s", ~((workload.run_s > 0) & np.isfinite(workload.run_s)), "more than 0 s")
    _refuse(workload, "requested_s", workload.requested_s <= 0, "more than 0 s, or NaN for none")
    _refuse(workload, "size", workload.size < 1, "1 or more")
    for name, label in workload.labels.items():
        if name not in LABELS or not _is_label(label, len(workload)):
            raise InputError(
                f"{workload.name}: labels: {name!r} is not one of {', '.join(LABELS)} with a code for each job, "
                "an index of its names or -1"
            )
    if workload.dependencies is not None:
        check_dependencies(workload.name, workload.dependencies, workload.job_id)


def _is_label(label: Any, count: int) -> bool:
    codes = label.codes if isinstance(label, Label) else None
    if not isinstance(codes, np.ndarray) or codes.dtype != np.int64 or codes.shape != (count,):
        return False
    return not count or -1 <= int(codes.min()) <= int(codes.max()) < len(label.names)


def _check_others(workload: Workload) -> None:
    """Raise InputError unless what is no array of every workload is what a Workload has."""
    for name, least in (("nodes", 0), ("procs_per_node", 1)):
        value = getattr(workload, name)
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(f"{workload.name}: {name}: expected a whole number of {least} or more, got {value!r:.60}")
    for name in ("origin_s", "log_span_s", "epoch_s"):
        value = getattr(workload, name)
        if not isinstance(value, int | float | np.number) or not -_LARGEST <= value <= _LARGEST:
            raise InputError(f"{workload.name}: {name}: expected a finite time, got {value!r:.60}")
    home, count = workload.home, len(workload)
    if home is not None and (not isinstance(home, np.ndarray) or home.dtype != np.int64 or home.shape != (count,)):
        raise InputError(f"{workload.name}: home: expected an array of {count} whole numbers, got {home!r:.60}")
    for name, kinds, words in _PARTS:
        part = getattr(workload, name)
        if not isinstance(part, kinds):
            raise InputError(f"{workload.name}: {name}: expected {words}, got {part!r:.60}")
    for name in DEMANDED if workload.demand is not None else ():
        array = getattr(workload.demand, name)
        if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.shape != (count,):
            raise InputError(
                f"{workload.name}: demand: {name}: expected an array of {count} whole numbers, got {array!r:.60}"
            )


_PARTS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("demand", (Demand, type(None)), "a Demand or None"),
    ("dependencies", (Dependencies, type(None)), "Dependencies or None"),
    ("labels", (Mapping,), "a Label by name"),
)
_TIMES = ("submit_s", "run_s", "requested_s")
_LARGEST = sys.float_info.max


def _refuse(workload: Workload, name: str, bad: NDArray[np.bool_], valid: str) -> None:
    if bad.any():
        job = int(np.argmax(bad))
        value = getattr(workload, name)[job]
        raise InputError(f"{workload.name}: job {workload.job_id[job]}: {name} is {value:.17g} (valid: {valid})")


def take(workload: Workload, rows: slice | NDArray[Any], **changes: Any) -> Workload:
    """Return the jobs of ``rows`` (a slice, indices or a mask), with further fields changed."""
    names = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
    home = None if workload.home is None else workload.home[rows]
    demand = None if workload.demand is None else workload.demand.take(rows)
    parts = {name: getattr(workload, name)[rows] for name in names}
    parts |= {"home": home, "demand": demand, "labels": take_labels(workload, rows)}
    if workload.dependencies is not None:
        parts["dependencies"] = workload.dependencies.taken(np.arange(len(workload))[rows])
    return replace(workload, **(parts | changes))


def take_labels(workload: Workload, rows: slice | NDArray[Any]) -> dict[str, Label]:
    """Return the labels of the jobs of ``rows``."""
    return {name: Label(label.codes[rows], label.names) for name, label in workload.labels.items()}
