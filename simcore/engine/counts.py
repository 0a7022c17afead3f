"""The availability profile of a flat machine: how many nodes are free from when on, and where nodes came back.

Its breakpoints are rows of a list in order of time: ``s.row_after`` has the next one of each, so that a reservation
moves without a search and without moving others. A row stays as long as something uses it, because it begins or ends
there (``s.row_uses``).

Where nodes come back, a reservation may get earlier. Each gain is noted once for each level of sizes with a job that
may use it, because it is short enough and begins late enough (``s.latest_use``): the room around it, the sizes that
gain by it, and the smallest and shortest job that did not fit. Room just before a reservation needs no gain: whether
there is some is seen at once. A gain is offered to every waiting job once: to those behind the job that gave the nodes
in the same pass, to those before it in the next. So gains are kept for two passes (``s.generation``), and of the last
pass a job is offered those since its turn.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end, remaining_estimate, restart_cost
from faultsweep.simcore.engine.bits import ONE, ZERO, highest_bit, lowest_bit
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import note_reservation, point_at, reserved_end, reserved_start, set_point
from faultsweep.simcore.engine.state import LENGTHS, LEVELS, State

_MARGIN_S = 1e-3
"""Room that is shorter by so much than a job is none for it, whatever rounding makes of times."""
_LONGEST_S = 2.0 ** (LENGTHS / 2 - 1)
"""The least length of the last class."""
_NONE = -1
_NOBODY = 1 << 60


@inlined
def length_class(seconds: float) -> int:
    """Return the highest class of lengths whose least length is not larger: of 1 s, 1.4 s, 2 s, 2.8 s, ..., the roots
    of 1, 2, 4, 8, ...; the first is for all below 1 s."""
    if seconds < 1.0:
        return 0
    if not seconds < _LONGEST_S:  # NaN as well
        return LENGTHS - 1
    return 1 + highest_bit(np.uint64(int(seconds * seconds)))


@kernel
def rebuild_counts(s: State) -> bool:
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit.

    What is overdue is expected just after now.
    """
    now = s.now
    s.rebuilt = now
    s.num_profile = s.num_reserved = s.missed = 0
    s.latest_use[:] = -np.inf
    s.spare_row = s.dropped_now = s.dropped_before = _NONE
    _forget_generation(s)
    _forget_generation(s)
    s.first_row = s.last_row = _NONE
    row = add_row(s, (now, 0.0), s.free, _NONE, _NONE)
    s.first_row = row
    for at in range(s.num_releases):
        release = s.release_time[at]
        point = (release, 0.0) if release > now else (now, 1.0)
        item = int(s.release_item[at])
        if point != point_at(s, row):
            row = add_row(s, point, s.row_free[row], row, _NONE)
            if row < 0:
                return False
        s.row_uses[row] += 1
        if item >= 0:
            s.job.until_row[item] = row
            s.row_free[row] += s.job.allocated[item]
        else:
            s.row_free[row] += 1
    return True


@inlined
def add_row(s: State, point: tuple[float, float], free: int, before: int, after: int) -> int:
    """Insert a breakpoint that nothing uses yet between two rows; return its row, -1 if it does not fit."""
    row = s.spare_row
    if row >= 0:
        s.spare_row = s.row_after[row]
    else:
        row = s.num_profile
        if row >= s.profile_time.shape[0]:
            return _NONE
        s.num_profile = row + 1
    set_point(s, row, point)
    s.row_free[row] = free
    s.row_room[row] = free if before >= 0 else 0
    s.row_uses[row] = s.row_starts[row] = s.row_gone[row] = 0
    s.row_before[row] = before
    s.row_after[row] = after
    if before >= 0:
        s.row_after[before] = row
    if after >= 0:
        s.row_before[after] = row
        s.row_room[after] = free
    else:
        s.last_row = row
    return row


@inlined
def _drop_row(s: State, row: int) -> None:
    """Take a row out of use; gains may name it until those of this pass are forgotten."""
    s.row_gone[row] = 1
    s.row_after[row] = s.dropped_now
    s.dropped_now = row


@inlined
def end_use(s: State, row: int) -> None:
    """Use a row once less; drop it if nothing uses it any more and it is not the first."""
    s.row_uses[row] -= 1
    if s.row_uses[row] > 0 or row == s.first_row:
        return
    before, after = s.row_before[row], s.row_after[row]
    s.row_after[before] = after
    if after >= 0:
        s.row_before[after] = before
    else:
        s.last_row = before
    _drop_row(s, row)


@inlined
def forget_past_counts(s: State) -> None:
    """Drop breakpoints that lie before the one in force now, date that one now, and note whether a reserved start is
    past."""
    now = (s.now, 0.0)
    first = s.first_row
    after = s.row_after[first]
    while after >= 0 and point_at(s, after) <= now:
        if s.row_starts[first] > 0:
            s.missed = 1
        s.row_before[first] = s.row_before[after] = _NONE
        _drop_row(s, first)
        first = after
        after = s.row_after[first]
    s.first_row = first
    s.row_room[first] = 0
    if point_at(s, first) < now:
        if s.row_starts[first] > 0:
            s.missed = 1
        set_point(s, first, now)


@inlined
def row_from(s: State, after: int, point: tuple[float, float]) -> int:
    """Return the row at a point, inserting it if need be; -1 if it does not fit. ``after`` is the first row not before
    the point, -1 if there is none."""
    if after >= 0 and point_at(s, after) == point:
        return after
    before = s.row_before[after] if after >= 0 else s.last_row
    return add_row(s, point, s.row_free[before], before, after)


@inlined
def first_row_from(s: State, row: int, point: tuple[float, float]) -> int:
    """Return the first row that is not before a point, which is later than the first row and not later than ``row``."""
    while point_at(s, s.row_before[row]) >= point:
        row = s.row_before[row]
    return row


@inlined
def take_counts(s: State, first: int, end: int, size: int) -> None:
    """Take nodes from a row on and before another one."""
    row = first
    while row != end:
        s.row_free[row] -= size
        row = s.row_after[row]
        s.row_room[row] -= size


@kernel
def give_counts(s: State, first: int, end: int, size: int) -> None:
    """Give nodes back from a row on and before another one, and note for whom that is a gain."""
    low, high, last, row = s.nodes, 0, first, first
    while row != end:
        free = s.row_free[row]
        s.row_free[row] = free + size
        low, high, last = min(low, free), max(high, free + size), row
        row = s.row_after[row]
        s.row_room[row] += size
    _note_gains(s, first, last, low, high)


@inlined
def date_earlier(s: State, row: int, point: tuple[float, float]) -> None:
    """Date a row earlier, where a reservation alone ends, and no other row is between; its nodes are a gain."""
    set_point(s, row, point)
    _note_gains(s, row, row, s.row_room[row], s.row_free[row])


@kernel
def _note_gains(s: State, first: int, last: int, low: int, high: int) -> None:
    """Note for whom it is a gain that nodes came back from a row on to the one after another, or for good.

    Who needs no more than ``low`` nodes, which were free throughout, gains nothing by it, nor who needs more than
    ``high``, which are free now at most.
    """
    s.gave = 1
    left, right, end = first, last, s.row_after[last]
    begins, until = s.profile_time[first], s.profile_time[end] if end >= 0 else np.inf
    length = _class_of_room(begins, until)
    for level in range(s.levels[high] - 1, s.levels[low + 1] - 2, -1):
        least = max(1 << s.level_bits * level, low + 1)
        if s.row_free[first] < least or s.row_room[first] < least:  # the room does not begin before
            is_longer = end >= 0 and s.row_free[last] >= least and s.row_free[end] >= least
            if s.latest_use[level * LENGTHS + (LENGTHS - 1 if is_longer else length)] < begins:
                continue
        begin, stop = first, last
        if s.row_free[first] >= least:
            while s.row_room[left] >= least:
                left = s.row_before[left]
            begin = left
        while s.row_free[begin] < least:
            begin = s.row_after[begin]
        if s.row_free[last] >= least:
            while s.row_after[right] >= 0 and s.row_free[s.row_after[right]] >= least:
                right = s.row_after[right]
            stop = right
        while s.row_free[stop] < least:
            stop = s.row_before[stop]
        _note_gain(s, level, begin, s.row_after[stop], low, high)


@inlined
def _class_of_room(begin: float, until: float) -> int:
    """Return the class of the longest jobs for which there is room from one time to another."""
    return length_class(until - begin + _MARGIN_S)


@inlined
def _note_gain(s: State, level: int, row: int, after: int, low: int, high: int) -> None:
    """Note that more than ``low`` nodes, up to ``high``, are free from a row on and before another one, -1 if for good,
    for jobs of a level of sizes, if it may be of use to one of them."""
    begin = s.profile_time[row]
    until = s.profile_time[after] if after >= 0 else np.inf
    length = _class_of_room(begin, until)
    if s.latest_use[level * LENGTHS + length] < begin:
        return
    half = s.gain_from.shape[0] >> 1
    if s.num_gains < half - LEVELS:
        _list_gain(s, level, s.num_gains, begin, until, length, row, low, high)
        s.num_gains += 1
        return
    if s.num_gains < half:  # no room for more of them: everything is a gain for everybody, until this is forgotten
        for other in range(LEVELS):
            _list_gain(s, other, half - LEVELS + other, -np.inf, np.inf, LENGTHS - 1, s.first_row, 0, s.nodes)
        s.num_gains = half
    s.refused_size[s.generation * half + half - LEVELS + level] = _NOBODY


@kernel
def _list_gain(
    s: State, level: int, at: int, begin: float, until: float, length: int, row: int, low: int, high: int
) -> None:
    """Write a gain at a place of its generation, and list it by the class of its length."""
    generation = s.generation
    gain = generation * (s.gain_from.shape[0] >> 1) + at
    s.gain_from[gain], s.gain_until[gain] = begin, until
    s.gain_row[gain], s.gain_low[gain], s.gain_high[gain] = row, low, high
    s.refused_size[gain] = _NOBODY
    s.newest_gain[generation, level] = at
    bit = ONE << np.uint64(length)
    others, first = _NONE, level * LENGTHS
    if s.gain_classes[generation, level] & bit != ZERO:
        others = s.gain_heads[generation, level, length]
    s.gain_next[gain] = others
    s.gain_heads[generation, level, length] = gain
    s.gain_classes[generation, level] |= bit
    while length >= 0 and s.first_gain[generation, first + length] > begin:
        s.first_gain[generation, first + length] = begin
        length -= 1


@kernel
def forget_old_gains(s: State) -> None:
    """After all reservations have been asked about all gains: forget those that everybody has been asked about."""
    _forget_generation(s)
    row = s.dropped_before
    while row >= 0:
        after = s.row_after[row]
        s.row_after[row] = s.spare_row
        s.spare_row = row
        row = after
    s.dropped_before = s.dropped_now
    s.dropped_now = _NONE


@kernel
def _forget_generation(s: State) -> None:
    """Forget the older gains; those of the last pass are the older ones from now on."""
    s.generation = 1 - s.generation
    s.num_old_gains = s.num_gains
    s.num_gains = 0
    s.gave_before = s.gave
    s.gave = 0
    for level in range(LEVELS):
        s.gain_classes[s.generation, level] = ZERO
    s.first_gain[s.generation, :] = np.inf


@kernel
def earliest_fit(s: State, job: int, row: int) -> tuple[int, int]:
    """Return the first row, from one on, at which a job fits for as long as it is expected to last, and the first row
    not before its end then, -1 if there is none."""
    size = s.job.size[job]
    while True:
        while s.row_free[row] < size:  # all nodes are free in the last row
            row = s.row_after[row]
        end = reserved_end(s, job, point_at(s, row))
        after = _room_until(s, row, size, end)
        if after < 0 or point_at(s, after) >= end:
            return row, after
        row = s.row_after[after]


@inlined
def _room_until(s: State, row: int, size: int, end: tuple[float, float]) -> int:
    """Return the first row behind one that has too few free nodes or is not before an end, -1 if there is none."""
    after = s.row_after[row]
    while after >= 0 and s.row_free[after] >= size and point_at(s, after) < end:
        after = s.row_after[after]
    return after


@kernel
def fits_now(s: State, job: int) -> bool:
    """Tell whether a job fits now for as long as it is expected to last."""
    size, row = s.job.size[job], s.first_row
    if s.row_free[row] < size:
        return False
    end = reserved_end(s, job, point_at(s, row))
    after = _room_until(s, row, size, end)
    return after < 0 or point_at(s, after) >= end


@inlined
def may_be_earlier(s: State, job: int) -> tuple[bool, bool]:
    """Tell whether a job with a reservation may begin earlier: because nodes are free just before, and by a gain. Two
    times False is certain."""
    room = s.row_room[s.job.reserved_row[job]] >= s.job.size[job]
    kind, latest = s.job.kind[job], s.job.latest_gain[job]
    return room, (s.first_gain[0, kind] <= latest) | (s.first_gain[1, kind] <= latest)


@inlined
def note_asked(s: State, job: int) -> None:
    """Note that a job has been offered all gains so far, but for those that are for everybody."""
    s.job.asked[job] = min(s.num_gains, (s.gain_from.shape[0] >> 1) - LEVELS)


@kernel
def earlier_fit(s: State, job: int, has_room_before: bool, may_gain: bool) -> tuple[int, int]:
    """Return the same before the reserved start of a job, beside its reservation; (-1, -1) if there is none.

    From its reserved start on enough nodes are free for it.
    """
    row, after = _fit_beside(s, job) if has_room_before else (_NONE, _NONE)
    if may_gain:
        return _fit_in_gains(s, job, row, after)
    return row, after


@inlined
def _fit_beside(s: State, job: int) -> tuple[int, int]:
    """Return the same for the room just before the reservation, which there is."""
    size, after = s.job.size[job], s.job.reserved_row[job]
    row = after
    while s.row_room[row] >= size:
        row = s.row_before[row]
    end = reserved_end(s, job, point_at(s, row))
    return row, first_row_from(s, after, end) if end < point_at(s, after) else after


@kernel
def _fit_in_gains(s: State, job: int, row: int, after: int) -> tuple[int, int]:
    """Return the first row of all gains at which a job fits, and the first row not before its end then; ``row`` and
    ``after`` if there is none before that row, or before the reservation if that is -1.

    There are too few nodes just before that, so a job that begins earlier ends by then. What a gain was refused to is
    refused to what is no smaller and no shorter, if it does not pause first.
    """
    size = s.job.size[job]
    found = point_at(s, row) if row >= 0 else reserved_start(s, job)
    length, pauses = remaining_estimate(s, job), restart_cost(s, job) > 0.0
    latest = found[0] - length + _MARGIN_S
    kind = s.job.kind[job]
    level, shift = kind // LENGTHS, np.uint64(kind % LENGTHS)
    for generation in range(2):
        first = s.job.asked[job] if generation != s.generation else 0
        earliest = s.first_gain[generation, kind]
        if s.newest_gain[generation, level] < first or earliest > min(latest, found[0]):
            continue
        first += generation * (s.gain_from.shape[0] >> 1)
        classes = s.gain_classes[generation, level] >> shift << shift
        while classes != ZERO:
            long_enough = lowest_bit(classes)
            classes &= classes - ONE
            gain = s.gain_heads[generation, level, long_enough]
            if s.first_gain[generation, level * LENGTHS + long_enough] > min(latest, found[0]):
                break
            while gain >= first:
                begins = s.gain_from[gain] <= min(latest, found[0], s.gain_until[gain] - length + _MARGIN_S)
                if begins and s.gain_low[gain] < size <= s.gain_high[gain]:
                    refused = size >= s.refused_size[gain] and length >= s.refused_length[gain] and not pauses
                    if not refused:
                        at, behind = _fit_in_gain(s, job, gain, found)
                        if at >= 0:
                            row, after, found = at, behind, point_at(s, at)
                        elif found[0] > s.gain_until[gain] and not pauses:
                            _note_refusal(s, gain, size, length)
                gain = s.gain_next[gain]
    return row, after


@inlined
def _note_refusal(s: State, gain: int, size: int, length: float) -> None:
    """Note that a gain was refused to a job, in place of one that says less."""
    if size <= s.refused_size[gain] and (s.refused_size[gain] == _NOBODY or length <= s.refused_length[gain]):
        s.refused_size[gain], s.refused_length[gain] = size, length


@kernel
def _fit_in_gain(s: State, job: int, gain: int, found: tuple[float, float]) -> tuple[int, int]:
    """Return the first row of a gain, before what has been found, at which a job fits beside its reservation, and the
    first row not before its end then; (-1, -1) if there is none.

    Room that begins before the gain is found in another one or beside the reservation.
    """
    size, until, reserved = s.job.size[job], s.gain_until[gain], reserved_start(s, job)
    row = s.gain_row[gain]
    while s.row_gone[row] == 1:
        row = s.row_before[row]
        if row < 0:
            row = s.first_row
    while row >= 0 and s.profile_time[row] <= until and point_at(s, row) < found:
        if s.row_free[row] < size:
            row = s.row_after[row]
            continue
        end = reserved_end(s, job, point_at(s, row))
        end = end if end < reserved else reserved
        after = _room_until(s, row, size, end)
        if after < 0 or point_at(s, after) >= end:
            return row, after
        row = s.row_after[after]
    return _NONE, _NONE


@inlined
def note_length(s: State, job: int) -> None:
    """Note the level of a job's size and the class of the length of its reservation."""
    length = length_class(expected_end(s, job, 0.0) - _MARGIN_S)
    s.job.kind[job] = (s.levels[s.job.size[job]] - 1) * LENGTHS + length


@inlined
def note_start(s: State, job: int, start: tuple[float, float]) -> None:
    """Note when the reservation of a job begins, and how late a gain of use to it does."""
    note_reservation(s, job, start)
    s.job.latest_gain[job] = start[0] - remaining_estimate(s, job) + _MARGIN_S


@inlined
def note_use(s: State, job: int) -> None:
    """Note how late a gain may begin to be of use to a job whose reservation has just been made."""
    at, latest = s.job.kind[job], s.job.latest_gain[job]
    end = (at // LENGTHS + 1) * LENGTHS
    while at < end and s.latest_use[at] < latest:
        s.latest_use[at] = latest
        at += 1


@kernel
def note_uses_anew(s: State) -> None:
    """Note the same for all reservations: those that have moved, or are used, have left later times."""
    s.latest_use[:] = -np.inf
    for position in range(s.queue_head, s.queue_tail):
        job = s.queue[position]
        if not np.isnan(s.job.reserved[job]):
            note_use(s, job)
