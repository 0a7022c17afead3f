"""Debug mode: what must hold in the engine's state after every instant, recomputed from the jobs alone.

The checks read the state that the engine works on, not its event trace, and share no code with it but the names of the
rows. A check returns a sentence if something is wrong. ``simulate(debug=True)`` calls them all after every instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.finders import FINDERS
from faultsweep.simcore.finders.boxes import box_nodes
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.catalogue import ROLES
from numpy.typing import NDArray

from faultsweep.errors import InvariantError

Nodes = NDArray[np.int64]
_FIELDS = np.arange(50, -1, -10)


class Checker:
    """Checks a state after every instant; it remembers what the next instant must not make worse.

    Attributes
    ----------
    checks : all checks by name; each takes this checker and returns a sentence, or an empty text.
    """

    def __init__(self, state: State) -> None:
        """Watch a state that has not begun."""
        self.state = state
        self.held: dict[int, Nodes] = {}
        self.wanted: dict[int, Nodes] = {}
        self.started: set[int] = set()
        self.overrun = False  # a job has run longer than expected since the last instant, or does so now
        self.down: Nodes = np.zeros(0, np.int64)
        self._integrals = np.zeros(3)  # nodes held, down and free, node-seconds
        self._before: tuple[float, NDArray[np.float64]] | None = None
        self._disturbances = (0, 0, 0.0, 0, 0, 0, 0)
        self._reservations: dict[int, float] = {}

    def check(self, state: State) -> None:
        """Raise InvariantError with the first sentence that a check has."""
        self.state = state  # another one, which shares all that changes, where failures were drawn further
        before = set(self.held)
        self.held = {int(job): self._nodes_of(int(job)) for job in np.flatnonzero(_holds_nodes(state))}
        self.started = set(self.held) - before
        expected_end, now = state.job.expected_end, state.now
        self.overrun = bool((expected_end[list(before)] < now).any() or (expected_end[list(self.held)] <= now).any())
        self.down = np.flatnonzero(state.down_until[: int(state.nodes)] > -np.inf)
        suspended = state.suspended[: int(state.num_suspended)] if state.hold_nodes else ()
        self.wanted = {int(job): self._nodes_of(int(job)) for job in suspended}
        for name, check in CHECKS.items():
            problem = check(self)
            if problem:
                raise InvariantError(f"debug: after {state.now:.6f} s: {name}: {problem}")

    def _nodes_of(self, job: int) -> Nodes:
        """Return the nodes that a running job holds."""
        state = self.state
        if state.kind == FLAT:
            return _set_bits(state.slot_masks[state.job.slot[job]], int(state.nodes))
        box = int(state.job.box[job]) >> _FIELDS & 1023  # a, b, c, x, y, z, ten bits each
        sides = np.array(_sides(state))
        spans = box[:3] == sides
        if (box[:3] < 1).any() or (box[:3] > sides).any() or (box[3:] >= sides).any() or box[3:][spans].any():
            return np.zeros(0, np.int64)  # no box of this machine: its size cannot be right either
        return box_nodes(_sides(state), box)

    def units_of(self, job: int) -> Nodes:
        """Return the nodes that a job holds or waits for and, on a machine with a menu, the wires, numbered behind."""
        if not self.state.partitions:
            return self.held[job] if job in self.held else self.wanted[job]
        return _set_bits(self.state.slot_masks[self.state.job.slot[job]])

    def partitions(self, size: int) -> NDArray[np.bool_]:
        """Return what the partitions of a size take on a machine with a menu: shape (partitions, units)."""
        first, end = (int(self.state.shape_first[edge]) for edge in (size, size + 1))
        words = self.state.footprints[st.RESOURCES, first:end, : self.state.free_nodes.shape[0]]
        return _bits(np.ascontiguousarray(words))

    def kept(self) -> Nodes:
        """Return the nodes that are up and kept for jobs that wait for the others of theirs (recovery option C)."""
        wanted = np.concatenate([np.zeros(0, np.int64), *self.wanted.values()])
        return np.setdiff1d(wanted, self.down)

    def free(self) -> NDArray[np.bool_]:
        """Return which nodes are free, from who holds or keeps them: shape (nodes,)."""
        free = np.ones(int(self.state.nodes), np.bool_)
        for nodes in self.held.values():
            free[nodes] = False
        free[self.kept()] = False
        free[self.down] = False
        return free

    def integrals(self) -> NDArray[np.float64]:
        """Return the integrals of nodes held, down and free since the first submission, node-seconds."""
        state, now = self.state, float(self.state.now)
        if self._before is not None:
            since, counts = self._before
            self._integrals += (now - since) * counts
        if state.next_arrival > 0:
            held = sum(len(nodes) for nodes in self.held.values())
            busy = held + len(self.down) + len(self.kept())
            counts = np.array([held, len(self.down), int(state.nodes) - busy], float)
            self._before = now, counts
        return self._integrals

    def reservations(self) -> Iterator[tuple[int, float, float]]:
        """Yield jobs with their reserved starts before and now, as long as nothing has broken reservations.

        Migrations, pauses and failures break them, a job that restarts on its own nodes, one that runs longer than it
        is expected to, one that was held, or that comes back, before others, and a change of the order of the queue.
        """
        state = self.state
        pauses = float(state.job.overhead_nodes.sum())
        suspended = int(state.num_suspended)
        held = int((state.job.eligible > state.job.submit).sum())
        left = int(attempts_of(state).sum())
        back = left - int((state.job.status == st.AWAY).sum())
        disturbances = (int(state.num_failures), int(state.moves), pauses, suspended, int(state.reorders), held, back)
        before, self._reservations = self._reservations, dict(self._reserved())
        if self.overrun or disturbances != self._disturbances:
            before = {}
        self._disturbances = disturbances
        for job, reservation in self._reservations.items():
            if job in before and not self._is_overtaken(job):
                yield job, before[job], reservation

    def _is_overtaken(self, job: int) -> bool:
        """Tell whether a job started at this instant that comes before a waiting one by its utility."""
        if self.state.queue_order == st.DEFAULT:
            return False
        return any(self._utility(other) >= self._utility(job) for other in self.started)

    def _utility(self, job: int) -> float:
        jobs = self.state.job
        if not np.isnan(jobs.fixed_utility[job]):
            return float(jobs.fixed_utility[job])
        order = list(ROLES["queue_order"].policies.values())[self.state.queue_order]
        expected = order.facts.get("expected_utility")
        return float(jobs.priority[job]) if expected is None else expected(self.state, job)

    def _reserved(self) -> Iterator[tuple[int, float]]:
        """Yield the jobs that have a reservation: all waiting ones (conservative), or the head of the queue."""
        queue = seen_jobs(self.state)
        if self.state.reserves == st.ALL_JOBS:
            yield from ((int(job), float(self.state.job.reserved[job])) for job in queue)
        elif len(queue) and self.state.reserves not in (
            st.OWN_PASS,
            st.TOP_JOBS,
        ):  # a rule of the user's may delay whom it will
            yield int(queue[0]), self.earliest(int(queue[0]))

    def overtaking(self) -> tuple[int, set[int]]:
        """Return the head of the queue (-1: none) and the jobs behind it that started at this instant.

        They are known where an instant has one pass, but for recovered jobs, and those that were held until they could
        follow others, which may stand behind recovered ones. Under limits of running jobs a pass may begin again behind
        another head.
        """
        state, queue = self.state, seen_jobs(self.state)
        if not len(queue) or state.event_order != st.INSTANT or state.limited or _stand_behind_recovered(state):
            return -1, set()
        head, by_utility = int(queue[0]), bool(state.queue_order != st.DEFAULT)
        known = (state.job.restarts == 0) | (state.recovery == 0)
        if by_utility:
            return head, {job for job in self.started if known[job] and self._utility(job) < self._utility(head)}
        return head, {job for job in self.started if known[job] and known[head] and job > head}

    def earliest(self, job: int, without: Collection[int] = ()) -> float:
        """Return when a waiting job could start at the earliest if what is expected happens and no other job starts.

        Jobs ``without`` are left out, as if they had not started.
        """
        state, size = self.state, int(self.state.job.size[job])
        held = [other for other in self.held if other not in without]
        releases = [(float(state.job.expected_end[other]), self.units_of(other)) for other in held]
        releases += [(self.expected_end(other), self.units_of(other)) for other in self.wanted]
        free = np.ones(64 * state.free_nodes.shape[0] if state.partitions else int(state.nodes), np.bool_)
        for _, units in releases:
            free[units] = False
        free[self.down] = False
        releases += [(float(state.down_until[node]), np.array([node])) for node in self.expected_up()]
        for time in sorted({time for time, _ in releases}):
            for end, units in releases:
                if end == time:
                    free[units] = True
            if self.can_hold(free, size):
                return max(time, float(state.now))
        return math.inf

    def can_hold(self, free: NDArray[np.bool_], size: int) -> bool:
        """Tell whether a job of a size finds a place among free nodes (and wires), shape (units,)."""
        if not self.state.partitions:
            return self.largest(free) >= size
        return bool((~(self.partitions(size) & ~free).any(axis=1)).any())

    def expected_end(self, job: int) -> float:
        """Return when a job that waits for its own nodes is expected to end: once the last is up, it runs."""
        state = self.state
        up = float(state.down_until[self.wanted[job]].max())
        remaining = float(state.job.estimate[job] - state.job.saved[job])
        return max(up, ((up + float(state.start_delay)) + float(state.restart_cost)) + remaining)

    def expected_up(self) -> Nodes:
        """Return the down nodes whose repair is an expected release: those that no suspended job waits for."""
        return np.setdiff1d(self.down, np.concatenate([np.zeros(0, np.int64), *self.wanted.values()]))

    def largest(self, free: NDArray[np.bool_]) -> int:
        """Return the size of the largest job that free nodes can hold."""
        count = int(free.sum())
        if self.state.kind == FLAT or count == 0:
            return count
        return FINDERS["pop"].largest_free_box(free.reshape(_sides(self.state)))[0]


def _sides(state: State) -> tuple[int, int, int]:
    return int(state.side_x), int(state.side_y), int(state.side_z)


def _queue(state: State) -> Nodes:
    """Return the waiting jobs in their order."""
    return state.queue[state.queue_head : state.queue_tail]


def seen_jobs(state: State) -> Nodes:
    """Return the waiting jobs that the last scheduling pass saw: those that no limit keeps from starting, and that ask
    for no advance reservation."""
    queue = _unasking(state, _queue(state))
    return queue[state.is_at_limit[queue] == 0] if state.limited else queue


def _unasking(state: State, jobs: Nodes) -> Nodes:
    """Return those of some jobs that ask for no advance reservation."""
    return jobs[state.asks_for[jobs] == st.ANYWHERE] if state.asks else jobs


def _holds_nodes(state: State) -> NDArray[np.bool_]:
    """Tell of every job whether it holds nodes; those that end at this very instant may have given them back."""
    running = state.job.status == st.RUNNING
    return running & (state.job.early_released == 0) if state.event_order == st.SUBMITS_FIRST else running


def _bits(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return the bits of masks of 64-bit words, along the last axis."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), axis=-1, bitorder="little").astype(np.bool_)


def _set_bits(words: NDArray[np.uint64], nodes: int | None = None) -> Nodes:
    """Return the positions of the set bits of a mask of 64-bit words, all or among the first ones, which are nodes."""
    return np.flatnonzero(_bits(words)[:nodes])


def _masked_free(state: State) -> Nodes:
    """Return the nodes that the engine's mask says are free, ascending."""
    words = state.free_nodes
    if state.kind == FLAT:
        return _set_bits(words, int(state.nodes))
    return np.flatnonzero(_bits(words).reshape(len(words), 64)[:, : int(state.side_z)])


def _check_boxes(checker: Checker) -> str:
    """Every running job holds a contiguous box, or a set of nodes, of the size allotted to it and large enough."""
    state = checker.state
    for job, nodes in checker.held.items():
        allocated, size = int(state.job.allocated[job]), int(state.job.size[job])
        if len(nodes) != allocated:
            return f"job {job} is allotted {allocated} nodes and holds {len(nodes)}, or no box of the torus"
        if allocated < size or (state.kind == FLAT and allocated != size):
            return f"job {job} needs {size} nodes and holds {allocated}"
    return ""


def _check_sharing(checker: Checker) -> str:
    """No node is held twice, held while it is down, or held and free."""
    holder = np.full(int(checker.state.nodes), -1)
    for job, nodes in checker.held.items():
        taken = nodes[holder[nodes] >= 0]
        if len(taken):
            return f"node {taken[0]} is held by jobs {holder[taken[0]]} and {job}"
        holder[nodes] = job
    broken = checker.down[holder[checker.down] >= 0]
    if len(broken):
        return f"node {broken[0]} is down and held by job {holder[broken[0]]}"
    marked, free = _masked_free(checker.state), np.flatnonzero(checker.free())
    wrong = np.setxor1d(marked, free)
    if len(wrong):
        is_marked = wrong[0] in marked
        return f"node {wrong[0]} is marked {'free' if is_marked else 'taken'} and is {'taken' if is_marked else 'free'}"
    return ""


def _check_partitions(checker: Checker) -> str:
    """On a machine with a menu every job has a partition of its size, and no wire is held twice, or held and free."""
    state = checker.state
    if not state.partitions:
        return ""
    free = _bits(state.free_nodes)
    holder = np.full(len(free), -1)
    for job in (*checker.held, *checker.wanted):
        units, size = checker.units_of(job), int(state.job.size[job])
        taken = np.zeros(len(free), np.bool_)
        taken[units] = True
        if not (checker.partitions(size) == taken).all(axis=1).any():
            return f"job {job} has units {units.tolist()}, which are no partition of size {size}"
        wires = units[units >= int(state.nodes)]
        if (holder[wires] >= 0).any():
            return f"a wire is held by jobs {holder[wires].max()} and {job}"
        if free[wires].any():
            return f"a wire of job {job} is marked free"
        holder[wires] = job
    every = np.flatnonzero(_bits(state.footprints[st.RESOURCES, :, : state.free_nodes.shape[0]]).any(axis=0))
    lost = [unit for unit in every if unit >= state.nodes and holder[unit] < 0 and not free[unit]]
    return f"wire {lost[0]} is marked taken and nobody holds it" if lost else ""


def _check_counts(checker: Checker) -> str:
    """The counters are those of what they count."""
    state = checker.state
    status = state.job.status
    counts = {
        "free nodes": ("free", int(checker.free().sum())),
        "down nodes": ("num_down", len(checker.down)),
        "nodes asked for by waiting jobs": ("queued", int(state.job.requested[status == st.WAITING].sum())),
        "finished jobs": ("finished", int(has_ended(state).sum())),
        "nodes kept for suspended jobs": ("kept", len(checker.kept())),
        "expected releases": ("num_releases", len(checker.held) + len(checker.wanted) + len(checker.expected_up())),
    }
    for what, (name, count) in counts.items():
        if getattr(state, name) != count:
            return f"{getattr(state, name)} {what} are counted and there are {count}"
    return ""


def _check_queue(checker: Checker) -> str:
    """The queue is all waiting jobs in the order of their arrival, in tiers if it has some; recovered ones may stand
    anywhere.

    By utility, the order is another one: it falls, where that of a job stays.
    """
    state = checker.state
    queue, waiting = _queue(state), np.flatnonzero(state.job.status == st.WAITING)
    if not np.array_equal(np.sort(queue), waiting):
        return f"the queue is {queue.tolist()} and the waiting jobs are {waiting.tolist()}"
    if state.queue_order != st.DEFAULT:
        utility = state.job.utility[queue]
        if state.order_stays and not state.in_tiers and (utility[1:] > utility[:-1]).any():
            return f"the queue is {queue.tolist()} and the jobs' utilities are {utility.tolist()}"
        return ""
    if _stand_behind_recovered(state):
        return ""
    if state.recovery:
        left = attempts_of(state) > 0
        queue, waiting = (jobs[~left[jobs]] for jobs in (queue, waiting))
    if state.in_tiers:
        waiting = waiting[np.argsort(-state.job.queue_rank[waiting], kind="stable")]
    if not np.array_equal(queue, waiting):
        return f"the queue is {queue.tolist()} and the waiting jobs, by arrival, are {waiting.tolist()}"
    return ""


def _stand_behind_recovered(state: State) -> bool:
    """Tell whether jobs that were held until they could follow others may stand behind recovered ones, which keep their
    places, and so behind others that came later."""
    return bool(state.recovery and state.follows and (attempts_of(state) > 0).any())


def attempts_of(state: State) -> NDArray[np.int64]:
    """Return how often each job has run and left without a result."""
    attempts: NDArray[np.int64] = state.job.restarts + (state.job.preemptions if state.kind == SITE else 0)
    return attempts


def has_ended(state: State) -> NDArray[np.bool_]:
    """Tell of each job whether it has finished, or has been cancelled or refused."""
    return np.isin(state.job.status, (st.DONE, st.REFUSED, st.MISSED))


def _check_dependencies(checker: Checker) -> str:
    """A job that follows others is held until they have ended and its think times are over, and no longer."""
    state = checker.state
    if not state.follows:
        return ""
    status, done = state.job.status, has_ended(state)
    after = np.repeat(np.arange(len(status)), np.diff(state.first_follower))
    waits = np.bincount(state.follower[~done[after]], minlength=len(status)) > 0
    over = np.where(np.isnan(state.job.finish[after]), -np.inf, state.job.finish[after] + state.think)
    thinks = np.zeros(len(status), np.bool_)
    thinks[state.follower[over > state.now]] = True
    held = (status == st.HELD) & (np.arange(len(status)) < state.next_arrival)
    wrong = np.flatnonzero((waits | thinks) & ~held & (status != st.FUTURE))
    if len(wrong):
        return f"job {wrong[0]} follows jobs that have not ended, or its think time is not over, and is not held"
    if int(held.sum()) != int(state.num_held):
        return f"{state.num_held} held jobs are counted and there are {int(held.sum())}"
    return ""


def _check_submits(checker: Checker) -> str:
    """No group has more submitted jobs than it may; tasks of one submission are refused together."""
    state = checker.state
    if not state.refuses:
        return ""
    refused = state.job.status == st.REFUSED
    if (refused != refused[state.first_task])[: int(state.next_arrival)].any():
        return "of the tasks of one submission some are refused and some are not"
    counted = np.zeros_like(state.submitted)
    for job in np.flatnonzero((state.first_task < state.next_arrival) & ~refused[state.first_task]).tolist():
        if state.job.status[job] not in (st.DONE, st.MISSED):
            groups = [group if group >= 0 else -2 - group for group in state.submit_groups_of[job] if group != -1]
            counted[groups] += 1
    limits_all = ~np.isin(np.arange(len(counted)), -2 - state.submit_groups_of[state.submit_groups_of < -1])
    if (limits_all & (counted > state.most_submitted)).any():
        return f"groups have {counted.tolist()} submitted jobs, more than they may"
    return "" if np.array_equal(counted, state.submitted) else "the submitted jobs of groups are counted wrongly"


def _check_limits(checker: Checker) -> str:
    """No group of jobs has more running ones, or more nodes, than it may; those at a limit are known."""
    state = checker.state
    if not state.limited:
        return ""
    away = state.suspended[: int(state.num_suspended)].astype(np.int64).tolist()  # they wait for their own nodes
    runs = np.flatnonzero(np.isin(state.job.status, (st.RUNNING, st.HALTED))).tolist() + away
    jobs, nodes = np.zeros_like(state.group_jobs), np.zeros_like(state.group_nodes)
    for job in runs:
        groups = [group if group >= 0 else -2 - group for group in state.groups_of[job].tolist() if group != -1]
        jobs[groups] += 1
        nodes[groups] += state.job.requested[job]
    limits_all = ~np.isin(np.arange(len(jobs)), -2 - state.groups_of[state.groups_of < -1])
    if (limits_all & ((jobs > state.most_jobs) | (nodes > state.most_nodes))).any():
        return f"groups have {jobs.tolist()} running jobs on {nodes.tolist()} nodes, more than they may"
    if not (np.array_equal(jobs, state.group_jobs) and np.array_equal(nodes, state.group_nodes)):
        return "the running jobs of groups, or their nodes, are counted wrongly"
    for job in _unasking(state, _queue(state)).tolist():
        groups = [group for group in state.groups_of[job].tolist() if group >= 0]
        full = (jobs[groups] >= state.most_jobs[groups]) | (
            nodes[groups] + state.job.requested[job] > state.most_nodes[groups]
        )
        if bool(full.any()) != bool(state.is_at_limit[job]):
            return f"job {job} is {'not ' if full.any() else ''}noted as one at a limit"
    return ""


def _timers_in_order(state: st.State) -> bool:
    """Tell whether the list of timers is in order, with the heap behind it, and the heap is one."""
    soon, count = int(state.num_soon), int(state.num_later)
    listed, heap = (
        list(zip(state.timer_time[part].tolist(), state.timer_key[part].tolist(), strict=True))
        for part in (slice(soon), slice(st.SOON, st.SOON + count))
    )
    parents = [listed[0] if at == 0 else heap[(at - 1) // 2] for at in range(count)] if soon else []
    in_heap = len(parents) == count and all(parent <= timer for parent, timer in zip(parents, heap, strict=True))
    return in_heap and all(later >= sooner for later, sooner in pairwise(listed))


def _check_agenda(checker: Checker) -> str:
    """Every running job has one timer at its end, timers are in order, and so are the expected releases by time (under
    slurm, by its seconds)."""
    state = checker.state
    timers = [*range(state.num_soon), *range(st.SOON, st.SOON + state.num_later)]
    kinds = state.timer_key[timers] // st.TIMER_STRIDE
    ends = np.sort(state.job.end[state.job.status == st.RUNNING])
    if not np.array_equal(np.sort(state.timer_time[timers][kinds == st.COMPLETION_TIMER]), ends):
        return "the timers of completion are not at the ends of the running jobs"
    if not _timers_in_order(state):
        return "the timers are not in order of time"
    count = int(state.num_releases)
    times, items = state.release_time[:count], state.release_item[:count].astype(np.int64)
    if (np.diff(np.floor(times - state.clock_origin) if state.reserves == st.IN_PLANS else times) < 0).any():
        return "the expected releases are not in order of time"
    jobs, nodes = items[items >= 0], -1 - items[items < 0]
    expected = np.empty(count)
    resumed = {job: checker.expected_end(job) for job in checker.wanted}
    expected[items >= 0] = [resumed.get(job, state.job.expected_end[job]) for job in jobs.tolist()]
    expected[items < 0] = state.down_until[nodes]
    known = {*checker.held, *checker.wanted}
    if set(jobs.tolist()) != known or set(nodes.tolist()) != set(checker.expected_up().tolist()):
        return "the expected releases are not those of the running and suspended jobs and the down nodes"
    if not np.array_equal(times, expected):
        return "an expected release is not at the expected end of its job, or at the repair of its node"
    return ""


def _check_finder(checker: Checker) -> str:
    """The list of maximal free boxes, where it is up to date, begins with the largest one."""
    state = checker.state
    if state.kind == FLAT or state.boxes_version != state.version:
        return ""
    listed = int(state.boxes[st.MACHINE, 0, 0]) if state.num_boxes > 0 else 0
    largest = checker.largest(checker.free())
    return "" if listed == largest else f"the largest free box has {largest} nodes and the first listed one {listed}"


def _check_reservations(checker: Checker) -> str:
    """No reservation slips: that of the head job, or, under conservative backfilling, that of any waiting job."""
    for job, before, now in checker.reservations():
        if not now <= before:
            return f"the start reserved for job {job} slips from {before:.6f} to {now:.6f} s"
    return ""


def _check_overtaking(checker: Checker) -> str:
    """A job starts before the head of the queue under backfilling only, and does not delay it.

    Unlike the reservations this looks at one instant alone: at a job, too, that has become the head just now.
    """
    head, started = checker.overtaking()
    reserves = checker.state.reserves
    if not started or reserves in (st.ALL_JOBS, st.OWN_PASS, st.TOP_JOBS):
        return ""
    if reserves != st.HEAD_JOB:
        return f"job {min(started)} starts before job {head}, the head of the queue"
    before, now = checker.earliest(head, without=started), checker.earliest(head)
    if now <= before:
        return ""
    return f"starting {sorted(started)} delays job {head}, the head of the queue, from {before:.6f} to {now:.6f} s"


def _check_integrals(checker: Checker) -> str:
    """The engine's integrals of nodes held, down and free are those of the nodes, and sum to the whole capacity."""
    state, own = checker.state, checker.integrals()
    found = np.array([state.held, state.down, state.unused + state.idle_lost])
    if not np.allclose(found, own, rtol=1e-9, atol=1e-6):
        return f"held, down and free node-seconds are counted as {found.tolist()} and are {own.tolist()}"
    return ""


CHECKS: Mapping[str, Callable[[Checker], str]] = {
    "boxes": _check_boxes,
    "sharing": _check_sharing,
    "partitions": _check_partitions,
    "counts": _check_counts,
    "queue": _check_queue,
    "dependencies": _check_dependencies,
    "limits": _check_limits,
    "agenda": _check_agenda,
    "finder": _check_finder,
    "reservations": _check_reservations,
    "overtaking": _check_overtaking,
    "capacity": _check_integrals,
}
"""The checks in the order in which they are made: later ones rely on what earlier ones check."""


def common_checks() -> Mapping[str, Callable[[Checker], str]]:
    """Return the checks that hold on every machine."""
    return {"queue": _check_queue, "limits": _check_limits, "submits": _check_submits, "agenda": _check_agenda}


def check_capacities(metrics: Mapping[str, float], end_s: float = 0.0) -> None:
    """Raise InvariantError unless capacity utilised (by the jobs' results) and the integrals of the rest sum to 1, but
    for the rounding of times up to ``end_s``.

    The parts of the lost capacity are integrals of their own; they are all of it once every job has finished.
    """
    if metrics["unfinished_jobs"] or not metrics["makespan_s"] > 0:
        return
    parts = sum(value for name, value in metrics.items() if name.startswith("lost_to_"))
    total = metrics["utilisation"] + metrics["unused_capacity"] + parts
    if not abs(total - 1.0) <= 1e-9 + 16.0 * float(np.spacing(abs(end_s))) / metrics["makespan_s"]:
        raise InvariantError(f"debug: capacity: utilised, unused and the parts of the lost sum to {total!r}, not to 1")
