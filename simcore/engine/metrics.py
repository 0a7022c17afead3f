"""The metrics of a run: one table of names, units and descriptions, and how they are computed from per-job results.

Definitions are those of krevat2003 sec. 4.2 (wait, response, bounded slowdown, capacities), oliner2004 sec. 6.1 (wait
to the last start) and zhang2004 (work-loss ratio, checkpoint-overhead ratio). Means and percentiles are over the jobs
that finished.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.engine.state import DONE, MISSED, REFUSED, State
from faultsweep.simcore.job_results import constant
from faultsweep.simcore.model.machines import FLAT, SITE
from faultsweep.simcore.policies.recovery.measures import LETTERS, recovery_measures
from numpy.typing import NDArray


class Known(NamedTuple):
    """What a metric is that nothing can happen to: ``value``, or NaN where the metric ``like`` is NaN."""

    value: float
    like: str = ""


_Chosen = NDArray[np.bool_] | slice
"""Which jobs: a mask, or all."""
NOTHING, ABSENT = Known(0.0), Known(math.nan)
_OF_CAPACITY, _OF_JOBS = Known(0.0, "utilisation"), Known(0.0, "mean_wait_s")


@dataclass(frozen=True)
class Metric:
    """One metric of a run.

    Attributes
    ----------
    unit : "" for a ratio or a count.
    doc : one sentence.
    without : what it is in a run none of whose policies may change it; None of those that every run has.
    """

    unit: str
    doc: str
    without: Known | None = None


_STATISTICS = {"mean": "Mean", "median": "Median", "p90": "90th percentile", "p99": "99th percentile", "max": "Largest"}
_SHARES = (0.9, 0.99)
_PER_JOB = {
    "wait_s": ("s", "wait, last start - submit"),
    "response_s": ("s", "response time, finish - submit"),
    "slowdown": ("", "slowdown, response / run time"),
    "bounded_slowdown": ("", "bounded slowdown, max(response, bound) / max(run time, bound)"),
}
_LABELS = {name: [f"{statistic}_{name}" for statistic in _STATISTICS] for name in _PER_JOB}
_RATIOS = {"work_loss_ratio": "work_lost_s", "checkpoint_overhead_ratio": "checkpoint_overhead_s"}
_COUNTS = ("jobs_submitted", "unfinished_jobs", "jobs_hit")
_SUMS = ("restarts", "work_lost_node_s", "checkpoints", "checkpoint_overhead_s")
"""Metrics that are the sum of the per-job results of their name."""
JOB_METRICS = frozenset([*_RATIOS, *_COUNTS, *_SUMS, *(label for labels in _LABELS.values() for label in labels)])
"""The metrics that per-job results alone give."""

METRICS: dict[str, Metric] = {
    **{
        label: Metric(unit, f"{word} of the jobs' {doc}.")
        for name, (unit, doc) in _PER_JOB.items()
        for label, word in zip(_LABELS[name], _STATISTICS.values(), strict=True)
    },
    "utilisation": Metric(
        "", "Capacity utilised: submitted size x run time of the jobs / node-seconds of the machine."
    ),
    "unused_capacity": Metric("", "Capacity that is free beyond what waiting jobs request."),
    "lost_capacity": Metric("", "Capacity neither utilised nor unused."),
    "lost_to_fragmentation": Metric("", "Capacity that is idle although waiting jobs request it."),
    "lost_to_failures": Metric("", "Capacity of work that was lost to failures.", _OF_CAPACITY),
    "lost_to_growth": Metric(
        "", "Capacity of nodes held beyond the size submitted (rounding and growth), during work that counts."
    ),
    "lost_to_down_time": Metric("", "Capacity of nodes that are down.", _OF_CAPACITY),
    "lost_to_hold": Metric(
        "",
        "Capacity kept idle for jobs that restart on their own nodes (recovery option C), or are suspended there.",
        _OF_CAPACITY,
    ),
    "lost_to_delay": Metric("", "Capacity held by jobs during their start delay.", _OF_CAPACITY),
    "lost_to_congestion": Metric("", "Capacity held while saturated trunks slow communication (clusters).", NOTHING),
    "lost_to_preemption": Metric("", "Capacity of work that was lost to preemption.", _OF_CAPACITY),
    "lost_to_overhead": Metric("", "Capacity held during checkpoints, moves, migrations and restarts.", _OF_CAPACITY),
    "makespan_s": Metric(
        "s", "Time from the first submission to the last finish, or to the horizon of a run that is cut short."
    ),
    "jobs_submitted": Metric("", "Jobs submitted."),
    "unfinished_jobs": Metric("", "Jobs that had not finished when the run ended."),
    "offered_load": Metric("", "Submitted size x run time / (nodes of the machine x span of the submissions)."),
    "failures_seen": Metric("", "Failures up to the end of the run.", NOTHING),
    "failures_seen_per_day": Metric("1/d", "Failures per day of the run.", _OF_CAPACITY),
    "failures_that_hit": Metric("", "Failures that killed a job.", NOTHING),
    "jobs_hit": Metric("", "Jobs killed by a failure at least once.", NOTHING),
    "restarts": Metric("", "Restarts of all jobs.", NOTHING),
    "work_lost_node_s": Metric("node s", "Work done and lost to failures.", NOTHING),
    "work_loss_ratio": Metric("", "Mean over jobs of work lost / run time.", _OF_JOBS),
    "one_hit_work_loss_ratio": Metric(
        "",
        "What the work loss ratio would be if no job were hit twice: half of the run time for each hit.",
        _OF_JOBS,
    ),
    "checkpoint_overhead_ratio": Metric(
        "", "Mean over jobs of time spent on checkpoints and moves / run time.", _OF_JOBS
    ),
    "checkpoints": Metric("", "Checkpoints completed.", NOTHING),
    "checkpoints_wasted": Metric("", "Completed checkpoints that no restart used.", NOTHING),
    "checkpoint_overhead_s": Metric(
        "s", "Time that jobs spent on checkpoints and moves, also on unfinished ones.", NOTHING
    ),
    "migrations_attempted": Metric("", "Migration attempts.", NOTHING),
    "migrations_successful": Metric("", "Migration attempts that enlarged the maximal free partition.", NOTHING),
    "migrations_per_attempt": Metric("", "Successful / attempted migrations.", ABSENT),
    "mean_time_between_migrations_s": Metric("s", "Mean time between migration attempts.", ABSENT),
    "jobs_migrated": Metric("", "Moves of running jobs to another partition.", NOTHING),
    "co_allocations": Metric("", "Starts of jobs over more than one cluster.", ABSENT),
    "jobs_co_allocated": Metric("", "Jobs that started over more than one cluster at least once.", ABSENT),
    "started_elsewhere": Metric("", "Starts of whole jobs in a cluster other than their own.", ABSENT),
    "congestion_slowdown": Metric("", "Mean over jobs of run time with saturated trunks / run time without.", ABSENT),
    "trunk_utilisation": Metric(
        "", "Mean over time of the demand on the trunks, at most their capacity, / their capacity.", ABSENT
    ),
    "saturated_time_frac": Metric("", "Share of the time in which a trunk is saturated.", ABSENT),
    "highest_saturation": Metric("", "Highest demand on a trunk / its capacity.", ABSENT),
    "estimate_rmspe_pct": Metric("%", "Root mean square percentage error of the bandwidths that jobs state.", ABSENT),
    "agent_activations": Metric("", "Activations of the agent.", ABSENT),
    "jobs_taken": Metric("", "Checkpoints that the agent asked for.", ABSENT),
    "jobs_barred": Metric("", "Jobs that the agent took twice: they are no longer co-allocated.", ABSENT),
    "failure_slowdown": Metric(
        "",
        "FSD: mean over the jobs hit of (response - that without failures) / run time, under a recovery policy.",
        ABSENT,
    ),
    **{f"failure_slowdown_{one}": Metric("", f"FSD of the jobs of group {one.upper()}.", ABSENT) for one in LETTERS},
    **{
        f"mean_response_{one}_s": Metric("s", f"Mean response of the jobs of group {one.upper()}.", ABSENT)
        for one in LETTERS
    },
    **{f"jobs_hit_{one}": Metric("", f"Jobs of group {one.upper()} killed at least once.", ABSENT) for one in LETTERS},
    "mean_delay_regular_s": Metric(
        "s", "Mean over the jobs never hit of response - that without failures, under a recovery policy.", ABSENT
    ),
    "max_delay_regular_s": Metric("s", "Largest such delay of a job that was never hit.", ABSENT),
    "credits_granted": Metric("", "Credits granted to the users, in prices of a requested node-hour.", ABSENT),
    "credits_charged": Metric("", "Credits that the users paid for recovery options.", ABSENT),
    "credit_refusals": Metric(
        "", "Jobs that got option A because their user could not pay what they asked for.", ABSENT
    ),
    "gini_wait": Metric(
        "", "Gini index of the mean waits of users (or of fairness_by), 0 if all are equal, under fairness.", ABSENT
    ),
    "jain_bounded_slowdown": Metric(
        "",
        "Jain index of the mean bounded slowdowns of users, 1 if all are equal, under fairness.",
        ABSENT,
    ),
    "share_gap": Metric(
        "",
        "Part of the node-seconds that other users or accounts should have got by their shares, 0 if each got its due, "
        "under fairness.",
        ABSENT,
    ),
    "owner_jobs": Metric("", "Jobs of the owner that the parameter owner names.", ABSENT),
    "owner_mean_wait_s": Metric("s", "Mean wait of that owner's finished jobs.", ABSENT),
    "owner_mean_bounded_slowdown": Metric("", "Mean bounded slowdown of that owner's finished jobs.", ABSENT),
    "owner_share": Metric("", "That owner's part of the node-seconds up to the last submission.", ABSENT),
    "mean_time_at_limit_s": Metric(
        "s", "Mean over jobs of the time for which a limit of running jobs kept them from starting.", _OF_JOBS
    ),
    "jobs_at_limit": Metric("", "Finished jobs that a limit of running jobs kept from starting for a time.", NOTHING),
    "preemptions": Metric("", "Number of preemptions.", NOTHING),
    "jobs_preempted": Metric("", "Jobs that were preempted at least once.", NOTHING),
    "mean_suspended_s": Metric("s", "Mean over jobs of the time for which they were suspended for others.", _OF_JOBS),
    "jobs_cancelled": Metric("", "Jobs that ended without a result because they were preempted.", NOTHING),
    "jobs_refused": Metric("", "Jobs that a limit of submitted jobs refused, so that they never ran.", NOTHING),
    "reservations_missed": Metric("", "Jobs that waited for an advance reservation until it was over.", NOTHING),
    "mean_scheduling_s": Metric("s", "Mean processor time of scheduling a job, under time_scheduling.", ABSENT),
    "max_scheduling_s": Metric("s", "Longest processor time of one scheduling pass, under time_scheduling.", ABSENT),
}
MAIN = ("mean_wait_s", "mean_bounded_slowdown", "mean_response_s", "utilisation", "lost_capacity", "makespan_s")
"""The metrics that stand first in a store."""
MEASURED = frozenset({"mean_scheduling_s", "max_scheduling_s"})
"""The metrics that are measured on the computer at hand: they differ from run to run."""


def per_job_results(s: State, bound_s: float) -> dict[str, NDArray[Any]]:
    """Return the per-job results of a state, some of them its rows: arrays of shape (jobs,); times of unfinished jobs
    are NaN.

    Of a job that has waited for others, the submission is when it became eligible.
    """
    submit, run, finish = s.job.eligible, s.job.work, s.job.finish
    unfinished = np.isnan(finish)
    start = np.where(unfinished, np.nan, s.job.start) if unfinished.any() else s.job.start
    response = finish - submit
    return {
        "submit_s": submit,
        "first_start_s": s.job.first_start,
        "start_s": start,
        "finish_s": finish,
        "size": s.job.allocated,
        "requested_size": s.job.requested,
        "run_s": run,
        "estimate_s": s.job.estimate,
        "wait_s": start - submit,
        "response_s": response,
        "slowdown": response / run,
        "bounded_slowdown": np.maximum(response, bound_s) / np.maximum(run, bound_s),
        "restarts": s.job.restarts,
        "work_lost_s": s.job.lost,
        "work_lost_node_s": s.job.lost_nodes,
        "checkpoint_overhead_s": _or_zeros(s.job.overhead, len(run)),
        "checkpoints": _or_zeros(s.job.checkpoints, len(run)),
        "migrations": _or_zeros(s.job.migrations, len(run)),
    }


def _or_zeros(row: NDArray[Any], jobs: int) -> NDArray[Any]:
    """Return a row of the state, zeros where the run has no such row."""
    return row if len(row) else constant(row.dtype.type(0).item(), jobs)


def run_metrics(
    s: State,
    jobs: Mapping[str, NDArray[Any]],
    passes_s: Sequence[float] = (),
    of_clusters: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return every metric of METRICS; NaN where it does not apply (no job finished, nothing measured, no clusters).

    passes_s: the processor times of the scheduling passes if they were measured. of_clusters: the metrics that only
    clusters have.
    """
    finished = _finished(jobs)
    metrics = _job_metrics(jobs, finished)
    metrics |= _capacities(s, jobs, finished, metrics["work_lost_node_s"])
    metrics |= _counts(s, jobs, finished)
    metrics |= recovery_measures(jobs) if "recovery_group" in jobs else {}
    metrics["mean_scheduling_s"] = sum(passes_s) / len(jobs["finish_s"]) if passes_s else np.nan
    metrics["max_scheduling_s"] = max(passes_s, default=np.nan)
    metrics |= _held(jobs, finished, s if of_clusters is None else None)
    metrics |= of_clusters or {"lost_to_congestion": 0.0}
    return dict(zip(METRICS, map(float, map(metrics.get, METRICS, repeat(math.nan))), strict=True))


def _finished(jobs: Mapping[str, NDArray[Any]]) -> _Chosen:
    """Return which jobs finished, of most runs all: then what they have is not copied."""
    finished = ~np.isnan(jobs["finish_s"])
    return slice(None) if finished.all() else finished


def job_metrics(jobs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return the metrics of JOB_METRICS from the per-job results of a run alone, such as a store keeps."""
    return _job_metrics(jobs, _finished(jobs))


def _job_metrics(jobs: Mapping[str, NDArray[Any]], finished: _Chosen) -> dict[str, float]:
    results: dict[str, float] = {}
    for name, labels in _LABELS.items():
        results.update(zip(labels, _statistics(jobs[name][finished]), strict=True))
    run_s = jobs["run_s"][finished]
    for name, part in _RATIOS.items():
        values = jobs[part][finished]
        results[name] = 0.0 if _is_zero(values) and len(run_s) else _mean(values / run_s)
    submitted = len(jobs["finish_s"])
    counts = (submitted, submitted - len(run_s), _count(jobs["restarts"] > 0))
    return {**results, **dict(zip(_COUNTS, counts, strict=True)), **{name: _sum(jobs[name]) for name in _SUMS}}


def _sum(values: NDArray[Any]) -> float:
    """Return the sum that ``np.sum`` gives, which takes twice as long for as many values as a run has jobs."""
    return 0.0 if _is_zero(values) else float(np.add.reduce(values))


def _is_zero(values: NDArray[Any]) -> bool:
    """Tell of a constant row whether there is nothing but zeros in it, or nothing."""
    return values.strides == (0,) and not values[:1].any()


def _mean(values: NDArray[np.float64]) -> float:
    """Return the mean, as ``np.mean`` rounds it; NaN of no values."""
    return _sum(values) / len(values) if len(values) else math.nan


def _statistics(values: NDArray[np.float64]) -> list[float]:
    """Return those of _STATISTICS, NaN of no values."""
    count = len(values)
    if not count:
        return [math.nan] * len(_STATISTICS)
    mean, ordered = _mean(values), np.sort(values)
    largest = ordered.item(-1)
    if count == 1 or not math.isfinite(largest):
        return [mean, float(np.median(values)), *map(float, np.percentile(values, (90, 99))), largest]
    median = (ordered.item((count - 1) // 2) + ordered.item(count // 2)) / 2.0
    return [mean, median, *(_between(ordered, (count - 1) * share) for share in _SHARES), largest]


def _between(ordered: NDArray[np.float64], at: float) -> float:
    """Return what lies at a place between two values in ascending order, rounded as NumPy's percentiles are."""
    place = int(at)
    low, high = ordered.item(place), ordered.item(place + 1)
    part, step = at - place, high - low
    return low + step * part if part < 0.5 else high - step * (1.0 - part)


def _capacities(s: State, jobs: Mapping[str, NDArray[Any]], finished: _Chosen, lost_node_s: float) -> dict[str, float]:
    submitted = len(jobs["submit_s"])
    first = float(jobs["submit_s"][0]) if submitted else np.nan
    has_all = isinstance(finished, slice)
    last = float(np.max(jobs["finish_s"], initial=-np.inf)) if has_all else max(first, float(s.now))
    nodes = float(s.nodes)
    capacity = (last - first) * nodes
    work = jobs["requested_size"] * jobs["run_s"]
    submitted_node_s = _sum(work)
    done_node_s = submitted_node_s if has_all else _sum(work[finished])
    utilisation = ratio(done_node_s, capacity)
    unused = ratio(s.unused, capacity)
    span = float(jobs["submit_s"].max()) - first if submitted else np.nan
    count = len(work[finished])
    return {
        "utilisation": utilisation,
        "unused_capacity": unused,
        "lost_capacity": 1.0 - utilisation - unused,
        "lost_to_fragmentation": ratio(s.idle_lost, capacity),
        "lost_to_failures": ratio(lost_node_s, capacity),
        "lost_to_growth": ratio(_sum(_grown_node_s(s, finished)), capacity),
        "lost_to_down_time": ratio(s.down, capacity),
        "lost_to_hold": ratio(s.kept_idle, capacity),
        "lost_to_delay": ratio(s.delayed, capacity),
        "lost_to_preemption": ratio(_sum(s.job.preempted_nodes) if s.kind == SITE else 0.0, capacity),
        "lost_to_overhead": ratio(_sum(s.job.overhead_nodes), capacity),
        "makespan_s": last - first,
        "offered_load": ratio(submitted_node_s, nodes * span),
        "failures_seen_per_day": ratio(s.num_failures, last - first) * 86400.0,
        "one_hit_work_loss_ratio": s.num_failures * utilisation / (2.0 * count) if count else np.nan,
    }


def ratio(part: float, whole: float) -> float:
    """Return a share of the time or the capacity of a run; NaN of a run that ended at its first event, or before a
    time that can be divided by."""
    return part / whole if whole >= sys.float_info.min else math.nan


def _held(jobs: Mapping[str, NDArray[Any]], finished: _Chosen, s: State | None) -> dict[str, float]:
    """Return the metrics of what held finished jobs: a limit of running jobs, or others for which they were suspended;
    the state is that of a machine that has these."""
    nothing = 0.0 if len(jobs["finish_s"][finished]) else np.nan
    found = {"mean_suspended_s": nothing, "mean_time_at_limit_s": nothing, "jobs_at_limit": 0.0}
    if s is None or np.isnan(nothing):
        return found
    if s.suspends:
        found["mean_suspended_s"] = _mean(s.job.suspended_s[finished])
    if s.limited:
        held_s = s.time_at_limit[finished]
        found |= {"mean_time_at_limit_s": _mean(held_s), "jobs_at_limit": _count(held_s > 0)}
    return found


def _count(true: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(true))


def _grown_node_s(s: State, finished: _Chosen) -> NDArray[np.float64]:
    """Return the node-seconds of finished jobs' work that counts on nodes beyond those submitted, in every attempt;
    none where all sizes are allowed."""
    if s.kind == FLAT and s.partitions == 0:
        return np.empty(0)
    unsaved = s.job.work - s.job.saved
    grown: NDArray[np.float64] = unsaved * (s.job.allocated - s.job.requested)
    return (s.job.grown + grown if len(s.job.grown) else grown)[finished]


def _counts(s: State, jobs: Mapping[str, NDArray[Any]], finished: _Chosen) -> dict[str, float]:
    attempts = int(s.attempts)
    left = s.job.preemptions + s.job.suspensions if s.kind == SITE else np.empty(0)
    return {
        "failures_seen": s.num_failures,
        "failures_that_hit": s.hits,
        "checkpoints_wasted": _sum(jobs["checkpoints"]) - _sum(s.job.checkpoints_used),
        "migrations_attempted": attempts,
        "migrations_successful": s.successes,
        "migrations_per_attempt": s.successes / attempts if attempts else np.nan,
        "mean_time_between_migrations_s": s.attempt_gaps / (attempts - 1) if attempts > 1 else np.nan,
        "jobs_migrated": s.moves,
        "preemptions": _sum(left),
        "jobs_preempted": _count(left > 0),
        **_without_result(s, finished),
    }


def _without_result(s: State, finished: _Chosen) -> dict[str, float]:
    """Return how many jobs ended, or never began, and have no result; none where all finished."""
    if isinstance(finished, slice):
        return dict.fromkeys(("jobs_cancelled", "jobs_refused", "reservations_missed"), 0)
    return {
        "jobs_cancelled": _count((s.job.status == DONE) & ~finished),
        "jobs_refused": _count(s.job.status == REFUSED),
        "reservations_missed": _count(s.job.status == MISSED),
    }
