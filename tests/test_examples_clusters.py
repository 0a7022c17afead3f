"""Worked cases of co-allocation over clusters (akshitha2011): traffic, saturation, the agent and its overhead."""

from fractions import Fraction

import pytest

from tests.reference.clusters import (
    Candidate,
    Running,
    agent_choice,
    finish_times,
    fits,
    leaving_edges,
    mesh_edges,
    saturations,
    traffic,
)

HALF = Fraction(1, 2)
PAIR = (300, 300)


@pytest.mark.parametrize(
    ("parts", "edges", "all_to_all", "mixed", "mesh"),
    [
        ((1, 1), [1, 1], [300, 300], [187.5, 187.5], [75, 75]),
        ((2, 2), [2, 2], [400, 400], [275, 275], [150, 150]),
        ((3, 1), [2, 2], [300, 300], [225, 225], [150, 150]),
        ((4, 5), [4, 4], [750, 750], [525, 525], [300, 300]),
        ((3, 3, 3), [3, 6, 3], [675, 675, 675], [450, 562.5, 450], [225, 450, 225]),
        ((4,), [0], [0], [0], [0]),
    ],
)
def test_traffic_of_one_job(parts, edges, all_to_all, mixed, mesh):
    assert leaving_edges(parts) == edges
    assert [traffic(parts, 300, m) for m in (0, HALF, 1)] == [all_to_all, mixed, mesh]


def test_edges_between_four_and_five():
    assert sorted(edge for edge in mesh_edges(9) if edge[0] <= 3 < edge[1]) == [(1, 4), (2, 5), (3, 4), (3, 6)]


@pytest.mark.parametrize(("trunks", "finish"), [((400, 400), 150), ((200, 200), 200), ((400, 150), 250)])
def test_one_job_alone(trunks, finish):
    assert finish_times([(Running(50, 100, PAIR), 0)], trunks) == [finish]


@pytest.mark.parametrize(
    ("first", "second", "finishes"),
    [
        ((0, 100, 0), (0, 200, 0), [150, 250]),
        ((0, 100, 0), (0, 200, 30), [135, 265]),
        ((50, 100, 0), (50, 100, 0), [200, 200]),
    ],
)
def test_two_jobs_on_one_pair_of_trunks(first, second, finishes):
    jobs = [(Running(compute, communicate, PAIR), start) for compute, communicate, start in (first, second)]
    assert saturations([job for job, _ in jobs], (400, 400)) == [Fraction(3, 2)] * 2
    assert finish_times(jobs, (400, 400)) == finishes


@pytest.mark.parametrize(("stated", "starts"), [(110, False), (90, True)])
def test_bandwidth_aware_co_allocation(stated, starts):
    demands = [traffic((1, 1), b, 0) for b in (300, stated)]
    assert fits(demands, (400, 400)) is starts


def running_jobs():
    rows = [
        ("P", (2, 2), 300, True, 10000, 17500),
        ("Q", (1, 1), 300, False, 0, 90000),
        ("R", (1, 1), 100, True, 20000, 20000),
    ]
    return [Candidate(n, p, under, Running(tp, tc, traffic(p, b, 0))) for n, p, b, under, tp, tc in rows]


def test_what_the_agent_sees():
    jobs = running_jobs()
    assert [job.running.demands[0] for job in jobs] == [400, 300, 100]
    shares = saturations([job.running for job in jobs], (500, 400))
    assert shares == [Fraction(8, 5), 2]
    assert [job.running.remaining(shares) for job in jobs] == [45000, 180000, 60000]


@pytest.mark.parametrize(
    ("overhead", "waiting", "candidate"),
    [
        (1799, [1], "P"),
        (1799, [2], "P"),
        (1800, [1], "R"),
        (1800, [2], None),
        (2399, [1], "R"),
        (2400, [1], None),
        (1740, [3], None),
        (1740, [], None),
    ],
)
def test_candidate_of_the_agent(overhead, waiting, candidate):
    assert agent_choice(running_jobs(), (500, 400), overhead, waiting, Fraction(4, 100)) == (1, candidate)


def test_the_re_evaluation_stops():
    _, second, third = running_jobs()
    assert saturations([second.running, third.running], (500, 400)) == [Fraction(4, 5), 1]
    assert agent_choice([second, third], (500, 400), 1740, [1], Fraction(4, 100)) == (None, None)


def test_the_observed_bandwidth_counts_after_the_first_offence():
    observed = traffic((2, 2), 300, 0)
    others = [traffic((1, 1), b, 0) for b in (300, 50)]
    assert sum(demand[1] for demand in (observed, *others)) == 750
    assert not fits([observed, *others], (500, 400))
    assert fits([traffic((2, 2), 100 / 4, 0), *others], (500, 400))


def test_overhead_on_the_clock():
    trunks, demands = (150, 150), traffic((1, 1), 300, 0)
    assert finish_times([(Running(0, 2000, demands), 0)], trunks) == [4000]
    job = Running(0, 2000, demands)
    job.done = 1000 / job.seconds(saturations([job], trunks))
    assert job.done * 2000 == 500
    restarted = Running(0, 2000, (0, 0), job.done)
    begin = 1000 + Fraction(1800, 2) + Fraction(1800, 2)
    assert finish_times([(restarted, begin)], trunks) == [4300]
