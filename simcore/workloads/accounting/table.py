"""Reading tables of jobs, CSV or Parquet, by a mapping of columns: a shipped one (mappings.toml) or one of your own."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.workloads.accounting import parquet
from faultsweep.simcore.workloads.accounting.cells import amount, delimiter, duration, is_null, split_unit, timer
from faultsweep.simcore.workloads.accounting.records import COLUMNS, Report, Text, to_text
from faultsweep.simcore.workloads.accounting.runs import LOCAL, finish, local_rows
from faultsweep.simcore.workloads.accounting.sacct import state_of
from faultsweep.simcore.workloads.accounting.source import (
    MALFORMED,
    Dump,
    Options,
    Source,
    csv_rows,
    parse_column,
    without_bad_rows,
)
from faultsweep.simcore.workloads.accounting.units import GUESSED_HOUR, Memo, Zone, settle

from faultsweep.errors import InputError, unknown_name

SHORT = {name.removesuffix("_s").removesuffix("_mb"): name for name in COLUMNS}
_TIMES = [name for name, column in COLUMNS.items() if column.kind == "time"]
_UNKNOWN_STATE = "states of jobs that are no known word"


@cache
def mappings() -> dict[str, dict[str, Any]]:
    """Return the shipped mappings by name."""
    return tomllib.loads(Path(__file__).with_name("mappings.toml").read_text("utf-8"))


def matches(head: bytes) -> bool:
    """Return whether a file begins like a table with the columns of a shipped mapping, or with ours."""
    if head.startswith(b"PAR1"):
        return not parquet.is_ours(head)
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    names = set(next(csv.reader([line.strip("\r")], delimiter=delimiter(line)), []))
    return _recognise(names) != "" or {"submit_s", "nodes"} <= names


def _recognise(names: set[str]) -> str:
    return next((name for name, mapping in mappings().items() if set(mapping["needs"]) <= names), "")


def parse_mapping(text: str) -> dict[str, str]:
    """Return the mapping of ``--columns``: ``submit=time_submit,nodes=num_nodes`` or the name of a shipped one."""
    if text in mappings():
        return {"": text}
    if "=" not in text:
        raise unknown_name("mapping", text, [*mappings(), "submit=THEIRS,start=THEIRS,nodes=THEIRS,..."], "--columns")
    chosen: dict[str, str] = {}
    for part in text.split(","):
        ours, equals, theirs = part.partition("=")
        name = SHORT.get(ours.strip(), ours.strip())
        if name not in COLUMNS or not equals:
            raise unknown_name("column", ours.strip(), SHORT, "--columns")
        chosen[name] = theirs.strip()
    return chosen


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read tables into ``dump``."""
    for source in sources:
        is_parquet = source.data.startswith(b"PAR1")
        names, rows, numbers = _parquet_rows(source) if is_parquet else _csv_rows(source)
        mapping = _mapping(source, names, options)
        reader = _Reader(names, mapping, options, dump)
        dump.report.rows += len(rows)
        if not is_parquet:
            _check_widths(rows, numbers, len(names), source, options, dump.report)
        table = without_bad_rows(reader.table, rows, numbers, source, options, dump.report)
        if table is not None:
            dump.add(table)
    finish(dump, options)


def _csv_rows(source: Source) -> tuple[list[str], list[Any], list[int]]:
    """Return the names of the columns, the rows that are not blank, and the lines on which they begin."""
    first = source.data.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")
    kept = [(line, row) for line, row in csv_rows(source, delimiter(first)) if row or line == 1]
    numbers, rows = [line for line, _ in kept], [row for _, row in kept]
    if not rows:
        raise InputError(f"{source.path}: an empty table")
    return [name.strip() for name in rows[0]], rows[1:], numbers[1:]


def _check_widths(
    rows: list[Any], numbers: list[int], width: int, source: Source, options: Options, report: Report
) -> None:
    """Raise the error for the first row with too few or too many fields, or take such rows out and count them."""
    kept = [place for place, row in enumerate(rows) if len(row) == width]
    if len(kept) < len(rows) and not options.skip:
        bad = next(place for place, row in enumerate(rows) if len(row) != width)
        source.fail(numbers[bad], f"the row has {len(rows[bad])} fields, the header names {width}")
    report.left_out[MALFORMED] += len(rows) - len(kept)
    rows[:], numbers[:] = [rows[place] for place in kept], [numbers[place] for place in kept]


def _text(value: Any) -> Any:
    """Return a cell; bytes, as which some writers keep text, are text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _parquet_rows(source: Source) -> tuple[list[str], list[Any], list[int]]:
    found = parquet.read_table(source.path, source.data)
    columns = [[_text(value) for value in found.column(place).to_pylist()] for place in range(found.num_columns)]
    rows = list(zip(*columns, strict=True))
    names = ["".join(letter if letter.isprintable() else "?" for letter in name) for name in found.column_names]
    return names, rows, list(range(1, len(rows) + 1))


def _mapping(source: Source, names: Sequence[str], options: Options) -> dict[str, str]:
    """Return our column -> theirs, of the columns that the table has."""
    shipped = options.columns.get("", "")
    if options.columns and not shipped:
        for ours, theirs in options.columns.items():
            if split_unit(theirs, names)[0] not in names:
                raise unknown_name("column", split_unit(theirs, names)[0], names, f"{source.path}: --columns {ours}")
        mapping = dict(options.columns)
    else:
        shipped = shipped or _recognise(set(names))
        known = mappings()[shipped]["columns"] if shipped else {name: name for name in COLUMNS}
        mapping = {ours: theirs for ours, theirs in known.items() if split_unit(theirs, names)[0] in names}
    sized = mapping.keys() & {"nodes", "cores"}
    timed = "run_s" in mapping or {"start_s", "end_s"} <= mapping.keys()
    if "submit_s" not in mapping or not sized or not timed:
        lacking = "submit" if "submit_s" not in mapping else "nodes or cores" if not sized else "start and end, or run"
        raise InputError(
            f"{source.path}: no column is known for {lacking} (--columns {lacking.split()[0]}=NAME,...; the table has "
            f"{', '.join(names[:30])})"
        )
    return mapping


class _Reader:
    def __init__(self, names: Sequence[str], mapping: Mapping[str, str], options: Options, dump: Dump) -> None:
        self.columns = {ours: split_unit(theirs, names) for ours, theirs in mapping.items()}
        self.places = {ours: list(names).index(theirs) for ours, (theirs, _) in self.columns.items()}
        self.zone, self.dump = Zone(options.timezone or "UTC"), dump

    def table(self, rows: list[Any]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        local, in_utc = {}, {}
        for ours, (theirs, unit) in self.columns.items():
            values = [row[self.places[ours]] for row in rows]
            kind, what = COLUMNS[ours].kind, f"the column {theirs}"
            if kind == "time":
                found = parse_column(what, values, timer(unit))
                local[ours] = np.array([value for value, _ in found])
                in_utc[ours] = np.array([zone for _, zone in found], bool)
            elif ours == "state":
                table[ours] = self._states(values)
            elif kind == "text":
                table[ours] = to_text([None if is_null(value) else str(value) for value in values])
            else:
                parse = duration(unit) if kind == "seconds" else amount(unit, signed=kind == "signed")
                table[ours] = np.array(parse_column(what, values, parse), np.float64)
        table |= self._times(local, table, in_utc)
        return table

    def _states(self, values: Sequence[Any]) -> Text:
        found = Memo(_state)
        states = [found[str(value)] for value in values]
        self.dump.report.guessed[_UNKNOWN_STATE] += sum(
            1 for value, state in zip(values, states, strict=True) if state is None and not is_null(value)
        )
        return to_text(states)  # type: ignore[arg-type]

    def _times(self, local: dict[str, Any], table: dict[str, Any], in_utc: dict[str, Any]) -> dict[str, Any]:
        """Return times in UTC; of start, end and run time, the one that is missing."""
        order = [name for name in _TIMES if name in local]
        times, guesses = settle(self.zone, local, order, table.get("run_s"), in_utc)
        self.dump.report.guessed[GUESSED_HOUR] += guesses
        if {"start_s", "end_s"} <= times.keys():
            lasted = times["end_s"] - times["start_s"]
            run = table.get("run_s")
            times["run_s"] = lasted if run is None else np.where(np.isnan(run), lasted, run)
        elif "start_s" in times:
            times["end_s"] = times["start_s"] + table["run_s"]
        return {**times, LOCAL: local_rows(local, in_utc)}


def _state(text: str) -> str | None:
    try:
        return state_of(text)
    except ValueError:
        return None
