"""FCFS, EASY and conservative backfilling equal the published schedules of pyss, job for job."""

from __future__ import annotations

import csv
import lzma

import numpy as np
import pytest

from tests.adapter import reference_run, workload_of

SCHEDULES = {"fcfs": "fcfs", "backfill": "easy", "conservative": "cons"}
# Under ends-first no running job counts as free before its completion, which conservative backfilling shows.
CASES = [*((name, "submits-first") for name in SCHEDULES), ("fcfs", "ends-first"), ("backfill", "ends-first")]


@pytest.fixture(scope="module")
def sdsc(shared):
    """The first 10,000 jobs of SDSC SP2, as rows."""
    with lzma.open(shared / "reference-schedules" / "SDSC-SP2-10k.swf.xz", "rt") as lines:
        fields = (line.split() for line in lines if not line.startswith(";"))
        return [tuple(int(f[column]) for column in (0, 1, 3, 8, 4)) for f in fields]


def starts_of(shared, scheduler):
    path = shared / "reference-schedules" / f"pyss_{SCHEDULES[scheduler]}_SDSC-SP2-10k.csv.xz"
    with lzma.open(path, "rt") as lines:
        return {int(row["job_id"]): int(row["start"]) for row in csv.DictReader(lines)}


@pytest.mark.shared
@pytest.mark.parametrize("scheduler", SCHEDULES)
def test_reference_equals_pyss(shared, sdsc, scheduler):
    jobs, first_left_out = sdsc[:700], sdsc[700]
    outcome = reference_run(jobs, "flat:128", scheduler=scheduler, estimates="requested", event_order="submits-first")
    expected = starts_of(shared, scheduler)
    # Later jobs may overtake those that still wait when they come, so only what started before them is compared.
    early = [row[0] for row in jobs if expected[row[0]] < first_left_out[1]]
    assert len(early) > 600
    assert {job: outcome.jobs[job]["start"] for job in early} == {job: expected[job] for job in early}


@pytest.mark.shared
@pytest.mark.parametrize(("scheduler", "event_order"), CASES)
def test_engine_equals_pyss(shared, sdsc, scheduler, event_order):
    from faultsweep.simcore.simulate import simulate

    run = simulate(
        workload_of(sdsc), machine="flat:128", scheduler=scheduler, estimates="requested", event_order=event_order
    )
    expected = starts_of(shared, scheduler)
    different = np.flatnonzero(run.jobs["start_s"] != [expected[job] for job in run.jobs["job_id"].tolist()])
    assert len(run.jobs["job_id"]) == 10_000
    assert not len(different), f"{len(different)} starts differ, first of job {run.jobs['job_id'][different[0]]}"
