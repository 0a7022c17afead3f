"""Checkpoints before failures that are foreseen (``exact``, ``bucket``): the times at which they may start.

There is an instant at such a time only if a job begins a checkpoint then. A job begins none while it pauses.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    BIGGEST_JOBS,
    EXACT,
    LONG_JOBS,
    RUNNING,
    SAVES,
    State,
)
from faultsweep.simcore.policies.checkpointing.bucket import keep_biggest, next_in_buckets
from faultsweep.simcore.policies.checkpointing.exact import fails_after_checkpoint, next_exact
from faultsweep.simcore.policies.checkpointing.saving import begin_saving

_MOST_PASSED = 10_000


@kernel
def next_foreseen(s: State, before: float) -> float:
    """Return the first time, earlier than ``before``, at which a job begins a checkpoint as things stand, or
    ``before``; no further than failures are known.

    After so many times at which no job does, it returns the last of them, so that the loop can look at its clock.
    Without another event no job runs.
    """
    if before == np.inf:
        return before
    for _ in range(_MOST_PASSED):
        if s.next_foreseen >= min(before, s.drawn_until):
            return before
        if _list_due(s) > 0:
            return s.next_foreseen
        _pass_on(s)
    return min(before, max(s.next_foreseen, s.now))


@kernel
def begin_foreseen(s: State) -> None:
    """Begin the checkpoints of this instant."""
    now, cost = s.now, s.checkpoint_cost
    until = now + cost
    if s.checkpoint == EXACT:
        until = s.fail_time[s.next_foreseen_failure]  # now + cost, without its rounding
    for at in range(_list_due(s)):
        begin_saving(s, s.order[at], SAVES, cost, until)
    _pass_on(s)


@kernel
def _pass_on(s: State) -> None:
    if s.checkpoint == EXACT:
        next_exact(s)
    else:
        next_in_buckets(s)


@kernel
def _list_due(s: State) -> int:
    """List the jobs that begin a checkpoint at NEXT_FORESEEN in the list ORDER; return their number."""
    time, jobs = s.next_foreseen, s.bucket_jobs
    exact = s.checkpoint == EXACT
    count = 0
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if (
            job < 0
            or s.job.status[job] != RUNNING
            or s.job.start[job] > time
            or s.job.resumed[job] > time
            or s.job.end[job] <= time
        ):
            continue
        if exact:
            due = fails_after_checkpoint(s, job)
        else:
            due = jobs != LONG_JOBS or time - s.job.start[job] >= s.bucket_long
        if due:
            s.order[count] = job
            count += 1
    return keep_biggest(s, count) if not exact and jobs == BIGGEST_JOBS else count
