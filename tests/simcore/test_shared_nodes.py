"""Sites of shared nodes: what a user gives, what comes out, and what is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.site_checks import SiteChecker
from faultsweep.simcore.engine.state import RUNNING
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.workload import Demand, Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.sites.hosts import hosts_text
from faultsweep.simcore.workloads.accounting.records import JobRecords, to_text, to_workload
from faultsweep.simcore.workloads.accounting.units import expand_hosts

from faultsweep.errors import InputError, InvariantError

SITE = """
format = "faultsweep site, 1"
[[nodes]]
name = "thin"
count = 2
cores = 4
memory_mb = 1000
[[nodes]]
name = "gpu"
count = 1
cores = 8
gpus = 2
[[partitions]]
name = "batch"
nodes = {thin = 2, gpu = 1}
default = true
[[partitions]]
name = "gpu"
nodes = {gpu = 1}
exclusive = true
"""


@pytest.fixture
def site(tmp_path) -> str:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return str(path)


def jobs(*rows) -> Workload:
    """Rows (submit, run, chunks, cores, GPUs, memory, partition)."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    none, count = np.zeros(len(rows), np.int64), len(rows)
    names = tuple(dict.fromkeys(row[6] for row in rows))
    demand = Demand(*columns[2:6], none, none, np.array([names.index(row[6]) for row in rows]), names)
    times = [column.astype(float) for column in columns[:2]]
    size = columns[2] * columns[3]
    return Workload(np.arange(1, count + 1), *times, np.full(count, np.nan), size, none - 1, demand=demand, name="case")


def test_jobs_share_nodes_by_cores_memory_and_gpus(site):
    workload = jobs(
        (0, 10, 1, 2, 0, 600, "batch"),  # two of these share no thin node: 1,200 MiB
        (0, 10, 1, 2, 0, 600, "batch"),
        (0, 10, 1, 2, 0, 0, "batch"),  # beside the first
        (0, 10, 1, 1, 1, 0, "batch"),
        (0, 10, 1, 1, 1, 0, "batch"),
        (0, 10, 1, 1, 1, 0, "batch"),  # there are two GPUs
    )
    run = simulate(workload, machine=site, scheduler="fcfs", events=True, debug=True)
    nodes = {job: tuple(nodes) for _, kind, job, _, nodes in run.events.rows() if kind == "start"}
    assert nodes == {1: (0,), 2: (1,), 3: (0,), 4: (2,), 5: (2,), 6: (2,)}
    assert run.jobs["start_s"].tolist() == [0, 0, 0, 0, 0, 10]


def test_a_partition_without_sharing_takes_whole_nodes(site):
    run = simulate(jobs((0, 10, 1, 1, 0, 0, "gpu"), (0, 10, 1, 8, 0, 0, "batch")), machine=site, debug=True)
    assert run.jobs["start_s"].tolist() == [0, 10]
    assert run.jobs["size"].tolist() == [8, 8]
    assert run.metrics["lost_to_growth"] == pytest.approx(70 / (20 * 16))


def test_a_failure_kills_all_jobs_on_its_node(site):
    workload = jobs(*((0, 10, 1, 2, 0, 0, "batch") for _ in range(4)))
    failures = FailureTrace(np.array([4.0]), np.array([0]), np.array([3.0]))
    run = simulate(workload, machine=site, failures=failures, debug=True)
    assert run.jobs["restarts"].tolist() == [1, 1, 0, 0]
    assert run.metrics["failures_that_hit"] == 1
    assert run.metrics["lost_to_down_time"] == pytest.approx(4 * 3 / (14 * 16))
    assert run.jobs["work_lost_node_s"].tolist() == [8, 8, 0, 0]


def test_jobs_of_a_log_take_their_processors_as_cores(site):
    none = np.full(2, -1)
    workload = Workload(np.arange(1, 3), np.zeros(2), np.full(2, 5.0), np.full(2, np.nan), np.array([16, 1]), none)
    assert simulate(workload, machine=site).jobs["start_s"].tolist() == [0, 5]
    with pytest.raises(InputError, match="job 1 needs 17 nodes and the machine has 16"):
        simulate(replace(workload, size=np.array([17, 1])), machine=site)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ((0, 1, 1, 1, 0, 0, "debug"), r"job 1 is of a partition that .* does not have \(it has: batch, gpu; size_map"),
        ((0, 1, 2, 8, 0, 0, "batch"), "job 1 needs 2 x 8 cores, which all nodes of partition batch do not hold"),
        ((0, 1, 1, 1, 3, 0, "gpu"), "job 1 needs 1 x 1 cores, 3 GPUs, which all nodes of partition gpu"),
    ],
)
def test_a_job_that_fits_no_idle_site_is_named_or_left_out(site, row, sentence):
    workload = jobs(row, (0, 1, 1, 1, 0, 0, "batch"))
    with pytest.raises(InputError, match=sentence):
        simulate(workload, machine=site)
    run = simulate(workload, machine=site, size_map="drop")
    assert run.jobs["job_id"].tolist() == [2]
    assert sum(run.dropped.values()) == 1


@pytest.mark.parametrize(
    ("rows", "node_choice", "starts", "last"),
    [
        (  # the last node that is free at 0 s is reserved from 5 s on, and node 0 is there from 2 s on
            ((100, 1, 4, 0, 0), (5, 1, 4, 0, 0), (5, 1, 8, 0, 0), (20, 2, 8, 0, 0), (10, 1, 4, 0, 0)),
            "first-fit",
            [0, 0, 0, 5, 2],
            (0,),
        ),
        (  # from 3 s on, node 2 has fewer cores and more GPUs than before
            ((3, 1, 3, 1, 0), (50, 1, 6, 0, 0), (20, 1, 6, 0, 0), (10, 2, 1, 1, 0)),
            "first-fit",
            [0, 0, 3, 0],
            (2, 3),
        ),
        (  # node 1 has more free cores than node 0 now, and fewer from 3 s on
            ((100, 1, 1, 0, 500), (3, 1, 8, 0, 0), (3, 1, 8, 0, 0), (20, 9, 2, 0, 600), (10, 1, 1, 0, 0)),
            "best-fit",
            [0, 0, 0, 3, 0],
            (1,),
        ),
    ],
)
def test_reservations_look_at_all_of_their_time(site, rows, node_choice, starts, last):
    Path(site).write_text(SITE.replace("count = 1", "count = 2").replace("gpu = 1}", "gpu = 2}"))
    if last == (0,):
        maintenance = WINDOW.format(start=0, end=2, rest="classes = {thin = 1}")
        Path(site).write_text(Path(site).read_text() + maintenance)
    workload = jobs(*((0, *row, "batch") for row in rows))
    run = simulate(workload, machine=site, scheduler="conservative", node_choice=node_choice, events=True, debug=True)
    nodes = {job: tuple(nodes) for _, kind, job, _, nodes in run.events.rows() if kind == "start"}
    assert run.jobs["start_s"].tolist() == starts
    assert nodes[len(rows)] == last


LIMITS = """
[[qos]]
name = "short"
max_wall_s = 30
"""


@pytest.mark.parametrize(
    ("limit", "more", "run_s", "sentence"),
    [
        ("max_time_s = 60", "", 61, "case: job 1 asks for 61 s and partition gpu allows 60 s"),
        ("max_time_s = 60", "", 60, ""),
        ('qos = "short"\nmax_time_s = 60', LIMITS, 31, "case: job 1 asks for 31 s and partition gpu allows 30 s"),
        ("max_nodes = 0", "", 1, "case: job 1 asks for 1 nodes and partition gpu allows 0"),
    ],
)
def test_a_job_beyond_the_limits_of_its_partition_is_named_or_left_out(site, limit, more, run_s, sentence):
    Path(site).write_text(SITE.replace("exclusive = true", f"exclusive = true\n{limit}") + more)
    workload = jobs((0, run_s, 1, 1, 0, 0, "gpu"), (0, 99, 1, 1, 0, 0, "batch"))
    demand = replace(workload.demand, per_node=np.array([1, 0]))
    workload = replace(workload, demand=demand)
    if sentence:
        with pytest.raises(InputError, match=sentence):
            simulate(workload, machine=site)
    run = simulate(workload, machine=site, size_map="drop")
    assert run.jobs["job_id"].tolist() == ([2] if sentence else [1, 2])
    assert sum(run.dropped.values()) == bool(sentence)


def test_jobs_of_a_log_have_the_limits_of_the_default_partition(site):
    Path(site).write_text(SITE.replace("default = true", "default = true\nmax_time_s = 60"))
    none = np.full(2, -1)
    workload = Workload(np.arange(1, 3), np.zeros(2), np.full(2, 5.0), np.array([61.0, np.nan]), none + 2, none)
    with pytest.raises(InputError, match="job 1 asks for 61 s and partition batch allows 60 s"):
        simulate(workload, machine=site)
    assert simulate(workload, machine=site, size_map="drop").jobs["job_id"].tolist() == [2]


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"scheduler": "migration"}, r"scheduler: 'migration' is not for a site of shared nodes \(valid there: "),
        ({"event_order": "ends-first"}, "event_order: 'ends-first' is not for a site of shared nodes"),
        ({"procs_per_node": 4}, "procs_per_node: 4 is not for a site of shared nodes"),
        ({"size_map": "clip"}, "size_map: 'clip' is not for jobs with cores, GPUs and memory of their own"),
    ],
)
def test_what_does_not_go_on_a_site_is_refused_in_a_sentence(site, parameters, sentence):
    with pytest.raises(InputError, match=sentence):
        simulate(jobs((0, 1, 1, 1, 0, 0, "batch")), machine=site, **parameters)


def test_a_choice_of_the_users_takes_the_nodes_with_the_lowest_numbers(site, tmp_path):
    (tmp_path / "mine.py").write_text("def last(node, machine_nodes):\n    return float(machine_nodes - node)\n")
    workload = jobs((0, 10, 1, 2, 0, 0, "batch"), (0, 10, 7, 1, 0, 0, "batch"), (0, 10, 2, 2, 0, 0, "batch"))
    run = simulate(workload, machine=site, node_choice=f"{tmp_path}/mine.py:last", events=True, debug=True)
    nodes = {job: tuple(nodes) for _, kind, job, _, nodes in run.events.rows() if kind == "start"}
    assert nodes == {1: (2,), 2: (1, 2), 3: (0, 1)}


def test_a_job_that_fits_on_one_node_gets_the_tightest_of_its_row(site):
    """Of 4, 3 and 8 free cores the job of two gets those of node 1, as SLURM's cons_tres chooses."""
    workload = jobs((0, 5, 1, 4, 0, 0, "batch"), (0, 50, 1, 1, 0, 0, "batch"), (6, 5, 1, 2, 0, 0, "batch"))
    run = simulate(workload, machine=site, node_choice="consecutive", events=True, debug=True)
    nodes = {job: tuple(nodes) for _, kind, job, _, nodes in run.events.rows() if kind == "start"}
    assert nodes == {1: (0,), 2: (1,), 3: (1,)}


def test_memory_that_nobody_knows_is_enough_for_jobs_of_many_cores(tmp_path):
    """They get the same nodes as if they asked for none."""
    site = tmp_path / "site.toml"
    text = 'format = "faultsweep site, 1"\n[[nodes]]\nname = "n"\ncount = 12\ncores = 8\n'
    site.write_text(text + '[[partitions]]\nname = "batch"\nnodes = {n = 12}\n')
    draw = np.random.default_rng(1)
    shapes = [(2 * k, int(draw.integers(5, 40)), int(draw.integers(1, 5))) for k in range(60)]
    runs = [
        simulate(
            jobs(*((submit, run_s, chunks, 8, 0, memory, "batch") for submit, run_s, chunks in shapes)),
            machine=str(site),
            node_choice="consecutive",
            events=True,
        )
        for memory in (0, 100)
    ]
    assert list(runs[0].events.rows()) == list(runs[1].events.rows())


@pytest.mark.parametrize("node_choice", ["best-fit", "consecutive"])
def test_choices_of_shared_nodes_are_for_sites(node_choice):
    none = np.zeros(1, np.int64)
    workload = Workload(none, np.zeros(1), np.ones(1), np.ones(1), none + 1, none)
    with pytest.raises(InputError, match=f"node_choice: '{node_choice}' is not for a flat machine"):
        simulate(workload, machine="flat:4", node_choice=node_choice)


def test_dumps_tell_what_jobs_need():
    columns = {
        "submit_s": np.zeros(3),
        "run_s": np.ones(3),
        "nodes": np.array([2.0, 2.0, 1.0]),
        "cores": np.array([8.0, 7.0, 4.0]),
        "gpus": np.array([4.0, 7.0, np.nan]),
        "memory_mb": np.array([1001.0, np.nan, 10.0]),
        "partition": to_text(["a", None, "b"]),
    }
    demand = to_workload(JobRecords(columns, "dump", "table")).demand
    found = [demand.chunks, demand.cores, demand.gpus, demand.memory_mb, demand.per_node, demand.partition]
    assert [column.tolist() for column in found] == [
        [2, 7, 1],
        [4, 1, 4],
        [2, 1, 0],
        [501, 0, 10],
        [1, 0, 1],
        [0, -1, 1],
    ]
    del columns["cores"]
    demand = to_workload(JobRecords(columns, "dump", "table")).demand
    assert (demand.chunks.tolist(), demand.whole.tolist()) == ([2, 2, 1], [1, 1, 1])


def test_what_is_wrong_with_a_site_is_said(tmp_path):
    path = tmp_path / "site.toml"
    for text, sentence in (
        ("nodes = 3", "nodes: Input should be a valid list"),
        (SITE.replace("thin = 2,", "thin = 3,"), "partition batch has 3 nodes of thin, of 2"),
        ("[[", "not valid TOML"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=sentence):
            parse_machine(str(path))
    with pytest.raises(InputError, match="cannot be read"):
        parse_machine(str(tmp_path / "none.toml"))


def test_what_is_not_simulated_is_listed(site, command):
    path = Path(site)
    more = """
[[reservations]]
name = "rack 1"
start_s = 0
end_s = 3600
nodes = 1
maintenance = true
[[qos]]
name = "high"
priority = 5
max_jobs_user = 3
[[qos]]
name = "normal"
preempts = ["high"]
grace_s = 60
max_submit_user = 10
"""
    path.write_text(
        SITE.replace("exclusive = true", "exclusive = true\nmax_user_run_jobs = 2\npreempt_mode = 'CANCEL'").replace(
            "\n", "\npreempt_by = 'qos'\n", 1
        )
        + more
    )
    code, out, _ = command("site", "describe", site)
    assert code == 0
    listed = out[out.index("described but not simulated:") :].split("\n")[1:4]
    assert [line.strip() for line in listed] == [
        "limits of running jobs, unless asked for (--site-limits): partition gpu of a user, QOS high of a user",
        "limits of submitted jobs, unless asked for (--site-submit-limits): QOS normal of a user",
        "preemption by qos and tiers of partitions, unless they are asked for: --preemption requeue --site-grace",
    ]


@pytest.mark.compiled
def test_the_priority_of_a_site_is_named_as_options(site, command):
    more = """
[priority]
kind = "multifactor"
weights = { age = 1000, fairshare = 10000, qos = 5000 }
max_age_s = 600
half_life_s = 300
calc_period_s = 1
favour_small = true
"""
    Path(site).write_text(SITE + more)
    code, out, _ = command("site", "describe", site)
    assert code == 0
    said = " ".join(out.split())
    options = (
        "--queue-order multifactor --priority-age-weight 1000 --priority-share-weight 10000 --priority-size-weight 0 "
        "--priority-qos-weight 5000 --priority-max-age-h 0.166666667 --priority-half-life-h 0.0833333333 "
        "--priority-period-s 1 --priority-fair-share classic --priority-small-first"
    )
    assert f"multifactor priority of jobs, unless it is asked for: {options}" in said
    code, out, _ = command("simulate", "--log", "intrepid-model", "--num-jobs", "20", "--machine", site,
                           "--size-map", "clip", *options.split())  # fmt: skip
    assert code == 0, out


WINDOW = """
[[reservations]]
name = "w"
start_s = {start}
end_s = {end}
{rest}
"""


def test_no_job_runs_into_an_advance_reservation(site):
    path = Path(site)
    rows = [(0, 5, 1, 4, 0, 0, "batch"), (0, 20, 1, 4, 0, 0, "batch"), (1, 20, 3, 4, 0, 0, "batch")]
    found = {}
    for scheduler in ("fcfs", "backfill", "conservative"):
        path.write_text(SITE + WINDOW.format(start=10, end=30, rest="maintenance = true\nclasses = {thin = 2}"))
        run = simulate(jobs(*rows), machine=site, scheduler=scheduler, events=True, debug=True)
        found[scheduler] = run.jobs["start_s"].tolist()
        nodes = {job: tuple(nodes) for _, kind, job, _, nodes in run.events.rows() if kind == "start"}
        assert nodes == {1: (0,), 2: (2,), 3: (0, 1, 2)}
    assert found == {scheduler: [0, 0, 30] for scheduler in found}


def test_reservations_are_on_the_calendar_of_the_log(site):
    """With the log and its reservations shifted alike, nothing changes but the times."""
    path, workload = Path(site), jobs((0, 20, 4, 4, 0, 0, "batch"))
    for date in (0.0, 1.7e9):
        path.write_text(SITE + WINDOW.format(start=date + 10, end=date + 30, rest=""))
        run = simulate(replace(workload, epoch_s=date), machine=site)
        assert run.jobs["start_s"].tolist() == [30]
    assert simulate(workload, machine=site).jobs["start_s"].tolist() == [0]
    header = ("; UnixStartTime: 1700000000",)
    assert simulate(replace(workload, header=header), machine=site).jobs["start_s"].tolist() == [30]


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ('hosts = "n7"', "reservation w is of host n7, which no class of nodes lists"),
        ("classes = {thin = 3}", "reservation w has 3 nodes of 'thin', of 2"),
        ("classes = {fat = 1}", "reservation w has 1 nodes of 'fat', of 0"),
    ],
)
def test_a_reservation_of_unknown_nodes_is_refused(site, rest, sentence):
    Path(site).write_text(SITE + WINDOW.format(start=10, end=30, rest=rest))
    with pytest.raises(InputError, match=sentence):
        parse_machine(site)


def test_a_reservation_must_end_after_its_start(site):
    Path(site).write_text(SITE + WINDOW.format(start=30, end=30, rest=""))
    with pytest.raises(InputError, match="reservation w ends at 30 s, not after its start"):
        parse_machine(site)


def test_hosts_of_reservations_are_nodes_of_their_classes(site):
    Path(site).write_text(
        SITE.replace('name = "thin"\n', 'name = "thin"\nhosts = "n[007-008]"\n')
        + WINDOW.format(start=0, end=1, rest='hosts = "n008,gpu"')
    )
    assert parse_machine(site).site.reserved.tolist() == [0, 1, 1]


@pytest.mark.parametrize("text", ["n1", "n[1-3]", "n[1-3,7],login,x[09-10],x11", "a,b"])
def test_lists_of_hosts_are_written_as_they_are_read(text):
    assert expand_hosts(hosts_text(expand_hosts(text))) == expand_hosts(text)


def test_from_the_command_line(site, tmp_path, command):
    sacct = tmp_path / "dump.psv"
    header = "JobID|Submit|Start|End|State|NNodes|NCPUS|Partition|Timelimit"
    rows = [f"{k}|2024-01-01T00:00:0{k}|2024-01-01T00:01:00|2024-01-01T00:02:00|COMPLETED|1|4|batch|10" for k in (1, 2)]
    sacct.write_text("\n".join([header, *rows]) + "\n")
    code, out, err = command("simulate", "--log", sacct, "--machine", site, "--json")
    assert code == 0, err
    assert json.loads(out)["mean_wait_s"] == 0.0


@pytest.mark.shared
def test_a_recorded_slurm_on_its_own_site(shared, tmp_path):
    from faultsweep.simcore.sites import slurm
    from faultsweep.simcore.sites.facts import read_facts
    from faultsweep.simcore.sites.site import site_text
    from faultsweep.sweeps.logs import load_workload

    folder = shared / "accounting" / "recorded-slurm" / "runA"
    files = [folder / name for name in ("config.txt", "partition.txt", "node.txt")]
    path = tmp_path / "site.toml"
    path.write_text(site_text(slurm.build(read_facts(files), "UTC")))
    workload = load_workload(str(folder / "sacct.psv"))
    for choice in ("first-fit", "best-fit", "consecutive"):
        run = simulate(workload, machine=str(path), estimates="requested", node_choice=choice, debug=True)
        assert run.status == "done"
        assert run.metrics["unfinished_jobs"] == 0


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(is_interpreted(), reason="it is about the speed of compiled kernels")
def test_curie_on_shared_nodes_is_simulated_in_seconds(shared, tmp_path):
    from faultsweep.sweeps.logs import load_workload

    path = tmp_path / "curie.toml"
    classes = [f'[[nodes]]\nname = "c{cores}"\ncount = {count}\ncores = {cores}\n' for count, cores in CURIE]
    path.write_text('format = "faultsweep site, 1"\n' + "".join(classes))
    workload = load_workload(str(shared / "job-logs" / "CEA-Curie-2011-2.1-cln.swf.gz"))
    run = simulate(workload, machine=str(path), scheduler="backfill", estimates="requested")
    assert len(run.jobs["job_id"]) == 295_540
    assert run.processor_s < 10.0


CURIE = ((4528, 16), (1016, 20))
"""Nodes and their cores: 5,544 with about as many cores as the log has."""


def add(name, place, more):
    def corrupt(state):
        whose, _, field = name.rpartition(".")
        getattr(state.job if whose else state, field)[place] += more

    return corrupt


def forget_a_record(state):
    state.num_records += 1


def count_one_more(state):
    state.finished += 1


@pytest.mark.parametrize(
    ("scheduler", "corrupt", "sentence"),
    [
        ("fcfs", add("free_cores", 0, 1), "sharing: node 0 is marked with"),
        ("fcfs", add("job.chunks", 0, 1), "demands: job 0 needs 2 chunks and holds 1"),
        ("fcfs", count_one_more, "cores: 1 finished jobs are counted and there are 0"),
        ("backfill", add("head_extra", 0, -99), "reservations: at the reservation of job 2 the free cores are"),
        ("conservative", add("profile_cores", (0, 0), 1), "profile: "),
        ("conservative", add("record_free", 0, 1), "profile: the free cores of span 0 are "),
        ("conservative", add("profile_most", (0, 0), 1), "profile: partitions have "),
        ("conservative", add("profile_edges", slice(None), 1), "profile: span 0 changes at the breakpoints "),
        ("conservative", forget_a_record, "profile: of "),
        ("slurm", add("first_tick", slice(None), 0.25), "ticks: job 0 starts between the ticks of all passes"),
    ],
)
def test_each_check_of_a_site_is_seen_to_fail(site, monkeypatch, scheduler, corrupt, sentence):
    """Jobs 0 and 1 run and job 2 waits when the state is changed; under slurm, job 0 has just started."""
    workload = jobs(*((at, 20, chunks, 4, 0, 100, "batch") for at, chunks in ((0, 1), (1, 1), (2, 3))))
    plain = SiteChecker.check

    def check(self, state):
        started = (state.job.status == RUNNING).sum()
        if started == (1 if scheduler == "slurm" else 2) and (scheduler == "slurm" or state.now >= 2):
            corrupt(state)
        plain(self, state)

    monkeypatch.setattr(SiteChecker, "check", check)
    with pytest.raises(InvariantError, match=re.escape(sentence)):
        simulate(workload, machine=site, scheduler=scheduler, debug=True)
