"""SLURM's scheduler on a site: a main pass in order of the queue, and a pass of ``sched/backfill`` now and then.

Nothing starts at an event itself. A pass follows at the next tick of its kind, and only if since the last one a job has
come, started or ended, a node has failed or come up, the order has been calculated, an advance reservation has ended,
or one that jobs ask for has begun. A backfilling pass comes an interval after the one before it, or in the first second
in which it has anything to do. A main pass follows, too, when a preempted job has left. The first ticks are drawn from
the seed: no clock of a controller agrees with that of a log.

The main pass starts jobs until one cannot start; from then on the nodes of its partition are left to it, unless advance
reservations keep it from starting even on idle nodes. It looks at the first jobs of the queue, and at all of them once
in a while. The backfilling pass looks at the first jobs, too. One
that can start beside the plans for those before it starts, if need be by preemption; for another one it plans whole
nodes, though the job may need but parts of them, and it forgets its plans when it ends. When that job could start, it
sees by taking the running jobs on those nodes away, in order of their expected ends and in groups of ends that lie
close. (SLURM 22.05: slurm.conf(5), and what its sched/backfill and select/cons_tres do.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import SITE as ON_SITE
from faultsweep.simcore.contract import Parameter, Policy, Run
from faultsweep.simcore.engine import hooks
from faultsweep.simcore.engine.allocation import expected_end, windows_of
from faultsweep.simcore.engine.bits import ONE, ZERO
from faultsweep.simcore.engine.events import dequeue_at, next_tick, whole_second
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.limits import has_come_to_limit
from faultsweep.simcore.engine.pieces import (
    choose_counted,
    choose_in_window,
    chunks_within,
    count_in_window,
    count_touched,
    free_for,
    reserve_pieces,
    windows_met,
)
from faultsweep.simcore.engine.profile import breakpoint_at, set_point
from faultsweep.simcore.engine.state import (
    ANYWHERE,
    BACKFILL_PASS,
    DEFAULT,
    FULL_PASS,
    GOES,
    IN_PLANS,
    MAIN_PASS,
    PASS_KINDS,
    TICK_TIMER,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import push_timer
from faultsweep.simcore.policies.preemption import gives_grace, has_others_leave
from faultsweep.simcore.policies.preemption.above import finds_room_above, finds_room_on_open
from faultsweep.simcore.policies.preemption.halting import expect_halted
from faultsweep.simcore.policies.preemption.victims import (
    free_lower,
    make_room,
    make_room_on_open,
    makes_way,
    may_preempt,
)
from faultsweep.simcore.policies.scheduling.expected_room import begin_searches, has_too_little
from faultsweep.simcore.policies.scheduling.shared_nodes import start_on_pieces
from faultsweep.simcore.streams import coin_key, coins
from numpy.typing import NDArray

from faultsweep.errors import InputError

_GROUP_S = 30.0
"""Of expected ends: SLURM's first window of time, which doubles with each group."""
_FEW_OPEN = 4
"""If the open nodes have less than one in so many of all cores, the jobs on them are marked: most others hold none."""
_UNKNOWN = -1
"""Chunks that have not been counted."""
_LOOKS_S = 1.0
"""Between looks whether a backfilling pass has anything to do."""
_SOON_S = 1.0
"""From now: when a job is expected to end that should have ended, or to have left."""
_INTERVALS = ("main_interval_s", "full_interval_s", "backfill_interval_s")
_STEP_S = 1 / 1024
"""First ticks are whole multiples of this: sums of them with whole seconds are exact."""


@kernel
def schedule_in_passes(s: State) -> bool:
    """Run the passes that are due; return False if a list does not fit. After starts there are passes at the next ticks
    again: expected ends of the jobs that started may change plans."""
    before = s.version
    _await_all(s, s.now)
    if s.pass_due[FULL_PASS] <= s.now:
        _main_pass(s, s.queue_tail - s.queue_head)
    elif s.pass_due[MAIN_PASS] <= s.now or s.left_at == s.now:
        _main_pass(s, s.main_depth)
    if s.pass_due[BACKFILL_PASS] <= s.now and not _backfill_pass(s):
        return False
    for kind in range(PASS_KINDS):
        if s.pass_due[kind] <= s.now:
            s.pass_due[kind], s.last_pass[kind] = np.inf, s.now
    if s.version != before:
        s.changed = 1
        _await_all(s, np.nextafter(s.now, np.inf))
    return True


@kernel
def _await_all(s: State, since: float) -> None:
    """Have passes of all kinds from a time on if something has changed and a job waits."""
    if s.changed == 1 and s.queue_tail > s.queue_head:
        for kind in range(PASS_KINDS):
            _await(s, kind, since)
    s.changed = 0


@kernel
def _await(s: State, kind: int, since: float) -> None:
    """Have a pass at the first tick of its kind from a time on, which is now or, when all passes of now have been, just
    behind it, but no second one at a tick; one that is due already stays so.

    A backfilling pass comes an interval after the one before it. If nothing has changed by then, SLURM looks every
    second.
    """
    if s.pass_due[kind] < np.inf:
        return
    first, interval = s.job.submit[0] + s.first_tick[kind], s.tick_interval[kind]
    if kind == BACKFILL_PASS and interval > _LOOKS_S:
        first, interval = max(first, s.last_pass[kind] + interval), _LOOKS_S
    time = next_tick(since if interval > 0.0 else s.now, first, interval)
    if interval > 0.0 and time == s.last_pass[kind]:
        time = next_tick(np.nextafter(s.now, np.inf), first, interval)
    s.pass_due[kind] = time
    if time > s.now:
        push_timer(s, time, TICK_TIMER * TIMER_STRIDE + kind)


@kernel
def _main_pass(s: State, depth: int) -> None:
    """Start jobs in order of the queue, none on nodes of a partition, or in an advance reservation, of which a job
    before it could not start."""
    s.blocked, refused = 0, 0
    position = s.queue_head
    for _ in range(depth):
        if position >= s.queue_tail or (s.free == 0 and s.preemption == DEFAULT):
            return
        job = s.queue[position]
        window = _window_of(s, job)
        is_refused = s.blocked >> s.job.partition[job] if window == ANYWHERE else refused >> window
        if is_refused & 1 == 0 and not has_come_to_limit(s, job):
            if _room_now(s, job) >= s.job.chunks[job] or _has_room_above(s, job):
                head = s.queue_head
                _start(s, job, position)
                position += s.queue_head - head
                continue
            if window != ANYWHERE:
                refused |= 1 << window
            else:
                _keep_room(s, job)
        position += 1


@kernel
def _keep_room(s: State, job: int) -> None:
    """Have others leave for a job that cannot start, and keep jobs behind it from the nodes of its partition."""
    if s.preemption != DEFAULT:
        make_room(s, job, s.blocked)
    if not _is_shut_out(s, job):
        s.blocked |= 1 << s.job.partition[job]


@inlined
def _window_of(s: State, job: int) -> int:
    """Return the advance reservation that a job of the queue asks for, or ANYWHERE."""
    return s.asks_for[job] if s.asks == 1 else ANYWHERE


@inlined
def _is_for(s: State, job: int, node: int) -> bool:
    """Tell whether a node is of the partition of a job, and of the advance reservation that it asks for."""
    window = _window_of(s, job)
    return s.node_members[node] >> s.job.partition[job] & 1 == 1 and (
        window == ANYWHERE or s.node_windows[node] >> window & 1 == 1
    )


@inlined
def _closed_to(s: State, job: int, met: int) -> int:
    """Return those of the advance reservations that a job would meet whose nodes it cannot have."""
    window = _window_of(s, job)
    return met if window == ANYWHERE else met & ~(1 << window)


@kernel
def _is_shut_out(s: State, job: int) -> bool:
    """Tell whether advance reservations leave a job of now too few nodes of its partition, even if all were idle."""
    closed, total = windows_of(s, job, s.now), 0
    if closed == 0:
        return False
    for node in range(s.node_cores.shape[0]):
        total += chunks_within(s, job, node, s.node_cores[node], s.node_gpus[node], s.node_memory[node], closed)
    return total < s.job.chunks[job]


@kernel
def _room_now(s: State, job: int) -> int:
    """Set how many chunks of a job each node can take now; return how many that is in all."""
    closed, total = _closed_to(s, job, windows_of(s, job, s.now)), 0
    if s.job.requested[job] > s.free:
        return 0
    for node in range(s.node_cores.shape[0]):
        count = 0
        if s.node_members[node] & s.blocked == 0 and _is_for(s, job, node):
            count = chunks_within(s, job, node, s.free_cores[node], s.free_gpus[node], s.free_memory[node], closed)
        s.takes[node], s.window_cores[node], s.window_memory[node] = count, s.free_cores[node], s.free_memory[node]
        total += count
    s.num_chosen = 0
    if total >= s.job.chunks[job]:
        hooks.choose_nodes(s, job)
    return total


@kernel
def _has_room_above(s: State, job: int) -> bool:
    """Choose nodes for a job which it can have in the main pass if others are suspended; tell whether there are
    enough."""
    closed = windows_of(s, job, s.now)
    return s.suspends == 1 and _window_of(s, job) == ANYWHERE and finds_room_above(s, job, s.blocked, closed)


@kernel
def _start(s: State, job: int, position: int) -> None:
    """Start a job of the queue on the nodes that are chosen for it."""
    reserve_pieces(s, job)
    dequeue_at(s, position)
    start_on_pieces(s, job)


@kernel
def _backfill_pass(s: State) -> bool:
    """Start what can start beside the plans for the jobs before it; return False if the table of plans is too small."""
    s.planned_of_user[:] = 0
    begin_searches(s)
    s.num_profile = 1
    set_point(s, 0, (_rounded(s, s.now), 0.0))
    s.profile_masks[s.profile_place[0]] = ~ZERO
    position = s.queue_head
    for _ in range(s.plan_depth):
        if position >= s.queue_tail:
            break
        job = s.queue[position]
        if not has_come_to_limit(s, job) and not _is_of_many(s, job):
            start = _earliest(s, job)
            if start == s.now and _waits_for_leaving(s):
                start = s.now + _SOON_S
            if start == s.now and s.others_leave == 1:  # it waits for them, and its nodes for it
                if not _plan(s, job, s.now):
                    return False
                make_room_on_open(s, job)
                position += 1
                continue
            if start == s.now:
                head = s.queue_head
                _start(s, job, position)
                position += s.queue_head - head
                continue
            s.over = 0
            if start <= s.now + s.plan_window and not _plan(s, job, start):
                return False
        position += 1
    return True


@kernel
def _waits_for_leaving(s: State) -> bool:
    """Tell whether a job is just leaving one of the chosen nodes, which keeps others away (SLURM: COMPLETING)."""
    for at in range(s.num_chosen):
        piece = s.piece_on[s.chosen[at]]
        while piece >= 0:
            if s.job.leaving[s.piece_job[piece]] == GOES:
                return True
            piece = s.piece_beside[piece]
    return False


@kernel
def _is_of_many(s: State, job: int) -> bool:
    """Tell whether the pass has looked at as many jobs of the user of this one as it may; if not, count it."""
    user = s.job.user[job]
    if s.plan_user_depth > 0 and s.planned_of_user[user] >= s.plan_user_depth:
        return True
    s.planned_of_user[user] += 1
    return False


@kernel
def _earliest(s: State, job: int) -> float:
    """Choose nodes for a job beside all plans; return when it can have them, s, infinity for never.

    No search begins behind the end of the advance reservation that it asks for. One that begins before may end behind
    it: then the job is planned for a time at which it cannot start, as in SLURM.
    """
    time, window = s.now, _window_of(s, job)
    last = np.inf if window == ANYWHERE else s.window_end[window]
    while time < last:
        later = _open_nodes(s, job, time)
        if has_too_little(s, job, later):
            time = later
            continue
        _spread_mask(s)
        start = max(time, _free_from(s, job, time, later))
        if start == np.inf or (later < start and start > s.now):
            if later == np.inf:
                return np.inf
            time = later  # some nodes that are planned for others are free from then on
        elif start == s.now or start == time or not _meets_plan(s, job, start):
            return start
        else:
            time = start
    return np.inf


@kernel
def _open_nodes(s: State, job: int, time: float) -> float:
    """Mark the nodes of a partition that nobody has in plan from a time on for as long as the job may last; return the
    first end after that time of a plan that sets others free, or of an advance reservation, s, or infinity."""
    end, later = expected_end(s, job, whole_second(s, time)), np.inf
    _mark_for_job(s, job, _closed_to(s, job, windows_met(s, time, end)))
    for word in range(s.open_mask.shape[0]):
        s.open_mask[word] = s.for_job[word]
    for row in range(s.num_profile):
        last = row + 1 == s.num_profile
        if not last and s.profile_time[row + 1] <= time:
            continue
        if not last and later == np.inf and _opens_more(s, row):
            later = s.profile_time[row + 1]
        if s.profile_time[row] > end:
            break
        place = s.profile_place[row]
        for word in range(s.open_mask.shape[0]):
            s.open_mask[word] &= s.profile_masks[place, word]
    return min(later, _first_reopening(s, job, time, end))


@kernel
def _spread_mask(s: State) -> None:
    """Mark those nodes of the mask that are up one by one, and count the cores of all, idle or not."""
    cores, first = 0, 0
    for word in range(s.open_mask.shape[0]):
        mask = s.open_mask[word]
        for node in range(first, min(first + 64, s.open_node.shape[0])):
            is_open = np.int64(mask >> np.uint64(node - first) & ONE)
            s.open_node[node] = is_open if s.down_until[node] == -np.inf else 0
            cores += s.node_cores[node] & -is_open
        first += 64
    s.open_cores = cores


@kernel
def _mark_for_job(s: State, job: int, closed: int) -> None:
    """Mark the nodes that are for a job, and of no advance reservation in ``closed``."""
    asked = _window_of(s, job)
    for word in range(s.for_job.shape[0]):
        mask = s.partition_masks[s.job.partition[job], word]
        if asked != ANYWHERE:
            mask &= s.window_masks[asked, word]
        for window in range(s.num_windows):
            if closed >> window & 1 == 1:
                mask &= ~s.window_masks[window, word]
        s.for_job[word] = mask


@kernel
def _first_reopening(s: State, job: int, time: float, end: float) -> float:
    """Return the first end of any advance reservation after a time, if a job that begins then meets one of a node that
    is for it, s; else infinity."""
    closed, first, meets = _closed_to(s, job, windows_met(s, time, end)), np.inf, False
    if closed == 0:
        return np.inf
    for node in range(s.node_windows.shape[0]):
        meets = meets or (s.node_windows[node] & closed != 0 and _is_for(s, job, node))
    for window in range(s.num_windows):
        if meets and s.window_end[window] > time:
            first = min(first, s.window_end[window])
    return first


@kernel
def _opens_more(s: State, row: int) -> bool:
    """Tell whether the next row of the table has a node for a job that is not open up to this one."""
    place, after = s.profile_place[row], s.profile_place[row + 1]
    for word in range(s.open_mask.shape[0]):
        then = s.profile_masks[after, word] & s.for_job[word]
        if then & ~(s.open_mask[word] & s.profile_masks[place, word]) != ZERO:
            return True
    return False


@kernel
def _free_from(s: State, job: int, time: float, latest: float) -> float:
    """Choose of the open nodes those that a job can have first; return from when on, s, infinity for never or later
    than ``latest``.

    Ends of a group count as the last of them: those up to 30 s behind the first multiple of 30 s after the first end,
    then those of the next 30 s, the next 60 s, 120 s, and so on. A job on none of these nodes ends no group.
    """
    closed, over, is_anywhere = _closed_to(s, job, windows_of(s, job, time)), 0, _window_of(s, job) == ANYWHERE
    s.over = s.others_leave = 0
    if s.suspends == 0 and s.open_cores < s.job.requested[job]:
        return np.inf
    chunks = _UNKNOWN
    if _begin_window(s, job) >= s.job.requested[job]:
        chunks = _count(s, job, closed, chunks)
    if chunks >= s.job.chunks[job]:
        choose_counted(s, job)
        return s.now
    if s.suspends == 1:
        if is_anywhere and finds_room_on_open(s, job, closed):
            return s.now
        over = s.may_preempt[s.job.preempt_class[job]] if is_anywhere else 0
        _begin_without(s, over)
        chunks = _UNKNOWN
    elif is_anywhere and s.preemption != DEFAULT and may_preempt(s, job):
        over = s.may_preempt[s.job.preempt_class[job]]
        if free_lower(s, job) and choose_in_window(s, job, closed):
            s.others_leave = 1
            return s.now
        chunks = _UNKNOWN
    _order_ends(s)
    few, cores = _FEW_OPEN * s.open_cores < s.nodes, _cores_in_window(s)
    if few:
        _mark_jobs(s)
    end, first, span, untried, at = s.now, np.inf, _GROUP_S, False, _next_job(s, 0, job, over)
    while at < s.num_releases:
        if not untried and whole_second(s, s.release_time[at]) > latest:
            return np.inf
        found = False
        if not few or s.job.marked[int(s.release_item[at])] == s.marks:
            found, more = free_for(s, int(s.release_item[at]), job)
            cores += more
        goes = s.job.leaving[int(s.release_item[at])] == GOES
        if found:
            end, untried = whole_second(s, s.release_time[at]), True
            if end > latest:  # and so is the last end of this group
                return np.inf
            if first == np.inf:
                first = end + _GROUP_S - np.mod(end - s.clock_origin, _GROUP_S)
        at = _next_job(s, at + 1, job, over)
        next_end = whole_second(s, s.release_time[at]) if at < s.num_releases else np.inf
        goes = goes and at < s.num_releases and s.job.leaving[int(s.release_item[at])] != GOES
        if next_end == np.inf or (found and (next_end > first + span or goes)):
            if untried and cores >= s.job.requested[job]:
                chunks = _count(s, job, closed, chunks)
                if chunks >= s.job.chunks[job]:
                    choose_counted(s, job)
                    return end if end > s.now else s.now + _SOON_S
            untried = False
            while first + span < next_end < np.inf:
                span *= 2.0
    return np.inf


@inlined
def _count(s: State, job: int, closed: int, before: int) -> int:
    """Return how many chunks of a job the open nodes can take by what is free in the window; ``before`` are those that
    were counted last in this search, or _UNKNOWN."""
    if before != _UNKNOWN:
        return count_touched(s, job, closed, before)
    s.touched[:] = 0
    return count_in_window(s, job, closed)


@inlined
def _mark_jobs(s: State) -> None:
    """Mark the jobs that hold anything of the open nodes."""
    s.marks += 1
    for node in range(s.open_node.shape[0]):
        if s.open_node[node] == 1:
            piece = s.piece_on[node]
            while piece >= 0:
                s.job.marked[s.piece_job[piece]] = s.marks
                piece = s.piece_beside[piece]


@inlined
def _cores_in_window(s: State) -> int:
    """Return how many cores of the open nodes are free in the window, where less than nothing counts as nothing."""
    cores = 0
    for node in range(s.open_node.shape[0]):
        cores += max(s.window_cores[node], 0)
    return cores


@kernel
def _begin_window(s: State, job: int) -> int:
    """Begin with what a job may need that is free of the open nodes now; return how many cores that is."""
    cores = 0
    for node in range(s.open_node.shape[0]):
        free = s.free_cores[node] & -s.open_node[node]
        s.window_cores[node] = free
        cores += max(free, 0)
    if s.job.chunk_gpus[job] + s.job.chunk_memory[job] > 0:
        for node in range(s.open_node.shape[0]):
            s.window_gpus[node], s.window_memory[node] = s.free_gpus[node], s.free_memory[node]
    return cores


@kernel
def _order_ends(s: State) -> None:
    """Put jobs whose expected ends are in the same second in the order of the list of jobs."""
    if s.ends_ordered == 1:
        return
    s.ends_ordered = 1
    for last in range(1, s.num_releases):
        time, item, at = s.release_time[last], s.release_item[last], last
        second = whole_second(s, time)
        while at > 0 and whole_second(s, s.release_time[at - 1]) == second:
            if _is_listed_before(s, int(s.release_item[at - 1]), int(item)):
                break
            s.release_time[at], s.release_item[at] = s.release_time[at - 1], s.release_item[at - 1]
            at -= 1
        s.release_time[at], s.release_item[at] = time, item


@inlined
def _is_listed_before(s: State, one: int, other: int) -> bool:
    """Tell whether a job comes before another one in the list of jobs; nodes that are down, which are below 0, come
    first."""
    if s.lists == 1 and one >= 0 and other >= 0 and s.listed_since[one] != s.listed_since[other]:
        return s.listed_since[one] < s.listed_since[other]
    return one < other


@kernel
def _begin_without(s: State, over: int) -> None:
    """Begin with what would be free of the open nodes without the cores of the jobs that may be suspended, of the
    classes ``over``: of a node whose cores two others have, one of them suspended, there may be less than nothing."""
    expect_halted(s)
    for node in range(s.open_node.shape[0]):
        cores, piece = s.free_cores[node] - s.lacking[node], s.piece_on[node]
        while piece >= 0:
            cores += s.piece_cores[piece] * (over >> s.job.preempt_class[s.piece_job[piece]] & 1)
            piece = s.piece_beside[piece]
        s.window_cores[node] = cores * s.open_node[node]


@kernel
def _next_job(s: State, at: int, waiting: int, over: int) -> int:
    """Return the place of the next job in the list of expected releases that does not count as gone for a waiting
    one."""
    while at < s.num_releases:
        job = int(s.release_item[at])
        if job >= 0 and not _is_gone(s, job, waiting, over):
            break
        at += 1
    return at


@kernel
def _is_gone(s: State, job: int, waiting: int, over: int) -> bool:
    """Tell whether a job counts as gone for a waiting one, which may preempt the classes ``over``."""
    if s.suspends == 1:
        return over >> s.job.preempt_class[job] & 1 == 1
    return over != 0 and makes_way(s, job, waiting)


@kernel
def _rounded(s: State, time: float) -> float:
    """Return a time rounded down to a multiple of the resolution."""
    if s.plan_resolution == 0.0:
        return time
    return s.clock_origin + np.floor((time - s.clock_origin) / s.plan_resolution) * s.plan_resolution


@kernel
def _planned_end(s: State, job: int, start: float) -> float:
    """Return when the plan for a job ends, s: rounded down, too, but not to nothing."""
    return max(_rounded(s, expected_end(s, job, start)), _rounded(s, start) + s.plan_resolution)


@kernel
def _meets_plan(s: State, job: int, start: float) -> bool:
    """Tell whether a chosen node is planned for another job at some time while the job would have it."""
    begin, end = _rounded(s, start), _planned_end(s, job, start)
    for row in range(s.num_profile):
        if s.profile_time[row] < end and (row + 1 == s.num_profile or s.profile_time[row + 1] > begin):
            for at in range(s.num_chosen):
                if not _is_unplanned(s, s.profile_place[row], s.chosen[at]):
                    return True
    return False


@inlined
def _is_unplanned(s: State, place: int, node: int) -> bool:
    """Tell whether a node is in no plan at a place of the table."""
    return s.profile_masks[place, node >> 6] >> np.uint64(node & 63) & ONE != ZERO


@kernel
def _plan(s: State, job: int, start: float) -> bool:
    """Keep the chosen nodes, whole, for a job; return False if the table is too small."""
    first = breakpoint_at(s, (_rounded(s, start), 0.0))
    last = breakpoint_at(s, (_planned_end(s, job, start), 0.0)) if first >= 0 else -1
    if last < 0:
        return False
    for row in range(first, last):
        for at in range(s.num_chosen):
            node = s.chosen[at]
            s.profile_masks[s.profile_place[row], node >> 6] &= ~(ONE << np.uint64(node & 63))
    return True


def _check_users(jobs: Mapping[str, NDArray[Any]], run: Run) -> None:
    """Raise InputError if the jobs of users are to be counted and no job has one."""
    if run["backfill_user_depth"] and not (jobs["user"] >= 0).any():
        raise InputError(
            "backfill_user_depth: it counts the jobs of users, and the workload has none "
            "(valid: a log with users, num_users above 0, or backfill_user_depth = 0)"
        )


def _has_ticks(run: Run) -> bool:
    return any(run[name] > 0 for name in _INTERVALS) or (gives_grace(run) and run["grace_interval_s"] > 0)


def _begin(s: State, run: Run) -> None:
    s.tick_interval[:] = [run[name] for name in _INTERVALS]
    key = coin_key(run["seed"], run["replicate"], "scheduling/ticks")
    s.grace_interval, s.preempt_wait = run["grace_interval_s"], run["preempt_wait_s"]
    s.clock_origin = float(s.job.submit[0]) if len(s.job.submit) else 0.0
    s.leaves_later, s.preempt_leave = 1, run["preempt_leave_s"]
    intervals = np.append(s.tick_interval, s.grace_interval)
    first = np.floor(coins(key, 0, np.arange(len(intervals)), 0) * intervals / _STEP_S) * _STEP_S
    short, long = sorted((MAIN_PASS, FULL_PASS), key=lambda kind: s.tick_interval[kind])
    if s.tick_interval[short] > 0:  # one loop of the controller has both
        first[long] = first[short] + first[long] // s.tick_interval[short] * s.tick_interval[short]
    s.first_tick[:], s.first_grace_tick = first[:-1], first[-1]
    s.pass_due[:], s.last_pass[:], s.left_at = np.inf, -np.inf, -np.inf
    s.main_depth, s.plan_depth = run["main_depth"], run["backfill_depth"]
    s.plan_user_depth = run["backfill_user_depth"]
    s.plan_window, s.plan_resolution = 3600.0 * run["backfill_window_h"], run["backfill_resolution_s"]


def _interval(name: str, default: float, doc: str) -> Parameter:
    zero = "for a pass at every event"
    return Parameter(name, float, default, doc, "scheduling", minimum=0, maximum=1e9, unit="s", zero=zero)


POLICY = Policy(
    "slurm",
    "SLURM's main pass and sched/backfill: jobs start at ticks, and plans last for one pass.",
    aliases=("sched/backfill",),
    machines=(ON_SITE,),
    consults=(("seed", _has_ticks),),
    parameters=(
        _interval("main_interval_s", 1.0, "Time between ticks at which the main pass of slurm can run."),
        Parameter(
            "main_depth",
            int,
            100,
            "Jobs that it looks at (SLURM: default_queue_depth).",
            "scheduling",
            minimum=1,
            maximum=1e9,
        ),
        _interval(
            "full_interval_s",
            60.0,
            "Time between ticks at which it can look at all jobs (SLURM: sched_interval).",
        ),
        _interval("backfill_interval_s", 30.0, "Time between backfilling passes of slurm (SLURM: bf_interval)."),
        Parameter(
            "grace_interval_s",
            float,
            30.0,
            "Time between ticks at which jobs leave whose grace is over, needed or not (SLURM: 30 s).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
            zero="to leave when the grace is over",
            live=gives_grace,
        ),
        Parameter(
            "preempt_wait_s",
            float,
            40.0,
            "Time before a job that has had others leave may have more leave (SLURM: KillWait and MessageTimeout).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
            live=has_others_leave,
        ),
        Parameter(
            "preempt_leave_s",
            float,
            0.04,
            "Time that a preempted job takes to leave its nodes; a main pass follows (SLURM: as measured).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
            live=has_others_leave,
        ),
        Parameter(
            "backfill_window_h",
            float,
            24.0,
            "How far ahead they plan (SLURM: bf_window, in minutes).",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="h",
        ),
        Parameter(
            "backfill_resolution_s",
            float,
            60.0,
            "Plans begin and end at whole multiples of this (SLURM: bf_resolution); 0: at any time.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
        Parameter(
            "backfill_depth",
            int,
            500,
            "Jobs that they look at (SLURM: bf_max_job_test).",
            "scheduling",
            minimum=1,
            maximum=1e9,
        ),
        Parameter(
            "backfill_user_depth",
            int,
            0,
            "Jobs of one user that they look at (SLURM: bf_max_job_user); 0: as many as there are.",
            "scheduling",
            minimum=0,
            maximum=1e9,
        ),
    ),
    kernels={"start_jobs": schedule_in_passes},
    facts={"reserves": IN_PLANS, "checks": _check_users, "lists_tasks": True},
    begins=_begin,
)
