"""Conservative backfilling on a site: a reservation is a time and what the job gets of which nodes then.

A job gets the earliest time from which on enough of the nodes is free for as long as it is expected to last, and of the
nodes that are free throughout those of the node choice.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import count_in_window, drop_pieces, reserve_pieces, windows_met
from faultsweep.simcore.engine.profile import (
    blocked_at,
    breakpoint_at,
    note_reservation,
    point_at,
    reserved_end,
    row_in_force,
)
from faultsweep.simcore.engine.site_profile import occupy_nodes, rebuild_nodes
from faultsweep.simcore.engine.state import State

_TOGETHER = 4
"""Breakpoints that are looked at together."""


@kernel
def start_over_nodes(s: State) -> bool:
    """Forget all reservations and make the profile anew; return False if it does not fit."""
    for position in range(s.queue_head, s.queue_tail):
        drop_pieces(s, s.queue[position])
    return rebuild_nodes(s)


@kernel
def reserve_nodes(s: State, job: int, point: tuple[float, float]) -> bool:
    """Reserve the earliest start from a point on, and nodes, for a job; return False if a list does not fit."""
    for window in range(s.num_windows):
        if s.window_end[window] > s.now and breakpoint_at(s, (s.window_end[window], 0.0)) < 0:
            return False
    row, blocked = row_in_force(s, point), 0
    while blocked >= 0:  # from the last breakpoint on nothing is held
        start = point_at(s, row)
        end = reserved_end(s, job, start)
        blocked = blocked_at(s, row, end, s.job.requested[job])
        if blocked >= 0:
            row = blocked + 1
            continue
        blocked, by_cores = _narrow(s, job, row, end)
        if blocked >= 0:
            row = row + 1 if blocked == row else _first_to_last(s, job, row, blocked, by_cores)
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    note_reservation(s, job, start)
    return reserve_pieces(s, job) and occupy_nodes(s, job, start, end)


@kernel
def has_room(s: State, job: int, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is enough for a job throughout, from a breakpoint to ``end``."""
    return blocked_at(s, row, end, s.job.requested[job]) < 0 and _narrow(s, job, row, end)[0] < 0


@kernel
def _narrow(s: State, job: int, row: int, end: tuple[float, float]) -> tuple[int, bool]:
    """Find what is free throughout, from a breakpoint to ``end``; return a breakpoint up to which that is not enough
    for a job, or -1, and whether cores alone are too few there.

    Cores are looked at first: they are short most often.
    """
    closed = windows_met(s, s.profile_time[row], end[0])
    cores, last = _open_window(s, job, row, closed), row
    needs_more = s.job.chunk_gpus[job] + s.job.chunk_memory[job] > 0
    if needs_more and count_in_window(s, job, closed) < s.job.chunks[job]:
        return row, False
    while cores >= s.job.requested[job] and _lasts(s, last + 1, end):
        first = last = last + 1
        while last < first + _TOGETHER - 1 and _lasts(s, last + 1, end):
            last += 1
        cores = _keep_cores(s, job, first, last)
    if cores < s.job.requested[job]:
        return last, True
    for later in range(row + 1, last + 1):
        _keep_others(s, job, later)
    if count_in_window(s, job, closed) < s.job.chunks[job]:
        return last, False
    return -1, False


@inlined
def _lasts(s: State, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is a breakpoint at a row that is before ``end``."""
    return row < s.num_profile and point_at(s, row) < end


@kernel
def _first_to_last(s: State, job: int, row: int, blocked: int, by_cores: bool) -> int:
    """Return the first breakpoint behind a row from which on there is enough for a job up to a later one that blocks it
    from that row; enough cores if these alone are too few.

    Reservations that begin earlier end later than the one from that row, so this one blocks them, too. Advance
    reservations are left out: with them there is no more.
    """
    first, cores = blocked + 1, _open_window(s, job, blocked, 0)
    while _is_enough(s, job, cores, by_cores) and first > row + 2:
        first -= 1
        cores = _keep_cores(s, job, first - 1, first - 1)
        if not by_cores:
            _keep_others(s, job, first - 1)
    return first - 1 if _is_enough(s, job, cores, by_cores) else first


@inlined
def _is_enough(s: State, job: int, cores: int, by_cores: bool) -> bool:
    """Tell whether what is free throughout, with so many cores, is enough for a job outside advance reservations; by
    the cores alone, or by all that it needs."""
    if cores < s.job.requested[job] or s.job.plain[job] == 1 or by_cores:
        return cores >= s.job.requested[job]
    return count_in_window(s, job, 0) >= s.job.chunks[job]


@kernel
def _open_window(s: State, job: int, row: int, closed: int) -> int:
    """Begin with what is free at a breakpoint of the nodes that a job may use; return how many cores that is."""
    place, partition, cores = s.profile_place[row], s.job.partition[job], 0
    first, end = s.first_node[partition], s.end_node[partition]
    for node in range(first, end):
        open_to_it = s.node_members[node] >> partition & 1
        if s.node_windows[node] & closed != 0:
            open_to_it = 0
        free = _usable(s, job, node, s.profile_cores[place, node]) * open_to_it
        s.window_cores[node] = free
        cores += free
    if s.job.chunk_gpus[job] > 0:
        for node in range(first, end):
            s.window_gpus[node] = s.profile_gpus[place, node]
    if s.job.chunk_memory[job] > 0:
        for node in range(first, end):
            s.window_memory[node] = s.profile_memory[place, node]
    return cores


@inlined
def _usable(s: State, job: int, node: int, free: int) -> int:
    """Return the free cores of a node that a job could use: all or none of them if it shares its nodes with nobody."""
    return free if free >= s.node_cores[node] & -s.job.whole[job] else 0


@kernel
def _keep_cores(s: State, job: int, first: int, last: int) -> int:
    """Keep of the cores those that are free from one breakpoint to another, too, of which there are at most _TOGETHER;
    return how many these are."""
    place, second = s.profile_place[first], s.profile_place[min(first + 1, last)]
    third, fourth = s.profile_place[min(first + 2, last)], s.profile_place[last]
    whole, partition, cores = -s.job.whole[job], s.job.partition[job], 0
    for node in range(s.first_node[partition], s.end_node[partition]):
        free = min(s.profile_cores[place, node], s.profile_cores[second, node])
        later = min(s.profile_cores[third, node], s.profile_cores[fourth, node])
        free = min(s.window_cores[node], min(free, later))
        free = free if free >= s.node_cores[node] & whole else 0
        s.window_cores[node] = free
        cores += free
    return cores


@inlined
def _keep_others(s: State, job: int, row: int) -> None:
    """Keep of the GPUs and the memory what is free at another breakpoint, too, if a job needs any."""
    place, partition = s.profile_place[row], s.job.partition[job]
    first, end = s.first_node[partition], s.end_node[partition]
    if s.job.chunk_gpus[job] > 0:
        for node in range(first, end):
            s.window_gpus[node] = min(s.window_gpus[node], s.profile_gpus[place, node])
    if s.job.chunk_memory[job] > 0:
        for node in range(first, end):
            s.window_memory[node] = min(s.window_memory[node], s.profile_memory[place, node])
