"""What works with the core alone, and what each feature says whose packages are not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultsweep.extras import EXTRAS

SPEC = """
[fixed]
log = "nasa-model"
num_jobs = 30

[axes]
scheduler = ["fcfs", "backfill"]
machine = ["torus:4x4x8", "flat:128"]
"""
HIDE = f"""
import sys

class Hidden:
    def __init__(self, finders):
        self.finders = finders

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRAS)}:
            return None
        return next(filter(None, (finder.find_spec(name, path, target) for finder in self.finders)), None)

    def find_distributions(self, context):
        finders = [finder for finder in self.finders if hasattr(finder, "find_distributions")]
        found = (each for finder in finders for each in finder.find_distributions(context))
        return (each for each in found if each.name.replace("-", "_") not in {sorted(EXTRAS)})

sys.meta_path[:] = [Hidden([*sys.meta_path])]
"""
"""A sitecustomize module, which every Python of a test imports: the packages of all extras are not there."""
CALL = """
import contextlib, io, json, sys
from faultsweep import cli

answers = []
for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
    answers.append((code, out.getvalue(), err.getvalue()))
json.dump(answers, sys.__stdout__)
"""
READ = """
import faultsweep as fs

results = fs.open_results("core.zarr")
assert results["mean_wait_s"].notnull().all()
results.sweep.errors()
from faultsweep.analysis.statistics import mean_interval

for attempt in (
    lambda: mean_interval(results["mean_wait_s"].isel(replicate=[0, 0, 0]) + 1.0),
    lambda: fs.plot(results),
    lambda: results.sweep.to_netcdf("x.nc"),
    lambda: fs.Sweep(axes={"scheduler": ["fcfs"]}, fixed={"log": "sdsc-model", "num_jobs": 5}, replicates=2,
                     precision="5%").run("precise.zarr"),
):
    try:
        attempt()
    except fs.InputError as error:
        print(error)
    else:
        raise AssertionError(attempt)
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    """A folder with a small sweep; Python that is started in it with ``python`` has the core alone."""
    folder = tmp_path_factory.mktemp("core")
    (folder / "hidden").mkdir()
    (folder / "hidden" / "sitecustomize.py").write_text(HIDE)
    (folder / "core.toml").write_text(SPEC)
    (folder / "drawn.toml").write_text(SPEC + 'load = {sample = {load_scale = [0.5, 1.0]}, num = 4, design = "sobol"}')
    return folder


def python(core: Path, *arguments: str) -> str:
    path = os.pathsep.join(filter(None, [str(core / "hidden"), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=core, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def call(core: Path, *commands: str) -> list[tuple[int, str, str]]:
    return json.loads(python(core, "-c", CALL, json.dumps([command.split() for command in commands])))


@pytest.fixture(scope="module")
def store(core) -> Path:
    """The store of a sweep that was run with the core alone, by a worker process."""
    commands = (
        "simulate --log sdsc-model --num-jobs 50 --failures weibull --json --events-out run.csv",
        "plan core.toml --no-measure",
        "run core.toml --workers 1 --quiet",
        "status core.zarr --json",
        "check core.zarr",
        "rerun core.zarr --select scheduler=fcfs,machine=flat:128",
        "pack core.zarr core.zarr.zip",
        "compare core.zarr core.zarr.zip",
        "logs describe sdsc-model --num-jobs 100",
        "notebook core.zarr",
        "list experiments",
    )
    for command, (code, _, error) in zip(commands, call(core, *commands), strict=True):
        assert code == 0, f"{command}: {error}"
    return core / "core.zarr"


MISSING = {
    "figure core.toml": "a figure needs matplotlib, which is not installed: pip install 'faultsweep[plot]'",
    "figure demo --store demo.zarr": "pip install 'faultsweep[plot]'",
    "best core.toml": "the choice of the best policy needs scipy, which is not installed",
    "refine core.toml": "refinement needs scipy, which is not installed",
    "report core.zarr": "a report needs matplotlib, which is not installed: pip install 'faultsweep[plot]'",
    "view run.csv": "the picture of a run needs matplotlib",
    "logs describe sdsc-model --picture log.png": "a picture needs matplotlib",
    "dashboard core.zarr": "the dashboard needs panel, which is not installed: pip install 'faultsweep[dashboard]'",
    "failures generate mtbf --mtbf-h 10 --days 30 -o failures.csv": "failures or repairs needs scipy",
    "reproduce krevat2003": "the judging of claims needs scipy",
    "simulate --log lublin --num-jobs 10": "the Lublin model of jobs needs scipy, which is not installed",
    "logs fit nasa-model -o model.toml": "a hyper-Erlang model of jobs needs scipy",
    "plan drawn.toml": "a sampled design needs scipy, which is not installed: pip install 'faultsweep[stats]'",
    "logs import swf jobs.swf -o jobs.parquet": "a Parquet file needs pyarrow",
    "compare core.zarr s3://bucket/a.zarr": "s3fs, which is not installed: pip install 'faultsweep[s3]'",
}
"""Command -> what it says; none of them has begun anything before."""


def test_a_feature_without_its_packages_is_one_sentence(core, store):
    (core / "jobs.swf").write_text("; MaxNodes: 4\n1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n")
    before = sorted(path.name for path in core.iterdir())
    for (command, sentence), (code, out, error) in zip(MISSING.items(), call(core, *MISSING), strict=True):
        assert code == 2, f"{command}: {out}{error}"
        assert sentence in error
        assert len(error.splitlines()) == 1
    assert sorted(path.name for path in core.iterdir()) == before


def test_python_says_the_same(core, store):
    assert python(core, "-c", READ).splitlines() == [
        "a confidence interval needs scipy, which is not installed: pip install 'faultsweep[stats]'",
        "a figure needs matplotlib, which is not installed: pip install 'faultsweep[plot]'",
        "a netCDF file needs h5netcdf, which is not installed: pip install 'faultsweep[netcdf]'",
        "a sweep that chooses its replicates needs scipy, which is not installed: pip install 'faultsweep[stats]'",
    ]
