"""The availability profile of conservative backfilling on a torus: what is free from when on, as far as the scheduler
expects. What a site has of it is in ``site_profile.py``. Flat machines, where nodes are only counted, have another one
(``counts.py``) with the same points in time.

Breakpoints in order of time; between two of them the set of free nodes is constant. The first breakpoint is never
later than now. Running jobs occupy it up to their expected ends, down nodes up to their repairs, reservations for as
long as they are expected to last.

A point in time is a tuple (time, rank): rank 0 is the time itself, rank 1 just after it, where what is overdue is
expected to end: later than that time and earlier than every other. What begins just after a time and lasts, ends just
after a time; a float next to the time would lose that in the first sum that rounds it away.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.records import give_back_records
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.placement.rules import occupy, vacate


@kernel
def rebuild_profile(s: State) -> bool:
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit.

    What is overdue is expected just after now.
    """
    begin_profile(s)
    place = s.profile_place[0]
    for column in range(s.free_nodes.shape[0]):
        s.profile_masks[place, column] = s.free_nodes[column]
    for at in range(s.num_releases):
        first = row_of_release(s, at)
        if first < 0:
            return False
        item = int(s.release_item[at])
        for row in range(first, s.num_profile):
            if item >= 0:
                _add_nodes(s, row, s.job.allocated[item], s.job.box[item])
            else:
                _add_node(s, row, -1 - item)
    return True


@kernel
def begin_profile(s: State) -> None:
    """Make one breakpoint, now, with what is free now; what of it is free of each node the caller adds."""
    s.num_profile = 1
    s.rebuilt = s.now
    set_point(s, 0, (s.now, 0.0))
    s.profile_free[0] = s.free
    place = s.profile_place[0]
    for column in range(s.profile_gained.shape[1]):
        s.profile_changed[place, column] = s.profile_gained[place, column] = s.changes


@kernel
def row_of_release(s: State, at: int) -> int:
    """Return the row from which on what is released is free, inserted if need be; -1 if it does not fit."""
    release = s.release_time[at]
    return breakpoint_at(s, (release, 0.0) if release > s.now else (s.now, 1.0))


@kernel
def rows_between(s: State, start: tuple[float, float], end: tuple[float, float]) -> tuple[int, int]:
    """Return the row of the breakpoint at start and of that at end, inserted if need be; -1 for the second if one does
    not fit."""
    first = breakpoint_at(s, start)
    return first, breakpoint_at(s, end) if first >= 0 else -1


@kernel
def point_at(s: State, row: int) -> tuple[float, float]:
    """Return the point of a breakpoint."""
    return s.profile_time[row], s.profile_rank[row]


@kernel
def set_point(s: State, row: int, point: tuple[float, float]) -> None:
    """Date a breakpoint."""
    s.profile_time[row], s.profile_rank[row] = point


@kernel
def reserved_start(s: State, job: int) -> tuple[float, float]:
    """Return the point at which the reservation of a job begins."""
    return s.job.reserved[job], s.job.reserved_rank[job]


@kernel
def note_reservation(s: State, job: int, start: tuple[float, float]) -> None:
    """Reserve a start for a job at a point."""
    s.job.reserved[job], s.job.reserved_rank[job] = start


@kernel
def _add_nodes(s: State, row: int, size: int, box: int) -> None:
    """Free a job's nodes from one breakpoint to the next."""
    s.profile_free[row] += size
    vacate(s.profile_masks[s.profile_place[row]], box, s.side_x, s.side_y, s.side_z)


@kernel
def _add_node(s: State, row: int, node: int) -> None:
    """Free one node from one breakpoint to the next."""
    s.profile_free[row] += 1
    Y, Z = s.side_y, s.side_z
    s.profile_masks[s.profile_place[row], node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)


@kernel
def reserved_end(s: State, job: int, start: tuple[float, float]) -> tuple[float, float]:
    """Return when a reservation from ``start`` on ends; that of a job that is overdue from its start needs a point."""
    time, rank = start
    end = expected_end(s, job, time)
    return (end, rank) if end > time else (time, rank + 1.0)


@kernel
def blocked_at(s: State, row: int, end: tuple[float, float], size: int) -> int:
    """Return the last breakpoint before ``end``, from a row on, with too few free nodes; -1 if there is none."""
    blocked = -1
    while row < s.num_profile and point_at(s, row) < end:
        if s.profile_free[row] < size:
            blocked = row
        row += 1
    return blocked


@kernel
def forget_past(s: State) -> None:
    """Drop breakpoints that lie before the one in force now, and date that one now."""
    now = (s.now, 0.0)
    while s.num_profile > 1 and point_at(s, 1) <= now:
        _drop_row(s, 0)
    if point_at(s, 0) < now:
        set_point(s, 0, now)


@inlined
def _copy_row(s: State, source: int, target: int) -> None:
    """Copy all of a row but its place."""
    set_point(s, target, point_at(s, source))
    s.profile_free[target] = s.profile_free[source]


@inlined
def _copy_tables(s: State, source: int, target: int) -> None:
    """Copy what the tables have at one place to another one, of the breakpoint behind it."""
    for column in range(s.profile_masks.shape[1]):
        s.profile_masks[target, column] = s.profile_masks[source, column]
    for span in range(s.profile_records.shape[1]):
        s.profile_records[target, span] = s.profile_records[source, span]
    for column in range(s.profile_gained.shape[1]):
        s.profile_changed[target, column] = s.profile_changed[source, column]
        s.profile_gained[target, column] = s.profile_gained[source, column]
    for word in range(s.profile_edges.shape[1]):
        s.profile_edges[target, word] = ZERO
    for column in range(s.profile_most.shape[1]):
        s.profile_most[target, column] = s.profile_most[source, column]


@kernel
def _drop_row(s: State, row: int) -> None:
    """Drop a breakpoint; its place in the tables is the next to be used."""
    give_back_records(s, row)
    place, count = s.profile_place[row], s.num_profile - 1
    for later in range(row, count):
        _copy_row(s, later + 1, later)
        s.profile_place[later] = s.profile_place[later + 1]
    s.profile_place[count] = place
    s.num_profile = count


@kernel
def breakpoint_at(s: State, point: tuple[float, float]) -> int:
    """Return the row of the breakpoint at a point that is not before the first one, inserting it if need be; -1 if it
    does not fit."""
    count = s.num_profile
    low = row_not_before(s, point)
    if low < count and point_at(s, low) == point:
        return low
    if count >= s.profile_time.shape[0]:
        return -1
    place = s.profile_place[count]
    for row in range(count - 1, low - 1, -1):
        _copy_row(s, row, row + 1)
        s.profile_place[row + 1] = s.profile_place[row]
    s.profile_place[low] = place
    _copy_row(s, low - 1, low)
    _copy_tables(s, s.profile_place[low - 1], place)
    set_point(s, low, point)
    s.num_profile = count + 1
    return low


@inlined
def row_not_before(s: State, point: tuple[float, float]) -> int:
    """Return the row of the first breakpoint that is not before a point."""
    low, high = 0, s.num_profile
    while low < high:
        middle = (low + high) >> 1
        if point_at(s, middle) < point:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def row_in_force(s: State, point: tuple[float, float]) -> int:
    """Return the row of the last breakpoint that is not behind a point; of the first one if all are."""
    row = row_not_before(s, point)
    return row if row < s.num_profile and point_at(s, row) == point else max(row - 1, 0)


@kernel
def occupy_profile(s: State, start: tuple[float, float], end: tuple[float, float], size: int, box: int) -> bool:
    """Take nodes out of the profile from start to end; return False if it does not fit."""
    first, last = rows_between(s, start, end)
    if last < 0:
        return False
    for row in range(first, last):
        s.profile_free[row] -= size
        occupy(s.profile_masks[s.profile_place[row]], box, s.side_x, s.side_y, s.side_z)
    return True


@kernel
def vacate_profile(s: State, start: tuple[float, float], end: tuple[float, float], size: int, box: int) -> bool:
    """Give nodes back to the profile from start to end; return False if it does not fit."""
    if end <= start:
        return True
    first, last = rows_between(s, start, end)
    if last < 0:
        return False
    for row in range(first, last):
        _add_nodes(s, row, size, box)
    merge_at(s, last)
    merge_at(s, first)
    return True


@kernel
def merge_at(s: State, row: int) -> None:
    """Drop a breakpoint at which nothing changes."""
    if row == 0 or row >= s.num_profile or s.profile_free[row] != s.profile_free[row - 1]:
        return
    place, before = s.profile_place[row], s.profile_place[row - 1]
    for column in range(s.profile_masks.shape[1]):
        if s.profile_masks[place, column] != s.profile_masks[before, column]:
            return
    for span in range(s.profile_records.shape[1]):
        if s.profile_records[place, span] != s.profile_records[before, span]:
            return
    for column in range(s.profile_gained.shape[1]):
        s.profile_changed[before, column] = max(s.profile_changed[before, column], s.profile_changed[place, column])
        s.profile_gained[before, column] = max(s.profile_gained[before, column], s.profile_gained[place, column])
    _drop_row(s, row)
