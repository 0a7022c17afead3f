"""The event tables of the Failure Trace Archive (``event_trace.tab``): one line per interval of a node.

Columns: event_id, component_id, node_id, platform_id, node_name, event_type, event_start_time, event_stop_time and
event_end_reason, separated by white space; times are seconds since 1970. An event of type 0 is an interval in which the
node is down, which is a failure; type 1 is an interval in which it is up. Nodes are known by their node_id.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.failure_logs.lines import Lines, quoted
from faultsweep.simcore.failure_logs.records import Table, compact

from faultsweep.errors import InputError

_COLUMNS = ("event_id", "component_id", "node_id", "platform_id", "node_name", "event_type")
_NUM_FIELDS = 9
_DOWN, _UP = "0", "1"


def matches(line: str) -> bool:
    """Tell whether a line is one that only this format has."""
    return tuple(line.lstrip("# ").lower().split()[: len(_COLUMNS)]) == _COLUMNS


def read(lines: Lines, system: int, filter_s: float) -> Table:
    """Read the failures of one platform (0: the only one)."""
    del filter_s
    times, nodes, downs, seen = [], [], [], set()
    platforms: dict[int, int] = {}
    header = False
    for number, line in enumerate(lines.texts(), start=1):
        fields = line.split()
        if not header:
            header = matches(line)
            continue
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != _NUM_FIELDS:
            lines.fail(number, f"{quoted(line)} has {len(fields)} fields, an event has {_NUM_FIELDS}")
        if fields[5] not in (_DOWN, _UP):
            lines.fail(number, f"event_type is {quoted(fields[5])} (valid: 0 for down, 1 for up)")
        platform = lines.node(number, "platform_id", fields[3])
        platforms[platform] = platforms.get(platform, 0) + 1
        if system not in (0, platform):
            continue
        node = lines.node(number, "node_id", fields[2])
        seen.add(node)
        if fields[5] == _DOWN:
            start = lines.number(number, "event_start_time", fields[6])
            stop = lines.number(number, "event_stop_time", fields[7])
            if stop < start:
                lines.fail(number, f"the event stops at {fields[7]}, before it starts at {fields[6]}")
            times.append(start)
            downs.append(stop - start)
            nodes.append(node)
    if system not in platforms and not (system == 0 and len(platforms) <= 1):
        wanted = "choose a platform of the file" if system == 0 else f"it has no platform {system}"
        raise InputError(
            f"{lines.path}: {wanted} with failure_system or --system (valid: {', '.join(map(str, sorted(platforms)))})"
        )
    distinct, _ = compact(np.array(sorted(seen), np.int64))
    num_nodes = len(distinct)
    return Table(
        np.array(times, np.float64),
        np.searchsorted(distinct, np.array(nodes, np.int64)).astype(np.int64),
        np.array(downs, np.float64),
        num_nodes=num_nodes,
        node_name=tuple(str(node) for node in distinct.tolist()),
        numbered=bool(num_nodes) and int(distinct[-1]) == num_nodes - 1,
        counts={"failures": len(times), "intervals in which a node is up": sum(platforms.values()) - len(times)}
        if system == 0
        else {"failures": len(times)},
    )
