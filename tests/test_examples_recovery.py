"""Worked cases of job recovery (tang2010)."""

from fractions import Fraction

import pytest

from tests.examples import Case, both, run_case
from tests.reference.generators import credits

DELAY = 200


def recovery(name, machine, options, down, first, others, response, slowdown, jobs=5, **more):
    """Job 1 (of 100 s) with a recovery option and short jobs behind it; node 0 fails at 50."""
    rows = [(1, 0, 100, None, 2, options), *((i, i - 1, 10, None, 2, "B") for i in range(2, jobs + 1))]
    expect = {1: first} | {i: {"finish": finish} for i, finish in enumerate(others, 2)}
    metrics = {} if response is None else {"mean_response": response, "failure_slowdown": slowdown}
    given = {"recovery": True, "manual_delay": lambda job, restarts: DELAY} | more
    return Case(f"{name} {options}", machine, rows, expect, metrics, [(50, 0, down)], given)


HEAD, REAR = [160, 170, 180, 190], [60, 70, 80, 90]
OPTIONS = [
    recovery("at once", "flat:2", "A", 0, (250, 350), REAR, 128, Fraction(5, 2)),
    recovery("at once", "flat:2", "B", 0, (90, 190), REAR, 96, Fraction(9, 10)),
    recovery("at once", "flat:2", "C", 0, (50, 150), HEAD, 168, Fraction(1, 2)),
    recovery("at once", "flat:2", "D", 0, (70, 170), [60, 70, 180, 190], 132, Fraction(7, 10)),
    recovery("at once", "flat:2", "E", 0, (50, 150), HEAD, 168, Fraction(1, 2)),
]
REPAIR = [
    recovery("spare", "flat:3", "C", 30, (80, 180, [0, 1]), [190, 200, 210, 220], 198, Fraction(4, 5)),
    recovery("spare", "flat:3", "E", 30, (50, 150, [1, 2]), HEAD, 168, Fraction(1, 2)),
    recovery("spare", "flat:3", "D", 30, (70, 170, [1, 2]), [60, 70, 180, 190], 132, Fraction(7, 10)),
    recovery("spare", "flat:3", "B", 30, (90, 190, [0, 1]), REAR, 96, Fraction(9, 10)),
    recovery("no spare", "flat:2", "C", 30, (80, 180), [190, 200, 210, 220], 198, Fraction(4, 5)),
    recovery("no spare", "flat:2", "E", 30, (80, 180), [190, 200, 210, 220], 198, Fraction(4, 5)),
    recovery("no spare", "flat:2", "B", 30, (120, 220), [90, 100, 110, 120], 126, Fraction(6, 5)),
    recovery("no spare", "flat:2", "D", 30, (100, 200), [90, 100, 210, 220], 162, 1),
]
ODD = [recovery("odd queue", "flat:2", "D", 0, (60, 160), [60, 170, 180], None, None, jobs=4)]
KEY = [
    Case(
        f"key of {option}",
        "flat:2",
        [(1, 0, 100, None, 2, option), (2, 1, 10, None, 2, "A"), (3, 55, 10, None, 2, "A")],
        expect,
        failures=[(50, 0, 0)],
        options={"recovery": True},
    )
    for option, expect in (
        ("B", {2: (50, 60), 1: (60, 160), 3: (160, 170)}),
        ("E", {1: (50, 150), 2: (150, 160), 3: (160, 170)}),
    )
]
HOLD = [
    Case(
        f"hold {hold}",
        "flat:2",
        [(1, 0, 100, None, 2, "C"), (2, 1, 10, None, 1, "A")],
        expect,
        failures=[(50, 0, 30)],
        options={"recovery": True, "hold": hold},
    )
    for hold, expect in ((True, {1: (80, 180), 2: (180, 190)}), (False, {1: (80, 180), 2: (50, 60, [1])}))
]


@both(OPTIONS)
def test_options(case, run):
    run_case(case, run)


@both(REPAIR)
def test_repair_times(case, run):
    run_case(case, run)


@both(ODD + KEY + HOLD)
def test_place_in_the_queue_and_held_nodes(case, run):
    run_case(case, run)


@pytest.mark.parametrize(
    ("option", "at_zero", "at_eight"),
    [
        ("A", ("A", 16), ("A", 24)),
        ("B", ("B", 8), ("B", 16)),
        ("C", ("C", 0), ("C", 8)),
        ("D", ("A", 16), ("D", 0)),
        ("E", ("A", 16), ("A", 24)),
    ],
)
def test_credits(option, at_zero, at_eight):
    node_hours = Fraction(7200 * 4, 3600)
    assert credits(option, 0, node_hours) == at_zero
    assert credits(option, 8, node_hours) == at_eight
