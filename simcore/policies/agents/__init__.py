"""Agents that mend saturated trunks (akshitha2011); their steps are in ``engine/clusters/agent.py``."""

from __future__ import annotations

from faultsweep.simcore.contract import SENTENCES, Parameter, Role, Run
from faultsweep.simcore.policies.checkpointing import CHECKPOINTS


def _takes(run: Run) -> bool:
    return not run.is_("agents", "none")


ROLE = Role(
    "What mends saturated trunks.",
    Parameter(
        "agent",
        str,
        "none",
        "What mends saturated trunks: nothing, the agent that checkpoints jobs which understated their bandwidth "
        "(ctmr), or one that takes any job.",
        "clusters",
        choices=SENTENCES,
    ),
    metrics=tuple((name, _takes) for name in (*CHECKPOINTS, "jobs_migrated")),
    parameters=(
        Parameter(
            "agent_interval_s",
            float,
            300.0,
            "How long after a look at a saturated trunk that changed nothing the agent looks again; 0: not by itself.",
            "clusters",
            minimum=0,
            maximum=1e9,
            unit="s",
            zero="for not by itself",
        ),
        Parameter(
            "overhead_s",
            float,
            720.0,
            "Time that a checkpoint of the agent's (half) and the restart from it (half) take.",
            "clusters",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
    ),
)
