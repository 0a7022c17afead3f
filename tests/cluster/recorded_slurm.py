"""A real SLURM of 16 virtual nodes that plays traces of jobs, and what our scheduler makes of the same jobs.

``python -m tests.cluster.recorded_slurm FOLDER [TRACE ...]`` (``make against-slurm``) plays each trace six times, each
time on a SLURM of its own, which takes about three minutes, and prints in which passes the two start other jobs. Those
of tests/simcore/recorded were made so. Priorities are static, by ``--nice``, and there is no accounting: nothing but
the passes is compared.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.virtual_slurm import USER, VirtualSlurm, _free_ports, _wait_for
from tests.recorded import (
    CORES,
    GPUS,
    MEMORY_MB,
    NODES,
    PLAYING_S,
    Noted,
    Played,
    Recording,
    differences,
    passes_of,
    read,
    write,
)

NAMES = tuple(f"n{number}" for number in range(1, NODES + 1))
CONFIG = """
ClusterName=played
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={port}
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldDebug=debug
DebugFlags=Backfill
SlurmctldLogFile={base}/controller.log
LogTimeFormat=iso8601_ms
StateSaveLocation={base}/state
SlurmdPidFile={base}/slurmd-%n.pid
SlurmdSpoolDir={base}/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters={parameters}
PriorityType=priority/multifactor
PriorityWeightPartition=20000
ReturnToService=1
KillWait=2
MinJobAge=3600
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
PropagateResourceLimits=NONE
NodeName=DEFAULT CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}
{nodes}
PartitionName=batch Nodes=n[1-12] Default=YES DefMemPerCPU=500 MaxTime=60 PriorityJobFactor=1 State=UP
PartitionName=gpu Nodes=n[13-16] DefMemPerCPU=500 MaxTime=60 PriorityJobFactor=2 State=UP
"""


class Asked(NamedTuple):
    """A job to submit."""

    sleep: float
    minutes: int
    nice: int
    nodes: int
    cores: int = CORES
    memory_mb: int = 500  # of each core
    gpus: int = 0
    partition: str = ""  # that of the GPUs, or of the other nodes
    after: tuple[int, ...] = ()  # places of the jobs whose end it waits for
    user: str = ""  # whom root submits it for, and so on
    account: str = ""
    qos: str = ""
    tasks: int = 0  # of an array, two of which run at a time
    reservation: str = ""  # in which it wants to run


class Trace(NamedTuple):
    """Jobs that are submitted one after another, and the settings of the passes, SLURM's and ours."""

    parameters: str
    settings: dict[str, float]
    jobs: tuple[Asked, ...]


def whole_nodes(seed: int, count: int) -> Iterator[Asked]:
    draw = random.Random(seed)
    for nice in draw.sample(range(1, 5000), count):
        sleep = round(draw.uniform(4, 12), 2)
        yield Asked(sleep, draw.choice((1, 1, 2, 3)), nice, draw.choice((1, 1, 2, 2, 3, 4, 6)))


def shared_nodes(seed: int, count: int) -> Iterator[Asked]:
    draw = random.Random(seed)
    for nice in draw.sample(range(1, 5000), count):
        sleep = round(draw.uniform(5, 15), 2)
        asked = Asked(sleep, draw.choice((1, 1, 2, 3)), nice, draw.choice((1, 1, 1, 2, 3, 6)))
        asked = asked._replace(cores=draw.choice((1, 2, 2, 3, 4)), memory_mb=draw.choice((500, 500, 1500, 3000)))
        if draw.random() < 0.3:
            asked = asked._replace(nodes=draw.choice((1, 1, 2)), gpus=draw.choice((1, 1, 2)))
        yield asked._replace(memory_mb=min(asked.memory_mb, MEMORY_MB // asked.cores))


def chained(seed: int, count: int) -> Iterator[Asked]:
    """Jobs on shared nodes, of which a part waits for one or two of the twelve before."""
    draw = random.Random(seed)
    for place, asked in enumerate(shared_nodes(seed, count)):
        others = draw.choice((0, 0, 0, 1, 1, 2)) if place >= 12 else 0
        yield asked._replace(after=tuple(sorted(draw.sample(range(place - 12, place), others))))


def _passes(interval: int, resolution: int, depth: int) -> tuple[str, dict[str, float]]:
    parameters = f"sched_interval=1,batch_sched_delay=0,bf_interval={interval},bf_max_time=30"
    settings = {"main_interval_s": 1.0, "full_interval_s": 1.0, "backfill_interval_s": float(interval)}
    settings |= {"backfill_resolution_s": float(resolution), "backfill_depth": depth}
    return f"{parameters},bf_resolution={resolution},bf_window=1440,bf_max_job_test={depth}", settings


TRACES = {
    "whole": Trace(*_passes(1, 1, 1000), tuple(whole_nodes(11, 80))),
    "shared": Trace(*_passes(1, 1, 1000), tuple(shared_nodes(12, 120))),
    "coarse": Trace(*_passes(5, 60, 20), tuple(whole_nodes(13, 80))),
    "coarse-shared": Trace(*_passes(3, 60, 40), tuple(shared_nodes(14, 120))),
    "chained": Trace(*_passes(2, 1, 1000), tuple(chained(15, 120))),
}
"""Whole nodes or shared ones with cores, memory and GPUs; passes every second, or fewer that see fewer jobs; jobs that
wait for others."""
BETWEEN_S = 0.3  # submissions
RUNS, AT_A_TIME = 6, 6
TASKS_AT_A_TIME = 2
SETTLING_S = 3.0


class PlayingSlurm(VirtualSlurm):
    """The daemons of 16 nodes, four of them with GPUs that are plain files."""

    template = CONFIG

    def __init__(self, parameters: str) -> None:
        """Remember the settings of the scheduler."""
        super().__init__()
        self.parameters = parameters

    def _start(self) -> None:
        base = self.base
        self._start_munge(*(f"spool-{node}" for node in NAMES))
        port, *ports = _free_ports(1 + NODES)
        lines = [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={own}"
            + (f" Gres=gpu:{GPUS}" if number >= 12 else "")
            for number, (name, own) in enumerate(zip(NAMES, ports, strict=True))
        ]
        for gpu in range(GPUS):
            (base / f"gpu{gpu}").touch()
        (base / "gres.conf").write_text(f"NodeName=n[13-16] Name=gpu File={base}/gpu[0-{GPUS - 1}]\n")
        names = {"user": USER, "base": base, "port": port, "cpus": CORES, "memory": MEMORY_MB}
        self.config.write_text(self.template.format(**names, parameters=self.parameters, nodes="\n".join(lines)))
        self._start_nodes(*NAMES)

    def submit(self, name: str, job: Asked, after: Sequence[str] = ()) -> str:
        """Submit a job that sleeps, once those of some numbers have ended, and return its number."""
        size = ("-N", str(job.nodes), f"--ntasks-per-node={job.cores}", f"--mem-per-cpu={job.memory_mb}")
        where = ["-p", job.partition or ("gpu" if job.gpus else "batch")] + [f"--gres=gpu:{job.gpus}"] * (job.gpus > 0)
        where += [f"--dependency=afterany:{':'.join(after)}"] * (len(after) > 0)
        where += [f"--uid={job.user}"] * bool(job.user) + [f"-A{job.account}"] * bool(job.account)
        where += [f"-q{job.qos}"] * bool(job.qos) + [f"--array=0-{job.tasks - 1}%{TASKS_AT_A_TIME}"] * (job.tasks > 0)
        where += [f"--reservation={job.reservation}"] * bool(job.reservation)
        options = ("-t", str(job.minutes), f"--nice={job.nice}", "-o", "/dev/null", "-J", name)
        return self.ask("sbatch", "--parsable", *size, *where, *options, "--wrap", self.command(job))

    def command(self, job: Asked) -> str:
        """Return what a job runs."""
        return f"sleep {job.sleep}"

    def log(self) -> str:
        """Return what the controller has logged."""
        return (self.base / "controller.log").read_text(errors="replace")

    def settle(self, part: float) -> None:
        """Wait until a part of the second from one main pass to the next is over.

        The controller's first passes after its start come late, so a job of no account comes before all others. The
        runs of a trace begin at different parts, so that they differ in when passes are.
        """
        self.submit("first", Asked(1, 1, 0, 1))
        _wait_for("the end of the first job", lambda: not self.jobs(), 60)
        time.sleep(SETTLING_S)
        began = datetime.fromisoformat(re.findall(rf"\[(\S+)\] (?:{PASSES['main']}|{PASSES['full']})", self.log())[-1])
        time.sleep((began.timestamp() + part - time.time()) % 1.0)


def play(slurm: PlayingSlurm, jobs: tuple[Asked, ...], part: float, between_s: float = BETWEEN_S) -> dict[str, str]:
    """Submit the jobs and wait for their ends; return the name of each number."""
    slurm.settle(part)
    numbers, begin = {}, time.monotonic()
    for place, job in enumerate(jobs):
        time.sleep(max(0.0, begin + place * between_s - time.monotonic()))
        known = list(numbers)
        numbers[slurm.submit(f"t{place}", job, [known[other] for other in job.after])] = f"t{place}"
    _wait_for("the end of all jobs", lambda: not slurm.jobs(), 900)
    return numbers


def write_rows(found: Mapping[str, Iterable[Any]], path: Path) -> None:
    """Write lists by name as JSON, a row on each line."""
    parts = [f'"{name}": [\n' + ",\n".join(map(json.dumps, rows)) + "]" for name, rows in found.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join(parts) + "}\n")


def hosts(text: str) -> tuple[int, ...]:
    """Return the nodes of a list such as n[1-3,7], from 0 on."""
    found: list[int] = []
    for part in re.sub(r"[n\[\]]", "", text).split(","):
        first, _, last = part.partition("-")
        found += range(int(first) - 1, int(last or first))
    return tuple(found)


def jobs_of(log: str, numbers: dict[str, str], asked: dict[str, Asked]) -> tuple[Played, ...]:
    """Return what the controller's log says of the jobs, in order of submission."""
    seen: dict[str, dict] = {number: {} for number in numbers}
    for at, text in re.findall(r"\[(\S+)\] (.*)", log):
        of_job = re.search(r"JobId=(\d+)", text)
        if not of_job or of_job[1] not in seen:
            continue
        job, when = seen[of_job[1]], datetime.fromisoformat(at).timestamp()
        if priority := re.search(r"_slurm_rpc_submit_batch_job: .*InitPrio=(\d+)", text):
            job |= {"submit": when, "priority": int(priority[1])}
        elif allocated := re.search(r"sched: Allocate .*NodeList=(\S+)", text):
            job |= {"start": when, "by": "main", "hosts": hosts(allocated[1])}
        elif "Started JobId" in text:
            job |= {"start": when, "by": "backfill", "hosts": hosts(text.rpartition(" on ")[2].strip())}
        elif re.search(r"_job_complete: .* done$", text):
            job["end"] = when
    found = []
    for number, job in seen.items():
        line = asked[numbers[number]]
        size = {"nodes": line.nodes, "cores": line.cores, "gpus": line.gpus, "memory_mb": line.cores * line.memory_mb}
        times = {"run_s": line.sleep + PLAYING_S, "limit_s": 60.0 * line.minutes}
        where = {"partition": "gpu" if line.gpus else "batch", "after": tuple(f"t{other}" for other in line.after)}
        found.append(Played(numbers[number], **job, **times, **size, **where))
    return tuple(sorted(found, key=lambda job: job.submit))


PASSES = {
    "main": r"debug:  sched: Running job scheduler for default depth",
    "full": r"debug:  sched: Running job scheduler for full queue",
    "backfill": r"sched/backfill: _attempt_backfill: beginning",
    "grace": r"preempted \S+ has been requeued to reclaim resources for JobId=Invalid",
}


def ticks_of(log: str, first: float) -> dict[str, tuple[float, ...]]:
    """Return when the controller's passes of each kind began, in seconds since the first submission, and when it had
    jobs leave whose grace was over."""
    found = {}
    for kind, text in PASSES.items():
        times = (datetime.fromisoformat(at).timestamp() for at in re.findall(rf"\[(\S+)\] {text}", log))
        found[kind] = tuple(time - first for time in times if time > first)
    return found


def record(name: str, run: int) -> Recording:
    """Play a trace, one of its runs."""
    trace = TRACES[name]
    with PlayingSlurm(trace.parameters) as slurm:
        numbers = play(slurm, trace.jobs, part_of(run))
        log = slurm.log()
    asked = {f"t{place}": job for place, job in enumerate(trace.jobs)}
    jobs = jobs_of(log, numbers, asked)
    return Recording(name, trace.settings, jobs, noted=Noted(ticks=ticks_of(log, jobs[0].submit)))


def part_of(run: int) -> float:
    """Return the part of the second between two main passes at which a run begins: each has a stratum of its own."""
    return (run + random.random()) / RUNS


def record_all(folder: Path, names: list[str], record: Callable[[str, int], Recording]) -> None:
    """Record traces several times each, some runs at a time, and compare them with ours."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(AT_A_TIME, get_context("spawn")) as pool:
        played = pool.map(record, [name for name in names for _ in range(RUNS)], [*range(RUNS)] * len(names))
        for name, recordings in zip(names, batched(played, RUNS), strict=True):
            write(recordings, folder / f"{name}.json")
    for name in names:
        for recording in read(folder / f"{name}.json"):
            report(recording)


def batched(recordings: Iterator[Recording], count: int) -> Iterator[list[Recording]]:
    """Return the runs of each trace."""
    while runs := list(islice(recordings, count)):
        yield runs


def report(recording: Recording) -> None:
    """Print the passes in which SLURM and ours start other jobs."""
    with tempfile.TemporaryDirectory() as scratch:
        other = differences(Path(scratch), recording)
    by = sum(job.by == "backfill" for job in recording.jobs)
    passes = len(passes_of(recording))
    print(f"{recording.name}: {len(recording.jobs)} jobs, {by} by backfill; {passes} passes, {len(other)} not as ours")
    for each in other:
        theirs, ours = (f"starts {sorted(one.starts)}, {sorted(one.leave)} leave" for one in (each.theirs, each.ours))
        print(f"  {each.time:8.2f} s, {each.theirs.kind}: SLURM {theirs}; ours {ours}")


if __name__ == "__main__":
    record_all(Path(sys.argv[1]), sys.argv[2:] or list(TRACES), record)
