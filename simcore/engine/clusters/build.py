"""Building the arrays of a run on clusters: the state before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.clusters.state import ClusterState
from faultsweep.simcore.engine.watch import MOST_WITHOUT_JOB, most_in_vain
from faultsweep.simcore.model.failure_trace import LATEST_S, FailureTrace
from faultsweep.simcore.model.machines import Machine
from faultsweep.simcore.parameters import run_of
from numpy.typing import NDArray


def build_clusters(
    jobs: Mapping[str, NDArray[Any]],
    communication: Communication,
    machine: Machine,
    config: Mapping[str, Any],
    failures: FailureTrace | None,
    *,
    tracing: bool,
    telling: bool,
    capacity: int = 1,
) -> ClusterState:
    """Return the state of a run on clusters that has not begun.

    Parameters
    ----------
    jobs : arrays of shape (n,): ``submit_s`` (non-decreasing), ``work_s``, ``estimate_s``, ``size`` and ``home``.
    communication : of the same jobs.
    machine : the clusters.
    config : a resolved configuration.
    failures : the failures of nodes and trunks known so far, or None.
    tracing, telling : whether events, and the agent's decisions, are recorded.
    capacity : factor on the sizes of lists whose need is not known beforehand.
    """
    n, k = len(jobs["submit_s"]), len(machine.clusters)
    largest = int(jobs["size"].max())
    rows = failure_rows(failures)
    state = ClusterState.zeros(
        **dict.fromkeys(("given_times", "given_jobs", "job_f", "job_i", "movable_jobs"), n),
        site_jobs=0,
        saving_times=n,
        saving_jobs=n,
        parts=(n, k),
        demand=(n, k),
        believed=(n, k),
        trunks=k,
        clusters=k,
        agenda=n + machine.nodes + k + 2,
        lists=max(2 * n, machine.nodes) + 2,
        partitions=(largest + 1, 1 + 2 * k),
        cuts=(2 * (k + 1), largest + 1) if config["partitioning"] == "minimum-cut" else (1, 1),
        failures=0,
        trace=1,
        decisions=(capacity * 4096 if telling else 1, cs.NUM_DECISION_COLUMNS),
    ).with_arrays(failures=rows)
    if tracing:
        state = state.with_arrays(trace=trace_buffer(machine, n, rows.shape[1], capacity))
    _set_jobs(state, jobs, communication)
    _set_parameters(state, machine, config)
    state.tracing, state.telling = int(tracing), int(telling)
    state.named = int(tracing or failures is not None)
    trunks = np.array(machine.trunks_mbps)
    state.capacity[:] = np.where(np.isnan(trunks), config["trunk_mbps"], trunks)
    state.cluster_nodes[:] = state.free_here[:] = machine.clusters
    state.first_node[:] = np.cumsum(machine.clusters) - np.array(machine.clusters)
    state.down_until[:] = -np.inf
    state.owner[:] = cs.FREE_NODE
    return state


def failure_rows(failures: FailureTrace | None) -> NDArray[np.float64]:
    """Return the failures as the state has them."""
    if failures is None:
        return np.zeros((3, 0))
    return np.stack([failures.time_s, failures.node.astype(np.float64), failures.down_s])


def trace_buffer(machine: Machine, jobs: int, failures: int, capacity: int = 1) -> NDArray[np.float64]:
    """Return a buffer of the event trace that holds whatever one instant can be expected to produce, twice."""
    return np.zeros(2 * capacity * (st.TRACE_HEAD + 1) * (24 * machine.nodes + jobs + 3 * failures + 1024))


def _set_jobs(s: ClusterState, jobs: Mapping[str, NDArray[Any]], communication: Communication) -> None:
    s.job.submit[:] = s.job.eligible[:] = jobs["submit_s"]
    s.job.work[:] = jobs["work_s"]
    s.job.estimate[:] = jobs["estimate_s"]
    for row in (s.job.start, s.job.first_start, s.job.finish):
        row[:] = np.nan
    s.job.communication[:] = communication.communicate_s * (jobs["work_s"] / jobs["run_s"])
    s.job.bandwidth[:] = communication.bandwidth_mbps
    s.job.stated[:] = communication.stated_mbps
    s.job.duration[:] = s.job.work
    s.job.saturation[:] = 1.0
    s.job.requested[:] = s.job.size[:] = jobs["size"]
    s.job.home[:] = jobs["home"]
    s.job.underestimated[:] = communication.stated_mbps < communication.bandwidth_mbps
    s.job.refused_at[:] = -1


def _set_parameters(s: ClusterState, machine: Machine, config: Mapping[str, Any]) -> None:
    s.free = s.nodes = machine.nodes
    s.kind = machine.kind
    run = run_of(config)
    s.reserves = run.policy("scheduling").facts.get("reserves", st.NOBODY)
    s.most_without_job = MOST_WITHOUT_JOB
    s.most_in_vain = most_in_vain(machine.nodes)
    s.max_restarts = config["max_restarts"]
    places = run.policy("co_allocation").facts
    s.stays_home = int(not places.get("elsewhere", False))
    s.spreads = int(places.get("spreads", False))
    s.heeds_trunks = int(places.get("heeds_trunks", False))
    s.one_queue = int(config["queues"] == "global")
    s.minimum_cut = int(config["partitioning"] == "minimum-cut")
    agent = run.policy("agents").facts
    s.agent = int(agent.get("acts", False))
    s.agent_asks = int(agent.get("asks", False))
    s.stalls = int(config["trunk_outage"] == "stall")
    s.places = 1
    s.largest_cluster = max(machine.clusters)
    s.now = -math.inf
    s.horizon = config["horizon_s"]
    s.latest = LATEST_S
    s.drawn_until = math.inf
    s.restart_cost = config["restart_cost_s"]
    s.overhead_s = config["overhead_s"]
    s.believed_overhead_s = config["overhead_s" if config["overhead_known"] else "assumed_overhead_s"]
    s.cp_frac = config["cp_frac"]
    s.agent_interval_s = config["agent_interval_s"]
    s.wake = math.inf
    s.mesh_share = config["mesh_share"]
