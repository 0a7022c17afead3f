"""Worked cases of failures and prediction (oliner2004), failure streams, checkpoints and node choice (zhang2004)."""

from fractions import Fraction
from itertools import accumulate

import pytest

from tests.examples import Case, both, run_case
from tests.reference.generators import segments, zipf

RING = "torus:1x1x8"


def one(submit, run, size):
    return [(1, submit, run, None, size)]


def jobs(*rows):
    return [(i, submit, run, None, size) for i, (submit, run, size) in enumerate(rows, 1)]


KILLS = [
    Case(
        "transient failure",
        "flat:8",
        one(0, 100, 8),
        {
            1: {
                "starts": [0, 40],
                "start": 40,
                "first_start": 0,
                "finish": 140,
                "wait": 40,
                "response": 140,
                "slowdown": Fraction(7, 5),
                "bounded_slowdown": Fraction(7, 5),
                "restarts": 1,
                "work_lost": 40,
            }
        },
        {"node_seconds_lost": 320, "utilised": Fraction(5, 7), "unused": 0, "lost": Fraction(2, 7)},
        failures=[(40, 3, 0)],
    ),
    Case(
        "requeue by arrival",
        "flat:4",
        jobs((0, 100, 4), (1, 5, 2)),
        {1: {"starts": [0, 50], "finish": 150}, 2: (150, 155, [0, 1])},
        failures=[(40, 3, 10)],
    ),
    Case(
        "repair as release",
        "flat:4",
        jobs((0, 100, 4), (1, 5, 2)),
        {1: {"starts": [0, 50], "finish": 150}, 2: (40, 45, [0, 1])},
        failures=[(40, 3, 10)],
        options={"scheduler": "backfill"},
    ),
    Case(
        "failure at the completion",
        "flat:2",
        jobs((0, 40, 2), (5, 10, 2)),
        {1: {"finish": 40, "restarts": 0}, 2: (40, 50)},
        {"utilised": 1},
        failures=[(40, 0, 0)],
    ),
    Case(
        "two nodes at once",
        "flat:4",
        one(0, 60, 4),
        {1: {"starts": [0, 40], "finish": 100, "restarts": 1, "work_lost": 40}},
        {"node_seconds_lost": 160, "failures": 2, "jobs_hit": 1},
        failures=[(40, 1, 0), (40, 2, 0)],
    ),
    Case(
        "failure of a down node extends",
        "flat:1",
        one(20, 30, 1),
        {1: (100, 130)},
        failures=[(10, 0, 60), (40, 0, 60)],
    ),
    Case(
        "the later end stays",
        "flat:1",
        one(20, 30, 1),
        {1: (70, 100)},
        failures=[(10, 0, 60), (40, 0, 10)],
    ),
]

PREDICTED = jobs((0, 100, 1), (0, 10, 3), (0, 100, 2), (10, 30, 2))
STAYS = {"starts": [10], "finish": 40, "nodes": [1, 2], "restarts": 0}
IS_KILLED = {"boxes": [(6, 7), (6, 7)], "starts": [10, 30], "finish": 60, "restarts": 1, "work_lost": 20}


def balancing(name, failures, a, risk, job):
    options = {"placement": "balancing", "a": a, "partition_risk": risk}
    return Case(f"{name} {a} {risk}", RING, PREDICTED, {4: job}, failures=failures, options=options)


BALANCING = [
    balancing("no failures", [], 0.5, "product", {"starts": [10], "finish": 40, "nodes": [6, 7]}),
    *(
        balancing("7 fails", [(30, 7, 0)], a, risk, job)
        for a, job in ((0.0, IS_KILLED), (0.4, IS_KILLED), (0.5, STAYS), (0.6, STAYS))
        for risk in ("product", "max")
    ),
    balancing("6 and 7 fail", [(30, 6, 0), (30, 7, 0)], 0.4, "product", STAYS),
    balancing("6 and 7 fail", [(30, 6, 0), (30, 7, 0)], 0.4, "max", IS_KILLED),
]


def tie(name, nodes, a, job):
    options = {"placement": "tie-breaking", "a": a}
    return Case(name, RING, one(0, 30, 2), {1: job}, failures=[(20, node, 0) for node in nodes], options=options)


RESTARTED = {"boxes": [(0, 1), (0, 1)], "starts": [0, 20], "finish": 50}
TIES = [
    tie("first box is reported", [1], 1.0, {"boxes": [(2, 3)], "finish": 30}),
    tie("nobody reports", [1], 0.0, RESTARTED),
    tie("all are reported", [1, 3, 5, 7], 1.0, RESTARTED),
    Case(
        "never trades the largest partition",
        RING,
        PREDICTED,
        {4: IS_KILLED},
        failures=[(30, 7, 0)],
        options={"placement": "tie-breaking", "a": 1.0},
    ),
]

PERIODIC = {"checkpoint": "periodic", "checkpoint_interval": 7200, "checkpoint_cost": 300}
EXACT = {"checkpoint": "exact", "checkpoint_cost": 300}
BUCKET = {"checkpoint": "bucket", "checkpoint_cost": 300, "bucket": 3600}
IN_BUCKET = jobs((0, 7200, 2), (3400, 7200, 1))
CHECKPOINTS = [
    Case(
        "less than an interval remains",
        "flat:1",
        one(0, 14399, 1),
        {1: {"finish": 14399, "checkpoints": 0}},
        options=PERIODIC,
    ),
    Case(
        "an interval remains",
        "flat:1",
        one(0, 14400, 1),
        {1: {"finish": 14700, "checkpoint_overhead": 300, "checkpoints": 1}},
        options=PERIODIC,
    ),
    Case(
        "restart from a checkpoint",
        "flat:1",
        one(0, 18000, 1),
        {1: {"starts": [0, 10000], "finish": 20800, "work_lost": 2500, "checkpoint_overhead": 300}},
        failures=[(10000, 0, 0)],
        options=PERIODIC,
    ),
    Case(
        "checkpoint completes before the failure",
        "flat:1",
        one(0, 18000, 1),
        {1: {"starts": [0, 7500], "finish": 18300, "work_lost": 0}},
        failures=[(7500, 0, 0)],
        options=PERIODIC,
    ),
    *(
        Case(
            f"exact: {name}",
            "flat:2",
            one(0, 3600, 1),
            {
                1: {
                    "boxes": [(0,), (1,)],
                    "starts": [0, at],
                    "finish": finish,
                    "work_lost": lost,
                    "checkpoint_overhead": overhead,
                }
            },
            failures=[(at, 0, 120)],
            options=options,
        )
        for name, options, at, finish, lost, overhead in (
            ("none", {}, 1800, 5400, 1800, 0),
            ("saves", EXACT, 1800, 3900, 0, 300),
            ("too young", EXACT, 200, 3800, 200, 0),
        )
    ),
    *(
        Case(
            f"bucket: {name}",
            "flat:4",
            IN_BUCKET,
            {1: {"starts": [0], "finish": first}, 2: {"starts": [3400, 5000], "finish": second, "work_lost": lost}},
            {"work_loss_ratio": loss, "checkpoint_overhead_ratio": overhead},
            failures=[(5000, 2, 0)],
            options=options,
        )
        for name, options, first, second, lost, loss, overhead in (
            ("none", {}, 7200, 12200, 1600, Fraction(1, 9), 0),
            ("all", BUCKET | {"bucket_jobs": "all"}, 7500, 12000, 1100, Fraction(11, 144), Fraction(1, 24)),
            ("long", BUCKET | {"bucket_jobs": "long"}, 7500, 12200, 1600, Fraction(1, 9), Fraction(1, 48)),
            ("biggest", BUCKET | {"bucket_jobs": "biggest"}, 7500, 12200, 1600, Fraction(1, 9), Fraction(1, 48)),
        )
    ),
]

LFF = {"node_choice": "lff", "move_threshold": 1, "move_cost": 300}
EARLY = [(1, 0, 0), (2, 0, 0), (3, 1, 0)]
TWO = jobs((0, 1000, 1), (10, 5000, 1))
NODES = [
    Case(
        "fewest failures first",
        "flat:4",
        jobs((0, 1, 1), (10, 5, 3), (20, 5, 2)),  # failures count from the first submission on
        {2: (10, 15, [1, 2, 3]), 3: (20, 25, [2, 3])},
        failures=EARLY,
        options=LFF,
    ),
    Case(
        "lowest index",
        "flat:4",
        jobs((10, 5, 3), (20, 5, 2)),
        {1: (10, 15, [0, 1, 2]), 2: (20, 25, [0, 1])},
        failures=EARLY,
    ),
    Case(
        "not above the threshold",
        "flat:2",
        TWO,
        {2: {"starts": [10], "finish": 5010, "nodes": [1], "migrations": 0}},
        failures=[(1, 1, 0)],
        options=LFF,
    ),
    Case(
        "moves",
        "flat:2",
        TWO,
        {2: {"starts": [10], "finish": 5310, "nodes": [0], "migrations": 1, "checkpoint_overhead": 300}},
        failures=[(1, 1, 0), (2, 1, 0)],
        options=LFF,
    ),
    Case(
        "a move saves work",
        "flat:2",
        TWO,
        {2: {"starts": [10, 2000], "boxes": [(1,), (0,)], "finish": 6010, "work_lost": 700}},
        failures=[(1, 1, 0), (2, 1, 0), (2000, 0, 0)],
        options=LFF,
    ),
]


@both(KILLS)
def test_failures_kill_and_requeue(case, run):
    run_case(case, run)


@both(BALANCING)
def test_balancing(case, run):
    run_case(case, run)


@both(TIES)
def test_tie_breaking(case, run):
    run_case(case, run)


@both(CHECKPOINTS)
def test_checkpoints(case, run):
    run_case(case, run)


@both(NODES)
def test_node_choice(case, run):
    run_case(case, run)


@pytest.mark.parametrize(
    ("width", "gaps", "times"),
    [
        (2, [1, 5, 4, 2, 3, 8, 7, 6], [1, 6, 10, 12, 15, 23, 30, 36]),
        (4, [5, 1, 2, 4, 8, 3, 6, 7], [5, 6, 8, 12, 20, 23, 29, 36]),
        (8, [5, 4, 2, 1, 3, 6, 7, 8], [5, 9, 11, 12, 15, 21, 28, 36]),
    ],
)
def test_segments_of_gaps(width, gaps, times):
    assert segments([1, 5, 4, 2, 3, 8, 7, 6], width) == gaps
    assert list(accumulate(gaps)) == times


def test_zipf_shares():
    assert zipf(3, 0.99) == pytest.approx([0.543332583067, 0.273555880023, 0.183111536911], abs=5e-13)
