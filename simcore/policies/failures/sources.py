"""From a configuration to its failures."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.failure_logs.files import detect_format, known_content, read_failures
from faultsweep.simcore.failure_logs.fitting import fit_times, map_nodes
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.parameters import Config
from faultsweep.simcore.policies.failures.bursts import synthetic_records
from faultsweep.simcore.policies.failures.mtbf import mtbf_source
from faultsweep.simcore.policies.failures.source import DAY_S, FailureSource, Span, TraceSource, hash_of
from faultsweep.simcore.policies.failures.weibull import copula_source, weibull_source
from faultsweep.simcore.streams import stream

from faultsweep.errors import InputError, unknown_name

GENERATORS: dict[str, Callable[[dict[str, Any], int, Span], FailureSource]] = {
    "weibull": weibull_source,
    "weibull-copula": copula_source,
    "mtbf": mtbf_source,
}
"""The endless generators, by the name that ``failures`` gives them."""

_FITTED = ("failure_fit", "node_map", "num_failures", "failures_per_day", "down_time_s")


def source_for(config: Config, machine_nodes: int, span: Span) -> FailureSource | None:
    """Return the failures that a resolved configuration asks for; None if it asks for none.

    Parameters
    ----------
    config : resolved configuration; its group "failures", ``seed``, ``replicate`` and ``machine`` are used.
    machine_nodes : nodes of the machine.
    span : of the jobs.

    Raises
    ------
    InputError
        If a log cannot be read or does not fit, or parameters contradict each other.
    """
    kind = config["failures"]
    if kind == "none":
        return None
    if kind in GENERATORS:
        return GENERATORS[kind](dict(config), machine_nodes, span)
    if kind == "bursts":
        return fitted_source(synthetic_records(config["seed"], config["replicate"]), config, machine_nodes, span)
    return fitted_source(load_records(config), config, machine_nodes, span)


def load_records(config: Config) -> FailureRecords:
    """Read the failure log of a configuration; a process reads a log once."""
    name = config["failures"]
    return _read(name, *_version(name), config["failure_system"], config["failure_filter_s"])


def is_file(name: str) -> bool:
    """Tell whether ``failures`` names a file, and no generator."""
    return name not in ("none", "bursts", *GENERATORS)


def file_hash(name: str) -> str:
    """Return the content hash of the file that ``failures`` names, "" where it names none; check that it is there.

    Raises
    ------
    InputError
        If it is neither a generator nor a file that can be read, of a known format.
    """
    if not is_file(name):
        return ""
    return _file_hash(name, *_version(name))


def _version(name: str) -> tuple[int, int]:
    """Return what tells a changed file from the one that was read."""
    path = Path(name)
    try:
        stat = path.stat()
    except (OSError, ValueError):
        if path.suffix or len(path.parts) > 1:
            raise InputError(f"failures: {name!r} cannot be read (no such file)") from None
        valid = ("none", "bursts", *GENERATORS, "the path of a failure log")
        raise unknown_name("source of failures", name, valid, where="failures") from None
    return stat.st_mtime_ns, stat.st_size


def is_own_trace(name: str) -> bool:
    """Tell whether ``failures`` names a file of our own format, which "auto" takes as it is: times, nodes and all."""
    try:
        return is_file(name) and _is_own_trace(name, *_version(name))
    except InputError:
        return False


@lru_cache(maxsize=64)
def _is_own_trace(path: str, mtime_ns: int, size: int) -> bool:
    del mtime_ns, size
    return detect_format(known_content(path)[0]) == "csv"


@lru_cache(maxsize=64)
def _file_hash(path: str, mtime_ns: int, size: int) -> str:
    del mtime_ns, size
    return known_content(path)[1]


@lru_cache(maxsize=8)
def _read(path: str, mtime_ns: int, size: int, system: int, filter_s: float) -> FailureRecords:
    del mtime_ns, size
    return read_failures(path, system=system, filter_s=filter_s)


def fitted_source(records: FailureRecords, config: Config, machine_nodes: int, span: Span) -> TraceSource:
    """Return the failures of a log, brought to a machine and a span of jobs."""
    seed, replicate = config["seed"], config["replicate"]
    machine = config["machine"]
    torus = tuple(int(side) for side in machine[6:].split("x")) if machine.startswith("torus:") else ()
    node = map_nodes(records, machine_nodes, config["node_map"], stream(seed, replicate, "failures/map"), torus)
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
