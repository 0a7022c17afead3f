"""Priorities of a recorded SLURM: on its schedule, the kernels give what ``sprio`` and the controller's log say.

Fair Tree with three accounts and seven users (root is one), a half-life of five minutes, priorities once a minute from
the start of the controller on; see runA of the recorded corpus. Before its first jobs three were run that its
accounting does not show, by a user of physics.
"""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.queue_order.usage import expected_usage
from faultsweep.simcore.sites import slurm
from faultsweep.simcore.sites.facts import read_facts
from faultsweep.simcore.sites.site import site_text

from tests.recorded_shares import PRIORITY, USAGE, coded, replay

pytestmark = pytest.mark.shared

STARTED = "2026-11-22T09:59:19.427"  # priority/multifactor, by the controller's log
FRACTION = 0.427  # of that second; SLURM counts ages in whole seconds
PRINTED = "2026-11-22T10:01:47"  # sprio: after the submission of job 111
ENDED = "2026-11-22T10:05:24"  # sshare
LAST = "2026-11-22T10:05:19.427"  # the last calculation before that
WEIGHTS = {"age": 1000, "share": 10000, "size": 1000, "partition": 1000, "qos": 5000}
COLUMNS = {"age": 5, "share": 7, "size": 8, "partition": 9, "qos": 10}


class Job(NamedTuple):
    """A submission, with the priority that the controller logged."""

    time: float
    number: str
    priority: int
    user: str
    account: str
    partition: str
    qos: str
    nodes: int
    cores: int


def seconds(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime.fromisoformat(STARTED)).total_seconds()


@pytest.fixture(scope="module")
def recorded(shared: Path) -> Path:
    return shared / "accounting" / "recorded-slurm" / "runA"


@cache
def rows_of(folder: Path) -> list[dict[str, str]]:
    with open(folder / "sacct.psv") as lines:
        return [row for row in csv.DictReader(lines, delimiter="|") if "." not in row["JobID"]]


@cache
def jobs_of(folder: Path) -> list[Job]:
    """The submissions, after one of no size that begins the periods."""
    first = {row["JobID"].partition("_")[0]: row for row in reversed(rows_of(folder))}
    asked = {}
    for line in (folder / "play.jsonl").read_text().splitlines():
        said = json.loads(line)
        if said.get("op") == "submit":
            asked[said["id"]] = (said["user"], said["account"], said["partition"], said["qos"])
    warm = {"1": ("batch", 2, 2), "2": ("gpu", 1, 1), "3": ("batch", 1, 1)}
    jobs = [Job(0.0, "", 0, "root", "root", "batch", "normal", 1, 1)]
    log = (folder / "slurmctld.log").read_text()
    for time, number, priority in re.findall(r"\[(\S+)\] _slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)", log):
        if number in warm:
            partition, nodes, cores = warm[number]
            whose = ("u1", "physics", partition, "normal")
        else:
            whose = asked[number]
            nodes, cores = int(first[number]["ReqNodes"]), int(first[number]["ReqCPUS"])
        jobs.append(Job(seconds(time), number, int(priority), *whose, nodes, cores))
    return jobs


def state_of(folder: Path, path: Path, weights: dict[str, float]):
    """The state of a run of the recorded jobs on the site as its configuration says."""
    files = ("config.txt", "partition.txt", "node.txt", "qos.psv", "assoc.psv")
    site = slurm.build(read_facts([folder / name for name in files]))
    path.write_text(site_text(site))
    machine, jobs = parse_machine(str(path)), jobs_of(folder)
    priority = site.priority
    assert priority.fair_tree
    parameters = {f"priority_{name}_weight": float(weights.get(name, 0)) for name in WEIGHTS} | {
        "queue_order": "multifactor",
        "priority_fair_share": "fair-tree",
        "priority_max_age_h": priority.max_age_s / 3600,
        "priority_half_life_h": priority.half_life_s / 3600,
        "priority_period_s": priority.calc_period_s,
        "machine": str(path),
    }
    one = np.ones(len(jobs), np.int64)
    nodes, cores = (np.array([getattr(job, name) for job in jobs]) for name in ("nodes", "cores"))
    assert (cores % nodes == 0).all()
    arrays = {
        **dict.fromkeys(("work_s", "estimate_s"), 1.0 * one),
        "submit_s": np.floor([job.time + FRACTION for job in jobs]),
        **{"requested": cores, "size": cores, "chunks": nodes, "cores": cores // nodes, "per_node": one},
        **dict.fromkeys(("gpus", "memory_mb", "whole"), 0 * one),
    }
    arrays["user_names"], arrays["user"] = coded([job.user for job in jobs])
    for name in ("account", "qos"):
        arrays[f"{name}_names"], arrays[f"{name}_codes"] = coded([getattr(job, name) for job in jobs])
    places = [machine.site.partitions.index(job.partition) for job in jobs]
    arrays["partition"] = arrays["partition_codes"] = np.array(places, np.int64)
    arrays["partition_names"] = np.array(machine.site.partitions)
    return build_state(arrays, machine, resolve(parameters), None, tracing=False)


def priorities(folder: Path, path: Path, asked: list[tuple[float, int]], weights=WEIGHTS):
    """The priorities of jobs at times, asked for in order of time, on the recorded schedule; and the state then."""
    place = {job.number: at for at, job in enumerate(jobs_of(folder))}
    used = [(15.0, place["1"], 2, 15.0), (17.0, place["1"], -2, 15.0)]  # as the log says of the warm-up jobs
    used += [(15.0, place["3"], 1, 15.0), (17.0, place["3"], -1, 15.0)]
    for row in rows_of(folder):
        if row["Start"] not in ("None", "Unknown"):
            job, cores = place[row["JobID"].partition("_")[0]], int(row["AllocCPUS"])
            since, until = (seconds(row[name]) + FRACTION for name in ("Start", "End"))
            used += [(since, job, cores, since), (until, job, -cores, since)]
    events = [(time, USAGE, job, cores, since) for time, job, cores, since in used]
    events += [(time, PRIORITY, job, 0, np.nan) for time, job in asked]
    state = state_of(folder, path, weights)
    return replay(state, events)[len(events) - len(asked) :], state


def test_priorities_at_submission(recorded, tmp_path):
    """All submissions have the priority that the controller logged."""
    jobs = jobs_of(recorded)
    found, _ = priorities(recorded, tmp_path / "site.toml", [(job.time, at) for at, job in enumerate(jobs)])
    wrong = [
        (job.number, job.priority, mine) for job, mine in zip(jobs[1:], found[1:], strict=True) if mine != job.priority
    ]
    assert len(jobs) == 178
    assert wrong == []


@pytest.mark.parametrize("factor", WEIGHTS)
def test_each_factor_of_waiting_jobs(recorded, tmp_path, factor):
    """``sprio -l`` while 29 jobs wait, factor by factor, rounded to whole numbers."""
    lines = [line.split() for line in (recorded / "sprio.txt").read_text().splitlines()[1:] if line.strip()]
    place = {job.number: at for at, job in enumerate(jobs_of(recorded))}
    asked = [(seconds(PRINTED), place[line[0]]) for line in lines]
    found, _ = priorities(recorded, tmp_path / "site.toml", asked, {factor: 1000 * WEIGHTS[factor]})
    said = [float(line[COLUMNS[factor]]) for line in lines]
    assert len(lines) >= 28
    assert np.abs(found / 1000 - said).max() <= 0.5


def test_shares_at_the_end(recorded, tmp_path):
    """Ranks and usage are those of ``sshare``, which prints node-seconds without fractions, and also what had been used
    after the last calculation by jobs that had ended."""
    with open(recorded / "sshare.psv") as lines:
        said = {row["User"]: row for row in csv.DictReader(lines, delimiter="|") if row["User"] not in ("", "root")}
    jobs = jobs_of(recorded)
    place = {job.user: at for at, job in enumerate(jobs)}
    found, state = priorities(
        recorded, tmp_path / "site.toml", [(seconds(ENDED), place[user]) for user in said], {"share": 10**6}
    )
    assert (found / 10**6).round(5).tolist() == pytest.approx(
        [float(row["FairShare"]) for row in said.values()], abs=1e-5
    )
    last = seconds(LAST)
    leaves = state.job.association[[place[user] for user in said]]
    used = np.array([expected_usage(state, leaf, last) for leaf in leaves])
    used += np.where(state.used_until[leaves] == last, state.ended_counts[leaves], 0)
    raw = np.array([float(row["RawUsage"]) for row in said.values()])
    assert (raw / used).round(2).tolist() == [1] * len(said)
