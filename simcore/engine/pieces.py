"""What jobs hold of the nodes of a site, or will hold by their reservations: pieces, each some cores, GPUs and memory
of one node.

The pieces of a job are a list in order of the nodes, those that are held of a node a list in no order.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.cores import share_node, take_cores
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import HALTED, LARGER_NEEDED, RUNNING, SPAN, State

NO_PIECE = -1
"""Of a job, a node or a piece: none follows."""


@inlined
def windows_met(s: State, time: float, end: float) -> int:
    """Return the bits of the advance reservations that a job meets which holds nodes from a time to its end."""
    met = 0
    for window in range(s.num_windows):
        begin = s.window_begin[window]
        if time < s.window_end[window] and (begin < end or begin <= time):
            met |= 1 << window
    return met


@inlined
def chunks_within(s: State, job: int, node: int, cores: int, gpus: int, memory: int, closed: int) -> int:
    """Return how many chunks of a job fit into what is free of a node; none if it is of a reservation in ``closed``."""
    if s.node_windows[node] & closed != 0:
        return 0
    if cores <= 0 or (s.job.whole[job] == 1 and cores < s.node_cores[node]):
        return 0
    if s.node_members[node] >> s.job.partition[job] & 1 == 0:
        return 0
    need = s.job.chunk_cores[job]
    count = cores if need == 1 else cores // need
    need = s.job.chunk_gpus[job]
    if need > 0:
        count = min(count, gpus // need)
    need = s.job.chunk_memory[job]
    if need > 0:
        count = min(count, memory // need)
    most = s.job.chunks_per_node[job]
    return min(count, most) if most > 0 else count


@kernel
def choose_in_window(s: State, job: int, closed: int) -> bool:
    """Choose nodes for a job of what ``window_cores`` and so on say is free; tell whether that is enough."""
    s.num_chosen = 0
    if count_in_window(s, job, closed) < s.job.chunks[job]:
        return False
    choose_counted(s, job)
    return True


@inlined
def choose_counted(s: State, job: int) -> None:
    """Choose nodes for a job, whose chunks that they can take have been counted."""
    s.num_chosen = 0
    hooks.choose_nodes(s, job)


@kernel
def count_in_window(s: State, job: int, closed: int) -> int:
    """Set, of each node, how many chunks of a job it can take there; return how many that is in all."""
    if s.job.plain[job] == 1 and closed == 0:
        return _count_cores_there(s, s.job.partition[job])
    first, end = s.first_node[s.job.partition[job]], s.end_node[s.job.partition[job]]
    s.takes[:first] = 0
    s.takes[end:] = 0
    return _count_there(s, job, closed, first, end)


@kernel
def count_touched(s: State, job: int, closed: int, chunks: int) -> int:
    """Do the same where it was done last, which gave so many chunks, and only the touched spans have changed since."""
    for span in range(s.touched.shape[0]):
        if s.touched[span] == 0:
            continue
        s.touched[span] = 0
        first, end = span * SPAN, min(span * SPAN + SPAN, s.takes.shape[0])
        for node in range(first, end):
            chunks -= s.takes[node]
        chunks += _count_there(s, job, closed, first, end)
    return chunks


@kernel
def _count_there(s: State, job: int, closed: int, first: int, end: int) -> int:
    """Do the same with the nodes from one on and before another."""
    total = 0
    _count_by_cores(s, job, closed, first, end)
    if s.job.chunk_gpus[job] > 0:
        inverse = 1.0 / s.job.chunk_gpus[job]
        for node in range(first, end):
            s.takes[node] = min(s.takes[node], times_in(s.window_gpus[node], inverse))
    if s.job.chunk_memory[job] > 0:
        inverse = 1.0 / s.job.chunk_memory[job]
        for node in range(first, end):
            s.takes[node] = min(s.takes[node], times_in(s.window_memory[node], inverse))
    for node in range(first, end):
        total += s.takes[node]
    return total


@inlined
def _count_by_cores(s: State, job: int, closed: int, first: int, end: int) -> None:
    """Set, of each node of some, how many chunks of a job it can take there if it has all else."""
    partition, inverse, whole = s.job.partition[job], 1.0 / s.job.chunk_cores[job], -s.job.whole[job]
    most = s.job.chunks_per_node[job] if s.job.chunks_per_node[job] > 0 else s.nodes
    for node in range(first, end):
        cores = max(s.window_cores[node], 0)
        cores *= s.node_members[node] >> partition & 1
        cores = cores if cores >= s.node_cores[node] & whole else 0
        cores = cores if s.node_windows[node] & closed == 0 else 0
        s.takes[node] = min(times_in(cores, inverse), most)


@inlined
def times_in(available: int, inverse: float) -> int:
    """Return how many times a need is in what is available, of which 1 / the need is given.

    Half of one more than is there is exact up to 2^50, and no rounding brings it over or under a whole number of times.
    In this way vector instructions can divide.
    """
    return np.int64((available + 0.5) * inverse)  # type: ignore[return-value]  # int when compiled


@inlined
def _count_cores_there(s: State, partition: int) -> int:
    """Do the same for jobs whose chunks are single cores."""
    total = 0
    takes, free, members = s.takes, s.window_cores, s.node_members
    for node in range(takes.shape[0]):
        count = max(free[node], 0) * (members[node] >> partition & 1)
        takes[node] = count
        total += count
    return total


@kernel
def free_in_window(s: State, running: int) -> bool:
    """Free there what a running job holds of the open nodes; tell whether it holds any."""
    found, piece = False, s.job.first_piece[running]
    while piece >= 0:
        if _free_there(s, piece):
            found = True
        piece = s.piece_next[piece]
    return found


@kernel
def free_for(s: State, running: int, job: int) -> tuple[bool, int]:
    """Do the same with what a waiting job needs of them, and note the spans that it touches; return, too, how many
    cores that is. None of the open nodes may be down.

    A branch for nodes that are not open would be guessed wrongly too often.
    """
    found, cores, piece = 0, 0, s.job.first_piece[running]
    needs_more = s.job.chunk_gpus[job] + s.job.chunk_memory[job] > 0
    while piece >= 0:
        node = s.piece_node[piece]
        is_open = s.open_node[node]
        free = s.piece_cores[piece] & -is_open
        found |= is_open
        cores += free
        s.window_cores[node] += free
        s.touched[node // SPAN] = 1
        if needs_more:
            s.window_gpus[node] += s.piece_gpus[piece]
            s.window_memory[node] += s.piece_memory[piece]
        piece = s.piece_next[piece]
    return found == 1, cores


@inlined
def _free_there(s: State, piece: int) -> bool:
    """Free a piece there, if it is of an open node; tell whether it is."""
    node = s.piece_node[piece]
    if s.open_node[node] == 0 or s.down_until[node] > -np.inf:
        return False
    s.window_cores[node] += s.piece_cores[piece]
    s.window_gpus[node] += s.piece_gpus[piece]
    s.window_memory[node] += s.piece_memory[piece]
    return True


@kernel
def count_chunks(s: State, job: int, closed: int) -> int:
    """Set, of each node, how many chunks of a job it could take now, but for those of reservations in ``closed``;
    return how many that is in all."""
    total = 0
    if s.job.plain[job] == 1:
        return _count_cores(s, s.job.partition[job])
    for node in range(s.node_cores.shape[0]):
        count = chunks_within(s, job, node, s.free_cores[node], s.free_gpus[node], s.free_memory[node], closed)
        s.takes[node] = count
        total += count
    return total


@inlined
def _count_cores(s: State, partition: int) -> int:
    """Do the same for jobs whose chunks are single cores."""
    total = 0
    takes, free, members = s.takes, s.free_cores, s.node_members
    for node in range(takes.shape[0]):
        count = free[node] * (members[node] >> partition & 1)
        takes[node] = count
        total += count
    return total


@kernel
def cores_in(s: State, job: int, partition: int) -> int:
    """Return the cores that a job holds of the nodes of a partition."""
    return s.job.allocated[job] if s.has_all[partition] == 1 else cores_listed_in(s, job, partition)


@kernel
def cores_listed_in(s: State, job: int, partition: int) -> int:
    """Return the cores of the nodes of a partition that are listed for a job, whether it holds them or not."""
    cores, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        cores += s.piece_cores[piece] * (s.node_members[s.piece_node[piece]] >> partition & 1)
        piece = s.piece_next[piece]
    return cores


@kernel
def free_cores_in(s: State, partition: int) -> int:
    """Return the free cores of the nodes of a partition."""
    if s.has_all[partition] == 1:
        return s.free
    cores = 0
    for node in range(s.node_cores.shape[0]):
        cores += s.free_cores[node] * (s.node_members[node] >> partition & 1)
    return cores


@inlined
def choose(s: State, node: int, chunks: int) -> None:
    """Choose a node for some chunks of the job that is looked at."""
    s.chosen[s.num_chosen] = node
    s.chosen_chunks[s.num_chosen] = chunks
    s.num_chosen += 1


@inlined
def cores_of(s: State, job: int, node: int, chunks: int) -> int:
    """Return the cores that a job with some chunks on a node holds of it."""
    return s.node_cores[node] if s.job.whole[job] == 1 else chunks * s.job.chunk_cores[job]


@inlined
def gpus_of(s: State, job: int, node: int, chunks: int) -> int:
    """Return the GPUs that it holds of it; where jobs are suspended, those that it asks for, whatever its cores are."""
    return s.node_gpus[node] if s.job.whole[job] == 1 and s.suspends == 0 else chunks * s.job.chunk_gpus[job]


@inlined
def memory_of(s: State, job: int, node: int, chunks: int) -> int:
    """Return the memory that it holds of it, MiB."""
    return s.node_memory[node] if s.job.whole[job] == 1 and s.suspends == 0 else chunks * s.job.chunk_memory[job]


@kernel
def reserve_pieces(s: State, job: int) -> bool:
    """List for a job what was chosen for it, which it does not hold yet; return False if the table is too small."""
    if s.num_chosen > s.num_free_pieces:
        s.no_room = LARGER_NEEDED
        return False
    last = -1
    for at in range(s.num_chosen):
        node, chunks = s.chosen[at], s.chosen_chunks[at]
        s.num_free_pieces -= 1
        piece = s.free_piece[s.num_free_pieces]
        cores, gpus, memory = (
            cores_of(s, job, node, chunks),
            gpus_of(s, job, node, chunks),
            memory_of(s, job, node, chunks),
        )
        s.piece_job[piece], s.piece_node[piece] = job, node
        s.piece_cores[piece], s.piece_gpus[piece], s.piece_memory[piece] = cores, gpus, memory
        _insert(s, job, piece, last)
        last = piece
    return True


@kernel
def hold_pieces(s: State, job: int) -> int:
    """Give a job what is listed for it; return how many cores that is."""
    held, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        hold_piece(s, piece)
        held += s.piece_cores[piece]
        piece = s.piece_next[piece]
    if s.suspends == 1:
        s.stack[s.num_stacked] = job
        s.num_stacked += 1
    return held


@inlined
def hold_piece(s: State, piece: int) -> None:
    """Give a job a piece that is listed for it."""
    node = s.piece_node[piece]
    if s.suspends == 1:
        take_cores(s, piece)
    s.free_cores[node] -= s.piece_cores[piece]
    s.free_gpus[node] -= s.piece_gpus[piece]
    s.free_memory[node] -= s.piece_memory[piece]
    s.piece_beside[piece] = s.piece_on[node]
    s.piece_on[node] = piece


@inlined
def let_go(s: State, piece: int) -> None:
    """Free what a job holds by a piece, which stays listed for it."""
    node = s.piece_node[piece]
    s.free_cores[node] += s.piece_cores[piece] - s.piece_lacking[piece]
    s.lacking[node] -= s.piece_lacking[piece]
    s.piece_lacking[piece] = 0
    s.free_gpus[node] += s.piece_gpus[piece]
    s.free_memory[node] += s.piece_memory[piece]
    _unlink(s, node, piece)


@kernel
def is_held(s: State, piece: int) -> bool:
    """Tell whether a job holds what is listed for it by a piece."""
    held = s.piece_on[s.piece_node[piece]]
    while held >= 0 and held != piece:
        held = s.piece_beside[held]
    return held == piece


@kernel
def drop_pieces(s: State, job: int) -> None:
    """Forget what is listed for a job that does not hold it."""
    drop_list(s, s.job.first_piece[job])
    s.job.first_piece[job] = NO_PIECE


@kernel
def drop_list(s: State, piece: int) -> None:
    """Forget a list of pieces that nobody holds, from one on."""
    while piece >= 0:
        s.free_piece[s.num_free_pieces] = piece
        s.num_free_pieces += 1
        piece = s.piece_next[piece]


@kernel
def are_alike(s: State, one: int, other: int) -> bool:
    """Tell whether two lists of pieces of a job, from one of each on, are of the same nodes, and as much of each."""
    while one >= 0 and other >= 0:
        if s.piece_node[one] != s.piece_node[other] or s.piece_cores[one] != s.piece_cores[other]:
            return False
        if s.piece_gpus[one] != s.piece_gpus[other] or s.piece_memory[one] != s.piece_memory[other]:
            return False
        one, other = s.piece_next[one], s.piece_next[other]
    return one == other


@inlined
def _insert(s: State, job: int, piece: int, last: int) -> None:
    """Put a piece into the list of its job, in order of the nodes; the one put there before it is mostly next to it."""
    before, behind = -1, s.job.first_piece[job]
    if last >= 0 and s.piece_node[piece] > s.piece_node[last]:
        before, behind = last, s.piece_next[last]
    while behind >= 0 and s.piece_node[behind] < s.piece_node[piece]:
        before, behind = behind, s.piece_next[behind]
    s.piece_next[piece] = behind
    if before < 0:
        s.job.first_piece[job] = piece
    else:
        s.piece_next[before] = piece


@kernel
def give_back_pieces(s: State, job: int) -> int:
    """Give back all that a job holds; return how many of its cores it does not."""
    lacks, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        lacks += s.piece_lacking[piece]
        let_go(s, piece)
        piece = s.piece_next[piece]
    drop_pieces(s, job)
    if s.suspends == 1:
        _unstack(s, job)
    return lacks


@kernel
def _unstack(s: State, job: int) -> None:
    """Take a job out of the list of those that hold cores."""
    at = 0
    while s.stack[at] != job:
        at += 1
    s.num_stacked -= 1
    for later in range(at, s.num_stacked):
        s.stack[later] = s.stack[later + 1]


@inlined
def _unlink(s: State, node: int, piece: int) -> None:
    """Take a piece out of the list of its node."""
    if s.piece_on[node] == piece:
        s.piece_on[node] = s.piece_beside[piece]
        return
    before = s.piece_on[node]
    while s.piece_beside[before] != piece:
        before = s.piece_beside[before]
    s.piece_beside[before] = s.piece_beside[piece]


@kernel
def piece_on(s: State, job: int, node: int) -> int:
    """Return what a job holds of a node, or -1."""
    piece = s.job.first_piece[job]
    while piece >= 0 and s.piece_node[piece] < node:
        piece = s.piece_next[piece]
    return piece if piece >= 0 and s.piece_node[piece] == node else -1


@kernel
def fits_elsewhere(s: State, job: int, piece: int, node: int, closed: int) -> bool:
    """Tell whether a piece of a job could be of another node; a whole node is changed for one that is alike."""
    old = s.piece_node[piece]
    if s.node_windows[node] & closed != 0 or s.node_members[node] >> s.job.partition[job] & 1 == 0:
        return False
    if s.job.whole[job] == 1 and (
        s.free_cores[node] < s.node_cores[node]
        or s.node_cores[node] != s.node_cores[old]
        or s.node_gpus[node] != s.node_gpus[old]
        or s.node_memory[node] != s.node_memory[old]
    ):
        return False
    return (
        s.free_cores[node] >= s.piece_cores[piece]
        and s.free_gpus[node] >= s.piece_gpus[piece]
        and s.free_memory[node] >= s.piece_memory[piece]
        and piece_on(s, job, node) < 0
    )


@kernel
def move_piece(s: State, job: int, piece: int, node: int) -> None:
    """Move what a job holds of a node to another one."""
    let_go(s, piece)
    if s.num_halted > 0:
        share_node(s, s.piece_node[piece])
    if s.job.first_piece[job] == piece:
        s.job.first_piece[job] = s.piece_next[piece]
    else:
        before = s.job.first_piece[job]
        while s.piece_next[before] != piece:
            before = s.piece_next[before]
        s.piece_next[before] = s.piece_next[piece]
    s.piece_node[piece] = node
    _insert(s, job, piece, -1)
    hold_piece(s, piece)


@inlined
def holds_piece(s: State, job: int, node: int) -> bool:
    """Tell whether a job holds a part of a node."""
    return piece_on(s, job, node) >= 0


@kernel
def count_pieces(s: State, job: int) -> int:
    """Return how many nodes a job holds parts of."""
    count, piece = 0, s.job.first_piece[job]
    while piece >= 0:
        count += 1
        piece = s.piece_next[piece]
    return count


@kernel
def is_in_partition(s: State, job: int, partition: int) -> bool:
    """Tell whether a job holds a part of a node of a partition."""
    piece = s.job.first_piece[job]
    while piece >= 0:
        if s.node_members[s.piece_node[piece]] >> partition & 1 == 1:
            return True
        piece = s.piece_next[piece]
    return False


@kernel
def next_job_on(s: State, node: int, behind: int) -> int:
    """Return the first running or suspended job by index behind another one (-1: the first of all) that holds a part
    of a node, or -1."""
    first, piece = -1, s.piece_on[node]
    while piece >= 0:
        job = s.piece_job[piece]
        stays = s.job.status[job] == RUNNING or s.job.status[job] == HALTED
        if stays and job > behind and (first < 0 or job < first):
            first = job
        piece = s.piece_beside[piece]
    return first


@kernel
def waited_for(s: State, node: int) -> tuple[int, int, int]:
    """Return the cores, GPUs and memory of a node that is down which jobs will have again that wait for it (recovery
    option C, with nodes kept)."""
    cores = gpus = memory = 0
    if s.hold_nodes == 1:
        for at in range(s.num_suspended):
            piece = piece_on(s, s.suspended[at], node)
            if piece >= 0:
                cores += s.piece_cores[piece]
                gpus += s.piece_gpus[piece]
                memory += s.piece_memory[piece]
    return cores, gpus, memory


@kernel
def close_node(s: State, node: int) -> None:
    """Take a node down that nobody holds a part of."""
    s.free -= s.node_cores[node]
    s.num_down += s.node_cores[node]
    s.free_cores[node] = s.free_gpus[node] = s.free_memory[node] = 0


@kernel
def open_node(s: State, node: int) -> None:
    """Bring a node up again."""
    s.free += s.node_cores[node]
    s.num_down -= s.node_cores[node]
    s.free_cores[node] = s.node_cores[node]
    s.free_gpus[node] = s.node_gpus[node]
    s.free_memory[node] = s.node_memory[node]
