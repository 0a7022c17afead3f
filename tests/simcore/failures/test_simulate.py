"""Failure sources in whole runs: by name, by file, by object; endless ones are drawn as far as jobs run."""

from __future__ import annotations

import faultsweep.simcore.simulate
import numpy as np
import pytest
from faultsweep.simcore.failure_logs.plain import write_failures
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate

from faultsweep.errors import InputError

MACHINE = "flat:8"


def jobs(count=40, run_s=20_000.0):
    submit = np.arange(count) * 1000.0
    size = np.full(count, 4, np.int64)
    number = np.arange(count)
    return Workload(number, submit, np.full(count, run_s), np.full(count, np.nan), size, number, nodes=8)


def failures_of(run):
    """Time and node of the failures of an event trace."""
    return [(time_s, nodes[0]) for time_s, kind, _, _, nodes in run.events.rows() if kind == "fail"]


def test_an_endless_source_lasts_as_long_as_the_jobs(tmp_path):
    """The run goes on far beyond the last submission, and is that of a trace which is long enough from the start."""
    parameters = {"machine": MACHINE, "scheduler": "fcfs", "weibull_scale_s": 30_000.0}
    run = simulate(jobs(), failures="weibull", **parameters)
    assert run.status == "done"
    assert run.config["failures"] == "weibull"
    end = np.nanmax(run.jobs["finish_s"])
    assert end > 5 * 39_000
    source = source_for(resolve({"failures": "weibull", **parameters}), 8, Span(0.0, 39_000.0, 39_000.0))
    trace = source.until(2 * end)
    assert run.metrics["failures_seen"] == np.count_nonzero(trace.time_s < end)
    write_failures(trace, tmp_path / "f.csv", num_nodes=8)
    for given in (trace, source, str(tmp_path / "f.csv")):
        again = simulate(jobs(), failures=given, **parameters)
        assert np.array_equal(again.jobs["finish_s"], run.jobs["finish_s"])


def test_failures_drawn_too_short_are_drawn_further_and_the_run_goes_on(monkeypatch):
    """One run from the start to the end, however often it asks for more; event trace and predictor included."""
    built, drawn = [], []
    build, extend = faultsweep.simcore.simulate.build_state, faultsweep.simcore.simulate._Drawn.extend
    monkeypatch.setattr(faultsweep.simcore.simulate, "build_state", lambda *a, **k: built.append(1) or build(*a, **k))
    monkeypatch.setattr(
        faultsweep.simcore.simulate._Drawn, "extend", lambda self, state: drawn.append(1) or extend(self, state)
    )
    parameters = {"machine": "torus:2x2x2", "scheduler": "backfill", "placement": "tie-breaking", "accuracy": 0.5}
    run = simulate(jobs(), failures="weibull", weibull_scale_s=30_000.0, events=True, **parameters)
    assert len(built) == 1
    assert len(drawn) >= 2
    trace = source_for(
        resolve({"failures": "weibull", "weibull_scale_s": 30_000.0, **parameters}), 8, Span(0.0, 39_000.0, 39_000.0)
    ).until(3 * np.nanmax(run.jobs["finish_s"]))
    whole = simulate(jobs(), failures=trace, events=True, **parameters)
    assert len(built) == 2
    assert list(run.events.rows()) == list(whole.events.rows())
    assert run.metrics == pytest.approx(whole.metrics, rel=0, abs=0, nan_ok=True)


def test_all_policies_see_the_same_failures():
    down = {}
    for scheduler in ("fcfs", "backfill", "conservative"):
        run = simulate(jobs(), failures="mtbf", mtbf_h=3.0, machine=MACHINE, scheduler=scheduler, events=True)
        down[scheduler] = failures_of(run)
    shortest = min(map(len, down.values()))
    assert shortest > 5
    assert down["fcfs"][:shortest] == down["backfill"][:shortest] == down["conservative"][:shortest]


def test_number_of_failures_counts_in_the_span():
    run = simulate(jobs(), failures="bursts", num_failures=17, machine=MACHINE)
    assert run.metrics["failures_seen"] == 17
    assert simulate(jobs(), failures="bursts", num_failures=0, machine=MACHINE).metrics["failures_seen"] == 0


def test_a_part_of_the_log_gets_its_part_of_the_failures():
    run = simulate(jobs(400, run_s=100.0), failures="bursts", num_failures=399, machine=MACHINE, num_jobs=201)
    assert run.metrics["failures_seen"] == 200
    later = simulate(
        jobs(400, run_s=100.0), failures="bursts", num_failures=399, machine=MACHINE, offset=200, events=True
    )
    times = [time_s for time_s, _ in failures_of(later)]
    assert len(times) == 199
    assert min(times) >= 200_000


def test_event_orders_are_for_runs_without_failures():
    for order in ("submits-first", "ends-first"):
        with pytest.raises(InputError, match="event_order"):
            simulate(jobs(), failures="weibull", machine=MACHINE, event_order=order)
        simulate(jobs(), failures="bursts", num_failures=0, machine=MACHINE, event_order=order)


def test_span_of_scaled_arrivals():
    log = jobs()
    half = Workload(**{**log.__dict__, "submit_s": log.submit_s / 2})
    assert Span.of(log, half, 2.0) == Span(0.0, 19_500.0, 19_500.0)
    late = Workload(**{**log.__dict__, "submit_s": log.submit_s + 1e9})
    assert Span.of(late, late) == Span(1e9, 39_000.0, 39_000.0)
    assert Span.of(log, log).full_s < DAY_S


def test_a_calibrated_model_is_a_part_of_its_log():
    """117 of the 736 days of SDSC SP2 have 4,000 x 117 / 736 failures, with the model as with the log."""
    for count in (1000, 10_000):
        model = generate("sdsc-model", count)
        span = Span.of(model, model)
        assert span.full_s == pytest.approx(736 * DAY_S, rel=1e-3)
        source = source_for(resolve({"failures": "bursts", "num_failures": 4000}), 128, span)
        assert len(source.until(np.inf)) == pytest.approx(4000 * span.length_s / (736 * DAY_S), abs=1)
    plain = generate("lublin", 1000)
    assert Span.of(plain, plain).full_s == plain.submit_s[-1] - plain.submit_s[0]
