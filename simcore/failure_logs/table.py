"""Tables of failures in CSV by a mapping of columns: a shipped one (mappings.toml), or one of your own.

Our columns are ``time``, when a node fails; ``node``, its number or name; ``down``, how long it is down, or ``end``,
when it is up again; and ``event``: a row in which that column says nothing is no failure, and names a node.
``nodes`` is no column: how many nodes the machine has, if not all are in the table. Times are seconds since 1970, or
text such as 2026-11-22 10:00:38, in UTC where no zone is given.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.failure_logs.lines import MAX_NODES, Lines, quoted
from faultsweep.simcore.failure_logs.records import Table
from faultsweep.simcore.workloads.accounting.cells import delimiter, duration, is_null, split_unit, timer

from faultsweep.errors import InputError, unknown_name

COLUMNS = ("time", "node", "down", "end", "event")
NODES = "nodes"
_EXAMPLE = "time=THEIRS,node=THEIRS,down=THEIRS:min"


@cache
def mappings() -> dict[str, dict[str, Any]]:
    """Return the shipped mappings by name."""
    return tomllib.loads(Path(__file__).with_name("mappings.toml").read_text("utf-8"))


def may_be_table(lines: Lines) -> bool:
    """Tell whether a file begins like a table in CSV: a header of two columns or more, all of them named."""
    first = next((text for text in lines.texts() if text.strip() and not text.startswith("#")), "")
    names = first.split(delimiter(first))
    return len(names) > 1 and first.isprintable() and all(name.strip() for name in names)


def matches(line: str) -> bool:
    """Tell whether a line is the header of a table that a shipped mapping knows."""
    return bool(_recognise(_fields(line)))


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read a table of a shipped mapping; ``system`` and ``filter_s`` do nothing in this format."""
    del system, filter_s
    header = next(text for text in lines.texts() if matches(text))
    return read_columns(lines, mappings()[_recognise(_fields(header))]["columns"])


def parse_columns(text: str) -> dict[str, str]:
    """Return the mapping that ``failure_columns`` says: ``time=occurred,node=host,down=minutes:min``, or a name.

    Raises
    ------
    InputError
        If it names no mapping, or a column twice or that there is not, or time or node is missing.
    """
    if text in mappings():
        return dict(mappings()[text]["columns"])
    if "=" not in text:
        raise unknown_name("mapping", text, [*mappings(), _EXAMPLE], "failure_columns")
    chosen: dict[str, str] = {}
    for part in text.split(","):
        ours, _, theirs = (piece.strip() for piece in part.partition("="))
        if ours not in (*COLUMNS, NODES):
            raise unknown_name("column", ours, (*COLUMNS, NODES), "failure_columns")
        if ours in chosen or not theirs:
            how = "twice" if ours in chosen else "no column"
            raise InputError(f"failure_columns: {ours} is given {how} ({_EXAMPLE})")
        chosen[ours] = theirs
    for needed in ("time", "node"):
        if needed not in chosen:
            raise InputError(f"failure_columns: {needed} is missing ({_EXAMPLE})")
    if {"down", "end"} <= chosen.keys():
        raise InputError("failure_columns: down and end are both given; leave one out")
    nodes = chosen.get(NODES, "1")
    if not (nodes.isascii() and nodes.isdigit() and 1 <= int(nodes) <= MAX_NODES):
        raise InputError(f"failure_columns: nodes = {nodes} (valid: 1 to {MAX_NODES:,})")
    return chosen


def read_columns(lines: Lines, mapping: Mapping[str, str]) -> Table:
    """Read a table with the columns of a mapping.

    Raises
    ------
    InputError
        If a column is not in the table, or a cell says nothing valid: file and line.
    """
    names, rows, numbers = _rows(lines)
    columns = {ours: theirs for ours, theirs in mapping.items() if ours != NODES}
    for ours, theirs in columns.items():
        if split_unit(theirs, names)[0] not in names:
            raise unknown_name("column", split_unit(theirs, names)[0], names, f"{lines.path}: {ours}")
    cells = _Cells(lines, names, columns)
    placed = cells.told("node", rows, range(len(rows)))
    node, node_name = _nodes([cells.text("node", rows[row]) for row in placed])
    happened = set(cells.told("event", rows, placed) if "event" in columns else placed)
    is_failure = np.array([row in happened for row in placed], np.bool_)
    failures = [row for row in placed if row in happened]
    time_s = cells.parsed("time", rows, numbers, failures, _seconds)
    timed = ~np.isnan(time_s)
    kept = [row for row, known in zip(failures, timed, strict=True) if known]
    wanted = int(mapping.get(NODES, len(node_name)))
    if not len(node_name) <= wanted <= MAX_NODES:
        raise InputError(f"{lines.path}: the table has {len(node_name):,} nodes (failure_columns: nodes = {wanted:,})")
    node_name += tuple(f"unnamed {place}" for place in range(len(node_name), wanted))
    return Table(
        time_s[timed],
        node[is_failure][timed],
        _down(cells, rows, numbers, kept, time_s[timed]),
        num_nodes=wanted,
        node_name=node_name,
        numbered=node_name == tuple(str(place) for place in range(wanted)),
        counts={
            "rows": len(rows),
            "left out: no node": len(rows) - len(placed),
            "left out: no event": len(placed) - len(failures),
            "left out: no time": len(failures) - len(kept),
        },
    )


class _Cells:
    """The cells of a table by our columns."""

    def __init__(self, lines: Lines, names: Sequence[str], mapping: Mapping[str, str]) -> None:
        self.lines = lines
        self.columns = {ours: split_unit(theirs, names) for ours, theirs in mapping.items()}
        self.places = {ours: list(names).index(theirs) for ours, (theirs, _) in self.columns.items()}

    def text(self, ours: str, row: Sequence[str]) -> str:
        """Return the cell of a row."""
        return row[self.places[ours]].strip()

    def told(self, ours: str, rows: Sequence[Sequence[str]], chosen: Sequence[int]) -> list[int]:
        """Return those of the chosen rows in which a column says something."""
        return [row for row in chosen if not is_null(self.text(ours, rows[row]))]

    def parsed(
        self,
        ours: str,
        rows: Sequence[Sequence[str]],
        numbers: Sequence[int],
        chosen: Sequence[int],
        parser: Callable[[str], Callable[[Any], float]],
    ) -> Any:
        """Return what a column says in the chosen rows, float64; NaN where it says nothing."""
        theirs, unit = self.columns[ours]
        parse = parser(unit)
        found = np.empty(len(chosen))
        for place, row in enumerate(chosen):
            text = self.text(ours, rows[row])
            try:
                found[place] = parse(text)
            except (ValueError, OverflowError) as error:
                self.lines.fail(numbers[row], f"{theirs} is {quoted(text)}: {error}")
        return found


def _seconds(unit: str) -> Callable[[Any], float]:
    parse = timer(unit)
    return lambda value: parse(value)[0]


def _down(
    cells: _Cells, rows: Sequence[Sequence[str]], numbers: Sequence[int], kept: Sequence[int], time_s: Any
) -> Any:
    """Return down times, s; NaN where the table does not tell."""
    if "down" in cells.columns:
        return cells.parsed("down", rows, numbers, kept, duration)
    if "end" not in cells.columns:
        return np.full(len(kept), np.nan)
    down_s = cells.parsed("end", rows, numbers, kept, _seconds) - time_s
    for place in np.flatnonzero(down_s < 0)[:1]:
        row = kept[place]
        cells.lines.fail(numbers[row], f"the failure ends at {quoted(cells.text('end', rows[row]))}, before it begins")
    return down_s


def _rows(lines: Lines) -> tuple[list[str], list[list[str]], list[int]]:
    """Return the names of the columns, the rows, and the numbers of their lines."""
    text = lines.data.decode("utf-8", "replace")
    header = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(header), strict=True)
    names: list[str] = []
    rows, numbers = [], []
    try:
        for row in reader:
            if not row or (not names and row[0].startswith("#")):
                continue
            if not names:
                names = [name.strip() for name in row]
                continue
            if len(row) != len(names):
                lines.fail(reader.line_num, f"the row has {len(row)} fields, the header names {len(names)}")
            rows.append(row)
            numbers.append(reader.line_num)
    except csv.Error as error:
        lines.fail(reader.line_num, f"not a table in CSV ({error})")
    if not names:
        raise InputError(f"{lines.path}: an empty table")
    return names, rows, numbers


def _fields(line: str) -> set[str]:
    return {name.strip().strip('"') for name in line.removeprefix("\xef\xbb\xbf").split(delimiter(line))}


def _recognise(names: set[str]) -> str:
    return next((name for name, mapping in mappings().items() if set(mapping["needs"]) <= names), "")


def _nodes(texts: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Return the index of each node, and the nodes by index: names in the order of the numbers within them."""
    names = sorted(set(texts), key=_by_numbers)
    index = {name: place for place, name in enumerate(names)}
    return np.array([index[text] for text in texts], np.int64), tuple(names)


def _by_numbers(name: str) -> list[tuple[int, int, str, str]]:
    """Return by what a name is sorted: numbers within it by value, however many digits they have."""
    pieces = [(piece, piece.lstrip("0")) for piece in re.split(r"([0-9]+)", name) if piece]
    return [
        (0, len(digits), digits, piece) if re.fullmatch("[0-9]+", piece) else (1, 0, piece, "")
        for piece, digits in pieces
    ]
