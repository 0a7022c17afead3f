"""Conservative (strong) backfilling: a reservation for every waiting job, which no later job may delay (krevat2003 ch.
2).

A reservation begins at the earliest time at which the job fits for as long as it is expected to last, beside what runs
and what is reserved already; on a torus it holds a box as well, of the size of the job or up to I nodes more, on a site
what the job gets of which nodes. When nodes are released, the reservations are made again one by one in queue order,
each with all the others in place, so none ever gets later (compression); those that cannot change are left out
(``unchanged``). After a failure, a pause or an overrun they cannot all be kept and are made from scratch. Both are done
in another, faster way on a flat machine (``counts``).
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import FLAT as FLAT_MACHINE
from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.contract import TORUS, Policy
from faultsweep.simcore.engine.allocation import remaining_estimate, start_on_box, start_on_flat
from faultsweep.simcore.engine.bits import popcount
from faultsweep.simcore.engine.counts import forget_past_counts, rebuild_counts
from faultsweep.simcore.engine.events import next_without
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import NO_PIECE, are_alike, drop_list
from faultsweep.simcore.engine.profile import (
    blocked_at,
    forget_past,
    note_reservation,
    occupy_profile,
    point_at,
    rebuild_profile,
    reserved_end,
    reserved_start,
    row_in_force,
    vacate_profile,
)
from faultsweep.simcore.engine.site_profile import vacate_nodes
from faultsweep.simcore.engine.state import (
    ALL_JOBS,
    AT_START,
    ELSEWHEN,
    MFP,
    SCRATCH,
    SUBMITS_FIRST,
    State,
)
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.placement.rules import NO_BOX, best_box, has_box, list_boxes, set_table, unpack_box
from faultsweep.simcore.policies.scheduling import GROWTH
from faultsweep.simcore.policies.scheduling.counts import (
    compress_counts,
    give_back_counts,
    reserve_count,
    start_reserved_count,
)
from faultsweep.simcore.policies.scheduling.dominance import NOBODY, no_earlier_than
from faultsweep.simcore.policies.scheduling.shared_nodes import start_on_pieces
from faultsweep.simcore.policies.scheduling.shared_reservations import reserve_nodes, start_over_nodes
from faultsweep.simcore.policies.scheduling.unchanged import (
    NEVER,
    could_change,
    has_gained,
    members_of,
    note_change,
    note_reserved,
)


@kernel
def conservative(s: State) -> bool:
    """Run one pass; return False if a preallocated list does not fit."""
    if s.num_profile > 0:
        _forget(s)
    if _must_start_over(s):
        if not _reserve_all_anew(s):
            return False
    elif s.released == 1 and not (compress_counts(s) if s.kind == FLAT else _compress_boxes(s)):
        return False
    for position in range(_first_unreserved(s), s.queue_tail):
        job = s.queue[position]
        if np.isnan(s.job.reserved[job]) and not _reserve_anew(s, job, NOBODY):
            return False
    return _start_reserved(s)


@kernel
def _first_unreserved(s: State) -> int:
    """Return a position of the queue before which all jobs have a reservation."""
    if s.kind != FLAT:
        return s.queue_head
    position, missing = s.queue_tail, s.queue_tail - s.queue_head - s.num_reserved
    while missing > 0:
        position -= 1
        missing -= 1 if np.isnan(s.job.reserved[s.queue[position]]) else 0
    return position


@kernel
def _must_start_over(s: State) -> bool:
    """Tell whether the reservations cannot be kept: a failure or pause since the last pass, an overrun, a start in the
    past."""
    now = s.now
    if s.num_profile == 0 or s.disturbed == 1:
        return True
    if s.num_releases > 0 and s.release_time[0] <= now:
        return True
    if s.kind == FLAT:
        return s.missed == 1
    for position in range(s.queue_head, s.queue_tail):
        if s.job.reserved[s.queue[position]] < now:
            return True
    return False


@kernel
def _reserve_all_anew(s: State) -> bool:
    if not rebuild(s):
        return False
    for position in range(s.queue_head, s.queue_tail):
        if not _reserve_anew(s, s.queue[position], no_earlier_than(s, position)):
            return False
    return True


@kernel
def _reserve_anew(s: State, job: int, bound: int) -> bool:
    """Reserve the earliest start for a job that has none, as ``reserve`` does."""
    if not reserve(s, job, bound):
        return False
    if s.kind != FLAT:
        note_reserved(s, job)
    return True


@kernel
def rebuild(s: State) -> bool:
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit."""
    if s.kind == SITE:
        return start_over_nodes(s)
    return rebuild_counts(s) if s.kind == FLAT else rebuild_profile(s)


@kernel
def _forget(s: State) -> None:
    if s.kind == FLAT:
        forget_past_counts(s)
    else:
        forget_past(s)


@kernel
def _compress_boxes(s: State) -> bool:
    """Make each reservation that could change again, in queue order, all others in place: it can only get earlier, or
    its nodes better."""
    for position in range(s.queue_head, s.queue_tail):
        job = s.queue[position]
        if np.isnan(s.job.reserved[job]):
            continue
        settled = s.job.settled[job]
        changes, point = could_change(s, job)
        s.job.settled[job] = s.changes
        if changes and not _reserve_again(s, job, point, settled):
            return False
    return True


@kernel
def _reserved_size(s: State, job: int) -> int:
    """Return the nodes of the box that is reserved for a job."""
    a, b, c, _, _, _ = unpack_box(s.job.reserved_box[job])
    return a * b * c


@kernel
def _reserve_again(s: State, job: int, point: tuple[float, float], settled: int) -> bool:
    """Reserve the earliest start from a point on for a job that has a reservation, which was the earliest when there
    were ``settled`` changes; return False if a list does not fit."""
    start = reserved_start(s, job)
    end, members = reserved_end(s, job, start), 1
    if s.kind == SITE:
        old = s.job.first_piece[job]
        members = members_of(s, old)
        if not vacate_nodes(s, job, start, end):
            return False
        s.job.first_piece[job] = NO_PIECE
        done = reserve_nodes(s, job, point, start, settled)
        stays = done and are_alike(s, old, s.job.first_piece[job])
        drop_list(s, old)
    else:
        box = s.job.reserved_box[job]
        if not vacate_profile(s, start, end, _reserved_size(s, job), box):
            return False
        done = _reserve_box(s, job, point, start, settled)
        stays = s.job.reserved_box[job] == box
    if done and not (stays and reserved_start(s, job) == start):
        ends = reserved_end(s, job, reserved_start(s, job))
        note_change(s, ends if stays and ends > start else start, end, members, True)
        note_reserved(s, job)
    return done


@kernel
def reserve(s: State, job: int, bound: int) -> bool:
    """Reserve the earliest start for a job; return False if a list does not fit.

    ``bound`` is a job that it does not begin before, or NOBODY.
    """
    if s.kind == FLAT:
        return reserve_count(s, job, bound)
    point = reserved_start(s, bound) if bound != NOBODY else point_at(s, 0)
    if s.kind == SITE:
        return reserve_nodes(s, job, point, point, NEVER)
    return _reserve_box(s, job, point, point, NEVER)


@kernel
def _reserve_box(s: State, job: int, point: tuple[float, float], known: tuple[float, float], settled: int) -> bool:
    """Reserve the earliest start from a point on, and a box, for a job; return False if a list does not fit.

    Before a point ``known`` there was no box for it when there were ``settled`` changes.
    """
    row = row_in_force(s, point)
    while True:  # from the last breakpoint on nothing is held
        start = point_at(s, row)
        end = reserved_end(s, job, start)
        blocked = blocked_at(s, row, end, s.job.size[job])
        if blocked >= 0:
            row = blocked + 1
            continue
        if start < known and not has_gained(s, job, row, end, settled):
            row += 1
            continue
        box = window_box(s, job, row, end)
        if box == OVERFLOW - 1:
            return False
        if box != NO_BOX:
            s.job.reserved_box[job] = box
            break
        row += 1
    note_reservation(s, job, start)
    return occupy_profile(s, start, end, _reserved_size(s, job), s.job.reserved_box[job])


@kernel
def window_box(s: State, job: int, row: int, end: tuple[float, float]) -> int:
    """Return the best box that is free from a breakpoint to ``end``, NO_BOX, or OVERFLOW - 1 if a list does not fit.

    The MFP that a box leaves is counted on what occupies the machine when the job starts. A predictor is asked only
    for a start now.
    """
    window, place = s.shadow, s.profile_place[row]
    left = 0
    for column in range(s.side_x * s.side_y):
        mask = s.profile_masks[place, column]
        later = row + 1
        while later < s.num_profile and point_at(s, later) < end:
            mask &= s.profile_masks[s.profile_place[later], column]
            later += 1
        window[column] = mask
        left += popcount(mask)
    size = s.job.size[job]
    if left < size:
        return NO_BOX
    set_table(s, ELSEWHEN, window)
    largest = min(size + s.growth_limit, s.nodes)
    while not has_box(s, ELSEWHEN, size):
        size += 1
        if size > largest:
            return NO_BOX
    set_table(s, AT_START, s.profile_masks[place])
    count = list_boxes(s, AT_START, SCRATCH, 1)
    if count == OVERFLOW:
        return OVERFLOW - 1
    rule = s.placement if point_at(s, row) == (s.now, 0.0) else MFP
    for grown in range(size, largest + 1):
        box = best_box(s, rule, job, grown, remaining_estimate(s, job), ELSEWHEN, SCRATCH, count, 0, 0)
        if box != NO_BOX:
            return box
    return NO_BOX


@kernel
def _start_reserved(s: State) -> bool:
    """Start every job whose reserved time has come, in queue order; return False if a list does not fit."""
    now = (s.now, 0.0)
    position = s.queue_head
    while position < s.queue_tail and (s.kind != FLAT or s.row_starts[s.first_row] > 0):
        job = s.queue[position]
        if s.job.reserved_row[job] != s.first_row if s.kind == FLAT else reserved_start(s, job) != now:
            position += 1
            continue
        position = next_without(s, position)
        if not start_as_reserved(s, job):
            return False
        if s.passes_again == 1:
            return True
    return True


@kernel
def start_as_reserved(s: State, job: int) -> bool:
    """Start a job, which has left the queue, on what is reserved for it; return False if a list does not fit."""
    s.job.reserved[job] = np.nan
    if s.kind == FLAT:
        start_reserved_count(s, job)
        start_on_flat(s, job)
    elif s.kind == SITE:
        start_on_pieces(s, job)
    else:
        return start_on_box(s, job, _reserved_size(s, job), s.job.reserved_box[job])
    return True


@kernel
def note_early_finish(s: State, job: int) -> bool:
    """Give back what a job that ends now was expected to hold longer; return False if the profile does not fit."""
    _forget(s)
    now = (s.now, 0.0)
    end = (s.job.expected_end[job], 0.0)
    if s.event_order == SUBMITS_FIRST and s.job.early_released[job] == 1 and s.job.start[job] < s.now:
        return True  # it was overdue, and counted as free before the passes of this event time
    if end <= now and s.rebuilt == s.now:
        end = (s.now, 1.0)  # the profile of this instant expects an overdue job just after now
    if s.kind == FLAT:
        give_back_counts(s, job, end)
        return True
    if s.kind == SITE:
        fits = vacate_nodes(s, job, now, end)
    else:
        fits = vacate_profile(s, now, end, s.job.allocated[job], s.job.box[job])
    note_change(s, now, end, members_of(s, s.job.first_piece[job] if s.kind == SITE else -1), True)
    return fits


POLICY = Policy(
    "conservative",
    "Strong backfilling: a job may overtake if it delays no job ahead of it.",
    aliases=("conservative-backfill", "conservative-backfilling", "cbf"),
    uses=GROWTH,
    machines=(TORUS, FLAT_MACHINE, ON_SITE),
    facts={"reserves": ALL_JOBS},
)
