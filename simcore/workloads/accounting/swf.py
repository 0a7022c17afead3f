"""Reading the Standard Workload Format with 18 fields or more, for all that it says of a job.

Further fields are those of the public Frontier log (21): GPUs, a soft limit of the wall time, and a descriptor such as
frontier:excl:2500x112.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from faultsweep.simcore.workloads.accounting.records import Text, to_text
from faultsweep.simcore.workloads.accounting.runs import finish
from faultsweep.simcore.workloads.accounting.source import (
    Dump,
    Options,
    Source,
    parse_column,
    without_bad_rows,
)
from faultsweep.simcore.workloads.accounting.units import NAN, Memo, number
from faultsweep.simcore.workloads.swf import NUM_FIELDS, STATUS_CANCELLED, STATUS_PARTIAL, header_number
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name

_STATES = {0: "failed", 1: "completed", 5: "cancelled"}
_DESCRIPTOR = re.compile(r".*?:(\d{1,9})(?:x(\d{1,9}))?", re.A)
PARTS = "parts of a job that has its own line"


def _by_machine(processors: NDArray[np.float64], per_node: int, _: list[str]) -> NDArray[np.float64]:
    return np.ceil(processors / per_node)


def _by_descriptor(processors: NDArray[np.float64], per_node: int, texts: list[str]) -> NDArray[np.float64]:
    """Return the nodes of descriptors such as frontier:excl:2500x112; without one, processors are cores."""
    found = [_DESCRIPTOR.fullmatch(text) for text in texts] or [None] * len(processors)
    nodes = np.array([float(match[1]) if match else NAN for match in found])
    return np.where(np.isnan(nodes), np.ceil(processors / per_node), nodes)


def _as_nodes(processors: NDArray[np.float64], _per_node: int, _: list[str]) -> NDArray[np.float64]:
    return processors


NODES_RULES: dict[str, Callable[[NDArray[np.float64], int, list[str]], NDArray[np.float64]]] = {
    "header": _by_machine,
    "descriptor": _by_descriptor,
    "processors": _as_nodes,
}
"""How nodes are counted: processors / (MaxProcs / MaxNodes of the header); the descriptor; processors are nodes. A
number is processors of a node."""


def matches(head: bytes) -> bool:
    """Return whether a file begins like a log in the Standard Workload Format."""
    lines = [line.strip() for line in head.split(b"\n")[:400]]
    jobs = [line for line in lines if line and not line.startswith(b";")]
    if not jobs:
        return bool(lines and lines[0].startswith(b";"))
    fields = jobs[0].split()
    return len(fields) >= NUM_FIELDS and all(re.fullmatch(rb"-?\d+(\.\d+)?", field) for field in fields[:NUM_FIELDS])


def has_more_fields(head: bytes) -> bool:
    """Return whether the first job of a log has more fields than the 18 of the format."""
    jobs = [line.split() for line in head.split(b"\n")[:400] if line.strip() and not line.lstrip().startswith(b";")]
    return matches(head) and bool(jobs) and len(jobs[0]) > NUM_FIELDS


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read logs into ``dump``. Times are on the log's clock, with UnixStartTime of the header added where it is
    there."""
    if len(sources) > 1:
        raise InputError(f"{sources[1].path}: only one log in the Standard Workload Format can be read at a time")
    source = sources[0]
    header, rows, numbers, others = [], [], [], 0
    for line, text in source.lines():
        stripped = text.strip()
        if stripped.startswith(";"):
            header.append(stripped)
        elif stripped:
            fields = stripped.split()
            if len(fields) >= NUM_FIELDS:
                rows.append(fields)
                numbers.append(line)
            elif options.skip:
                others += 1
            else:
                source.fail(line, f"the line has {len(fields)} fields, a job has {NUM_FIELDS} or more (-1: unknown)")
    dump.header = tuple(header)
    dump.report.rows = len(rows) + others
    dump.report.left_out["malformed rows"] += others
    reader = _Reader(header, options)
    table = without_bad_rows(reader.table, rows, numbers, source, options, dump.report)
    if table is not None:
        dump.report.left_out[PARTS] += reader.parts
        dump.add(table)
    dump.nodes = header_number(header, "MaxNodes") or header_number(header, "MaxProcs")
    finish(dump, options)


class _Reader:
    def __init__(self, header: list[str], options: Options) -> None:
        self.parts = 0
        self.origin = float(header_number(header, "UnixStartTime"))
        nodes, processors = header_number(header, "MaxNodes"), header_number(header, "MaxProcs")
        self.per_node = max(1, -(-processors // nodes)) if nodes and processors else 1
        rule = options.nodes_rule or "header"
        if re.fullmatch(r"[1-9]\d{0,6}", rule):
            self.per_node, rule = int(rule), "header"
        if rule not in NODES_RULES:
            raise unknown_name("rule for nodes", rule, [*NODES_RULES, "processors of a node, such as 64"])
        self.rule = NODES_RULES[rule]

    def table(self, rows: list[list[str]]) -> dict[str, Any]:
        """Return the columns of the extended workload."""
        fields = list(zip(*rows, strict=False))[:NUM_FIELDS]  # a row may have more
        memo = Memo(number)
        values = np.array(
            [parse_column(f"field {k + 1}", texts, memo.__getitem__) for k, texts in enumerate(fields)], np.float64
        )
        values[values < 0] = np.nan
        whole = values[10]
        partial = np.isin(whole, STATUS_PARTIAL)
        partial &= np.isin(values[0], values[0][~partial])
        self.parts = int(partial.sum())
        kept = np.flatnonzero(~partial)
        return self._columns(values[:, kept], [rows[row] for row in kept.tolist()])

    def _columns(self, values: NDArray[np.float64], rows: list[list[str]]) -> dict[str, Any]:
        job, submit, wait, run, procs, _, memory, asked, limit, asked_memory, status, user, group, _, queue = values[
            :15
        ]
        cores = np.where(procs > 0, procs, asked)
        ran = run > 0
        started = np.where(ran, submit + wait, np.nan)
        state = [
            _STATES.get(int(code), "completed") if code == code else ("completed" if lasted else "cancelled")
            for code, lasted in zip(status.tolist(), ran.tolist(), strict=True)
        ]
        never = ~ran & (status == STATUS_CANCELLED)
        amount = np.where(asked_memory > 0, asked_memory, memory) / 1024 * cores
        table: dict[str, Any] = {
            "job": to_text([f"{number:.0f}" for number in job.tolist()]),
            "submit_s": submit + self.origin,
            "start_s": started + self.origin,
            "end_s": started + run + self.origin,
            "cancel_s": np.where(never, submit + wait + self.origin, np.nan),
            "run_s": np.where(never, np.nan, run),
            "nodes": self.rule(cores, self.per_node, [row[20] if len(row) > 20 else "" for row in rows]),
            "cores": cores,
            "memory_mb": np.where(amount > 0, amount, np.nan),
            "requested_s": np.where(limit > 0, limit, np.nan),
            "user": _numbered(user),
            "account": _numbered(group),
            "partition": _numbered(queue if np.isfinite(queue).any() else values[15]),
            "state": Text(*_codes(state)),
            "dependency": to_text(map(_dependency, values[16].tolist(), values[17].tolist())),
        }
        if any(len(row) > 18 for row in rows):
            table["gpus"] = np.array([_whole(row[18]) if len(row) > 18 else NAN for row in rows])
        return table


def _dependency(preceding: float, think_s: float) -> str | None:
    """Return what fields 17 and 18 say as a text."""
    if math.isnan(preceding) or preceding != math.floor(preceding):
        return None
    return f"afterany:{preceding:.0f}" + (f" think {think_s:.17g} s" if think_s > 0 else "")


def _whole(text: str) -> float:
    try:
        value = number(text)
    except ValueError:
        return NAN
    return value if value >= 0 else NAN


def _numbered(values: NDArray[np.float64]) -> Text:
    """Return numbers as names, so that they are compared and never added."""
    known, codes = np.unique(values[np.isfinite(values)], return_inverse=True)
    all_codes = np.full(len(values), -1, np.int32)
    all_codes[np.isfinite(values)] = codes
    return Text(all_codes, tuple(f"{value:.0f}" for value in known.tolist()))


def _codes(texts: list[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    places: dict[str, int] = {}
    return np.array([places.setdefault(text, len(places)) for text in texts], np.int32), tuple(places)
