"""The availability profile of conservative backfilling: what is free from when on, as far as the scheduler expects.

Breakpoints in order of time; between two of them the set of free nodes is constant: a count on a flat machine, masks
on a torus. The first breakpoint is never later than now. Running jobs occupy it up to their expected ends, down nodes
up to their repairs, reservations for as long as they are expected to last.

A moment is a tuple (time, rank): rank 0 is the time itself, rank 1 just after it, where what is overdue is expected to
end: later than that time and earlier than every other. What begins just after a time and lasts, ends just after a time;
a float next to the time would lose that in the first sum that rounds it away.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    BOX,
    FREE,
    FREE_NODES,
    KIND,
    NOW,
    NUM_PROFILE,
    NUM_RELEASES,
    PROFILE_FREE,
    PROFILE_RANK,
    PROFILE_TIME,
    PROMISED,
    PROMISED_RANK,
    REBUILT,
    RELEASE_ITEM,
    RELEASE_TIME,
    SIDE_X,
    SIDE_Y,
    SIDE_Z,
)
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.placement.rules import occupy, vacate


@kernel
def rebuild_profile(s):
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit.

    What is overdue is expected just after now.
    """
    now = s.f[NOW]
    s.i[NUM_PROFILE] = 1
    s.f[REBUILT] = now
    set_moment(s, 0, (now, 0.0))
    s.profile[PROFILE_FREE, 0] = s.i[FREE]
    if s.i[KIND] != FLAT:
        for column in range(s.masks.shape[1]):
            s.profile_masks[0, column] = s.masks[FREE_NODES, column]
    for at in range(s.i[NUM_RELEASES]):
        release = s.agenda[RELEASE_TIME, at]
        first = breakpoint_at(s, (release, 0.0) if release > now else (now, 1.0))
        if first < 0:
            return False
        item = int(s.agenda[RELEASE_ITEM, at])
        for row in range(first, s.i[NUM_PROFILE]):
            if item >= 0:
                _add_nodes(s, row, s.job_i[ALLOCATED, item], s.job_i[BOX, item])
            else:
                _add_node(s, row, -1 - item)
    return True


@kernel
def moment_at(s, row):
    """Return the moment of a breakpoint."""
    return s.profile[PROFILE_TIME, row], s.profile[PROFILE_RANK, row]


@kernel
def set_moment(s, row, moment):
    """Date a breakpoint."""
    s.profile[PROFILE_TIME, row], s.profile[PROFILE_RANK, row] = moment


@kernel
def promised_start(s, job):
    """Return the moment at which a job is promised to start."""
    return s.job_f[PROMISED, job], s.job_f[PROMISED_RANK, job]


@kernel
def note_promise(s, job, start):
    """Promise a job to start at a moment."""
    s.job_f[PROMISED, job], s.job_f[PROMISED_RANK, job] = start


@kernel
def _add_nodes(s, row, size, box):
    """Free a job's nodes from one breakpoint to the next."""
    s.profile[PROFILE_FREE, row] += size
    if s.i[KIND] != FLAT:
        vacate(s.profile_masks[row], box, s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])


@kernel
def _add_node(s, row, node):
    """Free one node from one breakpoint to the next."""
    s.profile[PROFILE_FREE, row] += 1
    if s.i[KIND] != FLAT:
        Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
        s.profile_masks[row, node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)


@kernel
def promised_end(s, job, start):
    """Return when a job's promise ends that begins at ``start``; one that is overdue from its start needs a moment."""
    time, rank = start
    end = expected_end(s, job, time)
    return (end, rank) if end > time else (time, rank + 1.0)


@kernel
def blocked_at(s, row, end, size):
    """Return the last breakpoint before ``end``, from a row on, with too few free nodes; -1 if there is none."""
    blocked = -1
    while row < s.i[NUM_PROFILE] and moment_at(s, row) < end:
        if s.profile[PROFILE_FREE, row] < size:
            blocked = row
        row += 1
    return blocked


@kernel
def forget_past(s):
    """Drop breakpoints that lie before the one in force now, and date that one now."""
    now = (s.f[NOW], 0.0)
    first, count = 0, s.i[NUM_PROFILE]
    while first + 1 < count and moment_at(s, first + 1) <= now:
        first += 1
    if moment_at(s, first) < now:
        set_moment(s, first, now)
    if first > 0:
        for row in range(first, count):
            _copy_row(s, row, row - first)
        s.i[NUM_PROFILE] = count - first


@kernel
def _copy_row(s, source, target):
    set_moment(s, target, moment_at(s, source))
    s.profile[PROFILE_FREE, target] = s.profile[PROFILE_FREE, source]
    if s.i[KIND] != FLAT:
        for column in range(s.profile_masks.shape[1]):
            s.profile_masks[target, column] = s.profile_masks[source, column]


@kernel
def breakpoint_at(s, moment):
    """Return the row of the breakpoint at a moment that is not before the first one, inserting it if need be; -1 if it
    does not fit."""
    count = s.i[NUM_PROFILE]
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if moment_at(s, middle) < moment:
            low = middle + 1
        else:
            high = middle
    if low < count and moment_at(s, low) == moment:
        return low
    if count >= s.profile.shape[1]:
        return -1
    for row in range(count - 1, low - 1, -1):
        _copy_row(s, row, row + 1)
    _copy_row(s, low - 1, low)
    set_moment(s, low, moment)
    s.i[NUM_PROFILE] = count + 1
    return low


@kernel
def occupy_profile(s, start, end, size, box):
    """Take nodes out of the profile from start to end; return False if it does not fit."""
    first = breakpoint_at(s, start)
    last = breakpoint_at(s, end) if first >= 0 else -1
    if last < 0:
        return False
    for row in range(first, last):
        s.profile[PROFILE_FREE, row] -= size
        if s.i[KIND] != FLAT:
            occupy(s.profile_masks[row], box, s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z])
    return True


@kernel
def vacate_profile(s, start, end, size, box):
    """Give nodes back to the profile from start to end; return False if it does not fit."""
    if end <= start:
        return True
    first = breakpoint_at(s, start)
    last = breakpoint_at(s, end) if first >= 0 else -1
    if last < 0:
        return False
    for row in range(first, last):
        _add_nodes(s, row, size, box)
    _merge_at(s, last)
    _merge_at(s, first)
    return True


@kernel
def _merge_at(s, row):
    """Drop a breakpoint at which nothing changes."""
    count = s.i[NUM_PROFILE]
    if row == 0 or row >= count or s.profile[PROFILE_FREE, row] != s.profile[PROFILE_FREE, row - 1]:
        return
    if s.i[KIND] != FLAT:
        for column in range(s.profile_masks.shape[1]):
            if s.profile_masks[row, column] != s.profile_masks[row - 1, column]:
                return
    for later in range(row + 1, count):
        _copy_row(s, later, later - 1)
    s.i[NUM_PROFILE] = count - 1
