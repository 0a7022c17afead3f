"""The failure data of Los Alamos National Laboratory, 1996-2005 (LA-UR-05-7318): a CSV with one line per failure.

Used are the columns ``System``, ``nodes``, ``nodenumz`` (node from 0), ``Prob Started``, ``Prob Fixed`` (local time)
and ``Down Time`` (minutes). The down time is that of its own column: where it differs from fixed - started by an hour,
a change of daylight saving time lies between the two, which only the column takes into account; where it differs by a
minute, the column was rounded from seconds that the dates do not show. Where the column is blank, fixed - started is
used, and where that is missing or negative too, the down time is unknown. Lines without a node are left out. All of
these are counted. Starting times are taken as they stand, on the local clock.

Los Alamos asks to be recognised for providing the data.
"""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs.lines import Lines, quoted
from faultsweep.simcore.failure_logs.records import Table, compact

from faultsweep.errors import InputError

_COLUMNS = ("system", "nodes", "nodenumz", "prob started", "prob fixed", "down time")
_DATE = re.compile(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4}) ([0-9]{1,2}):([0-9]{2})")

NO_NODE = "left out: no node"
DISAGREE = "down times that differ from fixed - started (the Down Time column is used)"
MISSING = "down times missing from their column (fixed - started is used)"
UNKNOWN = "down times unknown"


class _Row(NamedTuple):
    line: int
    nodes: str
    node: str
    started: str
    fixed: str
    down: str


def matches(line: str) -> bool:
    """Tell whether a line is one that only this format has."""
    fields = [field.strip().lower() for field in line.split(",")]
    return set(_COLUMNS) <= set(fields)


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read the failures of one system (0: the only one)."""
    del filter_s
    rows, systems = _rows(lines, system)
    if system not in systems and not (system == 0 and len(systems) <= 1):
        listed = ", ".join(f"{one} ({count} records)" for one, count in sorted(systems.items()))
        wanted = "choose a system of the file" if system == 0 else f"it has no system {system}"
        raise InputError(
            f"{lines.path}: {wanted} with failure_system, or --system of 'failures describe' (valid: {listed})"
        )
    used = [row for row in rows if row.node]
    counts = {"records": len(rows), NO_NODE: len(rows) - len(used)}
    numbers = [row.line for row in used]
    started = lines.times([_iso(lines, row.line, row.started) for row in used], numbers)
    down_s = _down_times(lines, used, started, counts)
    labels = np.array([lines.node(row.line, "nodenumz", row.node) for row in used], np.int64)
    return _table(lines, used, started, labels, down_s, counts)


def _rows(lines: Lines, system: int) -> tuple[list[_Row], dict[int, int]]:
    """Return the lines of one system (0: of all), and the number of lines of every system."""
    rows: list[_Row] = []
    systems: dict[int, int] = {}
    where: dict[str, int] = {}
    last = 0
    for number, line in enumerate(lines.texts(), start=1):
        if not line.strip():
            continue
        try:
            fields = next(csv.reader([line]), [])
        except csv.Error as error:
            lines.fail(number, f"{quoted(line)} is not a line of a CSV file ({error})")
        if not where:
            if matches(line):
                names = [field.strip().lower() for field in fields]
                if not set(_COLUMNS) <= set(names):
                    lines.fail(number, "the header has a quote that is not closed, or quotes several columns as one")
                where = {name: names.index(name) for name in _COLUMNS}
                last = max(where.values())
            continue
        if len(fields) <= last:
            lines.fail(number, f"the line has {len(fields)} fields, too few for the columns of line 1")
        one = lines.node(number, "System", fields[where["system"]])
        systems[one] = systems.get(one, 0) + 1
        if system in (0, one):
            rows.append(_Row(number, *(fields[where[name]].strip() for name in _COLUMNS[1:])))
    return rows, systems


def _iso(lines: Lines, number: int, text: str) -> str:
    found = _DATE.fullmatch(text)
    if not found:
        lines.fail(number, f"{quoted(text)} is not a time (valid: month/day/year hour:minute)")
    month, day, year, hour, minute = found.groups()
    return f"{year}-{month:>02}-{day:>02}T{hour:>02}:{minute}"


def _down_times(lines: Lines, rows: list[_Row], started: np.ndarray, counts: dict[str, int]) -> np.ndarray:
    """Return the down times in seconds and count what is said of them in the module's text."""
    column = np.array(
        [lines.number(row.line, "Down Time", row.down, minimum=0) * 60 if row.down else np.nan for row in rows]
    )
    dated = np.flatnonzero([bool(row.fixed) for row in rows])
    elapsed = np.full(len(rows), np.nan)
    numbers = [rows[at].line for at in dated]
    fixed = lines.times([_iso(lines, rows[at].line, rows[at].fixed) for at in dated], numbers)
    elapsed[dated] = fixed - started[dated]
    missing = np.isnan(column)
    counts[DISAGREE] = int((~missing & ~np.isnan(elapsed) & (column != elapsed)).sum())
    counts[MISSING] = int((missing & (elapsed >= 0)).sum())
    counts[UNKNOWN] = int((missing & ~(elapsed >= 0)).sum())
    return np.where(missing, np.where(elapsed >= 0, elapsed, np.nan), column)


def _table(
    lines: Lines, rows: list[_Row], started: np.ndarray, labels: np.ndarray, down_s: np.ndarray, counts: dict[str, int]
) -> Table:
    """Number the nodes: as the log does where its numbers lie within its machine, else in order of their numbers."""
    num_nodes = max((lines.node(row.line, "nodes", row.nodes) for row in rows if row.nodes), default=0)
    numbered = bool(len(labels)) and int(labels.max()) < num_nodes
    distinct, index = compact(labels)
    if numbered:
        return Table(started, labels, down_s, num_nodes, counts=counts)
    names = tuple(str(node) for node in distinct.tolist())
    spare = max(0, num_nodes - len(names))
    names += tuple(f"(never failed {number})" for number in range(1, spare + 1))
    return Table(started, index, down_s, len(names), node_name=names, numbered=False, counts=counts)
