"""Clusters as a user meets them: a run with its trace from the command line, a sweep, and a run repeated from it."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from faultsweep.simcore.engine.clusters.decisions import COLUMNS, VERDICTS
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.rerun import rerun
from faultsweep.sweeps.store.statuses import DONE
from faultsweep.sweeps.sweep import Sweep
from typer.testing import CliRunner

from faultsweep.cli import app

BUSY = {
    "log": "lublin",
    "num_jobs": 600,
    "machine": "clusters:30+30+20",
    "size_map": "scale",
    "target_utilisation": 0.9,
    "scheduler": "first-fit",
    "estimate_error_pct": 100.0,
    "ppbw_mbps": 400.0,
    "overhead_s": 60.0,
    "error_direction": "under",
}


def simulate(*arguments, **parameters):
    options = [str(word) for name, value in parameters.items() for word in ("--" + name.replace("_", "-"), value)]
    return CliRunner().invoke(app, ["simulate", *options, *arguments])


def test_the_trace_of_the_agent(tmp_path):
    path, jobs = tmp_path / "trace.csv", tmp_path / "jobs.csv"
    done = simulate("--trace", "--trace-out", str(path), "--jobs-out", str(jobs), agent="ctmr", cp_frac=0.5, **BUSY)
    assert done.exit_code == 0, done.output
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    verdicts = [row["verdict"] for row in rows]
    assert set(verdicts) <= set(VERDICTS.values())
    taken = [row for row in rows if row["verdict"].startswith("taken")]
    assert taken
    for row in taken:
        assert float(row["overhead_limit_s"]) > 60
        assert row["waiting_job_id"]
        assert float(row["stated_mbps"]) > 0
    for k, row in enumerate(rows):
        if row["job_id"]:  # every candidate was on the trunk that its activation found saturated
            look = next(rows[at] for at in range(k, -1, -1) if not rows[at]["job_id"])
            assert (look["trunk"], look["activation"]) == (row["trunk"], row["activation"])
            assert float(look["saturation"]) > 1
            assert float(row["demand_mbps"]) > 0
    printed = [line for line in done.output.splitlines() if ", activation " in line or line.startswith("    job ")]
    assert len(printed) == len(rows)
    with open(jobs, newline="") as file:
        assert sum(int(row["offences"]) for row in csv.DictReader(file)) == len(taken)


def test_what_only_clusters_have_is_refused_elsewhere():
    done = simulate("--trace", log="lublin", num_jobs=20, machine="flat:128")
    assert done.exit_code == 2 or "only machines of clusters" in str(done.exception)
    done = simulate("--options-out", "x.csv", **BUSY)
    assert "joined clusters have neither recovery nor accounts of credits" in str(done.exception)


def test_a_sweep_over_agents(tmp_path, client):
    rows = [
        {"label": "none", "agent": "none"},
        {"label": "ctmr", "agent": "ctmr"},
    ]
    sweep = Sweep(axes={"system": rows, "cp_frac": [0.04, 0.5]}, fixed=BUSY, replicates=2, keep_jobs=True)
    sweep.run(tmp_path / "a.zarr", cluster=client, progress=False)
    results = open_results(tmp_path / "a.zarr")
    response = results["mean_response_s"]
    assert bool(np.isfinite(response).all())
    assert bool((response.sel(system="none", cp_frac=0.04) == response.sel(system="none", cp_frac=0.5)).all())
    assert bool((results["jobs_taken"].sel(system="ctmr", cp_frac=0.5) > 0).any())
    jobs = open_jobs(results, system="ctmr", cp_frac=0.5, replicate=1)
    assert jobs["response_s"].mean().item() == pytest.approx(
        response.sel(system="ctmr", cp_frac=0.5, replicate=1).item(), rel=1e-12
    )
    again = rerun(tmp_path / "a.zarr", {"system": "ctmr", "cp_frac": 0.5, "replicate": 1}, events=True)
    assert again.metrics["mean_response_s"] == response.sel(system="ctmr", cp_frac=0.5, replicate=1).item()
    cell = ["rerun", str(tmp_path / "a.zarr"), "--select", "system=ctmr,cp_frac=0.5,replicate=1"]
    done = CliRunner().invoke(app, [*cell, "--trace", "--trace-out", str(tmp_path / "trace.csv")])
    assert done.exit_code == 0, done.output
    with open(tmp_path / "trace.csv", newline="") as file:
        taken = sum(row["verdict"].startswith("taken") for row in csv.DictReader(file))
    assert taken == again.metrics["jobs_taken"] == done.output.count(": taken")


def test_a_sweep_with_jobs_mixes_clusters_and_other_machines(client, tmp_path):
    """Columns that only some machines have are filled in, also in the rows of a store that grows by such a machine."""
    fixed = {"log": "lublin", "num_jobs": 40, "size_map": "scale", "scheduler": "fcfs", "meta_scheduler": "naive"}
    machines, path = ["flat:60", "clusters:30+30"], tmp_path / "a.zarr"
    for some in (machines[:1], machines):
        sweep = Sweep(axes={"machine": some}, fixed=fixed, keep_jobs=True)
        results = sweep.run(path, cluster=client, progress=False)
    assert (results["status"] == DONE).all()
    for machine in machines:
        jobs, run = open_jobs(results, machine=machine), rerun(path, {"machine": machine}).run
        assert len(jobs["home"]) == 40
        for name, values in run.jobs.items():
            np.testing.assert_array_equal(jobs[name], values, err_msg=f"{machine} {name}")
        absent = set(jobs) - set(run.jobs)
        assert ("recovery_option" if machine.startswith("clusters") else "bandwidth_mbps") in absent
        assert all((jobs[name].isnull() | (jobs[name] == -1)).all() for name in absent)


def test_a_plan_foresees_what_machines_do_not_have(tmp_path):
    axes = {
        "machine": ["flat:64", "clusters:32+32", "midplanes:64"],
        "scheduler": ["fcfs", "conservative", "first-fit"],
        "recovery": ["arrival", "all-e"],
    }
    fixed = {"log": "lublin", "num_jobs": 20, "size_map": "scale", "failures": "mtbf"}
    foreseen = Sweep(axes=axes, fixed=fixed).plan(tmp_path / "a.zarr", measure=False).foreseen
    clusters = "is not for machines of clusters (valid there: "
    menu = "is not for a machine with a partition menu (valid there: "
    sentences = {
        f"scheduler: 'conservative' {clusters}backfill, fcfs, first-fit)",
        f"recovery: 'all-e' {clusters}arrival)",
        "scheduler: 'first-fit' is not for a flat machine (valid there: backfill, backfill+migration, conservative, "
        "fcfs, migration, top-jobs)",
        f"scheduler: 'first-fit' {menu}backfill, backfill+migration, fcfs, migration)",
        f"scheduler: 'conservative' {menu}backfill, backfill+migration, fcfs, migration)",
    }
    assert set(foreseen) == sentences
