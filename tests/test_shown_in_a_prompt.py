"""What a Python prompt and ``print`` show of what users get: one line that says what it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from faultsweep.simcore.model.workload import take

import faultsweep


def test_a_workload():
    log = faultsweep.load_workload("sdsc-model", num_jobs=1000)
    days = (log.submit_s[-1] - log.submit_s[0]) / 86400
    assert repr(log) == f"Workload(sdsc-model: 1,000 jobs, submitted in {days:.4g} days, from a machine of 128 nodes)"
    nobody = replace(take(log, slice(0)), nodes=0)
    assert repr(nobody) == "Workload(sdsc-model: 0 jobs, submitted in 0 days)"


def test_a_run():
    log = faultsweep.load_workload("sdsc-model", num_jobs=50)
    run = faultsweep.simulate(log, machine="flat:128", failures="weibull", scheduler="fcfs")
    shown = repr(run)
    assert shown.startswith("Run(fcfs on flat:128: done; mean_wait_s = ")
    assert f"utilisation = {run.metrics['utilisation']:.6g}, " in shown
    assert len(shown) < 250
    assert str(run) == shown


def test_a_sweep_and_its_plan(tmp_path):
    fixed = {"log": "sdsc-model", "num_jobs": 100, "machine": "flat:128"}
    sweep = faultsweep.Sweep(name="loads", fixed=fixed, axes={"load_scale": np.linspace(0.5, 1, 1500).tolist()})
    assert repr(sweep) == "Sweep(loads of simulator: load_scale (1,500), replicate (1))"
    place = tmp_path / "loads.zarr"
    plan = sweep.plan(place, measure=False, progress=False)
    assert repr(plan).startswith(f"Plan(loads: 1,500 of 1,500 simulations to run; store {place}, about ")
    timed = replace(plan, run_s=[0.5], seconds=90.0, workers=2)
    assert " to run, about 90 s on 2 workers; store " in repr(timed)
