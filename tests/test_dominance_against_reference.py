"""Crowds of jobs that need nearly the same: what bounds the reservation of one of them must not bound another one.

A job begins no earlier than one ahead of it that needs no more, for no longer. The jobs of a crowd differ in two
respects of what they need, so that each respect decides in some crowds.
"""

from __future__ import annotations

import random

import pytest

from tests.reference.site import Need
from tests.test_engine_against_reference import assert_same
from tests.test_site_against_reference import assert_same as assert_same_on_site
from tests.test_site_against_reference import engine

SCHEDULERS = ("conservative", "top-jobs")
SITE = (((6, 2, 30, 2), (3, 1, 15, 2)), (((2, 1), False), ((1, 2), False)))


def crowd(rng: random.Random, needs) -> list[tuple]:
    """Twenty jobs within a short time, with the run time and the estimate of each."""
    rows = []
    for number in range(1, 21):
        run = rng.choice((1, 2, 3, 5, 8, 12))
        rows.append((number, rng.choice((0, 0, 1, 2, 6)), run, run * rng.choice((1, 1, 2, 4)), needs(rng)))
    return sorted(rows, key=lambda row: row[1])


def failing(rng: random.Random, nodes: int) -> list[tuple[int, int, int]]:
    return sorted((rng.randrange(40), rng.randrange(nodes), rng.choice((0, 1, 5))) for _ in range(rng.randrange(16)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("machine", ["flat:6", "torus:2x2x3"])
@pytest.mark.parametrize("first", range(0, 50, 25))
def test_jobs_of_few_sizes_that_start_again(machine, scheduler, first):
    for seed in range(first, first + 25):
        rng = random.Random(seed)
        rows = crowd(rng, lambda rng: rng.choice((1, 2, 3, 4, 6)))
        costs = {"restart_cost": rng.choice((0, 3, 7)), "start_delay": rng.choice((0, 0, 1))}
        case = machine, rows, failing(rng, 6)
        options = {"top_jobs": rng.choice((2, 5, 100))} if scheduler == "top-jobs" else {}
        assert_same(case, scheduler=scheduler, estimates="requested", **costs, **options)


def windows(rng: random.Random) -> tuple:
    """Advance reservations (begin, end, nodes of each row) of some nodes: none, one or two."""
    begins = [rng.choice((0, 3, 7, 12.5)) for _ in range(rng.choice((0, 0, 1, 2)))]
    return tuple((begin, begin + rng.choice((1, 6, 20)), rng.choice(((1, 0), (0, 1), (2, 1)))) for begin in begins)


RESPECTS = {
    "chunks": (1, 2, 3),
    "cores": (2, 3, 1),
    "gpus": (0, 1, 2),
    "memory": (0, 5, 15),
    "per_node": (0, 1, 2),
    "whole": (False, True),
    "partition": (0, 1, 2),
}


def similar(rng: random.Random, alike: dict, respects: list[str]) -> Need:
    """What all need but for some respects, which differ; no more than there is."""
    given = alike | {name: rng.choice(RESPECTS[name]) for name in respects}
    gpus = min(given["gpus"], 1 if given["chunks"] > 2 else 2)
    chunks = min(given["chunks"], 2 if gpus == 2 else 3)
    partition = 2 if gpus == 2 or given["per_node"] == 1 else given["partition"]
    return Need(chunks, (given["cores"], gpus, given["memory"]), given["per_node"], given["whole"], partition)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("first", range(0, 100, 25))
def test_similar_demands_on_a_site(scheduler, first):
    for seed in range(first, first + 25):
        rng = random.Random(seed)
        plain = rng.random() < 0.5
        alike = {name: values[0] if plain else rng.choice(values) for name, values in RESPECTS.items()}
        respects = rng.choice((rng.sample(sorted(RESPECTS), 2), ["chunks", "cores"]))
        rows = crowd(rng, lambda rng, alike=alike, respects=respects: similar(rng, alike, respects))
        case = SITE, rows, failing(rng, 4), windows(rng)
        options = {"top_jobs": rng.choice((2, 5, 100))} if scheduler == "top-jobs" else {}
        assert_same_on_site(case, scheduler=scheduler, estimates="requested", **options)


@pytest.mark.parametrize(
    ("runs", "ahead", "behind"),
    [
        (Need(2, (1, 0, 0), per_node=1), Need(1, (3, 0, 0)), Need(2, (2, 0, 0))),
        (Need(1, (3, 0, 0)), Need(2, (1, 0, 0), per_node=1), Need(2, (1, 0, 0))),
    ],
    ids=["larger chunks", "fewer of a node"],
)
def test_a_job_overtakes_one_that_needs_another_shape(runs, ahead, behind):
    """Two nodes of three cores: what runs leaves room for the last job, and none for the one ahead of it."""
    rows = [(1, 0, 20, 20, runs), (2, 1, 5, 5, ahead), (3, 1, 5, 5, behind)]
    case, options = ((((3, 0, 0, 2),), ()), rows, [], ()), {"scheduler": "top-jobs", "top_jobs": 9}
    assert_same_on_site(case, estimates="requested", **options)
    assert engine(case, estimates="requested", **options)[1].jobs["start_s"].tolist() == [0, 20, 1]
