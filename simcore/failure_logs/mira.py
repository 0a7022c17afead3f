"""The fatal events of the Blue Gene/Q Mira at Argonne, 2013-2018, already filtered from its RAS log.

A line ``event id message record FATAL category component start end count kind location size`` is one event; the lines
below it that begin with white space are RAS messages that were found to belong to it. Locations
``R<row><column>-M<midplane>`` (rows 0-2, columns 0-F, midplanes 0-1) are 96 midplanes of 512 nodes, with the index
(16 row + column) 2 + midplane. Events of I/O racks (``Q...``), of whole racks and without a place are left out and
counted. There are no repair times.
"""

from __future__ import annotations

import re

import numpy as np
from faultsweep.simcore.failure_logs.lines import Lines, quoted
from faultsweep.simcore.failure_logs.records import Table

_EVENT = re.compile(
    r"event \S+ \S+ \S+ FATAL \S+ \S+ ([0-9]{4}-[0-9]{2}-[0-9]{2});([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?)"
    r" \S+ [0-9]+ \S+ (\S*) [0-9]+"
)
_MIDPLANE = re.compile(r"R([0-2])([0-9A-F])-M([01])(?:-.*)?")


def matches(line: str) -> bool:
    """Tell whether a line is one that only this format has."""
    return _EVENT.fullmatch(line) is not None


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read the events; ``system`` and ``filter_s`` do nothing in this format."""
    del system, filter_s
    stamps, numbers, nodes = [], [], []
    events = io_racks = nowhere = 0
    for number, line in enumerate(lines.texts(), start=1):
        if not line or line[0] in " \t#":
            continue
        found = _EVENT.fullmatch(line.rstrip())
        if not found:
            lines.fail(
                number,
                f"{quoted(line)} is not an event (valid: event id ... FATAL ... start end count kind location size)",
            )
        events += 1
        day, hour, location = found.groups()
        place = _MIDPLANE.fullmatch(location)
        if place:
            stamps.append(f"{day}T{hour}")
            numbers.append(number)
            nodes.append((16 * int(place[1]) + int(place[2], 16)) * 2 + int(place[3]))
        elif location.startswith("Q"):
            io_racks += 1
        else:
            nowhere += 1
    return Table(
        lines.times(stamps, numbers),
        np.array(nodes, np.int64),
        np.full(len(nodes), np.nan),
        num_nodes=96,
        node_name=tuple(f"R{row}{column:X}-M{half}" for row in range(3) for column in range(16) for half in range(2)),
        counts={"events": events, "left out: I/O racks": io_racks, "left out: no midplane": nowhere},
    )
