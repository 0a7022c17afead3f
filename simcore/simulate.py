"""Simulating one configuration: workload, failures, machine and policy in; per-job results, metrics and events out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.build import build_state, failure_rows, trace_buffer
from faultsweep.simcore.engine.checks import Checker, check_capacities
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.clusters.decisions import Decisions
from faultsweep.simcore.engine.event_trace import EventTrace, TraceBuffer
from faultsweep.simcore.engine.fairness import by_owner, fairness_metrics, numbered, owner_metrics, owners_of
from faultsweep.simcore.engine.interruptible import interruptible
from faultsweep.simcore.engine.loop import advance
from faultsweep.simcore.engine.machine_code import is_compiled
from faultsweep.simcore.engine.metrics import MAIN, METRICS, per_job_results, run_metrics
from faultsweep.simcore.engine.site_checks import SiteChecker
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.engine.steps import Advance, Meter, Stopwatch, checked
from faultsweep.simcore.engine.watch import SHORTEST_RUN_S, WITHOUT_LIMIT, check_end, named_jobs
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.job_results import JobResults, constant
from faultsweep.simcore.model.failure_trace import LATEST_S, NO_FAILURES, FailureTrace, check_trace
from faultsweep.simcore.model.machines import CLUSTERS, FLAT, SITE, TORUS, Machine, parse_machine, round_up
from faultsweep.simcore.model.workload import DEMANDED, Label, Workload, check_is_workload, check_workload
from faultsweep.simcore.parameters import check_combination, files_read, own_values, resolve, run_of
from faultsweep.simcore.policies.failures.excess import excess_sentence
from faultsweep.simcore.policies.failures.repeats import repeats_sentence
from faultsweep.simcore.policies.failures.source import (
    DAY_S,
    DrawnSource,
    FailureSource,
    Span,
    TraceSource,
    unseen_sentence,
)
from faultsweep.simcore.policies.limits import (
    check_owners,
    refused_sentence,
    rules_of,
    unknown_sentence,
    unlimited_sentence,
)
from faultsweep.simcore.policies.placement.scores import Score, score_for
from faultsweep.simcore.policies.prediction.predictors import BaseRate, base_rate_table
from faultsweep.simcore.policies.preemption import check_preempting
from faultsweep.simcore.policies.queue_order.associations import due_of
from faultsweep.simcore.policies.queue_order.named import NAMING, unused_names
from faultsweep.simcore.policies.recovery.plan import plan_recovery
from faultsweep.simcore.policies.run import has_dues
from faultsweep.simcore.remembered import Remembered
from faultsweep.simcore.workloads.accounting.units import Zone
from faultsweep.simcore.workloads.demands import date_of, for_site, with_cores
from faultsweep.simcore.workloads.limited import admitted, within_limits
from faultsweep.simcore.workloads.transforms import doubts, prepare
from numpy.typing import NDArray

from faultsweep.arguments import TEXT, TRUTH, takes
from faultsweep.errors import InputError
from faultsweep.files import html_table

MODEL_VERSION = 8
"""Raised whenever any result changes; stores pin it."""

_MAX_CAPACITY = 1 << 10
_FEW_JOBS = 20_000
"""On a flat machine no pass over so many jobs, all submitted at once, takes longer than 0.3 s, or 0.7 s with many top
jobs."""
_FEW_RESERVED = 10_000
"""The same where each job has a reservation: a pass over twice as many takes 0.4 to 1.2 s."""
_FEW_VISITS = 1 << 23
"""Where limits begin the pass anew at a start, or option D puts the queue in order at each return of a job, so many
visits of waiting jobs take 0.2 s; those of 20,000 jobs on the largest of these machines take 3 to 6 s."""
_FEW_FAILURES = 10_000
_FEW_NODES = 4096
"""Where all of so many nodes fail at once, that takes no longer either; it grows with their square (lff, option C)."""


@dataclass(frozen=True)
class Run:
    """The result of one run.

    Attributes
    ----------
    metrics : value by name; units and descriptions are in ``faultsweep.simcore.engine.metrics.METRICS``.
    results : what gives ``jobs``.
    status : ``done``, or ``truncated`` if the run ended at the horizon or because a job restarted too often.
    elapsed_s : duration of the compiled simulation alone, s.
    processor_s : processor time of the threads that ran it, s.
    config : the resolved configuration.
    events : the event trace if it was asked for.
    dropped : jobs of the log that were not simulated, by reason.
    origin_s : the first submission of the jobs that were simulated, on the log's clock.
    decisions : the steps of the agent on clusters if they were asked for.
    seen, told : what gives ``failures`` and ``doubts``.
    owners : user, account, partition and QOS of each job, as far as they are known.
    """

    metrics: dict[str, float]
    results: JobResults
    status: str
    elapsed_s: float
    processor_s: float
    config: dict[str, Any]
    events: EventTrace | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    seen: Callable[[], FailureTrace] = lambda: NO_FAILURES
    origin_s: float = 0.0
    decisions: Decisions | None = None
    told: Callable[[], tuple[str, ...]] = tuple
    owners: Mapping[str, Label] = field(default_factory=dict)

    @property
    def jobs(self) -> dict[str, NDArray[Any]]:
        """The per-job results: arrays of shape (jobs,), in order of submission; times are on the log's clock."""
        return self.results.made()

    @cached_property
    def failures(self) -> FailureTrace:
        """The failures of nodes (and, behind them, of trunks) up to the end of the run, in seconds since
        ``origin_s``."""
        return self.seen()

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What was assumed of the log, and how far the failures are from their nominal rate, a sentence each.

        To find them takes longer than many a run, so they are found when they are asked for.
        """
        return self.told()

    @takes(owner=TEXT)
    def by(self, owner: str) -> dict[str, NDArray[Any]]:
        """Return what each user, account, partition or QOS got: ``simcore.engine.fairness.by_owner``."""
        return by_owner(self.jobs, self.owners, owner)

    def __repr__(self) -> str:
        """Show the main metrics in one line, without arrays and parameters."""
        metrics = ", ".join(f"{name} = {self.metrics[name]:.6g}" for name in MAIN if name in self.metrics)
        return f"Run({self._title()}; {metrics})"

    def _title(self) -> str:
        return f"{self.config.get('scheduler', 'a run')} on {self.config.get('machine', 'a machine')}: {self.status}"

    def _repr_html_(self) -> str:
        """Show the metrics in a notebook."""
        rows = [(name, f"{value:.6g}", METRICS[name].unit) for name, value in self.metrics.items() if value == value]
        title = self._title()
        return html_table(title, ("metric", "value", "unit"), rows)


_Fairness = tuple[NDArray[np.int64], NDArray[np.float64] | None]
"""Whose each job is, and what each owner is due, None without shares."""


@takes(events=TRUTH, trace=TRUTH, debug=TRUTH)
def simulate(
    workload: Workload,
    *,
    failures: FailureTrace | FailureSource | str | Path | None = None,
    placement: str | Callable[..., Any] | Score = "mfp",
    communication: Communication | None = None,
    events: bool = False,
    trace: bool = False,
    repeat: int = 1,
    debug: bool = False,
    progress: Callable[[float], None] | None = None,
    before_compiling: Callable[[], None] | None = None,
    options: str | None = None,
    remembered: Remembered | None = None,
    **parameters: Any,
) -> Run:
    """Simulate one configuration.

    Parameters
    ----------
    workload : the jobs, as read from a log or made by a model; ``offset``, ``num_jobs``, ``load_scale`` and the other
        workload parameters are applied here.
    failures : a trace or a source, in seconds since the first submission of the jobs that are simulated; or the value
        of the parameter ``failures`` (a generator's name or a file); none if not given.
    placement : the rule that places a job on the torus: a value of the parameter, or a score of your own, a function of
        any of ``faultsweep.simcore.policies.placement.scores.INPUTS`` that returns a number; the free box with the
        lowest wins.
    communication : on clusters, what the jobs communicate and state of it, one value for each job that is simulated;
        drawn from the parameters if not given.
    events : record the event trace.
    trace : on clusters, record the steps of the agent: ``Run.decisions``.
    repeat : run the simulation this many times from the raw arrays; ``elapsed_s`` and ``processor_s`` are medians.
    debug : check the whole state against its invariants after every event time
        (``faultsweep.simcore.engine.checks``); slow.
    options : the recovery group of every job that is simulated, letters A to E in order of submission, in place of
        groups drawn from ``recovery_mix``.
    progress : called about ten times a second with the share of jobs that have finished.
    before_compiling : called before the kernels are compiled, which takes up to a minute, if they have not been.
    remembered : keeps the jobs as they are simulated for the next run that is given it, where those are the same; the
        arrays of the workload must not change meanwhile.
    parameters : any of ``faultsweep.simcore.parameters.PARAMETERS``; the others have their defaults.

    Raises
    ------
    InputError
        If a parameter is unknown or invalid, or a job does not fit the machine.
    InvariantError
        Under ``debug``, if an invariant does not hold: an error of the simulator.
    """
    failures = str(failures) if isinstance(failures, Path) else failures
    _check_arguments(failures, repeat, progress, before_compiling)
    named, watch = _named(failures, placement, parameters), _Watch(events, debug, progress, before_compiling)
    asked = _Asked(failures, placement, communication, watch, trace, repeat, options)
    return _simulate(workload, named, asked, _remembers(remembered))


def _check_arguments(failures: Any, repeat: Any, *called: Any) -> None:
    """Raise InputError for arguments of ``simulate`` that are of another type; ``called`` are progress and
    before_compiling."""
    if not isinstance(failures, FailureTrace | FailureSource | str | None):
        raise InputError(
            f"failures: expected a FailureTrace, a source, a name or the path of a log, got {failures!r:.60}"
        )
    if not isinstance(repeat, int | np.integer) or isinstance(repeat, bool) or repeat < 1:
        raise InputError(f"repeat: expected a whole number of 1 or more, got {repeat!r:.60}")
    for name, function in zip(("progress", "before_compiling"), called, strict=True):
        if function is not None and not callable(function):
            raise InputError(f"{name}: expected a function, got {function!r:.60}")


def simulate_configuration(
    workload: Workload,
    parameters: Mapping[str, Any],
    remembered: Remembered,
    *,
    events: bool = False,
    trace: bool = False,
) -> Run:
    """Simulate one configuration, as ``simulate`` does with the same values; to pass all by keyword takes 0.05 ms.

    parameters : values of parameters by name, ``failures`` and ``placement`` among them, which are texts here.
    """
    watch = _Watch(events, debug=False, progress=None)
    asked = _Asked(parameters["failures"], parameters["placement"], None, watch, trace, 1, None)
    return _simulate(workload, parameters, asked, remembered)


def _simulate(workload: Workload, named: Mapping[str, Any], asked: _Asked, remembered: Remembered) -> Run:
    """Simulate one configuration; ``named`` are the values of parameters that are given."""
    failures, placement, communication, watch, trace, repeat, options = asked
    with files_read(named):
        config, score = _configuration(named, placement)
        machine, jobs = _machine_and_jobs(remembered, workload, config)
        span = Span.of(workload, jobs.prepared, config["arrival_scale"])
        source = _source_of(failures, config, machine, span)
        given = _Given(jobs, machine, config, source, span, watch, repeat)
        fairness = _fairness_of(jobs, config, machine)
        _check_cluster_arguments(machine, communication, trace)
        _check_options(options, config)
        clusters = machine.kind == CLUSTERS
        run = _simulate_clusters(given, communication, trace) if clusters else _simulate_machine(given, score, options)
        return _with_owners(run, workload, given, fairness)


def _remembers(remembered: Remembered | None) -> Remembered:
    """Return what a run remembers, nothing if the caller keeps nothing; raise InputError if it is something else."""
    if not isinstance(remembered, Remembered | None):
        raise InputError(f"remembered: expected Remembered() of simcore.remembered, got {remembered!r:.60}")
    return Remembered() if remembered is None else remembered


def _machine_and_jobs(remembered: Remembered, workload: Workload, config: Mapping[str, Any]) -> tuple[Machine, _Jobs]:
    """Return the machine, and the jobs as they are simulated; raise InputError where they do not go together."""
    check_is_workload(workload)
    machine = parse_machine(config["machine"])
    remembered.of(check_combination, config, machine)
    jobs = remembered.of(_jobs_of, config, workload, machine)
    if machine.site is not None:
        machine = replace(machine, site=machine.site.on_clock(date_of(jobs.prepared) + jobs.prepared.origin_s))
        check_preempting(run_of(config), machine)
    return machine, jobs


def _named(
    failures: FailureTrace | FailureSource | str | None,
    placement: str | Callable[..., Any] | Score,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the parameters that are given, those among them that may be objects."""
    named = failures if isinstance(failures, str) else "none" if failures is None else "given"
    return {"failures": named, "placement": placement if isinstance(placement, str) else "mfp", **parameters}


def _configuration(
    named: Mapping[str, Any], placement: str | Callable[..., Any] | Score
) -> tuple[dict[str, Any], Score | None]:
    """Return the value of every parameter, and the placement score of the user, if there is one."""
    score = score_for(placement)
    config = resolve(named)
    if config["timezone"]:
        Zone(config["timezone"])  # the run records it
    if score is not None:
        config["placement"] = score.name
    return config, score


def _jobs_of(config: Mapping[str, Any], workload: Workload, machine: Machine) -> _Jobs:
    """Return the jobs as they are simulated."""
    check_workload(workload)
    prepared, estimate_s = _checked_jobs(workload, config, machine)
    owners = owners_of(prepared.user, prepared.user_names, _labels(prepared, machine))
    return _Jobs(prepared, estimate_s, _job_arrays(prepared, estimate_s, config, machine), owners, Remembered())


def _checked_jobs(
    workload: Workload, config: Mapping[str, Any], machine: Machine
) -> tuple[Workload, NDArray[np.float64]]:
    """Return the jobs as they are simulated, and their estimates, s; raise InputError if a run cannot take them."""
    with np.errstate(all="ignore"):  # what is too small or too large is told below, with the job
        prepared, estimate_s = _prepare(workload, config, machine)
    if len(prepared) == 0:
        raise InputError(
            f"{workload.name}: no jobs are left to simulate (of {len(workload)} valid jobs in the workload)"
        )
    _check_times(prepared, estimate_s)
    return prepared, estimate_s


def _with_owners(run: Run, workload: Workload, given: _Given, fairness: _Fairness | None) -> Run:
    """Return a run with the metrics of owners, and with what a reader has to know of it."""
    if fairness is not None:
        run.metrics.update(fairness_metrics(run.jobs, *fairness))
    (prepared, _, _, owners, _), machine, config, source, span, _, _ = given
    if config["owner"] != "none":
        run.metrics.update(owner_metrics(run.jobs, owners, config["owner"]))
    about = (workload, prepared, machine, config, source, span.length_s, run.metrics, owners)
    return replace(run, owners=owners, told=partial(_doubts_of, *about))


def _doubts_of(
    workload: Workload,
    prepared: Workload,
    machine: Machine,
    config: Mapping[str, Any],
    source: FailureSource | None,
    submissions_s: float,
    metrics: Mapping[str, float],
    owners: Mapping[str, Label],
) -> tuple[str, ...]:
    """Return what was assumed of a log, and how far the failures are from their nominal rate."""
    rate = source.failures_per_day if source is not None and source.endless else 0.0
    told = (
        *doubts(workload, config).values(),
        unseen_sentence(source, metrics["makespan_s"]),
        repeats_sentence(prepared, machine.capacity, rate, config),
        unlimited_sentence(run_of(config), machine.site, owners) if machine.site is not None else "",
        unknown_sentence(run_of(config), machine.site, prepared.labels.get("reservation")) if machine.site else "",
        refused_sentence(int(metrics["jobs_refused"]), len(prepared)) if metrics["jobs_refused"] > 0 else "",
        excess_sentence(config, submissions_s),
        *unused_names(run_of(config), machine.site, owners),
    )
    return tuple(filter(None, told))


def slips_of(workload: Workload, config: Mapping[str, Any], machine: Machine) -> tuple[str, ...]:
    """Return the sentences for names in factors and shares that no job has, as a run tells them, without a run."""
    if not any(config[parameter] for parameter in NAMING):
        return ()
    prepared, _ = _checked_jobs(workload, config, machine)
    owners = owners_of(prepared.user, prepared.user_names, _labels(prepared, machine))
    return unused_names(run_of(config), machine.site, owners)


def _prepare(workload: Workload, config: Mapping[str, Any], machine: Machine) -> tuple[Workload, NDArray[np.float64]]:
    """Return the jobs as they are simulated, and their estimates, s."""
    if machine.site is None:
        prepared, estimate_s = prepare(workload, config, machine.largest, machine.clusters, machine.node_size)
        return _start_ever(prepared, estimate_s, config, machine)
    workload = for_site(workload, machine.site, config["size_map"], machine.name)
    prepared, estimate_s = prepare(workload, config, machine.largest)
    return _start_ever(with_cores(prepared, machine.site), estimate_s, config, machine)


def _start_ever(
    workload: Workload, estimate_s: NDArray[np.float64], config: Mapping[str, Any], machine: Machine
) -> tuple[Workload, NDArray[np.float64]]:
    """Return jobs and their estimates without those that a limit of running jobs would never let start."""
    run = run_of(config)
    if machine.site is not None and run["site_reservations"]:
        owners = owners_of(workload.user, workload.user_names, _labels(workload, machine))
        workload, estimate_s = admitted(workload, estimate_s, owners, machine.site, config["size_map"] == "drop")
    rules = rules_of(run, () if machine.site is None else machine.site.limits)
    if not rules:
        return workload, estimate_s
    owners = owners_of(workload.user, workload.user_names, _labels(workload, machine))
    check_owners(run, owners)
    return within_limits(workload, estimate_s, owners, rules, config["size_map"] == "drop")


def _simulate_machine(given: _Given, score: Score | None, options: str | None) -> Run:
    """Simulate one configuration on any machine but clusters."""
    (prepared, *_), machine, config, source, span, watch, repeat = given
    _check_event_order(config, source)
    recovery = plan_recovery(config, prepared, run_of(config).named("recovery").facts.get("asks"), options)
    option = recovery["recovery_option"]
    if watch.before_compiling is not None and not is_compiled():
        watch.before_compiling()
    _load_kernels(config["finder"] if machine.kind == TORUS else "columns")
    base_rate = None if source is None else _base_rate(source, machine, span, config)
    rules = _Rules(score, base_rate)
    ran, durations = _repeated(repeat, lambda: _run(given, rules, option))
    state = ran.state
    results = {"job_id": prepared.job_id.copy(), **per_job_results(state, config["slowdown_bound_s"]), **recovery}
    if state.suspends:
        results["suspended_s"] = state.job.suspended_s
    results["failure_free_response_s"] = _failure_free_response_s(given, rules, option, results["response_s"])
    metrics = run_metrics(state, results, ran.passes_s)
    events = ran.buffer.finish(prepared.job_id, config["start_delay_s"]) if ran.buffer else None
    return _result(given, ran, durations, metrics, results, events, source)


def _repeated(repeat: int, run: Callable[[], Any]) -> tuple[Any, list[float]]:
    """Run so many times; return what the last run gave, and the medians of duration and processor time, s."""
    durations = []
    for _ in range(repeat):
        ran = run()
        durations.append((ran.elapsed_s, ran.processor_s))
    return ran, list(durations[0]) if repeat == 1 else np.median(durations, axis=0).tolist()


def _result(
    given: _Given,
    ran: Any,
    durations: list[float],
    metrics: dict[str, float],
    results: dict[str, NDArray[Any]],
    events: EventTrace | None,
    source: FailureSource | None,
) -> Run:
    """Return what a run gives, on the log's clock."""
    if given.watch.debug:
        check_capacities(metrics, float(ran.state.now))
    origin_s = given.span.origin_s
    return Run(
        metrics=metrics,
        results=JobResults(results, origin_s, ran.state.own_bytes),
        status="done" if ran.code == st.ALL_DONE else "truncated",
        elapsed_s=durations[0],
        processor_s=durations[1],
        config=given.config,
        events=events and replace(events, time_s=events.time_s + origin_s),
        dropped=given.jobs.prepared.dropped,
        seen=partial(_seen, source, float(ran.state.now), given.jobs.prepared),
        origin_s=origin_s,
    )


def _fairness_of(jobs: _Jobs, config: Mapping[str, Any], machine: Machine) -> _Fairness | None:
    """Return whose each job is and what each of them is due, as far as there are shares; None if it is not measured."""
    label = jobs.owners.get(config["fairness_by"])
    if not config["fairness"] or label is None:
        return None
    run, codes = run_of(config), np.asarray(label.codes, np.int64)
    if not has_dues(run):
        return codes, None
    return codes, due_of(_owner_arrays(jobs.prepared, machine), machine, run, codes, len(label.names))


def _check_times(workload: Workload, estimate_s: NDArray[np.float64]) -> None:
    """Raise InputError, naming the job, for a time that a run cannot reckon with once it is scaled."""
    for name, values in (
        ("submission", workload.origin_s + workload.submit_s),
        ("run time", workload.run_s),
        ("estimate", estimate_s),
    ):
        least = -LATEST_S if name == "submission" else SHORTEST_RUN_S
        bad = ~((values >= least) & (values <= LATEST_S))  # NaN, too
        if bad.any():
            job = int(np.argmax(bad))
            raise InputError(
                f"{workload.name}: job {workload.job_id[job]}: its {name} is {values[job]:g} s in this run "
                f"(valid: {least:g} to {LATEST_S:g})"
            )


def _seen(source: FailureSource | None, end_s: float, workload: Workload) -> FailureTrace:
    """Return the failures up to the end of a run, which may have been before its first event."""
    return NO_FAILURES if source is None else source.until(max(end_s, float(workload.submit_s[0])))


def _source_of(
    failures: FailureTrace | FailureSource | str | None, config: Mapping[str, Any], machine: Machine, span: Span
) -> FailureSource | None:
    """Return where the failures come from that were given or that the configuration names."""
    if isinstance(failures, FailureTrace):
        return TraceSource(failures)
    return failures if isinstance(failures, FailureSource) else source_for(config, machine.nodes, span)


def _check_cluster_arguments(machine: Machine, communication: Communication | None, trace: bool) -> None:
    """Raise InputError for what only clusters have."""
    if machine.kind != CLUSTERS and (communication is not None or trace):
        name = "trace" if communication is None else "communication"
        raise InputError(f"{name}: only machines of clusters, such as clusters:100+100, have that, not {machine.name}")


def _check_options(options: str | None, config: Mapping[str, Any]) -> None:
    """Raise InputError for recovery groups that are no text, or where no policy asks for options."""
    if options is not None and not isinstance(options, str):
        raise InputError(f"options: expected letters A to E, one for each job, got {options!r:.60}")
    if options is not None and "asks" not in run_of(config).named("recovery").facts:
        raise InputError(f"options: there are none with recovery = {config['recovery']}")


def _simulate_clusters(given: _Given, communication: Communication | None, trace: bool) -> Run:
    """Simulate one configuration on clusters; what is compiled for them is loaded only here."""
    from faultsweep.simcore.engine.clusters import communication as talk
    from faultsweep.simcore.engine.clusters import results as clusters
    from faultsweep.simcore.engine.clusters import run as running
    from faultsweep.simcore.engine.clusters.trunk_failures import with_trunks

    (prepared, _, arrays, *_), machine, config, source, span, watch, repeat = given
    if communication is None:
        communication = talk.draw(prepared, config)
    communication = talk.check(communication, prepared, config["link_mbps"])
    if source is not None and not source.endless:
        check_failures(source.until(math.inf), machine)
    source = with_trunks(source, config, machine.nodes, len(machine.clusters), span)
    jobs = {**arrays, "run_s": prepared.run_s, "job_id": prepared.job_id}
    jobs["home"] = np.zeros(len(prepared), np.int64) if prepared.home is None else prepared.home
    if watch.before_compiling is not None and not is_compiled(clusters=True):
        watch.before_compiling()
    watching = running.Watch(watch.events, trace, watch.debug, watch.progress)
    ran, durations = _repeated(
        repeat, lambda: running.run_clusters(jobs, communication, machine, config, source, watching)
    )
    state: Any = ran.state  # it has the rows of every state, and more
    results = {"job_id": prepared.job_id.copy(), **per_job_results(state, config["slowdown_bound_s"])}
    metrics = run_metrics(state, results, ran.passes_s, clusters.cluster_metrics(state, communication, config))
    events = ran.buffer.finish(prepared.job_id, 0.0) if ran.buffer else None
    results |= clusters.cluster_jobs(state, communication, config)
    run = _result(given, ran, durations, metrics, results, events, source)
    if not trace:
        return run
    decisions = Decisions.of(ran.decisions, prepared.job_id)
    return replace(run, decisions=replace(decisions, time_s=decisions.time_s + span.origin_s))


def _failure_free_response_s(
    given: _Given, rules: _Rules, option: NDArray[np.int64], response_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the responses of the same jobs without failures, which FSD is paired with; NaN without a recovery
    policy."""
    if given.config["recovery"] == "arrival":
        return constant(math.nan, len(response_s))
    if given.source is None:
        return response_s
    config = {**given.config, "failures": "none", "horizon_s": math.inf, "time_scheduling": False}
    watch = _Watch(events=False, debug=False, progress=None)
    jobs = given.jobs._replace(built=Remembered())  # what runs with failures have in common stays
    state = _run(given._replace(jobs=jobs, config=config, source=None, watch=watch), rules, option).state
    return state.job.finish - state.job.eligible


@lru_cache
def _load_kernels(finder: str) -> None:
    """Compile the engine, or load it from the cache, by running it on one job: no run's time includes that."""
    job = {"submit_s": [0.0], "work_s": [1.0], "estimate_s": [1.0], "requested": [1], "size": [1]}
    arrays = {name: np.array(value) for name, value in job.items()}
    machine = parse_machine("torus:1x1x1")
    interruptible(advance, build_state(arrays, machine, resolve({"finder": finder}), None, tracing=False), 10)


def _are_within(failures: FailureTrace, last: int) -> bool:
    """Tell whether failures are in order and finite, and at nodes up to the last: most are, and this is soon seen."""
    time_s, node, down_s = failures.time_s, failures.node, failures.down_s
    kinds = [array.dtype.kind for array in (time_s, node, down_s) if isinstance(array, np.ndarray)]
    if kinds != ["f", "i", "f"] or not time_s.shape == node.shape == down_s.shape == (len(failures),):
        return False
    if not len(failures) or not (time_s[1:] >= time_s[:-1]).all():
        return False
    lasting = down_s.min() >= 0.0 and down_s.max() <= LATEST_S
    return bool(
        lasting and node.min() >= 0 and node.max() <= last and time_s[0] >= -LATEST_S and time_s[-1] <= LATEST_S
    )


def check_failures(failures: FailureTrace, machine: Machine) -> FailureTrace:
    """Return failures that are sorted and within the machine; on clusters its trunks are numbered behind the nodes."""
    last = machine.nodes + len(machine.clusters) - 1
    if _are_within(failures, last):
        return failures
    check_trace(failures)
    if (failures.time_s[1:] < failures.time_s[:-1]).any():
        raise InputError(f"{failures.name}: failures must be in order of time")
    outside = np.flatnonzero((failures.node < 0) | (failures.node > last))
    if len(outside):
        at = int(outside[0])
        raise InputError(
            f"{failures.name}: failure {at + 1} is of node {failures.node[at]}, "
            f"but {machine.name} has nodes 0 to {machine.nodes - 1}"
            + (f" and trunks {machine.nodes} to {last}" if machine.clusters else "")
        )
    for what, values, least in (("time", failures.time_s, -LATEST_S), ("down time", failures.down_s, 0.0)):
        for_good = (values == np.inf) & (what == "down time")
        wrong = np.flatnonzero(~((values >= least) & ((values <= LATEST_S) | for_good)))
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f"{failures.name}: failure {at + 1} has a {what} of {values[at]:g} s (valid: {least:g} to {LATEST_S:g})"
            )
    return failures


def _base_rate(source: FailureSource, machine: Machine, span: Span, config: Mapping[str, Any]) -> BaseRate | None:
    """Return the base rate of the failures between the first and the last submission, where a precision needs it."""
    if config["precision"] >= 1:
        return None
    if span.length_s <= 0:
        return BaseRate(np.empty(0), np.zeros(1), 1.0)
    return base_rate_table(source.until(span.length_s), machine.nodes, 0.0, span.length_s)


def _check_event_order(config: Mapping[str, Any], source: FailureSource | None) -> None:
    order = config["event_order"]
    if order != "instant" and source is not None and (source.endless or len(source.until(math.inf))):
        raise InputError(f"event_order: {order!r} is for runs without failures (valid with failures: 'instant')")


def _job_arrays(
    workload: Workload, estimate_s: NDArray[np.float64], config: Mapping[str, Any], machine: Machine
) -> dict[str, NDArray[Any]]:
    work = workload.run_s
    if config["kill_at_estimate"]:
        work = np.minimum(work, estimate_s)
    return {
        "submit_s": workload.submit_s,
        "work_s": work,
        "estimate_s": estimate_s,
        "requested": workload.size,
        "size": round_up(machine, workload.size),
        **_owner_arrays(workload, machine),
        **({} if workload.demand is None else {name: getattr(workload.demand, name) for name in DEMANDED}),
        **(workload.dependencies.arrays() if workload.dependencies and config["dependencies"] == "log" else {}),
    }


def _owner_arrays(workload: Workload, machine: Machine) -> dict[str, NDArray[Any]]:
    """Return whose the jobs are."""
    labels = _labels(workload, machine)
    return {
        "user": workload.user,
        "user_number": numbered(workload.user)[1],
        "user_names": np.array(workload.user_names, np.str_),
        **{f"{name}_codes": label.codes for name, label in labels.items()},
        **{f"{name}_names": np.array(label.names, np.str_) for name, label in labels.items()},
    }


def _labels(workload: Workload, machine: Machine) -> dict[str, Label]:
    """Return the labels of jobs; on a site, partitions are those whose nodes the jobs get."""
    if workload.demand is None or machine.site is None:
        return dict(workload.labels)
    return {**workload.labels, "partition": Label(workload.demand.partition, machine.site.partitions)}


class _Rules(NamedTuple):
    """What policies need beside the configuration: a user's score, and what a precision refers to."""

    score: Score | None
    base_rate: BaseRate | None


class _Watch(NamedTuple):
    """What the caller wants to know of a run while it goes on, and when its kernels are compiled."""

    events: bool
    debug: bool
    progress: Callable[[float], None] | None
    before_compiling: Callable[[], None] | None = None


class _Asked(NamedTuple):
    """What the caller of a simulation gives beside the jobs and the values of parameters."""

    failures: FailureTrace | FailureSource | str | None
    placement: str | Callable[..., Any] | Score
    communication: Communication | None
    watch: _Watch
    trace: bool
    repeat: int
    options: str | None


class _Jobs(NamedTuple):
    """The jobs of a run: prepared, with their estimates, s; the arrays that the engine takes; whose they are; and what
    was built of them for the last run."""

    prepared: Workload
    estimate_s: NDArray[np.float64]
    arrays: Mapping[str, NDArray[Any]]
    owners: Mapping[str, Label]
    built: Remembered


class _Given(NamedTuple):
    """What every machine's simulation starts from: the jobs as they are simulated, the resolved configuration, and
    where failures come from; it is run ``repeat`` times."""

    jobs: _Jobs
    machine: Machine
    config: dict[str, Any]
    source: FailureSource | None
    span: Span
    watch: _Watch
    repeat: int


class _Ran(NamedTuple):
    """A run that is over: its state, why it stopped, its events, its duration, and those of its passes, s."""

    state: State
    code: int
    buffer: TraceBuffer | None
    elapsed_s: float
    processor_s: float
    passes_s: list[float]


def _run(given: _Given, rules: _Rules, option: NDArray[np.int64]) -> _Ran:
    """Run to the end; if a list is too small, run again from the start with larger ones."""
    (prepared, _, jobs, _, built), machine, config, source, _, watch, _ = given
    has_own, capacity = bool(own_values(config)), 1
    while True:
        drawn = _Drawn(source, jobs, machine, config, rules.base_rate, capacity, has_own)
        state = build_state(
            jobs,
            machine,
            config,
            drawn.known(),
            tracing=watch.events,
            names_nodes=watch.events or watch.debug or source is not None or has_own,
            capacity=capacity,
            score=rules.score,
            base_rate=rules.base_rate,
            built=None if has_own else built,
        )
        state.job.option[:] = option[: len(state.job.option)]
        state.drawn_until = drawn.known_until_s
        buffer = TraceBuffer(state) if watch.events else None
        stopwatch = Stopwatch(state) if config["time_scheduling"] else None
        go_on: Advance = stopwatch.advance if stopwatch else advance
        if watch.debug:
            go_on = checked(go_on, (SiteChecker if machine.kind == SITE else Checker)(state).check)
        has_short_passes = not has_own and _has_short_passes(machine, len(prepared), state)
        meter, began = Meter(go_on), time.perf_counter()
        state, code = _advance_to_end(state, meter, drawn, buffer, watch.progress, has_short_passes)
        elapsed = time.perf_counter() - began
        if code != st.NO_SPACE:
            break
        capacity *= 4
        if capacity > _MAX_CAPACITY:
            raise InputError(f"{machine.name}: the free nodes are too scattered for the partition finder")
    check_end(code, machine.name, state)
    if code == st.STUCK:
        waiting = prepared.job_id[np.isnan(state.job.finish)]
        raise InputError(f"{machine.name}: nodes never come up again that {named_jobs(waiting)} wait for")
    return _Ran(state, code, buffer, elapsed, meter.taken_s, stopwatch.passes_s if stopwatch else [])


class _Drawn:
    """The failures of a run, as far as they have been drawn; an endless source is drawn further while jobs run."""

    def __init__(
        self,
        source: FailureSource | None,
        jobs: Mapping[str, NDArray[Any]],
        machine: Machine,
        config: Mapping[str, Any],
        base_rate: BaseRate | None,
        capacity: int,
        has_own: bool,
    ) -> None:
        self._capacity = capacity
        self._source, self._machine, self._base_rate = source, machine, base_rate
        self._look_ahead_s = _look_ahead_s(jobs, config)
        self._draw_s = float(jobs["submit_s"][-1]) + 2.0 * self._look_ahead_s
        if _are_few(source, self._draw_s) and not has_own:
            self._draw_s = max(self._draw_s, min(1.25 * self._draw_s, LATEST_S))  # most runs need no more then

    @property
    def known_until_s(self) -> float:
        """Time up to which the simulation may go on, s."""
        if self._source is None or not self._source.endless:
            return math.inf
        return self._draw_s - self._look_ahead_s

    def known(self) -> FailureTrace | None:
        """Return the failures drawn so far."""
        if self._source is None:
            return None
        until_s = self._draw_s if self._source.endless else math.inf
        return check_failures(self._source.until(until_s), self._machine)

    def extend(self, state: State) -> State:
        """Return the state with failures drawn a quarter farther: those that it has, and more behind them."""
        self._draw_s *= 1.25
        rows = failure_rows(self.known(), self._base_rate)
        longer = state.with_arrays(failures=rows)
        if state.tracing:
            trace = trace_buffer(self._machine.capacity, state.job.submit.shape[0], rows.shape[1], self._capacity)
            longer = longer.with_arrays(trace=trace)
        longer.drawn_until = self.known_until_s
        if state.saves_by == st.BY_FORESIGHT and state.next_foreseen == math.inf:
            longer.next_foreseen = -math.inf  # none was left: look among the new failures
        return longer


def _are_few(source: FailureSource | None, until_s: float) -> bool:
    """Tell whether a generator of ours makes few failures, which are drawn as soon as fewer."""
    return isinstance(source, DrawnSource) and source.failures_per_day / DAY_S * until_s < _FEW_FAILURES


def _look_ahead_s(jobs: Mapping[str, NDArray[Any]], config: Mapping[str, Any]) -> float:
    """Return how far ahead of now failures must be known: for a predictor, as far as the estimate of a job."""
    longest = float(jobs["estimate_s"].max())
    name = run_of(config).named("checkpointing").facts.get("looks_ahead")
    return max(longest, config[name]) if name else longest


def _has_short_passes(machine: Machine, jobs: int, state: State) -> bool:
    """Tell whether no instant of a run with our policies takes so long that Ctrl-C could not wait for its end.

    Reservations under limits of running jobs take time with the square of the jobs: of 20,000, half a minute.
    """
    reserves = state.reserves in (st.ALL_JOBS, st.TOP_JOBS)
    few = _FEW_RESERVED if state.reserves == st.ALL_JOBS else _FEW_JOBS
    goes_over_queue = state.limited or (state.recovery and state.queue_order != st.DEFAULT)
    if goes_over_queue and jobs * min(jobs, machine.nodes) > _FEW_VISITS:
        return False
    return machine.kind == FLAT and jobs <= few and machine.nodes <= _FEW_NODES and not (reserves and state.limited)


def _directly(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _advance_to_end(
    state: State,
    go_on: Advance,
    drawn: _Drawn,
    buffer: TraceBuffer | None,
    progress: Callable[[float], None] | None,
    has_short_passes: bool,
) -> tuple[State, int]:
    """Call the kernel until the run ends; return the state and the kernel's last code.

    The state is another one, which shares all that changes, where failures had to be drawn further. Where passes are
    short, calls are made here up to the first that takes a tenth of a second: another thread, on a processor that has
    nothing of the state, takes longer.
    """
    call = _directly if has_short_passes else interruptible
    while True:
        code = int(call(go_on, state, WITHOUT_LIMIT))
        if code == st.CONTINUE:
            call = interruptible
        if buffer is not None:
            buffer.drain()
        if code == st.NEED_FAILURES:
            state = drawn.extend(state)
            if buffer is not None:
                buffer.move_to(state)
        elif code not in (st.CONTINUE, st.NEED_TRACE):
            return state, code
        if progress is not None:
            progress(float(state.finished) / max(1, state.job.submit.shape[0]))
