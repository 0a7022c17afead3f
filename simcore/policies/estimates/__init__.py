"""What the scheduler believes of run times."""

from __future__ import annotations

from faultsweep.simcore.contract import SENTENCES, Parameter, Role

ROLE = Role(
    "What the scheduler believes of run times.",
    Parameter("estimates", str, "actual", "What the scheduler believes of run times.", "workload", choices=SENTENCES),
)
