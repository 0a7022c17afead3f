"""Conservative backfilling on a site: a reservation is a time and what the job gets of which nodes then.

A job gets the earliest time from which on enough of the nodes is free for as long as it is expected to last, and of the
nodes that are free throughout those of the node choice.
"""

from __future__ import annotations

from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import chunks_within, drop_pieces, reserve_pieces, windows_met
from faultsweep.simcore.engine.profile import breakpoint_at, note_reservation, point_at, reserved_end, row_in_force
from faultsweep.simcore.engine.site_profile import occupy_nodes, rebuild_nodes
from faultsweep.simcore.engine.state import State


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
        blocked = _narrow(s, job, row, end)
        if blocked >= 0:
            row = row + 1 if blocked == row else _first_to_last(s, job, row, blocked)
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    note_reservation(s, job, start)
    return reserve_pieces(s, job) and occupy_nodes(s, job, start, end)


@kernel
def has_room(s: State, job: int, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is enough for a job throughout, from a breakpoint to ``end``."""
    return _narrow(s, job, row, end) < 0


@kernel
def _narrow(s: State, job: int, row: int, end: tuple[float, float]) -> int:
    """Find what is free throughout, from a breakpoint to ``end``; return the breakpoint from which on it is not enough
    for a job, or -1."""
    closed, later = windows_met(s, s.profile_time[row], end[0]), row + 1
    total = _open_window(s, job, row, closed)
    if total < s.job.chunks[job]:
        return row
    while later < s.num_profile and point_at(s, later) < end:
        total -= _close_window(s, job, later, closed)
        if total < s.job.chunks[job]:
            return later
        later += 1
    return -1


@kernel
def _first_to_last(s: State, job: int, row: int, blocked: int) -> int:
    """Return the first breakpoint behind a row from which on there is enough for a job up to a later one that blocks it
    from that row.

    Reservations that begin earlier end later than the one from that row, so this one blocks them, too. Advance
    reservations are left out: with them there is no more.
    """
    first, total = blocked + 1, _open_window(s, job, blocked, 0)
    while total >= s.job.chunks[job] and first > row + 2:
        first -= 1
        total -= _close_window(s, job, first - 1, 0)
    return first if total < s.job.chunks[job] else first - 1


@inlined
def _open_window(s: State, job: int, row: int, closed: int) -> int:
    """Begin with what is free at a breakpoint; return how many chunks of a job fit."""
    if s.profile_free[row] < s.job.requested[job]:
        return 0
    total, place = 0, s.profile_place[row]
    for node in range(s.node_cores.shape[0]):
        cores, gpus, memory = s.profile_cores[place, node], s.profile_gpus[place, node], s.profile_memory[place, node]
        s.window_cores[node], s.window_gpus[node], s.window_memory[node] = cores, gpus, memory
        chunks = chunks_within(s, job, node, cores, gpus, memory, closed)
        s.takes[node] = chunks
        total += chunks
    return total


@inlined
def _close_window(s: State, job: int, row: int, closed: int) -> int:
    """Leave what is free at another breakpoint, too; return how many chunks fewer fit."""
    fewer, place = 0, s.profile_place[row]
    for node in range(s.node_cores.shape[0]):
        cores, gpus, memory = s.profile_cores[place, node], s.profile_gpus[place, node], s.profile_memory[place, node]
        if cores < s.window_cores[node] or gpus < s.window_gpus[node] or memory < s.window_memory[node]:
            cores, gpus = min(cores, s.window_cores[node]), min(gpus, s.window_gpus[node])
            memory = min(memory, s.window_memory[node])
            s.window_cores[node], s.window_gpus[node], s.window_memory[node] = cores, gpus, memory
            chunks = chunks_within(s, job, node, cores, gpus, memory, closed)
            fewer += s.takes[node] - chunks
            s.takes[node] = chunks
    return fewer
