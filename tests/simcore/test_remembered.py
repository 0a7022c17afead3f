"""A run that remembers what the last one worked out has the results of one that does not, to the bit."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faultsweep.simcore.engine import build
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.remembered import Remembered
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads import transforms

from faultsweep.errors import InputError
from tests.fixed import results
from tests.simcore.test_inert import MACHINES, WITHOUT_ARRAYS, configurations


def double(config, *objects):
    return config["a"] * 2 if config["b"] else 0, objects


def test_what_was_read_alone_decides():
    remembered, one, other = Remembered(), object(), object()
    first = remembered.of(double, {"a": 1, "b": True, "c": 1}, one)
    assert first == (2, (one,))
    assert remembered.of(double, {"a": 1, "b": True, "c": 2}, one) is first
    assert remembered.of(double, {"a": 1, "b": True}, other) == (2, (other,))
    assert remembered.of(double, {"a": 3, "b": True}, other) == (6, (other,))
    nothing = remembered.of(double, {"a": 3, "b": False}, other)
    assert nothing == (0, (other,))
    assert remembered.of(double, {"a": 4, "b": False}, other) is nothing


def test_an_error_is_not_remembered():
    remembered = Remembered()
    for config in ({"b": True}, {"a": 1, "b": True}, {"b": True}):
        if "a" in config:
            assert remembered.of(double, config) == (2, ())
        else:
            with pytest.raises(KeyError):
                remembered.of(double, config)


def test_cells_that_differ_in_their_failures_prepare_jobs_once(monkeypatch):
    prepared, prepare = [], transforms.prepare
    monkeypatch.setattr("faultsweep.simcore.simulate.prepare", lambda *given: prepared.append(1) or prepare(*given))
    log, remembered = results.workload("flat:64", 1), Remembered()
    for scale_s in (3000.0, 6000.0, 9000.0):
        run = {"machine": "flat:64", "failures": "weibull", "weibull_scale_s": scale_s}
        assert simulate(log, **run, remembered=remembered).metrics == pytest.approx(
            simulate(log, **run).metrics, rel=0, abs=0, nan_ok=True
        )
    assert len(prepared) == 1 + 3


def test_the_second_of_such_cells_keeps_a_template_of_its_state_that_others_copy(monkeypatch):
    """The first does not, so that one run alone has no more work."""
    made = []
    for name in ("_idle", "Template"):
        real = getattr(build, name)
        monkeypatch.setattr(build, name, lambda *given, name=name, real=real: made.append(name) or real(*given))
    log, remembered = results.workload("flat:64", 1), Remembered()
    for number, expected in enumerate((["_idle"], ["_idle", "Template"], [], [])):
        run = {"machine": "flat:64", "failures": "weibull", "weibull_scale_s": 3000.0 + 1000.0 * number}
        simulate(log, **run, remembered=remembered)
        assert made == expected
        made.clear()
    monkeypatch.setattr(build, "_MOST_KEPT", 1000)
    for expected in (["_idle"], ["_idle"], ["_idle"]):
        simulate(log, **run, scheduler="conservative", remembered=remembered)
        assert made == expected
        made.clear()


@pytest.mark.compiled
def test_threads_that_share_what_is_remembered_get_states_of_their_own():
    log, run = results.workload("flat:64", 1), {"machine": "flat:64", "failures": "weibull", "scheduler": "backfill"}
    runs = [{**run, "weibull_scale_s": 3000.0 + 500.0 * number} for number in range(6)] * 5
    expected = [outcome(log, run) for run in runs]
    remembered = Remembered()
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda run: outcome(log, run, remembered), runs)) == expected


@pytest.mark.parametrize("recovery", ["arrival", "mix"])
def test_what_is_done_with_a_result_changes_no_later_run(recovery):
    log, remembered = results.workload("flat:64", 1), Remembered()
    run = {"machine": "flat:64", "failures": "weibull", "recovery": recovery}
    first = outcome(log, run)
    for values in simulate(log, **run, remembered=remembered).jobs.values():
        values[...] = 1
    assert outcome(log, run, remembered) == first


@pytest.mark.parametrize("other", [True, False, {}])
def test_another_object_cannot_remember(other):
    with pytest.raises(InputError, match="remembered: expected Remembered"):
        simulate(results.workload("flat:64", 1), machine="flat:64", remembered=other)


def outcome(log, config, remembered=None):
    """What a run gives, to the bit."""
    try:
        found = simulate(log, remembered=remembered, **config)
    except InputError as error:
        return str(error)
    jobs = {name: values.tobytes() for name, values in found.jobs.items()}
    owners = {name: (label.codes.tobytes(), label.names) for name, label in found.owners.items()}
    return jobs, owners, {name: float(value).hex() for name, value in found.metrics.items()}, found.status


@pytest.mark.skipif(is_interpreted(), reason="the same rules of what is remembered, and hundreds of runs")
@pytest.mark.parametrize("machine", MACHINES, ids=[*MACHINES[:-1], "site"])
@pytest.mark.sampled(2)
def test_no_bit_of_a_result_depends_on_what_is_remembered(machine):
    """Each configuration is the one before it with a few other values."""
    name, remembered, log = Path(machine).name, Remembered(), results.workload(machine, 1)
    draw, ran = random.Random(f"{name}, remembered"), 0
    config, *others = configurations(40, seed=f"{name}, remembered", **WITHOUT_ARRAYS, machine=machine)
    for other in others:
        tried = config | {name: other[name] for name in draw.sample(sorted(PARAMETERS), 12)}
        tried |= {"machine": machine, "failures": "none" if tried["failures"] == "given" else tried["failures"]}
        kept = {name: value for name, value in tried.items() if name not in ("log", "placement")}
        expected = outcome(log, kept)
        assert outcome(log, kept, remembered) == expected
        if not isinstance(expected, str):
            config, ran = tried, ran + 1
    assert ran >= 10
