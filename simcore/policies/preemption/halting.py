"""What a job keeps that is suspended for another one, when it goes on, and when it is expected to end.

It keeps its place on its nodes, all its GPUs and memory, and those of its cores that nobody uses: LACKING counts the
others. Cores that come free it takes back before anybody else, those of the highest rank first, and of these the first
by index. It goes on as soon as it has them all. When a job that preempts it needs more of its cores, it gives way
again: then it takes none back before a job has started on one of its nodes, or the scheduling pass is over.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import completion_key
from faultsweep.simcore.engine.events import add_release, comes_before, drop_release, push_timer, trace_event
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import piece_on
from faultsweep.simcore.engine.state import (
    BACKFILL_PASS,
    CHECKPOINT_TIMER,
    GIVES,
    HALTED,
    IN_PLANS,
    MAIN_PASS,
    NOT_SAVING,
    RESUME_EVENT,
    RUNNING,
    STAYS,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.policies.checkpointing.saving import counts_work, plan


@kernel
def list_halted(s: State, job: int) -> None:
    """List a job as suspended from now on."""
    at = s.num_halted
    while at > 0 and comes_before(s, job, s.halted[at - 1]):
        s.halted[at] = s.halted[at - 1]
        at -= 1
    s.halted[at] = job
    s.num_halted += 1
    s.job.status[job] = HALTED
    s.job.halted_since[job] = s.now


@kernel
def give_cores(s: State, job: int) -> int:
    """Free the cores that a suspended job holds; return how many these are."""
    s.job.leaving[job] = GIVES
    given, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        node, cores = s.piece_node[piece], s.piece_cores[piece] - s.piece_lacking[piece]
        s.free_cores[node] += cores
        s.lacking[node] += cores
        s.piece_lacking[piece] += cores
        given += cores
        piece = s.piece_next[piece]
    s.free += given
    s.version += 1 if given > 0 else 0
    return given


@kernel
def give_way(s: State, job: int) -> None:
    """Have a job that is suspended already give the cores that it kept to another one."""
    s.kept -= give_cores(s, job)


@kernel
def _take_back(s: State, job: int) -> int:
    """Take what is free of the cores that a suspended job lacks; return how many it lacks still."""
    lacks, taken, piece = 0, 0, s.job.first_piece[job]
    while piece >= 0:
        node = s.piece_node[piece]
        cores = min(s.piece_lacking[piece], s.free_cores[node])
        s.free_cores[node] -= cores
        s.lacking[node] -= cores
        s.piece_lacking[piece] -= cores
        taken += cores
        lacks += s.piece_lacking[piece]
        piece = s.piece_next[piece]
    s.free -= taken
    s.kept += taken
    s.version += 1 if taken > 0 else 0
    return lacks


@kernel
def keep_beside(s: State, job: int) -> None:
    """Let the suspended jobs that share a node with a job that has just started keep what it leaves of their cores."""
    for at in range(s.num_halted):
        other = s.halted[at]
        piece = s.job.first_piece[job]
        while piece >= 0 and piece_on(s, other, s.piece_node[piece]) < 0:
            piece = s.piece_next[piece]
        if piece >= 0:
            s.job.leaving[other] = STAYS
            _take_back(s, other)


@kernel
def go_on(s: State, is_over: bool) -> None:
    """Let suspended jobs take back what is free of their cores, and those go on that have them all.

    is_over : whether the scheduling pass is over in which others could have these cores.
    """
    if s.reserves == IN_PLANS and min(s.pass_due[MAIN_PASS], s.pass_due[BACKFILL_PASS]) <= s.latest:
        is_over = False
    at = 0
    while at < s.num_halted:
        job = s.halted[at]
        if is_over:
            s.job.leaving[job] = STAYS
        if s.job.leaving[job] == STAYS and _take_back(s, job) == 0:
            _resume(s, job)
        else:
            at += 1
    expect_halted(s)


@kernel
def _resume(s: State, job: int) -> None:
    """Let a job go on where it was."""
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
    at = 0
    while s.halted[at] != job:
        at += 1
    s.num_halted -= 1
    for later in range(at, s.num_halted):
        s.halted[later] = s.halted[later + 1]
    span = s.now - s.job.halted_since[job]
    s.job.suspended_s[job] += span
    s.job.resumed[job] += span
    s.job.end[job] += span
    s.job.expected_end[job] += span
    s.job.saving_since[job] += span
    s.job.status[job] = RUNNING
    s.job.leaving[job] = STAYS
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
    """Expect suspended jobs to go on when the jobs have ended that run on the nodes of which they lack cores."""
    for at in range(s.num_halted):
        job = s.halted[at]
        start, piece = s.now, s.job.first_piece[job]
        while piece >= 0:
            if s.piece_lacking[piece] > 0:
                start = max(start, _last_end(s, s.piece_node[piece]))
            piece = s.piece_next[piece]
        drop_release(s, job)
        add_release(s, max(start, start + (s.job.expected_end[job] - s.job.halted_since[job])), job)


@kernel
def _last_end(s: State, node: int) -> float:
    """Return when the last of the jobs that run on a node is expected to end, s."""
    end, piece = s.now, s.piece_on[node]
    while piece >= 0:
        if s.job.status[s.piece_job[piece]] == RUNNING:
            end = max(end, s.job.expected_end[s.piece_job[piece]])
        piece = s.piece_beside[piece]
    return end
