"""The claims of the papers: read, measured and judged."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.analysis.claims.claim import (
    FOLDER,
    Part,
    Reading,
    Region,
    papers,
    parse_claims,
    parse_readings,
    read_claims,
    read_readings,
)
from faultsweep.analysis.claims.joint import SHIPPED, describe_joint, excluded, joint_table, maximal
from faultsweep.analysis.claims.judge import (
    AGREES,
    DIFFERS,
    PARTLY,
    UNKNOWN,
    UNTESTABLE,
    VERDICTS,
    Judgement,
    combine,
    judge_part,
)
from faultsweep.analysis.claims.measure import Estimate, measure
from faultsweep.analysis.claims.page import QUICK, accept, changed, read_accepted, write_page
from faultsweep.simcore.parameters import PARAMETERS, resolve
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.spec import experiments, load_toml

from faultsweep.errors import InputError

from .stores import make_results, write_results

CLAIMS = [claim for paper in papers() for claim in read_claims(paper)]
MINIMAL = {
    "name": "a",
    "text": "waits fall",
    "place": "figure 1",
    "experiment": "demo",
    "tolerance": "none",
    "part": [{"label": "x", "metric": "mean_wait_s", "holds": {"below": 1}}],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Waits of 10 x load, a half more under "b"; utilisations of 0.2 x load; four replicates that differ."""
    loads = np.array([1.0, 2.0, 4.0])
    wait = 10 * loads[None, :, None] * np.array([1.0, 1.5])[:, None, None] * np.array([0.9, 1.0, 1.05, 1.05])
    use = np.broadcast_to(0.2 * loads[None, :, None], wait.shape)
    axes = {"policy": ["a", "b"], "load_scale": loads.tolist()}
    results = make_results(axes, {"mean_wait_s": wait, "utilisation": use, "restarts": use * 10}, replicates=4)
    results["mean_wait_s"].attrs["units"] = "s"
    return open_results(write_results(tmp_path_factory.mktemp("claims") / "a.zarr", results))


def part(**changes) -> Part:
    return replace(Part("x", "mean_wait_s", {"policy": "b", "load_scale": 2.0}, Region(0, 1)), **changes)


def test_a_value_is_a_mean_with_its_interval(data):
    found = measure(part(), data)
    assert found.value == pytest.approx(30)
    assert found.low < 30 < found.high
    assert found.n == 4
    assert found.text.startswith("30.0 s (")


def test_changes_and_differences_are_paired(data):
    change = measure(part(against={"policy": "a"}, kind="change"), data)
    assert change.value == pytest.approx(0.5)
    assert change.text.startswith("+50.0 %")
    difference = measure(part(against={"policy": "a"}, kind="difference"), data)
    assert difference.value == pytest.approx(10)
    assert (difference.low, difference.high) == pytest.approx((10 - 1.1252, 10 + 1.1252), abs=1e-3)


def test_the_point_where_another_metric_has_a_value_is_interpolated(data):
    at = part(at={"policy": "a"}, where=("load_scale", "utilisation", 0.6))
    assert measure(at, data).value == pytest.approx(30)
    assert math.isnan(measure(replace(at, where=("load_scale", "utilisation", 0.9)), data).value)


@pytest.mark.parametrize(
    ("how", "value"), [("highest", 40), ("lowest", 10), ("mean", 70 / 3), ("first", 10), ("last", 40), ("slope", 1)]
)
def test_reductions_go_along_an_axis(data, how, value):
    assert measure(part(at={"policy": "a"}, reduce={"load_scale": how}), data).value == pytest.approx(value)


def test_a_metric_per_another_one(data):
    found = measure(part(per="restarts"), data)
    assert found.value == pytest.approx(30 / 4)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"metric": "wait"}, "unknown metric 'wait'"),
        ({"at": {"policies": "a"}}, "unknown axis 'policies'"),
        ({"at": {"policy": "c", "load_scale": 1.0}}, "unknown value of policy 'c'"),
        ({"at": {"policy": "a"}}, "several values are left along load_scale"),
    ],
)
def test_what_the_results_do_not_have_is_one_sentence(data, changes, told):
    with pytest.raises(InputError, match=told):
        measure(part(**changes), data)


@pytest.mark.parametrize(
    ("value", "low", "high", "partly", "verdict"),
    [
        (0.5, 0.1, 0.9, None, AGREES),
        (0.5, 0.5, 0.5, None, AGREES),
        (0.9, 0.5, 1.5, Region(0, 2), AGREES),
        (1.2, 0.5, 1.9, Region(0, 2), PARTLY),
        (1.5, 1.2, 1.8, Region(0, 2), PARTLY),
        (0.5, -0.5, 1.5, None, UNKNOWN),
        (1.5, 0.5, 2.5, Region(0, 2), UNKNOWN),
        (1.5, 1.2, 2.8, Region(0, 2), DIFFERS),
        (3.0, 2.5, 3.5, Region(0, 2), DIFFERS),
        (3.0, 3.0, 3.0, None, DIFFERS),
        (math.nan, math.nan, math.nan, None, UNKNOWN),
        (0.5, math.nan, math.nan, None, UNKNOWN),
    ],
)
def test_the_interval_decides(value, low, high, partly, verdict):
    assert judge_part(part(partly=partly), Estimate(value, low, high, 4, "")) == verdict


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([AGREES, AGREES], AGREES),
        ([DIFFERS, DIFFERS], DIFFERS),
        ([AGREES, DIFFERS], PARTLY),
        ([AGREES, PARTLY], PARTLY),
        ([AGREES, UNKNOWN], UNKNOWN),
        ([PARTLY, DIFFERS, UNKNOWN], PARTLY),
        ([DIFFERS, UNKNOWN], DIFFERS),
    ],
)
def test_parts_make_one_verdict(parts, verdict):
    assert combine(parts) == verdict
    assert combine(parts[::-1]) == verdict


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.paper}-{claim.name}")
def test_a_shipped_claim_names_what_its_experiment_has(claim):
    if claim.untestable:
        return
    axes = load_toml(experiments()[claim.experiment])["axes"]
    for one in claim.parts:
        for axis, label in {**one.at, **one.against}.items():
            assert axis in axes, axis
            known = axes[axis]
            if isinstance(known, dict):
                wanted = label if isinstance(label, list) else [label]
                assert all(known["start"] <= value <= known["stop"] for value in wanted)
                continue
            labels = [row["label"] if isinstance(row, dict) else row for row in known]
            assert set(label if isinstance(label, list) else [label]) <= set(labels)
        free = set(axes) - {axis for axis, label in one.at.items() if not isinstance(label, list)}
        rows = [value for value in axes.values() if isinstance(value, list)]
        single = {axis for axis, value in axes.items() if isinstance(value, list) and len(value) == 1}
        assert rows
        assert free - single <= {*one.reduce, *([one.where[0]] if one.where else [])}


def test_every_paper_has_claims_and_prose():
    assert papers() == ["krevat2003", "oliner2004", "zhang2004", "tang2010", "akshitha2011"]
    for paper in papers():
        assert "<!-- claims -->" in (FOLDER / f"{paper}.md").read_text()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": ""}, "name is missing"),
        ({"colour": 1}, "unknown key 'colour'"),
        ({"part": []}, "either parts or a reason"),
        ({"untestable": "no log"}, "either parts or a reason"),
        ({"tolerance": ""}, "tolerance is missing"),
        ({"part": [{"label": "x", "metric": "y"}]}, "part 0: holds is missing"),
        ({"part": [{"label": "x", "metric": "y", "holds": {"between": [2, 1]}}]}, "from 2 to 1 is empty"),
        ({"part": [{"label": "x", "metric": "y", "holds": {"between": 2}}]}, "a region is"),
        ({"part": [{"label": "x", "metric": "y", "holds": {"above": 2}, "as": "ratio"}]}, "unknown kind 'ratio'"),
        ({"part": [{"label": "x", "metric": "y", "holds": {"above": 2}, "as": "change"}]}, "labels in against"),
        ({"part": [{"label": "x", "metric": "y", "holds": {"above": 2}, "reduce": {"a": "sum"}}]}, "unknown reduction"),
    ],
)
def test_a_claim_that_is_none_is_one_sentence(tmp_path, changes, told):
    from faultsweep.sweeps.spec import write_toml

    path = tmp_path / "a2000.toml"
    path.write_text(write_toml({"claim": [{**MINIMAL, **changes}]}))
    with pytest.raises(InputError, match=told) as error:
        parse_claims("a2000", path)
    assert "a2000.toml: claim 0" in str(error.value)


def test_a_verdict_that_changes_is_told_until_it_is_accepted(tmp_path):
    path = tmp_path / "accepted.json"
    name = read_claims("krevat2003")[0].name
    before = {"krevat2003": {SHIPPED: {name: Judgement(AGREES, ("x: 1",), (AGREES,), 1)}}}
    after = {"krevat2003": {SHIPPED: {name: Judgement(DIFFERS, ("x: 2",), (DIFFERS,), 1)}}}
    assert changed(before, {}) == [f"krevat2003, {name}: agrees; no verdict was accepted before"]
    accept(before, QUICK, path)
    accepted = read_accepted(QUICK, path)
    assert accepted == before
    assert changed(before, accepted) == []
    assert changed(after, accepted) == [f"krevat2003, {name}: does not agree, where 'agrees' was accepted"]
    accept(after, QUICK, path)
    assert changed(after, read_accepted(QUICK, path)) == []


def test_the_page_counts_what_its_tables_say(tmp_path):
    claims = read_claims("krevat2003")
    found = {claim.name: Judgement(VERDICTS[i % 4], ("x: 1 | 2",)) for i, claim in enumerate(claims) if claim.parts}
    found |= {claim.name: Judgement(UNTESTABLE) for claim in claims if not claim.parts}
    write_page({"krevat2003": {SHIPPED: found}}, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    counts, _, table = text.partition("## krevat2003")
    said = next(line for line in counts.splitlines() if line.startswith("| all |")).split("|")[3:-1]
    assert list(map(int, said)) == [table.count(f"| {verdict} | ") for verdict in VERDICTS]
    assert sum(map(int, said)) == len(claims)
    assert "x: 1 &#124; 2" in text
    with pytest.raises(InputError, match="cannot be written"):
        write_page({"krevat2003": {SHIPPED: found}}, tmp_path / "absent" / "page.md")


JOINT = {
    "one": {"a": Judgement(AGREES), "b": Judgement(DIFFERS), "c": Judgement(AGREES), "d": Judgement(PARTLY)},
    "two": {"a": Judgement(DIFFERS), "b": Judgement(AGREES), "c": Judgement(AGREES), "d": Judgement(DIFFERS)},
    "three": {"a": Judgement(DIFFERS), "b": Judgement(DIFFERS), "c": Judgement(AGREES), "d": Judgement(UNTESTABLE)},
}


def test_readings_are_compared_by_the_claims_that_they_satisfy_together():
    assert maximal(JOINT) == {frozenset("ac"): ["one"], frozenset("bc"): ["two"]}
    assert maximal(JOINT, partly=True) == {frozenset("acd"): ["one"], frozenset("bc"): ["two"]}
    assert excluded(JOINT) == [("a", "b")]
    assert describe_joint(JOINT) == [
        "Readings under which most claims agree (2): one, two.",
        "Maximal sets of claims that agree together: a, c (one); b, c (two).",
        "No reading satisfies both of: a and b.",
    ]
    nowhere = {name: {**found, "e": Judgement(DIFFERS), "f": Judgement(UNKNOWN)} for name, found in JOINT.items()}
    assert describe_joint(nowhere)[-1] == "Satisfied under no reading, not even in part: e, f."
    table = joint_table([replace(MODEL, name=name) for name in "abcd"], [], JOINT)
    assert "| a | agrees | does not agree | does not agree |" in table
    assert "| one | the experiments as they are |  | 2 | 1 | 4 |" in table


MODEL = next(claim for claim in CLAIMS if claim.parts)


@pytest.mark.parametrize(
    "reading", [one for paper in papers() for one in read_readings(paper)], ids=lambda one: one.name
)
def test_a_shipped_reading_sets_what_the_experiments_have(reading):
    """Parameters that exist and are no axis, and labels that the claims can have instead."""
    changed = [claim for claim in read_claims(reading.paper) if reading.changes(claim)]
    assert changed
    for claim in changed:
        raw = load_toml(experiments()[claim.experiment])
        assert not set(reading.fixed) & set(raw["axes"])
        assert resolve({**{k: v for k, v in raw["fixed"].items() if k in PARAMETERS}, **reading.fixed})
    for axis, label in reading.at.items():
        assert any(label in load_toml(experiments()[claim.experiment])["axes"].get(axis, ()) for claim in changed)
    parts = [part.at for claim in changed for part in claim.parts]
    assert (
        reading.fixed
        or reading.failure_log
        or parts != [part.at for claim in changed for part in reading.applied(claim).parts]
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"warrant": ""}, "warrant is missing"),
        ({"fixed": {}}, "parameters in fixed, labels in at or a failure_log"),
        ({"colour": "red"}, "unknown key 'colour'"),
    ],
)
def test_a_reading_that_is_none_is_one_sentence(tmp_path, changes, told):
    from faultsweep.sweeps.spec import write_toml

    raw = {"name": "a", "text": "b", "warrant": "c", "fixed": {"hold_nodes": False}}
    path = tmp_path / "a2000.toml"
    path.write_text(write_toml({"reading": [{**raw, **changes}]}))
    with pytest.raises(InputError, match=told):
        parse_readings("a2000", path)


def test_a_reading_with_a_failure_log_needs_the_folder_that_has_it(tmp_path):
    reading = Reading("a2000", "real-log", "text", "warrant", failure_log="bgl.txt.xz")
    with pytest.raises(InputError, match=r"a2000, reading real-log: bgl.txt.xz is needed \(--failure-logs DIR: not"):
        reading.with_log(None)
    with pytest.raises(InputError, match="it is not in"):
        reading.with_log(tmp_path)
    (tmp_path / "below").mkdir()
    log = tmp_path / "below" / "bgl.txt.xz"
    log.touch()
    assert reading.with_log(tmp_path).fixed == {"failures": str(log)}
    assert MODEL_READING.with_log(None) == MODEL_READING


MODEL_READING = next(reading for paper in papers() for reading in read_readings(paper) if not reading.failure_log)


def test_readings_are_drawn_claim_by_claim(tmp_path):
    """A column for each reading, a row for each claim that can be tested; bold is what no other reading has whole."""
    from faultsweep.analysis.pictures import claims as picture
    from matplotlib.figure import Figure

    names = ["one", "two"]
    claims = [replace(MODEL, name=name, text=f"claim {name}") for name in names]
    claims.append(replace(MODEL, name="no", parts=(), untestable="why"))
    verdicts = {"wide": (AGREES, AGREES), "narrow": (AGREES, PARTLY), "other-way": (UNKNOWN, DIFFERS)}
    found = {
        reading: {**{name: Judgement(one) for name, one in zip(names, row, strict=True)}, "no": Judgement(UNTESTABLE)}
        for reading, row in verdicts.items()
    }
    axis = Figure().subplots()
    picture._draw_grid(picture._Grid("a2000", claims[:2], found, 4), None, axis)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["claim one", "claim two"]
    heads = {label.get_text(): label.get_fontweight() for label in axis.get_xticklabels()}
    assert heads == {
        "wide\n2 + 0 of 2": "bold",
        "narrow\n1 + 1 of 2": "normal",
        "other\nway\n0 + 0 of 2": "normal",
    }
    marks = {(round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in axis.texts}
    assert marks == {(0, 0): "●", (0, 1): "●", (1, 0): "●", (1, 1): "◐", (2, 0): "?", (2, 1): "○"}
    picture.draw({"a2000": claims}, {"a2000": found}, tmp_path / "readings.svg")
    assert (tmp_path / "readings.svg").stat().st_size > 5000
    with pytest.raises(InputError, match=r"\.png, \.pdf, \.svg"):
        picture.draw({"a2000": claims}, {"a2000": found}, tmp_path / "readings.txt")


@pytest.mark.slow
def test_a_claim_is_reproduced_by_one_command(tmp_path, command, monkeypatch):
    """With the models of the logs, so that no log is needed; a second time nothing runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAULTSWEEP_LOGS", str(tmp_path))
    wanted = ["reproduce", "krevat2003/sdsc-migration-c12", "--quick", "--logs", tmp_path]
    code, out, _ = command(*wanted, "--plan", "--json")
    plan = json.loads(out)
    assert code == 0
    assert [(row["experiment"], row["missing"]) for row in plan["experiments"]] == [("krevat2003-fig-5-7", 24)]
    _, out, _ = command(*wanted, "--json", "--quiet", "--page", "page.md")
    one = json.loads(out)["claims"]["krevat2003"][SHIPPED]["sdsc-migration-c12"]
    assert one["n"] == 3
    assert one["verdict"] in VERDICTS
    assert one["found"][0].startswith("+")
    assert one["found"][0] in (tmp_path / "page.md").read_text()
    assert "0 of 24 simulations" in command(*wanted, "--plan")[1]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [("krevat1803", "unknown paper 'krevat1803'"), ("krevat2003/nothing", "krevat2003: unknown claim 'nothing'")],
)
def test_unknown_claims_are_one_sentence(command, wanted, told):
    code, _, error = command("reproduce", wanted)
    assert code == 2
    assert told in error


def test_the_shipped_page_is_that_of_the_accepted_verdicts(tmp_path):
    from faultsweep.analysis.claims.page import FULL, write_page

    accepted = read_accepted(FULL)
    write_page({paper: accepted[paper] for paper in papers()}, tmp_path / "page.md")
    shipped = FOLDER.parents[1] / "docs" / "reproduction.md"
    assert shipped.read_text() == (tmp_path / "page.md").read_text()
    for paper in papers():
        for judgements in accepted[paper].values():
            assert [claim.name for claim in read_claims(paper)] == list(judgements)
            assert all(one.verdict in VERDICTS for one in judgements.values())


@pytest.mark.slow
@pytest.mark.shared
def test_quick_verdicts_are_those_that_were_accepted(tmp_path, job_logs, command):
    """With few replicates, on the real logs: a verdict that changes has to be accepted in a commit."""
    code, _, error = command("reproduce", "krevat2003", "--quick", "--store", tmp_path, "--logs", job_logs, "--quiet")
    assert code == 0, error
