"""EASY in the engine against the same in 64 lines of C, and long queues: ``python -m benchmarks.compiled_easy``.

Processor time a job, medians of interleaved rounds, with the least and the most beside them. The C program is compiled
where there is a compiler; the schedules must be equal, or it stops. It fails if a target is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from faultsweep.simcore import simulate as simulating
from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import Run, simulate
from faultsweep.simcore.workloads.transforms import span
from faultsweep.sweeps.logs import load_workload
from numpy.typing import NDArray

from benchmarks.measure import processor_time

NODES = 128
MODEL = "sdsc-model"
LEAST_OF_C = 0.9  # of the speed of the C program
LONG_QUEUES = (
    ("backfill", 10_000),
    ("backfill", 40_000),
    ("conservative", 10_000),
    ("conservative", 20_000),
    ("conservative", 100_000),
)
MOST_US = {("backfill", 40_000): 0.5, ("conservative", 10_000): 5.0}
MOST_NS_A_MOVE = 150.0
"""With all other work of a job; what one more move costs is printed beside."""


def compiled(folder: str) -> Callable[[Workload], tuple[float, NDArray[np.float64]]] | None:
    """Return what schedules a workload in C and gives its processor time, s, and starts; None without a compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if not compiler:
        return None
    source, library = Path(__file__).with_name("plain_easy.c"), Path(folder, "plain_easy.so")
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    schedule = ctypes.CDLL(str(library)).schedule
    whole, pointer = ctypes.c_int, ctypes.c_void_p
    schedule.argtypes = [whole, whole, *[pointer] * 5]

    def run(workload: Workload) -> tuple[float, NDArray[np.float64]]:
        estimate = np.where(np.isnan(workload.requested_s), workload.run_s, workload.requested_s)
        arrays = [workload.submit_s, workload.run_s, estimate, workload.size.astype(np.int32)]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        start = np.zeros(len(workload))
        addresses = [array.ctypes.data for array in (*arrays, start)]
        took, failed = processor_time(lambda: schedule(len(workload), NODES, *addresses))
        if failed:
            raise MemoryError("the C program got no memory")
        return took, start

    return run


def spread(times: list[float], jobs: int) -> str:
    """Return the median, the least and the most of times, as microseconds a job."""
    low, middle, high = (1e6 * float(np.quantile(times, at)) / jobs for at in (0, 0.5, 1))
    return f"{middle:8.3f} us a job ({low:.3f} to {high:.3f})"


def against_c(workload: Workload, repeat: int) -> bool:
    """Print the speed of both; return whether the engine is fast enough."""
    with tempfile.TemporaryDirectory() as folder:
        in_c = compiled(folder)
        if in_c is None:
            print("no C compiler: EASY is not compared with C")
            return True
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(repeat):
            took, start = in_c(workload)
            theirs.append(took)
            run = one(workload, "backfill")
            ours.append(run.processor_s)
            assert np.array_equal(run.jobs["start_s"], start), "the schedules differ"
    ratio = float(np.median(theirs) / np.median(ours))
    print(f"{workload.name}, {len(workload):,} jobs, flat:{NODES} backfill, in C {spread(theirs, len(workload))}")
    print(f"{workload.name}, {len(workload):,} jobs, flat:{NODES} backfill, here {spread(ours, len(workload))}")
    print(f"speed of C: {ratio:.2f}, wanted {LEAST_OF_C}")
    return ratio >= LEAST_OF_C


def one(workload: Workload, scheduler: str, load_scale: float = 1.0) -> Run:
    """Return one run."""
    machine = f"flat:{NODES}"
    return simulate(workload, machine=machine, scheduler=scheduler, estimates="requested", load_scale=load_scale)


def moves_of(workload: Workload) -> int:
    """Return how many reservations get earlier under conservative backfilling."""
    states: list[Any] = []

    def noting(state: Any, budget: int) -> int:
        states[:] = [state]
        return advance(state, budget)

    with patch.object(simulating, "advance", noting):
        one(workload, "conservative", load_scale=1.5)
    return int(states[0].moved_reservations)


def long_queues(repeat: int) -> bool:
    """Print what a job costs on an overloaded machine, and what a reservation that moves; return whether that is little
    enough."""
    rounds: dict[tuple[str, int], list[float]] = {case: [] for case in LONG_QUEUES}
    workloads = {jobs: load_workload(MODEL, num_jobs=jobs) for _, jobs in LONG_QUEUES}
    for _ in range(repeat):
        for scheduler, jobs in LONG_QUEUES:
            rounds[scheduler, jobs].append(one(workloads[jobs], scheduler, load_scale=1.5).processor_s)
    good, law = True, []
    for (scheduler, jobs), times in rounds.items():
        most, took = MOST_US.get((scheduler, jobs), float("inf")), float(np.median(times))
        good &= 1e6 * took / jobs <= most
        text = f", wanted {most}" if most < float("inf") else ""
        if scheduler == "conservative":
            moves = moves_of(workloads[jobs])
            law.append((moves / jobs, 1e9 * took / jobs))
            good &= 1e9 * took / moves <= MOST_NS_A_MOVE
            text += f"; {moves / jobs:.1f} moves a job, {1e9 * took / moves:.0f} ns a move, wanted {MOST_NS_A_MOVE:.0f}"
        print(f"{MODEL}, load_scale 1.5, {jobs:,} jobs, {scheduler:12} {spread(times, jobs)}{text}")
    each, fixed = np.polyfit(*zip(*law, strict=True), 1)
    print(f"conservative, fitted: {fixed / 1e3:.2f} us a job, and {each:.0f} ns for each move more")
    return good


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", default=MODEL, help="named log, model or path, of 10,000 jobs or more")
    parser.add_argument("--logs", default=None, help="folder of named logs")
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    log = load_workload(options.log, options.logs)
    good = against_c(span(log, 0, 10_000), options.repeat)
    return 0 if long_queues(options.repeat) and good else 1


if __name__ == "__main__":
    sys.exit(main())
