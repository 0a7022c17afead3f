"""Where a waiting job could start now: at home, whole in another cluster, or over several clusters."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.state import (
    BANDWIDTH_AWARE,
    BELIEVED,
    CAPACITY,
    EASY,
    EDGES,
    FREE_HERE,
    HOME,
    LOCAL_ONLY,
    MESH_SHARE,
    META,
    MIGRATION_ONLY,
    MINIMUM_CUT,
    OFFENCES,
    OVERHEAD_S,
    PARTS,
    PLACES,
    SHADOW_EXTRA,
    SHADOW_TIME,
    STATED,
    TOLERANCE,
    TRUNK_DOWN,
)
from faultsweep.simcore.engine.clusters.traffic import demand_of, find_edges, leaving_edges, mesh_columns
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    CHECKPOINTS,
    ESTIMATE,
    NOW,
    RESTART_COST,
    RESTARTS,
    SAVED,
    SCHEDULER,
    SIZE,
)


@inlined
def pause_of(s, job):
    """Return how long a job restores its state at its next start, s: half of the overhead, and the restart cost."""
    pause = 0.5 * s.f[OVERHEAD_S] if s.job_i[CHECKPOINTS, job] > 0 else 0.0
    return pause + (s.f[RESTART_COST] if s.job_i[RESTARTS, job] > 0 else 0.0)


@inlined
def expected_end_if_started(s, job):
    """Return when the scheduler expects a job to end that starts now, s."""
    left = max(0.0, s.job_f[ESTIMATE, job] - s.job_f[SAVED, job])
    return s.f[NOW] + pause_of(s, job) + left


@inlined
def may_span(s, job):
    """Tell whether a job may be co-allocated: the agent has not forbidden it, and what must be known is stated."""
    if s.i[META] <= MIGRATION_ONLY or s.job_i[OFFENCES, job] >= 2:
        return False
    return s.i[META] != BANDWIDTH_AWARE or s.job_f[STATED, job] == s.job_f[STATED, job]


@kernel
def place(s, job, free_row, believed_row):
    """Find a place for a job with the free nodes of ``free_row``; tell whether there is one, and leave it in PARTS.

    At home; else whole where most nodes are free (of equals the first cluster); else over several clusters. Under EASY
    no place may delay the job with a reservation; under bandwidth-aware co-allocation what the scheduler believes of
    the demands (``believed_row``) fits the trunks.
    """
    size, home = s.job_i[SIZE, job], s.job_i[HOME, job]
    if s.clusters[free_row, home] >= size and _may_take(s, job, home, size):
        return _take_whole(s, home, size)
    if s.i[META] == LOCAL_ONLY:
        return False
    best, most = -1, size - 1
    for c in range(s.clusters.shape[1]):
        if c != home and s.clusters[free_row, c] > most and _may_take(s, job, c, size):
            best, most = c, s.clusters[free_row, c]
    if best >= 0:
        return _take_whole(s, best, size)
    if not may_span(s, job) or not _partition(s, size, free_row):
        return False
    return _fits(s, job, believed_row)


@inlined
def _take_whole(s, cluster, size):
    for c in range(s.clusters.shape[1]):
        s.clusters[PARTS, c] = 0
        s.clusters[EDGES, c] = 0
    s.clusters[PARTS, cluster] = size
    return True


@inlined
def _may_take(s, job, cluster, nodes):
    """Tell whether a job may take nodes of a cluster without delaying the job that has a reservation there (EASY)."""
    if s.i[SCHEDULER] != EASY or nodes <= s.clusters[SHADOW_EXTRA, cluster]:
        return True
    return expected_end_if_started(s, job) <= s.trunks[SHADOW_TIME, cluster]


@kernel
def _fits(s, job, believed_row):
    """Tell whether the partition in PARTS delays no reservation and, where that is asked for, fits the trunks."""
    size = s.job_i[SIZE, job]
    for c in range(s.clusters.shape[1]):
        part = s.clusters[PARTS, c]
        if part == 0:
            continue
        if part == size or not _may_take(s, job, c, part):
            return False
        if s.i[META] == BANDWIDTH_AWARE:
            demand = demand_of(s, s.job_f[STATED, job], size, part, s.clusters[EDGES, c])
            if s.trunks[believed_row, c] + demand > s.trunks[CAPACITY, c] * TOLERANCE:
                return False
    return True


@kernel
def _partition(s, size, free_row):
    """Divide a job over the clusters whose trunks are up; tell whether it fits, and leave the nodes in PARTS.

    The partition of a size is kept until free nodes or trunks change.
    """
    clusters = s.clusters.shape[1]
    if s.partitions[size, 0] != s.i[PLACES]:
        found = _cut_least(s, size, free_row) if s.i[MINIMUM_CUT] == 1 else _fill_largest(s, size, free_row)
        if found:
            find_edges(s, size)
        else:
            s.clusters[PARTS, 0] = -1
        s.partitions[size, 0] = s.i[PLACES]
        for c in range(clusters):
            s.partitions[size, 1 + c] = s.clusters[PARTS, c]
            s.partitions[size, 1 + clusters + c] = s.clusters[EDGES, c]
    for c in range(clusters):
        s.clusters[PARTS, c] = s.partitions[size, 1 + c]
        s.clusters[EDGES, c] = s.partitions[size, 1 + clusters + c]
    return s.clusters[PARTS, 0] >= 0


@inlined
def _open_nodes(s, cluster, free_row):
    """Return the nodes of a cluster that a job over several clusters could have."""
    return 0 if s.clusters[TRUNK_DOWN, cluster] == 1 else s.clusters[free_row, cluster]


@inlined
def _fill_largest(s, size, free_row):
    """Take the cluster with most free nodes whole, then the next; of equals the first."""
    left = size
    for c in range(s.clusters.shape[1]):
        s.clusters[PARTS, c] = 0
    while left > 0:
        best, most = -1, 0
        for c in range(s.clusters.shape[1]):
            if s.clusters[PARTS, c] == 0 and _open_nodes(s, c, free_row) > most:
                best, most = c, _open_nodes(s, c, free_row)
        if best < 0:
            return False
        s.clusters[PARTS, best] = min(left, most)
        left -= s.clusters[PARTS, best]
    return True


@inlined
def _cut_least(s, size, free_row):
    """Minimise the traffic on all trunks together; of equal partitions the one with most nodes in the first clusters.

    Dynamic programming from the last cluster to the first: ``cuts[c, p]`` is the least traffic of clusters c and up if
    they take the ranks from p on, ``cuts[K + 1 + c, p]`` the part of cluster c in it.
    """
    clusters = s.clusters.shape[1]
    columns = mesh_columns(size)
    for rank in range(size):
        s.cuts[clusters, rank] = np.inf
    s.cuts[clusters, size] = 0.0
    for back in range(clusters):
        c = clusters - 1 - back
        for rank in range(size + 1):
            _cut_from(s, c, rank, size, columns, min(size - rank, _open_nodes(s, c, free_row)))
    if s.cuts[0, 0] == np.inf:
        return False
    rank = 0
    for c in range(clusters):
        s.clusters[PARTS, c] = int(s.cuts[clusters + 1 + c, rank])
        rank += s.clusters[PARTS, c]
    return True


@kernel
def _cut_from(s, cluster, rank, size, columns, most):
    """Fill one entry of the table of cuts: the best part of a cluster that begins at a rank."""
    clusters = s.clusters.shape[1]
    mesh = s.f[MESH_SHARE]
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
def places_now(s, job):
    """Tell whether a job could start now, and leave its place in PARTS."""
    return place(s, job, FREE_HERE, BELIEVED)
