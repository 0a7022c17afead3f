"""The worked cases of co-allocation, exactly, in the engine."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.decisions import Decisions
from faultsweep.simcore.engine.clusters.loop import advance_clusters

from tests.clusters import System, job, running_state


def demands(parts, mesh_share):
    """What a job of b = 300 puts on the trunks if free nodes force these parts: all are larger than any cluster."""
    sizes = [part + 1 for part in parts]
    blockers = [job(0, 0, 5000, 1, home, 0) for home in range(len(parts))]
    system = System(sizes, [100_000] * len(parts), [*blockers, job(0, 0, 100, sum(parts))])
    run = system.engine(meta_scheduler="naive", mesh_share=mesh_share)
    start = next(nodes for _, kind, k, _, nodes in run.events.rows() if kind == "start" and k == len(parts))
    first = np.cumsum(sizes) - sizes
    held = [sum(first[c] <= node < first[c] + sizes[c] for node in start) for c in range(len(sizes))]
    return held, run.metrics["trunk_utilisation"] * 5000 * 100_000 * len(parts) / 100


@pytest.mark.parametrize(
    ("parts", "mixed", "all_to_all", "mesh"),
    [
        ((1, 1), 375, 600, 150),
        ((2, 2), 550, 800, 300),
        ((3, 1), 450, 600, 300),
        ((4, 5), 1050, 1500, 600),
        ((3, 3, 3), 1462.5, 2025, 900),
    ],
)
def test_traffic_on_all_trunks_together(parts, mixed, all_to_all, mesh):
    found = [demands(parts, share) for share in (0.5, 0.0, 1.0)]
    assert [held for held, _ in found] == [list(parts)] * 3
    np.testing.assert_allclose([traffic for _, traffic in found], [mixed, all_to_all, mesh], rtol=1e-12)


@pytest.mark.parametrize(("trunks", "finish"), [((400, 400), 150), ((200, 200), 200), ((400, 150), 250)])
def test_one_job_alone(trunks, finish):
    run = System((1, 1), trunks, [job(0, 50, 100, 2)]).engine(meta_scheduler="naive")
    assert run.jobs["finish_s"].tolist() == [finish]


# Two jobs of four nodes as 3 + 1 and 1 + 3 put 300 each on the trunk between them; a third is used by one of them.
THREE = ((3, 3, 3), (400, 400, 400))


@pytest.mark.parametrize(
    ("first", "second", "finishes"),
    [
        ((0, 0, 100), (0, 0, 200), [150, 250]),
        ((0, 0, 100), (30, 0, 200), [135, 265]),
        ((0, 50, 100), (0, 50, 100), [200, 200]),
    ],
)
def test_two_jobs_on_one_trunk(first, second, finishes):
    run = System(*THREE, [job(*first, 4), job(*second, 4)]).engine(meta_scheduler="naive")
    assert run.jobs["finish_s"].tolist() == finishes
    assert run.metrics["highest_saturation"] == 1.5


@pytest.mark.parametrize(("stated", "starts"), [(110, False), (100, True), (90, True)])
def test_bandwidth_aware_against_naive(stated, starts):
    jobs = [job(0, 0, 100, 4, stated=300), job(0, 0, 100, 4, stated=stated)]
    aware = System(*THREE, jobs).engine(meta_scheduler="bandwidth-aware")
    assert (aware.jobs["start_s"][1] == 0) == starts
    assert aware.metrics["highest_saturation"] == (1.5 if starts else 0.75)
    naive = System(*THREE, jobs).engine(meta_scheduler="naive")
    assert naive.jobs["start_s"].tolist() == [0, 0]


def test_a_job_that_states_nothing_is_not_co_allocated():
    jobs = [job(0, 0, 10, 2), job(0, 0, 10, 1, 1), job(0, 0, 10, 2, stated=None)]
    assert System((3, 2), (400, 400), jobs).engine().jobs["start_s"].tolist() == [0, 0, 10]
    assert System((3, 2), (400, 400), jobs).engine(meta_scheduler="naive").jobs["start_s"].tolist() == [0, 0, 0]


PQR = {  # parts, true bandwidth, stated, T_P, T_C
    "P": ((2, 2), 300, 100, 10000, 17500),
    "Q": ((1, 1), 300, 300, 0, 90000),
    "R": ((1, 1), 100, 50, 20000, 20000),
}


def activation(overhead, waiting, jobs="PQR", offences=()):
    """One activation of the agent with jobs that have just started over both clusters, all other nodes being busy."""
    rows = [PQR[name] for name in jobs]
    s = running_state("clusters:4@500+4@400", rows, waiting, agent="ctmr", overhead_s=float(overhead))
    s.job.offences[: len(rows)] = [name in offences for name in jobs]
    s.wake = 0.0
    advance_clusters(s, 1)
    decisions = Decisions.of(s.decisions[: s.decisions_end], np.arange(s.job.submit.shape[0]))
    return s, decisions, [jobs[job] for job in np.flatnonzero(s.job.phase == cs.SAVES)]


@pytest.mark.parametrize(
    ("overhead", "waiting", "candidate"),
    [
        (1799, [1], ["P"]),
        (1799, [2], ["P"]),
        (1800, [1], ["R"]),
        (1800, [2], []),
        (2399, [1], ["R"]),
        (2400, [1], []),
        (1740, [3], []),
        (1740, [], []),
    ],
)
def test_one_activation_of_the_agent(overhead, waiting, candidate):
    _, decisions, taken = activation(overhead, waiting)
    assert taken == candidate
    assert (decisions.trunk[0], decisions.saturation[0], decisions.job_id[0]) == (1, 2.0, -1)
    examined = decisions.job_id[1:].tolist()
    assert examined[: 1 if candidate == ["P"] else 3] == [0, 1, 2][: 1 if candidate == ["P"] else 3]
    np.testing.assert_allclose(decisions.overhead_limit_s[1], 1800, rtol=1e-12)


def test_the_re_evaluation_stops():
    s, decisions, taken = activation(1740, [1])
    assert taken == ["P"]
    assert decisions.verdict.tolist() == [cs.SATURATED_TRUNK, cs.TAKEN_FIRST, cs.NOT_SATURATED]
    assert s.trunk_demand.tolist() == [400, 400]
    assert s.job.saturation[1:3].tolist() == [1, 1]
    assert s.timer_time[0] == 870


def test_first_and_second_offence():
    s, _, _ = activation(1740, [1])
    assert s.job.stated[0] == 300
    assert (s.job.offences[0], s.job.underestimated[0]) == (1, 1)
    again, decisions, taken = activation(1740, [1], offences="P")
    assert taken == ["P"]
    assert decisions.verdict[1] == cs.TAKEN_AGAIN
    assert again.job.offences[0] == 2


def test_overhead_on_the_clock():
    jobs = [
        job(0, 1500, 0, 1, 0, 0),
        job(0, 1e6, 0, 1, 1, 0),
        job(0, 0, 2000, 2, 0, 300, 1),
        job(1000, 10, 0, 2, 0, 0, 0),
    ]
    parameters = {"agent": "ctmr", "overhead_s": 1800.0, "cp_frac": 100.0, "agent_interval_s": 1000.0}
    run = System((2, 2), (150, 150), jobs).engine(meta_scheduler="naive", **parameters)
    rows = [(time, kind, nodes) for time, kind, k, _, nodes in run.events.rows() if k == 2]
    assert rows == [
        (0, "arrive", []),
        (0, "start", [1, 3]),
        (1900, "checkpoint", []),
        (1900, "requeue", []),
        (1900, "start", [0, 1]),
        (4300, "finish", []),
    ]
    assert run.jobs["checkpoint_overhead_s"][2] == 1800
    undisturbed = System((2, 2), (150, 150), jobs[:3]).engine(meta_scheduler="naive")
    assert undisturbed.jobs["finish_s"][2] == 4000
