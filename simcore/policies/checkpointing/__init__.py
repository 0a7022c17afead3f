"""Checkpoint policies: when a running job saves its work, and what that costs it (zhang2004, section V)."""

from __future__ import annotations

from faultsweep.simcore.contract import (
    OWN_POLICY,
    SENTENCES,
    SHORTEST_INTERVAL_S,
    Parameter,
    Policy,
    Role,
    Run,
    constant,
)
from faultsweep.simcore.policies.co_allocation.trunks import trunks_fail
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.preemption import requeues

NO_FAILURES = ((lambda run: not happen(run), "none"),)
"""A policy that heeds nothing but failures."""

OVERHEAD = ("checkpoint_overhead_s", "checkpoint_overhead_ratio", "lost_to_overhead")
"""The metrics of pauses."""
CHECKPOINTS = ("checkpoints", "checkpoints_wasted", *OVERHEAD)
"""The metrics of checkpoints."""


def _saves(run: Run) -> bool:
    return not run.is_("checkpointing", "none")


def _restarts_cost(run: Run) -> bool:
    return bool(run["restart_cost_s"] > 0 and _restart(run))


def _restart(run: Run) -> bool:
    """Tell whether jobs may start again: after failures, or when others had their place."""
    return happen(run) or trunks_fail(run) or requeues(run)


ROLE = Role(
    "When a running job saves its work.",
    Parameter(
        "checkpoint",
        str,
        "none",
        "When a running job saves its work.",
        "checkpoints",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
    metrics=tuple((name, _saves) for name in CHECKPOINTS),
    parameters=(
        Parameter(
            "checkpoint_cost_s",
            float,
            300.0,
            "Time that a checkpoint takes, during which the job does not work.",
            "checkpoints",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "checkpoint_interval_s",
            float,
            7200.0,
            "Work between two checkpoints (periodic), or between two questions whether one pays (risk).",
            "checkpoints",
            minimum=SHORTEST_INTERVAL_S,
            unit="s",
        ),
        Parameter(
            "checkpoint_mtbf_h",
            float,
            0.0,
            "Mean time between failures of the machine that young and daly reckon with; 0: as observed up to the "
            "start.",
            "checkpoints",
            minimum=0,
            maximum=1e7,
            unit="h",
        ),
    ),
)

ROLES = (Role("What a job pays that starts again.", chooses=constant("restart"), name="restart"),)

POLICIES = (
    Policy(
        "restart",
        "",
        role="restart",
        metrics=tuple((name, _restarts_cost) for name in OVERHEAD),
        parameters=(
            Parameter(
                "restart_cost_s",
                float,
                0.0,
                "Time that a job pauses at its start because it was killed or preempted before.",
                "checkpoints",
                minimum=0,
                maximum=1e9,
                unit="s",
                live=_restart,
            ),
        ),
    ),
)
