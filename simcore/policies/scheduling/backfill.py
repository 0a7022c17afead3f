"""Weak backfilling: a reservation for the head job only; later jobs may start if it is not delayed (EASY on
``flat:N``; krevat2003, scheduler 2).

The reservation is a time, not a box: the earliest at which the head job could be placed if running jobs end when they
are expected to. It is made anew at every pass. A pass that follows nothing but arrivals looks at the new arrivals
only: with the same free nodes and the same reservation, what was refused before is refused again.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end, remaining_estimate, start_on_box, start_on_flat
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.events import dequeue_at
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    BOX,
    ELSEWHEN,
    FREE,
    FREE_NODES,
    GROWTH_LIMIT,
    KIND,
    MACHINE,
    NOW,
    NUM_BOXES,
    NUM_RELEASES,
    NUM_SHADOW,
    PLACEMENT,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RELEASE_ITEM,
    RELEASE_TIME,
    RESERVATION,
    SCANNED,
    SCANNED_VERSION,
    SHADOW,
    SIDE_X,
    SIDE_Y,
    SIDE_Z,
    SIZE,
    VERSION,
)
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.placement.rules import (
    NO_BOX,
    best_box,
    fits,
    have_box_at,
    largest_free,
    list_boxes,
    refresh_footprints,
    set_table,
    take_listed,
    unpack_box,
    vacate,
)

_NEVER = np.inf


@inlined
def backfill(s):
    """Start later jobs that do not delay the head job, which cannot start now; return False if a list does not fit."""
    head, tail = s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]
    if tail - head < 2:
        return True
    first = head + 1
    if s.i[SCANNED_VERSION] == s.i[VERSION] and nothing_overdue(s):
        first = max(first, s.i[SCANNED])
    if first == tail or s.i[FREE] == 0:
        remember(s)
        return True
    done = _backfill_flat(s, first) if s.i[KIND] == FLAT else _backfill_torus(s, first)
    remember(s)
    return done


@inlined
def nothing_overdue(s):
    """Tell whether no expected release has passed: then the reservation found at the same free nodes still holds."""
    return s.i[NUM_RELEASES] == 0 or s.agenda[RELEASE_TIME, 0] > s.f[NOW]


@inlined
def remember(s):
    """Note that every waiting job has been refused at the present free nodes."""
    s.i[SCANNED] = s.i[QUEUE_TAIL]
    s.i[SCANNED_VERSION] = s.i[VERSION]


@inlined
def ends_by(s, job, reservation):
    """Tell whether a waiting job that starts now ends by a reservation.

    None ends by one that is due just after now, nor does one that is overdue from its start.
    """
    now = s.f[NOW]
    return reservation > now and remaining_estimate(s, job) > 0.0 and expected_end(s, job, now) <= reservation


@inlined
def _backfill_flat(s, first):
    """EASY: a job may start if it fits and ends by the reservation, or uses only nodes the head job will not need
    then."""
    now = s.f[NOW]
    head_size = s.job_i[SIZE, s.lists[QUEUE, s.i[QUEUE_HEAD]]]
    free, at, reservation = s.i[FREE], 0, _NEVER
    while at < s.i[NUM_RELEASES]:
        time = s.agenda[RELEASE_TIME, at]
        if free >= head_size and time > reservation:
            break
        item = int(s.agenda[RELEASE_ITEM, at])
        free += s.job_i[ALLOCATED, item] if item >= 0 else 1
        if free >= head_size:
            reservation = max(time, now)
        at += 1
    extra = free - head_size
    position = first
    while position < s.i[QUEUE_TAIL] and s.i[FREE] > 0:
        job = s.lists[QUEUE, position]
        size = s.job_i[SIZE, job]
        if size <= s.i[FREE]:
            in_time = ends_by(s, job, reservation)
            if in_time or size <= extra:
                if not in_time:
                    extra -= size
                head = s.i[QUEUE_HEAD]
                dequeue_at(s, position)
                position += s.i[QUEUE_HEAD] - head
                start_on_flat(s, job)
                continue
        position += 1
    return True


@kernel
def _backfill_torus(s, first):
    """Weak backfilling with boxes: the best box that keeps room for the head job at the reservation."""
    if largest_free(s) < 0:
        return False
    head_size = s.job_i[SIZE, s.lists[QUEUE, s.i[QUEUE_HEAD]]]
    position = first
    reserved = False
    while position < s.i[QUEUE_TAIL] and s.i[FREE] > 0:
        job = s.lists[QUEUE, position]
        size = _smallest_fit(s, s.job_i[SIZE, job])
        if size > 0:
            if not reserved:
                if not _reserve(s, head_size):
                    return False
                reserved = True
            outcome = _try_to_start(s, job, size, head_size)
            if outcome == OVERFLOW:
                return False
            if outcome == 1:
                head = s.i[QUEUE_HEAD]
                dequeue_at(s, position)
                position += s.i[QUEUE_HEAD] - head
                continue
        position += 1
    return True


@inlined
def _smallest_fit(s, size):
    """Return the smallest size from ``size`` to ``size`` + I of which a free box exists, or 0."""
    largest = s.boxes[MACHINE, 0, 0] if s.i[NUM_BOXES] > 0 else 0
    for grown in range(size, min(size + s.i[GROWTH_LIMIT], largest) + 1):
        if fits(s, grown):
            return grown
    return 0


@kernel
def _try_to_start(s, job, size, head_size):
    """Start a job on an admissible box of ``size`` or up to I nodes more than it wants; return 1, 0 or OVERFLOW."""
    in_time = ends_by(s, job, s.f[RESERVATION])
    room_for = 0 if in_time else head_size
    if room_for > 0 and s.i[NUM_SHADOW] == 0:
        return 0
    refresh_footprints(s)
    limit = min(s.job_i[SIZE, job] + s.i[GROWTH_LIMIT], s.boxes[MACHINE, 0, 0])
    for grown in range(size, limit + 1):
        if not fits(s, grown):
            continue
        box = best_box(
            s,
            s.i[PLACEMENT],
            job,
            grown,
            remaining_estimate(s, job),
            MACHINE,
            MACHINE,
            s.i[NUM_BOXES],
            s.i[NUM_SHADOW],
            room_for,
        )
        if box == NO_BOX:
            continue
        if not start_on_box(s, job, grown, box):
            return OVERFLOW
        if not in_time:
            count = take_listed(s, ELSEWHEN, s.i[NUM_SHADOW], box, head_size)
            if count == OVERFLOW:
                return OVERFLOW
            s.i[NUM_SHADOW] = count
        return 1
    return 0


@kernel
def _reserve(s, head_size):
    """Find the reservation of the head job and the maximal free boxes, large enough for it, at that time.

    It cannot start now, so a box that is large enough meets nodes released since the last look. Returns False if the
    list does not fit.
    """
    shadow = s.masks[SHADOW]
    for column in range(s.i[SIDE_X] * s.i[SIDE_Y]):
        shadow[column] = s.masks[FREE_NODES, column]
    s.f[RESERVATION] = _NEVER
    free, at, looked, count = s.i[FREE], 0, 0, s.i[NUM_RELEASES]
    while at < count:
        time = s.agenda[RELEASE_TIME, at]
        while at < count and s.agenda[RELEASE_TIME, at] == time:
            free += _release_in(s, shadow, int(s.agenda[RELEASE_ITEM, at]))
            at += 1
        overdue = at < count and time <= s.f[NOW] and s.agenda[RELEASE_TIME, at] <= s.f[NOW]
        if not overdue and free >= head_size:
            x, a, y, b = _released_since(s, looked, at)
            if have_box_at(s, shadow, head_size, x, a, y, b):
                s.f[RESERVATION] = max(time, s.f[NOW])
                break
            looked = at
    set_table(s, ELSEWHEN, shadow)
    boxes = list_boxes(s, ELSEWHEN, ELSEWHEN, head_size)
    if boxes == OVERFLOW:
        return False
    s.i[NUM_SHADOW] = boxes
    return True


@kernel
def _released_since(s, first, end):
    """Return columns (x, a, y, b) that hold all nodes of the expected releases first .. end - 1."""
    item = int(s.agenda[RELEASE_ITEM, first])
    if end - first > 1:
        return 0, s.i[SIDE_X], 0, s.i[SIDE_Y]
    if item >= 0:
        a, b, _, x, y, _ = unpack_box(s.job_i[BOX, item])
        return x, a, y, b
    Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
    node = -1 - item
    return node // (Y * Z), 1, node // Z % Y, 1


@kernel
def _release_in(s, columns, item):
    """Free the nodes of a job or a down node in masks; return their number."""
    if item >= 0:
        vacate(columns, s.job_i[BOX, item], s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])
        return s.job_i[ALLOCATED, item]
    node = -1 - item
    Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
    columns[node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)
    return 1
