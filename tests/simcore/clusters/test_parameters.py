"""What parameters of clusters mean: draws, splits, what does nothing when, and what is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.engine.clusters.communication import Communication, draw
from faultsweep.simcore.engine.clusters.trunk_failures import with_trunks
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import PARAMETERS, canonical, resolve
from faultsweep.simcore.policies.co_allocation import co_allocates
from faultsweep.simcore.policies.failures.source import Span
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.splitting import split_over
from scipy import stats

from faultsweep.errors import InputError, InvariantError
from tests.clusters import System, job

MACHINE = "clusters:24+16+8"
BASE = {"machine": MACHINE, "scheduler": "first-fit", "size_map": "clip"}


def busy_jobs(count):
    """Jobs that keep the machine busy, of up to 16 nodes."""
    rng = np.random.default_rng(1)
    return Workload(
        job_id=np.arange(1, count + 1),
        submit_s=np.cumsum(rng.integers(0, 1200, count)).astype(float),
        run_s=rng.integers(60, 9000, count).astype(float),
        requested_s=np.full(count, np.nan),
        size=np.where(rng.random(count) < 0.7, rng.integers(1, 9, count), 16),
        user=np.arange(count) % 7,
    )


JOBS = busy_jobs(60)


def run(**parameters):
    return simulate(JOBS, **{**BASE, **parameters})


def same(one, other):
    np.testing.assert_equal(one.metrics, other.metrics)
    for name in one.jobs:
        np.testing.assert_array_equal(one.jobs[name], other.jobs[name], err_msg=name)


CHOICES = {
    "meta_scheduler": ["local", "migration-only", "naive", "bandwidth-aware"],
    "scheduler": ["first-fit", "fcfs", "backfill"],
    "queues": ["local", "global"],
    "partitioning": ["largest-first", "minimum-cut"],
    "split": ["random", "round-robin", "user", "overlay"],
    "trunk_mbps": [200.0, 1000.0],
    "link_mbps": [100.0, 2000.0],
    "ppbw_mbps": [0.0, 300.0, 400.0],
    "ppbw_distribution": ["constant", "uniform", "exponential"],
    "ppbw_spread_pct": [10.0, 50.0],
    "communication_share": [0.2, 0.5],
    "mesh_share": [0.5, 0.9],
    "estimate_error_pct": [0.0, 50.0],
    "error_direction": ["both", "under", "over"],
    "information_pct": [0.0, 50.0, 100.0],
    "agent": ["none", "ctmr", "naive"],
    "agent_interval_s": [0.0, 300.0],
    "overhead_s": [0.0, 720.0],
    "overhead_known": [True, False],
    "assumed_overhead_s": [600.0, 1800.0],
    "cp_frac": [0.04, 10.0],
    "trunk_mtbf_h": [0.0, 20.0],
    "trunk_down_s": [0.0, 3600.0],
    "trunk_repair_distribution": ["constant", "exponential", "lognormal"],
    "repair_sigma": [0.5, 1.94],
    "trunk_outage": ["kill", "stall"],
    "restart_cost_s": [0.0, 60.0],
    "seed": [0, 7],
}


@pytest.mark.parametrize("seed", range(40))
def test_the_canonical_form_is_the_same_run(seed):
    pick = random.Random(seed)
    values = {**BASE, **{name: pick.choice(options) for name, options in CHOICES.items()}}
    values["log"] = "jobs.swf"  # a log: its jobs do not depend on the seed
    form = canonical(values)
    assert canonical(form) == form
    drop = ("log", "failures", "placement")
    same(
        simulate(JOBS, **{name: value for name, value in values.items() if name not in drop}),
        simulate(JOBS, **{name: value for name, value in form.items() if name not in drop}),
    )


def test_every_parameter_of_clusters_does_something():
    busy = {"meta_scheduler": "bandwidth-aware", "agent": "ctmr", "estimate_error_pct": 90.0, "cp_frac": 0.5}
    busy |= {"error_direction": "under", "ppbw_mbps": 350.0, "overhead_s": 60.0, "trunk_mtbf_h": 50.0}
    plain = run(**busy)
    others = {
        "split": "round-robin",
        "meta_scheduler": "naive",
        "queues": "global",
        "trunk_mbps": 500.0,
        "link_mbps": 200.0,
        "ppbw_mbps": 100.0,
        "ppbw_distribution": "exponential",
        "ppbw_spread_pct": 90.0,
        "communication_share": 0.9,
        "mesh_share": 0.1,
        "estimate_error_pct": 10.0,
        "error_direction": "over",
        "information_pct": 40.0,
        "agent": "none",
        "agent_interval_s": 0.0,
        "overhead_s": 600.0,
        "cp_frac": 0.001,
        "trunk_mtbf_h": 2.0,
        "trunk_down_s": 7200.0,
        "trunk_repair_distribution": "exponential",
        "trunk_outage": "stall",
    }
    group = {name for name, parameter in PARAMETERS.items() if parameter.group == "clusters"}
    needs = {
        "queues": {"scheduler": "fcfs"},
        "trunk_down_s": {"trunk_mtbf_h": 3.0},
        "trunk_repair_distribution": {"trunk_mtbf_h": 3.0},
        "trunk_outage": {"trunk_mtbf_h": 3.0},
    }
    assert set(others) == group - {"overhead_known", "assumed_overhead_s", "partitioning"}
    for name, value in others.items():
        there = needs.get(name, {})
        base = run(**{**busy, **there}) if there else plain
        other = run(**{**busy, **there, name: value})
        ends = np.array_equal(other.jobs["finish_s"], base.jobs["finish_s"])
        assert not ends or other.metrics["agent_activations"] != base.metrics["agent_activations"], name
    unknown = run(**busy, overhead_known=False)
    assert unknown.metrics["jobs_taken"] != plain.metrics["jobs_taken"]
    same(run(**busy, overhead_known=False, assumed_overhead_s=60.0), plain)


@pytest.mark.parametrize(("partitioning", "edges"), [("largest-first", 5), ("minimum-cut", 4)])
def test_partitionings(partitioning, edges):
    """Sixteen ranks in rows of four: largest first cuts them into 11 and 5, inside a row; 8 and 8 cut no row."""
    system = System((11, 9), (400.0, 400.0), [job(0, 0, 100, 16, 0, 400)])
    run = system.engine(meta_scheduler="naive", mesh_share=1.0, partitioning=partitioning)
    assert run.metrics["highest_saturation"] == 400 / 4 * edges / 400


def test_without_errors_nothing_saturates_and_without_information_nothing_spans():
    exact = run(ppbw_mbps=400.0)
    assert exact.metrics["co_allocations"] > 0
    assert exact.metrics["highest_saturation"] <= 1 + 1e-12
    assert run(meta_scheduler="naive", ppbw_mbps=400.0).metrics["highest_saturation"] > 1
    silent, moved = run(information_pct=0.0), run(meta_scheduler="migration-only")
    np.testing.assert_array_equal(silent.jobs["finish_s"], moved.jobs["finish_s"])
    assert silent.metrics["co_allocations"] == 0 < moved.metrics["started_elsewhere"]
    assert run(meta_scheduler="local").metrics["started_elsewhere"] == 0


@pytest.mark.parametrize(
    ("direction", "low", "high", "rmspe"), [("both", 0, 2, 57.7), ("under", 0, 1, 57.7), ("over", 1, 2, 57.7)]
)
def test_errors_of_estimates(direction, low, high, rmspe):
    jobs = busy_jobs(4000)
    config = resolve({**BASE, "estimate_error_pct": 100.0, "error_direction": direction, "information_pct": 30.0})
    drawn = draw(jobs, config)
    stated = ~np.isnan(drawn.stated_mbps)
    ratio = drawn.stated_mbps[stated] / drawn.bandwidth_mbps[stated]
    assert low <= ratio.min() <= low + 0.01
    assert high - 0.01 <= ratio.max() <= high
    assert abs(stated.mean() - 0.3) < 0.03
    assert abs(drawn.rmspe() - 57.7) < 2.5  # 100 / sqrt(3), as the paper has it


def test_jobs_keep_their_draws_whatever_else_is_asked():
    config = resolve({**BASE, "estimate_error_pct": 40.0, "information_pct": 50.0})
    one = draw(JOBS, config)
    other = draw(JOBS, {**config, "estimate_error_pct": 80.0, "information_pct": 100.0})
    np.testing.assert_array_equal(one.bandwidth_mbps, other.bandwidth_mbps)
    both = ~np.isnan(one.stated_mbps)
    error = one.stated_mbps[both] / one.bandwidth_mbps[both] - 1
    np.testing.assert_allclose(other.stated_mbps[both] / other.bandwidth_mbps[both] - 1, 2 * error, atol=1e-12)
    assert one.bandwidth_mbps.min() >= 150
    assert one.bandwidth_mbps.max() <= 450
    assert draw(JOBS, {**config, "ppbw_distribution": "exponential", "link_mbps": 350.0}).bandwidth_mbps.max() == 350


def test_splits():
    sizes = (24, 16, 8)
    jobs = JOBS
    for split in ("random", "round-robin", "user", "overlay"):
        home = split_over(jobs, sizes, split).home
        assert set(home) == {0, 1, 2}
        assert (np.array(sizes)[home] >= split_over(jobs, sizes, split).size).all()
    small = replace(jobs, size=np.ones(60, np.int64))
    assert split_over(small, sizes, "round-robin").home.tolist() == [0, 1, 2] * 20
    by_user = split_over(small, sizes, "user").home
    assert all(len(set(by_user[small.user == user])) == 1 for user in range(7))
    laid = split_over(small, sizes, "overlay")
    assert np.bincount(laid.home).tolist() == [30, 20, 10]
    assert (np.diff(laid.submit_s) >= 0).all()
    assert set(np.mod(laid.submit_s, 86400)) == set(np.mod(small.submit_s, 86400))
    parts = [laid.submit_s[laid.home == c].min() for c in range(3)]
    assert max(parts) - min(parts) < 86400
    given = replace(small, home=np.full(60, 2))
    assert set(split_over(given, sizes, "random").home) == {2}


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"scheduler": "conservative"}, "scheduler: 'conservative' is not for machines of clusters"),
        ({"checkpoint": "daly"}, "checkpoint: 'daly' is not for machines of clusters"),
        ({"start_delay_s": 1.0}, "start_delay_s: 1.0 is not for machines of clusters"),
        ({"event_order": "ends-first"}, "event_order: 'ends-first' is not for machines of clusters"),
        ({"machine": "flat:48"}, "scheduler: 'first-fit' is not for a flat machine"),
        ({"machine": "flat:48", "scheduler": "fcfs", "trace": True}, "trace: only machines of clusters"),
        ({"meta_scheduler": "naif"}, "meta_scheduler: unknown meta scheduler 'naif'"),
        (
            {"machine": "clusters:8+8", "size_map": "exact", "meta_scheduler": "local"},
            "needs 16 nodes and the largest cluster has 8",
        ),
        (
            {"communication": Communication(np.zeros(2), np.zeros(2), np.zeros(2))},
            "communication: communicate_s has shape (2,), expected one value per job, 60",
        ),
        (
            {"communication": Communication(np.zeros(60), np.full(60, 2000.0), np.zeros(60))},
            "communication: bandwidth_mbps of job 1 is 2000 (valid: 0 to link_mbps, 1000)",
        ),
        (
            {"failures": FailureTrace(np.array([1.0]), np.array([51]), np.array([1.0]))},
            "has nodes 0 to 47 and trunks 48 to 50",
        ),
    ],
)
def test_what_is_refused(parameters, sentence):
    with pytest.raises(InputError) as error:
        run(**parameters)
    assert sentence in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["clusters:", "clusters:0+4", "clusters:4+", "clusters:4@0+4", "clusters:4@+4"])
def test_names_that_are_no_clusters(name):
    with pytest.raises(InputError, match=r"^machine: "):
        parse_machine(name)


def test_names_of_clusters():
    machine = parse_machine("clusters:100@2500+64")
    assert (machine.nodes, machine.clusters, machine.trunks_mbps[0]) == (164, (100, 64), 2500.0)
    assert np.isnan(machine.trunks_mbps[1])
    assert co_allocates(resolve({"machine": "clusters:4+4"}))


def test_debug_mode_finds_a_planted_error(monkeypatch):
    from faultsweep.simcore.engine.clusters import run as running

    honest = running.advance_clusters

    def leaks_a_node(state, budget):
        code = honest(state, budget)
        if state.next_arrival == 30:
            state.free_here[0] -= 1
        return code

    monkeypatch.setattr(running, "advance_clusters", leaks_a_node)
    with pytest.raises(InvariantError, match=r"^debug: after .* s: nodes: free nodes are counted as"):
        run(debug=True)


def test_a_run_can_be_cut_and_timed():
    whole = run(meta_scheduler="naive", time_scheduling=True)
    assert whole.metrics["max_scheduling_s"] > 0
    cut = run(meta_scheduler="naive", horizon_s=float(np.median(whole.jobs["finish_s"])))
    assert cut.status == "truncated"
    assert cut.metrics["unfinished_jobs"] > 0
    between = run(meta_scheduler="naive", horizon_s=cut.metrics["makespan_s"] + 1e-3)
    assert between.metrics["makespan_s"] == cut.metrics["makespan_s"] + 1e-3  # the horizon, though nothing happens then
    failing = run(meta_scheduler="naive", failures="mtbf", mtbf_h=1.0, mttr_h=1.0, trunk_mtbf_h=3.0, debug=True)
    assert failing.metrics["restarts"] > 0
    assert set(failing.failures.node[failing.failures.node >= 48]) <= {48, 49, 50}


@pytest.mark.parametrize("kind", ["constant", "exponential", "lognormal"])
def test_the_down_times_of_trunks_have_their_mean_and_distribution(kind):
    config = resolve({**BASE, "meta_scheduler": "naive", "trunk_mtbf_h": 1.0, "trunk_down_s": 600.0})
    config |= {"trunk_repair_distribution": kind, "repair_sigma": 1.0}
    source = with_trunks(None, config, 48, 3, Span(0.0, 1.0, 1.0))
    trace = source.until(20_000 * 1200.0)
    assert len(trace) > 15_000
    assert set(trace.node) == {48, 49, 50}
    down_s = trace.down_s
    if kind == "constant":
        assert set(down_s) == {600.0}
        return
    assert down_s.mean() == pytest.approx(600.0, rel=0.06)
    law = stats.expon(scale=600) if kind == "exponential" else stats.lognorm(1.0, scale=600 * np.exp(-0.5))
    assert stats.kstest(down_s, law.cdf).pvalue > 1e-3


LARGE = [job(0.0, 10.0, 10.0, 4), job(5.0, 10.0, 10.0, 9, bandwidth=300, stated=300), job(6.0, 10.0, 10.0, 10)]


@pytest.mark.parametrize("failures", [[], [(float(second), 0, 5.0) for second in range(1, 4000, 3)]])
@pytest.mark.parametrize(
    ("parameters", "trunks", "sentence"),
    [
        ({"meta_scheduler": "bandwidth-aware"}, 10_000.0, "job 2 can never start: job 2 needs 10 nodes"),
        ({"meta_scheduler": "bandwidth-aware"}, 10_000.0, "it states no bandwidth"),
        ({"meta_scheduler": "bandwidth-aware"}, 250.0, r"jobs 1, 2 can never start: job 1 needs 9 nodes, .*300 Mbit/s"),
        ({"meta_scheduler": "bandwidth-aware"}, 250.0, r"Mbit/s.*; job 2 needs 10 nodes, .*states no bandwidth"),
    ],
)
def test_jobs_that_can_never_start_are_named_at_once(parameters, trunks, sentence, failures):
    with pytest.raises(InputError, match=sentence):
        System((8, 8), (trunks, trunks), LARGE, failures=failures, parameters=parameters).engine()


def test_a_job_that_may_not_run_over_clusters_again_is_named():
    """Its stated bandwidth fits, its true one, which the agent finds out, never does."""
    jobs = [job(0.0, 10.0, 5000.0, 12, bandwidth=900, stated=10), job(1.0, 50.0, 50.0, 4)]
    given = {"meta_scheduler": "bandwidth-aware", "agent": "naive", "overhead_s": 60.0}
    failures = [(float(second), 0, 5.0) for second in range(100_000, 200_000, 30)]
    with pytest.raises(InputError, match=r"job 0 can never start: job 0 needs 12 nodes, .*900 Mbit/s"):
        System((8, 8), (1000.0, 1000.0), jobs, failures=failures, parameters=given).engine()


def test_a_kill_has_the_attempt_that_is_killed():
    system = System((4, 4), (1e3, 1e3), [job(0.0, 50.0, 0.0, 4)], failures=[(10.0, 0, 0.0), (20.0, 1, 0.0)])
    rows = [(kind, attempt) for _, kind, _, attempt, _ in system.engine().events.rows()]
    assert [row for row in rows if row[0] in ("start", "kill", "requeue", "finish")] == [
        *(("start", 0), ("kill", 0), ("requeue", 1)),
        *(("start", 1), ("kill", 1), ("requeue", 2)),
        *(("start", 2), ("finish", 2)),
    ]
