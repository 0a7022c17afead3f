"""Checkpoints before failures that are foreseen (``exact``, ``bucket``): the times at which they may start.

There is an instant at such a time only if a job begins a checkpoint then. A job begins none while it pauses.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    BIGGEST_JOBS,
    BUCKET_JOBS,
    BUCKET_LONG,
    CHECKPOINT,
    CHECKPOINT_COST,
    DRAWN_UNTIL,
    END,
    EXACT,
    FAIL_TIME,
    LONG_JOBS,
    NEXT_FORESEEN,
    NEXT_FORESEEN_FAILURE,
    NOW,
    NUM_RELEASES,
    ORDER,
    RELEASE_ITEM,
    RESUMED,
    RUNNING,
    SAVES,
    START,
    STATUS,
)
from faultsweep.simcore.policies.checkpointing.bucket import keep_biggest, next_in_buckets
from faultsweep.simcore.policies.checkpointing.exact import fails_after_checkpoint, next_exact
from faultsweep.simcore.policies.checkpointing.saving import begin_saving

_MOST_PASSED = 10_000


@kernel
def next_foreseen(s, before):
    """Return the first time, earlier than ``before``, at which a job begins a checkpoint as things stand, or
    ``before``; no further than failures are known.

    After so many times at which no job does, it returns the last of them, so that the loop can look at its clock.
    Without another event no job runs.
    """
    if before == np.inf:
        return before
    for _ in range(_MOST_PASSED):
        if s.f[NEXT_FORESEEN] >= min(before, s.f[DRAWN_UNTIL]):
            return before
        if _list_due(s) > 0:
            return s.f[NEXT_FORESEEN]
        _pass_on(s)
    return min(before, max(s.f[NEXT_FORESEEN], s.f[NOW]))


@kernel
def begin_foreseen(s):
    """Begin the checkpoints of this instant."""
    now, cost = s.f[NOW], s.f[CHECKPOINT_COST]
    until = now + cost
    if s.i[CHECKPOINT] == EXACT:
        until = s.failures[FAIL_TIME, s.i[NEXT_FORESEEN_FAILURE]]  # now + cost, without its rounding
    for at in range(_list_due(s)):
        begin_saving(s, s.lists[ORDER, at], SAVES, cost, until)
    _pass_on(s)


@kernel
def _pass_on(s):
    if s.i[CHECKPOINT] == EXACT:
        next_exact(s)
    else:
        next_in_buckets(s)


@kernel
def _list_due(s):
    """List the jobs that begin a checkpoint at NEXT_FORESEEN in the list ORDER; return their number."""
    time, jobs = s.f[NEXT_FORESEEN], s.i[BUCKET_JOBS]
    exact = s.i[CHECKPOINT] == EXACT
    count = 0
    for at in range(s.i[NUM_RELEASES]):
        job = int(s.agenda[RELEASE_ITEM, at])
        if (
            job < 0
            or s.job_i[STATUS, job] != RUNNING
            or s.job_f[START, job] > time
            or s.job_f[RESUMED, job] > time
            or s.job_f[END, job] <= time
        ):
            continue
        if exact:
            due = fails_after_checkpoint(s, job)
        else:
            due = jobs != LONG_JOBS or time - s.job_f[START, job] >= s.f[BUCKET_LONG]
        if due:
            s.lists[ORDER, count] = job
            count += 1
    return keep_biggest(s, count) if not exact and jobs == BIGGEST_JOBS else count
