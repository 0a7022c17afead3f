"""Sweeps as batch jobs of PBS: the same words and the same behaviour as with SLURM, on its commands as shims."""

from __future__ import annotations

import json
import re
import signal
import stat
import sys
from pathlib import Path

import psutil
import pytest
import xarray as xr
from faultsweep.cluster.batch_systems import CONSTANTS, FUNCTIONS, find, pbs
from faultsweep.cluster.batch_systems.common import Asked
from faultsweep.cluster.elastic import worker_job_name
from faultsweep.cluster.site import Site

from faultsweep.errors import InputError
from tests.cluster import pbs_shim
from tests.cluster.sweeping import command, done, missing_at_starts, open_gate, status, submit, wait
from tests.conftest import ROOT
from tests.sweeps.test_disasters import assert_complete

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


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A login to a machine with PBS; whatever runs at the end is deleted."""
    pbs_shim.install(tmp_path / "pbs")
    found = pbs_shim.Server(tmp_path / "pbs")
    monkeypatch.setenv("PATH", f"{tmp_path / 'pbs' / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin")
    monkeypatch.setenv("FAULTSWEEP_SITE", str(tmp_path / "cluster.toml"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    setup = json.dumps([f"export PYTHONPATH={ROOT}"])
    text = f'system = "pbs"\ninterface = "lo"\nworkers_per_node = 1\nsetup = {setup}\n'
    (tmp_path / "cluster.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    yield found
    for job in found.jobs():
        if found.read(job)["job_state"] != "F":
            found.qdel([job])
    wait("an end of all jobs", lambda: all(found.read(job)["job_state"] == "F" for job in found.jobs()), 60)


def log(job, store="s.zarr"):
    return Path(f"{store}.run/slurm/job-{job}.log").read_text()


def test_a_sweep_is_submitted_to_two_nodes_and_finishes(server):
    Path("sweep.toml").write_text(SPEC)
    told = command("submit", "sweep.toml", "--nodes", 2, "--time", "10").stdout
    assert told.startswith("job 1.pbs: 8 simulations, 2 x 1 workers")
    refused = command("submit", "sweep.toml", code=2).stderr
    assert "job 1.pbs (" in refused
    assert "runs this sweep already" in refused
    wait("the end of the job", lambda: server.read("1.pbs")["job_state"] == "F", 200)
    assert (xr.open_zarr("sweep.zarr").status == 1).all(), log("1.pbs", "sweep.zarr")
    found = status("sweep.zarr")
    assert (found["job"]["state"], found["job"]["outcome"], found["exit_code"]) == ("COMPLETED", "finished", 0)
    assert found["job"]["nodes"] == "n1,n2"
    assert "job 1.pbs: completed; finished" in command("status", "sweep.zarr").stdout
    assert "finished" in command("logs", "sweep.zarr").stdout
    assert not list(Path("sweep.zarr.run/slurm").glob("*-*-*")), "credentials are left"
    assert server.read("1.pbs")["Resource_List"]["place"] == "scatter"


@pytest.mark.slow
def test_a_job_is_looked_at_cancelled_and_resumed(server):
    job = submit()
    wait("some results", lambda: done() > 3)
    found = status()
    assert (found["state"], found["job"]["state"], found["exit_code"]) == ("running", "RUNNING", 3)
    assert found["phase"]["phase"] == "running"
    folder = next(Path("s.zarr.run/slurm").glob("*-*-1"))
    assert stat.S_IMODE((folder / "node.sh").stat().st_mode) == 0o700
    assert f"job {job} was cancelled" in command("cancel", "s.zarr").stdout
    found = status()
    assert (found["job"]["state"], found["job"]["outcome"], found["exit_code"]) == ("CANCELLED", "cancelled", 4)
    assert log(job).splitlines()[-1].endswith("cancelled: by scancel, faultsweep cancel or preemption")
    assert "was over already" in command("cancel", "s.zarr").stdout
    job = submit()
    open_gate()
    wait("the end of the job", lambda: server.read(job)["job_state"] == "F", 200)
    assert_complete(Path("s.zarr"))
    starts = missing_at_starts()
    assert starts[1] < starts[0]


@pytest.mark.slow
def test_a_job_near_its_walltime_submits_itself_again(server):
    """The one that goes on waits for its end, and status asks for that one."""
    first = submit("--time", "30")
    wait("some results", lambda: done() > 3)
    own = str(Path("s.zarr.run/slurm").resolve())
    (job,) = [
        p
        for p in psutil.process_iter(["cmdline"])
        if {"faultsweep.cluster.allocation", own} <= set(p.info["cmdline"] or ())
    ]
    job.send_signal(signal.SIGUSR1)
    wait("another job", lambda: len(server.jobs()) == 2)
    wait("that it is known", lambda: status()["job"]["job"] == "2.pbs")
    open_gate()
    found = wait("the end", lambda: (told := status())["job"]["outcome"] == "finished" and told)
    assert found["exit_code"] == 0
    assert server.read(first)["Exit_status"] == 0
    assert_complete(Path("s.zarr"))
    assert json.loads(Path("s.zarr.run/slurm/job.json").read_text())["requeues"] == 1


@pytest.mark.slow
def test_worker_jobs_of_pbs_are_replaced_and_leave_nothing(server):
    pytest.importorskip("dask_jobqueue")
    job = submit("--elastic", "--max-jobs", 2)
    wait("some results", lambda: done() > 3)
    (first, *_) = sorted(pbs._jobs_named(worker_job_name(Path("s.zarr.run/slurm"))))
    server.qdel([first])
    wait("a job in its place", lambda: len(server.jobs()) > 3)
    open_gate()
    wait("the end", lambda: server.read(job)["job_state"] == "F", 200)
    assert_complete(Path("s.zarr"))
    wait("an end of all worker jobs", lambda: all(server.read(one)["job_state"] == "F" for one in server.jobs()), 60)
    assert not list(Path("s.zarr.run/slurm").glob("tls-*"))


def test_a_job_that_waits_says_why(server):
    shown = {"job_state": "Q", "Job_Name": "x", "comment": "Not Running: Insufficient amount of resource: ncpus"}
    (server.base / "jobs" / "7.pbs").mkdir()
    server.write("7.pbs", **shown)
    found = pbs.job_state("7.pbs", "x")
    assert (found["state"], pbs.explain(found["reason"])) == ("PENDING", "Insufficient amount of resource: ncpus")
    assert pbs.job_state("7.pbs", "y")["state"] == pbs.job_state("99.pbs")["state"] == ""
    server.write("7.pbs", job_state="F")
    assert pbs.job_state("7.pbs")["state"] == "CANCELLED", "deleted before it started"
    for code, state in ((0, "COMPLETED"), (1, "FAILED"), (271, "CANCELLED"), (-29, "TIMEOUT"), (143, "CANCELLED")):
        server.write("7.pbs", Exit_status=code)
        assert pbs.job_state("7.pbs")["state"] == state
    pbs.cancel("7.pbs")
    pbs.cancel("99.pbs")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--partition", "shirt"), "--partition: unknown partition 'shirt'; did you mean 'short'? (valid: "),
        (("--partition", "short", "--time", "10"), "--time: 10 is more than the 0.0333 h that the partition 's"),
        (("--qos", "fast"), "--qos: PBS has none; leave it out"),
        (("--nodes", "1-2"), "--nodes: PBS takes a number, not the range 1-2"),
        (("--nodes", "3"), "--nodes: the partition 'workq' has 2, not 3"),
        (("--workers-per-node", "5"), "--workers-per-node: the nodes of 'workq' have 4 processors, not 5"),
        (("--memory-per-worker", "9GB"), "--memory-per-worker, --controller-memory or --workers-per-node: 9,"),
        (("--sbatch=--exclusive",), "sbatch: these are options for SLURM; put options of qsub into submit_options"),
        (("--submit-option=-N mine",), "submit_options: '-N mine' cannot be used, since jobs are known by their names"),
        (("--store", "a b.zarr"), "PBS takes no blank"),
    ],
)
def test_what_pbs_would_refuse_is_one_sentence_and_leaves_nothing(server, options, sentence):
    Path("sweep.toml").write_text(SPEC)
    refused = command("submit", "sweep.toml", *options, code=2)
    assert sentence in refused.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["cluster.toml", "pbs", "sweep.toml"]
    assert server.jobs() == []


def test_a_dry_run_prints_the_script_and_init_knows_the_queues(server):
    Path("sweep.toml").write_text(SPEC)
    options = ("--time", "1-02:00:00", "--account", "physics", "--memory-per-worker", "1GB", "--partition", "workq")
    script = command("submit", "sweep.toml", "--dry-run", *options, "--submit-option=-l software=gcc").stdout
    for line in ("-l walltime=26:00:00", "-A physics", "-q workq", "-l place=scatter", "-r y", "-l software=gcc"):
        assert f"#PBS {line}\n" in script
    assert "#PBS -l select=1:ncpus=1:mpiprocs=1:mem=" in script
    assert server.jobs() == []
    command("cluster", "init", "--site", "made.toml", "--cluster", "pbs")
    text = Path("made.toml").read_text()
    assert "# workq (default): 2 nodes of 4 processors and 8,192 MiB, no limit of time" in text
    assert "How faultsweep uses PBS here" in text
    assert '\nsystem = "pbs"\n' in text


def test_a_check_says_what_works(server):
    told = command("cluster", "check", "--cluster", "pbs", "--nodes", 2).stdout
    assert "PBS takes the job: 2 nodes of the default partition" in told
    assert "2 of 2 workers came" in told
    assert "sweeps will run" in told
    assert server.read("1.pbs")["job_state"] == "F"


def test_sizes_and_nodes_of_a_job(server, monkeypatch):
    (server.base / "jobs" / "3.pbs").mkdir()
    vnode = "(n1:ncpus=4:mem=2097152kb)+(n2:ncpus=8:mem=4gb)"
    walltime = {"Resource_List": {"walltime": "01:00:00"}, "resources_used": {"walltime": "00:10:00"}}
    server.write("3.pbs", job_state="E", Job_Name="x", exec_vnode=vnode, **walltime)
    monkeypatch.setenv("PBS_JOBID", "3.pbs")
    nodes = pbs.nodes_of_job()
    assert [(node.name, node.cores, node.memory_mb) for node in nodes] == [("n1", 4, 2048), ("n2", 8, 4096)]
    assert pbs.seconds_left() == 3000
    assert [pbs._bytes(size) for size in ("16gb", "2w", "1kb", 7)] == [16 * 2**30, 16, 1024, 7]
    monkeypatch.setenv("PBS_JOBID", "99.pbs")
    assert pbs.seconds_left() is None
    with pytest.raises(InputError, match="nothing is known of the nodes"):
        pbs.nodes_of_job()
    server.write("3.pbs", job_state="F")


@pytest.mark.parametrize("name", ["slurm", "pbs"])
def test_every_batch_system_keeps_the_contract(name, tmp_path):
    system = find(name)
    assert all(hasattr(system, known) for known in (*CONSTANTS, *FUNCTIONS))
    for workers in (0, 4):
        lines = system.directives(Asked("faultsweep-x", tmp_path, Site(nodes="2"), workers, 2000))
        assert any("faultsweep-x" in line for line in lines)
        assert any("2000" in line for line in lines)
        assert any(f"{tmp_path}" in line for line in lines), "a log of its own"


def test_a_file_of_a_site_is_a_batch_system(tmp_path):
    (tmp_path / "mine.py").write_text("from faultsweep.cluster.batch_systems.pbs import *\nTITLE = 'Mine'\n")
    (tmp_path / "lacks.py").write_text("TITLE = 'x'\n")
    assert find(str(tmp_path / "mine.py")).TITLE == "Mine"
    with pytest.raises(InputError, match=r"lacks\.py: lacks JOB_VARIABLE, OPTIONS"):
        find(str(tmp_path / "lacks.py"))
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match=r"broken\.py: cannot be loaded \(ZeroDivisionError"):
        find(str(tmp_path / "broken.py"))
    with pytest.raises(InputError, match="no such file"):
        find(str(tmp_path / "none.py"))
    with pytest.raises(InputError, match="unknown batch system 'slum'; did you mean 'slurm'"):
        find("slum")


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """The file of the page on batch systems, whose jobs are processes."""
    page = (ROOT / "docs" / "batch-systems.md").read_text(encoding="utf-8")
    text = re.search(r"<!-- file: processes.py -->\n```python\n(.*?)```", page, re.S)[1]
    (tmp_path / "processes.py").write_text(text)
    monkeypatch.setenv("PROCESSES_PLACE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FAULTSWEEP_SITE", str(tmp_path / "cluster.toml"))
    (tmp_path / "cluster.toml").write_text('system = "processes.py"\ninterface = "lo"\nworkers_per_node = 1\n')
    monkeypatch.chdir(tmp_path)
    return find(str(tmp_path / "processes.py"))


@pytest.mark.slow
def test_the_file_of_the_page_runs_sweeps_and_ends_them(processes):
    job = submit()
    wait("some results", lambda: done() > 3)
    assert status()["job"]["state"] == "RUNNING"
    assert f"job {job} was cancelled" in command("cancel", "s.zarr").stdout
    assert (status()["job"]["state"], status()["job"]["outcome"]) == ("CANCELLED", "cancelled")
    job = submit()
    open_gate()
    wait("the end of the job", lambda: processes.job_state(job)["state"] != "RUNNING", 200)
    assert_complete(Path("s.zarr"))
    assert "finished" in command("logs", "s.zarr").stdout
    Path("sweep.toml").write_text(SPEC)
    assert "--nodes: there is one" in command("submit", "sweep.toml", "--nodes", 2, code=2).stderr


def test_every_function_of_the_contract_is_on_the_page():
    page = (ROOT / "docs" / "batch-systems.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if f"`{name}(" not in page or f"\ndef {name}(" not in page] == []
    assert all(re.search(rf"^.*\b{name}\b.* = ", page, re.M) for name in CONSTANTS)
