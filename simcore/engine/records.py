"""Records of the availability profile of a site: what is free of some nodes in a row, a span, from a breakpoint on.

Breakpoints that follow each other share the record of a span if nothing changes of its nodes between them, and only
then. Most breakpoints are the end of one job, which changes few spans: so a site of a thousand nodes is looked at in
little more time than one of a hundred.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import free_cores_in, times_in
from faultsweep.simcore.engine.state import State


@inlined
def record_of(s: State, row: int, span: int) -> int:
    """Return the record of a span from the breakpoint at a row on."""
    return s.profile_records[s.profile_place[row], span]


@inlined
def end_of_span(s: State, span: int) -> int:
    """Return the node behind the last one of a span; the last span may have fewer than the others."""
    return min(span + 1 << s.span_bits, s.node_cores.shape[0])


@inlined
def first_of_span(s: State, span: int) -> int:
    """Return the first node of a span."""
    return span << s.span_bits


@inlined
def span_of(s: State, node: int) -> int:
    """Return the span of a node."""
    return node >> s.span_bits


@inlined
def place_in_span(s: State, node: int) -> int:
    """Return the place of a node in its span, from 0 on."""
    return node & (1 << s.span_bits) - 1


@kernel
def begin_records(s: State) -> None:
    """Make records of what is free now for the only breakpoint."""
    spans, place = s.profile_records.shape[1], s.profile_place[0]
    s.num_records, s.num_free_records = spans, 0
    for word in range(s.profile_edges.shape[1]):
        s.profile_edges[place, word] = ZERO
    for span in range(spans):
        s.profile_records[place, span] = span
        begin_record(s, span)
    for partition in range(s.first_node.shape[0]):
        s.profile_most[place, partition] = free_cores_in(s, partition)
        if _counts_idle(s):
            s.profile_most[place, s.first_node.shape[0] + partition] = _idle_cores_in(s, partition)


@kernel
def begin_record(s: State, span: int) -> None:
    """Say what is free now of a span in the record that has its number."""
    first = first_of_span(s, span)
    s.record_shape[span], free = -1, 0
    for node in range(first, end_of_span(s, span)):
        s.profile_cores[span, node - first] = s.free_cores[node]
        free += s.free_cores[node]
    s.record_free[span] = free
    if s.profile_gpus.shape[1] > 0:
        for node in range(first, end_of_span(s, span)):
            s.profile_gpus[span, node - first] = s.free_gpus[node]
    if s.profile_memory.shape[1] > 0:
        for node in range(first, end_of_span(s, span)):
            s.profile_memory[span, node - first] = s.free_memory[node]


@inlined
def _counts_idle(s: State) -> bool:
    """Tell whether the cores of idle nodes are counted: if a job shares its nodes with nobody."""
    return s.profile_most.shape[1] > s.first_node.shape[0]


@inlined
def _idle_cores_in(s: State, partition: int) -> int:
    """Return the cores of the idle nodes of a partition."""
    cores = 0
    for node in range(s.node_cores.shape[0]):
        is_idle = np.int64(s.free_cores[node] == s.node_cores[node])
        cores += s.node_cores[node] * (is_idle & s.node_members[node] >> partition)
    return cores


@inlined
def most_column(s: State, job: int) -> int:
    """Return the column of ``profile_most`` for a job: all free cores of its partition, or those of idle nodes."""
    return s.job.partition[job] + s.job.whole[job] * s.first_node.shape[0]


@kernel
def change_records(s: State, first: int, last: int, piece: int, sign: int) -> tuple[int, int]:
    """Free what a job holds of a span by its pieces from one on, between two breakpoints, or take it (sign -1); return
    its first piece of a later span, and how many cores more are free."""
    span, behind, cores = span_of(s, s.piece_node[piece]), piece, 0
    begin = end = place_in_span(s, s.piece_node[piece])
    while behind >= 0 and span_of(s, s.piece_node[behind]) == span:
        at = place_in_span(s, s.piece_node[behind])
        for between in range(end, at):
            _set_more(s, between, 0, 0, 0)
        _set_more(s, at, sign * s.piece_cores[behind], sign * s.piece_gpus[behind], sign * s.piece_memory[behind])
        end, cores, behind = at + 1, cores + sign * s.piece_cores[behind], s.piece_next[behind]
    _change_span(s, span, first, last, begin, end, cores)
    return behind, cores


@kernel
def free_node_in_records(s: State, node: int, first: int, cores: int, gpus: int, memory: int) -> None:
    """Free something of a node from a breakpoint on."""
    at = place_in_span(s, node)
    _set_more(s, at, cores, gpus, memory)
    _change_span(s, span_of(s, node), first, s.num_profile, at, at + 1, cores)


@inlined
def _set_more(s: State, at: int, cores: int, gpus: int, memory: int) -> None:
    """Say how much more is free of the node at a place in its span."""
    s.more_cores[0, at] = cores
    if s.profile_gpus.shape[1] > 0:
        s.more_gpus[0, at] = gpus
    if s.profile_memory.shape[1] > 0:
        s.more_memory[0, at] = memory


@kernel
def _change_span(s: State, span: int, first: int, last: int, begin: int, end: int, cores: int) -> None:
    """Free what has been said of the nodes of a span from a place in it on up to another one, so many cores in all,
    between two breakpoints."""
    _part(s, span, first)
    _part(s, span, last)
    row = first
    while row < last:
        record, behind = record_of(s, row, span), _end_of_run(s, span, row, last)
        if _counts_idle(s):
            _count_idle(s, span, row, behind, begin, end)
        s.record_shape[record] = -1
        s.record_free[record] += cores
        for at in range(begin, end):
            s.profile_cores[record, at] += s.more_cores[0, at]
        if s.profile_gpus.shape[1] > 0:
            for at in range(begin, end):
                s.profile_gpus[record, at] += s.more_gpus[0, at]
        if s.profile_memory.shape[1] > 0:
            for at in range(begin, end):
                s.profile_memory[record, at] += s.more_memory[0, at]
        row = behind
    share_record(s, span, last)
    share_record(s, span, first)


@kernel
def _count_idle(s: State, span: int, row: int, last: int, begin: int, end: int) -> None:
    """Count what breakpoints that share a record, from a row on up to another one, will have more in idle nodes."""
    record, first, partitions = record_of(s, row, span), first_of_span(s, span), s.first_node.shape[0]
    for partition in range(partitions):
        more = 0
        for at in range(begin, end):
            cores, all_cores = s.profile_cores[record, at], s.node_cores[first + at]
            changed = np.int64(cores + s.more_cores[0, at] == all_cores) - np.int64(cores == all_cores)
            more += changed * all_cores * (s.node_members[first + at] >> partition & 1)
        if more != 0:
            for each in range(row, last):
                s.profile_most[s.profile_place[each], partitions + partition] += more


@kernel
def _part(s: State, span: int, row: int) -> None:
    """See that the breakpoint at a row does not share the record of a span with the one before it."""
    if 0 < row < s.num_profile and record_of(s, row - 1, span) == record_of(s, row, span):
        s.profile_edges[s.profile_place[row], span >> 6] |= ONE << np.uint64(span & 63)
        _set_records(s, span, row, copy_record(s, record_of(s, row, span)))


@inlined
def _end_of_run(s: State, span: int, row: int, last: int) -> int:
    """Return the row behind those, from one on and before another, that share the record of a span."""
    record = record_of(s, row, span)
    row += 1
    while row < last and record_of(s, row, span) == record:
        row += 1
    return row


@kernel
def copy_record(s: State, record: int) -> int:
    """Return a new record that says the same as another one."""
    copy = _take_record(s)
    for at in range(s.profile_cores.shape[1]):
        s.profile_cores[copy, at] = s.profile_cores[record, at]
    for at in range(s.profile_gpus.shape[1]):
        s.profile_gpus[copy, at] = s.profile_gpus[record, at]
    for at in range(s.profile_memory.shape[1]):
        s.profile_memory[copy, at] = s.profile_memory[record, at]
    s.record_shape[copy] = -1
    s.record_free[copy] = s.record_free[record]
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
    if s.record_free[one] != s.record_free[other]:
        return False
    differ = 0
    for at in range(s.profile_cores.shape[1]):
        differ |= s.profile_cores[one, at] ^ s.profile_cores[other, at]
    for at in range(s.profile_gpus.shape[1]):
        differ |= s.profile_gpus[one, at] ^ s.profile_gpus[other, at]
    for at in range(s.profile_memory.shape[1]):
        differ |= s.profile_memory[one, at] ^ s.profile_memory[other, at]
    return differ == 0


@inlined
def are_cores(s: State, job: int, span: int) -> bool:
    """Tell whether the chunks of a job that a span can take are its free cores, as those of most logs are."""
    is_full = s.full_spans[s.job.partition[job], span >> 6] >> np.uint64(span & 63) & ONE
    return s.job.plain[job] == 1 and is_full == ONE


@inlined
def chunks_in(s: State, job: int, span: int, record: int) -> int:
    """Return how many chunks of a job the nodes of a span can take if they have what a record says."""
    if are_cores(s, job, span):
        return s.record_free[record]
    look_at(s, job, span, record)
    return s.record_chunks[record]


@inlined
def look_at(s: State, job: int, span: int, record: int) -> None:
    """See that a record says how many chunks of a job each node of a span can take."""
    if s.record_shape[record] != s.job.shape[job]:
        _count_chunks(s, job, span, record)


@kernel
def _count_chunks(s: State, job: int, span: int, record: int) -> None:
    """Count in a record how many chunks of a job each node of a span can take, outside advance reservations."""
    s.record_shape[record] = s.job.shape[job]
    first, end, partition, whole = first_of_span(s, span), end_of_span(s, span), s.job.partition[job], -s.job.whole[job]
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
