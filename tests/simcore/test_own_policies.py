"""Policies of the user's, FILE.py:FUNCTION, for every role: they do what the same rule built in does."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest
from faultsweep.simcore import installed
from faultsweep.simcore.contract import OWN
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.parameters import OWN_PARAMETERS, canonical, check_own, inert, resolve
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.spec import read_spec

from faultsweep.errors import InputError
from tests.fixed import results

pytestmark = pytest.mark.skipif(is_interpreted(), reason="policies of the user's are compiled")

RULES = """
import math

def smallest(estimate_s, nodes):
    return -estimate_s * nodes

def wfp(estimate_s, nodes, wait_s):
    share = wait_s / estimate_s
    return share * share * share * nodes

def lowest(node):
    return node

def safest(failures, node, machine_nodes):
    return failures * machine_nodes + node

def safest_of_job(failures, node, machine_nodes, nodes):
    return failures * machine_nodes + node + 0 * nodes

def worst(failures, node):
    return -failures

def worst_of_job(failures, node, nodes):
    return -failures + 0 * nodes

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

def spawned(stream, nodes):
    rng = stream("all").spawn(1)[0]
    while True:
        yield 30_000.0 * rng.random(), int(nodes * rng.random()), 60.0

def ends(nodes):
    yield 5.0, 0

def outside(nodes):
    while True:
        yield 5.0, nodes

def huge(nodes):
    while True:
        yield 5.0, 10**400

def texts(nodes):
    while True:
        yield 5000.0, "3.5"

def spans(nodes):
    import numpy
    while True:
        yield numpy.timedelta64(5000, "ms"), 3

def pairs(nodes):
    while True:
        yield 50000, 3.9
        yield 60000.5, 3

def triples(nodes):
    while True:
        yield 50000.0, 3, 0.0
        yield 60000.5, 3

def odd(node, failures):
    return math.nan if (node + failures) % 3 == 1 else -node

def odd_of_job(node, failures, nodes):
    return math.nan if (node + failures) % 3 == 1 else -node + 0 * nodes

def oracle(until_failure_s, window_s):
    return until_failure_s < window_s

def often_reported(node):
    return node % 2 == 0

def asks(moon):
    return moon

def raises(nodes):
    return 1 / (nodes - nodes)

def raises_later(nodes):
    yield 5.0, {}["x"]

def breaks(nodes):
    return {}["x"] + nodes.y
"""
FAILING = {"failures": "weibull", "weibull_scale_s": 3000.0}
BALANCED = {"machine": "torus:4x4x8", "placement": "balancing", "accuracy": 0.5, **FAILING}
TWINS = [
    ({"queue_order": "saf"}, {"queue_order": "smallest"}),
    ({"queue_order": "wfp", "scheduler": "conservative"}, {"queue_order": "wfp", "scheduler": "conservative"}),
    ({"node_choice": "first-fit", **FAILING}, {"node_choice": "lowest"}),
    ({"node_choice": "lff", "lff_moves": False, **FAILING}, {"node_choice": "safest"}),
    ({"node_choice": "lff", "lff_moves": False, **FAILING}, {"node_choice": "safest_of_job"}),
    ({"checkpoint": "periodic", **FAILING}, {"checkpoint": "every"}),
    ({"scheduler": "backfill"}, {"scheduler": "easy"}),
    ({"scheduler": "fcfs"}, {"scheduler": "nobody"}),
    ({"recovery": "all-e", **FAILING}, {"recovery": "head"}),
    ({**BALANCED, "predictor": "coins"}, {"predictor": "oracle"}),
    ({"checkpoint": "risk", "accuracy": 0.5, "predictor": "coins", **FAILING}, {"predictor": "oracle"}),
]


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "rules.py"
    path.write_text(RULES)
    return str(path)


def run(**config):
    machine = config.pop("machine", "flat:64")
    jobs = results.workload(machine, 1)
    return simulate(jobs, machine=machine, estimates="requested", debug=True, **config)


def own(rules, changes):
    return {
        name: f"{rules}:{value}" if name in OWN_PARAMETERS and value in RULES else value
        for name, value in changes.items()
    }


@pytest.mark.parametrize("name", ["worst", "odd"])
def test_a_choice_that_asks_nothing_of_the_job_is_as_one_that_does(rules, name):
    """The order of the nodes is kept from job to job, and a node that fails gets another place in it."""
    kept, anew = (run(**FAILING, node_choice=f"{rules}:{name}{of}") for of in ("", "_of_job"))
    assert (kept.jobs["restarts"] > 1).any()
    assert all((kept.jobs[name] == anew.jobs[name]).all() for name in ("start_s", "finish_s", "restarts"))


@pytest.mark.parametrize(("built_in", "changes"), TWINS, ids=lambda value: "-".join(map(str, value.values()))[:30])
@pytest.mark.sampled(2)
def test_the_same_rule_gives_the_same_run(rules, built_in, changes):
    mine = {**built_in, **own(rules, {name: value for name, value in changes.items() if value != "conservative"})}
    first, second = run(**built_in), run(**mine)
    assert {name: repr(value) for name, value in first.metrics.items()} == {
        name: repr(value) for name, value in second.metrics.items()
    }
    assert all((first.jobs[name] == second.jobs[name]).all() for name in ("start_s", "size", "restarts"))


@pytest.mark.slow
def test_every_role_takes_a_policy_of_the_users(rules):
    roles = [role for role in ROLES.values() if OWN in role.policies]
    assert {role.selector.name for role in roles} == set(OWN_PARAMETERS)
    found = run(failures=f"{rules}:often")
    assert found.metrics["failures_seen"] > 10
    again, other = run(failures=f"{rules}:often"), run(failures=f"{rules}:often", seed=1)
    assert again.metrics["mean_wait_s"] == found.metrics["mean_wait_s"] != other.metrics["mean_wait_s"]


def test_generators_that_a_function_spawns_are_the_same_in_each_run(rules):
    first, again = (run(failures=f"{rules}:spawned").failures for _ in range(2))
    assert first.time_s.tolist() == again.time_s.tolist()
    assert len(set(first.node)) > 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("queue_order", "asks", "did you mean|unknown argument"),
        ("queue_order", "nothing", "unknown function"),
        ("queue_order", "breaks", "cannot be compiled"),
        ("recovery", "raises", r"fails for job 1 \(ZeroDivisionError: "),
        ("failures", "raises", r"fails before the first failure \(ZeroDivisionError: "),
        ("failures", "raises_later", r"fails after 0 s \(KeyError: "),
        ("failures", "nobody", r"fails before the first failure \(TypeError: "),
        ("recovery", "bad_letter", "gives 'F' for job 1"),
        ("failures", "ends", "without end"),
        ("failures", "outside", "valid: times from 0 on, nodes 0 to 63"),
        ("failures", "huge", "valid: times from 0 on, nodes 0 to 63"),
        ("failures", "texts", r"gives \(5000.0, '3.5'\); expected"),
        ("failures", "spans", r"gives \(np.timedelta64\(5000,'ms'\), 3\); expected"),
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


DECLARED = """
PARAMETERS = {
    "aging": {"default": 50.0, "unit": "nodes", "minimum": 0, "maximum": 1e6, "doc": "Weight of a second."},
    "least": {"default": 2, "doc": "Nodes."},
    "strict": {"default": False, "doc": "Whether."},
}

def aged(estimate_s, nodes, wait_s, aging):
    return aging * wait_s - estimate_s * nodes

def typed(nodes, least, strict):
    return 1.0 if nodes >= least and not strict else 0.0

def plain(nodes):
    return -nodes
"""


@pytest.fixture
def declared(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(DECLARED)
    return path


def test_a_file_declares_parameters_and_they_decide(declared):
    order = f"{declared}:aged"
    assert resolve({"queue_order": order})["aging"] == 50.0
    assert "aging" not in resolve({"queue_order": f"{declared}:plain"})
    waits = [run(queue_order=order, aging=aging).metrics["mean_wait_s"] for aging in (0.0, 1e6)]
    assert waits[0] == run(queue_order="saf").metrics["mean_wait_s"] != waits[1]
    few = run(queue_order=f"{declared}:typed", least=100).metrics["mean_wait_s"]
    strict = run(queue_order=f"{declared}:typed", strict=True).metrics["mean_wait_s"]
    large = run(queue_order=f"{declared}:typed", least=20).metrics["mean_wait_s"]
    assert few == strict == run().metrics["mean_wait_s"] != large


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"aging": -1.0}, "aging: -1.0 is outside the valid range 0 to 1e.06"),
        ({"aging": "x"}, "aging: expected a number, got 'x'"),
        ({"least": 3}, "unknown parameter 'least'"),
    ],
)
def test_a_declared_parameter_is_checked_like_any(declared, config, message):
    with pytest.raises(InputError, match=message):
        resolve({"queue_order": f"{declared}:aged", **config})


def test_a_declared_parameter_is_inert_where_nobody_asks(declared):
    order = f"{declared}:aged"
    assert "aging" not in inert(resolve({"queue_order": order}))
    assert "seed" in inert(resolve({"queue_order": order, "log": "x.swf"}))  # it takes no drawn number
    none = {"checkpoint": f"{declared}:aged", "failures": "none"}
    assert "aging" in {**resolve(none), **dict.fromkeys(("aging",), 0)}
    config = {**resolve({}), "aging": 3.0}
    assert "aging" in inert(config)
    assert canonical({"queue_order": order, "aging": 3.0})["aging"] == 3.0
    assert canonical(canonical({"queue_order": order})) == canonical({"queue_order": order})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PARAMETERS = {'x': {'default': 1.0}}", "expected a table with default and doc"),
        ("PARAMETERS = {'x': {'default': 'a', 'doc': 'd'}}", "expected a number, true or false"),
        ("PARAMETERS = {'X': {'default': 1, 'doc': 'd'}}", None),
        ("PARAMETERS = {'x': {'default': 1, 'doc': 'd', 'minimum': 2}}", "the default 1 is outside"),
        ("PARAMETERS = {'x': make()}", "expected literal values"),
        ("PARAMETERS = {'nodes': {'default': 1, 'doc': 'd'}}", "is an input of the role"),
        ("PARAMETERS = {'seed': {'default': 1, 'doc': 'd'}}", "which exists; rename it"),
        ("PARAMETERS = 3", "expected a table of parameters"),
    ],
)
def test_a_wrong_declaration_is_one_sentence(tmp_path, text, message):
    path = tmp_path / "mine.py"
    path.write_text(f"{text}\n\ndef rule(nodes, x=1, seed=1):\n    return nodes\n")
    if message is None:
        assert resolve({"queue_order": f"{path}:rule"})
        return
    with pytest.raises(InputError, match=message) as error:
        resolve({"queue_order": f"{path}:rule"})
    assert "\n" not in str(error.value)


def test_two_files_may_not_declare_one_name_differently(declared, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(DECLARED.replace("50.0", "60.0"))
    both = {"queue_order": f"{declared}:aged", "checkpoint": f"{other}:aged"}
    with pytest.raises(InputError, match="define the parameter aging differently"):
        resolve(both)
    assert resolve({**both, "checkpoint": f"{declared}:aged"})["aging"] == 50.0


def test_a_sweep_has_declared_parameters_as_axes(declared):
    raw = {
        "fixed": {"log": "sdsc-model", "num_jobs": 50, "machine": "flat:128"},
        "axes": {"queue_order": ["fcfs", f"{declared}:aged"], "aging": [1.0, 2.0]},
    }
    with pytest.raises(InputError, match="unknown parameter 'ageing'"):
        read_spec({**raw, "axes": {**raw["axes"], "ageing": [1.0]}}, SimulatorTarget())
    spec = read_spec(raw, SimulatorTarget())
    assert [axis.name for axis in spec.axes] == ["queue_order", "aging", "replicate"]
    target = copy.copy(spec.target)  # as it travels
    assert target.parameters["aging"].unit == "nodes"
    fcfs = {**spec.fixed, "queue_order": "fcfs", "aging": 2.0, "replicate": 0}
    assert "aging" in target.inert(fcfs)
    declared.write_text("raise SystemExit")  # the text has travelled
    own = {**fcfs, "queue_order": f"{declared}:aged"}
    assert "aging" not in target.inert(own)
    assert target.simulate(own).config["aging"] == 2.0
    assert "aging" not in target.simulate(fcfs).config


def test_a_policy_that_runs_is_that_of_the_file_now(declared):
    order = f"{declared}:plain"
    first = SimulatorTarget().simulate(
        {**resolve({"machine": "flat:128", "num_jobs": 60, "log": "sdsc-model"}), "queue_order": order}
    )
    declared.write_text(DECLARED.replace("return -nodes", "return nodes"))
    assert run(queue_order=order).metrics["mean_wait_s"] == run(queue_order=f"{declared}:plain").metrics["mean_wait_s"]
    assert first.metrics["mean_wait_s"] >= 0
    smallest = run(queue_order="saf").metrics["mean_wait_s"]
    assert run(queue_order=order).metrics["mean_wait_s"] != smallest


def test_a_file_that_nothing_needs_may_be_absent(tmp_path):
    absent = f"{tmp_path}/none.py:rule"
    assert run(predictor=absent).metrics["mean_wait_s"] == run().metrics["mean_wait_s"]
    with pytest.raises(InputError, match="unknown parameter 'moon'"):
        run(queue_order=absent, moon=3)
    with pytest.raises(InputError, match="cannot be read"):
        run(queue_order=absent)


def test_failures_without_a_down_time_are_over_at_once(rules):
    two, three = (run(failures=f"{rules}:{name}") for name in ("pairs", "triples"))
    assert two.metrics["failures_seen"] > 0
    assert two.metrics["mean_wait_s"] == three.metrics["mean_wait_s"]


# --- entry points -----------------------------------------------------------------------------------------------------


def install(folder, name, points, files=()):
    """An installed package: its metadata and its files."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in points.items())
    (info / "entry_points.txt").write_text(f"[faultsweep.policies]\n{lines}")
    for path, text in dict(files).items():
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        (folder / path).write_text(text)


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    installed._found.cache_clear()
    yield folder
    installed._found.cache_clear()


def test_an_installed_package_brings_a_policy(site, capsys):
    loud = f"open({str(site / 'executed')!r}, 'w').close()\n"
    files = {"grove/__init__.py": loud, "grove/rules.py": loud + DECLARED}
    install(site, "grove", {"queue_order.aged-area": "grove.rules:aged"}, files)
    assert resolve({"queue_order": "aged-area", "aging": 3})["aging"] == 3.0
    assert SimulatorTarget().pins({"queue_order": ["aged-area"], "log": [], "machine": [], "failures": []})
    cli_list(capsys)
    assert not (site / "executed").exists()
    file = f"{site / 'grove' / 'rules.py'}:aged"
    assert run(queue_order="aged-area").metrics["mean_wait_s"] == run(queue_order=file).metrics["mean_wait_s"]
    assert (site / "executed").exists()
    assert "aged-area" in cli_list(capsys).out


def cli_list(capsys):
    from faultsweep.cli.lists import Kind, list_

    list_(Kind.queue_orders)
    return capsys.readouterr()


def test_a_package_may_bring_two_policies_of_one_name(site, tmp_path):
    orders, nodes = ("def f(estimate_s):\n    return -estimate_s\n", "def f(node):\n    return -node\n")
    points = {"queue_order.mine": "orders:f", "node_choice.mine": "nodes:f"}
    install(site, "mine", points, {"orders.py": orders, "nodes.py": nodes})
    found = run(**FAILING, queue_order="mine", node_choice="mine")
    files = {"queue_order": tmp_path / "orders.py", "node_choice": tmp_path / "nodes.py"}
    for name, text in zip(files, (orders, nodes), strict=True):
        files[name].write_text(text)
    same = run(**FAILING, **{name: f"{path}:f" for name, path in files.items()})
    assert (found.jobs["finish_s"] == same.jobs["finish_s"]).all()
    target = SimulatorTarget()
    config = resolve({**FAILING, "log": "sdsc-model", "num_jobs": 50, "machine": "flat:128"})
    assert target.simulate({**config, "queue_order": "mine", "node_choice": "mine"}).metrics["mean_wait_s"] >= 0


def test_what_is_wrong_with_an_entry_point_is_one_sentence(site, capsys):
    install(site, "one", {"queue_order.twice": "one:rule", "queue_order.fcfs": "one:rule"}, {"one.py": RULES})
    points = {
        "queue_order.twice": "two:rule",
        "queue_order.absent": "two.nowhere:rule",
        "queue_order.wrong": "two:rule",
        "moon.x": "two:rule",
        "queue_order.raises": "two:raises",
    }
    install(site, "two", points, {"two.py": "1 / 0"})
    told = cli_list(capsys).err
    assert "'twice' is in the packages one 1.0 and two 1.0; uninstall one of them" in told
    assert "queue_order: 'fcfs' of the package one 1.0 is left out, because it is built in" in told
    assert "queue_order: 'absent' of the package two 1.0 is broken: the module two.nowhere has no source file" in told
    assert "moon.x: of the package two 1.0, names no parameter" in told
    assert run().metrics["mean_wait_s"] == run(queue_order="fcfs").metrics["mean_wait_s"]
    for name, message in {"twice": "uninstall one", "absent": "is broken", "wrong": "cannot be executed"}.items():
        with pytest.raises(InputError, match=message) as error:
            run(queue_order=name)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="unknown queue order 'missing'"):
        run(queue_order="missing")


WRITES = """
class Notes:
    def __init__(self):
        self.itself, self.file = self, open({path!r}, "w")

notes = Notes()

def failures(stream, places):
    notes.file.write("begun")
    while True:
        yield 1e6 * stream("times").random(), places(1)[0], 600.0
"""


def test_what_a_file_of_the_users_has_still_to_write_is_written_at_the_end(tmp_path):
    """Only a search for garbage finds an object that refers to itself; the command line makes none for its own."""
    path, notes = tmp_path / "f.py", tmp_path / "notes.txt"
    path.write_text(WRITES.format(path=str(notes)))
    options = ["--log", "sdsc-model", "--num-jobs", "10", "--machine", "flat:128", "--failures", f"{path}:failures"]
    subprocess.run([sys.executable, "-m", "faultsweep", "simulate", *options], capture_output=True, check=True)
    assert notes.read_text() == "begun"
