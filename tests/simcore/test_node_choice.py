"""Which free nodes of a flat machine a job gets, read from the event trace."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import canonical
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import engine_run
from tests.strategies import examples, flats, runs

EXAMPLES = examples(60)


@EXAMPLES
@given(
    runs(flats, failures=True),
    st.sampled_from(("fcfs", "backfill", "conservative")),
    st.booleans(),
    st.sampled_from(("none", "exact", "bucket")),
)
def test_lff_takes_nodes_with_the_fewest_failures(case, scheduler, moves, checkpoint):
    """No idle node has failed less often than one that a job gets, at every start."""
    machine, jobs, failures = case
    options = {"node_choice": "lff", "lff_moves": moves, "checkpoint": checkpoint, "checkpoint_cost": 1, "bucket": 20}
    events = engine_run(jobs, machine, failures, scheduler=scheduler, **options).events
    idle, held, count = set(range(int(machine[5:]))), {}, Counter()
    down = set()
    for time, kind, job, nodes in events:
        if kind == "fail":
            count[nodes[0]] += time >= jobs[0][1]  # what is learnt of failures begins with the first submission
            down |= set(nodes)
        elif kind == "repair":
            down -= set(nodes)
        elif kind in ("finish", "kill"):
            idle |= held.pop(job)
        elif kind == "migrate":
            idle |= held[job]
            held[job] = set(nodes)
            idle -= held[job]
        elif kind == "start":
            assert set(nodes) <= idle - down
            idle -= set(nodes)
            held[job] = set(nodes)
            most = max((count[node], node) for node in nodes)
            assert all((count[node], node) > most for node in idle - down)


def one_after_another(count, size=1):
    number = np.arange(count)
    times = np.arange(count) * 10.0
    size = np.full(count, size, np.int64)
    return Workload(number, times, np.full(count, 5.0), np.full(count, np.nan), size, number, name="case")


def nodes_used(count, machine, size=1, failed=(), **parameters):
    time = np.full(len(failed), 1e-3)
    trace = FailureTrace(time, np.array(failed, np.int64), np.full(len(failed), 1e6), name="case")
    run = simulate(
        one_after_another(count, size), failures=trace, machine=machine, scheduler="fcfs", events=True, **parameters
    )
    return [tuple(nodes) for _, kind, _, _, nodes in run.events.rows() if kind == "start"]


def test_round_robin_goes_round_and_round():
    assert nodes_used(5, "flat:4", node_choice="round-robin") == [(0,), (1,), (2,), (3,), (0,)]
    assert nodes_used(4, "flat:5", 2, [1], node_choice="round-robin")[1:] == [(2, 3), (0, 4), (2, 3), (0, 4)]


def test_first_fit_takes_the_lowest():
    assert set(nodes_used(5, "flat:4", 3)) == {(0, 1, 2)}


def test_random_takes_all_nodes_alike_and_depends_on_the_seed():
    used = nodes_used(600, "flat:70", 7, node_choice="random", seed=1)
    count = Counter(node for nodes in used for node in nodes)
    expected = 600 * 7 / 70
    assert sum((count[node] - expected) ** 2 / expected for node in range(70)) < 120  # chi-square of 69: p = 1e-4
    assert used == nodes_used(600, "flat:70", 7, node_choice="random", seed=1)
    assert used != nodes_used(600, "flat:70", 7, node_choice="random", seed=2)
    assert used != nodes_used(600, "flat:70", 7, node_choice="random", seed=1, replicate=1)


@pytest.mark.parametrize(
    ("values", "same"),
    [
        ({"machine": "torus:2x2x4", "failures": "weibull", "node_choice": "lff"}, {}),
        ({"machine": "flat:4", "failures": "none", "node_choice": "random", "seed": 3, "log": "jobs.swf"}, {"seed": 0}),
        ({"machine": "flat:4", "failures": "weibull", "move_cost_s": 3.0, "move_threshold": 5}, {}),
        (
            {"machine": "flat:4", "failures": "weibull", "node_choice": "lff", "lff_moves": False, "move_threshold": 5},
            {},
        ),
    ],
)
def test_inert_parameters(values, same):
    neutral = {"move_threshold": 1, "move_cost_s": 300.0, **same}
    if values["failures"] == "none" or values["machine"].startswith("torus"):
        neutral |= {"node_choice": "first-fit", "lff_moves": True}
    assert canonical(values) == canonical(values | neutral)


def test_a_random_choice_of_nodes_depends_on_the_seed():
    config = {"machine": "flat:4", "failures": "f.csv", "failure_fit": "exact", "node_map": "identity", "seed": 3}
    assert canonical(config | {"log": "jobs.swf"})["seed"] == 0
    assert canonical(config | {"log": "jobs.swf", "node_choice": "random"})["seed"] == 3
