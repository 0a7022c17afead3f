"""Every policy, built in or of the user's, holds what all must; the examples of the page are those of the user's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faultsweep.simcore import conformance
from faultsweep.simcore.conformance import SELECTORS, check_policy
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.parameters import OWN_PARAMETERS

from faultsweep.errors import InputError
from tests.adapter import ENGINE_NAMES, engine_run, reference_run
from tests.policies import named_policies

pytestmark = pytest.mark.skipif(is_interpreted(), reason="hundreds of runs: for compiled kernels")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-a-policy.md"
EXAMPLES = {
    "queue_order": "aged_area",
    "node_choice": "fewest_failures",
    "placement": "compact",
    "checkpoint": "random_interval",
    "scheduler": "patient",
    "predictor": "failed_lately",
    "recovery": "large_first",
    "failures": "lognormal",
}
"""Of the page, by the parameter that names them."""
LONGEST = {"queue_order": 40, "placement": 40, "failures": 80, "checkpoint": 80}
JOBS = [(1, 0, 900, 1200, 3), (2, 10, 400, 400, 6), (3, 20, 300, 200, 2), (4, 20, 800, 900, 5), (5, 700, 60, 90, 8)]
FAILURES = [(350, 1, 60), (600, 4, 0), (1500, 2, 30)]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "rules.py"
    path.write_text(re.search(r"<!-- file: rules.py -->\n```python\n(.*?)```", PAGE.read_text(), re.S)[1])
    return path


@pytest.mark.parametrize(("parameter", "value"), named_policies(), ids=lambda text: text)
@pytest.mark.sampled(6)
def test_a_built_in_policy_conforms(parameter, value):
    report = check_policy(parameter, value, draws=2)
    assert report.problems == []
    assert report.ran


@pytest.mark.sampled(3)
@pytest.mark.parametrize("parameter", sorted(EXAMPLES))
def test_a_policy_from_outside_conforms(rules, parameter):
    report = check_policy(parameter, f"{rules}:{EXAMPLES[parameter]}", draws=2)
    assert report.problems == []
    assert report.ran


def test_there_is_an_example_for_every_role_and_it_is_short(rules):
    assert EXAMPLES.keys() == OWN_PARAMETERS.keys() <= SELECTORS.keys()
    text = rules.read_text()
    for parameter, longest in LONGEST.items():
        function = re.search(rf"^def {EXAMPLES[parameter]}\(.*?(?=\n\n\n|\Z)", text, re.S | re.M)[0]
        names = re.findall(r"\w+", function.partition(")")[0])
        declared = [line for line in text.splitlines() if line.strip().startswith(tuple(f'"{name}"' for name in names))]
        assert len(function.splitlines()) + len(declared) + 3 <= longest


@pytest.mark.parametrize("option", ["scheduler", "placement", "node_choice", "checkpoint", "queue_order"])
@pytest.mark.parametrize("machine", ["flat:8", "torus:2x2x2"])
def test_a_built_in_policy_does_what_the_reference_does(option, machine):
    compared = 0
    for value in SELECTORS[ENGINE_NAMES[option]].selector.choices.keys() - {"young", "daly"}:  # it has neither
        options = {"a": 0.5, "checkpoint_cost": 10, "checkpoint_interval": 120, "estimates": "requested", option: value}
        try:
            found = engine_run(JOBS, machine, FAILURES, **options)
        except InputError:
            continue
        expected = reference_run(JOBS, machine, FAILURES, **options)
        assert [row["start"] for _, row in sorted(found.jobs.items())] == [
            row["start"] for _, row in sorted(expected.jobs.items())
        ], value
        compared += 1
    assert compared >= 2


def test_the_suite_tells_what_does_not_conform(tmp_path, monkeypatch):
    path = tmp_path / "rules.py"
    path.write_text(
        "import random\n\ndef often(nodes):\n    while True:\n        yield random.random() * 9000, 0, 60.0\n"
    )
    problems = check_policy("failures", f"{path}:often", draws=2).problems
    assert any("a run that is repeated differs in" in sentence for sentence in problems)
    monkeypatch.setattr(conformance, "canonical", lambda config: {**config, "queue_order": "fcfs"})
    problems = check_policy("queue_order", "ljf", draws=2).problems
    assert any("the canonical form is not the same run" in sentence for sentence in problems)
    assert sum(bool(role.policies["own"].facts["shape"].template) for role in OWN_PARAMETERS.values()) == st.OWN_ROLES


def test_what_cannot_be_checked_is_one_sentence():
    with pytest.raises(InputError, match="unknown parameter of a policy 'order'"):
        check_policy("order", "fcfs")
    with pytest.raises(InputError, match="cannot be read"):
        check_policy("queue_order", "nowhere.py:rule")
