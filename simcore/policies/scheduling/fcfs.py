"""First come, first served: strict order of arrival, up to the first job that cannot start (krevat2003, scheduler
1)."""

from __future__ import annotations

from faultsweep.simcore.engine.allocation import remaining_estimate, start_on_box, start_on_flat
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    FREE,
    KIND,
    MACHINE,
    NUM_BOXES,
    PLACEMENT,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    SIZE,
)
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.placement.rules import best_box, fits, largest_free, refresh_footprints


@inlined
def start_in_order(s):
    """Start waiting jobs in order until one cannot start; return False if a list does not fit."""
    if s.i[KIND] == FLAT:
        while s.i[QUEUE_HEAD] < s.i[QUEUE_TAIL]:
            job = s.lists[QUEUE, s.i[QUEUE_HEAD]]
            if s.job_i[SIZE, job] > s.i[FREE]:
                return True
            dequeue_at(s, s.i[QUEUE_HEAD])
            start_on_flat(s, job)
        return True
    while s.i[QUEUE_HEAD] < s.i[QUEUE_TAIL]:
        job = s.lists[QUEUE, s.i[QUEUE_HEAD]]
        if s.job_i[SIZE, job] > s.i[FREE]:
            return True
        largest = largest_free(s)
        if largest < 0:
            return False
        if s.job_i[SIZE, job] > largest:
            return True
        dequeue_at(s, s.i[QUEUE_HEAD])
        if not _start_grown(s, job, largest):
            return False
    return True


@kernel
def _start_grown(s, job, largest):
    """Start a job on the best box of its size, grown by the minimum that makes it fit (no limit in this phase)."""
    size = s.job_i[SIZE, job]
    while size < largest and not fits(s, size):
        size += 1
    refresh_footprints(s)
    box = best_box(s, s.i[PLACEMENT], job, size, remaining_estimate(s, job), MACHINE, MACHINE, s.i[NUM_BOXES], 0, 0)
    return start_on_box(s, job, size, box)
