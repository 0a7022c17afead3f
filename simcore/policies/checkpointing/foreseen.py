"""Checkpoints before failures that are foreseen (``exact``, ``bucket``): the times at which they may start.

There is an instant at such a time only if a job begins a checkpoint then. A job begins none while it pauses.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    RUNNING,
    SAVES,
    State,
)
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
        hooks.pass_on_checkpoint(s)
    return min(before, max(s.next_foreseen, s.now))


@kernel
def begin_foreseen(s: State) -> None:
    """Begin the checkpoints of this instant."""
    cost = s.checkpoint_cost
    until = hooks.checkpoint_ends(s)
    for at in range(_list_due(s)):
        begin_saving(s, s.order[at], SAVES, cost, until)
    hooks.pass_on_checkpoint(s)


@kernel
def _list_due(s: State) -> int:
    """List the jobs that begin a checkpoint at NEXT_FORESEEN in the list ORDER; return their number."""
    time = s.next_foreseen
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
        if hooks.checkpoint_is_due(s, job):
            s.order[count] = job
            count += 1
    return hooks.checkpoints_kept(s, count)
