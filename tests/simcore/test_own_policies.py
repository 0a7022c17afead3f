"""Policies of the user's, FILE.py:FUNCTION, for every role: they do what the same rule built in does."""

from __future__ import annotations

import pytest
from faultsweep.simcore.contract import OWN
from faultsweep.simcore.parameters import OWN_PARAMETERS, check_own, resolve
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.simulator import SimulatorTarget
from numba import config as numba_config

from faultsweep.errors import InputError
from tests.fixed import results

pytestmark = pytest.mark.skipif(bool(numba_config.DISABLE_JIT), reason="policies of the user's are compiled")

RULES = """
def smallest(estimate_s, nodes):
    return -estimate_s * nodes

def wfp(estimate_s, nodes, wait_s):
    share = wait_s / estimate_s
    return share * share * share * nodes

def lowest(node):
    return node

def safest(failures, node, machine_nodes):
    return failures * machine_nodes + node

def every(interval_s):
    return interval_s

def easy(estimate_s, nodes, until_reservation_s, extra):
    return estimate_s <= until_reservation_s or nodes <= extra

def nobody(nodes):
    return False

def head(nodes):
    return "E"

def bad_letter(nodes):
    return "F"

def often(stream, places):
    times = stream("times")
    while True:
        yield 3000.0 * (0.5 + times.random()), places(1)[0], 60.0

def ends(nodes):
    yield 5.0, 0

def outside(nodes):
    while True:
        yield 5.0, nodes

def asks(moon):
    return moon

def breaks(nodes):
    return {}["x"] + nodes.y
"""
FAILING = {"failures": "weibull", "weibull_scale_s": 3000.0}
TWINS = [
    ({"queue_order": "saf"}, {"queue_order": "smallest"}),
    ({"queue_order": "wfp", "scheduler": "conservative"}, {"queue_order": "wfp", "scheduler": "conservative"}),
    ({"node_choice": "first-fit", **FAILING}, {"node_choice": "lowest"}),
    ({"node_choice": "lff", "lff_moves": False, **FAILING}, {"node_choice": "safest"}),
    ({"checkpoint": "periodic", **FAILING}, {"checkpoint": "every"}),
    ({"scheduler": "backfill"}, {"scheduler": "easy"}),
    ({"scheduler": "fcfs"}, {"scheduler": "nobody"}),
    ({"recovery": "all-e", **FAILING}, {"recovery": "head"}),
]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "rules.py"
    path.write_text(RULES)
    return str(path)


def run(**config):
    return simulate(results.workload("flat:64", 1), machine="flat:64", estimates="requested", debug=True, **config)


def own(rules, changes):
    return {
        name: f"{rules}:{value}" if name in OWN_PARAMETERS and value in RULES else value
        for name, value in changes.items()
    }


@pytest.mark.parametrize(("built_in", "changes"), TWINS, ids=lambda value: "-".join(map(str, value.values()))[:30])
def test_the_same_rule_gives_the_same_run(rules, built_in, changes):
    mine = {**built_in, **own(rules, {name: value for name, value in changes.items() if value != "conservative"})}
    first, second = run(**built_in), run(**mine)
    assert {name: repr(value) for name, value in first.metrics.items()} == {
        name: repr(value) for name, value in second.metrics.items()
    }
    assert all((first.jobs[name] == second.jobs[name]).all() for name in ("start_s", "size", "restarts"))


def test_every_role_takes_a_policy_of_the_users(rules):
    roles = [role for role in ROLES.values() if OWN in role.policies or role.otherwise == "score"]
    assert {role.selector.name for role in roles} == set(OWN_PARAMETERS)
    found = run(failures=f"{rules}:often")
    assert found.metrics["failures_seen"] > 10
    again, other = run(failures=f"{rules}:often"), run(failures=f"{rules}:often", seed=1)
    assert again.metrics["mean_wait_s"] == found.metrics["mean_wait_s"] != other.metrics["mean_wait_s"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("queue_order", "asks", "did you mean|unknown argument"),
        ("queue_order", "nothing", "unknown function"),
        ("queue_order", "breaks", "cannot be compiled"),
        ("recovery", "bad_letter", "gives 'F' for job 1"),
        ("failures", "ends", "without end"),
        ("failures", "outside", "valid: times from 0 on, nodes 0 to 63"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_sentence(rules, name, value, message):
    with pytest.raises(InputError, match=message):
        run(**{**FAILING, name: f"{rules}:{value}"})


def test_a_file_is_read_when_it_is_named_and_executed_when_it_is_run(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text(f"open({str(tmp_path / 'executed')!r}, 'w').close()\n{RULES}")
    value = f"{path}:smallest"
    assert resolve({"queue_order": value})["queue_order"] == value
    target = SimulatorTarget()
    values = {"log": [], "failures": ["none"], "machine": ["flat:64"], "queue_order": [value]}
    assert target.pins(values)[f"queue_order {value}"].startswith("sha256:")
    assert not (tmp_path / "executed").exists()
    check_own("queue_order", value)
    assert (tmp_path / "executed").exists()
    with pytest.raises(InputError, match="cannot be read"):
        check_own("queue_order", f"{tmp_path}/none.py:rule")
