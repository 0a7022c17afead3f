"""Worked cases of scheduling without failures (krevat2003): placement, growth, backfilling, migration, event order."""

from fractions import Fraction

from tests.examples import Case, both, box, run_case
from tests.reference.machines import machine

RING = "torus:1x1x8"


def jobs(*rows):
    """Rows (submit, run, size) or (submit, run, estimate, size), numbered from 1."""
    return [(i, *row[:2], row[2] if len(row) == 4 else None, row[-1]) for i, row in enumerate(rows, 1)]


SEARCH = [
    Case(
        "best MFP, not first box",
        "torus:2x2x4",
        jobs((0, 100, 4), (1, 100, 2), (2, 100, 2)),
        {1: (0, 100, "2,2,1@0,0,0"), 2: (1, 101, "1,2,1@0,0,1"), 3: (2, 102, "1,2,1@1,0,1")},
    ),
    Case(
        "best fit beats first fit",
        RING,
        jobs((0, 100, 1), (0, 10, 3), (0, 100, 2), (10, 50, 1), (20, 5, 3)),
        {1: (0, 100, [0]), 2: (0, 10, [1, 2, 3]), 3: (0, 100, [4, 5]), 4: (10, 60, [6]), 5: (20, 25, [1, 2, 3])},
    ),
    Case(
        "wrap-around and tie",
        RING,
        jobs((0, 10, 3), (0, 100, 2), (10, 50, 5)),
        {1: (0, 10, [0, 1, 2]), 2: (0, 100, [3, 4]), 3: (10, 60, [5, 6, 7, 0, 1])},
    ),
    Case(
        "rounding at arrival and growth",
        "torus:2x2x4",
        jobs((0, 10, 12), (0, 10, 3), (1, 10, 5)),
        {1: (0, 10, "2,2,3@0,0,0"), 2: (0, 10, "2,2,1@0,0,3"), 3: (10, 20, "1,2,3@0,0,0")},
        {"utilised": Fraction(5, 8), "unused": Fraction(5, 16), "lost": Fraction(1, 16)},
    ),
]
GROWTH = jobs((0, 20, 12), (1, 10, 16), (2, 10, 3))
SHAPE = jobs((0, 20, 2), (0, 100, 2), (0, 20, 1), (0, 100, 2), (1, 100, 3), (2, 50, 1), (2, 18, 1))
BACKFILL = [
    Case(
        "growth by one node",
        "torus:2x2x4",
        GROWTH,
        {2: (20, 30), 3: (2, 12, "2,2,1@0,0,3")},
        options={"scheduler": "backfill", "growth_limit": 1},
    ),
    Case(
        "no growth",
        "torus:2x2x4",
        GROWTH,
        {2: (20, 30), 3: (30, 40, "1,1,3@0,0,0")},
        options={"scheduler": "backfill", "growth_limit": 0},
    ),
    Case(
        "refused for shape",
        RING,
        SHAPE,
        {1: (0, 20, [0, 1]), 2: (0, 100, [2, 3]), 3: (0, 20, [4]), 4: (0, 100, [5, 6])}
        | {5: (20, 120, [7, 0, 1]), 6: (20, 70, [4]), 7: (2, 20, [7])},
        options={"scheduler": "backfill"},
    ),
    Case(
        "not refused for count",
        "flat:8",
        SHAPE,
        {1: (0, 20, [0, 1]), 2: (0, 100, [2, 3]), 3: (0, 20, [4]), 4: (0, 100, [5, 6])}
        | {5: (20, 120, [0, 1, 4]), 6: (2, 52, [7]), 7: (52, 70, [7])},
        options={"scheduler": "backfill"},
    ),
    Case(
        "box that keeps the reservation",
        RING,
        jobs((0, 100, 2), (0, 20, 3), (1, 30, 4), (2, 50, 2)),
        {1: (0, 100, [0, 1]), 2: (0, 20, [2, 3, 4]), 3: (20, 50, [2, 3, 4, 5]), 4: (2, 52, [6, 7])},
        options={"scheduler": "backfill"},
    ),
    Case(
        "box without a reservation",
        RING,
        [(1, 0, 100, None, 2), (2, 0, 20, None, 3), (4, 2, 50, None, 2)],
        {4: (2, 52, [5, 6])},
        options={"scheduler": "backfill"},
    ),
    Case(
        "weak",
        "flat:4",
        jobs((0, 10, 3), (1, 10, 2), (2, 10, 4), (3, 30, 1)),
        {1: (0, 10), 2: (10, 20), 3: (33, 43), 4: (3, 33, [3])},
        options={"scheduler": "backfill"},
    ),
    Case(
        "conservative",
        "flat:4",
        jobs((0, 10, 3), (1, 10, 2), (2, 10, 4), (3, 30, 1)),
        {1: (0, 10), 2: (10, 20), 3: (20, 30), 4: (30, 60, [0])},
        options={"scheduler": "conservative"},
    ),
    Case(
        "overrun",
        "flat:4",
        jobs((0, 30, 10, 3), (5, 10, 10, 4), (6, 4, 4, 1), (15, 5, 5, 1)),
        {1: (0, 30), 2: (30, 40), 3: (6, 10), 4: (40, 45)},
        options={"scheduler": "backfill", "estimates": "requested"},
    ),
]
MIGRATE = jobs((0, 100, 3), (0, 10, 1), (0, 100, 2), (5, 20, 3))
LONG_RING = jobs((0, 100, 10), (0, 10, 1), (0, 100, 8), (0, 10, 1), (10, 20, 2))
LONGER_RING = jobs((0, 100, 10), (0, 10, 1), (0, 100, 9), (0, 10, 1), (10, 20, 2))


def counts(attempted, successful):
    return {"migrations_attempted": attempted, "migrations_successful": successful}


MIGRATION = [
    Case("never migrate", RING, MIGRATE, {4: (100, 120)}, options={"scheduler": "fcfs"}),
    *(
        Case(
            f"{scheduler} success",
            RING,
            MIGRATE,
            {4: (10, 30, [5, 6, 7])},
            counts(1, 1),
            options={"scheduler": scheduler},
        )
        for scheduler in ("migration", "backfill+migration")
    ),
    Case(
        "a tenth free is enough",
        "torus:1x1x20",
        LONG_RING,
        {3: (0, 100, tuple(range(10, 18))), 5: (10, 30, [18, 19])},
        counts(1, 1),
        options={"scheduler": "migration"},
    ),
    Case(
        "less than a tenth free",
        "torus:1x1x21",
        LONGER_RING,
        {5: (100, 120, [0, 1])},
        counts(0, 0),
        options={"scheduler": "migration"},
    ),
    Case(
        "a job that keeps its place",
        "torus:2x2x3",
        jobs((0, 100, 3), (0, 100, 4), (0, 10, 2), (10, 10, 4)),
        {
            1: {"nodes": "1,1,3@0,0,0", "migrations": 0},
            2: {"nodes": "1,2,2@1,0,0", "migrations": 0},
            3: {"nodes": "1,2,1@1,0,2"},
            4: (100, 110, "2,2,1@0,0,0"),
        },
        counts(1, 0),
        options={"scheduler": "migration"},
    ),
]
ORDER_A = jobs((0, 10, 10, 2), (0, 10, 50, 2), (1, 20, 20, 4), (2, 30, 30, 2))
ORDER_B = jobs((0, 10, 10, 2), (0, 10, 50, 2), (1, 20, 20, 4), (10, 30, 30, 2))
ORDER = [
    Case(
        f"{name} {order}",
        "flat:4",
        rows,
        {3: {"start": third}, 4: {"start": fourth}},
        options={"scheduler": "backfill", "estimates": "requested", "event_order": order},
    )
    for name, rows, order, third, fourth in (
        ("a", ORDER_A, "instant", 10, 30),
        ("a", ORDER_A, "ends-first", 40, 10),
        ("a", ORDER_A, "submits-first", 40, 10),
        ("b", ORDER_B, "instant", 10, 30),
        ("b", ORDER_B, "ends-first", 10, 30),
        ("b", ORDER_B, "submits-first", 40, 10),
    )
]


@both(SEARCH)
def test_search_order_and_best_remaining_partition(case, run):
    run_case(case, run)


@both(BACKFILL)
def test_backfilling(case, run):
    run_case(case, run)


@both(MIGRATION)
def test_migration(case, run):
    run_case(case, run)


@both(ORDER)
def test_event_orders(case, run):
    run_case(case, run)


def test_possible_sizes_and_remaining_partitions_of_the_first_case():
    torus = machine("torus:2x2x4")
    assert torus.possible_sizes == [1, 2, 3, 4, 6, 8, 12, 16]

    def left(*boxes):
        return torus.mfp(set().union(*(box("torus:2x2x4", b) for b in boxes)))

    assert [left(b) for b in ("2,2,1@0,0,0", "1,1,4@0,0,0", "1,2,2@0,0,0", "2,1,2@0,0,0")] == [12, 8, 8, 8]
    first, second = "2,2,1@0,0,0", "1,2,1@0,0,1"
    assert left(first, second) == 8
    taken = set(box("torus:2x2x4", first))
    along_z = [torus.box((1, 1, 2), (x, y, z)) for x in range(2) for y in range(2) for z in range(4)]
    assert {torus.mfp(taken | b) for b in along_z if not taken & b} == {6}
    assert left(first, second, "1,2,1@1,0,1") == 8
    assert left(first, second, "1,2,1@0,0,2") == 6
