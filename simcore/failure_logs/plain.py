"""Our own format: a header line ``time_s,node,down_s`` and one line per failure; lines that start with # are comments.

Times are seconds since the first submission of the jobs that are simulated (on the job log's clock:
``failure_fit = calendar``), nodes are indices of the machine, down times are seconds (0: transient).
A comment ``# nodes: N`` tells the nodes of the machine.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
from pathlib import Path

import numpy as np
from faultsweep.simcore.failure_logs.lines import Lines, quoted
from faultsweep.simcore.failure_logs.records import FailureRecords, Table
from faultsweep.simcore.model.failure_trace import FailureTrace

from faultsweep.files import writing

HEADER = "time_s,node,down_s"
_NODES = re.compile(r"#\s*nodes:\s*(.*)")


def matches(line: str) -> bool:
    """Tell whether a line is one that only this format has."""
    return line.replace(" ", "") == HEADER


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read the lines; ``system`` and ``filter_s`` do nothing in this format."""
    del system, filter_s
    times, nodes, downs = [], [], []
    declared, declared_line, header = 0, 0, False
    for number, line in enumerate(lines.texts(), start=1):
        text = line.strip()
        if not text:
            continue
        if text.startswith("#"):
            if found := _NODES.fullmatch(text):
                declared, declared_line = lines.node(number, "nodes", found[1]), number
        elif not header:
            header = True
        else:
            fields = text.split(",")
            if len(fields) != 3:
                lines.fail(number, f"{quoted(text)} has {len(fields)} fields, a failure has 3 ({HEADER})")
            times.append(lines.time(number, "time_s", fields[0]))
            nodes.append(lines.node(number, "node", fields[1]))
            downs.append(lines.time(number, "down_s", fields[2], minimum=0))
            if declared and nodes[-1] >= declared:
                lines.fail(number, f"node is {nodes[-1]}, but the file is of {declared} nodes (line {declared_line})")
    return Table(
        np.array(times, np.float64),
        np.array(nodes, np.int64),
        np.array(downs, np.float64),
        num_nodes=max(declared, max(nodes, default=-1) + 1),
        own=True,
        counts={"failures": len(times)},
    )


def write_failures(trace: FailureTrace | FailureRecords, path: str | Path, *, num_nodes: int = 0) -> None:
    """Write failures as our own CSV, ``time_s,node,down_s``, compressed when the name ends in .gz or .xz.

    Numbers are written with all their digits, so that reading the file gives the same failures. ``num_nodes`` > 0 (the
    nodes of the machine) is kept in a comment; without it a reader takes the largest node index + 1.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    path = Path(path)
    out = io.StringIO()
    nodes = num_nodes or (trace.num_nodes if isinstance(trace, FailureRecords) else 0)
    if nodes:
        out.write(f"# nodes: {nodes}\n")
    out.write("time_s,node,down_s\n")
    down = np.nan_to_num(trace.down_s, nan=0.0)
    for time_s, node, down_s in zip(trace.time_s.tolist(), trace.node.tolist(), down.tolist(), strict=True):
        out.write(f"{_number(time_s)},{node},{_number(down_s)}\n")
    data = out.getvalue().encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    elif path.suffix == ".xz":
        data = lzma.compress(data)
    with writing(path):
        path.write_bytes(data)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
