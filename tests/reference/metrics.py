"""The metrics of a reference run, recomputed from its trace by ``replay``."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import nan
from typing import Any

from .replay import Replay, statistics
from .simulator import Result, simulate
from .state import Job, exact

PARTS = ("fragmentation", "kept", "down", "delayed", "failed", "grown", "overhead")


def mean_gap(times) -> Any:
    """The mean of the gaps between times; not a number if there is none."""
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else nan


def reference_metrics(result: Result, options: dict[str, Any]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Metrics of the run, and of each job that ended."""
    bound = exact(options.get("slowdown_bound", 10))
    since = [job.submit if job.eligible is None else job.eligible for job in result.jobs]
    rows = [(job.job_id, at, job.run, job.requested_size) for job, at in zip(result.jobs, since, strict=True)]
    replay = Replay(result.events, rows, result.nodes, result.end)
    per_job, done = {}, []
    for job in result.jobs:
        history = replay.jobs[job.job_id]
        assert history.finish == job.finish
        if job.finish is None:
            continue
        done.append(job)
        per_job[job.job_id] = {
            "wait": history.wait,
            "response": history.response,
            "slowdown": history.slowdown,
            "bounded_slowdown": history.bounded_slowdown(bound),
        }
    metrics = dict(replay.capacities(options.get("hold", True))) if result.end > replay.begin else {}
    for name in ("wait", "response", "slowdown", "bounded_slowdown") if done else ():
        for statistic, value in statistics(row[name] for row in per_job.values()).items():
            metrics[f"{statistic}_{name}"] = value
    metrics |= {
        "makespan": replay.end - replay.begin,
        "failures": replay.failures,
        "failures_hitting": sum(len(history.kills) for history in replay.jobs.values()),
        "jobs_hit": sum(bool(history.kills) for history in replay.jobs.values()),
        "restarts": sum(job.restarts for job in result.jobs),
        "checkpoints": sum(job.checkpoints for job in result.jobs),
        "checkpoints_wasted": sum(job.checkpoints - job.checkpoints_used for job in result.jobs),
        "overhead_seconds": sum(job.overhead for job in result.jobs),
        "migrations": sum(len(history.migrations) for history in replay.jobs.values()),
        "time_between_migrations": mean_gap(result.migration_times),
        "migrations_attempted": result.migrations_attempted,
        "migrations_successful": result.migrations_successful,
    }
    metrics["jobs_at_limit"] = sum(job.time_at_limit > 0 for job in done)
    if done:
        metrics["time_at_limit"] = sum(Fraction(job.time_at_limit) for job in done) / len(done)
        metrics["work_loss_ratio"] = sum(Fraction(job.work_lost) / job.run for job in done) / len(done)
        metrics["checkpoint_overhead_ratio"] = sum(Fraction(job.overhead) / job.run for job in done) / len(done)
    if len(done) == len(result.jobs):
        lost_work = {(job.job_id, n): lost for job in result.jobs for n, lost in job.lost_by_attempt.items()}
        kept_work = {(job.job_id, n): kept for job in result.jobs for n, kept in enumerate(kept_by_attempt(job))}
        metrics |= replay.shares_of_lost(lost_work, kept_work, options.get("hold", True))
        assert sum(metrics[part] for part in PARTS) == metrics["lost"]
    if options.get("recovery"):
        metrics |= failure_slowdown(result, options)
    metrics["node_seconds_lost"] = sum(job.node_seconds_lost for job in result.jobs)
    return metrics, per_job


def kept_by_attempt(job: Job) -> list[Any]:
    """The work (s) of each attempt of a finished job that counts in the end: what it saved, or what it finished."""
    saved = [0, *(job.saved_by_attempt.get(n, 0) for n in range(job.restarts)), job.run]
    return [after - before for before, after in pairwise(saved)]


def failure_slowdown(result: Result, options: dict[str, Any]) -> dict[str, Any]:
    """FSD (tang2010): how much later failed jobs end than in the run without failures, per run time."""
    rows = [(j.job_id, j.submit, j.run, j.estimate, j.requested_size, j.option) for j in result.jobs]
    undisturbed = simulate(rows, result.machine, (), **options)
    delays = [
        Fraction((job.finish - job.eligible) - (other.finish - other.eligible)) / job.run
        for job, other in zip(result.jobs, undisturbed.jobs, strict=True)
        if job.restarts and job.finish is not None
    ]
    return {"failure_slowdown": sum(delays) / len(delays)} if delays else {}
