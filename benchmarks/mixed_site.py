"""What a job costs on a site of several partitions: ``python -m benchmarks.mixed_site``.

Some nodes have GPUs, some much memory; jobs share nodes by cores and memory, take GPUs, or take whole nodes, many at a
time. Machines of other benchmarks have nodes that are alike, where a search that looks at too many of them, or at the
wrong thing first, costs nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from faultsweep.simcore.model.workload import Demand, Workload
from faultsweep.simcore.simulate import simulate

NODES = {"cpu": 1200, "gpu": 200, "big": 100}
CORES, GPUS = 64, 4
PARTITIONS = ("main", "gpu", "big", "whole")
SHARES = (0.45, 0.2, 0.1, 0.25)
"""Of the jobs, by partition."""
SITE = """
format = "faultsweep site, 1"
nodes = [
    {{name = "cpu", count = {cpu}, cores = 64, memory_mb = 256000}},
    {{name = "gpu", count = {gpu}, cores = 64, gpus = 4, memory_mb = 512000}},
    {{name = "big", count = {big}, cores = 64, memory_mb = 2000000}},
]
partitions = [
    {{name = "main", nodes = {{cpu = {cpu}}}}},
    {{name = "gpu", nodes = {{gpu = {gpu}}}}},
    {{name = "big", nodes = {{big = {big}}}}},
    {{name = "whole", nodes = {{cpu = {cpu}, big = {big}}}, exclusive = true}},
]
"""
SCHEDULERS = ("fcfs", "backfill", "slurm", "top-jobs", "conservative")


def nodes_of(scale: float) -> dict[str, int]:
    """Return how many nodes of each class a site has."""
    return {name: max(2, round(scale * count)) for name, count in NODES.items()}


def jobs_of(scale: float, load: float, jobs: int) -> Workload:
    """Return jobs that ask for so many times what the busiest nodes of the site have."""
    draw, nodes = np.random.default_rng(1), nodes_of(scale)
    partition = draw.choice(4, jobs, p=SHARES)
    main, gpu, big, whole = (partition == at for at in range(4))
    chunks, cores = np.ones(jobs, int), np.full(jobs, CORES)
    memory = np.zeros(jobs, int)
    cores[main], chunks[main] = (
        draw.choice((1, 2, 4, 8, 16, 32), main.sum()),
        draw.choice((1, 1, 1, 1, 2, 8), main.sum()),
    )
    memory[main] = cores[main] * draw.choice((1000, 4000, 8000), main.sum())
    cores[gpu], chunks[gpu] = draw.choice((8, 16), gpu.sum()), draw.choice((1, 1, 2, 4, 8, 16), gpu.sum())
    chunks[gpu] = np.minimum(chunks[gpu], GPUS * nodes["gpu"])
    memory[gpu] = draw.choice((30_000, 100_000), gpu.sum())
    cores[big], memory[big] = draw.choice((8, 32, 64), big.sum()), draw.choice((500_000, 1_500_000), big.sum())
    chunks[whole] = np.minimum(draw.choice((1, 2, 4, 8, 16, 32, 64, 128), whole.sum()), max(1, nodes["cpu"] // 3))
    run_s = np.rint(draw.lognormal(8, 1.7, jobs)).clip(60, 172_800)
    requested_s = np.minimum(172_800, np.ceil(run_s * draw.choice((1.1, 2, 5, 20), jobs) / 60) * 60)
    held = (
        np.where(gpu, chunks * CORES / GPUS, np.where(big, np.maximum(cores, memory / 31_250), chunks * cores)) * run_s
    )
    at_most = (held[main | whole].sum() / nodes["cpu"], held[gpu].sum() / nodes["gpu"], held[big].sum() / nodes["big"])
    submit_s = np.sort(draw.random(jobs)) * max(at_most) / CORES / load
    is_whole = whole.astype(int)
    demand = Demand(chunks, cores, gpu.astype(int), memory, is_whole, is_whole, partition, PARTITIONS)
    return Workload(
        np.arange(jobs), submit_s, run_s, requested_s, chunks * cores, draw.integers(0, 50, jobs), demand=demand
    )


def time_of_a_job(scheduler: str, scale: float, load: float, jobs: int, folder: Path) -> float:
    """Return the processor time of a job, s."""
    path = folder / f"site-{scale:g}.toml"
    path.write_text(SITE.format(**nodes_of(scale)))
    workload = jobs_of(scale, load, jobs)
    return simulate(workload, machine=str(path), scheduler=scheduler, estimates="requested").processor_s / jobs


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--scale", type=float, nargs="*", default=[0.05, 0.2, 1.0], help="1 is a site of 1,500 nodes")
    parser.add_argument("--scheduler", nargs="*", default=SCHEDULERS, choices=SCHEDULERS)
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        for load in (0.9, 2.5):
            for scheduler in arguments.scheduler:
                each = [
                    time_of_a_job(scheduler, scale, load, arguments.jobs, Path(folder)) for scale in arguments.scale
                ]
                columns = "  ".join(
                    f"{sum(nodes_of(scale).values()):5,} nodes {1e6 * seconds:9.1f}"
                    for scale, seconds in zip(arguments.scale, each, strict=True)
                )
                print(f"load {load:.1f}  {scheduler:13}  {columns}  µs a job", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
