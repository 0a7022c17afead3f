"""FCFS and EASY backfilling on a site, whose jobs take cores, GPUs and memory of nodes.

Partitions have queues of their own in one order. Under FCFS nobody overtakes a job that had to be refused and that
could use a node of the same partition. Under EASY the first such job of each partition has a reservation: the earliest
time at which it could be placed if all that runs ends when it is expected to. A later job starts if all of these jobs
could still be placed at their reservations.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import begin_exemption, begin_run, windows_of
from faultsweep.simcore.engine.events import dequeue_at, next_without
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import (
    chunks_within,
    cores_in,
    cores_of,
    count_chunks,
    free_cores_in,
    gpus_of,
    hold_pieces,
    memory_of,
    reserve_pieces,
    waited_for,
)
from faultsweep.simcore.engine.state import DEFAULT, HEAD_JOB, State
from faultsweep.simcore.policies.preemption.above import finds_room_above
from faultsweep.simcore.policies.preemption.halting import expect_halted, settle
from faultsweep.simcore.policies.preemption.victims import make_room
from faultsweep.simcore.policies.scheduling.backfill import nothing_overdue, remember
from faultsweep.simcore.policies.scheduling.long_queue import ends_by


@kernel
def schedule_site(s: State) -> None:
    """Run one pass: start every job that may start, in order of the queue."""
    position, easy = s.queue_head, s.reserves == HEAD_JOB
    every = (1 << s.head_job.shape[0]) - 1
    if s.scanned_version == s.version and nothing_overdue(s) and s.num_windows == 0 and s.preemption == DEFAULT:
        position = max(position, s.scanned)
    else:
        forget_reservations(s)
    while position < s.queue_tail and (s.free > 0 or s.preemption != DEFAULT) and (easy or s.blocked != every):
        job = s.queue[position]
        partition = s.job.partition[job]
        is_blocked = s.blocked >> partition & 1 == 1
        if (easy or not is_blocked) and _may_start(s, job):
            position = next_without(s, position)
            _start(s, job)
            if s.passes_again == 1:
                return
            continue
        if s.preemption != DEFAULT and s.blocked & s.overlaps[partition] == 0 and _preempts(s, job, position):
            s.passes_again = 1
            return
        if not is_blocked:
            s.blocked |= 1 << partition if easy else s.overlaps[partition]
            if easy:
                reserve_first(s, job, partition)
        position += 1
    remember(s)
    if s.refused_with_room == 1:
        s.scanned_version = -1


@kernel
def _preempts(s: State, job: int, position: int) -> bool:
    """Have others leave for a job of the queue, or start it over others that are suspended for it; tell whether
    anything has changed."""
    if s.suspends == 0:
        return make_room(s, job, 0)
    if not finds_room_above(s, job, 0, windows_of(s, job, s.now)):
        return False
    dequeue_at(s, position)
    _start(s, job)
    return True


@inlined
def forget_reservations(s: State) -> None:
    """Begin a pass: no job has been refused."""
    s.blocked = s.refused_with_room = 0
    for partition in range(s.head_job.shape[0]):
        s.head_job[partition] = -1


@inlined
def _may_start(s: State, job: int) -> bool:
    """Choose nodes for a job; tell whether there are enough and it delays nobody."""
    if s.job.requested[job] > s.free or _is_in_the_way(s, job) or not choose(s, job):
        return False
    for partition in range(s.head_job.shape[0]):
        if delays(s, job, partition):
            return False
    return True


@inlined
def choose(s: State, job: int) -> bool:
    """Choose nodes for a job; tell whether there are enough."""
    closed = windows_of(s, job, s.now)
    if count_chunks(s, job, closed) < s.job.chunks[job]:
        return False
    s.num_chosen = 0
    hooks.choose_nodes(s, job)
    return True


@inlined
def delays(s: State, job: int, partition: int) -> bool:
    """Tell whether the first job of a partition could not be placed at its reservation beside a job on the nodes that
    are chosen for it."""
    return _matters(s, job, partition) and _left_beside(s, job, partition) < 0


@inlined
def _matters(s: State, job: int, partition: int) -> bool:
    """Tell whether a job that starts now still runs at the reservation of a partition that shares nodes with its
    own."""
    return comes_before(s, job, partition) and not ends_by(s, job, s.head_time[partition])


@inlined
def comes_before(s: State, job: int, partition: int) -> bool:
    """Tell whether a job had to be refused of a partition that shares nodes with that of a job."""
    return s.head_job[partition] >= 0 and s.overlaps[partition] >> s.job.partition[job] & 1 == 1


@inlined
def _is_in_the_way(s: State, job: int) -> bool:
    """Tell of some jobs, without looking at nodes, that they would delay the first job of their partition: both need
    single cores, which all count alike."""
    partition = s.job.partition[job]
    head = s.head_job[partition]
    if head < 0 or s.job.plain[head] == 0 or s.job.plain[job] == 0:
        return False
    return s.job.requested[job] > s.head_extra[partition] and not ends_by(s, job, s.head_time[partition])


@kernel
def _left_beside(s: State, job: int, partition: int) -> int:
    """Return how many chunks more than it has could be placed of the first job of a partition, at its reservation,
    beside a job on the nodes that are chosen for it; below 0 it could not be placed."""
    head, left = s.head_job[partition], s.head_extra[partition]
    for at in range(s.num_chosen):
        node, chunks = s.chosen[at], s.chosen_chunks[at]
        taken = cores_of(s, job, node, chunks)
        if s.job.plain[head] == 1:
            left -= taken * (s.node_members[node] >> partition & 1)
        elif s.then_takes[partition, node] > 0:
            cores = s.then_cores[partition, node] - taken
            gpus = s.then_gpus[partition, node] - gpus_of(s, job, node, chunks)
            memory = s.then_memory[partition, node] - memory_of(s, job, node, chunks)
            takes = chunks_within(s, head, node, cores, gpus, memory, s.head_closed[partition])
            left -= s.then_takes[partition, node] - takes
    return left


@kernel
def _start(s: State, job: int) -> None:
    """Start a job on the nodes that are chosen for it; it has left the queue."""
    for partition in range(s.head_job.shape[0]):
        if _matters(s, job, partition):
            s.head_extra[partition] = _left_beside(s, job, partition)
            if s.job.plain[s.head_job[partition]] == 1:
                continue
            for at in range(s.num_chosen):
                node, chunks = s.chosen[at], s.chosen_chunks[at]
                s.then_cores[partition, node] -= cores_of(s, job, node, chunks)
                s.then_gpus[partition, node] -= gpus_of(s, job, node, chunks)
                s.then_memory[partition, node] -= memory_of(s, job, node, chunks)
                _count_then(s, partition, node)
    reserve_pieces(s, job)
    start_on_pieces(s, job)


@kernel
def start_on_pieces(s: State, job: int) -> None:
    """Start a job, which has left the queue, on what is listed for it."""
    held = hold_pieces(s, job)
    hooks.pieces_taken(s, job)
    s.version += 1
    begin_run(s, job, held)
    begin_exemption(s, job)
    if s.over != 0:
        s.over = 0
        settle(s)


@inlined
def _count_then(s: State, partition: int, node: int) -> int:
    """Count how many chunks of the first job of a partition a node could take then; return how many more than
    before."""
    before = s.then_takes[partition, node]
    free = s.then_cores[partition, node], s.then_gpus[partition, node], s.then_memory[partition, node]
    now = chunks_within(s, s.head_job[partition], node, free[0], free[1], free[2], s.head_closed[partition])
    s.then_takes[partition, node] = now
    return now - before


@kernel
def reserve_first(s: State, job: int, partition: int) -> None:
    """Find when a job can be placed if what is expected comes free, and what is free then; it cannot be now."""
    s.head_job[partition] = job
    s.head_closed[partition] = 0
    if s.num_halted > 0:
        expect_halted(s)
    if s.num_windows > 0:
        _reserve_around(s, job, partition)
        return
    plain = s.job.plain[job] == 1
    total = free_cores_in(s, partition) if plain else _begin_then(s, partition)
    wanted, at, time = s.job.chunks[job], 0, np.inf
    if total >= wanted:  # ends of jobs that start in this pass may be nearer than all that are expected now
        s.refused_with_room = 1
    while at < s.num_releases:
        release, item = s.release_time[at], int(s.release_item[at])
        if total >= wanted and release > time:
            break
        total += _cores_released(s, partition, item) if plain else _release(s, partition, item)
        if total >= wanted:
            time = max(release, s.now)
        at += 1
    s.head_time[partition] = time
    s.head_extra[partition] = total - wanted


@kernel
def _reserve_around(s: State, job: int, partition: int) -> None:
    """Do the same around advance reservations: the job begins at a release, or at the end of one of them."""
    total = _begin_then(s, partition)
    wanted, at, time = s.job.chunks[job], 0, s.now
    s.head_time[partition] = np.inf
    while True:
        time = _next_chance(s, at, time)
        if time == np.inf:
            break
        while at < s.num_releases and max(s.release_time[at], s.now) <= time:
            _release(s, partition, int(s.release_item[at]))
            at += 1
        s.head_closed[partition] = windows_of(s, job, time)
        total = 0
        for node in range(s.node_cores.shape[0]):
            _count_then(s, partition, node)
            total += s.then_takes[partition, node]
        if total >= wanted:
            s.head_time[partition] = time
            break
    s.head_extra[partition] = total - wanted


@inlined
def _next_chance(s: State, at: int, last: float) -> float:
    """Return the time of an expected release, or of the first end of an advance reservation between the last time and
    it."""
    time = max(s.release_time[at], s.now) if at < s.num_releases else np.inf
    for window in range(s.num_windows):
        if last < s.window_end[window] < time:
            time = s.window_end[window]
    return time


@kernel
def _begin_then(s: State, partition: int) -> int:
    """Set what is free at a reservation to what is free now; return how many chunks can be placed."""
    total = 0
    for node in range(s.node_cores.shape[0]):
        s.then_cores[partition, node] = s.free_cores[node] - s.lacking[node]
        s.then_gpus[partition, node] = s.free_gpus[node]
        s.then_memory[partition, node] = s.free_memory[node]
        s.then_takes[partition, node] = 0
        total += _count_then(s, partition, node)
    return total


@inlined
def _cores_released(s: State, partition: int, item: int) -> int:
    """Return how many cores of a partition a job or a node that is down gives back."""
    if item >= 0:
        return cores_in(s, item, partition)
    node = -1 - item
    return (s.node_cores[node] - waited_for(s, node)[0]) * (s.node_members[node] >> partition & 1)


@inlined
def _release(s: State, partition: int, item: int) -> int:
    """Free what a job holds, or a node that is down, at a reservation; return how many chunks more can be placed."""
    more = 0
    if item < 0:
        node = -1 - item
        cores, gpus, memory = waited_for(s, node)
        s.then_cores[partition, node] += s.node_cores[node] - cores
        s.then_gpus[partition, node] += s.node_gpus[node] - gpus
        s.then_memory[partition, node] += s.node_memory[node] - memory
        return _count_then(s, partition, node)
    piece = s.job.first_piece[item]
    while piece >= 0:
        node = s.piece_node[piece]
        s.then_cores[partition, node] += s.piece_cores[piece]
        s.then_gpus[partition, node] += s.piece_gpus[piece]
        s.then_memory[partition, node] += s.piece_memory[piece]
        more += _count_then(s, partition, node)
        piece = s.piece_next[piece]
    return more
