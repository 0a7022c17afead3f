"""``sjf``: the shortest estimate first."""

from __future__ import annotations

from faultsweep.simcore.policies.queue_order.by_priority import by_priority

POLICY = by_priority("sjf", "Shortest estimate first.", lambda job: -job.estimate, aliases=("spt", "spf"))
