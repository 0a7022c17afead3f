"""A placement score of the user's in sweeps: its source travels, is pinned, and is refused where it changed."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.rerun import rerun
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.sweep import Sweep
from typer.testing import CliRunner

from faultsweep.errors import InputError

RULES = """
def largest_left(mfp_after):
    return -mfp_after

largest_left.monotone = True

def first(x):
    return 0
"""
FIXED = {"log": "sdsc-model", "num_jobs": 60, "machine": "torus:2x4x8", "size_map": "clip"}


@pytest.fixture
def rules(tmp_path, monkeypatch):
    """The file rules.py in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rules.py"
    path.write_text(RULES)
    return path


def sweep():
    rows = ["mfp", "rules.py:largest_left", "rules.py:first"]
    return Sweep(name="scores", axes={"placement": rows}, fixed=FIXED)


def test_a_score_is_a_value_of_a_sweep(rules, tmp_path):
    sweep().run("a.zarr", workers=1, progress=False)
    results = open_results("a.zarr")
    wait = results["mean_wait_s"].values[:, 0]
    assert wait[0] == wait[1]
    assert np.isfinite(wait).all()
    pins = json.loads(results.attrs["pins"])
    assert pins["placement rules.py:first"] == pins["placement rules.py:largest_left"]
    rules.write_text(RULES.replace("return 0", "return -x"))
    with pytest.raises(InputError, match=r"placement rules.py:first has changed: the store has sha256:"):
        sweep().run("a.zarr", workers=1, progress=False)


def test_a_store_gets_no_code_executed_unless_the_user_says_so(rules, tmp_path):
    settings = {"axes": {"placement": ["rules.py:first"]}, "fixed": {**FIXED, "num_jobs": 20}}
    Sweep(**settings).run("a.zarr", workers=1, progress=False)
    assert rerun("a.zarr", {}, run_code=True).different == []
    with pytest.raises(InputError, match=r"names code, placement = rules.py:first; .* --run-code"):
        rerun("a.zarr", {})
    rules.write_text(RULES + f"\nopen({str(tmp_path / 'executed')!r}, 'w').close()\n")
    for run_code in (False, True):
        with pytest.raises(InputError, match=r"has changed"):
            rerun("a.zarr", {}, run_code=run_code)
    assert not (tmp_path / "executed").exists()


def test_the_source_travels_to_the_workers(rules):
    """A worker that has no such file runs what the client read."""
    target = SimulatorTarget()
    names = ["rules.py:first", "rules.py:largest_left"]
    values = {"machine": ["torus:2x4x8"], "log": ["sdsc-model"], "failures": ["none"], "placement": names}
    assert target.precheck(values) == []
    packed = pickle.dumps(target)
    rules.unlink()
    there = pickle.loads(packed)  # noqa: S301
    config = {name: parameter.default for name, parameter in there.parameters.items()} | FIXED
    assert there.simulate({**config, "placement": names[0]}).config["placement"] == names[0]
    with pytest.raises(InputError, match=r"rules.py cannot be read"):
        SimulatorTarget().simulate({**config, "placement": names[0]})


def test_a_wrong_score_is_a_problem_of_the_spec(rules):
    with pytest.raises(InputError, match=r"placement: unknown function in rules.py 'last'"):
        Sweep(axes={"placement": ["mfp", "rules.py:last"]}, fixed=FIXED)
    with pytest.raises(InputError, match=r"placement: .*nothing.py cannot be read"):
        Sweep(axes={"placement": ["mfp", "nothing.py:last"]}, fixed=FIXED)


def test_a_score_on_the_command_line(rules):
    from faultsweep.cli import app

    options = ["--log", "sdsc-model", "--num-jobs", "40", "--placement", "rules.py:first", "--json"]
    done = CliRunner().invoke(app, ["simulate", *options])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["config"]["placement"] == "rules.py:first"
