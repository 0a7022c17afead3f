"""The excess of an ordinary renewal process over its nominal rate, and refusals that do not take long."""

from __future__ import annotations

import time

import numpy as np
import pytest
from faultsweep.simcore.parameters import PARAMETERS, resolve
from faultsweep.simcore.policies.failures.excess import excess_sentence, expected_renewals, largest_excess
from faultsweep.simcore.policies.failures.source import DAY_S
from faultsweep.simcore.policies.failures.weibull import weibull_mean_s
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError


@pytest.mark.parametrize(("shape", "days"), [(1.0, 62), (0.7, 1), (0.55, 62), (0.2, 62), (0.2, 5), (2.0, 0.5)])
def test_the_renewal_function_is_the_mean_of_drawn_processes(shape, days):
    rng = np.random.default_rng(7)
    gaps = 18_000 * rng.exponential(size=(2000, 600)) ** (1 / shape)
    counts = (np.cumsum(gaps, axis=1) <= days * DAY_S).sum(axis=1)
    assert counts.max() < 600
    error = counts.std() / np.sqrt(len(counts))
    assert expected_renewals(shape, 18_000.0, days * DAY_S) == pytest.approx(counts.mean(), abs=4 * error)


def test_after_a_long_time_the_excess_is_that_of_the_limit():
    """(squared coefficient of variation - 1) / 2 renewals: Cox, chapter 4."""
    mean_s = weibull_mean_s(0.7, 18_000.0)
    variation = weibull_mean_s(0.35, 1.0) / weibull_mean_s(0.7, 1.0) ** 2 - 1
    excess = expected_renewals(0.7, 18_000.0, 3000 * DAY_S) - 3000 * DAY_S / mean_s
    assert excess == pytest.approx((variation - 1) / 2, rel=0.03)


@pytest.mark.parametrize("shape", [0.1, 0.3, 0.7, 0.99, 1.0, 1.5, 20.0])
@pytest.mark.parametrize("span", [0.01, 0.3, 1.0, 7.0, 300.0])
def test_no_excess_is_larger_than_its_bound(shape, span):
    excess = expected_renewals(shape, 1.0, span) - span / weibull_mean_s(shape, 1.0)
    assert abs(excess) <= largest_excess(shape) * 1.001 + 1e-9


@pytest.mark.parametrize("shape", [0.05, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("scale_s", 10.0 ** np.array([-3, 4, 200]))
def test_spans_of_any_length_have_a_number_of_renewals(shape, scale_s):
    """None where the span is short beside the scale, and the nominal rate where it is long."""
    mean_s = weibull_mean_s(shape, scale_s)
    for span_s in 10.0 ** np.array([-320, -20, 0, 6, 20, 100, 300]):
        expected = expected_renewals(shape, scale_s, span_s)
        assert 0 <= expected < np.inf
        if span_s < scale_s / 1e100:
            assert expected < 1e-4
        if span_s > mean_s * 1e25:
            assert expected * mean_s == pytest.approx(span_s, rel=1e-3)


def test_failures_that_nobody_will_see_are_not_told():
    given = {"failures": "weibull", "weibull_shape": 0.3, "weibull_scale_s": 1e9}
    assert excess_sentence(resolve(given), 1e-6) == ""


def test_it_is_told_where_it_matters(tmp_path):
    log = load_workload("sdsc-model", num_jobs=300)
    span_s = float(log.submit_s[-1] - log.submit_s[0])
    told = excess_sentence(resolve({"failures": "weibull", "weibull_shape": 0.3}), span_s)
    factor = expected_renewals(0.3, 18_000.0, span_s) * weibull_mean_s(0.3, 18_000.0) / span_s
    assert factor > 1.5
    assert f"{factor:.3g} times the failures of its nominal rate" in told
    given = {"machine": "flat:128", "failures": "weibull", "weibull_shape": 0.3}
    assert simulate(log, scheduler="fcfs", **given).doubts == (told,)
    sweep = Sweep(axes={"scheduler": ["fcfs", "backfill"]}, fixed={"log": "sdsc-model", "num_jobs": 300, **given})
    assert sweep.plan(tmp_path / "s.zarr", measure=False).assumptions == [told]
    for none in ({"failures": "mtbf", "mtbf_h": 12.0}, {"failures": "weibull-copula"}, {}):
        assert excess_sentence(resolve(none), span_s) == ""
    assert excess_sentence(resolve({"failures": "mtbf", "node_mtbf_h": 16_384.0, "failure_start": "new"}), span_s)


def test_a_run_does_not_wait_for_what_nobody_asks(monkeypatch):
    asked = []
    monkeypatch.setattr(f"{simulate.__module__}.excess_sentence", lambda *given: asked.append(given) or "told")
    log = load_workload("sdsc-model", num_jobs=30)
    run = simulate(log, machine="flat:128", failures="weibull", weibull_shape=0.3)
    assert asked == []
    assert (run.doubts, run.doubts) == (("told",), ("told",))
    assert asked == [(run.config, float(log.submit_s[-1] - log.submit_s[0]))]


@pytest.mark.parametrize(
    "given",
    [
        {"failures": "mtbf", "node_mtbf_h": 1e-5},
        {"failures": "mtbf", "mtbf_h": 1e-5},
        {"failures": "weibull", "weibull_scale_s": 0.01},
        {"failures": "bursts", "num_failures": int(PARAMETERS["num_failures"]._bounds()[1])},
        {"failures": "bursts", "failures_per_day": 1e12},
    ],
    ids=str,
)
def test_far_too_many_failures_are_refused_soon(given):
    """A node_mtbf_h of 1e-5 took three quarters of a minute, and a num_failures of 10^12 all memory."""
    log = load_workload("sdsc-model", num_jobs=300)
    began = time.process_time()
    with pytest.raises(InputError, match="more than 5,000,000 failures"):
        simulate(log, machine="flat:128", scheduler="fcfs", **given)
    assert time.process_time() - began < 15
