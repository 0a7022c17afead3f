"""``fcfs``: by arrival."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("fcfs", "By arrival.", aliases=("fifo",))
