"""``requested``: the time that the user asked for."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy

POLICY = Policy(
    "requested",
    "The time that the user asked for.",
    aliases=("user",),
    parameters=(
        Parameter(
            "default_request_s",
            float,
            0.0,
            "Requested time of jobs that the log has none of (unlimited ones); 0: their run time.",
            "workload",
            minimum=0,
            unit="s",
        ),
        Parameter(
            "request_step_s",
            float,
            0.0,
            "Requested times are rounded up to whole multiples of this (SLURM: 60 s); 0: they stay as they are.",
            "workload",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "kill_at_estimate",
            bool,
            False,
            "Whether a job that reaches its estimate is killed, as on real systems.",
            "workload",
        ),
    ),
)
