"""The event loop on clusters: find the next instant, apply its events, recompute shares, run agent and scheduler."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.clusters.agent import activate
from faultsweep.simcore.engine.clusters.passes import schedule
from faultsweep.simcore.engine.clusters.running import (
    add_timer,
    cancel_timer,
    drop_timer,
    end_saving,
    enqueue_at,
    finish,
    first_timer,
    kill,
    resume,
    trace_node,
    trace_row,
)
from faultsweep.simcore.engine.clusters.shares import next_end, recompute, saturation_of
from faultsweep.simcore.engine.clusters.state import (
    AGENT,
    CAPACITY,
    CHANGED,
    DECISIONS_END,
    DEMAND,
    DOWN_NODE,
    DOWN_UNTIL,
    DUE,
    FIRST_NODE,
    FREE_HERE,
    FREE_NODE,
    MOST_SATURATED,
    NO_AGENT,
    NUM_SPANNING,
    OWNER,
    PHASE,
    PLACES,
    RUN_END,
    RUNNING,
    SATURATED,
    SAVES,
    SPANNING,
    STALLS,
    TELLING,
    TIMER_KEY,
    TIMER_TIME,
    TOLERANCE,
    TRAFFIC,
    TRUNK_DOWN,
    WAKE,
    ClusterState,
    state_at,
)
from faultsweep.simcore.engine.jit import entry_kernel, inlined, kernel
from faultsweep.simcore.engine.state import (
    ALL_DONE,
    ARRIVE_EVENT,
    BROKEN,
    CHECKPOINT_TIMER,
    CONTINUE,
    DOWN,
    DRAWN_UNTIL,
    END_OF_TIMERS,
    FAIL_DOWN,
    FAIL_EVENT,
    FAIL_NODE,
    FAIL_TIME,
    FAILURES,
    FINISHED,
    FREE,
    HELD,
    HITS,
    HORIZON,
    IDLE_LOST,
    INVALID,
    LATEST,
    MAX_RESTARTS,
    MOST_WITHOUT_JOB,
    NEED_FAILURES,
    NEED_TRACE,
    NEXT_ARRIVAL,
    NEXT_FAILURE,
    NO_PROGRESS,
    NO_ROOM,
    NO_SPACE,
    NODES,
    NOW,
    NUM_DOWN,
    NUM_TIMERS,
    PASSES,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    REPAIR_EVENT,
    REPAIR_TIMER,
    RESTARTS,
    STALLED,
    STUCK,
    SUBMIT,
    TIMER_STRIDE,
    TOO_LATE,
    TRACE_END,
    TRACE_HEAD,
    TRACING,
    TRUNCATED,
    UNUSED,
    WITHOUT_JOB,
)
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS, WORK_UNTIL_LOOK, clock_ns, most_events


def advance_clusters(state: ClusterState, budget: int) -> int:
    """Run up to ``budget`` instants, for about RETURN_AFTER_S, and return why it stopped: a code of state.py.

    The state is consistent whenever it returns, so the caller may look at it, empty the traces, and call again.
    """
    return int(_advance_clusters(state.handle, budget))


@entry_kernel
def _advance_clusters(handle, budget):
    s = state_at(handle)
    jobs = s.job_f.shape[1]
    most = most_events(jobs, s.i[NODES] + s.trunks.shape[1])
    until, work = clock_ns() + RETURN_AFTER_NS, 0
    for _ in range(budget):
        if s.i[FINISHED] == jobs:
            return ALL_DONE
        time = _next_time(s)
        if time == np.inf:
            return NEED_FAILURES if s.f[DRAWN_UNTIL] < np.inf else STUCK
        if min(time, s.f[HORIZON]) >= s.f[DRAWN_UNTIL]:
            return NEED_FAILURES
        if time > s.f[HORIZON]:
            return TRUNCATED
        if abs(time) > s.f[LATEST]:
            return TOO_LATE
        if not _traces_have_room(s):
            return NEED_TRACE
        s.i[STALLED] = 1 if time > s.f[NOW] else s.i[STALLED] + 1
        s.i[WITHOUT_JOB] += 1
        _integrate(s, time)
        code = _apply_instant(s, most)
        if s.i[STALLED] <= most and code == CONTINUE:
            _decide(s, most)
        if s.i[NO_ROOM] != 0:
            return INVALID if s.i[NO_ROOM] == BROKEN else NO_SPACE
        if s.i[STALLED] > most or s.i[WITHOUT_JOB] > s.i[MOST_WITHOUT_JOB]:
            return NO_PROGRESS
        if code != CONTINUE:
            return code
        work += 1 + s.trunks.shape[1] * (s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD]) + (s.i[NODES] >> 8)
        if work >= WORK_UNTIL_LOOK:
            work = 0
            if clock_ns() >= until:
                break
    return ALL_DONE if s.i[FINISHED] == jobs else CONTINUE


@inlined
def _next_time(s):
    """Return the time of the next event, s; infinity if there is none."""
    time = s.f[WAKE]
    if s.i[NEXT_ARRIVAL] < s.job_f.shape[1]:
        time = min(time, s.job_f[SUBMIT, s.i[NEXT_ARRIVAL]])
    slot = next_end(s)
    if slot >= 0:
        time = min(time, s.agenda[RUN_END, slot])
    timer = first_timer(s)
    if timer >= 0:
        time = min(time, s.agenda[TIMER_TIME, timer])
    if s.i[NEXT_FAILURE] < s.failures.shape[1]:
        time = min(time, s.failures[FAIL_TIME, s.i[NEXT_FAILURE]])
    return time


@inlined
def _traces_have_room(s):
    """Tell whether the buffers hold what one instant can be expected to produce; s.i[NO_ROOM] tells if not."""
    if s.i[TELLING] == 1 and s.i[DECISIONS_END] * 2 > s.decisions.shape[0]:
        return False
    if s.i[TRACING] == 0:
        return True
    coming = (s.job_f.shape[1] - s.i[NEXT_ARRIVAL]) + 3 * (s.failures.shape[1] - s.i[NEXT_FAILURE])
    return s.trace.shape[0] - s.i[TRACE_END] >= (TRACE_HEAD + 1) * (24 * s.i[NODES] + coming)


@inlined
def _integrate(s, time):
    """Advance the clock, the capacity integrals (krevat2003 eq. 4.2) and those of the trunks."""
    span = time - s.f[NOW]
    s.f[NOW] = time
    if span <= 0.0 or s.i[NEXT_ARRIVAL] == 0:
        return
    free, queued = s.i[FREE], s.i[QUEUED]
    s.f[UNUSED] += span * max(0, free - queued)
    s.f[IDLE_LOST] += span * min(free, queued)
    s.f[DOWN] += span * s.i[NUM_DOWN]
    s.f[HELD] += span * (s.i[NODES] - free - s.i[NUM_DOWN])
    if s.i[NUM_SPANNING] > 0:
        _integrate_trunks(s, span)


@inlined
def _integrate_trunks(s, span):
    """Integrate the demand on trunks, and note how long and how much any was saturated."""
    worst = 0.0
    for c in range(s.trunks.shape[1]):
        worst = max(worst, saturation_of(s, c))
        s.f[TRAFFIC] += span * min(s.trunks[DEMAND, c], s.trunks[CAPACITY, c])
    if worst > TOLERANCE:
        s.f[SATURATED] += span
    s.f[MOST_SATURATED] = max(s.f[MOST_SATURATED], worst)


@inlined
def _apply_instant(s, most):
    """Apply all events of this instant in the order of kinds; it breaks off among the timers after ``most`` events."""
    now = s.f[NOW]
    while True:
        slot = next_end(s)
        if slot < 0 or s.agenda[RUN_END, slot] > now:
            break
        finish(s, s.lists[RUNNING, slot])
    _apply_timers(s, (CHECKPOINT_TIMER + 1) * TIMER_STRIDE, most)
    code = _apply_failures(s)
    _apply_timers(s, END_OF_TIMERS, most)
    while s.i[NEXT_ARRIVAL] < s.job_f.shape[1] and s.job_f[SUBMIT, s.i[NEXT_ARRIVAL]] == now:
        job = s.i[NEXT_ARRIVAL]
        s.i[NEXT_ARRIVAL] = job + 1
        enqueue_at(s, job, s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD])
        if s.i[TRACING] == 1:
            trace_row(s, ARRIVE_EVENT, job)
    return code


@kernel
def _apply_timers(s, end_key, most):
    """Apply the timers of this instant whose keys are below one."""
    while s.i[NUM_TIMERS] > 0 and s.i[STALLED] <= most:
        at = first_timer(s)
        key = s.agenda[TIMER_KEY, at]
        if s.agenda[TIMER_TIME, at] > s.f[NOW] or key >= end_key:
            return
        drop_timer(s, at)
        s.i[STALLED] += 1
        kind, index = int(key) // TIMER_STRIDE, int(key) % TIMER_STRIDE
        if kind == CHECKPOINT_TIMER:
            end_saving(s, index)
        elif kind == REPAIR_TIMER:
            _repair(s, index)
        else:
            resume(s, index)


@kernel
def _decide(s, most):
    """Recompute shares, run the agent and the scheduler, and again while starts have changed the shares."""
    while s.i[STALLED] <= most:
        if s.i[CHANGED] == 1:
            recompute(s)
        if s.i[AGENT] != NO_AGENT and (s.i[DUE] == 1 or s.f[WAKE] <= s.f[NOW]):
            activate(s)
            _apply_timers(s, (CHECKPOINT_TIMER + 1) * TIMER_STRIDE, most)  # checkpoints that cost nothing
        s.i[PASSES] += 1
        s.i[STALLED] += 1
        schedule(s)
        if s.i[CHANGED] == 0:
            return


@kernel
def _apply_failures(s):
    """Apply the failures of this instant, of nodes and of trunks; TRUNCATED if a job has failed too often."""
    code = CONTINUE
    first = s.i[NEXT_FAILURE]
    while s.i[NEXT_FAILURE] < s.failures.shape[1] and s.failures[FAIL_TIME, s.i[NEXT_FAILURE]] == s.f[NOW]:
        at = s.i[NEXT_FAILURE]
        s.i[NEXT_FAILURE] = at + 1
        s.i[FAILURES] += 1
        node = int(s.failures[FAIL_NODE, at])
        if s.i[TRACING] == 1:
            trace_node(s, FAIL_EVENT, node)
        worst = _fail_node(s, node) if node < s.i[NODES] else _fail_trunk(s, node - s.i[NODES])
        if worst > s.i[MAX_RESTARTS]:
            code = TRUNCATED
        _take_down(s, node, s.failures[FAIL_DOWN, at])
    if s.i[TRACING] == 1:
        _trace_transient(s, first)
    return code


@inlined
def _fail_node(s, node):
    """Kill the job on a node; return its restarts."""
    victim = s.lists[OWNER, node]
    if victim < 0:
        return 0
    s.i[HITS] += 1
    kill(s, victim)
    return s.job_i[RESTARTS, victim]


@kernel
def _fail_trunk(s, trunk):
    """Kill the jobs that need a trunk, unless they wait for its repair; return the most restarts of one."""
    worst = 0
    s.i[CHANGED] = 1
    if s.i[STALLS] == 1:
        return worst
    at = 0
    hit = False
    while at < s.i[NUM_SPANNING]:
        job = s.lists[SPANNING, at]
        if s.job_i[PHASE, job] != SAVES and s.demand[job, trunk] > 0.0:
            kill(s, job)
            worst = max(worst, s.job_i[RESTARTS, job])
            hit = True
        else:
            at += 1
    if hit:
        s.i[HITS] += 1
    return worst


@kernel
def _take_down(s, node, down):
    """Take a node or a trunk down for ``down`` seconds; what is down already stays down to the later end."""
    until = s.f[NOW] + down
    if s.agenda[DOWN_UNTIL, node] > -np.inf:
        if until > s.agenda[DOWN_UNTIL, node]:
            cancel_timer(s, REPAIR_TIMER * TIMER_STRIDE + node)
            s.agenda[DOWN_UNTIL, node] = until
            add_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
        return
    if down <= 0.0:
        return
    s.agenda[DOWN_UNTIL, node] = until
    add_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
    _set_down(s, node, 1)


@kernel
def _set_down(s, node, down):
    """Count a node, or a trunk, as down (1) or up (0)."""
    s.i[PLACES] += 1
    if node >= s.i[NODES]:
        s.clusters[TRUNK_DOWN, node - s.i[NODES]] = down
        s.i[CHANGED] = 1
        return
    cluster = 0
    while cluster + 1 < s.clusters.shape[1] and s.clusters[FIRST_NODE, cluster + 1] <= node:
        cluster += 1
    s.lists[OWNER, node] = DOWN_NODE if down == 1 else FREE_NODE
    s.i[NUM_DOWN] += 2 * down - 1
    s.i[FREE] -= 2 * down - 1
    s.clusters[FREE_HERE, cluster] -= 2 * down - 1


@kernel
def _repair(s, node):
    """Bring a node or a trunk up again."""
    s.agenda[DOWN_UNTIL, node] = -np.inf
    _set_down(s, node, 0)
    if s.i[TRACING] == 1:
        trace_node(s, REPAIR_EVENT, node)


@kernel
def _trace_transient(s, first):
    """Trace, once each, the repairs of what failed at this instant and is up again already."""
    for at in range(first, s.i[NEXT_FAILURE]):
        node = int(s.failures[FAIL_NODE, at])
        seen = s.agenda[DOWN_UNTIL, node] > -np.inf
        for earlier in range(first, at):
            seen = seen or int(s.failures[FAIL_NODE, earlier]) == node
        if not seen:
            trace_node(s, REPAIR_EVENT, node)
