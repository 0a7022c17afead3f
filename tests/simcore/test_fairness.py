"""Fairness among users, and what each owner of jobs got."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.engine.fairness import gini, jain, numbered, share_gap
from faultsweep.simcore.model.workload import Label, Workload, take
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.strategies import examples

VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=12).filter(lambda each: sum(each) > 1e-3)


@examples(100)
@given(VALUES)
def test_indices_by_their_definitions(values):
    count, mean = len(values), sum(values) / len(values)
    differences = sum(abs(one - other) for one in values for other in values)
    assert gini(np.array(values)) == pytest.approx(differences / (2 * count**2 * mean))
    assert jain(np.array(values)) == pytest.approx(sum(values) ** 2 / count / sum(value**2 for value in values))


def test_indices_at_their_ends():
    assert (gini(np.full(4, 3.0)), jain(np.full(4, 3.0))) == (0, 1)
    assert (gini(np.array([0.0, 0, 0, 8])), jain(np.array([0.0, 0, 0, 8]))) == (0.75, 0.25)
    assert (gini(np.zeros(3)), jain(np.zeros(3))) == (0, 1)
    assert math.isnan(gini(np.empty(0)))
    assert math.isnan(jain(np.empty(0)))


def jobs():
    """Five jobs of the whole machine, 10 s each, in turn: users 7, 7, 9, 9, unknown; accounts b, b, a, unknown, a."""
    five = np.arange(5)
    account = Label(np.array([1, 1, 0, -1, 0]), ("a", "b"))
    ten = np.full(5, 10.0)
    users = np.array([7, 7, 9, 9, -1])
    return Workload(five + 1, five.astype(float), ten, ten, np.full(5, 4), users, labels={"account": account})


def test_a_case_by_hand():
    """Jobs wait 0, 9, 18, 27 and 36 s, so users 4.5 and 22.5 s. When the last is submitted, only job 1 has run."""
    run = simulate(jobs(), machine="flat:4", fairness=True)
    assert run.metrics["gini_wait"] == pytest.approx(18 / (4 * 13.5))
    slowdowns = (1 + 1.9) / 2, (2.8 + 3.7) / 2
    assert run.metrics["jain_bounded_slowdown"] == pytest.approx(sum(slowdowns) ** 2 / 2 / sum(s**2 for s in slowdowns))
    table = run.by("account")
    assert table["account"].tolist() == ["b", "a", ""]
    assert (table["jobs"].tolist(), table["mean_wait_s"].tolist()) == ([2, 2, 1], [4.5, 27.0, 27.0])
    assert table["share"].tolist() == [1, 0, 0]
    assert run.by("user")["user"].tolist() == ["7", "9", ""]
    assert run.by("user")["mean_bounded_slowdown"] == pytest.approx([*slowdowns, 4.6])
    named = replace(jobs(), user=np.array([0, 0, 1, 1, -1]), user_names=("anna", "ben"))
    assert simulate(named, machine="flat:4").by("user")["user"].tolist() == ["anna", "ben", ""]


def test_what_each_got_beside_what_it_was_due():
    """Jobs of the whole machine, one after the other; the last is submitted when three and a half have run."""
    late = replace(jobs(), submit_s=np.array([0.0, 1, 2, 3, 35]))

    def gap(**changes):
        return simulate(late, machine="flat:4", fairness=True, **changes).metrics["share_gap"]

    assert gap() == pytest.approx(20 / 35 - 1 / 2)  # user 7 has had 20 s, user 9 has had 15 s
    # of accounts that are known: 20 s of b, 10 s of a
    assert gap(fairness_by="account") == pytest.approx(20 / 30 - 1 / 2)
    assert gap(fairness_by="account", priority_shares="b:2,a:1") == pytest.approx(0)
    assert gap(fairness_by="account", priority_shares="b:0,a:1") == pytest.approx(20 / 30)
    assert gap(fairness_by="account", priority_shares="b:2,a:1,c:9") == pytest.approx(0)  # c has no jobs
    inside = "b:1,top:1,a in top:1,other in top:3"
    assert gap(fairness_by="account", priority_shares=inside) == pytest.approx(4 / 5 - 20 / 30)
    assert math.isnan(gap(fairness_by="account", priority_shares="b:0,a:0"))
    run = simulate(late, machine="flat:4", fairness=True, fairness_by="qos")
    assert math.isnan(run.metrics["gini_wait"])
    assert "no job has a qos, so fairness is not measured (num_qos draws them)" in run.doubts[0]
    with pytest.raises(InputError, match="priority_shares: 'b' is not valid"):
        gap(priority_shares="b")


@examples(60)
@given(VALUES, st.data())
def test_share_gap_by_its_definition(served, data):
    """What would have to be served to others for all to get their due."""
    wanted = st.lists(st.floats(0, 10), min_size=len(served), max_size=len(served))
    due = data.draw(wanted.filter(lambda each: sum(each) > 1e-3))
    parts = [(got / sum(served), of / sum(due)) for got, of in zip(served, due, strict=True)]
    too_much = sum(max(0.0, got - of) for got, of in parts)
    found = share_gap(np.array(served), np.array(due) / sum(due))
    assert found == pytest.approx(too_much, abs=1e-9)
    assert 0 <= found <= 1


def test_fairness_among_accounts():
    run = simulate(jobs(), machine="flat:4", fairness=True, fairness_by="account")
    assert run.metrics["gini_wait"] == pytest.approx(gini(np.array([4.5, 27.0])))


def test_what_is_not_there_is_not_measured():
    run = simulate(generate("sdsc-model", 20), machine="flat:128", fairness=True)
    assert math.isnan(run.metrics["gini_wait"])
    assert "fairness is not measured" in " ".join(run.doubts)
    assert math.isnan(simulate(jobs(), machine="flat:4").metrics["gini_wait"])
    with pytest.raises(InputError, match=r"by: no job has a qos \(the jobs have: user, account;"):
        simulate(jobs(), machine="flat:4").by("qos")
    with pytest.raises(InputError, match="owner of jobs"):
        run.by("colour")


def test_a_run_that_is_cut_short_and_clusters():
    cut = simulate(jobs(), machine="flat:4", horizon_s=25.0).by("account")
    assert cut["jobs"].tolist() == [2, 2, 1]
    assert np.isnan(cut["mean_wait_s"]).tolist() == [False, True, True]
    run = simulate(jobs(), machine="clusters:4+4", fairness=True)
    assert 0 <= run.metrics["gini_wait"] <= 1
    assert run.by("account")["jobs"].sum() == 5


def test_the_command_prints_a_table(command):
    given = ["simulate", "--log", "sdsc-model", "--num-jobs", "200", "--machine", "flat:128", "--num-users", "30"]
    code, out, _ = command(*given, "--fairness", "--by", "user")
    assert code == 0
    assert "gini_wait" in out
    assert "mean_bounded_slowdown" in out
    assert "more: --json" in out
    code, out, _ = command(*given, "--by", "user", "--json")
    found = json.loads(out)["by"]
    assert sum(found["share"]) == pytest.approx(1)
    assert sum(found["jobs"]) == 200
    code, _, err = command(*given, "--by", "colour")
    assert code != 0
    assert "colour" in err


@pytest.mark.parametrize("machine", ["flat:4", "clusters:4+4"])
def test_the_jobs_of_one_owner_are_measured_apart(machine):
    run = simulate(jobs(), machine=machine, owner="user:9")
    table = run.by("user")
    row = table["user"].tolist().index("9")
    assert run.metrics["owner_jobs"] == table["jobs"][row] == 2
    assert run.metrics["owner_mean_wait_s"] == table["mean_wait_s"][row]
    assert run.metrics["owner_mean_bounded_slowdown"] == table["mean_bounded_slowdown"][row]
    assert run.metrics["owner_share"] == table["share"][row]
    assert math.isnan(simulate(jobs(), machine=machine).metrics["owner_share"])


def test_no_share_is_shown_where_nothing_ran_before_the_last_submission(tmp_path, command):
    """All jobs are submitted at one time, so the queue only drains."""
    line = "{0} {1} -1 10 4 -1 -1 4 10 -1 1 {0} 1 1 1 1 -1 -1\n"
    said = {}
    for name, times in (("once", (0, 0)), ("twice", (0, 5))):
        log = tmp_path / f"{name}.swf"
        log.write_text("; MaxNodes: 4\n" + "".join(line.format(job + 1, time) for job, time in enumerate(times)))
        _, said[name], _ = command("simulate", "--log", log, "--machine", "flat:4", "--by", "user")
    assert "nan" not in said["once"]
    assert said["once"].splitlines()[-4].split() == ["user", "jobs", "mean_wait_s", "mean_bounded_slowdown"]
    assert said["once"].splitlines()[-1].startswith("no share: it is of the node-seconds up to the last submission")
    assert "100 %" in said["twice"]
    assert "no share" not in said["twice"]


def test_an_owner_may_have_no_job_in_a_run():
    few = take(jobs(), np.array([False, True, False, True, True]))
    named = replace(few, user=np.array([0, 0, -1]), user_names=("anna", "ben"))
    label = replace(named, labels={"qos": Label(np.zeros(3, np.int64), ("low", "high"))})
    found = simulate(label, machine="flat:4", owner="qos:high").metrics
    assert (found["owner_jobs"], found["owner_share"]) == (0, 0)
    assert math.isnan(found["owner_mean_wait_s"])


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        ("user:70", "owner: unknown user '70'"),
        ("qos:high", "by: no job has a qos"),
        ("group:x", "owner: unknown owner 'group:x'"),
        ("user:", "owner: unknown owner 'user:'"),
    ],
)
def test_an_owner_that_is_not_there(owner, problem):
    with pytest.raises(InputError, match=problem):
        simulate(jobs(), machine="flat:4", owner=owner)


@examples(100)
@given(st.lists(st.integers(-3, 40) | st.integers(-(2**60), 2**60), max_size=30))
def test_values_are_numbered_as_numpy_does(values):
    values = np.array(values, np.int64)
    numbers, codes = np.unique(values, return_inverse=True)
    assert all(map(np.array_equal, numbered(values), (numbers, codes)))
