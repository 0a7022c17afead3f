"""Failures that tests of generators and of statistics share."""

from __future__ import annotations

from faultsweep.simcore.policies.failures.bursts import POLICY, Bursts

AS_SHIPPED = Bursts(*(parameter.default for parameter in POLICY.parameters))
