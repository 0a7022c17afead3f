"""``backfill+migration``: FCFS, then migration, then backfilling (krevat2003, B+M).

It has no kernel: ``migrates`` and ``reserves`` tell the passes of ``migration`` and of ``backfill`` to run.
"""

from __future__ import annotations

from faultsweep.simcore.contract import FLAT, MENU, TORUS, Policy
from faultsweep.simcore.engine.state import HEAD_JOB
from faultsweep.simcore.policies.run import on_torus
from faultsweep.simcore.policies.scheduling import GROWTH, MIGRATION, MOVES

POLICY = Policy(
    "backfill+migration",
    "FCFS, then migration, then backfilling (B+M).",
    aliases=("b+m",),
    uses=(*GROWTH, *MIGRATION),
    becomes=((lambda run: not on_torus(run), "backfill"),),
    facts={"migrates": True, "reserves": HEAD_JOB},
    metrics=MOVES,
    machines=(TORUS, FLAT, MENU),
)
