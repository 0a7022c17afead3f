"""``python -m benchmarks.reading [LOG]``: what reading a large job log costs, the first time and from then on.

Processor time of reading alone, in processes of their own, medians of rounds with an empty cache each; without LOG of
one that is written here, as large as that of CEA Curie. The exit code is 1 if a target is missed.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads.swf import write_swf

ROUNDS, JOBS = 9, 312_826
MOST_S = {"first": 1.0, "second": 0.1}
READ = (
    "import sys, time; from faultsweep.sweeps.logs import load_workload; began = time.process_time(); "
    "load_workload(sys.argv[1]); print(time.process_time() - began)"
)


def write_log(path: Path) -> None:
    """Write a log of as many jobs as CEA Curie has."""
    draw = np.random.default_rng(0)
    run_s = np.ceil(draw.lognormal(6, 2.5, JOBS))
    workload = Workload(
        job_id=np.arange(JOBS) + 272_393,
        submit_s=np.sort(draw.integers(31_600_000, 53_900_000, JOBS)).astype(np.float64),
        run_s=run_s,
        requested_s=np.ceil(run_s / 3600) * 3600,
        size=2 ** draw.integers(0, 14, JOBS),
        user=draw.integers(0, 800, JOBS),
        nodes=5544,
        procs_per_node=17,
    )
    write_swf(workload, path)


def cost(path: str, cache: str) -> float:
    """Return the processor time of reading a log in a new process, s."""
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": cache}
    command = [sys.executable, "-P", "-c", READ, path]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print a table; return whether a reading takes longer than it may."""
    found: dict[str, list[float]] = {name: [] for name in MOST_S}
    with tempfile.TemporaryDirectory() as folder:
        path = sys.argv[1] if len(sys.argv) > 1 else f"{folder}/large.swf.gz"
        if len(sys.argv) == 1:
            write_log(Path(path))
        for number in range(ROUNDS):
            for seconds in found.values():
                seconds.append(cost(path, f"{folder}/{number}"))
    for name, seconds in found.items():
        print(
            f"{name:6} reading: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f}) "
            f"of processor time; wanted: {MOST_S[name]} s"
        )
    return int(any(statistics.median(seconds) > MOST_S[name] for name, seconds in found.items()))


if __name__ == "__main__":
    sys.exit(main())
