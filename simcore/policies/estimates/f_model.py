"""``f-model``: estimates are drawn."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy

POLICY = Policy(
    "f-model",
    "Uniform between the run time and f times it.",
    parameters=(
        Parameter(
            "estimate_factor",
            float,
            1.0,
            "f of the f-model: estimates are uniform in [actual, f x actual].",
            "workload",
            minimum=1.0,
        ),
    ),
    consults=("seed",),
)
