"""Sweeps as batch jobs of a real SLURM: what is submitted finishes, whatever is killed, cancelled or requeued.

After each disturbance the store equals what the swept function gives, to the bit. The functions of a gated sweep sleep
until the disturbances are over, then it hurries.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
import pytest
import xarray as xr
from faultsweep.cluster.connect import connect
from faultsweep.cluster.phases import NO_SPACE
from faultsweep.sweeps.batch_job import refuse_if_taken

from faultsweep.errors import InputError
from tests.cluster.strangers import assert_closed_to_strangers
from tests.cluster.sweeping import (
    PROGRAM,
    RUNS,
    SPEC,
    command,
    done,
    faultsweep,
    gated,
    missing_at_starts,
    open_gate,
    processes,
    progress,
    status,
    submit,
    wait,
)
from tests.sweeps.disks import slow_disk, small_disk
from tests.sweeps.test_disasters import assert_complete, finish, start

pytestmark = pytest.mark.slurm
__all__ = ["slow_disk", "small_disk"]  # fixtures
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


def submitted(results, *, options=(), store="s.zarr"):
    """Submit a gated sweep and wait until so many simulations are done; returns the job."""
    job = submit(*options, store=store)
    wait(f"{results} results", lambda: done(store) >= results)
    return job


def log(job, store="s.zarr"):
    return Path(f"{store}.run/slurm/job-{job}.log").read_text()


def assert_finishes(job, slurm, store="s.zarr", timeout_s=300):
    open_gate()
    wait("the end of the job", lambda: slurm.state(int(job)) in OVER, timeout_s)
    assert slurm.state(int(job)) == "COMPLETED", log(job, store)
    assert_complete(Path(store))
    assert credentials(store) == []
    starts = missing_at_starts(store)
    assert starts == sorted(starts, reverse=True), "a start found less done than the one before"


def credentials(store="s.zarr") -> list[Path]:
    """Return the folders with credentials of jobs."""
    folder = Path(f"{store}.run/slurm")
    return [path for pattern in ("*-*-*", "tls-*") for path in folder.glob(pattern) if path.is_dir()]


@pytest.mark.sampled(1)
def test_a_sweep_is_submitted_and_finishes_while_nobody_looks(slurm, tmp_path):
    with Path("cluster.toml").open("a") as site:
        site.write(f'scratch = "{tmp_path}/scratch"\n')
    (tmp_path / "scratch").mkdir()
    job = submit("--dask-dashboard", "--nodes", 2)
    run = Path("s.zarr.run/slurm")
    secret = wait("credentials", lambda: list(run.glob(f"{job}-0-1/scheduler.json")))[0].with_name("tls.json")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (run, secret.parent, secret)] == [0o700, 0o700, 0o600]
    address = json.loads(secret.with_name("scheduler.json").read_text())["address"]
    wait("two workers and some results", lambda: progress("workers") == 2 and done() > 4)
    assert_closed_to_strangers(address)
    with connect(address, credentials=secret) as client:
        assert len(client.nthreads()) == 2
    found = status()
    assert (found["state"], found["job"]["state"], found["exit_code"]) == ("running", "RUNNING", 3)
    assert found["phase"]["phase"] == "running"
    assert found["progress"]["per_s"] > 0
    link, tunnel = found["job"]["dashboard"].splitlines()
    assert "ssh -N -L " in tunnel
    port = link.partition("127.0.0.1:")[2].partition("/")[0]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5)
    assert list((tmp_path / "scratch").iterdir())
    assert_finishes(job, slurm)
    assert not list((tmp_path / "scratch").iterdir())
    assert "dashboard at" not in log(job)
    assert "Killed" not in log(job)
    found = status()
    assert (found["state"], found["job"]["outcome"], found["exit_code"]) == ("idle", "finished", 0)
    assert 5e7 < found["progress"]["worker_bytes"] < 2e9
    text = faultsweep("status", "s.zarr").stdout
    assert f"job {job}: completed; finished" in text
    assert "--memory-per-worker" in text
    assert "dashboard" not in text
    assert "finished" in command("logs", "s.zarr").stdout
    assert json.loads(command("cancel", "s.zarr", "--json").stdout)["cancelled"] is False


def test_a_spec_is_submitted_and_refused_a_second_time(slurm):
    Path("sweep.toml").write_text(SPEC)
    Path("queue.py").write_text("raise ImportError('in the place of a module of Python')")
    slurm.ask("scontrol", "update", "PartitionName=debug", "State=DOWN")
    slurm.ask("scontrol", "update", "PartitionName=debug", "State=INACTIVE")
    try:
        assert "--partition: debug is" in command("submit", "sweep.toml", code=2).stderr
    finally:
        slurm.ask("scontrol", "update", "PartitionName=debug", "State=UP")
    job = json.loads(faultsweep("submit", "sweep.toml", "--json").stdout)["job"]  # from a process that ends
    refused = command("submit", "sweep.toml", code=2).stderr
    assert f"job {job} (" in refused
    assert "runs this sweep already" in refused
    Path("sweep.toml").write_text("the job has a copy of the spec")
    wait("the end of the job", lambda: slurm.state(int(job)) in OVER, 400)
    assert status("sweep.zarr")["job"]["text"] == "", "what it said last is no reason of its end"
    assert slurm.state(int(job)) == "COMPLETED", Path(f"sweep.zarr.run/slurm/job-{job}.log").read_text()
    assert (xr.open_zarr("sweep.zarr").status == 1).all()
    Path("sweep.toml").write_text(SPEC)
    assert ": is complete; nothing was submitted" in command("submit", "sweep.toml").stdout
    assert json.loads(command("submit", "sweep.toml", "--json").stdout)["job"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--partition", "debig"),
            "--partition: unknown partition 'debig'; did you mean 'debug'? (valid: debug, mixed, short, threads)",
        ),
        (("--account", "nobody"), "--account: SLURM does not accept 'nobody'"),
        (
            ("--partition", "short", "--time", "10"),
            "--time: 10 is more than the 0.0333 h that the partition 'short' allows",
        ),
        (("--time", "soon"), "--time: expected minutes, HH:MM:SS or D-HH:MM:SS, got 'soon'"),
        (("--nodes", "3"), "--nodes: the partition 'debug' has 2, not 3"),
        (("--nodes", "few"), "--nodes: expected a number such as 4, or a range such as 1-4, got 'few'"),
        (("--workers-per-node", "5"), "--workers-per-node: the nodes of 'debug' have 4 processors, not 5"),
        (("--memory-per-worker", "9GB"), "--memory-per-worker, --controller-memory or --workers-per-node: 9,"),
        (("--controller-memory", "9GB"), "--memory-per-worker, --controller-memory or --workers-per-node: 9,"),
        (("--controller-memory", "2"), "--controller-memory: expected a size such as 2GB, got '2'"),
        (("--time", "1"), "--time: 60 s leaves no time to run: 120 s (grace_s) are for saving"),
        (("--partition", "debug,shirt"), "--partition: unknown partition 'shirt'; did you mean 'short'?"),
        (("--partition", "debug,short", "--nodes", "3"), "--nodes: the partition 'debug' has 2, not 3"),
        (("--partition", "short", "--time", "UNLIMITED"), "--time: UNLIMITED is more than the 0.0333 h that"),
        (("--account", "phys ics"), "--account: expected a name without blanks or quotes, got 'phys ics'"),
        (("--elastic", "--nodes", "2"), "--elastic: every worker is a job of its own, and --max-jobs says how many"),
        (("--elastic", "--workers-per-node", "4"), "--elastic: every worker is a job of its own"),
        (("--max-jobs", "3"), "--max-jobs: this is for --elastic"),
        (("--cluster", "lsf"), "--cluster: submit knows slurm and pbs, not 'lsf'"),
        (("--cluster", "pbs"), "qstat was not found: this is not a login node of a PBS cluster"),
        (("--sbatch=--licenses=gold",), "sbatch: "),
        (("--sbatch=--wait",), "--sbatch, or sbatch in the site's file: '--wait' cannot be used, since nobody waits"),
        (
            ("--store", '/nowhere/a"b.zarr'),
            "'/nowhere/a\"b.zarr.run/slurm': SLURM takes no double quote, backslash or line",
        ),
        (("--store", "/nowhere/a\\b.zarr"), "'/nowhere/a\\\\b.zarr.run/slurm': SLURM takes no double quote"),
        (("--sbatch=licenses=gold",), "--sbatch: expected an option such as --constraint=skylake, got 'licenses=gold'"),
    ],
)
def test_what_slurm_would_refuse_is_one_sentence_and_leaves_nothing(slurm, options, sentence):
    Path("sweep.toml").write_text(SPEC)
    refused = command("submit", "sweep.toml", *options, code=2)
    assert (refused.stdout, len(refused.stderr.splitlines())) == ("", 1)
    assert refused.stderr.startswith(sentence)
    assert sorted(path.name for path in Path().iterdir()) == ["cluster.toml", "sweep.toml"]
    assert slurm.jobs() == {}


def test_submit_says_what_is_assumed_of_a_log(slurm):
    rows = "".join(f"{n} {10 * n} -1 30 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 21))
    Path("a.swf").write_text(f"; MaxNodes: 4\n; MaxProcs: 4\n{rows}")
    Path("s.toml").write_text(
        '[fixed]\nlog = "a.swf"\nmachine = "flat:4"\nestimates = "requested"\n[axes]\nscheduler = ["fcfs"]\n'
    )
    said = command("submit", "s.toml", "--dry-run").stderr
    assert said.count("assumed: a.swf: 20 of 20 jobs have no requested time") == 1


def test_a_submitted_sweep_has_its_store_where_run_would_put_it(slurm):
    """In the working directory, by the name of the sweep, also where the spec is in another folder."""
    Path("folder").mkdir()
    Path("folder/spec.toml").write_text('target = "failures"\n[fixed]\ndays = 1.0\n[axes]\nmtbf_h = [5.0]\n')
    there = Path("spec.zarr").resolve()
    for spec in ("folder/spec.toml", Path("folder/spec.toml").resolve()):
        told = json.loads(command("submit", spec, "--dry-run", "--json").stdout)
        assert told["store"] == str(there)
        assert f"--store {there}" in told["script"].replace("\\\n    ", "")
    command("run", "folder/spec.toml", "--workers", 1, "--quiet")
    assert there.is_dir()
    assert "nothing was submitted" in command("submit", "folder/spec.toml").stdout
    assert json.loads(command("status", "folder/spec.toml", "--json").stdout)["complete"]


def test_a_dry_run_prints_the_script_and_does_nothing(slurm):
    Path("sweep.toml").write_text(SPEC)
    options = ("--time", "1-00:00:00", "--account", "physics", "--memory-per-worker", "1GB")
    script = command("submit", "sweep.toml", "--dry-run", *options, '--sbatch=--comment="x y"').stdout
    for line in ("--time=1-00:00:00", "--account=physics", "--nodes=1", "--cpus-per-task=1", "--mem=1541M"):
        assert f"#SBATCH {line}\n" in script
    assert "#SBATCH --requeue\n" in script
    assert '#SBATCH --comment="x y"\n' in script
    assert "--memory-bytes 1000000000" in script
    several = ("--partition", "debug,short", "--time", "UNLIMITED", "--json")
    told = json.loads(command("submit", "sweep.toml", "--dry-run", *several).stdout)
    assert (told["job"], told["missing"], told["store"]) == (None, 4, str(Path("sweep.zarr").resolve()))
    assert "#SBATCH --partition=debug,short\n" in told["script"]
    assert "#SBATCH --time=UNLIMITED\n" in told["script"]
    assert sorted(path.name for path in Path().iterdir()) == ["cluster.toml", "sweep.toml"]
    assert slurm.jobs() == {}


@pytest.mark.slow
def test_workers_are_counted_by_the_cores_and_the_memory_of_each_node(slurm):
    """Hardware threads are no cores; of nodes of different kinds a job has the whole, and counts their workers."""
    Path("cluster.toml").write_text('interface = "lo"\n')
    Path("sweep.toml").write_text(SPEC)
    script = command("submit", "sweep.toml", "--dry-run", "--partition", "threads").stdout
    assert "#SBATCH --hint=nomultithread\n" in script
    assert "#SBATCH --cpus-per-task=6\n" in script
    script = command("submit", "sweep.toml", "--dry-run", "--partition", "threads", "--workers-per-node", 12).stdout
    assert "--hint" not in script
    assert "--hint" not in command("submit", "sweep.toml", "--dry-run").stdout
    job = submitted(4, options=("--partition", "mixed", "--nodes", 2, "--memory-per-worker", "4GB"))
    assert "workers: 1 on n1, 3 on n3" in log(job)
    wait("all workers", lambda: progress("workers") == 4)
    assert_finishes(job, slurm)


def test_flags_come_before_variables_of_sbatch_and_a_spec_may_have_any_name(slurm, monkeypatch):
    Path("site.toml").write_text(SPEC)
    monkeypatch.setenv("SBATCH_PARTITION", "short")
    monkeypatch.setenv("SBATCH_OUTPUT", "elsewhere")
    options = ("--partition", "debug", "--sbatch=--hold", "--json")
    job = json.loads(command("submit", "site.toml", *options).stdout)["job"]
    assert slurm.ask("squeue", "-h", "-j", job, "-o", "%P") == "debug"
    assert f"StdOut={Path.cwd()}/site.zarr.run/slurm/job-{job}.log" in slurm.ask("scontrol", "show", "job", job)
    assert Path("site.zarr.run/slurm/spec/site.toml").read_text() == SPEC


def test_a_job_that_waits_is_known_by_the_store_whatever_its_name(slurm):
    """Such as a link to a folder that is not there yet."""
    Path("sweep.toml").write_text(SPEC)
    Path("link").symlink_to("results/foo")
    Path("results").mkdir()
    options = ("--store", "link", "--sbatch=--hold", "--json")
    job = json.loads(command("submit", "sweep.toml", *options).stdout)["job"]
    for store in ("link", "results/foo"):
        assert (status(store)["state"], status(store)["job"]["name"]) == ("waiting", "faultsweep-sweep")
        assert f"by job {job}: pending: held by you" in command("logs", store, code=2).stderr
    assert json.loads(command("cancel", "results/foo", "--json").stdout)["cancelled"] is True
    assert slurm.state(int(job)) == "CANCELLED"
    assert f"by job {job}: cancelled\n" in command("logs", "link", code=2).stderr


@pytest.mark.slow
def test_status_answers_within_seconds_where_slurm_does_not(slurm):
    """Its controller is down; how long SLURM's commands would wait for it is of the site's settings."""
    Path("sweep.toml").write_text(SPEC)
    command("submit", "sweep.toml", "--sbatch=--hold")
    begin = time.monotonic()
    assert status("sweep.zarr")["state"] == "waiting"
    usual_s = time.monotonic() - begin
    with slurm.controller_away():
        begin = time.monotonic()
        assert status("sweep.zarr")["state"] == "unknown"
        assert time.monotonic() - begin < usual_s + 4


def test_a_job_that_could_not_start_says_why(slurm):
    Path("sweep.toml").write_text(SPEC)
    Path("cluster.toml").write_text('interface = "lo"\npython = "/nowhere/python"\n')
    job = json.loads(command("submit", "sweep.toml", "--json").stdout)["job"]
    wait("the end of the job", lambda: slurm.state(int(job)) in OVER)
    said = command("status", "sweep.zarr", code=4).stdout
    assert f"job {job}: failed\n" in said
    assert "/nowhere/python: No such file or directory" in said


def test_a_disk_that_is_full_when_a_sweep_is_submitted(slurm, small_disk):
    Path("sweep.toml").write_text(SPEC)
    with contextlib.suppress(OSError):
        (small_disk / "fill").write_bytes(bytes(2**22))
    refused = command("submit", "sweep.toml", "--store", small_disk / "s.zarr", code=2).stderr
    assert "cannot be written (No space left on device); nothing was submitted" in refused
    assert [path.name for path in small_disk.iterdir()] == ["fill"]


def test_no_job_is_left_that_nobody_knows(slurm):
    """The file that is to have its number cannot be written."""
    Path("sweep.toml").write_text(SPEC)
    Path("sweep.zarr.run/slurm/job.json.partial").mkdir(parents=True)
    refused = command("submit", "sweep.toml", "--sbatch=--hold", code=2).stderr
    assert "cannot be written (Is a directory); nothing was submitted" in refused
    wait("the end of the job", lambda: not slurm.jobs())


def kill(kind: str) -> None:
    """Kill one process of the job, without warning."""
    victim = wait(f"a process of {kind}", lambda: processes(kind))[0]
    victim.send_signal(signal.SIGKILL)
    psutil.wait_procs([victim], timeout=10)


@pytest.mark.slow
def test_kill_9_of_everything_once_in_one_job(slurm):
    job = submitted(1)
    for starts, kind in enumerate(("sweep", "scheduler"), start=2):
        kill(kind)
        wait(f"a start after {kind} was killed", lambda starts=starts: len(missing_at_starts()) == starts)
    for kind in ("worker", "nannies"):
        kill(kind)
    before = done()
    wait("more results", lambda: done() > before)
    assert_finishes(job, slurm)
    assert len(missing_at_starts()) == 3


@pytest.mark.sampled(0)
def test_a_job_that_was_cancelled_or_killed_is_resumed_by_another(slurm):
    job = submitted(5)
    assert f"job {job} was cancelled" in command("cancel", "s.zarr").stdout
    assert "cancelled: by scancel, faultsweep cancel or preemption" in log(job)
    kept = status()
    assert (kept["state"], kept["exit_code"]) == ("idle", 4)
    assert kept["status"]["done"] >= 5
    assert (kept["job"]["state"], kept["job"]["outcome"]) == ("CANCELLED", "cancelled")
    said = command("status", "s.zarr", code=4).stdout
    assert f"  job {job}: cancelled\n    by scancel, faultsweep cancel or preemption\n" in said
    assert log(job).splitlines()[-1].endswith("cancelled: by scancel, faultsweep cancel or preemption")
    assert "Killed" not in log(job)
    assert credentials() == []

    lock = Path("s.zarr.run/lock")
    job = submit()
    wait("a second start", lambda: len(missing_at_starts()) == 2 and progress("workers"))
    for process in [*processes("sweep"), *processes("allocation")]:
        process.kill()
    wait("the end of the job", lambda: slurm.state(int(job)) in OVER)
    owner = json.loads(lock.read_text())
    assert owner["batch_job"] == job
    assert credentials(), "a job that is killed cannot tidy up; the next one does"
    assert status()["state"] == "idle"
    # the two nodes are one host here; elsewhere the process number of the lock tells nothing, and its job tells
    lock.write_text(json.dumps({**owner, "host": "another"}))
    refuse_if_taken(Path("s.zarr"))
    lock.write_text(json.dumps({**owner, "host": "another", "batch_job": ""}))
    fresh = Path("s.zarr.run/lock.beat")
    fresh.write_text(json.dumps({**owner, "host": "another", "beats": 10**6}))
    beat = threading.Timer(1, fresh.replace, [lock])
    beat.start()
    with pytest.raises(InputError, match=f"process {owner['pid']} on another"):
        refuse_if_taken(Path("s.zarr"))
    lock.write_text(json.dumps(owner))

    assert_finishes(submit(), slurm)
    starts = missing_at_starts()
    assert len(starts) == 3
    assert starts[1] <= RUNS - kept["status"]["done"]


@pytest.mark.slow
def test_a_job_near_its_walltime_saves_requeues_itself_and_goes_on(slurm):
    job = submitted(5)
    for life in (1, 2):
        slurm.ask("scancel", "--batch", "--signal=USR1", job)  # what SLURM does 120 s before the walltime
        wait("the requeue", lambda: slurm.state(int(job)) == "PENDING")
        slurm.ask("scontrol", "hold", job)  # else it may start while it is looked at
        waiting = status()
        assert (waiting["state"], waiting["exit_code"], waiting["job"]["outcome"]) == ("waiting", 3, "requeued")
        assert waiting["status"]["done"] >= 5 * life
        assert credentials() == []
        if life == 1:
            assert ": held by " in command("status", "s.zarr", code=3).stdout
            sentence = f"job {job} (pending) runs this sweep already"
            assert sentence in finish(start("run", "s.zarr", gated()), 2)
            assert sentence in command("submit", PROGRAM, "--store", "s.zarr", code=2).stderr
        slurm.ask("scontrol", "release", job)
        wait("another start", lambda life=life: len(missing_at_starts()) == life + 1)
        wait("more results", lambda before=waiting["status"]["done"]: done() > before + 4)
        assert missing_at_starts()[life] <= RUNS - waiting["status"]["done"]
    assert_finishes(job, slurm)


@pytest.mark.slow
def test_a_job_near_its_walltime_waits_for_a_controller_that_is_away(slurm):
    job = submitted(5)
    with slurm.controller_away():
        processes("allocation")[0].send_signal(signal.SIGUSR1)
        wait("no answer", lambda: "SLURM's controller does not answer" in log(job))
    wait("another start", lambda: len(missing_at_starts()) == 2, 200)
    assert_finishes(job, slurm)


@pytest.mark.sampled(1)
def test_worker_jobs_are_replaced_and_leave_nothing(slurm, monkeypatch):
    """``run --cluster slurm``: a worker job that is cancelled is replaced, as are those of a run that was killed, and a
    stranger is refused.

    Jobs are found by their name, which a variable of ``sbatch`` must not change.
    """
    monkeypatch.setenv("SBATCH_JOB_NAME", "mine")
    monkeypatch.setenv("LOGNAME", "nobody")
    process = start("run", "s.zarr", gated(cluster="slurm"))
    wait("results", lambda: done() > 5 or process.poll() is not None)
    assert_closed_to_strangers(scheduler_of_worker_jobs())
    process.kill()
    assert len(credentials()) == 1
    assert stat.S_IMODE(Path("s.zarr.run/slurm").stat().st_mode) == 0o700
    before = set(slurm.jobs())
    process = start("run", "s.zarr", gated(cluster="slurm"))
    wait("two other jobs", lambda: len(set(slurm.jobs()) - before) == 2)
    wait("an end of the first ones", lambda: not before & set(slurm.jobs()))
    names = set(slurm.ask("squeue", "-h", "-o", "%j").split())
    assert all(name.startswith("faultsweep-worker-") for name in names)
    before = set(slurm.jobs())
    slurm.ask("scancel", str(min(before)))
    wait("a job in its place", lambda: set(slurm.jobs()) - before)
    open_gate()
    assert finish(process) is not None
    assert_complete(Path("s.zarr"))
    assert credentials() == []
    wait("an end of all worker jobs", lambda: not slurm.jobs())


def scheduler_of_worker_jobs():
    """Return the address of the scheduler that the worker jobs of this SLURM are told."""
    found = set()
    for process in psutil.process_iter(["cmdline", "environ"]):
        if (process.info["environ"] or {}).get("SLURM_CONF") == os.environ["SLURM_CONF"]:
            found |= {word for word in process.info["cmdline"] or () if word.startswith("tls://127.")}
    (address,) = found
    return address


@pytest.mark.slow
def test_worker_jobs_that_cannot_start_are_one_sentence(slurm):
    Path("cluster.toml").write_text('interface = "lo"\npython = "/nowhere/python"\nmax_jobs = 2\n')
    text = finish(start("run", "s.zarr", gated(cluster="slurm")), 130)
    assert "worker jobs end before they register" in text
    assert "/nowhere/python: No such file or directory" in text
    wait("an end of all worker jobs", lambda: not slurm.jobs())


@pytest.mark.slow
def test_an_elastic_job_whose_worker_jobs_cannot_start_ends_with_the_reason(slurm):
    Path("cluster.toml").write_text('interface = "lo"\nscratch = "/proc/nowhere"\nmax_jobs = 2\nmax_restarts = 0\n')
    job = submit("--elastic")
    wait("the end of the job", lambda: slurm.state(int(job)) in OVER)
    found = status()["job"]
    assert (found["state"], found["outcome"]) == ("FAILED", "failed")
    assert found["text"].startswith("worker jobs end before they register")
    wait("an end of all worker jobs", lambda: not slurm.jobs())


@pytest.mark.slow
def test_an_elastic_job_waits_for_a_controller_that_is_away(slurm):
    """It is away when the sweep starts, and submits worker jobs."""
    job = submit("--elastic")
    wait("the sweep", lambda: processes("sweep"))
    with slurm.controller_away():
        wait("a start", missing_at_starts)
        time.sleep(5)
    assert_finishes(job, slurm)
    assert len(missing_at_starts()) == 1
    wait("an end of all worker jobs", lambda: not slurm.jobs())


@pytest.mark.slow
def test_an_elastic_job_controls_worker_jobs_and_survives_a_kill(slurm):
    job = submitted(10, options=("--elastic", "--max-jobs", "2", "--dask-dashboard"))
    assert "ssh -N" in status()["job"]["dashboard"]
    kill("sweep")
    wait("a second start", lambda: len(missing_at_starts()) == 2)
    assert_finishes(job, slurm)
    wait("an end of all worker jobs", lambda: not slurm.jobs())
    assert list(Path("s.zarr.run/slurm").glob("tls-*")) == []


@pytest.mark.slow
def test_nodes_that_fail_or_are_drained(slurm):
    """A running job is left alone on a drained node; on a failed one it is requeued, and says what it waits for."""

    def node(state):
        slurm.ask("scontrol", "update", "NodeName=n2", f"State={state}", "Reason=test")

    job = submitted(5, options=("--nodes", 2))
    node("DRAIN")
    before = done()
    wait("more results", lambda: done() > before)
    node("RESUME")
    node("DOWN")
    wait("the requeue", lambda: slurm.state(int(job)) == "PENDING")
    node("RESUME")
    node("DRAIN")
    waiting = status()
    assert (waiting["state"], waiting["exit_code"]) == ("waiting", 3)
    assert f"job {job}: pending: " in wait("the reason in words", reason_to_wait)
    node("RESUME")
    wait("a second start", lambda: len(missing_at_starts()) == 2)
    assert missing_at_starts()[1] <= RUNS - waiting["status"]["done"]
    assert_finishes(job, slurm)


def reason_to_wait():
    """Return what status says of a job that waits for nodes, or nothing while it says something else."""
    text = command("status", "s.zarr", code=3).stdout
    return text if "drained or reserved" in text or "waiting for free nodes" in text else ""


@pytest.mark.slow
def test_a_slow_disk_that_fills_up_and_recovers(slurm, slow_disk):
    store = slow_disk.folder / "s.zarr"
    job = submitted(2, store=store)
    slow_disk.allow(100)
    first = wait("the sweep", lambda: processes("sweep"))[0]
    slow_disk.fill()
    wait("an end of the sweep", lambda: not first.is_running())
    wait("the phase", lambda: (status(store)["phase"] or {}).get("phase") == NO_SPACE)
    said = command("status", store, code=3).stdout
    assert "phase: waiting for disk space for " in said
    assert "the disk is full; the job resumes when there is room" in said
    slow_disk.make_room()
    wait("another start", lambda: processes("sweep"))
    assert slurm.state(int(job)) == "RUNNING"
    before = done(store)
    wait("more results", lambda: done(store) > before)
    slow_disk.allow(1000)
    assert_finishes(job, slurm, store)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_real_walltimes(slurm):
    """A job of one minute that is given 40 s to save: SLURM's own signal, twice."""
    Path("cluster.toml").write_text('interface = "lo"\nnodes = 1\nworkers_per_node = 1\ntime = "1"\ngrace_s = 40\n')
    job = submit()
    wait("two requeues", lambda: len(missing_at_starts()) >= 3, 500)
    assert_finishes(job, slurm)


def test_the_settings_that_init_writes_pass_the_check(slurm, monkeypatch):
    """Also where nothing but what ``setup`` exports reaches the nodes."""
    site = Path("made.toml")
    command("cluster", "init", "--site", site)
    assert 'partition = "debug"' in site.read_text()
    assert "# debug (default): 2 nodes of 4 processors and 8,000 MiB, no limit of time" in site.read_text()
    assert "is there already" in command("cluster", "init", "--site", site, code=2).stderr
    monkeypatch.setenv("SBATCH_EXPORT", "NONE")
    setup = [f"export {name}={os.environ[name]}" for name in ("PYTHONPATH", "SLURM_CONF", "PATH")]
    with site.open("a") as file:
        file.write(f"setup = {json.dumps(setup)}\n")
    told = command("cluster", "check", "--site", site, "--nodes", "2", "--interface", "lo").stdout
    assert "2 of 2 workers came" in told
    assert "sweeps will run" in told
    assert sorted(path.name for path in Path().iterdir()) == ["cluster.toml", "made.toml"]
    assert slurm.jobs() == {}


def test_a_check_says_what_does_not_work(slurm):
    Path("cluster.toml").write_text('python = "/nowhere/python"')
    told = command("cluster", "check", code=1).stdout
    assert "the job ended (failed) without an answer" in told
    assert slurm.jobs() == {}
    Path("cluster.toml").write_text('interface = "ib9"')
    told = command("cluster", "check", code=1).stdout
    assert "without an answer: the scheduler cannot start ('ib9' is not a valid network interface" in told
