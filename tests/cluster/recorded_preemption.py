"""A real SLURM in which jobs of three tiers preempt each other, and whose place ours would take.

``python -m tests.cluster.recorded_preemption FILE`` (``make against-slurm``) plays a trace for about five minutes. For
each job that preempted others it writes what ran at that time, which jobs were requeued, and the nodes that it got.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from tests.cluster.recorded_slurm import CONFIG, Asked, PlayingSlurm, hosts, play
from tests.recorded_preemption import TIERS, Preemption, Running, write

BETWEEN_S = 1.5
PARAMETERS = "sched_interval=1,batch_sched_delay=0,bf_interval=1,bf_resolution=1,bf_window=1440,bf_max_job_test=1000"
HOSTS = {"batch": "n[1-12]", "gpu": "n[13-16]", "mid": "n[1-12]", "high": "n[5-16]"}


class PreemptingSlurm(PlayingSlurm):
    """SLURM with partitions of three tiers; jobs that are preempted are requeued."""

    template = (
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE"
        + CONFIG.partition("PartitionName=")[0]
        + "".join(
            f"PartitionName={name} Nodes={where} DefMemPerCPU=500 MaxTime=60 PriorityTier={TIERS[name]} State=UP\n"
            for name, where in HOSTS.items()
        )
    )


def jobs(seed: int, count: int) -> Iterator[Asked]:
    """Jobs of the lowest tier that fill the nodes, and urgent ones."""
    draw = random.Random(seed)
    for nice in draw.sample(range(1, 5000), count):
        where = draw.choice(("batch", "batch", "batch", "gpu", "mid", "high"))
        sizes = {"batch": (1, 1, 2, 2, 3, 4), "gpu": (1, 1, 2, 3)}.get(where, (1, 2, 3, 5))
        nodes, cores = draw.choice(sizes), draw.choice((1, 2, 4, 4))
        sleep = round(draw.uniform(10, 40) if where in ("batch", "gpu") else draw.uniform(6, 15), 2)
        yield Asked(sleep, draw.choice((1, 2, 3)), nice, nodes, cores, partition=where)


def preemptions(log: str, asked: dict[str, Asked]) -> list[Preemption]:
    """Return what the controller's log says: of each job that preempted others, what ran just before."""
    running: dict[str, tuple[int, ...]] = {}
    found: dict[str, tuple[dict[str, tuple[int, ...]], set[str]]] = {}
    got: dict[str, tuple[int, ...]] = {}
    for _, text in sorted((datetime.fromisoformat(at), text) for at, text in re.findall(r"\[(\S+)\] (.*)", log)):
        if taken := re.search(r"preempted JobId=(\d+) has been requeued to reclaim resources for JobId=(\d+)", text):
            before, victims = found.setdefault(taken[2], (dict(running), set()))
            victims.add(taken[1])
            before[taken[1]] = running.pop(taken[1], before.get(taken[1], ()))
        elif started := re.search(r"Allocate JobId=(\d+) NodeList=(\S+)|Started JobId=(\d+) in \S+ on (\S+)", text):
            number, where = (started[1] or started[3]), (started[2] or started[4])
            running[number] = hosts(where)
            got.setdefault(number, running[number])
        elif ended := re.search(r"_job_complete: JobId=(\d+) done", text):
            running.pop(ended[1], None)
    return [
        _preemption(asked[number], got[number], before, victims, asked) for number, (before, victims) in found.items()
    ]


def _preemption(job, nodes, before, victims, asked) -> Preemption:
    ran = sorted(before, key=int)
    rows = tuple(Running(TIERS[asked[name].partition], asked[name].cores, before[name]) for name in ran)
    return Preemption(job.partition, job.nodes, job.cores, rows, tuple(map(ran.index, sorted(victims, key=int))), nodes)


def main(path: Path) -> None:
    """Record a trace."""
    trace = tuple(jobs(21, 70))
    with PreemptingSlurm(PARAMETERS) as slurm:
        numbers = play(slurm, trace, 0.0, BETWEEN_S)
        log = slurm.log()
    found = preemptions(log, {number: trace[int(name[1:])] for number, name in numbers.items()})
    write(found, path)
    print(f"{len(found)} jobs preempted {sum(len(each.victims) for each in found)} others")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
