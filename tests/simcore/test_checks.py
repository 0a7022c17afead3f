"""Debug mode: sound runs pass every check, and each check notices a state that is broken on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.checks import CHECKS, Checker, check_capacities
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.engine.site_checks import SiteChecker
from faultsweep.simcore.engine.steps import checked
from faultsweep.simcore.model.dependencies import PAIRS, Dependencies
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import SITE, parse_machine, round_up
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.scheduling import backfill
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as hst

from faultsweep.errors import InvariantError
from tests.adapter import failures_of, menu_file, workload_of
from tests.strategies import SCHEDULERS, examples, flats, machines, runs

# Two jobs run, four wait: the head of the queue is the third.
ROWS = [(0, 100, 12), (0, 50, 8), (1, 60, 12), (2, 90, 14), (3, 500, 16), (4, 10, 20)]
TORUS, FLAT, MENU = "torus:2x3x4", "flat:24", "menu:rows"
# On the menu two pairs run, each on the cable of its row: no third has a place, though four midplanes are free.
MENU_ROWS = [(0, 100, 2), (0, 50, 2), (1, 60, 2), (2, 90, 8), (3, 500, 8), (4, 10, 8)]


def pack_box(*box: int) -> int:
    """A box a, b, c, x, y, z as the state has it."""
    return sum(value << shift for value, shift in zip(box, range(50, -1, -10), strict=True))


def paused(
    machine: str,
    scheduler: str,
    instants: int = 5,
    down_node: int = -1,
    order: str = "fcfs",
    rows: list | None = None,
    users: tuple[int, ...] = (),
    pairs: Sequence[tuple[int, int, float]] = (),
) -> tuple[st.State, Checker]:
    """Return a state between two instants, which has passed all checks so far, and its checker.

    users : of the jobs, each of whom may have one running job.
    pairs : jobs (job, after, think time) that wait for others.
    """
    if machine == MENU:
        machine, rows = menu_file(machine), rows or MENU_ROWS
    submit, work, size = (np.array(column) for column in zip(*(rows or ROWS), strict=True))
    jobs = {"submit_s": submit.astype(float), "work_s": work.astype(float), "estimate_s": work.astype(float)}
    sizes = size.astype(np.int64)
    place = parse_machine(machine)
    failures = FailureTrace(np.array([3.5]), np.array([down_node]), np.array([1e3])) if down_node >= 0 else None
    jobs |= {"requested": sizes, "size": round_up(place, sizes)}
    if users:
        jobs |= {"user": np.array(users), "user_number": np.array(users), "user_names": np.array([], np.str_)}
    if pairs:
        jobs |= dict(zip(PAIRS, map(np.array, zip(*pairs, strict=True)), strict=True))
    config = resolve({"scheduler": scheduler, "queue_order": order, "user_max_jobs": int(bool(users))})
    state = build_state(jobs, place, config, failures, tracing=False)
    checker = Checker(state)
    for _ in range(instants):  # one by one: a call returns after a tenth of a second, and the first loads the engine
        assert checked(advance, checker.check)(state, 1) == st.CONTINUE
    return state, checker


def set_box(job: int, *box: int) -> Callable[[st.State], None]:
    def corrupt(state: st.State) -> None:
        state.job.box[job] = pack_box(*box)

    return corrupt


def set_to(name: str, place: tuple[int, ...] | int | None, change: float) -> Callable[[st.State], None]:
    """Change an element of a field, or the field itself."""

    def corrupt(state: st.State) -> None:
        if place is None:
            setattr(state, name, getattr(state, name) + change)
        else:
            attrgetter(name)(state)[place] += change

    return corrupt


def lengthen_all(state: st.State) -> None:
    """Let all running jobs end later than they were expected to, and say so everywhere."""
    for rows in (state.job.end, state.job.expected_end):
        rows[:2] += 100.0
    state.timer_time[: state.num_soon] += 100.0
    state.release_time[: state.num_releases] += 100.0


def lengthen_all_and_run_on(state: st.State) -> None:
    """Let them run even longer than they are expected to then: nothing is overdue yet."""
    lengthen_all(state)
    state.job.end[:2] += 1.0
    state.timer_time[: state.num_soon] += 1.0


def exchange(name: str, first: int, second: int) -> Callable[[st.State], None]:
    def corrupt(state: st.State) -> None:
        rows = getattr(state, name)
        rows[[first, second]] = rows[[second, first]]

    return corrupt


def share_nodes(state: st.State) -> None:
    """Give the second job the first four nodes of the first."""
    state.job.box[1] = pack_box(2, 1, 4, 0, 0, 0)


def free_a_held_node(state: st.State) -> None:
    state.free_nodes[0] |= np.uint64(1)


def share_on_a_flat_machine(state: st.State) -> None:
    slots = state.job.slot[:2]
    state.slot_masks[slots[1]] = 0
    state.slot_masks[slots[1], 0] = 0xFF


def set_words(row: int, *words: int) -> Callable[[st.State], None]:
    """Give the job (or, for -1, the free units) other midplanes and wires."""

    def corrupt(state: st.State) -> None:
        mask = state.free_nodes if row < 0 else state.slot_masks[state.job.slot[row]]
        mask[:] = words

    return corrupt


def share_a_wire(state: st.State) -> None:
    """Move the second pair to the row of the first."""
    set_words(1, 0b1100, 0b01)(state)
    set_words(-1, 0b11110000, 0b10)(state)


class Corruption(NamedTuple):
    """What is broken, on which machine, under which scheduler and order of the queue, and which check says what."""

    check: str
    machine: str
    scheduler: str
    corrupt: Callable[[st.State], None]
    sentence: str
    order: str = "fcfs"


CORRUPTIONS = (
    Corruption("boxes", TORUS, "fcfs", set_box(0, 1, 3, 3, 0, 0, 0), "job 0 is allotted 12 nodes and holds 9"),
    Corruption("boxes", TORUS, "fcfs", set_box(0, 1, 3, 4, 0, 1, 0), "or no box of the torus"),
    Corruption("boxes", TORUS, "fcfs", set_to("job.size", 0, 6), "job 0 needs 18 nodes and holds 12"),
    Corruption("boxes", FLAT, "fcfs", set_to("job.size", 0, -1), "job 0 needs 11 nodes and holds 12"),
    Corruption("sharing", TORUS, "fcfs", share_nodes, "is held by jobs 0 and 1"),
    Corruption("sharing", FLAT, "fcfs", share_on_a_flat_machine, "node 0 is held by jobs 0 and 1"),
    Corruption("sharing", TORUS, "fcfs", free_a_held_node, "node 0 is marked free and is taken"),
    Corruption("sharing", FLAT, "fcfs", free_a_held_node, "node 0 is marked free and is taken"),
    Corruption("partitions", MENU, "fcfs", set_words(0, 0b11, 0), "job 0 has units [0, 1], which are no partition of"),
    Corruption("partitions", MENU, "fcfs", set_words(-1, 0b11001100, 0b11), "a wire of job 0 is marked free"),
    Corruption("partitions", MENU, "fcfs", share_a_wire, "a wire is held by jobs 0 and 1"),
    Corruption("counts", TORUS, "fcfs", set_to("free", None, 1), "5 free nodes are counted and there are 4"),
    Corruption("counts", FLAT, "fcfs", set_to("queued", None, -2), "asked for by waiting jobs are counted"),
    Corruption("counts", FLAT, "fcfs", set_to("finished", None, 1), "1 finished jobs are counted and there are 0"),
    Corruption("queue", FLAT, "fcfs", exchange("queue", 2, 3), "and the waiting jobs, by arrival, are"),
    Corruption("agenda", TORUS, "fcfs", set_to("timer_time", 0, -1), "timers of completion"),
    Corruption("agenda", TORUS, "fcfs", exchange("timer_time", 0, 1), "the timers are not in order of time"),
    Corruption("agenda", TORUS, "fcfs", exchange("release_time", 0, 1), "releases are not in order of time"),
    Corruption("agenda", TORUS, "fcfs", exchange("release_item", 0, 1), "is not at the expected end"),
    Corruption("agenda", TORUS, "fcfs", set_to("release_item", 0, 1), "are not those of the running"),
    Corruption("finder", TORUS, "backfill", set_to("boxes", (st.MACHINE, 0, 0), 1), "and the first listed one"),
    Corruption("reservations", TORUS, "backfill", lengthen_all, "the start reserved for job 2 slips from"),
    Corruption("reservations", FLAT, "backfill", lengthen_all, "the start reserved for job 2 slips from"),
    Corruption("reservations", FLAT, "backfill", lengthen_all_and_run_on, "reserved for job 2 slips from"),
    Corruption("reservations", MENU, "backfill", lengthen_all, "for job 2 slips from 50.000000 to 150.000000 s"),
    Corruption("reservations", MENU, "fcfs", lengthen_all, "job 2 slips from 50.000000 to 150.000000 s", "wfp"),
    Corruption("reservations", FLAT, "backfill", lengthen_all, "for job 2 slips from", "wfp"),
    Corruption("reservations", FLAT, "conservative", set_to("job.reserved", 4, 9), "reserved for job 4 slips"),
    Corruption("capacity", FLAT, "fcfs", set_to("held", None, 1), "held, down and free node-seconds are counted as"),
    Corruption("capacity", FLAT, "fcfs", set_to("idle_lost", None, 1), "held, down and free node-seconds"),
)


@pytest.mark.parametrize("case", CORRUPTIONS, ids=lambda case: f"{case.check}-{case.order}-{case.sentence}")
def test_a_broken_state_is_one_sentence(case):
    state, checker = paused(case.machine, case.scheduler, order=case.order)
    checker.check(state)
    case.corrupt(state)
    with pytest.raises(InvariantError) as raised:
        checker.check(state)
    sentence = str(raised.value)
    assert sentence.startswith(f"debug: after 4.000000 s: {case.check}: ")
    assert case.sentence in sentence
    assert "\n" not in sentence


def test_every_check_is_seen_to_fail():
    assert {case.check for case in CORRUPTIONS} | {"overtaking", "limits", "dependencies"} == set(CHECKS)


@pytest.mark.parametrize(
    ("corrupt", "sentence"),
    [
        (set_to("group_jobs", 0, 1), "the running jobs of groups, or their nodes, are counted wrongly"),
        (set_to("group_nodes", 1, -1), "the running jobs of groups, or their nodes, are counted wrongly"),
        (set_to("most_jobs", 1, -1), "groups have [1, 1, 0] running jobs on [12, 8, 0] nodes, more than they may"),
        (set_to("is_at_limit", 2, -1), "job 2 is not noted as one at a limit"),
        (set_to("is_at_limit", 3, 1), "job 3 is noted as one at a limit"),
    ],
)
def test_broken_limits_are_noticed(corrupt, sentence):
    """Jobs 0 and 1 run, so that jobs 2 and 4, of the same users, are at a limit."""
    state, checker = paused(FLAT, "backfill", users=(0, 1, 0, 2, 1, 2))
    checker.check(state)
    corrupt(state)
    with pytest.raises(InvariantError, match=re.escape(f"limits: {sentence}")):
        checker.check(state)


@pytest.mark.parametrize(
    ("corrupt", "sentence"),
    [
        (set_to("num_held", None, 1), "3 held jobs are counted and there are 2"),
        (set_to("follower", 0, -1), "job 2 follows jobs that have not ended"),
        (set_to("follower", 1, -4), "job 0 follows jobs that have not ended"),
    ],
)
def test_held_jobs_that_are_not_held_are_noticed(corrupt, sentence):
    """Jobs 3 and 4 follow jobs 0 and 1, which run."""
    state, checker = paused(FLAT, "backfill", pairs=((3, 0, 0.0), (4, 1, 5.0)))
    checker.check(state)
    corrupt(state)
    with pytest.raises(InvariantError, match=f"dependencies: {sentence}"):
        checker.check(state)


def start_later_job(machine: str, rows: list) -> tuple[st.State, Checker]:
    """Return a state, not yet checked, whose only instant has started the first job and, by backfilling, the third."""
    state, checker = paused(machine, "backfill", instants=0, rows=rows)
    assert advance(state, 1) == st.CONTINUE
    assert state.job.status.tolist() == [st.RUNNING, st.WAITING, st.RUNNING]
    return state, checker


@pytest.mark.parametrize(
    ("machine", "sizes"), [(FLAT, (12, 24, 12)), (TORUS, (12, 24, 8)), (MENU, (2, 8, 2))], ids=["flat", "torus", "menu"]
)
def test_starting_before_the_head_is_noticed_at_the_instant_itself(machine, sizes):
    """The second job has never been the head before, so nothing that was reserved for it can slip."""
    rows = list(zip((0, 0, 0), (50, 60, 40), sizes, strict=True))
    state, checker = start_later_job(machine, rows)
    state.reserves = st.NOBODY
    with pytest.raises(InvariantError, match="overtaking: job 2 starts before job 1, the head of the queue"):
        checker.check(state)
    state, checker = start_later_job(machine, rows)
    state.job.end[2] = state.job.expected_end[2] = 1000.0
    state.timer_time[:2], state.timer_key[:2] = (1000.0, 50.0), (2, 0)
    state.release_time[:2], state.release_item[:2] = (50.0, 1000.0), (0, 2)
    sentence = r"overtaking: starting \[2\] delays job 1, the head of the queue, from 50.000000 to 1000.000000 s"
    with pytest.raises(InvariantError, match=sentence):
        checker.check(state)


def test_a_job_on_a_down_node_is_noticed():
    state, checker = paused(FLAT, "fcfs", down_node=23)
    assert checker.down.tolist() == [23]
    slot = state.job.slot[1]
    state.slot_masks[slot, 0] = np.uint64((1 << 23) | 0x7F000)
    with pytest.raises(InvariantError, match="node 23 is down and held by job 1"):
        checker.check(state)


def test_a_wire_that_nobody_gives_back_is_noticed():
    state, checker = paused(MENU, "fcfs", instants=1, rows=[(0, 100, 2), (5, 50, 1)])
    checker.check(state)
    set_words(-1, 0b11111100, 0)(state)
    with pytest.raises(InvariantError, match="wire 65 is marked taken and nobody holds it"):
        checker.check(state)


def test_a_job_that_overtakes_by_utility_may_delay_the_head():
    """At 90 s the third job, large and short, has a higher utility than the second, which waits since 1 s."""
    rows = [(0, 100, 16), (1, 500, 12), (2, 10, 24)]
    workload = workload_of([(n + 1, submit, run, None, size) for n, (submit, run, size) in enumerate(rows)])
    run = simulate(workload, machine=FLAT, scheduler="fcfs", queue_order="wfp", debug=True)
    assert run.jobs["start_s"].tolist() == [0, 110, 100]


@pytest.mark.parametrize("settings", [{"requeue_hold_s": 3.0}, {"recovery": "all-e", "requeue_hold_s": 3.0}])
def test_a_job_that_comes_back_before_the_head_may_delay_it(settings):
    """The third job is expected to start at 100 s, until the first comes back at 4 s and runs to 204 s."""
    rows = [(0, 200, 2), (0, 100, 2), (2, 10, 4)]
    workload = workload_of([(n + 1, submit, run, None, size) for n, (submit, run, size) in enumerate(rows)])
    trace = FailureTrace(np.array([1.0]), np.array([0]), np.array([0.0]))
    run = simulate(workload, failures=trace, machine="flat:4", node_choice="first-fit", debug=True, **settings)
    assert run.jobs["start_s"].tolist() == [4, 0, 204]


def test_a_backfilled_job_that_delays_the_head_is_noticed(monkeypatch):
    """The last job takes the four free nodes for long: at 50 s the head job's 12 nodes are not there any more."""
    if not is_interpreted():
        pytest.skip("it changes a kernel: without the compiler only")
    monkeypatch.setattr(backfill, "ends_by", lambda s, job, reservation: True)
    rows = [*ROWS[:3], (4, 1000, 4)]
    workload = workload_of([(number + 1, submit, run, None, size) for number, (submit, run, size) in enumerate(rows)])
    with pytest.raises(InvariantError, match=r"the start reserved for job 2 slips from 50.000000 to 100.000000 s"):
        simulate(workload, machine=FLAT, debug=True)


def test_the_parts_of_the_capacity_must_sum_to_one():
    metrics = simulate(
        workload_of([(n + 1, submit, run, None, size) for n, (submit, run, size) in enumerate(ROWS)]), debug=True
    ).metrics
    check_capacities(metrics)
    with pytest.raises(InvariantError, match="sum to"):
        check_capacities({**metrics, "lost_to_fragmentation": metrics["lost_to_fragmentation"] + 1e-6})
    check_capacities({**metrics, "unfinished_jobs": 1.0, "unused_capacity": 2.0})


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_sound_runs_pass(scheduler):
    @examples(25)
    @given(
        runs(machines, failures=True, max_jobs=16),
        hst.sampled_from(("actual", "requested")),
        hst.sampled_from((0, 0, 1)),
        hst.sampled_from((0, 3)),
        hst.sampled_from(("none", "periodic", "young", "risk", "exact", "bucket")),
        hst.sampled_from(("first-fit", "lff", "random", "round-robin")),
    )
    def check(case, estimates, delay, cost, checkpoint, node_choice):
        machine, rows, failures = case
        given_ = {"start_delay_s": float(delay), "migration_cost_s": float(cost), "estimates": estimates}
        given_ |= {"checkpoint": checkpoint, "checkpoint_cost_s": 1.0, "checkpoint_interval_s": 4.0, "bucket_s": 20.0}
        given_ |= {"accuracy": 0.5, "node_choice": node_choice, "move_cost_s": 2.0, "restart_cost_s": float(cost)}
        workload, trace = workload_of(rows), failures_of(failures, rows)
        simulate(workload, failures=trace, machine=machine, scheduler=scheduler, debug=True, **given_)

    check()


@examples(40)
@given(runs(flats, failures=True, max_jobs=16), hst.booleans())
def test_jobs_that_wait_for_their_own_nodes_count_for_limits(case, hold):
    machine, rows, failures = case
    workload, trace = workload_of(rows), failures_of(failures, rows)
    limited = {"recovery": "all-c", "hold_nodes": hold, "user_max_jobs": 1}
    simulate(workload, failures=trace, machine=machine, debug=True, **limited)


@pytest.mark.parametrize("event_order", ["submits-first", "ends-first"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_sound_runs_pass_event_by_event(scheduler, event_order):
    @examples(15)
    @given(runs(machines, max_jobs=16))
    def check(case):
        machine, rows, _ = case
        options = {"estimates": "requested", "event_order": event_order}
        simulate(workload_of(rows), machine=machine, scheduler=scheduler, debug=True, **options)

    check()


def test_ends_of_reservations_are_rounded_as_in_the_engine():
    """To take the saved work off the end instead of off the estimate gives another last digit."""
    start, estimate, saved = 9684.428891151276, 5424.881979086215, 3577.5250439374995
    assert start + estimate - saved != start + (estimate - saved)
    job = SimpleNamespace(estimate=[estimate], saved=[saved], restarts=np.array([2]), preemptions=np.array([0]))
    state = SimpleNamespace(job=job, kind=SITE, restart_cost=0.0, start_delay=0.0)
    end = SiteChecker._reserved_end(SimpleNamespace(state=state), 0, (start, 0.0))
    assert end == (start + (estimate - saved), 0.0)


@pytest.mark.parametrize(
    ("submit", "run", "size", "after", "times", "node"),
    [
        ((1, 2, 2, 2, 3, 5), (8, 8, 9, 7, 2, 8), (2, 1, 1, 1, 1, 1), (2, 0), (3, 9, 28), 0),
        ((0, 0, 0, 1, 2, 3, 4, 4), (10, 6, 11, 11, 10, 5, 11, 8), (2, 1, 2, 2, 2, 1, 2, 2), (2, 1), (6, 9, 17), 1),
    ],
    ids=["starts later", "waits"],
)
def test_a_job_that_was_held_may_stand_behind_a_recovered_one(submit, run, size, after, times, node):
    """That one has been put into the middle of the queue (option D) behind jobs that came later, and stays there."""
    rows = [(at + 1, *row[:2], None, row[2]) for at, row in enumerate(zip(submit, run, size, strict=True))]
    pair = [np.array([value]) for value in (*after, 0.0)]
    workload = replace(workload_of(rows), dependencies=Dependencies(*pair))
    failed = FailureTrace(np.array(times, float), np.full(3, node), np.zeros(3))
    given = {"machine": "flat:2", "scheduler": "fcfs", "recovery": "all-d", "dependencies": "log"}
    assert simulate(workload, failures=failed, debug=True, **given).status == "done"
