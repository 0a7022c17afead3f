"""Records of the availability profile of a site: what is free of SPAN nodes in a row, a span, from a breakpoint on.

Breakpoints that follow each other share the record of a span if nothing changes of its nodes between them, and only
then. Most breakpoints are the end of one job, which changes few spans: so a site of a thousand nodes is looked at in
little more time than one of a hundred.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import times_in
from faultsweep.simcore.engine.state import SPAN, State


@inlined
def record_of(s: State, row: int, span: int) -> int:
    """Return the record of a span from the breakpoint at a row on."""
    return s.profile_records[s.profile_place[row], span]


@inlined
def end_of_span(s: State, span: int) -> int:
    """Return the node behind the last one of a span; the last span may have fewer than SPAN."""
    return min(span * SPAN + SPAN, s.node_cores.shape[0])


@kernel
def begin_records(s: State) -> None:
    """Make records of what is free now for the only breakpoint."""
    spans = s.profile_records.shape[1]
    place = s.profile_place[0]
    s.num_records, s.num_free_records = spans, 0
    for column in range(s.profile_most.shape[1]):
        s.profile_most[place, column] = 0
    for word in range(s.profile_edges.shape[1]):
        s.profile_edges[place, word] = ZERO
    for span in range(spans):
        s.profile_records[place, span] = span
        begin_record(s, span)
        _count(s, span)
        _note_change(s, span, 0, 1, s.record_free[span], s.record_idle[span])


@kernel
def begin_record(s: State, span: int) -> None:
    """Say what is free now of a span in the record that has its number."""
    first = span * SPAN
    s.record_shape[span] = -1
    for node in range(first, end_of_span(s, span)):
        s.profile_cores[span, node - first] = s.free_cores[node]
    if s.profile_gpus.shape[1] > 0:
        for node in range(first, end_of_span(s, span)):
            s.profile_gpus[span, node - first] = s.free_gpus[node]
    if s.profile_memory.shape[1] > 0:
        for node in range(first, end_of_span(s, span)):
            s.profile_memory[span, node - first] = s.free_memory[node]


@inlined
def _count(s: State, span: int) -> None:
    """Count the free cores in the record of a span that has its number, and those of idle nodes."""
    s.record_free[span] = s.record_idle[span] = 0
    for node in range(span * SPAN, end_of_span(s, span)):
        cores = s.profile_cores[span, node % SPAN]
        s.record_free[span] += cores
        s.record_idle[span] += cores if cores == s.node_cores[node] else 0


@inlined
def most_column(s: State, job: int) -> int:
    """Return the column of ``profile_most`` for a job: all free cores of its partition, or those of idle nodes."""
    return 2 * s.job.partition[job] + s.job.whole[job]


@kernel
def change_record(s: State, span: int, row: int, end: int, piece: int, behind: int, sign: int) -> None:
    """Free pieces of nodes of a span, from one in the list of a job up to another one, in the record that breakpoints
    share from a row on up to another one, or take them (sign -1)."""
    record = record_of(s, row, span)
    free, idle = s.record_free[record], s.record_idle[record]
    s.record_shape[record] = -1
    while piece != behind:
        cores, gpus, memory = sign * s.piece_cores[piece], sign * s.piece_gpus[piece], sign * s.piece_memory[piece]
        _change_node(s, record, s.piece_node[piece], cores, gpus, memory)
        piece = s.piece_next[piece]
    _note_change(s, span, row, end, s.record_free[record] - free, s.record_idle[record] - idle)


@kernel
def free_in_record(s: State, node: int, row: int, end: int, cores: int, gpus: int, memory: int) -> None:
    """Free something of a node in the record that breakpoints share from a row on up to another one, while all rows are
    made: nobody has looked at it yet."""
    span = node // SPAN
    record = record_of(s, row, span)
    free, idle = s.record_free[record], s.record_idle[record]
    _change_node(s, record, node, cores, gpus, memory)
    _note_change(s, span, row, end, s.record_free[record] - free, s.record_idle[record] - idle)


@inlined
def _change_node(s: State, record: int, node: int, cores: int, gpus: int, memory: int) -> None:
    """Change what a record says of a node."""
    at, all_cores = node % SPAN, s.node_cores[node]
    before = s.profile_cores[record, at]
    s.profile_cores[record, at] = before + cores
    s.record_free[record] += cores
    s.record_idle[record] += all_cores * (np.int64(before + cores == all_cores) - np.int64(before == all_cores))
    if s.profile_gpus.shape[1] > 0:
        s.profile_gpus[record, at] += gpus
    if s.profile_memory.shape[1] > 0:
        s.profile_memory[record, at] += memory


@inlined
def _note_change(s: State, span: int, row: int, end: int, free: int, idle: int) -> None:
    """Note that breakpoints from a row on up to another one have more free cores of a span, and more in idle nodes."""
    for partition in range(s.first_node.shape[0]):
        has_some = np.int64(s.partition_spans[partition, span >> 6] >> np.uint64(span & 63) & ONE)
        s.more_free[0, 2 * partition], s.more_free[0, 2 * partition + 1] = free * has_some, idle * has_some
    for changed in range(row, end):
        place = s.profile_place[changed]
        for column in range(s.profile_most.shape[1]):
            s.profile_most[place, column] += s.more_free[0, column]


@kernel
def own_record(s: State, span: int, first: int, last: int) -> int:
    """Return how far from a row on, up to another one, breakpoints share the record of a span, and see that they share
    it with no others."""
    end = _end_of_run(s, span, first, last)
    if first > 0 and record_of(s, first - 1, span) == record_of(s, first, span):
        _copy_record(s, span, first)
    if end < s.num_profile and record_of(s, end, span) == record_of(s, end - 1, span):
        _copy_record(s, span, end)
    return end


@inlined
def _end_of_run(s: State, span: int, row: int, last: int) -> int:
    """Return the row behind those, from one on and before another, that share the record of a span."""
    record = record_of(s, row, span)
    while row < last and record_of(s, row, span) == record:
        row += 1
    return row


@kernel
def _copy_record(s: State, span: int, row: int) -> None:
    """Give breakpoints a record of their own of a span, from a row on as far as they share the one there."""
    s.profile_edges[s.profile_place[row], span >> 6] |= ONE << np.uint64(span & 63)
    _set_records(s, span, row, copy_record(s, record_of(s, row, span)))


@kernel
def copy_record(s: State, record: int) -> int:
    """Return a new record that says the same as another one."""
    copy = _take_record(s)
    for at in range(SPAN):
        s.profile_cores[copy, at] = s.profile_cores[record, at]
    for at in range(s.profile_gpus.shape[1]):
        s.profile_gpus[copy, at] = s.profile_gpus[record, at]
    for at in range(s.profile_memory.shape[1]):
        s.profile_memory[copy, at] = s.profile_memory[record, at]
    s.record_shape[copy] = -1
    s.record_free[copy], s.record_idle[copy] = s.record_free[record], s.record_idle[record]
    return copy


@inlined
def _set_records(s: State, span: int, row: int, other: int) -> None:
    """Have breakpoints another record of a span, from a row on as far as they share the one there."""
    for later in range(row, _end_of_run(s, span, row, s.num_profile)):
        s.profile_records[s.profile_place[later], span] = other


@inlined
def _take_record(s: State) -> int:
    """Return a record that no breakpoint has; there are as many as all breakpoints could need."""
    if s.num_free_records > 0:
        s.num_free_records -= 1
        return s.free_record[s.num_free_records]
    s.num_records += 1
    return s.num_records - 1


@inlined
def _give_back(s: State, record: int) -> None:
    s.free_record[s.num_free_records] = record
    s.num_free_records += 1


@kernel
def give_back_records(s: State, row: int) -> None:
    """Give back the records that a breakpoint shares with no other one."""
    last = row + 1 == s.num_profile
    for span in range(s.profile_records.shape[1]):
        record = record_of(s, row, span)
        shares = row > 0 and record_of(s, row - 1, span) == record
        if not shares and (last or record_of(s, row + 1, span) != record):
            _give_back(s, record)


@kernel
def share_record(s: State, span: int, row: int) -> None:
    """See that a breakpoint shares the record of a span with the one before it if both say the same."""
    if row <= 0 or row >= s.num_profile:
        return
    kept, record = record_of(s, row - 1, span), record_of(s, row, span)
    if kept == record or not _is_alike(s, kept, record):
        return
    s.profile_edges[s.profile_place[row], span >> 6] &= ~(ONE << np.uint64(span & 63))
    _set_records(s, span, row, kept)
    _give_back(s, record)


@inlined
def _is_alike(s: State, one: int, other: int) -> bool:
    """Tell whether two records say the same."""
    if s.record_free[one] != s.record_free[other] or s.record_idle[one] != s.record_idle[other]:
        return False
    differ = 0
    for at in range(SPAN):
        differ |= s.profile_cores[one, at] ^ s.profile_cores[other, at]
    for at in range(s.profile_gpus.shape[1]):
        differ |= s.profile_gpus[one, at] ^ s.profile_gpus[other, at]
    for at in range(s.profile_memory.shape[1]):
        differ |= s.profile_memory[one, at] ^ s.profile_memory[other, at]
    return differ == 0


@inlined
def chunks_in(s: State, job: int, span: int, record: int) -> int:
    """Return how many chunks of a job the nodes of a span can take if they have what a record says."""
    if s.record_shape[record] != s.job.shape[job]:
        _look_at(s, job, span, record)
    return s.record_chunks[record]


@kernel
def _look_at(s: State, job: int, span: int, record: int) -> None:
    """Count in a record how many chunks of a job each node of a span can take, outside advance reservations."""
    s.record_shape[record] = s.job.shape[job]
    first, end, partition, whole = span * SPAN, end_of_span(s, span), s.job.partition[job], -s.job.whole[job]
    most = s.job.chunks_per_node[job] if s.job.chunks_per_node[job] > 0 else s.nodes
    chunks, inverse = 0, 1.0 / s.job.chunk_cores[job]
    for node in range(first, end):
        cores = s.profile_cores[record, node - first] * (s.node_members[node] >> partition & 1)
        cores = cores if cores >= s.node_cores[node] & whole else 0
        s.record_takes[record, node - first] = min(most, times_in(cores, inverse))
    if s.job.chunk_gpus[job] > 0:
        inverse = 1.0 / s.job.chunk_gpus[job]
        for at in range(end - first):
            there = times_in(s.profile_gpus[record, at], inverse)
            s.record_takes[record, at] = min(s.record_takes[record, at], there)
    if s.job.chunk_memory[job] > 0:
        inverse = 1.0 / s.job.chunk_memory[job]
        for at in range(end - first):
            there = times_in(s.profile_memory[record, at], inverse)
            s.record_takes[record, at] = min(s.record_takes[record, at], there)
    for at in range(end - first):
        chunks += s.record_takes[record, at]
    s.record_chunks[record] = chunks
