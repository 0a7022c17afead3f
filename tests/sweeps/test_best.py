"""Selection of the best policy: who gets more replicates, what is said, and that a stopped run ends the same."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from faultsweep.analysis import report
from faultsweep.analysis.figures.draw import draw
from faultsweep.analysis.report import write_report
from faultsweep.analysis.verdict import compare_policies, how_much_worse, judge, selected, verdict_figure
from faultsweep.sweeps.best import Best, regions, regions_of
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.outputs import Output
from faultsweep.sweeps.runner.prepare import prepare
from faultsweep.sweeps.selection import FEWEST, looks, normal_batches, ratio_bounds, select, survivors
from faultsweep.sweeps.store.statuses import DONE, NOT_REQUESTED
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.sweep import Sweep

from faultsweep.__main__ import main
from faultsweep.errors import InputError
from tests.analysis.stores import STATUSES, make_results

MEANS = {"good": 10.0, "near": 11.0, "twin": 10.0, "bad": 30.0}


def wait(policy, load, replicate, seed=0):
    """Log-normal waits; what replicates have in common is most of it. A twin does what the good policy does."""
    rng = np.random.default_rng([seed, replicate, int(10 * load)])
    common, own = rng.normal(), rng.normal(size=3)
    index = {"good": 0, "twin": 0, "near": 1, "bad": 2}[policy]
    return MEANS[policy] * float(np.exp(0.4 * common + 0.06 * own[index]))


def sweep(**changed):
    settings = {
        "axes": {"policy": list(MEANS), "load": [0.5, 1.0]},
        "function": wait,
        "outputs": [Output("wait_s", better="lower")],
        "best": {"most": 120},
    }
    return Sweep(**{**settings, **changed})


@pytest.fixture(scope="module")
def store(client, tmp_path_factory):
    path = tmp_path_factory.mktemp("best") / "a.zarr"
    sweep().run(path, cluster=client, progress=False)
    return path


@pytest.fixture
def without_pictures(monkeypatch):
    """Pictures of reports take most of their time, and are looked at elsewhere."""
    monkeypatch.setattr(report, "_picture", lambda figure: "")


def verdict_of(path, study=None):
    spec = (study or sweep()).spec
    found = regions(Store(path, mode="r"), spec.best, prepare(spec, path).asked)
    return judge(open_results(path), spec.best, found), found


def counts(path):
    return (open_results(path)["status"] == DONE).sum("replicate")


def test_replicates_are_added_to_survivors_only(store):
    done = counts(store)
    assert (done.sel(policy="bad") == FEWEST).all()
    assert (done.sel(policy="twin") == FEWEST).all()
    assert (done.sel(policy="near") > FEWEST).all()
    assert (done.sel(policy="good") == done.sel(policy="near")).all()


def test_the_verdict_names_the_best_and_how_much_worse_the_others_are(store):
    verdict, found = verdict_of(store)
    assert "as good or worse" in verdict.table["result"].values  # so the policy called best may be the second one
    assert verdict.sentence == "good = twin is best, or within 5 % of the best, in all 2 regions."
    assert [region.at for region in found] == [{"load": 0.5}, {"load": 1.0}]
    assert verdict.simulations + verdict.saved == sum(3 * region.selection.looked.max() for region in found) + sum(
        region.selection.looked.max() for region in found
    )
    assert verdict.saved > 0
    for _, row in verdict.table[verdict.table["policy"] == "near"].iterrows():
        assert row["worse_low"] < 0.1 < row["worse_high"]
        assert row["result"] == ("as good or worse" if row["worse_low"] <= 0 else "worse")
    figure = verdict_figure("a", sweep().spec.best, verdict)
    assert figure.panels[0].categories == ["load = 0.5", "load = 1"]
    assert verdict.shown.columns[0] == "Load"
    assert figure.title == verdict.sentence


def test_many_policies_that_may_be_best_stay_a_sentence():
    policies, best = [f"p{n}" for n in range(50)], Best("policy", "mean_wait_s", most=10)
    values = np.random.default_rng(1).lognormal(0, 1, (50, 10))
    results = make_results({"policy": policies}, {best.metric: values}, replicates=10)
    axes = {"policy": policies, "replicate": list(range(10))}
    found = regions_of(best, axes, results["status"].values, values, np.ones(50, bool))
    sentence = judge(results, best, found).sentence
    assert re.fullmatch(r"Not decided after 10 replicates: each of (p\d+, ){5}p\d+ and \d+ others may be .*", sentence)


def test_one_region_is_one_sentence(client, tmp_path):
    study = sweep(axes={"policy": ["bad", "good", "near"]}, fixed={"load": 1.0})
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    sentence = verdict_of(tmp_path / "a.zarr", study)[0].sentence
    assert sentence.startswith("good is best by wait s, or within 5 % of the best; second is near, ")
    share = float(sentence.split("near, ")[1].split(" %")[0])
    assert "worse (−" in sentence
    assert 5 < share < 15
    assert " % worse (" in sentence


def test_a_cap_is_kept_and_the_answer_is_not_decided(client, tmp_path):
    study = sweep(axes={"policy": ["good", "near", "bad"]}, fixed={"load": 1.0}, best={"most": 11, "zone": "1%"})
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    verdict, _ = verdict_of(tmp_path / "a.zarr", study)
    assert verdict.sentence == "Not decided after 11 replicates: each of good and near may be the best by wait s."
    assert counts(tmp_path / "a.zarr").values.tolist() == [11, 11, 10]


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(store, client, tmp_path, seed):
    path = shutil.copytree(store, tmp_path / "a.zarr")
    random, made = np.random.default_rng(seed), Store(path)
    made.forget((random.random(made.chunks.shape).ravel() < random.random()) & (made.status() == DONE))
    sweep().run(path, cluster=client, progress=False)
    assert (counts(path) == counts(store)).all()
    assert open_results(path)["wait_s"].identical(open_results(store)["wait_s"])
    assert verdict_of(path)[0].sentence == verdict_of(store)[0].sentence


def test_replicates_that_a_store_has_already_decide_nothing(store, client, tmp_path):
    sweep(best=None, replicates=25).run(tmp_path / "a.zarr", cluster=client, progress=False)
    sweep().run(tmp_path / "a.zarr", cluster=client, progress=False)
    one, other = (verdict_of(path)[1] for path in (tmp_path / "a.zarr", store))
    for a, b in zip(one, other, strict=True):
        assert (a.selection.alive, a.selection.looked.tolist()) == (b.selection.alive, b.selection.looked.tolist())


def fails(policy, replicate, seed=0):
    """A policy whose third replicate fails."""
    if policy == "broken" and replicate == 2:
        raise ValueError("out of memory")
    return {"broken": 1.0, "b": 2.0, "c": 6.0}[policy] * float(np.random.default_rng([seed, replicate]).uniform(0.9, 1))


def test_a_policy_that_fails_is_out_and_the_answer_says_so(client, tmp_path):
    study = Sweep(axes={"policy": ["broken", "b", "c"]}, function=fails, outputs=["y"], better={"y": "lower"}, best={})
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    verdict, _ = verdict_of(tmp_path / "a.zarr", study)
    assert re.fullmatch(r"b is best by y; second is c, 200 % worse; without a result: broken\.", verdict.sentence)
    assert verdict.table.set_index("policy")["result"].to_dict() == {"b": "best", "c": "worse", "broken": "no result"}


def test_a_policy_without_a_number_is_out():
    best, axes = Best("policy", "y"), {"policy": ["a", "b"], "replicate": list(range(10))}
    values = np.random.default_rng(1).lognormal(0, 0.1, (2, 10))
    for number in (np.nan, np.inf):
        values[0, 3] = number
        [region] = regions_of(best, axes, np.full((2, 10), DONE, np.int8), values, np.ones(2, bool))
        assert (region.failed_labels, region.labels) == (["a"], ["b"])
        assert region.selection.decided


def idle(policy, load, replicate, seed=0):
    """No policy waits at no load; at load one all but one do, one of them about as little as the best."""
    noise = np.random.default_rng([seed, replicate, len(policy)]).lognormal(0, 0.15)
    return load * {"best": 10.0, "close": 11.0, "wild": 40.0, "never": 0.0}[policy] * float(noise)


def idle_verdict(client, path, policies, loads, zone="5%"):
    axes = {"policy": policies, "load": loads}
    outputs = [Output("wait_s", better="lower")]
    study = Sweep(axes=axes, function=idle, outputs=outputs, best={"most": 400, "zone": zone})
    study.run(path, cluster=client, progress=False)
    return verdict_of(path, study)[0], study.spec.best


def test_policies_that_tie_at_zero_have_bars_of_the_ratio_one(client, tmp_path):
    verdict, best = idle_verdict(client, tmp_path / "a.zarr", ["best", "wild"], [0.0, 1.0])
    assert verdict.table.loc[verdict.table["load"] == 0, "worse"].tolist() == [0.0, 0.0]
    bars = verdict_figure("a", best, verdict).panels[0].bars
    assert [part.y[0] for part in bars] == [1.0, 1.0]


def test_a_policy_is_compared_with_a_best_mean_of_zero_by_its_own_mean(client, tmp_path):
    sentence = idle_verdict(client, tmp_path / "a.zarr", ["never", "wild"], [1.0])[0].sentence
    assert re.fullmatch(r"never is best by wait s; second is wild, [34]\d\.\d+ against 0\.", sentence)


def test_a_policy_whose_interval_reaches_below_the_best_is_not_called_worse(client, tmp_path):
    table = idle_verdict(client, tmp_path / "a.zarr", ["best", "close", "wild"], [1.0], "20%")[0].table
    for _, row in table[table["result"] != "best"].iterrows():
        assert row["result"] == ("as good or worse" if row["worse_low"] <= 0 else "worse")
    assert table["result"].tolist() == ["best", "as good or worse", "worse"]


def said_of(values, status=None, log="sdsc-model", zone=0.05):
    """The verdict on results, shape (policies, replicates), and its picture."""
    policies, best = [f"p{n}" for n in range(len(values))], Best("policy", "y", zone, first=10, most=values.shape[1])
    status = np.full(values.shape, DONE, np.int8) if status is None else status
    results = make_results({"policy": policies}, {"y": values}, status, values.shape[1], fixed={"log": log})
    axes = {"policy": policies, "replicate": list(range(values.shape[1]))}
    verdict = judge(results, best, regions_of(best, axes, status, values, np.ones(len(values), bool)))
    return verdict, verdict_figure("a", best, verdict)


def test_a_policy_that_may_be_second_is_called_best_or_within_the_zone():
    noise = np.random.default_rng(2).lognormal(0, 0.3, (3, 200))
    verdict, figure = said_of(noise * np.array([[1.0], [1.1], [9.0]]), zone=0.2)
    assert verdict.sentence.startswith("p0 is best by y, or within 20 % of the best; second is p1, ")
    assert figure.title == verdict.sentence
    clear, _ = said_of(noise * np.array([[1.0], [3.0], [9.0]]), zone=0.2)
    assert clear.sentence.startswith("p0 is best by y; second is p1, ")


def test_equal_results_are_called_no_difference():
    rows = np.tile(np.random.default_rng(1).lognormal(0, 1, 12), (3, 1))
    for values in (rows, np.zeros((3, 12))):
        assert said_of(values)[0].sentence == "No difference by y: p0 = p1 = p2."


def test_a_log_as_it_is_was_simulated_once_and_has_no_interval():
    status = np.full((2, 10), STATUSES.index("copy"), np.int8)
    status[:, 0] = DONE
    verdict, figure = said_of(np.repeat([[3.0], [4.0]], 10, 1), status, "nasa")
    assert verdict.sentence == "p0 is best by y; second is p1, 33 % worse. This holds for this log only."
    assert (verdict.simulations, verdict.saved) == (2, 0)
    assert "Nothing is random" in figure.text
    assert "probability" not in figure.text


def test_a_selection_without_a_result_has_an_empty_picture(tmp_path):
    verdict, figure = said_of(np.full((2, 10), np.nan), np.full((2, 10), STATUSES.index("failed"), np.int8))
    assert verdict.sentence == "Not decided: each policy has a simulation without a result by y."
    assert "Nothing is random" not in figure.text
    assert all(path.exists() for path in draw(figure, tmp_path))


def test_one_ratio_in_all_replicates_has_no_interval():
    values = np.random.default_rng(1).lognormal(0, 0.5, 200) * np.array([[1.0], [1.12], [2.0]])
    assert said_of(values)[0].sentence == "p0 is best by y; second is p1, 12 % worse."


@pytest.mark.usefixtures("without_pictures")
def test_a_report_draws_the_metric_that_a_selection_decides_by(client, monkeypatch, tmp_path):
    outputs = [Output("mean_bounded_slowdown", better="lower"), Output("wait_s", better="lower")]
    axes = {"policy": ["good", "bad"], "load": [0.5, 1.0]}
    study = sweep(axes=axes, function=both, outputs=outputs, best={"metric": "wait_s"})
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    drawn = []
    monkeypatch.setattr(report, "_first_figure", lambda data, metric: drawn.append(metric) or "")
    write_report(open_results(tmp_path / "a.zarr"), tmp_path / "a.html")
    assert drawn == ["wait_s"]
    words = re.sub(r"<[^>]*>", " ", (tmp_path / "a.html").read_text())
    assert "by the selection" in words
    assert "has the lowest" not in words  # a test at the end of a selection errs more often than it says


def both(policy, load, replicate, seed=0):
    value = wait(policy, load, replicate, seed)
    return {"mean_bounded_slowdown": 1 + value, "wait_s": value}


@pytest.mark.parametrize("higher", [False, True])
@pytest.mark.sampled(1)
def test_an_interval_leaves_out_no_difference_exactly_where_policies_are_told_apart(higher):
    random, seen = np.random.default_rng(7), Counter()
    for _ in range(150):
        values = random.lognormal(random.normal(0, 0.2, (4, 1)), random.uniform(0.02, 0.7), (4, 40))
        values *= random.lognormal(0, random.uniform(0, 0.5), 40)
        values[random.random((4, 40)) < random.choice([0, 0.2])] = 0.0
        best = Best("policy", "y", zone=random.choice([0.01, 0.1, 0.5]), most=40, higher_is_better=higher)
        have = random.choice([10, 23, 40])
        values[:, have:], status = np.nan, np.full((4, 40), DONE, np.int8)
        status[:, have:] = NOT_REQUESTED
        results = make_results({"policy": list("abcd")}, {"y": values}, replicates=40)
        axes = {"policy": list("abcd"), "replicate": list(range(40))}
        [region] = regions_of(best, axes, status, values, np.ones(4, bool))
        for _, row in judge(results, best, [region]).table.iterrows():
            seen[row["result"]] += 1
            if not np.isnan(row["worse_low"]):
                assert row["worse_low"] <= row["worse"] <= row["worse_high"]
                assert row["worse_high"] >= 0
                assert (row["worse_low"] > 0) == (row["result"] == "worse")
    assert min(seen[result] for result in ("best", "worse", "as good or worse", "not decided")) > 5


def test_higher_can_be_better():
    rng = np.random.default_rng(3)
    common = rng.lognormal(0, 0.2, 40)
    values = np.array([[0.6], [0.8], [0.5]]) * common * rng.lognormal(0, 0.02, (3, 40))
    settings = {"error": 0.05, "zone": 0.05, "most": 40}
    assert select(values, np.full(3, 40), higher_is_better=True, **settings).alive == [1]
    assert select(values, np.full(3, 40), **settings).alive == [2]


def test_survivors_by_hand():
    """Paired t statistics of one policy against another, and against 1.2 times it."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(100, 10, 12), rng.normal(108, 10, 12)
    from scipy import stats

    for error in (0.001, 0.01, 0.05, 0.2, 0.4):
        out = stats.ttest_rel(b, a).statistic > stats.t.ppf(1 - error, 11)
        near = stats.ttest_rel(1.2 * b, a).statistic > stats.t.ppf(1 - error, 11)
        assert survivors(np.stack([a, b]), error, 0.2).tolist() == [True, not (out or near)]


@pytest.mark.parametrize("power", [-1000, -600, 600, 1000])
def test_very_large_and_small_numbers_are_selected_as_others_are(power):
    """Their squares are no numbers that a computer holds."""
    values = np.random.default_rng(3).lognormal(0, 0.3, (3, 40)) * np.array([[1.0], [1.06], [1.5]])
    for count in (10, 20, 40):
        kept = [survivors(np.ldexp(values[:, :count], exponent), 0.01, 0.05).tolist() for exponent in (0, power)]
        assert kept[0] == kept[1]
    found = select(values, np.full(3, 40), error=0.05, zone=0.05, most=40)
    bounds = [
        ratio_bounds(found, np.ldexp(values, exponent), 2, 0, error=0.025, first=10, most=40) for exponent in (0, power)
    ]
    assert bounds[0] == bounds[1]


def test_batches_are_made_until_their_differences_look_normal():
    rng = np.random.default_rng(5)
    normal = rng.normal(50, 1, (2, 200))
    assert normal_batches(normal).shape == (2, 200)
    skewed = np.stack([rng.lognormal(0, 1.5, 640), np.full(640, 3.0)])
    batches = normal_batches(skewed)
    assert 10 <= batches.shape[1] < 640
    assert batches[0, 0] / batches[1, 0] == pytest.approx(skewed[0, : 640 // batches.shape[1]].mean() / 3.0)
    assert normal_batches(np.stack([rng.lognormal(0, 3, 12), np.full(12, 3.0)])) is None


def test_looks_grow_by_a_fifth_up_to_the_cap():
    assert list(looks(10, 30)) == [10, 12, 14, 16, 19, 22, 26, 30]
    assert list(looks(10, 10)) == [10]


def test_policies_may_be_good_for_nothing():
    """Waits that are all zero are the best; no ratio to them exists."""
    found = select(np.stack([np.zeros(10), np.arange(1.0, 11)]), np.full(2, 10), error=0.05, zone=0.05, most=10)
    assert (found.alive, found.decided) == ([0], True)


def test_a_table_of_policies(store):
    table = compare_policies(open_results(store))
    assert table.columns.tolist() == [
        *("load", "policy", "mean", "low", "high", "n"),
        *("ratio", "ratio_low", "ratio_high", "p", "as_good"),
    ]
    assert table.groupby("load")["policy"].first().isin(["good", "twin"]).all()
    assert table.attrs["scope"] == ""
    with pytest.raises(InputError, match="unknown metric 'slow'"):
        compare_policies(open_results(store), metric="slow")
    with pytest.raises(InputError, match="unknown axis 'polic'"):
        compare_policies(open_results(store), policy="polic")


@pytest.mark.parametrize(
    ("best", "sentence"),
    [
        ({"axis": "loads"}, "best: axis: unknown axis with two labels or more 'loads'; did you mean 'load'?"),
        ({"metric": "wait"}, "best: metric: unknown metric 'wait'; did you mean 'wait_s'?"),
        ({"zone": 5}, 'best: zone: expected a share of the mean such as "5%" or 0.05, got 5'),
        ({"confidence": 95}, "best: confidence: expected a number from 0.5 to below 1, got 95"),
        ({"most": 9}, "best: most: expected a whole number of at least 10 (the first replicates), got 9"),
        ({"zones": 1}, "best: unknown key 'zones'; did you mean 'zone'?"),
        ("policy", "best: expected a table, got 'policy'"),
    ],
)
def test_a_wrong_selection_is_one_sentence(best, sentence):
    with pytest.raises(InputError) as error:
        sweep(best=best)
    assert sentence in str(error.value)


def test_a_selection_and_a_precision_are_two_ways():
    with pytest.raises(InputError, match="leave one out"):
        sweep(precision="5%")
    with pytest.raises(InputError, match="no axis of names has two labels or more"):
        sweep(axes={"policy": ["good"], "load": [0.5, 1.0]})
    assert sweep(replicates=3).spec.best == Best("policy", "wait_s", most=120)
    assert len(sweep(replicates=30).spec.axes[-1]) == 30


def test_a_metric_below_zero_has_no_ratio(client, tmp_path):
    def loss(policy, replicate, seed=0):
        return -1.0 if policy == "a" else 1.0 + replicate

    study = Sweep(axes={"policy": ["a", "b"]}, function=loss, outputs=["y"], better={"y": "lower"}, best={})
    with pytest.raises(InputError, match="y is negative in some results"):
        study.run(tmp_path / "a.zarr", cluster=client, progress=False)


@pytest.mark.usefixtures("on_client")
@pytest.mark.parametrize("draws", [True, False])
def test_the_command_prints_the_answer_and_draws_it(tmp_path, monkeypatch, capsys, draws):
    """Without what draws pictures there is none, and the answer is the same."""
    spec = tmp_path / "study.toml"
    spec.write_text(
        """
[fixed]
log = "sdsc-model"
num_jobs = 60
machine = "flat:128"
[axes]
scheduler = ["fcfs", "backfill"]
"""
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("faultsweep.cli.best.is_installed", lambda package: draws)
    options = ["--most", "12", "--zone", "20%", "--workers", "1", "-o", "out", "--json", "-q"]
    monkeypatch.setattr("sys.argv", ["faultsweep", "best", "study.toml", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    assert {row["policy"] for row in answer["table"]} == {"fcfs", "backfill"}
    assert answer["simulations"] + answer["saved"] in (20, 24)
    assert "mean bounded slowdown" in answer["verdict"]
    picture = tmp_path / "out" / "study-best.png"
    assert picture.stat().st_size > 10_000 if draws else not picture.exists()
    monkeypatch.setattr("sys.argv", ["faultsweep", "best", "study.toml", *options[:-2], "-q"])
    with pytest.raises(SystemExit):
        main()
    said = "drawn in out/study-best.png" if draws else "no picture: that needs matplotlib, which is not installed"
    assert said in capsys.readouterr().out


def speed(policy, replicate, seed=0):
    """More is better: the fast policy has 20 to the slow one's 10."""
    noise = 0.1 * np.random.default_rng([seed, replicate]).normal()
    return {"slow": 10.0, "fast": 20.0}[policy] * float(np.exp(noise))


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("declared", ["function", "spec"])
def test_more_is_better_where_the_function_or_the_spec_says_so(declared, client, tmp_path):
    said = (
        {"outputs": [Output("speed", better="higher")]}
        if declared == "function"
        else {"outputs": ["speed"], "better": {"speed": "higher"}}
    )
    study = Sweep(axes={"policy": ["slow", "fast"]}, function=speed, best={}, **said)
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    verdict, _ = verdict_of(tmp_path / "a.zarr", study)
    assert verdict.sentence.startswith("fast is best by speed; second is slow, ")
    results = open_results(tmp_path / "a.zarr")
    assert compare_policies(results)["policy"].tolist() == ["fast", "slow"]
    write_report(results, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "fast is best by speed" in page
    assert "Speed, by the selection" in page


@pytest.mark.usefixtures("without_pictures")
def test_a_metric_of_a_function_needs_a_direction(client, tmp_path):
    wanted = r"speed: is a higher value better, or a lower one\? Say so in the spec with better = "
    with pytest.raises(InputError, match=wanted):
        Sweep(axes={"policy": ["slow", "fast"]}, function=speed, outputs=["speed"], best={})
    study = Sweep(axes={"policy": ["slow", "fast"]}, function=speed, outputs=["speed"], replicates=3)
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    results = open_results(tmp_path / "a.zarr")
    with pytest.raises(InputError, match=wanted):
        compare_policies(results)
    write_report(results, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert "No best policy by speed: nothing says whether more is better." in page
    assert "lowest speed" not in page


@pytest.mark.parametrize(
    ("better", "sentence"),
    [
        ({"speed": "more"}, "better.speed: expected higher or lower, got 'more'"),
        ({"sped": "higher"}, "better: unknown metric 'sped'; did you mean 'speed'? (valid: speed)"),
        ("higher", "better: expected a table, got 'higher'"),
    ],
)
def test_a_wrong_direction_is_one_sentence(better, sentence):
    with pytest.raises(InputError) as error:
        Sweep(axes={"policy": ["slow", "fast"]}, function=speed, outputs=["speed"], better=better)
    assert str(error.value) == sentence
    with pytest.raises(InputError, match="outputs: speed: better: expected higher or lower, got 'up'"):
        Sweep(axes={"policy": ["slow", "fast"]}, function=speed, outputs=[Output("speed", better="up")])


@pytest.mark.usefixtures("without_pictures")
def test_the_report_of_a_selection_begins_with_its_verdict(store, tmp_path):
    results = open_results(store)
    write_report(results, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    verdict, _ = verdict_of(store)
    assert f'<p class="verdict">{verdict.sentence}</p>' in page
    assert f"{verdict.simulations:,} simulations." in page
    assert selected(results).sentence == verdict.sentence
    assert selected(results).table.equals(verdict.table)


def test_a_selection_that_was_stopped_in_its_first_stage_has_a_report(store, tmp_path):
    """One region is over, the other has no result yet."""
    whole = open_results(store)
    begun = whole["load"] == 0.5
    stopped = whole.assign(status=whole["status"].where(begun, 0), wait_s=whole["wait_s"].where(begun))
    stopped["wait_s"].attrs, stopped["status"].attrs = whole["wait_s"].attrs, whole["status"].attrs
    stopped.attrs = whole.attrs
    assert selected(stopped).sentence.startswith("Of 2 regions, best, or within 5 % of the best, is")
    write_report(stopped, tmp_path / "a.html")
    assert "1 not decided" in (tmp_path / "a.html").read_text()


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.12, 0.04, 0.21), "12 % worse (4.0 to 21 %)"),
        ((0.12, np.nan, np.nan), "12 % worse"),
        ((28.0, 16.4, 49.0), "29 times as high (17.4 to 50)"),
        ((1500.0, np.nan, np.nan), "1,501 times as high"),
        ((0.12, -0.98, 1.1e9), "12 % worse (−98 % to more than 1,000 times as high)"),
        ((28.0, 16.4, 1.1e9), "29 times as high (17.4 to more than 1,000)"),
    ],
)
def test_a_margin_is_said_in_percent_or_as_a_factor(shares, words):
    assert how_much_worse(*shares) == words


def test_one_replicate_leaves_open_what_is_as_good(client, tmp_path):
    study = Sweep(axes={"policy": ["slow", "fast"]}, function=speed, outputs=[Output("speed", better="higher")])
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    assert compare_policies(open_results(tmp_path / "a.zarr"))["as_good"].tolist() == [True, pd.NA]


def growing(checkpoint_interval_s, replicate, seed=0):
    return checkpoint_interval_s * float(np.exp(0.1 * np.random.default_rng([seed, replicate]).normal()))


def test_numeric_policies_are_said_in_words(client, tmp_path):
    study = Sweep(
        axes={"checkpoint_interval_s": [3600.0, 7200.0]},
        function=growing,
        outputs=[Output("wait_s", better="lower")],
        best={"axis": "checkpoint_interval_s"},
    )
    study.run(tmp_path / "a.zarr", cluster=client, progress=False)
    found, results = verdict_of(tmp_path / "a.zarr", study)[1], open_results(tmp_path / "a.zarr")
    results["checkpoint_interval_s"].attrs["units"] = results["wait_s"].attrs["units"] = "s"
    sentence = judge(results, study.spec.best, found).sentence
    assert sentence == "checkpoint interval = 1 h is best by wait; second is checkpoint interval = 2 h, 100 % worse."
