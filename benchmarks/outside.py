"""Policies of the user's beside the same rules built in: python -m benchmarks.outside

Each pair runs in turn in one process; the ratio is that of the medians of processor time, of the whole run. The exit
code is 1 if a ratio is above MOST.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_configured

RULES = """
PARAMETERS = {"share": {"default": 1.0, "doc": "Share of the interval."}}


def wfp(estimate_s, nodes, wait_s):
    share = wait_s / estimate_s
    return share * share * share * nodes


def smallest(estimate_s, nodes):
    return -estimate_s * nodes


def lowest(node):
    return node


def safest(failures, node, machine_nodes):
    return failures * machine_nodes + node


def largest_left(mfp_after):
    return -mfp_after


largest_left.monotone = True


def balancing(mfp_before, mfp_after, requested, risk):
    return (mfp_before - mfp_after) + requested * risk


balancing.monotone = True


def every(interval_s, share):
    return interval_s * share


def weibull(stream, places):
    times = stream("times")
    while True:
        for gap_s, node in zip(20000.0 * times.weibull(0.85, 256), places(256)):
            yield gap_s, node, 600.0


def oracle(until_failure_s, window_s):
    return until_failure_s < window_s


def easy(estimate_s, nodes, until_reservation_s, extra):
    return estimate_s <= until_reservation_s or nodes <= extra
"""
FAILING = {"failures": "weibull", "weibull_scale_s": 20_000.0, "down_time_s": 600.0}
FLAT, TORUS = {"machine": "flat:128"}, {"machine": "torus:4x4x8"}
PAIRS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("queue_order", "wfp", "wfp", FLAT),
    ("queue_order", "saf", "smallest", FLAT),
    ("node_choice", "first-fit", "lowest", {**FLAT, **FAILING}),
    ("node_choice", "lff", "safest", {**FLAT, **FAILING, "lff_moves": False}),
    ("placement", "mfp", "largest_left", TORUS),
    ("placement", "balancing", "balancing", {**TORUS, **FAILING, "accuracy": 0.5}),
    ("checkpoint", "periodic", "every", {**FLAT, **FAILING}),
    ("failures", "weibull", "weibull", {**FLAT, **FAILING}),
    ("predictor", "coins", "oracle", {**TORUS, **FAILING, "placement": "balancing", "accuracy": 0.5}),
    ("scheduler", "backfill", "easy", FLAT),
]
JOBS, TURNS, MOST = 5000, 9, 1.2


def main() -> int:
    """Print a row for each pair: the medians in ms, and their ratio; return whether one is too large."""
    missed = False
    config = resolve({"log": "sdsc-model", "num_jobs": JOBS, "machine": "flat:128"})
    workload = load_configured(config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.py"
        path.write_text(RULES)
        for parameter, built_in, own, more in PAIRS:
            times: dict[str, list[float]] = {built_in: [], f"{path}:{own}": []}
            for turn in range(TURNS + 1):
                for value, taken in times.items():
                    given = {**more, parameter: value}
                    begun = time.process_time()
                    simulate(workload, **given)
                    if turn:  # the first compiles
                        taken.append(time.process_time() - begun)
            plain, outside = (statistics.median(taken) * 1000 for taken in times.values())
            print(f"{parameter:12} {built_in:10} {plain:8.1f} {own:13} {outside:8.1f} ratio {outside / plain:.2f}")
            missed |= outside > MOST * plain
    print(f"wanted: ratios of {MOST} at most")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
