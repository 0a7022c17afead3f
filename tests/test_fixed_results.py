"""Results are those that are kept in ``tests/fixed``, to the bit, whatever is moved or renamed."""

from __future__ import annotations

import json

import pytest
from faultsweep.simcore.simulate import MODEL_VERSION

from tests.fixed import results

RECORDS = results.read()


def test_the_kept_results_are_of_this_model():
    assert json.loads(results.FILE.read_text().partition("\n")[0])["model_version"] == MODEL_VERSION


@pytest.mark.parametrize("machine", results.LARGEST)
def test_results_are_those_kept(machine):
    kept = [one for one in RECORDS if one["config"]["machine"] == machine]
    assert len(kept) > 20
    wrong = []
    for one in kept:
        found = json.loads(json.dumps(results.record(one["config"], one)))
        wrong += [f"{line} in {json.dumps(one['config'])}" for line in results.differences(one, found)]
    assert not wrong, f"{len(wrong)} differences; if they are meant, raise MODEL_VERSION and run " + "\n".join(
        ["python -m tests.fixed.results:", *wrong[:20]]
    )


def test_kept_configurations_cover_every_policy():
    names = {name for table in (results.ANY, results.ONE, results.CLUSTERS) for name in table}
    defaults = {(name, results.DEFAULTS[name]) for name in names}
    seen = {(name, value) for one in RECORDS if "metrics" in one for name, value in one["config"].items()} | defaults
    tables = (results.ANY, results.ONE, results.CLUSTERS)
    assert {(name, value) for table in tables for name, values in table.items() for value in values} <= seen
