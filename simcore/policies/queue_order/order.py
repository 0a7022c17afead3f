"""The order of the queue by a utility of wait, estimate and size, as Cobalt's WFP on the Blue Gene/P (tang2010).

A job that has waited w of an estimated e seconds for n nodes has the utility (w / e)^3 n: one that waits longer than it
will run soon comes first, and large jobs before small ones. Jobs of equal utility keep their order.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ESTIMATE,
    FIXED_UTILITY,
    NOW,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REQUESTED,
    SCANNED_VERSION,
    UTILITY,
    UTILITY_SINCE,
)


@kernel
def order_queue(s):
    """Sort the queue by falling utility as of now; a recovered job may have a fixed one."""
    for at in range(s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]):
        job = s.lists[QUEUE, at]
        utility = s.job_f[FIXED_UTILITY, job]
        if np.isnan(utility):
            share = (s.f[NOW] - s.job_f[UTILITY_SINCE, job]) / s.job_f[ESTIMATE, job]
            utility = share * share * share * s.job_i[REQUESTED, job]
        s.job_f[UTILITY, job] = utility
        place = at
        while place > s.i[QUEUE_HEAD] and s.job_f[UTILITY, s.lists[QUEUE, place - 1]] < utility:
            s.lists[QUEUE, place] = s.lists[QUEUE, place - 1]
            place -= 1
        s.lists[QUEUE, place] = job
    s.i[SCANNED_VERSION] = -1  # another job may be the head
