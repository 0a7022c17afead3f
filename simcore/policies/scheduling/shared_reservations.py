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
from faultsweep.simcore.engine.records import (
    are_cores,
    chunks_in,
    end_of_span,
    first_of_span,
    look_at,
    most_column,
    record_of,
)
from faultsweep.simcore.engine.site_profile import occupy_nodes, rebuild_nodes
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.scheduling.unchanged import has_gained

_TOGETHER = 4
"""Breakpoints that are looked at together where all nodes are one span."""


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
        blocked, by_node = _blocked(s, job, row, end)
        if blocked >= 0:
            row = row + 1 if blocked == row else _first_behind(s, job, row, blocked, by_node)
    _finish_window(s, job, row, end)
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    note_reservation(s, job, start)
    return reserve_pieces(s, job) and occupy_nodes(s, job, start, end)


@kernel
def has_room(s: State, job: int, row: int, end: tuple[float, float]) -> bool:
    """Tell whether there is enough for a job throughout, from a breakpoint to ``end``."""
    return _short_at(s, job, row, end) < 0 and _blocked(s, job, row, end)[0] < 0


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
def _blocked(s: State, job: int, row: int, end: tuple[float, float]) -> tuple[int, bool]:
    """Do as ``_blocked_at``, first span by span, which is faster, if there are several; tell whether that is found node
    by node."""
    if s.profile_records.shape[1] > 1:
        blocked = _blocked_at(s, job, row, end, False)
        if blocked >= 0:
            return blocked, False
    return _blocked_at(s, job, row, end, True), True


@kernel
def _blocked_at(s: State, job: int, row: int, end: tuple[float, float], by_node: bool) -> int:
    """Find how many chunks of a job each node, or each span at most, can take throughout, from a breakpoint to ``end``;
    return a breakpoint up to which that is not enough, or -1."""
    last, wanted, together = row, s.job.chunks[job], _TOGETHER if s.profile_records.shape[1] == 1 else 1
    chunks = _begin(s, job, row, windows_met(s, s.profile_time[row], end[0]), by_node)
    while chunks >= wanted and _lasts(s, last + 1, end):
        first = last = last + 1
        while last < first + together - 1 and _lasts(s, last + 1, end):
            last += 1
        chunks += _keep(s, job, first, last, first, by_node)
    return last if chunks < wanted else -1


@kernel
def _first_behind(s: State, job: int, row: int, blocked: int, by_node: bool) -> int:
    """Return the first breakpoint behind a row from which on nodes, or spans, can take enough of a job up to a later
    one that blocks it from that row.

    Reservations that begin earlier end later than the one from that row, so this one blocks them, too. Advance
    reservations are left out: with them there is no more.
    """
    first, wanted = blocked + 1, s.job.chunks[job]
    chunks = _begin(s, job, blocked, 0, by_node)
    while chunks >= wanted and first > row + 2:
        first -= 1
        chunks += _keep(s, job, first - 1, first - 1, first, by_node)
    return first - 1 if chunks >= wanted else first


@inlined
def _begin(s: State, job: int, row: int, closed: int, by_node: bool) -> int:
    """Begin with the chunks of a job that each node or span can take at a breakpoint; return how many these are."""
    return _begin_nodes(s, job, row, closed) if by_node else _begin_spans(s, job, row)


@inlined
def _keep(s: State, job: int, first: int, last: int, edge: int, by_node: bool) -> int:
    """Keep of them those that it can take from one breakpoint to another, too, of which there are at most _TOGETHER,
    and one if there are several spans; return how many more these are, which is nothing or less.

    There all is as at the breakpoint that was looked at last but for what changes at the row ``edge`` and as many
    behind it.
    """
    return _keep_nodes(s, job, first, last, edge) if by_node else _keep_spans(s, job, first, edge)


@kernel
def _begin_spans(s: State, job: int, row: int) -> int:
    """Do as ``_begin``, span by span, advance reservations left out."""
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
def _keep_spans(s: State, job: int, row: int, edge: int) -> int:
    """Do as ``_keep``, span by span, at one breakpoint."""
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
def _begin_nodes(s: State, job: int, row: int, closed: int) -> int:
    """Do as ``_begin``, node by node; nodes of an advance reservation in ``closed`` can take none."""
    chunks, partition = 0, s.job.partition[job]
    for word in range(s.partition_spans.shape[1]):
        spans = s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            first, record = first_of_span(s, span), record_of(s, row, span)
            takes = s.profile_cores
            if not are_cores(s, job, span):
                takes = s.record_takes
                look_at(s, job, span, record)
            for node in range(first, end_of_span(s, span)):
                is_open = s.node_windows[node] & closed == 0
                s.takes[node] = takes[record, node - first] if is_open else 0
                chunks += s.takes[node]
    return chunks


@kernel
def _keep_nodes(s: State, job: int, first: int, last: int, edge: int) -> int:
    """Do as ``_keep``, node by node."""
    more, partition, second, third = 0, s.job.partition[job], min(first + 1, last), min(first + 2, last)
    for word in range(s.partition_spans.shape[1]):
        spans = s.profile_edges[s.profile_place[edge], word]
        for later in range(1, last - first + 1):
            spans |= s.profile_edges[s.profile_place[edge + later], word]
        spans &= s.partition_spans[partition, word]
        while spans != ZERO:
            span = 64 * word + lowest_bit(spans)
            spans &= spans - ONE
            one, two = record_of(s, first, span), record_of(s, second, span)
            three, four = record_of(s, third, span), record_of(s, last, span)
            takes, begin = s.profile_cores, first_of_span(s, span)
            if not are_cores(s, job, span):
                takes = s.record_takes
                look_at(s, job, span, one)
                look_at(s, job, span, two)
                look_at(s, job, span, three)
                look_at(s, job, span, four)
            for node in range(begin, end_of_span(s, span)):
                at, before = node - begin, s.takes[node]
                most = min(min(takes[one, at], takes[two, at]), min(takes[three, at], takes[four, at]))
                s.takes[node] = min(before, most)
                more += s.takes[node] - before
    return more


@kernel
def _finish_window(s: State, job: int, row: int, end: tuple[float, float]) -> None:
    """Have no chunks on nodes of other partitions; find what is free throughout, too, if nodes are chosen by that."""
    partition = s.job.partition[job]
    for span in range(s.profile_records.shape[1]):
        if s.partition_spans[partition, span >> 6] >> np.uint64(span & 63) & ONE == ZERO:
            for node in range(first_of_span(s, span), end_of_span(s, span)):
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
    first = first_of_span(s, span)
    for node in range(first, end_of_span(s, span)):
        s.window_cores[node] = _usable(s, job, node, s.profile_cores[record, node - first])
        if s.job.chunk_memory[job] > 0:
            s.window_memory[node] = s.profile_memory[record, node - first]


@inlined
def _keep_room(s: State, job: int, span: int, record: int) -> None:
    """Keep of that what another record says, too, that is free."""
    first = first_of_span(s, span)
    for node in range(first, end_of_span(s, span)):
        free = _usable(s, job, node, s.profile_cores[record, node - first])
        s.window_cores[node] = min(s.window_cores[node], free)
        if s.job.chunk_memory[job] > 0:
            s.window_memory[node] = min(s.window_memory[node], s.profile_memory[record, node - first])


@inlined
def _usable(s: State, job: int, node: int, free: int) -> int:
    """Return the free cores of a node that a job could use: all or none of them if it shares its nodes with nobody."""
    return free if free >= s.node_cores[node] & -s.job.whole[job] else 0
