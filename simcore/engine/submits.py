"""Limits of submitted jobs: a job whose submission would exceed one is refused, and never runs.

Jobs count from their submission to their end in the groups that share a limit, as those of limits of running jobs do.
The tasks of an array that are submitted at one time are one submission: all of them are refused or none.
"""

from __future__ import annotations

from faultsweep.simcore.engine.dependencies import free_followers
from faultsweep.simcore.engine.events import trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import REFUSE_EVENT, REFUSED, State


@kernel
def is_refused(s: State, job: int) -> bool:
    """Tell whether a job that is submitted now is refused; if so, it has ended, else it counts as submitted."""
    first = s.first_task[job]
    if first == job and not _submit(s, job):
        s.job.status[job] = REFUSED
    if s.job.status[first] != REFUSED:
        return False
    s.job.status[job] = REFUSED
    s.finished += 1
    if s.follows == 1:
        free_followers(s, job)
    if s.tracing == 1:
        trace_event(s, REFUSE_EVENT, job)
    return True


@kernel
def _submit(s: State, first: int) -> bool:
    """Count the tasks of a submission, unless one of them would exceed a limit."""
    task = first
    while task >= 0:
        if not _may_be_submitted(s, task):
            counted = first
            while counted != task:
                count_submitted(s, counted, -1)
                counted = s.next_task[counted]
            return False
        count_submitted(s, task, 1)
        task = s.next_task[task]
    return True


@kernel
def _may_be_submitted(s: State, job: int) -> bool:
    for at in range(s.submit_groups_of.shape[1]):
        group = s.submit_groups_of[job, at]
        if group < 0:
            break
        if s.submitted[group] >= s.most_submitted[group]:
            return False
    return True


@kernel
def count_submitted(s: State, job: int, sign: int) -> None:
    """Count a job as submitted in its groups, or, with the sign -1, no longer."""
    for at in range(s.submit_groups_of.shape[1]):
        group = s.submit_groups_of[job, at]
        if group == -1:
            break
        s.submitted[group if group >= 0 else -2 - group] += sign
