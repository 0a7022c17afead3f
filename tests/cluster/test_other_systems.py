"""What the documents say for other batch systems runs; scripts that start processes stand in for their commands."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import distributed
import psutil
import pytest
import xarray as xr
from faultsweep.cluster.interrupts import handlers_stay

from tests.conftest import ROOT

with handlers_stay():
    import dask_jobqueue

SPEC = """
target = "failures"
replicates = 4
[fixed]
failures = "mtbf"
days = 20.0
machine = "flat:64"
[axes]
mtbf_h = [5.0, 10.0]
"""
"""Needs nothing compiled."""
PAGE = (ROOT / "docs" / "slurm.md").read_text(encoding="utf-8")
NODES = {  # runs a command once per node, as pbsdsh does, until all have ended
    "pbsdsh": '#!/bin/bash\nshift\nfor node in 1 2; do "$@" & done\ntrap "kill $(jobs -p | xargs)" TERM\nwait\nwait\n',
    "qsub": '#!/bin/bash\ncp "$1" job.$$\nbash job.$$ > job.log 2>&1 < /dev/null &\necho "$!.server"\n',
    "qdel": '#!/bin/bash\nfor job in "$@"; do pkill -P "${job%%.*}"; kill "${job%%.*}"; done\n',
}


def snippet(name: str) -> str:
    """Return an example of the page, for the loopback and for few workers."""
    text = re.search(rf"<!-- file: {name} -->\n\n((?:    .*\n|\n)+)", PAGE)[1]
    text = re.sub(r"^    ", "", text, flags=re.M)
    return text.replace("ib0", "lo").replace("20", "1").replace('run" 16', 'run" 1')


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a spec, on whose machine there are the commands of PBS."""
    (tmp_path / "bin").mkdir()
    for name, text in {**NODES, "python": f'#!/bin/bash\nexec {sys.executable} "$@"\n'}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PBS_O_WORKDIR", str(tmp_path))
    monkeypatch.setenv("DASK_JOBQUEUE__PBS__INTERFACE", "lo")
    (tmp_path / "my.toml").write_text(SPEC)
    return tmp_path


@pytest.mark.parametrize("name", ["sweep.pbs", pytest.param("workers.py", marks=pytest.mark.slow)])
@pytest.mark.sampled(0)
def test_a_sweep_on_pbs(folder, name):
    (folder / name).write_text(snippet(name))
    command = ["bash" if name.endswith("pbs") else sys.executable, name]
    # a process group of its own: nothing of it is left whatever happens
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, text = process.communicate(timeout=200)
        assert process.returncode == 0, text
        assert_tidy(folder)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def assert_tidy(folder):
    """The store is complete, credentials are gone, and all processes end."""
    assert (xr.open_zarr(folder / "my.zarr", chunks=None).status == 1).all()
    assert not list(folder.glob("sweep.*[!s]")), "credentials are left"
    left = [p for p in psutil.process_iter(["cwd", "cmdline"]) if p.info["cwd"] == str(folder)]
    _, alive = psutil.wait_procs(left, timeout=20)
    assert not alive, [p.info["cmdline"] for p in alive]


@pytest.mark.parametrize("kind", ["PBS", "LSF", "SGE", "OAR", "HTCondor"])
def test_job_scripts_of_other_systems(kind, tmp_path, monkeypatch):
    """Each kind of cluster takes the options of the example and gives its workers credentials."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LSF_ENVDIR", str(tmp_path))
    (tmp_path / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    more = {"HTCondor": {"disk": "1GB"}}.get(kind, {"walltime": "12:00:00"})
    options = {"cores": 1, "processes": 1, "memory": "2GB", "interface": "lo", **more}
    assert f"{kind}Cluster" in snippet("workers.py")
    with getattr(dask_jobqueue, f"{kind}Cluster")(
        security=distributed.Security.temporary(), shared_temp_directory=str(tmp_path), **options
    ) as cluster:
        script = cluster.job_script()
        assert f"dask_worker {cluster.scheduler_address}" in script
        assert "--tls-key" in script
        assert cluster.scheduler_address.startswith("tls://")


CLOUDS = {  # with the arguments that the classes take, of which the page names some
    "dask_kubernetes/operator": """
import distributed

class KubeCluster(distributed.LocalCluster):
    def __init__(self, *, name=None, namespace=None, image=None, n_workers=None):
        assert name and "/" in image
        super().__init__(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)

    def __exit__(self, *error):
        assert self.scheduler.transition_counter, "no task came"
        super().__exit__(*error)
""",
    "dask_cloudprovider/aws": "class EC2Cluster: pass",
}


def test_a_sweep_on_kubernetes(folder):
    for name, text in CLOUDS.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text)
    (folder / "clouds.py").write_text(snippet("clouds.py"))
    done = subprocess.run(
        [sys.executable, "clouds.py"], cwd=folder, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert_tidy(folder)
