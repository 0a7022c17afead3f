"""Where a waiting job could start now: at home, whole in another cluster, or over several clusters."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.state import (
    NEVER,
    TOLERANCE,
    UNLIMITED,
    ClusterRow,
    ClusterState,
    TrunkRow,
)
from faultsweep.simcore.engine.clusters.traffic import demand_of, find_edges, leaving_edges, mesh_columns
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import HEAD_JOB


@inlined
def pause_of(s: ClusterState, job: int) -> float:
    """Return how long a job restores its state at its next start, s: half of the overhead, and the restart cost."""
    pause = 0.5 * s.overhead_s if s.job.checkpoints[job] > 0 else 0.0
    return pause + (s.restart_cost if s.job.restarts[job] > 0 else 0.0)


@inlined
def expected_end_if_started(s: ClusterState, job: int) -> float:
    """Return when the scheduler expects a job to end that starts now, s."""
    left = max(0.0, s.job.estimate[job] - s.job.saved[job])
    return s.now + pause_of(s, job) + left


@inlined
def may_span(s: ClusterState, job: int) -> bool:
    """Tell whether a job may be co-allocated: the agent has not forbidden it, and what must be known is stated."""
    if s.spreads == 0 or s.job.offences[job] >= 2:
        return False
    return s.heeds_trunks == 0 or s.job.stated[job] == s.job.stated[job]


@kernel
def place(s: ClusterState, job: int, free: ClusterRow, believed: TrunkRow) -> bool:
    """Find a place for a job with the free nodes of ``free``; tell whether there is one, and leave it in PARTS.

    At home; else whole where most nodes are free (of equals the first cluster); else over several clusters. Under EASY
    no place may delay the job with a reservation; under bandwidth-aware co-allocation what the scheduler believes of
    the demands (``believed``) fits the trunks.
    """
    size, home = s.job.size[job], s.job.home[job]
    if free[home] >= size and _may_take(s, job, home, size):
        return _take_whole(s, home, size)
    if s.stays_home == 1:
        return False
    best, most = -1, size - 1
    for c in range(s.capacity.shape[0]):
        if c != home and free[c] > most and _may_take(s, job, c, size):
            best, most = c, free[c]
    if best >= 0:
        return _take_whole(s, best, size)
    if not may_span(s, job) or not _partition(s, size, free):
        return False
    return _fits(s, job, believed)


@inlined
def _take_whole(s: ClusterState, cluster: int, size: int) -> bool:
    for c in range(s.capacity.shape[0]):
        s.parts_found[c] = 0
        s.edges[c] = 0
    s.parts_found[cluster] = size
    return True


@inlined
def _may_take(s: ClusterState, job: int, cluster: int, nodes: int) -> bool:
    """Tell whether a job may take nodes of a cluster without delaying the job that has a reservation there (EASY)."""
    if s.reserves != HEAD_JOB or nodes <= s.shadow_extra[cluster]:
        return True
    return expected_end_if_started(s, job) <= s.shadow_time[cluster]


@kernel
def _fits(s: ClusterState, job: int, believed: TrunkRow) -> bool:
    """Tell whether the partition in PARTS delays no reservation and, where that is asked for, fits the trunks."""
    size = s.job.size[job]
    for c in range(s.capacity.shape[0]):
        part = s.parts_found[c]
        if part == 0:
            continue
        if part == size or not _may_take(s, job, c, part):
            return False
        if s.heeds_trunks == 1:
            demand = demand_of(s, s.job.stated[job], size, part, s.edges[c])
            if believed[c] + demand > s.capacity[c] * TOLERANCE:
                return False
    return True


@kernel
def _partition(s: ClusterState, size: int, free: ClusterRow) -> bool:
    """Divide a job over the clusters whose trunks are up; tell whether it fits, and leave the nodes in PARTS.

    The partition of a size is kept until free nodes or trunks change.
    """
    clusters = s.capacity.shape[0]
    if s.partitions[size, 0] != s.places:
        found = _cut_least(s, size, free) if s.minimum_cut == 1 else _fill_largest(s, size, free)
        if found:
            find_edges(s, size)
        else:
            s.parts_found[0] = -1
        s.partitions[size, 0] = s.places
        for c in range(clusters):
            s.partitions[size, 1 + c] = s.parts_found[c]
            s.partitions[size, 1 + clusters + c] = s.edges[c]
    for c in range(clusters):
        s.parts_found[c] = s.partitions[size, 1 + c]
        s.edges[c] = s.partitions[size, 1 + clusters + c]
    return s.parts_found[0] >= 0


@inlined
def _open_nodes(s: ClusterState, cluster: int, free: ClusterRow) -> int:
    """Return the nodes of a cluster that a job over several clusters could have."""
    return 0 if s.trunk_down[cluster] == 1 else free[cluster]


@inlined
def _fill_largest(s: ClusterState, size: int, free: ClusterRow) -> bool:
    """Take the cluster with most free nodes whole, then the next; of equals the first."""
    left = size
    for c in range(s.capacity.shape[0]):
        s.parts_found[c] = 0
    while left > 0:
        best, most = -1, 0
        for c in range(s.capacity.shape[0]):
            if s.parts_found[c] == 0 and _open_nodes(s, c, free) > most:
                best, most = c, _open_nodes(s, c, free)
        if best < 0:
            return False
        s.parts_found[best] = min(left, most)
        left -= s.parts_found[best]
    return True


@inlined
def _cut_least(s: ClusterState, size: int, free: ClusterRow) -> bool:
    """Minimise the traffic on all trunks together; of equal partitions the one with most nodes in the first clusters.

    Dynamic programming from the last cluster to the first: ``cuts[c, p]`` is the least traffic of clusters c and up if
    they take the ranks from p on, ``cuts[K + 1 + c, p]`` the part of cluster c in it.
    """
    clusters = s.capacity.shape[0]
    columns = mesh_columns(size)
    for rank in range(size):
        s.cuts[clusters, rank] = np.inf
    s.cuts[clusters, size] = 0.0
    for back in range(clusters):
        c = clusters - 1 - back
        for rank in range(size + 1):
            _cut_from(s, c, rank, size, columns, min(size - rank, _open_nodes(s, c, free)))
    if s.cuts[0, 0] == np.inf:
        return False
    rank = 0
    for c in range(clusters):
        s.parts_found[c] = int(s.cuts[clusters + 1 + c, rank])
        rank += s.parts_found[c]
    return True


@kernel
def _cut_from(s: ClusterState, cluster: int, rank: int, size: int, columns: int, most: int) -> None:
    """Fill one entry of the table of cuts: the best part of a cluster that begins at a rank."""
    clusters = s.capacity.shape[0]
    mesh = s.mesh_share
    best, best_part = np.inf, 0
    for less in range(most + 1):
        part = most - less
        cut = s.cuts[cluster + 1, rank + part]
        if 0 < part < size:
            edges = leaving_edges(size, columns, rank, rank + part)
            cut += (1.0 - mesh) * (part * (size - part)) / (size - 1) + mesh / 4.0 * edges
        if cut < best - 1e-9:
            best, best_part = cut, part
    s.cuts[cluster, rank] = best
    s.cuts[clusters + 1 + cluster, rank] = best_part


@inlined
def places_now(s: ClusterState, job: int) -> bool:
    """Tell whether a job could start now, and leave its place in PARTS."""
    return place(s, job, s.free_here, s.trunk_believed)


@kernel
def mark_impossible(s: ClusterState, jobs: int) -> int:
    """Mark the jobs that could not start even if nothing ran and all nodes were up; return how many there are.

    Asked of all ``jobs`` before the run; of those that wait (``jobs`` = 0) while nothing runs: what the agent has found
    out of a job is for good. While a trunk is down nothing is said.
    """
    for c in range(s.capacity.shape[0]):
        if s.trunk_down[c] == 1:
            return 0
        s.shadow_extra[c] = UNLIMITED
        s.trial_believed[c] = 0.0
    first, end = (0, jobs) if jobs > 0 else (s.queue_head, s.queue_tail)
    impossible = 0
    s.places += 1
    for at in range(first, end):
        job = at if jobs > 0 else s.queue[at]
        if not place(s, job, s.cluster_nodes, s.trial_believed):
            s.job.refused_at[job] = NEVER
            impossible += 1
    s.places += 1
    return impossible
