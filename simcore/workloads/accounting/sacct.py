"""Reading what ``sacct --parsable2`` prints, with any columns in any order.

``COMMAND`` gives all that is read, without a guess of the time zone; its ``--duplicates`` (-D) gives every run of a job
that was requeued. The fields are those of https://slurm.schedmd.com/sacct.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, islice
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.workloads.accounting.records import Text, to_text
from faultsweep.simcore.workloads.accounting.runs import LOCAL, PARTITION_LIMIT, finish, local_rows
from faultsweep.simcore.workloads.accounting.source import (
    MALFORMED,
    BadValueError,
    Dump,
    Options,
    Source,
    csv_rows,
    parse_column,
    quoted,
    rows_of,
    without_bad_rows,
)
from faultsweep.simcore.workloads.accounting.units import (
    ENDLESS,
    FIRST_S,
    GUESSED_HOUR,
    LAST_S,
    NAN,
    Memo,
    Zone,
    clock,
    count,
    expand_hosts,
    memory_mb,
    number,
    settle,
    stamp,
)
from numpy.typing import NDArray

from faultsweep.errors import InputError

COMMAND = (
    "TZ=UTC SLURM_BITSTR_LEN=0 sacct -aDP -S 2026-01-01 -o JobID,User,Account,Partition,QOS,State,ExitCode,Submit,"
    "Eligible,Start,End,ElapsedRaw,Suspended,Timelimit,AllocNodes,AllocCPUS,AllocTRES,ReqNodes,ReqCPUS,ReqMem,ReqTRES,"
    "NodeList,Priority,Reservation"
)
"""What an operator types."""

NECESSARY = ("jobid", "state", "submit", "start", "end")
SIZE = ("alloctres", "allocnodes", "nnodes", "nodelist", "reqnodes", "reqtres")
FREE_TEXT = frozenset(
    (
        *("admincomment", "comment", "systemcomment", "jobname", "submitline", "workdir", "constraints", "container"),
        *("reason", "wckey", "extra", "licenses", "failednode", "stdin", "stdout", "stderr"),
    )
)
"""Columns whose fields may hold the separator and line breaks."""

TASKS = "tasks of arrays that stand in one row"
RAW = "jobs known by JobIDRaw alone: tasks of an array and parts of a heterogeneous job count as jobs of their own"
STEPS = "steps of jobs (.batch, .extern, .0)"
MOST_TASKS = 4_000_001  # of an array: MaxArraySize of SLURM
_CHUNK = 1 << 24  # bytes of a dump that are decoded at a time
_MOST_LINES = 2_000  # of one row with line breaks inside its fields
_MOST_SPLITS = 20_000  # ways to place separators that stand inside fields

_JOB = re.compile(r"\d{1,12}(?:_(?:\d{1,9}|\[[\d,:%.-]{1,100000}\]?)|\+\d{1,6})?", re.A)
_CSV = re.compile(r'(?:^|,)"?JobID(?:Raw)?"?(?:,|$)')
_UNIT = "\x1f"  # separates fields, and stands in none
_STEP = re.compile(r"\d{1,12}(?:_\d{1,9}|\+\d{1,6})?\.[\w+.-]{1,64}", re.A)
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.A)
_LIMIT = re.compile(r"(\d{1,12})_\[.*%(\d{1,9})\]?", re.A)
_TRES = re.compile(r"([A-Za-z]+(?:/[\w.-]+)?(?::[\w.-]+)?)=(\d[\d.]*)([KMGTPE]?)", re.A)
_PLAIN_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.A)
_UNKNOWN = frozenset(("", "Unknown", "None", "N/A", "NONE", "unknown"))
_NOWHERE = frozenset(("", "None assigned", "None", "(null)"))

_STATES = {
    "COMPLETED": "completed",
    "CD": "completed",
    "FAILED": "failed",
    "F": "failed",
    "CANCELLED": "cancelled",
    "CA": "cancelled",
    "REVOKED": "cancelled",
    "RV": "cancelled",
    "TIMEOUT": "timeout",
    "TO": "timeout",
    "NODE_FAIL": "node_fail",
    "NF": "node_fail",
    "PREEMPTED": "preempted",
    "PR": "preempted",
    "OUT_OF_MEMORY": "out_of_memory",
    "OUT_OF_ME": "out_of_memory",
    "OOM": "out_of_memory",
    "BOOT_FAIL": "boot_fail",
    "BF": "boot_fail",
    "DEADLINE": "deadline",
    "DL": "deadline",
    "REQUEUED": "requeued",
    "RQ": "requeued",
    "SPECIAL_EXIT": "requeued",
    "RUNNING": "running",
    "R": "running",
    "COMPLETING": "running",
    "CG": "running",
    "CONFIGURING": "running",
    "STAGE_OUT": "running",
    "SIGNALING": "running",
    "RESIZING": "requeued",
    "RS": "requeued",
    "SUSPENDED": "suspended",
    "S": "suspended",
    "STOPPED": "suspended",
    "PENDING": "pending",
    "PD": "pending",
    "REQUEUE_FED": "pending",
    "REQUEUE_HOLD": "pending",
}


def matches(head: bytes) -> bool:
    """Return whether a file begins like the output of sacct."""
    header = _header(head)
    return _separator(header) != "" or _CSV.search(header) is not None


def _header(data: bytes) -> str:
    return data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r")


def _separator(line: str) -> str:
    """Return what stands between the names of columns, "" if the line does not name those of sacct."""
    name = "JobID(?:Raw)?"
    after = re.search(rf"(?:^|[^A-Za-z]){name}([^A-Za-z0-9 \",])", line)
    found = after or re.search(rf"([^A-Za-z0-9 \",]){name}$", line)
    return found[1] if found else ""


def _parsable(source: Source) -> Source:
    """Return a dump in CSV, as spreadsheets and data frames write it, with the separators of sacct -P and the same
    lines."""
    if _CSV.search(_header(source.data)) is None:
        return source
    lines: list[str] = []
    for line, row in csv_rows(source, ","):
        lines += [""] * (line - 1 - len(lines))
        lines.append(_UNIT.join(" ".join(field.split()) for field in row))
    return source._replace(data="\n".join(lines).encode())


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read dumps into ``dump``; a column that one of them lacks is missing in its jobs."""
    for source in sources:
        _Reader(source, options, dump).read()
    finish(dump, options)


def state_of(text: str) -> str:
    """Return one of STATES for what SLURM calls a state; ValueError if it is none."""
    word = text.split(" ", 1)[0].rstrip("+").upper()
    found = _STATES.get(word)
    if found is None:
        raise ValueError("not a state of a job (such as COMPLETED)")
    return found


class _Layout(NamedTuple):
    """The columns of a dump, in small letters: by place, and their places; and how a typed field must look."""

    names: list[str]
    places: dict[str, int]
    checks: list[tuple[int, Callable[[str], object]]]
    used: list[int]
    separator: str
    is_raw: bool  # jobs are known by JobIDRaw alone


class _Reader:
    """Reads one file, some megabytes at a time."""

    def __init__(self, source: Source, options: Options, dump: Dump) -> None:
        self.source, self.options, self.dump = _parsable(source), options, dump
        self.header = _header(self.source.data)
        self.layout = _layout(source, self.header)
        self.zone = Zone(options.timezone or "UTC")
        self.memos: dict[str, Memo] = {}

    def read(self) -> None:
        data, start, line = self.source.data, self.source.data.find(b"\n") + 1, 2
        carried: list[str] = []
        while start and start < len(data):
            stop = data.find(b"\n", min(start + _CHUNK, len(data)))
            stop = len(data) if stop < 0 else stop + 1
            lines = carried + data[start:stop].decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
            if not lines[-1]:
                lines.pop()
            used = self._read_lines(lines, line, last=stop == len(data))
            carried, line, start = lines[used:], line + used, stop

    def _read_lines(self, lines: list[str], first: int, last: bool) -> int:
        """Add the jobs of whole rows, and return how many lines these have."""
        rows = [line.split(self.layout.separator) for line in lines]
        width, place = len(self.layout.names), self.layout.places["jobid"]
        numbers = list(range(first, first + len(lines)))
        used = len(lines) if last else max(0, len(lines) - 1)  # what follows may be more of the last row
        if any(len(row) != width or not _is_job_or_step(row[place]) for row in rows):
            rows, numbers, used = self._mend(lines, first, last)
        else:
            rows, numbers = rows[:used], numbers[:used]
        self.dump.report.rows += len(rows)
        jobs = [index for index, row in enumerate(rows) if "." not in row[place] or "[" in row[place]]
        if len(jobs) < len(rows):
            self.dump.report.left_out[STEPS] += len(rows) - len(jobs)
            rows, numbers = [rows[index] for index in jobs], [numbers[index] for index in jobs]
        report = self.dump.report
        table = without_bad_rows(self._table, rows, numbers, self.source, self.options, report)
        if table is not None:
            self.dump.add(self._expand(table))
            if self.layout.is_raw:
                report.guessed[RAW] += len(rows)
        return used

    def _mend(self, lines: list[str], first: int, last: bool) -> tuple[list[list[str]], list[int], int]:
        """Return rows, their first lines and how many lines they have, where separators or line breaks stand inside
        fields."""
        rows: list[list[str]] = []
        numbers: list[int] = []
        at = 0
        while at < len(lines):
            if not lines[at].strip() or lines[at] == self.header:
                at += 1
                continue
            row, length = self._row_at(lines, at)
            if row is None and not last and len(lines) - at < _MOST_LINES:
                break  # the rest of the row may be in the next chunk
            if row is None:
                at += self._continues(rows, lines[at], first + at)
                continue
            if not last and at + length == len(lines):
                break
            self.dump.report.joined["lines of a row that has line breaks inside a field"] += length - 1
            rows.append(row)
            numbers.append(first + at)
            at += length
        return rows, numbers, at

    def _continues(self, rows: list[list[str]], line: str, number: int) -> int:
        """Take a line that begins no row as more of the last field, or as malformed; return that it is used."""
        if rows and self.layout.names[-1] in FREE_TEXT and self.layout.separator not in line:
            rows[-1][-1] += "\n" + line
            self.dump.report.joined["lines of a row that has line breaks inside a field"] += 1
            return 1
        if not self.options.skip:
            found = len(line.split(self.layout.separator))
            width = len(self.layout.names)
            if found == width:
                self._refuse_field(line.split(self.layout.separator), number)
            self.source.fail(number, f"the row has {found} fields, the header names {width}: {quoted(line)}")
        self.dump.report.rows += 1
        self.dump.report.left_out[MALFORMED] += 1
        return 1

    def _refuse_field(self, row: list[str], number: int) -> None:
        for place, check in self.layout.checks:
            try:
                check(row[place])
            except ValueError as error:
                what = f"the column {self.layout.names[place]}"
                self.source.fail(number, f"{what} is {quoted(row[place])}, {error}")

    def _row_at(self, lines: list[str], at: int) -> tuple[list[str] | None, int]:
        """Return the row that begins with a line, and how many lines it has; None if none does."""
        width, separator = len(self.layout.names), self.layout.separator
        text = lines[at]
        for length in range(1, min(_MOST_LINES, len(lines) - at) + 1):
            if length > 1:
                following = lines[at + length - 1]
                if following.count(separator) == width - 1 and self._fits(following.split(separator)):
                    return None, 0
                text += "\n" + following
            pieces = text.split(separator)
            if len(pieces) >= width:
                row = self._placed(pieces)
                if row is not None:
                    return row, length
        return None, 0

    def _placed(self, pieces: list[str]) -> list[str] | None:
        """Return the fields of a row in which some separators stand inside fields of free text.

        Of the placings in which every typed field looks as it must, those that fill most of the fields that are used
        have to agree on them; else it is None.
        """
        width = len(self.layout.names)
        extra = len(pieces) - width
        if not extra:
            return pieces if self._fits(pieces) else None
        free = [place for place, name in enumerate(self.layout.names) if name in FREE_TEXT]
        found: dict[tuple[str, ...], list[str]] = {}
        for chosen in islice(combinations_with_replacement(free, extra), _MOST_SPLITS):
            row, start = [], 0
            for place in range(width):
                stop = start + 1 + chosen.count(place)
                row.append(self.layout.separator.join(pieces[start:stop]))
                start = stop
            if self._fits(row):
                found.setdefault(tuple(row[place] for place in self.layout.used), row)
        filled = {used: sum(map(bool, used)) for used in found}
        best = [used for used in found if filled[used] == max(filled.values())]
        return found[best[0]] if len(best) == 1 else None

    def _fits(self, row: list[str]) -> bool:
        try:
            for place, check in self.layout.checks:
                check(row[place])
        except (ValueError, KeyError):
            return False
        return True

    def _memo(self, name: str, parse: Callable[[str], Any]) -> Memo:
        memo = self.memos.setdefault(name, Memo(parse))
        if len(memo) > 200_000:
            memo.clear()
        return memo

    def _table(self, rows: list[list[str]]) -> dict[str, Any]:
        """Return the columns of the extended workload for rows of whole jobs."""
        fields: dict[str, Sequence[str]] = dict(zip(self.layout.names, zip(*rows, strict=True), strict=True))
        parsed = {
            name: parse_column(f"the column {name}", fields[name], self._memo(name, parse).__getitem__)
            for name, parse in _PARSERS.items()
            if name in fields
        }
        parse_column("the column jobid", fields["jobid"], _check_job)
        table: dict[str, Any] = {"job": Text(np.arange(len(rows), dtype=np.int32), tuple(fields["jobid"]))}
        table |= self._sizes(parsed, len(rows))
        table |= {column: to_text(fields[name]) for name, column in _TEXTS.items() if name in fields}
        if "user" not in table and "uid" in fields:
            table["user"] = to_text(fields["uid"])
        table["state"] = to_text(parsed["state"])
        if "exitcode" in parsed:
            code = np.array(parsed["exitcode"], np.float64)
            table |= {"exit_code": code[:, 0], "exit_signal": code[:, 1]}
        for name in ("priority", "restarts"):
            if name in parsed:
                table[name] = np.array(parsed[name], np.float64)
        limit = next((name for name in ("timelimit", "timelimitraw") if name in parsed), "")
        if limit:
            table["requested_s"] = np.array(parsed[limit], np.float64)
        return table | self._times(fields, parsed, table)

    def _sizes(self, parsed: dict[str, list[Any]], rows: int) -> dict[str, Any]:
        """Return nodes, cores, GPUs and memory: allocated, or else requested."""
        nothing = np.full((rows, 4), np.nan)
        given, asked = (
            np.array(parsed[name], np.float64) if name in parsed else nothing for name in ("alloctres", "reqtres")
        )
        column = {name: np.array(parsed[name], np.float64) for name in _COUNTS if name in parsed}

        def first_known(*candidates: Any) -> NDArray[np.float64]:
            value = np.full(rows, np.nan)
            for candidate in candidates:
                if candidate is not None:
                    value = np.where(np.isnan(value) & (candidate > 0), candidate, value)
            return value

        hosts = np.array([len(found) for found in parsed["nodelist"]], np.float64) if "nodelist" in parsed else None
        allocated = (given[:, 0], column.get("allocnodes"), hosts, column.get("nnodes"))
        nodes = first_known(*allocated, asked[:, 0], column.get("reqnodes"))
        cores = first_known(
            given[:, 1], column.get("alloccpus"), column.get("ncpus"), asked[:, 1], column.get("reqcpus")
        )
        memory = first_known(given[:, 3], asked[:, 3], _memory(parsed.get("reqmem"), nodes, cores))
        sizes = {"nodes": nodes, "cores": cores, "memory_mb": memory}
        if "alloctres" in parsed or "reqtres" in parsed:
            gpus = first_known(given[:, 2], asked[:, 2])
            sizes["gpus"] = np.where(np.isnan(gpus) & ~np.isnan(cores), 0.0, gpus)
        return sizes

    def _times(
        self, fields: dict[str, Sequence[str]], parsed: dict[str, list[Any]], table: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the times in UTC, and run times."""
        local, in_utc = {}, dict[str, bool]()
        for name in ("submit", "eligible", "start", "end"):
            if name in fields:
                local[f"{name}_s"], in_utc[f"{name}_s"] = _stamps(f"the column {name}", fields[name])
        suspended = np.nan_to_num(np.array(parsed.get("suspended", 0.0), np.float64))
        elapsed = next((parsed[name] for name in ("elapsedraw", "elapsed") if name in parsed), None)
        lasted = None if elapsed is None else np.array(elapsed, np.float64)
        never = self._never_started(fields, table, local, lasted)
        end = local["end_s"]
        cancelled = np.where(never & ~_in_state(table["state"], "pending"), end, np.nan)
        for name in ("start_s", "end_s"):
            local[name] = np.where(never, np.nan, local[name])
        local["cancel_s"], in_utc["cancel_s"] = cancelled, in_utc["end_s"]
        span = None if lasted is None else lasted + suspended
        times, guesses = settle(self.zone, local, _ORDER, span, in_utc)
        if guesses:
            self.dump.report.guessed[GUESSED_HOUR] += guesses
        open_end = np.isnan(times["end_s"])
        run = times["end_s"] - times["start_s"] - suspended if lasted is None else lasted
        times["run_s"] = np.where(never | open_end, np.nan, np.maximum(run, 0))
        return {**times, LOCAL: local_rows(local, in_utc)}

    def _never_started(
        self,
        fields: dict[str, Sequence[str]],
        table: dict[str, Any],
        local: dict[str, NDArray[np.float64]],
        lasted: NDArray[np.float64] | None,
    ) -> NDArray[np.bool_]:
        """Return which jobs never started: without a start, or ended in the queue, where older versions of SLURM print
        the end as start."""
        never = np.isnan(local["start_s"])
        ended = ~_in_state(table["state"], "running", "suspended", "completed")
        if "nodelist" in fields:
            return never | (ended & np.array([text in _NOWHERE for text in fields["nodelist"]], bool))
        nothing = local["end_s"] - local["start_s"] if lasted is None else lasted
        return never | (ended & (nothing == 0) & _in_state(table["state"], "cancelled"))

    def _expand(self, table: dict[str, Any]) -> dict[str, Any]:
        """Make a row of waiting tasks, such as 123_[8-20%4], one row for each task."""
        names = table["job"].names
        if not any("[" in name for name in names):
            return table
        tasks: list[str] = []
        counts = []
        for name in names:
            expanded = task_names(name) if "[" in name else [name]
            counts.append(len(expanded))
            tasks += expanded
            limit = _LIMIT.fullmatch(name)
            if limit:
                self.dump.task_limits[limit[1]] = int(limit[2])
            if "..." in name:
                self.dump.report.guessed[
                    "arrays whose list of tasks is cut (SLURM_BITSTR_LEN=0 prints all); the tasks shown are taken"
                ] += 1
        self.dump.report.added[TASKS] += len(tasks) - len(names)
        table = rows_of(table, np.repeat(np.arange(len(names)), counts))
        table["job"] = Text(np.arange(len(tasks), dtype=np.int32), tuple(tasks))
        return table


def _layout(source: Source, header: str) -> _Layout:
    separator = _separator(header)
    if not separator:
        raise InputError(f"{source.path}:1: not the output of sacct -P (all that is read: {COMMAND})")
    names = [name.strip().lower().split("%")[0] for name in header.split(separator)]
    is_raw = "jobid" not in names
    if is_raw:
        names = ["jobid" if name == "jobidraw" else name for name in names]
    places = {name: place for place, name in enumerate(names) if name}
    doubled = sorted({name for name in names if name and names.count(name) > 1})
    if doubled:
        raise InputError(f"{source.path}:1: the column {doubled[0]} is there twice")
    lacking = [name for name in NECESSARY if name not in places]
    if lacking or not any(name in places for name in SIZE):
        what = ", ".join(lacking) or "AllocTRES, AllocNodes, NNodes or NodeList"
        raise InputError(f"{source.path}:1: the dump lacks the column {what} (all that is read: {COMMAND})")
    checks = [(place, _CHECKS[name]) for name, place in places.items() if name in _CHECKS]
    used = [place for name, place in places.items() if name in _USED]
    return _Layout(names, places, checks, used, separator, is_raw)


def _is_job_or_step(text: str) -> bool:
    return text.isdigit() or _JOB.fullmatch(text) is not None or _STEP.fullmatch(text) is not None


def _check_job(text: str) -> str:
    if not _is_job_or_step(text):
        raise ValueError("not the number of a job")
    if "[" in text:
        task_names(text)
    return text


def task_names(text: str) -> list[str]:
    """Return the tasks of 123_[8-20%4], 123_[1,3,5-9:2] or, cut by SLURM, 123_[1,3,...]."""
    base, inside = text.rstrip("]").split("_[")
    ranges = [part for part in inside.split("%")[0].split(",") if part.strip(".")]
    tasks: list[str] = []
    for part in ranges:
        found = _TASKS.fullmatch(part.rstrip("."))
        if not found:
            raise ValueError("not a list of tasks (such as 123_[8-20%4])")
        first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
        if step < 1 or last < first or (last - first) // step >= MOST_TASKS:
            raise ValueError("not a list of tasks (such as 123_[8-20%4])")
        tasks += [f"{base}_{task}" for task in range(first, last + 1, step)]
        if len(tasks) > MOST_TASKS:
            raise ValueError("more tasks than an array can have")
    if not tasks:
        raise ValueError("not a list of tasks (such as 123_[8-20%4])")
    return tasks


def _stamps(what: str, texts: Sequence[str]) -> tuple[NDArray[np.float64], bool]:
    """Return times as seconds since 1970, on the clock that they are written in, and whether that is UTC."""
    plain = ["NaT" if text in _UNKNOWN else text for text in texts]
    own_zone = False
    if all(text == "NaT" or _PLAIN_STAMP.fullmatch(text) for text in plain):  # NumPy takes zones and words, too
        try:
            when = np.array(plain, "datetime64[s]")
        except ValueError:
            when = None
        seconds = None if when is None else np.where(np.isnat(when), np.nan, when.astype(np.int64))
    else:
        seconds = None
    if seconds is None:
        found = parse_column(what, texts, _seconds)
        seconds = np.array([value for value, _ in found], np.float64)
        zoned = {zone for value, zone in found if value == value}
        if len(zoned) > 1:
            row = next(row for row, (value, zone) in enumerate(found) if value == value and not zone)
            raise BadValueError(row, what, texts[row], "without a zone, and other times of the column have one")
        own_zone = zoned == {True}
    outside = np.isfinite(seconds) & ~((seconds >= FIRST_S) & (seconds <= LAST_S))
    if outside.any():
        row = int(np.argmax(outside))
        raise BadValueError(row, what, texts[row], "not a time from 1970 to 2200")
    return seconds, own_zone or not np.isfinite(seconds).any()


def _seconds(text: str) -> tuple[float, bool]:
    if text in _UNKNOWN:
        return NAN, True
    if text.isdigit():  # SLURM_TIME_FORMAT=%s
        return number(text), True
    when, own_zone = stamp(text)
    return (when - _EPOCH).total_seconds(), own_zone


_ORDER = ("submit_s", "eligible_s", "start_s", "end_s", "cancel_s")
_EPOCH = stamp("1970-01-01T00:00:00")[0]


def _in_state(state: Text, *names: str) -> NDArray[np.bool_]:
    return np.isin(state.codes, [code for code, name in enumerate(state.names) if name in names])


def _memory(found: list[Any] | None, nodes: NDArray[np.float64], cores: NDArray[np.float64]) -> Any:
    """Return the memory of the whole job, MiB, of what was requested for it, or for each node or core."""
    if found is None:
        return None
    amount = np.array([value for value, _ in found], np.float64)
    per = np.array([unit for _, unit in found], "U1")
    return amount * np.where(per == "n", nodes, np.where(per == "c", cores, 1.0))


def _parse_tres(text: str) -> tuple[float, float, float, float]:
    """Return nodes, cores, GPUs and MiB of cpu=4,mem=8G,node=1,gres/gpu:a100=2."""
    nodes = cores = gpus = memory = NAN
    typed = 0.0
    for item in text.split(",") if text else ():
        found = _TRES.fullmatch(item)
        if not found:
            raise ValueError("not a list of resources (such as cpu=4,mem=8G,node=1)")
        name, amount, unit = found.groups()
        if name == "mem":
            memory = memory_mb(amount + unit)[0]
        elif name == "node":
            nodes = count(amount + unit)
        elif name == "cpu":
            cores = count(amount + unit)
        elif name == "gres/gpu":
            gpus = count(amount + unit)
        elif name.startswith("gres/gpu:"):
            typed += count(amount + unit)
    return nodes, cores, typed if gpus != gpus and typed else gpus, memory


def _parse_limit(text: str) -> float:
    if text == "UNLIMITED":
        return ENDLESS
    return PARTITION_LIMIT if text == "Partition_Limit" else clock(text)


def _parse_limit_minutes(text: str) -> float:
    if text in ("UNLIMITED", "Partition_Limit"):
        return _parse_limit(text)
    return 60.0 * count(text)


def _parse_memory(text: str) -> tuple[float, str]:
    return (NAN, "") if text in ("", "0", "0n", "0c", "N/A", "Unknown") else memory_mb(text)


def _parse_exit(text: str) -> tuple[float, float]:
    code, _, signal = text.partition(":")
    return number(code), number(signal)


def _parse_hosts(text: str) -> range:
    return range(0) if text in _NOWHERE else range(len(expand_hosts(text)))


_COUNTS = ("allocnodes", "nnodes", "reqnodes", "alloccpus", "ncpus", "reqcpus")
_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(_COUNTS, count),
    "alloctres": _parse_tres,
    "reqtres": _parse_tres,
    "reqmem": _parse_memory,
    "nodelist": _parse_hosts,
    "state": state_of,
    "exitcode": _parse_exit,
    "timelimit": _parse_limit,
    "timelimitraw": _parse_limit_minutes,
    "elapsedraw": number,
    "elapsed": clock,
    "suspended": clock,
    "priority": number,
    "restarts": count,
}
_TEXTS = {
    "user": "user",
    "account": "account",
    "partition": "partition",
    "qos": "qos",
    "reservation": "reservation",
    "dependency": "dependency",
    "nodelist": "node_list",
}


def _check_time(text: str) -> None:
    _seconds(text)


def _check_any_job(text: str) -> None:
    if not _is_job_or_step(text):
        raise ValueError("not the number of a job")


_CHECKS: dict[str, Callable[[str], object]] = {
    **_PARSERS,
    **dict.fromkeys(("submit", "eligible", "start", "end"), _check_time),
    **dict.fromkeys(("jobid", "jobidraw"), _check_any_job),
    **dict.fromkeys(("cputime", "planned", "reserved"), clock),
    **dict.fromkeys(("ntasks", "cputimeraw", "uid", "gid", "qosraw", "associd", "dbindex", "consumedenergyraw"), count),
}
_USED = {*_CHECKS, *_TEXTS} - {"cputime", "cputimeraw", "dbindex", "consumedenergyraw", "planned", "reserved"}
