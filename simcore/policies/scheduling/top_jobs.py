"""``top-jobs``: backfilling with reservations for the first jobs that must wait, as many as one says.

Every pass plans anew, in order of the queue. A job that can have its nodes now for as long as it is expected to last,
beside all that is reserved, starts. Of the others the first ones get a reservation, as under conservative backfilling;
those behind them may start, too, if they delay none of these. One top job is EASY on a flat machine, all of them are
conservative backfilling that plans anew each time. (PBS Professional: backfill_depth, of the jobs in strict order;
Maui: RESERVATIONDEPTH.)
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import FLAT as FLAT_MACHINE
from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.contract import TORUS, Parameter, Policy, Run
from faultsweep.simcore.engine.counts import fits_now
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import drop_pieces
from faultsweep.simcore.engine.profile import blocked_at, point_at, reserved_end, reserved_start
from faultsweep.simcore.engine.site_profile import begin_nodes
from faultsweep.simcore.engine.state import TOP_JOBS, State
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.placement.rules import NO_BOX
from faultsweep.simcore.policies.scheduling import GROWTH
from faultsweep.simcore.policies.scheduling.conservative import rebuild, reserve, start_as_reserved, window_box
from faultsweep.simcore.policies.scheduling.dominance import no_earlier_than
from faultsweep.simcore.policies.scheduling.shared_reservations import has_room

_NO, _YES, _NO_SPACE = range(3)


@kernel
def plan_top_jobs(s: State) -> bool:
    """Run one pass; return False if a preallocated list does not fit."""
    is_complete = s.kind != SITE  # on a site, what comes back later is added once a job must wait: that takes long
    if not is_complete:
        begin_nodes(s)
    elif not rebuild(s):
        return False
    for position in range(s.queue_head, s.queue_tail):
        s.job.reserved[s.queue[position]] = np.nan
        if s.kind == SITE:
            drop_pieces(s, s.queue[position])
    planned, position = 0, s.queue_head
    while position < s.queue_tail and s.free > 0:  # without free nodes nobody could be kept from starting
        job = s.queue[position]
        fits = _fits_now(s, job)
        if fits == _NO_SPACE:
            return False
        if fits == _NO and planned == s.top_jobs:
            position += 1
            continue
        if fits == _NO and not is_complete:
            is_complete = True
            if not rebuild(s):
                return False
        if not reserve(s, job, no_earlier_than(s, position)):
            return False
        if reserved_start(s, job) != (s.now, 0.0):
            planned += 1
            position += 1
            continue
        head = s.queue_head  # as ``next_without``, whose call costs this pass 5 to 8 %
        dequeue_at(s, position)
        position += s.queue_head - head
        if not start_as_reserved(s, job):
            return False
        if s.passes_again == 1:
            return True
    return True


@kernel
def _fits_now(s: State, job: int) -> int:
    """Tell whether a job can start now for as long as it is expected to last beside all that is reserved."""
    if s.kind == FLAT:
        return _YES if fits_now(s, job) else _NO
    end = reserved_end(s, job, point_at(s, 0))
    if s.kind == SITE:
        return _YES if has_room(s, job, 0, end) else _NO
    if blocked_at(s, 0, end, s.job.size[job]) >= 0:
        return _NO
    box = window_box(s, job, 0, end)
    return _NO_SPACE if box == OVERFLOW - 1 else _NO if box == NO_BOX else _YES


def _begin(s: State, run: Run) -> None:
    s.top_jobs = run["top_jobs"]


POLICY = Policy(
    "top-jobs",
    "The first jobs that must wait have reservations (PBS: backfill_depth); others may start if they delay none.",
    aliases=("pbs", "reservation-depth"),
    uses=GROWTH,
    machines=(TORUS, FLAT_MACHINE, ON_SITE),
    parameters=(
        Parameter(
            "top_jobs",
            int,
            1,
            "Waiting jobs that have a reservation under top-jobs (PBS: backfill_depth).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="jobs",
        ),
    ),
    kernels={"start_jobs": plan_top_jobs},
    facts={"reserves": TOP_JOBS},
    begins=_begin,
)
