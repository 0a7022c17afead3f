"""What a run on clusters gives beside the results that all machines have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.clusters.state import ClusterState
from faultsweep.simcore.engine.metrics import ratio
from faultsweep.simcore.parameters import co_allocates, heeds_statements
from numpy.typing import NDArray


def cluster_jobs(s: ClusterState, communication: Communication, config: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the per-job results that only clusters have: arrays of shape (jobs,).

    What jobs communicate, and what they state of it, is NaN where that makes no difference.
    """
    matters = co_allocates(config)
    unused = np.full(s.job_f.shape[1], np.nan)
    return {
        "home": s.job_i[cs.HOME].copy(),
        "clusters": s.job_i[cs.SPANS].copy(),
        "co_allocations": s.job_i[cs.CO_ALLOCATED].copy(),
        "bandwidth_mbps": communication.bandwidth_mbps.copy() if matters else unused,
        "stated_mbps": communication.stated_mbps.copy() if heeds_statements(config) else unused,
        "slowed_s": s.job_f[cs.SLOWED].copy(),
        "offences": s.job_i[cs.OFFENCES].copy(),
    }


def cluster_metrics(s: ClusterState, communication: Communication, config: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that only clusters have."""
    span = float(s.f[st.NOW] - s.job_f[st.SUBMIT, 0])
    finished = ~np.isnan(s.job_f[st.FINISH])
    slowed = s.job_f[cs.SLOWED][finished] / s.job_f[st.WORK][finished]
    capacity = span * float(np.sum(s.trunks[cs.CAPACITY]))
    return {
        "lost_to_congestion": ratio(float(np.sum(s.job_f[cs.SLOWED_NODES])), span * float(s.i[st.NODES])),
        "co_allocations": float(s.i[cs.CO_ALLOCATIONS]),
        "jobs_co_allocated": float(np.sum(s.job_i[cs.CO_ALLOCATED] > 0)),
        "started_elsewhere": float(s.i[cs.ELSEWHERE]),
        "congestion_slowdown": 1.0 + float(np.mean(slowed)) if len(slowed) else np.nan,
        "trunk_utilisation": ratio(s.f[cs.TRAFFIC], capacity),
        "saturated_time_frac": ratio(s.f[cs.SATURATED], span),
        "highest_saturation": float(s.f[cs.MOST_SATURATED]),
        "estimate_rmspe_pct": communication.rmspe() if heeds_statements(config) else np.nan,
        "agent_activations": float(s.i[cs.ACTIVATIONS]),
        "jobs_taken": float(s.i[cs.TAKEN]),
        "jobs_barred": float(np.sum(s.job_i[cs.OFFENCES] >= 2)),
    }
