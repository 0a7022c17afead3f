"""Worker jobs: what they ask SLURM for, and those that could not be submitted. SLURM is not asked."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

from faultsweep.cluster import elastic
from faultsweep.cluster.batch_systems import common, slurm
from faultsweep.cluster.interrupts import handlers_stay
from faultsweep.cluster.site import Site

with handlers_stay():
    from dask_jobqueue.slurm import SLURMJob


def script(folder, **settings) -> str:
    """Return the script of a worker job."""
    _, options = elastic._options(Site(system="slurm", **settings), folder)
    names = ("queue", "account", "walltime", "cores", "processes", "memory", "job_mem", "python", "job_name")
    names += ("job_directives_skip", "job_extra_directives", "job_script_prologue")
    return SLURMJob("tls://127.0.0.1:1", name="w", **{name: options[name] for name in names}).job_script()


def test_a_worker_job_asks_for_the_memory_of_its_nanny_too(tmp_path):
    text = script(tmp_path, memory_per_worker="500MiB")
    assert f"#SBATCH --mem={500 + common.NANNY_MIB}M\n" in text
    assert "--memory-limit 500.00MiB" in text
    assert "--mem=" not in script(tmp_path)


def test_a_worker_imports_modules_of_the_working_directory_where_the_client_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert f"{sys.executable} -P -m distributed" in script(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    assert f"{sys.executable} -m distributed" in script(tmp_path)


def test_a_worker_job_that_could_not_be_submitted_is_given_up_after_a_while(tmp_path, monkeypatch):
    """So that another one is submitted; one that is in the queue is left alone."""
    jobs = {"a-0": SimpleNamespace(job_id=None), "a-1": SimpleNamespace(job_id="7")}
    loop = SimpleNamespace(add_callback=lambda call, *arguments: call(*arguments))
    scheduler = {"workers": {}}
    cluster = SimpleNamespace(workers=jobs, worker_spec=dict.fromkeys(jobs), scheduler_info=scheduler, loop=loop)
    watchdog = elastic._Watchdog(cluster, tmp_path, slurm)
    monkeypatch.setattr(slurm, "call", lambda *_: "7")
    watchdog._look()
    assert set(jobs) == {"a-0", "a-1"}
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + elastic._SUBMIT_AGAIN_S + 1)
    watchdog._look()
    assert set(jobs) == set(cluster.worker_spec) == {"a-1"}
    assert watchdog.early == 0
