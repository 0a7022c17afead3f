"""Sites of more nodes than one record or one word of the profile has, beside the reference: jobs on many nodes, and
partitions that begin and end anywhere."""

from __future__ import annotations

import random

import pytest

from tests.reference.site import Need
from tests.test_compression_against_reference import failing, need_of, queue
from tests.test_dominance_against_reference import windows
from tests.test_site_against_reference import CHOICES, assert_same
from tests.test_slurm_against_reference import check_same

SITES = (
    (((2, 0, 0, 70),), ()),
    (((2, 0, 0, 40), (4, 2, 10, 30)), (((40, 0), False), ((0, 30), False), ((20, 25), True))),
    (((4, 2, 30, 33), (1, 0, 0, 64)), (((10, 64), False), ((33, 1), False))),
)
VAST = (((1, 0, 0, 2040), (2, 1, 20, 60)), (((2040, 0), False), ((0, 60), False), ((9, 60), True)))
"""66 records, of which one word tells 64 apart."""
SCHEDULERS = ("conservative", "top-jobs", "slurm")


def check(rng: random.Random, case, scheduler: str, **options) -> None:
    """Compare a run with the reference."""
    if scheduler == "slurm":
        settings = {name: rng.choice((1, 2)) for name in ("main_interval", "full_interval", "backfill_interval")}
        settings |= {"main_depth": 2, "backfill_depth": 500, "backfill_user_depth": 0, "backfill_window": 24}
        check_same(case, settings | {"backfill_resolution": rng.choice((1, 4))}, **options)
        return
    if scheduler == "top-jobs":
        options["top_jobs"] = rng.choice((0, 1, 2, 100))
    assert_same(case, scheduler=scheduler, start_delay=rng.choice((0, 0, 1)), **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("node_choice", CHOICES)
def test_of_three_records(scheduler, node_choice):
    for seed in range(4):
        rng = random.Random(f"{scheduler} {node_choice} {seed}")
        site = rng.choice(SITES)
        rows = queue(rng, lambda rng, site=site: need_of(rng, site))
        around = windows(rng) if len(site[0]) == 2 else ()
        check(
            rng, (site, rows, failing(rng, sum(row[3] for row in site[0])), around), scheduler, node_choice=node_choice
        )


@pytest.mark.sampled(1)
@pytest.mark.compiled  # interpreted, it takes minutes
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_of_more_records_than_a_word_has_bits(scheduler):
    rng = random.Random(scheduler)
    rows = queue(rng, lambda rng: need_of(rng, VAST))[:14]
    check(rng, (VAST, rows, [(9, 2070, 3)], ()), scheduler)


CROWDED = (
    (((4, 2, 30, 40),), ()),
    (((2, 0, 0, 20), (4, 2, 30, 20)), (((20, 0), False), ((3, 20), False), ((20, 20), True))),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(6))
def test_plans_of_many_jobs(seed):
    """Most searches of a pass find too little until the next plan ends, which is known by rows behind one expected end
    each, or, of 80 jobs that run already, behind two."""
    rng = random.Random(seed)
    site = rng.choice(CROWDED)
    need = Need(1, (1, 0, 0), 0, False, len(site[1]))
    running = [(0, 0, *rng.choice(((9, 9), (7, 30), (20, 21), (40, 90))), need) for _ in range(80)]
    rows = [row for _ in range(2 - seed % 2) for row in queue(rng, lambda rng: need_of(rng, site))]
    rows = sorted(((0, row[1] % 9, *row[2:]) for row in rows), key=lambda row: row[1])
    rows = [(number, *row[1:]) for number, row in enumerate([*(running if seed % 2 else ()), *rows], 1)]
    around = windows(rng) if len(site[0]) == 2 and rng.random() < 0.5 else ()
    check(rng, (site, rows, failing(rng, 40), around), "slurm")
