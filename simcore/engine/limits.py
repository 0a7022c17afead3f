"""Limits of running jobs: which waiting jobs a scheduling pass does not see, because they would exceed one.

Jobs that share a limit, such as those of one user, are a group. A job may start while no group that limits it would
have more running jobs, or more nodes asked for, than it may; some groups only count it. During a pass the others are
not in the queue, so they have no reservation and hold up nobody. When a start brings another job of the queue to a
limit, the pass begins again without that job; one of ``slurm`` goes on and passes it over, because SLURM keeps what it
has planned for jobs that come to a limit later. A job that waits for its own nodes counts as running.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.events import queue_again
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import drop_pieces
from faultsweep.simcore.engine.state import ALL_JOBS, IN_PLANS, TOP_JOBS, State
from faultsweep.simcore.model.machines import SITE


@kernel
def may_run(s: State, job: int) -> bool:
    """Tell whether a job can start without exceeding a limit."""
    for at in range(s.groups_of.shape[1]):
        group = s.groups_of[job, at]
        if group < 0:
            break
        if s.group_jobs[group] >= s.most_jobs[group]:
            return False
        if s.group_nodes[group] + s.job.requested[job] > s.most_nodes[group]:
            return False
    return True


@kernel
def count_running(s: State, job: int, sign: int) -> None:
    """Count a job as running in its groups, or, with the sign -1, no longer."""
    for at in range(s.groups_of.shape[1]):
        group = s.groups_of[job, at]
        if group == -1:
            break
        group = group if group >= 0 else -2 - group
        s.group_jobs[group] += sign
        s.group_nodes[group] += sign * s.job.requested[job]


@kernel
def note_start(s: State, job: int) -> None:
    """Count a job that starts; note whether another one in the queue has come to a limit by that."""
    count_running(s, job, 1)
    if s.reserves == IN_PLANS:
        return
    for position in range(s.queue_head, s.queue_tail):
        other = s.queue[position]
        if other != job and not may_run(s, other):
            s.passes_again = 1
            return


@kernel
def leave_out(s: State) -> None:
    """Take the jobs at a limit out of the queue for a pass."""
    head, end = s.queue_head, s.queue_head
    s.num_waiting = s.queue_tail - head
    for at in range(s.num_waiting):
        job = s.queue[head + at]
        s.waiting[at] = job
        runs = may_run(s, job)
        _note_limit(s, job, runs)
        if runs:
            s.queue[end] = job
            end += 1
    s.queue_tail = end
    s.scanned_version = -1  # other jobs may stand at these positions


@kernel
def _note_limit(s: State, job: int, runs: bool) -> None:
    """Note when a job comes to a limit and when it may run again; then reservations are made from scratch."""
    changed = False
    if runs and s.is_at_limit[job] == 1:
        s.is_at_limit[job] = 0
        s.time_at_limit[job] += s.now - s.at_limit_since[job]
        changed = True
    elif not runs and s.is_at_limit[job] == 0:
        s.is_at_limit[job] = 1
        s.at_limit_since[job] = s.now
        if s.reserves == ALL_JOBS or s.reserves == TOP_JOBS:
            changed = not np.isnan(s.job.reserved[job])
            s.job.reserved[job] = np.nan
            if s.kind == SITE:
                drop_pieces(s, job)
    if changed:
        s.disturbed = 1
        s.reorders += 1


@kernel
def has_come_to_limit(s: State, job: int) -> bool:
    """Tell whether a start of this pass has brought a job of the queue to a limit."""
    return s.limited == 1 and not may_run(s, job)


@kernel
def put_back(s: State) -> None:
    """Put the jobs at a limit into the queue again, at their places."""
    queue_again(s, s.waiting, s.num_waiting)
    if s.reserves == IN_PLANS:
        for position in range(s.queue_head, s.queue_tail):
            _note_limit(s, s.queue[position], may_run(s, s.queue[position]))
