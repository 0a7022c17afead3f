"""Reading failure logs of every known format, recognised by content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.failure_logs import archive, bluegene, lanl, mira, plain
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
}
"""The formats that are read, by name; each has a module with ``matches`` and ``read``."""


def read_failures(path: str | Path, *, system: int = 0, filter_s: float = 300.0) -> FailureRecords:
    """Read a failure log, plain or compressed by gzip or xz; format and compression are recognised by content.

    Parameters
    ----------
    path : the file: our own ``time_s,node,down_s``, the LANL data, a Failure Trace Archive event table, Blue Gene/L RAS
        lines, or Mira fatal events.
    system : the system of a LANL file or the platform of a Failure Trace Archive table; 0 takes the only one.
    filter_s : a Blue Gene/L line within this many seconds of the one before it at its midplane is of the same failure.

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
    lines, content_hash = known_content(path)
    kind = detect_format(lines)
    chosen = FORMATS[kind]
    table = chosen.read(lines, system, filter_s)
    if not len(table.time_s):
        why = "; ".join(f"{count} x {reason}" for reason, count in table.counts.items() if count)
        raise InputError(f"{path}: the log has no failure that can be used ({why or 'it has no line of a failure'})")
    choices = [f"system {system}"] if chosen.uses_system and system else []
    choices += [f"filter {filter_s!r}"] if chosen.uses_filter else []
    if choices:
        content_hash = _sha256(" ".join([content_hash, *choices]).encode())
    order = np.argsort(table.time_s, kind="stable")
    return FailureRecords(
        time_s=table.time_s[order],
        node=table.node[order],
        down_s=table.down_s[order],
        num_nodes=table.num_nodes,
        name=_name(path) + (f" system {system}" if chosen.uses_system and system else ""),
        kind=kind,
        node_name=table.node_name or tuple(str(node) for node in range(table.num_nodes)),
        numbered=table.numbered,
        torus=table.torus,
        own=table.own,
        counts={reason: count for reason, count in table.counts.items() if count},
        content_hash=content_hash,
    )


def recognise(path: Path) -> str | None:
    """Return the name of the format of a failure log, None for another file."""
    try:
        return detect_format(Lines(path, read_content(path).removeprefix(b"\xef\xbb\xbf")))
    except InputError:
        return None


def known_content(path: str | Path) -> tuple[Lines, str]:
    """Return the uncompressed content of a failure log and its hash; InputError if its format is not known."""
    data = read_content(Path(path))
    lines = Lines(Path(path), data.removeprefix(b"\xef\xbb\xbf"))
    detect_format(lines)
    return lines, _sha256(data)


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
            lines.fail(number + 1, f"not a failure log of a known format (known: {known_formats})")
    raise InputError(
        f"{lines.path}: an empty failure log (a trace of our own starts with the line 'time_s,node,down_s')"
    )


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".xz", ".csv", ".txt", ".tab", ".log"):
        name = name.removesuffix(suffix)
    return name or path.name
