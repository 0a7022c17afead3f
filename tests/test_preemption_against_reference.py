"""Preemption on a site against the reference: random small sites and jobs, and what makes way for what by hand."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import check_combination, resolve
from faultsweep.simcore.policies.recovery import OPTIONS
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import workload_of
from tests.reference.site import Need
from tests.strategies import examples
from tests.test_reservations_against_reference import asking
from tests.test_site_against_reference import CHOICES, assert_same, cases, engine
from tests.test_slurm_against_reference import SETTINGS, first_ticks

MODES = ("requeue", "checkpoint", "cancel", "suspend")
SCHEDULERS = ("fcfs", "backfill", "slurm")
QOS = ("x", "y", "z")  # of jobs of the reference
GRACES = st.sampled_from((0, 0, 2, 7))  # of a partition or QOS
OTHER_TIMES = {
    "preempt_grace": st.sampled_from((0, 0, 1, 3, 20)),
    "site_grace": st.booleans(),
    "preempt_exempt": st.sampled_from((0, 0, 2, 10)),
    "checkpoint_cost": st.sampled_from((0, 0.25, 1, 4)),
    "restart_cost": st.sampled_from((0, 0, 2)),
    "requeue_hold": st.sampled_from((0, 0, 1, 7)),
}
TIMES = st.fixed_dictionaries({"preemption": st.sampled_from(MODES)} | OTHER_TIMES)
TIMES_OF_LEAVING = st.fixed_dictionaries({"preemption": st.sampled_from(MODES[:3])} | OTHER_TIMES)


@st.composite
def tiers(draw, count: int):
    """Partitions of tiers, some of whose jobs stay; what the reference makes of them."""
    found = tuple((draw(st.integers(1, 3)), draw(st.sampled_from(("", "", "REQUEUE", "OFF")))) for _ in range(count))
    every = (*found, (1, ""))  # jobs of no partition

    def tier(job) -> int:
        return every[job.place][0]

    def preempts(job, other) -> bool:
        return other.place < count and tier(job) > tier(other) and every[other.place][1] != "OFF"

    graces = {f"p{place}": draw(GRACES) for place in range(count)}
    return ("partition", found, (), graces), {
        "preempts": preempts,
        "preempt_order": tier,
        "preempt_class": lambda job: job.place,
        "rank": tier,
        "grace": lambda job: graces.get(f"p{job.place}", 0),
    }


@st.composite
def classes(draw):
    """QOS that preempt others behind them; what the reference makes of them."""
    names = draw(st.permutations(QOS))
    rows = []
    for place, name in enumerate(names):
        behind = tuple(other for other in names[place + 1 :] if draw(st.sampled_from((True, True, False))))
        rows.append((name, draw(st.integers(0, 3)), behind, draw(st.sampled_from(("", "", "", "OFF")))))
    table = {name: (priority, behind, mode) for name, priority, behind, mode in rows}

    def below(name: str) -> set[str]:
        return {other for other in table[name][1] if table[other][2] != "OFF"}

    def depth(name: str) -> int:
        return max((depth(other) + 1 for other in below(name)), default=0)

    graces = {name: draw(GRACES) for name in names}
    return ("qos", (), tuple(rows), graces), {
        "preempts": lambda job, other: other.qos in below(job.qos),
        "preempt_order": lambda job: table[job.qos][0],
        "preempt_class": lambda job: names.index(job.qos),
        "rank": lambda job: depth(job.qos),
        "grace": lambda job: graces[job.qos],
    }


@st.composite
def crowds(draw, failures: bool = False):
    """A few nodes, which all partitions have nearly all of, and jobs that want most of them for a while."""
    count, cores = draw(st.integers(1, 4)), draw(st.sampled_from((1, 2, 4)))
    parts = tuple(
        ((draw(st.integers((count + 1) // 2, count)),), draw(st.sampled_from((False, False, True)))) for _ in range(3)
    )
    rows, time = [], 0
    for job_id in range(1, draw(st.integers(4, 14)) + 1):
        time += draw(st.sampled_from((0, 0, 1, 2, 5)))
        place = draw(st.integers(0, 3))
        nodes, whole = (parts[place][0][0], parts[place][1]) if place < 3 else (count, False)
        each = (draw(st.integers(1, cores)), 0, 0)
        per_node = draw(st.sampled_from((0, 1)))
        room = nodes * (1 if per_node else cores // each[0])
        need = Need(draw(st.integers((room + 1) // 2, room)), each, per_node, whole, place)
        run = draw(st.sampled_from((1, 3, 8, 20)))
        rows.append((job_id, time, run, run * draw(st.sampled_from((1, 1, 2, 0.5))), need))
    failed = [(draw(st.integers(0, 30)), draw(st.integers(0, count - 1)), 3) for _ in range(2 * failures)]
    return (((cores, 0, 0, count),), parts), rows, sorted(failed), ()


@st.composite
def runs(draw, **kinds):
    """A case, and who preempts whom in it."""
    case = draw(
        cases(**kinds) if "reservations" in kinds else st.one_of(crowds(**kinds), crowds(**kinds), cases(**kinds))
    )
    partitions = len(case[0][1])
    found = draw(classes() if draw(st.booleans()) or not partitions else tiers(partitions))
    return case, found


def check_same(run, **options) -> None:
    case, (written, known) = run
    places = {row[0]: row[4].partition for row in case[1]}

    def placed(rule):
        def asked(*jobs):
            for job in jobs:
                job.place = places[job.job_id]
            return rule(*jobs)

        return asked

    rules = {name: placed(rule) for name, rule in known.items()}
    assert_same(case, preempting=(written, rules), **options)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(runs(), TIMES, st.sampled_from(CHOICES), st.sampled_from((0, 0, 1)))
@examples(120)
def test_who_makes_way(scheduler, run, times, node_choice, delay):
    check_same(run, scheduler=scheduler, node_choice=node_choice, start_delay=delay, **times)


OF_GRACES = st.tuples(st.sampled_from((0, 0, 1, 5, 30)), st.sampled_from((0, 3, 40)), st.sampled_from((0, 0.25, 2)))


def graces_of(settings, of_graces):
    interval, wait, leave = of_graces
    ticks = first_ticks([*(settings[f"{kind}_interval"] for kind in ("main", "full", "backfill")), interval])
    return {"first_ticks": ticks, "grace_interval": interval, "preempt_wait": wait, "preempt_leave": leave}


@given(runs(), TIMES, SETTINGS, OF_GRACES, st.sampled_from(CHOICES))
@examples(120)
def test_passes_of_slurm(run, times, settings, of_graces, node_choice):
    times = times | settings | graces_of(settings, of_graces)
    check_same(run, scheduler="slurm", node_choice=node_choice, **times)


@given(runs(reservations=True, failures=True), TIMES, SETTINGS, OF_GRACES, st.sampled_from((1, 2)))
@examples(80)
def test_passes_of_slurm_with_jobs_of_advance_reservations(run, times, settings, of_graces, share):
    times = times | settings | graces_of(settings, of_graces)
    check_same(run, asks=asking(run[0], share), scheduler="slurm", **times)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(runs(failures=True), TIMES, st.sampled_from(("none", "periodic")), st.sampled_from(("fcfs", "sjf")))
@examples(60)
def test_with_failures_checkpoints_and_orders(scheduler, run, times, checkpoint, order):
    check_same(run, scheduler=scheduler, checkpoint=checkpoint, checkpoint_interval=5, queue_order=order, **times)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(runs(reservations=True), TIMES, st.sampled_from((0, 1, 2)))
@examples(40)
def test_with_advance_reservations_and_limits(scheduler, run, times, most):
    check_same(run, scheduler=scheduler, user_max_jobs=most, **times)


def starts(
    rows, scheduler="fcfs", nodes=4, graces=None, failures=(), windows=(), **options
) -> list[tuple[float, float]]:
    """When the last attempts of jobs (submission, run time, nodes, QOS) start and end, on nodes of one core.

    QOS x preempts y and z, and y preempts z; engine and reference agree.
    """
    # the number of a job of the reference says which QOS it has
    numbers = {name: iter([k for k in range(1, 100) if QOS[k % 5 % 3] == name]) for name in QOS}
    jobs = [
        (next(numbers[qos]), submit, run, run, Need(size, (1, 0, 0), 1, False, 0)) for submit, run, size, qos in rows
    ]
    case = ((((1, 0, 0, nodes),), ()), jobs, list(failures), windows)
    below = {"x": ("y", "z"), "y": ("z",), "z": ()}
    written = ("qos", (), tuple((name, place, below[name], "") for place, name in enumerate("zyx")), graces or {})
    known = {
        "preempts": lambda job, other: other.qos in below[job.qos],
        "preempt_order": lambda job: "zyx".index(job.qos),
        "preempt_class": lambda job: "zyx".index(job.qos),
        "rank": lambda job: "zyx".index(job.qos),
        "grace": lambda job: (graces or {}).get(job.qos, 0),
    }
    options = {"preemption": "requeue", "scheduler": scheduler} | options
    check_same((case, (written, known)), **options)
    run = engine(case, preempting=written, estimates="requested", **options)[1]
    return list(zip(run.jobs["start_s"].tolist(), run.jobs["finish_s"].tolist(), strict=True))


def test_the_lowest_class_leaves_first_and_then_the_smallest_job():
    rows = [(0, 100, 2, "y"), (0, 100, 2, "z"), (10, 5, 1, "x")]
    assert starts(rows) == [(0, 100), (15, 115), (10, 15)]
    rows = [(0, 100, 3, "z"), (0, 100, 1, "z"), (10, 5, 1, "x")]
    assert starts(rows) == [(0, 100), (15, 115), (10, 15)]


def test_a_job_that_is_not_needed_stays():
    """One node is wanted by four: the small job is taken away first, then the large one, whose nodes suffice."""
    rows = [(0, 100, 1, "z"), (0, 100, 3, "z"), (10, 5, 3, "x")]
    assert starts(rows) == [(0, 100), (15, 115), (10, 15)]


def test_a_qos_may_have_a_grace_of_its_own():
    """Jobs of z have 3 s, others what the parameter says."""
    rows, graces = [(0, 100, 2, "z"), (0, 100, 2, "y"), (10, 5, 4, "x")], {"z": 3}
    assert starts(rows, graces=graces)[2] == (10, 15)
    assert starts(rows, graces=graces, site_grace=True)[2] == (13, 18)
    assert starts(rows, graces=graces, site_grace=True, preempt_grace=7)[2] == (17, 22)
    assert starts(rows, site_grace=True, preempt_grace=7)[2] == (17, 22)


def test_grace_and_time_that_is_safe():
    rows = [(0, 100, 4, "z"), (10, 5, 4, "x")]
    assert starts(rows, preempt_grace=7)[1] == (17, 22)
    assert starts(rows, preempt_exempt=30)[1] == (30, 35)
    assert starts([(0, 12, 4, "z"), (10, 5, 4, "x")], preempt_grace=7) == [(0, 12), (12, 17)]


AT_ONCE = dict.fromkeys(
    ("main_interval", "full_interval", "backfill_interval", "backfill_resolution", "preempt_leave"), 0
)


def test_jobs_of_an_advance_reservation_make_no_others_leave():
    """All ask for the one that begins at 5; nothing is planned as if the first had left."""
    rows = [(0, 100, 3, "z"), (20, 5, 4, "x"), (21, 50, 1, "z")]
    times = AT_ONCE | {"scheduler": "slurm", "windows": ((5, 300, (4,)),), "asks": lambda job: 0}
    assert starts(rows, **times) == [(5, 105), (105, 110), (21, 71)]


def test_a_job_whose_grace_is_over_leaves_when_its_place_is_needed_or_at_a_tick():
    """Under slurm; the job with 3 s of grace is told at 10, and the nodes of another one suffice from 11 on."""
    rows = [(0, 100, 2, "z"), (0, 11, 2, "y"), (10, 50, 2, "x")]
    times = AT_ONCE | {"scheduler": "slurm", "preempt_grace": 3, "preempt_wait": 0, "grace_interval": 0}
    assert starts(rows, **times) == [(13, 113), (0, 11), (11, 61)]
    ticks = first_ticks([0, 0, 0, 60])
    assert 13 < ticks[3] < 60
    later = times | {"grace_interval": 60, "first_ticks": ticks}
    assert starts(rows, **later) == [(ticks[3], ticks[3] + 100), (0, 11), (11, 61)]
    assert starts([*rows, (20, 5, 2, "x")], **later)[3] == (20, 25)
    assert starts([(0, 100, 2, "z"), (0, 200, 2, "y"), (10, 50, 2, "x")], **later)[2] == (13, 63)


def test_a_job_that_has_had_others_leave_has_no_more_leave_for_a_while():
    """Not even those whose grace is over."""
    never = {"grace_interval": 10**6, "first_ticks": first_ticks([0, 0, 0, 10**6])}
    times = AT_ONCE | {"scheduler": "slurm", "preempt_grace": 3} | never
    rows = [(0, 100, 4, "z"), (10, 5, 4, "x")]
    assert starts(rows, preempt_wait=0, **times)[1] == (13, 18)
    assert starts(rows, preempt_wait=40, **times)[1] == (50, 55)


def test_later_starts_are_sought_as_if_those_had_gone_that_make_way():
    """The job of five nodes is planned for 50, not for 100, so the last one cannot start on the idle node."""
    rows = [(0, 100, 2, "z"), (0, 50, 2, "x"), (10, 5, 5, "x"), (10, 60, 1, "x")]
    assert starts(rows, nodes=5, scheduler="slurm", **AT_ONCE) == [(55, 155), (0, 50), (50, 55), (55, 115)]


def test_a_job_that_leaves_is_expected_to_do_so_soon():
    """The job of y cannot start beside the one of x, which gets all nodes at 30."""
    rows = [(0, 100, 2, "z"), (10, 5, 3, "x"), (11, 40, 1, "y")]
    times = AT_ONCE | {"preempt_leave": 20}
    assert starts(rows, nodes=3, scheduler="slurm", preempt_wait=0, **times)[1:] == [(30, 35), (35, 75)]


def test_it_waits_so_only_once():
    """The job of y has the first job told at 10; one of x gets its nodes at 30. At 50 it has the second one told, and
    has it leave at 53."""
    rows = [(0, 30, 2, "z"), (0, 1000, 2, "z"), (10, 5, 2, "y"), (12, 170, 2, "x")]
    never = {"grace_interval": 10**6, "first_ticks": first_ticks([0, 0, 0, 10**6])}
    times = AT_ONCE | {"scheduler": "slurm", "preempt_grace": 3, "preempt_wait": 40} | never
    assert starts(rows, **times) == [(0, 30), (58, 1058), (53, 58), (30, 200)]


def test_a_last_checkpoint_is_completed():
    """By jobs that another one would have leave, too, and although a tick comes meanwhile; and nobody else leaves."""
    saves = {"preemption": "checkpoint", "checkpoint_cost": 3}
    rows = [*[(0, 100, 1, "z")] * 4, (10, 5, 1, "y"), (11, 5, 4, "x")]
    assert starts(rows, **saves) == [(19, 109), (19, 108), (19, 108), (24, 113), (19, 24), (14, 19)]
    rows = [(0, 100, 2, "z"), (0, 100, 1, "z"), (10, 5, 1, "x"), (11, 1, 1, "z")]
    assert starts(rows, nodes=3, **saves)[:3] == [(0, 100), (18, 108), (13, 18)]
    ticks = {"grace_interval": 2, "first_ticks": first_ticks([0, 0, 0, 2]), "preempt_wait": 0}
    times = AT_ONCE | {"scheduler": "slurm", "preempt_grace": 3} | ticks | saves
    assert starts([(0, 100, 4, "z"), (10, 5, 4, "x")], **times)[1] == (16, 21)


def test_the_nodes_of_a_job_that_waits_for_graces_are_planned_from_now_on():
    rows = [(0, 100, 2, "z"), (10, 5, 4, "x"), (11, 5, 1, "y")]
    times = AT_ONCE | {"preempt_grace": 20}
    assert starts(rows, scheduler="slurm", preempt_wait=0, **times)[1:] == [(30, 35), (35, 40)]
    assert starts(rows, scheduler="backfill", preempt_grace=20)[1:] == [(30, 35), (11, 16)]


def test_what_becomes_of_the_work():
    rows = [(0, 100, 4, "z"), (10, 5, 4, "x")]
    assert starts(rows) == [(15, 115), (10, 15)]
    assert starts(rows, preemption="checkpoint", checkpoint_cost=3) == [(18, 108), (13, 18)]
    assert starts(rows, restart_cost=2) == [(15, 117), (10, 15)]


def test_a_suspended_job_goes_on_when_it_can_have_all_its_cores():
    rows = [(0, 10, 4, "z"), (2, 5, 2, "x")]
    assert starts(rows, preemption="suspend") == [(0, 15), (2, 7)]
    # nobody but who may preempt it gets what is left of its cores
    assert starts([*rows, (3, 1, 2, "z")], preemption="suspend") == [(0, 15), (2, 7), (15, 16)]
    assert starts([*rows, (3, 9, 2, "y")], preemption="suspend") == [(0, 20), (2, 7), (3, 12)]
    # the one that was suspended for it stands still until then, too
    assert starts([(0, 10, 4, "z"), (1, 10, 4, "y"), (2, 5, 4, "x")], preemption="suspend") == [
        (0, 25),
        (1, 16),
        (2, 7),
    ]
    # at once, however short it has run
    assert starts(rows, preemption="suspend", preempt_grace=3, preempt_exempt=9) == [(0, 15), (2, 7)]


def test_a_job_goes_on_below_one_that_is_suspended_itself():
    """On nodes 2 and 3 job 2 runs until job 3 takes all four, and again while job 3 stands still for job 4."""
    rows = [(0, 1, 2, "z"), (0, 10, 2, "z"), (2, 10, 4, "y"), (4, 5, 2, "x")]
    assert starts(rows, preemption="suspend") == [(0, 1), (0, 20), (2, 17), (4, 9)]


@pytest.mark.parametrize(
    ("cores", "rows", "suspended"),
    [  # cores and partition of jobs that come one after another; for how long they stand still for the last, 5 s
        (4, [(2, 0), (1, 0), (2, 1)], [5, 0, 0]),  # the first cores of all, not those that two jobs leave
        (4, [(2, 0), (1, 1), (3, 2)], [5, 0, 0]),  # that of the higher job is not needed
        (4, [(1, 1), (2, 0), (4, 2)], [5, 5, 0]),  # both are
        (4, [(1, 0), (1, 0), (1, 0), (2, 1)], [5, 5, 0, 0]),
        (4, [(1, 0), (2, 1)], [0, 0]),  # there are idle ones
        (130, [(100, 0), (20, 0), (90, 1)], [5, 0, 0]),
        (130, [(100, 0), (20, 0), (101, 1)], [5, 5, 0]),
        (130, [(63, 0), (60, 0), (63, 1)], [5, 0, 0]),
    ],
)
def test_who_has_the_cores_that_a_job_takes_is_suspended(cores, rows, suspended):
    jobs = [
        (k + 1, k, 20 if k + 1 < len(rows) else 5, 20, Need(1, (count, 0, 0), 0, False, place))
        for k, (count, place) in enumerate(rows)
    ]
    run = suspends(((((cores, 0, 0, 1),), (((1,), False),) * 3), jobs, [], ()))
    assert run.jobs["suspended_s"].tolist() == suspended
    assert run.jobs["start_s"].tolist() == list(range(len(rows)))


def test_the_failure_of_a_node_kills_the_job_that_is_suspended_there():
    rows = [(0, 10, 4, "z"), (2, 5, 2, "x")]
    assert starts(rows, preemption="suspend", failures=[(4, 3, 1)]) == [(7, 17), (2, 7)]
    saves = {"checkpoint": "periodic", "checkpoint_interval": 1, "checkpoint_cost": 0}
    assert starts(rows, preemption="suspend", failures=[(4, 3, 1)], **saves) == [(7, 15), (2, 7)]


def test_a_checkpoint_goes_on_after_a_suspension():
    """It is begun at 3, and is made 1 s before the job stands still and 1 s behind that."""
    saves = {"checkpoint": "periodic", "checkpoint_interval": 3, "checkpoint_cost": 2}
    assert starts([(0, 10, 4, "z"), (4, 5, 2, "x")], preemption="suspend", **saves) == [(0, 19), (4, 9)]


def test_a_job_is_expected_to_end_later_by_how_long_it_was_suspended():
    """Job 3 is reserved for 15 s, when job 1 ends, so job 4 starts beside it."""
    rows = [(0, 10, 3, "z"), (2, 5, 2, "x"), (8, 5, 4, "z"), (8, 6, 1, "z")]
    assert starts(rows, "backfill", preemption="suspend") == [(0, 15), (2, 7), (15, 20), (8, 14)]


def test_plans_of_slurm_do_not_know_of_suspensions():
    """Job 1 stands still on node 0 from 2 to 52, and job 3 is planned for both nodes at 100. So job 4, which would end
    at 106, starts after it, and job 5, which ends at 96, before."""
    rows = [(0, 100, 1, 0), (2, 50, 1, 1), (5, 10, 2, 0), (6, 100, 1, 0), (6, 90, 1, 0)]
    jobs = [
        (number, submit, run_s, run_s, Need(nodes, (1, 0, 0), 1, False, place))
        for number, (submit, run_s, nodes, place) in enumerate(rows, start=1)
    ]
    at_once = dict.fromkeys(("main_interval", "full_interval", "backfill_interval", "backfill_resolution"), 0)
    case = ((((1, 0, 0, 2),), (((2,), False), ((1,), False))), jobs, [], ())
    run = suspends(case, scheduler="slurm", node_choice="first-fit", **at_once)
    assert run.jobs["start_s"].tolist() == [0, 2, 150, 160, 6]


def test_memory_and_gpus_stay_with_a_suspended_job():
    """Of a node with 4 cores, 2 GPUs and 100 MiB, job 1 has all cores, a GPU and 60 MiB."""
    kept = Need(1, (4, 1, 60), 0, False, 0)
    for each, start in (((4, 1, 40), 2), ((4, 2, 0), 20), ((4, 0, 41), 20)):
        jobs = [(1, 0, 20, 20, kept), (2, 2, 5, 5, Need(1, each, 0, False, 1))]
        case = ((((4, 2, 100, 1),), (((1,), False), ((1,), False))), jobs, [], ())
        run = suspends(case)
        assert run.jobs["start_s"].tolist() == [0, start]
        assert run.jobs["suspended_s"].tolist() == [5 if start == 2 else 0, 0]
        assert run.by("partition")["share"].tolist() == pytest.approx([1, 0])
        assert run.metrics["mean_suspended_s"] == (2.5 if start == 2 else 0)


def test_who_has_nodes_for_itself_keeps_the_memory_that_it_asks_for():
    for whole in ((True, False), (False, True), (True, True)):
        jobs = [(k + 1, 2 * k, 20, 20, Need(1, (4, 0, 50), 0, whole[k], k)) for k in range(2)]
        run = suspends(((((4, 0, 100, 1),), (((1,), whole[0]), ((1,), whole[1]))), jobs, [], ()))
        assert run.jobs["suspended_s"].tolist() == [20, 0]


def suspends(case, **options):
    """A run in which jobs of higher partitions preempt those of lower ones; engine and reference agree."""
    known = {
        "preempts": lambda job, other: job.place > other.place,
        "preempt_order": lambda job: job.place,
        "preempt_class": lambda job: job.place,
        "rank": lambda job: job.place,
    }
    written = ("partition", tuple((place + 1, "") for place in range(len(case[0][1]))), ())
    options = {"scheduler": "backfill", "preemption": "suspend"} | options
    check_same((case, (written, known)), **options)
    return engine(case, preempting=written, estimates="requested", **options)[1]


@pytest.mark.parametrize(
    ("node_choice", "cores", "nodes", "rows"),
    [  # submission, run time, nodes, cores of each, partition
        (
            "round-robin",
            2,
            3,
            [
                (0, 30, 1, 1, 0),
                (0, 30, 1, 1, 0),
                (1, 30, 2, 1, 0),
                (2, 30, 2, 2, 0),
                (3, 30, 2, 1, 0),
                (3, 5, 2, 2, 1),
                (6, 5, 2, 1, 1),
            ],
        ),
        (
            "best-fit",
            2,
            6,
            [
                (0, 30, 2, 2, 0),
                (0, 30, 1, 1, 0),
                (1, 30, 1, 1, 0),
                (1, 30, 3, 2, 0),
                (1, 30, 1, 2, 0),
                (2, 5, 4, 2, 1),
                (3, 5, 5, 1, 1),
            ],
        ),
        (
            "round-robin",
            3,
            3,
            [
                (0, 30, 2, 1, 0),
                (0, 30, 2, 1, 0),
                (1, 30, 1, 2, 0),
                (1, 30, 2, 1, 0),
                (1, 30, 2, 2, 0),
                (2, 30, 2, 1, 0),
                (3, 5, 2, 3, 1),
                (4, 5, 2, 2, 1),
            ],
        ),
    ],
)
def test_who_leaves_is_tried_three_times_in_another_order(node_choice, cores, nodes, rows):
    """Cases, found at random, in which other jobs leave without the order between tries, or without an end of them."""
    jobs = [
        (number, submit, run, run, Need(size, (each, 0, 0), 1, False, place))
        for number, (submit, run, size, each, place) in enumerate(rows, start=1)
    ]
    case = ((((cores, 0, 0, nodes),), (((nodes,), False), ((nodes,), False))), jobs, [], ())
    tier = {0: 1, 1: 2}
    known = {
        "preempts": lambda job, other: tier[job.place] > tier[other.place],
        "preempt_order": lambda job: tier[job.place],
        "rank": lambda job: tier[job.place],
    }
    written = ("partition", ((1, ""), (2, "")), ())
    check_same((case, (written, known)), scheduler="fcfs", node_choice=node_choice, preemption="requeue")


@pytest.mark.parametrize(("backfills_every", "run_s", "preemptions"), [(10000, 5, 0), (1, 5, 1), (1, 200, 0)])
def test_nobody_leaves_a_node_that_a_job_before_waits_for(backfills_every, run_s, preemptions):
    """QOS x preempts y, and y preempts z. Job 5 waits for node 0, where job 2 stays; job 6 may not have it either,
    but in a backfilling pass, if it ends before job 2 would have."""
    nodes = ((1,), False), ((2,), False)
    one = [Need(1, (1, 0, 0), 1, False, place) for place in (0, 1)]
    jobs = [(2, 0, 100, 100, one[0]), (3, 2, 300, 300, one[1]), (5, 10, 5, 5, one[0])]
    jobs.append((6, 11, run_s, run_s, one[1]))
    below = {"x": ("y",), "y": ("z",), "z": ()}
    known = {
        "preempts": lambda job, other: other.qos in below[job.qos],
        "preempt_order": lambda job: "zyx".index(job.qos),
        "preempt_class": lambda job: "zyx".index(job.qos),
        "rank": lambda job: "zyx".index(job.qos),
    }
    written = ("qos", (), tuple((name, place, below[name], "") for place, name in enumerate("zyx")))
    case = ((((1, 0, 0, 2),), nodes), jobs, [], ())
    kinds = ("main_interval", "full_interval", "backfill_interval")
    intervals = (1, 1, backfills_every)
    settings = dict(zip(kinds, intervals, strict=True)) | {"preemption": "requeue"}
    check_same((case, (written, known)), scheduler="slurm", first_ticks=first_ticks(list(intervals)), **settings)
    run = engine(case, preempting=written, scheduler="slurm", estimates="requested", **settings)[1]
    assert run.metrics["preemptions"] == preemptions


def test_nobody_leaves_for_a_job_that_would_not_fit_then_either():
    rows = [(0, 100, 2, "x"), (0, 100, 2, "z"), (10, 5, 3, "y")]
    assert starts(rows) == [(0, 100), (0, 100), (100, 105)]


def test_many_small_jobs_with_checkpoints_share_nodes():
    """Two timers of each of 150 running jobs on two nodes."""
    rows = [(k + 1, 0, 100, 100, Need(1, (1, 0, 0), 0, False, 0)) for k in range(150)]
    case = ((((100, 0, 0, 2),), ()), rows, [], ())
    options = {"checkpoint": "periodic", "checkpoint_interval": 10.0, "checkpoint_cost": 1.0}
    assert engine(case, estimates="requested", **options)[1].metrics["checkpoints"] == 150 * 9


def test_sentences():
    jobs = [(1, 0, 5, 5, Need(1, (1, 0, 0), 1, False, 0))]
    case = ((((1, 0, 0, 2),), ()), jobs, [], ())
    with pytest.raises(
        InputError, match=r"preemption: 'requeue' is not for scheduler = 'conservative': a reservation .*\(valid: fcfs"
    ):
        engine(case, preemption="requeue", scheduler="conservative")
    with pytest.raises(InputError, match=r"preemption: 'requeue' is not for a flat machine .valid there: none"):
        simulate(workload_of([(1, 0, 5, 5, 1)]), machine="flat:4", preemption="requeue")
    with pytest.raises(InputError, match=r"preemption: 'suspend' is not for recovery = 'mix', by which jobs wait"):
        engine(case, preemption="suspend", recovery="mix")
    with pytest.raises(InputError, match=r"preemption: .* does not say which jobs .* \(valid: a file with preempt_by"):
        engine(case, preemption="requeue")
    round_about = ("qos", (), (("x", 0, ("y",), ""), ("y", 0, ("z",), ""), ("z", 0, ("x",), "")))
    with pytest.raises(InputError, match="QOS x preempts itself, or others that preempt it"):
        engine(case, preempting=round_about, preemption="requeue")


@pytest.mark.parametrize("letter", OPTIONS)
def test_no_recovery_by_which_jobs_wait_for_nodes_is_with_suspension(letter):
    """Their nodes would be given twice."""
    recovery = f"all-{letter.lower()}"
    path = str(Path(__file__).parent / "fixed/site.toml")
    config = resolve({"machine": path, "preemption": "suspend", "recovery": recovery, "failures": "weibull"})
    refused = pytest.raises(InputError, match=f"'suspend' is not for recovery = '{recovery}', by which jobs wait")
    with refused if letter == "C" else nullcontext():
        check_combination(config, parse_machine(path))
