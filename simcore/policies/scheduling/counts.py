"""Conservative backfilling on a flat machine, where a promise is a time and a number of nodes.

What is promised is the same as if every promise were made again, one by one, beside all others. Queues of thousands of
jobs are why it is not done so.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import expected_end
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.profile import (
    blocked_at,
    moment_at,
    note_promise,
    occupy_profile,
    promised_end,
    promised_start,
    set_moment,
    vacate_profile,
)
from faultsweep.simcore.engine.state import (
    CLASSES,
    CLASSES_OF_TWO,
    NODES,
    NOW,
    NUM_PROFILE,
    ORDERED_FREE,
    ORDERED_RANK,
    ORDERED_TIME,
    PROFILE_FREE,
    PROFILE_NEXT,
    PROFILE_TIME,
    PROMISED,
    QUEUE,
    QUEUE_HEAD,
    QUEUE_TAIL,
    REGAINED,
    SIZE,
)

_MARGIN_S = 1e-3
"""Run times must differ by so much for one to count as longer: far more than rounding makes of any time."""


@kernel
def compress_counts(s):
    """Make promises earlier, in queue order, each with all others in place; return False if the profile does not fit.

    A promise gets earlier only by nodes that were given back since it was last compressed: it then begins before the
    last of them was to end. Promises that move give nodes back in their turn, to those behind them now, and to those
    before them next time.
    """
    until = s.f[REGAINED]
    if until < s.f[NOW]:
        return True
    s.f[REGAINED] = -np.inf
    for position in range(s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]):
        job = s.lists[QUEUE, position]
        if np.isnan(s.job_f[PROMISED, job]):
            continue
        promised = promised_start(s, job)
        start = _earlier_start(s, job, promised, until)
        if start < promised:
            end = promised_end(s, job, promised)
            until = max(until, end[0])
            s.f[REGAINED] = max(s.f[REGAINED], end[0])
            note_promise(s, job, start)
            size = s.job_i[SIZE, job]
            if not vacate_profile(s, promised, end, size, 0):
                return False
            if not occupy_profile(s, start, promised_end(s, job, start), size, 0):
                return False
    return True


@kernel
def _earlier_start(s, job, promised, until):
    """Return the earliest moment, no later than the time ``until``, at which a job fits that is promised a later one;
    its own if there is none. From the moment it is promised on, what it needs is free."""
    row = 0
    while s.profile[PROFILE_TIME, row] <= until and moment_at(s, row) < promised:
        start = moment_at(s, row)
        end = promised_end(s, job, start)
        blocked = blocked_at(s, row, end if end < promised else promised, s.job_i[SIZE, job])
        if blocked < 0:
            return start
        row = blocked + 1
    return promised


@kernel
def promise_counts(s):
    """Promise every waiting job its earliest start, in queue order, on a profile without promises; return False if it
    does not fit.

    While promises are only added, a job that is not smaller than an earlier one and does not run for a shorter time
    cannot begin before it. So the search for a job begins where such a job fitted. Rows are linked meanwhile, so that a
    new one moves no other.
    """
    for row in range(s.i[NUM_PROFILE]):
        s.profile[PROFILE_NEXT, row] = row + 1
    s.profile[PROFILE_NEXT, s.i[NUM_PROFILE] - 1] = -1
    for size_class in range(CLASSES):
        for time_class in range(CLASSES):
            s.shapes[size_class, time_class] = 0
    for position in range(s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]):
        if not _promise_linked(s, s.lists[QUEUE, position]):
            return False
    _put_in_order(s)
    s.f[REGAINED] = -np.inf  # beside later ones, too, no promise can get earlier
    return True


@kernel
def _promise_linked(s, job):
    """Promise a job its earliest start on linked rows; return False if a row does not fit."""
    size = s.job_i[SIZE, job]
    size_s = float(size)
    time_s = max(expected_end(s, job, 0.0), 0.0)
    first = s.shapes[_class_below(size_s), _class_below(time_s - _MARGIN_S)]
    while True:
        start = moment_at(s, first)
        end = promised_end(s, job, start)
        blocked, row, before = -1, first, first
        while row >= 0 and moment_at(s, row) < end:
            if s.profile[PROFILE_FREE, row] < size:
                blocked = row
            before = row
            row = int(s.profile[PROFILE_NEXT, row])
        if blocked < 0:
            break
        first = int(s.profile[PROFILE_NEXT, blocked])
    if row < 0 or moment_at(s, row) > end:
        row = _insert_after(s, before, end)
        if row < 0:
            return False
    at = first
    while at != row:
        s.profile[PROFILE_FREE, at] -= size
        at = int(s.profile[PROFILE_NEXT, at])
    note_promise(s, job, start)
    _note_first(s, _class_above(size_s), _class_above(time_s), first)
    return True


@kernel
def _insert_after(s, before, moment):
    """Link a row for a moment behind another one, and return it; -1 if it does not fit."""
    row = s.i[NUM_PROFILE]
    if row >= s.profile.shape[1]:
        return -1
    s.i[NUM_PROFILE] = row + 1
    set_moment(s, row, moment)
    s.profile[PROFILE_FREE, row] = s.profile[PROFILE_FREE, before]
    s.profile[PROFILE_NEXT, row] = s.profile[PROFILE_NEXT, before]
    s.profile[PROFILE_NEXT, before] = row
    return row


@kernel
def _class_below(quantity):
    """Return the highest class whose least quantity is not larger; the first is for all that is smaller than 1."""
    if quantity < 1.0:
        return 0
    return min(1 + int(np.floor(CLASSES_OF_TWO * np.log2(quantity))), CLASSES - 1)


@kernel
def _class_above(quantity):
    """Return the lowest class whose least quantity is not smaller; CLASSES if there is none."""
    if quantity <= 1.0:
        return 1
    return min(1 + int(np.ceil(CLASSES_OF_TWO * np.log2(quantity))), CLASSES)


@kernel
def _note_first(s, size_class, time_class, row):
    """Note for these classes and all above that no job fits before a row. Rows get later with the classes."""
    time = s.profile[PROFILE_TIME, row]
    for larger in range(size_class, _class_below(float(s.i[NODES])) + 1):
        longer = time_class
        while longer < CLASSES and s.profile[PROFILE_TIME, s.shapes[larger, longer]] < time:
            s.shapes[larger, longer] = row
            longer += 1
        if longer == time_class:
            return


@kernel
def _put_in_order(s):
    """Put linked rows into the order of time."""
    row, count = 0, s.i[NUM_PROFILE]
    for at in range(count):
        s.profile[ORDERED_TIME, at], s.profile[ORDERED_RANK, at] = moment_at(s, row)
        s.profile[ORDERED_FREE, at] = s.profile[PROFILE_FREE, row]
        row = int(s.profile[PROFILE_NEXT, row])
    for at in range(count):
        set_moment(s, at, (s.profile[ORDERED_TIME, at], s.profile[ORDERED_RANK, at]))
        s.profile[PROFILE_FREE, at] = s.profile[ORDERED_FREE, at]
