"""Users, accounts, partitions and QOS of workloads: read, kept, drawn; and the priorities that follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Label, Workload, check_workload, take
from faultsweep.simcore.parameters import canonical, resolve
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate
from faultsweep.simcore.workloads.owners import draw_owners
from faultsweep.simcore.workloads.resampling import resample
from faultsweep.simcore.workloads.swf import read_swf, write_swf

from faultsweep.errors import InputError
from tests.adapter import engine_run

DRAWN = {"num_users": 20, "num_accounts": 4, "num_partitions": 2, "num_qos": 3}


def drawn(jobs=3000, **changes):
    return draw_owners(generate("sdsc-model", jobs), resolve(DRAWN | changes))


def test_owners_are_drawn_by_zipfs_law():
    counts = np.bincount(drawn().user, minlength=20)
    expected = 3000 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum()
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
    even = np.bincount(drawn(zipf_owners=0.0).labels["qos"].codes)
    assert even.min() > 900


def test_a_user_has_one_account_and_longer_workloads_begin_alike():
    long, short = drawn(), drawn(500)
    assert len({*zip(long.user.tolist(), long.labels["account"].codes.tolist(), strict=True)}) == 20
    assert len(set(long.labels["account"].codes.tolist())) > 1
    assert (long.user[:500] == short.user).all()
    assert all((long.labels[name].codes[:500] == label.codes).all() for name, label in short.labels.items())
    assert (drawn(replicate=1).user != long.user).any()


def test_owners_that_are_not_drawn_are_the_logs_own():
    log = generate("intrepid-model", 100)
    assert vars(draw_owners(log, resolve({}))) == vars(log), "the arrays themselves"
    assert (draw_owners(log, resolve({"num_accounts": 3})).user == log.user).all()
    plain = canonical(resolve({"zipf_owners": 2.0, "machine": "flat:128"}))
    assert plain["zipf_owners"] == 1.0


ROWS = """; MaxNodes: 8
1 0 -1 10 2 -1 -1 2 -1 -1 1 7 3 -1 {q1} 5 -1 -1
2 9 -1 10 2 -1 -1 2 -1 -1 1 8 -1 -1 {q2} 5 -1 -1
3 9 -1 10 2 -1 -1 2 -1 -1 1 8 12 -1 {q2} -1 -1 -1
"""


@pytest.mark.parametrize(
    ("q1", "q2", "partitions"), [(0, 2, ["0", "2", "2"]), (-1, 2, [None, "2", "2"]), (-1, -1, ["5", "5", None])]
)
def test_groups_are_accounts_and_queues_partitions(tmp_path, q1, q2, partitions):
    path = tmp_path / "a.swf"
    path.write_text(ROWS.format(q1=q1, q2=q2))
    log = read_swf(path)
    assert names(log, "account") == ["3", None, "12"]
    assert names(log, "partition") == partitions
    assert "qos" not in log.labels
    write_swf(log, tmp_path / "b.swf")
    again = read_swf(tmp_path / "b.swf")
    assert [names(again, name) for name in ("account", "partition")] == [["3", None, "12"], partitions]


def names(log, name):
    return [*(np.array([*log.labels[name].names, None], object)[log.labels[name].codes])]


def test_a_log_from_the_cache_has_the_same_labels(tmp_path, monkeypatch):
    from faultsweep.simcore.workloads import parsed

    monkeypatch.setattr(parsed, "LEAST_BYTES", 0)
    path = tmp_path / "a.swf"
    path.write_text(ROWS.format(q1=1, q2=2) + "; of this test alone\n")
    first, second = read_swf(path), read_swf(path)
    assert names(first, "account") == names(second, "account") == ["3", None, "12"]


def test_labels_stay_with_their_jobs():
    log = drawn()
    part = take(log, slice(5, 9))
    assert (part.labels["qos"].codes == log.labels["qos"].codes[5:9]).all()
    other = resample(log)
    pairs = {*zip(log.run_s.tolist(), log.labels["qos"].codes.tolist(), strict=True)}
    assert {*zip(other.run_s.tolist(), other.labels["qos"].codes.tolist(), strict=True)} <= pairs
    with pytest.raises(InputError, match="labels: 'colour' is not one of account"):
        check_workload(Workload(*(getattr(part, name) for name in FIELDS), labels={"colour": part.labels["qos"]}))
    bad = {"qos": Label(np.ones(len(part), np.int64), ("a",))}
    with pytest.raises(InputError, match="an index of its names or -1"):
        check_workload(Workload(*(getattr(part, name) for name in FIELDS), labels=bad))


FIELDS = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")


def starts(rows, **settings):
    given = {"age_weight": 0, "period": 0, "queue_order": "multifactor"} | settings
    return {job: row["start"] for job, row in engine_run(rows, "flat:4", **given).jobs.items()}


def test_fair_tree_puts_the_account_first_and_classic_the_user():
    """User 1 has used 60 s in account a and user 2 40 s in b. Of the jobs that wait, 4 is of user 1, 5 of user 2, and 6
    of user 0 in a; user 0 is in b, too. Ranked, b is first; E / S is 0.6 / 0.5 of job 6 and 0.4 / 0.25 of job 5."""
    rows = [
        (1, 0, 60, 60, 4),
        (2, 1, 40, 40, 4),
        (4, 90, 9, 9, 4),
        (6, 91, 9, 9, 4),
        (5, 92, 9, 9, 4),
        (3, 999, 9, 9, 4),
    ]
    assert starts(rows, fair_share="fair-tree")[5] == 100
    assert starts(rows, fair_share="classic")[6] == 100
    assert starts(rows, fair_share="fair-tree", tree=(("a", "", "", 100), ("b", "", "", 1)))[6] == 100


def test_partition_and_qos_order_the_queue():
    """Job 2 is of partition q and QOS z, job 4 of p and y, job 5 of p and x."""
    rows = [(1, 0, 100, 100, 4), (4, 1, 9, 9, 4), (5, 2, 9, 9, 4), (2, 3, 9, 9, 4)]
    order = {"share_weight": 0}
    assert starts(rows, **order)[4] == 100
    assert starts(rows, **order, partition_weight=10, partition_factors=(("p", 1), ("q", 2)))[2] == 100
    assert starts(rows, **order, qos_weight=10, qos_factors=(("x", 9), ("y", 2)))[5] == 100


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"priority_shares": "physics"}, "priority_shares: 'physics' is not valid"),
        ({"priority_shares": "a:1,a:2"}, "'a:2' is not valid"),
        ({"priority_shares": "a:1,a in b:2"}, "'a in b' is not valid .valid: each account and user once"),
        ({"priority_shares": "a/anna in b:1"}, "'a/anna in b' is not valid"),
        ({"priority_shares": "a in b:1,b in a:2"}, "account 'a' is in itself"),
        ({"priority_qos_factors": "high:-1"}, "priority_qos_factors: 'high:-1' is not valid"),
        ({"priority_partition_factors": "a:nan"}, "priority_partition_factors: 'a:nan' is not valid"),
        ({"priority_fair_share": "tree"}, "priority_fair_share|priority fair share"),
    ],
)
def test_numbers_that_are_none_are_refused(given, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate(drawn(20), machine="flat:128", queue_order="multifactor", **given)


def test_weights_of_what_jobs_do_not_say_are_told():
    given = {"queue_order": "multifactor", "priority_qos_weight": 10.0, "priority_fair_share": "fair-tree"}
    told = " ".join(simulate(generate("intrepid-model", 20), machine="midplanes:80", **given).doubts)
    assert "no job has a qos, so priority_qos_weight changes nothing (num_qos draws them)" in told
    assert "no job has an account" in told
    assert not simulate(drawn(20), machine="flat:128", **given).doubts


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"priority_qos_factors": "1:10,nobody:5"}, "priority_qos_factors names nobody, which is the QOS of no job "),
        ({"priority_qos_factors": "1:10,x:5,y:1"}, "priority_qos_factors names x, y, which are the QOS of no job "),
        ({"priority_shares": "1:5,all:3,2 in all:1,2/nobody:9"}, "priority_shares names nobody, which is the user of "),
        ({"priority_shares": "1:5,nobody:3"}, "priority_shares names nobody, which is the account of no job "),
        ({"priority_qos_factors": "1:10,2:5"}, ""),
        ({"priority_qos_factors": "nobody:5", "priority_qos_weight": 0.0}, ""),
        ({"queue_order": "lsf", "lsf_shares": "1:3,nobody:5"}, "lsf_shares names nobody, which is the user of no job "),
    ],
)
def test_names_that_no_job_has_are_told(given, told):
    usual = {"queue_order": "multifactor", "priority_qos_weight": 10.0, "priority_fair_share": "classic"}
    drawn_by = {"num_users": 4, "num_accounts": 2, "num_qos": 2}
    doubts = simulate(generate("intrepid-model", 20), machine="midplanes:80", **drawn_by, **(usual | given)).doubts
    assert [doubt for doubt in doubts if told and doubt.startswith(told)] or not told
    assert any("of no job" in doubt for doubt in doubts) == bool(told)


SITE = """
[[nodes]]
name = "n"
count = 4
cores = 1
[[accounts]]
account = "a"
parent = "{parent}"
shares = 3
[[accounts]]
account = "b"
parent = "a"
[[accounts]]
account = "b"
user = "9"
shares = 2
"""


def test_accounts_of_a_site_are_a_tree(tmp_path):
    path = tmp_path / "site.toml"
    given = {"machine": str(path), "queue_order": "multifactor", "priority_fair_share": "fair-tree", "debug": True}
    path.write_text(SITE.format(parent=""))
    log = generate("intrepid-model", 20)
    log = draw_owners(log, resolve({"num_users": 5, "num_accounts": 2}))
    small = Workload(log.job_id, log.submit_s, log.run_s, log.requested_s, log.size // log.size, log.user,
                     labels={"account": Label(log.labels["account"].codes, ("b", "c"))})  # fmt: skip
    assert simulate(small, **given).status == "done"
    path.write_text(SITE.format(parent="b"))
    with pytest.raises(InputError, match="account 'b' is in itself, by way of b in a"):
        simulate(small, **given)


def test_more_shares_come_first_at_equal_usage():
    """Users 1 and 2, in accounts a and b, have used 50 s each; job 4 of user 1 comes before job 5 of user 2."""
    rows = [(1, 0, 50, 50, 4), (2, 1, 50, 50, 4), (4, 100, 9, 9, 4), (5, 100, 9, 9, 4)]
    for fair_share in ("classic", "fair-tree"):
        given = {"fair_share": fair_share, "half_life": 0}
        assert starts(rows, **given)[4] == 100
        assert starts(rows, **given, tree=(("a", "", "", 1), ("b", "", "", 3)))[5] == 100


def test_a_user_comes_before_an_account_that_is_its_equal():
    """User 0, in no account, and account a have used 50 s each, all of it by user 1. User 2 in a ranks as user 0 does,
    and user 1 behind them: so jobs 3 and 4 keep their order, and both are before job 5."""
    user, account = np.array([0, 1, 1, 0, 2]), np.array([-1, 0, 0, -1, 0])
    submit = np.array([0.0, 1, 100, 100, 100])
    run = np.array([50.0, 50, 9, 9, 9])
    log = Workload(np.array([1, 2, 5, 3, 4]), submit, run, run, np.full(5, 4), user,
                   labels={"account": Label(account, ("a",))})  # fmt: skip
    found = simulate(log, machine="flat:4", queue_order="multifactor", priority_fair_share="fair-tree", debug=True,
                     priority_age_weight=0.0, priority_period_s=0.0, priority_half_life_h=0.0)  # fmt: skip
    order = dict(zip(found.jobs["job_id"].tolist(), found.jobs["start_s"].tolist(), strict=True))
    assert (order[3], order[4]) == (100, 109)
    assert order[5] == 118
