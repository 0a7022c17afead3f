"""What every checkpoint does, whoever decides on it: the job pauses, and its work so far is saved when the pause ends.

A pause moves the end of the job, and the end that the scheduler expects, when it begins. A checkpoint that a failure
cuts short has saved nothing; the time spent on it is overhead all the same.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.events import move_release, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    BY_WORK,
    CHECKPOINT_EVENT,
    CHECKPOINT_TIMER,
    COMPLETION_TIMER,
    DEFAULT,
    LEAVE_TIMER,
    NOT_SAVING,
    OTHER_TIMER,
    SAVES,
    SAVES_LAST,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import cancel_timer, push_timer


@kernel
def pause(s: State, job: int, cost: float) -> None:
    """Stop the work of a running job for ``cost`` seconds from now on, beginning after any pause it is already in."""
    now = s.now
    s.job.worked[job] += max(0.0, now - s.job.resumed[job])
    s.job.resumed[job] = max(now, s.job.resumed[job]) + cost
    s.job.overhead_nodes[job] += cost * s.job.allocated[job]
    cancel_timer(s, COMPLETION_TIMER * TIMER_STRIDE + job)
    s.job.end[job] += cost
    s.job.expected_end[job] += cost
    push_timer(s, s.job.end[job], COMPLETION_TIMER * TIMER_STRIDE + job)
    move_release(s, s.job.expected_end[job], job)
    if cost > 0.0:
        s.disturbed = 1
        s.scanned_version = -1  # the head job's reservation may change though the free nodes do not
    if counts_work(s):
        plan(s, job)


@kernel
def counts_work(s: State) -> bool:
    """Tell whether the policy is one of those that save after so much work."""
    return s.saves_by == BY_WORK


@kernel
def begin_attempt(s: State, job: int) -> None:
    """Plan the checkpoints of an attempt that starts now."""
    s.job.unused_checkpoint[job] = 0
    if counts_work(s):
        s.job.interval[job] = hooks.work_between_checkpoints(s, job)
        s.job.next_save[job] = s.job.saved[job] + s.job.interval[job]
        plan(s, job)


@kernel
def plan(s: State, job: int) -> None:
    """Set the timer for when the work reaches NEXT_SAVE, if at least one interval of work remains then."""
    forget_plan(s, job)
    if s.job.saving[job] == NOT_SAVING and s.job.work[job] - s.job.next_save[job] >= s.job.interval[job]:
        at = s.job.resumed[job] + (s.job.next_save[job] - s.job.worked[job])
        push_timer(s, at, OTHER_TIMER * TIMER_STRIDE + job)
        s.job.is_planned[job] = 1


@kernel
def forget_plan(s: State, job: int) -> None:
    """Cancel this timer if there is one."""
    if s.job.is_planned.shape[0] > 0 and s.job.is_planned[job] == 1:
        s.job.is_planned[job] = 0
        cancel_timer(s, OTHER_TIMER * TIMER_STRIDE + job)


@kernel
def reach_interval(s: State, job: int) -> None:
    """Begin the checkpoint of a job whose work has reached NEXT_SAVE, or wait for another interval."""
    s.job.is_planned[job] = 0
    if not hooks.checkpoint_pays(s, job):
        s.job.next_save[job] += s.job.interval[job]
        plan(s, job)
        return
    begin_saving(s, job, SAVES, s.checkpoint_cost, s.now + s.checkpoint_cost)


@kernel
def begin_saving(s: State, job: int, kind: int, cost: float, until: float) -> None:
    """Begin a checkpoint or a move of ``cost`` seconds that is complete at ``until``; one of no cost is complete at
    once."""
    s.job.saving[job] = kind
    s.job.saving_since[job] = s.now
    pause(s, job, cost)
    if cost > 0.0:
        push_timer(s, until, CHECKPOINT_TIMER * TIMER_STRIDE + job)
    else:
        complete_saving(s, job)


@kernel
def complete_saving(s: State, job: int) -> None:
    """Complete a checkpoint or a move: the work done before it is safe."""
    saves = s.job.saving[job] == SAVES
    s.job.grown[job] += (s.job.worked[job] - s.job.saved[job]) * (s.job.allocated[job] - s.job.requested[job])
    s.job.saved[job] = s.job.worked[job]
    s.job.overhead[job] += s.now - s.job.saving_since[job]
    s.job.saving[job] = NOT_SAVING
    s.job.unused_checkpoint[job] = 1 if saves else 0
    if saves:
        s.job.checkpoints[job] += 1
        if s.tracing == 1:
            trace_event(s, CHECKPOINT_EVENT, job)
    if counts_work(s):
        s.job.interval[job] = hooks.next_interval(s, job)
        s.job.next_save[job] = s.job.saved[job] + s.job.interval[job]
        plan(s, job)
    if s.preemption != DEFAULT and s.job.leaving[job] == SAVES_LAST and s.job.saving_since[job] < s.now:
        push_timer(s, s.now, LEAVE_TIMER * TIMER_STRIDE + job)


@kernel
def end_saving(s: State, job: int) -> None:
    """Forget the checkpoints of an attempt that a failure ends; what was spent on one under way is overhead."""
    if s.job.saving.shape[0] == 0:
        return
    if s.job.saving[job] != NOT_SAVING:
        s.job.overhead[job] += s.now - s.job.saving_since[job]
        s.job.saving[job] = NOT_SAVING
        cancel_timer(s, CHECKPOINT_TIMER * TIMER_STRIDE + job)
    s.job.checkpoints_used[job] += s.job.unused_checkpoint[job]
    if counts_work(s):
        forget_plan(s, job)
