"""The memory that a job asks for: what ``plan`` says, from the grid, and enough for what a run takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faultsweep.cluster.script import Work, batch_script, memory_of_node
from faultsweep.cluster.site import Site, most_nodes
from faultsweep.sweeps.memory import PROCESSES_BYTES, controller_bytes, measured_worker_bytes, worker_bytes
from faultsweep.sweeps.spec import find_spec
from faultsweep.sweeps.sweep import Sweep

from tests.cluster.sweeping import SPEC, command
from tests.sweeps.functions import keeps

LARGE = """
from pathlib import Path
from faultsweep.sweeps.memory import grid_bytes
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.store.collector import Collector
from faultsweep.sweeps.store.store import create
from faultsweep.sweeps.sweep import Sweep

def peak():  # of this program: what getrusage tells begins with the size of the process that started it
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def nothing(a, b, c):
    return a

side = [float(i) for i in range(100)]
sweep = Sweep(axes={"a": side, "b": side, "c": side}, function=nothing, outputs=["y"])
before = peak()
prepared = prepare(sweep.spec, Path("s.zarr"))
texts = {**attributes(sweep.spec, prepared), "provenance": "[]"}
store = create(Path("s.zarr"), prepared.grid, prepared.outputs, texts)
collector = Collector(store, prepared.outputs, prepared.source, prepared.excluded, prepared.again)
print(peak() - before, grid_bytes(prepared, 1))
"""


@pytest.mark.slow
def test_a_million_cells_fit_into_what_is_asked_for(tmp_path):
    command = [sys.executable, "-P", "-c", LARGE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    took, asked = map(int, done.stdout.split())
    assert 30e6 < took < asked - PROCESSES_BYTES, "the cells are what takes memory"
    assert asked < 1_500_000_000


def test_memory_grows_with_cells_numbers_and_workers():
    small = controller_bytes(1000, 30, 16_384, 2)
    assert controller_bytes(10_000_000, 30, 16_384, 2) - small > 10_000_000 * 100
    assert controller_bytes(1000, 300, 16_384, 2) > small
    assert controller_bytes(1000, 30, 16_384, 1000) - small == 998_000_000
    assert controller_bytes(1000, 30, 16_384, 2) == controller_bytes(1000, 30, 1000, 2), "a chunk has the grid's cells"


def test_a_worker_of_a_larger_workload_takes_more(tmp_path):
    fixed = {"log": "sdsc-model", "scheduler": "fcfs"}
    small, large = (Sweep(axes={"num_jobs": [number]}, fixed=fixed).spec for number in (100, 100_000))
    assert 3e8 < worker_bytes(small, tmp_path / "s.zarr") < worker_bytes(large, tmp_path / "s.zarr") - 5e7
    whole = Sweep(axes={"num_jobs": [10, 0]}, fixed={"log": "sdsc-model"}).spec
    assert worker_bytes(whole, tmp_path / "s.zarr") > worker_bytes(large, tmp_path / "s.zarr")
    assert worker_bytes(Sweep(axes={"a": [1.0]}, function=lambda a: a).spec, tmp_path / "s.zarr") == 0
    (tmp_path / "s.zarr.run").mkdir()
    (tmp_path / "s.zarr.run" / "progress.json").write_text(json.dumps({"worker_bytes": 800_000_000}))
    assert measured_worker_bytes(tmp_path / "s.zarr") == worker_bytes(small, tmp_path / "s.zarr") == 1_000_000_000


def work(folder, **more):
    return Work("s", folder, folder / "progress.json", ("s.py",), **more)


def test_what_a_job_asks_for(tmp_path):
    known = work(tmp_path, controller_bytes=lambda workers: 10**9 + workers * 10**6, worker_bytes=400_000_000)
    assert memory_of_node(Site(nodes="1-4"), known, 8) == 10**9 + 32 * 10**6 + 100_000_000 + 8 * 400_500_000
    site = Site(nodes="2", memory_per_worker="1GB", controller_memory="3GB")
    assert memory_of_node(site, known, 4) == 3 * 10**9 + 100_000_000 + 4 * 1_000_500_000
    assert memory_of_node(Site(max_jobs=50), known, 0) == 10**9 + 50 * 10**6
    assert memory_of_node(Site(), work(tmp_path), 4) is None, "of a function of one's own nothing is known"
    assert "#SBATCH --mem" not in batch_script(Site(), work(tmp_path), 4)
    assert "#SBATCH --mem=1431M\n" in batch_script(Site(), work(tmp_path), 0)
    assert "--memory-bytes" not in batch_script(Site(), known, 4), "what was computed kills no worker"
    assert [most_nodes(text) for text in ("4", "1-16")] == [4, 16]


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sweep.toml").write_text(SPEC)
    return find_spec("sweep.toml")


def test_plan_says_what_submit_asks_for(spec):
    told = json.loads(command("plan", spec, "--no-measure", "--workers", 4, "--json").stdout)
    assert told["controller_bytes"] == pytest.approx(5e8, rel=0.1)
    assert 3e8 < told["worker_bytes"] < 5e8
    said = command("plan", spec, "--no-measure", "--workers", 4).stdout
    assert "of memory for scheduler and sweep, 35" in said
    assert "for each worker" in said


@pytest.mark.slow
def test_a_worker_that_keeps_much_memory_is_given_more_to_run(tmp_path, monkeypatch):
    """It would wait for ever to have less."""
    limit = 1_000_000_000
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", limit)
    monkeypatch.setattr("faultsweep.sweeps.runner.runner.IDLE_S", 2.0)  # else it would take ten minutes to fail
    sweep = Sweep(
        axes={"a": list(range(40))}, fixed={"most": int(0.87 * limit)}, function=keeps_and_sleeps, outputs="y"
    )
    results = sweep.run(tmp_path / "s.zarr", workers=1, progress=False)
    assert results.y.values.ravel().tolist() == [a / 7 for a in range(40)]


def keeps_and_sleeps(a: int, most: int = 0) -> float:
    """Keep memory, and take long enough that it is noticed."""
    time.sleep(0.1)
    return keeps(a, most)
