"""Stores have the metrics that their runs can have, and get others, exact, when an axis makes them possible."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.metrics import MAIN, METRICS
from faultsweep.simcore.parameters import canonical
from faultsweep.simcore.possible import DECLARED, impossible
from faultsweep.sweeps.runner.prepare import KnownOutputs
from faultsweep.sweeps.store.manifest import verify
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError
from tests.fixed import results
from tests.simcore.test_inert import WITHOUT_ARRAYS, configurations

PLAIN = {"log": "sdsc-model", "num_jobs": 40, "machine": "flat:128"}


@pytest.mark.skipif(is_interpreted(), reason="hundreds of runs")
def test_what_is_impossible_never_happens():
    """In random configurations, and every metric that may not occur is told of in some."""
    told: set[str] = set()
    for config in map(canonical, configurations(60, seed=22, **WITHOUT_ARRAYS)):
        try:
            metrics = results.run(
                {"workload": 1, **{key: value for key, value in config.items() if key != "log"}}
            ).metrics
        except InputError:  # what cannot be combined with these jobs
            continue
        for name, (value, like) in impossible(config).items():
            wanted = math.nan if like and math.isnan(metrics[like]) else value
            assert np.array_equal(metrics[name], wanted, equal_nan=True), (name, config)
            told.add(name)
    assert told == DECLARED


def test_policies_name_metrics_that_say_what_they_are_without_them():
    assert {name for name, metric in METRICS.items() if metric.without} == DECLARED
    assert {metric.without.like for metric in METRICS.values() if metric.without} <= {"", *MAIN}


def spec(failures=("none",), **more):
    return Sweep(axes={"failures": list(failures)}, fixed={**PLAIN, "mtbf_h": 1}, replicates=2, **more).spec


def test_a_spec_has_the_metrics_that_can_occur_those_that_matter_first():
    names = [out.name for out in spec().outputs]
    assert tuple(names[: len(MAIN)]) == MAIN
    for name in ("restarts", "lost_to_failures", "checkpoints", "migrations_attempted", "co_allocations"):
        assert name not in names
    with_failures = [out.name for out in spec(("none", "mtbf")).outputs]
    assert {"restarts", "lost_to_failures"} <= set(with_failures)
    assert "checkpoints" not in with_failures
    assert {out.name for out in spec(metrics=list(METRICS)).outputs} == set(METRICS)
    by_formula = Sweep(axes={"failures": ["none"]}, formulas={"start_delay_s": "2"}, fixed=PLAIN)
    assert set(names) | {"lost_to_delay"} == {out.name for out in by_formula.spec.outputs}


def test_a_store_gets_metrics_when_an_axis_makes_them_possible(tmp_path, client):
    """Old cells have what a run would give, and are not run; the store is as if it had been made at once."""
    path = tmp_path / "s.zarr"
    grown = Sweep(axes={"failures": ["none", "mtbf"]}, fixed={**PLAIN, "mtbf_h": 1}, replicates=2)
    Sweep.of(spec()).run(path, cluster=client, progress=False)
    assert "restarts" not in Store(path, mode="r").metrics
    assert grown.plan(path, measure=False, progress=False).missing == 2
    grown.run(path, cluster=client, progress=False)
    store = Store(path, mode="r")
    assert {"restarts", "lost_to_failures"} <= set(store.metrics)
    assert store.adding == []
    grown.run(tmp_path / "once.zarr", cluster=client, progress=False)
    ours, once = (xr.open_zarr(each, chunks=None).load() for each in (path, tmp_path / "once.zarr"))
    assert set(json.loads(once.attrs["metrics"])) == set(store.metrics)
    assert verify(path).damage == []
    for name in store.metrics:
        assert np.array_equal(ours[name].values, once[name].values, equal_nan=True), name
    assert (ours.restarts.sel(failures="none") == 0).all()
    assert (ours.failures_seen.sel(failures="mtbf") > 0).any()


def test_a_store_of_all_metrics_takes_a_spec_of_fewer(tmp_path, client):
    """Such as one of a release that stored all of them: nothing runs again, and nothing is dropped."""
    path = tmp_path / "s.zarr"
    Sweep.of(spec(metrics=list(METRICS))).run(path, cluster=client, progress=False)
    assert Sweep.of(spec()).plan(path, measure=False, progress=False).missing == 0
    grown = Sweep(axes={"failures": ["none", "mtbf"]}, fixed={**PLAIN, "mtbf_h": 1}, replicates=2)
    assert grown.plan(path, measure=False, progress=False).missing == 2
    grown.run(path, cluster=client, progress=False)
    assert set(Store(path, mode="r").metrics) == set(METRICS)
    assert verify(path).damage == []


@pytest.mark.parametrize("writes", [0, 1, 7])
def test_a_growth_by_metrics_that_is_killed_goes_on(tmp_path, client, monkeypatch, writes):
    """Before anything is filled in, and after some of it."""
    path = tmp_path / "s.zarr"
    Sweep.of(spec()).run(path, cluster=client, progress=False)
    grown = Sweep(axes={"failures": ["none", "mtbf"]}, fixed={**PLAIN, "mtbf_h": 1}, replicates=2)
    real, done = KnownOutputs.fill, []

    def write(store, name, *given):
        if len(done) == writes:
            raise KeyboardInterrupt
        done.append(name)
        return block(store, name, *given)

    def fill(known, store):
        monkeypatch.setattr(Store, "write_block", write)
        real(known, store)

    block = Store.write_block
    monkeypatch.setattr(KnownOutputs, "fill", fill)
    with pytest.raises(BaseException):  # noqa: B017, PT011 - as the user's Ctrl-C
        grown.run(path, cluster=client, progress=False)
    monkeypatch.undo()
    assert len(done) == writes
    assert grown.plan(path, measure=False, progress=False).missing == 2
    data = grown.run(path, cluster=client, progress=False)
    assert (data.restarts.sel(failures="none") == 0).all()
    assert (data.status == 1).sum() >= 3
    assert verify(path).damage == []
