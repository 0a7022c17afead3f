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
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    BACKFILL,
    CONFLICTS,
    FREE,
    FREE_NODES,
    FREE_SLOTS,
    LATER,
    NOW,
    NUM_RELEASES,
    PARTITIONS,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RELEASE_ITEM,
    RELEASE_TIME,
    RESERVATION,
    RESOURCES,
    SCANNED,
    SCANNED_VERSION,
    SCHEDULER,
    SHAPE_FIRST,
    SIZE,
    SLOT,
    SLOTS,
    THEN_FREE,
    USABLE,
    VERSION,
)
from faultsweep.simcore.policies.scheduling.backfill import ends_by, nothing_overdue, remember


@kernel
def schedule_menu(s):
    """Run one pass: start jobs in order up to the first that cannot start, then later ones that do not delay it."""
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    if head == tail:
        return
    if s.job_i[SIZE, s.lists[QUEUE, head]] > s.i[FREE] and (tail - head < 2 or s.i[FREE] == 0):
        remember(s)
        return
    _list_usable(s, USABLE, s.masks[FREE_NODES], 0, s.i[PARTITIONS])
    while s.i[QUEUE_HEAD] < s.i[QUEUE_TAIL]:
        job = s.lists[QUEUE, s.i[QUEUE_HEAD]]
        partition = _least_blocking(s, s.job_i[SIZE, job], 0)
        if partition < 0:
            break
        dequeue_at(s, s.i[QUEUE_HEAD])
        _start_on(s, job, partition)
    if s.i[SCHEDULER] == BACKFILL:
        _backfill(s)


@kernel
def _backfill(s):
    """Start later jobs that end by the reservation of the head job, or leave it a partition then."""
    first = s.i[QUEUE_HEAD] + 1
    if s.i[SCANNED_VERSION] == s.i[VERSION] and nothing_overdue(s):
        first = max(first, s.i[SCANNED])
    if first < s.i[QUEUE_TAIL] and s.i[FREE] > 0:
        head_size = s.job_i[SIZE, s.lists[QUEUE, s.i[QUEUE_HEAD]]]
        _reserve(s, head_size)
        _start_later_jobs(s, first, head_size)
    remember(s)


@kernel
def _start_later_jobs(s, position, head_size):
    while position < s.i[QUEUE_TAIL] and s.i[FREE] > 0:
        job = s.lists[QUEUE, position]
        in_time = ends_by(s, job, s.f[RESERVATION])
        partition = _least_blocking(s, s.job_i[SIZE, job], 0 if in_time else head_size)
        if partition < 0:
            position += 1
            continue
        head = s.i[QUEUE_HEAD]
        dequeue_at(s, position)
        position += s.i[QUEUE_HEAD] - head
        _start_on(s, job, partition)
        if not in_time:
            _strike_out(s, LATER, partition)


@kernel
def _list_usable(s, row, free, first, end):
    """Set the bits of those of the partitions ``first`` .. ``end`` - 1 in a row whose midplanes and wires are free;
    clear all others. Returns whether there is one."""
    bits = s.profile_masks[row]
    for word in range(s.profile_masks.shape[1]):
        bits[word] = ZERO
    found = False
    for partition in range(first, end):
        usable = True
        for word in range(s.masks.shape[1]):
            if s.footprints[RESOURCES, partition, word] & ~free[word] != ZERO:
                usable = False
                break
        if usable:
            bits[partition >> 6] |= ONE << np.uint64(partition & 63)
            found = True
    return found


@kernel
def _least_blocking(s, size, head_size):
    """Return the usable partition of a size that blocks the fewest usable ones, -1 if there is none.

    With a head size it must leave one of the partitions LATER that the head job can have at its reservation.
    """
    best, least = -1, s.i[PARTITIONS] + 1
    if size > s.i[FREE]:
        return best
    usable, later = s.profile_masks[USABLE], s.profile_masks[LATER]
    for partition in range(s.lists[SHAPE_FIRST, size], s.lists[SHAPE_FIRST, size + 1]):
        if usable[partition >> 6] >> np.uint64(partition & 63) & ONE == ZERO:
            continue
        blocked, leaves = 0, head_size == 0
        for word in range((s.i[PARTITIONS] + 63) >> 6):
            against = s.footprints[CONFLICTS, partition, word]
            blocked += popcount(usable[word] & against)
            if later[word] & ~against != ZERO:
                leaves = True
        if blocked < least and leaves:
            best, least = partition, blocked
    return best


@kernel
def _strike_out(s, row, partition):
    """Clear the bits of all partitions that conflict with one, itself among them."""
    for word in range((s.i[PARTITIONS] + 63) >> 6):
        s.profile_masks[row, word] &= ~s.footprints[CONFLICTS, partition, word]


@kernel
def _start_on(s, job, partition):
    """Start a waiting job on a usable partition; it has left the queue."""
    s.i[FREE_SLOTS] -= 1
    slot = s.lists[SLOTS, s.i[FREE_SLOTS]]
    s.job_i[SLOT, job] = slot
    for word in range(s.masks.shape[1]):
        taken = s.footprints[RESOURCES, partition, word]
        s.masks[slot, word] = taken
        s.masks[FREE_NODES, word] &= ~taken
    s.i[VERSION] += 1
    _strike_out(s, USABLE, partition)
    begin_run(s, job, s.job_i[SIZE, job])


@kernel
def _reserve(s, head_size):
    """Find when the head job can have a partition if what is expected comes free, and which ones (LATER)."""
    free = s.profile_masks[THEN_FREE]
    for word in range(s.masks.shape[1]):
        free[word] = s.masks[FREE_NODES, word]
    first, end = s.lists[SHAPE_FIRST, head_size], s.lists[SHAPE_FIRST, head_size + 1]
    s.f[RESERVATION] = np.inf
    at, count = 0, s.i[NUM_RELEASES]
    while at < count:
        time = s.agenda[RELEASE_TIME, at]
        while at < count and s.agenda[RELEASE_TIME, at] <= max(time, s.f[NOW]):  # what is overdue is one moment
            _release(s, free, int(s.agenda[RELEASE_ITEM, at]))
            at += 1
        if _list_usable(s, LATER, free, first, end):
            s.f[RESERVATION] = max(time, s.f[NOW])
            return


@kernel
def _release(s, free, item):
    """Free the nodes and wires of a job, or a node that is down, in a mask."""
    if item >= 0:
        for word in range(s.masks.shape[1]):
            free[word] |= s.masks[s.job_i[SLOT, item], word]
    else:
        node = -1 - item
        free[node >> 6] |= ONE << np.uint64(node & 63)
