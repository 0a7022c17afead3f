"""``consecutive``: the smallest row of neighbouring nodes of a site that can take a job, as ``cons_tres`` of SLURM."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import choose
from faultsweep.simcore.engine.state import State


@kernel
def choose_consecutive(s: State, job: int) -> None:
    """Choose from the row of nodes that can take the fewest chunks, and all that are left; else from the row that can
    take most, and from other rows then.

    A row is of neighbouring nodes that each can take a chunk; of equal rows it is the first, and nodes are taken from
    its beginning on.
    """
    left = s.job.chunks[job]
    while left > 0:
        first = _best_row(s, left)
        node = first
        while left > 0 and node < s.takes.shape[0] and s.takes[node] > 0:
            chunks = min(left, s.takes[node])
            choose(s, node, chunks)
            s.takes[node] = 0
            left -= chunks
            node += 1


@inlined
def _best_row(s: State, left: int) -> int:
    """Return the first node of the row that is best for so many chunks."""
    best, most, node = -1, 0, 0
    while node < s.takes.shape[0]:
        first, total = node, 0
        while node < s.takes.shape[0] and s.takes[node] > 0:
            total += s.takes[node]
            node += 1
        if total == 0:
            node += 1
        elif best < 0 or (total > most and most < left) or (left <= total < most):
            best, most = first, total
    return best


POLICY = Policy(
    "consecutive",
    "The smallest row of neighbouring nodes that can take the job, else the largest, as SLURM's cons_tres (site).",
    aliases=("cons-tres",),
    machines=(SITE,),
    kernels={"choose_nodes": choose_consecutive},
)
