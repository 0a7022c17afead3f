"""Fuzz test: every parameter at its bounds and just inside them, in pairs, with small odd workloads.

``python -m tests.fuzz_bounds --runs 100000`` goes through the pairs in an order that any part of it covers evenly
(``--first 20000 --runs 20000`` is the second fifth). Kernels are compiled with bounds checks, into a cache of their
own. Runs are made by worker processes, which are killed when one takes too long. A run passes if it gives results that
are possible, or says in an InputError why not; it must not hang, crash, warn, or break an invariant of the engine.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TELL_RUNS = 1000  # how often it is said how far it is
LIMIT_S = 120.0  # of a run; most take milliseconds, the first with a finder compiles it
COMPILING_S = 900.0
ORDER = 104_729  # steps through the pairs; a prime that no number of pairs is a multiple of

# Fewer events than the limits of the engine, so that a run that reaches one does so in a moment.
MOST_WITHOUT_JOB, MOST_CHECKED, MOST_FAILURES = 20_000, 1_000, 5_000

MACHINES = ("flat:1", "flat:7", "flat:70", "torus:1x1x1", "torus:2x3x4", "torus:4x1x64", "midplanes:5", "midplanes:1")
SITE = str(ROOT / "tests" / "fixed" / "site.toml")
CLUSTERS = ("clusters:1", "clusters:3+4", "clusters:4@10+2@1+5", "clusters:2+2")
GIVEN = ("none", "given", "weibull", "weibull-copula", "mtbf")
OTHER_TEXTS = {
    "machine": (*MACHINES, *CLUSTERS, SITE),
    "failures": GIVEN,
    "recovery_mix": ("normal", "even", "0:0:0:0:1", "1e-300:0:0:0:1e300", "0:0:0:0:0"),
    "credit_prices": ("1:2:3:4:5", "0:0:0:0:0", "1e300:0:0:0:1e-300"),
    "priority_shares": ("1:50,2:30,1/3:2", "1:0,2:0", "1:1e300,2:1e-300"),
    "priority_tres_weights": ("cpu:1000,node:10", "cpu:0", "cpu:1e300,node:1e-300"),
    "lsf_shares": ("1:50,2:30", "1:0,2:0", "1:1e300,2:1e-300"),
    "job_sort_formula": ("ncpus * 10 + eligible_time", "0 * walltime", "1e300 * ncpus - 1e-300 * eligible_time"),
    "priority_partition_factors": ("1:1,2:10", "1:0", "1:1e300,2:1e-300"),
    "priority_qos_factors": ("1:1,2:10", "1:0", "1:1e300,2:1e-300"),
}
LEFT_OUT = {"log", "timezone", "placement", "failure_columns"}  # a workload and failures are given; placements: below


def settings() -> list[tuple[str, Any]]:
    """Return every value that is tried of every parameter, as (name, value)."""
    from faultsweep.simcore.parameters import PARAMETERS

    found = []
    for name, parameter in PARAMETERS.items():
        if name in LEFT_OUT:
            continue
        if name in OTHER_TEXTS:
            values: tuple[Any, ...] = OTHER_TEXTS[name]
        elif parameter.kind is bool:
            values = (False, True)
        elif parameter.kind is str:
            values = tuple(parameter.choices)
        else:
            values = _numbers(parameter)
        found += [(name, value) for value in values]
    return found


def _numbers(parameter: Any) -> tuple[float | int, ...]:
    """Return the bounds of a number, the values just inside, and a few that are special to programs."""
    low, high = parameter._bounds()
    if parameter.kind is int:
        inside = {low, low + 1, high - 1, high, 0, 1, 2, parameter.default}
        return tuple(sorted(int(value) for value in inside if low <= value <= high))
    near = {low, np.nextafter(low, math.inf), high, np.nextafter(high, -math.inf), 0.0, 1.0, 1e-9, 1e9, 1e16}
    finite = {float(value) for value in near if low <= value <= high} | {parameter.default}
    from faultsweep.simcore.contract import SHORTEST_INTERVAL_S

    if parameter.zero:
        finite -= {value for value in finite if 0 < value < SHORTEST_INTERVAL_S}
    return tuple(sorted(finite))


@cache
def pairs() -> list[tuple[tuple[str, Any], tuple[str, Any]]]:
    """Return all pairs of values of two parameters."""
    return [(a, b) for a, b in itertools.combinations(settings(), 2) if a[0] != b[0]]


def configuration(number: int) -> tuple[dict[str, Any], np.random.Generator]:
    """Return the parameters of a run, and the random numbers for the rest of it."""
    every = pairs()
    rng = np.random.default_rng(number)
    pair = dict(every[number * ORDER % len(every)])
    machine = str(pair.get("machine", rng.choice(CLUSTERS if rng.random() < 0.25 else (*MACHINES, SITE, SITE))))
    usual = _on_clusters(rng) if machine.startswith("clusters") else _on_others(rng, machine)
    return {"machine": machine, **_anywhere(rng), **usual, **pair}, rng


def _anywhere(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "failures": str(rng.choice(GIVEN)),
        "weibull_scale_s": float(rng.choice([50.0, 500.0])),
        **{("mtbf_h" if rng.random() < 0.5 else "node_mtbf_h"): float(rng.choice([0.01, 0.1]))},
        "down_time_s": float(rng.choice([-1.0, 0.0, 20.0])),
        "mttr_h": 0.01,
        "max_restarts": int(rng.choice([0, 3, 30])),
        "estimates": str(rng.choice(["actual", "requested", "f-model"])),
        "size_map": "clip",
        "procs_per_node": 1,
    }


def _on_clusters(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "scheduler": str(rng.choice(["first-fit", "fcfs", "backfill"])),
        "meta_scheduler": str(rng.choice(["naive", "bandwidth-aware"])),
        "partitioning": str(rng.choice(["largest-first", "minimum-cut"])),
        "trunk_mbps": float(rng.choice([20.0, 500.0])),
        "agent": str(rng.choice(["none", "ctmr", "naive"])),
        "agent_interval_s": float(rng.choice([0.0, 7.0])),
        "overhead_s": float(rng.choice([0.0, 5.0])),
        "cp_frac": 1.0,
        "estimate_error_pct": float(rng.choice([0.0, 80.0])),
        "trunk_mtbf_h": float(rng.choice([0.0, 0.02])),
        "trunk_down_s": 10.0,
        "trunk_outage": str(rng.choice(["kill", "stall"])),
        "size_map": str(rng.choice(["exact", "clip"])),
    }


def _on_others(rng: np.random.Generator, machine: str) -> dict[str, Any]:
    schedulers = ["fcfs", "backfill", "conservative", "migration", "backfill+migration"]
    if machine.startswith("midplanes"):
        schedulers = schedulers[:2]
    if machine == SITE:
        schedulers = ["fcfs", "backfill", "conservative", "slurm", "slurm"]
    recovery = str(rng.choice(["arrival", "manual", "mix", "all-c", "all-d", "all-e"]))
    return {
        "scheduler": str(rng.choice(schedulers)),
        "placement": str(rng.choice(["mfp", "balancing", "tie-breaking"])),
        "accuracy": 0.6,
        "checkpoint": str(rng.choice(["none", "periodic", "young", "daly", "risk", "exact", "bucket"])),
        "checkpoint_cost_s": float(rng.choice([0.0, 2.0])),
        "checkpoint_interval_s": 10.0,
        "bucket_s": 60.0,
        "bucket_repeat_s": float(rng.choice([0.0, 9.0])),
        "node_choice": str(rng.choice(["first-fit", "lff", "random", "round-robin"])),
        "move_cost_s": 3.0,
        "recovery": recovery,
        "manual_delay_h": 0.01,
        "hold_nodes": bool(rng.random() < 0.5),
        "restart_cost_s": float(rng.choice([0.0, 4.0])),
        "start_delay_s": float(rng.choice([0.0, 0.0, 1.0])),
        "migration_cost_s": float(rng.choice([0.0, 2.0])),
        "kill_at_estimate": bool(rng.random() < 0.2),
    }


def workload(rng: np.random.Generator, nodes: int):
    """Return a small workload; now and then one with times that a float can hold and no clock shows."""
    from faultsweep.simcore.model.workload import Workload

    count = int(rng.integers(1, 12))
    origin = float(rng.choice([0.0, 0.0, 0.0, 0.0, 1e9, 1e15, 1e19]))
    submit_s = origin + np.cumsum(rng.choice([0.0, 0.0, 1.0, 7.25, 60.0], count))
    run_s = rng.choice([0.5, 1.0, 5.0, 20.0, 100.0, 100.0, 300.0, 1000.0], count)
    if rng.random() < 0.05:
        run_s[rng.integers(count)] = rng.choice([5e-324, 1e-9, 1e12, 1e17, 1e300])
    with np.errstate(over="ignore"):
        requested_s = run_s * rng.choice([np.nan, 1.0, 2.0, 0.5, 1e3], count)
    requested_s[~((requested_s > 0) & np.isfinite(requested_s))] = np.nan
    size = rng.integers(1, nodes + 1, count)
    number = np.arange(count)
    return Workload(number, submit_s, run_s, requested_s, size, number % 3, name="case", nodes=nodes)


def trace(rng: np.random.Generator, start_s: float, nodes: int):
    """Return a few failures near the beginning, at one time or not."""
    from faultsweep.simcore.model.failure_trace import FailureTrace

    count = int(rng.integers(0, 9))
    time_s = start_s + np.cumsum(rng.choice([0.0, 0.0, 1.0, 20.0, 33.5], count))
    down_s = rng.choice([0.0, 0.0, 1.0, 50.0, 1e300 if rng.random() < 0.02 else 9.0], count)
    return FailureTrace(time_s, rng.integers(0, nodes, count), down_s, name="case")


def run(number: int) -> str:
    """Make a run; return "done", "truncated" or "refused".

    Raises whatever the run should not: anything but an InputError.
    """
    from faultsweep.simcore.engine.jit import is_interpreted
    from faultsweep.simcore.model.machines import parse_machine
    from faultsweep.simcore.simulate import simulate

    from faultsweep.errors import InputError

    values, rng = configuration(number)
    debug = bool(rng.random() < 0.5)
    with warnings.catch_warnings(), limits(debug):
        if not is_interpreted():  # plain Python warns of the arithmetic that kernels do with intent
            warnings.simplefilter("error")
        nodes = parse_machine(values["machine"]).nodes
        debug = debug and nodes < 100
        jobs = workload(rng, nodes)
        given = trace(rng, float(jobs.submit_s[0]), nodes)
        named = values.pop("failures")
        failures = given if named == "given" else named
        try:
            found = simulate(jobs, failures=failures, events=rng.random() < 0.5, debug=debug, **values)
        except InputError:
            return "refused"
    check(found)
    return found.status


@contextlib.contextmanager
def limits(debug: bool) -> Iterator[None]:
    """Lower the engine's limits meanwhile."""
    from faultsweep.simcore.engine import build
    from faultsweep.simcore.engine.clusters import build as cluster_build
    from faultsweep.simcore.failure_logs import fitting
    from faultsweep.simcore.policies.failures import source

    limit = MOST_CHECKED if debug else MOST_WITHOUT_JOB
    wanted = ((build, "MOST_WITHOUT_JOB", limit), (cluster_build, "MOST_WITHOUT_JOB", limit))
    wanted += tuple((module, "MOST_FAILURES", MOST_FAILURES) for module in (source, fitting))
    before = [(module, name, getattr(module, name)) for module, name, _ in wanted]
    try:
        for module, name, value in wanted:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def check(found: Any) -> None:
    """Raise AssertionError for results that no run can have."""
    jobs, metrics = found.jobs, found.metrics
    ended = ~np.isnan(jobs["finish_s"])
    assert found.status == "truncated" or ended.all(), "a run that is done has unfinished jobs"
    assert (jobs["start_s"][ended] >= jobs["submit_s"][ended]).all(), "a job starts before its submission"
    assert (jobs["finish_s"][ended] >= jobs["start_s"][ended]).all(), "a job ends before its start"
    infinite = [name for name, value in metrics.items() if math.isinf(value) and name != "highest_saturation"]
    assert not infinite, f"infinite metrics: {infinite}"
    differences = ("mean_delay_regular_s", "max_delay_regular_s", "lost_capacity", "failure_slowdown")
    negative = [name for name, value in metrics.items() if value < -1e-6 and not name.startswith(differences)]
    assert not negative, f"negative metrics: {negative}"


def check_build() -> None:
    """Raise RuntimeError unless the kernels check bounds: Numba leaves the checks out without a word."""
    from faultsweep.simcore.engine.build import build_state
    from faultsweep.simcore.engine.loop import advance
    from faultsweep.simcore.model.machines import parse_machine
    from faultsweep.simcore.parameters import resolve

    one = {name: np.ones(1) for name in ("submit_s", "work_s", "estimate_s")}
    one |= {name: np.ones(1, np.int64) for name in ("requested", "size")}
    state = build_state(one, parse_machine("flat:1"), resolve({}), None, tracing=False)
    around = np.zeros((1000, 1))  # what a kernel without checks reads, before it finds that time is up
    state = state.with_arrays(job_f=around[500 : 500 + len(state.arrays["job_f"])])
    state.next_arrival, state.horizon = -100, -1.0
    try:
        advance(state, 1)
    except IndexError:
        return
    raise RuntimeError("the kernels were compiled without bounds checks")


def work() -> None:
    """Make the runs whose numbers come in, one a line; answer each with a line."""
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    check_build()
    for clusters in ("flat:1", "clusters:1"):
        run_one(clusters)
    answer.write("ready\n")
    for line in sys.stdin:
        try:
            text = run(int(line))
        except Exception as error:
            text = f"FAILED {type(error).__name__}: {' '.join(str(error).split())[:300]}"
        answer.write(text + "\n")


def run_one(machine: str) -> None:
    """Compile the engine of a machine."""
    from faultsweep.simcore.simulate import simulate

    simulate(workload(np.random.default_rng(0), 1), machine=machine, scheduler="fcfs")


class Worker:
    """A process that makes runs, and is killed when one takes too long."""

    def __init__(self, cache: str) -> None:
        """Start no process yet."""
        self._command = [sys.executable, "-m", "tests.fuzz_bounds", "--worker"]
        self._environment = os.environ | {
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_DISABLE_JIT": "0",
            "FAULTSWEEP_CACHE_DIR": cache,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        self._process: subprocess.Popen[str] | None = None

    def run(self, number: int) -> str:
        """Return what became of a run."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                **{"cwd": ROOT, "env": self._environment, "text": True, "bufsize": 1},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            ready = self._line(COMPILING_S)
            if ready != "ready":
                raise RuntimeError(f"a worker does not start: {ready}")
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        return self._line(LIMIT_S)

    def _line(self, limit_s: float) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], limit_s)[0]:
            self.stop()
            return f"FAILED hangs: no end within {limit_s:g} s"
        line = process.stdout.readline().strip()
        if not line:
            self.stop()
            return f"FAILED crashes: exit code {process.returncode}"
        return line

    def stop(self) -> None:
        """Kill the process: one that loops in a kernel hears nothing else."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def fuzz(first: int, runs: int, jobs: int, cache: str) -> tuple[Counter[str], dict[int, str]]:
    """Make runs in several processes; return how many ended how, and what failed."""
    outcomes: Counter[str] = Counter()
    failed: dict[int, str] = {}
    numbers = iter(range(first, first + runs))
    lock = threading.Lock()
    began = time.monotonic()

    def share() -> None:
        worker = Worker(cache)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            text = worker.run(number)
            with lock:
                outcomes[text.split()[0]] += 1
                if text.startswith("FAILED"):
                    failed[number] = text
                    print(f"run {number}: {text}\n    {dict(pairs()[number * ORDER % len(pairs())])}", flush=True)
                done = sum(outcomes.values())
                if done % TELL_RUNS == 0:
                    left_s = (time.monotonic() - began) / done * (runs - done)
                    print(
                        f"{done:,} of {runs:,} runs, {len(failed)} failed, about {left_s / 60:.0f} min left", flush=True
                    )
        worker.stop()

    if jobs > 1:  # the first worker compiles for all
        pioneer = Worker(cache)
        pioneer.run(first)
        pioneer.stop()
    threads = [threading.Thread(target=share) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes, failed


def main() -> int:
    """Fuzz, print what was found, and fail if any run did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/faultsweep-fuzz", help="folder of the kernels")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work()
        return 0
    began = time.monotonic()
    print(f"{len(pairs()):,} pairs of {len(settings())} values")
    outcomes, failed = fuzz(options.first, options.runs, options.jobs, options.cache)
    print(f"{dict(outcomes)} in {time.monotonic() - began:.0f} s; {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
