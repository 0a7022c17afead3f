"""Where a job starts over others that are suspended for it.

It is placed as if all jobs had gone that it may have suspended. Then, from the highest of their classes on, the cores
of one class after another are taken out again, as long as the job still finds room: what it can have without the
higher ones it takes from the lower. On each node it has the first of the cores that are left. Whoever holds one of
these stands still; a job on other cores of the node runs on. (SLURM 22.05: the tests 1 to 3 of select/cons_tres, where
the classes are partitions.)
"""

from __future__ import annotations

from faultsweep.simcore.engine.cores import open_cores
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.pieces import choose_in_window
from faultsweep.simcore.engine.state import State


@kernel
def finds_room_above(s: State, job: int, barred: int, closed: int) -> bool:
    """Choose nodes for a job which it can have if others are suspended; tell whether there are enough.

    barred : bits of the partitions whose nodes it cannot have.
    closed : bits of the advance reservations that it would meet.
    """
    for node in range(s.node_cores.shape[0]):
        s.open_node[node] = 1 if s.node_members[node] & barred == 0 else 0
    return finds_room_on_open(s, job, closed)


@kernel
def finds_room_on_open(s: State, job: int, closed: int) -> bool:
    """Do the same on the open nodes; ``over`` are then the classes whose cores it takes."""
    over, in_window = s.may_preempt[s.job.preempt_class[job]], s.chooses_in_window
    s.chooses_in_window = 1
    found = over != 0 and _chooses(s, job, over, closed)
    if found:
        left = _without_highest(s, over)
        while left != 0 and _chooses(s, job, left, closed):
            over = left
            left = _without_highest(s, over)
        _chooses(s, job, over, closed)
        s.over = over
    s.chooses_in_window = in_window
    return found


@kernel
def _chooses(s: State, job: int, over: int, closed: int) -> bool:
    """Choose nodes as if the jobs of some classes had gone; tell whether there are enough."""
    open_cores(s, over)
    return choose_in_window(s, job, closed)


@kernel
def _without_highest(s: State, classes: int) -> int:
    """Take the highest out of the bits of some classes, of equal ones the first."""
    highest = -1
    for number in range(s.preempt_order.shape[0]):
        if classes >> number & 1 == 1 and (highest < 0 or s.preempt_order[number] > s.preempt_order[highest]):
            highest = number
    return classes & ~(1 << highest)
