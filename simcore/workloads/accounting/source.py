"""What every reader of accounting records is given: files, options, and where to put the jobs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from faultsweep.simcore.workloads.accounting.records import COLUMNS, Report, Text, compact, take_column, to_text
from faultsweep.simcore.workloads.accounting.units import FIRST_S, LAST_S
from numpy.typing import NDArray

from faultsweep.errors import InputError

MALFORMED = "malformed rows"
HOW_TO_SKIP = "(faultsweep logs import --skip-malformed leaves such rows out and counts them)"


@dataclass(frozen=True)
class Options:
    """How dumps are read.

    Attributes
    ----------
    timezone : zone of local times; "" takes UTC, and counts that as a guess.
    skip : leave malformed rows out and count them, instead of stopping at the first.
    columns : of a table, the name of each column of the extended workload in it, with a unit after a colon.
    nodes_rule : of a log in the Standard Workload Format, how processors become nodes: see ``swf.NODES_RULES``.
    """

    timezone: str = ""
    skip: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    nodes_rule: str = ""


class Source(NamedTuple):
    """A file of a dump: its path for messages, and its uncompressed content."""

    path: Path
    data: bytes

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise the error for a malformed line, counted from 1."""
        raise InputError(f"{self.path}:{line}: {problem} {HOW_TO_SKIP}")

    def lines(self) -> Iterable[tuple[int, str]]:
        """Yield the numbers of the lines, from 1, and the lines without their ends."""
        for number, line in enumerate(self.data.split(b"\n"), start=1):
            yield number, line.decode("utf-8", "replace").rstrip("\r")


def csv_rows(source: Source, delimiter: str) -> Iterable[tuple[int, list[str]]]:
    """Yield the rows of a file in CSV, each with the line on which it begins, from 1."""
    text = source.data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    csv.field_size_limit(1 << 24)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{source.path}: not a table in CSV (line {line}: {error})") from None


@dataclass
class Dump:
    """The jobs of dumps while they are read: tables of columns, one after another, and what happened to the rows.

    ``task_limits`` are of arrays that limit their running tasks, by the number of the array; ``zone`` is what an
    imported file says its times were read in.
    """

    report: Report = field(default_factory=Report)
    tables: list[dict[str, Any]] = field(default_factory=list)
    columns: dict[str, Any] = field(default_factory=dict)
    nodes: int = 0
    header: tuple[str, ...] = ()
    local_times: bool = False
    zone: str = ""
    task_limits: dict[str, int] = field(default_factory=dict)

    def add(self, table: dict[str, Any]) -> None:
        """Add rows; columns without any value are left away."""
        if len(table["submit_s"]):
            self.tables.append(table)


def quoted(text: str) -> str:
    """Return a piece of a row for a message."""
    shown = text.strip()[:40]
    return repr(shown + ("..." if len(text.strip()) > 40 else ""))


class BadValueError(ValueError):
    """A field that cannot be read; ``row`` is its place in the column."""

    def __init__(self, row: int, what: str, text: str, why: str) -> None:
        """Keep where it stands and what is wrong."""
        super().__init__(why)
        self.row = row
        self.sentence = f"{what} is {quoted(text)}, {why}"


def parse_column(what: str, texts: Sequence[str], parse: Callable[[str], Any]) -> list[Any]:
    """Return what each text of a column means, or raise BadValueError for the first that means nothing."""
    try:
        return list(map(parse, texts))
    except (ValueError, KeyError, OverflowError):
        for row, text in enumerate(texts):
            try:
                parse(text)
            except (ValueError, KeyError, OverflowError) as error:
                raise BadValueError(row, what, text, str(error) or "not valid") from None
        raise


def without_bad_rows(
    build: Callable[[list[Any]], dict[str, Any]],
    rows: list[Any],
    numbers: list[int],
    source: Source,
    options: Options,
    report: Report,
) -> dict[str, Any] | None:
    """Return the table of rows; a row with a bad field is an error that names its line, or left out and counted."""
    while rows:
        try:
            return build(rows)
        except BadValueError as error:
            if not options.skip:
                source.fail(numbers[error.row], error.sentence)
            report.left_out[MALFORMED] += 1
            del rows[error.row], numbers[error.row]
    return None


def numbers_or_none(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return numbers as an array, NaN for None."""
    return np.array([np.nan if value is None else value for value in values], np.float64)


def drop_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that have a value in any row, in the order of COLUMNS."""
    kept = {}
    for name in COLUMNS:
        column = table.get(name)
        if column is None:
            continue
        has = (column.codes >= 0).any() if isinstance(column, Text) else not np.isnan(column).all()
        if has or name == "submit_s":
            kept[name] = compact(column) if isinstance(column, Text) else column
    return kept


def rows_of(table: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """Return some rows of a table."""
    return {name: take_column(column, rows) for name, column in table.items()}


def table_of(jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of jobs that are given as mappings from the name of a column to a number or text."""
    table: dict[str, Any] = {}
    for name, column in COLUMNS.items():
        values = [job.get(name) for job in jobs]
        if column.kind == "text":
            table[name] = to_text(values)
        else:
            table[name] = numbers_or_none(values)
    for name in ("submit_s", "eligible_s", "start_s", "end_s", "cancel_s"):
        outside = np.flatnonzero(np.isfinite(table[name]) & ~((table[name] >= FIRST_S) & (table[name] <= LAST_S)))
        if len(outside):
            row = int(outside[0])
            raise BadValueError(row, f"the time {name}", f"{table[name][row]:.17g}", "not a time from 1970 to 2200")
    return table
