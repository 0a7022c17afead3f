"""Failure records brought to a machine and to a span of jobs."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Config
from faultsweep.simcore.failure_logs.fitting import fit_times, map_nodes
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.policies.failures.source import DAY_S, Span, TraceSource, hash_of
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_FITTED = ("failure_fit", "node_map", "num_failures", "failures_per_day", "down_time_s")


def fitted_source(
    records: FailureRecords, config: Config, machine_nodes: int, span: Span, behind: Ints | None = None
) -> TraceSource:
    """Return the failures of a log, brought to a machine and a span of jobs.

    behind : how many nodes behind that of its record each failure is on the machine, shape (records,).
    """
    seed, replicate = config["seed"], config["replicate"]
    machine = config["machine"]
    torus = tuple(int(side) for side in machine[6:].split("x")) if machine.startswith("torus:") else ()
    node = map_nodes(records, machine_nodes, config["node_map"], stream(seed, replicate, "failures/map"), torus)
    if behind is not None:
        node = (node + behind) % machine_nodes
    fitted = fit_times(
        records,
        span,
        config["failure_fit"],
        stream(seed, replicate, "failures/fit"),
        node_ratio=machine_nodes / records.num_nodes,
        num_failures=config["num_failures"],
        failures_per_day=config["failures_per_day"],
    )
    down_s = np.nan_to_num(records.down_s, nan=0.0)
    if config["down_time_s"] >= 0:
        down_s = np.full(len(records), config["down_time_s"])
    facts = {name: config[name] for name in _FITTED}
    facts |= {"log": records.content_hash, "seed": seed, "replicate": replicate, "machine": machine}
    facts["span"] = vars(span) if config["failure_fit"] == "calendar" else (span.length_s, span.full_s)
    trace = FailureTrace(fitted.time_s, node[fitted.row], down_s[fitted.row], records.name, hash_of(facts))
    length = span.length_s if span.length_s > 0 else records.span_s
    inside = np.count_nonzero((trace.time_s >= 0.0) & (trace.time_s <= span.length_s))
    return TraceSource(trace, float(inside / length * DAY_S) if length else 0.0, fitted.period_s)
