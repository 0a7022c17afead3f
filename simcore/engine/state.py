"""The state of one run: preallocated arrays, and the names of their rows.

``s.job_f[START, j]`` is the start of job ``j``; scalars live in ``s.f`` and ``s.i``. Kernels change the arrays in
place, and get them all as one pointer (``handle.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from faultsweep.simcore import registry as policies
from faultsweep.simcore.engine.handle import FIELDS, make_table
from faultsweep.simcore.engine.jit import is_interpreted
from numpy.typing import NDArray

# --- s.f: float64 scalars -----------------------------------------------------------------------------------------
NOW = 0  # time of the last event, s
UNUSED = 1  # integral of max(0, free - queued), node-seconds (krevat2003 eq. 4.2)
DOWN = 2  # integral of down nodes, node-seconds
HELD = 3  # integral of nodes held by jobs, node-seconds
IDLE_LOST = 4  # integral of min(free, queued): nodes free beside a queue that cannot use them, node-seconds
RESERVATION = 5  # reservation time of the head job found by the last backfilling pass, s
LAST_ATTEMPT = 6  # time of the last migration attempt, s
ATTEMPT_GAPS = 7  # sum of the times between migration attempts, s
DELAYED = 8  # node-seconds held between being scheduled and starting
# parameters of the run
START_DELAY = 9
MIGRATION_FREE = 10
MIGRATION_MFP = 11
MIGRATION_COST = 12
HORIZON = 13
ACCURACY = 14
DRAWN_UNTIL = 15  # failures are known up to this time
REBUILT = 16  # when the availability profile was last made from scratch (conservative)
RECALL = 17  # probability that a node that will fail is reported
FALSE_RATE = 18  # probability that another node is reported ...
PRECISION = 19  # ... or, below 1, the share of true reports, from which that follows
NODE_SECONDS = 20  # nodes x span of the submissions: what the base rate of failures refers to
NEXT_FORESEEN = 21  # when the next checkpoint before a foreseen failure may start (exact, bucket), s
BUCKET_END = 22  # end of the bucket of NEXT_FORESEEN, s
CHECKPOINT_COST = 23
CHECKPOINT_INTERVAL = 24
CHECKPOINT_MTBF = 25  # of the machine, s; 0: as observed (young, daly)
RESTART_COST = 26
BUCKET = 27
BUCKET_REPEAT = 28  # 0: once in a bucket
BUCKET_LONG = 29
FINISHED_START = 30  # earliest start of the jobs that finish at this instant, s (migration to safer nodes)
MOVE_COST = 31
BUCKET_ORIGIN = 32
KEPT_IDLE = 33  # integral of nodes that are up and kept for suspended jobs, node-seconds
DELAY_MEAN = 34  # of resubmission by hand, s
DELAY_SIGMA = 35
REGAINED = 36  # when the last nodes were to be released that came back early since promises were compressed (flat), s
LATEST = 37  # no event may be further from zero than this, s
NUM_F = 38

# --- s.i: int64 scalars -------------------------------------------------------------------------------------------
NEXT_ARRIVAL = 0  # next job to arrive
NEXT_FAILURE = 1  # next failure of the trace
QUEUE_HEAD = 2  # first waiting job's position in s.queue
QUEUE_TAIL = 3  # one past the last waiting job's position
NUM_TIMERS = 4  # entries of the event heap
NUM_RELEASES = 5  # entries of the list of expected releases
FREE = 6  # nodes that are up and free
NUM_DOWN = 7  # nodes that are down
QUEUED = 8  # nodes requested by waiting jobs, as submitted
FINISHED = 9  # jobs that have finished
VERSION = 10  # raised whenever the set of free nodes changes
BOXES_VERSION = 11  # version of the list of maximal free boxes (torus)
SCANNED = 12  # queue position up to which backfilling has refused all jobs ...
SCANNED_VERSION = 13  # ... at this version of the free nodes
ATTEMPTED_VERSION = 14  # version at which the last migration attempt ended: repeating it would change nothing
NUM_BOXES = 15  # maximal free boxes listed (torus)
FAILURES = 16  # failures so far
HITS = 17  # failures that killed a job
ATTEMPTS = 18  # migration attempts
SUCCESSES = 19  # attempts that raised the maximal free partition
TRIAL_COUNT = 20  # jobs that hold nodes, in the scratch list of migration
MOVES = 22  # jobs moved by migrations
FREE_SLOTS = 23  # free slots of node masks (flat)
PASSES = 24  # scheduling passes
STARTED_AT_INSTANT = 25  # sequence number for starts, which orders completions under pyss's event order
FOOTPRINTS_VERSION = 26  # version of the table of footprints (torus)
RELEASED = 27  # whether nodes were released since the last pass
DISTURBED = 28  # whether reservations must be made from scratch (a failure, a pause)
NUM_SHADOW = 29  # boxes in the list at the reservation (torus)
NUM_PROFILE = 30  # breakpoints of the availability profile (conservative)
TRACE_END = 31  # numbers in the buffer of the event trace
# parameters of the run
KIND = 32  # machine kind
SIDE_X = 33
SIDE_Y = 34
SIDE_Z = 35
NODES = 36
SCHEDULER = 37
EVENT_ORDER = 38
GROWTH_LIMIT = 39
MAX_RESTARTS = 40
TRACING = 41
PLACEMENT = 42
PARTITION_FAILURE = 43
COIN_KEY = 44  # key of the predictor's coins
FINDER_CALL = 45  # where a finder of the papers is compiled; 0 if it is ours or interpreted
FINDER_DATA = 46  # where its block is: 0 if the finder is ours
BASE_GAPS = 47  # gaps of the table of base rates in s.failures
SCORE = 48  # address of the user's placement score
SCORE_NEEDS = 49  # what it takes and promises: NEEDS_MFP + NEEDS_PREDICTION + NEEDS_PLACE + MONOTONE
CHECKPOINT = 50
BUCKET_JOBS = 51
BUCKET_BIGGEST = 52
NEXT_FORESEEN_FAILURE = 53  # first failure that NEXT_FORESEEN is about
LAST_NODE = 54  # node taken last (round-robin)
NODE_CHOICE = 55
NODE_KEY = 56  # key of the coins that choose nodes at random
MOVES_TO_SAFER = 57  # whether running jobs move to safer nodes
MOVE_THRESHOLD = 58
NUM_SUSPENDED = 59  # jobs that wait for their own nodes (recovery option C)
KEPT = 60  # nodes that are up and kept for them
RECOVERY = 61  # whether a killed job does what its recovery option says
HOLD_NODES = 62
DELAY_KIND = 63  # distribution of the delay of resubmission by hand
DELAY_KEY = 64  # key of its coins
QUEUE_ORDER = 65
PARTITIONS = 66  # of the machine's menu; 0 if it has none
NO_ROOM = 67  # LARGER_NEEDED or BROKEN if a preallocated list did not fit outside a scheduling pass; 0: all fitted
STALLED = 68  # events since the time last changed
WITHOUT_JOB = 69  # events since a job last arrived, started, ended or was killed
MOST_WITHOUT_JOB = 70
NUM_I = 71

LARGER_NEEDED, BROKEN = 1, 2  # a list must be larger; one did not fit that is always large enough

# --- s.job_f: float64 per job -------------------------------------------------------------------------------------
SUBMIT = 0
WORK = 1  # run time that the job needs, s
ESTIMATE = 2  # run time that the scheduler believes, s
SCHEDULED = 3  # when the last attempt got its nodes
START = 4  # when the last attempt started to run (after the start delay)
FIRST_START = 5
FINISH = 6
END = 7  # when the current attempt completes unless something happens
EXPECTED_END = 8  # when the scheduler expects that
SAVED = 9  # work saved by checkpoints, s
WORKED = 10  # work done when the job last paused or started, s
RESUMED = 11  # when work goes on from there: work at time t is WORKED + max(0, t - RESUMED)
LOST = 12  # work done and lost to failures, s
LOST_NODES = 13  # the same times nodes held, node-seconds
OVERHEAD = 14  # time spent on checkpoints and moves, s
PROMISED = 15  # reserved start (conservative) ...
OVERHEAD_NODES = 16  # node-seconds held during all pauses, migrations among them
SAVING_SINCE = 17  # when the checkpoint or move began that is under way
INTERVAL = 18  # work between checkpoints in the current attempt, s (periodic, young, daly, risk)
NEXT_SAVE = 19  # work at which the next of them is due, s
GROWN = 20  # work saved, times the nodes held then beyond those submitted, node-seconds
UTILITY = 21  # in the order of the queue (wfp)
UTILITY_SINCE = 22  # when the wait began that counts there, s
FIXED_UTILITY = 23  # of a recovered job; NaN if it follows from the wait
PROMISED_RANK = 24  # ... and its rank among the moments of that time
NUM_JOB_F = 25

# --- s.job_i: int64 per job ---------------------------------------------------------------------------------------
REQUESTED = 0  # nodes submitted
SIZE = 1  # nodes after rounding to a possible size
ALLOCATED = 2  # nodes held by the current attempt (growth)
STATUS = 3
RESTARTS = 4
MIGRATIONS = 5
BOX = 6  # packed box (torus) ...
SLOT = 6  # ... or slot of the node mask (flat)
CHECKPOINTS = 7
SEQUENCE = 8  # order of starts
PROMISED_BOX = 9  # reserved box (conservative, torus)
EARLY_RELEASED = 10  # nodes were counted as free before the completion of the same instant (submits-first)
SAVING = 11  # what is under way: NOT_SAVING, SAVES or MOVES_AWAY
UNUSED_CHECKPOINT = 12  # the saved state is a checkpoint of the current attempt
CHECKPOINTS_USED = 13  # checkpoints that a restart went on from
OPTION = 14  # recovery option, a position in policies.OPTIONS
NUM_JOB_I = 15

# --- statuses of a job --------------------------------------------------------------------------------------------
FUTURE = 0
WAITING = 1
RUNNING = 2  # holds nodes, also during its start delay
DONE = 3
AWAY = 4  # killed, and not in the queue yet (recovery options A and C)

# --- what a job that works on its saved state is doing --------------------------------------------------------------
NOT_SAVING, SAVES, MOVES_AWAY = range(3)

# --- event kinds of the trace, in the order in which events of one instant are applied ------------------------------
FINISH_EVENT = 0
CHECKPOINT_EVENT = 1
FAIL_EVENT = 2
KILL_EVENT = 3
REPAIR_EVENT = 4
REQUEUE_EVENT = 5
ARRIVE_EVENT = 6
MIGRATE_EVENT = 7
SCHEDULE_EVENT = 8
START_EVENT = 9
EVENT_NAMES = ("finish", "checkpoint", "fail", "kill", "repair", "requeue", "arrive", "migrate", "schedule", "start")

# --- kinds of timers in the event heap, in the order of one instant -------------------------------------------------
COMPLETION_TIMER = 0
CHECKPOINT_TIMER = 1
REPAIR_TIMER = 3
OTHER_TIMER = 4
RESUBMIT_TIMER = 5
TIMER_STRIDE = 1 << 40
END_OF_TIMERS = 6 * TIMER_STRIDE

# --- what an entry kernel returns ------------------------------------------------------------------------------------
CONTINUE = 0  # the budget of events, or the time of a call, is spent; call again
ALL_DONE = 1  # every job has finished
TRUNCATED = 2  # horizon or max_restarts reached
NEED_TRACE = 3  # the buffer of the event trace is full: empty it and call again
NEED_FAILURES = 4  # the failure stream must be drawn further
STUCK = -1  # jobs wait and nothing will ever happen
NO_SPACE = -2  # a preallocated list is too small: run again with a larger one
NO_PROGRESS = -3  # more events at one time, or between two events of jobs, than a run can have
TOO_LATE = -5  # the next event is beyond LATEST
INVALID = -4  # a list did not fit that is always large enough: an error of the simulator

# --- s.agenda: float64 lists (whole numbers in it are exact) ----------------------------------------------------------
TIMER_TIME = 0  # binary heap by (time, key)
TIMER_KEY = 1  # kind * TIMER_STRIDE + job or node
RELEASE_TIME = 2  # ascending: when nodes are expected to become free
RELEASE_ITEM = 3  # job, or -1 - node for a node that is down
DOWN_UNTIL = 4  # by node, -inf while up
NODE_FAILURES = 5  # by node, failures so far (lff)
NUM_AGENDA = 6

# --- s.lists: int64 lists ---------------------------------------------------------------------------------------------
QUEUE = 0  # waiting jobs at QUEUE_HEAD .. QUEUE_TAIL
SLOTS = 1  # stack of free rows of s.masks (flat)
ORDER = 2  # jobs in the order of re-placement (migration)
TRIAL_BOX = 3  # their boxes
FITS = 4  # by size: 2 * version + (a free box of this size exists) (torus)
SHAPE_FIRST = 5  # by size: first row of s.shapes (torus)
SAFEST = 6  # nodes by (failures, index) (lff)
SUSPENDED = 7  # jobs that wait for their own nodes, by index
NUM_LISTS = 8

# --- s.failures: float64 lists, by failure ---------------------------------------------------------------------------
FAIL_TIME = 0
FAIL_NODE = 1
FAIL_DOWN = 2
BASE_GAP = 3  # only where the precision is below 1: gaps between failures of a node, ascending ...
BASE_SUM = 4  # ... and their sums from the smallest on

# --- s.masks: rows of bit masks of nodes: words of 64 nodes (flat), one word per column (torus) ---------------------
FREE_NODES = 0
SHADOW = 1  # torus scratch: free at the reservation
TRIAL = 2  # torus scratch: free in a re-placement
PREDICTED = 3  # torus scratch: predicted to fail
PLANE = 4  # torus scratch of the finder
NUM_TORUS_MASKS = 5
MOVERS = 1  # flat scratch: nodes of the jobs that may move to safer ones (lff)
FIRST_SLOT = 2  # flat: from here on, the nodes of a running job each

TRACE_HEAD = 5  # numbers of an event in s.trace before its nodes

# --- s.footprints[k] and s.boxes[k]: tables of the finder (torus) ---------------------------------------------------
MACHINE = 0  # of the free nodes
ELSEWHEN = 1  # of the free nodes at another time or in a re-placement
SCRATCH = 2  # boxes only
SEARCH = 3  # boxes only: the block of a finder of the papers (partitions.searches)

# --- the same tables on a machine with a menu, by partition; s.shapes[p, 0] is its size -----------------------------
RESOURCES = 0  # s.footprints: midplanes and wires of each partition, as in s.masks
CONFLICTS = 1  # s.footprints: bits of the partitions that it conflicts with
USABLE = 0  # s.profile_masks: bits of the partitions that are free
LATER = 1  # s.profile_masks: bits of those that the head job can have at its reservation
THEN_FREE = 2  # s.profile_masks: midplanes and wires that are free then

# --- s.profile: float64 rows of the availability profile (conservative) ---------------------------------------------
PROFILE_TIME = 0  # a moment is a time ...
PROFILE_RANK = 1  # ... and 0, or 1 for just after it, and so on
PROFILE_FREE = 2
# only on a flat machine
PROFILE_NEXT = 3  # the row that follows while promises are made anew ...
ORDERED_TIME = 4  # ... and the rows in order afterwards
ORDERED_RANK = 5
ORDERED_FREE = 6
NUM_PROFILE_ROWS = 7

# --- s.shapes of a flat machine under conservative backfilling: a row of the profile before which no job of a class of
# sizes (first axis) and run times (second axis) fits. Neighbouring classes differ by a factor of 2^(1/2) -
CLASSES = 64
CLASSES_OF_TWO = 2

# --- codes of policies, in the order of their registry -----------------------------------------------------------
FCFS, BACKFILL, CONSERVATIVE, MIGRATION, BACKFILL_MIGRATION = range(len(policies.SCHEDULERS))
INSTANT, SUBMITS_FIRST, ENDS_FIRST = range(len(policies.EVENT_ORDERS))
MFP, BALANCING, TIE_BREAKING, SCORED = range(len(policies.PLACEMENTS) + 1)  # and a score of the user's
NEEDS_MFP, NEEDS_PREDICTION, NEEDS_PLACE, MONOTONE = 1, 2, 4, 8
PRODUCT, MAXIMUM = range(len(policies.PARTITION_FAILURES))
NO_CHECKPOINTS, PERIODIC, YOUNG, DALY, RISK, EXACT, BUCKETED = range(len(policies.CHECKPOINTS))
FIRST_FIT, LEAST_FAILURES, RANDOM_NODES, ROUND_ROBIN = range(len(policies.NODE_CHOICES))
ALL_JOBS, LONG_JOBS, BIGGEST_JOBS = range(len(policies.BUCKET_JOBS))
BY_ARRIVAL, BY_UTILITY = range(len(policies.QUEUE_ORDERS))
CONSTANT, EXPONENTIAL, LOGNORMAL = range(len(policies.REPAIRS))
NOTIFY, REAR, ORIGINAL_NODES, MIDDLE, HEAD = range(len(policies.OPTIONS))


@dataclass(frozen=True)
class State:
    """Everything a run changes, and its parameters."""

    f: NDArray[np.float64]
    i: NDArray[np.int64]
    job_f: NDArray[np.float64]  # (NUM_JOB_F, jobs)
    job_i: NDArray[np.int64]  # (NUM_JOB_I, jobs)
    agenda: NDArray[np.float64]  # (NUM_AGENDA, jobs + nodes + 2)
    lists: NDArray[np.int64]  # (NUM_LISTS, max(2 * jobs + 2, nodes + 2))
    failures: NDArray[np.float64]  # (3 or 5, failures)
    masks: NDArray[np.uint64]  # (rows, words)
    trace: NDArray[
        np.float64
    ]  # buffer: time, kind, job, attempt, number of nodes, nodes ..., of one event after another
    profile: NDArray[np.float64]  # (3, breakpoints); (NUM_PROFILE_ROWS, breakpoints) on a flat machine
    profile_masks: NDArray[np.uint64]  # (breakpoints, words): free nodes from each breakpoint on (torus)
    footprints: NDArray[np.uint64]  # (2, intervals of x, intervals of y)
    boxes: NDArray[np.int64]  # (3 or 4, capacity, 7): maximal free boxes
    shapes: NDArray[np.int64]  # (count, 3): box shapes, by size (torus); (CLASSES, CLASSES) (flat, conservative)

    @cached_property
    def handle(self) -> Any:
        """What entry kernels take: a table of the arrays, or the state itself where nothing is compiled."""
        return self if is_interpreted() else make_table([getattr(self, name) for name in FIELDS])
