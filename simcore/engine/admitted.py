"""Jobs that ask for an advance reservation: they run on its nodes, and start between its begin and its end.

In each pass those of a reservation start in the order of the queue, before all other jobs, until one of them does not
fit. The pass does not see the ones that wait. Under ``slurm`` its passes start them, before all others, once the
reservation has begun. Those that still wait when it is over are refused; those that run then go on.
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


@kernel
def start_admitted(s: State) -> None:
    """Start jobs in their reservations; leave the others in the queue that ask for none, under ``slurm`` behind those
    whose reservation has begun."""
    refused = 0
    _set_aside(s)
    for at in range(s.num_aside):
        job = s.aside[at]
        window = s.asks_for[job]
        if window == ANYWHERE:
            continue
        if window == OVER or s.now >= s.window_end[window]:
            _miss(s, job)
        elif s.reserves != IN_PLANS and refused >> window & 1 == 0 and _may_start(s, job, window):
            refused |= 0 if _starts(s, job, window) else 1 << window


@inlined
def _may_start(s: State, job: int, window: int) -> bool:
    return s.now >= s.window_begin[window] and (s.limited == 0 or may_run(s, job))


@kernel
def put_aside_back(s: State) -> None:
    """Put the jobs that wait for their reservations into the queue again, at their places."""
    queue_again(s, s.aside, s.num_aside)


@kernel
def _set_aside(s: State) -> None:
    """Leave only the jobs in the queue that the pass sees."""
    head, end = s.queue_head, s.queue_head
    s.num_aside = s.queue_tail - head
    for at in range(s.num_aside):
        s.aside[at] = s.queue[head + at]
    if s.reserves == IN_PLANS:
        for at in range(s.num_aside):
            window = s.asks_for[s.aside[at]]
            if window >= 0 and s.window_begin[window] <= s.now < s.window_end[window]:
                s.queue[end] = s.aside[at]
                end += 1
    for at in range(s.num_aside):
        if s.asks_for[s.aside[at]] == ANYWHERE:
            s.queue[end] = s.aside[at]
            end += 1
    s.queue_tail = end
    s.scanned_version = -1  # other jobs may stand at these positions


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
    in_window, s.chooses_in_window = s.chooses_in_window, 0  # what is free now counts, whatever others have planned
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    s.chooses_in_window = in_window
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
