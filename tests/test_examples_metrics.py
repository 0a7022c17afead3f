"""Worked cases of metrics: waits, slowdowns, and where the machine's capacity went."""

from fractions import Fraction

import numpy as np
import pytest
from faultsweep.simcore.engine.metrics import _statistics

from tests.examples import Case, both, run_case
from tests.reference.replay import History, Stay

THREE = [(1, 0, 10, None, 3), (2, 2, 10, None, 2), (3, 4, 4, None, 1)]
RESTART = [(1, 0, 100, None, 2)]


def job(wait, response, slowdown, bounded):
    return {"wait": wait, "response": response, "slowdown": slowdown, "bounded_slowdown": bounded}


CASES = [
    Case(
        "three jobs",
        "flat:4",
        THREE,
        {1: job(0, 10, 1, 1), 2: job(8, 18, Fraction(9, 5), Fraction(9, 5)), 3: job(6, 10, Fraction(5, 2), 1)},
        {
            "mean_wait": Fraction(14, 3),
            "mean_response": Fraction(38, 3),
            "mean_slowdown": Fraction(53, 30),
            "mean_bounded_slowdown": Fraction(19, 15),
            "utilised": Fraction(27, 40),
            "unused": Fraction(9, 40),
            "lost": Fraction(1, 10),
        },
    ),
    Case(
        "three jobs, backfilled",
        "flat:4",
        THREE,
        {1: {"wait": 0}, 2: {"wait": 8}, 3: {"wait": 0, "start": 4, "finish": 8}},
        {"utilised": Fraction(27, 40), "unused": Fraction(11, 40), "lost": Fraction(1, 20)},
        options={"scheduler": "backfill"},
    ),
    Case(
        "restart on the whole machine",
        "flat:2",
        RESTART,
        {
            1: {
                "starts": [0, 50],
                "finish": 150,
                "wait": 50,
                "first_start": 0,
                "response": 150,
                "bounded_slowdown": Fraction(3, 2),
                "work_lost": 40,
            }
        },
        {
            "node_seconds_lost": 80,
            "work_loss_ratio": Fraction(2, 5),
            "utilised": Fraction(2, 3),
            "unused": 0,
            "lost": Fraction(1, 3),
        },
        failures=[(40, 0, 10)],
    ),
    Case(
        "restart with a spare",
        "flat:3",
        RESTART,
        {1: {"start": 40, "nodes": [1, 2], "finish": 140, "wait": 40}},
        {"utilised": Fraction(10, 21), "unused": Fraction(13, 42), "lost": Fraction(3, 14)},
        failures=[(40, 0, 10)],
    ),
    Case(
        "growth is lost capacity",
        "torus:2x2x4",
        [(1, 0, 10, None, 12), (2, 0, 10, None, 3)],
        {2: {"size": 4}},
        {"utilised": Fraction(15, 16), "unused": 0, "lost": Fraction(1, 16)},
    ),
    Case(
        "rounding is lost capacity",
        "torus:2x2x4",
        [(1, 0, 10, None, 5)],
        {1: {"size": 6}},
        {"utilised": Fraction(5, 16), "unused": Fraction(5, 8), "lost": Fraction(1, 16)},
    ),
]
SLOWDOWNS = [(1, 4, 5, 1), (2, 18, 10, 2), (20, 10, Fraction(3, 2), Fraction(3, 2)), (5, 5, 2, 1), (1, 99, 100, 10)]


@both(CASES)
def test_metrics(case, run):
    run_case(case, run)


@pytest.mark.parametrize(("seconds", "wait", "slowdown", "bounded"), SLOWDOWNS)
def test_slowdowns(seconds, wait, slowdown, bounded):
    stay = Stay(0, wait, wait, wait + seconds, completed=True)
    history = History(1, 0, seconds, 1, [stay])
    assert (history.wait, history.slowdown, history.bounded_slowdown(10)) == (wait, slowdown, bounded)


@both(
    [
        Case(
            f"{seconds} s after {wait} s",
            "flat:1",
            [(1, 0, wait, None, 1), (2, 0, seconds, None, 1)],
            {2: {"slowdown": slowdown, "bounded_slowdown": bounded}},
        )
        for seconds, wait, slowdown, bounded in SLOWDOWNS
    ]
)
def test_slowdowns_of_a_run(case, run):
    run_case(case, run)


@pytest.mark.parametrize("seed", range(4))
def test_statistics_of_jobs_are_those_of_numpy_to_the_bit(seed):
    random = np.random.default_rng(seed)
    for count in [*range(1, 60), 999, 1000, 1001, 4096, 10_007]:
        values = random.lognormal(5.0, 3.0, count).round(int(random.integers(0, 12)))
        values[-1:] = np.inf if count % 7 == 0 else values[-1:]
        with np.errstate(invalid="ignore"):  # between two infinite values
            expected = [np.mean(values), np.median(values), *np.percentile(values, (90, 99)), np.max(values)]
            assert np.array_equal(_statistics(values), expected, equal_nan=True), count
