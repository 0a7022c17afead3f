"""Recovery options, menus of partitions and the order by utility: the engine against the reference, event by event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import engine_run
from tests.strategies import QUEUE_ORDERS, examples, flats, machines, menus, runs, tori
from tests.test_engine_against_reference import CHECKPOINTS, assert_same, in_order

EXAMPLES = examples(40)
DELAYS = st.sampled_from((0, 1, 5, 40))
ESTIMATES = st.sampled_from(("actual", "requested"))
OTHERS = st.sampled_from(({}, {}, {"start_delay": 1}, {"restart_cost": 2}, {"requeue_hold": 3}))


@st.composite
def recoveries(draw, machines, options="ABCDE"):
    """A run with failures, and an option for each of its jobs."""
    machine, jobs, failures = draw(runs(machines, failures=True))
    return machine, [(*row, draw(st.sampled_from(options))) for row in jobs], failures


def assert_recovers_same(case, delay=0, **options):
    assert_same(case, recovery=True, manual_delay=lambda job, restarts: delay, **options)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative", "migration", "backfill+migration"])
@pytest.mark.parametrize("hold", [True, False])
def test_options(scheduler, hold):
    @EXAMPLES
    @given(recoveries(machines), DELAYS, ESTIMATES, OTHERS)
    def check(case, delay, estimates, others):
        assert_recovers_same(case, delay, scheduler=scheduler, hold=hold, estimates=estimates, **others)

    check()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@EXAMPLES
@given(st.data(), st.sampled_from((1, 3, 40)), st.sampled_from(("fcfs", "sjf")))
def test_killed_jobs_are_held(scheduler, data, hold, order):
    kinds = machines if scheduler == "conservative" else st.one_of(machines, menus)
    case = data.draw(runs(kinds, failures=True))
    assert_same(case, scheduler=scheduler, requeue_hold=hold, queue_order=order)


@pytest.mark.parametrize("option", "ABCDE")
def test_one_option_for_all(option):
    @EXAMPLES
    @given(recoveries(st.one_of(machines, menus), options=option), DELAYS, ESTIMATES)
    def check(case, delay, estimates):
        assert_recovers_same(case, delay, scheduler="backfill", estimates=estimates)

    check()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
def test_menus(scheduler):
    @EXAMPLES
    @given(runs(menus, failures=True), ESTIMATES, st.sampled_from((0, 0, 1)), st.sampled_from(("fcfs", "wfp")))
    def check(case, estimates, delay, order):
        assert_same(case, scheduler=scheduler, estimates=estimates, start_delay=delay, queue_order=order)

    check()


@pytest.mark.parametrize("hold", [True, False])
def test_options_on_menus(hold):
    @EXAMPLES
    @given(
        recoveries(menus), DELAYS, ESTIMATES, st.sampled_from(("fcfs", "wfp")), st.sampled_from(("fcfs", "backfill"))
    )
    def check(case, delay, estimates, order, scheduler):
        options = {"scheduler": scheduler, "hold": hold, "queue_order": order}
        assert_recovers_same(case, delay, estimates=estimates, **options)

    check()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "backfill+migration"])
def test_order_by_utility(scheduler):
    @EXAMPLES
    @given(recoveries(machines), DELAYS, ESTIMATES, st.booleans())
    def check(case, delay, estimates, recovers):
        options = {"scheduler": scheduler, "estimates": estimates, "queue_order": "wfp"}
        if recovers:
            assert_recovers_same(case, delay, **options)
        else:
            machine, jobs, failures = case
            assert_same((machine, [row[:5] for row in jobs], failures), **options)

    check()


@EXAMPLES
@given(runs(machines), ESTIMATES, st.sampled_from([name for name in QUEUE_ORDERS if name not in ("fcfs", "random")]))
def test_reservations_under_an_order_that_changes(case, estimates, order):
    assert_same(case, scheduler="conservative", estimates=estimates, queue_order=order)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", [name for name in QUEUE_ORDERS if name not in ("fcfs", "wfp")])
def test_order_by_priority(order):
    @examples(25)
    @given(
        recoveries(st.one_of(machines, menus)), DELAYS, ESTIMATES, st.booleans(), st.sampled_from(("fcfs", "backfill"))
    )
    def check(case, delay, estimates, recovers, scheduler):
        options = {"scheduler": scheduler, "estimates": estimates, "queue_order": order}
        if recovers:
            assert_recovers_same(case, delay, **options)
        else:
            machine, jobs, failures = case
            assert_same((machine, [row[:5] for row in jobs], failures), **options)

    check()


@pytest.mark.parametrize(
    ("order", "starts"),
    [
        ("fcfs", [1, 2, 3, 4]),
        ("sjf", [1, 4, 3, 2]),
        ("ljf", [1, 2, 3, 4]),
        ("saf", [1, 3, 4, 2]),
        ("f1", [1, 2, 3, 4]),
        ("f3", [1, 2, 3, 4]),
    ],
)
def test_orders_of_four_jobs(order, starts):
    """Behind the first job wait areas of 4 x 40, 1 x 30 and 4 x 20, submitted at 1, 2 and 3 s; all run alone."""
    jobs = [(1, 0, 50, None, 4), (2, 1, 40, None, 4), (3, 2, 30, None, 1), (4, 3, 20, None, 4)]
    events = engine_run(jobs, "flat:4", scheduler="fcfs", queue_order=order).events
    assert [job for _, kind, job, _ in in_order(events) if kind == "start"] == starts


def test_a_killed_job_comes_before_later_ones_of_equal_utility():
    jobs, failures = [(1, 3, 5, None, 1), (2, 3, 5, None, 1), (3, 3, 1, None, 1)], [(5, 0, 0)]
    options = {"scheduler": "fcfs", "queue_order": "wfp"}
    assert_same(("flat:1", jobs, failures), **options)
    events = engine_run(jobs, "flat:1", failures, **options).events
    assert [job for _, kind, job, _ in in_order(events) if kind == "start"] == [1, 3, 1, 2]


@EXAMPLES
@given(
    recoveries(st.one_of(machines, menus)),
    CHECKPOINTS,
    st.sampled_from((0, 2)),
    DELAYS,
    st.sampled_from(("fcfs", "backfill")),
)
def test_recovered_jobs_go_on_from_their_checkpoints(case, checkpoints, cost, delay, scheduler):
    assert_recovers_same(case, delay, scheduler=scheduler, checkpoint_cost=cost, restart_cost=1, **checkpoints)


def test_a_job_that_has_used_up_its_estimate_is_not_backfilled_before_the_head_job():
    """Job 1 comes back at 13 with 12 s saved of an estimate of 5 s: nobody knows that it ends before job 3 starts."""
    jobs = [(1, 0, 20, 5, 1, "A"), (2, 0, 50, 50, 1, "A"), (3, 1, 10, 10, 2, "A")]
    saves = {"checkpoint": "periodic", "checkpoint_interval": 6, "checkpoint_cost": 0}
    case = ("flat:2", jobs, [(13, 0, 0)])
    assert_recovers_same(case, scheduler="backfill", estimates="requested", **saves)
    options = {"scheduler": "backfill", "estimates": "requested", "recovery": True, **saves}
    events = engine_run(*case[1::-1], case[2], manual_delay=lambda job, restarts: 0, **options).events
    assert [time for time, kind, job, _ in events if (kind, job) == ("start", 1)] == [0, 60]


@pytest.mark.parametrize("hold", [True, False])
def test_a_restart_on_its_own_nodes_does_not_turn_round_robin(hold):
    short = [(number, 0, 1, None, 1, "A") for number in range(2, 11)]
    jobs = [(1, 0, 10, None, 1, "C"), *short, (11, 0, 1, None, 4, "A"), (12, 0, 20, None, 1, "A")]
    assert_recovers_same(("flat:4", jobs, [(5, 0, 0)]), node_choice="round-robin", hold=hold, scheduler="backfill")


@EXAMPLES
@given(recoveries(flats), st.sampled_from(("lff", "random", "round-robin")), DELAYS, st.booleans())
def test_options_with_node_choices(case, choice, delay, hold):
    assert_recovers_same(case, delay, node_choice=choice, hold=hold, scheduler="backfill")


@EXAMPLES
@given(recoveries(tori), st.sampled_from(("balancing", "tie-breaking")), st.sampled_from((0.5, 1)), DELAYS)
def test_options_with_predictors(case, placement, a, delay):
    assert_recovers_same(case, delay, placement=placement, a=a, scheduler="backfill+migration")


@pytest.mark.parametrize("down", [0, 3])
@pytest.mark.parametrize("machine", ["torus:1x1x8", "flat:4", "menu:rows"])
def test_a_node_that_is_kept_fails_twice_at_one_instant(machine, down):
    jobs = [(1, 3, 5, None, 2, "C"), (2, 4, 5, None, 1, "B")]
    failures = [(5, 0, down), (5, 0, down), (6, 1, 2), (6, 1, 2)]
    assert_recovers_same((machine, jobs, failures), scheduler="backfill")
