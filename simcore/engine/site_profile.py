"""The availability profile of conservative backfilling on a site: what is free of each node from when on.

Points in time and breakpoints are those of ``profile.py``. ``profile_free`` counts the free cores of all nodes.
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import waited_for
from faultsweep.simcore.engine.profile import begin_profile, merge_at, row_of_release, rows_between
from faultsweep.simcore.engine.state import State


@kernel
def rebuild_nodes(s: State) -> bool:
    """Make the profile of what runs and what is down, without reservations; return False if it does not fit.

    What is overdue is expected just after now.
    """
    begin_nodes(s)
    for at in range(s.num_releases):
        first = row_of_release(s, at)
        if first < 0:
            return False
        item = int(s.release_item[at])
        if item >= 0:
            _add_pieces(s, item, first, s.num_profile, 1)
        else:
            _add_node(s, -1 - item, first)
    return True


@kernel
def begin_nodes(s: State) -> None:
    """Make the profile of what is free now, as if nothing came back."""
    begin_profile(s)
    place = s.profile_place[0]
    for node in range(s.node_cores.shape[0]):
        s.profile_cores[place, node] = s.free_cores[node]
    for node in range(s.profile_gpus.shape[1]):
        s.profile_gpus[place, node] = s.free_gpus[node]
    for node in range(s.profile_memory.shape[1]):
        s.profile_memory[place, node] = s.free_memory[node]


@kernel
def _add_node(s: State, node: int, first: int) -> None:
    """Free a node that is down, from a breakpoint on, but for what jobs that wait for it will have."""
    cores, gpus, memory = waited_for(s, node)
    for row in range(first, s.num_profile):
        s.profile_free[row] += s.node_cores[node] - cores
        place = s.profile_place[row]
        s.profile_cores[place, node] += s.node_cores[node] - cores
        if s.profile_gpus.shape[1] > 0:
            s.profile_gpus[place, node] += s.node_gpus[node] - gpus
        if s.profile_memory.shape[1] > 0:
            s.profile_memory[place, node] += s.node_memory[node] - memory


@kernel
def _add_pieces(s: State, job: int, first: int, last: int, sign: int) -> None:
    """Free the pieces of a job between two breakpoints, or take them (sign -1)."""
    total, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        node, cores = s.piece_node[piece], sign * s.piece_cores[piece]
        for row in range(first, last):
            s.profile_cores[s.profile_place[row], node] += cores
        if s.profile_gpus.shape[1] > 0:
            _add_gpus(s, node, first, last, sign * s.piece_gpus[piece])
        if s.profile_memory.shape[1] > 0:
            _add_memory(s, node, first, last, sign * s.piece_memory[piece])
        total += cores
        piece = s.piece_next[piece]
    for row in range(first, last):
        s.profile_free[row] += total


@inlined
def _add_gpus(s: State, node: int, first: int, last: int, gpus: int) -> None:
    """Free GPUs of a node between two breakpoints."""
    for row in range(first, last):
        s.profile_gpus[s.profile_place[row], node] += gpus


@inlined
def _add_memory(s: State, node: int, first: int, last: int, memory: int) -> None:
    """Free memory of a node between two breakpoints, MiB."""
    for row in range(first, last):
        s.profile_memory[s.profile_place[row], node] += memory


@kernel
def occupy_nodes(s: State, job: int, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Take the pieces of a job out of the profile from start to end; return False if it does not fit."""
    first, last = rows_between(s, start, end)
    if last < 0:
        return False
    _add_pieces(s, job, first, last, -1)
    return True


@kernel
def vacate_nodes(s: State, job: int, start: tuple[float, float], end: tuple[float, float]) -> bool:
    """Give the pieces of a job back to the profile from start to end; return False if it does not fit."""
    if end <= start:
        return True
    first, last = rows_between(s, start, end)
    if last < 0:
        return False
    _add_pieces(s, job, first, last, 1)
    merge_at(s, last)
    merge_at(s, first)
    return True
