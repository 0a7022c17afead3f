"""Queue orders: which waiting job comes first."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN_POLICY, SENTENCES, Parameter, Role

ROLE = Role(
    "Which waiting job comes first.",
    Parameter(
        "queue_order",
        str,
        "fcfs",
        "Order of the queue: by arrival, by a utility that grows with the wait (wfp), or by a priority of each job.",
        "scheduling",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
)
