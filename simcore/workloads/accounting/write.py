"""Writing the extended workload: in the Standard Workload Format, or as Parquet with all its columns."""

from __future__ import annotations

import gzip
import lzma
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from faultsweep.simcore.workloads.accounting.parquet import write_parquet
from faultsweep.simcore.workloads.accounting.records import JobRecords, Text, finite_requests
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.files import writing

SUFFIXES = (".swf", ".swf.gz", ".swf.xz", ".parquet")
_STATUS = {"completed": 1, "cancelled": 5}


def check_output(path: Path) -> None:
    """Raise InputError unless the name ends as one of an output."""
    if not path.name.endswith(SUFFIXES):
        raise InputError(f"{path}: jobs are written as {', '.join(SUFFIXES)}")


def write_records(jobs: JobRecords, path: str | Path, size: str = "nodes") -> None:
    """Write jobs as .swf, .swf.gz, .swf.xz or .parquet; the same jobs give the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written, or its name has another ending.
    """
    path = Path(path)
    check_output(path)
    if path.suffix == ".parquet":
        write_parquet(jobs, path)
        return
    content = swf_text(jobs, size).encode()
    with writing(path):
        if path.suffix == ".gz":
            content = gzip.compress(content, mtime=0)
        elif path.suffix == ".xz":
            content = lzma.compress(content)
        path.write_bytes(content)


def swf_text(jobs: JobRecords, size: str = "nodes") -> str:
    """Return jobs in the Standard Workload Format: numbers for users, accounts, queues (QOS) and partitions.

    Sizes are nodes, or cores. Times count from the first submission. Jobs that have not ended are written with what is
    known of them, so that a reader counts them. Of several jobs that one waits for, the last is written.
    """
    origin = float(jobs.columns["submit_s"][0]) if len(jobs) else 0.0
    submit = jobs.columns["submit_s"] - origin
    started = jobs.numbers("start_s") - origin
    until = np.where(np.isnan(started), jobs.numbers("cancel_s") - origin, started)
    sizes = jobs.numbers(size)
    memory = jobs.numbers("memory_mb") * 1024 / sizes
    state = jobs.text("state")
    status = np.array([*(_STATUS.get(name, 0) for name in state.names), -1])[state.codes]
    unfinished = jobs.has_state("pending", "running", "suspended", "requeued")
    texts = {name: jobs.text(name) for name in ("user", "account", "qos", "partition")}
    numbers = {name: np.where(text.codes < 0, -1, text.codes + 1) for name, text in texts.items()}
    preceding, think_s = np.full((2, len(jobs)), -1.0)
    pairs = jobs.dependencies()
    if pairs is not None:
        preceding[pairs.job], think_s[pairs.job] = pairs.after + 1, pairs.think_s
    fields = (
        np.arange(1, len(jobs) + 1),
        submit,
        until - submit,
        jobs.numbers("run_s"),
        sizes,
        np.full(len(jobs), -1),
        np.full(len(jobs), -1),
        sizes,
        finite_requests(jobs),
        np.round(memory),
        np.where(unfinished, -1, status),
        numbers["user"],
        numbers["account"],
        np.full(len(jobs), -1),
        numbers["qos"],
        numbers["partition"],
        preceding,
        think_s,
    )
    rows = zip(*(_texts(np.asarray(field, np.float64)) for field in fields), strict=True)
    return "\n".join([*_header(jobs, origin, size, texts), *map(" ".join, rows)]) + "\n"


def _texts(values: NDArray[np.float64]) -> list[str]:
    values = np.where(np.isnan(values), -1.0, values)
    if (values == np.floor(values)).all():
        return [str(value) for value in values.astype(np.int64).tolist()]
    return [str(int(value)) if value == int(value) else repr(value) for value in values.tolist()]


def _header(jobs: JobRecords, origin: float, size: str, texts: dict[str, Text]) -> list[str]:
    lines = ["; Version: 2.2", f"; Note: jobs of {jobs.name}, read from {jobs.kind}; sizes are {size}"]
    if origin > 0:
        lines.append(f"; UnixStartTime: {origin:.0f}")
        lines.append("; TimeZoneString: UTC")
        lines.append(f"; StartTime: {datetime.fromtimestamp(int(origin), UTC):%a %b %d %H:%M:%S UTC %Y}")
    if jobs.nodes and size == "nodes":
        lines += [f"; MaxNodes: {jobs.nodes}", f"; MaxProcs: {jobs.nodes}"]
    lines.append(f"; MaxJobs: {len(jobs)}")
    for label, name in (("Queue", "qos"), ("Partition", "partition")):
        lines += [f"; {label}: {number} {value}" for number, value in enumerate(texts[name].names, start=1)]
    kept = [line for line in jobs.header if not line.lstrip("; ").startswith(_OWN)]
    return [line.replace("\n", " ") for line in [*lines, *kept]]


_OWN = (
    "Version",
    "UnixStartTime",
    "TimeZoneString",
    "StartTime",
    "MaxNodes",
    "MaxProcs",
    "MaxJobs",
    "Queue",
    "Partition",
)
