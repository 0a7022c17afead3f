"""Which running jobs make way for a waiting one on a site: as few as SLURM's select/cons_tres would preempt.

Jobs that may be preempted are taken away one after another, in order of their partition's tier or their QOS's priority,
then of their number of nodes, then of their arrival, until the waiting job finds room. Those taken away that are on
none of its nodes stay. That is tried up to three times: the one whose place was needed last comes first the next time,
the others by how many of the chosen nodes they are on. (SLURM 22.05: preempt/partition_prio, preempt/qos, and
preempt_reorder_count of slurm.conf(5), which is 1.)
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.allocation import exempt_until, windows_of
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import (
    choose_in_window,
    count_pieces,
    free_in_window,
    holds_piece,
    is_in_partition,
)
from faultsweep.simcore.engine.state import (
    GOES,
    LEAVE_TIMER,
    ORDER_TIMER,
    RUNNING,
    SAVES_LAST,
    STAYS,
    TIMER_STRIDE,
    State,
)
from faultsweep.simcore.engine.timers import cancel_timer, push_timer
from faultsweep.simcore.policies.preemption.leaving import leave, tell

_ROUNDS = 3
_FIRST = 1 << 40


@kernel
def make_room(s: State, job: int, barred: int) -> bool:
    """Have running jobs leave whose place a waiting job needs that finds no room; tell whether nodes are free by that.

    barred : bits of the partitions whose nodes it cannot have.
    """
    for node in range(s.node_cores.shape[0]):
        s.open_node[node] = 1 if s.node_members[node] & barred == 0 else 0
    return may_preempt(s, job) and make_room_on_open(s, job)


@kernel
def may_preempt(s: State, job: int) -> bool:
    """Tell whether there are others that a job may have leave, not only stand still."""
    return s.suspends == 0 and s.may_preempt[s.job.preempt_class[job]] != 0


@kernel
def make_room_on_open(s: State, job: int) -> bool:
    """Do the same on the open nodes alone, such as those that no plan has (slurm)."""
    if s.job.preempts_from[job] > s.now:
        return False
    before, count = s.version, _candidates(s, job)
    in_window, s.chooses_in_window = s.chooses_in_window, 1
    last = _fewest(s, job, count)
    s.chooses_in_window = in_window
    if last >= 0 and s.job.preempts_from[job] == -np.inf:
        s.job.preempts_from[job] = s.now + s.preempt_wait
        if s.preempt_wait > 0.0:
            push_timer(s, s.now + s.preempt_wait, ORDER_TIMER * TIMER_STRIDE + 1 + s.job.submit.shape[0] + job)
    for at in range(last + 1):
        victim = s.victims[at]
        if _is_on_chosen(s, victim) > 0:
            if s.job.leaving[victim] == STAYS:
                tell(s, victim)
            elif s.job.leaves_from[victim] <= s.now:
                cancel_timer(s, LEAVE_TIMER * TIMER_STRIDE + victim)
                leave(s, victim)
    return s.version != before


@kernel
def makes_way(s: State, job: int, waiting: int) -> bool:
    """Tell whether a job, which holds nodes, may be preempted by a waiting one, or makes its last checkpoint already:
    on a node of the partition of the waiting one. One that waits for its own nodes keeps them; one that goes anyway
    does not count."""
    allowed = s.may_preempt[s.job.preempt_class[waiting]]
    if allowed >> s.job.preempt_class[job] & 1 == 0 or s.job.status[job] != RUNNING or s.job.leaving[job] == GOES:
        return False
    if not is_in_partition(s, job, s.job.partition[waiting]):
        return False
    return s.job.leaving[job] == SAVES_LAST or s.now >= exempt_until(s, job)


@kernel
def free_lower(s: State, waiting: int) -> bool:
    """Free in the window what those hold of the open nodes that make way for a waiting job; tell whether that is
    anything."""
    found = False
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job >= 0 and makes_way(s, job, waiting) and free_in_window(s, job):
            found = True
    return found


@kernel
def _candidates(s: State, waiting: int) -> int:
    """List the running jobs that may be preempted, also those that were told to leave, those to leave first in front;
    return how many there are."""
    count = 0
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job < 0 or s.job.leaving[job] == SAVES_LAST or not makes_way(s, job, waiting):
            continue
        key = -(s.preempt_order[s.job.preempt_class[job]] * (s.nodes + 1) + count_pieces(s, job))
        _insert(s, count, job, key, True)
        count += 1
    return count


@kernel
def _insert(s: State, place: int, job: int, key: int, by_arrival: bool) -> None:
    """Insert a job behind those of the first ``place`` with higher keys; of equal ones, by arrival or as they come."""
    while place > 0 and (
        s.victim_key[place - 1] < key or (by_arrival and s.victim_key[place - 1] == key and s.victims[place - 1] > job)
    ):
        s.victims[place], s.victim_key[place] = s.victims[place - 1], s.victim_key[place - 1]
        place -= 1
    s.victims[place], s.victim_key[place] = job, key


@kernel
def _fewest(s: State, job: int, count: int) -> int:
    """Choose nodes for a job; return the place of the last candidate whose place it needs, -1 if it needs none's or
    finds no room at all."""
    rounds, closed = 0, windows_of(s, job, s.now)
    while True:
        _begin(s)
        if choose_in_window(s, job, closed):  # when those have gone that make their last checkpoint
            return -1
        last, at = -1, 0
        while last < 0 and at < count:
            free_in_window(s, s.victims[at])
            if choose_in_window(s, job, closed):
                last = at
            at += 1
        rounds += 1
        if last < 0 or rounds == _ROUNDS or count <= rounds:
            return last
        _reorder(s, last, count)


@kernel
def _begin(s: State) -> None:
    """Begin with what is free of the open nodes, and what will be when those have gone that make their last
    checkpoint."""
    for node in range(s.node_cores.shape[0]):
        s.window_cores[node] = s.free_cores[node] * s.open_node[node]
        s.window_gpus[node], s.window_memory[node] = s.free_gpus[node], s.free_memory[node]
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job >= 0 and s.job.leaving[job] == SAVES_LAST:
            free_in_window(s, job)


@kernel
def _reorder(s: State, last: int, count: int) -> None:
    """Put the candidate whose place was needed last first, then those before it by how many of the chosen nodes they
    are on."""
    for at in range(count):
        job = s.victims[at]
        key = _FIRST if at == last else _is_on_chosen(s, job) if at < last else 0
        _insert(s, at, job, key, False)


@kernel
def _is_on_chosen(s: State, job: int) -> int:
    """Return how many of the chosen nodes a running job holds parts of."""
    found = 0
    for at in range(s.num_chosen):
        if holds_piece(s, job, s.chosen[at]):
            found += 1
    return found
