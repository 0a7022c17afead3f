"""Recorded preemptions of a real SLURM, and whom ours would preempt for the same job."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from faultsweep.simcore.model.workload import Demand, Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.sites.site import NodeClass, Partition, Site, site_text

from tests.recorded import CORES, MEMORY_MB, NODES

TIERS = {"batch": 1, "gpu": 1, "mid": 5, "high": 10}
PARTITIONS = {"batch": range(12), "gpu": range(12, 16), "mid": range(12), "high": range(4, 16)}
MEMORY_OF_CORE_MB = 500
AT_ONCE = {"preempt_leave_s": 0.0, "main_interval_s": 0.0, "full_interval_s": 0.0, "backfill_interval_s": 1e9}


@dataclass(frozen=True)
class Running:
    """A running job: cores of each of its nodes."""

    tier: int
    cores: int
    hosts: tuple[int, ...]


@dataclass(frozen=True)
class Preemption:
    """A job that preempted others: what ran, in order of submission, whom it preempted, and the nodes that it got."""

    partition: str
    nodes: int
    cores: int
    running: tuple[Running, ...]
    victims: tuple[int, ...]
    hosts: tuple[int, ...]


def write(found: list[Preemption], path: Path) -> None:
    """Write preemptions, one in each line."""
    path.write_text("[\n" + ",\n".join(json.dumps(asdict(each)) for each in found) + "\n]\n")


def read(path: Path) -> list[Preemption]:
    """Read preemptions."""
    found = []
    for each in json.loads(path.read_text()):
        running = tuple(Running(**{**row, "hosts": tuple(row["hosts"])}) for row in each["running"])
        lists = {"victims": tuple(each["victims"]), "hosts": tuple(each["hosts"])}
        found.append(Preemption(**{**each, **lists, "running": running}))
    return found


def ours(folder: Path, found: Preemption) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The running jobs that ours has leave for the same job, and the nodes that this one gets."""
    nodes = [NodeClass(name=f"n{k}", count=1, cores=CORES, memory_mb=MEMORY_MB) for k in range(NODES)]
    where = [(name, members, TIERS[name]) for name, members in PARTITIONS.items()]
    where += [(f"r{place}", row.hosts, row.tier) for place, row in enumerate(found.running)]
    parts = [
        Partition(name=name, nodes={f"n{k}": 1 for k in members}, priority_tier=tier) for name, members, tier in where
    ]
    path = folder / "site.toml"
    path.write_text(site_text(Site(nodes=nodes, partitions=parts, preempt_by="partition")))
    names, count = [part.name for part in parts], len(found.running) + 1
    chunks = np.array([*(len(row.hosts) for row in found.running), found.nodes])
    cores = np.array([*(row.cores for row in found.running), found.cores])
    one, length_s = np.ones(count, np.int64), np.full(count, 500.0)
    place = np.array([*(names.index(f"r{k}") for k in range(count - 1)), names.index(found.partition)])
    demand = Demand(chunks, cores, 0 * one, cores * MEMORY_OF_CORE_MB, one, 0 * one, place, partitions=tuple(names))
    submit_s = np.array([0.0] * (count - 1) + [1.0])
    workload = Workload(np.arange(count), submit_s, length_s, length_s, chunks * cores, 0 * one, demand=demand)
    run = simulate(
        workload,
        machine=str(path),
        scheduler="slurm",
        estimates="requested",
        node_choice="consecutive",
        preemption="requeue",
        events=True,
        **AT_ONCE,
    )
    rows = [(kind, job, nodes) for time, kind, job, _, nodes in run.events.rows() if time == 1.0]
    gone = tuple(sorted(job for kind, job, _ in rows if kind == "preempt"))
    return gone, next((tuple(nodes) for kind, job, nodes in rows if kind == "start" and job == count - 1), ())
