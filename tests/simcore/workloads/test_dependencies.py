"""Which jobs follow others: as logs say it, and what becomes of the pairs when jobs are chosen, moved or left out."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.model.dependencies import Dependencies, dependencies_of
from faultsweep.simcore.model.workload import Workload, take
from faultsweep.simcore.workloads import parsed
from faultsweep.simcore.workloads.accounting.dependencies import names_in, pairs_of, unread
from faultsweep.simcore.workloads.accounting.files import read_records
from faultsweep.simcore.workloads.accounting.records import to_workload
from faultsweep.simcore.workloads.accounting.write import write_records
from faultsweep.simcore.workloads.resampling import WEEK_S, resample
from faultsweep.simcore.workloads.swf import read_swf, write_swf
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples


def workload_of(count: int, pairs, submit=None, user=None) -> Workload:
    """So many jobs; pairs are (job, after, think time), by index."""
    columns = [np.array(column) for column in zip(*pairs, strict=True)] if pairs else [np.array([], np.int64)] * 3
    ones = np.ones(count, np.int64)
    return Workload(
        np.arange(count) + 1,
        np.arange(count) * 1.0 if submit is None else submit,
        ones * 1.0,
        ones * np.nan,
        ones,
        ones if user is None else user,
        dependencies=dependencies_of(columns[0], columns[1], columns[2].astype(float)),
    )


def by_id(workload: Workload) -> set[tuple[int, int, float]]:
    """The pairs by the numbers of the jobs."""
    pairs = workload.dependencies
    if pairs is None:
        return set()
    ids = workload.job_id
    return set(zip(ids[pairs.job].tolist(), ids[pairs.after].tolist(), pairs.think_s.tolist(), strict=True))


@st.composite
def chains(draw):
    count = draw(st.integers(1, 12))
    pairs = (
        {
            (job, draw(st.integers(0, job - 1))): draw(st.sampled_from((0, 5.5)))
            for job in draw(st.lists(st.integers(1, count - 1), max_size=12))
            if count > 1
        }
        if count > 1
        else {}
    )
    return count, [(*pair, think) for pair, think in sorted(pairs.items())]


@given(chains(), st.data())
@examples(200)
def test_pairs_of_chosen_jobs_are_those_whose_jobs_are_both_there_in_their_order(chain, data):
    count, pairs = chain
    workload = workload_of(count, pairs)
    rows = data.draw(st.lists(st.integers(0, count - 1), unique=True, min_size=1))
    found = take(workload, np.array(rows))
    expected = {(j + 1, a + 1, t) for j, a, t in pairs if j in rows and a in rows and rows.index(a) < rows.index(j)}
    assert by_id(found) == expected
    chosen = np.isin(np.arange(count), rows)
    assert by_id(take(workload, chosen)) == {(j + 1, a + 1, t) for j, a, t in pairs if chosen[j] and chosen[a]}


@given(chains(), st.data())
@examples(200)
def test_pairs_of_jobs_that_are_there_twice_are_within_a_group(chain, data):
    count, pairs = chain
    groups = [data.draw(st.lists(st.integers(0, count - 1), unique=True)) for _ in range(3)]
    places = [(group, row) for group, rows in enumerate(groups) for row in rows]
    if not places:
        return
    order = data.draw(st.permutations(places))
    found = dependencies_of(*(np.array([pair[k] for pair in pairs]) for k in range(2)), np.zeros(len(pairs)))
    group, rows = (np.array([place[k] for place in order], np.int64) for k in range(2))
    taken = found and found.taken(rows, group)
    expected = {
        (job, after)
        for job, (its, row) in enumerate(order)
        for after, (other, earlier) in enumerate(order[:job])
        if its == other and (row, earlier) in {pair[:2] for pair in pairs}
    }
    assert (set(zip(taken.job.tolist(), taken.after.tolist(), strict=True)) if taken else set()) == expected
    if taken:
        assert (np.diff(taken.job) >= 0).all()


def test_resampled_users_keep_their_chains():
    """Two users, each with a chain within every week: whoever is drawn, a job follows one an hour before."""
    submit = np.sort(np.concatenate([week * WEEK_S + np.array([0.0, 10.0, 3600.0, 3610.0]) for week in range(6)]))
    user = np.tile([1, 2, 1, 2], 6)
    pairs = [(at, at - 2, 5.0) for at in range(24) if at % 4 >= 2]
    for replicate in range(4):
        drawn = resample(workload_of(24, pairs, submit, user), replicate=replicate)
        found = drawn.dependencies
        assert found is not None
        assert len(found) == 12
        assert (drawn.submit_s[found.job] - drawn.submit_s[found.after] == 3600.0).all()
        assert (drawn.user[found.job] == drawn.user[found.after]).all()


def line(job: int, submit: int, preceding: float = -1, think: float = -1) -> str:
    return f"{job} {submit} -1 10 1 -1 -1 1 -1 -1 1 1 1 -1 -1 -1 {preceding} {think}"


def test_fields_17_and_18_of_a_log(tmp_path):
    """Job 9 is not there, 7 comes later, 2.5 is no job, and 4 follows itself: none of them is waited for."""
    rows = [
        line(1, 0),
        line(2, 5, 1, 60),
        line(3, 6, 1),
        line(4, 7, 4, 1),
        line(5, 8, 9, 1),
        line(6, 9, 7, 1),
        line(7, 10, 2.5, 1),
        line(8, 11, 2, -3),
    ]
    path = tmp_path / "chain.swf"
    path.write_text("\n".join(rows) + "\n")
    workload = read_swf(path)
    assert by_id(workload) == {(2, 1, 60.0), (3, 1, 0.0), (8, 2, 0.0)}
    again = tmp_path / "again.swf"
    write_swf(workload, again)
    assert by_id(read_swf(again)) == by_id(workload)
    imported = read_records([path])
    assert by_id(to_workload(imported)) == by_id(workload)
    write_records(imported, tmp_path / "imported.swf")
    assert by_id(read_swf(tmp_path / "imported.swf")) == by_id(workload)
    write_records(imported, tmp_path / "imported.parquet")
    assert by_id(to_workload(read_records([tmp_path / "imported.parquet"]))) == by_id(workload)


def test_a_job_that_is_left_out_is_waited_for_by_nobody(tmp_path):
    path = tmp_path / "chain.swf"
    path.write_text("\n".join([line(1, 0).replace(" 10 1", " 0 1", 1), line(2, 5, 1, 60), line(3, 9, 2, 0)]) + "\n")
    assert by_id(read_swf(path)) == {(3, 2, 0.0)}


def test_a_large_log_keeps_its_pairs_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTSWEEP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(parsed, "LEAST_BYTES", 1)
    path = tmp_path / "chain.swf"
    path.write_text("\n".join([line(1, 0), line(2, 5, 1, 60)]) + "\n")
    first = by_id(read_swf(path))
    assert list((tmp_path / "cache").rglob("*.npz"))
    assert by_id(read_swf(path)) == first == {(2, 1, 60.0)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("afterok:12", ["12"]),
        ("afterok:12:13,afterany:20_*", ["12", "13", "20_*"]),
        ("afterok:12(unfulfilled),afternotok:13(failed)", ["12", "13"]),
        ("afterok:12.server@server,beforeok:14.server", ["12.server"]),
        ("on:2,beforeany:9", []),
        ("done(12) && ended(13)", ["12", "13"]),
        ("exit(12, >3)", ["12"]),
        ("done(12[3])", ["12_3"]),
        ("singleton", None),
        ("after:12", None),
        ("after:12+5", None),
        ("aftercorr:12", None),
        ("afterok:12?afterok:13", None),
        ("done(12) || done(13)", None),
        ('done("a job")', None),
        ("started(12)", None),
        ("afterok", None),
        ("(null", None),
    ],
)
def test_texts_of_batch_systems(text, names):
    found = names_in(text)
    assert (found if found is None else [name for name, _ in found]) == names


def test_names_of_arrays_parts_and_servers():
    jobs = ["10_1", "10_2", "11+0", "11+1", "12.server", "13[1].server", "14"]
    texts = [None, None, None, None, "afterok:10", "afterok:11", "afterok:10_2:12:13[]:99:14"]
    assert pairs(jobs, texts) == [(4, 0), (4, 1), (5, 2), (5, 3), (6, 1), (6, 4), (6, 5)]
    assert unread(["singleton", None, "afterok:1", "singleton"]) == 2


def pairs(jobs, texts) -> list[tuple[int, int]]:
    found = pairs_of(jobs, texts)
    return [] if found is None else list(zip(found.job.tolist(), found.after.tolist(), strict=True))


@given(st.text(alphabet="afteroknydsg(:,&|?[]_*.+0123456789) ", max_size=30))
@examples(200)
def test_any_text_is_read_or_not(text):
    assert names_in(text) is None or pairs(["1", "2", "3"], [None, None, text]) is not None


def test_pairs_are_put_in_order():
    found = dependencies_of(np.array([2, 1, 2]), np.array([1, 0, 0]), np.array([-1.0, 3.0, 2.0]))
    assert isinstance(found, Dependencies)
    assert (found.job.tolist(), found.after.tolist(), found.think_s.tolist()) == ([1, 2, 2], [0, 0, 1], [3.0, 2.0, 0.0])
