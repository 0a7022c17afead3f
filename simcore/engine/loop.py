"""The event loop: find the next instant, apply its events in order, run one scheduling pass."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import free_nodes_of, job_on
from faultsweep.simcore.engine.bits import ONE
from faultsweep.simcore.engine.events import (
    add_release,
    cancel_timer,
    drop_release,
    enqueue_by_arrival,
    enqueue_last,
    pop_timer,
    push_timer,
    trace_event,
    trace_node_event,
)
from faultsweep.simcore.engine.handle import state_at
from faultsweep.simcore.engine.jit import entry_kernel, inlined, kernel
from faultsweep.simcore.engine.state import (
    ALL_DONE,
    ALLOCATED,
    ARRIVE_EVENT,
    BACKFILL,
    BACKFILL_MIGRATION,
    BROKEN,
    BY_UTILITY,
    CHECKPOINT_TIMER,
    COMPLETION_TIMER,
    CONSERVATIVE,
    CONTINUE,
    DELAYED,
    DISTURBED,
    DONE,
    DOWN,
    DOWN_UNTIL,
    DRAWN_UNTIL,
    EARLY_RELEASED,
    END,
    END_OF_TIMERS,
    EVENT_ORDER,
    FAIL_DOWN,
    FAIL_EVENT,
    FAIL_NODE,
    FAIL_TIME,
    FAILURES,
    FINISH,
    FINISH_EVENT,
    FINISHED,
    FINISHED_START,
    FIRST_START,
    FREE,
    FREE_NODES,
    HELD,
    HITS,
    HORIZON,
    IDLE_LOST,
    INSTANT,
    INVALID,
    KEPT,
    KEPT_IDLE,
    KILL_EVENT,
    KIND,
    LARGER_NEEDED,
    LATEST,
    LEAST_FAILURES,
    LOST,
    LOST_NODES,
    MAX_RESTARTS,
    MIGRATION,
    MOST_WITHOUT_JOB,
    MOVES_TO_SAFER,
    NEED_FAILURES,
    NEED_TRACE,
    NEXT_ARRIVAL,
    NEXT_FAILURE,
    NEXT_FORESEEN,
    NO_PROGRESS,
    NO_ROOM,
    NO_SPACE,
    NODE_CHOICE,
    NODES,
    NOW,
    NUM_DOWN,
    NUM_RELEASES,
    NUM_SUSPENDED,
    NUM_TIMERS,
    OTHER_TIMER,
    OVERHEAD_NODES,
    PARTITIONS,
    PASSES,
    QUEUE_HEAD,
    QUEUE_ORDER,
    QUEUE_TAIL,
    QUEUED,
    RECOVERY,
    RELEASE_ITEM,
    RELEASE_TIME,
    RELEASED,
    REPAIR_EVENT,
    REPAIR_TIMER,
    REQUESTED,
    REQUEUE_EVENT,
    RESTARTS,
    RESUBMIT_TIMER,
    RESUMED,
    SAVED,
    SCANNED_VERSION,
    SCHEDULER,
    SEQUENCE,
    SIDE_Y,
    SIDE_Z,
    STALLED,
    START,
    STATUS,
    STUCK,
    SUBMIT,
    SUBMITS_FIRST,
    TIMER_KEY,
    TIMER_STRIDE,
    TIMER_TIME,
    TOO_LATE,
    TRACE_END,
    TRACE_HEAD,
    TRACING,
    TRUNCATED,
    UNUSED,
    VERSION,
    WAITING,
    WITHOUT_JOB,
    WORKED,
    State,
)
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS, WORK_UNTIL_LOOK, clock_ns, most_events
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.model.machines import FLAT
from faultsweep.simcore.policies.checkpointing.foreseen import begin_foreseen, next_foreseen
from faultsweep.simcore.policies.checkpointing.periodic import reach_interval
from faultsweep.simcore.policies.checkpointing.saving import complete_saving, end_saving
from faultsweep.simcore.policies.node_choice.lff import count_failure
from faultsweep.simcore.policies.node_choice.moves import move_to_safer_nodes
from faultsweep.simcore.policies.queue_order.order import order_queue
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


def advance(state: State, budget: int) -> int:
    """Run up to ``budget`` instants, for about RETURN_AFTER_S, and return why it stopped: a code of state.py.

    The state is consistent whenever it returns, so the caller may look at it, empty the trace, and call again.
    """
    return int(_advance(state.handle, budget))


@entry_kernel
def _advance(handle, budget):
    s = state_at(handle)
    jobs = s.job_f.shape[1]
    most = most_events(jobs, s.i[NODES])
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
        if s.i[TRACING] == 1 and not _trace_has_room(s):
            return NEED_TRACE
        _count_events(s, time)
        _integrate(s, time)
        if s.i[EVENT_ORDER] == INSTANT:
            stopped = _apply_instant(s, most)
        else:
            stopped = _apply_one(s)
        if s.i[STALLED] > most or s.i[WITHOUT_JOB] > s.i[MOST_WITHOUT_JOB]:
            return NO_PROGRESS
        if stopped != CONTINUE:
            return stopped
        if not schedule(s):
            return INVALID if s.i[NO_ROOM] == BROKEN else NO_SPACE
        work += 1 + (s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD]) + (s.i[NODES] >> 8)
        if work >= WORK_UNTIL_LOOK:
            work = 0
            if clock_ns() >= until:
                break
    return ALL_DONE if s.i[FINISHED] == jobs else CONTINUE


@inlined
def _next_time(s):
    """Return the time of the next event, s; infinity if there is none."""
    time = np.inf
    if s.i[NEXT_ARRIVAL] < s.job_f.shape[1]:
        time = s.job_f[SUBMIT, s.i[NEXT_ARRIVAL]]
    if s.i[NUM_TIMERS] > 0:
        time = min(time, s.agenda[TIMER_TIME, 0])
    if s.i[NEXT_FAILURE] < s.failures.shape[1]:
        time = min(time, s.failures[FAIL_TIME, s.i[NEXT_FAILURE]])
    return next_foreseen(s, time) if s.f[NEXT_FORESEEN] < time else time


@kernel
def _trace_has_room(s):
    """Tell whether the trace buffer holds whatever one instant can produce."""
    coming = (s.job_f.shape[1] - s.i[NEXT_ARRIVAL]) + 3 * (s.failures.shape[1] - s.i[NEXT_FAILURE])
    return s.trace.shape[0] - s.i[TRACE_END] >= (TRACE_HEAD + 1) * (8 * s.i[NODES] + coming)


@inlined
def _count_events(s, time):
    """Count an event, with those before it at the same time, and with those since something happened to a job."""
    s.i[STALLED] = 1 if time > s.f[NOW] else s.i[STALLED] + 1
    s.i[WITHOUT_JOB] += 1


@inlined
def _integrate(s, time):
    """Advance the clock and the capacity integrals (krevat2003 eq. 4.2)."""
    span = time - s.f[NOW]
    s.f[NOW] = time
    if span <= 0.0 or s.i[NEXT_ARRIVAL] == 0:
        return
    free, queued = s.i[FREE], s.i[QUEUED]
    s.f[UNUSED] += span * max(0, free - queued)
    s.f[IDLE_LOST] += span * min(free, queued)
    s.f[DOWN] += span * s.i[NUM_DOWN]
    s.f[HELD] += span * (s.i[NODES] - free - s.i[NUM_DOWN] - s.i[KEPT])
    s.f[KEPT_IDLE] += span * s.i[KEPT]


@inlined
def _apply_instant(s, most):
    """Apply all events of this instant in the order of kinds: timers, failures among them, and arrivals last.

    It breaks off among the timers after ``most`` events.
    """
    _apply_timers(s, REPAIR_TIMER * TIMER_STRIDE, most)
    code = _apply_failures(s)
    _apply_timers(s, END_OF_TIMERS, most)
    now = s.f[NOW]
    if s.f[NEXT_FORESEEN] == now:
        begin_foreseen(s)
    while s.i[NEXT_ARRIVAL] < s.job_f.shape[1] and s.job_f[SUBMIT, s.i[NEXT_ARRIVAL]] == now:
        _arrive(s)
    if s.i[NUM_SUSPENDED] > 0:
        keep_repaired(s)
    if s.f[FINISHED_START] < np.inf:
        move_to_safer_nodes(s)
    return code


@inlined
def _apply_timers(s, end_key, most):
    """Apply the timers of this instant whose keys are below one."""
    while s.i[NUM_TIMERS] > 0 and s.agenda[TIMER_TIME, 0] == s.f[NOW] and s.agenda[TIMER_KEY, 0] < end_key:
        _apply_timer(s)
        s.i[STALLED] += 1
        if s.i[STALLED] > most:
            return


@kernel
def _apply_one(s):
    """Apply one event of this instant: arrivals before completions, or after them."""
    now = s.f[NOW]
    arrives = s.i[NEXT_ARRIVAL] < s.job_f.shape[1] and s.job_f[SUBMIT, s.i[NEXT_ARRIVAL]] == now
    completes = s.i[NUM_TIMERS] > 0 and s.agenda[TIMER_TIME, 0] == now
    if arrives and (s.i[EVENT_ORDER] == SUBMITS_FIRST or not completes):
        _arrive(s)
    else:
        _apply_timer(s)
    _release_early(s)
    return CONTINUE


@kernel
def _release_early(s):
    """Count jobs as free whose expected end has come and that end at this very instant (pyss)."""
    at = 0
    while at < s.i[NUM_RELEASES] and s.agenda[RELEASE_TIME, at] <= s.f[NOW]:
        job = int(s.agenda[RELEASE_ITEM, at])
        if s.job_f[END, job] == s.f[NOW]:
            drop_release(s, job)
            free_nodes_of(s, job)
            s.job_i[EARLY_RELEASED, job] = 1
        else:
            at += 1


@inlined
def _apply_timer(s):
    """Apply the first timer of the heap."""
    key = pop_timer(s)
    kind, index = key // TIMER_STRIDE, key % TIMER_STRIDE
    if kind == COMPLETION_TIMER:
        _finish(s, s.job_i[SEQUENCE, index] if s.i[EVENT_ORDER] == SUBMITS_FIRST else index)
    elif kind == REPAIR_TIMER:
        _repair(s, index)
    elif kind == CHECKPOINT_TIMER:
        complete_saving(s, index)
    elif kind == OTHER_TIMER:
        reach_interval(s, index)
    elif kind == RESUBMIT_TIMER:
        resubmit(s, index)


@inlined
def _arrive(s):
    """Put the next job into the waiting queue."""
    job = s.i[NEXT_ARRIVAL]
    s.i[WITHOUT_JOB] = 0
    s.i[NEXT_ARRIVAL] = job + 1
    s.job_i[STATUS, job] = WAITING
    s.i[QUEUED] += s.job_i[REQUESTED, job]
    enqueue_last(s, job)
    if s.i[TRACING] == 1:
        trace_event(s, ARRIVE_EVENT, job)


@inlined
def _finish(s, job):
    """Complete a job."""
    now = s.f[NOW]
    s.i[WITHOUT_JOB] = 0
    if s.i[SCHEDULER] == CONSERVATIVE and not note_early_finish(s, job):
        s.i[NO_ROOM] = LARGER_NEEDED
    if s.job_i[EARLY_RELEASED, job] == 0:
        drop_release(s, job)
        free_nodes_of(s, job)
    s.i[RELEASED] = 1  # also when its nodes were counted as free before: promises are compressed at every completion
    s.job_i[STATUS, job] = DONE
    s.job_f[FINISH, job] = now
    s.i[FINISHED] += 1
    if s.i[MOVES_TO_SAFER] == 1:
        s.f[FINISHED_START] = min(s.f[FINISHED_START], s.job_f[START, job])
    if s.i[TRACING] == 1:
        trace_event(s, FINISH_EVENT, job)


@kernel
def _apply_failures(s):
    """Apply the failures of this instant: kill jobs, take nodes down; return TRUNCATED if a job has failed too
    often."""
    code = CONTINUE
    first = s.i[NEXT_FAILURE]
    while s.i[NEXT_FAILURE] < s.failures.shape[1] and s.failures[FAIL_TIME, s.i[NEXT_FAILURE]] == s.f[NOW]:
        at = s.i[NEXT_FAILURE]
        s.i[NEXT_FAILURE] = at + 1
        s.i[FAILURES] += 1
        node = int(s.failures[FAIL_NODE, at])
        if s.i[NODE_CHOICE] == LEAST_FAILURES:
            count_failure(s, node)
        if s.i[TRACING] == 1:
            trace_node_event(s, FAIL_EVENT, node)
        victim = job_on(s, node)
        if victim >= 0:
            s.i[HITS] += 1
            kill(s, victim)
            if s.job_i[RESTARTS, victim] > s.i[MAX_RESTARTS]:
                code = TRUNCATED
        if s.i[NUM_SUSPENDED] > 0:
            give_up_node(s, node)
        _take_down(s, node, s.failures[FAIL_DOWN, at])
        s.i[DISTURBED] = 1
    if s.i[TRACING] == 1:
        _trace_transient(s, first)
    return code


@kernel
def _trace_transient(s, first):
    """Trace, once per node, the repairs of nodes that failed at this instant and are up again already."""
    for at in range(first, s.i[NEXT_FAILURE]):
        node = int(s.failures[FAIL_NODE, at])
        seen = s.agenda[DOWN_UNTIL, node] > -np.inf
        for earlier in range(first, at):
            seen = seen or int(s.failures[FAIL_NODE, earlier]) == node
        if not seen:
            trace_node_event(s, REPAIR_EVENT, node)


@kernel
def kill(s, job):
    """End a job's attempt by a failure: its unsaved work is lost. It waits again at the place of its arrival, or does
    what its recovery option says."""
    now = s.f[NOW]
    s.i[WITHOUT_JOB] = 0
    work = s.job_f
    drop_release(s, job)
    cancel_timer(s, COMPLETION_TIMER * TIMER_STRIDE + job)
    end_saving(s, job)
    done = work[WORKED, job] + max(0.0, now - work[RESUMED, job])
    unspent = max(0.0, work[RESUMED, job] - max(now, work[START, job]))
    work[OVERHEAD_NODES, job] -= unspent * s.job_i[ALLOCATED, job]
    lost = done - work[SAVED, job]
    work[LOST, job] += lost
    work[LOST_NODES, job] += lost * s.job_i[ALLOCATED, job]
    if now <= work[START, job]:  # killed inside its start delay, or at its end: failures come before starts
        s.f[DELAYED] -= (work[START, job] - now) * s.job_i[ALLOCATED, job]
        if work[FIRST_START, job] == work[START, job]:
            work[FIRST_START, job] = np.nan
    if s.i[RECOVERY] == 1:
        recover(s, job)
        return
    free_nodes_of(s, job)
    if s.i[TRACING] == 1:
        trace_event(s, KILL_EVENT, job)
    s.job_i[RESTARTS, job] += 1
    s.job_i[STATUS, job] = WAITING
    s.i[QUEUED] += s.job_i[REQUESTED, job]
    enqueue_by_arrival(s, job)
    if s.i[TRACING] == 1:
        trace_event(s, REQUEUE_EVENT, job)


@kernel
def _free_word(s, node):
    """Return the position of a node in the masks of free nodes, as (word, bit)."""
    if s.i[KIND] == FLAT:
        return node >> 6, ONE << np.uint64(node & 63)
    Y, Z = s.i[SIDE_Y], s.i[SIDE_Z]
    return node // (Y * Z) * Y + node // Z % Y, ONE << np.uint64(node % Z)


@kernel
def _take_down(s, node, down):
    """Take a free node down for ``down`` seconds; a node that is down already stays down to the later end."""
    until = s.f[NOW] + down
    if s.agenda[DOWN_UNTIL, node] > -np.inf:
        if until > s.agenda[DOWN_UNTIL, node]:
            cancel_timer(s, REPAIR_TIMER * TIMER_STRIDE + node)
            drop_release(s, -1 - node)
            _expect_repair(s, node, until)
            s.i[SCANNED_VERSION] = -1  # the head job's reservation may change though the free nodes do not
        return
    if down <= 0.0:
        return
    word, bit = _free_word(s, node)
    s.masks[FREE_NODES, word] &= ~bit
    s.i[FREE] -= 1
    s.i[NUM_DOWN] += 1
    s.i[VERSION] += 1
    _expect_repair(s, node, until)


@kernel
def _expect_repair(s, node, until):
    s.agenda[DOWN_UNTIL, node] = until
    push_timer(s, until, REPAIR_TIMER * TIMER_STRIDE + node)
    add_release(s, until, -1 - node)


@kernel
def _repair(s, node):
    """Bring a node up again."""
    s.agenda[DOWN_UNTIL, node] = -np.inf
    drop_release(s, -1 - node)
    word, bit = _free_word(s, node)
    s.masks[FREE_NODES, word] |= bit
    s.i[FREE] += 1
    s.i[NUM_DOWN] -= 1
    s.i[VERSION] += 1
    s.i[RELEASED] = 1
    if s.i[TRACING] == 1:
        trace_node_event(s, REPAIR_EVENT, node)


@inlined
def schedule(s):
    """Run one scheduling pass; return False if a preallocated list does not fit."""
    s.i[PASSES] += 1
    scheduler = s.i[SCHEDULER]
    done = True
    if s.i[NO_ROOM] != 0:
        return False
    if s.i[NUM_SUSPENDED] > 0 and s.i[RELEASED] + s.i[DISTURBED] > 0 and not restart_suspended(s):
        return False
    if s.i[QUEUE_ORDER] == BY_UTILITY:
        order_queue(s)
    if s.i[PARTITIONS] > 0:
        schedule_menu(s)
    elif scheduler == CONSERVATIVE:
        done = conservative(s)
    else:
        done = start_in_order(s)
        if done and scheduler in (MIGRATION, BACKFILL_MIGRATION):
            moved = migrate(s)
            done = moved != OVERFLOW and (moved == 0 or start_in_order(s))
        if done and scheduler in (BACKFILL, BACKFILL_MIGRATION):
            done = backfill(s)
    s.i[RELEASED] = 0
    s.i[DISTURBED] = 0
    return done and s.i[NO_ROOM] == 0
