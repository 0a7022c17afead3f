"""``first-fit``: on clusters, every job that has a place starts (``engine/clusters/passes.py``)."""

from __future__ import annotations

from faultsweep.simcore.contract import CLUSTERS, Policy
from faultsweep.simcore.engine.state import ANYONE

POLICY = Policy(
    "first-fit",
    "Every job that has a place starts, in the order of the queue (clusters).",
    machines=(CLUSTERS,),
    facts={"reserves": ANYONE},
)
