"""What every checkpoint does, whoever decides on it: the job pauses, and its work so far is saved when the pause ends.

A pause moves the end of the job, and the end that the scheduler expects, when it begins. A checkpoint that a failure
cuts short has saved nothing; the time spent on it is overhead all the same.
"""

from __future__ import annotations

from faultsweep.simcore.engine.events import add_release, cancel_timer, drop_release, push_timer, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    CHECKPOINT,
    CHECKPOINT_EVENT,
    CHECKPOINT_TIMER,
    CHECKPOINTS,
    CHECKPOINTS_USED,
    COMPLETION_TIMER,
    DISTURBED,
    END,
    EXACT,
    EXPECTED_END,
    GROWN,
    INTERVAL,
    NEXT_SAVE,
    NO_CHECKPOINTS,
    NOT_SAVING,
    NOW,
    OTHER_TIMER,
    OVERHEAD,
    OVERHEAD_NODES,
    REQUESTED,
    RESUMED,
    SAVED,
    SAVES,
    SAVING,
    SAVING_SINCE,
    SCANNED_VERSION,
    TIMER_STRIDE,
    TRACING,
    UNUSED_CHECKPOINT,
    WORK,
    WORKED,
)
from faultsweep.simcore.policies.checkpointing.intervals import interval_of


@kernel
def pause(s, job, cost):
    """Stop the work of a running job for ``cost`` seconds from now on, beginning after any pause it is already in."""
    work = s.job_f
    now = s.f[NOW]
    work[WORKED, job] += max(0.0, now - work[RESUMED, job])
    work[RESUMED, job] = max(now, work[RESUMED, job]) + cost
    work[OVERHEAD_NODES, job] += cost * s.job_i[ALLOCATED, job]
    drop_release(s, job)
    cancel_timer(s, COMPLETION_TIMER * TIMER_STRIDE + job)
    work[END, job] += cost
    work[EXPECTED_END, job] += cost
    push_timer(s, work[END, job], COMPLETION_TIMER * TIMER_STRIDE + job)
    add_release(s, work[EXPECTED_END, job], job)
    s.i[DISTURBED] = 1
    s.i[SCANNED_VERSION] = -1  # the head job's reservation may change though the free nodes do not
    if counts_work(s):
        plan(s, job)


@kernel
def counts_work(s):
    """Tell whether the policy is one of those that save after so much work."""
    return NO_CHECKPOINTS < s.i[CHECKPOINT] < EXACT


@kernel
def begin_attempt(s, job):
    """Plan the checkpoints of an attempt that starts now."""
    s.job_i[UNUSED_CHECKPOINT, job] = 0
    if counts_work(s):
        s.job_f[INTERVAL, job] = interval_of(s, job)
        s.job_f[NEXT_SAVE, job] = s.job_f[SAVED, job] + s.job_f[INTERVAL, job]
        plan(s, job)


@kernel
def plan(s, job):
    """Set the timer for when the work reaches NEXT_SAVE, if at least one interval of work remains then."""
    work = s.job_f
    key = OTHER_TIMER * TIMER_STRIDE + job
    cancel_timer(s, key)
    if s.job_i[SAVING, job] == NOT_SAVING and work[WORK, job] - work[NEXT_SAVE, job] >= work[INTERVAL, job]:
        push_timer(s, work[RESUMED, job] + (work[NEXT_SAVE, job] - work[WORKED, job]), key)


@kernel
def begin_saving(s, job, kind, cost, until):
    """Begin a checkpoint or a move of ``cost`` seconds that is complete at ``until``; one of no cost is complete at
    once."""
    s.job_i[SAVING, job] = kind
    s.job_f[SAVING_SINCE, job] = s.f[NOW]
    pause(s, job, cost)
    if cost > 0.0:
        push_timer(s, until, CHECKPOINT_TIMER * TIMER_STRIDE + job)
    else:
        complete_saving(s, job)


@kernel
def complete_saving(s, job):
    """Complete a checkpoint or a move: the work done before it is safe."""
    work = s.job_f
    saves = s.job_i[SAVING, job] == SAVES
    work[GROWN, job] += (work[WORKED, job] - work[SAVED, job]) * (s.job_i[ALLOCATED, job] - s.job_i[REQUESTED, job])
    work[SAVED, job] = work[WORKED, job]
    work[OVERHEAD, job] += s.f[NOW] - work[SAVING_SINCE, job]
    s.job_i[SAVING, job] = NOT_SAVING
    s.job_i[UNUSED_CHECKPOINT, job] = 1 if saves else 0
    if saves:
        s.job_i[CHECKPOINTS, job] += 1
        if s.i[TRACING] == 1:
            trace_event(s, CHECKPOINT_EVENT, job)
    if counts_work(s):
        work[NEXT_SAVE, job] = work[SAVED, job] + work[INTERVAL, job]
        plan(s, job)


@kernel
def end_saving(s, job):
    """Forget the checkpoints of an attempt that a failure ends; what was spent on one under way is overhead."""
    if s.job_i[SAVING, job] != NOT_SAVING:
        s.job_f[OVERHEAD, job] += s.f[NOW] - s.job_f[SAVING_SINCE, job]
        s.job_i[SAVING, job] = NOT_SAVING
        cancel_timer(s, CHECKPOINT_TIMER * TIMER_STRIDE + job)
    s.job_i[CHECKPOINTS_USED, job] += s.job_i[UNUSED_CHECKPOINT, job]
    if counts_work(s):
        cancel_timer(s, OTHER_TIMER * TIMER_STRIDE + job)
