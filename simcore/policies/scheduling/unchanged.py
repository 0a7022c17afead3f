"""Which reservations stay as they are when nodes are released, on a torus or a site: none of these is made again.

A job can only begin earlier where something came back since its reservation was last looked for, and it can only get
other nodes from the same time on if anything changed meanwhile where it has them. So each row of the profile knows when
it last changed and when something last came back to it, and each job when its reservation was last looked for, all
counted in changes of the profile (``s.changes``).
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import point_at, reserved_end, reserved_start, row_in_force, row_not_before
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import SITE

NEVER = -1
"""Fewer changes than there ever were."""


@kernel
def note_change(s: State, start: tuple[float, float], end: tuple[float, float], gains: bool) -> None:
    """Note that the profile has changed from start to end, and whether something came back there."""
    if end <= start:
        return
    s.changes += 1
    if gains:
        s.last_gain = s.changes
    row = row_in_force(s, start)
    while row < s.num_profile and point_at(s, row) < end:
        s.profile_changed[row] = s.changes
        if gains:
            s.profile_gained[row] = s.changes
        row += 1


@kernel
def note_reserved(s: State, job: int) -> None:
    """Note that a job has a reservation that it did not have before."""
    start = reserved_start(s, job)
    note_change(s, start, reserved_end(s, job, start), False)
    s.job.settled[job] = s.changes


@kernel
def could_change(s: State, job: int) -> tuple[bool, tuple[float, float]]:
    """Tell whether a reservation could be another one if it were made again, and the point from which on it would have
    to be looked for."""
    start, settled = reserved_start(s, job), s.job.settled[job]
    end = reserved_end(s, job, start)
    if s.last_gain > settled:
        row = _first_to_gain(s, job, settled, start, end)
        if row >= 0:
            return True, point_at(s, row)
    return _could_have_others(s, settled, start, end), start


@kernel
def _first_to_gain(s: State, job: int, settled: int, start: tuple[float, float], end: tuple[float, float]) -> int:
    """Return the first row before its start at which a job could begin since something came back; -1 if there is none.

    Before its start there must be enough at any time while it lasts; from then on it has what it needs. An advance
    reservation that is over sets nothing free that was not looked for: its end was a breakpoint then.
    """
    needed = s.job.requested[job] if s.kind == SITE else s.job.size[job]
    before, last = row_not_before(s, start), row_not_before(s, end)
    row = enough = 0  # from the one row to the other there is enough for it
    gained = _next_gain(s, 0, last, before, needed, settled)
    while row < before and gained < last:
        until = reserved_end(s, job, point_at(s, row))
        if point_at(s, gained) >= until:
            row += 1
            continue
        enough = max(enough, row)
        while enough < before and point_at(s, enough) < until and s.profile_free[enough] >= needed:
            enough += 1
        if enough == before or point_at(s, enough) >= until:
            return row
        row = enough = enough + 1
        if gained < row:
            gained = _next_gain(s, row, last, before, needed, settled)
    return -1


@inlined
def _next_gain(s: State, row: int, last: int, before: int, needed: int, settled: int) -> int:
    """Return the first row from one on to which something came back and that has enough; the last if there is none."""
    while row < last and not (s.profile_gained[row] > settled and (row >= before or s.profile_free[row] >= needed)):
        row += 1
    return row


@kernel
def has_gained(s: State, row: int, end: tuple[float, float], settled: int) -> bool:
    """Tell whether something came back, between a row and a point, since there were ``settled`` changes."""
    while row < s.num_profile and point_at(s, row) < end:
        if s.profile_gained[row] > settled:
            return True
        row += 1
    return False


@kernel
def _could_have_others(s: State, settled: int, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Tell whether a job could get other nodes from its start on: because others are free, or are preferred now."""
    if s.preference_changed > settled or start == (s.now, 0.0):  # boxes of now are chosen by another rule
        return True
    row = row_in_force(s, start)
    while row < s.num_profile and point_at(s, row) < end:
        if s.profile_changed[row] > settled:
            return True
        row += 1
    return False
