"""Long queues on toruses and sites of jobs that end earlier than they ask for: which reservations get earlier, and
which get other nodes, beside the reference, which makes all of them again whenever a job ends."""

from __future__ import annotations

import random

import pytest

from tests.adapter import engine_run
from tests.reference.site import Need
from tests.test_dominance_against_reference import windows
from tests.test_engine_against_reference import assert_same
from tests.test_site_against_reference import CHOICES
from tests.test_site_against_reference import assert_same as assert_same_on_site

SITES = (
    (((4, 0, 0, 3),), ()),
    (((6, 2, 30, 2), (3, 1, 15, 2)), (((2, 1), False), ((1, 2), False))),
    (((2, 0, 0, 4), (4, 2, 10, 1)), (((4, 0), False), ((2, 1), True))),
)


def queue(rng: random.Random, need) -> list[tuple]:
    """Twelve to thirty jobs within a short time, with the run time and the estimate of each."""
    rows, time = [], 0
    for number in range(1, rng.randint(12, 30) + 1):
        time += rng.choice((0, 0, 0, 1, 3))
        run = rng.choice((1, 2, 3, 5, 8, 12))
        rows.append((number, time, run, run * rng.choice((1, 1, 2, 4, 9)), need(rng)))
    return rows


def failing(rng: random.Random, nodes: int) -> list[tuple[int, int, int]]:
    """Few failures or none: after each one all reservations are made anew."""
    return sorted(
        (rng.randrange(60), rng.randrange(nodes), rng.choice((0, 3, 9))) for _ in range(rng.choice((0, 0, 2)))
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("machine", ["torus:2x2x3", "torus:1x3x5", "torus:2x3x4"])
@pytest.mark.parametrize("first", range(0, 75, 25))
def test_boxes(machine, first):
    nodes = {"torus:2x2x3": 12, "torus:1x3x5": 15, "torus:2x3x4": 24}[machine]
    for seed in range(first, first + 25):
        rng = random.Random(seed)
        sizes = [*rng.sample(range(1, nodes + 1), 4), 1, 2, 4]
        case = machine, queue(rng, lambda rng, sizes=sizes: rng.choice(sizes)), failing(rng, nodes)
        options = {"growth_limit": rng.choice((0, 0, 2)), "start_delay": rng.choice((0, 0, 1))}
        if case[2]:
            options |= {"placement": rng.choice(("mfp", "balancing", "tie-breaking")), "a": 1.0}
        elif rng.random() < 0.5:
            options["event_order"] = "submits-first"
        assert_same(case, scheduler="conservative", estimates="requested", **options)


def need_of(rng: random.Random, site) -> Need:
    """What some nodes of a partition of the site, or any, can give."""
    (rows, partitions) = site
    place = rng.randrange(len(partitions) + 1)
    counts = partitions[place][0] if place < len(partitions) else tuple(row[3] for row in rows)
    row, count = rng.choice([(row, count) for row, count in zip(rows, counts, strict=True) if count])
    each = (rng.randint(1, row[0]), rng.choice((0, row[1])), rng.choice((0, row[2])))
    whole = (place < len(partitions) and partitions[place][1]) or rng.random() < 0.1
    return Need(rng.randint(1, count), each, rng.choice((0, 0, 1)), whole, place)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("node_choice", CHOICES)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nodes_of_a_site(node_choice, first):
    for seed in range(first, first + 20):
        rng = random.Random(f"{node_choice} {seed}")
        site = rng.choice(SITES)
        rows = queue(rng, lambda rng, site=site: need_of(rng, site))
        around = windows(rng) if len(site[0]) == 2 else ()
        case = site, rows, failing(rng, sum(row[3] for row in site[0])), around
        assert_same_on_site(case, scheduler="conservative", node_choice=node_choice, start_delay=rng.choice((0, 0, 1)))


@pytest.mark.parametrize(
    ("machine", "jobs", "starts"),
    [
        pytest.param(
            "torus:1x1x8",
            [(0, 1, 1, 5), (0, 1, 4, 4), (0, 3, 3, 1), (0, 3, 3, 3), (0, 1, 4, 5), (0, 2, 2, 3)],
            [0, 1, 0, 2, 4, 2],
            id="a gain beside its own box, fewer nodes than it needs",
        ),
        pytest.param(
            "torus:1x2x4",
            [(3, 3, 3, 1), (3, 2, 2, 2), (3, 1, 1, 5), (4, 3, 8, 5), (4, 3, 8, 1), (5, 1, 1, 2), (5, 1, 1, 4),
             (8, 1, 7, 1)],
            [3, 3, 5, 6, 6, 9, 9, 9],
            id="a change of a breakpoint that is dropped and made again",
        ),
    ],
)  # fmt: skip
def test_few_jobs(machine, jobs, starts):
    """The smallest of many random queues that tell such rare cases from others."""
    rows = [(number, *job) for number, job in enumerate(jobs, start=1)]
    assert_same((machine, rows, []), scheduler="conservative", estimates="requested", growth_limit=0)
    found = engine_run(rows, machine, scheduler="conservative", estimates="requested", growth_limit=0)
    assert [row["start"] for row in found.jobs.values()] == starts
