"""Which reservations stay as they are when nodes are released, on a torus or a site: none of these is made again.

A job can only begin earlier where something came back since its reservation was last looked for, and it can only get
other nodes from the same time on if anything changed meanwhile where it has them. So each row of the profile knows when
it last changed and when something last came back to it, and each job when its reservation was last looked for, all
counted in changes of the profile (``s.changes``).
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import point_at, reserved_end, reserved_start, row_in_force, row_not_before
from faultsweep.simcore.engine.records import most_column
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import SITE

NEVER = -1
"""Fewer changes than there ever were."""


@kernel
def note_change(s: State, start: tuple[float, float], end: tuple[float, float], members: int, gains: bool) -> None:
    """Note that the profile has changed from start to end of nodes of some partitions, and whether something came back
    there."""
    if end <= start:
        return
    s.changes += 1
    for column in range(s.last_gain.shape[0]):
        if members >> column & 1 == 1:
            _note_in(s, start, end, column, gains)


@inlined
def _note_in(s: State, start: tuple[float, float], end: tuple[float, float], column: int, gains: bool) -> None:
    """Note it of one of these partitions."""
    if gains:
        s.last_gain[column] = s.changes
    row = row_in_force(s, start)
    while row < s.num_profile and point_at(s, row) < end:
        place = s.profile_place[row]
        s.profile_changed[place, column] = s.changes
        if gains:
            s.profile_gained[place, column] = s.changes
        row += 1


@kernel
def members_of(s: State, piece: int) -> int:
    """Return the bits of the partitions that have nodes of a list of pieces, from one on; 1 where there are none."""
    if s.kind != SITE:
        return 1
    members = 0
    while piece >= 0:
        members |= s.node_members[s.piece_node[piece]]
        piece = s.piece_next[piece]
    return members


@inlined
def _column_of(s: State, job: int) -> int:
    """Return the column of what is known of breakpoints that is about the partition of a job."""
    return s.job.partition[job] if s.kind == SITE else 0


@kernel
def note_reserved(s: State, job: int) -> None:
    """Note that a job has a reservation that it did not have before."""
    start = reserved_start(s, job)
    members = members_of(s, s.job.first_piece[job] if s.kind == SITE else -1)
    note_change(s, start, reserved_end(s, job, start), members, False)
    s.job.settled[job] = s.changes


@kernel
def could_change(s: State, job: int) -> tuple[bool, tuple[float, float]]:
    """Tell whether a reservation could be another one if it were made again, and the point from which on it would have
    to be looked for."""
    start, settled = reserved_start(s, job), s.job.settled[job]
    end = reserved_end(s, job, start)
    if s.last_gain[_column_of(s, job)] > settled:
        row = _first_to_gain(s, job, settled, start, end)
        if row >= 0:
            return True, point_at(s, row)
    return _could_have_others(s, job, settled, start, end), start


@kernel
def _first_to_gain(s: State, job: int, settled: int, start: tuple[float, float], end: tuple[float, float]) -> int:
    """Return the first row before its start at which a job could begin since something came back; -1 if there is none.

    Before its start there must be enough at any time while it lasts; from then on it has what it needs. An advance
    reservation that is over sets nothing free that was not looked for: its end was a breakpoint then.
    """
    needed = s.job.requested[job] if s.kind == SITE else s.job.size[job]
    before, last = row_not_before(s, start), row_not_before(s, end)
    row = enough = 0  # from the one row to the other there is enough for it
    gained = _next_gain(s, 0, last, before, job, needed, settled)
    while row < before and gained < last:
        until = reserved_end(s, job, point_at(s, row))
        if point_at(s, gained) >= until:
            row += 1
            continue
        enough = max(enough, row)
        while enough < before and point_at(s, enough) < until and _room_at(s, job, enough) >= needed:
            enough += 1
        if enough == before or point_at(s, enough) >= until:
            return row
        row = enough = enough + 1
        if gained < row:
            gained = _next_gain(s, row, last, before, job, needed, settled)
    return -1


@inlined
def _room_at(s: State, job: int, row: int) -> int:
    """Return the free nodes from a breakpoint on; on a site the cores that a job could use of its partition at most."""
    if s.kind == SITE:
        return np.int64(s.profile_most[s.profile_place[row], most_column(s, job)])  # type: ignore[return-value]
    return np.int64(s.profile_free[row])  # type: ignore[return-value]  # int when compiled


@inlined
def _gained_at(s: State, job: int, row: int) -> int:
    """Return how many changes there were when something last came back from a breakpoint on that a job could use."""
    return s.profile_gained[s.profile_place[row], _column_of(s, job)]


@inlined
def _next_gain(s: State, row: int, last: int, before: int, job: int, needed: int, settled: int) -> int:
    """Return the first row from one on to which something came back and that has enough; the last if there is none."""
    while row < last and not (_gained_at(s, job, row) > settled and (row >= before or _room_at(s, job, row) >= needed)):
        row += 1
    return row


@kernel
def has_gained(s: State, job: int, row: int, end: tuple[float, float], settled: int) -> bool:
    """Tell whether something came back that a job could use, between a row and a point, since there were ``settled``
    changes."""
    while row < s.num_profile and point_at(s, row) < end:
        if _gained_at(s, job, row) > settled:
            return True
        row += 1
    return False


@kernel
def _could_have_others(s: State, job: int, settled: int, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Tell whether a job could get other nodes from its start on: because others are free, or are preferred now."""
    if s.preference_changed > settled or start == (s.now, 0.0):  # boxes of now are chosen by another rule
        return True
    row = row_in_force(s, start)
    while row < s.num_profile and point_at(s, row) < end:
        if s.profile_changed[s.profile_place[row], _column_of(s, job)] > settled:
            return True
        row += 1
    return False
