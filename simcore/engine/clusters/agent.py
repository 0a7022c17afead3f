"""The agent that checkpoints, terminates, migrates and restarts jobs to relieve trunks (akshitha2011, II.D, II.E)."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.placing import place
from faultsweep.simcore.engine.clusters.running import begin_saving
from faultsweep.simcore.engine.clusters.shares import believe, end_at_rate, recompute, saturation_of
from faultsweep.simcore.engine.clusters.state import (
    ACTIVATIONS,
    AGENT,
    AGENT_INTERVAL_S,
    BANDWIDTH,
    BELIEVED,
    BELIEVED_OVERHEAD_S,
    CP_FRAC,
    DECISIONS_END,
    DUE,
    FREE_HERE,
    HOME,
    HONEST,
    IN_ORDER,
    LARGEST_CLUSTER,
    NAIVE_AGENT,
    NOT_SATURATED,
    NOWHERE_ELSE,
    NUM_SPANNING,
    OFFENCES,
    ONE_QUEUE,
    PHASE,
    PLACES,
    QUEUE,
    SATURATED_TRUNK,
    SHADOW_EXTRA,
    SPANNING,
    STATED,
    TAKEN,
    TAKEN_AGAIN,
    TAKEN_FIRST,
    TELLING,
    TOLERANCE,
    TOO_COSTLY,
    TRIAL_BELIEVED,
    TRIAL_FREE,
    UNDERESTIMATED,
    UNLIMITED,
    USELESS,
    WAKE,
    WORKS,
)
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import (
    FREE,
    LARGER_NEEDED,
    NO_ROOM,
    NOW,
    QUEUE_HEAD,
    QUEUE_TAIL,
    SCHEDULER,
    SIZE,
)


@kernel
def activate(s):
    """Run the agent: while a trunk is saturated and a job qualifies, take it off its trunks."""
    s.i[ACTIVATIONS] += 1
    s.i[DUE] = 0
    s.f[WAKE] = np.inf
    while True:
        trunk = _worst_trunk(s)
        saturation = saturation_of(s, trunk)
        if saturation <= TOLERANCE:
            _tell(s, trunk, -1, np.nan, -1, NOT_SATURATED)
            return
        _tell(s, trunk, -1, np.nan, -1, SATURATED_TRUNK)
        job = _candidate(s, trunk)
        if job < 0:
            if s.f[AGENT_INTERVAL_S] > 0.0:
                s.f[WAKE] = s.f[NOW] + s.f[AGENT_INTERVAL_S]
            return
        _take(s, job)
        recompute(s)
        s.i[DUE] = 0


@inlined
def _worst_trunk(s):
    """Return the trunk with the highest saturation, of equals the first."""
    worst = 0
    for c in range(1, s.trunks.shape[1]):
        if saturation_of(s, c) > saturation_of(s, worst):
            worst = c
    return worst


@kernel
def _candidate(s, trunk):
    """Return the largest subscriber of a trunk that may be taken, of equals the first job; -1 if there is none."""
    last_demand, last_job = np.inf, -1
    while True:
        job, demand = -1, 0.0
        for at in range(s.i[NUM_SPANNING]):
            other = s.lists[SPANNING, at]
            wanted = s.demand[other, trunk]
            if s.job_i[PHASE, other] != WORKS or wanted <= 0.0:
                continue
            seen = wanted > last_demand or (wanted == last_demand and other <= last_job)
            if not seen and (wanted > demand or (wanted == demand and other < job)):
                job, demand = other, wanted
        if job < 0 or _examine(s, trunk, job):
            return job
        last_demand, last_job = demand, job


@inlined
def _examine(s, trunk, job):
    """Tell whether the agent takes a job, and record why or why not."""
    limit = s.f[CP_FRAC] * (end_at_rate(s, job) - s.f[NOW])
    waiting, verdict = -1, TAKEN_AGAIN if s.job_i[OFFENCES, job] > 0 else TAKEN_FIRST
    if s.job_i[OFFENCES, job] > 0 and s.job_i[SIZE, job] > s.i[LARGEST_CLUSTER]:
        verdict = NOWHERE_ELSE
    elif s.i[AGENT] != NAIVE_AGENT:
        if s.job_i[UNDERESTIMATED, job] == 0:
            verdict = HONEST
        elif not s.f[BELIEVED_OVERHEAD_S] < limit:
            verdict = TOO_COSTLY
        else:
            waiting = _who_could_use(s, job)
            verdict = USELESS if waiting < 0 else verdict
    _tell(s, trunk, job, limit, waiting, verdict)
    return verdict >= TAKEN_FIRST


@kernel
def _who_could_use(s, job):
    """Return the first waiting job that could start with the nodes of a job and cannot without; -1 if there is none.

    Where nobody overtakes (FCFS) only the first job of each queue could. Reservations (EASY) are not asked.
    """
    freed = 0
    for c in range(s.clusters.shape[1]):
        s.clusters[TRIAL_FREE, c] = s.clusters[FREE_HERE, c] + s.parts[job, c]
        freed += s.parts[job, c]
        s.clusters[SHADOW_EXTRA, c] = UNLIMITED
    believe(s, job, TRIAL_BELIEVED)
    s.i[PLACES] += 1
    seen = 0  # queues whose first job has been looked at, as bits
    found = -1
    for at in range(s.i[QUEUE_HEAD], s.i[QUEUE_TAIL]):
        waiting = s.lists[QUEUE, at]
        if s.i[SCHEDULER] == IN_ORDER:
            queue = 1 << (0 if s.i[ONE_QUEUE] == 1 else s.job_i[HOME, waiting])
            if seen & queue:
                continue
            seen |= queue
        if s.job_i[SIZE, waiting] <= s.i[FREE] + freed and _only_with(s, waiting):
            found = waiting
            break
    s.i[PLACES] += 1
    return found


@inlined
def _only_with(s, waiting):
    """Tell whether a waiting job could start with the nodes that a candidate would free, and not without."""
    if not place(s, waiting, TRIAL_FREE, TRIAL_BELIEVED):
        return False
    s.i[PLACES] += 1
    without = s.job_i[SIZE, waiting] <= s.i[FREE] and place(s, waiting, FREE_HERE, BELIEVED)
    s.i[PLACES] += 1
    return not without


@inlined
def _take(s, job):
    """Mark a job, take what it is seen to need for what it states, and let it save its state."""
    s.i[TAKEN] += 1
    s.job_i[OFFENCES, job] += 1
    s.job_i[UNDERESTIMATED, job] = 1
    s.job_f[STATED, job] = s.job_f[BANDWIDTH, job]
    begin_saving(s, job)
    believe(s, -1, BELIEVED)


@kernel
def _tell(s, trunk, job, limit, waiting, verdict):
    """Record a step of the agent."""
    if s.i[TELLING] == 0:
        return
    at = s.i[DECISIONS_END]
    if at == s.decisions.shape[0]:
        s.i[NO_ROOM] = LARGER_NEEDED
        return
    s.decisions[at, 0] = s.f[NOW]
    s.decisions[at, 1] = s.i[ACTIVATIONS]
    s.decisions[at, 2] = trunk
    s.decisions[at, 3] = saturation_of(s, trunk)
    s.decisions[at, 4] = job
    s.decisions[at, 5] = s.demand[job, trunk] if job >= 0 else np.nan
    s.decisions[at, 6] = s.job_f[STATED, job] if job >= 0 else np.nan
    s.decisions[at, 7] = limit
    s.decisions[at, 8] = waiting
    s.decisions[at, 9] = verdict
    s.i[DECISIONS_END] = at + 1
