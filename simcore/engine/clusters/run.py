"""Running a configuration on clusters: failures of nodes and trunks, the compiled loop, and its buffers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.clusters import state as cs
from faultsweep.simcore.engine.clusters.build import build_clusters, failure_rows, trace_buffer
from faultsweep.simcore.engine.clusters.checks import ClusterChecker
from faultsweep.simcore.engine.clusters.communication import Communication
from faultsweep.simcore.engine.clusters.loop import advance_clusters
from faultsweep.simcore.engine.clusters.state import ClusterState
from faultsweep.simcore.engine.event_trace import TraceBuffer
from faultsweep.simcore.engine.interruptible import interruptible
from faultsweep.simcore.engine.steps import Meter, Stopwatch, checked
from faultsweep.simcore.engine.watch import WITHOUT_LIMIT, check_end, named_jobs
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import Machine, parse_machine
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures.source import FailureSource
from numpy.typing import NDArray

from faultsweep.errors import InputError

_MAX_CAPACITY = 1 << 10
_REASONS = 3  # that a message gives

Jobs = Mapping[str, NDArray[Any]]


@dataclass
class Watch:
    """What the caller wants to know of a run while it goes on."""

    events: bool = False
    trace: bool = False
    debug: bool = False
    progress: Callable[[float], None] | None = None


@dataclass
class Ran:
    """A run that is over: its state, why it stopped, its events, the agent's steps, its durations, s."""

    state: ClusterState
    code: int
    buffer: TraceBuffer | None
    decisions: NDArray[np.float64]
    elapsed_s: float
    processor_s: float
    passes_s: list[float] = field(default_factory=list)


@lru_cache
def load_kernels() -> None:
    """Compile the engine, or load it from the cache, by running it on one job: no run's time includes that."""
    jobs = {name: np.array([1.0]) for name in ("submit_s", "work_s", "run_s", "estimate_s")}
    jobs |= {"size": np.array([1]), "home": np.array([0])}
    config = resolve({"machine": "clusters:1", "scheduler": "first-fit"})
    silent = Communication(np.zeros(1), np.zeros(1), np.full(1, np.nan))
    state = build_clusters(jobs, silent, parse_machine("clusters:1"), config, None, tracing=False, telling=False)
    interruptible(advance_clusters, state, 10)


def run_clusters(
    jobs: Jobs,
    communication: Communication,
    machine: Machine,
    config: Mapping[str, Any],
    source: FailureSource | None,
    watch: Watch,
) -> Ran:
    """Run to the end; if a list is too small, run again from the start with larger ones."""
    load_kernels()
    capacity = 1
    while True:
        ran = _Run(jobs, communication, machine, config, source, watch, capacity).to_end()
        if ran.code != st.NO_SPACE:
            break
        capacity *= 4
        if capacity > _MAX_CAPACITY:
            raise InputError(f"{machine.name}: the agent takes too many steps at one time to be traced")
    check_end(ran.code, machine.name, ran.state)
    if ran.code == st.STUCK:
        raise InputError(f"{machine.name}: {_why_stuck(ran.state, machine, jobs['job_id'])}")
    return ran


def _why_stuck(s: ClusterState, machine: Machine, job_id: NDArray[np.int64]) -> str:
    """Say which jobs wait for ever, and why."""
    impossible = np.flatnonzero(s.job.refused_at == cs.NEVER)
    if not len(impossible):
        return f"nodes or trunks never come up again that {named_jobs(job_id[np.isnan(s.job.finish)])} wait for"
    reasons: dict[str, str] = {}
    for job in impossible.tolist():
        reasons.setdefault(_why_never(s, machine, job), f"job {job_id[job]} needs {s.job.size[job]} nodes, ")
        if len(reasons) == _REASONS:
            break
    why = "; ".join(begin + reason for reason, begin in reasons.items())
    return f"{named_jobs(job_id[impossible])} can never start: {why}"


def _why_never(s: ClusterState, machine: Machine, job: int) -> str:
    """Say why a job has no place on the idle machine."""
    home = int(s.job.home[job])
    if s.stays_home == 1:
        return f"its cluster has {machine.clusters[home]}, and it may run nowhere else (meta_scheduler = local)"
    largest = f"the largest cluster has {max(machine.clusters)}"
    if s.spreads == 0:
        return f"{largest}, and it may not run over several (meta_scheduler = migration-only)"
    if s.job.offences[job] >= 2:
        return f"{largest}, and the agent has taken it off its trunks twice, so it may not run over several again"
    if np.isnan(s.job.stated[job]):
        return f"{largest}, and it states no bandwidth, so it may not run over several (information below 1)"
    mbps = s.job.stated[job]
    return f"{largest}, and with {mbps:g} Mbit/s for each processor no partition fits the trunks"


class _Run:
    """One run from the first event to the last."""

    def __init__(
        self,
        jobs: Jobs,
        communication: Communication,
        machine: Machine,
        config: Mapping[str, Any],
        source: FailureSource | None,
        watch: Watch,
        capacity: int,
    ) -> None:
        self._machine, self._source, self._watch, self._capacity = machine, source, watch, capacity
        self._draw_s = float(jobs["submit_s"][-1]) + 2.0 * float(jobs["estimate_s"].max())
        self.state = build_clusters(
            jobs,
            communication,
            machine,
            config,
            self._failures(),
            tracing=watch.events,
            telling=watch.trace,
            capacity=capacity,
        )
        self.state.drawn_until = self._known_until_s
        self._buffer = TraceBuffer(self.state) if watch.events else None
        self._decisions: list[NDArray[np.float64]] = []
        self._stopwatch = Stopwatch(self.state, advance_clusters) if config["time_scheduling"] else None
        go_on = self._stopwatch.advance if self._stopwatch else advance_clusters
        self._go_on = checked(go_on, ClusterChecker(self.state, config).check) if watch.debug else go_on

    @property
    def _known_until_s(self) -> float:
        endless = self._source is not None and self._source.endless
        return self._draw_s if endless else math.inf

    def _failures(self) -> FailureTrace | None:
        """Return the failures drawn so far."""
        return None if self._source is None else self._source.until(self._known_until_s)

    def to_end(self) -> Ran:
        """Call the kernel until the run ends."""
        meter, began = Meter(self._go_on), time.perf_counter()
        while True:
            code = int(meter(self.state, WITHOUT_LIMIT))
            self._drain()
            if code == st.NEED_FAILURES:
                self._draw_further()
            elif code not in (st.CONTINUE, st.NEED_TRACE):
                break
            if self._watch.progress is not None:
                self._watch.progress(float(self.state.finished) / self.state.job.submit.shape[0])
        elapsed = time.perf_counter() - began
        decisions = np.concatenate(self._decisions) if self._decisions else np.zeros((0, cs.NUM_DECISION_COLUMNS))
        passes = self._stopwatch.passes_s if self._stopwatch else []
        return Ran(self.state, code, self._buffer, decisions, elapsed, meter.taken_s, passes)

    def _drain(self) -> None:
        """Empty the buffers of events and of the agent's steps."""
        if self._buffer is not None:
            self._buffer.drain()
        if self._watch.trace:
            end = int(self.state.decisions_end)
            self._decisions.append(self.state.decisions[:end].copy())
            self.state.decisions_end = 0

    def _draw_further(self) -> None:
        """Go on with a state that has failures drawn twice as far, and shares all that changes."""
        self._draw_s *= 2.0
        rows = failure_rows(self._failures())
        self.state = self.state.with_arrays(failures=rows)
        if self._buffer is not None:
            jobs = self.state.job.submit.shape[0]
            self.state = self.state.with_arrays(trace=trace_buffer(self._machine, jobs, rows.shape[1], self._capacity))
            self._buffer.move_to(self.state)
        self.state.drawn_until = self._known_until_s
