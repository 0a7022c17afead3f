"""Weak backfilling: a reservation for the head job only; later jobs may start if it is not delayed (EASY on
``flat:N``; krevat2003, scheduler 2).

The reservation is a time, not a box: the earliest at which the head job could be placed if running jobs end when they
are expected to. It is made anew at every pass. A pass that follows nothing but arrivals looks at the new arrivals
only: with the same free nodes and the same reservation, what was refused before is refused again.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Policy
from faultsweep.simcore.engine.allocation import remaining_estimate, start_on_box, start_on_flat
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.events import next_without
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import DEFAULT, ELSEWHEN, HEAD_JOB, MACHINE, State
from faultsweep.simcore.finders.boxes import Columns
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
from faultsweep.simcore.policies.scheduling import GROWTH
from faultsweep.simcore.policies.scheduling.long_queue import LONG_QUEUE, ends_by, start_by_blocks

_NEVER = np.inf


@inlined
def backfill(s: State) -> bool:
    """Start later jobs that do not delay the head job, which cannot start now; return False if a list does not fit."""
    head, tail = s.queue_head, s.queue_tail
    if tail - head < 2:
        return True
    first = head + 1
    if s.scanned_version == s.version and nothing_overdue(s):
        first = max(first, s.scanned)
    if first == tail or s.free == 0:
        remember(s)
        return True
    done = _backfill_flat(s, first) if s.kind == FLAT else _backfill_torus(s, first)
    remember(s)
    return done


@inlined
def nothing_overdue(s: State) -> bool:
    """Tell whether no expected release has passed: then the reservation found at the same free nodes still holds."""
    return s.num_releases == 0 or s.release_time[0] > s.now


@inlined
def remember(s: State) -> None:
    """Note that every waiting job has been refused at the present free nodes."""
    s.scanned = s.queue_tail
    s.scanned_version = s.version


@inlined
def _backfill_flat(s: State, first: int) -> bool:
    """EASY: a job may start if it fits and ends by the reservation, or uses only nodes the head job will not need
    then."""
    by_blocks = s.queue_tail - first > LONG_QUEUE and s.queue_order == DEFAULT and s.recovery + s.limited == 0
    position = first if by_blocks else _first_that_fits(s, first)
    if position == s.queue_tail:
        return True
    extra, reservation = reserve_head(s)
    if by_blocks:
        start_by_blocks(s, first, extra, reservation)
        return True
    while position < s.queue_tail and s.free > 0:
        job = s.queue[position]
        size = s.job.size[job]
        if size <= s.free:
            in_time = ends_by(s, job, reservation)
            if in_time or size <= extra:
                if not in_time:
                    extra -= size
                position = next_without(s, position)
                start_on_flat(s, job)
                if s.passes_again == 1:
                    return True
                continue
        position += 1
    return True


@inlined
def _first_that_fits(s: State, position: int) -> int:
    """Return the first position of the queue, from one on, of a job for which enough nodes are free; the end of the
    queue if there is none."""
    while position < s.queue_tail and s.job.size[s.queue[position]] > s.free:
        position += 1
    return position


@inlined
def reserve_head(s: State) -> tuple[int, float]:
    """Return how many nodes the head job leaves free at its reservation, and when that is, s."""
    now, head_size = s.now, s.job.size[s.queue[s.queue_head]]
    free, at, reservation = s.free, 0, _NEVER
    while at < s.num_releases:
        time = s.release_time[at]
        if free >= head_size and time > reservation:
            break
        item = int(s.release_item[at])
        free += s.job.allocated[item] if item >= 0 else 1
        if free >= head_size:
            reservation = max(time, now)
        at += 1
    return free - head_size, reservation


@kernel
def _backfill_torus(s: State, first: int) -> bool:
    """Weak backfilling with boxes: the best box that keeps room for the head job at the reservation."""
    if largest_free(s) < 0:
        return False
    head_size = s.job.size[s.queue[s.queue_head]]
    position = first
    reserved = False
    while position < s.queue_tail and s.free > 0:
        job = s.queue[position]
        size = _smallest_fit(s, s.job.size[job])
        if size > 0:
            if not reserved:
                if not _reserve(s, head_size):
                    return False
                reserved = True
            outcome = _try_to_start(s, job, size, head_size)
            if outcome == OVERFLOW:
                return False
            if outcome == 1:
                position = next_without(s, position)
                if s.passes_again == 1:
                    return True
                continue
        position += 1
    return True


@inlined
def _smallest_fit(s: State, size: int) -> int:
    """Return the smallest size from ``size`` to ``size`` + I of which a free box exists, or 0."""
    largest = s.boxes[MACHINE, 0, 0] if s.num_boxes > 0 else 0
    for grown in range(size, min(size + s.growth_limit, largest) + 1):
        if fits(s, grown):
            return grown
    return 0


@kernel
def _try_to_start(s: State, job: int, size: int, head_size: int) -> int:
    """Start a job on an admissible box of ``size`` or up to I nodes more than it wants; return 1, 0 or OVERFLOW."""
    in_time = ends_by(s, job, s.reservation)
    room_for = 0 if in_time else head_size
    if room_for > 0 and s.num_shadow == 0:
        return 0
    refresh_footprints(s)
    limit = min(s.job.size[job] + s.growth_limit, s.boxes[MACHINE, 0, 0])
    for grown in range(size, limit + 1):
        if not fits(s, grown):
            continue
        box = best_box(
            s,
            s.placement,
            job,
            grown,
            remaining_estimate(s, job),
            MACHINE,
            MACHINE,
            s.num_boxes,
            s.num_shadow,
            room_for,
        )
        if box == NO_BOX:
            continue
        if not start_on_box(s, job, grown, box):
            return OVERFLOW
        if not in_time:
            count = take_listed(s, ELSEWHEN, s.num_shadow, box, head_size)
            if count == OVERFLOW:
                return OVERFLOW
            s.num_shadow = count
        return 1
    return 0


@kernel
def _reserve(s: State, head_size: int) -> bool:
    """Find the reservation of the head job and the maximal free boxes, large enough for it, at that time.

    It cannot start now, so a box that is large enough meets nodes released since the last look. Returns False if the
    list does not fit.
    """
    shadow = s.shadow
    for column in range(s.side_x * s.side_y):
        shadow[column] = s.free_nodes[column]
    s.reservation = _NEVER
    free, at, looked, count = s.free, 0, 0, s.num_releases
    while at < count:
        time = s.release_time[at]
        while at < count and s.release_time[at] == time:
            free += _release_in(s, shadow, int(s.release_item[at]))
            at += 1
        overdue = at < count and time <= s.now and s.release_time[at] <= s.now
        if not overdue and free >= head_size:
            x, a, y, b = _released_since(s, looked, at)
            if have_box_at(s, shadow, head_size, x, a, y, b):
                s.reservation = max(time, s.now)
                break
            looked = at
    set_table(s, ELSEWHEN, shadow)
    boxes = list_boxes(s, ELSEWHEN, ELSEWHEN, head_size)
    if boxes == OVERFLOW:
        return False
    s.num_shadow = boxes
    return True


@kernel
def _released_since(s: State, first: int, end: int) -> tuple[int, int, int, int]:
    """Return columns (x, a, y, b) that hold all nodes of the expected releases first .. end - 1."""
    item = int(s.release_item[first])
    if end - first > 1:
        return 0, s.side_x, 0, s.side_y
    if item >= 0:
        a, b, _, x, y, _ = unpack_box(s.job.box[item])
        return x, a, y, b
    Y, Z = s.side_y, s.side_z
    node = -1 - item
    return node // (Y * Z), 1, node // Z % Y, 1


@kernel
def _release_in(s: State, columns: Columns, item: int) -> int:
    """Free the nodes of a job or a down node in masks; return their number."""
    if item >= 0:
        vacate(columns, s.job.box[item], s.side_x, s.side_y, s.side_z)
        return s.job.allocated[item]
    node = -1 - item
    Y, Z = s.side_y, s.side_z
    columns[node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)
    return 1


POLICY = Policy(
    "backfill",
    "Weak (EASY) backfilling: a job may overtake if it does not delay the head of the queue.",
    aliases=("easy", "easy-backfill", "easy-backfilling"),
    uses=GROWTH,
    facts={"reserves": HEAD_JOB},
)
