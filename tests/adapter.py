"""One way to ask the reference and the engine the same question.

Options have the names of ``tests.reference.state.Options``; ``ENGINE_NAMES`` translates them to the parameters of the
engine. Times are seconds in both.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.engine.metrics import MEASURED
from faultsweep.simcore.model.dependencies import dependencies_of
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import LABELS, Label, Workload
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.streams import coin_key, coins

from tests.reference.machines import MENUS
from tests.reference.metrics import reference_metrics
from tests.reference.simulator import simulate as reference_simulate
from tests.reference.state import Job

ENGINE_NAMES = {
    "scheduler": "scheduler",
    "event_order": "event_order",
    "estimates": "estimates",
    "start_delay": "start_delay_s",
    "growth_limit": "growth_limit",
    "migration_free_frac": "migration_free_frac",
    "migration_mfp_frac": "migration_mfp_frac",
    "migration_empty_queue": "migration_empty_queue",
    "migration_repeats": "migration_repeats",
    "migration_cost": "migration_cost_s",
    "kill_at_estimate": "kill_at_estimate",
    "slowdown_bound": "slowdown_bound_s",
    "placement": "placement",
    "a": "accuracy",
    "partition_risk": "partition_failure",
    "recall": "recall",
    "false_positive_rate": "false_positive_rate",
    "precision": "precision",
    "node_choice": "node_choice",
    "lff_moves": "lff_moves",
    "move_threshold": "move_threshold",
    "move_cost": "move_cost_s",
    "checkpoint": "checkpoint",
    "checkpoint_cost": "checkpoint_cost_s",
    "checkpoint_interval": "checkpoint_interval_s",
    "restart_cost": "restart_cost_s",
    "bucket": "bucket_s",
    "bucket_jobs": "bucket_jobs",
    "bucket_repeat": "bucket_repeat_s",
    "biggest": "bucket_biggest",
    "long_running": "bucket_long_s",
    "queue_order": "queue_order",
    "age_weight": "priority_age_weight",
    "longest_age": "priority_max_age_h",
    "share_weight": "priority_share_weight",
    "fair_share": "priority_fair_share",
    "tree": "priority_shares",
    "partition_weight": "priority_partition_weight",
    "partition_factors": "priority_partition_factors",
    "qos_weight": "priority_qos_weight",
    "qos_factors": "priority_qos_factors",
    "half_life": "priority_half_life_h",
    "damping": "priority_share_damping",
    "size_weight": "priority_size_weight",
    "small_first": "priority_small_first",
    "tres_weights": "priority_tres_weights",
    "formula": "job_sort_formula",
    "lsf_cpu_time": "lsf_cpu_time_factor",
    "lsf_run_time": "lsf_run_time_factor",
    "lsf_run_job": "lsf_run_job_factor",
    "hist_hours": "lsf_hist_hours",
    "lsf_shares": "lsf_shares",
    "nice": "priority_nice",
    "site_factor": "priority_site_factor",
    "association_weight": "priority_association_weight",
    "period": "priority_period_s",
    "hold": "hold_nodes",
    "requeue_hold": "requeue_hold_s",
    "user_max_jobs": "user_max_jobs",
    "user_max_nodes": "user_max_nodes",
    "account_max_jobs": "account_max_jobs",
    "account_max_nodes": "account_max_nodes",
    "partition_max_jobs": "partition_max_jobs",
    "partition_max_nodes": "partition_max_nodes",
    "qos_max_jobs": "qos_max_jobs",
    "qos_max_nodes": "qos_max_nodes",
    "array_max_jobs": "array_max_jobs",
    "array_max_nodes": "array_max_nodes",
    "horizon": "horizon_s",
    "main_interval": "main_interval_s",
    "full_interval": "full_interval_s",
    "backfill_interval": "backfill_interval_s",
    "grace_interval": "grace_interval_s",
    "preempt_wait": "preempt_wait_s",
    "preempt_leave": "preempt_leave_s",
    "main_depth": "main_depth",
    "backfill_depth": "backfill_depth",
    "backfill_user_depth": "backfill_user_depth",
    "backfill_window": "backfill_window_h",
    "backfill_resolution": "backfill_resolution_s",
    "top_jobs": "top_jobs",
    "dependencies": "dependencies",
    "preemption": "preemption",
    "preempt_grace": "preempt_grace_s",
    "site_grace": "site_grace",
    "preempt_exempt": "preempt_exempt_s",
    "site_tiers": "site_tiers",
}
STATISTICS = ("mean", "median", "p90", "p99", "max")
METRIC_NAMES = {
    "utilised": "utilisation",
    "unused": "unused_capacity",
    "lost": "lost_capacity",
    "fragmentation": "lost_to_fragmentation",
    "kept": "lost_to_hold",
    "down": "lost_to_down_time",
    "delayed": "lost_to_delay",
    "failed": "lost_to_failures",
    "grown": "lost_to_growth",
    "overhead": "lost_to_overhead",
    "makespan": "makespan_s",
    "failures": "failures_seen",
    "failures_hitting": "failures_that_hit",
    "jobs_hit": "jobs_hit",
    "restarts": "restarts",
    "node_seconds_lost": "work_lost_node_s",
    "work_loss_ratio": "work_loss_ratio",
    "checkpoint_overhead_ratio": "checkpoint_overhead_ratio",
    "checkpoints": "checkpoints",
    "checkpoints_wasted": "checkpoints_wasted",
    "overhead_seconds": "checkpoint_overhead_s",
    "migrations_attempted": "migrations_attempted",
    "migrations_successful": "migrations_successful",
    "migrations": "jobs_migrated",
    "failure_slowdown": "failure_slowdown",
    "time_at_limit": "mean_time_at_limit_s",
    "jobs_at_limit": "jobs_at_limit",
    "time_between_migrations": "mean_time_between_migrations_s",
    **{f"{statistic}_{name}": f"{statistic}_{name}_s" for name in ("wait", "response") for statistic in STATISTICS},
    **{
        f"{statistic}_{name}": f"{statistic}_{name}"
        for name in ("slowdown", "bounded_slowdown")
        for statistic in STATISTICS
    },
}
"""The engine's names of the metrics that the reference computes."""


@dataclass(frozen=True)
class Outcome:
    """What an implementation says: jobs by id, the trace as rows (time, kind, job, nodes), metrics by name."""

    jobs: dict[int, dict[str, Any]]
    events: list[tuple[Any, str, int, tuple[int, ...]]]
    metrics: dict[str, Any]
    status: str


def engine_lacks(machine: str, options) -> bool:
    """Whether the engine has no parameter yet for one of the options, or no such machine."""
    if machine.partition(":")[0] not in ("torus", "flat", "midplanes", "menu"):
        return True
    options = set(options) - {"recovery", "manual_delay"}
    return any(name not in ENGINE_NAMES or ENGINE_NAMES[name] not in PARAMETERS for name in options)


def reference_run(jobs: Sequence[Sequence], machine: str, failures: Sequence[Sequence] = (), **options) -> Outcome:
    """Run the reference simulator."""
    options = {"coin": _coin, **options}
    if options.pop("estimates", "actual") == "actual":
        jobs = [(*row[:3], None, *row[4:]) for row in jobs]
    if options.get("node_choice") == "random":
        key = coin_key(0, 0, "nodes")
        options["draw"] = lambda number, job, restarts: float(coins(key, number, job, restarts))
    if options.get("queue_order") == "random":
        lots = coin_key(0, 0, "queue")
        options["lot"] = lambda job: float(coins(lots, 0, job, 0))
    result = reference_simulate(jobs, machine, failures, **options)
    nodes = {e.job_id: e.nodes for e in result.events if e.kind in ("start", "migrate")}
    rows = {
        job.job_id: {
            "start": job.start,
            "first_start": job.first_start,
            "finish": job.finish,
            "nodes": nodes.get(job.job_id, ()),
            "starts": [e.time for e in result.events if e.kind == "start" and e.job_id == job.job_id],
            "boxes": [e.nodes for e in result.events if e.kind == "start" and e.job_id == job.job_id],
            "size": job.held_size,
            "restarts": job.restarts,
            "work_lost": job.work_lost,
            "checkpoint_overhead": job.overhead,
            "checkpoints": job.checkpoints,
            "migrations": job.migrations,
        }
        for job in result.jobs
    }
    metrics, per_job = reference_metrics(result, options)
    for job_id, values in per_job.items():
        rows[job_id].update(values)
    events = [(e.time, e.kind, e.job_id, e.nodes) for e in result.events]
    return Outcome(rows, events, metrics, result.status)


def _coin(node: int, job: int, restarts: int) -> float:
    """The coin that a run with seed 0 and replicate 0 throws."""
    return float(coins(_KEY, node, job, restarts))


_KEY = coin_key(0, 0)


def workload_of(jobs: Sequence[Sequence], dependencies: str = "none", asks: Callable | None = None) -> Workload:
    """The rows as the engine wants them."""
    jobs = sorted(jobs, key=lambda row: row[1])
    column = [np.array([row[i] for row in jobs], float) for i in (1, 2)]
    requested = np.array([np.nan if row[3] is None else row[3] for row in jobs], float)
    job_id, size = (np.array([row[i] for row in jobs], np.int64) for i in (0, 4))
    whose = [Job(index, int(each), 0, 1, 1, 1, 1) for index, each in enumerate(job_id)]
    pairs = [(job.index, *pair) for job in whose for pair in job.follows if dependencies == "log"]
    waits, after, think = (np.array([pair[i] for pair in pairs], np.int64) for i in range(3))
    labels = {name: _label([getattr(job, name) for job in whose]) for name in LABELS if name != "reservation"}
    if asks is not None:
        places = [asks(job) for job in whose]
        names = tuple(f"w{place}" for place in range(1 + max((each for each in places if each is not None), default=0)))
        labels["reservation"] = Label(np.array([-1 if each is None else each for each in places]), names)
    users = np.array([job.user for job in whose], np.int64)
    follows = dependencies_of(waits, after, think.astype(float))
    return Workload(job_id, *column, requested, size, users, name="case", labels=labels, dependencies=follows)


def _label(values: list[str]) -> Label:
    names, codes = np.unique(np.array(values, np.str_), return_inverse=True)
    return Label(codes.reshape(-1).astype(np.int64), tuple(map(str, names)))


def failures_of(failures: Sequence[Sequence], jobs: Sequence[Sequence]) -> FailureTrace | None:
    """The failures (time, node, down time) on the jobs' clock as the engine wants them; None if there are none."""
    if not failures:
        return None
    time, node, down = zip(*failures, strict=True)
    since = np.array(time, float) - min(row[1] for row in jobs)
    return FailureTrace(since, np.array(node, np.int64), np.array(down, float), name="case")


def engine_run(jobs: Sequence[Sequence], machine: str, failures: Sequence[Sequence] = (), **options) -> Outcome:
    """Run the compiled engine, with an event trace; its results are those of a run without one, which takes a shorter
    way through the engine."""
    from faultsweep.simcore.simulate import simulate

    options = {"scheduler": "fcfs"} | options
    more = recovery_of(jobs, options)
    machine = menu_file(machine) if machine in MENUS else machine
    parameters = {ENGINE_NAMES[name]: as_text(value) for name, value in options.items()}
    if machine.startswith("midplanes:"):  # rows count midplanes, a job log counts nodes
        jobs = [(*row[:4], 512 * row[4]) for row in jobs]
    workload = workload_of(jobs, options.get("dependencies", "none"))
    given = {"failures": failures_of(failures, jobs), "machine": machine, **parameters, **more}
    run = simulate(workload, events=True, **given)
    assert_same_results(simulate(workload, **given), run)
    return outcome_of(run)


def assert_same_results(run: Any, expected: Any) -> None:
    """Compare what two runs of the engine give, to the bit."""
    for name, column in expected.jobs.items():
        np.testing.assert_array_equal(run.jobs[name], column, err_msg=name)
    names = [name for name in expected.metrics if name not in MEASURED]
    found, wanted = ([each.metrics[name] for name in names] for each in (run, expected))
    np.testing.assert_array_equal(found, wanted)


def recovery_of(jobs: Sequence[Sequence], options: dict[str, Any]) -> dict[str, Any]:
    """The recovery of the rows, whose sixth value is the option, in the engine's words; takes it out of the options."""
    delay = options.pop("manual_delay", None)
    if not options.pop("recovery", False):
        return {}
    rows = sorted(jobs, key=lambda row: row[1])
    found = {"recovery": "mix", "options": "".join(row[5] if len(row) > 5 else "A" for row in rows)}
    if delay is None:
        return found | {"manual_delay_h": 0.0}
    return found | {"manual_delay_h": delay(0, 0) / 3600, "manual_delay_distribution": "constant"}


_FOLDER = tempfile.TemporaryDirectory()


@cache
def menu_file(machine: str) -> str:
    """A menu of the reference as a file."""
    nodes, partitions = MENUS[machine]
    rows = [
        f'{{ name = "{place}", midplanes = {midplanes}, wires = {json.dumps(wires)} }},'
        for place, (midplanes, wires) in enumerate(partitions)
    ]
    path = Path(_FOLDER.name) / f"{machine.partition(':')[2]}.toml"
    path.write_text("\n".join([f"midplanes = {nodes}", "nodes_per_midplane = 1", "partitions = [", *rows, "]"]))
    return str(path)


def _in_tree(name: str, user: str = "", parent: str = "") -> str:
    return name + (f"/{user}" if user else "") + (f" in {parent}" if parent else "")


def as_text(value: Any) -> Any:
    if isinstance(value, tuple):  # of names and numbers, or of the rows of a tree of accounts
        return ",".join(f"{_in_tree(*row[:-1])}:{row[-1]}" for row in value)
    return value if isinstance(value, (str, bool, int)) else float(value)


def outcome_of(run) -> Outcome:
    """An engine's run in the words of the reference."""
    events = [(time, kind, job, tuple(nodes)) for time, kind, job, _, nodes in run.events.rows()]
    rows = {}
    for i, job_id in enumerate(int(j) for j in run.jobs["job_id"]):
        values = {name.removesuffix("_s"): column[i].item() for name, column in run.jobs.items()}
        starts = [(time, nodes) for time, kind, job, nodes in events if kind == "start" and job == job_id]
        placed = [nodes for _, kind, job, nodes in events if kind in ("start", "migrate") and job == job_id]
        values["starts"], values["boxes"] = [time for time, _ in starts], [nodes for _, nodes in starts]
        values["nodes"] = placed[-1] if placed else ()
        rows[job_id] = {k: None if isinstance(v, float) and isnan(v) else v for k, v in values.items()}
    metrics = {ours: run.metrics[theirs] for ours, theirs in METRIC_NAMES.items() if theirs in run.metrics}
    return Outcome(rows, events, metrics, run.status)


IMPLEMENTATIONS = {"reference": reference_run, "engine": engine_run}
