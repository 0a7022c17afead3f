"""``exact``: the victim of a failure begins a checkpoint just early enough for it to be complete when it fails
(zhang2004, section V-B).

No checkpoint of a job that would have completed by then, or that has run for less than the cost of a checkpoint.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import holds_node
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    CHECKPOINT_COST,
    END,
    FAIL_NODE,
    FAIL_TIME,
    NEXT_FORESEEN,
    NEXT_FORESEEN_FAILURE,
)


@kernel
def next_exact(s):
    """Pass on to the next failure, or the next few whose checkpoints start at one instant."""
    time, count = s.f[NEXT_FORESEEN], s.failures.shape[1]
    at = s.i[NEXT_FORESEEN_FAILURE]
    while at < count and s.failures[FAIL_TIME, at] - s.f[CHECKPOINT_COST] <= time:
        at += 1
    s.i[NEXT_FORESEEN_FAILURE] = at
    s.f[NEXT_FORESEEN] = s.failures[FAIL_TIME, at] - s.f[CHECKPOINT_COST] if at < count else np.inf


@kernel
def fails_after_checkpoint(s, job):
    """Tell whether a node of the job fails one cost after NEXT_FORESEEN, before the job would have completed."""
    at = s.i[NEXT_FORESEEN_FAILURE]
    while at < s.failures.shape[1] and s.failures[FAIL_TIME, at] - s.f[CHECKPOINT_COST] == s.f[NEXT_FORESEEN]:
        if s.job_f[END, job] > s.failures[FAIL_TIME, at] and holds_node(s, job, int(s.failures[FAIL_NODE, at])):
            return True
        at += 1
    return False
