"""Limits of submitted jobs: the engine refuses those that the reference refuses, which counts at every submission."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.dependencies import dependencies_of
from faultsweep.simcore.model.workload import Label
from faultsweep.simcore.parameters import inert, resolve
from faultsweep.simcore.simulate import simulate
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import workload_of
from tests.strategies import examples
from tests.test_limits_against_reference import ACCOUNT_KEYS, PARTITION_KEYS, QOS_KEYS, site_rules
from tests.test_site_against_reference import assert_same, cases

AS_RUNNING = {
    **{f"max_submit{whose}": f"max_jobs{whose}" for whose in ("", "_user", "_account")},
    "group_submit": "group_jobs",
}
"""Which limit of running jobs is for whom a limit of submitted jobs is for."""
ACCOUNTS = (("a", "", "c"), ("b", "", "a"), ("c", "", "root"), ("root", "", ""), ("a", "0", ""), ("b", "2", ""))


@st.composite
def submit_limits(draw, partitions: int):
    """Limits of a site's file, by the table and its key: of QOS, of the QOS of partitions, and of accounts."""
    few = st.sampled_from((None, None, 0, 1, 2, 3, 4))

    def table(*keys):
        return {key: draw(few) for key in keys}

    qos = {name: table("max_submit", "max_submit_user", "max_submit_account") for name in "xyzw"}
    of_partition = [draw(st.sampled_from(("", "", "x", "w"))) for _ in range(partitions)]
    accounts = {row: table("max_submit", "group_submit") for row in ACCOUNTS}
    return qos, of_partition, [{} for _ in range(partitions)], accounts


def rules_of(found):
    """The limits for the reference, on a job: (whether another job counts, most jobs)."""
    qos, of_partition, parts, accounts = found

    def renamed(table, keys):
        return dict.fromkeys(keys) | {AS_RUNNING[key]: most for key, most in table.items()}

    limits = site_rules(
        (
            {name: renamed(table, QOS_KEYS) for name, table in qos.items()},
            of_partition,
            [dict.fromkeys(PARTITION_KEYS) for _ in parts],
            {row: renamed(table, ACCOUNT_KEYS) for row, table in accounts.items()},
        )
    )
    return lambda job, where: [(counts, most) for counts, most, _ in limits(job, where) if most is not None]


@pytest.mark.parametrize("scheduler", ["fcfs", "backfill", "conservative", "slurm"])
@given(cases(failures=True), st.sampled_from(("none", "log")), st.data())
@examples(60)
def test_refused_jobs_are_those_of_the_reference(scheduler, case, dependencies, data):
    found = data.draw(submit_limits(len(case[0][1])))
    ticks = ("main_interval", "full_interval", "backfill_interval", "backfill_resolution")
    options = {"first_ticks": (0, 0, 0)} | dict.fromkeys(ticks, 0) if scheduler == "slurm" else {}
    assert_same(
        case,
        limits=(found, rules_of(found)),
        limited="submit_limits",
        scheduler=scheduler,
        dependencies=dependencies,
        **options,
    )


SITE = """format = "faultsweep site, 1"
[[nodes]]
name = "n"
count = 2
cores = 1
"""
OF_USER_0 = '[[accounts]]\naccount = "root"\n[[accounts]]\naccount = "a"\nuser = "0"\nmax_submit = 2\n'


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(SITE + OF_USER_0)
    return str(path)


def starts(workload, path, **options):
    run = simulate(workload, machine=path, debug=True, site_submit_limits=True, **options)
    return [None if time != time else time for time in run.jobs["start_s"].tolist()], run


def test_a_job_counts_from_its_submission_to_its_end(path):
    """Jobs 12, 18, 24, 30 and 36 are of user 0 in account a, who may have two: the third is refused, not the fourth."""
    rows = [(12, 0, 10, 10, 2), (18, 1, 10, 10, 2), (24, 2, 10, 10, 2), (30, 10, 10, 10, 2), (36, 19, 10, 10, 2)]
    found, run = starts(workload_of(rows), path)
    assert found == [0, 10, None, 20, None]
    assert (run.metrics["jobs_refused"], run.metrics["unfinished_jobs"], run.metrics["jobs_cancelled"]) == (2, 2, 0)
    assert run.doubts == ("2 of 5 jobs were refused by the site's limits of submitted jobs",)
    assert simulate(workload_of(rows), machine=path).metrics["jobs_refused"] == 0


@pytest.mark.parametrize(("count", "refused"), [(2, False), (3, True)])
def test_an_array_is_refused_as_a_whole(path, count, refused):
    """Tasks of other arrays, or that come later, are submissions of their own."""
    rows = [(12 + 6 * place, 0 if place < count else 5, 1, 1, 1) for place in range(count + 1)]
    workload = workload_of(rows)
    array = Label(np.zeros(count + 1, np.int64), ("7",))
    found, run = starts(replace(workload, labels={**workload.labels, "array": array}), path)
    assert [start is None for start in found] == [refused] * count + [False]
    none = Label(np.full(count + 1, -1), ())
    found, run = starts(replace(workload, labels={**workload.labels, "array": none}), path)
    assert run.metrics["jobs_refused"] == count - 2


def test_jobs_do_not_wait_for_a_refused_one(path):
    """A job that was refused has ended at once for those that follow it."""
    rows = [(12, 0, 50, 50, 1), (18, 0, 50, 50, 1), (24, 3, 50, 50, 1), (25, 4, 50, 50, 1)]
    workload = workload_of(rows)
    follows = dependencies_of(np.array([3]), np.array([2]), np.array([60.0]))
    found, _ = starts(replace(workload, dependencies=follows), path, dependencies="log")
    assert found == [0, 0, None, 63]


def test_a_cancelled_job_no_longer_counts(tmp_path):
    """Job 10, of QOS x, has job 36 leave, whose user may have one job, and submits job 6 after that."""
    path = tmp_path / "site.toml"
    qos = '[[qos]]\nname = "y"\n[[qos]]\nname = "x"\npreempts = ["y"]\n'
    path.write_text(SITE.replace("\n", '\npreempt_by = "qos"\n', 1) + OF_USER_0.replace("= 2", "= 1") + qos)
    rows = [(36, 0, 100, 100, 2), (10, 5, 10, 10, 2), (6, 6, 10, 10, 2)]
    found, run = starts(workload_of(rows), str(path), preemption="cancel")
    assert found == [None, 5, 15]
    assert (run.metrics["jobs_cancelled"], run.metrics["jobs_refused"]) == (1, 0)


def test_a_trace_shows_refusals(path):
    rows = [(12 + 6 * place, place, 9, 9, 1) for place in range(3)]
    run = simulate(workload_of(rows), machine=path, site_submit_limits=True, events=True)
    assert [(time, job) for time, kind, job, *_ in run.events.rows() if kind == "refuse"] == [(2, 24)]


def test_the_parameter_is_for_sites(path):
    assert "site_submit_limits" not in inert(resolve({"machine": path}))
    assert "site_submit_limits" in inert(resolve({"machine": "flat:4", "site_submit_limits": True}))
    workload = replace(workload_of([(12, 0, 1, 1, 1)]), labels={})
    _, run = starts(workload, path)
    assert run.doubts == ("no job has a known account, so the limits by account of the site's file do nothing",)
