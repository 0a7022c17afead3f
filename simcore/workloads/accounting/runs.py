"""From rows to jobs: runs of one job are chained, parts of one job joined, and the jobs put in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from faultsweep.simcore.workloads.accounting.dependencies import unmet, unread
from faultsweep.simcore.workloads.accounting.records import TAKEN_AS_UTC, Text, concat, take_column
from faultsweep.simcore.workloads.accounting.source import Dump, Options, drop_empty
from faultsweep.simcore.workloads.accounting.units import expand_hosts
from numpy.typing import NDArray

PARTITION_LIMIT = -1.0
"""As a requested time, until the largest of the partition is known."""

LOCAL = "_local"
"""A column of tables that are read: whether a time of the job names no zone."""

SUMMED = ("nodes", "cores", "gpus", "memory_mb")
RESTARTED_ONCE_SEEN = "restarted jobs of which the dump has the last run only (sacct --duplicates gives all)"
_NO_DEPENDENCY = "dependencies of a kind that is not read, such as singleton: taken as none"
_ABSENT = "dependencies on jobs that are not in the dump: taken as none"
_LATE = "dependencies of jobs on themselves or on jobs submitted after them: taken as none"
_IDLE = "dependencies on jobs that were cancelled before they started: taken as none"
NEVER = ("submit time missing", "starts before it was submitted", "ends before it starts")


def finish(dump: Dump, options: Options) -> None:
    """Make ``dump.columns`` of the tables that were read: one row a job, in order of submission."""
    columns: dict[str, Any] = concat(dump.tables) if dump.tables else {"submit_s": np.empty(0)}
    lengths = [(table, len(table["submit_s"])) for table in dump.tables]
    flags = [table.get(LOCAL, np.zeros(length, bool)) for table, length in lengths]
    columns[LOCAL] = np.concatenate(flags) if flags else np.empty(0, bool)
    dump.tables.clear()
    if "job" in columns:
        columns = _chain(columns, dump)
        columns = _join_parts(columns, dump)
    _leave_out(columns, dump)
    kept = columns.pop("_kept")
    order = np.flatnonzero(kept)
    order = order[np.argsort(columns["submit_s"][order], kind="stable")]
    columns = {name: take_column(column, order) for name, column in columns.items()}
    _partition_limits(columns, dump)
    dump.local_times = bool(columns[LOCAL].any())
    if dump.local_times and not options.timezone:
        dump.report.guessed[TAKEN_AS_UTC] = int(columns[LOCAL].sum())
    if "dependency" in columns:
        _count_dependencies(columns, dump)
    if dump.task_limits:
        most_common = Counter(dump.task_limits.values()).most_common(1)[0][0]
        told = f"arrays with a limit of their own of running tasks (most often {most_common}): taken as none; "
        dump.report.guessed[told + "array_max_jobs sets one limit for all arrays"] += len(dump.task_limits)
    dump.columns = drop_empty(columns)
    if not dump.nodes and "node_list" in columns:
        dump.nodes = count_hosts(columns["node_list"])


def local_rows(times: dict[str, NDArray[np.float64]], in_utc: dict[str, Any]) -> NDArray[np.bool_]:
    """Return which jobs have a time that is not in UTC."""
    known = [np.isfinite(values) & ~np.asarray(in_utc[name], bool) for name, values in times.items()]
    return np.asarray(np.logical_or.reduce(known), bool)


def _count_dependencies(columns: dict[str, Any], dump: Dump) -> None:
    """Count the dependencies that no simulation heeds, by reason."""
    texts = columns["dependency"].values()
    jobs = columns["job"].values() if "job" in columns else [None] * len(texts)
    dump.report.guessed[_NO_DEPENDENCY] += unread(texts)
    never = np.zeros(len(texts), bool)
    if "state" in columns:
        state, run = columns["state"], columns.get("run_s", np.full(len(texts), np.nan))
        never = np.isnan(run) & np.isin(state.codes, [k for k, name in enumerate(state.names) if name == "cancelled"])
    for reason, number in zip((_ABSENT, _LATE, _IDLE), unmet(jobs, texts, never), strict=True):
        dump.report.guessed[reason] += number


def count_hosts(lists: Text) -> int:
    """Return how many different hosts stand in node lists; what is no host list counts as one host."""
    hosts: set[str] = set()
    for name in lists.names:
        try:
            hosts.update(expand_hosts(name) if "[" in name or "," in name else (name,))
        except ValueError:
            hosts.add(name)
    return len(hosts)


def _leave_out(columns: dict[str, Any], dump: Dump) -> None:
    """Mark the rows that can be jobs, and count the others by reason."""
    submit = columns["submit_s"]
    nothing = np.full(len(submit), np.nan)
    start, end = columns.get("start_s", nothing), columns.get("end_s", nothing)
    kept = np.ones(len(submit), bool)
    for reason, bad in zip(NEVER, (np.isnan(submit), start < submit, end < start), strict=True):
        dump.report.left_out[reason] += int((kept & bad).sum())
        kept &= ~bad
    columns["_kept"] = kept


def _chain(columns: dict[str, Any], dump: Dump) -> dict[str, Any]:
    """Join the runs of a job that was requeued: first submission, last run, and what the earlier runs took."""
    codes = columns["job"].codes
    groups = _groups(codes)
    restarts = columns.get("restarts")
    if restarts is not None:
        again = int((restarts > 0).sum()) - sum(1 for rows in groups if (restarts[rows] > 0).any())
        dump.report.guessed[RESTARTED_ONCE_SEEN] += max(0, again)
    if not groups:
        return columns
    columns = {name: _copy(column) for name, column in columns.items()}
    size = len(codes)
    for name in ("first_start_s", "lost_s", "restarts"):
        columns.setdefault(name, np.full(size, np.nan))
    gone = np.zeros(size, bool)
    for rows in groups:
        for same_user in _by_user(columns, rows):
            _chain_one(columns, same_user, gone, dump)
    return {name: take_column(column, ~gone) for name, column in columns.items()}


def _copy(column: Any) -> Any:
    return Text(column.codes.copy(), column.names) if isinstance(column, Text) else column.copy()


def _groups(codes: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Return the rows of each code that stands in more than one row, in order of the rows."""
    many = np.flatnonzero(np.bincount(codes[codes >= 0]) > 1) if (codes >= 0).any() else np.empty(0, int)
    if not len(many):
        return []
    rows = np.flatnonzero(np.isin(codes, many))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1)


def _by_user(columns: dict[str, Any], rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Split the rows of a job number by user: a number that is used again by another is another job."""
    user = columns.get("user")
    if user is None:
        return [rows]
    return [rows[user.codes[rows] == code] for code in dict.fromkeys(user.codes[rows].tolist())]


def _chain_one(columns: dict[str, Any], rows: NDArray[np.int64], gone: NDArray[np.bool_], dump: Dump) -> None:
    nothing = np.full(len(columns["submit_s"]), np.nan)
    start, end = columns.get("start_s", nothing), columns.get("end_s", nothing)
    when = np.where(np.isnan(start[rows]), np.inf, start[rows])
    rows = rows[np.lexsort((columns["submit_s"][rows], when))]
    runs = _different_runs(rows, start, end)
    dump.report.joined["rows of a run that is in another row"] += len(rows) - len(runs)
    gone[np.setdiff1d(rows, runs)] = True
    if len(runs) == 1:
        return
    started = [row for row in runs if not np.isnan(start[row])]
    last = started[-1] if started else runs[-1]
    final = runs[-1]
    dump.report.joined["runs of a job that was requeued"] += len(runs) - 1
    for row in runs:
        gone[row] = row != last
    for name in ("submit_s", "eligible_s"):
        if name in columns and not np.isnan(columns[name][rows]).all():
            columns[name][last] = np.nanmin(columns[name][rows])
    columns[LOCAL][last] = columns[LOCAL][rows].any()
    earlier = [row for row in started if row != last]
    columns["restarts"][last] = np.nanmax([len(earlier), columns["restarts"][last]])
    if earlier:
        columns["first_start_s"][last] = start[earlier[0]]
        columns["lost_s"][last] = np.nansum(columns.get("run_s", nothing)[earlier])
    if final != last and "state" in columns:
        columns["state"].codes[last] = columns["state"].codes[final]
        if "cancel_s" in columns:
            columns["cancel_s"][last] = np.nan


def _different_runs(rows: NDArray[np.int64], start: NDArray[np.float64], end: NDArray[np.float64]) -> list[int]:
    """Return one row for each run: of rows with the same start the one that knows the end, and no row that waits if
    the job started later."""
    by_start: dict[float, int] = {}
    waiting = [row for row in rows.tolist() if np.isnan(start[row])]
    for row in rows.tolist():
        if not np.isnan(start[row]):
            key = float(start[row])
            if key not in by_start or np.isnan(end[by_start[key]]) or not np.isnan(end[row]):
                by_start[key] = row
    return (
        [*by_start.values(), *waiting[-1:]]
        if not by_start or _ends_waiting(waiting, by_start, end)
        else [*by_start.values()]
    )


def _ends_waiting(waiting: list[int], by_start: dict[float, int], end: NDArray[np.float64]) -> bool:
    """Return whether a job that ran waits again, or was cancelled while it waited again."""
    last = end[by_start[max(by_start)]]
    return bool(waiting) and not np.isnan(last) and bool(waiting[-1] > by_start[max(by_start)])


def _join_parts(columns: dict[str, Any], dump: Dump) -> dict[str, Any]:
    """Join the components of heterogeneous jobs (1234+0, 1234+1): they start together, and are one job."""
    names = columns["job"].names
    if not any("+" in name for name in names):
        return columns
    places: dict[str, int] = {}
    bases = np.array([places.setdefault(name.split("+")[0], len(places)) for name in names], np.int32)
    is_part = np.array(["+" in name for name in names])[columns["job"].codes]
    codes = np.where(is_part, bases[columns["job"].codes], -1).astype(np.int32)
    columns = {name: _copy(column) for name, column in columns.items()}
    gone = np.zeros(len(codes), bool)
    for rows in _groups(codes):
        _join_one(columns, rows)
        gone[rows[1:]] = True
        dump.report.joined["components of heterogeneous jobs"] += len(rows) - 1
    return {name: take_column(column, ~gone) for name, column in columns.items()}


def _join_one(columns: dict[str, Any], rows: NDArray[np.int64]) -> None:
    """Make the first component the whole job."""
    first = rows[0]
    join: dict[str, Callable[[NDArray[np.float64]], float]] = dict.fromkeys(SUMMED, np.nansum)
    join |= dict.fromkeys(("submit_s", "start_s", "first_start_s"), np.nanmin)
    join |= dict.fromkeys(("eligible_s", "end_s", "run_s", "requested_s", "lost_s", "restarts", "cancel_s"), np.nanmax)
    for name, function in join.items():
        if name in columns and not np.isnan(columns[name][rows]).all():
            columns[name][first] = function(columns[name][rows])
    columns[LOCAL][first] = columns[LOCAL][rows].any()
    lists = columns.get("node_list")
    if lists is not None:
        joined = ",".join(lists.names[code] for code in lists.codes[rows].tolist() if code >= 0)
        if joined:
            columns["node_list"] = Text(lists.codes, (*lists.names, joined))
            lists.codes[first] = len(lists.names)


def _partition_limits(columns: dict[str, Any], dump: Dump) -> None:
    """Put the largest requested time of the partition in place of Partition_Limit."""
    requested = columns.get("requested_s")
    if requested is None or not (requested == PARTITION_LIMIT).any():
        return
    open_ = requested == PARTITION_LIMIT
    requested[open_] = np.nan
    partition = columns.get("partition")
    groups = np.zeros(len(requested), np.int32) if partition is None else partition.codes
    for code in np.unique(groups[open_]).tolist():
        here = groups == code
        known = requested[here & np.isfinite(requested)]
        if len(known):
            requested[here & open_] = known.max()
            count = int((here & open_).sum())
            dump.report.guessed["time limit of the partition, taken as the largest requested in it"] += count
