"""EASY with long queues: waiting jobs are looked at in blocks, and most blocks not at all.

A block has so many jobs in order of arrival, which is that of the queue. Of each are known a bound on the size of the
smallest job that waits, and for each level of sizes one on the length of the shortest; jobs that have started since
make them too low and no more, and a block that is looked at gets them anew.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end, remaining_estimate, start_on_flat
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import BLOCK, LEVELS, WAITING, State

LONG_QUEUE = 128
"""So many jobs are looked at one by one: blocks do not pay before."""
_MARGIN_S = 1e-3  # more than rounding makes of any time


@inlined
def ends_by(s: State, job: int, reservation: float) -> bool:
    """Tell whether a waiting job that starts now ends by a reservation.

    None ends by one that is due just after now, nor does one that is overdue from its start.
    """
    now = s.now
    return reservation > now and remaining_estimate(s, job) > 0.0 and expected_end(s, job, now) <= reservation


@kernel
def start_by_blocks(s: State, first: int, extra: int, reservation: float) -> None:
    """Start waiting jobs from a position of the queue on that fit and end by the reservation, or use only ``extra``
    nodes."""
    _note_new(s)
    job, last = s.queue[first], s.queue[s.queue_tail - 1]
    window = reservation - s.now + _MARGIN_S if reservation > s.now else -np.inf
    for block in range(job // BLOCK, last // BLOCK + 1):
        if s.free == 0:
            return
        if _may_start(s, block, extra, window):
            extra = _start_in_block(s, block, job, extra, reservation)


@inlined
def _may_start(s: State, block: int, extra: int, window: float) -> bool:
    """Tell whether a job of a block may fit; False is certain."""
    if s.smallest[block] > s.free:
        return False
    if s.smallest[block] <= extra:
        return True
    for level in range(s.levels[s.free]):
        if s.shortest[block, level] <= window:
            return True
    return False


@kernel
def _start_in_block(s: State, block: int, first: int, extra: int, reservation: float) -> int:
    """Start the jobs of a block, from one on, that may; return how many nodes are left that the head job does not
    need."""
    _forget_block(s, block)
    for job in range(block * BLOCK, min(block * BLOCK + BLOCK, s.next_arrival)):
        if s.job.status[job] != WAITING:
            continue
        size = s.job.size[job]
        if job >= first and size <= s.free:
            in_time = ends_by(s, job, reservation)
            if in_time or size <= extra:
                extra -= 0 if in_time else size
                dequeue_at(s, _position(s, job))
                start_on_flat(s, job)
                continue
        _note_waiting(s, job)
    return extra


@inlined
def _position(s: State, job: int) -> int:
    """Return the position of a job in the queue, which is in order of arrival."""
    low, high = s.queue_head, s.queue_tail
    while high - low > 1:
        middle = (low + high) >> 1
        if s.queue[middle] <= job:
            low = middle
        else:
            high = middle
    return low


@kernel
def _note_new(s: State) -> None:
    """Take in the jobs that have come since the last look; all of them after one came back."""
    at = s.queue_tail
    while at > s.queue_head and s.queue[at - 1] >= s.blocks_until:
        at -= 1
    if s.blocks_until == 0:
        for block in range(s.smallest.shape[0]):
            _forget_block(s, block)
    for position in range(at, s.queue_tail):
        _note_waiting(s, s.queue[position])
    s.blocks_until = s.queue[s.queue_tail - 1] + 1


@inlined
def _forget_block(s: State, block: int) -> None:
    s.smallest[block] = s.nodes + 1
    for level in range(LEVELS):
        s.shortest[block, level] = np.inf


@inlined
def _note_waiting(s: State, job: int) -> None:
    """Lower the bounds of a job's block to what it needs."""
    block, size = job // BLOCK, s.job.size[job]
    level = s.levels[size] - 1
    s.smallest[block] = min(s.smallest[block], size)
    s.shortest[block, level] = min(s.shortest[block, level], expected_end(s, job, 0.0))
