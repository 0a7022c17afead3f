"""Conservative backfilling on a site: a reservation is a time and what the job gets of which nodes then.

A job gets the earliest time from which on enough of the nodes is free for as long as it is expected to last, and of the
nodes that are free throughout those of the node choice.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.bits import ONE, ZERO, lowest_bit
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import drop_pieces, reserve_pieces, windows_met
from faultsweep.simcore.engine.profile import (
    breakpoint_at,
    note_reservation,
    point_at,
    reserved_end,
    row_in_force,
)
from faultsweep.simcore.engine.records import chunks_in, end_of_span, most_column, record_of
from faultsweep.simcore.engine.site_profile import occupy_nodes, rebuild_nodes
from faultsweep.simcore.engine.state import SPAN, State
from faultsweep.simcore.policies.scheduling.unchanged import has_gained


@kernel
def start_over_nodes(s: State) -> bool:
    """Forget all reservations and make the profile anew; return False if it does not fit."""
    for position in range(s.queue_head, s.queue_tail):
        drop_pieces(s, s.queue[position])
    return rebuild_nodes(s)


@kernel
def reserve_nodes(s: State, job: int, point: tuple[float, float], known: tuple[float, float], settled: int) -> bool:
    """Reserve the earliest start from a point on, and nodes, for a job; return False if a list does not fit.

    Before a point ``known`` there was too little for it when there were ``settled`` changes.
    """
    for window in range(s.num_windows):
        if s.window_end[window] > s.now and breakpoint_at(s, (s.window_end[window], 0.0)) < 0:
            return False
    row, blocked = row_in_force(s, point), 0
    while blocked >= 0:  # from the last breakpoint on nothing is held
        start = point_at(s, row)
        end = reserved_end(s, job, start)
        if start < known and not has_gained(s, job, row, end, settled):
            row += 1
            continue
        blocked = _short_at(s, job, row, end)
        if blocked >= 0:
            row = blocked + 1
            continue
        blocked = _bound(s, job, row, end)
        if blocked >= 0:
            row = row + 1 if blocked == row else _first_within_bound(s, job, row, blocked)
            continue
        blocked = _narrow(s, job, row, end)
        if blocked >= 0:
            row = row + 1 if blocked == row else _first_to_last(s, job, row, blocked)
    _finish_window(s, job, row, end)
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    note_reservation(s, job, start)
    return reserve_pieces(s, job) and occupy_nodes(s, job, start, end)


@kernel
def has_room(s: State, job: int, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is enough for a job throughout, from a breakpoint to ``end``."""
    return _short_at(s, job, row, end) < 0 and _bound(s, job, row, end) < 0 and _narrow(s, job, row, end) < 0


@kernel
def _short_at(s: State, job: int, row: int, end: tuple[float, float]) -> int:
    """Return the last breakpoint before ``end``, from a row on, from which on the partition of a job has too few free
    cores for it, wherever they are; -1 if there is none."""
    short, column, wanted = -1, most_column(s, job), s.job.requested[job]
    while _lasts(s, row, end):
        if s.profile_most[s.profile_place[row], column] < wanted:
            short = row
        row += 1
    return short


@inlined
def _lasts(s: State, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is a breakpoint at a row that is before ``end``."""
    return row < s.num_profile and point_at(s, row) < end


@kernel
def _bound(s: State, job: int, row: int, end: tuple[float, float]) -> int:
    """Find how many chunks of a job each span can take throughout at most, from a breakpoint to ``end``; return a
    breakpoint up to which that is not enough, or -1."""
    last, wanted = row, s.job.chunks[job]
    chunks = _begin_bound(s, job, row)
    while chunks >= wanted and _lasts(s, last + 1, end):
        last += 1
        chunks += _keep_bound(s, job, last, last)
    return last if chunks < wanted else -1


@kernel
def _first_within_bound(s: State, job: int, row: int, blocked: int) -> int:
    """Return the first breakpoint behind a row from which on the spans can take enough of a job up to a later one that
    blocks it from that row.

    Reservations that begin earlier end later than the one from that row, so this one blocks them, too.
    """
    first, wanted = blocked + 1, s.job.chunks[job]
    chunks = _begin_bound(s, job, blocked)
    while chunks >= wanted and first > row + 2:
        first -= 1
        chunks += _keep_bound(s, job, first - 1, first)
    return first - 1 if chunks >= wanted else first


@kernel
def _begin_bound(s: State, job: int, row: int) -> int:
    """Begin with the chunks of a job that each span can take at a breakpoint; return how many these are."""
    chunks, partition = 0, s.job.partition[job]
    for word in range(s.partition_spans.shape[1]):
        spans = s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            s.span_most[span] = chunks_in(s, job, span, record_of(s, row, span))
            chunks += s.span_most[span]
    return chunks


@kernel
def _keep_bound(s: State, job: int, row: int, edge: int) -> int:
    """Keep of them as many as each span can take at another breakpoint, too; return how many more these are, which is
    nothing or less.

    There all is as at the breakpoint that was looked at last but for what changes at the row ``edge``.
    """
    more, partition = 0, s.job.partition[job]
    for word in range(s.partition_spans.shape[1]):
        spans = s.profile_edges[s.profile_place[edge], word] & s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            most = min(s.span_most[span], chunks_in(s, job, span, record_of(s, row, span)))
            more += most - s.span_most[span]
            s.span_most[span] = most
    return more


@kernel
def _narrow(s: State, job: int, row: int, end: tuple[float, float]) -> int:
    """Find how many chunks of a job each node can take throughout, from a breakpoint to ``end``; return a breakpoint up
    to which that is not enough, or -1. All their records have been looked at."""
    last, wanted = row, s.job.chunks[job]
    chunks = _begin_window(s, job, row, windows_met(s, s.profile_time[row], end[0]))
    while chunks >= wanted and _lasts(s, last + 1, end):
        last += 1
        chunks += _keep_changed(s, job, last, last)
    return last if chunks < wanted else -1


@kernel
def _first_to_last(s: State, job: int, row: int, blocked: int) -> int:
    """Do as ``_first_within_bound``, node by node; advance reservations are left out: with them there is no more."""
    first, wanted = blocked + 1, s.job.chunks[job]
    chunks = _begin_window(s, job, blocked, 0)
    while chunks >= wanted and first > row + 2:
        first -= 1
        chunks += _keep_changed(s, job, first - 1, first)
    return first - 1 if chunks >= wanted else first


@kernel
def _begin_window(s: State, job: int, row: int, closed: int) -> int:
    """Begin with the chunks of a job that each node can take at a breakpoint, none if it is of an advance reservation
    in ``closed``; return how many that is in all."""
    chunks, partition = 0, s.job.partition[job]
    for word in range(s.partition_spans.shape[1]):
        spans = s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            first, record = span * SPAN, record_of(s, row, span)
            for node in range(first, end_of_span(s, span)):
                is_open = s.node_windows[node] & closed == 0
                s.takes[node] = s.record_takes[record, node - first] if is_open else 0
                chunks += s.takes[node]
    return chunks


@kernel
def _keep_changed(s: State, job: int, row: int, edge: int) -> int:
    """Keep of them those that it can take at another breakpoint, too, as ``_keep_bound`` does with those of spans."""
    more, partition = 0, s.job.partition[job]
    for word in range(s.partition_spans.shape[1]):
        spans = s.profile_edges[s.profile_place[edge], word] & s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            first, record = span * SPAN, record_of(s, row, span)
            for node in range(first, end_of_span(s, span)):
                before = s.takes[node]
                takes = min(before, s.record_takes[record, node - first])
                s.takes[node] = takes
                more += takes - before
    return more


@kernel
def _finish_window(s: State, job: int, row: int, end: tuple[float, float]) -> None:
    """Have no chunks on nodes of other partitions; find what is free throughout, too, if nodes are chosen by that."""
    partition = s.job.partition[job]
    for span in range(s.profile_records.shape[1]):
        if s.partition_spans[partition, span >> 6] >> np.uint64(span & 63) & ONE == ZERO:
            for node in range(span * SPAN, end_of_span(s, span)):
                s.takes[node] = 0
    if s.chooses_by_room == 0:
        return
    for span in range(s.profile_records.shape[1]):
        _begin_room(s, job, span, record_of(s, row, span))
        later = row + 1
        while _lasts(s, later, end):
            if record_of(s, later, span) != record_of(s, later - 1, span):
                _keep_room(s, job, span, record_of(s, later, span))
            later += 1


@inlined
def _begin_room(s: State, job: int, span: int, record: int) -> None:
    """Begin with what a record says that is free of the nodes of a span."""
    first = span * SPAN
    for node in range(first, end_of_span(s, span)):
        s.window_cores[node] = _usable(s, job, node, s.profile_cores[record, node - first])
        if s.job.chunk_memory[job] > 0:
            s.window_memory[node] = s.profile_memory[record, node - first]


@inlined
def _keep_room(s: State, job: int, span: int, record: int) -> None:
    """Keep of that what another record says, too, that is free."""
    first = span * SPAN
    for node in range(first, end_of_span(s, span)):
        free = _usable(s, job, node, s.profile_cores[record, node - first])
        s.window_cores[node] = min(s.window_cores[node], free)
        if s.job.chunk_memory[job] > 0:
            s.window_memory[node] = min(s.window_memory[node], s.profile_memory[record, node - first])


@inlined
def _usable(s: State, job: int, node: int, free: int) -> int:
    """Return the free cores of a node that a job could use: all or none of them if it shares its nodes with nobody."""
    return free if free >= s.node_cores[node] & -s.job.whole[job] else 0
