"""Reading the accounting files of PBS Professional, OpenPBS and Torque, and what they share with those of Cobalt.

A record is ``MM/DD/YYYY HH:MM:SS;TYPE;JOB;key=value ...``. Types that tell of jobs: Q queued, S started, E ended,
D deleted, A aborted, R rerun. The times of the keys are seconds since 1970; those of the records are local.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from faultsweep.simcore.workloads.accounting.runs import LOCAL, finish
from faultsweep.simcore.workloads.accounting.source import (
    MALFORMED,
    Dump,
    Options,
    Source,
    quoted,
    table_of,
)
from faultsweep.simcore.workloads.accounting.units import FIRST_S, LAST_S, Zone, clock, expand_hosts, memory_mb, number

_RECORD = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d);([A-Za-z]+);([^;]*);(.*)", re.A | re.S)
_PAIR = re.compile(r"""([\w.@:-]+)=("[^"]*"|'[^']*'|\S*)""")
_KINDS = frozenset("QSEDARkKL")
SEEN = "queued, started and deleted records of jobs that have another record"
OTHER = "records of reservations, licences and the like"
ARRAYS = "array jobs as a whole (their tasks have records of their own)"

_TIMES = ("ctime", "qtime", "etime", "start", "end")

Pairs = dict[str, str]


def matches(head: bytes) -> bool:
    """Return whether a file begins like an accounting file of PBS or Torque."""
    return looks_like(head) and not is_cobalt(head)


def looks_like(head: bytes) -> bool:
    """Return whether the first line with text is a record."""
    first = next((line for line in head.split(b"\n") if line.strip()), b"").decode("utf-8", "replace")
    return _RECORD.fullmatch(first.rstrip("\r")) is not None


def is_cobalt(head: bytes) -> bool:
    """Return whether records have what only Cobalt writes."""
    return b"resources_used.location=" in head or b"approx_total_etime=" in head or b"priority_core_hours=" in head


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read accounting files into ``dump``."""
    read_with(sources, options, dump, _sizes)


def read_with(
    sources: Sequence[Source], options: Options, dump: Dump, sizes: Callable[[Pairs], dict[str, float | None]]
) -> None:
    """Read accounting files; ``sizes`` gives nodes, cores, GPUs, memory and node list of the pairs of a record."""
    zone = Zone(options.timezone or "UTC")
    states: dict[str, dict[str, Any]] = {}
    runs: list[dict[str, Any]] = []
    for source in sources:
        for line, text in source.lines():
            if text.strip():
                dump.report.rows += 1
                try:
                    _take(text, zone, dump, states, runs, sizes)
                except (ValueError, KeyError, OverflowError) as error:
                    if not options.skip:
                        source.fail(line, f"{error}: {quoted(text)}")
                    dump.report.left_out[MALFORMED] += 1
    ended = {run["job"] for run in runs}
    waiting = [job for name, job in states.items() if name not in ended and job.get("submit_s") is not None]
    lost = sum(1 for name, job in states.items() if name not in ended and job.get("submit_s") is None)
    dump.report.left_out["jobs whose submission is in no file"] += lost
    arrays = {re.sub(r"\[\d+\]", "[]", job["job"]) for job in (*runs, *waiting) if re.search(r"\[\d+\]", job["job"])}
    jobs = [job for job in (*runs, *waiting) if job["job"] not in arrays]
    dump.report.left_out[ARRAYS] += len(runs) + len(waiting) - len(jobs)
    dump.report.left_out[SEEN] += dump.report.rows - sum(dump.report.left_out.values()) - len(jobs)
    if jobs:
        dump.add(table_of(jobs) | {LOCAL: np.array([bool(job.get("stamped")) for job in jobs])})
    finish(dump, options)


def _take(
    text: str,
    zone: Zone,
    dump: Dump,
    states: dict[str, dict[str, Any]],
    runs: list[dict[str, Any]],
    sizes: Callable[[Pairs], dict[str, float | None]],
) -> None:
    """Take one record: ends are runs; others say what is known of a job that has not ended."""
    found = _RECORD.fullmatch(text)
    if not found:
        raise ValueError("not a record (such as 11/22/2026 10:00:38;E;12.server;user=...)")
    month, day, year, hour, minute, second = (int(part) for part in found.groups()[:6])
    local = (datetime(year, month, day, hour, minute, second) - datetime(1970, 1, 1)).total_seconds()
    if not FIRST_S <= local <= LAST_S:
        raise ValueError("not a time from 1970 to 2200")
    kind, name = found[7], found[8].split(".")[0]
    if kind not in _KINDS or not re.match(r"\d", name):
        dump.report.left_out[OTHER] += 1
        return
    pairs = {key: value.strip("\"'") for key, value in _PAIR.findall(found[9])}
    job = dict(states.get(name, {"job": name, "state": "pending"}))
    known = {key: value for key, value in _job(pairs, sizes).items() if value is not None}
    when = float(zone.early(np.array([local]))[0])
    job.update(known)
    # The names of the times that are those of a record: local ones.
    job["stamped"] = job.get("stamped", frozenset()) - known.keys()
    if kind == "Q" and "submit_s" not in job:
        job |= {"submit_s": when, "stamped": job["stamped"] | {"submit_s"}}
    elif kind == "S":
        job["state"] = "running"
    elif kind == "R":
        _rerun(job, runs, when)
    elif kind in "DAkK":
        if job.get("state") == "pending":
            job |= {"state": "cancelled", "cancel_s": when, "stamped": job["stamped"] | {"cancel_s"}}
    elif kind == "E":
        runs.append(_ended(job, pairs))
        kept = {key: job.get(key) for key in ("submit_s", "user")}
        job = {"job": name, "state": "pending", "stamped": job["stamped"] & {"submit_s"}, **kept}
    states[name] = job


def _rerun(job: dict[str, Any], runs: list[dict[str, Any]], when: float) -> None:
    """End a run that is done again."""
    if job.get("start_s") is not None and job["start_s"] <= when and job.get("submit_s") is not None:
        run = {"end_s": when, "run_s": when - job["start_s"], "state": "requeued"}
        runs.append({**job, **run, "stamped": job["stamped"] | {"end_s"}})
    for name in ("start_s", "end_s", "run_s"):
        job.pop(name, None)
    job["state"] = "pending"


def _ended(job: dict[str, Any], pairs: Pairs) -> dict[str, Any]:
    """Return the run that a record of an end tells of."""
    run = dict(job)
    start, end = run.get("start_s"), run.get("end_s")
    if start is None or end is None or run.get("submit_s") is None:
        raise ValueError("the end of a job without ctime or qtime, start and end")
    used = pairs.get("resources_used.walltime")
    run["run_s"] = _seconds(used) if used else end - start
    code = run.get("exit_code")
    # A signal is reported as 256 more (PBS) or as 128 more (shells); both killed the job.
    run["state"] = "completed" if code in (0, None) else "failed"
    limit = run.get("requested_s")
    if code not in (0, None) and limit and run["run_s"] >= limit:
        run["state"] = "timeout"
    return run


def _job(pairs: Pairs, sizes: Callable[[Pairs], dict[str, float | None]]) -> dict[str, Any]:
    """Return what the pairs of a record say of a job."""
    submitted = [_number(pairs, name) for name in ("ctime", "qtime")]
    limit = pairs.get("Resource_List.walltime")
    return {
        "submit_s": min((time for time in submitted if time is not None), default=None),
        "eligible_s": _number(pairs, "etime"),
        "start_s": _number(pairs, "start"),
        "end_s": _number(pairs, "end"),
        "requested_s": _seconds(limit) if limit else None,
        "user": pairs.get("user"),
        "account": pairs.get("account") or pairs.get("project") or pairs.get("group"),
        "partition": pairs.get("queue"),
        "reservation": pairs.get("resvname") or pairs.get("resvID") or pairs.get("resvid"),
        "dependency": pairs.get("depend"),
        "exit_code": _number(pairs, "Exit_status"),
        **sizes(pairs),
    }


def _number(pairs: Pairs, name: str) -> float | None:
    text = pairs.get(name)
    if text is None or text in ("", "None", "-1.0", "-1"):
        return None
    try:
        value = number(text)
    except ValueError as error:
        raise ValueError(f"{name} is {quoted(text)}, {error}") from None
    if name in _TIMES and not FIRST_S <= value <= LAST_S:
        raise ValueError(f"{name} is {quoted(text)}, not a time from 1970 to 2200")
    return value


def _seconds(text: str) -> float:
    try:
        return clock(text)
    except ValueError:
        raise ValueError(f"a wall time is {quoted(text)}, not a duration (such as 12:00:00)") from None


def _sizes(pairs: Pairs) -> dict[str, float | None]:
    """Return nodes, cores, GPUs, memory and node list of what PBS or Torque gave, or else of what was asked."""
    asked = _select(pairs.get("Resource_List.select") or pairs.get("Resource_List.nodes") or "")
    hosts = pairs.get("exec_vnode") or pairs.get("exec_host") or ""
    names = list(dict.fromkeys(re.findall(r"(?:^|[+(])([A-Za-z][\w.-]*)(?=[:/\[+)]|$)", hosts)))
    cores = sum(int(found) for found in re.findall(r"ncpus=(\d{1,9})", pairs.get("exec_vnode", "")))
    if not cores and "exec_vnode" not in pairs:
        cores = _slots(hosts)
    nodes = float(len(names)) or _number(pairs, "Resource_List.nodect") or asked["nodes"]
    gpus = sum(int(found) for found in re.findall(r"ngpus=(\d{1,9})", pairs.get("exec_vnode", "")))
    memory = pairs.get("Resource_List.mem")
    return {
        "nodes": nodes,
        "cores": float(cores) or _number(pairs, "Resource_List.ncpus") or asked["cores"],
        "gpus": float(gpus) or _number(pairs, "Resource_List.ngpus") or asked["gpus"],
        "memory_mb": pbs_memory_mb(memory) if memory else asked["memory_mb"],
        "node_list": ",".join(names) or None,  # type: ignore[dict-item]
    }


def pbs_memory_mb(text: str) -> float:
    """Return MiB: PBS counts bytes where there is no unit, and words of 8 bytes as w."""
    lowered = text.lower()
    words = lowered.endswith("w")
    amount = memory_mb(re.sub(r"[wb]$", "", lowered) + "b")[0]
    return amount * 8 if words else amount


def _slots(hosts: str) -> int:
    """Return the cores of n1/0*8+n2/0-7 (PBS: 8 CPUs; Torque: slots 0 to 7) or n1/0+n1/1."""
    total = 0
    for item in hosts.split("+") if hosts else ():
        _, _, slots = item.partition("/")
        times = re.search(r"\*(\d{1,6})$", slots)
        if times:
            total += int(times[1])
        else:
            total += len(expand_hosts(f"[{slots}]")) if re.fullmatch(r"[\d,-]{1,1000}", slots) else 1
    return total


def _select(text: str) -> dict[str, float | None]:
    """Return nodes, cores, GPUs and MiB of 2:ncpus=4:mem=8gb+1:ngpus=1 or, of Torque, 2:ppn=8+n7."""
    total: dict[str, float] = {"nodes": 0.0, "cores": 0.0, "gpus": 0.0, "memory_mb": 0.0}
    for chunk in text.split("+") if text else ():
        first, *rest = chunk.split(":")
        times = float(first) if re.fullmatch(r"\d{1,9}", first) else 1.0
        values = dict(part.partition("=")[::2] for part in rest)
        total["nodes"] += times
        cores = values.get("ncpus") or values.get("ppn") or "1"
        if re.fullmatch(r"\d{1,9}", cores):
            total["cores"] += times * int(cores)
        gpus = values.get("ngpus") or values.get("gpus") or "0"
        total["gpus"] += times * int(gpus) if re.fullmatch(r"\d{1,9}", gpus) else 0.0
        total["memory_mb"] += times * pbs_memory_mb(values["mem"]) if values.get("mem") else 0.0
    return {name: value or None for name, value in total.items()}
