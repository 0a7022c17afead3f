"""First come, first served: strict order of arrival, up to the first job that cannot start (krevat2003, scheduler
1)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.engine.allocation import remaining_estimate, start_on_box, start_on_flat
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import MACHINE, State
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.placement.rules import best_box, fits, largest_free, refresh_footprints


@inlined
def start_in_order(s: State) -> bool:
    """Start waiting jobs in order until one cannot start; return False if a list does not fit."""
    if s.kind == FLAT:
        while s.queue_head < s.queue_tail:
            job = s.queue[s.queue_head]
            if s.job.size[job] > s.free:
                return True
            dequeue_at(s, s.queue_head)
            start_on_flat(s, job)
            if s.passes_again == 1:
                return True
        return True
    while s.queue_head < s.queue_tail:
        job = s.queue[s.queue_head]
        if s.job.size[job] > s.free:
            return True
        largest = largest_free(s)
        if largest < 0:
            return False
        if s.job.size[job] > largest:
            return True
        dequeue_at(s, s.queue_head)
        if not _start_grown(s, job, largest):
            return False
        if s.passes_again == 1:
            return True
    return True


@kernel
def _start_grown(s: State, job: int, largest: int) -> bool:
    """Start a job on the best box of its size, grown by the minimum that makes it fit (no limit in this phase)."""
    size = s.job.size[job]
    while size < largest and not fits(s, size):
        size += 1
    refresh_footprints(s)
    box = best_box(s, s.placement, job, size, remaining_estimate(s, job), MACHINE, MACHINE, s.num_boxes, 0, 0)
    return start_on_box(s, job, size, box)


POLICY = Policy(
    "fcfs",
    "First come, first served: nobody overtakes the head of the queue.",
    aliases=("fifo",),
)
