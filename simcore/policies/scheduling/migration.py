"""``migration``: re-place all running jobs, largest first, to enlarge the maximal free partition (krevat2003, scheduler
3)."""

from __future__ import annotations

from faultsweep.simcore.contract import FLAT, MENU, TORUS, Policy
from faultsweep.simcore.engine.allocation import trace_allocation
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ELSEWHEN,
    MFP,
    MIGRATE_EVENT,
    RUNNING,
    State,
)
from faultsweep.simcore.finders.columns import OVERFLOW
from faultsweep.simcore.policies.checkpointing.saving import pause
from faultsweep.simcore.policies.placement.rules import (
    NO_BOX,
    best_box,
    largest_free,
    list_boxes,
    occupy,
    set_table,
    take_listed,
    vacate,
)
from faultsweep.simcore.policies.run import on_torus
from faultsweep.simcore.policies.scheduling import MIGRATION, MOVES

_KEPT = -2  # a job that keeps its place because it would have to grow


@kernel
def migrate(s: State) -> int:
    """Attempt a migration if the thresholds allow it; return 1 if jobs moved, 0 if not, OVERFLOW if a list does not
    fit.

    Only attempts on a machine that has changed since the last one that counted do count, unless repeated ones shall,
    too: the thesis attempts a migration whenever the state of the torus is modified. Repeating one gives the same
    places again unless a predictor is asked.
    """
    free = s.free
    if free == 0 or (s.queue_head == s.queue_tail and s.migrates_empty == 0):
        return 0
    before = largest_free(s)
    if before < 0:
        return OVERFLOW
    if free / s.nodes < s.migration_free or before / free > s.migration_mfp:
        return 0
    counts = s.counts_repeats == 1 or s.attempted_version != s.version
    if counts:
        _count_attempt(s)
    elif s.placement == MFP:
        return 0
    running = _order_by_size(s)
    after = _re_place(s, running)
    if after == OVERFLOW:
        return OVERFLOW
    moved = 0
    if after >= before:
        moved = _apply(s, running)
        if after > before and counts:
            s.successes += 1
    if counts:
        s.attempted_version = s.version
    return 1 if moved > 0 else 0


@kernel
def _count_attempt(s: State) -> None:
    if s.attempts > 0:
        s.attempt_gaps += s.now - s.last_attempt
    s.last_attempt = s.now
    s.attempts += 1


@kernel
def _order_by_size(s: State) -> int:
    """List the running jobs by falling size, equal sizes by index, in the list ORDER; return their number."""
    count = 0
    for at in range(s.num_releases):
        job = int(s.release_item[at])
        if job < 0 or s.job.status[job] != RUNNING:
            continue
        size = s.job.allocated[job]
        place = count
        while place > 0 and (
            s.job.allocated[s.order[place - 1]] < size
            or (s.job.allocated[s.order[place - 1]] == size and s.order[place - 1] > job)
        ):
            s.order[place] = s.order[place - 1]
            place -= 1
        s.order[place] = job
        count += 1
    return count


@kernel
def _re_place(s: State, running: int) -> int:
    """Place all jobs of the list ORDER anew into TRIAL_BOX; return the maximal free partition that results, or
    OVERFLOW.

    A job that would have to grow keeps its place and everything starts again without it.
    """
    for at in range(running):
        s.trial_box[at] = NO_BOX
    while True:
        count = _empty_machine(s, running)
        stuck = -1
        for at in range(running):
            if count == OVERFLOW:
                return OVERFLOW
            if s.trial_box[at] == _KEPT:
                continue
            s.trial_box[at] = _place_on_trial(s, s.order[at], count)
            if s.trial_box[at] == NO_BOX:
                stuck = at
                break
            count = _take_on_trial(s, s.trial_box[at], count)
        if count == OVERFLOW:
            return OVERFLOW
        if stuck < 0:
            return s.boxes[ELSEWHEN, 0, 0] if count > 0 else 0
        for at in range(running):
            s.trial_box[at] = _KEPT if s.trial_box[at] == _KEPT or at == stuck else NO_BOX


@kernel
def _empty_machine(s: State, running: int) -> int:
    """Make the trial columns and boxes those of a machine with the kept jobs and the down nodes only."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    columns = s.trial
    for column in range(X * Y):
        columns[column] = s.free_nodes[column]
    for at in range(running):
        if s.trial_box[at] != _KEPT:
            vacate(columns, s.job.box[s.order[at]], X, Y, Z)
    set_table(s, ELSEWHEN, columns)
    return list_boxes(s, ELSEWHEN, ELSEWHEN, 1)


@kernel
def _place_on_trial(s: State, job: int, count: int) -> int:
    """Return the best box of a running job's size on the trial machine, or NO_BOX."""
    if count == 0 or s.boxes[ELSEWHEN, 0, 0] < s.job.allocated[job]:
        return NO_BOX
    window = s.job.expected_end[job] - s.now
    return best_box(s, s.placement, job, s.job.allocated[job], window, ELSEWHEN, ELSEWHEN, count, 0, 0)


@kernel
def _take_on_trial(s: State, box: int, count: int) -> int:
    """Occupy a box of the trial machine; return the new number of its maximal free boxes, or OVERFLOW."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    columns = s.trial
    occupy(columns, box, X, Y, Z)
    set_table(s, ELSEWHEN, columns)
    return take_listed(s, ELSEWHEN, count, box, 1)


@kernel
def _apply(s: State, running: int) -> int:
    """Move every job whose box has changed; return how many moved."""
    columns = s.side_x * s.side_y
    moved = 0
    for at in range(running):
        job = s.order[at]
        if s.trial_box[at] != _KEPT and s.trial_box[at] != s.job.box[job]:
            s.job.box[job] = s.trial_box[at]
            moved += 1
            _note_move(s, job)
    if moved > 0:
        for column in range(columns):
            s.free_nodes[column] = s.trial[column]
        s.version += 1
        s.moves += moved
    return moved


@kernel
def _note_move(s: State, job: int) -> None:
    """Count a job's move, add its cost to the job's end, and trace it."""
    s.job.migrations[job] += 1
    if s.tracing == 1:
        trace_allocation(s, MIGRATE_EVENT, job)
    if s.migration_cost > 0.0:
        pause(s, job, s.migration_cost)


POLICY = Policy(
    "migration",
    "FCFS, and running jobs move together on the torus when its free nodes are scattered.",
    uses=MIGRATION,
    becomes=((lambda run: not on_torus(run), "fcfs"),),
    facts={"migrates": True},
    metrics=MOVES,
    machines=(TORUS, FLAT, MENU),
)
