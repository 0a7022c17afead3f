"""The order of the queue by the utility of its jobs: their priority, which stays, or one that changes while they wait.

Jobs of equal utility keep their order. Under conservative backfilling all reservations are made anew when the order
changes, so one may get later.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import ALL_JOBS, State


@kernel
def order_queue(s: State) -> None:
    """Sort the queue by falling utility as of now; a recovered job may have a fixed one."""
    changed = False
    if s.own_order != 0:
        call_own(s.own_order, s, 0, 0, 0)
    for at in range(s.queue_head, s.queue_tail):
        job = s.queue[at]
        utility = s.job.fixed_utility[job]
        if np.isnan(utility):
            utility = hooks.utility(s, job)
        s.job.utility[job] = utility
        place = at  # jobs that it passes lose their reservations, which are made anew in the new order
        while place > s.queue_head and s.job.utility[s.queue[place - 1]] < utility:
            s.queue[place] = s.queue[place - 1]
            place -= 1
        s.queue[place] = job
        changed = changed or place < at
    if changed and s.reserves == ALL_JOBS:
        s.disturbed = 1
        s.reorders += 1
    s.scanned_version = -1  # another job may be the head
