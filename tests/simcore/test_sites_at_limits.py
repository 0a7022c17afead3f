"""Numbers at their limits in a site's file and in what schedulers print: a site that runs, or one sentence."""

import re

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.sites import pbs, slurm
from faultsweep.simcore.sites.facts import read_facts
from faultsweep.simcore.sites.site import read_site, site_of_text, site_text

from faultsweep.errors import InputError

VALUES = (
    *("0", "-1", "3.7", "1e20", "99999999999999999999", "-99999999999999999999", "9223372036854775807", "nan", "inf"),
    *("", "INFINITE", "UNLIMITED", "4294967294", "99999-00:00:00", "999999999:00", "0x10", "１２", "99999999999999T"),
)
SLURM = """\
ClusterName=big
PriorityType=priority/multifactor
PriorityWeightAge=100
PriorityMaxAge=7-00:00:00
PriorityDecayHalfLife=7-00:00:00
SchedulerParameters=bf_interval=30,bf_window=1440,default_queue_depth=100
KillWait=30 sec
Licenses=matlab:5
NodeName=n[1-87] Sockets=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=192000 Weight=10 Gres=gpu:4
PartitionName=normal Nodes=n[1-87] MaxTime=2-00:00:00 DefaultTime=60 MinNodes=1 MaxNodes=16 PriorityTier=1
ReservationName=fix StartTime=2026-07-01T08:00:00 EndTime=2026-07-01T20:00:00 Nodes=n[1-2] CoreCnt=64 Users=ann
"""
QOS = "Name|Priority|GraceTime|MaxTRESPU|MaxJobsPU|MaxWall|UsageFactor\nlong|50|60|cpu=64|10|7-00:00:00|1.000000\n"
ASSOC = "Cluster|Account|User|Share|GrpTRES|GrpJobs|Priority\nbig|physics|ann|1|cpu=100|7|3\n"
QMGR = """\
create queue workq
set queue workq queue_type = Execution
set queue workq Priority = 100
set queue workq resources_max.walltime = 24:00:00
set queue workq resources_min.nodect = 1
set queue workq resources_max.nodect = 64
set queue workq max_running = 20
create node c1
set node c1 resources_available.ncpus = 64
set node c1 resources_available.ngpus = 4
set node c1 resources_available.mem = 256gb
set server backfill_depth = 5
"""
NUMBER = re.compile(r"(?<![\w-])[0-9][0-9:.-]*")
SITE = """\
format = "faultsweep site, 1"
nodes = [{{name = "n", count = 4, cores = 8, {node}}}]
partitions = [{{name = "all", nodes = {{n = 4}}, {partition}}}]
{more}
"""


def _with_each_number(texts, value):
    """Yield the texts with one of their numbers after the other replaced."""
    for place, text in enumerate(texts):
        for found in NUMBER.finditer(text):
            yield [*texts[:place], text[: found.start()] + value + text[found.end() :], *texts[place + 1 :]]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("build", "texts"), [(slurm.build, [SLURM, QOS, ASSOC]), (pbs.build, [QMGR])])
def test_what_a_scheduler_prints_is_a_site_or_a_sentence(tmp_path, build, texts, value):
    sites, sentences = 0, []
    for changed in _with_each_number(texts, value):
        paths = [tmp_path / f"{place}.txt" for place in range(len(changed))]
        for path, text in zip(paths, changed, strict=True):
            path.write_text(text)
        try:
            site = build(read_facts(paths))
        except InputError as error:
            sentences.append(str(error))
        else:
            assert site_of_text(site_text(site), "again.toml") == site, "what is written can be read"
            sites += 1
    assert sites, "no value is a problem everywhere"
    assert not [sentence for sentence in sentences if "\n" in sentence or "validation error" in sentence]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("ThreadsPerCore=2", "ThreadsPerCore=-2"), r"nodes n.*87.*: threads: Input should be .* equal to 1, not -2"),
        (("Gres=gpu:4", "Gres=gpu:9999999999"), r"nodes n.*87.*: gpus: Input should be .* 1048576, not 9999999999"),
        (
            ("CoresPerSocket=16", "CoresPerSocket=16000000"),
            r"the files: 87 nodes with .* cores are too many",
        ),
        (("MaxTime=2-00:00:00", "MaxTime=soon"), r"MaxTime is 'soon', not a duration .valid: minutes, or days"),
        (("matlab:5", "matlab:99999999999999999999"), r"licence matlab: total: Input should be less than or equal to"),
    ],
)
def test_what_is_wrong_in_what_slurm_prints_is_said(tmp_path, change, sentence):
    path = tmp_path / "slurm.conf"
    path.write_text(SLURM.replace(*change))
    with pytest.raises(InputError, match=sentence):
        slurm.build(read_facts([path]))


@pytest.mark.parametrize(
    ("where", "given", "sentence"),
    [
        ("node", "gpus = 9223372036854775808", r"nodes\.0\.gpus: .* equal to 1048576, not 9223372036854775808"),
        ("node", "memory_mb = 9223372036854775807", r"nodes\.0\.memory_mb: .* less than or equal to 68719476736"),
        ("node", "weight = -99999999999999999999", r"nodes\.0\.weight: .* greater than or equal to -9007199254740992"),
        ("node", "mtbf_h = nan", r"nodes\.0\.mtbf_h: .* greater than 0, not nan"),
        ("partition", "max_time_s = nan", r"partitions\.0\.max_time_s: .* finite number, not nan"),
        ("partition", "default_time_s = -1", r"partitions\.0\.default_time_s: .* greater than or equal to 0, not -1"),
        ("partition", "max_nodes = -1", r"partitions\.0\.max_nodes: .* greater than or equal to 0, not -1"),
        ("partition", "priority_tier = 99999999999999999999", r"partitions\.0\.priority_tier: .* 9007199254740992"),
        ("more", "[priority]\nhalf_life_s = inf", r"priority\.half_life_s: .* finite number, not inf"),
        ("more", "[priority]\nweights = {age = nan}", r"priority\.weights\.age: .* finite number, not nan"),
        ("more", "[backfill]\nwindow_s = -60", r"backfill\.window_s: .* greater than or equal to 0, not -60"),
        ("more", "[backfill]\nmax_job_test = -1", r"backfill\.max_job_test: .* greater than or equal to 0, not -1"),
    ],
)
def test_numbers_of_a_site_have_limits(tmp_path, where, given, sentence):
    path = tmp_path / "site.toml"
    path.write_text(SITE.format(**{"node": "gpus = 0", "partition": "up = true", "more": "", where: given}))
    with pytest.raises(InputError, match=rf"site\.toml: {sentence}"):
        read_site(path)


@pytest.mark.parametrize(("count", "cores"), [(1_000_001, 1), (1, 100_000_001), (10**12, 10**12)])
def test_a_site_that_is_too_large_is_refused(tmp_path, count, cores):
    path = tmp_path / "site.toml"
    path.write_text(f'format = "faultsweep site, 1"\nnodes = [{{name = "n", count = {count}, cores = {cores}}}]\n')
    with pytest.raises(InputError, match=r"cores are too many .valid: up to 1,000,000 nodes and 100,000,000 cores"):
        read_site(path)


@pytest.mark.parametrize("scheduler", ["backfill", "conservative", "top-jobs", "slurm"])
@pytest.mark.parametrize(("count", "cores"), [pytest.param(20_000, 48, marks=pytest.mark.compiled), (2, 50_000_000)])
def test_the_largest_sites_run(tmp_path, scheduler, count, cores):
    path = tmp_path / "site.toml"
    path.write_text(f'format = "faultsweep site, 1"\nnodes = [{{name = "n", count = {count}, cores = {cores}}}]\n')
    most = count * cores // 2 + 1
    size = np.array([most, most, 1])
    run_s = np.array([100.0, 100.0, 50.0])
    jobs = Workload(np.arange(3), np.zeros(3), run_s, run_s, size, np.full(3, -1))
    first, second, third = simulate(jobs, machine=str(path), scheduler=scheduler, debug=count < 10).jobs["start_s"]
    assert first < 100.0 <= second, "two of more than half of the machine run one after the other"
    assert third < 100.0, "there is room beside the first"
