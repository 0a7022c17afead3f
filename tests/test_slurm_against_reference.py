"""SLURM's passes against the reference: random small sites, jobs and failures, and what a pass does by hand."""

from __future__ import annotations

from math import floor

import pytest
from faultsweep.simcore.streams import coin_key, coins
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.site import Need
from tests.strategies import examples
from tests.test_site_against_reference import CHOICES, assert_same, cases, engine


def first_ticks(intervals) -> tuple[float, ...]:
    """What a run with seed 0 and replicate 0 draws: a part of each interval, in steps of 1/1024 s.

    The rarer of main and full passes have some of the ticks of the other ones.
    """
    key = coin_key(0, 0, "scheduling/ticks")
    drawn = [float(coins(key, 0, kind, 0)) for kind in range(len(intervals))]
    first = [floor(part * interval * 1024) / 1024 for part, interval in zip(drawn, intervals, strict=True)]
    often, seldom = (0, 1) if intervals[0] <= intervals[1] else (1, 0)
    if intervals[often]:
        first[seldom] = first[often] + floor(first[seldom] / intervals[often]) * intervals[often]
    return tuple(first)


INTERVALS = st.sampled_from((0, 0, 1, 1.25, 2, 5, 30))
SETTINGS = st.fixed_dictionaries(
    {
        "main_interval": INTERVALS,
        "full_interval": INTERVALS,
        "backfill_interval": INTERVALS,
        "main_depth": st.sampled_from((1, 2, 100)),
        "backfill_depth": st.sampled_from((1, 3, 500)),
        "backfill_user_depth": st.sampled_from((0, 0, 1, 2)),
        "backfill_window": st.sampled_from((0, 0.005, 24)),
        "backfill_resolution": st.sampled_from((0, 1, 4, 60)),
    }
)


def check_same(case, settings, **options) -> None:
    kinds = ("main_interval", "full_interval", "backfill_interval")
    options |= settings
    options["first_ticks"] = first_ticks([settings[name] for name in kinds])
    assert_same(case, scheduler="slurm", **options)


@examples(150)
@given(cases(), SETTINGS, st.sampled_from(CHOICES), st.sampled_from((0, 0, 1)))
def test_passes(case, settings, node_choice, delay):
    check_same(case, settings, node_choice=node_choice, start_delay=delay)


@st.composite
def crowds(draw):
    """A few nodes, and many jobs that come nearly at once: plans follow one another."""
    count, cores = draw(st.integers(2, 4)), draw(st.sampled_from((1, 2)))
    parts = (((count,), False), ((draw(st.integers(1, count)),), draw(st.booleans())))
    rows = []
    for job_id in range(1, draw(st.integers(8, 20)) + 1):
        place = draw(st.sampled_from((0, 0, 1)))
        each = (draw(st.integers(1, cores)), 0, 0)
        need = Need(draw(st.integers(1, parts[place][0][0])), each, 1, parts[place][1], place)
        limit = draw(st.sampled_from((3, 10, 14, 25, 31, 60, 61, 100, 240)))
        run = limit * draw(st.sampled_from((1, 1, 0.5, 0.25, 1.5)))
        rows.append((job_id, draw(st.integers(0, 6)), run, limit, need))
    return (((cores, 0, 0, count),), parts), sorted(rows, key=lambda row: row[1]), [], ()


@examples(100)
@given(crowds(), SETTINGS, st.sampled_from(("first-fit", "consecutive")))
def test_plans_behind_plans(case, settings, node_choice):
    check_same(case, settings, node_choice=node_choice)


@examples(60)
@given(cases(failures=True), SETTINGS, st.sampled_from(CHOICES))
def test_passes_and_failures(case, settings, node_choice):
    check_same(case, settings, node_choice=node_choice)


@examples(40)
@given(st.one_of(cases(reservations=True), cases(failures=True, reservations=True)), SETTINGS)
def test_passes_and_advance_reservations(case, settings):
    check_same(case, settings)


@examples(40)
@given(cases(), SETTINGS, st.sampled_from(("sjf", "wfp", "multifactor")))
def test_passes_and_orders_of_the_queue(case, settings, order):
    period = {"period": 7} if order == "multifactor" else {}
    check_same(case, settings, queue_order=order, **period)


@examples(40)
@given(cases(failures=True), SETTINGS, st.sampled_from((1, 2)))
def test_passes_and_limits(case, settings, most):
    check_same(case, settings, user_max_jobs=most)


AT_ONCE = {"main_interval": 0, "full_interval": 0, "backfill_interval": 0, "backfill_resolution": 60}


def one_core(chunks: int, place: int) -> Need:
    return Need(chunks, (1, 0, 0), 1, False, place)


def starts_of(counts, parts, jobs, **settings) -> list[float]:
    """The starts of jobs (limit, nodes, partition) that come at once, in this order, on nodes of one core.

    Partitions have the first nodes of each class, as many as they say. Engine and reference agree.
    """
    rows = tuple((1, 0, 0, count) for count in counts)
    partitions = tuple((members, False) for members in parts)
    asked = [(k, 0, limit, limit, one_core(nodes, place)) for k, (limit, nodes, place) in enumerate(jobs, start=1)]
    case = ((rows, partitions), asked, [], ())
    check_same(case, AT_ONCE | settings)
    return engine(case, scheduler="slurm", **(AT_ONCE | settings))[1].jobs["start_s"].tolist()


@pytest.mark.parametrize(("limit", "start"), [(100, 0), (120, 180), (130, 180)])
def test_a_plan_is_made_behind_another_plan(limit, start):
    """Job 1 has node 0 for 60 s, then job 2 wants it; job 3 wants both nodes, so from 120 s on: job 4 may have node 1
    before that time, and not at it."""
    found = starts_of((2,), ((2,), (1,)), [(60, 1, 1), (60, 1, 1), (60, 2, 0), (limit, 1, 0)])
    assert found == [0, 60, 120, start]


@pytest.mark.parametrize(
    ("elsewhere", "ends", "start"),
    [
        pytest.param(5, (62, 110), 0, id="62 and 110 s are one group, and what ends at 5 s elsewhere begins none"),
        pytest.param(5, (62, 130), 122, id="62 and 130 s are not"),
        pytest.param(110, (62, 130), 0, id="unless a job elsewhere ends between, which ends no group"),
        pytest.param(62.75, (62.5, 130), 122.5, id="of the same second, the job that was submitted first is the first"),
        pytest.param(5, (62, 125, 160, 200), 0, id="the third group is from 150 to 210 s"),
    ],
)
def test_expected_ends_count_in_groups(elsewhere, ends, start):
    """Jobs of the second class end one after the other, and one of its nodes is free; the next job wants all that are
    free when the last but one has ended.

    In a group with the last end it is planned for the nodes of these jobs, and the free one is left to the last job.
    Without, it is planned for the free one, too, from the last end but one on.
    """
    count = len(ends)
    jobs = [(elsewhere, 1, 1), *((end, 1, 0) for end in ends), (60, count, 0), (max(80, ends[-2] + 5), 1, 0)]
    parts = ((0, count + 1), (1, 0))
    assert starts_of((1, count + 1), parts, jobs, backfill_resolution=1)[-1] == start


def test_ends_of_one_second_are_put_in_order_whenever_jobs_have_started():
    """As above with ends in the same second, behind jobs 1 and 2, which a pass has had to put in order before."""
    wants = [(62.75, 1, 1), (62.5, 1, 0), (130, 1, 0), (60, 2, 0), (80, 1, 0)]
    jobs = [(1, 0, 5, 5, one_core(1, 2)), (2, 0, 5, 5, one_core(1, 2))]
    jobs += [(k, 600, limit, limit, one_core(nodes, place)) for k, (limit, nodes, place) in enumerate(wants, start=3)]
    parts = tuple((members, False) for members in ((0, 3, 0), (1, 0, 0), (0, 0, 1)))
    case = (((1, 0, 0, 1), (1, 0, 0, 3), (1, 0, 0, 1)), parts), jobs, [], ()
    settings = AT_ONCE | {"backfill_resolution": 1}
    check_same(case, settings)
    found = engine(case, scheduler="slurm", **settings)[1].jobs["start_s"].tolist()
    assert found == [0, 5, 600, 600, 600, 662.5, 722.5]


def test_a_task_of_an_array_comes_where_the_one_before_it_started():
    """Jobs 2 and 3 are tasks of an array that run elsewhere, one after another, from 3 and from 4 on. Job 3 and job 4,
    which came at 1, end in second 66; in the list job 4 is before job 3, which so ends no group. So job 7 is planned
    for the nodes of jobs 4 and 6, and not for the free one, on which job 8 starts at once."""
    rows = [(1, 0, 3, 1, 1), (2, 0, 1, 1, 1), (3, 0, 62.75, 1, 1), (4, 1, 65.5, 1, 0), (6, 1, 133, 1, 0)]
    rows += [(7, 5, 60, 2, 0), (8, 5, 80, 1, 0)]
    asked = [(k, submit, limit, limit, one_core(nodes, place)) for k, submit, limit, nodes, place in rows]
    case = ((((1, 0, 0, 1), (1, 0, 0, 3)), (((0, 3), False), ((1, 0), False))), asked, [], ())
    settings = AT_ONCE | {"backfill_resolution": 1}
    check_same(case, settings)
    found = engine(case, scheduler="slurm", **settings)[1].jobs["start_s"].tolist()
    assert found[:5] == [0, 3, 4, 1, 1]
    assert found[-1] == 5


def test_what_is_planned_for_a_job_stays_when_it_comes_to_a_limit():
    """Job 3 starts beside the plan for job 2, which then is at the limit of one job of its partition; job 4 must not
    take the third node for longer than the plan leaves it, as if there were none."""
    jobs = [(60, 1, 0), (60, 3, 1), (50, 1, 1), (100, 1, 2)]
    assert starts_of((3,), ((3,), (3,), (3,)), jobs, partition_max_jobs=1) == [0, 60, 0, 120]


def test_a_reservation_that_ends_within_a_second_lets_jobs_start_then():
    """Though ends of jobs count in whole seconds, as if job 2 began at 14."""
    jobs = [(1, 0, 2, 2, one_core(1, 0)), (2, 1, 10, 10, one_core(1, 0))]
    case = ((((1, 0, 0, 1),), ()), jobs, [], ((4, 14.25, (1,)),))
    check_same(case, AT_ONCE | {"backfill_resolution": 1})
    settings = AT_ONCE | {"backfill_resolution": 1, "estimates": "requested"}
    assert engine(case, scheduler="slurm", **settings)[1].jobs["start_s"].tolist() == [0, 14.25]


@pytest.mark.parametrize(("count", "start"), [(2, 0), (3, 180)])
def test_who_is_shut_out_by_a_reservation_blocks_no_partition(count, start):
    """Job 2 wants two nodes for 100 s, and one node of two or three is reserved from 60 s on. If there are but two, it
    could not start on idle nodes either, so the main pass goes on to job 3; with three, it waits for job 1."""
    rows, parts = ((1, 0, 0, count),), (((count,), False),)
    limits = [20, 100, 30] if count == 2 else [80, 100, 30]
    asked = [
        (k, 0, limit, limit, one_core(nodes, 0))
        for k, (limit, nodes) in enumerate(zip(limits, (1, 2, 1), strict=True), start=1)
    ]
    case = ((rows, parts), asked, [], ((60, 500, (1,)),))
    settings = AT_ONCE | {"backfill_interval": 10**6}
    check_same(case, settings)
    assert engine(case, scheduler="slurm", **settings)[1].jobs["start_s"].tolist()[2] == start


TWO_CLASSES = ((2, 0, 0, 2), (4, 0, 0, 2)), (((2, 0), False), ((1, 2), False))


@pytest.mark.parametrize(
    ("jobs", "windows", "settings", "starts"),
    [
        pytest.param(
            [(1, 0, 5, 120, Need(2, (2, 0, 0), partition=2)), (2, 0, 45, 45, Need(1, (2, 0, 0), partition=0)),
             (3, 0, 5, 20, Need(1, (1, 0, 0), partition=2)), (4, 41, 5, 5, Need(1, (1, 0, 0), partition=2))],
            ((150, 250, (0, 2)), (5, 40, (1, 2))),
            {"backfill_interval": 0, "backfill_resolution": 0},
            [45, 0, 40, 41],
            id="job 4 is on a node that job 1 cannot have, so its end counts for no group",
        ),
        pytest.param(
            [(1, 0, 70, 140, Need(2, (2, 0, 0), partition=1)), (2, 0, 5, 5, Need(2, (1, 0, 0), 1, partition=0)),
             (3, 3, 5, 70, Need(2, (3, 0, 0), partition=2)), (4, 33, 5, 62, Need(1, (1, 0, 0), partition=1))],
            ((150, 250, (2, 2)),),
            {"backfill_interval": 30, "backfill_resolution": 60},
            [0, 70, 70, 70],
            id="a plan ends early for nodes that are not for job 4",
        ),
    ],
)  # fmt: skip
def test_nodes_that_are_not_for_a_job(jobs, windows, settings, starts):
    """The smallest of many random cases in which it matters for a job when other nodes come free."""
    settings = {"main_interval": 0, "full_interval": 0} | settings
    check_same((TWO_CLASSES, jobs, [], windows), settings)
    run = engine((TWO_CLASSES, jobs, [], windows), scheduler="slurm", estimates="requested", **settings)[1]
    assert run.jobs["start_s"].tolist() == starts


def test_all_jobs_of_a_node_come_free_where_few_nodes_are_open():
    """Job 4 gets all cores of the one node of its partition when all jobs on it have ended; job 5 must wait for it."""
    needs = [one_core(1, 0), one_core(1, 0), one_core(1, 0), Need(3, (1, 0, 0), partition=0), one_core(1, 0)]
    times = [(0, 100), (0, 200), (0, 300), (1, 50), (2, 1000)]
    jobs = [
        (k, submit, limit, limit, need) for k, ((submit, limit), need) in enumerate(zip(times, needs, strict=True), 1)
    ]
    case = ((((3, 0, 0, 1), (3, 0, 0, 8)), (((1, 0), False), ((0, 8), False))), jobs, [], ())
    check_same(case, AT_ONCE)
    found = engine(case, scheduler="slurm", **AT_ONCE, estimates="requested")[1].jobs["start_s"].tolist()
    assert found == [0, 0, 0, 300, 350]
