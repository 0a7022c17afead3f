"""To which cluster's queue jobs are submitted (``workloads/splitting.py``)."""

from __future__ import annotations

from faultsweep.simcore.contract import Policy
from faultsweep.simcore.workloads.splitting import SPLITS

_DRAWN = (("seed", lambda run: "+" in run["machine"]),)
"""One cluster takes all jobs."""

POLICIES = tuple(Policy(name, "", role="split", consults=_DRAWN if name == "random" else ()) for name in SPLITS)
