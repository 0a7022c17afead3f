"""Speed of the compiled engine: ``python -m benchmarks.engine --log SDSC-LOG [--part failures] [--curie]``.

Simulated jobs per second of the loop alone, per core, median over repeats, beside a plain-Python scheduler in the same
run, because machines differ and are noisy: quote the ratio. The two must agree on the mean wait, or it stops.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc

import numpy as np
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.transforms import span
from faultsweep.sweeps.logs import load_workload

from benchmarks.plain_easy import schedule

JOBS = 10_000
CASES = (
    ("flat:128", "fcfs", "requested"),
    ("flat:128", "backfill", "requested"),
    ("flat:128", "conservative", "requested"),
    ("torus:4x4x8", "fcfs", "actual"),
    ("torus:4x4x8", "backfill", "actual"),
    ("torus:4x4x8", "migration", "actual"),
    ("torus:4x4x8", "backfill+migration", "actual"),
    ("torus:4x4x8", "conservative", "actual"),
)


def plain_rate(workload: Workload, easy: bool) -> tuple[float, float]:
    """Return the plain-Python scheduler's jobs per second and mean wait."""
    estimate = np.where(np.isnan(workload.requested_s), workload.run_s, workload.requested_s)
    arrays = [a.tolist() for a in (workload.submit_s, workload.run_s, estimate, workload.size)]
    began = time.perf_counter()
    start = schedule(*arrays, nodes=128, easy=easy)
    return len(workload) / (time.perf_counter() - began), float(np.mean(np.array(start) - workload.submit_s))


def report_schedulers(workload: Workload, repeat: int) -> None:
    """Print the speed of every scheduler without failures, beside the plain-Python one."""
    plain = {"fcfs": plain_rate(workload, easy=False), "backfill": plain_rate(workload, easy=True)}
    print(f"{'plain Python EASY':34} {plain['backfill'][0]:12,.0f} jobs/s")
    for machine, scheduler, estimates in CASES:
        run = simulate(workload, machine=machine, scheduler=scheduler, estimates=estimates, repeat=repeat)
        rate = len(workload) / run.elapsed_s
        print(
            f"{machine:12} {scheduler:21} {rate:12,.0f} jobs/s  {rate / plain['backfill'][0]:8.1f} x plain Python EASY"
        )
        if machine.startswith("flat") and scheduler in plain:
            ours, theirs = run.metrics["mean_wait_s"], plain[scheduler][1]
            assert abs(ours - theirs) <= 1e-9 * theirs, (scheduler, ours, theirs)


RECOVERY_CASES = (
    ("no failures", {"failures": "none"}),
    ("arrival", {"recovery": "arrival"}),
    *((f"all-{option}", {"recovery": f"all-{option}"}) for option in "abcde"),
    ("mix, wfp", {"recovery": "mix", "queue_order": "wfp"}),
    ("mix, wfp, credits", {"recovery": "mix", "queue_order": "wfp", "credits": True}),
)


def report_recovery(_workload: Workload, repeat: int) -> None:
    """Print the speed on the partition menu of a Blue Gene/P, under each recovery option."""
    workload = load_workload("intrepid-model", num_jobs=JOBS)
    given = {"machine": "midplanes:80", "estimates": "requested", "failures": "mtbf", "mtbf_h": 8.0}
    for name, case in RECOVERY_CASES:
        run = simulate(workload, repeat=repeat, **{**given, **case})
        rate = len(workload) / run.elapsed_s
        print(f"midplanes:80 EASY, {name:18} {rate:12,.0f} jobs/s  {int(run.metrics['restarts']):6} restarts")


def peak_memory(workload: Workload, machine: str) -> int:
    """Return the most memory that a run and its per-job results allocate beside the workload, bytes."""
    tracemalloc.start()
    len(simulate(workload, machine=machine, scheduler="backfill").jobs)  # made when they are asked for
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def report_memory(workload: Workload, _repeat: int) -> None:
    """Print the memory of a run, and how much of it a job more costs."""
    half = len(workload) // 2
    for machine in ("flat:128", "torus:4x4x8"):
        simulate(workload, machine=machine, scheduler="backfill")  # what is loaded once per process is no run's
        whole, part = peak_memory(workload, machine), peak_memory(span(workload, 0, half), machine)
        each = (whole - part) / (len(workload) - half)
        print(f"{machine:12} memory of a run {whole / 1e6:8.2f} MB  {each:8.0f} bytes per job")


def balancing(mfp_before: int, mfp_after: int, requested: int, risk: float) -> float:
    """Return the score of the built-in rule balancing."""
    return (mfp_before - mfp_after) + requested * risk


def largest_left(mfp_after: int) -> int:
    """Return the score of the built-in rule mfp."""
    return -mfp_after


def tie_breaking(mfp_after: int, reported: int) -> int:
    """Return the score of the built-in rule tie-breaking."""
    return -2 * mfp_after + (1 if reported > 0 else 0)


for score in (balancing, largest_left, tie_breaking):
    score.monotone = True

FAILURE_CASES = (
    ("no failures", {"failures": "none"}),
    ("mfp", {}),
    ("mfp as a score", {"placement": largest_left}),
    ("balancing", {"placement": "balancing", "accuracy": 0.5}),
    ("balancing as a score", {"placement": balancing, "accuracy": 0.5}),
    ("tie-breaking", {"placement": "tie-breaking", "accuracy": 0.5}),
    ("tie-breaking as a score", {"placement": tie_breaking, "recall": 0.5}),
    ("tie-breaking, precision 0.5", {"placement": "tie-breaking", "accuracy": 0.5, "precision": 0.5}),
)


def report_failures(workload: Workload, repeat: int) -> None:
    """Print how much failures and prediction cost, per processed event: a submission, a start, an end or a failure."""
    for scheduler in ("backfill", "backfill+migration"):
        costs: dict[str, float] = {}
        for name, case in FAILURE_CASES:
            parameters = {"scheduler": scheduler, "failures": "bursts", "failures_per_day": 4.0, **case}
            run = simulate(workload, repeat=repeat, **parameters)
            events = 3 * len(workload) + 3 * run.metrics["restarts"] + run.metrics["failures_seen"]
            costs[name] = run.elapsed_s / events * 1e6
            failures = f"{int(run.metrics['failures_seen'])} failures"
            print(f"torus {scheduler:18} {name:35} {failures:13} {costs[name]:7.3f} us per event")
        ratios = [
            f"{rule} {costs[f'{rule} as a score'] / costs[rule]:.2f}" for rule in ("mfp", "balancing", "tie-breaking")
        ]
        print(
            f"torus {scheduler:18} failures {costs['mfp'] / costs['no failures']:.2f} x without (limit 1.3), "
            f"balancing {costs['balancing'] / costs['mfp']:.2f} x mfp (limit 3), "
            f"scores x built in (limit 1.2): {', '.join(ratios)}"
        )


def report_checkpoints(workload: Workload, repeat: int) -> None:
    """Print the speed with 266 failures on 320 nodes (zhang2004, Table I) and what checkpoints and node choice cost."""
    random = np.random.default_rng(0)
    time_s = np.sort(random.uniform(workload.submit_s[0], workload.submit_s[-1], 266).round(3))
    failures = FailureTrace(time_s, random.integers(0, 320, 266), np.full(266, 120.0))
    base = None
    for name, parameters in (
        ("first fit", {}),
        ("lff", {"node_choice": "lff"}),
        ("lff, periodic", {"node_choice": "lff", "checkpoint": "periodic"}),
        ("lff, exact", {"node_choice": "lff", "checkpoint": "exact"}),
        ("lff, bucket", {"node_choice": "lff", "checkpoint": "bucket", "bucket_s": 14_400.0}),
        ("lff, bucket, each hour", {"node_choice": "lff", "checkpoint": "bucket", "bucket_repeat_s": 3600.0}),
    ):
        common = {"machine": "flat:320", "target_utilisation": 0.85, "repeat": repeat}
        run = simulate(workload, failures=failures, **common, **parameters)
        rate = len(workload) / run.elapsed_s
        base = base or rate
        count = int(run.metrics["checkpoints"])
        print(f"flat:320 backfill {name:24} {rate:12,.0f} jobs/s  {base / rate:6.2f} x the time, {count} checkpoints")
    print("flat:320 backfill limits: lff 300,000 jobs/s; exact and bucket 2 x the time of lff")


def report_long_queues(_workload: Workload, repeat: int) -> None:
    """Print the speed on 320 nodes (zhang2004) where failures make queues of hundreds of jobs."""
    workload = load_workload("llnl-model", num_jobs=7500)
    for checkpoint in ("none", "periodic"):
        given = {"failures": "weibull", "target_utilisation": 0.95, "checkpoint": checkpoint}
        for scheduler in ("backfill", "conservative"):
            run = simulate(workload, machine="flat:320", scheduler=scheduler, repeat=repeat, **given)
            metrics = run.metrics
            queue = metrics["mean_wait_s"] * len(workload) / metrics["makespan_s"]
            print(
                f"flat:320 {scheduler:12} checkpoint {checkpoint:9} {len(workload) / run.elapsed_s:12,.0f} jobs/s, "
                f"{queue:,.0f} jobs wait on average, {int(metrics['restarts'])} restarts"
            )


def report_large(workload: Workload, repeat: int) -> None:
    """Print what a pass takes on a large torus; other programs make the longest one longer now and then."""
    large = {"machine": "torus:32x32x64", "size_map": "scale", "time_scheduling": True}
    runs = [simulate(workload, scheduler="backfill", **large).metrics for _ in range(repeat)]
    each_ms = [1e3 * metrics["mean_scheduling_s"] for metrics in runs]
    longest_ms = [1e3 * metrics["max_scheduling_s"] for metrics in runs]
    print(
        f"torus:32x32x64 backfill, {len(workload):,} jobs: {np.median(each_ms):.2f} ms per job, "
        f"the longest pass {np.median(longest_ms):.1f} ms ({min(longest_ms):.1f} to {max(longest_ms):.1f})"
    )


PARTS = {
    "schedulers": report_schedulers,
    "memory": report_memory,
    "failures": report_failures,
    "checkpoints": report_checkpoints,
    "long-queues": report_long_queues,
    "recovery": report_recovery,
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", default="sdsc-model", help="named log, model or path")
    parser.add_argument("--logs", default=None, help="folder of named logs")
    parser.add_argument("--curie", action="store_true", help="also the whole Curie log on flat:5544")
    parser.add_argument("--large", action="store_true", help="also 10,000 jobs on torus:32x32x64")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--part", choices=PARTS, help="only this part")
    options = parser.parse_args()
    workload = span(load_workload(options.log, options.logs), 0, JOBS)
    print(f"{workload.name}: {len(workload):,} jobs, median of {options.repeat}")
    for report in [PARTS[options.part]] if options.part else PARTS.values():
        report(workload, options.repeat)
    if options.curie:
        curie = load_workload("cea-curie", options.logs)
        run = simulate(curie, machine="flat:5544", scheduler="backfill", estimates="requested", size_map="scale")
        print(f"{curie.name}: {len(curie):,} jobs on flat:5544, EASY: {run.elapsed_s:.2f} s")
    if options.large:
        report_large(workload, options.repeat)


if __name__ == "__main__":
    main()
