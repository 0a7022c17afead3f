"""Which jobs run that hold the same cores, what a suspended one keeps, and when it is expected to end.

A job runs unless one runs on a core of its that started later. So it is suspended when another starts over it, and goes
on as soon as all of its cores are free of running jobs, which may suspend others again. It keeps its place on its
nodes, all its GPUs and memory, and those of its cores on which nobody runs: LACKING counts the others.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import completion_key
from faultsweep.simcore.engine.cores import is_covered, lack, meet, share_node
from faultsweep.simcore.engine.events import add_release, drop_release, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    CHECKPOINT_TIMER,
    HALTED,
    IN_PLANS,
    NOT_SAVING,
    RESUME_EVENT,
    RUNNING,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import push_timer
from faultsweep.simcore.policies.checkpointing.saving import counts_work, plan


@kernel
def settle(s: State) -> None:
    """Suspend the jobs that others run over, and let those go on over which nobody runs: the last that started
    first."""
    for at in range(s.num_stacked - 1, -1, -1):
        job = s.stack[at]
        if s.job.status[job] == RUNNING and is_covered(s, job):
            hooks.job_leaves(s, job)
        elif s.job.status[job] == HALTED and not is_covered(s, job):
            _resume(s, job)
    if s.num_halted > 0:
        for node in range(s.node_cores.shape[0]):
            share_node(s, node)
        expect_halted(s)


@kernel
def _resume(s: State, job: int) -> None:
    """Let a job go on where it was."""
    piece = s.job.first_piece[job]
    while piece >= 0:
        lack(s, piece, 0)
        piece = s.piece_next[piece]
    end_suspension(s, job)
    push_timer(s, s.job.end[job], completion_key(s, job))
    add_release(s, s.job.expected_end[job], job)
    if s.job.saving[job] != NOT_SAVING:
        push_timer(s, s.job.resumed[job], CHECKPOINT_TIMER * TIMER_STRIDE + job)
    if counts_work(s):
        plan(s, job)
    s.disturbed = 1  # reservations of other jobs did not know when this would be
    s.scanned_version = -1
    if s.tracing == 1:
        trace_event(s, RESUME_EVENT, job)


@kernel
def end_suspension(s: State, job: int) -> None:
    """Count a suspended job as a running one again, all times of its attempt later by how long it was suspended; it has
    no timers yet."""
    s.num_halted -= 1
    span = s.now - s.job.halted_since[job]
    s.job.suspended_s[job] += span
    s.job.resumed[job] += span
    s.job.end[job] += span
    s.job.expected_end[job] += span
    s.job.saving_since[job] += span
    s.job.status[job] = RUNNING
    held, piece = s.job.allocated[job], s.job.first_piece[job]
    while piece >= 0:
        held -= s.piece_lacking[piece]
        piece = s.piece_next[piece]
    s.kept -= held
    s.without_job = 0
    drop_release(s, job)
    hooks.usage_changes(s, job, s.job.allocated[job])


@kernel
def expect_halted(s: State) -> None:
    """Expect suspended jobs to go on when the jobs have ended that run on their cores; SLURM expects each to end when
    it would have ended if it had not been suspended."""
    for at in range(s.num_stacked):
        job = s.stack[at]
        if s.job.status[job] == HALTED:
            drop_release(s, job)
            add_release(s, s.job.expected_end[job] if s.reserves == IN_PLANS else _end_after_others(s, job), job)


@kernel
def _end_after_others(s: State, job: int) -> float:
    """Return when a suspended job ends if it goes on when the jobs have ended that run on its cores, s."""
    start, piece = s.now, s.job.first_piece[job]
    while piece >= 0:
        start = max(start, _last_end(s, piece))
        piece = s.piece_next[piece]
    return max(start, start + (s.job.expected_end[job] - s.job.halted_since[job]))


@kernel
def _last_end(s: State, piece: int) -> float:
    """Return when the last of the jobs that run on cores of a piece is expected to end, s."""
    end, other = s.now, s.piece_on[s.piece_node[piece]]
    while other >= 0:
        if s.job.status[s.piece_job[other]] == RUNNING and meet(s, piece, other):
            end = max(end, s.job.expected_end[s.piece_job[other]])
        other = s.piece_beside[other]
    return end
