"""Timers: what will happen at a known time, given out in order of time and, at one time, of their keys.

The soonest are a sorted list, from the latest to the first: most new timers belong near its end, and to take the first
one is to shorten it. The others are a binary heap behind it, so that one more never costs much. Both lie in the same
rows: the list at positions 0 .. SOON - 1, the heap from SOON on. While there are timers, the list has some, and no
timer of the heap comes before one of the list.
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import BROKEN, SOON, State

_BLOCK = 32
"""Timers of the heap whose keys are compared at once."""


def set_timers(s: State, timers: list[tuple[float, int]]) -> None:
    """Set the timers of a run that has not begun, as (time, key)."""
    timers = sorted(timers)
    soon, later = timers[:SOON], timers[SOON:]  # what is sorted is a heap, too
    s.num_soon, s.num_later = len(soon), len(later)
    for at, (time, key) in [*enumerate(reversed(soon)), *enumerate(later, SOON)]:
        s.timer_time[at], s.timer_key[at] = time, key


@inlined
def has_timer(s: State) -> bool:
    """Tell whether anything is to happen."""
    return s.num_soon > 0


@inlined
def first_time(s: State) -> float:
    """Return the time of the first timer, s; there must be one."""
    return s.timer_time[s.num_soon - 1]


@inlined
def first_key(s: State) -> float:
    """Return the key of the first timer; there must be one."""
    return s.timer_key[s.num_soon - 1]


@inlined
def push_timer(s: State, time: float, key: int) -> None:
    """Add a timer."""
    if s.num_soon == SOON:
        _put_off(s)
    if s.num_later > 0 and _comes_before(s, 0, time, key):
        _push_later(s, time, key)
        return
    at = s.num_soon
    s.num_soon = at + 1
    while at > 0 and _comes_before(s, at - 1, time, key):
        _move(s, at - 1, at)
        at -= 1
    s.timer_time[at] = time
    s.timer_key[at] = key


@inlined
def pop_timer(s: State) -> int:
    """Remove the first timer and return its key."""
    last = s.num_soon - 1
    key = int(s.timer_key[last])
    s.num_soon = last
    if last == 0:
        _take_later(s)
    return key


@kernel
def cancel_timer(s: State, key: int) -> None:
    """Remove the timer with this key, if there is one."""
    for at in range(s.num_soon):
        if s.timer_key[at] == key:
            s.num_soon -= 1
            for place in range(at, s.num_soon):
                _move(s, place + 1, place)
            if s.num_soon == 0:
                _take_later(s)
            return
    at = _place_of(s, key)
    if at < s.num_later:
        s.num_later -= 1
        _fill(s, at, s.num_later)


@inlined
def _place_of(s: State, key: int) -> int:
    """Return the place of a timer in the heap, or one that is not below their number, if there is no such timer."""
    first = 0
    while first + _BLOCK <= s.num_later:
        found = 0
        for at in range(SOON + first, SOON + first + _BLOCK):
            found |= s.timer_key[at] == key
        if found:
            break
        first += _BLOCK
    while first < s.num_later and s.timer_key[SOON + first] != key:
        first += 1
    return first


@inlined
def _comes_before(s: State, at: int, time: float, key: float) -> bool:
    """Tell whether the timer at a position comes before another one."""
    return s.timer_time[at] < time or (s.timer_time[at] == time and s.timer_key[at] < key)


@inlined
def _move(s: State, at: int, to: int) -> None:
    s.timer_time[to] = s.timer_time[at]
    s.timer_key[to] = s.timer_key[at]


@kernel
def _put_off(s: State) -> None:
    """Move the later half of the list, which is full, to the heap."""
    half = SOON // 2
    for at in range(half):
        _push_later(s, s.timer_time[at], s.timer_key[at])
    for at in range(half, SOON):
        _move(s, at, at - half)
    s.num_soon = SOON - half


@kernel
def _take_later(s: State) -> None:
    """Fill half of the list, which is empty, from the heap, as far as that goes."""
    count = min(SOON // 2, s.num_later)
    for taken in range(count):
        _move(s, SOON, count - 1 - taken)
        s.num_later -= 1
        _fill(s, 0, s.num_later)
    s.num_soon = count


@kernel
def _push_later(s: State, time: float, key: float) -> None:
    """Add a timer to the heap."""
    at = s.num_later
    if SOON + at >= s.timer_time.shape[0]:
        s.no_room = BROKEN
        return
    s.num_later = at + 1
    _sift_up(s, at, time, key)


@inlined
def _sift_up(s: State, at: int, time: float, key: float) -> None:
    """Put a timer into the heap's hole ``at``, moving later ancestors down."""
    while at > 0:
        parent = (at - 1) >> 1
        if _comes_before(s, SOON + parent, time, key):
            break
        _move(s, SOON + parent, SOON + at)
        at = parent
    s.timer_time[SOON + at] = time
    s.timer_key[SOON + at] = key


@inlined
def _fill(s: State, at: int, last: int) -> None:
    """Fill the heap's hole ``at`` with its last timer."""
    if at == last:
        return
    time, key = s.timer_time[SOON + last], s.timer_key[SOON + last]
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        second = SOON + child + 1
        if child + 1 < last and _comes_before(s, second, s.timer_time[second - 1], s.timer_key[second - 1]):
            child += 1
        if not _comes_before(s, SOON + child, time, key):
            break
        _move(s, SOON + child, SOON + at)
        at = child
    _sift_up(s, at, time, key)
