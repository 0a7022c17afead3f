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
from faultsweep.simcore.engine.watch import LATEST_S, MOST_WITHOUT_JOB
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import Machine
from faultsweep.simcore.registry import AGENTS, CLUSTER_SCHEDULERS, META_SCHEDULERS, code_of
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
    state = ClusterState(
        f=_scalars_f(config),
        i=_scalars_i(machine, config, tracing, telling, failures),
        job_f=_job_f(jobs, communication, n),
        job_i=_job_i(jobs, communication, n),
        parts=np.zeros((n, k), np.int64),
        demand=np.zeros((n, k)),
        believed=np.zeros((n, k)),
        trunks=np.zeros((cs.NUM_TRUNK_ROWS, k)),
        clusters=np.zeros((cs.NUM_CLUSTER_ROWS, k), np.int64),
        agenda=np.zeros((cs.NUM_AGENDA_ROWS, n + machine.nodes + k + 2)),
        lists=np.zeros((cs.NUM_LIST_ROWS, max(2 * n, machine.nodes) + 2), np.int64),
        partitions=np.zeros((largest + 1, 1 + 2 * k), np.int64),
        cuts=np.zeros((2 * (k + 1), largest + 1) if config["partitioning"] == "minimum-cut" else (1, 1)),
        failures=rows,
        trace=trace_buffer(machine, n, rows.shape[1], capacity) if tracing else np.zeros(1),
        decisions=np.zeros((capacity * 4096 if telling else 1, cs.NUM_DECISION_COLUMNS)),
    )
    trunks = np.array(machine.trunks_mbps)
    state.trunks[cs.CAPACITY] = np.where(np.isnan(trunks), config["trunk_mbps"], trunks)
    state.clusters[[cs.NUM_NODES, cs.FREE_HERE]] = machine.clusters
    state.clusters[cs.FIRST_NODE] = np.cumsum(machine.clusters) - np.array(machine.clusters)
    state.agenda[cs.DOWN_UNTIL] = -np.inf
    state.lists[cs.OWNER] = cs.FREE_NODE
    return state


def failure_rows(failures: FailureTrace | None) -> NDArray[np.float64]:
    """Return the failures as the state has them."""
    if failures is None:
        return np.zeros((3, 0))
    return np.stack([failures.time_s, failures.node.astype(np.float64), failures.down_s])


def trace_buffer(machine: Machine, jobs: int, failures: int, capacity: int = 1) -> NDArray[np.float64]:
    """Return a buffer of the event trace that holds whatever one instant can be expected to produce, twice."""
    return np.zeros(2 * capacity * (st.TRACE_HEAD + 1) * (24 * machine.nodes + jobs + 3 * failures + 1024))


def _job_f(jobs: Mapping[str, NDArray[Any]], communication: Communication, n: int) -> NDArray[np.float64]:
    rows = np.zeros((cs.NUM_CLUSTER_JOB_F, n))
    rows[st.SUBMIT] = jobs["submit_s"]
    rows[st.WORK] = jobs["work_s"]
    rows[st.ESTIMATE] = jobs["estimate_s"]
    rows[[st.START, st.FIRST_START, st.FINISH, st.PROMISED]] = np.nan
    rows[cs.COMMUNICATION] = communication.communicate_s * (jobs["work_s"] / jobs["run_s"])
    rows[cs.BANDWIDTH] = communication.bandwidth_mbps
    rows[cs.STATED] = communication.stated_mbps
    rows[cs.DURATION] = rows[st.WORK]
    rows[cs.SATURATION] = 1.0
    return rows


def _job_i(jobs: Mapping[str, NDArray[Any]], communication: Communication, n: int) -> NDArray[np.int64]:
    rows = np.zeros((cs.NUM_CLUSTER_JOB_I, n), np.int64)
    rows[[st.REQUESTED, st.SIZE]] = jobs["size"]
    rows[cs.HOME] = jobs["home"]
    rows[cs.UNDERESTIMATED] = communication.stated_mbps < communication.bandwidth_mbps
    rows[cs.REFUSED_AT] = -1
    return rows


def _scalars_i(
    machine: Machine, config: Mapping[str, Any], tracing: bool, telling: bool, failures: FailureTrace | None
) -> NDArray[np.int64]:
    i = np.zeros(cs.NUM_CLUSTER_I, np.int64)
    i[st.FREE] = i[st.NODES] = machine.nodes
    i[st.KIND] = machine.kind
    i[st.SCHEDULER] = code_of(CLUSTER_SCHEDULERS, config["scheduler"])
    i[st.MAX_RESTARTS] = config["max_restarts"]
    i[st.TRACING] = int(tracing)
    i[st.MOST_WITHOUT_JOB] = MOST_WITHOUT_JOB
    i[cs.META] = code_of(META_SCHEDULERS, config["meta_scheduler"])
    i[cs.ONE_QUEUE] = int(config["queues"] == "global")
    i[cs.MINIMUM_CUT] = int(config["partitioning"] == "minimum-cut")
    i[cs.AGENT] = code_of(AGENTS, config["agent"])
    i[cs.NAMED] = int(tracing or failures is not None)
    i[cs.STALLS] = int(config["trunk_outage"] == "stall")
    i[cs.PLACES] = 1
    i[cs.LARGEST_CLUSTER] = max(machine.clusters)
    i[cs.TELLING] = int(telling)
    return i


def _scalars_f(config: Mapping[str, Any]) -> NDArray[np.float64]:
    f = np.zeros(cs.NUM_CLUSTER_F)
    f[st.NOW] = -math.inf
    f[st.LATEST] = LATEST_S
    f[st.HORIZON] = config["horizon_s"]
    f[st.DRAWN_UNTIL] = math.inf
    f[st.RESTART_COST] = config["restart_cost_s"]
    f[cs.OVERHEAD_S] = config["overhead_s"]
    f[cs.BELIEVED_OVERHEAD_S] = config["overhead_s" if config["overhead_known"] else "assumed_overhead_s"]
    f[cs.CP_FRAC] = config["cp_frac"]
    f[cs.AGENT_INTERVAL_S] = config["agent_interval_s"]
    f[cs.WAKE] = math.inf
    f[cs.MESH_SHARE] = config["mesh_share"]
    return f
