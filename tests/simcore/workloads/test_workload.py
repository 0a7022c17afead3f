"""What a Workload made in Python has to be: anything else is one sentence that names the job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.simulate import simulate

from faultsweep.errors import InputError
from tests.adapter import workload_of

JOBS = workload_of([(1, 0, 10, None, 2), (2, 5, 10, None, 2), (3, 5, 10, None, 2)])
NAN = np.nan


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("run_s", [10, NAN, 10], r"job 2: run_s is nan \(valid: more than 0 s\)"),
        ("run_s", [10, 10, np.inf], "job 3: run_s is inf"),
        ("run_s", [0.0, 10, 10], "job 1: run_s is 0"),
        ("requested_s", [NAN, NAN, -1.0], r"job 3: requested_s is -1 \(valid: more than 0 s, or NaN for none\)"),
        ("submit_s", [5.0, 0, 5], r"job 2: submit_s is 0 \(valid: jobs in order of submission\)"),
        ("submit_s", [0.0, NAN, 5], r"job 2: submit_s is nan \(valid: a finite time\)"),
        ("size", [2, 2, 0], r"job 3: size is 0 \(valid: 1 or more\)"),
        ("size", [2, 1.5, 2], r"size: expected an array of 3 whole numbers, got array"),
        ("size", [2, 2], r"size: expected an array of 3 whole numbers, got array\(\[2, 2\]"),
        ("user", ["a", "b", "c"], "user: expected an array of 3 whole numbers"),
        ("submit_s", [True, True, True], "submit_s: expected an array of 3 numbers"),
    ],
)
def test_impossible_jobs_are_refused(name, values, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate(replace(JOBS, **{name: np.array(values)}), machine="flat:4")


def test_a_list_is_no_array():
    with pytest.raises(InputError, match=r"size: expected an array of 3 whole numbers, got \[2, 2, 2\]"):
        simulate(replace(JOBS, size=[2, 2, 2]), machine="flat:4")


def test_times_may_be_whole_numbers():
    whole = replace(JOBS, run_s=np.array([10, 10, 10]), submit_s=np.array([0, 5, 5]))
    found, expected = (simulate(jobs, machine="flat:4").jobs["finish_s"].tolist() for jobs in (whole, JOBS))
    assert found == expected == [10, 15, 20]
