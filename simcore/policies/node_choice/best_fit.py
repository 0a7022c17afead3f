"""``best-fit``: of the nodes of a site that can take all that is left of a job, the one with the fewest free cores."""

from __future__ import annotations

from faultsweep.simcore.contract import SITE, Policy
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.pieces import choose
from faultsweep.simcore.engine.state import State


@kernel
def choose_best_fit(s: State, job: int) -> None:
    """Choose the node that fits best; as long as none can take all that is left, the one that can take most.

    Of equal nodes it is the first.
    """
    left = s.job.chunks[job]
    free = s.window_cores if s.chooses_in_window == 1 else s.free_cores
    while left > 0:
        most, best = 0, -1
        for node in range(s.takes.shape[0]):
            chunks = s.takes[node]
            most = max(most, chunks)
            if chunks >= left and (best < 0 or free[node] < free[best]):
                best = node
        if best >= 0:
            choose(s, best, left)
            return
        left -= _choose_all_with(s, most, left)


@inlined
def _choose_all_with(s: State, chunks: int, left: int) -> int:
    """Choose nodes that can take so many chunks, as long as more than these are left; return how many they get."""
    given = 0
    for node in range(s.takes.shape[0]):
        if left - given <= chunks:
            break
        if s.takes[node] == chunks:
            choose(s, node, chunks)
            s.takes[node] = 0
            given += chunks
    return given


POLICY = Policy(
    "best-fit",
    "The node that can take all of the job and has the fewest free cores; else those that can take most (site).",
    machines=(SITE,),
    kernels={"choose_nodes": choose_best_fit},
    facts={"by_room": True},
)
