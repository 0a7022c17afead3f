"""Reading failure logs of every known format, recognised by content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs import archive, bluegene, lanl, mira, plain, table
from faultsweep.simcore.failure_logs.lines import Lines
from faultsweep.simcore.failure_logs.records import FailureRecords, Table

from faultsweep.compression import read_content
from faultsweep.errors import InputError

_HEAD_LINES = 50  # a file is known by one of its first lines that say something


class _Format(NamedTuple):
    description: str
    matches: Callable[[str], bool]
    read: Callable[[Lines, int, float], Table]
    uses_system: bool = False
    uses_filter: bool = False


FORMATS: dict[str, _Format] = {
    "csv": _Format("time_s,node,down_s", plain.matches, plain.read),
    "lanl": _Format("LANL failure data 1996-2005", lanl.matches, lanl.read, uses_system=True),
    "fta": _Format("Failure Trace Archive event_trace", archive.matches, archive.read, uses_system=True),
    "bgl": _Format("Blue Gene/L RAS lines", bluegene.matches, bluegene.read, uses_filter=True),
    "mira": _Format("Mira fatal events", mira.matches, mira.read),
    "table": _Format("a table by a mapping of columns", table.matches, table.read),
}
"""The formats that are read, by name; each has a module with ``matches`` and ``read``."""


def read_failures(path: str | Path, *, system: int = 0, filter_s: float = 300.0, columns: str = "") -> FailureRecords:
    """Read a failure log, plain or compressed by gzip or xz; format and compression are recognised by content.

    Parameters
    ----------
    path : the file: our own ``time_s,node,down_s``, the LANL data, a Failure Trace Archive event table, Blue Gene/L RAS
        lines, or Mira fatal events.
    system : the system of a LANL file or the platform of a Failure Trace Archive table; 0 takes the only one.
    filter_s : a Blue Gene/L line within this many seconds of the one before it at its midplane is of the same failure.
    columns : of a table in CSV, what its columns mean: ``time=occurred,node=host,down=minutes:min``, or the name of a
        shipped mapping; "" for a file whose format is recognised.

    Returns
    -------
    FailureRecords
        Times in seconds on the log's clock; ``counts`` says what was left out or repaired.

    Raises
    ------
    InputError
        If the file cannot be read, is of no known format, has a malformed line, or holds no failure; the message names
        file and line.
    """
    path = Path(path)
    lines, content_hash = content(path)
    kind = "table" if columns else detect_format(lines)
    chosen = FORMATS[kind]
    if columns:
        found = table.read_columns(lines, table.parse_columns(columns))
    else:
        found = chosen.read(lines, system, filter_s)
    if not len(found.time_s):
        why = "; ".join(f"{count} x {reason}" for reason, count in found.counts.items() if count)
        raise InputError(f"{path}: the log has no failure that can be used ({why or 'it has no line of a failure'})")
    choices = [f"system {system}"] if chosen.uses_system and system else []
    choices += [f"filter {filter_s!r}"] if chosen.uses_filter else []
    choices += [f"columns {columns}"] if columns else []
    if choices:
        content_hash = _sha256(" ".join([content_hash, *choices]).encode())
    order = np.argsort(found.time_s, kind="stable")
    return FailureRecords(
        time_s=found.time_s[order],
        node=found.node[order],
        down_s=found.down_s[order],
        num_nodes=found.num_nodes,
        name=_name(path) + (f" system {system}" if chosen.uses_system and system else ""),
        kind=kind,
        node_name=found.node_name or tuple(str(node) for node in range(found.num_nodes)),
        numbered=found.numbered,
        torus=found.torus,
        own=found.own,
        counts={reason: count for reason, count in found.counts.items() if count},
        content_hash=content_hash,
    )


def recognise(path: Path) -> str | None:
    """Return the name of the format of a failure log, None for another file."""
    try:
        return detect_format(Lines(path, read_content(path).removeprefix(b"\xef\xbb\xbf")))
    except InputError:
        return None


def content(path: str | Path) -> tuple[Lines, str]:
    """Return the uncompressed content of a file and its hash."""
    data = read_content(Path(path))
    return Lines(Path(path), data.removeprefix(b"\xef\xbb\xbf")), _sha256(data)


def known_content(path: str | Path) -> tuple[Lines, str]:
    """Return the uncompressed content of a failure log and its hash; InputError if it is neither of a known format nor
    a table, whose columns may be named."""
    lines, content_hash = content(path)
    if not table.may_be_table(lines):
        detect_format(lines)
    return lines, content_hash


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def detect_format(lines: Lines) -> str:
    """Return the name of the format of a file by its first lines, or raise InputError."""
    for number, line in zip(range(_HEAD_LINES), lines.texts(), strict=False):
        text = line.strip()
        for kind, known in FORMATS.items():
            if known.matches(text):
                return kind
        if text and not text.startswith("#"):
            known_formats = "; ".join(known.description for known in FORMATS.values())
            lines.fail(
                number + 1,
                f"not a failure log of a known format (known: {known_formats}; failure_columns, or --columns, names "
                "the columns of another table in CSV)",
            )
    raise InputError(
        f"{lines.path}: an empty failure log (a trace of our own starts with the line 'time_s,node,down_s')"
    )


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".xz", ".csv", ".txt", ".tab", ".log"):
        name = name.removesuffix(suffix)
    return name or path.name
