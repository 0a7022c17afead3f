"""The one interface of all failure sources."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.failure_trace import FailureTrace, check_trace
from faultsweep.simcore.model.workload import Workload
from numpy.typing import NDArray

from faultsweep.errors import InputError

DAY_S = 86400.0
MOST_FAILURES = 5_000_000  # that a run can hold in memory
_ENOUGH_TO_TELL = 100_000  # failures after which the mean rate is believed, a tenth of a second's work
_SURELY_TOO_MANY = 1.1 * MOST_FAILURES
"""Expected: so many vary by less than a hundredth, where the mean rate can be believed."""


@dataclass(frozen=True)
class Span:
    """The time that the jobs of a run take up.

    Attributes
    ----------
    origin_s : the first submission, on the job log's clock; failures are in seconds since then.
    length_s : time from the first to the last submission.
    full_s : the same of the whole log, to which ``num_failures`` refers.
    """

    origin_s: float
    length_s: float
    full_s: float

    @staticmethod
    def of(log: Workload, used: Workload, arrival_scale: float = 1.0) -> Span:
        """Return the span of the jobs ``used`` of a log, whose gaps between submissions ``arrival_scale`` divided.

        The jobs of a model that was calibrated to a log are a part of one that is as long.
        """
        full = (log.log_span_s or float(log.submit_s[-1] - log.submit_s[0])) / arrival_scale
        first = float(used.submit_s[0])
        return Span(used.origin_s + first, float(used.submit_s[-1]) - first, full)


class FailureSource(ABC):
    """Node failures of a run, as far as one asks for them, in seconds since its first submission.

    Attributes
    ----------
    name : what the source is called in tables and figures.
    content_hash : "sha256:..." of all that decides the failures.
    endless : whether failures go on for ever; if not, ``until(math.inf)`` returns them all.
    failures_per_day : their mean rate (of a generator: the rate that it approaches), NaN where it is unknown.
    """

    name: str
    content_hash: str
    endless: bool
    failures_per_day: float = math.nan

    @abstractmethod
    def until(self, time_s: float) -> FailureTrace:
        """Return all failures at or before a time, in order.

        They do not depend on what was asked for before: a later time only appends. Raises ValueError for an endless
        source and an infinite time, and InputError if there are more failures than fit in memory.
        """


class TraceSource(FailureSource):
    """A trace, or a pattern of failures that is repeated for ever."""

    def __init__(self, trace: FailureTrace, failures_per_day: float = math.nan, period_s: float = 0.0) -> None:
        """Hold a trace; with ``period_s`` > 0 it returns after every such time, and must be shorter than it.

        Raises
        ------
        InputError
            The arrays of the trace are not what they have to be.
        """
        check_trace(trace)
        self.trace = trace
        self.name, self.content_hash = trace.name, trace.content_hash
        self.failures_per_day = failures_per_day
        self.period_s = period_s
        self.endless = period_s > 0 and len(trace) > 0

    def until(self, time_s: float) -> FailureTrace:
        """Return all failures at or before a time."""
        trace = self.trace
        if not self.endless:
            return _cut(trace, time_s)
        _refuse_infinity(time_s)
        periods = max(1, math.floor((time_s - float(trace.time_s[0])) / self.period_s) + 1)
        refuse_too_many(self.name, periods * len(trace))
        shifts = np.repeat(np.arange(periods) * self.period_s, len(trace))
        times = np.tile(trace.time_s, periods) + shifts
        nodes, downs = np.tile(trace.node, periods), np.tile(trace.down_s, periods)
        return _cut(FailureTrace(times, nodes, downs, self.name, self.content_hash), time_s)


def unseen_sentence(source: FailureSource | None, end_s: float, during: str = "the run, which lasts") -> str:
    """Return the sentence for failures none of which is in a run that ends at ``end_s``, "" if one is.

    Their times are then those of another clock, most likely; a failure at the end of the run is in it. ``during`` says
    what lasts so long where nothing has been run.
    """
    if not isinstance(source, TraceSource) or not len(source.trace):
        return ""
    time_s = source.trace.time_s
    if ((time_s >= 0.0) & (time_s <= end_s)).any():
        return ""
    return (
        f"failures: none of the {len(time_s):,} failures of {source.name} is in {during} {end_s:.10g} s: "
        f"their times are {time_s[0]:.10g} to {time_s[-1]:.10g} s after the first submission (failure_fit = calendar "
        "takes the times of a file as those of the job log's clock, scale brings them to the span of the jobs)"
    )


class Block(NamedTuple):
    """Some failures in order: time_ms int64 (milliseconds from the start of the run), node int64, down_s float64."""

    time_ms: NDArray[np.int64]
    node: NDArray[np.int64]
    down_s: NDArray[np.float64]


class DrawnSource(FailureSource):
    """Random failures, drawn block by block as far as they are asked for."""

    endless = True

    def __init__(self, name: str, blocks: Iterator[Block], failures_per_day: float, facts: Mapping[str, Any]) -> None:
        """Draw from ``blocks``, an endless iterator in order of time; ``facts`` are all that decides the failures."""
        self.name = name
        self.content_hash = hash_of({"source": name, **facts})
        self.failures_per_day = failures_per_day
        self._blocks = blocks
        self._drawn = FailureTrace(np.empty(0), np.empty(0, np.int64), np.empty(0), name, self.content_hash)

    def until(self, time_s: float) -> FailureTrace:
        """Return all failures at or before a time."""
        _refuse_infinity(time_s)
        last = float(self._drawn.time_s[-1]) if len(self._drawn) else -math.inf
        fresh: list[tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]] = []
        count = len(self._drawn)
        far_too_many = self.failures_per_day / DAY_S * time_s > _SURELY_TOO_MANY
        while last <= time_s:
            if far_too_many and count > _ENOUGH_TO_TELL:
                refuse_too_many(self.name, math.inf)
            block = next(self._blocks)
            if len(block.time_ms):
                fresh.append((block.time_ms / 1000.0, block.node, block.down_s))
                last = float(fresh[-1][0][-1])
                count += len(block.time_ms)
                refuse_too_many(self.name, count)
        if fresh:
            old = (self._drawn.time_s, self._drawn.node, self._drawn.down_s)
            times, nodes, downs = (np.concatenate(parts) for parts in zip(old, *fresh, strict=True))
            self._drawn = FailureTrace(times, nodes, downs, self.name, self.content_hash)
        return _cut(self._drawn, time_s)


def hash_of(facts: Mapping[str, Any]) -> str:
    """Return the content hash of what decides some failures."""
    return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def _cut(trace: FailureTrace, time_s: float) -> FailureTrace:
    end = int(np.searchsorted(trace.time_s, time_s, side="right"))
    if end == len(trace):
        return trace
    return FailureTrace(trace.time_s[:end], trace.node[:end], trace.down_s[:end], trace.name, trace.content_hash)


def _refuse_infinity(time_s: float) -> None:
    if not math.isfinite(time_s):
        raise ValueError("an endless failure source can only be drawn until a finite time")


def refuse_too_many(name: str, count: float) -> None:
    """Raise InputError for more failures than a run can hold in memory."""
    if count > MOST_FAILURES:
        raise InputError(
            f"failures: {name} makes more than {MOST_FAILURES:,} failures in this run; use fewer failures or shorter "
            "down times: a run continues until its jobs find nodes that stay up for long enough"
        )
