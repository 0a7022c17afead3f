"""Reading and writing the Standard Workload Format (SWF) of the Parallel Workloads Archive.

A log is comment lines that start with ``;`` and one line of 18 numbers per job; -1 stands for what is not known.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from faultsweep.simcore.model.dependencies import Dependencies, dependencies_of
from faultsweep.simcore.model.workload import Label, Workload, check_workload
from faultsweep.simcore.workloads import parsed
from numpy.typing import NDArray

from faultsweep.arguments import PATH, TEXT, takes
from faultsweep.compression import OPENERS, read_content
from faultsweep.errors import InputError, unknown_name
from faultsweep.files import writing

NUM_FIELDS = 18
# Columns of the format that a Workload keeps, counted from 0.
JOB, SUBMIT, RUN, PROCS, REQUESTED_PROCS, REQUESTED_TIME, STATUS, USER = 0, 1, 3, 4, 7, 8, 10, 11
GROUP, QUEUE, PARTITION, PRECEDING, THINK = 12, 14, 15, 16, 17
STATUS_CANCELLED = 5
STATUS_PARTIAL = (2, 3, 4)  # a piece of a job that was checkpointed or swapped out; the job has a line of its own

_LARGEST = 2.0**53  # above it float64 no longer holds every whole number, so a number would not be what the log says
_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
# What a number took is not given back, so lines that are none fail at once.
_JOB_LINE = re.compile(rb"(?:(?>%b)\s++){%d}%b" % (_NUMBER.pattern, NUM_FIELDS - 1, _NUMBER.pattern))

# A log is parsed in blocks of lines: in bulk, or line by line where a block holds anything but whole lines of plain
# numbers. NumPy reads whole numbers fast, so two numbers stand for the end of a line and for a decimal point; blocks
# that hold these or larger ones are read line by line.
_BLOCK_BYTES = 1 << 17
_PLAIN = b" \n0123456789-."
_END, _POINT = 10**18, -(10**18)

MALFORMED = "malformed line"


@dataclass
class _Log:
    """What is read from a file before jobs are chosen from it: ``table`` has shape (lines, 18)."""

    path: Path
    skip: bool
    header: list[str] = field(default_factory=list)
    table: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, NUM_FIELDS)))
    line_numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    dropped: Counter[str] = field(default_factory=Counter)

    def fail(self, line: int, problem: str) -> NoReturn:
        raise InputError(f"{self.path}:{line}: {problem}")


def check_on_error(on_error: str) -> None:
    """Raise InputError unless it says what happens to malformed lines: "raise" or "skip"."""
    if on_error not in ("raise", "skip"):
        raise unknown_name("on_error", on_error, ("raise", "skip"))


@takes(path=PATH, on_error=TEXT)
def read_swf(path: str | Path, *, on_error: str = "raise") -> Workload:
    """Read a job log in the Standard Workload Format, plain or compressed by gzip or xz.

    Jobs that cannot be simulated are left out and counted by reason in ``dropped``: those without a run time (or of
    0 s), without a size, without a submit time, and the pieces of a job that also has a line for the whole. The size is
    the processors allocated, or where these are missing the processors requested. A requested time of 0 or less is
    taken as absent. Jobs are ordered by submit time; jobs submitted at one time keep the order of the log.

    Parameters
    ----------
    path : file to read; the compression is recognised by content.
    on_error : "raise" stops at the first malformed line; "skip" leaves such lines out and counts them in ``dropped``
        under "malformed line" (and damaged compression, of which what can be read is used, under "damaged file").

    Returns
    -------
    Workload
        Times in seconds on the log's clock, sizes in processors; ``nodes`` and ``procs_per_node`` from the header.

    Raises
    ------
    InputError
        If the file cannot be read, has a malformed line, or holds no job that can be simulated.

    Notes
    -----
    The format: Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
    """
    check_on_error(on_error)
    log = _Log(Path(path), skip=on_error == "skip")
    key = _key(log)
    known = parsed.load(key, _name(log.path)) if key else None
    if known is not None:
        return known
    data = _read(log)
    _parse(log, data)
    _check_values(log)
    workload = _workload(log, "sha256:" + hashlib.sha256(data).hexdigest())
    if key:
        parsed.keep(key, workload)
    return workload


def _key(log: _Log) -> str:
    """Return the name under which the parsed log is kept; "" for one that is small, or of which lines are skipped."""
    try:
        large = log.path.is_file() and log.path.stat().st_size >= parsed.LEAST_BYTES
        return parsed.key_of(log.path.read_bytes()) if large and not log.skip else ""
    except OSError:
        return ""


def _read(log: _Log) -> bytes:
    """Return the uncompressed content of the log; where bad lines are skipped, what can be read of a damaged file."""

    def count() -> None:
        log.dropped["damaged file"] += 1

    return read_content(log.path, count if log.skip else None)


def _parse(log: _Log, data: bytes) -> None:
    """Fill ``log.header``, ``log.table`` (each column contiguous) and ``log.line_numbers``, block by block."""
    data = _plain_lines(data)
    problem = _problem_of_file(log.path, data)
    most = len(data) // (2 * NUM_FIELDS) + 1  # jobs, as each has so many bytes
    table, numbers = np.empty((NUM_FIELDS, most)), np.empty(most, np.int64)
    start, line, rows = 0, 1, 0
    while start < len(data):
        least = 0 if data.startswith(b";", start) else _BLOCK_BYTES  # each line of the header is a block
        end = data.find(b"\n", start + least) + 1 or len(data)
        block = data[start:end]
        jobs = _parse_bulk(block)
        if jobs is None:
            jobs, lines = _parse_lines(log, block, line, "" if rows else problem)
        else:
            lines = np.arange(line, line + len(jobs))
        table[:, rows : rows + len(jobs)] = jobs.T
        numbers[rows : rows + len(jobs)] = lines
        start, line, rows = end, line + block.count(b"\n"), rows + len(jobs)
    log.table, log.line_numbers = table[:, :rows].T, numbers[:rows]


def _plain_lines(data: bytes) -> bytes:
    """Return the content without a mark of UTF-8, and with ends of lines that splitting at them finds."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    return data if b"\n" in data else data.replace(b"\r", b"\n")


def _parse_bulk(block: bytes) -> NDArray[np.float64] | NDArray[np.int64] | None:
    """Return the numbers of ``block``, or None unless it is nothing but lines of 18 plain numbers.

    Numbers from 0 to -1 are not plain, as NumPy would read -0 as 0.
    """
    block = block.replace(b"\r", b" ").replace(b"\t", b" ").rstrip() + b"\n"
    if block.translate(None, _PLAIN) or _has_odd_sign(np.frombuffer(block, np.uint8)):
        return None
    rows, points = block.count(b"\n"), block.count(b".")
    text = block.replace(b".", b"0 %d 1" % _POINT).replace(b"\n", b" %d\n" % _END)  # 2.05 is "20 point 105"
    numbers = np.fromstring(text, np.int64, sep=" ")
    if numbers.max() != _END or numbers.min() < _POINT or len(numbers) != rows * (NUM_FIELDS + 1) + 2 * points:
        return None
    values = _with_fractions(numbers, points) if points else numbers
    if values is None or (values == _END).sum() != rows:
        return None
    table = values.reshape(rows, NUM_FIELDS + 1)
    return table[:, :NUM_FIELDS] if (table[:, NUM_FIELDS] == _END).all() else None


def _has_odd_sign(text: NDArray[np.uint8]) -> bool:
    """Tell whether a minus sign follows no blank, or precedes none of the digits 1 to 9, in plain lines."""
    sign = text == ord("-")
    return bool((sign[1:] & (text[:-1] > ord(" ")) | sign[:-1] & (text[1:] < ord("1"))).any())


def _with_fractions(numbers: NDArray[np.int64], points: int) -> NDArray[np.float64] | None:
    """Return ``numbers`` with each whole number, point and fraction made one; None if that is not possible."""
    place = np.flatnonzero(numbers == _POINT)
    kept = np.ones(len(numbers), bool)
    kept[place] = kept[place + 1] = False
    wholes, parts = numbers[place - 1], numbers[place + 1]
    if len(place) != points or not kept[place - 1].all() or ((wholes == 0) & (parts == 1)).any():
        return None
    values = numbers.astype(np.float64)
    values[place - 1] = [
        float(f"{str(whole)[:-1]}.{str(part)[1:]}") for whole, part in zip(wholes.tolist(), parts.tolist(), strict=True)
    ]
    return values[kept]


def _parse_lines(log: _Log, block: bytes, first: int, about: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the numbers and the lines of the jobs in ``block``; comments, which go to the header, may stand anywhere.

    The block begins at line ``first``. What is wrong with the whole file, if so far no line was a job, is ``about``.
    """
    rows: list[list[float]] = []
    numbers: list[int] = []
    for number, line in enumerate(block.split(b"\n"), start=first):
        stripped = line.strip()
        if stripped.startswith(b";"):
            log.header.append(_text(line))
        elif stripped:
            fields = stripped.split()
            problem = "" if _JOB_LINE.fullmatch(stripped) else _problem_of_fields(fields)
            if not problem:
                rows.append([*map(float, fields)])
                numbers.append(number)
            elif log.skip:
                log.dropped[MALFORMED] += 1
            else:
                log.fail(number, (not rows and about) or problem)
    return np.array(rows, np.float64).reshape(-1, NUM_FIELDS), np.array(numbers, np.int64)


def _text(line: bytes) -> str:
    """Decode a comment line. Old logs hold Latin-1 names; any byte decodes in it."""
    try:
        return line.decode().rstrip()
    except UnicodeDecodeError:
        return line.decode("latin-1").rstrip()


def _problem_of_file(path: Path, data: bytes) -> str:
    """Return what is wrong with a file of which no line is a job, "" if nothing is known to be."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the file is text in UTF-16; save it as UTF-8"
    if b"\0" not in data:
        return ""
    kind = path.suffix.lower().removeprefix(".")
    return f"the file is neither {kind} data nor text" if kind in OPENERS else "the file is not text"


def _problem_of_fields(fields: list[bytes]) -> str:
    for column, text in enumerate(fields[:NUM_FIELDS], start=1):
        if not _NUMBER.fullmatch(text):
            return f"field {column} is {_quoted(text)}, not a number (a job is {NUM_FIELDS} numbers; -1 for unknown)"
    if len(fields) != NUM_FIELDS:
        return f"the line has {len(fields)} fields, a job has {NUM_FIELDS} (-1 for unknown)"
    return ""


def _quoted(text: bytes) -> str:
    return repr(text[:20] + (b"..." if len(text) > 20 else b"")).removeprefix("b")


def _check_values(log: _Log) -> None:
    """Refuse (or skip) lines whose numbers make no sense."""
    bad = np.zeros(len(log.table), bool)
    for columns, is_bad, valid in _VALUE_RULES:
        here = np.stack([is_bad(log.table[:, column]) for column in columns], axis=1)
        if here.any() and not log.skip:
            row, place = (int(index) for index in np.argwhere(here)[0])
            column = columns[place]
            name = _FIELDS.get(column, "")
            log.fail(
                int(log.line_numbers[row]),
                f"field {column + 1}{f', {name},' if name else ''} is {log.table[row, column]:.17g} (valid: {valid})",
            )
        bad |= here.any(axis=1)
    log.dropped[MALFORMED] += int(bad.sum())
    if bad.any():
        log.table = log.table[~bad]


_FIELDS = {
    JOB: "the job number",
    SUBMIT: "the submit time",
    RUN: "the run time",
    PROCS: "the number of processors",
    REQUESTED_PROCS: "the number of processors requested",
    REQUESTED_TIME: "the requested time",
    STATUS: "the status",
    USER: "the user",
}
_VALUE_RULES: tuple[tuple[list[int], Callable[[NDArray[np.float64]], NDArray[np.bool_]], str], ...] = (
    (list(range(NUM_FIELDS)), lambda values: ~(np.abs(values) <= _LARGEST), "2^53 at most"),
    ([SUBMIT, RUN], lambda values: (values < 0) & (values != -1), "0 or more, or -1 for unknown"),
    ([PROCS, REQUESTED_PROCS], lambda values: (values < 0) & (values != -1), "1 or more, or -1 for unknown"),
    ([JOB, PROCS, REQUESTED_PROCS, STATUS, USER], lambda values: values != np.floor(values), "a whole number"),
)
"""Columns, which of their values are bad, and what is valid."""


def _workload(log: _Log, content_hash: str) -> Workload:
    """Choose the jobs that can be simulated and order them by submit time."""
    table = log.table
    size = np.where(table[:, PROCS] > 0, table[:, PROCS], table[:, REQUESTED_PROCS])
    valid = np.ones(len(table), bool)
    for reason, rows in _reasons(table, size):
        log.dropped[reason] += int((valid & rows).sum())
        valid &= ~rows
    _leave_out_repeated(log, valid)
    dropped = {reason: count for reason, count in log.dropped.items() if count}
    if not valid.any():
        why = "; ".join(f"{count} x {reason}" for reason, count in dropped.items())
        raise InputError(f"{log.path}: the log has no job that can be simulated ({why or 'it has no line of a job'})")
    chosen = np.flatnonzero(valid)
    chosen = chosen[np.argsort(table[chosen, SUBMIT], kind="stable")]
    table = table.T[:, chosen].T  # columns stay contiguous
    nodes, procs_per_node = _machine_of(log)
    return Workload(
        job_id=table[:, JOB].astype(np.int64),
        submit_s=table[:, SUBMIT].copy(),
        run_s=table[:, RUN].copy(),
        requested_s=np.where(table[:, REQUESTED_TIME] > 0, table[:, REQUESTED_TIME], np.nan),
        size=size[chosen].astype(np.int64),
        user=table[:, USER].astype(np.int64),
        name=_name(log.path),
        nodes=nodes,
        procs_per_node=procs_per_node,
        header=tuple(log.header),
        dropped=dropped,
        content_hash=content_hash,
        labels=_labels(table),
        dependencies=_dependencies(table),
    )


def _dependencies(table: NDArray[np.float64]) -> Dependencies | None:
    """Return which jobs follow another one, of those that are left; one that is not submitted before is none."""
    waits = np.flatnonzero(table[:, PRECEDING] >= 0)
    order = np.argsort(table[:, JOB])
    wanted = table[waits, PRECEDING]
    found = np.minimum(np.searchsorted(table[:, JOB], wanted, sorter=order), len(table) - 1)
    after = order[found]
    known = (table[after, JOB] == wanted) & (after < waits)
    return dependencies_of(waits[known], after[known], table[waits[known], THINK])


def _labels(table: NDArray[np.float64]) -> dict[str, Label]:
    """Return what jobs belong to, named by number, as far as the log tells it of some: groups are accounts, and queues
    are partitions where there are queues."""
    labels = {}
    queues = (table[:, QUEUE] >= 0).any()
    for name, column in (("account", GROUP), ("partition", QUEUE if queues else PARTITION)):
        numbers = np.unique(table[:, column]) + 0.0  # -0 is 0
        unknown = int(np.searchsorted(numbers, 0.0))  # numbers below 0 are not known
        if unknown < len(numbers):
            codes = np.maximum(np.searchsorted(numbers, table[:, column]) - unknown, -1)
            labels[name] = Label(codes, tuple(f"{number:.15g}" for number in numbers[unknown:].tolist()))
    return labels


def _leave_out_repeated(log: _Log, valid: NDArray[np.bool_]) -> None:
    """Refuse (or skip) jobs of a number that an earlier one has: an event trace could not tell them apart."""
    rows = np.flatnonzero(valid)
    first = np.zeros(len(rows), bool)
    first[np.unique(log.table[rows, JOB], return_index=True)[1]] = True
    repeated = rows[~first]
    if len(repeated) and not log.skip:
        row = int(repeated[0])
        number = log.table[row, JOB]
        earlier = log.line_numbers[rows[log.table[rows, JOB] == number][0]]
        problem = f"job {number:.0f} is on line {earlier} already (valid: a number of its own for each job)"
        log.fail(int(log.line_numbers[row]), problem)
    valid[repeated] = False
    log.dropped[MALFORMED] += len(repeated)


def _reasons(table: NDArray[np.float64], size: NDArray[np.float64]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return why jobs cannot be simulated; a job counts under the first reason that holds."""
    partial = np.isin(table[:, STATUS], STATUS_PARTIAL)
    whole = table[~partial, JOB] if partial.any() else []
    ran = table[:, RUN] > 0
    return [
        ("part of a job that has its own line", partial & np.isin(table[:, JOB], whole)),
        ("cancelled before it started", ~ran & (table[:, STATUS] == STATUS_CANCELLED)),
        ("run time missing", table[:, RUN] == -1),
        ("run time of 0 s", table[:, RUN] == 0),
        ("size missing", size <= 0),
        ("submit time missing", table[:, SUBMIT] == -1),
    ]


def _machine_of(log: _Log) -> tuple[int, int]:
    try:
        return _machine(log.header)
    except InputError as error:
        raise InputError(f"{log.path}: {error}") from None


def _machine(header: list[str]) -> tuple[int, int]:
    """Return nodes (0 when unknown) and processors per node by the header's MaxNodes and MaxProcs.

    Where these do not divide (nodes of several kinds) the processors are rounded up, so that a job of all processors
    still fits on all nodes.
    """
    nodes, procs = header_number(header, "MaxNodes"), header_number(header, "MaxProcs")
    if nodes and procs:
        return nodes, max(1, -(-procs // nodes))
    return nodes or procs, 1


def header_number(header: Sequence[str], key: str) -> int:
    """Return the first whole number after ``; key:`` (text may follow it), or 0; thousands may be set off.

    Raises
    ------
    InputError
        If it may be another number than it seems, such as 1 of "1 664 MB" or 64 of "64k".
    """
    for line in header:
        if found := re.match(rf"\s*;\s*{key}\s*:\s*(\d.*)", line, re.IGNORECASE):
            if number := _HEADER_NUMBER.fullmatch(found[1].strip()):
                return int(re.sub(r"\D", "", number[1]))
            raise InputError(
                f"header {' '.join(line.split())!r:.120}: the number is ambiguous (valid: digits alone, such "
                f"as '; {key}: 1664', before text that does not begin with a digit)"
            )
    return 0


_HEADER_NUMBER = re.compile(
    r"(\d{1,3}(?:(?P<comma>[,'\u2019])\d{3}(?:(?P=comma)\d{3}){0,3})"  # 1,664
    r"|\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3}){1,4}(?=\s*(?:$|[(;#]|proc|cpu|core|node))"  # 1 664
    r"|\d{1,15})(?!\s+\d)"
    r"(?:\.0*(?!\d)|[,;:]?(?!\S)|(?=[(/-])|(?=proc|cpu|core|node)).*",
    re.IGNORECASE,
)
"""A whole number, with or without marks between its thousands, and text behind it that is no part of it."""


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".xz", ".swf"):
        name = name.removesuffix(suffix)
    return name or path.name


@takes(path=PATH)
def write_swf(workload: Workload, path: str | Path) -> None:
    """Write a workload as a log in the Standard Workload Format, compressed when the name ends in .gz or .xz.

    The header is kept; where it does not tell the machine, MaxNodes and MaxProcs are added. Times that are whole
    numbers are written as such, others with all digits, so that reading the file gives the same workload; but of
    several jobs that a job waits for, the last one is written.

    Raises
    ------
    InputError
        If the file cannot be written, or the workload has what no log has.
    """
    check_workload(workload)
    path = Path(path)
    lines = [
        line if line.lstrip().startswith(";") else f"; {line}" for text in workload.header for line in text.split("\n")
    ]
    if workload.nodes and _machine(lines) != (workload.nodes, workload.procs_per_node):
        lines = [f"; MaxNodes: {workload.nodes}", f"; MaxProcs: {workload.nodes * workload.procs_per_node}", *lines]
    requested = np.where(np.isnan(workload.requested_s), -1.0, workload.requested_s)
    owners = (workload.user, *(_numbers_of(workload, name) for name in ("account", "partition")))
    columns = (workload.job_id, workload.submit_s, workload.run_s, workload.size, requested, *owners)
    columns += _preceding(workload)
    lines += [
        f"{job} {_number(submit)} -1 {_number(run)} {size} -1 -1 {size} {_number(limit)} -1 1 {user} "
        f"{account} -1 {queue} -1 {preceding} {_number(think)}"
        for job, submit, run, size, limit, user, account, queue, preceding, think in zip(
            *(column.tolist() for column in columns), strict=True
        )
    ]
    opener = OPENERS.get(path.suffix.lower().lstrip("."), open)
    with writing(path), opener(path, "wb") as stream:
        stream.write(("\n".join(lines) + "\n").encode())


def _preceding(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the number of the last job that each job waits for, and the think time; -1 without one."""
    preceding, think_s = np.full(len(workload), -1), np.full(len(workload), -1.0)
    if workload.dependencies is not None:
        waits = workload.dependencies.job
        preceding[waits] = workload.job_id[workload.dependencies.after]
        think_s[waits] = workload.dependencies.think_s
    return preceding, think_s


def _numbers_of(workload: Workload, name: str) -> NDArray[np.int64]:
    """Return a label as numbers: its names where they all are numbers, else their places from 1 on; -1 if unknown."""
    label = workload.labels.get(name)
    if label is None:
        return np.full(len(workload), -1)
    plain = all(re.fullmatch(r"0|[1-9]\d{0,14}", each) for each in label.names)
    numbers = [int(each) for each in label.names] if plain else range(1, len(label.names) + 1)
    return np.array([*numbers, -1], np.int64)[label.codes]


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
