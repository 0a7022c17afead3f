"""Conservative backfilling on a flat machine, where a reservation is a time and a number of nodes.

The reservations are the same as if each were made again, one by one, beside all others. A job can only begin earlier
in a run of breakpoints with room for it that has been made or lengthened since it was last refused, so that
few runs are looked at (``engine/counts.py``).
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end
from faultsweep.simcore.engine.counts import (
    breakpoint_from,
    close_up,
    earliest_row,
    give_counts,
    note_length,
    row_at,
    take_counts,
)
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.profile import note_reservation, point_at, reserved_end, reserved_start
from faultsweep.simcore.engine.state import State

_NO_RESERVATION = (np.inf, 0.0)


@kernel
def compress_counts(s: State) -> bool:
    """Make reservations earlier, in queue order, each with all others in place; False if the profile does not fit.

    A reservation gets earlier only by nodes that were given back since it was last compressed. Those that move give
    nodes back in their turn, to those behind them now, and to those before them next time.
    """
    if s.regained < s.now:
        return True
    s.regained = -np.inf
    for position in range(s.queue_head, s.queue_tail):
        job = s.queue[position]
        if np.isnan(s.job.reserved[job]):
            continue
        row = earliest_row(s, job, reserved_start(s, job))
        if row >= 0 and not _move_reservation(s, job, row):
            return False
    return True


@kernel
def _move_reservation(s: State, job: int, row: int) -> bool:
    """Let a reservation begin at an earlier row; return False if the profile does not fit."""
    size = s.job.size[job]
    reserved, start = reserved_start(s, job), point_at(s, row)
    last, end = reserved_end(s, job, reserved), reserved_end(s, job, start)
    s.regained = max(s.regained, last[0])
    s.reservations_moved += 1
    note_reservation(s, job, start)
    taken_until, given_from = (end, reserved) if end < reserved else (reserved, end)
    middle = breakpoint_from(s, row, taken_until)
    if middle < 0:
        return False
    take_counts(s, row, middle, size)
    first = breakpoint_from(s, middle, given_from)
    after = breakpoint_from(s, first, last) if first >= 0 else -1
    if after < 0:
        return False
    give_counts(s, first, after, size)
    if s.num_profile >= s.close_up_at:
        close_up(s)
    return True


@kernel
def reserve_count(s: State, job: int) -> bool:
    """Reserve the earliest start for a job; return False if the profile does not fit."""
    note_length(s, job, expected_end(s, job, 0.0))
    row = earliest_row(s, job, _NO_RESERVATION)
    start = point_at(s, row)
    after = breakpoint_from(s, row, reserved_end(s, job, start))
    if after < 0:
        return False
    take_counts(s, row, after, s.job.size[job])
    note_reservation(s, job, start)
    if s.num_profile >= s.close_up_at:
        close_up(s)
    return True


@kernel
def give_back_counts(s: State, end: tuple[float, float], size: int) -> bool:
    """Give nodes back to the profile from now to ``end``, unless it is made anew in any case; return False if the
    profile does not fit."""
    now = (s.now, 0.0)
    if s.disturbed == 1 or end <= now:
        return True
    first = row_at(s, now)
    after = breakpoint_from(s, first, end)
    if after < 0:
        return False
    give_counts(s, first, after, size)
    return True
