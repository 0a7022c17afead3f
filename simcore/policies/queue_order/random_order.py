"""``random``: an order that is drawn once."""

from __future__ import annotations

from faultsweep.simcore.policies.queue_order.by_priority import by_priority

POLICY = by_priority("random", "In an order that is drawn once.", lambda job: job.drawn, consults=("seed",))
