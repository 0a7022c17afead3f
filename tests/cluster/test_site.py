"""Settings of a site, times and sizes as SLURM writes them, and what SLURM says in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faultsweep.cluster.site import parse_memory, read_site, to_toml
from faultsweep.cluster.slurm import describe_refusal, explain, is_over, parse_time
from faultsweep.simcore.errors import InputError

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


def test_a_file_that_is_named_must_be_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_site(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("1:30", 90), ("2:00:00", 7200), ("1-2", 93_600), ("1-2:30", 95_400), ("1-0:0:5", 86_405)],
)
def test_times_are_those_of_slurm(text, seconds):
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "0", "1-", "-5", "1:2:3:4"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError, match="--time: expected"):
        parse_time(text)


def test_sizes():
    assert [parse_memory(text) for text in ("2GB", "1.5 G", "1GiB", "800M")] == [
        2_000_000_000,
        1_500_000_000,
        2**30,
        800_000_000,
    ]


def test_refusals_name_the_option():
    text = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"
    assert describe_refusal(text, None, "batch", None).startswith("--account: SLURM wants one in the partition 'batch'")
    assert describe_refusal("Invalid qos specification", "a", None, "fast") == "--qos: SLURM does not accept 'fast'"


def test_reasons_are_explained():
    assert explain("Resources") == "waiting for free nodes (Resources)"
    assert explain("SomethingNew") == "SomethingNew"


def test_a_job_that_the_site_ended_is_over_and_one_that_waits_is_not():
    states = ("PREEMPTED", "REVOKED", "NODE_FAIL", "", "PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED")
    assert [is_over(state) for state in states] == 4 * [True] + 5 * [False]
