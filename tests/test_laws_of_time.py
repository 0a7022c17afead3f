"""Laws of time: a log's clock means nothing, and nodes are held until a completion is processed."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.plain import write_failures
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.transforms import span
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import engine_run
from tests.fixed import results
from tests.strategies import QUEUE_ORDERS, examples, flats, runs

LATER_S = 1_300_000_000.0
SITE = """
format = "faultsweep site, 1"
[[nodes]]
name = "node"
count = 16
cores = 4
[[partitions]]
name = "all"
nodes = { node = 16 }
"""
TIMES = ("submit_s", "first_start_s", "start_s", "finish_s")
RAN = [one["config"] for one in results.read() if "metrics" in one]
EVERY = 1 if "FAULTSWEEP_FUZZ" in os.environ else 12
GENERATORS = (
    {"failures": "weibull", "weibull_scale_s": 3000.0},
    {"failures": "weibull-copula", "weibull_scale_s": 3000.0},
    {"failures": "mtbf", "mtbf_h": 1.0},
    {"failures": "mtbf", "node_mtbf_h": 64.0, "failure_start": "new"},
    {"failures": "bursts", "failures_per_day": 30.0},
)


def assert_later(before, after, later_s=LATER_S):
    """The same results to the bit, at later times."""
    assert after.status == before.status
    for name, value in before.metrics.items():
        assert after.metrics[name] == value or (np.isnan(value) and np.isnan(after.metrics[name])), name
    for name, column in before.jobs.items():
        expected = column + later_s if name in TIMES else column
        assert np.array_equal(after.jobs[name], expected, equal_nan=column.dtype.kind == "f"), name
    assert np.array_equal(after.failures.time_s, before.failures.time_s)
    if before.events is not None:
        same = [(time + later_s, *rest) for time, *rest in before.events.rows()]
        assert [(pytest.approx(time, abs=1e-6), *rest) for time, *rest in after.events.rows()] == same


@pytest.mark.parametrize("machine", results.LARGEST)
def test_later_submissions_change_times_only(machine):
    """Under every generator, checkpoint, node choice, recovery and setting of clusters."""
    for case in [case for case in RAN if case["machine"] == machine][::EVERY]:
        assert_later(results.run(case), results.run(case, LATER_S))


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@pytest.mark.parametrize("order", QUEUE_ORDERS)
def test_later_submissions_change_times_only_in_any_order(order, scheduler, tmp_path):
    """On nodes that jobs share, too."""
    site = tmp_path / "site.toml"
    site.write_text(SITE)
    log = results.workload("flat:64", 0)
    log = replace(log, user=log.job_id % 3)
    late = replace(log, submit_s=log.submit_s + LATER_S)
    given = {"scheduler": scheduler, "queue_order": order, "failures": "weibull", "weibull_scale_s": 3000.0}
    for machine in ("flat:64", str(site)):
        more = {
            "machine": machine,
            "checkpoint": "daly",
            "priority_period_s": 20.0,
            "priority_half_life_h": 1.0,
            **given,
        }
        assert_later(simulate(log, **more), simulate(late, **more))


@pytest.mark.parametrize("options", GENERATORS, ids=lambda options: options["failures"])
def test_a_span_of_a_log_is_a_log_of_its_own(options):
    """Failures, and what is learnt from them, begin with its first job, however long the log has been going on."""
    log = results.workload("flat:64", 0)
    late = replace(log, submit_s=log.submit_s + np.where(np.arange(len(log)) < 20, 0.0, 400 * DAY_S))
    part = span(late, 20, 40)
    for policy in ({"node_choice": "lff"}, {"checkpoint": "daly", "checkpoint_cost_s": 60.0}, {"horizon_s": 40_000.0}):
        more = {"machine": "flat:64", **options, **policy}
        assert_later(simulate(part, **more), simulate(late, offset=20, num_jobs=40, **more), 0.0)


def test_a_log_that_begins_late_has_no_more_failures_than_one_that_begins_at_once():
    """As that of CEA Curie, whose first job is submitted on day 366."""
    log = results.workload("flat:64", 0)
    late = replace(log, submit_s=log.submit_s + 366 * DAY_S)
    run = simulate(late, machine="flat:64", failures="mtbf", mtbf_h=1.0)
    assert run.metrics["failures_seen"] == np.count_nonzero(run.failures.time_s <= run.metrics["makespan_s"])
    assert run.metrics["failures_seen_per_day"] == pytest.approx(24, rel=0.5)


def test_failures_before_the_first_submission_teach_nothing():
    log = results.workload("flat:64", 0)
    early = FailureTrace(np.arange(-50.0, 0.0), np.zeros(50, np.int64), np.full(50, 1.0))
    for policy in ({"node_choice": "lff"}, {"checkpoint": "young"}):
        with_them = simulate(log, machine="flat:64", failures=early, **policy)
        without = simulate(log, machine="flat:64", **policy)
        assert with_them.metrics["failures_seen"] == 0
        assert np.array_equal(with_them.jobs["finish_s"], without.jobs["finish_s"])
    on_clusters = simulate(log, machine="clusters:64", scheduler="fcfs", failures=early)
    assert on_clusters.metrics["failures_seen"] == 0


def test_failures_of_another_clock_are_told(tmp_path):
    """Unix times in a failure file: no failure is in the run, which nothing else would show."""
    log = results.workload("flat:64", 0)
    unix = replace(log, submit_s=log.submit_s + LATER_S)
    hours = FailureTrace(LATER_S + np.arange(1.0, 9.0) * 3600.0, np.arange(8), np.full(8, 60.0))
    write_failures(hours, tmp_path / "unix.csv", num_nodes=64)
    path = str(tmp_path / "unix.csv")
    for options in ({"machine": "flat:64"}, {"machine": "clusters:64", "scheduler": "fcfs"}):
        run = simulate(unix, failures=path, **options)
        assert run.metrics["failures_seen"] == 0
        [told] = run.doubts
        assert "none of the 8 failures of unix is in the run" in told
        assert "are 1300003600 to 1300028800 s after the first submission (failure_fit = calendar" in told
    run = simulate(unix, machine="flat:64", failures=path, failure_fit="calendar")
    assert run.metrics["failures_seen"] == 8
    assert run.doubts == ()
    [told] = simulate(log, machine="flat:64", failures=replace(hours, time_s=-hours.time_s[::-1])).doubts
    assert "their times are -1300028800 to -1300003600 s" in told
    for none in ({"failures": "mtbf", "mtbf_h": 1e7}, {"failures": path, "failure_fit": "scale"}, {}):
        assert simulate(unix, machine="flat:64", **none).doubts == ()


def test_a_written_trace_repeats_the_run_of_a_span(tmp_path):
    log = results.workload("flat:64", 0)
    more = {"machine": "flat:64", "offset": 20, "num_jobs": 40}
    run = simulate(log, failures="mtbf", mtbf_h=1.0, **more)
    write_failures(run.failures, tmp_path / "seen.csv", num_nodes=64)
    assert_later(run, simulate(log, failures=str(tmp_path / "seen.csv"), **more), 0.0)
    on_clock = replace(run.failures, time_s=run.failures.time_s + run.origin_s)
    write_failures(on_clock, tmp_path / "calendar.csv", num_nodes=64)
    again = simulate(log, failures=str(tmp_path / "calendar.csv"), failure_fit="calendar", **more)
    assert again.metrics["failures_seen"] == run.metrics["failures_seen"]


@given(runs(flats, max_jobs=20), st.sampled_from(("fcfs", "backfill", "conservative")))
@examples(60)
def test_nodes_are_held_until_a_completion_is_processed(case, scheduler):
    """Under ends-first, row by row: many jobs end at their estimates, at the times of other events."""
    machine, jobs, _ = case
    jobs = [(*row[:3], row[2], row[4]) for row in jobs]
    events = engine_run(jobs, machine, scheduler=scheduler, estimates="requested", event_order="ends-first").events
    held = {}
    for _, kind, job, nodes in events:
        if kind == "start":
            assert not set(nodes) & set().union(*held.values())
            held[job] = set(nodes)
        elif kind == "finish":
            del held[job]
