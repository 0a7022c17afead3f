"""Adaptive refinement: the place of a crossing or of saturation, and that a stopped search ends the same."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.verdict import describe_search, describe_searches, search_figure
from faultsweep.sweeps import search as searching
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.outputs import Output
from faultsweep.sweeps.refine import look, run_search
from faultsweep.sweeps.refinement import refine
from faultsweep.sweeps.store.statuses import DONE
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep

from faultsweep.__main__ import main
from faultsweep.errors import InputError

CROSSING = 0.745


def wait(policy, load, replicate, seed=0):
    """Means of 10 and of 10 load / 0.745, log-normal, with most of the noise in common."""
    rng = np.random.default_rng([seed, replicate])
    noise = 0.4 * rng.normal() + 0.01 * rng.normal(size=2)[int(policy == "steep")]
    return 10 * (load / CROSSING if policy == "steep" else 1) * float(np.exp(noise))


def busy(load, replicate, seed=0):
    """Utilisation that follows the load up to 0.8, with noise."""
    return min(load, 0.8) * float(np.exp(0.01 * np.random.default_rng([seed, replicate, int(1e6 * load)]).normal()))


def sweep(**changed):
    axes = {"policy": ["flat", "steep"], "load": [0.2, 1.2]}
    return Sweep(**{"axes": axes, "function": wait, "outputs": [Output("wait_s", better="lower")], **changed})


def read_search(raw, spec):
    """The search of a spec with one region."""
    [search] = searching.read_search(raw, spec.axes, spec.outputs)
    return search


@pytest.fixture(scope="module")
def searched(client, tmp_path_factory):
    path = tmp_path_factory.mktemp("refine") / "a.zarr"
    search = read_search({"width": 0.05}, sweep().spec)
    return path, search, run_search(sweep(), search, path, cluster=client, progress=False)


def test_a_crossing_is_found_to_the_width(searched):
    path, search, found = searched
    assert found.low <= CROSSING <= found.high
    assert found.high - found.low <= 0.05
    sentence = describe_search(search, found, open_results(path))
    assert sentence.startswith("steep is better by wait s below load 0.73")
    assert sentence.endswith("(95 % confidence), flat above.")
    figure = search_figure("a", open_results(path), search, found)
    assert len(figure.panels[0].curves[0].x) == len(found.points) == open_results(path).sizes["load"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.sampled(1)
def test_a_search_that_was_stopped_ends_as_if_it_had_not_been(searched, client, tmp_path, seed):
    path, search, found = searched
    copy = shutil.copytree(path, tmp_path / "a.zarr")
    random, store = np.random.default_rng(seed), Store(copy)
    store.forget((random.random(store.chunks.shape).ravel() < 0.4) & (store.status() == DONE))
    assert look(search, copy).needs is not None
    assert run_search(sweep(), search, copy, cluster=client, progress=False) == found


def test_saturation_is_found(client, tmp_path):
    study = Sweep(axes={"load": [0.4, 1.5]}, function=busy, outputs=["utilisation"])
    search = read_search({"find": "saturation", "width": 0.1}, study.spec)
    found = run_search(study, search, tmp_path / "a.zarr", cluster=client, progress=False)
    assert found.low <= 0.8 <= found.high
    assert found.high - found.low <= 0.1
    results = open_results(tmp_path / "a.zarr")
    assert describe_search(search, found, results).startswith("Saturation is at load 0.")
    assert search_figure("a", results, search, found).panels[0].curves[0].y.max() < 0.82


def simulated(place: float, seed: int, spread: float):
    """Paired observations at a point, of two curves that cross at ``place``."""

    def pairs_at(x: float) -> np.ndarray:
        rng = np.random.default_rng([seed, int(1e6 * x)])
        noise = rng.normal(size=(2, 200)) * spread
        return np.array([np.full(200, 10.0), np.full(200, 10.0 + x - place)]) + noise

    return pairs_at


def test_intervals_hold_the_place_as_often_as_they_say():
    held = 0
    for seed in range(60):
        place = float(np.random.default_rng([9, seed]).uniform(1, 9))
        found = refine(simulated(place, seed, 3.0), 0.0, 10.0, 0.5, confidence=0.8)
        held += found.low <= place <= found.high
    assert held >= 0.8 * 60


def test_a_cap_leaves_the_interval_wide_and_says_so():
    found = refine(simulated(5.01, 1, 3.0), 0.0, 10.0, 0.05)
    assert found.low < 5.01 < found.high
    assert found.high - found.low > 0.05
    assert 5.0 in found.open
    search = read_search({"width": 0.05}, sweep().spec)
    assert "; 200 replicates do not narrow it to 0.05." in describe_search(search, found, xr.Dataset())


def test_an_answer_about_a_log_as_it_is_says_so():
    found, search = refine(simulated(5.01, 1, 1.0), 0.0, 10.0, 0.5), read_search({"width": 0.5}, sweep().spec)
    for log, said in (("nasa", True), ("nasa-model", False)):
        results = xr.Dataset(attrs={"configuration": json.dumps({"log": log})})
        assert describe_searches([search], [found], results).endswith(" This holds for this log only.") == said


def test_two_policies_that_do_not_cross():
    found = refine(simulated(-5, 1, 1.0), 0.0, 10.0, 0.5)
    search = read_search({}, sweep().spec)
    sentence = "No crossing: flat is better by wait s at both ends of load 0 to 10."
    assert describe_search(search, found, xr.Dataset()) == sentence
    open_end = refine(simulated(0, 1, 1.0), 0.0, 10.0, 0.5)
    said = describe_search(search, open_end, xr.Dataset())
    assert said.startswith("Not decided: 200 replicates leave the answer at load 0 open")


def test_two_equal_policies_are_said_to_be_equal_after_the_first_replicates():
    values = np.random.default_rng(3).lognormal(0, 1, 200)
    found = refine(lambda x: np.stack([values, values]), 0.0, 10.0, 0.5)
    assert found.points == {0.0: 10, 10.0: 10}
    said = describe_search(read_search({}, sweep().spec), found, xr.Dataset())
    assert said == "Not decided: the results of flat and steep at load 0 are equal in the first 10 replicates."


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"along": "policy"}, "refine: along: unknown axis of a number with two labels or more 'policy'"),
        ({"find": "cross"}, "refine: unknown find 'cross'; did you mean 'crossing'?"),
        ({"policies": ["flat"]}, "refine: policies: a crossing needs 2 of flat, steep"),
        ({"policies": ["flat", "step"]}, "unknown label of policy 'step'; did you mean 'steep'?"),
        ({"width": 2}, "refine: width: expected a number between 0 and 1, got 2"),
        ({"most": 3}, "refine: most: expected a whole number of at least 10, got 3"),
        ({"metric": "x"}, "refine: metric: unknown metric 'x'"),
        ({"wide": 1}, "refine: unknown key 'wide'"),
    ],
)
def test_a_wrong_search_is_one_sentence(raw, sentence):
    with pytest.raises(InputError) as error:
        read_search(raw, sweep().spec)
    assert sentence in str(error.value)


def test_the_command_prints_the_answer_and_draws_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "study.toml").write_text(
        """
[fixed]
log = "sdsc-model"
num_jobs = 60
machine = "flat:128"
[axes]
scheduler = ["fcfs", "backfill"]
load_scale = [0.5, 1.5]
[refine]
most = 10
"""
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["faultsweep", "refine", "study.toml", "--workers", "1", "-o", "out", "--json", "-q"]
    )
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["answer"].startswith(("No crossing: Backfill is better", "Not decided"))
    assert (tmp_path / "out" / "study-crossing.png").stat().st_size > 10_000


def crossing(policy, load, site, replicate, seed=0):
    """As ``wait``, with another place of the crossing at each site."""
    return wait(policy, load * CROSSING / {"near": 0.5, "far": 0.9}[site], replicate, seed)


@pytest.mark.sampled(0)
def test_every_region_has_a_place_of_its_own(client, tmp_path):
    axes = {"policy": ["flat", "steep"], "load": [0.2, 1.2], "site": ["near", "far"]}
    study = Sweep(axes=axes, function=crossing, outputs=["wait_s"], better={"wait_s": "lower"})
    searches = searching.read_search({"width": 0.1, "axis": "policy"}, study.spec.axes, study.spec.outputs)
    assert [(search.at, search.regions) for search in searches] == [({"site": "near"}, 2), ({"site": "far"}, 2)]
    path = tmp_path / "a.zarr"
    found = [run_search(study, search, path, cluster=client, progress=False) for search in searches]
    for one, place in zip(found, (0.5, 0.9), strict=True):
        assert one.low <= place <= one.high
        assert one.high - one.low <= 0.1
    assert [look(search, path) for search in searches] == found
    results = open_results(path)
    text = describe_searches(searches, found, results)
    assert "site = near: steep is better by wait s below load 0.4" in text
    assert "site = far: steep is better by wait s below load 0." in text
    drawn = search_figure("a", results, searches, found)
    assert [panel.title for panel in drawn.panels] == ["site = near", "site = far"]
    assert [len(panel.curves[0].x) for panel in drawn.panels] == [len(one.points) for one in found]


def test_a_region_that_is_excluded_or_fails_does_not_stop_the_rest(client, tmp_path):
    axes = {"policy": ["flat", "steep"], "load": [0.2, 1.2], "site": ["near", "left out", "bad", "far"]}
    study = Sweep(
        axes=axes, function=partly, outputs=["wait_s"], better={"wait_s": "lower"}, exclude=[{"site": "left out"}]
    )
    searches = searching.read_search({"width": 0.2, "axis": "policy"}, study.spec.axes, study.spec.outputs)
    path = tmp_path / "a.zarr"
    found = [run_search(study, search, path, cluster=client, progress=False) for search in searches]
    assert [one.lacks for one in found] == [None, 0.2, 0.2, None]
    assert [one.found for one in found] == [True, False, False, True]
    assert found == [run_search(study, search, path, cluster=client, progress=False) for search in searches]
    text = describe_searches(searches, found, open_results(path))
    assert "site = left out: Not decided: load 0.2 is excluded, or a simulation there has no result." in text
    drawn = search_figure("a", open_results(path), searches, found)
    assert [panel.title for panel in drawn.panels] == ["site = near", "site = far"]
    with pytest.raises(InputError, match="nothing to draw; site = left out: Not decided"):
        search_figure("a", open_results(path), searches[1], found[1])


def test_a_point_without_a_number_is_lacking(searched, tmp_path):
    path, search, found = searched
    store = Store(shutil.copytree(path, tmp_path / "a.zarr"))
    values = store.arrays["wait_s"][...]
    store.arrays["wait_s"][...] = np.where(np.arange(values.shape[-1]) == 4, np.nan, values)
    assert look(search, tmp_path / "a.zarr").needs == (search.low, 10)
    assert found.needs is None


def partly(policy, load, site, replicate, seed=0):
    """As ``crossing``, but a site fails."""
    if site == "bad":
        raise ValueError("no results here")
    return crossing(policy, load, site, replicate, seed)


def test_saturation_of_every_policy_is_looked_for(client, tmp_path):
    study = Sweep(axes={"load": [0.4, 1.5], "policy": ["a", "b"]}, function=busier, outputs=["utilisation"])
    searches = searching.read_search({"find": "saturation", "width": 0.2}, study.spec.axes, study.spec.outputs)
    found = [run_search(study, search, tmp_path / "a.zarr", cluster=client, progress=False) for search in searches]
    assert [search.at for search in searches] == [{"policy": "a"}, {"policy": "b"}]
    assert all(one.low <= place <= one.high for one, place in zip(found, (0.6, 1.0), strict=True))


def busier(load, policy, replicate, seed=0):
    """Utilisation that follows the load up to 0.6 or to 1."""
    noise = 0.01 * np.random.default_rng([seed, replicate, int(1e6 * load)]).normal()
    return min(load, {"a": 0.6, "b": 1.0}[policy]) * float(np.exp(noise))


@pytest.mark.parametrize("name", ["run", "submit", "plan"])
def test_what_does_not_search_refuses_a_spec_that_asks_for_it(name, tmp_path, monkeypatch, command):
    text = "[axes]\nscheduler = ['fcfs', 'backfill']\nload_scale = [0.5, 1.5]\n[fixed]\nlog = 'sdsc-model'\n"
    (tmp_path / "a.toml").write_text(text + "machine = 'flat:128'\n[refine]\nwidth = 0.1\n")
    monkeypatch.chdir(tmp_path)
    code, _, err = command(name, "a.toml")
    assert (code, err.count("\n")) == (2, 1)
    assert "refine: a run does not search along load_scale; use 'faultsweep refine a.toml'" in err.replace(
        str(tmp_path) + "/", ""
    )
    assert not (tmp_path / "a.zarr").exists()
    (tmp_path / "a.toml").write_text(text + "machine = 'flat:128'\n[refine]\nwide = 0.1\n")
    assert "refine: unknown key 'wide'" in command(name, "a.toml")[2]
