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
TIMERS = "simcore/engine/timers.py"
DEPENDENCIES = "simcore/engine/dependencies.py"
PLACEMENT = "simcore/policies/placement/rules.py"
BITS = "simcore/engine/bits.py"
COLUMNS = "simcore/finders/columns.py"
PROFILE = "simcore/engine/profile.py"
FCFS = "simcore/policies/scheduling/fcfs.py"
BACKFILL = "simcore/policies/scheduling/backfill.py"
CONSERVATIVE = "simcore/policies/scheduling/conservative.py"
COUNTS = "simcore/policies/scheduling/counts.py"
DOMINANCE = "simcore/policies/scheduling/dominance.py"
UNCHANGED = "simcore/policies/scheduling/unchanged.py"
ROUND_ROBIN = "simcore/policies/node_choice/round_robin.py"
ROOM = "simcore/engine/counts.py"
LONG_QUEUE = "simcore/policies/scheduling/long_queue.py"
MIGRATION = "simcore/policies/scheduling/migration.py"
SAVING = "simcore/policies/checkpointing/saving.py"
INTERVALS = "simcore/policies/checkpointing/intervals.py"
BUCKET = "simcore/policies/checkpointing/bucket.py"
REQUEUE = "simcore/policies/recovery/requeue.py"
MULTIFACTOR = "simcore/policies/queue_order/multifactor.py"
USAGE = "simcore/policies/queue_order/usage.py"
PBS = "simcore/policies/queue_order/pbs.py"
LSF = "simcore/policies/queue_order/lsf.py"
ASSOCIATIONS = "simcore/policies/queue_order/associations.py"
LIMITS = "simcore/engine/limits.py"
SUBMITS = "simcore/engine/submits.py"
ADMITTED = "simcore/engine/admitted.py"
GROUPS = "simcore/model/limits.py"
SITE_LIMITS = "simcore/sites/limits.py"
MENU = "simcore/policies/scheduling/menu.py"
OWN_RULE = "simcore/policies/scheduling/own.py"
TOP = "simcore/policies/scheduling/top_jobs.py"
VICTIMS = "simcore/policies/preemption/victims.py"
LEAVING = "simcore/policies/preemption/leaving.py"
LAST_SAVE = "simcore/policies/preemption/checkpoint.py"
CANCELS = "simcore/policies/preemption/cancel.py"
HALTING = "simcore/policies/preemption/halting.py"
ABOVE = "simcore/policies/preemption/above.py"
CORES = "simcore/engine/cores.py"
SLURM = "simcore/policies/scheduling/slurm.py"
PIECES = "simcore/engine/pieces.py"
MOVES = "simcore/policies/node_choice/moves.py"
SHARED = "simcore/policies/scheduling/shared_nodes.py"
EXPECTED = "simcore/policies/scheduling/expected_room.py"
RECORDS = "simcore/engine/records.py"
RESERVED = "simcore/policies/scheduling/shared_reservations.py"
BEST_FIT = "simcore/policies/node_choice/best_fit.py"
CONSECUTIVE = "simcore/policies/node_choice/consecutive.py"
TRANSFORMS = "simcore/workloads/transforms.py"
SOURCE = "simcore/policies/failures/source.py"
MTBF = "simcore/policies/failures/mtbf.py"
FITTING = "simcore/failure_logs/fitting.py"
STREAMS = "simcore/streams.py"
BUILD = "simcore/engine/build.py"

MUTANTS: tuple[Mutant, ...] = (
    # timers
    Mutant(
        TIMERS, "if s.num_later > 0 and _comes_before(s, 0, time, key):", "if s.num_later > 0:", "none joins the list"
    ),
    Mutant(
        TIMERS, "_comes_before(s, 0, time, key):", "s.timer_time[0] < time:", "keys do not count at the end of the list"
    ),
    Mutant(TIMERS, "    if last == 0:\n", "    if last < 0:\n", "the list is not filled from the heap"),
    Mutant(
        TIMERS,
        "            if s.num_soon == 0:\n",
        "            if s.num_soon < 0:\n",
        "nor after the last one is cancelled",
    ),
    Mutant(TIMERS, "_move(s, at, at - half)", "_move(s, at - half, at)", "the sooner half of the list is lost"),
    Mutant(TIMERS, "_move(s, SOON, count - 1 - taken)", "_move(s, SOON, taken)", "timers of the heap come in reverse"),
    Mutant(TIMERS, "        _fill(s, 0, s.num_later)\n", "", "the first timer of the heap comes again"),
    Mutant(TIMERS, "        _fill(s, at, s.num_later)\n", "", "a cancelled timer of the heap comes"),
    Mutant(
        TIMERS,
        "    _sift_up(s, at, time, key)\n\n\n@inlined\ndef _sift_up",
        "    s.timer_time[SOON + at], s.timer_key[SOON + at] = time, key\n\n\n@inlined\ndef _sift_up",
        "later timers are in no order",
    ),
    Mutant(TIMERS, "if child + 1 < last and", "if child + 1 < last and not", "the later child moves up"),
    Mutant(EVENTS, "gone += other == item", "gone += other >= item", "other releases are forgotten"),
    Mutant(EVENTS, "        s.num_releases = count - gone\n", "        s.num_releases = count\n", "it stays listed"),
    Mutant(ENGINE, "    others = s.recovery + ", "    others = ", "recovery options are forgotten"),
    Mutant(ENGINE, "s.limited + s.asks", "s.asks", "limits are forgotten"),
    Mutant(ENGINE, " + s.migrates + s.watches", " + s.watches", "migration is forgotten"),
    Mutant(ENGINE, " + s.refuses + s.follows", " + s.refuses", "dependencies are forgotten"),
    Mutant(ENGINE, "by_default = s.queue_order == DEFAULT and ", "by_default = ", "orders of the queue are forgotten"),
    Mutant(ENGINE, "s.kind != SITE and s.partitions == 0 and", "s.kind != SITE and", "menus are forgotten"),
    # limits of running jobs
    Mutant(LIMITS, "s.group_jobs[group] >= s.most_jobs[group]", "s.group_jobs[group] > s.most_jobs[group]", "one more"),
    Mutant(LIMITS, "+ s.job.requested[job] > s.most_nodes", "> s.most_nodes", "the job's own nodes are not counted"),
    Mutant(LIMITS, "+= sign * s.job.requested[job]", "+= sign", "a node a job"),
    Mutant(LIMITS, "s.passes_again = 1", "s.passes_again = 0", "a start brings nobody to a limit"),
    Mutant(LIMITS, "if group == -1:", "if group < 0:", "groups that only count a job do not"),
    Mutant(LIMITS, "+= s.now - s.at_limit_since[job]", "+= s.now", "the time at a limit begins at 0"),
    Mutant(ADMITTED, " & ~(1 << window)", "", "a job meets its own reservation"),
    Mutant(
        ADMITTED, ">> window & 1 == 0:\n            total", ">> window & 1 == 1:\n            total", "on other nodes"
    ),
    Mutant(ADMITTED, "s.now >= s.window_end[window]", "s.now > s.window_end[window]", "it starts when that is over"),
    Mutant(
        ADMITTED, "refused >> window & 1 == 0", "refused == 0", "one reservation keeps jobs of another from starting"
    ),
    Mutant(ADMITTED, "free_followers(s, job)", "pass", "others wait for a job whose reservation is over"),
    Mutant(ADMITTED, "s.disturbed = 1  #", "s.disturbed = 0  #", "plans do not know of it"),
    Mutant(SUBMITS, ">= s.most_submitted[group]", "> s.most_submitted[group]", "one more is accepted"),
    Mutant(SUBMITS, "count_submitted(s, counted, -1)", "count_submitted(s, counted, 0)", "refused tasks stay counted"),
    Mutant(SUBMITS, "task = s.next_task[task]", "task = -1", "only the first task is looked at"),
    Mutant(SUBMITS, "free_followers(s, job)", "pass", "others wait for a refused job"),
    Mutant(SUBMITS, "if group == -1:", "if group < 0:", "groups that only count a job do not"),
    Mutant(CANCELS, "count_submitted(s, job, -1)", "pass", "a cancelled job stays submitted"),
    Mutant(EVENTS, "if s.job.status[jobs[at]] == WAITING:", "if at > 0:", "jobs that started wait again"),
    Mutant(
        ENGINE,
        "count_running(s, job, -1)\n    stop_leaving",
        "count_running(s, job, 0)\n    stop_leaving",
        "jobs that have ended count for limits",
    ),
    Mutant(REQUEUE, "count_running(s, job, 1)", "count_running(s, job, 0)", "jobs that wait for nodes do not count"),
    Mutant(GROUPS, "found &= ~_is_of(owners", "found |= _is_of(owners", "limits that another one stands above hold"),
    Mutant(GROUPS, "np.lexsort((~limits, row))", "np.lexsort((limits, row))", "groups that only count come first"),
    Mutant(SITE_LIMITS, "_partitions_with(site, field) - theirs", "frozenset()", "a partition's QOS stands above none"),
    Mutant(SITE_LIMITS, '(*above, ("user", others - {""}))', "above", "a user's own limit does not stand above"),
    # instants and events
    Mutant(ENGINE, "span * max(0, free - queued)", "span * max(0, free)", "unused capacity forgets the queue"),
    Mutant(ENGINE, "span * min(free, queued)", "span * free", "all idle nodes count as fragmentation"),
    Mutant(ENGINE, "s.down += span * s.num_down", "s.down += span", "one node down, however many are"),
    Mutant(
        ENGINE,
        "(s.event_order == SUBMITS_FIRST or not completes)",
        "(s.event_order != SUBMITS_FIRST or not completes)",
        "submits-first and ends-first exchanged",
    ),
    Mutant(
        ENGINE,
        "if s.job.end[job] == s.now:",
        "if s.job.end[job] >= s.now:",
        "overrunning jobs count as free",
    ),
    Mutant(
        ENGINE,
        "s.released = 1  # also",
        "s.released = 0  # also",
        "no compression after a completion whose nodes were free before",
    ),
    Mutant(
        ALLOCATION,
        "    s.job.worked[job] = s.job.saved[job]  # what",
        "    s.job.worked[job] += 0.0  # what",
        "a job that was stopped goes on with work that was lost",
    ),
    Mutant(
        ALLOCATION,
        "max(0.0, now - s.job.resumed[job])\n    unspent",
        "now - s.job.resumed[job]\n    unspent",
        "negative work of a job killed before it works",
    ),
    Mutant(
        ALLOCATION,
        "    if now <= s.job.start[job]:  # inside",
        "    if now < s.job.start[job]:  # inside",
        "a job killed at the instant of its start has started",
    ),
    Mutant(
        ENGINE,
        "        if until > s.down_until[node]:\n",
        "        if until > 0.0:\n",
        "a shorter failure of a down node shortens its down time",
    ),
    Mutant(ENGINE, "    until = s.now + down\n", "    until = s.now + 2.0 * down\n", "down times are doubled"),
    Mutant(ENGINE, "            s.hits += 1\n", "            s.hits += 2\n", "failures that hit count twice"),
    Mutant(
        ENGINE,
        "        s.changed = s.disturbed = 1\n    if s.tracing == 1:\n        _trace_transient",
        "        s.changed = 1\n    if s.tracing == 1:\n        _trace_transient",
        "reservations are kept through failures",
    ),
    # queue and expected releases
    Mutant(EVENTS, "    return other < job", "    return other > job", "a killed job does not return to its place"),
    Mutant(
        EVENTS,
        "s.release_time[at - 1] > time:",
        "s.release_time[at - 1] < time:",
        "expected releases are not in order of time",
    ),
    # starting
    Mutant(
        "simcore/policies/node_choice/first_fit.py",
        "taken = lowest_bits(free, wanted)",
        "taken = free ^ lowest_bits(free, have - wanted)",
        "a job gets the highest free nodes of a word instead of the lowest",
    ),
    Mutant(
        ALLOCATION,
        "    end = (start + cost) + (s.job.work[job] - s.job.saved[job])\n",
        "    end = (now + cost) + (s.job.work[job] - s.job.saved[job])\n",
        "the start delay does not delay the end",
    ),
    Mutant(
        ALLOCATION,
        "s.job.expected_end[job] = (start + cost) + remaining_estimate(s, job)",
        "s.job.expected_end[job] = (now + cost) + remaining_estimate(s, job)",
        "the expected end forgets the start delay",
    ),
    Mutant(
        ALLOCATION,
        "((time + s.start_delay) + restart_cost(s, job))",
        "(time + restart_cost(s, job))",
        "reservations forget the start delay",
    ),
    Mutant(
        ALLOCATION,
        "s.delayed += s.start_delay * size",
        "s.delayed += s.start_delay",
        "the delay is counted for one node",
    ),
    # orders of the queue that stay
    Mutant(
        "simcore/engine/events.py",
        "    s.queue_tail += 1\n    s.num_unordered += 1\n",
        "    s.queue_tail += 1\n",
        "jobs that come are not put in order",
    ),
    Mutant(
        "simcore/engine/events.py",
        "    s.blocks_until = 0\n    s.num_unordered = ALL_UNORDERED\n",
        "    s.blocks_until = 0\n    s.num_unordered += 1\n",
        "jobs that come back by their arrival are not put in order",
    ),
    Mutant(
        "simcore/policies/queue_order/order.py",
        "    if changed or s.order_stays == 0:\n",
        "    if s.order_stays == 0:\n",
        "jobs that passed others are not looked at before nodes come back",
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
        LONG_QUEUE,
        "expected_end(s, job, now) <= reservation",
        "expected_end(s, job, now) < reservation",
        "a job that ends at the reservation is refused",
    ),
    Mutant(
        LONG_QUEUE,
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
        "min(size + s.growth_limit, largest) + 1",
        "min(size, largest) + 1",
        "no growth when the size itself has no free box",
    ),
    Mutant(
        BACKFILL,
        "limit = min(s.job.size[job] + s.growth_limit,",
        "limit = min(s.job.size[job] + s.growth_limit + 1,",
        "growth beyond the limit",
    ),
    Mutant(
        BACKFILL,
        "            s.num_shadow = count\n",
        "            s.num_shadow = s.num_shadow\n",
        "the next job does not see what the last one took from the reservation",
    ),
    Mutant(
        BACKFILL,
        "s.release_time[0] > s.now\n",
        "s.release_time[0] > -1.0\n",
        "refusals are remembered although a job has overrun since",
    ),
    Mutant(
        LONG_QUEUE,
        "if s.shortest[block, level] <= window:",
        "if s.shortest[block, level] <= 0.5 * window:",
        "a block with a job that is short enough is not looked at",
    ),
    Mutant(
        LONG_QUEUE,
        "if s.smallest[block] <= extra:",
        "if s.smallest[block] < extra:",
        "a block with a job that takes all spare nodes is not looked at",
    ),
    # conservative backfilling
    Mutant(
        CONSERVATIVE,
        "if s.released == 1 and not (",
        "if s.released == 2 and not (",
        "reservations never get earlier",
    ),
    Mutant(
        DOMINANCE, "size[one] <= s.job.size", "size[one] >= s.job.size", "begins no earlier than a larger job ahead"
    ),
    Mutant(DOMINANCE, "size[one] == s.job.size", "size[one] >= s.job.size", "the same for boxes"),
    Mutant(DOMINANCE, "(s, ahead) > length or", "(s, ahead) < 0.0 or", "begins no earlier than a longer job ahead"),
    Mutant(DOMINANCE, "(s, ahead) > pause", "(s, ahead) < 0.0", "begins no earlier than a job that pauses first"),
    Mutant(DOMINANCE, "partition[one] != s.job", "partition[one] < 0 * s.job", "jobs of other partitions are compared"),
    Mutant(
        DOMINANCE, "whole[one] > s.job.whole", "whole[one] > 1 + s.job.whole", "who needs whole nodes bounds others"
    ),
    Mutant(DOMINANCE, "or s.job.chunks[one] > s.job.chunks[other]", "", "who needs more chunks bounds others"),
    Mutant(DOMINANCE, "s.job.chunk_cores[one] > s.job.chunk_cores[other] or", "", "larger chunks bound others"),
    Mutant(DOMINANCE, "or s.job.chunk_gpus[one] > s.job.chunk_gpus[other]", "", "chunks with more GPUs bound others"),
    Mutant(
        DOMINANCE, "most > 0 and not 0 <", "most < 0 and not 0 <", "who may have few chunks of a node bounds others"
    ),
    Mutant(
        DOMINANCE, "return s.job.chunk_memory[one] <= s.job.chunk_memory[other]", "return True", "memory is left out"
    ),
    Mutant(
        ADMITTED,
        "= s.chooses_in_window, 0 ",
        "= s.chooses_in_window, 1 ",
        "nodes of a reservation are chosen by an earlier search",
    ),
    Mutant(
        UNCHANGED,
        "if s.last_gain[_column_of(s, job)] > settled:",
        "if settled < -9:",
        "no reservation of boxes or nodes gets earlier",
    ),
    Mutant(
        UNCHANGED,
        "return _could_have_others(s, job, settled, start, end), start",
        "return False, start",
        "none gets others",
    ),
    Mutant(UNCHANGED, "s.preference_changed > settled or ", "", "round-robin goes on from an earlier node"),
    Mutant(UNCHANGED, "or start == (s.now, 0.0)", "", "a box of now is chosen as if it were one of later"),
    Mutant(
        UNCHANGED, "row_not_before(s, end)\n    row", "row_not_before(s, start)\n    row", "gains only before the start"
    ),
    Mutant(UNCHANGED, "row >= before or _room_at(s, job, row)", "_room_at(s, job, row)", "own nodes"),
    Mutant(
        UNCHANGED,
        "row = enough = enough + 1",
        "row = enough = enough + 2",
        "leaves out a row behind one with too little",
    ),
    Mutant(
        UNCHANGED,
        "if s.profile_changed[s.profile_place[row]",
        "if s.profile_gained[s.profile_place[row]",
        "others took a better box",
    ),
    Mutant(
        UNCHANGED,
        "        if gains:\n            s.profile_g",
        "        if not gains:\n            s.profile_g",
        "takes for gains",
    ),
    Mutant(
        CONSERVATIVE,
        "ends if stays and ends > start else start, end, members, True)",
        "ends if stays and ends > start else start, end, members, False)",
        "what moves away is no gain for others",
    ),
    Mutant(CONSERVATIVE, "if stays and ends > start else", "if ends > start else", "... if it gets other nodes, too"),
    Mutant(
        CONSERVATIVE, "s.kind == SITE else -1), True)", "s.kind == SITE else -1), False)", "what ends early is no gain"
    ),
    Mutant(UNCHANGED, "        members |= s.node_members", "        members &= s.node_members", "... in no partition"),
    Mutant(UNCHANGED, "if members >> column & 1 == 1:", "if column == 0:", "... but the first"),
    Mutant(CONSERVATIVE, "start < known and not", "not", "the nodes of its own are no gain"),
    Mutant(
        PROFILE,
        "max(s.profile_gained[before, column], s.profile_gained[place, column])",
        "s.profile_gained[before, column]",
        "a gain is lost",
    ),
    Mutant(
        PROFILE,
        "max(s.profile_changed[before, column], s.profile_changed[place, column])",
        "s.profile_changed[before, column]",
        "a change is",
    ),
    Mutant(PROFILE, "    s.profile_place[count] = place\n", "", "a place is used twice"),
    Mutant(ROUND_ROBIN, "    s.preference_changed = s.changes\n", "", "no reservation follows a start"),
    Mutant(COUNTS, "if row >= 0 and not _move", "if row > 1 << 40 and not _move", "no reservation of nodes moves"),
    Mutant(
        COUNTS,
        "if s.gave + s.gave_before == 0:",
        "if s.num_gains + s.num_old_gains == 0:",
        "nodes come back that are no gain for a job, and it does not use room right before its own",
    ),
    Mutant(
        ROOM,
        "s.gain_until[gain] - length + _MARGIN_S)",
        "s.gain_until[gain] - 2.0 * length)",
        "what comes back must be twice as long as a job",
    ),
    Mutant(
        ROOM,
        "    s.num_old_gains = s.num_gains\n",
        "    s.num_old_gains = 0\n    s.gain_classes[1 - s.generation, :] = ZERO\n",
        "what moves gives nothing to those before it",
    ),
    Mutant(
        ROOM,
        "    while length >= 0 and s.first_gain[generation, first + length] > begin:\n",
        "    while length >= 0 and s.first_gain[generation, first + length] == np.inf:\n",
        "the earliest of several gains is not looked at",
    ),
    Mutant(
        ROOM,
        "    if s.latest_use[level * LENGTHS + length] < begin:\n",
        "    if s.latest_use[level * LENGTHS] < begin:\n",
        "gains are noted for the shortest jobs alone",
    ),
    Mutant(
        ROOM,
        "(LENGTHS - 1 if is_longer else length)",
        "length",
        "room that goes on behind what comes back is not seen by longer jobs",
    ),
    Mutant(
        ROOM,
        "        if not np.isnan(s.job.reserved[job]):\n            note_use(s, job)\n",
        "        if position == s.queue_head:\n            note_use(s, job)\n",
        "gains are of use to the head of the queue alone",
    ),
    Mutant(
        ROOM,
        "        _note_gain(s, level, begin, s.row_after[stop], low, high)\n",
        "        _note_gain(s, level, begin, s.row_after[begin], low, high)\n",
        "room ends with the first row that gained",
    ),
    Mutant(
        ROOM,
        "            begin = left\n",
        "            begin = first\n",
        "room begins where nodes came back",
    ),
    Mutant(
        ROOM,
        "_fit_beside(s, job) if has_room_before else (_NONE, _NONE)",
        "_NONE, _NONE",
        "a reservation does not move that gets room right before its own",
    ),
    Mutant(
        ROOM,
        "        s.row_room[row] -= size\n",
        "        s.row_room[row] -= 0\n",
        "nodes that are taken remain free just before the next row",
    ),
    Mutant(
        ROOM,
        "        s.row_room[row] += size\n",
        "        s.row_room[row] += 0\n",
        "nodes that come back just before a reservation are not seen",
    ),
    Mutant(
        ROOM,
        "s.job.asked[job] = min(",
        "s.job.asked[job] = max(",
        "what others give back after its turn is never offered to a job",
    ),
    Mutant(
        ROOM,
        "        while s.row_free[row] < size:  # all",
        "        while s.row_free[row] + 1 < size:  # all",
        "reserves one node more than there is",
    ),
    Mutant(
        ROOM,
        "        s.refused_size[gain], s.refused_length[gain] = size, length\n",
        "        s.refused_size[gain], s.refused_length[gain] = size, 0.0\n",
        "what is refused to a long job is refused to a short one",
    ),
    Mutant(
        COUNTS,
        "        date_earlier(s, row, point)\n",
        "        s.profile_time[row], s.profile_rank[row] = point\n",
        "a reservation that ends earlier, before no other row, gives nobody a gain",
    ),
    Mutant(
        PROFILE,
        "if s.profile_free[row] < size:",
        "if s.profile_free[row] < size + 1:",
        "reserves the last free node for nobody",
    ),
    Mutant(
        CONSERVATIVE,
        "largest = min(size + s.growth_limit, s.nodes)",
        "largest = min(size, s.nodes)",
        "reserved boxes do not grow",
    ),
    Mutant(
        CONSERVATIVE,
        "s.release_time[0] <= now:\n        return True",
        "s.release_time[0] < now - 1e9:\n        return True",
        "reservations are kept through overruns",
    ),
    Mutant(
        "simcore/engine/site_profile.py",
        "_add_pieces(s, job, first, last, -1)",
        "_add_pieces(s, job, first, last, 1)",
        "what is reserved on a site counts as free twice",
    ),
    Mutant(
        PROFILE,
        "if release > s.now else (s.now, 1.0)",
        "if release > s.now else (s.now, 0.0)",
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
        "    elif s.placement == MFP:\n        return 0\n",
        "    else:\n        return 0\n",
        "a predictor is not asked again on an unchanged machine",
    ),
    Mutant(
        MIGRATION,
        "    if counts:\n        _count_attempt(s)\n",
        "    _count_attempt(s)\n    if counts:\n        pass\n",
        "attempts on an unchanged machine count",
    ),
    Mutant(
        ENGINE,
        "        if s.now >= s.job.submit[0]:  # what is learnt",
        "        if s.now >= -np.inf:  # what is learnt",
        "failures before the first submission count",
    ),
    Mutant(
        ENGINE,
        "    if s.event_order == SUBMITS_FIRST:\n        _release_early(s)",
        "    if s.event_order != INSTANT:\n        _release_early(s)",
        "nodes are free before a completion under ends-first, too",
    ),
    Mutant(
        MIGRATION,
        "free / s.nodes < s.migration_free",
        "free / s.nodes <= s.migration_free",
        "exactly the least share of free nodes is not enough",
    ),
    Mutant(
        MIGRATION,
        "before / free > s.migration_mfp",
        "before / free >= s.migration_mfp",
        "exactly the largest share of the free partition is too much",
    ),
    Mutant(MIGRATION, "    if after >= before:\n", "    if after > before:\n", "an equal arrangement is not kept"),
    Mutant(
        MIGRATION,
        "        if after > before and counts:\n            s.successes",
        "        if after >= before and counts:\n            s.successes",
        "an equal arrangement is a success",
    ),
    Mutant(
        MIGRATION,
        "s.order[place - 1]] < size\n",
        "s.order[place - 1]] > size\n",
        "the smallest job is re-placed first",
    ),
    Mutant(
        MIGRATION,
        "_KEPT if s.trial_box[at] == _KEPT or at == stuck else NO_BOX",
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
        "s.job.start[job] > since",
        "s.job.start[job] >= since",
        "a job that started with the one that ends moves, too",
    ),
    Mutant(
        "simcore/policies/node_choice/moves.py",
        "> s.move_threshold",
        ">= s.move_threshold",
        "a difference of the threshold itself is enough",
    ),
    # checkpoints
    Mutant(SAVING, "    s.job.end[job] += cost\n", "    s.job.end[job] += 0.0 * cost\n", "a migration costs no time"),
    Mutant(
        SAVING,
        "    s.job.expected_end[job] += cost\n",
        "    s.job.expected_end[job] += 0.0 * cost\n",
        "the scheduler does not hear of a migration's cost",
    ),
    Mutant(
        SAVING,
        "max(now, s.job.resumed[job]) + cost",
        "now + cost",
        "a migration during another one's cost does not add to it",
    ),
    Mutant(
        SAVING,
        "    s.scanned_version = -1  #",
        "    #",
        "backfilling forgets that a pause moves the reservation",
    ),
    Mutant(
        SAVING,
        "s.job.next_save[job] >= s.job.interval[job]:",
        "s.job.next_save[job] > s.job.interval[job]:",
        "an interval left",
    ),
    Mutant(SAVING, "= 1 if saves else 0", "= 0", "no checkpoint is ever used"),
    Mutant(
        ALLOCATION,
        "attempts_before(s, job) > 0 else 0.0",
        "attempts_before(s, job) > 1 else 0.0",
        "no restart cost",
    ),
    Mutant(
        EVENTS,
        "return int(s.job.restarts[job] + s.job.preemptions[job])",
        "return int(s.job.restarts[job])",
        "a job that left for another one begins as if it had never run",
    ),
    Mutant(STREAMS, "self._begin(), self._most, None)", "self._begin(), 0, None)", "the first numbers come again"),
    Mutant(BUILD, '        or config["requeue_hold_s"] > 0\n', "", "no room for the timers of jobs that are held back"),
    Mutant(BUILD, "        or _recovers(run)\n", "", "no room for the timers of jobs that recover"),
    Mutant(BUILD, '        or config["dependencies"] == "log"\n', "", "no room for the timers of think times"),
    Mutant(
        LONG_QUEUE, " and remaining_estimate(s, job) > 0.0", "", "a job that is overdue from its start may be early"
    ),
    Mutant(
        "simcore/policies/checkpointing/exact.py",
        "s.job.end[job] > s.fail",
        "s.job.end[job] >= s.fail",
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
        "            or s.job.resumed[job] > time\n",
        "",
        "a job that pauses begins another checkpoint",
    ),
    # recovery, menus, order by utility
    Mutant(REQUEUE, "(s.queue_tail - s.queue_head) // 2)", "0)", "option D inserts at the head"),
    Mutant(REQUEUE, "return 0.5 * (s", "return 0.9 * (s", "option D is not midway between its neighbours"),
    Mutant(REQUEUE, "if _is_free(s, node):\n        return", "pass", "a node is given up twice"),
    Mutant(REQUEUE, "if holds_node(s, job, node) and _is_free(s, node):", "if False:", "repaired nodes are not kept"),
    Mutant(REQUEUE, "max(up, expected_end(s, job, up))", "up", "nodes that are kept are expected free at the repair"),
    Mutant(REQUEUE, "s.job.utility_since[job] = s.now\n    s.job.fixed", "s.job.fixed", "waits from the arrival"),
    Mutant(REQUEUE, "        if s.age_weight != 0.0:\n", "        if False:\n", "a requeued job keeps its age"),
    # own nodes of a site (option C)
    Mutant(REQUEUE, "    _let_go_all(s, job)\n", "    pass\n", "others cannot use such nodes"),
    Mutant(REQUEUE, "if piece >= 0 and is_held(s, piece):", "if False:", "a node goes down that jobs keep"),
    Mutant(
        REQUEUE,
        "        if s.down_until[s.piece_node[piece]] == -np.inf and not is_held(s, piece):\n",
        "        if False:\n",
        "a node that comes up is for anybody",
    ),
    Mutant(REQUEUE, "and not _meets_window(s, job, s.now):", ":", "a job starts on its own nodes in a reservation"),
    Mutant(REQUEUE, "        return _all_pieces_free(s, job)\n", "        return True\n", "others may still be there"),
    Mutant(REQUEUE, "up = _first_start(s, job, max(up, s.now))", "up = max(up, s.now)", "expected in a reservation"),
    Mutant(REQUEUE, "        up = max(up, s.down_until", "        up = max(s.now, s.down_until", "it starts no more"),
    Mutant(REQUEUE, "            hold_pieces(s, job)\n", "            pass\n", "it starts on nodes that stay free"),
    Mutant(PIECES, "or s.down_until[node] > -np.inf:", ":", "nodes that are down come free with a job (slurm)"),
    Mutant(
        PIECES,
        "        cores += free\n        s.window",
        "        s.window",
        "cores that come free are not counted (slurm)",
    ),
    Mutant(SLURM, "is_open if s.down_until[node] == -np.inf else 0", "is_open", "... or for a job that waits"),
    Mutant(PIECES, "        s.touched[node // SPAN] = 1\n", "", "chunks that come free are not counted (slurm)"),
    Mutant(PIECES, "            chunks -= s.takes[node]\n", "            chunks -= 0\n", "... are counted twice"),
    Mutant(
        SLURM, "            if end > latest:", "            if end >= latest:", "nothing starts at the end of a plan"
    ),
    Mutant(
        SLURM, "if not untried and whole_second", "if whole_second", "a group of ends is cut off before its last one"
    ),
    Mutant(SLURM, "        chunks = _UNKNOWN\n    _order", "    _order", "chunks are as before others have left"),
    Mutant(SLURM, "s.open_cores < s.job", "s.open_cores <= s.job", "no job gets all of the open nodes"),
    Mutant(SLURM, "_begin_window(s, job) >= s.job", "_begin_window(s, job) > s.job", "no job gets all that is free"),
    Mutant(SLURM, "        _mark_jobs(s)\n", "        s.marks += 1\n", "where few nodes are open none comes free"),
    Mutant(
        SLURM,
        "                piece = s.piece_beside[piece]\n",
        "                piece = -1\n",
        "... only one job ends",
    ),
    Mutant(EVENTS, "    s.ends_ordered = 0\n", "", "ends of one second stay in the order of the starts (slurm)"),
    Mutant(SAVING, "        s.job.is_planned[job] = 1\n", "", "the checkpoints of a killed job come all the same"),
    Mutant(EVENTS, "s.release_time[at + 1] <= time", "s.release_time[at + 1] < time", "... in that of before a pause"),
    Mutant(TIMERS, "at < s.num_later:", "at < s.num_later - 1:", "the last timer of the heap cannot be cancelled"),
    Mutant(SLURM, "untried and cores >= s.job", "untried and cores > s.job", "no job gets all that comes free"),
    Mutant(SLURM, "max(s.window_cores[node], 0)", "s.window_cores[node]", "less than nothing free hides what is"),
    Mutant(
        SLURM, "            if closed >> window & 1 == 1:\n", "            if closed < 0:\n", "reserved nodes are open"
    ),
    Mutant(
        SLURM,
        "            mask &= s.window_masks[asked, word]\n",
        "            mask &= ~ZERO\n",
        "and so are all others",
    ),
    Mutant(SLURM, "& s.for_job[word]\n", "\n", "a plan of other nodes ends the search"),
    Mutant(
        PIECES,
        "    if s.hold_nodes == 1:\n        for at",
        "    if False:\n        for at",
        "a node comes up for others",
    ),
    Mutant(PIECES, "if stays and job > behind", "if job > behind", "jobs that wait for their nodes are killed again"),
    Mutant(
        SHARED, "remember(s)\n    if s.refused_with_room == 1:", "remember(s)\n    if False:", "reservations are stale"
    ),
    Mutant(MENU, "if blocked < least and leaves:", "if leaves:", "the last partition wins, whatever it blocks"),
    Mutant(MENU, "0 if in_time else head_size)", "0)", "backfilled jobs may delay the head job"),
    Mutant(MENU, "    _strike_out(s, USABLE, partition)\n", "", "wires in use are given out again"),
    Mutant("simcore/policies/queue_order/wfp.py", "share * share * share", "share * share", "the square of the wait"),
    Mutant(
        USAGE,
        "        s.used[at] = used_when(s, at, calculated)\n",
        "        pass\n",
        "usage before a calculation is lost",
    ),
    Mutant(SLURM, "return s.listed_since[one] < s", "return s.listed_since[one] > s", "later tasks come first"),
    Mutant(SLURM, "if s.lists == 1 and one >= 0", "if False and one >= 0", "tasks of arrays come by number"),
    Mutant(ALLOCATION, "    s.last_start[array] = s.now\n", "    pass\n", "all tasks are where their array came"),
    Mutant(HALTING, "if s.reserves == IN_PLANS else", "if False else", "slurm expects suspended jobs to end later"),
    Mutant(SLURM, "refused |= 1 << window", "refused |= 0", "the main pass overtakes in a reservation"),
    Mutant(
        SLURM,
        "window == ANYWHERE or s.node_windows[node]",
        "True or s.node_windows[node]",
        "jobs leave their reservation",
    ),
    Mutant(
        SLURM,
        "return met if window == ANYWHERE else met",
        "return met if True else met",
        "no job is let into its reservation",
    ),
    Mutant(
        SLURM,
        "            return start\n",
        "            return start if start < last else np.inf\n",
        "nothing is planned behind the end of a reservation",
    ),
    Mutant(SLURM, "elif is_anywhere and s.preemption", "elif s.preemption", "jobs have others leave their reservation"),
    Mutant(
        ADMITTED, "    if s.reserves == IN_PLANS:\n", "    if False:\n", "passes of slurm see no jobs of reservations"
    ),
    Mutant(USAGE, "        return count + 1.0\n", "        return count\n", "a period ends late"),
    Mutant(USAGE, "s.in_use[at] * ran", "0.0 * ran", "what runs counts as no usage"),
    Mutant(USAGE, "if since >= calculated:", "if False:", "what begins in a period counts as if it had run through it"),
    Mutant(USAGE, "max(since, calculated)", "since", "what ends counts twice up to the last calculation"),
    Mutant(
        USAGE, "s.ended_counts[at] -= nodes", "s.ended_counts[at] -= 0.0", "what ends in a period counts as nothing"
    ),
    Mutant(USAGE, "- s.begun[at]) * each", "- 0.0) * each", "what begins in a period counts twice"),
    Mutant(USAGE, "each * part * periods", "each * part * 0.0", "only the first of several periods counts"),
    Mutant(USAGE, "span * _left_after(s, span) if s", "span if s", "what begins in a period does not decay in it"),
    Mutant(USAGE, "        at = s.parent[at]\n", "        at = -1\n", "accounts use nothing"),
    Mutant(MULTIFACTOR, "max(1.0, np.floor(", "max(0.0, np.floor(", "a priority may be 0"),
    Mutant(MULTIFACTOR, "effective * s.inverse_share[leaf]", "effective", "all users have one share"),
    Mutant(MULTIFACTOR, "(effective - part) * s.due[at]", "0.0", "usage of others in the account does not count"),
    Mutant(MULTIFACTOR, "!= 1 else rank", "< 0 else rank", "equal users have ranks of their own"),
    Mutant(MULTIFACTOR, "return 2 if mine == one else -2", "return -2 if mine == one else 2", "accounts before users"),
    Mutant(MULTIFACTOR, "return np.floor(left * 1e9 + 0.5) / 1e9", "return -left", "who has used most ranks first"),
    Mutant(
        "simcore/policies/queue_order/associations.py",
        'parts_of_largest(jobs, "qos", priorities, 0.0)',
        'parts_of_largest(jobs, "partition", priorities, 0.0)',
        "priorities of QOS are those of partitions",
    ),
    Mutant(
        "simcore/policies/queue_order/order.py",
        "            push_timer(s, s.next_ordering, ORDER_TIMER * TIMER_STRIDE)",
        "            return",
        "the order changes with the next event only",
    ),
    # placement and prediction
    Mutant(
        PLACEMENT,
        "pack_box(a, b, c, x, y, z), after, score, fails\n",
        "pack_box(a, b, c, x, y, z), after - 1, score, fails\n",
        "the last best box instead of the first",
    ),
    Mutant(
        PLACEMENT,
        "return score < best_score, after, score, True",
        "return score <= best_score, after, score, True",
        "of equal scores the last box wins",
    ),
    Mutant(
        PLACEMENT,
        "failing = s.job.requested[job] * failure_risk(",
        "failing = size * failure_risk(",
        "the size after rounding and growth in balancing",
    ),
    Mutant(
        PLACEMENT,
        "s.fail_time[at] < end:",
        "s.fail_time[at] <= end:",
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
        "return after > best_after or not fails, after, np.inf, fails",
        "return not fails, after, np.inf, fails",
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
        "        if s.base_gap[middle] < window:\n",
        "        if s.base_gap[middle] < 2.0 * window:\n",
        "the base rate is that of a longer window",
    ),
    Mutant(
        PLACEMENT,
        "return -1 if as_much < best_score else best_after",
        "return best_after",
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
    # sites of shared nodes
    Mutant(PIECES, "(begin < end or begin <= time)", "begin <= time", "jobs run into advance reservations"),
    Mutant(
        SHARED,
        "if last < s.window_end[window] < time:",
        "if time < s.window_end[window] < last:",
        "a job is never expected at the end of an advance reservation",
    ),
    Mutant(
        SHARED,
        "nothing_overdue(s) and s.num_windows == 0 and",
        "nothing_overdue(s) and",
        "a job that an advance reservation kept out is not looked at again",
    ),
    Mutant(
        RESERVED,
        "if s.window_end[window] > s.now and breakpoint_at(s, (s.window_end[window], 0.0)) < 0:",
        "if s.window_end[window] < s.now:",
        "no reservation begins at the end of an advance reservation",
    ),
    Mutant(
        "simcore/policies/node_choice/round_robin.py",
        "        if steps > farthest:\n",
        "        if farthest < 0:\n",
        "round-robin goes on behind the first node of a job on a site",
    ),
    Mutant(
        RESERVED,
        "        chunks += _keep(s, job, first, last, first, by_node)\n",
        "        pass\n",
        "a reservation on a site looks at its beginning only",
    ),
    Mutant(
        RESERVED, "most - s.span_most[span]\n            s.span_most[span] = most", "most - s.span_most[span]", "again"
    ),
    Mutant(RECORDS, "    s.record_chunks[record] = chunks\n", "    s.record_chunks[record] = 0\n", "no span has room"),
    Mutant(
        RECORDS,
        "if s.record_shape[record] != s.job.shape[job]:",
        "if s.record_shape[record] < 0:",
        "records are as another job found them",
    ),
    Mutant(
        RECORDS,
        "        s.record_shape[record] = -1\n",
        "",
        "records are as before something came free",
    ),
    Mutant(RECORDS, "    _part(s, span, first)\n", "", "a change is also before its time"),
    Mutant(RECORDS, "    _part(s, span, last)\n", "", "a change is also behind its time"),
    Mutant(
        RECORDS,
        "        for between in range(end, at):\n            _set_more(s, between, 0, 0, 0)\n",
        "",
        "more is freed than a job holds",
    ),
    Mutant(RECORDS, " * (s.node_members[first + at] >> partition & 1)", "", "idle nodes are of all partitions"),
    Mutant(BUILD, "np.minimum.reduceat(is_there", "np.maximum.reduceat(is_there", "a span in part is one in full"),
    Mutant(BUILD, "    if plans or is_parted or", "    if is_parted or", "small sites have one span under slurm"),
    Mutant(
        RESERVED,
        "min(takes[three, at], takes[four, at])",
        "takes[three, at]",
        "of breakpoints that are looked at together the last is not",
    ),
    Mutant(RESERVED, "range(1, last - first + 1)", "range(0)", "... no change behind the first is seen"),
    Mutant(
        RECORDS,
        "if kept == record or not _is_alike",
        "if kept >= 0 or not _is_alike",
        "records that say the same are not shared",
    ),
    Mutant(RECORDS, "        if not shares and (last or", "        if (last or", "a record is given back that is used"),
    Mutant(RECORDS, "] |= ONE << np.uint64(span & 63)", "] |= ZERO", "a change of a span is not seen"),
    Mutant(PROFILE, "    give_back_records(s, row)\n", "", "records of the past are never used again"),
    Mutant(
        EXPECTED,
        "            if chunks >= s.job",
        "            if chunks > s.job",
        "no job gets all that there will be",
    ),
    Mutant(
        EXPECTED,
        "s.release_time[middle]) <= latest:",
        "s.release_time[middle]) < latest:",
        "... at the last end in time",
    ),
    Mutant(EXPECTED, "-(-low // s.ends_in_row)", "low // s.ends_in_row", "... between two rows"),
    Mutant(EXPECTED, "most = _of_open(s, record, is_open)", "most = 0", "spans that are open in part have no room"),
    Mutant(EXPECTED, "s.preemption != DEFAULT or latest", "latest", "no room is expected from those who make way"),
    Mutant(EXPECTED, "s.searches = s.num_ends = 0", "s.searches = 0", "rows of an earlier pass are those of this one"),
    Mutant(EXPECTED, "        if at % s.ends_in_row == 0:\n", "        if at == 0:\n", "one row is behind all ends"),
    Mutant(BUILD, "(nodes[0], nodes[-1] + 1)", "(nodes[0] + 1, nodes[-1] + 1)", "a partition lacks its first node"),
    Mutant(BUILD, "(nodes[0], nodes[-1] + 1)", "(nodes[0], nodes[-1])", "a partition lacks its last node"),
    Mutant(
        PIECES, "    s.takes[:first] = 0\n", "    pass\n", "nodes before those of a partition are as for another job"
    ),
    Mutant(PIECES, "    s.takes[end:] = 0\n", "    pass\n", "nodes behind those of a partition are as for another job"),
    Mutant(
        RESERVED,
        "    return first - 1 if chunks >= wanted else first\n",
        "    return blocked + 1\n",
        "a reservation on a site skips times at which it could begin",
    ),
    Mutant(
        RECORDS,
        "there = times_in(s.profile_gpus[record, at], inverse)",
        "there = s.record_takes[record, at]",
        "a reservation on a site looks at no GPUs",
    ),
    Mutant(
        RESERVED, "        if start < known and not has", "        if not has", "a new reservation waits for a gain"
    ),
    Mutant(
        RESERVED,
        "min(s.window_cores[node], free)",
        "s.window_cores[node]",
        "nodes are chosen by what is free of them at the beginning",
    ),
    Mutant(
        RESERVED,
        "                s.takes[node] = 0\n    if",
        "                pass\n    if",
        "a job gets nodes of another partition",
    ),
    Mutant(
        "simcore/policies/node_choice/best_fit.py",
        "s.window_cores if s.chooses_in_window == 1 else s.free_cores",
        "s.free_cores",
        "a reservation on a site fits best what is free now",
    ),
    Mutant(PIECES, "cores < s.node_cores[node])", "cores < 1)", "a job that shares no node gets one that others use"),
    Mutant(
        PIECES,
        "    if s.node_members[node] >> s.job.partition[job] & 1 == 0:\n        return 0\n",
        "",
        "jobs get nodes of other partitions",
    ),
    Mutant(PIECES, "\n        and piece_on(s, job, node) < 0", "", "a job moves onto a node that it has a part of"),
    Mutant(
        PIECES,
        "if s.node_windows[node] & closed != 0 or s.node_members",
        "if s.node_members",
        "a job moves into an advance reservation",
    ),
    Mutant(
        MOVES, "if moved > 0:\n        s.disturbed = 1", "if moved > 99:\n        s.disturbed = 1", "reservations stay"
    ),
    Mutant(PIECES, "count = min(count, gpus // need)", "count = count", "GPUs are over-committed"),
    Mutant(PIECES, "count = min(count, memory // need)", "count = count", "memory is over-committed"),
    Mutant(
        PIECES, "return min(count, most) if most > 0 else count", "return count", "more chunks on a node than may be"
    ),
    Mutant(
        PIECES,
        "s.piece_node[behind] < s.piece_node[piece]",
        "s.piece_node[behind] > s.piece_node[piece]",
        "the pieces of a job are in the wrong order",
    ),
    Mutant(
        ENGINE,
        "            victim = job_on(s, node) if s.kind == SITE else -1\n",
        "            victim = -1\n",
        "a failure kills one of the jobs on its node only",
    ),
    Mutant(
        SHARED,
        "s.blocked |= 1 << partition if easy else s.overlaps[partition]",
        "s.blocked |= 1 << partition",
        "under FCFS a job overtakes one that waits for the same nodes in another partition",
    ),
    Mutant(
        SHARED,
        "_left_beside(s, job, partition) < 0\n",
        "_left_beside(s, job, partition) < -99\n",
        "backfilled jobs delay the first of their partition",
    ),
    Mutant(
        SHARED,
        "            s.head_extra[partition] = _left_beside(s, job, partition)\n",
        "",
        "two backfilled jobs together delay the first of their partition",
    ),
    Mutant(
        SHARED,
        "        if total >= wanted and release > time:\n            break\n",
        "        if total >= wanted:\n            break\n",
        "of what is released at the reservation, only a part counts",
    ),
    Mutant(
        BEST_FIT,
        "free[node] < free[best]",
        "free[node] > free[best]",
        "the worst fit is chosen",
    ),
    Mutant(
        CONSECUTIVE,
        "(not is_enough or total < most)",
        "(not is_enough or total > most)",
        "the largest row that is sufficient is chosen, not the smallest",
    ),
    # what makes every run end
    Mutant(
        "simcore/policies/checkpointing/young.py",
        "max(young(s.checkpoint_cost, job_mtbf(s, job)), SHORTEST_INTERVAL_S)",
        "young(s.checkpoint_cost, job_mtbf(s, job))",
        "checkpoints of no cost are made all the time",
    ),
    Mutant(
        EVENTS,
        "at + TRACE_HEAD + num_nodes > s.trace.shape[0]",
        "at + TRACE_HEAD + num_nodes > 2 * s.trace.shape[0]",
        "the event trace is written beyond its end",
    ),
    Mutant(
        ENGINE,
        "            if clock_ns() >= until:\n",
        "            if clock_ns() >= 1000 * until:\n",
        "the loop never returns before a run ends",
    ),
    Mutant(ENGINE, "s.stalled > most or ", "", "a time that stands still is not noticed"),
    Mutant(
        ENGINE,
        " or s.without_job > s.most_without_job",
        "",
        "events that bring no job any further are not noticed",
    ),
    Mutant(ENGINE, " or s.in_vain > s.most_in_vain", "", "failures among which no job finds nodes are not noticed"),
    Mutant(
        ENGINE,
        "s.in_vain + 1 if waits and ",
        "s.in_vain + 1 if ",
        "failures are counted as in vain though no job waits",
    ),
    Mutant(
        "simcore/engine/watch.py", "abs(time) > s.latest", "time < -s.latest", "times may be too large for milliseconds"
    ),
    Mutant(
        BUCKET,
        "s.next_foreseen < again < s.bucket_end",
        "-np.inf < again < s.bucket_end",
        "an interval of zero goes through one bucket for ever",
    ),
    # the origin of time
    Mutant(TRANSFORMS, "first = float(workload.submit_s[0])", "first = 0.0", "time begins at zero of the log's clock"),
    Mutant(SOURCE, "return Span(used.origin_s + first,", "return Span(first,", "a calendar has another zero"),
    Mutant(
        SOURCE,
        "float(used.submit_s[-1]) - first, full)",
        "float(used.submit_s[-1]) + used.origin_s, full)",
        "the span of the jobs begins at zero of the log's clock",
    ),
    Mutant(
        FITTING,
        "else 0.0 if records.own else",
        "else span.origin_s if records.own else",
        "failures of our own files are on the log's clock",
    ),
    Mutant(
        "simcore/job_results.py",
        "made[name] += self._origin_s",
        "made[name] += 0.0 * self._origin_s",
        "results are not on the log's clock",
    ),
    Mutant(
        INTERVALS,
        "max(1.0, s.now - s.job.submit[0]) / s.num_failures",
        "max(1.0, s.now - s.fail_time[0]) / s.num_failures",
        "the mean time between failures is observed from the first failure",
    ),
    Mutant(
        "simcore/engine/clusters/loop.py",
        "        if s.now >= s.job.submit[0]:\n            s.num_failures",
        "        if s.now >= -np.inf:\n            s.num_failures",
        "on clusters failures before the first submission count",
    ),
    # SLURM's passes
    Mutant(EVENTS, "+ number * interval < time:", "+ number * interval <= time:", "a tick that is now is not used"),
    Mutant(
        SLURM, "_main_pass(s, s.main_depth)", "_main_pass(s, s.queue_tail - s.queue_head)", "the main pass has no depth"
    ),
    Mutant(SLURM, "if s.node_members[node] & s.blocked == 0 and", "if", "nodes of a refused partition are given away"),
    Mutant(
        SLURM,
        "    if not _is_shut_out(s, job):\n",
        "    if False:\n",
        "jobs of the main pass overtake those of their partition",
    ),
    Mutant(SLURM, "for _ in range(s.plan_depth):", "for _ in range(s.plan_depth + 1):", "it plans for one job more"),
    Mutant(SLURM, "    s.planned_of_user[user] += 1\n", "", "the jobs of a user are not counted"),
    Mutant(SLURM, "    s.planned_of_user[:] = 0\n", "", "the jobs of earlier passes count"),
    Mutant(
        SLURM, "start <= s.now + s.plan_window", "start <= s.now + 2.0 * s.plan_window", "it plans beyond its window"
    ),
    Mutant(SLURM, "_rounded(s, start) + s.plan_resolution)", "start)", "a short plan is lost"),
    Mutant(
        SLURM,
        "breakpoint_at(s, (_rounded(s, start), 0.0))",
        "breakpoint_at(s, (start, 0.0))",
        "begins of plans are not",
    ),
    Mutant(
        SLURM,
        "            node = s.chosen[at]\n",
        "            node = s.chosen[0]\n",
        "only the first node of a plan is kept",
    ),
    Mutant(SLURM, "            time = later  #", "            return np.inf  #", "no job is tried when a plan ends"),
    Mutant(SLURM, "not _meets_plan(s, job, start)", "True", "plans overlap"),
    Mutant(
        SLURM,
        "s.profile_time[row] > end:",
        "s.profile_time[row] >= end:",
        "a plan may begin when the one before it ends",
    ),
    Mutant(
        SLURM,
        "        s.open_mask[word] = s.for_job[word]\n",
        "        s.open_mask[word] = ~ZERO\n",
        "plans of others end too soon",
    ),
    Mutant(SLURM, "if job >= 0 and not _is_gone(", "if not _is_gone(", "nodes that are down are taken for jobs"),
    Mutant(SLURM, "                span *= 2.0\n", "                span += _GROUP_S\n", "groups do not get longer"),
    Mutant(SLURM, "_GROUP_S = 30.0", "_GROUP_S = 20.0", "groups are of 20 s"),
    Mutant(
        SLURM,
        "(found and (next_end > first + span or goes))",
        "next_end > first + span",
        "a job on other nodes ends a group",
    ),
    Mutant(SLURM, "return end if end > s.now else s.now + _SOON_S", "return max(end, s.now)", "overdue jobs end now"),
    Mutant(PIECES, "s.open_node[node] == 0 or s.down", "s.down", "cores of planned nodes come free"),
    Mutant(
        ENGINE,
        "    s.next_arrival = job + 1\n    s.changed = 1\n",
        "    s.next_arrival = job + 1\n",
        "no pass follows an arrival",
    ),
    Mutant(
        ENGINE,
        "    elif kind != TICK_TIMER:  #",
        "    elif kind == TICK_TIMER:  #",
        "passes follow ticks and not a new order",
    ),
    # the stationary mean time between failures
    Mutant(MTBF, 'if start == "new" or', 'if start != "new" or', "all nodes are new, and are not if asked for"),
    Mutant(
        MTBF,
        "special.gammaincinv(1.0 / shape,",
        "special.gammaincinv(1.0 + 1.0 / shape,",
        "the first failure comes after the whole of the time that is under way, not after what is left",
    ),
    Mutant(MTBF, "mean_h * HOUR_S / gamma(1.0 + 1.0 / shape)", "mean_h * HOUR_S", "the scale is taken for the mean"),
    Mutant(
        MTBF,
        "time_ms = time_ms[-1] + np",
        "time_ms = np",
        "the second failure of the system does not wait for the first",
    ),
    Mutant(
        MTBF,
        "drawn = last + np",
        "drawn = np",
        "a node's second failure does not wait for its first",
    ),
    Mutant(
        MTBF,
        "np.searchsorted(waiting[0], last.min(),",
        "np.searchsorted(waiting[0], last.max(),",
        "failures are given out before those of other nodes that come first",
    ),
    Mutant(MTBF, "np.multiply(*_rates(mean_h))", "_rates(mean_h)[0]", "the nominal rate is that of one node"),
    Mutant(PBS, "s.job.growth[job] * (s.now - s.job.utility_since[job])", "s.job.growth[job] * s.now", "age from 0 on"),
    Mutant(PBS, "return found[0], growth", "return found[1], growth", "an hour older"),
    Mutant(PBS, '-numbers_of(jobs, "nice")', 'numbers_of(jobs, "nice")', "nice jobs first"),
    Mutant(LSF, "s.runs_since[at] -= s.job.counted_since[job]", "s.runs_since[at] -= s.now", "ends when it starts"),
    Mutant(LSF, "(1.0 + s.in_use[at])", "1.0", "whatever it holds"),
    Mutant(LSF, 'run["lsf_hist_hours"] * math.log10(2.0)', 'run["lsf_hist_hours"]', "a half, not a tenth, is left"),
    Mutant(ASSOCIATIONS, "found = found - numbers_of", "found = found + numbers_of", "nice jobs first"),
    Mutant(ASSOCIATIONS, 'found = found + numbers_of(jobs, "site', 'found = found - numbers_of(jobs, "site', "last"),
    Mutant(ASSOCIATIONS, "np.array(found)[of_job] / largest", "np.array(found)[of_job]", "of none of them"),
    Mutant(ASSOCIATIONS, "if key in given), 0.0)", "if given.get(key)), 0.0)", "a priority of 0 is none"),
    Mutant(ASSOCIATIONS, "found + weight * _part_of", "found - weight * _part_of", "who asks for more comes later"),
    Mutant(VICTIMS, "s.job.leaving[job] == SAVES_LAST or not makes_way", "not makes_way", "told twice"),
    Mutant(VICTIMS, "if s.job.leaving[victim] == STAYS:", "if True:", "its grace begins anew"),
    Mutant(VICTIMS, "elif s.job.leaves_from[victim] <= s.now:", "elif True:", "no grace the second time"),
    Mutant(VICTIMS, "                cancel_timer(s, LEAVE_TIMER * TIMER_STRIDE + victim)\n", "", "leaves twice"),
    Mutant(VICTIMS, "if s.job.preempts_from[job] > s.now:", "if False:", "preempts again at once"),
    Mutant(VICTIMS, "if last >= 0 and s.job.preempts_from[job] == -np.inf:", "if last >= 0:", "waits each time"),
    Mutant(LEAVING, "    if until < tick:\n", "    if False:\n", "no pass when a grace is over"),
    Mutant(EVENTS, "    while first + number * interval < time:\n", "    if False:\n", "ticks before their time"),
    Mutant(SLURM, "            s.others_leave = 1\n", "", "starts before others have left"),
    Mutant(VICTIMS, "s.now >= exempt_until(s, job)", "s.now > exempt_until(s, job)", "safe for longer"),
    Mutant(VICTIMS, "s.preempt_order[s.job.preempt_class[job]] * (s.nodes + 1) + ", "", "whatever their class"),
    Mutant(VICTIMS, "+ count_pieces(s, job))", ")", "whatever their nodes"),
    Mutant(VICTIMS, "s.victims[place - 1] > job", "s.victims[place - 1] < job", "the last to arrive first"),
    Mutant(
        VICTIMS,
        "        if choose_in_window(s, job, closed):  # when",
        "        if False:  # when",
        "others leave, too",
    ),
    Mutant(VICTIMS, "rounds == _ROUNDS or", "", "tried without end"),
    Mutant(VICTIMS, "_FIRST if at == last else", "0 if at == last else", "not first the next time"),
    Mutant(VICTIMS, "_is_on_chosen(s, job) if at < last else 0", "0", "not by the nodes chosen"),
    Mutant(
        VICTIMS, "s.open_node[node] = 1 if s.node_members[node] & barred == 0 else 0", "s.open_node[node] = 1", "barred"
    ),
    Mutant(SLURM, "return total < s.job.chunks[job]", "return True", "a reservation lets later jobs pass"),
    Mutant(SLURM, "return min(later, _first_reopening(s, job, time, end))", "return later", "ends of reservations"),
    Mutant(SLURM, "return over != 0 and makes_way(s, job, waiting)", "return False", "freed twice"),
    Mutant(SLURM, "if free_lower(s, job) and choose", "if False and choose", "those that make way are never free"),
    Mutant(SLURM, "or s.left_at == s.now:", ":", "no main pass when jobs have left"),
    Mutant(
        SLURM,
        "        s.changed = 1\n        _await_all(s, np.nextafter(s.now, np.inf))\n",
        "        pass\n",
        "no pass after starts",
    ),
    Mutant(SLURM, "and whole_second(s, s.release_time[at - 1]) == second:", "and False:", "order in a second"),
    Mutant(SLURM, "untried = whole_second(s, s.release_time[at]), True", "untried = s.release_time[at], True", "parts"),
    Mutant(SLURM, "first[long] // s.tick_interval[short] *", "0.0 *", "full passes all come early"),
    Mutant(VICTIMS, "    if not is_in_partition(s, job, s.job.partition[waiting]):\n        return False\n", "", "all"),
    Mutant(SLURM, "or goes)", ")", "a job that goes ends no group"),
    Mutant(SLURM, "if start == s.now and _waits_for_leaving(s):", "if False:", "nodes that a job is leaving"),
    Mutant(
        SLURM, "max(first, s.last_pass[kind] + interval), _LOOKS_S", "first, interval", "backfilling at fixed ticks"
    ),
    Mutant(ALLOCATION, "whole_second(s, time) if s.reserves == IN_PLANS else time", "time", "parts of seconds count"),
    Mutant(VICTIMS, " or s.job.leaving[job] == GOES:", ":", "a job that goes can be preempted again"),
    Mutant(LEAVING, "    s.job.leaving[job] = GOES\n", "", "the same, and its nodes count as free"),
    Mutant(LEAVING, "    _expect(s, job, s.now + s.preempt_leave)\n", "", "expected as if it stayed"),
    Mutant(LEAVING, "    if s.leaves_later == 0:\n", "    if True:\n", "jobs leave within a pass"),
    Mutant(CONSECUTIVE, "if s.job.chunk_gpus[job] == 0:", "if True:", "the tightest node for jobs with GPUs, too"),
    Mutant(CONSECUTIVE, "(fewest < 0 or cores < fewest)", "fewest < 0", "the first node that suffices"),
    Mutant(CONSECUTIVE, "if s.takes[node] >= left and", "if", "a node that does not suffice"),
    Mutant(
        VICTIMS,
        "if job >= 0 and s.job.leaving[job] == SAVES_LAST:\n            free_",
        "if False:\n            free_",
        "leaving",
    ),
    Mutant(LEAVING, "if until < s.job.expected_end[job]:", "if False:", "expected as before"),
    Mutant(LEAVING, "s.job.preempted_nodes[job] += lost * s.job.allocated[job]", "pass", "nothing is lost"),
    Mutant(LEAVING, "s.changed, s.left_at = 1, s.now", "s.left_at = s.now", "no pass of slurm follows"),
    Mutant(LAST_SAVE, "if s.job.resumed[job] < s.now:", "if True:", "saves nothing"),
    Mutant(
        LAST_SAVE, "        if s.job.saving[job] != NOT_SAVING:\n            return\n", "", "two checkpoints at a time"
    ),
    Mutant(
        CANCELS, "s.job.preempted_nodes[job] += s.job.saved[job] * s.job.allocated[job]", "pass", "saved work stays"
    ),
    Mutant(ABOVE, "while left != 0 and _chooses(s, job, left, closed):", "while False:", "over all classes at once"),
    Mutant(ABOVE, "s.preempt_order[number] > s.", "s.preempt_order[number] < s.", "over the highest class"),
    Mutant(ABOVE, "        _chooses(s, job, over, closed)\n", "", "on the nodes of the last trial"),
    Mutant(CORES, "s.piece_cores[piece]\n    for word", "0\n    for word", "no cores are known"),
    Mutant(
        CORES,
        "== RUNNING and meet(s, piece, other):\n                return",
        "== RUNNING:\n                return",
        "all",
    ),
    Mutant(CORES, "(status == HALTED and not is_behind)", "False", "kept by two"),
    Mutant(HALTING, "range(s.num_stacked - 1, -1, -1)", "range(s.num_stacked)", "the first that started first"),
    Mutant(HALTING, "s.job.saving_since[job] += span", "pass", "a checkpoint goes on while its job stands still"),
    Mutant(HALTING, "    s.job.expected_end[job] += span\n", "", "expected as if it had not stood still"),
    Mutant(HALTING, "max(start, _last_end(s, piece))", "start", "expected to go on at once"),
    Mutant(ENGINE, "HALTED:\n        end_suspension(s, job)", "HALTED:\n        pass", "killed as if it ran"),
    Mutant(
        PIECES,
        "return s.node_memory[node] if s.job.whole[job] == 1 and s.suspends == 0 else",
        "return s.node_memory[node] if s.job.whole[job] == 1 else",
        "a suspended job keeps all memory of its nodes",
    ),
    Mutant(SLURM, "s.free_cores[node] - s.lacking[node], ", "s.free_cores[node], ", "plans without suspended jobs"),
    Mutant(SHARED, "= s.free_cores[node] - s.lacking[node]\n", "= s.free_cores[node]\n", "the same for EASY"),
    Mutant(
        ALLOCATION, "if s.job.leaving[job] != STAYS:\n        s.job.leaving", "if False:\n        s.job.leaving", "late"
    ),
    Mutant(EVENTS, "return s.job.queue_rank[other] > s.job.queue_rank[job]", "return other < job", "tiers"),
    Mutant(
        "simcore/policies/queue_order/order.py",
        "return s.job.queue_rank[other] < s.job.queue_rank[job]",
        "pass",
        "tiers",
    ),
    Mutant("simcore/model/preempting.py", "(depths[other] + 1 for other", "(depths[other] for other", "one rank"),
    Mutant("simcore/sites/preempting.py", "and other.preempt_mode.upper() != NEVER", "", "of partitions that are OFF"),
    Mutant("simcore/sites/preempting.py", "if qos.preempt_mode.upper() != NEVER", "", "of QOS that are OFF"),
    Mutant(TOP, "planned == s.top_jobs:", "planned == s.top_jobs - 1:", "the last top job is not planned"),
    Mutant(TOP, "        if fits == _NO and planned == s.top_jobs:", "        if fits == _NO:", "no reservations"),
    Mutant(TOP, "            planned += 1\n", "", "all jobs have reservations"),
    Mutant(
        TOP,
        "return _YES if fits_now(s, job) else _NO",
        "return _YES",
        "jobs behind the top ones are planned on flat machines",
    ),
    Mutant(TOP, "if fits == _NO and not is_complete:", "if False:", "who must wait is planned as if nothing came back"),
    Mutant(
        TOP, "return _YES if has_room(s, job, 0, end) else _NO", "return _YES", "jobs behind the top ones are planned"
    ),
    Mutant(OWN_RULE, "        if comes_before(s, job, partition):", "        if True:", "asked about other nodes"),
    Mutant(OWN_RULE, "_LATE if delays(s, job, partition) else _IN_TIME", "_LATE", "all jobs delay the first"),
    Mutant(
        OWN_RULE,
        "            forget_reservations(s)\n            position = s.queue_head\n",
        "",
        "the pass goes on after a start",
    ),
    Mutant(OWN_RULE, "if s.head_job[s.job.partition[job]] < 0:", "if True:", "the last one refused is asked about"),
    Mutant(OWN_RULE, "s.own_head, s.own_extra = s.head_job[partition], ", "s.own_extra = ", "another job is overtaken"),
    Mutant(
        MTBF, 'side="right")) for rows in known]', 'side="left")) for rows in known]', "the last failure known waits"
    ),
    Mutant(MTBF, "last_ms = min(rows[0, -1]", "last_ms = max(rows[0, -1]", "classes of nodes run ahead of others"),
    Mutant(
        DEPENDENCIES,
        "s.waits_for[job] == 0 and s.free_from[job] <= s.now",
        "s.waits_for[job] == 0",
        "think times that are not over at the submission are forgotten",
    ),
    Mutant(DEPENDENCIES, "    s.num_held += 1\n", "", "held jobs are not counted"),
    Mutant(
        DEPENDENCIES,
        "        s.waits_for[other] -= 1\n",
        "        s.waits_for[other] = 0\n",
        "a job waits for the first of several only",
    ),
    Mutant(
        DEPENDENCIES,
        "max(s.free_from[other], s.now + s.think[at])",
        "s.now + s.think[at]",
        "only the think time after the last end counts",
    ),
    Mutant(
        DEPENDENCIES,
        "    s.job.eligible[job] = s.now\n",
        "",
        "waits count from the submission",
    ),
    Mutant(
        DEPENDENCIES,
        "        s.job.utility_since[job] = s.now\n",
        "        s.job.utility_since[job] += 0.0\n",
        "ages count from the submission",
    ),
    Mutant(
        DEPENDENCIES,
        "    s.scanned_version = -1  # it may come before jobs",
        "    s.scanned_version += 0  # it may come before jobs",
        "who was refused is not looked at again behind it",
    ),
    Mutant(
        DEPENDENCIES,
        "count > 0 and _is_passed(s, s.queue[s.queue_head + count - 1], job)",
        "count < 0",
        "it goes to the rear where jobs have come back",
    ),
)
