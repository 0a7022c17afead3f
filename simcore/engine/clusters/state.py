"""The state of a run on clusters: preallocated arrays, and the names of their rows.

Rows that mean the same on all machines (submissions, starts, work, capacity integrals, ...) are those of
``faultsweep.simcore.engine.state``, so that metrics and event traces are made by the same code; what only clusters have
follows behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from faultsweep.simcore.engine.handle import make_state_at, make_table
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.state import NUM_F, NUM_I, NUM_JOB_F, NUM_JOB_I
from numba import types
from numpy.typing import NDArray

# --- s.f: float64 scalars, behind those of all machines -----------------------------------------------------------
OVERHEAD_S = NUM_F  # of a checkpoint, termination, migration and restart, s
BELIEVED_OVERHEAD_S = NUM_F + 1  # what the agent takes it for, s
CP_FRAC = NUM_F + 2  # the most of a job's remaining time that the overhead may be
AGENT_INTERVAL_S = NUM_F + 3  # 0: the agent runs after recomputations only
WAKE = NUM_F + 4  # when the agent runs again, s
MESH_SHARE = NUM_F + 5
SATURATED = NUM_F + 6  # time during which some trunk was saturated, s
MOST_SATURATED = NUM_F + 7  # highest saturation of any trunk so far
TRAFFIC = NUM_F + 8  # integral of what all trunks carry, Mbit
NUM_CLUSTER_F = NUM_F + 9

# --- s.i: int64 scalars --------------------------------------------------------------------------------------------
META = NUM_I  # meta-scheduler
ONE_QUEUE = NUM_I + 1  # whether the queue discipline sees all queues as one
MINIMUM_CUT = NUM_I + 2  # whether partitions minimise the traffic between clusters
AGENT = NUM_I + 3
NAMED = NUM_I + 4  # whether it matters which nodes a job holds (failures, an event trace)
STALLS = NUM_I + 5  # whether the failure of a trunk stalls jobs instead of killing them
NUM_RUNNING = NUM_I + 6  # entries of RUNNING
NUM_SPANNING = NUM_I + 7  # entries of SPANNING
NUM_FRONT = NUM_I + 8  # checkpointed jobs at the front of the queue
CHANGED = NUM_I + 9  # shares must be recomputed
DUE = NUM_I + 10  # shares were recomputed since the agent ran
PLACES = NUM_I + 11  # raised whenever free nodes, trunks or believed demands change
ACTIVATIONS = NUM_I + 12  # of the agent
TAKEN = NUM_I + 13  # jobs that the agent took, times included
CO_ALLOCATIONS = NUM_I + 14  # starts over more than one cluster
ELSEWHERE = NUM_I + 15  # starts whole in another cluster than the job's own
DECISIONS_END = NUM_I + 16  # rows in s.decisions
TELLING = NUM_I + 17  # whether the agent's decisions are recorded
LARGEST_CLUSTER = NUM_I + 18  # its nodes
NUM_CLUSTER_I = NUM_I + 19

# --- s.job_f --------------------------------------------------------------------------------------------------------
COMMUNICATION = NUM_JOB_F  # T_C on one cluster, s; the rest of WORK is T_P
BANDWIDTH = NUM_JOB_F + 1  # per-processor bandwidth b, Mbit/s
STATED = NUM_JOB_F + 2  # what the scheduler takes it for; NaN if the job states nothing
DURATION = NUM_JOB_F + 3  # time that the whole job would take at the present saturation, s
SATURATION = NUM_JOB_F + 4  # the worst of its trunks, at least 1
SLOWED = NUM_JOB_F + 5  # time lost to saturated trunks, s
SLOWED_NODES = NUM_JOB_F + 6  # the same times nodes held, node-seconds
NUM_CLUSTER_JOB_F = NUM_JOB_F + 7

# --- s.job_i --------------------------------------------------------------------------------------------------------
HOME = NUM_JOB_I  # cluster that the job was submitted to
PHASE = NUM_JOB_I + 1  # IDLE, WORKS, RESTORES or SAVES
SPANS = NUM_JOB_I + 2  # clusters that the current attempt holds nodes in
UNDERESTIMATED = NUM_JOB_I + 3  # stated less than it needs, or was taken by the agent
OFFENCES = NUM_JOB_I + 4  # times that the agent took it
RUN_SLOT = NUM_JOB_I + 5  # its position in RUNNING
REFUSED_AT = NUM_JOB_I + 6  # PLACES when it last could not be placed
CO_ALLOCATED = NUM_JOB_I + 7  # starts over more than one cluster
NUM_CLUSTER_JOB_I = NUM_JOB_I + 8

IDLE, WORKS, RESTORES, SAVES = range(4)

# --- s.trunks: float64 (rows, clusters) -----------------------------------------------------------------------------
CAPACITY = 0  # Mbit/s
DEMAND = 1  # of the jobs that communicate, Mbit/s
BELIEVED = 2  # what the scheduler believes that running jobs need, Mbit/s
TRIAL_BELIEVED = 3  # the same without a candidate of the agent
SHADOW_TIME = 4  # reservation of the first job of a queue that had to wait (EASY), s
NUM_TRUNK_ROWS = 5

# --- s.clusters: int64 (rows, clusters) -----------------------------------------------------------------------------
NUM_NODES = 0
FREE_HERE = 1
TRIAL_FREE = 2  # free if a candidate of the agent were gone
FIRST_NODE = 3
TRUNK_DOWN = 4  # whether the trunk is down
SHADOW_EXTRA = 5  # nodes that are free beside the reservation at its time
BLOCKED = 6  # of this queue, a job waits that nobody may overtake (FCFS), or that has a reservation (EASY)
PARTS = 7  # the place found for a job: nodes in each cluster
EDGES = 8  # edges of its mesh that leave each cluster
NUM_CLUSTER_ROWS = 9

# --- s.agenda: float64 (rows, ...) ----------------------------------------------------------------------------------
TIMER_TIME = 0  # timers, in no order
TIMER_KEY = 1
RUN_END = 2  # by slot: when the running job ends unless something happens
DOWN_UNTIL = 3  # by node, then by trunk; -inf while up
RELEASE_TIME = 4  # scratch (EASY)
RELEASE_NODES = 5
NUM_AGENDA_ROWS = 6

# --- s.lists: int64 (rows, ...) -------------------------------------------------------------------------------------
QUEUE = 0
RUNNING = 1  # running jobs, in no order
SPANNING = 2  # running jobs over more than one cluster, in the order of their starts
OWNER = 3  # by node: the job that holds it, or FREE_NODE or DOWN_NODE
NUM_LIST_ROWS = 4

FREE_NODE, DOWN_NODE = -1, -2
UNLIMITED = 1 << 60  # nodes beside a reservation, where there is none

# --- s.decisions: float64 (rows, columns) ---------------------------------------------------------------------------
NUM_DECISION_COLUMNS = 10  # time, activation, trunk, saturation, job, demand, stated, limit, waiting job, verdict
NOT_SATURATED, SATURATED_TRUNK, HONEST, TOO_COSTLY, USELESS, NOWHERE_ELSE, TAKEN_FIRST, TAKEN_AGAIN = range(8)

# --- codes ----------------------------------------------------------------------------------------------------------
LOCAL_ONLY, MIGRATION_ONLY, NAIVE, BANDWIDTH_AWARE = range(4)
NO_AGENT, CTMR_AGENT, NAIVE_AGENT = range(3)
IN_ORDER, EASY, FIRST_FIT = range(3)

TOLERANCE = 1.0 + 1e-12
"""A trunk is saturated, and a demand too large, if it exceeds the capacity by more than rounding can."""


_WHOLE = {"i", "job_i", "parts", "clusters", "lists", "partitions"}
_FLAT = {"f", "i", "trace"}


@dataclass(frozen=True)
class ClusterState:
    """Everything a run changes, and its parameters; K clusters."""

    f: NDArray[np.float64]  # (NUM_CLUSTER_F,)
    i: NDArray[np.int64]  # (NUM_CLUSTER_I,)
    job_f: NDArray[np.float64]  # (NUM_CLUSTER_JOB_F, jobs)
    job_i: NDArray[np.int64]  # (NUM_CLUSTER_JOB_I, jobs)
    parts: NDArray[np.int64]  # (jobs, K): nodes of the current attempt in each cluster
    demand: NDArray[np.float64]  # (jobs, K): what it puts on each trunk, Mbit/s
    believed: NDArray[np.float64]  # (jobs, K): what the scheduler believes that to be; 0 where nothing is stated
    trunks: NDArray[np.float64]  # (NUM_TRUNK_ROWS, K)
    clusters: NDArray[np.int64]  # (NUM_CLUSTER_ROWS, K)
    agenda: NDArray[np.float64]  # (NUM_AGENDA_ROWS, jobs + nodes + K + 2)
    lists: NDArray[np.int64]  # (NUM_LIST_ROWS, max(2 * jobs, nodes) + 2)
    partitions: NDArray[np.int64]  # (sizes + 1, 1 + 2 K): of a size, PLACES for which it holds, parts, edges
    cuts: NDArray[np.float64]  # (2 (K + 1), sizes + 1): scratch of the least cut, and its first parts
    failures: NDArray[np.float64]  # (3, failures)
    trace: NDArray[np.float64]  # buffer of the event trace, as on all machines
    decisions: NDArray[np.float64]  # (rows, NUM_DECISION_COLUMNS)

    @cached_property
    def handle(self) -> Any:
        """What the entry kernel takes: a table of the arrays, or the state itself where nothing is compiled."""
        return self if is_interpreted() else make_table([getattr(self, name) for name in FIELDS], FIELDS)


def _array_type(name: str) -> Any:
    kind = types.int64 if name in _WHOLE else types.float64
    return kind[::1] if name in _FLAT else kind[:, ::1]


FIELDS: dict[str, Any] = {name: _array_type(name) for name in ClusterState.__annotations__}
state_at = make_state_at("faultsweep.ClusterState", FIELDS)
"""In the entry kernel: the state of ``ClusterState.handle``."""
