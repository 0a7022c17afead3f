"""The order of the queue by the utility of its jobs: their priority, which stays, or one that grows with the wait.

The latter is that of Cobalt's WFP on the Blue Gene/P (tang2010). A job that has waited w of an estimated e seconds for
n nodes has the utility (w / e)^3 n: one that waits longer than it will run soon comes first, and large jobs before
small ones. Jobs of equal utility keep their order.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_WAIT, State


@kernel
def order_queue(s: State) -> None:
    """Sort the queue by falling utility as of now; a recovered job may have a fixed one."""
    for at in range(s.queue_head, s.queue_tail):
        job = s.queue[at]
        utility = s.job.fixed_utility[job]
        if np.isnan(utility) and s.queue_order != BY_WAIT:
            utility = s.job.priority[job]
        elif np.isnan(utility):
            share = (s.now - s.job.utility_since[job]) / s.job.estimate[job]
            utility = share * share * share * s.job.requested[job]
        s.job.utility[job] = utility
        place = at
        while place > s.queue_head and s.job.utility[s.queue[place - 1]] < utility:
            s.queue[place] = s.queue[place - 1]
            place -= 1
        s.queue[place] = job
    s.scanned_version = -1  # another job may be the head
