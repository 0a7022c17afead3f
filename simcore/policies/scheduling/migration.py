"""Migration: re-place all running jobs, largest first, to enlarge the maximal free partition (krevat2003, scheduler
3)."""

from __future__ import annotations

from faultsweep.simcore.engine.allocation import trace_allocation
from faultsweep.simcore.engine.jit import kernel
from faultsweep.simcore.engine.state import (
    ALLOCATED,
    ATTEMPT_GAPS,
    ATTEMPTED_VERSION,
    ATTEMPTS,
    BOX,
    ELSEWHEN,
    EXPECTED_END,
    FREE,
    FREE_NODES,
    LAST_ATTEMPT,
    MFP,
    MIGRATE_EVENT,
    MIGRATION_COST,
    MIGRATION_FREE,
    MIGRATION_MFP,
    MIGRATIONS,
    MOVES,
    NODES,
    NOW,
    NUM_RELEASES,
    ORDER,
    PLACEMENT,
    QUEUE_HEAD,
    QUEUE_TAIL,
    RELEASE_ITEM,
    RUNNING,
    SIDE_X,
    SIDE_Y,
    SIDE_Z,
    STATUS,
    SUCCESSES,
    TRACING,
    TRIAL,
    TRIAL_BOX,
    VERSION,
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

_KEPT = -2  # a job that keeps its place because it would have to grow


@kernel
def migrate(s):
    """Attempt a migration if the thresholds allow it; return 1 if jobs moved, 0 if not, OVERFLOW if a list does not
    fit."""
    free = s.i[FREE]
    if free == 0 or s.i[QUEUE_HEAD] == s.i[QUEUE_TAIL]:
        return 0
    before = largest_free(s)
    if before < 0:
        return OVERFLOW
    if free / s.i[NODES] < s.f[MIGRATION_FREE] or before / free > s.f[MIGRATION_MFP]:
        return 0
    _count_attempt(s)
    if s.i[ATTEMPTED_VERSION] == s.i[VERSION] and s.i[PLACEMENT] == MFP:
        return 0  # re-placing the same jobs again gives the same places
    running = _order_by_size(s)
    after = _re_place(s, running)
    if after == OVERFLOW:
        return OVERFLOW
    moved = 0
    if after >= before:
        moved = _apply(s, running)
        if after > before:
            s.i[SUCCESSES] += 1
    s.i[ATTEMPTED_VERSION] = s.i[VERSION]
    return 1 if moved > 0 else 0


@kernel
def _count_attempt(s):
    if s.i[ATTEMPTS] > 0:
        s.f[ATTEMPT_GAPS] += s.f[NOW] - s.f[LAST_ATTEMPT]
    s.f[LAST_ATTEMPT] = s.f[NOW]
    s.i[ATTEMPTS] += 1


@kernel
def _order_by_size(s):
    """List the running jobs by falling size, equal sizes by index, in the list ORDER; return their number."""
    count = 0
    for at in range(s.i[NUM_RELEASES]):
        job = int(s.agenda[RELEASE_ITEM, at])
        if job < 0 or s.job_i[STATUS, job] != RUNNING:
            continue
        size = s.job_i[ALLOCATED, job]
        place = count
        while place > 0 and (
            s.job_i[ALLOCATED, s.lists[ORDER, place - 1]] < size
            or (s.job_i[ALLOCATED, s.lists[ORDER, place - 1]] == size and s.lists[ORDER, place - 1] > job)
        ):
            s.lists[ORDER, place] = s.lists[ORDER, place - 1]
            place -= 1
        s.lists[ORDER, place] = job
        count += 1
    return count


@kernel
def _re_place(s, running):
    """Place all jobs of the list ORDER anew into TRIAL_BOX; return the maximal free partition that results, or
    OVERFLOW.

    A job that would have to grow keeps its place and everything starts again without it.
    """
    for at in range(running):
        s.lists[TRIAL_BOX, at] = NO_BOX
    while True:
        count = _empty_machine(s, running)
        stuck = -1
        for at in range(running):
            if count == OVERFLOW:
                return OVERFLOW
            if s.lists[TRIAL_BOX, at] == _KEPT:
                continue
            s.lists[TRIAL_BOX, at] = _place_on_trial(s, s.lists[ORDER, at], count)
            if s.lists[TRIAL_BOX, at] == NO_BOX:
                stuck = at
                break
            count = _take_on_trial(s, s.lists[TRIAL_BOX, at], count)
        if count == OVERFLOW:
            return OVERFLOW
        if stuck < 0:
            return s.boxes[ELSEWHEN, 0, 0] if count > 0 else 0
        for at in range(running):
            s.lists[TRIAL_BOX, at] = _KEPT if s.lists[TRIAL_BOX, at] == _KEPT or at == stuck else NO_BOX


@kernel
def _empty_machine(s, running):
    """Make the trial columns and boxes those of a machine with the kept jobs and the down nodes only."""
    X, Y, Z = s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z]
    columns = s.masks[TRIAL]
    for column in range(X * Y):
        columns[column] = s.masks[FREE_NODES, column]
    for at in range(running):
        if s.lists[TRIAL_BOX, at] != _KEPT:
            vacate(columns, s.job_i[BOX, s.lists[ORDER, at]], X, Y, Z)
    set_table(s, ELSEWHEN, columns)
    return list_boxes(s, ELSEWHEN, ELSEWHEN, 1)


@kernel
def _place_on_trial(s, job, count):
    """Return the best box of a running job's size on the trial machine, or NO_BOX."""
    if count == 0 or s.boxes[ELSEWHEN, 0, 0] < s.job_i[ALLOCATED, job]:
        return NO_BOX
    window = s.job_f[EXPECTED_END, job] - s.f[NOW]
    return best_box(s, s.i[PLACEMENT], job, s.job_i[ALLOCATED, job], window, ELSEWHEN, ELSEWHEN, count, 0, 0)


@kernel
def _take_on_trial(s, box, count):
    """Occupy a box of the trial machine; return the new number of its maximal free boxes, or OVERFLOW."""
    X, Y, Z = s.i[SIDE_X], s.i[SIDE_Y], s.i[SIDE_Z]
    columns = s.masks[TRIAL]
    occupy(columns, box, X, Y, Z)
    set_table(s, ELSEWHEN, columns)
    return take_listed(s, ELSEWHEN, count, box, 1)


@kernel
def _apply(s, running):
    """Move every job whose box has changed; return how many moved."""
    columns = s.i[SIDE_X] * s.i[SIDE_Y]
    moved = 0
    for at in range(running):
        job = s.lists[ORDER, at]
        if s.lists[TRIAL_BOX, at] != _KEPT and s.lists[TRIAL_BOX, at] != s.job_i[BOX, job]:
            s.job_i[BOX, job] = s.lists[TRIAL_BOX, at]
            moved += 1
            _note_move(s, job)
    if moved > 0:
        for column in range(columns):
            s.masks[FREE_NODES, column] = s.masks[TRIAL, column]
        s.i[VERSION] += 1
        s.i[MOVES] += moved
    return moved


@kernel
def _note_move(s, job):
    """Count a job's move, add its cost to the job's end, and trace it."""
    s.job_i[MIGRATIONS, job] += 1
    if s.i[TRACING] == 1:
        trace_allocation(s, MIGRATE_EVENT, job)
    if s.f[MIGRATION_COST] > 0.0:
        pause(s, job, s.f[MIGRATION_COST])
