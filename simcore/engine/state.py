"""The state of one run, field by field: what every kernel reads and changes, and what it means.

``s.job.start[j]`` is the start of job ``j``. How the declarations become arrays and types is in ``layout.py``; kernels
get a state as one pointer (``handle.py``).
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from faultsweep.simcore.engine.handle import make_state_at
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.layout import (
    AgendaRow,
    Bits,
    BitTable,
    BitTables,
    BitVector,
    Declared,
    FailureRow,
    FloatOfJob,
    Floats,
    FloatTable,
    FloatVector,
    GivenFloat,
    GivenInt,
    HalfIntTable,
    IntOfJob,
    Ints,
    IntTable,
    IntTables,
    IntVector,
    ListRow,
    Row,
    Trace,
)

# --- statuses of a job --------------------------------------------------------------------------------------------
FUTURE = 0
WAITING = 1
RUNNING = 2  # holds nodes, also during its start delay
DONE = 3
AWAY = 4  # killed, and not in the queue yet (recovery options A and C)
HELD = 5  # submitted, and not in the queue before others have ended and its think time is over
REFUSED = 7  # at its submission, because of a limit of submitted jobs
MISSED = 8  # refused because its advance reservation was over
HALTED = 6  # suspended for another one: holds GPUs, memory and its cores on which nobody runs, and does not run

ANYWHERE, OVER = -1, -2  # asks for no advance reservation; for one that ended before the first submission

LARGER_NEEDED, BROKEN = 1, 2  # a list must be larger; one did not fit that is always large enough

# --- what a job that works on its saved state is doing --------------------------------------------------------------
NOT_SAVING, SAVES, MOVES_AWAY = range(3)

# --- whether a job makes way for another --------------------------------------------------------------------------
STAYS, TOLD, GOES, SAVES_LAST = range(4)

ALL_UNORDERED = 1 << 60  # more jobs than a queue has

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
PREEMPT_EVENT = 10
SUSPEND_EVENT = 11
RESUME_EVENT = 12
REFUSE_EVENT = 13
EVENT_NAMES = (
    *("finish", "checkpoint", "fail", "kill", "repair", "requeue", "arrive", "migrate", "schedule", "start"),
    *("preempt", "suspend", "resume", "refuse"),
)

# --- kinds of timers, in the order of one instant ---------------------------------------------------------------------
COMPLETION_TIMER = 0
CHECKPOINT_TIMER = 1
LEAVE_TIMER = 2
REPAIR_TIMER = 3
OTHER_TIMER = 4
RESUBMIT_TIMER = 5
ORDER_TIMER = 6
TICK_TIMER = 7
TIMER_STRIDE = 1 << 40
END_OF_TIMERS = 8 * TIMER_STRIDE
SOON = 64  # timers in the sorted list; half of them are moved at once

# --- what an entry kernel returns ------------------------------------------------------------------------------------
CONTINUE = 0  # the budget of events, or the time of a call, is spent; call again
ALL_DONE = 1  # every job has finished
TRUNCATED = 2  # horizon or max_restarts reached
NEED_TRACE = 3  # the buffer of the event trace is full: empty it and call again
NEED_FAILURES = 4  # the failure stream must be drawn further
STUCK = -1  # jobs wait and nothing will ever happen
NO_SPACE = -2  # a preallocated list is too small: run again with a larger one
NO_PROGRESS = -3  # more events at one time, or between two events of jobs, than a run can have
INVALID = -4  # a list did not fit that is always large enough: an error of the simulator
TOO_LATE = -5  # the next event is beyond latest

# --- footprints[k] and boxes[k]: tables of the finder (torus) ---------------------------------------------------
MACHINE = 0  # of the free nodes
AT_START = 0  # of those at the start of a reservation (conservative and top-jobs, which ask nothing of the machine)
ELSEWHEN = 1  # of the free nodes at another time or in a re-placement
SCRATCH = 2  # boxes only
SEARCH = 3  # boxes only: the block of a finder of the papers (partitions.searches)

# --- the same tables on a machine with a menu, by partition; shapes[p, 0] is its size -----------------------------
RESOURCES = 0  # footprints: midplanes and wires of each partition, as in the masks
CONFLICTS = 1  # footprints: bits of the partitions that it conflicts with
USABLE = 0  # profile_masks: bits of the partitions that are free
LATER = 1  # profile_masks: bits of those that the head job can have at its reservation
THEN_FREE = 2  # profile_masks: midplanes and wires that are free then

# --- indices on a flat machine: of the profile (conservative) and of long queues (EASY) ----------------------------
LEVELS = 8  # of numbers of nodes
BLOCK = 64  # jobs
SPAN = 32  # nodes of which the profile of a site has one record, if not of all nodes
LENGTHS = 64  # classes of lengths of time: below 1 s, then from 1 s, 1.4 s, 2 s, 2.8 s, 4 s, ... on

# --- what policies are to the engine: the numbers of policies are their places in their roles, 0 the default's --------
DEFAULT = 0
NOBODY, HEAD_JOB, ALL_JOBS, ANYONE, OWN_PASS, IN_PLANS, TOP_JOBS = range(
    7
)  # has a reservation; of ANYONE, jobs start that can
MAIN_PASS, FULL_PASS, BACKFILL_PASS = range(3)  # kinds of passes (slurm)
PASS_KINDS = 3
INSTANT, SUBMITS_FIRST, ENDS_FIRST = range(3)
MFP, BALANCING, TIE_BREAKING, SCORED = range(4)  # how the best free box is sought
NEEDS_MFP, NEEDS_PREDICTION, NEEDS_PLACE, MONOTONE = 1, 2, 4, 8
PRODUCT, MAXIMUM = range(2)
OWN_ROLES, MOST_OWN = 6, 16  # roles whose policies of the user's are compiled; parameters that one may have
SAVES_NOTHING, BY_WORK, BY_FORESIGHT = range(3)  # when jobs make checkpoints

# --- the event trace ------------------------------------------------------------------------------------------------
TRACE_HEAD = 5  # numbers of an event in the trace before its nodes


FloatOfSaving = Annotated[Floats, Row("saving_times")]
IntOfSaving = Annotated[Ints, Row("saving_jobs")]
IntOfSiteJob = Annotated[Ints, Row("site_jobs")]
IntOfMovable = Annotated[Ints, Row("movable_jobs")]
IntInSequence = Annotated[Ints, Row("sequenced_jobs")]


class CommonJobs(Declared):
    """What is known of each job on all machines: arrays of shape (jobs,), or (0,) for what no job of the run has, such
    as checkpoints where none are made."""

    submit: GivenFloat  # submission, s
    eligible: FloatOfJob  # submission, or when a job that was held may start; waits count from then, s
    work: GivenFloat  # run time that the job needs, s
    estimate: GivenFloat  # run time that the scheduler believes, s
    start: FloatOfJob  # when the last attempt started to run (after the start delay)
    first_start: FloatOfJob  # start of the first attempt, s
    finish: FloatOfJob  # s; NaN before
    saved: FloatOfJob  # work saved by checkpoints, s
    worked: FloatOfJob  # work done when the job last paused or started, s
    resumed: FloatOfJob  # when work goes on from there: work at time t is worked + max(0, t - resumed)
    lost: FloatOfJob  # work done and lost to failures, s
    lost_nodes: FloatOfJob  # the same times nodes held, node-seconds
    overhead: FloatOfSaving  # time spent on checkpoints and moves, s
    overhead_nodes: FloatOfJob  # node-seconds held during all pauses, migrations among them
    saving_since: FloatOfSaving  # when the checkpoint or move began that is under way
    grown: FloatOfSaving  # work saved, times the nodes held then beyond those submitted, node-seconds
    requested: GivenInt  # nodes submitted
    size: GivenInt  # nodes after rounding to a possible size
    allocated: IntOfJob  # nodes held by the current attempt (growth)
    status: IntOfJob  # FUTURE, WAITING, RUNNING, DONE, AWAY, HELD, HALTED, REFUSED or MISSED
    restarts: IntOfJob  # times that a failure killed it
    preemptions: IntOfSiteJob  # times that it left for another job
    migrations: IntOfMovable  # moves to other nodes
    checkpoints: IntOfSaving  # checkpoints completed
    unused_checkpoint: IntOfSaving  # the saved state is a checkpoint of the current attempt
    checkpoints_used: IntOfSaving  # checkpoints that a restart went on from


FloatOfSiteJob = Annotated[Floats, Row("site_times")]
FloatInOrder = Annotated[Floats, Row("ordered_times")]
IntInOrder = Annotated[Ints, Row("ordered_jobs")]
FloatOfReservation = Annotated[Floats, Row("reserved_times")]
IntOfReservation = Annotated[Ints, Row("reservations")]


class Jobs(CommonJobs):
    """What is known of each job on a machine that is no clusters: arrays of shape (jobs,), (0,) for what is not used:
    reservations of waiting jobs; what jobs need of the nodes of a site, and who preempts whom there; and what the order
    of the queue and recovery know of jobs."""

    end: FloatOfJob  # when the current attempt completes unless something happens
    expected_end: FloatOfJob  # when the scheduler expects that
    preempted_nodes: FloatOfSiteJob  # work done and lost because other jobs took its place, node-seconds
    suspended_s: FloatOfSiteJob  # for how long it was suspended for others, s
    halted_since: FloatOfSiteJob  # when it was suspended, s
    preempts_from: FloatOfSiteJob  # from when a job may have others leave again once it has, s; before that -infinity
    leaves_from: FloatOfSiteJob  # when the grace of a job that was told to make way is over, s
    interval: FloatOfSaving  # work between checkpoints in the current attempt, s (periodic, young, daly, risk)
    next_save: FloatOfSaving  # work at which the next of them is due, s
    priority: FloatInOrder  # from the arrival on: the highest comes first (sjf, saf, f1, ...)
    growth: FloatInOrder  # what it grows by for each second of the wait (pbs)
    counted_since: FloatInOrder  # since when it counts as a running one of its user, s (lsf, multifactor)
    utility: FloatInOrder  # in the order of the queue: the highest comes first (all orders but fcfs)
    utility_since: FloatInOrder  # when the wait began that counts there, s
    fixed_utility: FloatInOrder  # of a recovered job; NaN if it follows from the order
    reserved: FloatOfReservation  # reserved start (conservative) ...
    reserved_rank: FloatOfReservation  # ... and its rank among the events of that time
    box: IntOfMovable  # packed box (torus) ...
    slot: IntOfJob  # ... or slot of the node mask (flat)
    sequence: IntInSequence  # order of starts (submits-first)
    reserved_box: IntOfReservation  # reserved box (conservative, torus)
    settled: IntOfReservation  # changes of the profile when it was last looked for (conservative, torus and site)
    kind: IntOfReservation  # LENGTHS x level of its size + class of its length (conservative, flat) ...
    asked: IntOfReservation  # ... of the last pass it has been offered all gains before this one ...
    latest_gain: FloatOfReservation  # ... it is none for it that gets earlier where nodes come back only later, s ...
    reserved_row: IntOfReservation  # ... row of the profile at which it begins ...
    until_row: IntOfReservation  # ... and at which it, or the job once it runs, ends
    early_released: IntInSequence  # nodes were counted as free before it completed in the same instant (submits-first)
    is_planned: IntOfSaving  # whether a timer is set for the next checkpoint after so much work
    saving: IntOfSaving  # what is under way: NOT_SAVING, SAVES or MOVES_AWAY
    option: IntInOrder  # recovery option, a position in OPTIONS
    association: IntInOrder  # leaf of the tree of accounts that its usage counts for (multifactor); -1: none
    chunks: IntOfSiteJob  # on a site: alike parts, none of them on more than one node ...
    chunk_cores: IntOfSiteJob  # ... what one of them needs ...
    chunk_gpus: IntOfSiteJob
    chunk_memory: IntOfSiteJob  # MiB
    chunks_per_node: IntOfSiteJob  # ... and the most of them on one node; 0: no limit
    whole: IntOfSiteJob  # whether it shares its nodes with no other job
    partition: IntOfSiteJob  # of the site
    marked: IntOfSiteJob  # the last of these times at which it was (slurm)
    shape: IntOfSiteJob  # the same of all jobs of which each chunk can have the same nodes
    plain: IntOfSiteJob  # whether its chunks are single cores of any nodes of the partition, and nothing else
    first_piece: IntOfSiteJob  # of the list of what it holds; -1: nothing
    suspensions: IntOfSiteJob  # times that it was suspended for another job
    leaving: IntOfSiteJob  # STAYS, TOLD to leave, GOES in a moment, or SAVES_LAST before it leaves
    preempt_class: IntOfSiteJob  # decides whom it may preempt, and who may preempt it
    queue_rank: IntOfSiteJob  # jobs of a higher one come before it in the queue (in_tiers)
    user: IntInOrder  # whose it is; 0 if that is not known (slurm)


class Common(Declared):
    """What a run on any machine changes, and its parameters."""

    job: CommonJobs
    now: float  # time of the last event, s
    unused: float  # integral of max(0, free - queued), node-seconds (krevat2003 eq. 4.2)
    down: float  # integral of down nodes, node-seconds
    held: float  # integral of nodes held by jobs, node-seconds
    idle_lost: float  # integral of min(free, queued): nodes free beside a queue that cannot use them, node-seconds
    attempt_gaps: float  # sum of the times between migration attempts, s
    delayed: float  # node-seconds held between being scheduled and starting
    horizon: float  # the run ends here, s
    latest: float  # no event may be further from zero than this, s
    drawn_until: float  # failures are known up to this time
    restart_cost: float  # s
    kept_idle: float  # integral of nodes that are up and kept for suspended jobs, node-seconds
    next_arrival: int  # next job to arrive
    next_failure: int  # next failure of the trace
    queue_head: int  # first waiting job's position in queue
    queue_tail: int  # one past the last waiting job's position
    free: int  # nodes that are up and free
    num_down: int  # nodes that are down
    queued: int  # nodes requested by waiting jobs, as submitted
    finished: int  # jobs that have finished
    num_failures: int  # failures so far
    hits: int  # failures that killed a job
    attempts: int  # migration attempts
    successes: int  # attempts that raised the maximal free partition
    moves: int  # jobs moved by migrations
    trace_end: int  # numbers in the buffer of the event trace
    kind: int  # machine kind
    nodes: int  # of the machine
    scheduler: int  # its number
    reserves: int  # who has a reservation: NOBODY (FCFS), HEAD_JOB (EASY), ALL_JOBS (conservative), ANYONE, ...
    max_restarts: int  # of a job: then the run ends
    tracing: int  # whether events are recorded
    no_room: int  # LARGER_NEEDED or BROKEN if a preallocated list did not fit outside a scheduling pass; 0: all fitted
    stalled: int  # events since the time last changed
    without_job: int  # events since a job last arrived, started, ended or was killed
    most_without_job: int  # of them, before the run is given up
    in_vain: int  # failures since a job last ran, while some wait for nodes
    most_in_vain: int  # of them, before the run is given up
    fail_time: FailureRow  # s, ascending
    fail_node: FailureRow  # whole numbers
    fail_down: FailureRow  # s
    trace: Trace  # buffer: time, kind, job, attempt, number of nodes, nodes ..., of one event after another

    @cached_property
    def handle(self) -> Any:
        """What the event loop takes: a table of the arrays, or the state itself where nothing is compiled."""
        return self if is_interpreted() else self.words.reshape(-1)


FloatOfNode = Annotated[Floats, Row("nodes")]
ListOfNodes = Annotated[Ints, Row("node_lists")]
ListOfJobs = Annotated[Ints, Row("job_lists")]
NodeRow = Annotated[Ints, Row("site_nodes")]
PieceRow = Annotated[Ints, Row("pieces")]
GraceRow = Annotated[Floats, Row("classes")]
PartitionRow = Annotated[Ints, Row("site_partitions")]
WindowRow = Annotated[Floats, Row("windows")]
TimeOfPartition = Annotated[Floats, Row("partition_times")]
AssociationRow = Annotated[Floats, Row("associations")]
GroupRow = Annotated[Ints, Row("limit_groups")]
LimitedJobs = Annotated[Ints, Row("limited_jobs")]
SubmitGroupRow = Annotated[Ints, Row("submit_groups")]
AskingJobs = Annotated[Ints, Row("asking_jobs")]
ListedJobs = Annotated[Ints, Row("listed_jobs")]
ListedTimes = Annotated[Floats, Row("listed_times")]
ArrayRow = Annotated[Floats, Row("arrays")]
RefusableJobs = Annotated[Ints, Row("refusable_jobs")]
LimitedTimes = Annotated[Floats, Row("limited_times")]
FollowingJobs = Annotated[Ints, Row("following_jobs")]
FollowingTimes = Annotated[Floats, Row("following_times")]
PairRow = Annotated[Ints, Row("pairs")]
TimeOfPair = Annotated[Floats, Row("pair_times")]
PointRow = Annotated[Ints, Row("points")]
GainRow = Annotated[Ints, Row("gains")]
TimeOfGain = Annotated[Floats, Row("gain_times")]
PassRow = Annotated[Floats, Row("pass_kinds")]
MaskRow = Annotated[Bits, Row("masks")]
ProfileRow = Annotated[Floats, Row("profile")]
ProfileIndex = Annotated[Ints, Row("profile_index")]


class State(Common):
    """What a run on one machine changes, and its parameters. On a site, all counts of nodes are counts of cores."""

    job: Jobs
    reservation: float  # reservation time of the head job found by the last backfilling pass, s
    last_attempt: float  # time of the last migration attempt, s
    start_delay: float  # s
    migration_free: float  # least share of free nodes
    migration_mfp: float  # largest share of them in the maximal free partition
    migration_cost: float  # s
    accuracy: float  # of the predictor
    rebuilt: float  # when the availability profile was last made from scratch (conservative)
    recall: float  # probability that a node that will fail is reported
    false_rate: float  # probability that another node is reported ...
    precision: float  # ... or, below 1, the share of true reports, from which that follows
    node_seconds: float  # nodes x span of the submissions: what the base rate of failures refers to
    next_foreseen: float  # when the next checkpoint before a foreseen failure may start (exact, bucket), s
    bucket_end: float  # end of the bucket of next_foreseen, s
    checkpoint_cost: float  # s
    checkpoint_interval: float  # work, s
    checkpoint_mtbf: float  # of the machine, s; 0: as observed (young, daly)
    bucket: float  # length, s
    bucket_repeat: float  # 0: once in a bucket
    bucket_long: float  # from when on a job runs long, s
    finished_start: float  # earliest start of the jobs that finish at this instant, s (migration to safer nodes)
    move_cost: float  # s
    delay_mean: float  # of resubmission by hand, s
    delay_sigma: float  # of the logarithm
    requeue_hold: float  # s, before a killed or preempted job waits again
    num_releases: int  # entries of the list of expected releases
    version: int  # raised whenever the set of free nodes changes
    boxes_version: int  # version of the list of maximal free boxes (torus)
    scanned: int  # queue position up to which backfilling has refused all jobs ...
    scanned_version: int  # ... at this version of the free nodes
    attempted_version: int  # version at which the last migration attempt ended: repeating it would change nothing
    num_boxes: int  # maximal free boxes listed (torus)
    free_slots: int  # free slots of node masks (flat)
    started_at_instant: int  # sequence number for starts, which orders completions under pyss's event order
    footprints_version: int  # version of the table of footprints (torus)
    released: int  # whether nodes were released since the last pass
    disturbed: int  # whether reservations must be made from scratch (a failure, a pause)
    num_shadow: int  # boxes in the list at the reservation (torus)
    num_profile: int  # breakpoints of the availability profile (conservative); rows that have been used (flat) ...
    first_row: int  # ... of them the first in order of time (flat) ...
    last_row: int  # ... and the last; -1: none, as below
    spare_row: int  # ... the first that can be used again; the others follow as row_after ...
    dropped_now: int  # ... the first of those that have been dropped since gains were last forgotten ...
    dropped_before: int  # ... and of those before them
    changes: int  # of the profile, and of what a choice of nodes prefers, so far (conservative, torus and site) ...
    preference_changed: (
        int  # ... how many there were when a choice of nodes last began to prefer others though the same are free
    )
    span_bits: int  # 2 to the power of this nodes are a span, of which the profile of a site has one record
    num_records: int  # records of the profile that have been used (conservative and top-jobs, site) ...
    num_free_records: int  # ... and entries of free_record
    num_reserved: int  # waiting jobs that have a reservation (conservative, flat)
    compressed: int  # passes that have made reservations earlier (conservative, flat)
    missed: int  # whether the start of a reservation is past (conservative, flat)
    generation: int  # 0 or 1: of the gains that are noted now (conservative, flat) ...
    num_gains: int  # ... how many they are ...
    num_old_gains: int  # ... and those of the other generation
    moved_reservations: int  # how often one got earlier where others keep theirs (conservative, flat)
    gave: int  # whether nodes came back since the last pass, a gain for some job or not (conservative, flat) ...
    gave_before: int  # ... and in that pass or before it, since the one before
    level_bits: int  # level k of numbers of nodes is for 2^(k level_bits) or more (flat)
    blocks_until: int  # first job that is not counted in its block yet (EASY, flat); 0: none is
    side_x: int  # of a torus
    side_y: int
    side_z: int
    migrates: int  # whether running jobs move together ...
    migrates_empty: int  # ... also when no job waits
    counts_repeats: int  # whether attempts on an unchanged machine count
    num_soon: int  # timers of the sorted list ...
    num_later: int  # ... and of the heap (timers.py)
    event_order: int  # its code
    growth_limit: int  # nodes
    placement: int  # how the best free box is sought: MFP, BALANCING, TIE_BREAKING or SCORED
    partition_failure: int  # its code
    coin_key: int  # key of the predictor's coins
    finder_call: int  # where a finder of the papers is compiled; 0 if it is ours or interpreted
    finder_data: int  # where its block is: 0 if the finder is ours
    base_gaps: int  # gaps of the table of base rates
    score: int  # address of the user's placement score
    score_needs: int  # what it takes and promises: NEEDS_MFP + NEEDS_PREDICTION + NEEDS_PLACE + MONOTONE
    checkpoint: int  # number of the policy
    saves_by: int  # SAVES_NOTHING, BY_WORK or BY_FORESIGHT
    bucket_jobs: int  # its code
    bucket_biggest: int  # jobs
    next_foreseen_failure: int  # first failure that next_foreseen is about
    last_node: int  # node taken last (round-robin)
    node_choice: int  # its number
    watches: int  # whether the choice of nodes is told of failures and completions
    node_key: int  # key of the coins that choose nodes at random
    moves_to_safer: int  # whether running jobs move to safer nodes
    move_threshold: int  # failures
    num_suspended: int  # jobs that wait for their own nodes (recovery option C)
    kept: int  # nodes that are up and kept for them
    recovery: int  # whether a killed job does what its recovery option says
    hold_nodes: int  # whether they are kept
    delay_kind: int  # distribution of the delay of resubmission by hand
    delay_key: int  # key of its coins
    queue_order: int  # its number
    partitions: int  # of the machine's menu; 0 if it has none
    order_stays: int  # whether waiting jobs keep their order: only those that come have to be put in their places
    num_unordered: int  # jobs at the end of the queue that have come since it was put in order; at least, if all may be
    reorders: int  # times that the order of the queue changed and all reservations were made anew
    num_chosen: int  # nodes chosen for a job (site)
    num_free_pieces: int  # entries of free_piece (site)
    num_windows: int  # advance reservations (site)
    refused_with_room: int  # whether a job of another partition was in the way, not too little room (site)
    blocked: int  # bits of the partitions of which a job waits that had to be refused (site)
    next_ordering: float  # when the order of the queue is found again though nothing happens, s
    age_weight: float  # of the multifactor priority ...
    longest_age: float  # s
    share_weight: float
    share_damping: float
    half_life: float  # of usage, s; 0: it never decays
    fair_tree: int  # whether associations are ranked (Fair Tree)
    lsf_cpu_time: float  # weights of the dynamic priority of users ...
    lsf_run_time: float
    lsf_run_job: float
    priority_period: float  # time between calculations, s; 0: at every pass
    in_tiers: int  # whether ranks order the queue before anything else
    preemption: int  # its number
    preempt_grace: float  # s
    own_graces: int  # whether classes of jobs have their own where the site says one
    leaves_later: int  # whether a preempted job leaves after the pass (slurm) ...
    preempt_leave: float  # ... and how long that takes, s
    preempt_wait: float  # s, before a job that has had others leave may do so again (slurm)
    grace_interval: float  # s, between ticks at which jobs leave whose grace is over (slurm); 0: at once
    clock_origin: float  # from which times of plans and groups of ends are counted, s (slurm)
    first_grace_tick: float  # after the first submission, s
    preempt_exempt: float  # s
    suspends: int  # whether preempted jobs are suspended ...
    num_halted: int  # ... how many are now ...
    num_stacked: int  # ... of those in the stack ...
    over: int  # ... and bits of the classes whose cores the job takes that starts
    others_leave: int  # whether the chosen nodes are those that a job would get if others had left (slurm)
    ends_ordered: int  # whether expected ends of one second are in the order of the list of jobs (slurm)
    marks: int  # how often jobs have been marked that hold anything of the open nodes (slurm)
    searches: int  # of the backfilling pass so far (slurm) ...
    num_ends: int  # ... rows behind expected ends ...
    ends_in_row: int  # ... and the ends between two of them
    open_cores: int  # cores of the nodes that are open to the job that is looked at, idle or not (slurm)
    chooses_by_room: int  # whether nodes are chosen by what is free of them, and not only by the chunks that they take
    chooses_in_window: int  # whether nodes are chosen of what window_cores and so on say is free
    limited: int  # whether running jobs are limited: only then the fields of limits mean anything
    left_at: float  # when a preempted job left last, s: a main pass follows at once (slurm)
    passes_again: int  # whether the scheduling pass must begin again, because a start brought a job to a limit
    num_waiting: int  # entries of waiting
    lists: int  # whether tasks of job arrays have places of their own in the list of jobs (slurm)
    asks: int  # whether jobs ask for advance reservations (engine/admitted.py) ...
    num_aside: int  # ... and entries of aside
    refuses: int  # whether submitted jobs are limited: only then the fields of these limits mean anything
    follows: int  # whether jobs wait for others (engine/dependencies.py) ...
    num_held: int  # ... how many do now
    changed: int  # whether a job has come or ended, and so on, since the last scheduling pass (slurm)
    top_jobs: int  # that have reservations (top-jobs)
    main_depth: int  # jobs that its main pass looks at ...
    plan_depth: int  # ... and its backfilling pass ...
    plan_user_depth: int  # ... of one user; 0: as many as there are
    plan_window: float  # how far ahead it plans, s
    plan_resolution: float  # plans begin and end at its multiples, s; 0: at any time
    own_order: int  # addresses of the loops around policies of the user's; 0 without: the order of the queue ...
    own_choice: int  # ... the choice of nodes ...
    choice_lasts: int  # ... whether its numbers are the same for all jobs ...
    choice_counts: int  # ... whether they change with those ...
    choice_known: int  # ... and whether SAFEST is in order of the present ones ...
    own_checkpoint: int  # ... the work between checkpoints ...
    own_pass: int  # ... which job starts next ...
    own_predictor: int  # ... and which nodes will fail
    own_window: float  # the window that it is asked about, s
    own_counted: int  # failures that are in own_failures and own_last
    own_score_values: int  # address of the parameters of the placement score
    own_head: int  # a job that another would overtake, for a discipline of the user's
    own_extra: int  # nodes beside the reservation of the head job at its time

    # by timer or release: (SOON + jobs + nodes + 2,), more on a site, and whole numbers in it are exact
    timer_time: AgendaRow  # a sorted list and a heap, by (time, key) (timers.py)
    timer_key: AgendaRow  # kind * TIMER_STRIDE + job or node
    release_time: AgendaRow  # ascending: when nodes are expected to become free
    release_item: AgendaRow  # job, or -1 - node for a node that is down
    # by node
    down_until: FloatOfNode  # -inf while up
    node_failures: FloatOfNode  # failures so far (lff)
    node_score: FloatOfNode  # free ones are taken from the lowest on
    own_failures: FloatOfNode  # for a predictor of the user's: failures so far, ...
    own_last: FloatOfNode  # ... time of the last, s ...
    own_ahead: FloatOfNode  # ... time until the next in the window, s; infinite without ...
    own_reported: FloatOfNode  # ... and whether it reports the node
    # lists: of (2 * jobs + 2,), ...
    queue: ListRow  # waiting jobs at queue_head .. queue_tail
    # ... of nodes, sizes or running jobs ...
    slots: ListOfNodes  # stack of free rows of slot_masks (flat)
    order: ListOfNodes  # jobs in the order of re-placement (migration)
    trial_box: ListOfNodes  # their boxes; free nodes, for a choice of the user's (flat)
    fits: ListOfNodes  # by size: 2 * version + (a free box of this size exists) (torus)
    shape_first: ListOfNodes  # by size: first row of s.shapes (torus)
    safest: ListOfNodes  # nodes by (failures, index) (lff), or by the numbers of the user's choice
    # ... and of jobs, where some lose their nodes and go on later
    suspended: ListOfJobs  # jobs that wait for their own nodes, by index
    stack: ListOfJobs  # jobs that hold cores, running or suspended, in order of their starts (suspend)
    victims: ListOfJobs  # scratch: running jobs that may be preempted, those to leave first in front ...
    victim_key: ListOfJobs  # ... and what orders them
    base_gap: FailureRow  # only where the precision is below 1: gaps between failures of a node, ascending ...
    base_sum: FailureRow  # ... and their sums from the smallest on
    profile_time: ProfileRow  # a time ...
    profile_rank: ProfileRow  # ... and 0, or 1 for just after it, and so on
    profile_free: ProfileRow  # nodes (torus)
    profile_place: ProfileIndex  # where the tables have it; behind the last breakpoint, places that are not used

    # profile of a flat machine (conservative): engine/counts.py, by breakpoint ...
    row_free: PointRow  # nodes that are free from there on ...
    row_room: PointRow  # ... and just before it; 0 of the first
    row_before: PointRow  # the one before in order of time; -1: none
    row_after: PointRow  # the one after it
    row_uses: PointRow  # reservations and running jobs that begin or end there, nodes that come up
    row_starts: PointRow  # reservations that begin there
    row_gone: PointRow  # whether it has been dropped
    # ... and by gain, those of each generation in one half
    gain_row: GainRow  # first row of the room
    gain_next: GainRow  # next gain of the same generation, level and length; -1: none
    gain_low: GainRow  # it is for jobs that need more nodes ...
    gain_high: GainRow  # ... and no more than these
    refused_size: GainRow  # jobs that need so many nodes or more, for so long or longer, have been refused
    refused_length: TimeOfGain  # ... s
    gain_from: TimeOfGain  # when the room begins, s
    gain_until: TimeOfGain  # when it ends, s
    gain_heads: IntTables  # (2, LEVELS, LENGTHS): first gain of each generation, level and class of lengths
    newest_gain: IntTable  # (2, LEVELS): the last gain of each generation and level, counted from 0
    gain_classes: BitTable  # (2, LEVELS): bits of the classes of lengths that have gains
    first_gain: FloatTable  # (2, kinds): when the earliest of those of a kind of jobs, and of longer ones, begins, s
    latest_use: FloatVector  # (kinds,): how late a gain may begin to be of use to one of a kind, or to a shorter one, s

    # bit masks of nodes: words of 64 nodes and, with a menu, wires; on a torus a word for each column along z
    free_nodes: MaskRow  # without words where no one asks which nodes of a flat machine a job has
    shadow: MaskRow  # scratch: free at the reservation (torus)
    trial: MaskRow  # scratch: free in a re-placement (torus)
    predicted: MaskRow  # scratch: predicted to fail (torus)
    plane: MaskRow  # scratch of the finder (torus)
    movers: MaskRow  # scratch: nodes of the jobs that may move to safer ones (flat, lff)
    slot_masks: BitTable  # (slots, words): the nodes of a running job each (flat)
    # (breakpoints, partitions of a site or 1), at its place: how many changes of the profile there were ...
    profile_changed: IntTable  # ... when anything last changed there ...
    profile_gained: IntTable  # ... and when something last came back
    last_gain: IntVector  # (partitions or 1,): the same, anywhere
    # (breakpoints, words): free nodes from each breakpoint on, at its place (torus); under slurm: those in no plan
    profile_masks: BitTable
    # what is free of each node of a site from each breakpoint on, or behind some ends (slurm): engine/records.py
    profile_records: HalfIntTable  # (breakpoints, spans): record of each span, at the place of the breakpoint
    # (breakpoints, partitions or twice as many), at the place of the breakpoint: free cores of each, and those in idle
    # nodes if a job shares its nodes with nobody
    profile_most: HalfIntTable
    profile_edges: BitTable  # (breakpoints, words), there, too: spans with another record than at the one before it
    partition_spans: BitTable  # (partitions, words): spans with nodes of each ...
    full_spans: BitTable  # ... and those with all their nodes in it
    span_most: IntVector  # (spans,): scratch, chunks that each can take throughout a reservation at most
    record_shape: IntVector  # (records,): the shape of the job for which it was looked at last; -1: changed since ...
    record_chunks: IntVector  # ... chunks of such jobs that its nodes can take ...
    record_takes: HalfIntTable  # ... (records, SPAN): each of them
    record_free: IntVector  # (records,): free cores
    end_records: HalfIntTable  # (rows, spans): record of each span behind as many expected ends each (slurm)
    profile_cores: HalfIntTable  # (records, SPAN)
    profile_gpus: HalfIntTable
    profile_memory: IntTable  # ... MiB
    more_cores: HalfIntTable  # (1, nodes of a span): scratch, what is free more of each
    more_gpus: HalfIntTable
    more_memory: IntTable  # ... MiB
    free_record: IntVector  # (records,): stack of those that have been used and are not now
    footprints: BitTables  # (2, intervals of x, intervals of y)
    extents: IntTable  # (2, intervals of x): longest interval of y at which a row of footprints is not empty
    boxes: IntTables  # (3 or 4, capacity, 7): maximal free boxes
    shapes: IntTable  # (count, 3): box shapes, by size (torus)

    # on a site, by node: what it has, what is free of it, and scratch
    node_cores: NodeRow
    node_gpus: NodeRow
    node_memory: NodeRow  # MiB
    node_members: NodeRow  # bits of its partitions
    node_windows: NodeRow  # bits of its advance reservations
    free_cores: NodeRow  # of a node that is down: 0, and so on
    free_gpus: NodeRow
    free_memory: NodeRow
    lacking: NodeRow  # cores of it that suspended jobs do not keep, though they are theirs (suspend)
    open_node: NodeRow  # scratch: whether it is up and no plan has it while the job that is looked at would (slurm) ...
    open_mask: BitVector  # ... the same as a mask ...
    touched: IntVector  # (spans,): scratch, whether something came free of it since chunks were counted (slurm)
    for_job: BitVector  # ... of the nodes of this one, scratch, too
    partition_masks: BitTable  # (partitions, words): nodes of each partition (slurm)
    window_masks: BitTable  # (advance reservations, words): nodes of each (slurm)
    piece_on: NodeRow  # first piece of the list of what is held of it; -1: nothing
    window_cores: NodeRow  # scratch: what is free of it throughout a reservation (conservative) ...
    window_gpus: NodeRow
    window_memory: NodeRow  # ... MiB
    takes: NodeRow  # chunks of the job that is looked at which it could take
    chosen: NodeRow  # nodes chosen for the job that is looked at, in the order of the choice ...
    chosen_chunks: NodeRow  # ... and how many chunks each gets

    # what a job holds of a node, or will hold by its reservation
    piece_job: PieceRow
    piece_node: PieceRow
    piece_cores: PieceRow
    piece_gpus: PieceRow
    piece_memory: PieceRow
    piece_lacking: PieceRow  # those of its cores that a suspended job does not keep
    piece_next: PieceRow  # next piece of the same job, of a higher node; -1: none
    piece_beside: PieceRow  # next piece of the same node; -1: none
    free_piece: PieceRow  # stack of free rows of this table
    piece_bits: IntTable  # (pieces, words): the bits of its cores; no words unless jobs are suspended

    # by partition: its first waiting job that had to be refused, and what is free at its reservation (EASY)
    overlaps: PartitionRow  # bits of the partitions that share a node with it
    has_all: PartitionRow  # whether it has every node
    first_node: PartitionRow  # its first node ...
    end_node: PartitionRow  # ... and the one behind its last one
    head_job: PartitionRow  # -1: none
    head_closed: PartitionRow  # bits of the advance reservations whose nodes that job cannot have then
    head_extra: PartitionRow  # chunks of that job that could be placed beside it then
    head_time: TimeOfPartition  # reservation, s
    then_cores: IntTable  # (partitions, nodes); of a plain job, all of these are left as they are: counts suffice
    then_gpus: IntTable
    then_memory: IntTable
    then_takes: IntTable  # chunks of that job that a node could take then

    window_begin: WindowRow  # of an advance reservation, s ...
    window_end: WindowRow  # ... from here on its nodes are there for all jobs again

    # by class of jobs that preempt others (site)
    may_preempt: IntVector  # bits of the classes that it may preempt
    preempt_order: IntVector  # 0 for the one whose jobs leave first, and so on
    class_grace: GraceRow  # s; 0: the site says none

    # by kind of pass: MAIN_PASS, FULL_PASS, BACKFILL_PASS (slurm)
    tick_interval: PassRow  # s; 0: a pass at every event
    first_tick: PassRow  # after the first submission, s
    pass_due: PassRow  # when the next pass is, s; infinity: none is needed
    last_pass: PassRow  # when the last one was, s; -infinity: there was none
    planned_of_user: IntVector  # scratch: (users,): jobs of each that the backfilling pass has looked at

    # by association (multifactor): users of accounts, the leaves, then accounts, and the root, which is all of them;
    # what each had used, decayed, ...
    used: AssociationRow  # ... at the last calculation before what is in use changed, node-seconds ...
    used_until: AssociationRow  # ... which was then, s ...
    ended_counts: AssociationRow  # ... what had been used since then by what went out of use, node-seconds ...
    in_use: AssociationRow  # ... nodes in use ...
    begun: AssociationRow  # ... those of them that are in use since that calculation or later ...
    begun_counts: AssociationRow  # ... and what these will have used at the next one, node-seconds ...
    due: AssociationRow  # ... its part of the shares of those with the same parent ...
    inverse_share: AssociationRow  # ... 1 / its share of the whole machine ...
    level: AssociationRow  # ... scratch: how much of what it is due it has left, the base-2 logarithm (Fair Tree) ...
    factor: AssociationRow  # ... and the fair-share factor, of leaves ...
    factor_at: AssociationRow  # ... of the calculation of this time, s
    runs: AssociationRow  # ... running jobs ...
    runs_since: AssociationRow  # ... and the sum of the times since when they run, s (lsf)
    parent: IntVector  # (associations,): -1 of the root
    path: IntTable  # (leaves, depth): from the account below the root down to the leaf itself; -1 behind it
    ranking: IntVector  # (leaves,): leaves in falling order of what they are due (Fair Tree)

    # limits of running jobs (engine/limits.py), by group of jobs that share one ...
    group_jobs: GroupRow  # running ...
    group_nodes: GroupRow  # ... and the nodes that they ask for
    most_jobs: GroupRow
    most_nodes: GroupRow
    # ... and by job: (jobs,), none without limits
    is_at_limit: LimitedJobs  # whether the last pass did not see it because of a limit ...
    at_limit_since: LimitedTimes  # ... since when, s ...
    time_at_limit: LimitedTimes  # ... and how long that was before, s
    waiting: LimitedJobs  # scratch: the queue as it is without limits
    groups_of: IntTable  # (jobs, most groups of a job): those that limit it, -2 - those that only count it, then -1

    # limits of submitted jobs (engine/submits.py), by group of jobs that share one ...
    submitted: SubmitGroupRow  # jobs that have been submitted and have not ended
    most_submitted: SubmitGroupRow
    # ... and by job: (jobs,), none without limits
    first_task: RefusableJobs  # the first task of the array that is submitted with it; itself without one
    next_task: RefusableJobs  # the next one; -1: none
    submit_groups_of: IntTable  # (jobs, most groups of a job), as groups_of

    # where jobs stand in SLURM's list, by job: (jobs,), none without job arrays (slurm)
    array_of: ListedJobs  # its job array, -1: none
    listed_since: ListedTimes  # since when it has a place of its own, s
    last_start: ArrayRow  # by array: when a task was last started first, s

    # by job: (jobs,), none if no job asks for an advance reservation
    asks_for: AskingJobs  # the one that it asks for, or ANYWHERE or OVER
    aside: AskingJobs  # scratch: the queue with these jobs

    # jobs that wait for others, by job: (jobs,), none without such jobs ...
    waits_for: FollowingJobs  # how many others have not ended yet
    free_from: FollowingTimes  # when the think times are over after those that have, s
    first_follower: IntVector  # (jobs + 1,): first row below of those that wait for a job; they end at the next one's
    # ... and by pair of jobs, in order of the one that is waited for
    follower: PairRow  # the job that waits
    think: TimeOfPair  # its think time after the other's end, s

    # index of long queues (EASY, flat): policies/scheduling/long_queue.py
    smallest: IntVector  # (blocks,): no job of the block that waits is smaller
    shortest: FloatTable  # (blocks, LEVELS): none with the nodes of a level is expected to last shorter, s
    levels: IntVector  # (nodes + 1,): levels whose least number is not larger than a number of nodes

    own_values: FloatTable  # (OWN_ROLES, MOST_OWN): the parameters of policies of the user's
    own_key: IntVector  # (OWN_ROLES,): keys of the coins that they get


state_at = make_state_at(State)
"""In a kernel: the state of a table."""
