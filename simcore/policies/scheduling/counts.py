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
from faultsweep.simcore.engine.state import CLASSES, CLASSES_OF_TWO, State

_MARGIN_S = 1e-3
"""Run times must differ by so much for one to count as longer: far more than rounding makes of any time."""


@kernel
def compress_counts(s: State) -> bool:
    """Make promises earlier, in queue order, each with all others in place; return False if the profile does not fit.

    A promise gets earlier only by nodes that were given back since it was last compressed: it then begins before the
    last of them was to end. Promises that move give nodes back in their turn, to those behind them now, and to those
    before them next time.
    """
    until = s.regained
    if until < s.now:
        return True
    s.regained = -np.inf
    for position in range(s.queue_head, s.queue_tail):
        job = s.queue[position]
        if np.isnan(s.job.promised[job]):
            continue
        promised = promised_start(s, job)
        start = _earlier_start(s, job, promised, until)
        if start < promised:
            end = promised_end(s, job, promised)
            until = max(until, end[0])
            s.regained = max(s.regained, end[0])
            note_promise(s, job, start)
            size = s.job.size[job]
            if not vacate_profile(s, promised, end, size, 0):
                return False
            if not occupy_profile(s, start, promised_end(s, job, start), size, 0):
                return False
    return True


@kernel
def _earlier_start(s: State, job: int, promised: tuple[float, float], until: float) -> tuple[float, float]:
    """Return the earliest moment, no later than the time ``until``, at which a job fits that is promised a later one;
    its own if there is none. Enough nodes are free from its reserved start on."""
    row = 0
    while s.profile_time[row] <= until and moment_at(s, row) < promised:
        start = moment_at(s, row)
        end = promised_end(s, job, start)
        blocked = blocked_at(s, row, end if end < promised else promised, s.job.size[job])
        if blocked < 0:
            return start
        row = blocked + 1
    return promised


@kernel
def promise_counts(s: State) -> bool:
    """Promise every waiting job its earliest start, in queue order, on a profile without promises; return False if it
    does not fit.

    While promises are only added, a job that is not smaller than an earlier one and does not run for a shorter time
    cannot begin before it. So the search for a job begins where such a job fitted. Rows are linked meanwhile, so that a
    new one moves no other.
    """
    for row in range(s.num_profile):
        s.profile_next[row] = row + 1
    s.profile_next[s.num_profile - 1] = -1
    for size_class in range(CLASSES):
        for time_class in range(CLASSES):
            s.shapes[size_class, time_class] = 0
    for position in range(s.queue_head, s.queue_tail):
        if not _promise_linked(s, s.queue[position]):
            return False
    _put_in_order(s)
    s.regained = -np.inf  # beside later ones, too, no promise can get earlier
    return True


@kernel
def _promise_linked(s: State, job: int) -> bool:
    """Promise a job its earliest start on linked rows; return False if a row does not fit."""
    size = s.job.size[job]
    size_s = float(size)
    time_s = max(expected_end(s, job, 0.0), 0.0)
    first = s.shapes[_class_below(size_s), _class_below(time_s - _MARGIN_S)]
    while True:
        start = moment_at(s, first)
        end = promised_end(s, job, start)
        blocked, row, before = -1, first, first
        while row >= 0 and moment_at(s, row) < end:
            if s.profile_free[row] < size:
                blocked = row
            before = row
            row = int(s.profile_next[row])
        if blocked < 0:
            break
        first = int(s.profile_next[blocked])
    if row < 0 or moment_at(s, row) > end:
        row = _insert_after(s, before, end)
        if row < 0:
            return False
    at = first
    while at != row:
        s.profile_free[at] -= size
        at = int(s.profile_next[at])
    note_promise(s, job, start)
    _note_first(s, _class_above(size_s), _class_above(time_s), first)
    return True


@kernel
def _insert_after(s: State, before: int, moment: tuple[float, float]) -> int:
    """Link a row for a moment behind another one, and return it; -1 if it does not fit."""
    row = s.num_profile
    if row >= s.profile_time.shape[0]:
        return -1
    s.num_profile = row + 1
    set_moment(s, row, moment)
    s.profile_free[row] = s.profile_free[before]
    s.profile_next[row] = s.profile_next[before]
    s.profile_next[before] = row
    return row


@kernel
def _class_below(quantity: float) -> int:
    """Return the highest class whose least quantity is not larger; the first is for all that is smaller than 1."""
    if quantity < 1.0:
        return 0
    return min(1 + int(np.floor(CLASSES_OF_TWO * np.log2(quantity))), CLASSES - 1)


@kernel
def _class_above(quantity: float) -> int:
    """Return the lowest class whose least quantity is not smaller; CLASSES if there is none."""
    if quantity <= 1.0:
        return 1
    return min(1 + int(np.ceil(CLASSES_OF_TWO * np.log2(quantity))), CLASSES)


@kernel
def _note_first(s: State, size_class: int, time_class: int, row: int) -> None:
    """Note for these classes and all above that no job fits before a row. Rows get later with the classes."""
    time = s.profile_time[row]
    for larger in range(size_class, _class_below(float(s.nodes)) + 1):
        longer = time_class
        while longer < CLASSES and s.profile_time[s.shapes[larger, longer]] < time:
            s.shapes[larger, longer] = row
            longer += 1
        if longer == time_class:
            return


@kernel
def _put_in_order(s: State) -> None:
    """Put linked rows into the order of time."""
    row, count = 0, s.num_profile
    for at in range(count):
        s.ordered_time[at], s.ordered_rank[at] = moment_at(s, row)
        s.ordered_free[at] = s.profile_free[row]
        row = int(s.profile_next[row])
    for at in range(count):
        set_moment(s, at, (s.ordered_time[at], s.ordered_rank[at]))
        s.profile_free[at] = s.ordered_free[at]
