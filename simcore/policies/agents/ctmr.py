"""``ctmr``: jobs that understated their bandwidth are taken, if that pays (akshitha2011, II.E)."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy

POLICY = Policy(
    "ctmr",
    "Jobs that understated their bandwidth are checkpointed and migrated, if that pays (akshitha2011, II.E).",
    parameters=(
        Parameter(
            "overhead_known",
            bool,
            True,
            "Whether the ctmr agent knows overhead_s; if not, it reckons with assumed_overhead_s.",
            "clusters",
        ),
        Parameter(
            "assumed_overhead_s",
            float,
            1800.0,
            "What the ctmr agent takes an unknown overhead for.",
            "clusters",
            minimum=0,
            maximum=1e9,
            unit="s",
            live=lambda run: not run["overhead_known"],
        ),
        Parameter(
            "cp_frac",
            float,
            0.04,
            "CP_frac: the ctmr agent takes a job only if the overhead is below this share of its remaining time.",
            "clusters",
            minimum=0,
            maximum=1e9,
        ),
    ),
    uses=("agent_interval_s", "overhead_s"),
    facts={"acts": True, "asks": True},
)
