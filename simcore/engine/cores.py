"""Which cores of their nodes jobs hold, where they are suspended for others: it is by these that jobs meet.

Each piece has bits of its cores, ``WORD`` of them in a word. A core has one running job at most; the suspended ones
that hold it, too, started before that.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import HALTED, RUNNING, State

WORD = 62


@kernel
def take_cores(s: State, piece: int) -> None:
    """Give a piece the first cores of its node that nobody holds but jobs of the classes ``over``."""
    node, left = s.piece_node[piece], s.piece_cores[piece]
    for word in range(s.piece_bits.shape[1]):
        taken, bits = _held(s, node, word, s.over), 0
        for core in range(min(WORD, s.node_cores[node] - word * WORD)):
            if left > 0 and taken >> core & 1 == 0:
                bits |= 1 << core
                left -= 1
        s.piece_bits[piece, word] = bits


@kernel
def open_cores(s: State, over: int) -> None:
    """Count for the window what jobs do not hold of the open nodes, without those of the classes ``over``."""
    for node in range(s.node_cores.shape[0]):
        cores = 0
        if s.open_node[node] == 1 and s.down_until[node] == -np.inf:
            cores = s.node_cores[node]
            for word in range(s.piece_bits.shape[1]):
                cores -= _count(_held(s, node, word, over))
        s.window_cores[node] = cores
        s.window_gpus[node], s.window_memory[node] = s.free_gpus[node], s.free_memory[node]


@inlined
def _held(s: State, node: int, word: int, over: int) -> int:
    """Return a word of the bits of the cores of a node that jobs hold which are of none of the classes ``over``."""
    bits, piece = 0, s.piece_on[node]
    while piece >= 0:
        if over >> s.job.preempt_class[s.piece_job[piece]] & 1 == 0:
            bits |= s.piece_bits[piece, word]
        piece = s.piece_beside[piece]
    return bits


@inlined
def _count(bits: int) -> int:
    """Return how many bits are set."""
    count = 0
    while bits != 0:
        bits &= bits - 1
        count += 1
    return count


@inlined
def meet(s: State, piece: int, other: int) -> bool:
    """Tell whether two pieces of one node have a core in common."""
    for word in range(s.piece_bits.shape[1]):
        if s.piece_bits[piece, word] & s.piece_bits[other, word] != 0:
            return True
    return False


@kernel
def is_covered(s: State, job: int) -> bool:
    """Tell whether a job that started later runs on a core of a running or suspended one."""
    piece = s.job.first_piece[job]
    while piece >= 0:
        other = s.piece_on[s.piece_node[piece]]
        while other != piece:  # the last that started is the first of the list
            if s.job.status[s.piece_job[other]] == RUNNING and meet(s, piece, other):
                return True
            other = s.piece_beside[other]
        piece = s.piece_next[piece]
    return False


@kernel
def share_node(s: State, node: int) -> None:
    """Let the suspended jobs of a node keep of their cores those on which nobody runs, each for the last that
    started."""
    piece = s.piece_on[node]
    while piece >= 0:
        if s.job.status[s.piece_job[piece]] == HALTED:
            lacks = 0
            for word in range(s.piece_bits.shape[1]):
                lacks += _count(s.piece_bits[piece, word] & _kept_from(s, piece, word))
            lack(s, piece, lacks)
        piece = s.piece_beside[piece]


@inlined
def _kept_from(s: State, piece: int, word: int) -> int:
    """Return a word of the bits of the cores of a node that a suspended job cannot keep."""
    bits, other, is_behind = 0, s.piece_on[s.piece_node[piece]], False
    while other >= 0:
        is_behind = is_behind or other == piece
        status = s.job.status[s.piece_job[other]]
        if status == RUNNING or (status == HALTED and not is_behind):
            bits |= s.piece_bits[other, word]
        other = s.piece_beside[other]
    return bits


@inlined
def lack(s: State, piece: int, cores: int) -> None:
    """Count how many of its cores a suspended job does not keep of a node."""
    node, more = s.piece_node[piece], cores - s.piece_lacking[piece]
    s.piece_lacking[piece] = cores
    s.lacking[node] += more
    s.free_cores[node] += more
    s.free += more
    s.kept -= more
    s.version += 1 if more != 0 else 0
