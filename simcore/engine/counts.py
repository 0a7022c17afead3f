"""The availability profile of a flat machine: how many nodes are free from when on, and where there is room.

Rows ``s.first_row`` .. ``s.num_profile`` - 1 are breakpoints in order of time, as in ``profile.py``. A row at which
nothing changes stays until rows are closed up. Beside them lies an index. Numbers of nodes have few levels, each with a
least number. ``s.room`` has for each level a bit per row, set where so many nodes are free, so that a run of set bits
is a span of time with room for small jobs and large ones are sought in few words. ``s.settled`` has for each level and
class of lengths a time: every run of that level that begins before it is shorter than the class. A search begins there;
nodes that are given back set it back to the run that they make or lengthen.
"""

from __future__ import annotations

import math

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO, highest_bit, lowest_bit
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import point_at, reserved_end, set_point
from faultsweep.simcore.engine.state import LENGTHS, LEVELS, State

_MARGIN_S = 1e-3
"""A run that is shorter by so much than a job has no room for it, whatever rounding makes of times."""
_STEPS = 8  # rows to look at before a search by halves pays
_SLACK = 64


@inlined
def length_class(seconds: float) -> int:
    """Return the highest class of lengths whose least length is not larger; the first is for all below 1 s."""
    if seconds < 1.0:
        return 0
    if seconds == np.inf:
        return LENGTHS - 1
    mantissa, exponent = math.frexp(seconds)
    return min(2 * exponent - (0 if mantissa >= 0.75 else 1), LENGTHS - 1)


@kernel
def rebuild_counts(s: State) -> bool:
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit.

    What is overdue is expected just after now.
    """
    now, free, row = s.now, s.free, 0
    s.rebuilt = now
    s.first_row = 0
    set_point(s, 0, (now, 0.0))
    s.profile_free[0] = free
    for at in range(s.num_releases):
        release = s.release_time[at]
        point = (release, 0.0) if release > now else (now, 1.0)
        item = int(s.release_item[at])
        free += s.job.allocated[item] if item >= 0 else 1
        if point != point_at(s, row):
            row += 1
            if row >= s.profile_time.shape[0]:
                return False
            set_point(s, row, point)
        s.profile_free[row] = free
    s.num_profile = row + 1
    for level in range(LEVELS):
        for length in range(LENGTHS):
            s.settled[level, length] = -np.inf
    _index_rows(s)
    return True


@kernel
def _index_rows(s: State) -> None:
    """Set the bits of all rows, which begin at the first."""
    for word in range(s.room.shape[0]):
        for level in range(LEVELS):
            s.room[word, level] = ZERO
    for row in range(s.num_profile):
        bit = ONE << np.uint64(row & 63)
        for level in range(s.levels[int(s.profile_free[row])]):
            s.room[row >> 6, level] |= bit
    s.close_up_at = s.num_profile + (s.num_profile >> 1) + _SLACK


@kernel
def close_up(s: State) -> None:
    """Drop the rows of the past, and those at which nothing changes."""
    last, row = 0, s.first_row
    s.profile_free[0] = s.profile_free[row]
    set_point(s, 0, point_at(s, row))
    for later in range(row + 1, s.num_profile):
        if s.profile_free[later] != s.profile_free[last]:
            last += 1
            s.profile_free[last] = s.profile_free[later]
            set_point(s, last, point_at(s, later))
    s.first_row, s.num_profile = 0, last + 1
    _index_rows(s)


@inlined
def forget_past_counts(s: State) -> None:
    """Drop breakpoints that lie before the one in force now, and date that one now."""
    now = (s.now, 0.0)
    first, count = s.first_row, s.num_profile
    while first + 1 < count and point_at(s, first + 1) <= now:
        first += 1
    if point_at(s, first) < now:
        set_point(s, first, now)
    s.first_row = first


@inlined
def row_at(s: State, point: tuple[float, float]) -> int:
    """Return the first row that is not before a point."""
    time = point[0]
    low, count = s.first_row, s.num_profile - s.first_row
    while count > 1:
        half = count >> 1
        low += half if s.profile_time[low + half - 1] < time else 0
        count -= half
    while low < s.num_profile and point_at(s, low) < point:
        low += 1
    return low


@inlined
def breakpoint_from(s: State, row: int, point: tuple[float, float]) -> int:
    """Return the row at a point that is not before ``row``, inserting it if need be; -1 if it does not fit."""
    end = min(row + _STEPS, s.num_profile)
    while row < end and point_at(s, row) < point:
        row += 1
    if row == end and row < s.num_profile:
        row = row_at(s, point)
    if row < s.num_profile and point_at(s, row) == point:
        return row
    return _insert_row(s, row, point)


@kernel
def _insert_row(s: State, at: int, point: tuple[float, float]) -> int:
    count = s.num_profile
    if count >= s.profile_time.shape[0]:
        return -1
    for row in range(count, at, -1):
        s.profile_time[row] = s.profile_time[row - 1]
    for row in range(count, at, -1):
        s.profile_rank[row] = s.profile_rank[row - 1]
    for row in range(count, at, -1):
        s.profile_free[row] = s.profile_free[row - 1]
    set_point(s, at, point)
    s.profile_free[at] = s.profile_free[at - 1]
    s.num_profile = count + 1
    first = at >> 6
    for word in range(count >> 6, first, -1):
        for level in range(LEVELS):
            s.room[word, level] = s.room[word, level] << ONE | s.room[word - 1, level] >> np.uint64(63)
    below = (ONE << np.uint64(at & 63)) - ONE
    for level in range(LEVELS):
        bits = s.room[first, level]
        s.room[first, level] = bits & below | (bits & ~below) << ONE
    bit = ONE << np.uint64(at & 63)
    for level in range(s.levels[int(s.profile_free[at])]):
        s.room[first, level] |= bit
    return at


@inlined
def take_counts(s: State, first: int, end: int, size: int) -> None:
    """Take nodes from rows first .. end - 1."""
    for row in range(first, end):
        free = int(s.profile_free[row])
        s.profile_free[row] = free - size
        bit = ONE << np.uint64(row & 63)
        for level in range(s.levels[free - size], s.levels[free]):
            s.room[row >> 6, level] &= ~bit


@kernel
def give_counts(s: State, first: int, end: int, size: int) -> None:
    """Give nodes back to rows first .. end - 1."""
    lowest, highest = LEVELS, 0
    for row in range(first, end):
        free = int(s.profile_free[row])
        s.profile_free[row] = free + size
        bit = ONE << np.uint64(row & 63)
        low, high = s.levels[free], s.levels[free + size]
        for level in range(low, high):
            s.room[row >> 6, level] |= bit
        if low < high:
            lowest, highest = min(lowest, low), max(highest, high)
    for level in range(lowest, highest):
        row = _with_room(s, first, level)
        while row < end:
            after = _without_room(s, row, level)
            _unsettle(s, level, _start_of_run(s, row, level), after)
            row = _with_room(s, after, level)


@inlined
def _unsettle(s: State, level: int, row: int, after: int) -> None:
    """Let searches begin at a run no later than here."""
    time = s.profile_time[row]
    length = s.profile_time[after] - time if after < s.num_profile else np.inf
    for shorter in range(length_class(length) + 1):
        s.settled[level, shorter] = min(s.settled[level, shorter], time)


@inlined
def _with_room(s: State, row: int, level: int) -> int:
    """Return the first row from one on with its bit set; ``num_profile`` if there is none."""
    word, last = row >> 6, s.num_profile >> 6
    bits = s.room[word, level] >> np.uint64(row & 63) << np.uint64(row & 63)
    while bits == ZERO:
        word += 1
        if word > last:
            return s.num_profile
        bits = s.room[word, level]
    return 64 * word + lowest_bit(bits)


@inlined
def _without_room(s: State, row: int, level: int) -> int:
    """Return the first row from one on with its bit clear: no row behind the last has it set."""
    word = row >> 6
    bits = ~s.room[word, level] >> np.uint64(row & 63) << np.uint64(row & 63)
    while bits == ZERO:
        word += 1
        bits = ~s.room[word, level]
    return 64 * word + lowest_bit(bits)


@inlined
def _start_of_run(s: State, row: int, level: int) -> int:
    """Return the first row of the run of set bits that a row is in."""
    word = row >> 6
    bits = ~s.room[word, level] << np.uint64(63 - (row & 63)) >> np.uint64(63 - (row & 63))
    while bits == ZERO:
        word -= 1
        if word < 0:
            return s.first_row
        bits = ~s.room[word, level]
    return max(64 * word + highest_bit(bits) + 1, s.first_row)


@kernel
def earliest_row(s: State, job: int, reserved: tuple[float, float]) -> int:
    """Return the row before a reserved start at which a job fits for as long as it is expected to last; -1 if there is
    none.

    From its reserved start on enough nodes are free for it; infinity is no reservation.
    """
    level = s.levels[s.job.size[job]] - 1
    known = s.settled[level, s.job.length[job]]
    found, longest, until = -1, 0.0, reserved[0]
    if known <= until:
        row = s.first_row
        if known > s.now:
            row = row_at(s, (known, 0.0))
            if row > s.first_row and s.room[(row - 1) >> 6, level] >> np.uint64((row - 1) & 63) & ONE != ZERO:
                row = _start_of_run(s, row - 1, level)
        row = _with_room(s, row, level)
        while row < s.num_profile and point_at(s, row) < reserved:
            after = _without_room(s, row, level)
            time = s.profile_time[row]
            length = s.profile_time[after] - time if after < s.num_profile else np.inf
            end = _sooner(reserved_end(s, job, point_at(s, row)), reserved)
            if after == s.num_profile or end <= point_at(s, after):
                found = _row_within(s, job, row, after, reserved)
                if found >= 0:
                    until = time
                    break
            longest = max(longest, length)
            row = _with_room(s, after, level)
        for longer in range(length_class(longest) + 1, LENGTHS):
            if known <= s.settled[level, longer] < until:
                s.settled[level, longer] = until
    if found < 0:
        found = _row_beside(s, s.job.size[job], reserved)
    return found


@inlined
def _sooner(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one if one < other else other


@kernel
def _row_within(s: State, job: int, row: int, after: int, reserved: tuple[float, float]) -> int:
    """Return the first row from one on and before ``after`` at which a job fits, -1 if there is none."""
    size = s.job.size[job]
    while row < after:
        if s.profile_free[row] < size:
            row += 1
            continue
        start = point_at(s, row)
        if start >= reserved:
            return -1
        end = _sooner(reserved_end(s, job, start), reserved)
        later = row + 1
        while later < s.num_profile and s.profile_free[later] >= size and point_at(s, later) < end:
            later += 1
        if later == s.num_profile or point_at(s, later) >= end:
            return row
        row = later + 1
    return -1


@inlined
def _row_beside(s: State, size: int, reserved: tuple[float, float]) -> int:
    """Return the first row of those right before a reserved start with enough free nodes, -1 if there is none."""
    row = row_at(s, reserved)
    found = -1
    while row > s.first_row and s.profile_free[row - 1] >= size:
        row -= 1
        found = row
    return found


@inlined
def note_length(s: State, job: int, length: float) -> None:
    """Note the class of the length of a job's reservation."""
    s.job.length[job] = length_class(length - _MARGIN_S)
