"""Sequential replication: who gets more replicates, how many, and that a run that was stopped decides the same."""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from faultsweep.analysis.statistics import mean_interval
from faultsweep.cluster import connect as connect_module
from faultsweep.cluster.connect import connect
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.detached import count_missing
from faultsweep.sweeps.logs import load_workload
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.precision import Precision, read_precision, replicates_needed
from faultsweep.sweeps.runner.prepare import prepare
from faultsweep.sweeps.runner.runner import Runner
from faultsweep.sweeps.store.collector import Collector
from faultsweep.sweeps.store.statuses import DONE, NOT_REQUESTED
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep
from faultsweep.sweeps.target import Output
from scipy import stats

from faultsweep.errors import InputError


def noisy(spread, replicate, seed=0):
    """A number around 100."""
    return 100 + spread * float(np.random.default_rng([seed, replicate]).normal())


def noted(spread, replicate, calls, seed=0):
    """The same, and every call is noted."""
    with Path(calls).open("a") as file:
        file.write(f"{spread} {replicate}\n")
    return noisy(spread, replicate, seed)


def sweep(**changed):
    settings = {"axes": {"spread": [0.0, 1.0, 20.0]}, "function": noisy, "outputs": ["y"], "precision": "5%"}
    return Sweep(**{**settings, **changed})


@pytest.fixture(scope="module")
def store(client, tmp_path_factory):
    path = tmp_path_factory.mktemp("precision") / "a.zarr"
    sweep().run(path, cluster=client, progress=False)
    return path


def test_only_cells_that_need_them_get_more_replicates(store):
    results = open_results(store)
    found = mean_interval(results["y"], results["status"])
    assert found["n"].values[:2].tolist() == [5, 5]
    assert 5 < found["n"].values[2] <= 100
    assert ((found["high"] - found["mean"]) / found["mean"])[1:].max() <= 0.05
    status = Store(store, mode="r").status().reshape(3, -1)
    assert (status[:2, 5:] == NOT_REQUESTED).all()
    assert (status[2] == DONE).all()


def test_a_submission_knows_that_replicates_are_missing(store, client, tmp_path):
    spec = sweep().spec
    assert count_missing(spec, prepare(spec, store)) == (0, True)
    sweep(precision=None, replicates=5).run(tmp_path / "a.zarr", cluster=client, progress=False)
    assert count_missing(spec, prepare(spec, tmp_path / "a.zarr")) == (5, False)


def test_a_replicate_more_is_the_one_that_it_always_was(store):
    """The first five are those of a sweep without a precision, and so is the last one."""
    results = open_results(store)
    for replicate in results["replicate"].values:
        assert results["y"].sel(spread=20.0, replicate=replicate) == noisy(20.0, int(replicate))


def test_running_it_again_adds_nothing(store, client):
    before = open_results(store).load()
    sweep().run(store, cluster=client, progress=False)
    assert open_results(store).load()["y"].identical(before["y"])


SPREADS = {"spread": [10.0, 15.0, 20.0, 24.0, 30.0]}
"""Of configurations that need 5, 8, 54, 93 and 100 replicates, found in up to eight rounds."""


@pytest.fixture(scope="module")
def undisturbed(client, tmp_path_factory):
    path = tmp_path_factory.mktemp("undisturbed") / "a.zarr"
    sweep(axes=SPREADS).run(path, cluster=client, progress=False)
    assert len(set(replicates(path))) == 5
    return path


def replicates(path):
    return (open_results(path)["status"] == DONE).sum("replicate").values.tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.sampled(2)
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(undisturbed, client, tmp_path, seed):
    """A kill leaves any cells of a round, not the first ones: here any of all rounds are gone, few or most of them."""
    path = shutil.copytree(undisturbed, tmp_path / "a.zarr")
    random, store = np.random.default_rng(seed), Store(path)
    store.forget((random.random(store.chunks.shape).ravel() < random.random()) & (store.status() == DONE))
    assert replicates(path) != replicates(undisturbed)
    sweep(axes=SPREADS).run(path, cluster=client, progress=False)
    assert np.array_equal(Store(path).status(), Store(undisturbed).status())
    assert open_results(path)["y"].identical(open_results(undisturbed)["y"])


def test_a_kill_in_a_later_round_loses_no_finished_run(client, tmp_path, monkeypatch):
    """What stands in journals alone is of the round that was begun, not of the first one."""
    calls, rounds, path = tmp_path / "calls", [], tmp_path / "a.zarr"
    study = sweep(axes={"spread": [15.0, 20.0]}, fixed={"calls": str(calls)}, function=noted, precision="6%")
    run, add = Runner.run, Collector.add

    def note(self, cells):
        rounds.append(cells)
        run(self, cells)

    def die_in_the_second(self, results):
        if len(rounds) == 1:
            return add(self, results)
        while len(calls.read_text().splitlines()) < sum(map(len, rounds)):
            time.sleep(0.1)
        raise MemoryError("the client dies here")

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", note)
        patch.setattr(Collector, "add", die_in_the_second)
        with pytest.raises(MemoryError):
            study.run(path, cluster=client, progress=False)
    assert (Store(path).status() == DONE).sum() == len(rounds[0]) == 10
    study.run(path, cluster=client, progress=False)
    lines = calls.read_text().splitlines()
    assert len(lines) == len(set(lines)) == sum(replicates(path))
    assert len(Store(path).text("provenance")) == 2


@pytest.mark.parametrize("count", [6, 7, 8, 9])
@pytest.mark.sampled(1)
def test_replicates_that_a_store_has_beyond_a_round_decide_nothing(undisturbed, client, tmp_path, count):
    for first in (5, count):
        plain = sweep(axes=SPREADS, precision=None, replicates=first)
        plain.run(tmp_path / "a.zarr", cluster=client, progress=False)
    sweep(axes=SPREADS).run(tmp_path / "a.zarr", cluster=client, progress=False)
    assert replicates(tmp_path / "a.zarr") == [max(count, alone) for alone in replicates(undisturbed)]


def test_a_store_that_grows_by_another_precision_ends_like_a_new_one(client, tmp_path):
    fine = sweep(axes=SPREADS, precision="4%", replicates=6)
    fine.run(tmp_path / "new.zarr", cluster=client, progress=False)
    for study in (sweep(axes={"spread": [20.0, 15.0]}, precision="9%"), fine):
        study.run(tmp_path / "grown.zarr", cluster=client, progress=False)
    new, grown = (open_results(tmp_path / name) for name in ("new.zarr", "grown.zarr"))
    assert grown["y"].identical(new["y"])


def test_a_cap_is_kept(client, tmp_path):
    sweep(precision={"within": "0.1%", "most": 7}).run(tmp_path / "a.zarr", cluster=client, progress=False)
    results = open_results(tmp_path / "a.zarr")
    assert results["y"].notnull().sum("replicate").values.tolist() == [5, 7, 7]


def test_all_rounds_have_the_same_workers(client, tmp_path, monkeypatch):
    """Starting processes takes seconds: a run does it once, however many rounds it has."""
    started, rounds = [], []
    monkeypatch.setattr(connect_module, "_local", lambda workers, dashboard: started.append(workers) or connect(client))
    run = Runner.run
    monkeypatch.setattr(Runner, "run", lambda self, cells: rounds.append(len(cells)) or run(self, cells))
    wanted = {"within": "2%", "most": 25}
    sweep(precision=wanted).run(tmp_path / "a.zarr", workers=1, progress=False)
    assert started == [1]
    assert rounds[0] == 15
    assert len(rounds) > 2
    sweep(precision=wanted).run(tmp_path / "a.zarr", workers=1, progress=False)
    assert started == [1]  # nothing is missing: nothing is started


def test_the_simulator_gets_replicates_until_its_intervals_are_narrow(client, tmp_path):
    fixed = {"log": "sdsc-model", "num_jobs": 40, "machine": "flat:128", "failures": "mtbf", "mtbf_h": 24.0}
    precision = {"within": "25%", "metrics": ["utilisation", "mean_wait_s"], "most": 9}
    study = Sweep(
        axes={"load_scale": [0.1, 1.0]}, fixed=fixed, metrics=["mean_wait_s", "utilisation"], precision=precision
    )
    results = study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    wide = np.zeros(2, bool)
    for metric in precision["metrics"]:
        found = mean_interval(results[metric], results["status"])
        wide |= (found["high"] - found["mean"] > 0.25 * found["mean"]).values
    count = results["utilisation"].notnull().sum("replicate").values
    assert count.max() > 5
    assert (count[wide] == 9).all()
    again = {**fixed, "load_scale": 1.0, "replicate": int(count[1]) - 1}
    jobs = load_workload(again.pop("log"), num_jobs=40, replicate=again["replicate"])
    alone = simulate(jobs, **again).metrics["mean_wait_s"]
    assert results["mean_wait_s"].sel(load_scale=1.0, replicate=again["replicate"]) == alone


def needed_by_hand(spread, within, most):
    """Half-width h of n replicates shrinks as 1 / sqrt(n): n (h / wanted)^2 of them, at most twice as many.

    On the logarithm of the mean, a bound is exp(t s / (m sqrt(n))) times the mean.
    """
    values = np.array([noisy(spread, replicate) for replicate in range(5)])
    share = math.expm1(stats.t.ppf(0.975, 4) * values.std(ddof=1) / math.sqrt(5) / values.mean())
    if share <= within:
        return 5
    return min(max(6, math.ceil(5 * (share / within) ** 2)), 10, most)


def test_how_many_are_needed_by_hand(client, tmp_path):
    sweep(precision=None, replicates=5).run(tmp_path / "a.zarr", cluster=client, progress=False)
    made = Store(tmp_path / "a.zarr", mode="r")
    seen = set()
    for within, most in ((0.2, 99), (0.1, 99), (0.08, 99), (0.07, 99), (0.06, 99), (0.01, 99), (0.001, 7)):
        expected = [needed_by_hand(spread, within, most) for spread in (0.0, 1.0, 20.0)]
        have, needed = replicates_needed(made, Precision(within, ("y",), most))
        assert (have.tolist(), needed.tolist()) == ([5, 5, 5], expected)
        seen.update(expected)
    assert {5, 7, 10} <= seen


def skewed(replicate, seed=0):
    """Log-normal numbers."""
    return float(np.random.default_rng([seed, replicate]).lognormal(0, 0.9))


def test_a_store_ends_by_the_rule_that_it_began_with(client, tmp_path):
    """An older store does not say which; it has asked for a precision by t intervals. Here they need fewer."""
    wanted = {"axes": {"seed": [3, 4]}, "function": skewed, "precision": {"within": "40%", "most": 60}}
    rounds = {}
    for rule in ("delta", "t"):
        path = tmp_path / f"{rule}.zarr"
        study = sweep(**wanted, replicates=5)
        few = {**wanted, "precision": {**wanted["precision"], "most": 5}}
        sweep(**few, replicates=5).run(path, cluster=client, progress=False)
        made = Store(path)
        assert made.attributes["precision_rule"] == "delta"
        if rule == "t":
            made.commit(precision_rule=None)
        study.run(path, cluster=client, progress=False)
        assert Store(path).attributes["precision_rule"] == rule
        rounds[rule] = replicates(path)
        found = open_results(path)
        count = np.array(rounds[rule])
        bound = mean_interval(found["y"], found["status"], scale={"delta": "auto", "t": "identity"}[rule])
        assert (((bound["high"] - bound["mean"]) / bound["mean"] <= 0.4).values | (count == 60)).all()
    assert rounds["t"] != rounds["delta"]


def test_configurations_that_are_not_asked_for_get_none(client, tmp_path):
    sweep(precision=None, replicates=5).run(tmp_path / "a.zarr", cluster=client, progress=False)
    sweep(axes={"spread": [0.0, 1.0]}).run(tmp_path / "a.zarr", cluster=client, progress=False)
    assert open_results(tmp_path / "a.zarr").sizes["replicate"] == 5


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("5", "within: expected a share of the mean such as \"5%\" or 0.05, got '5'"),
        (0, "within: expected a share of the mean"),
        ({"most": 5}, "within: expected a share of the mean"),
        ({"within": 0.1, "metrics": "z"}, "metrics: unknown metric 'z'"),
        ({"within": 0.1, "most": 3}, "most: expected a whole number of at least 5 (replicates), got 3"),
        ({"within": 0.1, "level": 95}, "level: expected a number between 0 and 1, got 95"),
        ({"with": 0.1}, "unknown key 'with'; did you mean 'within'?"),
    ],
)
def test_a_wrong_precision_is_one_sentence(raw, sentence):
    with pytest.raises(InputError) as error:
        sweep(precision=raw)
    assert f"precision: {sentence}" in str(error.value)


def test_one_replicate_has_no_interval():
    with pytest.raises(InputError, match="an interval needs two replicates or more"):
        sweep(replicates=1)
    assert read_precision("2.5%", [Output("y")], 5) == Precision(0.025, ("y",))


def test_the_plan_says_how_many_may_be_added(tmp_path):
    plan = sweep().plan(tmp_path / "a.zarr", measure=False)
    assert plan.precision == (
        "where an interval of y is wider than 5 %, up to 100 replicates: at most 285 more simulations"
    )
    assert sweep(precision=None, replicates=2).plan(tmp_path / "a.zarr", measure=False).precision == ""
