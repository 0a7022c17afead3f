"""Replicates of a log: the same users in other weeks.

A log is one realisation. Other ones, as likely, are made of its parts (Zakay and Feitelson, Workload resampling for
performance evaluation of parallel job schedulers, Concurrency and Computation: Practice and Experience 26, 2014;
Feitelson, Resampling with feedback, Euro-Par 2016): what a user submits depends on what that user has submitted before,
while users hardly depend on each other. So the jobs of a user stay together, and are moved by whole weeks, which keeps
hours and days of the week.

- Users who are there for long (from their first job to their last, a quarter of the log or twelve weeks) are in every
  replicate once, moved by a random number of weeks; what leaves the log at its end comes in at its beginning.
- Others come and go: as many as the log has are drawn with replacement, and each comes in a random week.
- Of jobs without a user, whole weeks are drawn with replacement.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from faultsweep.simcore.model.workload import Workload, take_labels
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

from faultsweep.errors import InputError

RESAMPLES = {
    "none": "The log as it is, in every replicate.",
    "users": "Another realisation for each replicate: the log's users in other weeks, drawn and moved by whole weeks.",
}

WEEK_S = 7 * 24 * 3600.0
_LONG_WEEKS = 12.0
_LONG_SHARE = 0.25


def check_resampled(workload: Workload) -> None:
    """Raise InputError if a log is too short to be resampled."""
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    if span_s < 2 * WEEK_S:
        raise InputError(
            f"{workload.name}: resample needs jobs of two weeks or more, and these are of {span_s / WEEK_S:.2g} weeks"
        )


def resample(workload: Workload, seed: int = 0, replicate: int = 0) -> Workload:
    """Return another realisation of a log; its jobs are numbered anew, and a user who is drawn again is another one.

    Parameters
    ----------
    workload : jobs of two weeks or more.
    seed, replicate : of the stream "resample"; each replicate is another realisation.

    Returns
    -------
    Workload
        Over the same whole weeks from the first submission on. The number of jobs differs from that of the log by who
        is drawn.

    Raises
    ------
    InputError
        The jobs are of less than two weeks.
    """
    check_resampled(workload)
    random = stream(seed, replicate, "resample")
    first = float(workload.submit_s[0])
    since = workload.submit_s - first
    weeks = int(since[-1] // WEEK_S) + 1
    rows, moved, groups = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0, np.int64)]
    for user, (jobs, start) in enumerate(_draw(workload, since, weeks, random)):
        week = since[jobs] // WEEK_S
        place = (week + start) % weeks
        rows.append(jobs)
        moved.append(since[jobs] + (place - week) * WEEK_S)
        groups.append(np.full(len(jobs), user))
    chosen, times, group = np.concatenate(rows), np.concatenate(moved), np.concatenate(groups)
    order = np.lexsort((chosen, times))
    return _taken(workload, chosen[order], first + times[order], group[order])


def _draw(
    workload: Workload, since: NDArray[np.float64], weeks: int, random: np.random.Generator
) -> list[tuple[NDArray[np.int64], int]]:
    """Return groups of jobs, and by how many weeks each is moved."""
    rows = np.argsort(workload.user, kind="stable")
    owners = workload.user[rows]
    parts = np.split(rows, np.flatnonzero(np.diff(owners)) + 1)
    known = [part for part in parts if workload.user[part[0]] >= 0]
    limit_s = min(_LONG_WEEKS, _LONG_SHARE * weeks) * WEEK_S
    long = [part for part in known if since[part[-1]] - since[part[0]] >= limit_s]
    short = [part for part in known if since[part[-1]] - since[part[0]] < limit_s]
    groups = [(part, _integer(random, weeks)) for part in long]
    groups += [(short[_integer(random, len(short))], _integer(random, weeks)) for _ in short]
    unknown = np.flatnonzero(workload.user < 0)
    if len(unknown):
        week = (since[unknown] // WEEK_S).astype(np.int64)
        for place in range(weeks):
            drawn = _integer(random, weeks)
            jobs = unknown[week == drawn]
            if len(jobs):
                groups.append((jobs, place - drawn))
    return groups


def _integer(random: np.random.Generator, below: int) -> int:
    return int(random.random() * below)


def _taken(
    workload: Workload, rows: NDArray[np.int64], submit_s: NDArray[np.float64], group: NDArray[np.int64]
) -> Workload:
    """Return the jobs of ``rows``, those of a group, who come together, as the jobs of a user if they have one."""
    names = ("run_s", "requested_s", "size")
    home = None if workload.home is None else workload.home[rows]
    demand = None if workload.demand is None else workload.demand.take(rows)
    parts = {name: getattr(workload, name)[rows] for name in names}
    number = np.arange(1, len(rows) + 1)
    return replace(
        workload,
        **parts,
        home=home,
        demand=demand,
        labels=take_labels(workload, rows),
        submit_s=submit_s,
        user=np.where(workload.user[rows] >= 0, group, -1),
        user_names=(),  # who is drawn twice is two users
        job_id=number,
        dependencies=workload.dependencies and workload.dependencies.taken(rows, group),
    )
