"""The event loop on clusters: find the next instant, apply its events, recompute shares, run agent and scheduler."""

from __future__ import annotations

from typing import Any

import numpy as np
from faultsweep.simcore.engine.clusters.agent import activate
from faultsweep.simcore.engine.clusters.passes import schedule
from faultsweep.simcore.engine.clusters.placing import mark_impossible
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
    DOWN_NODE,
    FREE_NODE,
    SAVES,
    TOLERANCE,
    ClusterState,
    state_at,
)
from faultsweep.simcore.engine.jit import event_loop, inlined, kernel
from faultsweep.simcore.engine.state import (
    ALL_DONE,
    ARRIVE_EVENT,
    BROKEN,
    CHECKPOINT_TIMER,
    CONTINUE,
    END_OF_TIMERS,
    FAIL_EVENT,
    INVALID,
    NEED_TRACE,
    NO_PROGRESS,
    NO_SPACE,
    REPAIR_EVENT,
    REPAIR_TIMER,
    STUCK,
    TIMER_STRIDE,
    TRACE_HEAD,
    TRUNCATED,
)
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS, WORK_UNTIL_LOOK, clock_ns, most_events, stop_before


def advance_clusters(state: ClusterState, budget: int) -> int:
    """Run up to ``budget`` instants, for about RETURN_AFTER_S, and return why it stopped: a code of state.py.

    The state is consistent whenever it returns, so the caller may look at it, empty the traces, and call again.
    """
    return int(_advance_clusters(state.handle, budget))


@event_loop
def _advance_clusters(table: Any, budget: int) -> int:
    """Do what the function above does; table: of ``make_table``."""
    s = state_at(table)
    jobs = s.job.submit.shape[0]
    if s.now == -np.inf and mark_impossible(s, jobs) > 0:
        return STUCK
    most = most_events(jobs, s.nodes + s.capacity.shape[0])
    until, work = clock_ns() + RETURN_AFTER_NS, 0
    for _ in range(budget):
        if s.finished == jobs:
            return ALL_DONE
        time = _next_time(s)
        stopped = stop_before(s, time)
        if stopped == TRUNCATED:
            _integrate(s, s.horizon)
        if stopped != CONTINUE:
            return stopped
        if not _traces_have_room(s):
            return NEED_TRACE
        s.stalled = 1 if time > s.now else s.stalled + 1
        s.without_job += 1
        _integrate(s, time)
        code = _apply_instant(s, most)
        if s.stalled <= most and code == CONTINUE:
            _decide(s, most)
        if s.no_room != 0:
            return INVALID if s.no_room == BROKEN else NO_SPACE
        if s.stalled > most or s.without_job > s.most_without_job or s.in_vain > s.most_in_vain:
            return NO_PROGRESS
        if code != CONTINUE:
            return code
        if s.num_running == 0 and s.next_arrival == jobs and mark_impossible(s, 0) > 0:
            return STUCK
        work += 8 + s.capacity.shape[0] * (s.queue_tail - s.queue_head) + (s.nodes >> 5)
        if work >= WORK_UNTIL_LOOK:
            work = 0
            if clock_ns() >= until:
                break
    return ALL_DONE if s.finished == jobs else CONTINUE


@inlined
def _next_time(s: ClusterState) -> float:
    """Return the time of the next event, s; infinity if there is none."""
    time = s.wake
    if s.next_arrival < s.job.submit.shape[0]:
        time = min(time, s.job.submit[s.next_arrival])
    slot = next_end(s)
    if slot >= 0:
        time = min(time, s.run_end[slot])
    timer = first_timer(s)
    if timer >= 0:
        time = min(time, s.timer_time[timer])
    if s.next_failure < s.fail_time.shape[0]:
        time = min(time, s.fail_time[s.next_failure])
    return time


@inlined
def _traces_have_room(s: ClusterState) -> bool:
    """Tell whether the buffers hold what one instant can be expected to produce; s.no_room tells if not."""
    if s.telling == 1 and s.decisions_end * 2 > s.decisions.shape[0]:
        return False
    if s.tracing == 0:
        return True
    coming = (s.job.submit.shape[0] - s.next_arrival) + 3 * (s.fail_time.shape[0] - s.next_failure)
    return s.trace.shape[0] - s.trace_end >= (TRACE_HEAD + 1) * (24 * s.nodes + coming)


@inlined
def _integrate(s: ClusterState, time: float) -> None:
    """Advance the clock, the capacity integrals (krevat2003 eq. 4.2) and those of the trunks."""
    span = time - s.now
    s.now = time
    if span <= 0.0 or s.next_arrival == 0:
        return
    free, queued = s.free, s.queued
    s.unused += span * max(0, free - queued)
    s.idle_lost += span * min(free, queued)
    s.down += span * s.num_down
    s.held += span * (s.nodes - free - s.num_down)
    if s.num_spanning > 0:
        _integrate_trunks(s, span)


@inlined
def _integrate_trunks(s: ClusterState, span: float) -> None:
    """Integrate the demand on trunks, and note how long and how much any was saturated."""
    worst = 0.0
    for c in range(s.capacity.shape[0]):
        worst = max(worst, saturation_of(s, c))
        s.traffic += span * min(s.trunk_demand[c], s.capacity[c])
    if worst > TOLERANCE:
        s.saturated += span
    s.most_saturated = max(s.most_saturated, worst)


@inlined
def _apply_instant(s: ClusterState, most: int) -> int:
    """Apply all events of this instant in the order of kinds; it breaks off among the timers after ``most`` events."""
    now = s.now
    while True:
        slot = next_end(s)
        if slot < 0 or s.run_end[slot] > now:
            break
        finish(s, s.running[slot])
    _apply_timers(s, (CHECKPOINT_TIMER + 1) * TIMER_STRIDE, most)
    code = _apply_failures(s)
    _apply_timers(s, END_OF_TIMERS, most)
    while s.next_arrival < s.job.submit.shape[0] and s.job.submit[s.next_arrival] == now:
        job = s.next_arrival
        s.next_arrival = job + 1
        enqueue_at(s, job, s.queue_tail - s.queue_head)
        if s.tracing == 1:
            trace_row(s, ARRIVE_EVENT, job)
    return code


@kernel
def _apply_timers(s: ClusterState, end_key: float, most: int) -> None:
    """Apply the timers of this instant whose keys are below one."""
    while s.num_timers > 0 and s.stalled <= most:
        at = first_timer(s)
        key = s.timer_key[at]
        if s.timer_time[at] > s.now or key >= end_key:
            return
        drop_timer(s, at)
        s.stalled += 1
        kind, index = int(key) // TIMER_STRIDE, int(key) % TIMER_STRIDE
        if kind == CHECKPOINT_TIMER:
            end_saving(s, index)
        elif kind == REPAIR_TIMER:
            _repair(s, index)
        else:
            resume(s, index)


@kernel
def _decide(s: ClusterState, most: int) -> None:
    """Recompute shares, run the agent and the scheduler, and again while starts have changed the shares."""
    while s.stalled <= most:
        if s.changed == 1:
            recompute(s)
        if s.agent == 1 and (s.due == 1 or s.wake <= s.now):
            activate(s)
            _apply_timers(s, (CHECKPOINT_TIMER + 1) * TIMER_STRIDE, most)  # checkpoints that cost nothing
        s.stalled += 1
        schedule(s)
        if s.changed == 0:
            return


@kernel
def _apply_failures(s: ClusterState) -> int:
    """Apply the failures of this instant, of nodes and of trunks; TRUNCATED if a job has failed too often."""
    code = CONTINUE
    first = s.next_failure
    while s.next_failure < s.fail_time.shape[0] and s.fail_time[s.next_failure] == s.now:
        at = s.next_failure
        s.next_failure = at + 1
        if s.now >= s.job.submit[0]:
            s.num_failures += 1
            s.in_vain = s.in_vain + 1 if s.queued > 0 and s.num_running == 0 else 0
        node = int(s.fail_node[at])
        if s.tracing == 1:
            trace_node(s, FAIL_EVENT, node)
        worst = _fail_node(s, node) if node < s.nodes else _fail_trunk(s, node - s.nodes)
        if worst > s.max_restarts:
            code = TRUNCATED
        _take_down(s, node, s.fail_down[at])
    if s.tracing == 1:
        _trace_transient(s, first)
    return code


@inlined
def _fail_node(s: ClusterState, node: int) -> int:
    """Kill the job on a node; return its restarts."""
    victim = s.owner[node]
    if victim < 0:
        return 0
    s.hits += 1
    kill(s, victim)
    return s.job.restarts[victim]


@kernel
def _fail_trunk(s: ClusterState, trunk: int) -> int:
    """Kill the jobs that need a trunk, unless they wait for its repair; return the most restarts of one."""
    worst = 0
    s.changed = 1
    if s.stalls == 1:
        return worst
    at = 0
    hit = False
    while at < s.num_spanning:
        job = s.spanning[at]
        if s.job.phase[job] != SAVES and s.demand[job, trunk] > 0.0:
            kill(s, job)
            worst = max(worst, s.job.restarts[job])
            hit = True
        else:
            at += 1
    if hit:
        s.hits += 1
    return worst


@kernel
def _take_down(s: ClusterState, node: int, down: float) -> None:
    """Take a node or a trunk down for ``down`` seconds; what is down already stays down to the later end."""
    until = s.now + down
    if s.down_until[node] > -np.inf:
        if until > s.down_until[node]:
            cancel_timer(s, REPAIR_TIMER * TIMER_STRIDE + node)
            s.down_until[node] = until
            add_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
        return
    if down <= 0.0:
        return
    s.down_until[node] = until
    add_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
    _set_down(s, node, 1)


@kernel
def _set_down(s: ClusterState, node: int, down: int) -> None:
    """Count a node, or a trunk, as down (1) or up (0)."""
    s.places += 1
    if node >= s.nodes:
        s.trunk_down[node - s.nodes] = down
        s.changed = 1
        return
    cluster = 0
    while cluster + 1 < s.capacity.shape[0] and s.first_node[cluster + 1] <= node:
        cluster += 1
    s.owner[node] = DOWN_NODE if down == 1 else FREE_NODE
    s.num_down += 2 * down - 1
    s.free -= 2 * down - 1
    s.free_here[cluster] -= 2 * down - 1


@kernel
def _repair(s: ClusterState, node: int) -> None:
    """Bring a node or a trunk up again."""
    s.down_until[node] = -np.inf
    _set_down(s, node, 0)
    if s.tracing == 1:
        trace_node(s, REPAIR_EVENT, node)


@kernel
def _trace_transient(s: ClusterState, first: int) -> None:
    """Trace, once each, the repairs of what failed at this instant and is up again already."""
    for at in range(first, s.next_failure):
        node = int(s.fail_node[at])
        seen = s.down_until[node] > -np.inf
        for earlier in range(first, at):
            seen = seen or int(s.fail_node[earlier]) == node
        if not seen:
            trace_node(s, REPAIR_EVENT, node)
