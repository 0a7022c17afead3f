"""``saf``: the smallest area first."""

from __future__ import annotations

from faultsweep.simcore.policies.queue_order.by_priority import by_priority

POLICY = by_priority("saf", "Smallest area, estimate x nodes, first.", lambda job: -job.estimate * job.nodes)
