"""The agent that checkpoints, terminates, migrates and restarts jobs to relieve trunks (akshitha2011, II.D, II.E)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import place
from faultsweep.simcore.engine.clusters.running import begin_saving
from faultsweep.simcore.engine.clusters.shares import believe, end_at_rate, recompute, saturation_of
from faultsweep.simcore.engine.clusters.state import (
    HONEST,
    NOT_SATURATED,
    NOWHERE_ELSE,
    SATURATED_TRUNK,
    TAKEN_AGAIN,
    TAKEN_FIRST,
    TOLERANCE,
    TOO_COSTLY,
    UNLIMITED,
    USELESS,
    WORKS,
    ClusterState,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import LARGER_NEEDED, NOBODY


@kernel
def activate(s: ClusterState) -> None:
    """Run the agent: while a trunk is saturated and a job qualifies, take it off its trunks."""
    s.activations += 1
    s.due = 0
    s.wake = np.inf
    while True:
        trunk = _worst_trunk(s)
        saturation = saturation_of(s, trunk)
        if saturation <= TOLERANCE:
            _tell(s, trunk, -1, np.nan, -1, NOT_SATURATED)
            return
        _tell(s, trunk, -1, np.nan, -1, SATURATED_TRUNK)
        job = _candidate(s, trunk)
        if job < 0:
            if s.agent_interval_s > 0.0:
                s.wake = s.now + s.agent_interval_s
            return
        _take(s, job)
        recompute(s)
        s.due = 0


@inlined
def _worst_trunk(s: ClusterState) -> int:
    """Return the trunk with the highest saturation, of equals the first."""
    worst = 0
    for c in range(1, s.capacity.shape[0]):
        if saturation_of(s, c) > saturation_of(s, worst):
            worst = c
    return worst


@kernel
def _candidate(s: ClusterState, trunk: int) -> int:
    """Return the largest subscriber of a trunk that may be taken, of equals the first job; -1 if there is none."""
    last_demand, last_job = np.inf, -1
    while True:
        job, demand = -1, 0.0
        for at in range(s.num_spanning):
            other = s.spanning[at]
            wanted = s.demand[other, trunk]
            if s.job.phase[other] != WORKS or wanted <= 0.0:
                continue
            seen = wanted > last_demand or (wanted == last_demand and other <= last_job)
            if not seen and (wanted > demand or (wanted == demand and other < job)):
                job, demand = other, wanted
        if job < 0 or _examine(s, trunk, job):
            return job
        last_demand, last_job = demand, job


@inlined
def _examine(s: ClusterState, trunk: int, job: int) -> bool:
    """Tell whether the agent takes a job, and record why or why not."""
    limit = s.cp_frac * (end_at_rate(s, job) - s.now)
    waiting, verdict = -1, TAKEN_AGAIN if s.job.offences[job] > 0 else TAKEN_FIRST
    if s.job.offences[job] > 0 and s.job.size[job] > s.largest_cluster:
        verdict = NOWHERE_ELSE
    elif s.agent_asks == 1:
        if s.job.underestimated[job] == 0:
            verdict = HONEST
        elif not s.believed_overhead_s < limit:
            verdict = TOO_COSTLY
        else:
            waiting = _who_could_use(s, job)
            verdict = USELESS if waiting < 0 else verdict
    _tell(s, trunk, job, limit, waiting, verdict)
    return verdict >= TAKEN_FIRST


@kernel
def _who_could_use(s: ClusterState, job: int) -> int:
    """Return the first waiting job that could start with the nodes of a job and cannot without; -1 if there is none.

    Where nobody overtakes (FCFS) only the first job of each queue could. Reservations (EASY) are not asked.
    """
    freed = 0
    for c in range(s.capacity.shape[0]):
        s.trial_free[c] = s.free_here[c] + s.parts[job, c]
        freed += s.parts[job, c]
        s.shadow_extra[c] = UNLIMITED
    believe(s, job, s.trial_believed)
    s.places += 1
    seen = 0  # queues whose first job has been looked at, as bits
    found = -1
    for at in range(s.queue_head, s.queue_tail):
        waiting = s.queue[at]
        if s.reserves == NOBODY:
            queue = 1 << (0 if s.one_queue == 1 else s.job.home[waiting])
            if seen & queue:
                continue
            seen |= queue
        if s.job.size[waiting] <= s.free + freed and _only_with(s, waiting):
            found = waiting
            break
    s.places += 1
    return found


@inlined
def _only_with(s: ClusterState, waiting: int) -> bool:
    """Tell whether a waiting job could start with the nodes that a candidate would free, and not without."""
    if not place(s, waiting, s.trial_free, s.trial_believed):
        return False
    s.places += 1
    without = s.job.size[waiting] <= s.free and place(s, waiting, s.free_here, s.trunk_believed)
    s.places += 1
    return not without


@inlined
def _take(s: ClusterState, job: int) -> None:
    """Mark a job, take what it is seen to need for what it states, and let it save its state."""
    s.taken += 1
    s.job.offences[job] += 1
    s.job.underestimated[job] = 1
    s.job.stated[job] = s.job.bandwidth[job]
    begin_saving(s, job)
    believe(s, -1, s.trunk_believed)


@kernel
def _tell(s: ClusterState, trunk: int, job: int, limit: float, waiting: int, verdict: int) -> None:
    """Record a step of the agent."""
    if s.telling == 0:
        return
    at = s.decisions_end
    if at == s.decisions.shape[0]:
        s.no_room = LARGER_NEEDED
        return
    s.decisions[at, 0] = s.now
    s.decisions[at, 1] = s.activations
    s.decisions[at, 2] = trunk
    s.decisions[at, 3] = saturation_of(s, trunk)
    s.decisions[at, 4] = job
    s.decisions[at, 5] = s.demand[job, trunk] if job >= 0 else np.nan
    s.decisions[at, 6] = s.job.stated[job] if job >= 0 else np.nan
    s.decisions[at, 7] = limit
    s.decisions[at, 8] = waiting
    s.decisions[at, 9] = verdict
    s.decisions_end = at + 1
