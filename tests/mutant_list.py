"""The mutants: what is changed in the kernels, and what that would break."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One small change: ``old`` occurs exactly once in ``file``."""

    file: str
    old: str
    new: str
    why: str


ENGINE = "simcore/engine/loop.py"
ALLOCATION = "simcore/engine/allocation.py"
EVENTS = "simcore/engine/events.py"
PLACEMENT = "simcore/policies/placement/rules.py"
BITS = "simcore/engine/bits.py"
COLUMNS = "simcore/finders/columns.py"
PROFILE = "simcore/engine/profile.py"
FCFS = "simcore/policies/scheduling/fcfs.py"
BACKFILL = "simcore/policies/scheduling/backfill.py"
CONSERVATIVE = "simcore/policies/scheduling/conservative.py"
COUNTS = "simcore/policies/scheduling/counts.py"
MIGRATION = "simcore/policies/scheduling/migration.py"
SAVING = "simcore/policies/checkpointing/saving.py"
REQUEUE = "simcore/policies/recovery/requeue.py"
MENU = "simcore/policies/scheduling/menu.py"

MUTANTS: tuple[Mutant, ...] = (
    # instants and events
    Mutant(ENGINE, "span * max(0, free - queued)", "span * max(0, free)", "unused capacity forgets the queue"),
    Mutant(ENGINE, "span * min(free, queued)", "span * free", "all idle nodes count as fragmentation"),
    Mutant(ENGINE, "s.f[DOWN] += span * s.i[NUM_DOWN]", "s.f[DOWN] += span", "one node down, however many are"),
    Mutant(
        ENGINE,
        "(s.i[EVENT_ORDER] == SUBMITS_FIRST or not completes)",
        "(s.i[EVENT_ORDER] != SUBMITS_FIRST or not completes)",
        "submits-first and ends-first exchanged",
    ),
    Mutant(
        ENGINE,
        "if s.job_f[END, job] == s.f[NOW]:",
        "if s.job_f[END, job] >= s.f[NOW]:",
        "overrunning jobs count as free",
    ),
    Mutant(
        ENGINE,
        "s.i[RELEASED] = 1  # also",
        "s.i[RELEASED] = 0  # also",
        "no compression after a completion whose nodes were free before",
    ),
    Mutant(
        ENGINE,
        "max(0.0, now - work[RESUMED, job])\n    unspent",
        "now - work[RESUMED, job]\n    unspent",
        "negative work of a job killed before it works",
    ),
    Mutant(
        ENGINE,
        "    if now <= work[START, job]:  # killed",
        "    if now < work[START, job]:  # killed",
        "a job killed at the instant of its start has started",
    ),
    Mutant(
        ENGINE,
        "        if until > s.agenda[DOWN_UNTIL, node]:\n",
        "        if until > 0.0:\n",
        "a shorter failure of a down node shortens its down time",
    ),
    Mutant(ENGINE, "    until = s.f[NOW] + down\n", "    until = s.f[NOW] + 2.0 * down\n", "down times are doubled"),
    Mutant(ENGINE, "            s.i[HITS] += 1\n", "            s.i[HITS] += 2\n", "failures that hit count twice"),
    Mutant(
        ENGINE,
        "        s.i[DISTURBED] = 1\n    if s.i[TRACING] == 1:\n        _trace_transient",
        "        s.i[DISTURBED] = 0\n    if s.i[TRACING] == 1:\n        _trace_transient",
        "promises are kept through failures",
    ),
    # queue and expected releases
    Mutant(
        EVENTS, "s.lists[QUEUE, at] < job:", "s.lists[QUEUE, at] > job:", "a killed job does not return to its place"
    ),
    Mutant(
        EVENTS,
        "s.agenda[RELEASE_TIME, at - 1] > time:",
        "s.agenda[RELEASE_TIME, at - 1] < time:",
        "expected releases are not in order of time",
    ),
    # starting
    Mutant(
        ALLOCATION,
        "    return mask ^ rest\n",
        "    return rest\n",
        "a job gets the highest free nodes of a word instead of the lowest",
    ),
    Mutant(
        ALLOCATION,
        "    end = (start + cost) + (work[WORK, job] - work[SAVED, job])\n",
        "    end = (now + cost) + (work[WORK, job] - work[SAVED, job])\n",
        "the start delay does not delay the end",
    ),
    Mutant(
        ALLOCATION,
        "work[EXPECTED_END, job] = (start + cost) + remaining_estimate(s, job)",
        "work[EXPECTED_END, job] = (now + cost) + remaining_estimate(s, job)",
        "the expected end forgets the start delay",
    ),
    Mutant(
        ALLOCATION,
        "((time + s.f[START_DELAY]) + restart_cost(s, job))",
        "(time + restart_cost(s, job))",
        "reservations and promises forget the start delay",
    ),
    Mutant(
        ALLOCATION,
        "s.f[DELAYED] += s.f[START_DELAY] * size",
        "s.f[DELAYED] += s.f[START_DELAY]",
        "the delay is counted for one node",
    ),
    # first come, first served
    Mutant(
        FCFS,
        "    while size < largest and not fits(s, size):\n        size += 1\n",
        "    if size < largest and not fits(s, size):\n        size = largest\n",
        "a job grows to the largest free box instead of the smallest that fits",
    ),
    # backfilling
    Mutant(
        BACKFILL,
        "expected_end(s, job, now) <= reservation",
        "expected_end(s, job, now) < reservation",
        "a job that ends at the reservation is refused",
    ),
    Mutant(
        BACKFILL,
        "return reservation > now and remaining",
        "return True or remaining",
        "the reservation is not respected",
    ),
    Mutant(
        BACKFILL,
        "                if not in_time:\n                    extra -= size\n",
        "                extra -= 0 * size\n",
        "jobs that run past the reservation use the same spare nodes",
    ),
    Mutant(
        BACKFILL,
        "            if in_time or size <= extra:",
        "            if in_time or size < extra:",
        "one spare node is left unused",
    ),
    Mutant(
        BACKFILL,
        "    room_for = 0 if in_time else head_size\n",
        "    room_for = 0\n",
        "a box may take the head job's room on a torus",
    ),
    Mutant(
        BACKFILL,
        "        if free >= head_size and time > reservation:\n            break\n",
        "        if free >= head_size:\n            break\n",
        "releases at the time of the reservation are not all counted as spare",
    ),
    Mutant(
        BACKFILL,
        "min(size + s.i[GROWTH_LIMIT], largest) + 1",
        "min(size, largest) + 1",
        "no growth when the size itself has no free box",
    ),
    Mutant(
        BACKFILL,
        "limit = min(s.job_i[SIZE, job] + s.i[GROWTH_LIMIT],",
        "limit = min(s.job_i[SIZE, job] + s.i[GROWTH_LIMIT] + 1,",
        "growth beyond the limit",
    ),
    Mutant(
        BACKFILL,
        "            s.i[NUM_SHADOW] = count\n",
        "            s.i[NUM_SHADOW] = s.i[NUM_SHADOW]\n",
        "the next job does not see what the last one took from the reservation",
    ),
    Mutant(
        BACKFILL,
        "s.agenda[RELEASE_TIME, 0] > s.f[NOW]\n",
        "s.agenda[RELEASE_TIME, 0] > -1.0\n",
        "refusals are remembered although a job has overrun since",
    ),
    # conservative backfilling
    Mutant(
        CONSERVATIVE,
        "if s.i[RELEASED] == 1 and not (",
        "if s.i[RELEASED] == 2 and not (",
        "promises never get earlier",
    ),
    Mutant(COUNTS, "until = max(until, end)", "until = max(until, 0.0)", "what moves gives nothing to those behind it"),
    Mutant(
        COUNTS,
        "s.f[REGAINED] = max(s.f[REGAINED], end)",
        "s.f[REGAINED] = -np.inf",
        "what moves gives nothing to those before it",
    ),
    Mutant(
        COUNTS,
        "_class_above(size_s), _class_above(time_s), first",
        "_class_above(size_s), _class_below(time_s), first",
        "a search begins where a longer job fitted",
    ),
    Mutant(
        COUNTS,
        "_class_above(size_s), _class_above(time_s), first",
        "_class_below(size_s), _class_above(time_s), first",
        "a search begins where a larger job fitted",
    ),
    Mutant(COUNTS, "            return start\n", "            return promised\n", "no promise on a flat machine moves"),
    Mutant(
        PROFILE,
        "if s.profile[PROFILE_FREE, row] < size:",
        "if s.profile[PROFILE_FREE, row] + 1 < size:",
        "promises one node more than there is",
    ),
    Mutant(
        CONSERVATIVE,
        "min(size + s.i[GROWTH_LIMIT], s.i[NODES]) + 1",
        "min(size, s.i[NODES]) + 1",
        "promised boxes do not grow",
    ),
    Mutant(
        CONSERVATIVE,
        "s.agenda[RELEASE_TIME, 0] <= now:\n        return True",
        "s.agenda[RELEASE_TIME, 0] < now - 1e9:\n        return True",
        "promises are kept through overruns",
    ),
    Mutant(
        PROFILE,
        "if release > now else (now, 1.0)",
        "if release > now else (now, 0.0)",
        "an overrunning job counts as free now",
    ),
    Mutant(
        PROFILE,
        "return (end, rank) if end > time",
        "return (end, 0.0) if end > time",
        "what begins just after a time ends at a time",
    ),
    # migration
    Mutant(
        MIGRATION,
        "free / s.i[NODES] < s.f[MIGRATION_FREE]",
        "free / s.i[NODES] <= s.f[MIGRATION_FREE]",
        "exactly the least share of free nodes is not enough",
    ),
    Mutant(
        MIGRATION,
        "before / free > s.f[MIGRATION_MFP]",
        "before / free >= s.f[MIGRATION_MFP]",
        "exactly the largest share of the free partition is too much",
    ),
    Mutant(MIGRATION, "    if after >= before:\n", "    if after > before:\n", "an equal arrangement is not kept"),
    Mutant(
        MIGRATION,
        "        if after > before:\n            s.i[SUCCESSES]",
        "        if after >= before:\n            s.i[SUCCESSES]",
        "an equal arrangement is a success",
    ),
    Mutant(
        MIGRATION,
        "s.lists[ORDER, place - 1]] < size\n",
        "s.lists[ORDER, place - 1]] > size\n",
        "the smallest job is re-placed first",
    ),
    Mutant(
        MIGRATION,
        "_KEPT if s.lists[TRIAL_BOX, at] == _KEPT or at == stuck else NO_BOX",
        "_KEPT if at <= stuck else NO_BOX",
        "all jobs before the one that would grow keep their places",
    ),
    # node choice
    Mutant(
        "simcore/policies/node_choice/lff.py",
        "failures and other > node)",
        "failures and other < node)",
        "ties by index",
    ),
    Mutant(
        "simcore/policies/node_choice/moves.py",
        "s.job_f[START, job] > since",
        "s.job_f[START, job] >= since",
        "a job that started with the one that ends moves, too",
    ),
    Mutant(
        "simcore/policies/node_choice/moves.py",
        "> s.i[MOVE_THRESHOLD]",
        ">= s.i[MOVE_THRESHOLD]",
        "a difference of the threshold itself is enough",
    ),
    # checkpoints
    Mutant(SAVING, "    work[END, job] += cost\n", "    work[END, job] += 0.0 * cost\n", "a migration costs no time"),
    Mutant(
        SAVING,
        "    work[EXPECTED_END, job] += cost\n",
        "    work[EXPECTED_END, job] += 0.0 * cost\n",
        "the scheduler does not hear of a migration's cost",
    ),
    Mutant(
        SAVING,
        "max(now, work[RESUMED, job]) + cost",
        "now + cost",
        "a migration during another one's cost does not add to it",
    ),
    Mutant(
        SAVING,
        "    s.i[SCANNED_VERSION] = -1  #",
        "    #",
        "backfilling forgets that a pause moves the reservation",
    ),
    Mutant(SAVING, "work[NEXT_SAVE, job] >= work[INTERVAL", "work[NEXT_SAVE, job] > work[INTERVAL", "an interval left"),
    Mutant(SAVING, "= 1 if saves else 0", "= 0", "no checkpoint is ever used"),
    Mutant(
        ALLOCATION,
        "if s.job_i[RESTARTS, job] > 0 else 0.0",
        "if s.job_i[RESTARTS, job] > 1 else 0.0",
        "no restart cost",
    ),
    Mutant(BACKFILL, " and remaining_estimate(s, job) > 0.0", "", "a job that is overdue from its start may be early"),
    Mutant(
        "simcore/policies/checkpointing/exact.py",
        "s.job_f[END, job] > s.fail",
        "s.job_f[END, job] >= s.fail",
        "it completes",
    ),
    Mutant(
        "simcore/policies/checkpointing/bucket.py",
        "size == most and job < other",
        "size == most and job > other",
        "ties for the biggest job go to the later one",
    ),
    Mutant(
        "simcore/policies/checkpointing/foreseen.py",
        "            or s.job_f[RESUMED, job] > time\n",
        "",
        "a job that pauses begins another checkpoint",
    ),
    # recovery, menus, order by utility
    Mutant(REQUEUE, "(s.i[QUEUE_TAIL] - s.i[QUEUE_HEAD]) // 2)", "0)", "option D inserts at the head"),
    Mutant(REQUEUE, "return 0.5 * (s", "return 0.9 * (s", "option D is not midway between its neighbours"),
    Mutant(REQUEUE, " or _is_free(s, node):\n        return", ":\n        return", "a node is given up twice"),
    Mutant(REQUEUE, "if holds_node(s, job, node) and _is_free(s, node):", "if False:", "repaired nodes are not kept"),
    Mutant(REQUEUE, "max(up, expected_end(s, job, up))", "up", "nodes that are kept are expected free at the repair"),
    Mutant(REQUEUE, "s.job_f[UTILITY_SINCE, job] = s.f[NOW]", "pass", "the wait goes on from the arrival"),
    Mutant(MENU, "if blocked < least and leaves:", "if leaves:", "the last partition wins, whatever it blocks"),
    Mutant(MENU, "0 if in_time else head_size)", "0)", "backfilled jobs may delay the head job"),
    Mutant(MENU, "    _strike_out(s, USABLE, partition)\n", "", "wires in use are given out again"),
    Mutant("simcore/policies/queue_order/order.py", "share * share * share", "share * share", "the square of the wait"),
    # placement and prediction
    Mutant(
        PLACEMENT,
        "if after <= best_after:\n                            continue\n                    elif",
        "if after < best_after:\n                            continue\n                    elif",
        "the last best box instead of the first",
    ),
    Mutant(
        PLACEMENT,
        "                        if score >= best_score:\n",
        "                        if score > best_score:\n",
        "of equal scores the last box wins",
    ),
    Mutant(
        PLACEMENT,
        "failing = s.job_i[REQUESTED, job] * failure_risk(",
        "failing = size * failure_risk(",
        "the size after rounding and growth in balancing",
    ),
    Mutant(
        PLACEMENT,
        "s.failures[FAIL_TIME, at] < end:",
        "s.failures[FAIL_TIME, at] <= end:",
        "the window of the predictor holds its end",
    ),
    Mutant(
        PLACEMENT,
        "        survives *= 1.0 - accuracy\n",
        "        survives = 1.0 - accuracy\n",
        "the product rule is the maximum rule",
    ),
    Mutant(
        PLACEMENT,
        "                        if after == best_after and fails:\n",
        "                        if fails:\n",
        "tie-breaking gives up a larger free partition",
    ),
    Mutant(
        PLACEMENT,
        "        else:\n            marks[column] &= ~bit\n",
        "",
        "a node that fails and is missed stays reported by a false positive",
    ),
    Mutant(
        PLACEMENT,
        "        if s.failures[BASE_GAP, middle] < window:\n",
        "        if s.failures[BASE_GAP, middle] < 2.0 * window:\n",
        "the base rate is that of a longer window",
    ),
    Mutant(
        PLACEMENT,
        "floor = -1 if as_much < best_score else best_after",
        "floor = best_after",
        "a score of the user's wins only by a larger free partition",
    ),
    Mutant(
        PLACEMENT,
        "        if largest_beside(boxes, at, a, b, c, x, y, z, X, Y, Z) >= size:\n            return True\n",
        "        return True\n",
        "on a torus longer than a word a box may take the head job's room",
    ),
    # boxes
    Mutant(
        COLUMNS,
        "min(side, fitting + extent - depth)",
        "min(side, fitting)",
        "room is left at one end of a box only",
    ),
    Mutant(
        COLUMNS,
        "        if fitting <= 0:\n            continue\n        if extent == side:",
        "        if extent == side:",
        "a box that spans the ring leaves room beside anything",
    ),
    Mutant(
        COLUMNS,
        "        return 0, max(0, length - (end - side))\n",
        "        return 0, length\n",
        "a box that wraps around leaves too much",
    ),
    Mutant(
        COLUMNS,
        "(start - 1 if start else side - 1)",
        "(start - 1 if start else 0)",
        "a footprint at the border has no neighbour around it",
    ),
    Mutant(
        COLUMNS,
        " and run & y_before != ZERO:",
        ":",
        "a run counts as maximal that goes on before it in y",
    ),
    Mutant(
        COLUMNS,
        "    return offset + other_length <= length\n",
        "    return offset + other_length <= length + 1\n",
        "a box contains one that stands out at its end",
    ),
    Mutant(
        BITS,
        "    if length == width:\n        return ONE if mask == low_bits(width) else ZERO\n",
        "",
        "a box may span an axis from any base",
    ),
    Mutant(
        BITS,
        "        step = min(have, length - have)\n",
        "        step = have\n",
        "runs are looked for in powers of two",
    ),
)
