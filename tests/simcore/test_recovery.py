"""Recovery after failures: groups, credits, delays, what every option must do, and what it achieves."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import canonical, resolve, run_of
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.policies.recovery import OPTIONS
from faultsweep.simcore.policies.recovery.credits import accounts, charge, median_price, write_accounts
from faultsweep.simcore.policies.recovery.measures import option_report, write_option_report
from faultsweep.simcore.policies.recovery.options import draw_gamers, draw_groups, parse_mix, parse_prices
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import engine_run, failures_of, menu_file, workload_of
from tests.reference.generators import credits as reference_credits
from tests.reference.machines import MENUS
from tests.reference.machines import machine as machine_of
from tests.strategies import examples, machines, menus, runs
from tests.test_recovery_against_reference import recoveries

FAILING = {"failures": "mtbf", "mtbf_h": 4.0, "mttr_h": 2.0, "machine": "midplanes:80", "recovery": "mix"}


@pytest.fixture(scope="module")
def intrepid():
    return generate("intrepid-model", 300)


def config(**values):
    return resolve({"recovery": "mix", **values})


# --- groups ---------------------------------------------------------------------------------------------------------


def test_groups_have_the_shares_of_the_mix_and_do_not_depend_on_anything_else():
    for mix, shares in (
        ("even", [0.2] * 5),
        ("normal", [0.1, 0.2, 0.4, 0.2, 0.1]),
        ("0:0:3:0:1", [0, 0, 0.75, 0, 0.25]),
    ):
        groups = draw_groups(config(recovery_mix=mix), 20_000)
        np.testing.assert_allclose(np.bincount(groups, minlength=5) / 20_000, shares, atol=0.012)
        again = draw_groups(config(recovery_mix=mix, recovery="all-b", mtbf_h=1.0, scheduler="fcfs"), 100)
        assert again.tolist() == groups[:100].tolist()
    assert draw_groups(config(seed=1), 100).tolist() != draw_groups(config(), 100).tolist()


def ask(values, group, user):
    role = ROLES["recovery"]
    return role.policies[role.named(run_of(values))].facts["asks"](values, {"group": group, "user": user})


def test_what_jobs_ask_for():
    group, user = draw_groups(config(), 50), np.arange(50) % 7
    assert ask(config(), group, user).tolist() == group.tolist()
    for number, letter in enumerate("abcde"):
        assert set(ask(config(recovery=f"all-{letter}"), group, user)) == {number}
    assert set(ask(config(recovery="manual"), group, user)) == {0}
    games = draw_gamers(config(gaming_frac=0.5), user)
    assert 0 < games.sum() < 50
    assert all(len(set(games[user == one])) == 1 for one in range(7)), "a user games always or never"
    asked = ask(config(gaming_frac=0.5), group, user)
    assert set(asked[games]) == {4}
    assert asked[~games].tolist() == group[~games].tolist()
    kept = user != 3
    assert draw_gamers(config(gaming_frac=0.5), user[kept]).tolist() == games[kept].tolist()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"recovery_mix": "0:0:0:0:0"}, "no weight above 0"),
        ({"recovery_mix": "1:2:3"}, "weights such as 1:2:4:2:1"),
        ({"recovery_mix": "nromal"}, "did you mean 'normal'|normal, even"),
        ({"credits": True, "credit_prices": "1:2:e:4:5"}, "credit_prices"),
        ({"options": "AB"}, "one for each job"),
        ({"options": "A" * 299 + "F"}, "letters A to E"),
        ({"scheduler": "conservative"}, r"valid there: backfill, backfill\+migration, fcfs"),
    ],
)
def test_bad_parameters_are_one_sentence(intrepid, parameters, problem):
    with pytest.raises(InputError, match=problem):
        simulate(intrepid, **{**FAILING, **parameters})


def test_what_does_nothing_is_neutral():
    """Without failures groups and credits are counted all the same, and stay; what failures need does nothing."""
    groups = {"recovery": "mix", "recovery_mix": "even"}
    assert canonical({**groups, "manual_delay_h": 9.0, "hold_nodes": False}) == canonical(groups)
    assert canonical({"credits": True, "credit_beta": 2.0, "gaming_frac": 0.5, "recovery_mix": "even"}) == canonical({})
    failing = {"failures": "mtbf", "mtbf_h": 4.0}
    one = canonical({**failing, "recovery": "all-e", "manual_delay_h": 9.0, "hold_nodes": False, "gaming_frac": 1.0})
    assert one == canonical({**failing, "recovery": "all-e"})
    paid = {**failing, "recovery": "all-e", "credits": True}
    assert canonical({**paid, "manual_delay_h": 9.0}) != canonical(paid), "who cannot pay waits for the user"
    by_hand = {**failing, "recovery": "manual"}
    assert canonical({**by_hand, "credits": True}) != canonical(by_hand), "all are charged for option A"
    assert canonical({**by_hand, "credit_beta": 2.0, "hold_nodes": False}) == canonical(by_hand)


# --- credits --------------------------------------------------------------------------------------------------------

requests = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(1, 40)), max_size=30)


@examples(100)
@given(requests)
def test_credits_are_those_of_the_reference_and_conserved(rows):
    user, asked, node_h = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    found = charge(config(credits=True), asked, user, node_h.astype(float))
    balances: dict[int, float] = defaultdict(int)
    for job, (who, option, amount) in enumerate(rows):
        granted, balances[who] = reference_credits("ABCDE"[option], balances[who], amount)
        assert "ABCDE"[found.option[job]] == granted
    jobs = {"user": user, "recovery_asked": asked, "recovery_option": found.option}
    end = accounts({**jobs, "credits_granted": found.grant, "credits_charged": found.cost})
    assert dict(zip(end.user.tolist(), end.balance.tolist(), strict=True)) == dict(balances)
    np.testing.assert_array_equal(end.granted - end.charged, end.balance)
    assert (end.balance >= 0).all()
    assert end.jobs.sum() == end.options.sum() == len(rows)
    assert end.refused.sum() == sum(found.option != asked)


@examples(50)
@given(requests, st.sampled_from(("1:2:3:4:5", "0.1:0.3:0.7:1.1:9", "0:0:0:0:0")), st.sampled_from((-1.0, 1.0, 2.5)))
def test_no_account_is_ever_below_zero(rows, prices, beta):
    user, asked, amount = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    node_h = amount / 7.0
    found = charge(config(credits=True, credit_prices=prices, credit_beta=beta), asked, user, node_h)
    for who in set(user.tolist()):
        net = (found.grant - found.cost)[user == who]
        assert (np.cumsum(net) > -1e-9).all()
    assert set(found.option[found.option != asked]) <= {0}


def test_the_median_price_is_granted_and_prices_are_checked():
    assert median_price(parse_prices("1:2:3:4:5")) == 3
    np.testing.assert_allclose(parse_mix("even"), 0.2)
    with pytest.raises(InputError, match="five prices"):
        parse_prices("1:2:3:4:-5")


def test_the_charges_of_a_run_are_reported_by_user(intrepid, tmp_path):
    run = simulate(intrepid, **FAILING, credits=True, gaming_frac=0.5)
    jobs, found = run.jobs, accounts(run.jobs)
    hours = np.where(np.isnan(intrepid.requested_s), intrepid.run_s, intrepid.requested_s) / 3600
    np.testing.assert_allclose(jobs["credits_granted"], 3 * hours * jobs["requested_size"])
    np.testing.assert_allclose(jobs["credits_charged"], (1 + jobs["recovery_option"]) * hours * jobs["requested_size"])
    assert run.metrics["credits_granted"] == pytest.approx(found.granted.sum())
    assert run.metrics["credit_refusals"] == found.refused.sum() > 0
    write_accounts(found, tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].startswith("user,jobs,refused,option_a")
    assert len(lines) == 1 + len(found.user)
    assert sum(float(line.split(",")[-1]) for line in lines[1:]) == pytest.approx(found.balance.sum())


def test_what_became_of_jobs_is_reported_by_the_option_that_they_got(intrepid, tmp_path):
    run = simulate(intrepid, **FAILING, credits=True, gaming_frac=0.5)
    jobs, found, users = run.jobs, option_report(run.jobs), accounts(run.jobs)
    assert "".join(found["option"]) == "ABCDE"
    assert found["jobs"].tolist() == users.options.sum(axis=0).tolist()
    assert found["asked"].sum() == found["jobs"].sum() == len(jobs["job_id"])
    assert found["jobs"][0] - found["asked"][0] == users.refused.sum() > 0
    assert found["hit"].sum() == run.metrics["jobs_hit"] > 0
    for credits in ("granted", "charged"):
        assert found[credits].sum() == pytest.approx(run.metrics[f"credits_{credits}"])
    weighted = found["hit"] > 0
    fsd = (found["failure_slowdown"][weighted] * found["hit"][weighted]).sum() / found["hit"].sum()
    assert fsd == pytest.approx(run.metrics["failure_slowdown"])
    mean = np.nansum(found["mean_response_s"] * found["jobs"]) / found["jobs"].sum()
    assert mean == pytest.approx(run.metrics["mean_response_s"])
    write_option_report(found, tmp_path / "o.csv")
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert lines[0] == "option,asked,jobs,hit,mean_response_s,failure_slowdown,granted,charged"
    assert [line[0] for line in lines[1:]] == list("ABCDE")


# --- what every option must do --------------------------------------------------------------------------------------


def traced(case, **options):
    machine, jobs, failures = case
    return engine_run(jobs, machine, failures, recovery=True, **options).events


@examples(40)
@given(recoveries(st.one_of(machines, menus)), st.booleans(), st.sampled_from(("fcfs", "backfill")))
def test_a_job_under_c_restarts_on_its_own_nodes_when_they_are_up(case, hold, scheduler):
    option = {row[0]: row[5] for row in case[1]}
    place, down = {}, set()
    instants = defaultdict(list)
    for row in traced(case, hold=hold, scheduler=scheduler):
        instants[row[0]].append(row)
    for rows in instants.values():
        for _, kind, job, nodes in rows:
            if kind == "fail":
                down.add(nodes[0])
            elif kind == "repair":
                down.discard(nodes[0])
            elif kind == "start":
                assert option[job] != "C" or place.setdefault(job, nodes) == nodes
            assert kind != "requeue" or option[job] != "C", "it never returns to the queue"
        for _, kind, _, nodes in rows:
            assert kind != "start" or not down & set(nodes), "nothing starts on a node that is down"


@examples(40)
@given(recoveries(st.one_of(machines, menus)), st.sampled_from((0, 5, 40)))
def test_a_killed_job_is_resubmitted_once_and_when_its_option_says(case, delay):
    option = {row[0]: row[5] for row in case[1]}
    kills, requeues = defaultdict(list), defaultdict(list)
    for time, kind, job, _ in traced(case, manual_delay=lambda job, restarts: delay):
        if kind in ("kill", "requeue"):
            (kills if kind == "kill" else requeues)[job].append(time)
    for job, times in kills.items():
        if option[job] != "C":
            assert requeues[job] == [time + (delay if option[job] == "A" else 0) for time in times]
    assert set(requeues) <= set(kills)


@examples(40)
@given(recoveries(machines, "BDE"))
def test_regular_jobs_keep_their_order_among_themselves(case):
    killed, starts = set(), []
    for _, kind, job, _ in traced(case, scheduler="fcfs"):
        killed |= {job} if kind == "kill" else set()
        if kind == "start" and job not in killed:
            starts.append(job)
    assert starts == sorted(starts)


@examples(40)
@given(recoveries(machines, "E"))
def test_the_head_of_the_queue_goes_to_who_failed_last(case):
    """Under E and FCFS nobody starts for the first time while a killed job waits that would fit by itself."""
    waiting: list[int] = []
    for _, kind, job, _ in traced(case, scheduler="fcfs"):
        if kind == "requeue":
            waiting.insert(0, job)
        elif kind == "start":
            assert not waiting or waiting[0] == job
            waiting = waiting[1:]


@examples(20)
@given(
    recoveries(st.one_of(machines, menus)),
    st.sampled_from(("fcfs", "backfill")),
    st.booleans(),
    st.sampled_from(("fcfs", "wfp")),
)
def test_every_invariant_holds_after_every_instant(case, scheduler, hold, order):
    machine, rows, failures = case
    more = {"machine": menu_file(machine) if machine in MENUS else machine, "scheduler": scheduler}
    if machine.startswith("midplanes"):
        rows = [(*row[:4], 512 * row[4], row[5]) for row in rows]
    letters = "".join(row[5] for row in sorted(rows, key=lambda row: row[1]))
    given = {"recovery": "mix", "options": letters, "manual_delay_h": 0.001, "hold_nodes": hold, "queue_order": order}
    simulate(workload_of(rows), failures=failures_of(failures, rows), debug=True, **more, **given)


@examples(40)
@given(runs(menus, failures=True), st.sampled_from(("fcfs", "backfill")))
def test_partitions_in_use_never_conflict(case, scheduler):
    machine, jobs, failures = case
    menu, held = machine_of(machine), {}
    of_midplanes = {tuple(sorted(n for n in one if n < menu.nodes)): one for one in menu.partitions}
    for _, kind, job, nodes in engine_run(jobs, machine, failures, scheduler=scheduler).events:
        if kind == "start":
            assert nodes in of_midplanes
            assert all(of_midplanes[nodes].isdisjoint(other) for other in held.values())
            held[job] = of_midplanes[nodes]
        elif kind in ("kill", "finish"):
            del held[job]


# --- delays and measures --------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_the_delay_of_resubmission_by_hand_has_its_distribution():
    """400 jobs side by side, all killed at the same time: their delays are the sample."""
    count = 400
    jobs = Workload(*(np.full(count, value) for value in (0, 0.0, 1e5, 1e5, 1, 1)))
    failures = FailureTrace(np.full(count, 10.0), np.arange(count), np.zeros(count))
    mean_h = 5.0
    for kind, spread in (("constant", 0.0), ("exponential", 1.0), ("lognormal", np.sqrt(np.expm1(0.25)))):
        given = {"manual_delay_h": mean_h, "manual_delay_distribution": kind, "manual_delay_sigma": 0.5}
        run = simulate(jobs, failures=failures, machine=f"flat:{count}", recovery="manual", events=True, **given)
        delays = np.array([time - 10.0 for time, name, *_ in run.events.rows() if name == "requeue"]) / 3600
        assert len(delays) == count
        assert delays.mean() == pytest.approx(mean_h, rel=4 * max(spread, 1e-9) / np.sqrt(count))
        assert delays.std() / mean_h == pytest.approx(spread, rel=0.3, abs=1e-9)
        again = simulate(jobs, failures=failures, machine=f"flat:{count}", recovery="manual", **given)
        np.testing.assert_array_equal(again.jobs["finish_s"], run.jobs["finish_s"])


@pytest.mark.skipif(is_interpreted(), reason="thousands of failures of a long queue: for compiled kernels")
def test_measures_by_group_are_those_of_the_paired_run(intrepid):
    often = {**FAILING, "mtbf_h": 0.5}
    run = simulate(intrepid, **often, scheduler="backfill", queue_order="wfp")
    without = simulate(intrepid, **{**FAILING, "failures": "none"}, scheduler="backfill", queue_order="wfp")
    np.testing.assert_array_equal(run.jobs["failure_free_response_s"], without.jobs["response_s"])
    jobs, failed = run.jobs, run.jobs["restarts"] > 0
    assert failed.sum() > 5
    slowdown = (jobs["response_s"] - without.jobs["response_s"]) / jobs["run_s"]
    assert run.metrics["failure_slowdown"] == pytest.approx(slowdown[failed].mean())
    for number, letter in enumerate("abcde"):
        group = jobs["recovery_group"] == number
        assert run.metrics[f"mean_response_{letter}_s"] == pytest.approx(jobs["response_s"][group].mean())
        assert run.metrics[f"jobs_hit_{letter}"] == (group & failed).sum()
        if (group & failed).any():
            assert run.metrics[f"failure_slowdown_{letter}"] == pytest.approx(slowdown[group & failed].mean())
    regular = ~failed
    delays = (jobs["response_s"] - without.jobs["response_s"])[regular]
    assert run.metrics["max_delay_regular_s"] == delays.max()
    assert without.metrics["mean_delay_regular_s"] == 0
    assert np.isnan(without.metrics["failure_slowdown"])
    plain = simulate(intrepid, **{**FAILING, "recovery": "arrival"})
    assert np.isnan(plain.metrics["mean_response_a_s"])
    assert np.isnan(plain.metrics["credits_granted"])


@pytest.mark.compiled
def test_recovered_jobs_are_drawn_from_the_log_alike_in_every_case(intrepid):
    groups = [
        simulate(intrepid, **{**FAILING, "recovery": case}).jobs["recovery_group"].tolist()
        for case in ("manual", "mix", "all-c")
    ]
    assert groups[0] == groups[1] == groups[2]
    assert set(Counter(groups[0])) <= set(range(len(OPTIONS)))
