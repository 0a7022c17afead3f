"""Reading what ``sacct --json`` prints; its layout changed with the versions of SLURM, and all of them are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from faultsweep.simcore.workloads.accounting.runs import finish
from faultsweep.simcore.workloads.accounting.sacct import STEPS, TASKS, state_of, task_names
from faultsweep.simcore.workloads.accounting.source import (
    HOW_TO_SKIP,
    MALFORMED,
    BadValueError,
    Dump,
    Options,
    Source,
    table_of,
)
from faultsweep.simcore.workloads.accounting.units import ENDLESS, LARGEST

from faultsweep.errors import InputError

_INFINITE = 0xFFFFFFFF  # as older versions print it


def matches(head: bytes) -> bool:
    """Return whether a file begins like JSON of sacct."""
    return head.lstrip().startswith(b"{") and (b'"jobs"' in head or b'"meta"' in head)


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read dumps into ``dump``. Times are seconds since 1970 UTC, so no zone is needed."""
    for source in sources:
        jobs = []
        for number, job in enumerate(_jobs(source), start=1):
            dump.report.rows += 1
            try:
                record = _record(job)
                table_of([record])
                names = _names(job)
                dump.task_limits |= _task_limit(job)
                dump.report.left_out[STEPS] += len(job.get("steps") or ())
                dump.report.added[TASKS] += len(names) - 1
                jobs += [{**record, "job": name} for name in names]
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                why = error.sentence if isinstance(error, BadValueError) else str(error)
                if not options.skip:
                    problem = f"job {number} of the dump is malformed: {why} {HOW_TO_SKIP}"
                    raise InputError(f"{source.path}: {problem}") from None
                dump.report.left_out[MALFORMED] += 1
        if jobs:
            dump.add(table_of(jobs))
    finish(dump, options)


def _jobs(source: Source) -> list[dict[str, Any]]:
    try:
        content = json.loads(source.data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source.path}: not JSON ({str(error)[:80]})") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(f"{source.path}: JSON without a list of jobs (valid: what sacct --json prints)")
    return jobs


def _record(job: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a job."""
    time, association = _part(job, "time"), _part(job, "association")
    state = _part(job, "state").get("current")
    state = state_of(str(state[0] if isinstance(state, list) and state else state))
    given, asked = (_tres(_part(job, "tres").get(name)) for name in ("allocated", "requested"))
    start, end = _time(time.get("start")), _time(time.get("end"))
    nowhere = job.get("nodes") in (None, "", "None assigned")
    never = start is None or (nowhere and state not in ("running", "suspended", "completed"))
    limit = time.get("limit")
    endless = limit.get("infinite") if isinstance(limit, dict) else limit == _INFINITE
    minutes = ENDLESS if endless else _amount("limit", limit)
    code = _part(job, "exit_code")
    signal = _part(code, "signal")
    elapsed = _amount("elapsed", time.get("elapsed"))
    return {
        "submit_s": _time(time.get("submission")),
        "eligible_s": _time(time.get("eligible")),
        "start_s": None if never else start,
        "end_s": None if never else end,
        "cancel_s": end if never and state != "pending" else None,
        "run_s": None if never or end is None else elapsed,
        **{name: given.get(name) or asked.get(name) for name in ("nodes", "cores", "memory_mb")},
        "gpus": given.get("gpus") or asked.get("gpus") or (0.0 if given or asked else None),
        "requested_s": None if minutes is None else 60.0 * minutes,
        "restarts": _amount("restart_cnt", job.get("restart_cnt")),
        "user": _text(job.get("user") or association.get("user")),
        "account": _text(job.get("account") or association.get("account")),
        "partition": _text(job.get("partition")),
        "qos": _text(job.get("qos")),
        "reservation": _text(_part(job, "reservation").get("name") or None),
        "priority": _number(job.get("priority")),
        "state": state,
        "exit_code": _number(code.get("return_code")),
        "exit_signal": _number(signal.get("id", signal.get("signal_id"))),
        "node_list": None if nowhere else _text(job.get("nodes")),
    }


def _part(job: dict[str, Any], name: str) -> dict[str, Any]:
    found = job.get(name)
    return found if isinstance(found, dict) else {}


def _names(job: dict[str, Any]) -> list[str]:
    """Return 12, 12_3 (a task of an array) or 12+0 (a component), and of waiting tasks all names."""
    array, het = _part(job, "array"), _part(job, "het")
    task, base = _number(array.get("task_id")), _number(array.get("job_id"))
    offset, whole = _number(het.get("job_offset")), _number(het.get("job_id"))
    if base and task is not None:
        return [f"{base:.0f}_{task:.0f}"]
    waiting = _text(array.get("task"))
    if base and waiting:
        return task_names(f"{base:.0f}_[{_ranges(waiting)}]")
    if whole and offset is not None:
        return [f"{whole:.0f}+{offset:.0f}"]
    number = _number(job["job_id"])
    if number is None:
        raise ValueError("job_id is missing")
    return [f"{number:.0f}"]


def _task_limit(job: dict[str, Any]) -> dict[str, int]:
    """Return how many tasks of its array may run, by the number of the array; nothing without a limit."""
    array = _part(job, "array")
    base = _number(array.get("job_id"))
    most = _number(_part(_part(_part(array, "limits"), "max"), "running").get("tasks"))
    return {f"{base:.0f}": int(most)} if base and most and most > 0 else {}


def _ranges(tasks: str) -> str:
    """Return the waiting tasks of an array as ranges; older versions print them as bits, such as 0x1F00."""
    if not re.fullmatch(r"0x[0-9A-Fa-f]{1,1000}", tasks):
        return tasks
    bits = int(tasks, 16)
    return ",".join(str(task) for task in range(bits.bit_length()) if bits >> task & 1)


def _number(value: Any) -> float | None:
    """Return a number, plain or as {"set": true, "infinite": false, "number": 5}."""
    if isinstance(value, dict):
        return _number(value.get("number")) if value.get("set", True) and not value.get("infinite") else None
    if value is None or isinstance(value, bool) or value == "":
        return None
    if not isinstance(value, (int, float)) or not -LARGEST <= value <= LARGEST:
        raise ValueError(f"{str(value)[:40]!r} is not a number")
    return float(value)


def _amount(name: str, value: Any) -> float | None:
    """Return a number of 0 or more."""
    found = _number(value)
    if found is not None and found < 0:
        raise ValueError(f"{name} is {found:g}, below 0")
    return found


def _time(value: Any) -> float | None:
    return _number(value) or None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{str(value)[:40]!r} is not text")


def _tres(items: Any) -> dict[str, float]:
    """Return nodes, cores, GPUs and MiB of a list of resources."""
    found: dict[str, float] = {}
    typed = 0.0
    for item in items if isinstance(items, list) else ():
        amount = _number(item.get("count")) or 0.0
        key = {"cpu": "cores", "mem": "memory_mb", "node": "nodes"}.get(item.get("type"))
        if key:
            found[key] = amount
        elif item.get("type") == "gres" and item.get("name") == "gpu":
            found["gpus"] = amount
        elif item.get("type") == "gres" and str(item.get("name")).startswith("gpu:"):
            typed += amount
    if typed and "gpus" not in found:
        found["gpus"] = typed
    return found
