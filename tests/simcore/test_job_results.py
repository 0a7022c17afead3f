"""Per-job results, which a run gives when it is asked for them."""

from __future__ import annotations

import copy
import math
import weakref
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore import job_results
from faultsweep.simcore.job_results import JobResults, constant
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload

TIMES = {name: np.arange(3.0) for name in ("submit_s", "first_start_s", "start_s", "finish_s")}


def hashes(jobs):
    return {name: (values.dtype, values.tobytes()) for name, values in jobs.items()}


@pytest.mark.parametrize("recovery", ["arrival", "mix"])
@pytest.mark.parametrize("machine", ["flat:128", "torus:4x4x8", "clusters:64+64"])
def test_results_are_the_same_whenever_they_are_made(machine, recovery, monkeypatch):
    log = load_workload("sdsc-model", num_jobs=50)
    run = {"machine": machine, "failures": "weibull", "weibull_scale_s": 5000.0}
    run |= {"recovery": recovery} if not machine.startswith("clusters") else {}
    late, sent = simulate(log, **run), copy.deepcopy(simulate(log, **run).results)
    monkeypatch.setattr(job_results, "_MOST_KEPT", 0)
    at_once = simulate(log, **run)
    assert at_once.results._arrays is None
    expected = hashes(at_once.jobs)
    assert hashes(late.jobs) == hashes(sent.made()) == expected
    assert late.jobs is late.jobs
    assert all(values.flags.writeable and values.flags.owndata for values in late.jobs.values())
    assert len({values.ctypes.data for values in late.jobs.values()}) == len(late.jobs)


def test_the_state_goes_once_results_are_made():
    state = np.arange(8.0)
    gone = weakref.ref(state)
    results = JobResults({**TIMES, "size": state[:3]}, 10.0, state.nbytes)
    del state
    assert gone() is not None
    made = results.made()
    assert gone() is None
    assert made["start_s"].tolist() == [10.0, 11.0, 12.0]
    assert made["size"].tolist() == [0.0, 1.0, 2.0]


def test_nothing_is_kept_of_a_state_that_is_much_larger():
    state = np.arange(1000.0)
    gone = weakref.ref(state)
    results = JobResults({**TIMES, "size": state[:3]}, 0.0, state.nbytes)
    del state
    assert gone() is None
    assert results.made()["size"].tolist() == [0.0, 1.0, 2.0]


def test_a_constant_row_takes_the_memory_of_one_value_and_has_the_type_of_that():
    for value in (0, 0.0, -1, math.nan, 0):
        row = constant(value, 1000)
        assert row.dtype == (np.int64 if isinstance(value, int) else np.float64)
        assert np.array_equal(row, np.full(1000, value), equal_nan=True)
        assert row.strides == (0,)
        assert not row.flags.writeable


@pytest.mark.parametrize("recovery", ["arrival", "mix"])
def test_results_that_are_made_late_are_of_the_jobs_as_they_were(recovery):
    log = load_workload("sdsc-model", num_jobs=50)
    own = replace(log, user=log.user.copy(), job_id=log.job_id.copy())
    early, late = (simulate(own, machine="flat:128", recovery=recovery) for _ in range(2))
    expected = hashes(early.jobs)
    own.user[:], own.job_id[:] = 5, 9
    assert hashes(late.jobs) == expected
