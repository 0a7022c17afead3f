"""Reading ``lsb.acct`` of LSF: one JOB_FINISH record a line, fields between blanks, text in double quotes.

The fields are those of the LSF reference, lsb.acct (versions 7 to 10.1). The run limit stands behind parts of variable
length that are reserved for internal use, so it is read only where these have the documented form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from faultsweep.simcore.workloads.accounting.runs import finish
from faultsweep.simcore.workloads.accounting.source import MALFORMED, Dump, Options, Source, quoted, table_of
from faultsweep.simcore.workloads.accounting.units import memory_mb, number

_FIELD = re.compile(r'"((?:[^"]|"")*)"|([^\s"]+)')
_NUM_RUSAGE = 19
_DONE = 64
# Termination reasons, as bacct -l names them: how a job ended, where that says more than its status.
_REASONS = {1: "preempted", 5: "timeout", 6: "deadline", 12: "timeout", 16: "out_of_memory"}
_REASONS |= dict.fromkeys((8, 9, 14, 15), "cancelled")  # by its owner or an administrator
OTHER = "records that are not the end of a job"


def matches(head: bytes) -> bool:
    """Return whether a file begins like lsb.acct."""
    return re.match(rb'\s*"(JOB_FINISH2?|EVENT_ADRSV_FINISH|JOB_RESIZE)" "\d', head) is not None


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read accounting files into ``dump``. Times are seconds since 1970."""
    jobs = []
    for source in sources:
        for line, text in source.lines():
            if not text.strip():
                continue
            dump.report.rows += 1
            try:
                job = _record(text)
                if job is None:
                    dump.report.left_out[OTHER] += 1
                else:
                    table_of([job])
                    jobs.append(job)
            except (ValueError, IndexError) as error:
                if not options.skip:
                    why = getattr(error, "sentence", "") or str(error)
                    why = "the record is cut short" if isinstance(error, IndexError) else why
                    source.fail(line, f"{why}: {quoted(text)}")
                dump.report.left_out[MALFORMED] += 1
    if jobs:
        dump.add(table_of(jobs))
    finish(dump, options)


class _Fields:
    """The fields of a record, taken one after another."""

    def __init__(self, text: str) -> None:
        self.fields: list[str] = []
        self.quoted: list[bool] = []
        end = 0
        for found in _FIELD.finditer(text):
            if text[end : found.start()].strip():
                raise ValueError("a double quote is not closed")
            self.fields.append(found[2] if found[2] is not None else found[1].replace('""', '"'))
            self.quoted.append(found[2] is None)
            end = found.end()
        if text[end:].strip():
            raise ValueError("a double quote is not closed")
        self.at = 0

    def text(self) -> str:
        self.at += 1
        return self.fields[self.at - 1]

    def number(self) -> float:
        return number(self.text())

    def whole(self) -> int:
        value = self.number()
        if value != value or value != int(value) or not 0 <= value <= 10_000_000:
            raise ValueError(f"{quoted(self.fields[self.at - 1])} is not a count")
        return int(value)

    def skip_quoted(self) -> None:
        while self.quoted[self.at]:
            self.at += 1

    def skip(self, fields: int) -> None:
        self.at += fields
        if self.at > len(self.fields):
            raise IndexError


def _record(text: str) -> dict[str, Any] | None:
    fields = _Fields(text)
    if fields.text() != "JOB_FINISH":
        return None
    fields.skip(1)  # the version
    finished, job = fields.number(), fields.text()
    if not re.fullmatch(r"\d{1,18}", job):
        raise ValueError(f"the job is {quoted(job)}, not a number")
    fields.skip(2)
    asked = fields.whole()
    submit, begin = fields.number(), fields.number()
    fields.skip(1)
    start = fields.number()
    user, queue = fields.text(), fields.text()
    request, dependency = fields.text(), fields.text()
    fields.skip(7)
    fields.skip(fields.whole())  # hosts that were asked for
    hosts = [fields.text() for _ in range(fields.whole())]
    status = fields.whole()
    fields.skip(3 + _NUM_RUSAGE + 1)
    project = fields.text()
    exit_status = fields.number()
    fields.skip(3)
    index = fields.whole()
    rest = _rest(fields)
    slots, names = _hosts(hosts)
    ran = start > 0
    memory = re.search(r"rusage\[[^\]]*?mem\s*=\s*(\d{1,12}(?:\.\d+)?[KMGTkmgt]?)", request)
    return {
        "job": f"{job}_{index}" if index else job,
        "submit_s": submit or None,
        "eligible_s": max(submit, begin) or None,
        "start_s": start if ran else None,
        "end_s": finished if ran else None,
        "cancel_s": None if ran else finished,
        "run_s": finished - start if ran else None,
        "nodes": float(len(names)) or None,
        "cores": float(slots) or float(asked) or None,
        "memory_mb": memory_mb(memory[1])[0] if memory else None,
        "requested_s": rest.get("limit"),
        "user": user,
        "account": project,
        "partition": queue,
        "reservation": rest.get("reservation"),
        "dependency": dependency,
        "state": _state(status, ran, rest.get("reason", 0)),
        "exit_code": float(int(exit_status) >> 8) if exit_status >= 0 else None,
        "exit_signal": float(int(exit_status) & 127) if exit_status >= 0 else None,
        "node_list": ",".join(names) or None,
    }


def _state(status: int, ran: bool, reason: int) -> str:
    if not ran:
        return "cancelled"
    return "completed" if status == _DONE else _REASONS.get(reason, "failed")


def _hosts(hosts: list[str]) -> tuple[int, list[str]]:
    """Return slots and hosts of a list such as hostA hostA hostB or, short, 4*hostA hostB."""
    slots = 0
    names: dict[str, None] = {}
    for host in hosts:
        times, star, name = host.partition("*")
        short = bool(star) and times.isdigit()
        slots += int(times[:9]) if short else 1
        names[name if short else host] = None
    return slots, list(names)


def _rest(fields: _Fields) -> dict[str, Any]:
    """Return reservation, termination reason and run limit, as far as the record of this version goes."""
    found: dict[str, Any] = {}
    try:
        fields.skip(4)  # memory, swap, spool files
        found["reservation"] = fields.text()
        fields.skip(3)
        found["reason"] = fields.whole()
        fields.skip(6)
        fields.skip(1)  # run time estimate
        fields.skip(5)
        fields.skip_quoted()  # a reservation with a long name, and the description
        fields.skip(2 * fields.whole())  # keys and values for internal use
        fields.skip(5 * fields.whole())  # use of each host
        fields.skip(1)
        limit = fields.number()
        if limit > 0:
            found["limit"] = limit
    except (IndexError, ValueError):
        pass
    return found
