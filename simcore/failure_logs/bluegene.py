"""Lines of the RAS log of the Blue Gene/L at Lawrence Livermore (2005-06 to 2006-01), as failures of midplanes.

A line is ``2005-06-05-04.23.03.807985 R22-M0-NE-C:J13-U01 RAS KERNEL FATAL text``; the public raw log puts four more
fields before it. Lines of severity FATAL and FAILURE count, those without a location are left out. One failure writes
many lines, so they are filtered in time and place: a line within ``filter_s`` (default 300 s) of the line before it
at its midplane belongs to the same failure, whose time is that of its first line. There are no repair times.

Location ``R<row><column>-M<midplane>``: rows and columns of racks 0-7, midplanes 0-1, together 128 midplanes of 512
compute nodes, the supernodes of krevat2003 and oliner2004. Their place in the 4 x 4 x 8 torus is

    x = row // 2,   y = 2 (row mod 2) + midplane,   z = column

one to one: a row of eight racks is the long axis, and the two midplanes of a rack and the racks of a pair of rows are
neighbours, as they are on the floor. (x, y, z) has the index (4 x + y) 8 + z.
"""

from __future__ import annotations

import re

import numpy as np
from faultsweep.simcore.failure_logs.lines import Lines, quoted
from faultsweep.simcore.failure_logs.records import Table
from numpy.typing import NDArray

TORUS = (4, 4, 8)
_LINE = re.compile(
    r"(?:\S+ [0-9]+ [0-9]{4}\.[0-9]{2}\.[0-9]{2} \S+ )?"
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]{2})\.([0-9]{2})\.([0-9]{2}\.[0-9]{1,6}) (\S+) \S+ \S+ ([A-Z]+)(?: .*)?"
)
_MIDPLANE = re.compile(r"R([0-7])([0-7])-M([01])(?:-.*)?")
_FATAL = ("FATAL", "FAILURE")


def matches(line: str) -> bool:
    """Tell whether a line is one that only this format has."""
    return _LINE.fullmatch(line) is not None


def midplane_index(row: int, column: int, midplane: int) -> int:
    """Return the index in the 4x4x8 torus of the midplane of a rack (rows and columns from 0 to 7)."""
    x, y, z = row // 2, 2 * (row % 2) + midplane, column
    return (x * TORUS[1] + y) * TORUS[2] + z


def midplane_names() -> tuple[str, ...]:
    """Return the locations of the 128 midplanes in order of their index."""
    names = {midplane_index(r, c, m): f"R{r}{c}-M{m}" for r in range(8) for c in range(8) for m in range(2)}
    return tuple(names[index] for index in sorted(names))


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read the lines and filter them to failures."""
    del system
    stamps, numbers, nodes = [], [], []
    mild = nowhere = 0
    for number, line in enumerate(lines.texts(), start=1):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        if not found:
            lines.fail(number, f"{quoted(line)} is not a RAS line (valid: time location RAS facility severity text)")
        day, hour, minute, second, location, severity = found.groups()
        if severity not in _FATAL:
            mild += 1
            continue
        place = _MIDPLANE.fullmatch(location)
        if not place:
            nowhere += 1
            continue
        stamps.append(f"{day}T{hour}:{minute}:{second}")
        numbers.append(number)
        nodes.append(midplane_index(int(place[1]), int(place[2]), int(place[3])))
    times = lines.times(stamps, numbers)
    node = np.array(nodes, np.int64)
    first = first_lines(times, node, filter_s)
    return Table(
        times[first],
        node[first],
        np.full(int(first.sum()), np.nan),
        num_nodes=128,
        node_name=midplane_names(),
        torus=TORUS,
        counts={
            "fatal lines": len(times) + nowhere,
            "left out: below fatal": mild,
            "left out: no midplane": nowhere,
            "left out: part of a failure that is under way": len(times) - int(first.sum()),
        },
    )


def first_lines(time_s: NDArray[np.float64], node: NDArray[np.int64], filter_s: float) -> NDArray[np.bool_]:
    """Tell which lines begin a failure: those whose node had no line in the ``filter_s`` seconds before."""
    order = np.lexsort((time_s, node))
    begins = np.ones(len(time_s), bool)
    same = np.diff(node[order]) == 0
    begins[1:] = ~same | (np.diff(time_s[order]) > filter_s)
    first = np.empty(len(time_s), bool)
    first[order] = begins
    return first
