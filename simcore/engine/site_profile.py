"""The availability profile of conservative backfilling on a site: what is free of each node from when on.

Points in time and breakpoints are those of ``profile.py``.
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import cores_listed_in, waited_for
from faultsweep.simcore.engine.profile import begin_profile, merge_at, row_of_release, rows_between
from faultsweep.simcore.engine.records import begin_records, change_records, free_node_in_records
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
    begin_records(s)


@kernel
def _add_node(s: State, node: int, first: int) -> None:
    """Free a node that is down, from a breakpoint on, but for what jobs that wait for it will have."""
    cores, gpus, memory = waited_for(s, node)
    cores, gpus, memory = s.node_cores[node] - cores, s.node_gpus[node] - gpus, s.node_memory[node] - memory
    free_node_in_records(s, node, first, cores, gpus, memory)
    for partition in range(s.first_node.shape[0]):
        _count_more(s, partition, first, s.num_profile, cores * (s.node_members[node] >> partition & 1))


@kernel
def _add_pieces(s: State, job: int, first: int, last: int, sign: int) -> None:
    """Free the pieces of a job between two breakpoints, or take them (sign -1)."""
    total, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        piece, cores = change_records(s, first, last, piece, sign)
        total += cores
    for partition in range(s.first_node.shape[0]):
        cores = total if s.has_all[partition] == 1 else sign * cores_listed_in(s, job, partition)
        _count_more(s, partition, first, last, cores)


@inlined
def _count_more(s: State, partition: int, first: int, last: int, cores: int) -> None:
    """Count more free cores of a partition between two breakpoints."""
    for row in range(first, last):
        s.profile_most[s.profile_place[row], partition] += cores


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
