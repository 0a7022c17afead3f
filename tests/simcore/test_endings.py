"""Every run ends, or says why not; every call of the loop returns; no list is written beyond its end."""

from __future__ import annotations

import signal
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.contract import SHORTEST_INTERVAL_S
from faultsweep.simcore.engine import build
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.engine.clusters import build as cluster_build
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.engine.watch import RETURN_AFTER_NS, WITHOUT_LIMIT, check_end
from faultsweep.simcore.model.dependencies import Dependencies
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures import mtbf
from faultsweep.simcore.policies.prediction.predictors import BaseRate
from faultsweep.simcore.policies.recovery import NOTIFY
from faultsweep.simcore.simulate import simulate

from faultsweep.errors import InputError, InvariantError


def jobs(*rows):
    """Rows (submit, run, size)."""
    submit, run, size = (np.array(column, float) for column in zip(*rows, strict=True))
    number = np.arange(len(rows))
    return Workload(number, submit, run, np.full(len(rows), np.nan), size.astype(np.int64), number, name="case")


def failures(*rows):
    """Rows (time, node); the nodes are up again at once."""
    time_s, node = zip(*rows, strict=True)
    return FailureTrace(np.array(time_s, float), np.array(node, np.int64), np.zeros(len(rows)), name="case")


SEVERAL = jobs((0, 500, 2), (0, 90, 3), (10, 700, 1), (20, 33.5, 4))


@pytest.mark.parametrize("policy", ["young", "daly"])
@pytest.mark.parametrize("mtbf_h", [1e-7, 12.0])
def test_a_derived_interval_is_no_shorter_than_one_that_can_be_given(policy, mtbf_h):
    """Checkpoints of no cost pay all the time."""
    options = {"machine": "flat:4", "checkpoint_cost_s": 0.0, "failures": failures((20, 1), (400, 0)), "events": True}
    found = simulate(SEVERAL, checkpoint=policy, checkpoint_mtbf_h=mtbf_h, **options)
    same = simulate(SEVERAL, checkpoint="periodic", checkpoint_interval_s=SHORTEST_INTERVAL_S, **options)
    np.testing.assert_equal(found.metrics, same.metrics)
    assert list(found.events.rows()) == list(same.events.rows())
    assert found.metrics["checkpoints"] > 1000


@pytest.mark.parametrize("policy", ["young", "daly"])
def test_checkpoints_of_no_cost_and_an_observed_mean_time_between_failures(policy):
    run = simulate(
        jobs((0, 3000, 1)), failures=failures((1000, 0)), machine="flat:1", checkpoint=policy, checkpoint_cost_s=0.0
    )
    assert run.jobs["checkpoints"].tolist() == [2999]  # none before the first failure; then after every second of work
    assert run.jobs["finish_s"].tolist() == [4000]


@pytest.mark.parametrize("name", ["checkpoint_interval_s", "bucket_s", "bucket_repeat_s", "agent_interval_s"])
def test_a_shorter_interval_is_refused(name):
    with pytest.raises(InputError, match=f"{name}: 0.999"):
        simulate(SEVERAL, machine="flat:4", checkpoint="periodic", **{name: 0.999})


@pytest.mark.parametrize(
    "given",
    [
        {"machine": "flat:4", "checkpoint": "periodic", "checkpoint_interval_s": 1.0, "checkpoint_cost_s": 1.0},
        {"machine": "torus:2x2x1", "checkpoint": "young", "checkpoint_cost_s": 0.0, "checkpoint_mtbf_h": 1.0},
        {"machine": "clusters:2+2", "agent": "ctmr", "agent_interval_s": 1.0, "meta_scheduler": "naive"},
    ],
    ids=["flat", "torus", "clusters"],
)
def test_times_too_large_for_milliseconds_end_the_run_and_so_does_a_time_that_stands_still(given, monkeypatch):
    """Beside 1e20 s no interval is to be seen: the next event is always now."""
    late = jobs((0, 5, 1), (1e20, 1e18, 3), (1e20, 1e18, 1))
    more = {}
    if "agent" in given:
        given = {**given, "scheduler": "fcfs", "trunk_mbps": 1.0}
        more["communication"] = Communication(np.array([0, 5e17, 5e17]), np.full(3, 900.0), np.full(3, 900.0))
    with pytest.raises(InputError, match=r"job 1: its submission is 1e\+20 s in this run"):
        simulate(late, **more, **given)
    monkeypatch.setattr(sys.modules[simulate.__module__], "LATEST_S", np.inf)
    with pytest.raises(InputError, match=r"the event after \S+ s is further from zero than 4\.39805e\+12 s"):
        simulate(late, **more, **given)
    for module in (build, cluster_build):
        monkeypatch.setattr(module, "LATEST_S", np.inf)
    with pytest.raises(InputError, match=r"makes no progress: .* the time stays at 1e\+20 s"):
        simulate(late, **more, **given)


@pytest.mark.parametrize(
    "cost", ["checkpoint_cost_s", "move_cost_s", "migration_cost_s", "restart_cost_s", "start_delay_s"]
)
def test_times_that_are_added_to_a_job_are_bounded(cost):
    """What is left of a longer one at a failure would be lost in rounding, and so would the capacity that it took."""
    with pytest.raises(InputError, match=f"{cost}: .* is outside the valid range 0 to 1e.09"):
        resolve({cost: 1e10})


@pytest.mark.parametrize("scale", ["arrival_scale", "load_scale"])
def test_a_load_beyond_all_numbers_is_refused(scale):
    with pytest.raises(InputError, match=f"{scale}: .* is outside the valid range 1e-09 to 1e.09"):
        resolve({scale: 1e300})


def test_events_that_bring_no_job_any_further_end_the_run(monkeypatch):
    monkeypatch.setattr(build, "MOST_WITHOUT_JOB", 1000)
    options = {"machine": "flat:1", "checkpoint": "periodic", "checkpoint_interval_s": 1.0, "checkpoint_cost_s": 0.0}
    assert simulate(jobs((0, 1000, 1)), **options).metrics["checkpoints"] == 999
    with pytest.raises(InputError, match=r"1,000 events up to 1001 s, and no job started or ended"):
        simulate(jobs((0, 2000, 1)), **options)


def test_events_between_those_of_jobs_are_counted_anew_after_each(monkeypatch):
    monkeypatch.setattr(build, "MOST_WITHOUT_JOB", 1000)
    options = {"machine": "flat:2", "checkpoint": "periodic", "checkpoint_interval_s": 1.0, "checkpoint_cost_s": 0.0}
    arrivals = jobs((0, 4000, 1), *((900.5 * k, 10.0, 1) for k in range(1, 5)))
    assert simulate(arrivals, **options).status == "done"
    killed = failures(*((900.5 * k, 1) for k in range(1, 5)))
    with pytest.raises(InputError, match="no job started or ended"):  # failures of an idle node are no events of jobs
        simulate(jobs((0, 4000, 1)), failures=killed, **options)


@pytest.mark.compiled
@pytest.mark.parametrize("machine", ["flat:4", "torus:2x2x1", "clusters:2+2"])
@pytest.mark.parametrize(
    "often",
    [
        {"failures": "mtbf", "node_mtbf_h": 0.01},
        {"failures": "mtbf", "mtbf_h": 0.001, "mttr_h": 100.0, "repair_distribution": "exponential"},
        {"failures": "weibull", "weibull_scale_s": 1.0},
    ],
)
def test_failures_among_which_jobs_find_no_nodes_end_the_run_long_before_there_are_too_many(machine, often):
    case = jobs((0, 36_000, 2), (10, 36_000, 1))
    with pytest.raises(InputError, match="has found enough nodes that are up during the last 200,032 failures up to"):
        simulate(case, machine=machine, scheduler="fcfs", **often)


@pytest.mark.parametrize("machine", ["flat:4", "torus:2x2x1", "clusters:2+2"])
def test_only_failures_that_make_jobs_wait_for_nodes_are_counted(machine, monkeypatch):
    for module in (build, cluster_build):
        monkeypatch.setattr(module, "most_in_vain", lambda _: 10)

    def run(case, *failed):
        time_s, node, down_s = zip(*failed, strict=True)
        trace = FailureTrace(np.array(time_s, float), np.array(node), np.array(down_s, float), name="case")
        return simulate(case, machine=machine, scheduler="fcfs", failures=trace)

    idle = [(100 + second, 0, 2) for second in range(20)]
    assert run(jobs((0, 10, 2), (500, 10, 2)), *idle).status == "done"  # nobody waits
    assert run(jobs((0, 1000, 2), (5, 10, 4)), *((100 + second, 3, 2) for second in range(20))).status == "done"
    down = [(1 + second, 0, 2) for second in range(20)]
    with pytest.raises(InputError, match="during the last 10 failures up to 11 s"):
        run(jobs((1, 10, 4)), (1, 0, 2), *down)
    assert run(jobs((1, 10, 4)), *down[:10]).status == "done"


def test_agent_that_looks_in_vain_for_ever_ends_the_run(monkeypatch):
    monkeypatch.setattr(cluster_build, "MOST_WITHOUT_JOB", 500)
    work = Communication(np.full(1, 5000.0), np.full(1, 900.0), np.full(1, 900.0))
    given = {
        "machine": "clusters:2+2",
        "scheduler": "fcfs",
        "meta_scheduler": "naive",
        "agent": "ctmr",
    }
    with pytest.raises(InputError, match=r"500 events up to \S+ s, and no job started or ended"):
        simulate(jobs((0, 10_000, 4)), communication=work, agent_interval_s=1.0, trunk_mbps=1.0, **given)


def test_a_call_of_the_loop_returns_after_its_time():
    """The whole run would take minutes."""
    state = endless()
    began = time.perf_counter()
    for _ in range(3):
        assert advance(state, WITHOUT_LIMIT) == st.CONTINUE
    took = time.perf_counter() - began
    assert 0.9 * 3e-9 * RETURN_AFTER_NS < took < 10  # on a machine that does other things, too
    assert state.job.checkpoints[0] > 10


def endless():
    rows = {"submit_s": [0.0], "work_s": [1e12], "estimate_s": [1e12], "requested": [1], "size": [1]}
    arrays = {name: np.array(value) for name, value in rows.items()}
    config = resolve({"checkpoint": "periodic", "checkpoint_interval_s": 1.0, "checkpoint_cost_s": 0.0})
    return build_state(arrays, parse_machine("flat:1"), config, None, tracing=False)


# The handler raises wherever Python is; within the tracer that measures coverage it would leave a lock closed for ever.
@pytest.mark.skipif(is_interpreted(), reason="plain Python answers signals by itself")
@pytest.mark.parametrize(
    "given",
    [
        {"machine": "flat:1", "checkpoint": "periodic", "checkpoint_interval_s": 1.0},
        {"machine": "flat:1", "checkpoint": "periodic", "checkpoint_interval_s": 1.0, "time_scheduling": True},
        {"machine": "flat:1", "checkpoint": "periodic", "checkpoint_interval_s": 1.0, "debug": True},
        {
            "machine": "clusters:2+2",
            "agent": "ctmr",
            "meta_scheduler": "naive",
            "agent_interval_s": 1.0,
            "trunk_mbps": 1.0,
        },
    ],
    ids=["loop", "timed", "checked", "clusters"],
)
def test_a_signal_is_heard_in_the_middle_of_a_run(given):
    class HeardError(Exception):
        pass

    def hear(*_):
        raise HeardError

    size, more = 1, {}
    if "agent" in given:
        size = 4
        more = {
            "scheduler": "fcfs",
            "communication": Communication(np.full(1, 1e11), np.full(1, 900.0), np.full(1, 900.0)),
        }
    simulate(jobs((0, 10, size)), machine=given["machine"], scheduler="fcfs")  # compiles
    before = signal.signal(signal.SIGALRM, hear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        began = time.perf_counter()
        with pytest.raises(HeardError):
            simulate(jobs((0, 1e12, size)), **given, **more)
        assert time.perf_counter() - began < 10
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"load_scale": 1e9}, r"case: job 0: its run time is 5e\+12 s in this run"),
        ({"load_scale": 1e-9, "target_utilisation": 1e-300}, "job 0: its run time is"),
        ({"arrival_scale": 1e-9, "num_jobs": 3, "offset": 1}, None),
        ({"estimates": "f-model", "estimate_factor": 1e300}, "its estimate is"),
    ],
)
def test_times_that_cannot_be_reckoned_with_are_refused_with_the_job(given, said):
    workload = jobs((0, 5000, 2), (0, 90, 3), (10, 700, 1), (20, 33.5, 4))
    if said is None:
        assert simulate(workload, machine="flat:4", **given).status == "done"
        return
    with pytest.raises(InputError, match=said):
        simulate(workload, machine="flat:4", **given)


@pytest.mark.parametrize("machine", ["flat:4", "torus:2x2x1", "clusters:2+2"])
@pytest.mark.parametrize("generator", [{"failures": "weibull"}, {"failures": "mtbf", "mtbf_h": 1.0}])
@pytest.mark.parametrize("horizon_s", [0.0, 5e-324])
def test_a_run_that_ends_before_its_first_event_or_at_it_has_no_shares(machine, generator, horizon_s):
    later = jobs((100, 5, 1), (100, 20, 2))
    run = simulate(later, machine=machine, scheduler="fcfs", horizon_s=horizon_s, debug=True, **generator)
    assert run.status == "truncated"
    assert run.metrics["makespan_s"] == horizon_s
    assert np.isnan([run.metrics[name] for name in ("utilisation", "unused_capacity", "failures_seen_per_day")]).all()


@pytest.mark.parametrize("given", [{"mtbf_h": 1e-9}, {"node_mtbf_h": 1e-9}])
def test_failures_less_than_a_millisecond_apart_are_refused(given):
    (name,) = given
    with pytest.raises(InputError, match=f"{name}: 1e-09 h is less than one millisecond"):
        simulate(SEVERAL, machine="flat:4", failures="mtbf", **given)


def test_failures_of_nodes_that_come_in_crowds_are_refused(monkeypatch):
    """With this shape nearly all gaps are 0 ms: others may always come before those that were drawn."""
    monkeypatch.setattr(mtbf, "MOST_WAITING", 100)
    with pytest.raises(InputError, match="at nearly the same time"):
        simulate(SEVERAL, machine="flat:100", failures="mtbf", node_mtbf_h=1e-3, mtbf_shape=0.05)


def test_a_precision_is_not_asked_of_failures_in_the_paired_run_without_them():
    """The table of their base rates is not there: a kernel that checks no bounds read what lay behind it."""
    state = build_state(
        {name: np.ones(1) for name in ("submit_s", "work_s", "estimate_s", "requested", "size")},
        parse_machine("torus:2x2x1"),
        resolve({"machine": "torus:2x2x1", "precision": 0.5}),
        None,
        tracing=False,
        base_rate=BaseRate(np.ones(3), np.arange(4.0), 1.0),
    )
    assert state.base_gaps == 0
    given = {"placement": "tie-breaking", "accuracy": 0.5, "precision": 0.5, "recovery": "all-b"}
    run = simulate(SEVERAL, machine="torus:2x2x1", failures=failures((30, 1), (31, 0)), **given)
    assert run.jobs["failure_free_response_s"][0] == 500


AWAY = 40  # jobs that all come back at one time


@pytest.fixture
def crowd():
    """A run on one node, with its event trace: all jobs were killed within a microsecond, and will be resubmitted at
    one time, far more than the machine has nodes."""
    columns = {"submit_s": 0.0, "work_s": 1.0, "estimate_s": 1.0, "requested": 1, "size": 1, "option": NOTIFY}
    arrays = {name: np.full(AWAY, value) for name, value in columns.items()}
    failed = failures(*((1e-9 * (k + 1), 0) for k in range(AWAY)))
    config = resolve(
        {
            **{"machine": "flat:1", "scheduler": "fcfs", "failures": "given", "recovery": "all-a"},
            **{"manual_delay_h": 1e6, "manual_delay_distribution": "constant", "horizon_s": 3e9},
        }
    )
    state = build_state(arrays, parse_machine("flat:1"), config, failed, tracing=True)
    behind = np.full(len(state.trace) + 1000, -7.0)
    state = state.with_arrays(trace=behind[: len(state.trace)])
    assert advance(state, WITHOUT_LIMIT) == st.TRUNCATED
    assert (state.job.status == st.AWAY).all()
    state.horizon = np.inf
    return state, behind[len(state.trace) :]


def test_nothing_is_written_behind_a_full_event_trace(crowd):
    state, behind = crowd
    state.trace_end = len(state.trace) - 8 * (st.TRACE_HEAD + 1)  # as much as an event needs as a rule
    assert advance(state, WITHOUT_LIMIT) == st.NO_SPACE
    assert len(state.trace) - st.TRACE_HEAD < state.trace_end <= len(state.trace)
    assert (behind == -7.0).all()


def test_a_list_that_is_always_large_enough_and_is_not_is_an_error_of_the_simulator(crowd):
    state, _ = crowd
    state.num_releases = state.timer_time.shape[0]  # as if it were full
    state.tracing = 0
    assert advance(state, 1) == st.INVALID
    with pytest.raises(InvariantError, match="a list of the engine is full"):
        check_end(st.INVALID, "case", state)


@pytest.mark.parametrize("machine", ["flat:2", "torus:1x1x2", "clusters:2"])
def test_a_run_is_as_long_as_its_horizon(machine):
    """The horizon cuts a job of 200 s; another of 50 s fails once, and nothing happens after its end."""
    case = jobs((10, 200, 1), (10, 50, 1))
    run = simulate(case, machine=machine, scheduler="fcfs", failures=failures((20, 1)), horizon_s=100.0, debug=True)
    assert run.status == "truncated"
    assert run.metrics["makespan_s"] == 100.0
    assert run.metrics["failures_seen_per_day"] == 864.0
    assert run.metrics["utilisation"] == pytest.approx(50 / 200)
    assert run.metrics["unused_capacity"] == pytest.approx(30 / 200)  # the second job ran again, from 20 s to 70 s


@pytest.mark.parametrize("machine", ["flat:4", "clusters:4"])
def test_jobs_whose_nodes_never_come_up_are_named(machine):
    case = jobs(*[(second, 10, 4) for second in range(8)])
    broken = FailureTrace(np.array([0.0]), np.array([2]), np.array([np.inf]), name="case")
    with pytest.raises(InputError, match="come up again that jobs 0, 1, 2, 3, 4 and 3 others wait for"):
        simulate(case, machine=machine, scheduler="fcfs", failures=broken)
    for down_s in (-1.0, np.nan, 5e12):
        with pytest.raises(InputError, match=r"failure 1 has a down time of \S+ s \(valid: 0 to 4.39805e\+12\)"):
            simulate(case, machine=machine, scheduler="fcfs", failures=replace(broken, down_s=np.array([down_s])))


@pytest.mark.parametrize(
    "options",
    [
        {"requeue_hold_s": 1e4},
        {"recovery": "all-e", "requeue_hold_s": 1e4},
        {"recovery": "manual", "manual_delay_h": 3.0},
        {"checkpoint": "periodic", "checkpoint_interval_s": 5.0, "checkpoint_cost_s": 1.0, "requeue_hold_s": 1e4},
    ],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize("machine", ["flat:1", "torus:1x1x1"])
def test_each_job_that_is_away_may_have_a_timer(machine, options):
    """All are killed before the first one comes back."""
    failing = failures(*((at + 0.5, 0) for at in range(300)))
    run = simulate(jobs(*[(0, 50, 1)] * 300), machine=machine, scheduler="fcfs", failures=failing, **options)
    assert run.status == "done"
    assert run.metrics["restarts"] == 300
    assert run.metrics["jobs_hit"] == 300


@pytest.mark.parametrize("machine", ["flat:1", "torus:1x1x1"])
def test_each_job_that_thinks_may_have_a_timer(machine):
    count = 300
    pairs = np.arange(1, count + 1), np.zeros(count, np.int64), np.arange(count) + 5.0
    workload = replace(jobs(*[(0, 50, 1)] * (count + 1)), dependencies=Dependencies(*pairs))
    run = simulate(workload, machine=machine, scheduler="fcfs", dependencies="log")
    assert run.metrics["makespan_s"] == 50 + 5 + 50 * count


@pytest.mark.compiled
@pytest.mark.parametrize("machine", ["flat:300", "torus:10x10x3"])
def test_each_running_job_may_have_two_timers(machine):
    options = {"checkpoint": "periodic", "checkpoint_interval_s": 5.0, "checkpoint_cost_s": 1.0}
    options["failures"] = failures(*((12.25 + at / 1000, at) for at in range(290)))
    many = jobs(*[(0, 50, 1)] * 700)
    run = simulate(many, machine=machine, scheduler="fcfs", **options)
    assert run.status == "done"
    assert run.metrics["restarts"] == 290


@pytest.mark.parametrize("last_s", [3.6e12, 4.3e12])
def test_failures_are_drawn_no_farther_than_times_may_be(last_s):
    """They are drawn ahead of what a run needs, by a quarter of the time."""
    rare = {"failures": "weibull", "weibull_scale_s": 1e9, "estimates": "requested"}
    one = replace(jobs((0, 50, 1)), requested_s=np.array([last_s / 2]))
    assert simulate(one, machine="flat:1", **rare).status == "done"


def test_a_generator_of_the_users_is_asked_for_no_more_than_a_run_needs(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "def failing(nodes):\n    for at in range(300):\n        yield 1.0, 0\n    raise ValueError('over')\n"
    )
    three = replace(jobs((0, 0.5, 1), (10, 0.5, 1), (20, 0.5, 1)), requested_s=np.full(3, 100.0))
    run = simulate(three, machine="flat:4", scheduler="fcfs", estimates="requested", failures=f"{file}:failing")
    assert run.status == "done"
