"""What a run on clusters gives beside the results that all machines have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.clusters.state import ClusterState
from faultsweep.simcore.engine.metrics import ratio
from faultsweep.simcore.policies.co_allocation import co_allocates, heeds_statements
from numpy.typing import NDArray


def cluster_jobs(s: ClusterState, communication: Communication, config: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the per-job results that only clusters have: arrays of shape (jobs,).

    What jobs communicate, and what they state of it, is NaN where that makes no difference.
    """
    matters = co_allocates(config)
    unused = np.full(s.job.submit.shape[0], np.nan)
    return {
        "home": s.job.home.copy(),
        "clusters": s.job.spans.copy(),
        "co_allocations": s.job.co_allocated.copy(),
        "bandwidth_mbps": communication.bandwidth_mbps.copy() if matters else unused,
        "stated_mbps": communication.stated_mbps.copy() if heeds_statements(config) else unused,
        "slowed_s": s.job.slowed.copy(),
        "offences": s.job.offences.copy(),
    }


def cluster_metrics(s: ClusterState, communication: Communication, config: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that only clusters have."""
    span = float(s.now - s.job.submit[0])
    finished = ~np.isnan(s.job.finish)
    slowed = s.job.slowed[finished] / s.job.work[finished]
    capacity = span * float(np.sum(s.capacity))
    return {
        "lost_to_congestion": ratio(float(np.sum(s.job.slowed_nodes)), span * float(s.nodes)),
        "co_allocations": float(s.co_allocations),
        "jobs_co_allocated": float(np.sum(s.job.co_allocated > 0)),
        "started_elsewhere": float(s.elsewhere),
        "congestion_slowdown": 1.0 + float(np.mean(slowed)) if len(slowed) else np.nan,
        "trunk_utilisation": ratio(s.traffic, capacity),
        "saturated_time_frac": ratio(s.saturated, span),
        "highest_saturation": float(s.most_saturated),
        "estimate_rmspe_pct": communication.rmspe() if heeds_statements(config) else np.nan,
        "agent_activations": float(s.activations),
        "jobs_taken": float(s.taken),
        "jobs_barred": float(np.sum(s.job.offences >= 2)),
    }
