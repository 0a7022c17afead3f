"""What every kind of preemption does with a running job: it is told to leave, and its attempt ends."""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import end_attempt, free_nodes_of
from faultsweep.simcore.engine.events import add_release, drop_release, next_tick, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    AWAY,
    GOES,
    LEAVE_TIMER,
    ORDER_TIMER,
    PREEMPT_EVENT,
    RESUBMIT_TIMER,
    TIMER_STRIDE,
    TOLD,
    State,
)
from faultsweep.simcore.engine.timers import push_timer


@kernel
def tell(s: State, job: int) -> None:
    """Have a running job leave: now, or once its grace is over, in a pass that needs its place, or at a tick."""
    s.job.leaving[job] = TOLD
    grace = s.class_grace[s.job.preempt_class[job]] if s.own_graces == 1 else 0.0
    grace = grace if grace > 0.0 else s.preempt_grace
    if grace == 0.0:
        leave(s, job)
        return
    until = s.now + grace
    s.job.leaves_from[job] = until
    tick = next_tick(until, s.job.submit[0] + s.first_grace_tick, s.grace_interval)
    push_timer(s, tick, LEAVE_TIMER * TIMER_STRIDE + job)
    if until < tick:
        push_timer(s, until, ORDER_TIMER * TIMER_STRIDE + 1 + job)
    _expect(s, job, until)


@kernel
def leave(s: State, job: int) -> None:
    """Have a job leave that has no grace left: at once, or, under ``slurm``, after the pass."""
    if s.leaves_later == 0:
        hooks.job_leaves(s, job)
        return
    s.job.leaving[job] = GOES
    push_timer(s, s.now + s.preempt_leave, LEAVE_TIMER * TIMER_STRIDE + job)
    _expect(s, job, s.now + s.preempt_leave)


@kernel
def _expect(s: State, job: int, until: float) -> None:
    """Expect a running job to end at a time, unless it is expected to end before."""
    if until < s.job.expected_end[job]:
        s.job.expected_end[job] = until
        drop_release(s, job)
        add_release(s, until, job)
        s.scanned_version = -1  # reservations may change though the free nodes do not


@kernel
def depart(s: State, job: int) -> None:
    """End the attempt of a running job and free its nodes; its unsaved work is lost."""
    lost = end_attempt(s, job)
    s.job.preempted_nodes[job] += lost * s.job.allocated[job]
    if s.tracing == 1:
        trace_event(s, PREEMPT_EVENT, job)
    s.job.preemptions[job] += 1
    free_nodes_of(s, job)
    s.changed, s.left_at = 1, s.now


@kernel
def come_back(s: State, job: int) -> None:
    """Let a job that has left wait again: once this event time is over, or when it has been held for long enough."""
    s.job.status[job] = AWAY
    push_timer(s, s.now + s.requeue_hold, RESUBMIT_TIMER * TIMER_STRIDE + job)
