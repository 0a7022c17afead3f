"""The seed, which whatever is drawn depends on."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy, Role, constant

ROLES = (Role("What everything random depends on.", chooses=constant("seed"), name="seed"),)

POLICY = Policy(
    "seed",
    "",
    role="seed",
    parameters=(
        Parameter("seed", int, 0, "Seed of everything random in a run.", "workload", minimum=0),
        Parameter("replicate", int, 0, "Number of the replicate under one seed.", "workload", minimum=0),
    ),
)
