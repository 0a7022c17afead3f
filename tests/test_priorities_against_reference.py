"""Multifactor priorities: the engine's schedules are those of the reference, which adds up what each user has used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import engine_run
from tests.strategies import examples, flats, machines, runs
from tests.test_engine_against_reference import assert_same
from tests.test_site_against_reference import assert_same as site_same
from tests.test_site_against_reference import cases

TREES = (
    (),
    (("a", "", "", 3), ("b", "", "", 1)),
    (("a", "0", "", 2), ("b", "0", "", 5), ("c", "4", "", 1), ("root", "5", "", 2)),
    (("a", "", "", 0), ("b", "2", "", 0), ("b", "0", "", 1)),
    (("b", "", "a", 2),),
)
SETTINGS = st.fixed_dictionaries(
    {
        "age_weight": st.sampled_from((0, 1000, 100)),
        "longest_age": st.sampled_from((1 / 64, 1 / 256, 1)),
        "share_weight": st.sampled_from((0, 1000, 10, 100000)),
        "fair_share": st.sampled_from(("users", "classic", "fair-tree", "fair-tree")),
        "tree": st.sampled_from(TREES),
        "half_life": st.sampled_from((0, 1 / 256, 1 / 64, 1)),
        "damping": st.sampled_from((1, 0.5, 4)),
        "size_weight": st.sampled_from((0, 0, 1000)),
        "small_first": st.booleans(),
        "partition_weight": st.sampled_from((0, 0, 500)),
        "partition_factors": st.sampled_from(((), (("p", 1), ("q", 4)))),
        "qos_weight": st.sampled_from((0, 0, 700)),
        "qos_factors": st.sampled_from(((), (("x", 10), ("z", 2)), (("x", 0),))),
        "tres_weights": st.sampled_from(((), (("cpu", 900),), (("node", 300), ("gpu", 700), ("mem", 50)))),
        "nice": st.booleans(),
        "site_factor": st.booleans(),
        "period": st.sampled_from((0, 5, 7.5, 20, 300)),
    }
)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(st.one_of(runs(machines), runs(machines, failures=True)), SETTINGS, st.sampled_from(("actual", "requested")))
@examples(60)
@pytest.mark.sampled(1)
def test_schedules_are_those_of_the_reference(scheduler, case, settings, estimates):
    assert_same(case, scheduler=scheduler, estimates=estimates, queue_order="multifactor", **settings)


FORMULAS = (
    *("eligible_time", "ncpus * walltime", "-walltime / 4 + eligible_time * ncpus", "job_priority + eligible_time / 2"),
    *("max(nodect, 3) * 100 - walltime // 2", "queue_priority * 64 - ncpus ** 2 + 2 * eligible_time", "1"),
)
SHARES = st.fixed_dictionaries(
    {
        "lsf_cpu_time": st.sampled_from((0, 0.7, 500)),
        "lsf_run_time": st.sampled_from((0, 0.7, 500)),
        "lsf_run_job": st.sampled_from((0.001, 3)),
        "hist_hours": st.sampled_from((0, 5, 1 / 64)),
        "lsf_shares": st.sampled_from(((), (("0", 3), ("2", 1)), (("1", 0),))),
    }
)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(st.one_of(runs(machines), runs(machines, failures=True)), st.sampled_from(FORMULAS), st.booleans())
@examples(40)
def test_formulas_of_pbs(scheduler, case, formula, has_factors):
    factors = {"partition_factors": (("p", 1), ("q", 4))} if has_factors else {}
    assert_same(case, scheduler=scheduler, estimates="requested", queue_order="pbs", formula=formula, **factors)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(st.one_of(runs(machines), runs(machines, failures=True)), SHARES)
@examples(40)
def test_fair_share_of_lsf(scheduler, case, shares):
    assert_same(case, scheduler=scheduler, queue_order="lsf", **shares)


@given(cases(failures=True), st.sampled_from(("lsf", "pbs", "multifactor")), st.sampled_from(("fcfs", "backfill")))
@examples(60)
def test_orders_on_sites(case, order, scheduler):
    formula = {"formula": "ngpus * 50 + nodect * 7 + mem / 1024 + eligible_time"} if order == "pbs" else {}
    tres = {"tres_weights": (("cpu", 900), ("gpu", 700), ("mem", 500), ("node", 300)), "share_weight": 0, "period": 0}
    site_same(case, scheduler=scheduler, queue_order=order, **formula, **(tres if order == "multifactor" else {}))


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("ncpus +", "is no formula"),
        ("ncpus.real", "'ncpus.real' is not valid"),
        ("__import__('os')", "is not valid"),
        ("sqrt(eligible_time)", "does not grow linearly with eligible_time"),
        ("1 / (ncpus - ncpus)", "is no number for some jobs"),
        ("sqrt(1, 2, 3, 4)", "is no formula"),
        ("cput * 2", "'cput' is not valid .valid: arithmetic of ncpus"),
    ],
)
def test_what_is_no_formula_is_a_sentence(formula, sentence):
    with pytest.raises(InputError, match=sentence):
        starts([(1, 0, 5, 5, 1)], formula=formula, queue_order="pbs")


def test_a_user_of_lsf_whose_job_runs_comes_later():
    """User 0 runs job 3; job 6 is of the same user, and job 7, which comes later, of another one."""
    rows = [(3, 0, 100, 100, 2), (4, 0, 50, 50, 2), (6, 10, 60, 60, 2), (7, 20, 60, 60, 2)]
    found = starts(rows, queue_order="lsf")
    assert (found[7], found[6]) == (50, 100)
    found = starts(rows, queue_order="lsf", lsf_shares=(("0", 100),))
    assert (found[6], found[7]) == (50, 100)


def starts(rows, **settings):
    found = engine_run(rows, "flat:4", **{"queue_order": "multifactor"} | settings)
    return {job: row["start"] for job, row in found.jobs.items()}


@pytest.mark.parametrize(("share_weight", "first"), [(1000, 7), (0, 6)])
def test_who_has_used_less_comes_first(share_weight, first):
    """Jobs 3 and 6 are of one user, job 7 of another; the machine is held by job 3 until 100 s."""
    rows = [(3, 0, 100, 100, 4), (6, 10, 50, 50, 4), (7, 20, 50, 50, 4)]
    found = starts(rows, share_weight=share_weight, age_weight=0, period=0)
    assert found[first] == 100
    assert sorted(found.values()) == [0, 100, 150]


@pytest.mark.parametrize(("half_life", "first"), [(0, 4), (1 / 36, 3)])
def test_what_was_used_long_ago_counts_less(half_life, first):
    """User 0 used 400 s long ago, user 1 used 300 s just now: with a half-life of 100 s the former counts less."""
    rows = [(6, 0, 400, 400, 4), (7, 1000, 300, 300, 4), (3, 1100, 50, 50, 4), (4, 1200, 50, 50, 4)]
    found = starts(rows, share_weight=1000, age_weight=0, half_life=half_life, period=0)
    assert found[first] == 1300
    assert max(found[3], found[4]) == 1350


def test_no_priority_is_below_1():
    """By size, job 3 would have 0 and job 4, of all nodes, 1; so job 3 comes first, which was submitted first."""
    rows = [(1, 0, 100, 100, 4), (3, 10, 50, 50, 2), (4, 20, 50, 50, 4)]
    assert starts(rows, age_weight=0, share_weight=0, size_weight=1) == {1: 0, 3: 100, 4: 150}


def test_a_user_ranks_before_an_account_that_has_used_as_much():
    """User 1 is beside account b in account a, and both have used 200 node-seconds; all of b's are user 2's.

    User 1 and then the first of b, user 0, have the first rank, and user 2 the third.
    """
    rows = [(1, 0, 100, 100, 2), (2, 0, 100, 100, 2), (5, 10, 50, 50, 4), (4, 20, 50, 50, 4), (3, 30, 50, 50, 4)]
    tree = (("b", "", "a", 1),)
    found = starts(rows, age_weight=0, share_weight=1000, half_life=0, period=0, fair_share="fair-tree", tree=tree)
    assert (found[4], found[3], found[5]) == (100, 150, 200)


def test_priorities_stay_between_two_calculations():
    """Job 6's user has used nothing when priorities are calculated at 0 s, as all others; at 60 s all is known."""
    rows = [(3, 0, 50, 50, 4), (6, 10, 20, 20, 4), (7, 20, 20, 20, 4)]
    late = starts(rows, share_weight=1000, age_weight=0, period=60)
    assert (late[6], late[7]) == (50, 70)
    rows = [(3, 0, 65, 65, 4), (6, 10, 20, 20, 4), (7, 20, 20, 20, 4)]
    early = starts(rows, share_weight=1000, age_weight=0, period=60)
    assert (early[7], early[6]) == (65, 85)


def test_small_jobs_come_first_if_wanted():
    rows = [(3, 0, 500, 500, 2), (4, 1, 10, 10, 4), (5, 2, 10, 10, 2)]
    small = {"age_weight": 0, "share_weight": 0, "size_weight": 1000}
    assert starts(rows, **small, small_first=True)[5] == 2
    assert starts(rows, **small, small_first=False)[5] == 510


def test_an_order_that_changes_while_nothing_happens_starts_a_job():
    """Two nodes are free beside job 3; job 6, of the same user, needs four and is first, until priorities are
    calculated at 60 s."""
    rows = [(3, 0, 500, 500, 2), (6, 1, 10, 10, 4), (4, 2, 10, 10, 2)]
    found = starts(rows, age_weight=0, share_weight=1000, period=60)
    assert (found[4], found[6]) == (60, 500)


@given(runs(flats))
@examples(40)
def test_without_weights_jobs_come_in_order_of_arrival(case):
    machine, jobs, failures = case
    plain = engine_run(jobs, machine, failures, scheduler="backfill")
    none = {"age_weight": 0, "share_weight": 0, "nice": False, "site_factor": False}
    weightless = engine_run(jobs, machine, failures, scheduler="backfill", queue_order="multifactor", **none)
    assert plain.jobs == weightless.jobs


@pytest.mark.parametrize("period", [1.1, 1.7, 3.3])
def test_a_period_begins_when_it_does_however_it_is_rounded(period):
    """A time of a calculation divided by the period may come out below the number of periods."""
    rows = [(3, 0.3, 5000, 5000, 4), (4, 0.4, 10, 10, 4)]
    assert starts(rows, period=period) == {3: 0.3, 4: 5000.3}
