"""Settings of a site, times and sizes as SLURM writes them, and what SLURM says in words."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest
from faultsweep.cluster.allocation import _most_workers
from faultsweep.cluster.batch_systems import common, slurm
from faultsweep.cluster.batch_systems.common import is_over
from faultsweep.cluster.batch_systems.slurm import describe_refusal, explain, parse_time, refuse_options
from faultsweep.cluster.elastic import _options
from faultsweep.cluster.probe import site_text
from faultsweep.cluster.script import Work, batch_script
from faultsweep.cluster.site import Site, parse_memory, read_site, to_toml
from faultsweep.cluster.submit import plan_job, submit_job

from faultsweep.errors import InputError, UnreachableError

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "slurm.md"


@pytest.fixture
def site(tmp_path):
    def of(text):
        (tmp_path / "cluster.toml").write_text(text)
        return tmp_path / "cluster.toml"

    return of


def test_the_documented_file_is_valid_and_survives_a_round_trip(site):
    text = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    settings = read_site(site(text[1]))
    assert (settings.nodes, settings.workers_per_node, settings.setup) == ("2", 16, ("module load gcc",))
    assert read_site(site(to_toml(settings))) == settings


def test_flags_come_before_the_file(site):
    assert read_site(site('partition = "a"\nnodes = 3'), partition="b", account=None).partition == "b"


def test_all_mistakes_are_told_at_once(site):
    with pytest.raises(InputError) as caught:
        read_site(site('partion = "a"\nworkers_per_node = 0\nnodes = "x"'))
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert any("unknown key 'partion'; did you mean 'partition'?" in line for line in lines)


@pytest.mark.parametrize(
    "text", ['time = "soon"', 'sbatch = ["constraint=x"]', 'memory_per_worker = "2"', 'memory_per_worker = "big"', "x"]
)
def test_a_wrong_value_names_the_file(site, text):
    with pytest.raises(InputError, match=r"cluster\.toml"):
        read_site(site(text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('sbatch = "--exclusive"', "sbatch: expected a list such as [\"--constraint=skylake\"], got '--exclusive'"),
        ('setup = "x"', """setup: expected a list such as ["module load gcc"], got 'x'"""),
        ("time = 720", "time: expected text in quotes, got 720"),
        ("grace_s = 100_000", "grace_s: expected less than or equal to 65535, got 100000"),
        ('account = "phys ics"', "account: expected a name without blanks or quotes, got 'phys ics'"),
        ('workers_per_node = "x"', "workers_per_node: expected a valid integer, got 'x'"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_valid(site, text, sentence):
    path = site(text)
    with pytest.raises(InputError) as caught:
        read_site(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_site(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("1:30", 90),
        ("2:00:00", 7200),
        ("1-2", 93_600),
        ("1-2:30", 95_400),
        ("1-0:0:5", 86_405),
        ("unlimited", math.inf),
    ],
)
def test_times_are_those_of_slurm(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "0", "1-", "-5", "1:2:3:4"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError, match="--time: expected"):
        parse_time(text)


def test_worker_jobs_without_a_walltime_live_for_ever(tmp_path):
    assert "--lifetime" in _options(Site(time="60"), tmp_path)[1]["worker_extra_args"]
    assert "--lifetime" not in _options(Site(time="UNLIMITED"), tmp_path)[1]["worker_extra_args"]


def test_a_script_says_where_its_workers_are(tmp_path):
    work = Work("s", tmp_path, tmp_path / "progress.json", ("s.py",))
    whole, small = (batch_script(Site(), work, workers) for workers in (4, 0))
    assert "\n# Scheduler, workers and sweep in one job." in whole
    assert "\n# Scheduler and sweep, whose workers are other jobs." in small
    assert "which knows the job then, and none of 'sbatch'" in whole


def test_sizes():
    assert [parse_memory(text) for text in ("2GB", "1.5 G", "1GiB", "800M")] == [
        2_000_000_000,
        1_500_000_000,
        2**30,
        800_000_000,
    ]


def test_refusals_name_the_option():
    text = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
    assert describe_refusal(text, Site(partition="batch")).startswith(
        "--account: SLURM wants one in the partition 'batch'"
    )
    assert (
        describe_refusal("Invalid qos specification", Site(account="a", qos="fast"))
        == "--qos: SLURM does not accept 'fast'"
    )


def test_reasons_are_explained():
    assert explain("Resources") == "waiting for free nodes (Resources)"
    assert explain("SomethingNew") == "SomethingNew"


def test_a_job_that_the_site_ended_is_over_and_one_that_waits_is_not():
    states = ("PREEMPTED", "REVOKED", "NODE_FAIL", "", "PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")
    assert [is_over(state) for state in states] == 4 * [True] + 5 * [False]


@pytest.mark.parametrize(
    "option", ["--wait", "-W", "--hold --arr=0-1", "-a0-1", "--test-only", "--wrap=x", "--output x", "-Jx", "--help"]
)
def test_options_of_sbatch_that_do_not_go_with_the_jobs_here(option):
    with pytest.raises(InputError, match=r"^--sbatch, or sbatch in the site's file: '-.*' cannot be used, since "):
        refuse_options([option])


def test_other_options_of_sbatch_are_left_to_slurm():
    refuse_options(["--wait-all-nodes=1", "-N 2", "--hold", '--comment="a --wait b"', "--export=NONE", "-C fast"])
    with pytest.raises(InputError, match="a quote is not closed"):
        refuse_options(['--comment="a'])


def test_a_job_that_slurm_may_have_taken_keeps_its_folder(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(common, "TIMEOUT_S", 0.3)
    with pytest.raises(UnreachableError, match=r"sbatch has not answered for 0\.3 s; .* 'squeue --me' shows it"):
        submit_job(Site(), "script", 1, tmp_path / "slurm", {})
    assert (tmp_path / "slurm" / "job.sh").read_text() == "script"


NODES = {
    "scontrol": "n1\nn2\nn3\n",
    "sinfo": "n1|4|1|8000\nn2|4|1|8000\nn3|16|2|32000\n",
}


@pytest.mark.parametrize(
    ("environment", "cores", "memory"),
    [
        ({"SLURM_JOB_CPUS_PER_NODE": "4(x2),16"}, [4, 4, 8], [8000, 8000, 32_000]),
        ({"SLURM_JOB_CPUS_PER_NODE": "2,4,1", "SLURM_MEM_PER_NODE": "3000"}, [2, 4, 1], [3000] * 3),
        ({"SLURM_JOB_CPUS_PER_NODE": "4(x2),8", "SLURM_THREADS_PER_CORE": "1"}, [4, 4, 8], [8000, 8000, 32_000]),
        ({"SLURM_JOB_CPUS_PER_NODE": "8,3(x2)", "SLURM_THREADS_PER_CORE": "1"}, [4, 3, 3], [8000, 8000, 32_000]),
    ],
)
def test_nodes_of_a_job(monkeypatch, environment, cores, memory):
    for name in ("SLURM_JOB_CPUS_PER_NODE", "SLURM_MEM_PER_NODE", "SLURM_THREADS_PER_CORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(slurm, "call", lambda command, *words, **_: NODES[command])
    nodes = slurm.nodes_of_job()
    assert [node.name for node in nodes] == ["n1", "n2", "n3"]
    assert [node.cores for node in nodes] == cores
    assert [node.memory_mb for node in nodes] == memory


def test_workers_of_a_node_are_bounded_by_its_memory():
    node = common.Node("n1", 8, 8000)
    assert _most_workers(node, 0, 0) == 8
    assert _most_workers(node, 2 * 10**9, 10**9) == 6
    assert _most_workers(node, 2 * 10**9, 10**10) == 1
    assert _most_workers(common.Node("n1", 8, 0), 2 * 10**9, 10**9) == 8


def test_a_partition_of_different_nodes_counts_as_its_smallest(monkeypatch):
    lines = "long*|up|1-00:00:00|3|4|8000|1\nlong*|up|1-00:00:00|2|16|32000|2\n"
    monkeypatch.setattr(slurm, "call", lambda *words, **_: lines)
    assert slurm.partitions() == {"long": common.Partition("long", True, True, 86_400.0, 5, 4, 8000, 4, True)}


def test_every_line_that_init_writes_is_toml(monkeypatch):
    one = common.Partition("debug", True, True, 3600.0, 2, 4, 8000, 4)
    monkeypatch.setattr(slurm, "partitions", lambda: {"debug": one})
    text = re.sub(r"^# (\w+ = )", r"\1", site_text("slurm"), flags=re.M)
    settings = tomllib.loads(text)
    assert set(settings) == set(Site.model_fields)
    assert Site(**settings).max_requeues == 100


def test_elastic_jobs_need_dask_jobqueue(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    work = Work("s", tmp_path, tmp_path / "progress.json", ("-c", ""))
    with pytest.raises(InputError, match=r"--elastic needs dask-jobqueue, .*pip install 'faultsweep\[slurm\]'"):
        plan_job(Site(), work, elastic=True)
