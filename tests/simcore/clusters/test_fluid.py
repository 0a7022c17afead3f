"""The fluid model against closed forms, and what can never happen."""

from __future__ import annotations

import random

import numpy as np
import pytest
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters.loop import advance_clusters

from tests.clusters import System, job, random_system, running_state


def finishes(machine, rows):
    """When jobs that start together over two clusters end."""
    s = running_state(machine, rows, agent="ctmr", agent_interval_s=0.0)  # an agent that finds nobody to take
    s.wake = 0.0  # something has to happen at the start
    assert advance_clusters(s, 100) == st.ALL_DONE
    return s.job.finish


@pytest.mark.parametrize("seed", range(20))
def test_a_job_alone_takes_its_run_time_to_the_last_bit(seed):
    draw = random.Random(seed)
    compute, communicate, submit = (draw.uniform(0, 1e5) for _ in range(3))
    jobs = [job(submit, compute, communicate, 5, 0, draw.uniform(0, 1000))]
    run = System((3, 4), (1e5, 1e5), jobs).engine(meta_scheduler="naive", mesh_share=0.5)
    assert run.jobs["clusters"][0] == 2
    assert run.jobs["finish_s"][0] == submit + (compute + communicate)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("capacity", [90, 400, 3000])
def test_symmetric_jobs(count, capacity):
    machine = f"clusters:{2 * count}@{capacity}+{2 * count}@{2 * capacity}"
    found = finishes(machine, [((1, 1), 300, 300, 50, 100)] * count)
    np.testing.assert_allclose(found, 50 + max(1, count * 300 / capacity) * 100, rtol=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_two_jobs_on_one_trunk(seed):
    draw = random.Random(seed)
    b, c = draw.uniform(150, 400), draw.uniform(150, 400)
    first, second = ([draw.uniform(0, 100), draw.uniform(1, 100)] for _ in range(2))
    both = (b + c) / 400
    spans = [compute + max(1, both) * talk for compute, talk in (first, second)]
    early, late = sorted(range(2), key=lambda k: spans[k])
    done = spans[early] / spans[late]
    total = sum((first, second)[late])
    expected = [0.0, 0.0]
    expected[early] = spans[early]
    expected[late] = spans[early] + (1 - done) * total
    found = finishes("clusters:4@400+4@4000", [((1, 1), b, b, *first), ((1, 1), c, c, *second)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_random_systems_reach_every_verdict_and_hold_all_invariants():
    verdicts, saturated, stalled = set(), 0, 0
    for seed in range(120):
        system = random_system(seed)
        run = system.engine(debug=seed < 40)
        verdicts |= set(run.decisions.verdict.tolist())
        saturated += run.metrics["highest_saturation"] > 1
        stalled += np.isinf(run.metrics["highest_saturation"])
    assert verdicts == set(range(8))
    assert saturated >= 10
    assert stalled >= 1


@pytest.mark.parametrize(("outage", "finish"), [("stall", 130), ("kill", 60 + 100)])
def test_the_failure_of_a_trunk(outage, finish):
    jobs = [job(0, 0, 100, 3)]
    system = System((2, 2), (1000, 1000), jobs, failures=[(30.0, 4 + 1, 30.0)])
    run = system.engine(meta_scheduler="naive", trunk_outage=outage)
    assert run.jobs["finish_s"][0] == finish
    kinds = [(time, kind, nodes) for time, kind, _, _, nodes in run.events.rows() if kind in ("fail", "repair")]
    assert kinds == [(30, "fail", [5]), (60, "repair", [5])]
    assert run.metrics["restarts"] == (outage == "kill")


def test_work_that_needs_no_trunk_goes_on_while_it_is_down():
    whole = [job(0, 0, 100, 2, home) for home in (0, 1)]
    run = System((2, 2), (1000, 1000), whole, failures=[(30.0, 5, 30.0)]).engine(meta_scheduler="naive")
    assert run.jobs["finish_s"].tolist() == [100, 100]


def test_a_checkpoint_outlives_the_failure_of_a_node():
    """As in the case of the overhead on the clock; a failure after the restart costs the work since the checkpoint."""
    jobs = [job(0, 1500, 0, 1), job(0, 1e6, 0, 1, 1), job(0, 0, 2000, 2, 0, 300, 1), job(1000, 10, 0, 2, 0, 0, 0)]
    parameters = {"agent": "ctmr", "overhead_s": 1800.0, "cp_frac": 100.0, "agent_interval_s": 1000.0}
    system = System((2, 2), (150, 150), jobs, [(3000.0, 0, 0.0)], parameters)
    run = system.engine(meta_scheduler="naive")
    assert run.jobs["work_lost_s"][2] == 200
    assert run.jobs["finish_s"][2] == 3000 + 900 + 1500
    assert run.jobs["checkpoint_overhead_s"][2] == 900 + 900 + 900
