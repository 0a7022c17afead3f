"""A queue order of the user's: a function of a waiting job; the highest number comes first."""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.outside import Shape, address_of, own_policy

_TEMPLATE = """
    for at in range(s.queue_head, s.queue_tail):
        job = s.queue[at]
        s.job.utility[job] = _policy(ARGUMENTS)
    return 0
"""

SHAPE = Shape(
    "queue_order",
    {
        "estimate_s": ("s.job.estimate[job]", "run time that the scheduler believes, s"),
        "nodes": ("s.job.requested[job]", "nodes that the job asks for"),
        "wait_s": ("s.now - s.job.utility_since[job]", "time in the queue, s"),
        "submitted_s": ("s.job.submit[job] - s.job.submit[0] + 1.0", "submission, s from the first one, which is 1"),
        "restarts": ("s.job.restarts[job]", "failures that have killed the job"),
        "drawn": ("_coin(s.own_key[0], 0, job, 0)", "a number of the job's, drawn from [0, 1)"),
    },
    _TEMPLATE,
)


@inlined
def found(s: State, job: int) -> float:
    """Return what the function gave for a job in this pass."""
    return s.job.utility[job]


def _begin(s: State, value: str) -> None:
    s.own_order = address_of(value, SHAPE)


POLICY = own_policy(
    SHAPE,
    machines=ONE_MACHINE,
    kernels={"utility": found},
    facts={"expected_utility": lambda s, job: float(s.job.utility[job])},
    begins=_begin,
)
