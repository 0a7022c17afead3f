"""``risk``: after every interval of work a job asks the failure predictor, and saves its work only if that is expected
to pay.

The predicted loss is the probability that the job fails before it would ask again, times the work since its last saved
state; a checkpoint is made if this exceeds its cost. zhang2004 names checkpoint intervals by the confidence of a
prediction as future work; the probability is that of the balancing predictor of oliner2004, section 5.2.1.
"""

from __future__ import annotations

from faultsweep.simcore.allocation import holds_node
from faultsweep.simcore.jit import kernel
from faultsweep.simcore.state import (
    ACCURACY,
    CHECKPOINT_COST,
    FAIL_NODE,
    FAIL_TIME,
    INTERVAL,
    MAXIMUM,
    NEXT_FAILURE,
    NEXT_SAVE,
    NOW,
    PARTITION_FAILURE,
    SAVED,
)


@kernel
def pays(s, job):
    """Tell whether the predicted loss of a running job, which has done NEXT_SAVE of work, exceeds the cost."""
    at_risk = s.job_f[NEXT_SAVE, job] - s.job_f[SAVED, job]
    return failure_chance(s, job, s.job_f[INTERVAL, job]) * at_risk > s.f[CHECKPOINT_COST]


@kernel
def failure_chance(s, job, window):
    """Return the predicted probability that a running job fails in the open window (now, now + window)."""
    survives = 1.0
    first = s.i[NEXT_FAILURE]
    at = first
    while at < s.failures.shape[1] and s.failures[FAIL_TIME, at] < s.f[NOW] + window:
        node = int(s.failures[FAIL_NODE, at])
        if s.failures[FAIL_TIME, at] > s.f[NOW] and holds_node(s, job, node) and not _seen(s, node, first, at):
            survives *= 1.0 - s.f[ACCURACY]
            if s.i[PARTITION_FAILURE] == MAXIMUM:
                break
        at += 1
    return 1.0 - survives


@kernel
def _seen(s, node, first, last):
    """Tell whether a node fails in the failures from ``first`` up to ``last``."""
    for at in range(first, last):
        if int(s.failures[FAIL_NODE, at]) == node and s.failures[FAIL_TIME, at] > s.f[NOW]:
            return True
    return False
