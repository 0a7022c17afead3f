"""``consecutive``: the smallest row of neighbouring nodes of a site that can take a job, as ``cons_tres`` of SLURM."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import choose
from faultsweep.simcore.engine.state import State


@kernel
def choose_consecutive(s: State, job: int) -> None:
    """Choose row after row until the job has all its chunks.

    A row is of neighbouring nodes that each can take a chunk. Nodes are taken from its beginning on, but if one node
    suffices for what is left, and no GPUs are wanted, it is the one with the fewest cores of those that do.
    """
    left = s.job.chunks[job]
    while left > 0:
        node = _best_row(s, job, left)
        if s.job.chunk_gpus[job] == 0:
            node = _tightest(s, job, left, node)
        while left > 0 and node < s.takes.shape[0] and s.takes[node] > 0:
            chunks = min(left, s.takes[node])
            choose(s, node, chunks)
            s.takes[node] = 0
            left -= chunks
            node += 1


@inlined
def _tightest(s: State, job: int, left: int, first: int) -> int:
    """Return the node with the fewest cores that can take so many chunks, of a row that begins with a node; that one if
    none can."""
    best, fewest, node = first, -1, first
    while node < s.takes.shape[0] and s.takes[node] > 0:
        cores = _usable_cores(s, job, node)
        if s.takes[node] >= left and (fewest < 0 or cores < fewest):
            best, fewest = node, cores
        node += 1
    return best


@inlined
def _best_row(s: State, job: int, left: int) -> int:
    """Return the first node of the row that is best for so many chunks: one with enough cores and nodes and the fewest
    cores; a row with more cores than that, which has too few nodes, comes before it."""
    wanted, per_node = left * s.job.chunk_cores[job], s.job.chunks_per_node[job]
    nodes_wanted = (left + per_node - 1) // per_node if per_node > 0 else 1
    best, most, is_enough, node = -1, 0, False, 0
    while node < s.takes.shape[0]:
        first, total = node, 0
        while node < s.takes.shape[0] and s.takes[node] > 0:
            total += _usable_cores(s, job, node)
            node += 1
        if node == first:
            node += 1
            continue
        enough = total >= wanted and node - first >= nodes_wanted
        if best < 0 or (enough and (not is_enough or total < most)) or (not enough and total > most):
            best, most, is_enough = first, total, enough
    return best


@inlined
def _usable_cores(s: State, job: int, node: int) -> int:
    """Return the cores of a node that are free and have as much memory as the job wants of each."""
    in_window = s.chooses_in_window == 1
    cores = s.window_cores[node] if in_window else s.free_cores[node]
    memory = s.window_memory[node] if in_window else s.free_memory[node]
    need = s.job.chunk_memory[job]
    if need == 0 or memory // need >= cores:  # a node whose memory nobody knows has more than a product can hold
        return cores
    return min(cores, memory * s.job.chunk_cores[job] // need)


POLICY = Policy(
    "consecutive",
    "The smallest row of neighbouring nodes with room for the job, else the largest, as SLURM's cons_tres (site).",
    aliases=("cons-tres",),
    machines=(SITE,),
    kernels={"choose_nodes": choose_consecutive},
    facts={"by_room": True},
)
