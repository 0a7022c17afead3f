"""Sites from what schedulers print: classes, partitions, limits, and what is listed as not represented."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from faultsweep.analysis.pictures.sites import draw
from faultsweep.simcore.sites import pbs, slurm
from faultsweep.simcore.sites.facts import pairs, read_facts
from faultsweep.simcore.sites.limits import limits_of, submit_limits_of
from faultsweep.simcore.sites.not_simulated import not_simulated, pass_options, preempt_options
from faultsweep.simcore.sites.site import Backfill, read_site, site_text

from faultsweep.errors import InputError
from tests.cluster.sweeping import command

CONF = """\
ClusterName=small
PreemptType=preempt/qos
PreemptMode=REQUEUE
PreemptExemptTime=00:02:00
KillWait=30 sec
MessageTimeout=60 sec
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_window=1440,bf_max_job_test=500,\\
bf_continue,bf_max_time=10
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=50000
PriorityWeightTRES=CPU=1000,GRES/gpu=3000,License/matlab=5
PriorityMaxAge=7-0
PriorityDecayHalfLife=14-0
TopologyPlugin=topology/tree
Licenses=matlab:10,abaqus
NodeName=DEFAULT RealMemory=187000 Sockets=2 CoresPerSocket=16 Weight=60
NodeName=n[001-087] Feature=ib
NodeName=g[1-8] Gres=gpu:v100:4,craynetwork:2 Feature=ib,gpu ThreadsPerCore=2
PartitionName=DEFAULT DefaultTime=24:00:00 MaxTime=3-0
PartitionName=normal Nodes=n[001-087],g[1-8] Default=YES AllowAccounts=physics
PartitionName=gpu Nodes=g[1-8],x1 MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE PriorityTier=10 MaxNodes=4
"""
QOS = "Name|Priority|GraceTime|Preempt|MaxTRESPU|MaxJobsPU|MaxWall\n"
QOS += "normal|10|00:00:00|||4|1-00:00:00\nhigh|100|00:01:00|normal|cpu=64||\n"
ASSOC = "Cluster|Account|User|Share|GrpTRES\nsmall|physics||50|\nsmall|physics|ann|1|cpu=100\n"
RESERVATION = "ReservationName=fix StartTime=2026-07-01T08:00:00 EndTime=2026-07-01T20:00:00 "
RESERVATION += "Nodes=n[001-010] NodeCnt=10 Flags=MAINT,DAILY Users=root\n"


def build(tmp_path, *texts, **options):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(text)
    return slurm.build(read_facts(paths), **options)


def test_slurm_conf_and_what_sacctmgr_prints(tmp_path):
    site = build(tmp_path, CONF, QOS, ASSOC, RESERVATION, timezone="Europe/Berlin")
    nodes = {of_class.name: of_class for of_class in site.nodes}
    assert {name: (of.count, of.cores, of.threads, of.gpus) for name, of in nodes.items()} == {
        "n": (87, 32, 1, 0),
        "g": (8, 32, 2, 4),
    }
    assert (nodes["g"].gpu_type, nodes["g"].memory_mb, nodes["g"].features) == ("v100", 187000, ["gpu", "ib"])
    assert (site.num_nodes, site.num_cores) == (95, 3040)
    normal, gpu = site.partitions
    assert (normal.default, normal.nodes, normal.max_time_s, normal.default_time_s) == (
        True,
        {"n": 87, "g": 8},
        259200,
        86400,
    )
    assert (gpu.exclusive, gpu.max_time_s, gpu.priority_tier, gpu.max_nodes) == (True, None, 10, 4)
    assert [
        (qos.name, qos.priority, qos.preempts, qos.grace_s, qos.max_jobs_user, qos.max_wall_s) for qos in site.qos
    ] == [
        ("normal", 10, [], 0, 4, 86400),
        ("high", 100, ["normal"], 60, None, None),
    ]
    assert [(one.account, one.user, one.shares) for one in site.accounts] == [
        ("physics", "", 50),
        ("physics", "ann", 1),
    ]
    assert (site.backfill.interval_s, site.backfill.window_s, site.backfill.max_job_test) == (30, 86400, 500)
    weights = {"age": 1000, "fairshare": 50000, "tres_cpu": 1000, "tres_gpu": 3000}
    assert (site.priority.weights, site.priority.max_age_s) == (weights, 604800)
    assert "--priority-tres-weights cpu:1000,gpu:3000" in " ".join(not_simulated(site))
    assert (site.preempt_by, site.preempt_mode) == ("qos", "REQUEUE")
    options = "--preemption requeue --site-grace --preempt-exempt-s 120 --preempt-wait-s 90"
    assert " ".join(preempt_options(site)) == options
    assert {one.name: one.total for one in site.licences} == {"matlab": 10, "abaqus": 1}
    assert (site.reservations[0].users, site.reservations[0].accounts) == (["root"], [])
    assert (site.reservations[0].start_s, site.reservations[0].maintenance) == (1782885600.0, True)  # 06:00 UTC
    assert site.not_represented == [
        "node g1: generic resource craynetwork:2",
        "partition normal: AllowAccounts=physics",
        "partition gpu: 1 nodes that no file describes, such as x1",
        "QOS high: MaxTRESPU=cpu=64",
        "accounts: GrpTRES of 1 accounts and users",
        "reservation fix: DAILY",
        "PriorityWeightTRES of license/matlab",
        "SchedulerParameters: bf_max_time=10",
        "TopologyPlugin=topology/tree",
    ]


DUMPED = """\
Cluster - 'oracle':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'cs':MaxTRESPerJob=node=5:MaxTRESMinsPerJob=cpu=20:Fairshare=399:MaxWallDurationPerJob=40:GrpSubmitJobs=9
Parent - 'cs'
User - 'lee':MaxTRESPerJob=node=2:Fairshare=1:MaxSubmitJobs=2
"""


def test_limits_of_a_dump_and_draining_partitions_are_listed(tmp_path):
    conf = "NodeName=n[1-4] CPUs=16\nPartitionName=a Nodes=ALL State=DRAIN MaxMemPerNode=100 "
    conf += "MaxMemPerCPU=0 ReqResv=NO\n"
    site = build(tmp_path, conf, DUMPED)
    assert site.not_represented == [
        "partition a: MaxMemPerNode=100",
        "partition a: State=DRAIN (its waiting jobs may still start; the site has it as down)",
        "accounts: QOS of 1 accounts and users",
        "accounts: MaxTRES of 2 accounts and users",
        "accounts: MaxTRESMins of 1 accounts and users",
        "accounts: MaxWall of 1 accounts and users",
    ]
    assert not site.partitions[0].up
    submits = "limits of submitted jobs, unless asked for (--site-submit-limits): account cs, user lee of account cs"
    assert submits in not_simulated(site)
    assert [(row.group_submit, row.max_submit) for row in site.accounts] == [(None, None), (9, None), (None, 2)]


LIMITED = """\
NodeName=n[1-4] CPUs=16 ThreadsPerCore=2
PartitionName=normal Nodes=ALL QoS=part
"""
LIMITED_QOS = (
    "Name|Priority|GrpTRES|GrpJobs|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA|GrpSubmit|MaxSubmitPU|MaxSubmitPA\n"
)
LIMITED_QOS += "part|0|cpu=32,node=2|9|||cpu=24|5|20||10\nlong|0||-1|cpu=16|3||||7|\n"
LIMITED_ASSOC = "Cluster|Account|User|ParentName|Share|GrpJobs|GrpTRES|MaxJobs|MaxSubmit\n"
LIMITED_ASSOC += "small|physics||root|1|8|cpu=48|4|\nsmall|optics||physics|1||||\nsmall|physics|ann||1|||2|6\n"


def test_limits_of_running_jobs_are_read_from_sacctmgr(tmp_path):
    site = build(tmp_path, LIMITED, LIMITED_QOS, LIMITED_ASSOC)
    part, long = site.qos
    assert (part.max_jobs, part.max_cores, part.max_jobs_account, part.max_cores_account) == (9, 16, 5, 12)
    assert (long.max_jobs, long.max_jobs_user, long.max_cores_user) == (None, 3, 8)
    assert (part.max_submit, part.max_submit_account, long.max_submit, long.max_submit_user) == (20, 10, None, 7)
    assert [(row.max_jobs, row.group_jobs, row.group_cores) for row in site.accounts] == [
        (4, 8, 24),
        (None, None, None),
        (2, None, None),
    ]
    assert site.not_represented == ["QOS part: GrpTRES=node=2"]
    rules = {(rule.name, rule.each): (rule.most_jobs, rule.most_nodes) for rule in limits_of(site)}
    assert rules["user ann of account physics", ("user",)] == (2, math.inf)
    assert rules["account optics of a user", ("user",)] == (4, math.inf), "of the account above"
    assert rules["account physics", ()] == (math.inf, 24)
    submits = {(rule.name, rule.each): rule.most_jobs for rule in submit_limits_of(site)}
    assert submits == {
        ("QOS part", ()): 20,
        ("QOS part of an account", ("account",)): 10,
        ("QOS long of a user", ("user",)): 7,
        ("user ann of account physics", ("user",)): 6,
    }
    assert [line.partition(":")[0] for line in not_simulated(site)] == [
        "limits of running jobs, unless asked for (--site-limits)",
        "limits of submitted jobs, unless asked for (--site-submit-limits)",
        "the passes of SLURM, unless they are asked for",
    ]
    options = "--scheduler slurm --request-step-s 60 --requeue-hold-s 121 --start-delay-s 0.09"
    assert not_simulated(site)[-1].endswith(options)


def test_slurms_main_pass_looks_at_one_job_more_than_it_says():
    assert "--main-depth 101" in pass_options(Backfill(default_queue_depth=100))
    assert not any("main-depth" in option for option in pass_options(Backfill()))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("bf_interval=0", "SLURM takes 1 or more, up to 10800, and so uses its default, 30"),
        ("bf_interval=10801", "SLURM takes 1 or more, up to 10800, and so uses its default, 30"),
        ("bf_window=0", "SLURM takes 1 or more, up to 43200, and so uses its default, 1440"),
        ("bf_resolution=0", "SLURM takes 1 or more, up to 3600, and so uses its default, 60"),
        ("bf_max_job_test=0", "SLURM takes 1 or more, up to 1000000, and so uses its default, 500"),
        ("bf_max_job_user=-1", "SLURM takes 0 or more, and so uses its default, 0"),
        ("default_queue_depth=-1", "SLURM takes 0 or more, and so uses its default, 100"),
        ("sched_interval=-2", "SLURM takes 0 or more, and so uses its default, 60"),
    ],
)
def test_values_that_slurm_does_not_take_are_told_and_left_out(tmp_path, given, told):
    site = build(tmp_path, f"SchedulerParameters={given},bf_continue\nNodeName=n[1-4] CPUs=4\n")
    assert site.not_represented == [f"SchedulerParameters: {given} ({told})"]
    assert site.backfill == Backfill()
    valid = "bf_window=43200,bf_max_job_user=0,default_queue_depth=0,sched_interval=0,bf_interval=-1"
    site = build(tmp_path, f"SchedulerParameters={valid}\nNodeName=n[1-4] CPUs=4\n")
    assert site.not_represented == ["SchedulerParameters: bf_interval=-1"]
    assert site.backfill == Backfill(window_s=2_592_000, max_job_user=0, default_queue_depth=0, full_interval_s=0)


def test_a_site_that_suspends_has_no_times_of_preemption(tmp_path):
    site = build(tmp_path, CONF.replace("=REQUEUE", "=SUSPEND,GANG"), QOS)
    assert preempt_options(site) == ["--preemption suspend"]


@pytest.mark.parametrize(
    ("line", "found", "listed"),
    [
        ("max_run = [o:PBS_ALL=20],[u:PBS_GENERIC=10]", (20, 10, None, None), []),
        ("max_run = [u:ann=3]\nset queue q max_run += [u:PBS_GENERIC=1]", (None, 1, None, None), ["[u:ann=3]"]),
        ("max_run_res.ncpus = [o:PBS_ALL=64],[u:PBS_GENERIC=8]", (None, None, 64, 8), []),
        ("max_running = 5\nset queue q max_user_run = 2", (5, 2, None, None), []),
    ],
)
def test_limits_of_running_jobs_are_read_from_pbs(tmp_path, line, found, listed):
    path = tmp_path / "server.txt"
    path.write_text(f"create queue q\nset queue q queue_type = Execution\nset queue q {line}\n")
    site = pbs.build(read_facts([path]), nodes=2)
    part = site.partitions[0]
    limits = (part.max_run_jobs, part.max_user_run_jobs, part.max_run_cores, part.max_user_run_cores)
    assert limits == found
    assert [row.rpartition(" = ")[2] for row in site.not_represented] == listed


def test_a_site_is_the_same_after_writing_and_reading(tmp_path):
    site = build(tmp_path, CONF, QOS, ASSOC, RESERVATION)
    path = tmp_path / "site.toml"
    path.write_text(site_text(site))
    assert read_site(path) == site
    found = json.loads(command("site", "describe", path, "--json").stdout)
    assert (found["num_nodes"], found["num_cores"], len(found["partitions"])) == (95, 3040, 2)
    assert found["not_simulated"] == not_simulated(site)
    lines = command("site", "describe", path).stdout.splitlines()
    for line in not_simulated(site):
        assert f"  {line}" in lines, "one line, however long"
    draw(site, tmp_path / "site.png")
    assert (tmp_path / "site.png").stat().st_size > 10_000


def test_values_of_scontrol_may_have_blanks():
    line = "NodeName=n1 CPUTot=4 OS=Linux 6.1 #1 SMP RealMemory=8000"
    assert pairs(line) == {"nodename": "n1", "cputot": "4", "os": "Linux 6.1 #1 SMP", "realmemory": "8000"}


QMGR = """\
create queue workq
set queue workq queue_type = Execution
set queue workq Priority = 100
set queue workq resources_max.walltime = 24:00:00
set queue workq resources_max.nodect = 16
set queue workq max_run = [u:PBS_GENERIC=10]
set queue workq enabled = True
set queue workq started = True
create queue router
set queue router queue_type = Route
set server default_queue = workq
set server job_sort_formula = "100*queue_priority"
create node c1
set node c1 resources_available.ncpus = 64
set node c1 resources_available.mem = 256gb
create node c2
set node c2 resources_available.ncpus = 64
set node c2 resources_available.mem = 256gb
"""


def test_pbs_servers_and_nodes(tmp_path):
    path = tmp_path / "qmgr.txt"
    path.write_text(QMGR)
    site = pbs.build(read_facts([path]))
    assert [(of.name, of.count, of.cores, of.memory_mb) for of in site.nodes] == [("c", 2, 64, 262144)]
    queue = site.partitions[0]
    assert (queue.name, queue.default, queue.max_time_s, queue.max_nodes, queue.priority_factor) == (
        "workq",
        True,
        86400,
        16,
        100,
    )
    assert (queue.max_run_jobs, queue.max_user_run_jobs) == (None, 10)
    assert site.not_represented == [
        "queue router: a route queue",
        'server: job_sort_formula = "100*queue_priority"',
    ]
    path.write_text(QMGR.split("create node")[0])
    with pytest.raises(InputError, match="the files name no node"):
        pbs.build(read_facts([path]))


@pytest.mark.parametrize(
    ("depth", "config", "said"),
    [
        ("0", "strict_ordering: true\tALL", "its strict order, unless it is asked for: --scheduler fcfs"),
        ("4", "strict_ordering: True prime\nstrict_ordering: false non_prime", "--scheduler top-jobs --top-jobs 4"),
        ("", "strict_ordering : true all", "--scheduler top-jobs --top-jobs 1"),
        ("0", "strict_ordering: false ALL", "--scheduler top-jobs --top-jobs 0"),
        ("", "round_robin: False all", ""),
        ("", "fair_share: true all\nsmp_cluster: round_robin", "sched_config: fair_share"),
    ],
)
def test_strict_ordering_is_read_from_sched_config(tmp_path, depth, config, said):
    (tmp_path / "server.txt").write_text(QMGR + (f"set server backfill_depth = {depth}\n" if depth else ""))
    (tmp_path / "sched_config").write_text(f'# PBS\n{config}\njob_sort_key: "ncpus HIGH" ALL\n')
    site = pbs.build(read_facts([tmp_path / "server.txt", tmp_path / "sched_config"]))
    lines = [*not_simulated(site), *site.not_represented]
    assert any(said in line for line in lines) if said else not any("--scheduler" in line for line in lines)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("count = 87", "count = 0"), r"nodes\.0\.count: Input should be greater than or equal to 1"),
        (("cores = 32", "coers = 32"), r"nodes\.0\.(cores: Field required|coers: Extra)"),
        (('"n" = 87', '"n" = 99'), "partition normal has 99 nodes of n, of 87"),
        (('"n" = 87', '"m" = 87'), "partition normal has nodes of 'm', which is no class"),
        (("site, 1", "site, 9"), "format is 'faultsweep site, 9'"),
        (("[[nodes]]", "[[nodes"), "not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_site_is_said(tmp_path, change, sentence):
    path = tmp_path / "site.toml"
    path.write_text(site_text(build(tmp_path, CONF)).replace(*change))
    with pytest.raises(InputError, match=rf"site\.toml: {sentence}"):
        read_site(path)


RESERVED = "[[reservations]]\nname = {name!r}\nstart_s = 0\nend_s = {end}\n"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (RESERVED.format(name="a", end=9) + "nodes = 0", "reservations.0.nodes is 0 in reservation a .valid: 1 to 95"),
        (
            RESERVED.format(name="a", end=9) + "nodes = 96",
            "reservations.0.nodes is 96 in reservation a .valid: 1 to 95",
        ),
        (
            RESERVED.format(name="a", end=9) + RESERVED.format(name="b", end=9) + RESERVED.format(name="a", end=7),
            "reservations.0 and reservations.2 have the same name 'a' .valid: another name for each",
        ),
        (
            '[[qos]]\nname = "low"\n[[qos]]\nname = "high"\npreempts = ["low", "lwo"]',
            "qos.1.preempts names 'lwo', which is no QOS of the file .valid: low, high",
        ),
    ],
)
def test_reservations_and_qos_that_cannot_be_meant_are_refused(tmp_path, more, sentence):
    path = tmp_path / "site.toml"
    path.write_text(site_text(build(tmp_path, CONF)) + more)
    with pytest.raises(InputError, match=rf"site\.toml: {sentence}"):
        read_site(path)


@pytest.mark.parametrize("decides", ['hosts = "n[001-002]"', "classes = {n = 2}"])
def test_nodes_of_a_reservation_are_checked_where_they_decide(tmp_path, decides):
    path = tmp_path / "site.toml"
    path.write_text(f"{site_text(build(tmp_path, CONF))}{RESERVED.format(name='a', end=9)}nodes = 96\n{decides}\n")
    assert read_site(path).reservations[0].nodes == 96


def test_reservations_without_a_name_may_be_several(tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(site_text(build(tmp_path, CONF)) + RESERVED.format(name="", end=9) * 2 + "nodes = 95")
    assert [window.nodes for window in read_site(path).reservations] == [None, 95]


SPAN = "StartTime=2026-07-01T08:00:00 EndTime=2026-07-01T20:00:00"


@pytest.mark.parametrize(
    ("lines", "windows", "listed"),
    [
        (
            [f"lic {SPAN} Nodes=(null) NodeCnt=0 CoreCnt=0 Flags=ANY_NODES Licenses=matlab:5"],
            [],
            ["reservation lic: it has no nodes, only Licenses=matlab:5"],
        ),
        ([f"all {SPAN} Nodes=ALL NodeCnt=95"], [("all", None, "")], []),
        ([f"some {SPAN} Nodes=(null) NodeCnt=3"], [("some", 3, "")], []),
        (
            [f"many {SPAN} Nodes=(null) NodeCnt=96"],
            [],
            ["reservation many: NodeCnt=96, of the 95 nodes that the files describe"],
        ),
        (
            [f"cores {SPAN} Nodes=n[001-002] NodeCnt=2 CoreCnt=2 Flags=SPEC_NODES"],
            [("cores", None, "n[001-002]")],
            ["reservation cores: CoreCnt=2, single cores; here its nodes are reserved as a whole"],
        ),
        ([f"whole {SPAN} Nodes=n[001-002] NodeCnt=2 CoreCnt=64"], [("whole", None, "n[001-002]")], []),
        (
            [f"pull {SPAN} Nodes=n001 NodeCnt=1 Flags=MAGNETIC,PURGE_COMP=00:05:00"],
            [("pull", None, "n001")],
            ["reservation pull: MAGNETIC", "reservation pull: PURGE_COMP"],
        ),
        (
            [f"a {SPAN} Nodes=n001", f"a {SPAN} Nodes=n001", f"a {SPAN} Nodes=n002", f"a {SPAN} Nodes=n003"],
            [("a", None, "n001"), ("a-2", None, "n002"), ("a-3", None, "n003")],
            [
                "reservation a: there more than once; another one is a-2, which no job asks for",
                "reservation a: there more than once; another one is a-3, which no job asks for",
            ],
        ),
        (
            ["back StartTime=2026-07-01T08:00:00 EndTime=2026-07-01T08:00:00 Nodes=n001"],
            [],
            ["reservation back: its EndTime is not after its StartTime"],
        ),
        (
            [f"gone {SPAN} Nodes=z[1-3] NodeCnt=3", f"part {SPAN} Nodes=n[001-002],z1 NodeCnt=3"],
            [("part", None, "n[001-002]")],
            [
                "reservation gone: no file describes 3 of its 3 nodes, such as z1",
                "reservation part: no file describes 1 of its 3 nodes, such as z1",
            ],
        ),
        (
            [
                f"lines {SPAN}\n   Nodes=n001 NodeCnt=1 CoreCnt=32\n   Users=ann Accounts=(null)\n",
                f"b {SPAN} NodeCnt=2",
            ],
            [("lines", None, "n001"), ("b", 2, "")],
            [],
        ),
    ],
)
def test_reservations_are_those_of_nodes(tmp_path, lines, windows, listed):
    site = build(tmp_path, CONF, "".join(f"ReservationName={line}\n" for line in lines))
    assert [(window.name, window.nodes, window.hosts) for window in site.reservations] == windows
    assert [line for line in site.not_represented if line.startswith("reservation")] == listed


def test_a_reservation_without_a_word_on_its_nodes_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"reservation a: it has neither Nodes nor NodeCnt .*show reservation -o"):
        build(tmp_path, CONF, f"ReservationName=a {SPAN}\n")


def test_qos_that_no_file_describes_are_not_preempted(tmp_path):
    site = build(tmp_path, CONF, QOS.replace("normal|cpu", "normal,gone|cpu"))
    assert site.qos[1].preempts == ["normal"]
    assert "QOS high: Preempt=gone, which no file describes" in site.not_represented


def test_damaged_files_are_a_sentence_or_a_site(tmp_path):
    path, sites = tmp_path / "damaged.txt", 0
    for seed in range(200):
        draw_ = random.Random(seed)
        text = CONF + QOS + ASSOC + RESERVATION
        for _ in range(draw_.randint(1, 6)):
            at = draw_.randrange(len(text))
            text = (
                text[:at]
                + draw_.choice(["", "=", "|", "[", "x", "9" * 20, "\n", ":", "-"])
                + text[at + draw_.randrange(6) :]
            )
        path.write_text(text)
        try:
            site = slurm.build(read_facts([path]))
        except InputError:
            continue
        sites += 1
        (tmp_path / "again.toml").write_text(site_text(site))
        assert read_site(tmp_path / "again.toml") == site
    assert sites > 50


@pytest.mark.shared
def test_a_real_university_cluster():
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "accounting"
    if not folder.is_dir():
        pytest.skip("the recorded sites of ../shared/data are not here")
    site = slurm.build(read_facts([folder / "ub-medium" / "slurm.conf", folder / "ub-medium" / "sacctmgr.script"]))
    assert (site.num_nodes, site.num_cores, len(site.qos)) == (217, 7968, 5)
    recorded = folder / "recorded-slurm" / "runA"
    printed = [recorded / name for name in ("config.txt", "partition.txt", "node.txt", "qos.psv", "assoc.psv")]
    site = slurm.build(read_facts(printed))
    assert [(of.count, of.cores, of.gpus) for of in site.nodes] == [(12, 4, 0), (4, 4, 2)]
    assert (site.priority.weights["qos"], site.backfill.interval_s) == (5000, 2)
    dumped = slurm.build(read_facts([recorded / "slurm.conf", recorded / "sacctmgr.cfg"]))
    assert len(dumped.accounts) >= 9
    assert dumped.num_cores == site.num_cores


def test_a_recorded_slurm():
    folder = Path(__file__).with_name("workloads") / "dumps" / "slurm"
    names = ("config.txt", "partition.txt", "node.txt", "reservation.txt", "qos.psv", "assoc.psv", "license.txt")
    site = slurm.build(read_facts([folder / f"{name}.gz" for name in names]))
    assert [(of.count, of.cores, of.gpus, of.gpu_type) for of in site.nodes] == [(4, 4, 0, ""), (2, 4, 2, "a100")]
    assert [(part.name, sum(part.nodes.values()), part.exclusive) for part in site.partitions] == [
        ("batch", 4, False),
        ("gpu", 2, False),
        ("long", 6, True),
    ]
    high = next(qos for qos in site.qos if qos.name == "high")
    assert (high.priority, high.preempts, high.max_jobs_user) == (100, ["low"], 4)
    assert (site.backfill.interval_s, site.backfill.max_job_user) == (2, 20)
    assert site.reservations[0].name == "course"
    assert (site.reservations[0].users, site.reservations[0].accounts) == (["root"], ["astro"])
    assert site.licences[0].total == 4
