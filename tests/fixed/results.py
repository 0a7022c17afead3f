"""Results of several hundred runs, kept to the bit: what a change of the code must not change.

``python -m tests.fixed.results`` makes the file again and says what differs from the one that was there. Results may
change only together with ``MODEL_VERSION``. The configurations stay as they are in the file; ``--draw`` draws others.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.simulate import MODEL_VERSION, Run, simulate

from faultsweep.errors import InputError

FILE = Path(__file__).with_name("results.jsonl")
COUNT = 500
JOBS = 60
HASHES = ("jobs", "events", "exact")
"""Of the per-job results, of the event trace and of the metrics, all to the bit."""


class Draw:
    """Whole numbers of a linear congruential generator: the same on every machine and with every library."""

    def __init__(self, seed: int) -> None:
        """Start from a seed."""
        self.value = seed * 2654435761 + 12345

    def __call__(self, end: int) -> int:
        """Return the next number from 0 to ``end - 1``."""
        self.value = (self.value * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.value >> 33) % end


def workload(machine: str, seed: int) -> Workload:
    """Jobs in bursts, with ties, overruns and jobs without an estimate."""
    draw, largest, unit = Draw(seed), *LARGEST.get(machine, (16, 1))
    rows, time = [], 1000
    for job in range(JOBS):
        time += (0, 0, 60, 300, 900, 1800)[draw(6)]
        run = (30, 600, 600, 3600, 5400, 20000)[draw(6)] + draw(100)
        estimate = (run, 2 * run, 3600 * (1 + run // 3600), run // 2 + 1, np.nan)[draw(5)]
        size = unit * (1 + draw(largest) if draw(3) == 0 else 1 + draw(max(1, largest // 4)))
        rows.append((job + 1, time, run, estimate, size, draw(5)))
    job_id, submit, run, estimate, size, user = (np.array(column) for column in zip(*rows, strict=True))
    return Workload(job_id, submit.astype(float), run.astype(float), estimate.astype(float), size, user, name="fixed")


def failure_trace(machine: str, seed: int) -> FailureTrace:
    """Failures on the jobs' clock: in bursts, of nodes that are down, at one time, before the first submission."""
    draw, (largest, _) = Draw(seed + 1000), LARGEST.get(machine, (16, 1))
    rows, time = [], 500
    for _ in range(40):
        time += (0, 60, 600, 3000, 9000)[draw(5)]
        rows.append((time, draw(largest), (0, 60, 3600)[draw(3)]))
    time_s, node, down_s = (np.array(column) for column in zip(*rows, strict=True))
    return FailureTrace(time_s.astype(float), node.astype(np.int64), down_s.astype(float), name="fixed")


def communication(machine: str, seed: int) -> Communication:
    """What jobs on clusters communicate, and state of it."""
    draw = Draw(seed + 2000)
    rows = [(draw(90), 100 + draw(400), (50, 100, 150, np.nan)[draw(4)]) for _ in range(JOBS)]
    percent, ppbw, stated = (np.array(column, float) for column in zip(*rows, strict=True))
    return Communication(workload(machine, seed).run_s * percent / 100, ppbw, ppbw * stated / 100)


def clearance(mfp_after, risk, x):
    """A placement score of the user's."""
    return 3.0 * x + 40.0 * risk - mfp_after


# Nodes that the largest job may ask for, in units of nodes; on others, such as sites, 16.
LARGEST = {
    "torus:4x4x8": (128, 1),
    "torus:3x5x2": (30, 1),
    "torus:2x2x9": (36, 1),
    "flat:64": (64, 1),
    "flat:100": (100, 1),
    "midplanes:8": (8, 512),
    "midplanes:5": (5, 512),
    "clusters:24+16+32": (32, 1),
    "clusters:40+40": (40, 1),
}

ANY = {
    "estimates": ("actual", "requested", "requested", "f-model"),
    "estimate_factor": (1.0, 3.0),
    "kill_at_estimate": (False, False, True),
    "load_scale": (1.0, 1.5),
    "arrival_scale": (1.0, 0.5, 2.0),
    "seed": (0, 1),
    "replicate": (0, 2),
    "max_restarts": (*[10000] * 9, 4),
    "horizon_s": (*["inf"] * 9, 40000.0),
    "restart_cost_s": (0.0, 120.0),
    "failures": ("none", "given", "given", "given", "weibull", "weibull-copula", "mtbf", "bursts"),
    "weibull_scale_s": (3000.0, 18000.0),
    "weibull_shape": (0.55, 0.85, 1.0),
    "burst_window": (2, 8),
    "zipf_alpha": (0.01, 0.99),
    "mtbf_h": (1.0, 4.0),
    "mtbf_shape": (0.7, 1.0),
    "mttr_h": (0.0, 0.5),
    "repair_distribution": ("constant", "exponential", "lognormal"),
    "down_time_s": (-1.0, -1.0, 0.0, 600.0),
    "failures_per_day": (20.0, 60.0),
}
ONE = {
    "scheduler": ("fcfs", "backfill", *["conservative"] * 3, "migration", "backfill+migration"),
    "queue_order": ("fcfs", "fcfs", "wfp"),
    "start_delay_s": (0.0, 0.0, 5.0),
    "growth_limit": (1, 1, 0, 4),
    "migration_free_frac": (0.1, 0.0),
    "migration_mfp_frac": (0.7, 1.0),
    "migration_cost_s": (0.0, 60.0),
    "placement": ("mfp", "mfp", "balancing", "balancing", "tie-breaking", "score"),
    "accuracy": (0.0, 0.5, 1.0),
    "partition_failure": ("product", "max"),
    "recall": (1.0, 1.0, 0.6, 0.0),
    "false_positive_rate": (0.0, 0.0, 0.05),
    "precision": (1.0, 1.0, 0.6),
    "finder": ("columns", "columns", "columns", "columns", "pop", "divisor"),
    "node_choice": ("first-fit", "lff", "lff", "random", "round-robin"),
    "lff_moves": (True, True, False),
    "move_threshold": (1, 0),
    "move_cost_s": (300.0, 30.0),
    "checkpoint": ("none", "none", "periodic", "young", "daly", "risk", "exact", "bucket"),
    "checkpoint_cost_s": (300.0, 60.0),
    "checkpoint_interval_s": (7200.0, 1200.0),
    "checkpoint_mtbf_h": (0.0, 10.0),
    "bucket_s": (3600.0, 14400.0),
    "bucket_jobs": ("all", "long", "biggest"),
    "bucket_repeat_s": (0.0, 1800.0),
    "bucket_long_s": (300.0, 3000.0),
    "bucket_biggest": (1, 3),
    "recovery": ("arrival", "arrival", "manual", "mix", "mix", "all-a", "all-b", "all-c", "all-d", "all-e"),
    "recovery_mix": ("normal", "even", "1:0:3:1:1"),
    "manual_delay_h": (0.5, 0.0),
    "manual_delay_distribution": ("constant", "exponential", "lognormal"),
    "hold_nodes": (True, False),
    "credits": (False, True),
    "gaming_frac": (0.0, 0.3),
}
CLUSTERS = {
    "scheduler": ("fcfs", "backfill", "first-fit"),
    "split": ("random", "round-robin", "user", "overlay"),
    "meta_scheduler": ("local", "migration-only", "naive", "naive", "bandwidth-aware", "bandwidth-aware"),
    "queues": ("local", "global"),
    "partitioning": ("largest-first", "minimum-cut"),
    "trunk_mbps": (1000.0, 300.0),
    "ppbw_mbps": (300.0, 100.0),
    "ppbw_distribution": ("constant", "uniform", "exponential"),
    "communication_share": (0.5, 0.2),
    "mesh_share": (0.5, 0.0, 1.0),
    "estimate_error_pct": (0.0, 30.0, 80.0),
    "error_direction": ("both", "under", "over"),
    "information_pct": (100.0, 60.0),
    "agent": ("none", "ctmr", "ctmr", "naive"),
    "agent_interval_s": (300.0, 0.0),
    "overhead_s": (720.0, 60.0),
    "overhead_known": (True, False),
    "cp_frac": (0.04, 0.5),
    "trunk_mtbf_h": (0.0, 0.0, 3.0),
    "trunk_down_s": (3600.0, 0.0),
    "trunk_outage": ("kill", "stall"),
}


DEFAULTS = {name: "inf" if p.default == float("inf") else p.default for name, p in PARAMETERS.items()}
NOT_PARAMETERS = ("communication",)


def draw_config(rng: random.Random) -> dict[str, Any]:
    """Return a random configuration."""
    machine = rng.choice(list(LARGEST))
    config = {name: rng.choice(values) for name, values in ANY.items()}
    on_clusters = _on_clusters({"machine": machine})
    config |= {name: rng.choice(values) for name, values in (CLUSTERS if on_clusters else ONE).items()}
    if not on_clusters and config["false_positive_rate"] > 0:
        config["precision"] = 1.0
    if machine == "torus:3x5x2":
        config["finder"] = rng.choice(("exhaustive", "columns"))
    if config["scheduler"] == "conservative" and machine.startswith("midplanes"):
        config["scheduler"] = "backfill"
    if config["scheduler"] == "conservative":
        config |= {"queue_order": "fcfs", "finder": "columns"}
    if not on_clusters and config["failures"] == "none" and config["checkpoint"] == "none":
        config["event_order"] = rng.choice(("instant", "submits-first", "ends-first"))
    if on_clusters:
        config["communication"] = rng.choice((0, 0, 1))
    config = {name: value for name, value in config.items() if name in NOT_PARAMETERS or value != DEFAULTS[name]}
    return {"machine": machine, "workload": rng.randrange(4), **config}


def run(case: dict[str, Any], later_s: float = 0.0) -> Run:
    """Run one configuration of the file, with all submissions so much later."""
    config = {name: float(value) if value == "inf" else value for name, value in case.items()}
    machine, seed = config["machine"], config.pop("workload")
    if config.pop("communication", 0):
        config["communication"] = communication(machine, seed)
    if config.get("placement") == "score":
        config["placement"] = clearance
    if config.get("failures") == "given":
        trace = failure_trace(machine, seed)
        config["failures"] = replace(trace, time_s=trace.time_s - workload(machine, seed).submit_s[0])
    more = {"trace": True} if machine.startswith("clusters") else {}
    jobs = workload(machine, seed)
    return simulate(replace(jobs, submit_s=jobs.submit_s + later_s), events=True, **more, **config)


def digest(rows: Any) -> str:
    """Return a short hash of numbers, to the bit."""
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def record(case: dict[str, Any], kept: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a configuration with its results, or with the error that it is.

    ``kept`` is an earlier record: the hashes are of the columns and metrics that it has.
    """
    columns, metrics = ((kept or {}).get(name) for name in ("columns", "metrics"))
    try:
        ran = run(case)
    except InputError as error:
        return {"config": case, "error": str(error)}
    names = sorted(ran.jobs) if columns is None else columns
    return {
        "config": case,
        "status": ran.status,
        "jobs": digest([(name, [value + 0 for value in ran.jobs[name].tolist()]) for name in names]),
        "events": digest([tuple(row) for row in ran.events.rows()] if ran.events else []),
        "columns": names,
        "exact": digest([ran.metrics[name] + 0.0 for name in sorted(set(ran.metrics) if metrics is None else metrics)]),
        "metrics": {name: None if isnan(value) else float(f"{value + 0.0:.9g}") for name, value in ran.metrics.items()},
    }


def _on_clusters(config: dict[str, Any]) -> bool:
    return config["machine"].startswith("clusters")


def read(path: Path = FILE) -> list[dict[str, Any]]:
    """Return the records of the file: its first row names the columns, the others are values in their order."""
    head, *rows = (json.loads(line) for line in path.read_text().splitlines())
    found = []
    for config, status, *rest in rows:
        if status == "error":
            found.append({"config": config, "error": rest[0]})
            continue
        hashes, values = dict(zip(HASHES, rest, strict=False)), rest[-1]
        names, columns = head["metrics"], head["columns_of_clusters" if _on_clusters(config) else "columns"]
        metrics = dict(zip(names, values, strict=True))
        found.append({"config": config, "status": status, **hashes, "columns": columns, "metrics": metrics})
    return found


def write(records: list[dict[str, Any]], path: Path = FILE) -> None:
    """Write the records, one a line."""
    ran = [one for one in records if "metrics" in one]
    by_kind = {_on_clusters(one["config"]): one["columns"] for one in ran}
    names = list(ran[0]["metrics"])
    head = {"model_version": MODEL_VERSION, "columns": by_kind[False], "columns_of_clusters": by_kind[True]}
    lines = [head | {"metrics": names}]
    for one in records:
        if "error" in one:
            lines.append([one["config"], "error", one["error"]])
        else:
            values = [one["metrics"][name] for name in names]
            lines.append([one["config"], one["status"], *(one[name] for name in HASHES), values])
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Say what is different in the results of one configuration; metrics that were added are no difference."""
    for name in ("error", "status", *HASHES):
        if old.get(name) != new.get(name):
            yield f"{name} {old.get(name)} -> {new.get(name)}"
    before, after = old.get("metrics", {}), new.get("metrics", {})
    for name in before:
        if before.get(name) != after.get(name, "absent"):
            yield f"{name} {before.get(name, 'absent')} -> {after.get(name, 'absent')}"


def draw_cases(count: int) -> list[dict[str, Any]]:
    """Return random configurations, few of which are errors."""
    rng, cases, errors = random.Random(17), [], 0
    while len(cases) < count:
        case = draw_config(rng)
        if "error" in record(case):
            errors += 1
            if errors > 20:
                continue
        cases.append(case)
    return cases


def main() -> None:
    """Make the file again."""
    parser = argparse.ArgumentParser(description="Make the file of fixed results again.")
    parser.add_argument("--draw", action="store_true", help="draw the configurations anew")
    old = read() if FILE.exists() else []
    cases = draw_cases(COUNT) if parser.parse_args().draw or not old else [one["config"] for one in old]
    new = json.loads(json.dumps([record(case) for case in cases]))
    write(new)
    before = {json.dumps(one["config"]): one for one in old}
    counts: Counter[str] = Counter()
    changed = 0
    for one in new:
        known = before.get(json.dumps(one["config"]))
        found = list(differences(known, one)) if known else []
        counts.update(line.split(" ", 1)[0] for line in found)
        changed += bool(found)
        if found and changed <= 20:
            print(json.dumps(one["config"]), *found[:8], sep="\n    ")
    print(f"{changed} of {len(new)} configurations have other results")
    for name, count in counts.most_common():
        print(f"    {name}: {count}")


if __name__ == "__main__":
    main()
