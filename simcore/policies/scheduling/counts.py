"""Conservative backfilling on a flat machine, where a reservation is a time and a number of nodes.

The reservations are the same as if each were made again, one by one, beside all others. A job can only begin earlier
where nodes came back since it was last asked, so that few places are looked at (``engine/counts.py``).
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.counts import (
    date_earlier,
    earlier_fit,
    earliest_fit,
    end_use,
    first_row_from,
    forget_old_gains,
    give_counts,
    may_be_earlier,
    note_asked,
    note_length,
    note_start,
    note_use,
    note_uses_anew,
    row_from,
    take_counts,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import point_at, reserved_end, reserved_start
from faultsweep.simcore.engine.state import State

_PASSES = 16
"""Passes after which ``latest_use`` is computed anew: more often would cost more than the needless gains it avoids."""


@kernel
def compress_counts(s: State) -> bool:
    """Make reservations earlier, in queue order, each with all others in place; False if the profile does not fit.

    Those that move give nodes back in their turn, to those behind them now, and to those before them next time.
    """
    if s.gave + s.gave_before == 0:
        return True
    s.compressed += 1
    if s.compressed % _PASSES == 0:
        note_uses_anew(s)
    for position in range(s.queue_head, s.queue_tail):
        job = s.queue[position]
        room, gain = may_be_earlier(s, job)
        if room | gain and not np.isnan(s.job.reserved[job]):
            row, after = earlier_fit(s, job, room, gain)
            if row >= 0 and not _move_reservation(s, job, row, after):
                return False
        note_asked(s, job)
    forget_old_gains(s)
    return True


@kernel
def _move_reservation(s: State, job: int, row: int, after: int) -> bool:
    """Let a reservation begin at an earlier row; return False if the profile does not fit.

    ``after`` is the first row not before its end, -1 if there is none.
    """
    size, old, old_end = s.job.size[job], s.job.reserved_row[job], s.job.until_row[job]
    s.moved_reservations += 1
    reserved, start = reserved_start(s, job), point_at(s, row)
    end = reserved_end(s, job, start)
    s.row_uses[row] += 1
    s.row_starts[row] += 1
    s.row_starts[old] -= 1
    if end < reserved:
        new_end = row_from(s, after, end)
        if new_end < 0:
            return False
        take_counts(s, row, new_end, size)
        s.row_uses[new_end] += 1
        give_counts(s, old, old_end, size)
        end_use(s, old_end)
    else:
        take_counts(s, row, old, size)
        new_end = _end_earlier(s, old_end, end, size)
        if new_end < 0:
            return False
    note_start(s, job, start)
    s.job.reserved_row[job], s.job.until_row[job] = row, new_end
    end_use(s, old)
    return True


@inlined
def _end_earlier(s: State, row: int, point: tuple[float, float], size: int) -> int:
    """Let a reservation end at a point instead of a row that is not before it; return the row of that, -1 if it does
    not fit."""
    after = first_row_from(s, row, point)
    if after == row and s.row_uses[row] == 1:
        date_earlier(s, row, point)
        return row
    end = row_from(s, after, point)
    if end >= 0 and end != row:
        s.row_uses[end] += 1
        give_counts(s, end, row, size)
        end_use(s, row)
    return end


@kernel
def reserve_count(s: State, job: int, bound: int) -> bool:
    """Reserve the earliest start for a job, not before that of another one, if ``bound`` is one and not -1; return
    False if the profile does not fit."""
    note_length(s, job)
    row, after = earliest_fit(s, job, s.job.reserved_row[bound] if bound >= 0 else s.first_row)
    start = point_at(s, row)
    until = row_from(s, after, reserved_end(s, job, start))
    if until < 0:
        return False
    take_counts(s, row, until, s.job.size[job])
    s.row_uses[row] += 1
    s.row_starts[row] += 1
    s.row_uses[until] += 1
    s.job.reserved_row[job], s.job.until_row[job] = row, until
    s.num_reserved += 1
    s.job.asked[job] = s.num_old_gains  # it begins as early as these allow
    note_start(s, job, start)
    note_use(s, job)
    return True


@inlined
def start_reserved_count(s: State, job: int) -> None:
    """Let a job that starts hold what was reserved for it from now on."""
    s.row_starts[s.first_row] -= 1
    s.row_uses[s.first_row] -= 1
    s.num_reserved -= 1


@kernel
def give_back_counts(s: State, job: int, end: tuple[float, float]) -> None:
    """Give back the nodes of a job that ends, from now to ``end``, when it was expected to, unless the profile is made
    anew in any case, as where it does not know that end."""
    if s.disturbed == 1 or end <= (s.now, 0.0):
        return
    until = s.job.until_row[job]
    if until >= s.num_profile or s.row_gone[until] == 1 or point_at(s, until) != end:
        s.disturbed = 1
        return
    give_counts(s, s.first_row, until, s.job.allocated[job])
    end_use(s, until)
