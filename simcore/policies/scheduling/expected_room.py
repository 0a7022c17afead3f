"""How much room there is for a job at most by a time, if all that runs ends as expected: a bound for ``slurm``.

A search of its backfilling pass frees what running jobs hold, one job after the other, for each set of nodes that no
plan has. Most of these searches find too little before the next plan ends. That is seen here without them: rows of
records (``engine/records.py``) say what is free of all nodes behind some of the expected ends, and each record is
looked at once for all jobs of a shape. Jobs that start in the same pass only take nodes, so the rows stay bounds.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO, low_bits
from faultsweep.simcore.engine.events import whole_second
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.records import begin_record, copy_record, look_at
from faultsweep.simcore.engine.state import DEFAULT, SPAN, State

_FIRST_SEARCHES = 8
"""Of a pass, without rows: to make them takes longer than these."""


@kernel
def begin_searches(s: State) -> None:
    """Begin a pass: there are no rows yet."""
    s.searches = s.num_ends = 0


@kernel
def has_too_little(s: State, job: int, latest: float) -> bool:
    """Tell whether a job cannot have enough of the nodes of the open mask until a time; False if that is not known."""
    if s.preemption != DEFAULT or latest == np.inf:
        return False
    s.searches += 1
    if s.searches <= _FIRST_SEARCHES:
        return False
    if s.num_ends == 0:
        _make_rows(s)
    row, chunks, partition = _row_until(s, latest), 0, s.job.partition[job]
    for span in range(s.first_node[partition] // SPAN, -(-s.end_node[partition] // SPAN)):
        is_open = _of_span(s.open_mask[span * SPAN >> 6], span)
        if is_open != ZERO:
            record = s.end_records[row, span]
            look_at(s, job, span, record)
            most = s.record_chunks[record]
            if is_open != _of_span(s.partition_masks[partition, span * SPAN >> 6], span):
                most = _of_open(s, record, is_open)
            chunks += most
            if chunks >= s.job.chunks[job]:
                return False
    return True


@inlined
def _of_span(mask: np.uint64, span: int) -> np.uint64:
    """Return the bits of the nodes of a span of a word of a mask."""
    return mask >> np.uint64(span * SPAN & 63) & low_bits(SPAN)


@inlined
def _of_open(s: State, record: int, is_open: np.uint64) -> int:
    """Return how many chunks the open nodes of a span can take, by a record that has been looked at."""
    chunks = 0
    for at in range(SPAN):
        chunks += s.record_takes[record, at] & -np.int64(is_open >> np.uint64(at) & ONE)
    return chunks


@inlined
def _row_until(s: State, latest: float) -> int:
    """Return a row behind all expected ends until a time, the first of those there are."""
    low, high = 0, s.num_releases
    while low < high:
        middle = (low + high) >> 1
        if whole_second(s, s.release_time[middle]) <= latest:
            low = middle + 1
        else:
            high = middle
    return min(-(-low // s.ends_in_row), s.num_ends - 1)


@kernel
def _make_rows(s: State) -> None:
    """Make a row of what is free now, and others behind as many expected ends each."""
    spans, rows = s.end_records.shape[1], s.end_records.shape[0]
    s.ends_in_row = max(1, -(-s.num_releases // (rows - 1)))
    s.num_records, s.num_free_records, s.num_ends = spans, 0, 1
    for span in range(spans):
        s.end_records[0, span] = span
        begin_record(s, span)
    for at in range(s.num_releases):
        if at % s.ends_in_row == 0:
            for span in range(spans):
                s.end_records[s.num_ends, span] = s.end_records[s.num_ends - 1, span]
            s.num_ends += 1
        if s.release_item[at] >= 0:
            _free_in_last(s, int(s.release_item[at]))


@inlined
def _free_in_last(s: State, job: int) -> None:
    """Free what a job holds in the last row."""
    last, piece = s.num_ends - 1, s.job.first_piece[job]
    while piece >= 0:
        node = s.piece_node[piece]
        span = node // SPAN
        if s.end_records[last, span] == s.end_records[last - 1, span]:
            s.end_records[last, span] = copy_record(s, s.end_records[last, span])
        record = s.end_records[last, span]
        s.profile_cores[record, node % SPAN] += s.piece_cores[piece]
        if s.profile_gpus.shape[1] > 0:
            s.profile_gpus[record, node % SPAN] += s.piece_gpus[piece]
        if s.profile_memory.shape[1] > 0:
            s.profile_memory[record, node % SPAN] += s.piece_memory[piece]
        piece = s.piece_next[piece]
