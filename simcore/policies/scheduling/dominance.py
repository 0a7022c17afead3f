"""Where to begin to look for a start while all reservations are made anew, in the order of the queue.

While they are made, nodes are only taken, never given back. So a job begins no earlier than one ahead of it that needs
no more, for no longer: where the job fits, that one would have fitted, and it has the earliest start that it could get.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import remaining_estimate, restart_cost
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.profile import reserved_start
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import FLAT, SITE

_NEAREST = 16
"""Jobs ahead that are compared: with more of them, flat machines lose as much as sites gain."""
NOBODY = -1


@kernel
def no_earlier_than(s: State, position: int) -> int:
    """Return the job with the latest reservation, of the nearest ones ahead of a position of the queue, that the job
    there cannot begin before; NOBODY if there is none."""
    latest, job = NOBODY, s.queue[position]
    length, pause = remaining_estimate(s, job), restart_cost(s, job)
    for before in range(max(s.queue_head, position - _NEAREST), position):
        ahead = s.queue[before]
        if np.isnan(s.job.reserved[ahead]) or not _needs_no_more(s, ahead, job):
            continue
        is_longer = remaining_estimate(s, ahead) > length or restart_cost(s, ahead) > pause
        if not is_longer and (latest == NOBODY or reserved_start(s, ahead) > reserved_start(s, latest)):
            latest = ahead
    return latest


@inlined
def _needs_no_more(s: State, one: int, other: int) -> bool:
    """Tell whether there is room for a job wherever there is room for another one."""
    if s.kind == FLAT:
        return s.job.size[one] <= s.job.size[other]
    if s.kind != SITE:
        return s.job.size[one] == s.job.size[other]  # the boxes of another size have other sides
    if s.job.partition[one] != s.job.partition[other] or s.job.whole[one] > s.job.whole[other]:
        return False
    if s.job.requested[one] > s.job.requested[other] or s.job.chunks[one] > s.job.chunks[other]:
        return False
    if s.job.chunk_cores[one] > s.job.chunk_cores[other] or s.job.chunk_gpus[one] > s.job.chunk_gpus[other]:
        return False
    most = s.job.chunks_per_node[one]  # 0: as many as there is room for
    if most > 0 and not 0 < s.job.chunks_per_node[other] <= most:
        return False
    return s.job.chunk_memory[one] <= s.job.chunk_memory[other]
