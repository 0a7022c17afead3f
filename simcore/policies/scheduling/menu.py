"""FCFS and EASY backfilling on a machine whose jobs take partitions of a menu (tang2010).

A job takes the free partition of its size that blocks the fewest of the other partitions that could be used now, the
first in the menu among equal ones, as Cobalt does. What a partition occupies, midplanes and wires, is a mask; what it
conflicts with is a row of bits, one for each partition. A running job's nodes are kept as on a flat machine, in a slot
of the masks.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import begin_run
from faultsweep.simcore.engine.bits import ONE, ZERO, popcount
from faultsweep.simcore.engine.events import dequeue_at, next_without
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    CONFLICTS,
    HEAD_JOB,
    LATER,
    RESOURCES,
    THEN_FREE,
    USABLE,
    MaskRow,
    State,
)
from faultsweep.simcore.policies.scheduling.backfill import ends_by, nothing_overdue, remember


@kernel
def schedule_menu(s: State) -> None:
    """Run one pass: start jobs in order up to the first that cannot start, then later ones that do not delay it."""
    head, tail = s.queue_head, s.queue_tail
    if head == tail:
        return
    if s.job.size[s.queue[head]] > s.free and (tail - head < 2 or s.free == 0):
        remember(s)
        return
    _list_usable(s, USABLE, s.free_nodes, 0, s.partitions)
    while s.queue_head < s.queue_tail:
        job = s.queue[s.queue_head]
        partition = _least_blocking(s, s.job.size[job], 0)
        if partition < 0:
            break
        dequeue_at(s, s.queue_head)
        _start_on(s, job, partition)
        if s.passes_again == 1:
            return
    if s.reserves == HEAD_JOB:
        _backfill(s)


@kernel
def _backfill(s: State) -> None:
    """Start later jobs that end by the reservation of the head job, or leave it a partition then."""
    first = s.queue_head + 1
    if s.scanned_version == s.version and nothing_overdue(s):
        first = max(first, s.scanned)
    if first < s.queue_tail and s.free > 0:
        head_size = s.job.size[s.queue[s.queue_head]]
        _reserve(s, head_size)
        _start_later_jobs(s, first, head_size)
    remember(s)


@kernel
def _start_later_jobs(s: State, position: int, head_size: int) -> None:
    while position < s.queue_tail and s.free > 0:
        job = s.queue[position]
        in_time = ends_by(s, job, s.reservation)
        partition = _least_blocking(s, s.job.size[job], 0 if in_time else head_size)
        if partition < 0:
            position += 1
            continue
        position = next_without(s, position)
        _start_on(s, job, partition)
        if s.passes_again == 1:
            return
        if not in_time:
            _strike_out(s, LATER, partition)


@kernel
def _list_usable(s: State, row: int, free: MaskRow, first: int, end: int) -> bool:
    """Set the bits of those of the partitions ``first`` .. ``end`` - 1 in a row whose midplanes and wires are free;
    clear all others. Returns whether there is one."""
    bits = s.profile_masks[row]
    for word in range(s.profile_masks.shape[1]):
        bits[word] = ZERO
    found = False
    for partition in range(first, end):
        usable = True
        for word in range(s.free_nodes.shape[0]):
            if s.footprints[RESOURCES, partition, word] & ~free[word] != ZERO:
                usable = False
                break
        if usable:
            bits[partition >> 6] |= ONE << np.uint64(partition & 63)
            found = True
    return found


@kernel
def _least_blocking(s: State, size: int, head_size: int) -> int:
    """Return the usable partition of a size that blocks the fewest usable ones, -1 if there is none.

    With a head size it must leave one of the partitions LATER that the head job can have at its reservation.
    """
    best, least = -1, s.partitions + 1
    if size > s.free:
        return best
    usable, later = s.profile_masks[USABLE], s.profile_masks[LATER]
    for partition in range(s.shape_first[size], s.shape_first[size + 1]):
        if usable[partition >> 6] >> np.uint64(partition & 63) & ONE == ZERO:
            continue
        blocked, leaves = 0, head_size == 0
        for word in range((s.partitions + 63) >> 6):
            against = s.footprints[CONFLICTS, partition, word]
            blocked += popcount(usable[word] & against)
            if later[word] & ~against != ZERO:
                leaves = True
        if blocked < least and leaves:
            best, least = partition, blocked
    return best


@kernel
def _strike_out(s: State, row: int, partition: int) -> None:
    """Clear the bits of all partitions that conflict with one, itself among them."""
    for word in range((s.partitions + 63) >> 6):
        s.profile_masks[row, word] &= ~s.footprints[CONFLICTS, partition, word]


@kernel
def _start_on(s: State, job: int, partition: int) -> None:
    """Start a waiting job on a usable partition; it has left the queue."""
    s.free_slots -= 1
    slot = s.slots[s.free_slots]
    s.job.slot[job] = slot
    for word in range(s.free_nodes.shape[0]):
        taken = s.footprints[RESOURCES, partition, word]
        s.slot_masks[slot, word] = taken
        s.free_nodes[word] &= ~taken
    s.version += 1
    _strike_out(s, USABLE, partition)
    begin_run(s, job, s.job.size[job])


@kernel
def _reserve(s: State, head_size: int) -> None:
    """Find when the head job can have a partition if what is expected comes free, and which ones (LATER)."""
    free = s.profile_masks[THEN_FREE]
    for word in range(s.free_nodes.shape[0]):
        free[word] = s.free_nodes[word]
    first, end = s.shape_first[head_size], s.shape_first[head_size + 1]
    s.reservation = np.inf
    at, count = 0, s.num_releases
    while at < count:
        time = s.release_time[at]
        while at < count and s.release_time[at] <= max(time, s.now):  # what is overdue is one event time
            _release(s, free, int(s.release_item[at]))
            at += 1
        if _list_usable(s, LATER, free, first, end):
            s.reservation = max(time, s.now)
            return


@kernel
def _release(s: State, free: MaskRow, item: int) -> None:
    """Free the nodes and wires of a job, or a node that is down, in a mask."""
    if item >= 0:
        for word in range(s.free_nodes.shape[0]):
            free[word] |= s.slot_masks[s.job.slot[item], word]
    else:
        node = -1 - item
        free[node >> 6] |= ONE << np.uint64(node & 63)
