"""The event loop: find the next instant, apply its events in order, run one scheduling pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from faultsweep.simcore.engine import bound as _bound  # noqa: F401 - binds the hooks
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.admitted import put_aside_back, start_admitted
from faultsweep.simcore.engine.allocation import end_attempt, free_nodes_of, job_on, stop_leaving
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.dependencies import become_eligible, free_followers, is_held
from faultsweep.simcore.engine.events import add_release, drop_release, enqueue_last, trace_event, trace_node_event
from faultsweep.simcore.engine.jit import event_loop, inlined, kernel
from faultsweep.simcore.engine.limits import count_running, leave_out, put_back
from faultsweep.simcore.engine.pieces import close_node, open_node
from faultsweep.simcore.engine.state import (
    ALL_DONE,
    ALL_JOBS,
    ARRIVE_EVENT,
    AWAY,
    BROKEN,
    CHECKPOINT_TIMER,
    COMPLETION_TIMER,
    CONTINUE,
    DEFAULT,
    DONE,
    END_OF_TIMERS,
    FAIL_EVENT,
    FINISH_EVENT,
    HALTED,
    HEAD_JOB,
    HELD,
    INSTANT,
    INVALID,
    KILL_EVENT,
    LARGER_NEEDED,
    LEAVE_TIMER,
    NEED_TRACE,
    NO_PROGRESS,
    NO_SPACE,
    NOBODY,
    OTHER_TIMER,
    OWN_PASS,
    REPAIR_EVENT,
    REPAIR_TIMER,
    RESUBMIT_TIMER,
    SUBMITS_FIRST,
    TICK_TIMER,
    TIMER_STRIDE,
    TRACE_HEAD,
    TRUNCATED,
    WAITING,
    State,
    state_at,
)
from faultsweep.simcore.engine.submits import count_submitted, is_refused
from faultsweep.simcore.engine.timers import cancel_timer, first_key, first_time, has_timer, pop_timer, push_timer
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS, WORK_UNTIL_LOOK, clock_ns, most_events, stop_before
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.checkpointing.foreseen import begin_foreseen, next_foreseen
from faultsweep.simcore.policies.checkpointing.saving import complete_saving, reach_interval
from faultsweep.simcore.policies.preemption.halting import end_suspension, settle
from faultsweep.simcore.policies.queue_order.order import await_next_order, order_queue
from faultsweep.simcore.policies.recovery.requeue import (
    give_up_node,
    keep_repaired,
    recover,
    restart_suspended,
    resubmit,
)
from faultsweep.simcore.policies.scheduling.backfill import backfill
from faultsweep.simcore.policies.scheduling.conservative import conservative, note_early_finish
from faultsweep.simcore.policies.scheduling.fcfs import start_in_order
from faultsweep.simcore.policies.scheduling.menu import schedule_menu
from faultsweep.simcore.policies.scheduling.migration import migrate
from faultsweep.simcore.policies.scheduling.shared_nodes import schedule_site


def advance(state: State, budget: int) -> int:
    """Run up to ``budget`` instants, for about RETURN_AFTER_S, and return why it stopped: a code of state.py.

    The state is consistent whenever it returns, so the caller may look at it, empty the trace, and call again.
    """
    return int(_advance(state.handle, budget))


@event_loop
def _advance(table: Any, budget: int) -> int:
    """Do what the function above does; table: of ``make_table``."""
    s = state_at(table)
    jobs = s.job.submit.shape[0]
    most = most_events(jobs, s.nodes)
    until, work = clock_ns() + RETURN_AFTER_NS, 0
    checked_from = min(s.drawn_until, s.horizon, s.latest)
    plain = _is_plain(s)
    for _ in range(budget):
        if s.finished == jobs:
            return ALL_DONE
        time = _next_time(s)
        if time >= checked_from or time < -s.latest:
            stopped = stop_before(s, time)
            if stopped == TRUNCATED:
                _integrate(s, s.horizon)
            if stopped != CONTINUE:
                return stopped
        if not plain and s.tracing == 1 and not _trace_has_room(s):
            return NEED_TRACE
        _count_events(s, time)
        _integrate(s, time)
        if s.event_order == INSTANT:
            stopped = _apply_instant(s, most, plain)
        else:
            stopped = _apply_one(s)
        if s.stalled > most or s.without_job > s.most_without_job or s.in_vain > s.most_in_vain:
            return NO_PROGRESS
        if stopped != CONTINUE:
            return stopped
        if not schedule(s, plain):
            return INVALID if s.no_room == BROKEN else NO_SPACE
        work += 8 + (s.queue_tail - s.queue_head) + (s.nodes >> 5)
        if work >= WORK_UNTIL_LOOK:
            work = 0
            if clock_ns() >= until:
                break
    return ALL_DONE if s.finished == jobs else CONTINUE


@kernel
def _is_plain(s: State) -> bool:
    """Tell whether a run has nothing but a flat machine or a torus, FCFS or EASY, and perhaps failures.

    This is asked once: to ask for each of the other things at every event takes a tenth of the time of such a run.
    """
    others = s.recovery + s.limited + s.asks + s.in_tiers + s.migrates + s.watches + s.refuses + s.follows + s.tracing
    by_default = s.queue_order == DEFAULT and s.preemption == DEFAULT and s.event_order != SUBMITS_FIRST
    in_turn = s.kind != SITE and s.partitions == 0 and (s.reserves == NOBODY or s.reserves == HEAD_JOB)
    return others == 0 and by_default and in_turn


@inlined
def _next_time(s: State) -> float:
    """Return the time of the next event, s; infinity if there is none."""
    time = np.inf
    if s.next_arrival < s.job.submit.shape[0]:
        time = s.job.submit[s.next_arrival]
    if has_timer(s):
        time = min(time, first_time(s))
    if s.next_failure < s.fail_time.shape[0]:
        time = min(time, s.fail_time[s.next_failure])
    return next_foreseen(s, time) if s.next_foreseen < time else time


@kernel
def _trace_has_room(s: State) -> bool:
    """Tell whether the trace buffer holds whatever one instant can produce."""
    coming = s.num_held + (s.job.submit.shape[0] - s.next_arrival) + 3 * (s.fail_time.shape[0] - s.next_failure)
    return s.trace.shape[0] - s.trace_end >= (TRACE_HEAD + 1) * (8 * s.nodes + coming)


@inlined
def _count_events(s: State, time: float) -> None:
    """Count an event, with those before it at the same time, and with those since something happened to a job."""
    s.stalled = 1 if time > s.now else s.stalled + 1
    s.without_job += 1


@inlined
def _integrate(s: State, time: float) -> None:
    """Advance the clock and the capacity integrals (krevat2003 eq. 4.2)."""
    span = time - s.now
    s.now = time
    if span <= 0.0 or s.next_arrival == 0:
        return
    free, queued = s.free, s.queued
    s.unused += span * max(0, free - queued)
    s.idle_lost += span * min(free, queued)
    s.down += span * s.num_down
    s.held += span * (s.nodes - free - s.num_down - s.kept)
    s.kept_idle += span * s.kept


@inlined
def _apply_instant(s: State, most: int, plain: bool) -> int:
    """Apply all events of this instant in the order of kinds: timers, failures among them, and arrivals last.

    It breaks off among the timers after ``most`` events.
    """
    _apply_timers(s, REPAIR_TIMER * TIMER_STRIDE, most, plain)
    now, code = s.now, CONTINUE
    if s.next_failure < s.fail_time.shape[0] and s.fail_time[s.next_failure] == now:
        code = _apply_failures(s)
    _apply_timers(s, END_OF_TIMERS, most, plain)
    if s.next_foreseen == now:
        begin_foreseen(s)
    while s.next_arrival < s.job.submit.shape[0] and s.job.submit[s.next_arrival] == now:
        _arrive(s, plain)
    if plain:
        return code
    if s.num_suspended > 0:
        keep_repaired(s)
    if s.num_halted > 0:
        settle(s)
    if s.watches == 1:
        hooks.events_applied(s)
    return code


@inlined
def _apply_timers(s: State, end_key: int, most: int, plain: bool) -> None:
    """Apply the timers of this instant whose keys are below one."""
    while has_timer(s) and first_time(s) == s.now and first_key(s) < end_key:
        _apply_timer(s, plain)
        s.stalled += 1
        if s.stalled > most:
            return


@kernel
def _apply_one(s: State) -> int:
    """Apply one event of this instant: arrivals before completions, or after them."""
    now = s.now
    arrives = s.next_arrival < s.job.submit.shape[0] and s.job.submit[s.next_arrival] == now
    completes = has_timer(s) and first_time(s) == now
    if arrives and (s.event_order == SUBMITS_FIRST or not completes):
        _arrive(s, False)
    else:
        _apply_timer(s, False)
    if s.event_order == SUBMITS_FIRST:
        _release_early(s)
    return CONTINUE


@kernel
def _release_early(s: State) -> None:
    """Count jobs as free whose expected end has come and that end at this very instant (pyss).

    Reservations are compressed when the completion is processed, not before.
    """
    at, released = 0, s.released
    while at < s.num_releases and s.release_time[at] <= s.now:
        job = int(s.release_item[at])
        if s.job.end[job] == s.now:
            drop_release(s, job)
            free_nodes_of(s, job)
            hooks.usage_changes(s, job, -s.job.allocated[job])
            s.job.early_released[job] = 1
        else:
            at += 1
    s.released = released


@inlined
def _apply_timer(s: State, plain: bool) -> None:
    """Apply the first timer."""
    key = pop_timer(s)
    kind, index = key // TIMER_STRIDE, key % TIMER_STRIDE
    if kind == COMPLETION_TIMER:
        _finish(s, s.job.sequence[index] if s.event_order == SUBMITS_FIRST else index, plain)
    elif kind == LEAVE_TIMER:
        hooks.job_leaves(s, index)
        s.changed = 1
    elif kind == REPAIR_TIMER:
        _repair(s, index)
    elif kind == CHECKPOINT_TIMER:
        complete_saving(s, index)
    elif kind == OTHER_TIMER and index < s.job.submit.shape[0]:  # behind the jobs: an advance reservation ends
        reach_interval(s, index)
    elif kind == RESUBMIT_TIMER:
        if s.job.status[index] == HELD:
            become_eligible(s, index)
        else:
            resubmit(s, index)
        s.changed = 1
    elif kind != TICK_TIMER:  # the order of the queue changes, an advance reservation ends, or a job can be preempted
        s.changed = 1


@inlined
def _arrive(s: State, plain: bool) -> None:
    """Put the next job into the waiting queue."""
    job = s.next_arrival
    s.without_job = 0
    s.next_arrival = job + 1
    s.changed = 1
    if not plain and ((s.refuses == 1 and is_refused(s, job)) or (s.follows == 1 and is_held(s, job))):
        return
    s.job.status[job] = WAITING
    s.queued += s.job.requested[job]
    enqueue_last(s, job)
    if not plain and s.tracing == 1:
        trace_event(s, ARRIVE_EVENT, job)


@inlined
def _finish(s: State, job: int, plain: bool) -> None:
    """Complete a job."""
    if plain:
        drop_release(s, job)
        free_nodes_of(s, job)
    else:
        _leave(s, job)
    s.without_job = 0
    s.changed = 1
    s.released = 1  # also when its nodes were counted as free before: reservations are compressed at every completion
    s.job.status[job] = DONE
    s.job.finish[job] = s.now
    s.finished += 1
    if not plain:
        _pass_on(s, job)


@kernel
def _leave(s: State, job: int) -> None:
    """Give back what a job has that completes."""
    if s.reserves == ALL_JOBS and not note_early_finish(s, job):
        s.no_room = LARGER_NEEDED
    if s.event_order != SUBMITS_FIRST or s.job.early_released[job] == 0:
        drop_release(s, job)
        free_nodes_of(s, job)
        hooks.usage_changes(s, job, -s.job.allocated[job])
    if s.limited == 1:
        count_running(s, job, -1)
    stop_leaving(s, job)
    if s.refuses == 1:
        count_submitted(s, job, -1)


@kernel
def _pass_on(s: State, job: int) -> None:
    """Tell that a job has completed."""
    if s.follows == 1:
        free_followers(s, job)
    if s.watches == 1:
        hooks.job_finished(s, job)
    if s.tracing == 1:
        trace_event(s, FINISH_EVENT, job)


@kernel
def _apply_failures(s: State) -> int:
    """Apply the failures of this instant: kill jobs, take nodes down; return TRUNCATED if a job has failed too
    often."""
    code = CONTINUE
    first = s.next_failure
    while s.next_failure < s.fail_time.shape[0] and s.fail_time[s.next_failure] == s.now:
        at = s.next_failure
        s.next_failure = at + 1
        node = int(s.fail_node[at])
        if s.now >= s.job.submit[0]:  # what is learnt from failures begins there
            s.num_failures += 1
            waits = s.queued > 0 or s.num_suspended > 0
            s.in_vain = s.in_vain + 1 if waits and s.free + s.num_down + s.kept == s.nodes else 0
            if s.watches == 1:
                hooks.node_failed(s, node)
        if s.tracing == 1:
            trace_node_event(s, FAIL_EVENT, node)
        victim = job_on(s, node)
        if victim >= 0:
            s.hits += 1
        while victim >= 0:
            kill(s, victim)
            if s.job.restarts[victim] > s.max_restarts:
                code = TRUNCATED
            victim = job_on(s, node) if s.kind == SITE else -1
        if s.num_suspended > 0:
            give_up_node(s, node)
        _take_down(s, node, s.fail_down[at])
        s.changed = s.disturbed = 1
    if s.tracing == 1:
        _trace_transient(s, first)
    return code


@kernel
def _trace_transient(s: State, first: int) -> None:
    """Trace, once per node, the repairs of nodes that failed at this instant and are up again already."""
    for at in range(first, s.next_failure):
        node = int(s.fail_node[at])
        seen = s.down_until[node] > -np.inf
        for earlier in range(first, at):
            seen = seen or int(s.fail_node[earlier]) == node
        if not seen:
            trace_node_event(s, REPAIR_EVENT, node)


@kernel
def kill(s: State, job: int) -> None:
    """End a job's attempt by a failure: its unsaved work is lost. It waits again at the place of its arrival, or does
    what its recovery option says."""
    if s.job.status[job] == HALTED:
        end_suspension(s, job)
    lost = end_attempt(s, job)
    s.job.lost[job] += lost
    s.job.lost_nodes[job] += lost * s.job.allocated[job]
    if s.recovery == 1:
        recover(s, job)
        return
    free_nodes_of(s, job)
    if s.tracing == 1:
        trace_event(s, KILL_EVENT, job)
    s.job.restarts[job] += 1
    if s.requeue_hold > 0.0:
        s.job.status[job] = AWAY
        push_timer(s, s.now + s.requeue_hold, RESUBMIT_TIMER * TIMER_STRIDE + job)
        return
    resubmit(s, job)


@kernel
def _free_word(s: State, node: int) -> tuple[int, np.uint64]:
    """Return the position of a node in the masks of free nodes, as (word, bit)."""
    if s.kind == FLAT:
        return node >> 6, ONE << np.uint64(node & 63)
    Y, Z = s.side_y, s.side_z
    return node // (Y * Z) * Y + node // Z % Y, ONE << np.uint64(node % Z)


@kernel
def _take_down(s: State, node: int, down: float) -> None:
    """Take a free node down for ``down`` seconds; a node that is down already stays down to the later end."""
    until = s.now + down
    if s.down_until[node] > -np.inf:
        if until > s.down_until[node]:
            cancel_timer(s, REPAIR_TIMER * TIMER_STRIDE + node)
            drop_release(s, -1 - node)
            _expect_repair(s, node, until)
            s.scanned_version = -1  # the head job's reservation may change though the free nodes do not
        return
    if down <= 0.0:
        return
    if s.kind == SITE:
        close_node(s, node)
    else:
        word, bit = _free_word(s, node)
        s.free_nodes[word] &= ~bit
        s.free -= 1
        s.num_down += 1
    s.version += 1
    _expect_repair(s, node, until)


@kernel
def _expect_repair(s: State, node: int, until: float) -> None:
    s.down_until[node] = until
    push_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
    add_release(s, until, -1 - node)


@kernel
def _repair(s: State, node: int) -> None:
    """Bring a node up again."""
    s.down_until[node] = -np.inf
    drop_release(s, -1 - node)
    if s.kind == SITE:
        open_node(s, node)
    else:
        word, bit = _free_word(s, node)
        s.free_nodes[word] |= bit
        s.free += 1
        s.num_down -= 1
    s.version += 1
    s.changed = s.released = 1
    if s.tracing == 1:
        trace_node_event(s, REPAIR_EVENT, node)


@inlined
def schedule(s: State, plain: bool) -> bool:
    """Run one scheduling pass; return False if a preallocated list does not fit."""
    if s.no_room != 0:
        return False
    if plain:
        done = start_in_order(s) and (s.reserves == NOBODY or backfill(s))
    else:
        done = _run_pass(s)
    s.released = 0
    s.disturbed = 0
    return done and s.no_room == 0


@kernel
def _run_pass(s: State) -> bool:
    """Run one scheduling pass, whatever policies the run has."""
    done = True
    if s.num_suspended > 0 and s.released + s.disturbed + s.num_windows + s.migrates > 0 and not restart_suspended(s):
        return False
    if s.queue_order != DEFAULT or s.in_tiers == 1:
        order_queue(s)
    if s.asks == 1:
        start_admitted(s)
    while True:
        s.passes_again = 0
        if s.limited == 1:
            leave_out(s)
        if s.partitions > 0:
            schedule_menu(s)
        elif s.reserves == ALL_JOBS:
            done = conservative(s)
        elif s.reserves >= OWN_PASS:
            done = hooks.start_jobs(s)
        elif s.kind == SITE:
            schedule_site(s)
        else:
            done = start_in_order(s)
            if done and s.migrates == 1 and s.passes_again == 0:
                moved = migrate(s)
                done = moved != OVERFLOW and (moved == 0 or start_in_order(s))
            if done and s.reserves == HEAD_JOB and s.passes_again == 0:
                done = backfill(s)
        if s.limited == 1:
            put_back(s)
        if s.passes_again == 0 or not done:
            break
        s.disturbed = 1
    if s.asks == 1:
        put_aside_back(s)
    if s.queue_order != DEFAULT:
        await_next_order(s)
    return done
