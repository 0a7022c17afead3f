"""Jobs that wait for the end of others: they are not in the queue before.

A job is eligible once it is submitted, those that it follows have ended, and its think time after each of these is
over. It then takes the place of its submission in the queue; its wait, its response and its age count from then.
"""

from __future__ import annotations

from faultsweep.simcore.engine.events import (
    attempts_before,
    comes_before,
    enqueue_behind,
    enqueue_by_arrival,
    trace_event,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ARRIVE_EVENT,
    HELD,
    RESUBMIT_TIMER,
    TIMER_STRIDE,
    WAITING,
    State,
)
from faultsweep.simcore.engine.timers import push_timer


@kernel
def is_held(s: State, job: int) -> bool:
    """Tell whether a job that is submitted now must wait for others, or for its think time; if so, it is held."""
    if s.waits_for[job] == 0 and s.free_from[job] <= s.now:
        return False
    s.job.status[job] = HELD
    s.num_held += 1
    if s.waits_for[job] == 0:
        push_timer(s, s.free_from[job], RESUBMIT_TIMER * TIMER_STRIDE + job)
    return True


@kernel
def free_followers(s: State, job: int) -> None:
    """Tell those that follow a job that it has ended."""
    for at in range(s.first_follower[job], s.first_follower[job + 1]):
        other = s.follower[at]
        s.waits_for[other] -= 1
        s.free_from[other] = max(s.free_from[other], s.now + s.think[at])
        if s.waits_for[other] == 0 and s.job.status[other] == HELD:
            push_timer(s, s.free_from[other], RESUBMIT_TIMER * TIMER_STRIDE + other)


@kernel
def become_eligible(s: State, job: int) -> None:
    """Put a job that was held into the queue, at the place of its submission; jobs that have come back keep theirs."""
    s.num_held -= 1
    s.without_job = 0
    s.job.status[job] = WAITING
    s.job.eligible[job] = s.now
    if s.job.utility_since.shape[0] > 0:
        s.job.utility_since[job] = s.now
    s.queued += s.job.requested[job]
    s.scanned_version = -1  # it may come before jobs that have been refused
    if s.tracing == 1:
        trace_event(s, ARRIVE_EVENT, job)
    if s.recovery == 0:
        enqueue_by_arrival(s, job)
        return
    count = s.queue_tail - s.queue_head
    while count > 0 and _is_passed(s, s.queue[s.queue_head + count - 1], job):
        count -= 1
    enqueue_behind(s, job, count)


@inlined
def _is_passed(s: State, other: int, job: int) -> bool:
    """Tell whether a job that becomes eligible passes another one, which has not run yet and comes behind it."""
    return attempts_before(s, other) == 0 and not comes_before(s, other, job)
