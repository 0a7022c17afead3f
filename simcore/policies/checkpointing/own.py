"""Checkpoints of the user's: a function that gives the work until the next one."""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE, SHORTEST_INTERVAL_S
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import BY_WORK, State
from faultsweep.simcore.outside import Shape, address_of, own_policy, takes

_TEMPLATE = """
    job = a
    s.job.interval[job] = _policy(ARGUMENTS)
    return 0
"""

SHAPE = Shape(
    "checkpoint",
    {
        "work_s": ("s.job.work[job]", "run time that the job needs, s"),
        "saved_s": ("s.job.saved[job]", "work that is saved, s"),
        "nodes": ("s.job.allocated[job]", "nodes that the job holds"),
        "machine_nodes": ("s.nodes", "nodes of the machine"),
        "cost_s": ("s.checkpoint_cost", "time that a checkpoint takes, s"),
        "interval_s": ("s.checkpoint_interval", "the parameter checkpoint_interval_s, s"),
        "mtbf_s": (
            "max(1.0, s.now - s.job.submit[0]) / s.num_failures if s.num_failures > 0 else _np.inf",
            "mean time between failures of the machine so far, s",
        ),
        "restarts": ("s.job.restarts[job]", "failures that have killed the job"),
        "drawn": (
            "_coin(s.own_key[2], s.job.checkpoints[job], job, s.job.restarts[job])",
            "a number drawn for this interval, [0, 1)",
        ),
    },
    _TEMPLATE,
    place=2,
)


@kernel
def ask(s: State, job: int) -> float:
    """Return the work until the next checkpoint, s; what is no number or too short is the shortest interval."""
    call_own(s.own_checkpoint, s, job, 0, 0)
    given = s.job.interval[job]
    return given if given >= SHORTEST_INTERVAL_S else SHORTEST_INTERVAL_S


def _begin(s: State, value: str) -> None:
    s.own_checkpoint = address_of(value, SHAPE)


POLICY = own_policy(
    SHAPE,
    uses=("checkpoint_cost_s", ("checkpoint_interval_s", takes(SHAPE, "interval_s"))),
    machines=ONE_MACHINE,
    kernels={"work_between_checkpoints": ask, "next_interval": ask},
    facts={"saves_by": BY_WORK},
    begins=_begin,
)
