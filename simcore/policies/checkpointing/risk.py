"""``risk``: after every interval of work a job asks the failure predictor, and saves its work only if that is expected
to pay.

The predicted loss is the probability that the job fails before it would ask again, times the work since its last saved
state; a checkpoint is made if this exceeds its cost. zhang2004 names checkpoint intervals by the confidence of a
prediction as future work; the predictor is the one that placement asks, with its errors, and the probability that of
oliner2004, section 5.2.1: each node that it reports fails with the confidence a.
"""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE, Policy
from faultsweep.simcore.engine.allocation import holds_node
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import BY_WORK, State
from faultsweep.simcore.policies.placement.rules import ask_own_predictor, coin, failure_risk, false_positive_rate
from faultsweep.simcore.policies.prediction import has_no_confidence, is_blind


@kernel
def pays(s: State, job: int) -> bool:
    """Tell whether the predicted loss of a running job, which has done NEXT_SAVE of work, exceeds the cost."""
    at_risk = s.job.next_save[job] - s.job.saved[job]
    return failure_chance(s, job, s.job.interval[job]) * at_risk > s.checkpoint_cost


@kernel
def failure_chance(s: State, job: int, window: float) -> float:
    """Return the predicted probability that a running job fails in the open window (now, now + window)."""
    if s.own_predictor != 0:
        return failure_risk(s, _reported_of(s, job, window))
    first, end = s.next_failure, s.now + window
    recall, false_rate = s.recall, false_positive_rate(s, window)
    key, restarts = s.coin_key, s.job.restarts[job]
    marked = 0
    at = first
    while at < s.fail_time.shape[0] and s.fail_time[at] < end:
        node = int(s.fail_node[at])
        if s.fail_time[at] > s.now and holds_node(s, job, node) and not _fails(s, node, first, at):
            marked += 1 if recall >= 1.0 or coin(key, node, job, restarts) < recall else 0
        at += 1
    if false_rate > 0.0:
        for node in range(s.nodes):
            if coin(key, node, job, restarts) < false_rate and holds_node(s, job, node):
                marked += 0 if _fails(s, node, first, at) else 1
    return failure_risk(s, marked)


@kernel
def _reported_of(s: State, job: int, window: float) -> int:
    """Return how many nodes of a job a predictor of the user's reports."""
    ask_own_predictor(s, job, window)
    marked = 0
    for node in range(s.nodes):
        if s.own_reported[node] != 0.0 and holds_node(s, job, node):
            marked += 1
    return marked


@kernel
def _fails(s: State, node: int, first: int, last: int) -> bool:
    """Tell whether a node fails later than now in the failures from ``first`` up to ``last``."""
    for at in range(first, last):
        if int(s.fail_node[at]) == node and s.fail_time[at] > s.now:
            return True
    return False


POLICY = Policy(
    "risk",
    "After an interval of work, if the predicted loss exceeds the cost.",
    uses=("checkpoint_cost_s", "checkpoint_interval_s", "accuracy", "partition_failure"),
    consults=("prediction",),
    becomes=((is_blind, "none"), (has_no_confidence, "none")),
    machines=ONE_MACHINE,
    kernels={"checkpoint_pays": pays},
    facts={"looks_ahead": "checkpoint_interval_s", "saves_by": BY_WORK},
)
