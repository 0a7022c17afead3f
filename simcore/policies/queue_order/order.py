"""The order of the queue by the utility of its jobs: their priority, which stays, or one that changes while they wait.

Jobs of equal utility keep their order. Under conservative backfilling all reservations are made anew when the order
changes, so one may get later.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import ALL_JOBS, ORDER_TIMER, TIMER_STRIDE, State
from faultsweep.simcore.engine.timers import has_timer, push_timer


@kernel
def order_queue(s: State) -> None:
    """Sort the queue by rank if it is in tiers, and by falling utility as of now; a recovered job may have a fixed
    one.

    Where the order stays, only the jobs that have come since the last time have to be put in their places.
    """
    changed, first = False, s.queue_head
    if s.order_stays == 1:
        first = max(first, s.queue_tail - s.num_unordered)
    s.num_unordered = 0
    if s.own_order != 0:
        call_own(s.own_order, s, 0, 0, 0)
    for at in range(first, s.queue_tail):
        job = s.queue[at]
        utility = s.job.fixed_utility[job]
        if np.isnan(utility):
            utility = hooks.utility(s, job)
        s.job.utility[job] = utility
        place = at  # jobs that it passes lose their reservations, which are made anew in the new order
        while place > s.queue_head and _is_behind(s, s.queue[place - 1], job):
            s.queue[place] = s.queue[place - 1]
            place -= 1
        s.queue[place] = job
        changed = changed or place < at
    if changed and s.reserves == ALL_JOBS:
        s.disturbed = 1
        s.reorders += 1
    if changed or s.order_stays == 0:
        s.scanned_version = -1  # another job may be the head


@inlined
def _is_behind(s: State, other: int, job: int) -> bool:
    """Tell whether a job must stand behind another one, whose utility is known, too."""
    if s.in_tiers == 1 and s.job.queue_rank[other] != s.job.queue_rank[job]:
        return s.job.queue_rank[other] < s.job.queue_rank[job]
    return s.job.utility[other] < s.job.utility[job]


@inlined
def await_next_order(s: State) -> None:
    """After a pass, set a timer for when the order of the queue changes next though nothing happens."""
    if s.next_ordering <= s.now and s.queue_tail > s.queue_head and _anything_comes(s):
        s.next_ordering = hooks.order_changes(s)
        if s.next_ordering < np.inf:
            push_timer(s, s.next_ordering, ORDER_TIMER * TIMER_STRIDE)


@inlined
def _anything_comes(s: State) -> bool:
    """Tell whether an event is known that is still to come."""
    return has_timer(s) or s.next_arrival < s.job.submit.shape[0] or s.next_failure < s.fail_time.shape[0]
