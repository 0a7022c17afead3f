"""``ljf``: the longest estimate first."""

from __future__ import annotations

from faultsweep.simcore.policies.queue_order.by_priority import by_priority

POLICY = by_priority("ljf", "Longest estimate first.", lambda job: job.estimate, aliases=("lpt", "lpf"))
