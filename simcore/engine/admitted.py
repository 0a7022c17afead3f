"""Jobs that ask for an advance reservation: they run on its nodes, and start between its begin and its end.

In each pass (under ``slurm`` when one is due) those of a reservation start in the order of the queue, before all other
jobs, until one of them does not fit. The pass does not see the ones that wait. Those that still wait when the
reservation is over are refused; those that run then go on.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import windows_of
from faultsweep.simcore.engine.dependencies import free_followers
from faultsweep.simcore.engine.events import queue_again, trace_event
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.limits import may_run
from faultsweep.simcore.engine.pieces import count_chunks, reserve_pieces
from faultsweep.simcore.engine.state import ANYWHERE, IN_PLANS, MISSED, OVER, REFUSE_EVENT, State
from faultsweep.simcore.engine.submits import count_submitted
from faultsweep.simcore.policies.scheduling.shared_nodes import start_on_pieces
from faultsweep.simcore.policies.scheduling.slurm import comes_to_pass


@kernel
def start_admitted(s: State) -> None:
    """Start jobs in their reservations; leave the others in the queue that ask for none."""
    may_start = s.reserves != IN_PLANS or comes_to_pass(s)
    head, end, refused = s.queue_head, s.queue_head, 0
    s.num_aside = s.queue_tail - head
    for at in range(s.num_aside):
        job = s.queue[head + at]
        s.aside[at] = job
        if s.asks_for[job] == ANYWHERE:
            s.queue[end] = job
            end += 1
    s.queue_tail = end
    s.scanned_version = -1  # other jobs may stand at these positions
    for at in range(s.num_aside):
        job = s.aside[at]
        window = s.asks_for[job]
        if window == ANYWHERE:
            continue
        if window == OVER or s.now >= s.window_end[window]:
            _miss(s, job)
        elif may_start and s.now >= s.window_begin[window] and refused >> window & 1 == 0 and _is_let(s, job):
            refused |= 0 if _starts(s, job, window) else 1 << window


@kernel
def put_aside_back(s: State) -> None:
    """Put the jobs that wait for their reservations into the queue again, at their places."""
    queue_again(s, s.aside, s.num_aside)


@inlined
def _is_let(s: State, job: int) -> bool:
    return s.limited == 0 or may_run(s, job)


@kernel
def _starts(s: State, job: int, window: int) -> bool:
    """Start a job on the nodes of its reservation; tell whether there is room for it."""
    closed = windows_of(s, job, s.now) & ~(1 << window)
    total = count_chunks(s, job, closed)
    for node in range(s.takes.shape[0]):
        if s.node_windows[node] >> window & 1 == 0:
            total -= s.takes[node]
            s.takes[node] = 0
    if total < s.job.chunks[job]:
        return False
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    if not reserve_pieces(s, job):
        return False
    start_on_pieces(s, job)
    s.disturbed = 1  # nobody has planned with it
    return True


@kernel
def _miss(s: State, job: int) -> None:
    """Refuse a job whose reservation is over."""
    s.without_job = 0
    s.job.status[job] = MISSED
    s.queued -= s.job.requested[job]
    s.finished += 1
    if s.refuses == 1:
        count_submitted(s, job, -1)
    if s.follows == 1:
        free_followers(s, job)
    if s.tracing == 1:
        trace_event(s, REFUSE_EVENT, job)
