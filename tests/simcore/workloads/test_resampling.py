"""Replicates of a log: whose jobs are in them, and that hours and days of the week stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload, check_workload
from faultsweep.simcore.parameters import inert, resolve
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.resampling import WEEK_S, resample

from faultsweep.errors import InputError

WEEKS = 10


def log(users: dict[int, tuple[int, int, int]], seed: int = 0) -> Workload:
    """Jobs of users: user -> (first week, weeks, jobs); the run time tells user and job."""
    rng = np.random.default_rng(seed)
    rows = []
    for user, (first, weeks, jobs) in users.items():
        times = np.sort(rng.uniform(first, first + weeks, jobs)) * WEEK_S
        times[0], times[-1] = first * WEEK_S + user, (first + weeks) * WEEK_S - 1000 - user
        rows += [(time, user, 1000.0 * (user + 2) + number) for number, time in enumerate(times)]
    rows.sort()
    submit, user, run = (np.array(part) for part in zip(*rows, strict=True))
    n = len(rows)
    ones = np.ones(n, np.int64)
    return Workload(np.arange(1, n + 1), submit, run, np.full(n, np.nan), ones, user.astype(np.int64), name="a log")


LOG = log({1: (0, WEEKS, 60), 2: (0, 5, 30), 3: (1, 1, 5), 4: (7, 1, 7), 5: (3, 1, 4), -1: (0, WEEKS, 50)})


def of(workload: Workload, user: int) -> np.ndarray:
    """Submissions of a user of the log, by the run times that only that user has."""
    return workload.submit_s[np.floor(workload.run_s / 1000) == user + 2]


@pytest.mark.parametrize("replicate", range(5))
def test_users_stay_whole_and_keep_their_hours(replicate):
    got = resample(LOG, seed=3, replicate=replicate)
    check_workload(got)
    first = LOG.submit_s[0]
    assert (np.unique(got.job_id) == np.arange(1, len(got) + 1)).all()
    assert got.submit_s.min() >= first
    assert got.submit_s.max() < first + WEEKS * WEEK_S
    original = dict(zip(LOG.run_s.tolist(), LOG.submit_s.tolist(), strict=True))
    weeks = (got.submit_s - np.array([original[run] for run in got.run_s.tolist()])) / WEEK_S
    assert weeks == pytest.approx(np.round(weeks), abs=1e-9)
    for user in (1, 2):
        assert len(of(got, user)) == len(of(LOG, user))
    for user, jobs in ((3, 5), (4, 7), (5, 4)):
        assert len(of(got, user)) % jobs == 0
    drawn = sum(len(of(got, user)) // jobs for user, jobs in ((3, 5), (4, 7), (5, 4)))
    assert drawn == 3


def test_a_user_who_is_there_for_long_is_moved_around_the_end():
    """All jobs of user 2 are moved by one number of weeks, around the ten of the log."""
    got = resample(LOG, seed=1)
    before, after = np.sort(of(LOG, 2)), of(got, 2)
    first = LOG.submit_s[0]
    moved = [np.sort((before - first + k * WEEK_S) % (WEEKS * WEEK_S)) for k in range(WEEKS)]
    assert sum(np.allclose(times, after - first) for times in moved) == 1


def test_someone_who_is_drawn_twice_is_two_users():
    for replicate in range(20):
        got = resample(LOG, replicate=replicate)
        if len(of(got, 4)) == 14:
            break
    owners = got.user[np.floor(got.run_s / 1000) == 6]
    assert sorted(np.unique(owners, return_counts=True)[1].tolist()) == [7, 7]
    assert (got.user[np.floor(got.run_s / 1000) == 1] == -1).all()


def test_jobs_without_a_user_come_by_whole_weeks():
    got = resample(LOG, replicate=4)
    first = LOG.submit_s[0]

    def by_week(workload):
        since = of(workload, -1) - first
        return [set(np.round(since[since // WEEK_S == week] % WEEK_S, 3)) for week in range(WEEKS)]

    assert all(week in by_week(LOG) for week in by_week(got))


def test_replicates_differ_and_are_the_same_every_time():
    one, again, other = resample(LOG, 1, 2), resample(LOG, 1, 2), resample(LOG, 1, 3)
    assert np.array_equal(one.submit_s, again.submit_s)
    assert np.array_equal(one.run_s, again.run_s)
    assert len(one) != len(other) or not np.array_equal(one.submit_s, other.submit_s)


def test_the_work_is_that_of_the_log_on_average():
    work = [resample(LOG, replicate=replicate).run_s.sum() for replicate in range(300)]
    error = np.std(work, ddof=1) / 300**0.5
    assert abs(np.mean(work) - LOG.run_s.sum()) < 4 * error


def test_a_short_log_cannot_be_resampled():
    with pytest.raises(InputError, match="a log: resample needs jobs of two weeks or more, and these are of 1 weeks"):
        resample(log({1: (0, 1, 20)}))


def test_a_run_takes_the_replicate_and_policies_see_the_same_jobs():
    options = {"machine": "flat:4", "resample": "users"}
    runs = {
        (scheduler, replicate): simulate(LOG, scheduler=scheduler, replicate=replicate, **options)
        for scheduler in ("fcfs", "backfill")
        for replicate in (0, 1)
    }
    submit = {key: run.jobs["submit_s"] for key, run in runs.items()}
    assert np.array_equal(submit["fcfs", 0], submit["backfill", 0])
    assert submit["fcfs", 0].tolist() == resample(LOG, 0, 0).submit_s.tolist()
    assert submit["fcfs", 0].tolist() != submit["fcfs", 1].tolist()


def test_replicates_of_a_resampled_log_are_not_copies():
    config = resolve({"log": "nasa"})
    assert "seed" in inert(config)
    assert "seed" not in inert({**config, "resample": "users"})
