"""``given``: a trace or a source that the caller of ``simulate`` gives; it is taken as it is."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy

POLICY = Policy("given", "What the caller gives.")
