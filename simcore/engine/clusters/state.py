"""The state of a run on clusters, field by field; K clusters.

What means the same on all machines (submissions, starts, work, capacity integrals, ...) is declared in
``faultsweep.simcore.engine.state``, so that metrics and event traces are made by the same code.
"""

from __future__ import annotations

from typing import Annotated

from faultsweep.simcore.engine.handle import make_state_at
from faultsweep.simcore.engine.layout import (
    AgendaRow,
    FloatOfJob,
    Floats,
    FloatTable,
    IntOfJob,
    Ints,
    IntTable,
    ListRow,
    Row,
)
from faultsweep.simcore.engine.state import Common, CommonJobs

# --- phases of a job --------------------------------------------------------------------------------------------------
IDLE, WORKS, RESTORES, SAVES = range(4)
NEVER = -2

FREE_NODE, DOWN_NODE = -1, -2
UNLIMITED = 1 << 60  # nodes beside a reservation, where there is none

# --- decisions ---------------------------------------------------------------------------
NUM_DECISION_COLUMNS = 10  # time, activation, trunk, saturation, job, demand, stated, limit, waiting job, verdict
NOT_SATURATED, SATURATED_TRUNK, HONEST, TOO_COSTLY, USELESS, NOWHERE_ELSE, TAKEN_FIRST, TAKEN_AGAIN = range(8)

TOLERANCE = 1.0 + 1e-12
"""A trunk is saturated, and a demand too large, if it exceeds the capacity by more than rounding can."""


class ClusterJobs(CommonJobs):
    """What is known of each job on clusters: arrays of shape (jobs,)."""

    communication: FloatOfJob  # T_C on one cluster, s; the rest of the work is T_P
    bandwidth: FloatOfJob  # per-processor bandwidth b, Mbit/s
    stated: FloatOfJob  # what the scheduler takes it for; NaN if the job states nothing
    duration: FloatOfJob  # time that the whole job would take at the present saturation, s
    saturation: FloatOfJob  # the worst of its trunks, at least 1
    slowed: FloatOfJob  # time lost to saturated trunks, s
    slowed_nodes: FloatOfJob  # the same times nodes held, node-seconds
    home: IntOfJob  # cluster that the job was submitted to
    phase: IntOfJob  # IDLE, WORKS, RESTORES or SAVES
    spans: IntOfJob  # clusters that the current attempt holds nodes in
    underestimated: IntOfJob  # stated less than it needs, or was taken by the agent
    offences: IntOfJob  # times that the agent took it
    run_slot: IntOfJob  # its position in the list running
    refused_at: IntOfJob  # places when it last could not be placed; NEVER if it can never start
    co_allocated: IntOfJob  # starts over more than one cluster


TrunkRow = Annotated[Floats, Row("trunks")]
ClusterRow = Annotated[Ints, Row("clusters")]


class ClusterState(Common):
    """What a run on clusters changes, and its parameters."""

    job: ClusterJobs
    overhead_s: float  # of a checkpoint, termination, migration and restart, s
    believed_overhead_s: float  # what the agent takes it for, s
    cp_frac: float  # the most of a job's remaining time that the overhead may be
    agent_interval_s: float  # 0: the agent runs after recomputations only
    wake: float  # when the agent runs again, s
    mesh_share: float  # of the traffic
    saturated: float  # time during which some trunk was saturated, s
    most_saturated: float  # highest saturation of any trunk so far
    traffic: float  # integral of what all trunks carry, Mbit
    stays_home: int  # whether a job runs in its own cluster only
    spreads: int  # whether jobs may run over several clusters ...
    heeds_trunks: int  # ... and only if what is stated fits the trunks
    one_queue: int  # whether the queue discipline sees all queues as one
    minimum_cut: int  # whether partitions minimise the traffic between clusters
    agent: int  # whether one mends saturated trunks
    agent_asks: int  # whether it asks what jobs stated and what it costs, and takes none otherwise
    named: int  # whether it matters which nodes a job holds (failures, an event trace)
    stalls: int  # whether the failure of a trunk stalls jobs instead of killing them
    num_timers: int  # entries of the list of timers
    num_running: int  # entries of the list running
    num_spanning: int  # entries of the list spanning
    num_front: int  # checkpointed jobs at the front of the queue
    changed: int  # shares must be recomputed
    due: int  # shares were recomputed since the agent ran
    places: int  # raised whenever free nodes, trunks or believed demands change
    activations: int  # of the agent
    taken: int  # jobs that the agent took, times included
    co_allocations: int  # starts over more than one cluster
    elsewhere: int  # starts whole in another cluster than the job's own
    decisions_end: int  # rows in s.decisions
    telling: int  # whether the agent's decisions are recorded
    largest_cluster: int  # its nodes

    # by cluster
    capacity: TrunkRow  # Mbit/s
    trunk_demand: TrunkRow  # of the jobs that communicate, Mbit/s
    trunk_believed: TrunkRow  # what the scheduler believes that running jobs need, Mbit/s
    trial_believed: TrunkRow  # the same without a candidate of the agent
    shadow_time: TrunkRow  # reservation of the first job of a queue that had to wait (EASY), s
    cluster_nodes: ClusterRow  # nodes of the cluster
    free_here: ClusterRow  # nodes that are up and free
    trial_free: ClusterRow  # free if a candidate of the agent were gone
    first_node: ClusterRow  # index of its first node
    trunk_down: ClusterRow  # whether the trunk is down
    shadow_extra: ClusterRow  # nodes that are free beside the reservation at its time
    blocked: ClusterRow  # of this queue, a job waits that nobody may overtake (FCFS), or that has a reservation (EASY)
    parts_found: ClusterRow  # the place found for a job: nodes in each cluster
    edges: ClusterRow  # edges of its mesh that leave each cluster

    # lists: agenda of (jobs + nodes + K + 2,), whole numbers of (max(2 * jobs, nodes) + 2,)
    timer_time: AgendaRow  # timers, in no order
    timer_key: AgendaRow
    run_end: AgendaRow  # by slot: when the running job ends unless something happens
    down_until: AgendaRow  # by node, then by trunk; -inf while up
    release_time: AgendaRow  # scratch (EASY)
    release_nodes: AgendaRow
    queue: ListRow
    running: ListRow  # running jobs, in no order
    spanning: ListRow  # running jobs over more than one cluster, in the order of their starts
    owner: ListRow  # by node: the job that holds it, or FREE_NODE or DOWN_NODE

    parts: IntTable  # (jobs, K): nodes of the current attempt in each cluster
    demand: FloatTable  # (jobs, K): what it puts on each trunk, Mbit/s
    believed: FloatTable  # (jobs, K): what the scheduler believes that to be; 0 where nothing is stated
    partitions: IntTable  # (sizes + 1, 1 + 2 K): of a size, the value of places for which it holds, parts, edges
    cuts: FloatTable  # (2 (K + 1), sizes + 1): scratch of the least cut, and its first parts
    decisions: FloatTable  # (rows, NUM_DECISION_COLUMNS)


state_at = make_state_at(ClusterState)
"""In a kernel: the state of a table."""
