"""Concentration of work, longest run time, serial jobs, a daily cycle; and what repeated hits cost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.policies.failures.repeats import repeats, repeats_sentence
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.shaping import (
    concentration,
    knobs,
    with_concentration,
    with_daily_cycle,
    with_longest_run,
    with_serial_share,
)
from faultsweep.sweeps.logs import load_workload
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.strategies import examples

DAY_S = 86400.0


def jobs(rows):
    """Rows (submit, run, requested, size)."""
    submit, run, requested, size = (np.array(column, float) for column in zip(*sorted(rows), strict=True))
    number = np.arange(len(rows))
    return Workload(number, submit, run, requested, size.astype(np.int64), number, name="case")


TIMES = st.sampled_from([1.0, 7.5, 60.0, 3600.0, 50_000.0])
ROWS = st.lists(st.tuples(st.floats(0, 1e6), TIMES, TIMES, st.integers(1, 64)), min_size=2, max_size=30)


@given(ROWS, st.floats(1.0, 40.0))
@examples(100)
def test_work_is_concentrated_as_asked_for_and_stays_the_same_in_all(rows, wanted):
    before = jobs(rows)
    try:
        after = with_concentration(before, wanted)
    except InputError as error:
        low, high = (float(part) for part in str(error).partition("valid: ")[2].partition(";")[0].split(" to "))
        assert not low * 1.0005 < wanted < high * 0.9995
        return
    work = [float(size * run) for size, run in zip(after.size, after.run_s, strict=True)]
    mean = sum(work) / len(work)
    rounding = 1e-3 * 64 * len(work) / sum(work) * wanted * 4  # run times are whole milliseconds
    assert sum(each**2 for each in work) / len(work) / mean**2 == pytest.approx(wanted, rel=1e-6 + rounding)
    assert sum(work) == pytest.approx(float((before.size * before.run_s).sum()), rel=1e-6 + rounding)
    assert (np.diff(after.run_s[np.argsort(before.run_s, kind="stable")]) >= 0).all()
    assert np.allclose(after.requested_s / after.run_s, before.requested_s / before.run_s)
    assert np.array_equal(after.size, before.size)


def test_a_concentration_that_sizes_alone_exceed_is_refused():
    with pytest.raises(
        InputError, match=r"work_concentration = 1\.1 cannot .* \(valid: 1\.605 to 1\.605; as they are: 1\.605"
    ):
        with_concentration(jobs([(0, 60, 60, 1), (1, 60, 60, 8)]), 1.1)


def test_the_concentration_is_that_of_the_definition():
    assert concentration(np.array([1, 1, 2]), np.array([10.0, 10.0, 5.0])) == 1.0
    assert concentration(np.array([1, 3]), np.array([1.0, 1.0])) == pytest.approx((1 + 9) / 2 / 4)


@given(ROWS, st.floats(0, 1), st.integers(0, 5))
@examples(100)
def test_so_many_jobs_are_serial_as_asked_for(rows, share, seed):
    before = jobs(rows)
    if (before.size == 1).all():
        return
    after = with_serial_share(before, share, np.random.default_rng(seed))
    assert np.sum(after.size == 1) == round(share * len(before))
    few = np.sum(before.size == 1) <= round(share * len(before))
    kept = after.size == before.size
    assert kept[before.size == 1].all() if few else kept[before.size > 1].all()
    assert set(after.size.tolist()) <= {1, *before.size.tolist()}


def test_serial_jobs_that_would_be_parallel_need_sizes_to_take():
    with pytest.raises(InputError, match=r"serial_share = 0\.5 needs parallel jobs"):
        with_serial_share(jobs([(0, 60, 60, 1), (1, 60, 60, 1)]), 0.5, np.random.default_rng(0))


def test_longest_run_cuts_what_is_longer():
    cut = with_longest_run(jobs([(0, 50, 90, 1), (1, 70, 80, 2), (2, 300, math.nan, 1)]), 60.0)
    assert cut.run_s.tolist() == [50, 60, 60]
    assert cut.requested_s.tolist()[:2] == [60, 60]
    assert math.isnan(cut.requested_s[2])


@pytest.mark.parametrize("strength", [0.3, 1.0])
def test_submissions_come_by_day(strength):
    """Of jobs that come evenly, the share up to each hour of the day is the integral of the rate."""
    even = jobs([(second, 60, 60, 1) for second in np.arange(0, 40 * DAY_S, 97.0)])
    after = with_daily_cycle(even, strength)
    assert (np.diff(after.submit_s) >= 0).all()
    assert np.abs(after.submit_s - even.submit_s).max() < DAY_S / 4
    hour = (after.submit_s % DAY_S) / 3600
    for until in (3, 6, 12, 20):
        expected = until / 24 - strength / (2 * math.pi) * math.sin(2 * math.pi * until / 24)
        assert np.mean(hour < until) == pytest.approx(expected, abs=0.005)
    days = np.bincount((after.submit_s // DAY_S).astype(int))
    assert np.ptp(days[:40]) <= 3


def test_a_later_log_has_the_same_cycle():
    rows = [(second, 60, 60, 1) for second in np.arange(0, 2 * DAY_S, 5000.0)]
    late = [(second + 12_345.0, *rest) for second, *rest in rows]
    assert np.allclose(
        with_daily_cycle(jobs(late), 0.7).submit_s - 12_345.0, with_daily_cycle(jobs(rows), 0.7).submit_s
    )


def test_knobs_are_parameters_of_a_run():
    log = load_workload("llnl-model", num_jobs=400)
    given = {"machine": "flat:320", "target_utilisation": 0.7}
    plain = simulate(log, **given)
    for knob in ({"work_concentration": 8.0}, {"longest_run_h": 1.0}, {"serial_share": 0.8}, {"arrival_cycle": 0.9}):
        run = simulate(log, **given, **knob)
        assert run.metrics["offered_load"] == pytest.approx(0.7, rel=1e-6)
        assert run.metrics["mean_wait_s"] != plain.metrics["mean_wait_s"]


@pytest.mark.compiled
def test_what_repeated_hits_cost_is_what_a_machine_of_one_job_loses():
    """Jobs of the whole machine one after the other under failures at random: (e^h - 1) / h - 1 and h / 2."""
    count, run_s, mtbf_h = 4000, 3600.0, 1.25
    log = jobs([(0.0, run_s, run_s, 4) for _ in range(count)])
    given = {
        "machine": "flat:4",
        "failures": "mtbf",
        "mtbf_h": mtbf_h,
        "mtbf_shape": 1.0,
        "mttr_h": 0.0,
        "max_restarts": 1000,
    }
    run = simulate(log, **given)
    found = repeats(log, 4, 24 / mtbf_h)
    hits = 1 / mtbf_h
    assert found.expected == pytest.approx((math.exp(hits) - 1) / hits - 1)
    assert found.one_hit == pytest.approx(hits / 2)
    assert run.metrics["work_loss_ratio"] == pytest.approx(found.expected, rel=0.08)
    assert (found.jobs, found.work) == (count, 1.0)


@pytest.mark.compiled
def test_repeated_hits_are_told_where_they_dominate():
    log = load_workload("llnl-model", num_jobs=7500)
    given = {"machine": "flat:320", "target_utilisation": 0.85, "failures": "weibull"}
    told = [one for one in simulate(log, **given).doubts if "hit more than once" in one]
    assert len(told) == 1
    assert "of 7,500 jobs" in told[0]
    for mended in ({"checkpoint": "risk"}, {"longest_run_h": 2.0}):
        assert not any("hit more than once" in one for one in simulate(log, **given, **mended).doubts)
    assert repeats_sentence(log, 320, 0.0, {"checkpoint": "none"}) == ""
    huge = jobs([(0.0, 1e9, 1e9, 64), (1.0, 1.0, 1.0, 1)])
    assert "more than 1,000 times" in repeats_sentence(huge, 64, 1000.0, {"checkpoint": "none"})


@pytest.mark.filterwarnings("error")
def test_a_run_of_any_length_can_be_cut_on_nodes_of_any_size():
    run = simulate(
        jobs([(0, 1e300, 10.0, 3), (1, 20.0, 10.0, 1)]), machine="flat:1", longest_run_h=1.0, procs_per_node=2**53
    )
    assert run.metrics["makespan_s"] == 3620.0
    assert "use a part of their last node of 9007199254740992 processors" in run.doubts[0]


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.9])
def test_the_knobs_of_jobs_are_those_that_made_them(strength):
    """Of jobs that come evenly; the crest of the wave may be anywhere."""
    rng = np.random.default_rng(3)
    rows = [
        (float(at), float(run), 60.0, int(size))
        for at, run, size in zip(
            np.arange(0, 100 * DAY_S, 900.0), rng.uniform(10, 3000, 9600), rng.choice([1, 2, 8], 9600), strict=True
        )
    ]
    plain = jobs(rows)
    shaped = with_concentration(with_longest_run(with_daily_cycle(plain, strength), 2000.0), 3.0)
    shaped = with_serial_share(shaped, 0.25, rng)
    found = knobs(shaped)
    assert found["arrival_cycle"] == pytest.approx(strength, abs=0.01)
    assert found["serial_share"] == pytest.approx(0.25, abs=1e-3)
    assert knobs(with_longest_run(plain, 2000.0))["longest_run_h"] == 2000.0 / 3600
    assert knobs(with_concentration(plain, 3.0))["work_concentration"] == pytest.approx(3.0)
