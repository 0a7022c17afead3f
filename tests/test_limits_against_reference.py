"""Limits of running jobs: the engine's schedules are those of the reference, which counts who runs at every look."""

from __future__ import annotations

from dataclasses import replace

import pytest
from faultsweep.simcore.parameters import inert, resolve
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.adapter import engine_run, workload_of
from tests.reference.machines import machine as machine_of
from tests.strategies import QUEUE_ORDERS, SCHEDULERS, examples, flats, machines, menus, runs
from tests.test_engine_against_reference import assert_same
from tests.test_priorities_against_reference import SETTINGS
from tests.test_site_against_reference import assert_same as assert_same_on_site
from tests.test_site_against_reference import cases as site_cases

OWNERS = ("user", "account", "partition", "qos", "array")
MOST_JOBS = st.fixed_dictionaries({f"{owner}_max_jobs": st.sampled_from((0, 0, 1, 1, 2, 3)) for owner in OWNERS})


@st.composite
def limits(draw, machine: str):
    """Limits that let every job start: of nodes, a whole machine or more, or a part of it where jobs are no larger."""
    nodes = machine_of(machine).nodes
    most = st.sampled_from((0, 0, nodes, nodes + 1, nodes + nodes // 2))
    return draw(MOST_JOBS) | {f"{owner}_max_nodes": draw(most) for owner in OWNERS}


@st.composite
def limited_runs(draw, on=machines, failures: bool = False):
    case = draw(runs(on, failures=failures))
    found = draw(limits(case[0]))
    largest = max((row[4] for row in case[1]), default=1)
    if draw(st.booleans()):
        found |= {"user_max_nodes": largest + draw(st.integers(0, 2))}
    return case, found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(limited_runs(), st.sampled_from(("actual", "requested")), st.sampled_from((0, 0, 1)))
@examples(80)
def test_schedules_are_those_of_the_reference(scheduler, drawn, estimates, delay):
    case, found = drawn
    assert_same(case, scheduler=scheduler, estimates=estimates, start_delay=delay, **found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@given(limited_runs(failures=True), st.sampled_from(("actual", "requested")), st.sampled_from(QUEUE_ORDERS))
@examples(60)
def test_with_failures_and_orders(scheduler, drawn, estimates, order):
    case, found = drawn
    assert_same(case, scheduler=scheduler, estimates=estimates, queue_order=order, **found)


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill"])
@given(limited_runs(menus, failures=True))
@examples(30)
def test_on_menus(scheduler, drawn):
    case, found = drawn
    assert_same(case, scheduler=scheduler, **found)


@pytest.mark.parametrize("event_order", ["submits-first", "ends-first"])
@given(limited_runs(), st.sampled_from(SCHEDULERS))
@examples(40)
def test_event_orders(event_order, drawn, scheduler):
    case, found = drawn
    assert_same(case, scheduler=scheduler, estimates="requested", event_order=event_order, **found)


@given(limited_runs(flats, failures=True), st.sampled_from(("fcfs", "backfill", "conservative")), SETTINGS)
@examples(40)
def test_with_priorities(drawn, scheduler, settings):
    case, found = drawn
    assert_same(case, scheduler=scheduler, queue_order="multifactor", **settings, **found)


@given(limited_runs(failures=True), st.sampled_from(SCHEDULERS), st.booleans(), st.data())
@examples(60)
def test_with_recovery(drawn, scheduler, hold, data):
    (machine, jobs, failures), found = drawn
    options = [data.draw(st.sampled_from("ABCDE")) for _ in jobs]
    rows = [(*row, option) for row, option in zip(jobs, options, strict=True)]
    assert_same((machine, rows, failures), scheduler=scheduler, recovery=True, hold=hold, **found)


def starts(rows, machine="flat:4", **settings):
    found = engine_run(rows, machine, **settings)
    return {job: row["start"] for job, row in found.jobs.items()}


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
def test_a_job_at_a_limit_holds_up_nobody(scheduler):
    """Jobs 3 and 6 are of one user, 7 of another: 6 waits until 3 ends, and 7 passes it, though it needs the rest."""
    rows = [(3, 0, 100, 100, 1), (6, 10, 50, 50, 1), (7, 20, 500, 500, 3)]
    assert starts(rows, scheduler=scheduler) == {3: 0, 6: 10, 7: 60}
    found = engine_run(rows, "flat:4", scheduler=scheduler, user_max_jobs=1)
    assert {job: row["start"] for job, row in found.jobs.items()} == {3: 0, 6: 100, 7: 20}
    assert found.metrics["time_at_limit"] == 90 / 3
    assert found.metrics["jobs_at_limit"] == 1


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
def test_a_start_that_brings_others_to_a_limit_ends_their_reservations(scheduler):
    """Jobs 3 and 6, of one user, come at once; of them one may run, so job 7 behind them starts, too."""
    rows = [(3, 0, 100, 100, 2), (6, 0, 100, 100, 2), (7, 0, 50, 50, 2)]
    assert starts(rows, scheduler=scheduler, user_max_jobs=1) == {3: 0, 6: 100, 7: 0}


def test_nodes_count_as_jobs_ask_for_them():
    """User 0 may have three nodes: job 6 does not fit beside job 3, and job 9 does."""
    rows = [(3, 0, 100, 100, 2), (6, 10, 50, 50, 2), (9, 20, 10, 10, 1)]
    assert starts(rows, "flat:8", user_max_nodes=3) == {3: 0, 6: 100, 9: 20}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("user", (0, 100, 0, 100)),
        ("account", (0, 100, 200, 0)),
        ("partition", (0, 100, 0, 200)),
        ("qos", (0, 100, 200, 300)),
    ],
)
def test_whose_jobs_are_limited(limit, expected):
    """By user, jobs 1 and 4 share the limit, and 6 and 9; by account all but 9; by partition all but 6; by QOS all."""
    rows = [(job, 0, 100, 100, 1) for job in (1, 4, 6, 9)]
    assert tuple(starts(rows, **{f"{limit}_max_jobs": 1}).values()) == expected


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(
    site_cases(failures=True), limits("flat:1"), st.sampled_from(("first-fit", "best-fit")), st.sampled_from((0, 0, 1))
)
@examples(60)
def test_on_sites(scheduler, case, found, node_choice, delay):
    """Limits of nodes are of cores on a site: here as many as the largest job asks for, or some more."""
    largest = max(need.chunks * need.each[0] for *_, need in case[1])
    cores = {name: most and largest + most - 1 for name, most in found.items() if name.endswith("nodes")}
    assert_same_on_site(case, scheduler=scheduler, node_choice=node_choice, start_delay=delay, **found | cores)


@st.composite
def site_limits(draw, partitions: int, largest: int):
    """Limits of a site's file, by the table and its key: of QOS, of the QOS of partitions, and of accounts."""
    few, some = st.sampled_from((None, None, 1, 2)), st.sampled_from((None, None, largest, largest + 2))
    qos = {name: {key: draw(few if "jobs" in key else some) for key in QOS_KEYS} for name in "xyz"}
    of_partition = [draw(st.sampled_from(("", "", "x", "w"))) for _ in range(partitions)]
    qos["w"] = {key: draw(few if "jobs" in key else some) for key in QOS_KEYS}
    parts = [{key: draw(few if "jobs" in key else some) for key in PARTITION_KEYS} for _ in range(partitions)]
    rows = [
        ("a", "", "c"),
        ("b", "", draw(st.sampled_from(("c", "a", "")))),
        ("c", "", ""),
        ("a", "0", ""),
        ("b", "2", ""),
    ]
    accounts = {row: {key: draw(few if "jobs" in key else some) for key in ACCOUNT_KEYS} for row in rows}
    return qos, of_partition, parts, accounts


QOS_KEYS = ("max_jobs", "max_cores", "max_jobs_user", "max_cores_user", "max_jobs_account", "max_cores_account")
PARTITION_KEYS = ("max_run_jobs", "max_run_cores", "max_user_run_jobs", "max_user_run_cores")
ACCOUNT_KEYS = ("max_jobs", "group_jobs", "group_cores")


def site_rules(found):
    """The limits of a site for the reference, on a job: (whether another job counts, most jobs, most cores)."""
    qos, of_partition, parts, accounts = found
    parent = {account: above for account, user, above in accounts if not user}

    def path(account):
        return [account, *(path(parent[account]) if parent.get(account) else ())]

    def on(job, partition_of):
        place = int(partition_of(job)[1:])

        def qos_of_partition(other):
            where = int(partition_of(other)[1:])
            return of_partition[where] if where < len(parts) else ""

        def setter(key):
            """The QOS whose limit of a kind is the job's, that of its partition first; none: none is set."""
            names = [name for name in (qos_of_partition(job), job.qos) if name and qos[name][key] is not None]
            return names[0] if names else None

        def here(other):
            return partition_of(other) == partition_of(job)

        def same_user_here(other):
            return here(other) and other.user == job.user

        if place < len(parts):
            most = parts[place]
            yield here, most["max_run_jobs"], most["max_run_cores"]
            yield same_user_here, most["max_user_run_jobs"], most["max_user_run_cores"]
        for key in QOS_KEYS:
            name = setter(key)
            if name is not None:
                owner = key.split("_")[2] if key.count("_") == 2 else None

                def counts(other, name=name, owner=owner):
                    same = owner is None or getattr(other, owner) == getattr(job, owner)
                    return same and name in (other.qos, qos_of_partition(other))

                yield counts, *((qos[name][key], None) if "jobs" in key else (None, qos[name][key]))
        own = accounts.get((job.account, str(job.user), ""), {})

        def same_user(other):
            return (other.account, other.user) == (job.account, job.user)

        groups = [(same_user, own)]
        for name in path(job.account):

            def within(other, name=name):
                return name in path(other.account)

            groups.append((within, accounts[name, "", parent[name]]))
        for counts, most in groups:
            yield counts, most.get("group_jobs") if setter("max_jobs") is None else None, None
            yield counts, None, most.get("group_cores") if setter("max_cores") is None else None
        if setter("max_jobs_user") is None and setter("max_jobs_account") is None:
            chain = [most["max_jobs"] for _, most in groups if most.get("max_jobs") is not None]
            yield same_user, chain[0] if chain else None, None

    return on


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative"])
@given(site_cases(failures=True), st.data())
@examples(60)
def test_limits_of_a_sites_file(scheduler, case, data):
    largest = max(need.chunks * need.each[0] for *_, need in case[1])
    found = data.draw(site_limits(len(case[0][1]), largest))
    assert_same_on_site(case, limits=(found, site_rules(found)), scheduler=scheduler)


def test_a_job_that_a_limit_never_lets_start_is_named_or_left_out():
    rows = [(3, 0, 10, 10, 2), (6, 0, 10, 10, 1)]
    with pytest.raises(InputError, match="case: job 3 asks for 2 nodes or cores and user_max_nodes allows 1 "):
        engine_run(rows, "flat:4", user_max_nodes=1)
    run = simulate(workload_of(rows), machine="flat:4", user_max_nodes=1, size_map="drop")
    assert run.dropped == {"larger than a limit of running jobs": 1}
    assert run.jobs["job_id"].tolist() == [6]
    with pytest.raises(InputError, match="limits let none of the jobs start"):
        simulate(workload_of(rows[:1]), machine="flat:4", user_max_nodes=1, size_map="drop")


def test_jobs_must_say_whose_they_are():
    workload = replace(workload_of([(3, 0, 10, 10, 2)]), labels={})
    with pytest.raises(InputError, match=r"qos_max_jobs: no job of the workload has a QOS \(valid: .*num_qos above 0"):
        simulate(workload, machine="flat:4", qos_max_jobs=1)
    with pytest.raises(
        InputError, match=r"array_max_jobs: .* a job array \(valid: a dump whose jobs have names such as"
    ):
        simulate(workload, machine="flat:4", array_max_jobs=1)
    with pytest.raises(InputError, match="user_max_jobs: 1 is not for machines of clusters"):
        simulate(workload, machine="clusters:4+4", user_max_jobs=1)


def test_limits_of_a_site_by_owners_that_no_job_has_are_told(tmp_path):
    path = tmp_path / "site.toml"
    qos = '[[qos]]\nname = "x"\nmax_jobs = 1\n'
    path.write_text(f'format = "faultsweep site, 1"\n[[nodes]]\nname = "n"\ncount = 4\ncores = 1\n{qos}')
    workload = workload_of([(5, 0, 10, 10, 2), (10, 0, 10, 10, 2)])  # of QOS x
    for site_limits, starts in ((False, [0, 0]), (True, [0, 10])):
        run = simulate(workload, machine=str(path), site_limits=site_limits)
        assert run.jobs["start_s"].tolist() == starts
        assert run.doubts == ()
    assert "site_limits" not in inert(resolve({"machine": str(path)}))
    assert "site_limits" in inert(resolve({"machine": "flat:4", "site_limits": True}))
    run = simulate(replace(workload, labels={}), machine=str(path), site_limits=True)
    assert run.jobs["start_s"].tolist() == [0, 0]
    assert run.doubts == ("no job has a known QOS, so the limits by QOS of the site's file do nothing",)


@pytest.mark.parametrize(
    ("rules", "jobs", "starts"),
    [
        (
            '[[accounts]]\naccount = "a"\nmax_jobs = 1\n[[accounts]]\naccount = "a"\nuser = "0"\nmax_jobs = 2\n',
            (1, 4, 6, 7, 12, 18),  # of user 1 are 1, 4 and 7, the others of user 0
            [0, 10, 0, 20, 0, 10],
        ),
        ('[[qos]]\nname = "w"\nmax_jobs = 2\n[[qos]]\nname = "x"\nmax_jobs = 1\n', (3, 5, 10), [0, 0, 10]),
    ],
    ids=["a user's own limit", "a limit of the QOS of a partition"],
)
def test_which_limit_of_a_site_stands_above(tmp_path, rules, jobs, starts):
    path = tmp_path / "site.toml"
    nodes = '[[nodes]]\nname = "n"\ncount = 8\ncores = 1\n'
    part = '[[partitions]]\nname = "p"\nnodes = {n = 8}\ndefault = true\nqos = "w"\n'
    path.write_text(f'format = "faultsweep site, 1"\n{nodes}{part}{rules}')
    workload = workload_of([(job, 0, 10, 10, 1) for job in jobs])
    labels = {name: label for name, label in workload.labels.items() if name != "partition"}
    run = simulate(replace(workload, labels=labels), machine=str(path), site_limits=True)
    assert run.jobs["start_s"].tolist() == starts
