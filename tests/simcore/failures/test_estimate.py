"""The bursts of a failure log as parameters: a year of the model gives its own back."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.estimate import estimate_bursts
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.policies.failures.bursts import synthetic_year

from faultsweep.errors import InputError
from tests.failures import AS_SHIPPED

KINDS = {
    "as shipped": {},
    "large": {"tail": 0.8, "largest": 40, "spacing_s": 5.0, "same_node": 0.6, "zipf_alpha": 0.7, "shape": 0.8},
    "independent": {"largest": 1, "zipf_alpha": 0.0, "shape": 1.0},
    "adjacent": {"tail": 1.0, "spacing_s": 0.0, "same_node": 0.0, "zipf_alpha": 0.5, "locality": "adjacent"},
}


def records_of(time_s, node, nodes):
    return FailureRecords(np.array(time_s, float), np.array(node), np.full(len(node), np.nan), nodes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_year_of_the_model_gives_its_parameters_back(kind):
    meant = AS_SHIPPED._replace(**KINDS[kind])
    found = []
    for replicate in range(4):
        year = synthetic_year(1, replicate, meant)
        node = (year.records.node + year.behind) % 350
        found.append(estimate_bursts(records_of(year.records.time_s, node, 350)))

    def mean(name):
        return np.mean([one[f"burst_{name}"] for one in found])

    assert {one["burst_locality"] for one in found} == {meant.locality}
    assert mean("shape") == pytest.approx(meant.shape, rel=0.35)  # two bursts close together are taken for one
    assert mean("zipf_alpha") == pytest.approx(meant.zipf_alpha, abs=0.15)
    if meant.largest > 1:
        assert mean("tail") == pytest.approx(meant.tail, rel=0.25)
        assert mean("largest") >= 0.9 * meant.largest
        assert mean("same_node") == pytest.approx(meant.same_node, abs=0.12)
    if meant.spacing_s > 0 and meant.largest > 1:
        assert mean("spacing_s") < 20 * meant.spacing_s


@pytest.mark.parametrize(
    ("time_s", "node"),
    [
        (np.arange(40) * 100, np.zeros(40, int)),
        (np.repeat([0, 1000], 20), np.zeros(40, int)),
        (np.arange(40), np.arange(40)),
    ],
)
def test_what_is_estimated_is_valid(time_s, node):
    for name, value in estimate_bursts(records_of(time_s, node, 40)).items():
        assert PARAMETERS[name].check(value) == value


@pytest.mark.parametrize("time_s", [np.arange(29), np.zeros(50)])
def test_too_few_failures_are_refused(time_s):
    with pytest.raises(InputError, match="are not enough to estimate bursts"):
        estimate_bursts(records_of(time_s, np.zeros(len(time_s), int), 4))
