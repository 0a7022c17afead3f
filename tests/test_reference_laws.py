"""The reference simulator obeys the laws that any implementation must obey."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapter import reference_run
from tests.invariants import check_fcfs_order, check_head_is_not_delayed, check_trace
from tests.reference.simulator import Simulator
from tests.reference.state import Options, exact
from tests.strategies import SCHEDULERS, flats, machines, runs, tori

few = settings(max_examples=30, deadline=None, derandomize=True)


@few
@given(runs(machines, failures=True), st.sampled_from(list(SCHEDULERS)), st.sampled_from(("actual", "requested")))
def test_traces_are_possible(case, scheduler, estimates):
    machine, jobs, failures = case
    outcome = reference_run(jobs, machine, failures, scheduler=scheduler, estimates=estimates)
    check_trace(outcome.events, jobs, machine)
    assert outcome.metrics["lost"] >= 0


@few
@given(runs(machines, overruns=False), st.sampled_from(("fcfs", "migration")))
def test_queue_order_is_kept_without_backfilling(case, scheduler):
    machine, jobs, _ = case
    check_fcfs_order(reference_run(jobs, machine, scheduler=scheduler).events, jobs)


@few
@given(runs(machines))
def test_backfilling_does_not_delay_the_first_job(case):
    machine, jobs, _ = case
    outcome = reference_run(jobs, machine, scheduler="backfill", growth_limit=0)
    check_head_is_not_delayed(outcome.events, jobs, machine)


@few
@given(runs(machines, overruns=False))
def test_conservative_promises_are_kept(case):
    """Without failures and overruns no job starts after the first start that was reserved for it."""
    machine, jobs, _ = case
    simulator = Simulator(jobs, machine, [], Options(scheduler="conservative"))
    reserved = {}
    make = simulator.conservative.earliest

    def record(job):
        reservation = make(job)
        reserved.setdefault(job, reservation.begin)
        return reservation

    simulator.conservative.earliest = record
    simulator.simulate()
    assert all((job.start, 0) <= reserved[job] for job in simulator.jobs)
    assert all(exact(job.start) >= job.submit for job in simulator.jobs)


@few
@given(runs(flats), st.sampled_from(("backfill", "conservative")))
def test_equal_sizes_leave_nothing_to_backfill(case, scheduler):
    machine, jobs, _ = case
    jobs = [(*row[:4], 1) for row in jobs]
    assert reference_run(jobs, machine, scheduler=scheduler).events == reference_run(jobs, machine).events


@few
@given(runs(tori, failures=True), st.sampled_from(("balancing", "tie-breaking")), st.sampled_from(list(SCHEDULERS)))
def test_a_predictor_that_knows_nothing_changes_nothing(case, placement, scheduler):
    machine, jobs, failures = case
    blind = reference_run(jobs, machine, failures, scheduler=scheduler)
    assert reference_run(jobs, machine, failures, scheduler=scheduler, placement=placement, a=0).events == blind.events


@few
@given(runs(flats, failures=True), st.data())
def test_traces_with_checkpoints_and_moves_are_possible(case, data):
    machine, jobs, failures = case
    options = {
        "scheduler": data.draw(st.sampled_from(("fcfs", "backfill", "conservative"))),
        "checkpoint": data.draw(st.sampled_from(("periodic", "exact", "bucket"))),
        "checkpoint_interval": data.draw(st.sampled_from((4, 10))),
        "checkpoint_cost": data.draw(st.sampled_from((0, 1, 5))),
        "bucket": 20,
        "bucket_jobs": data.draw(st.sampled_from(("all", "long", "biggest"))),
        "bucket_repeat": data.draw(st.sampled_from((None, 6))),
        "restart_cost": data.draw(st.sampled_from((0, 3))),
        "node_choice": data.draw(st.sampled_from(("first-fit", "lff"))),
        "move_cost": 2,
    }
    outcome = reference_run(jobs, machine, failures, **options)
    check_trace(outcome.events, jobs, machine)
    held = sum((e[0] - s[0] for s, e in zip(stays(outcome, "start"), stays(outcome, "end"), strict=True)), start=0)
    rows = outcome.jobs.values()
    restarts = sum(row["restarts"] for row in rows) * options["restart_cost"]
    spent = sum(row[2] for row in jobs) + sum(row["work_lost"] + row["checkpoint_overhead"] for row in rows)
    assert spent <= held <= spent + restarts


def stays(outcome, which):
    """The starts, or the ends, of all attempts, ordered by job."""
    kinds = ("start",) if which == "start" else ("finish", "kill")
    return sorted((event for event in outcome.events if event[1] in kinds), key=lambda event: (event[2], event[0]))


@few
@given(runs(flats, failures=True), st.data())
def test_traces_with_recovery_are_possible(case, data):
    machine, jobs, failures = case
    jobs = [(*row, data.draw(st.sampled_from("ABCDE"))) for row in jobs]
    hold, scheduler = data.draw(st.booleans()), data.draw(st.sampled_from(("fcfs", "backfill")))
    outcome = reference_run(
        jobs, machine, failures, scheduler=scheduler, recovery=True, hold=hold, manual_delay=lambda job, restarts: 7
    )
    check_trace(outcome.events, jobs, machine)
