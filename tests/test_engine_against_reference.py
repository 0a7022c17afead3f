"""The compiled engine against the reference: random small runs, compared event by event and metric by metric."""

from __future__ import annotations

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import engine_lacks, engine_run, outcome_of, reference_run, workload_of
from tests.invariants import check_trace
from tests.reference.machines import machine as machine_of
from tests.strategies import SCHEDULERS, examples, flats, machines, runs, tori

EXAMPLES = examples(60)
PER_JOB = ("start", "first_start", "finish", "size", "wait", "response", "slowdown", "bounded_slowdown", "restarts")
PER_JOB += ("work_lost", "checkpoint_overhead", "checkpoints", "migrations")


def in_order(events) -> list[tuple]:
    """Rows as floats; inside an instant their order means nothing."""
    return sorted(
        (float(time), kind, -1 if kind in ("fail", "repair") else job, nodes_of(kind, nodes))
        for time, kind, job, nodes in events
    )


def nodes_of(kind: str, nodes: tuple[int, ...]) -> tuple[int, ...]:
    return nodes if kind in ("schedule", "start", "migrate", "fail", "repair") else ()


def assert_same(case, **options) -> None:
    """Run both and compare everything."""
    machine, jobs, failures = case
    if engine_lacks(machine, options):
        pytest.skip("the engine has no such parameter yet")
    expected = reference_run(jobs, machine, failures, **options)
    found = engine_run(jobs, machine, failures, **options)
    assert in_order(found.events) == in_order(expected.events)
    assert found.status == expected.status
    for job_id, row in expected.jobs.items():
        for name in PER_JOB if row["finish"] is not None else ("finish", "restarts"):
            assert close(found.jobs[job_id][name], row[name]), (job_id, name, found.jobs[job_id][name], row[name])
    for name, value in expected.metrics.items():
        assert close(found.metrics[name], value), (name, found.metrics[name], value)
    check_trace(found.events, jobs, machine, whole=expected.status == "done")


def close(found, expected) -> bool:
    if expected is None or found is None:
        return found is expected
    if expected != expected:
        return found != found
    return isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)  # pytest.approx takes ten times as long


@pytest.mark.parametrize("estimates", ["actual", "requested"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.sampled(3)
def test_scheduling(scheduler, estimates):
    @EXAMPLES
    @given(runs(machines), st.sampled_from((0, 1, 3)), st.sampled_from((0, 0, 1)))
    def check(case, growth, delay):
        assert_same(case, scheduler=scheduler, estimates=estimates, growth_limit=growth, start_delay=delay)

    check()


@pytest.mark.parametrize("growth", [0, 1])
def test_backfilled_jobs_grow_by_the_limit_at_most(growth):
    """Job 4 could start at 1 on four nodes, but not on the three that it wants: these would delay job 3."""
    times = [(0, 20, 10), (1, 5, 3), (1, 5, 6), (1, 20, 3), (1, 20, 3), (3, 20, 3), (3, 5, 1)]
    jobs = [(number, submit, run, None, size) for number, (submit, run, size) in enumerate(times, start=1)]
    assert_same(("torus:1x4x5", jobs, []), scheduler="backfill", growth_limit=growth)
    events = engine_run(jobs, "torus:1x4x5", scheduler="backfill", growth_limit=growth).events
    starts = {job: (time, len(nodes)) for time, kind, job, nodes in events if kind == "start"}
    assert starts[4] == ((8, 4) if growth == 0 else (1, 4))


def test_a_backfilled_job_sees_what_the_one_before_it_took_from_the_reservation():
    """Jobs 4 and 5 both run past the reservation of job 3, and start in one pass: the room that 4 took is not 5's."""
    times = [(0, 5, 5), (0, 40, 7), (1, 20, 8), (1, 20, 2), (1, 40, 4)]
    jobs = [(number, submit, run, None, size) for number, (submit, run, size) in enumerate(times, start=1)]
    assert_same(("torus:2x3x4", jobs, []), scheduler="backfill", growth_limit=0)


@pytest.mark.parametrize("machine", ["flat:10", "torus:1x1x10"])
def test_jobs_that_were_refused_are_looked_at_again_when_others_overrun(machine):
    """Job 3 waits for the nodes of 1 until 1 and 2 are both overdue at 30: then those of 2 are spare for job 4."""
    jobs = [(1, 0, 100, 10, 4), (2, 0, 100, 20, 3), (3, 1, 5, 5, 7), (4, 2, 50, 50, 2), (5, 30, 5, 5, 9)]
    assert_same((machine, jobs, []), scheduler="backfill", estimates="requested")
    events = engine_run(jobs, machine, scheduler="backfill", estimates="requested").events
    assert (30, "start", 4) in [event[:3] for event in events]


def test_what_an_overdue_job_held_is_given_back_once():
    """Jobs 1 and 2 are overdue at 10; 1 ends then, and the pass at the submission of 3 knows it already."""
    jobs = [(1, 0, 10, 5, 5), (2, 0, 20, 5, 2), (3, 10, 3, 3, 4), (4, 10, 3, 3, 7)]
    assert_same(("flat:7", jobs, []), scheduler="conservative", event_order="submits-first", estimates="requested")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.sampled(2)
def test_failures(scheduler):
    @EXAMPLES
    @given(runs(machines, failures=True), st.sampled_from(("actual", "requested")), st.sampled_from((0, 0, 1, 5)))
    def check(case, estimates, delay):
        assert_same(case, scheduler=scheduler, estimates=estimates, start_delay=delay)

    check()


@pytest.mark.parametrize("event_order", ["submits-first", "ends-first"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.sampled(2)
def test_event_orders(scheduler, event_order):
    @EXAMPLES
    @given(runs(machines))
    def check(case):
        assert_same(case, scheduler=scheduler, estimates="requested", event_order=event_order)

    check()


@given(
    runs(tori, failures=True),
    st.sampled_from(("migration", "backfill+migration")),
    st.sampled_from(("balancing", "tie-breaking")),
    st.sampled_from((0.3, 0.9, 1.0)),
)
@examples(25)
def test_migration_asks_a_predictor_at_every_pass(case, scheduler, placement, a):
    """Its answer may change while the machine does not."""
    always = {"migration_free_frac": 0.0, "migration_mfp_frac": 1.0}
    assert_same(case, scheduler=scheduler, placement=placement, a=a, **always)


def test_only_a_job_that_would_grow_keeps_its_place():
    """Of the jobs that are placed anew, smaller ones move again when a larger one behind them must stay."""
    sizes = (7, 5, 1, 5, 5, 2, 6, 7, 1, 3, 2, 2, 3, 5, 1, 3, 1, 3, 1, 5)
    lengths = (20, 20, 10, 50, 5, 10, 50, 10, 5, 5, 100, 5, 10, 100, 20, 20, 100, 10, 10, 20)
    times = (2, 3, 5, 5, 7, 9, 9, 9, 9, 9, 9, *(11,) * 9)
    jobs = [(at + 1, *row[:2], None, row[2]) for at, row in enumerate(zip(times, lengths, sizes, strict=True))]
    always = {"migration_free_frac": 0.0, "migration_mfp_frac": 1.0}
    assert_same(("torus:3x3x2", jobs, []), scheduler="migration", **always)


@pytest.mark.parametrize("scheduler", ["migration", "backfill+migration"])
def test_migration_parameters(scheduler):
    @EXAMPLES
    @given(
        runs(tori, failures=True),
        st.sampled_from((0, 0.1, 0.3)),
        st.sampled_from((0.5, 0.7, 1.0)),
        st.sampled_from((0, 3, 20)),
        st.booleans(),
        st.booleans(),
    )
    def check(case, free, largest, cost, empty, repeats):
        options = {"migration_free_frac": free, "migration_mfp_frac": largest, "migration_cost": cost}
        options |= {"migration_empty_queue": empty, "migration_repeats": repeats}
        assert_same(case, scheduler=scheduler, **options)

    check()


@examples(8)
@given(runs(st.sampled_from(("torus:67x1x2", "torus:1x65x1"))), st.sampled_from(("actual", "requested")))
def test_sides_longer_than_a_word(case, estimates):
    assert_same(case, scheduler="backfill", estimates=estimates)


@EXAMPLES
@given(runs(machines, failures=True), st.sampled_from(list(SCHEDULERS)))
def test_jobs_killed_at_their_estimate(case, scheduler):
    assert_same(case, scheduler=scheduler, estimates="requested", kill_at_estimate=True)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("placement", ["balancing", "tie-breaking"])
@pytest.mark.sampled(2)
def test_prediction(placement, scheduler):
    chances = (0, 0.25, 0.5, 1)

    @EXAMPLES
    @given(runs(tori, failures=True), st.sampled_from(chances), st.sampled_from(("product", "max")))
    def check(case, a, risk):
        options = {"placement": placement, "a": a} | ({"partition_risk": risk} if placement == "balancing" else {})
        assert_same(case, scheduler=scheduler, **options)

    check()


ERRORS = st.one_of(
    st.fixed_dictionaries({"false_positive_rate": st.sampled_from((0.1, 0.4, 1))}),
    st.fixed_dictionaries({"precision": st.sampled_from((0.9, 0.5, 0.1))}),
    st.just({}),
)


def test_balancing_reckons_with_the_size_asked_for():
    """7 x 0.51 is less than the four nodes by which the largest free box would shrink; the 8 held x 0.51 are more."""
    jobs, failures = [(1, 0, 10, None, 11), (2, 0, 20, None, 7)], [(2, 0, 0), (7, 17, 0), (10, 0, 0)]
    assert_same(("torus:2x4x4", jobs, failures), scheduler="fcfs", placement="balancing", a=0.3)
    events = engine_run(jobs, "torus:2x4x4", failures, scheduler="fcfs", placement="balancing", a=0.3).events
    first = next(nodes for _, kind, job, nodes in events if (kind, job) == ("start", 2))
    assert sorted(first) == [0, 1, 2, 3, 16, 17, 18, 19]


@pytest.mark.parametrize("scheduler", ["fcfs", "conservative", "backfill+migration"])
@pytest.mark.parametrize("placement", ["balancing", "tie-breaking"])
@pytest.mark.sampled(2)
def test_predictors_that_err(placement, scheduler):
    """False positives at a given rate, finite recall, and finite precision."""

    @EXAMPLES
    @given(runs(tori, failures=True), st.sampled_from((0, 0.5, 1)), st.sampled_from((0, 0.5, 1)), ERRORS)
    def check(case, a, recall, errors):
        options = {"placement": placement, "a": a} | ({"recall": recall} if placement == "balancing" else {})
        assert_same(case, scheduler=scheduler, **options, **errors)

    check()


@EXAMPLES
@given(runs(tori, failures=True, overruns=False))
def test_tie_breaking_that_knows_all_takes_no_box_that_fails_in_vain(case):
    """Where it takes a box that fails, all boxes that leave as large a free partition fail."""
    machine, jobs, failures = case
    found = engine_run(jobs, machine, failures, scheduler="fcfs", placement="tie-breaking", a=1)
    torus, rows = machine_of(machine), {row[0]: row for row in jobs}
    held, down = {}, set()
    for time, kind, job, nodes in found.events:
        if kind == "start":
            occupied = set().union(*held.values()) | down
            window = (time, time + rows[job][2])
            boxes = torus.free_boxes(len(nodes), occupied)
            left = {box: torus.mfp(occupied | box) for box in boxes}
            best = [box for box in boxes if left[box] == left[frozenset(nodes)]]
            assert left[frozenset(nodes)] == max(left.values())
            assert not will_fail(nodes, failures, *window) or all(will_fail(box, failures, *window) for box in best)
            held[job] = nodes
        elif kind in ("finish", "kill"):
            del held[job]
        elif kind == "fail":
            down |= set(nodes)
        elif kind == "repair":
            down -= set(nodes)


def will_fail(nodes, failures, now, until):
    return any(node in nodes and now < time < until for time, node, _ in failures)


CHECKPOINTS = st.one_of(
    st.fixed_dictionaries({"checkpoint": st.just("periodic"), "checkpoint_interval": st.sampled_from((4, 10, 25))}),
    st.fixed_dictionaries(
        {
            "checkpoint": st.just("risk"),
            "checkpoint_interval": st.sampled_from((4, 10)),
            "a": st.sampled_from((0, 0.25, 0.5, 1)),
            "partition_risk": st.sampled_from(("product", "max")),
        },
        optional={
            "recall": st.sampled_from((0, 0.5, 1)),
            "false_positive_rate": st.sampled_from((0.1, 1)),
            "placement": st.sampled_from(("balancing", "tie-breaking")),
        },
    ),
    st.fixed_dictionaries(
        {
            "checkpoint": st.just("risk"),
            "checkpoint_interval": st.sampled_from((4, 10)),
            "a": st.just(1),
            "recall": st.sampled_from((0.5, 1)),
            "precision": st.sampled_from((0.5, 0.1)),
        }
    ),
    st.just({"checkpoint": "exact"}),
    st.fixed_dictionaries(
        {
            "checkpoint": st.just("bucket"),
            "bucket": st.sampled_from((8, 20, 50)),
            "bucket_jobs": st.sampled_from(("all", "long", "biggest")),
        },
        optional={
            "bucket_repeat": st.sampled_from((3, 6)),
            "biggest": st.sampled_from((1, 2)),
            "long_running": st.sampled_from((0, 2, 10)),
        },
    ),
)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.sampled(2)
def test_checkpoints(scheduler):
    @EXAMPLES
    @given(
        runs(machines, failures=True),
        CHECKPOINTS,
        st.sampled_from((0, 1, 2, 5)),
        st.sampled_from((0, 3)),
        st.sampled_from(("actual", "requested")),
        st.sampled_from(({}, {}, {"start_delay": 1}, {"migration_cost": 3})),
    )
    def check(case, checkpoints, cost, restart_cost, estimates, others):
        costs = {"checkpoint_cost": cost, "restart_cost": restart_cost}
        assert_same(case, scheduler=scheduler, estimates=estimates, **checkpoints, **costs, **others)

    check()


def test_of_equally_big_jobs_the_first_is_saved():
    jobs, failures = [(1, 0, 50, None, 1), (2, 0, 50, None, 1)], [(15, 0, 0)]
    options = {"checkpoint": "bucket", "bucket": 10, "bucket_jobs": "biggest", "biggest": 1, "checkpoint_cost": 1}
    assert_same(("flat:2", jobs, failures), scheduler="fcfs", **options)
    events = engine_run(jobs, "flat:2", failures, scheduler="fcfs", **options).events
    assert {job for _, kind, job, _ in events if kind == "checkpoint"} == {1}


def test_a_job_that_completes_as_its_node_fails_saves_nothing():
    jobs, failures, options = [(1, 0, 20, None, 1)], [(20, 0, 0)], {"checkpoint": "exact", "checkpoint_cost": 2}
    assert_same(("flat:1", jobs, failures), scheduler="fcfs", **options)
    found = engine_run(jobs, "flat:1", failures, scheduler="fcfs", **options)
    assert (found.jobs[1]["finish"], found.jobs[1]["checkpoints"]) == (20, 0)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@pytest.mark.sampled(1)
def test_node_choice(scheduler):
    @EXAMPLES
    @given(
        runs(flats, failures=True),
        st.sampled_from((0, 1, 2)),
        st.sampled_from((0, 4)),
        st.one_of(st.just({}), CHECKPOINTS),
        st.sampled_from(({}, {"lff_moves": False}, {"start_delay": 1}, {"restart_cost": 2})),
    )
    def check(case, threshold, cost, checkpoints, others):
        options = {"node_choice": "lff", "move_threshold": threshold, "move_cost": cost}
        assert_same(case, scheduler=scheduler, **options, **checkpoints, **others)

    check()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@pytest.mark.parametrize("choice", ["first-fit", "random", "round-robin"])
@pytest.mark.sampled(2)
def test_other_node_choices(scheduler, choice):
    @EXAMPLES
    @given(runs(flats, failures=True), st.sampled_from(("actual", "requested")))
    def check(case, estimates):
        assert_same(case, scheduler=scheduler, estimates=estimates, node_choice=choice)

    check()


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
def test_runs_that_end_at_a_horizon(scheduler):
    """Makespan and all shares are of the time up to the horizon, whenever the last event before it was."""

    @EXAMPLES
    @given(runs(machines, failures=True), st.sampled_from((1, 7.5, 20, 41, 1000)))
    def check(case, horizon):
        assert_same(case, scheduler=scheduler, estimates="requested", horizon=horizon)

    check()


@EXAMPLES
@given(runs(machines), st.sampled_from((0.5, 1.5, 2.0)), st.sampled_from((0.5, 2.0)))
def test_scales_of_load_and_arrivals(case, load, arrivals):
    """Run times and estimates are multiplied by the one, gaps between submissions divided by the other."""
    machine, jobs, _ = case
    first = jobs[0][1]
    scaled = [
        (row[0], first + (row[1] - first) / arrivals, row[2] * load, None if row[3] is None else row[3] * load, row[4])
        for row in jobs
    ]
    expected = reference_run(scaled, machine, scheduler="backfill", estimates="requested")
    found = simulated(
        jobs, machine, scheduler="backfill", estimates="requested", load_scale=load, arrival_scale=arrivals
    )
    assert in_order(found.events) == in_order(expected.events)


@EXAMPLES
@given(runs(machines), st.sampled_from((1.0, 2.0, 5.0)), st.integers(0, 3))
def test_estimates_of_the_f_model(case, factor, seed):
    """Estimates lie in [actual, f x actual], and the schedule is the one with these estimates as requested times."""
    machine, jobs, _ = case
    drawn = simulated(jobs, machine, scheduler="backfill", estimates="f-model", estimate_factor=factor, seed=seed)
    estimates = [row["estimate"] for row in drawn.jobs.values()]
    assert all(row[2] <= estimate <= factor * row[2] for row, estimate in zip(jobs, estimates, strict=True))
    given_estimates = [(*row[:3], estimate, row[4]) for row, estimate in zip(jobs, estimates, strict=True)]
    found = simulated(given_estimates, machine, scheduler="backfill", estimates="requested")
    assert found.events == drawn.events


def simulated(jobs, machine, **parameters):
    """Run the engine with its own parameter names."""
    from faultsweep.simcore.simulate import simulate

    return outcome_of(simulate(workload_of(jobs), events=True, machine=machine, **parameters))
