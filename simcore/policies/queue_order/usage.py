"""What users and accounts have used by the time at which ``multifactor`` calculated priorities last.

Usage is in node-seconds and decays with a half-life h. As SLURM counts it, once in a period of P seconds:

- at a calculation, what had been used before counts 2^(-P / h) times; what a running job has used since, in t seconds,
  counts t 2^(-t / h) times its nodes;
- when a job ends, so does what it has used since the last calculation.

If priorities are calculated at every event, what was used t seconds ago counts 2^(-t / h).

Source: SLURM 22.05, priority/multifactor (priority_multifactor.c: _apply_new_usage, _decay_thread).
"""

from __future__ import annotations

import math

import numpy as np
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.state import State


@inlined
def calculated_at(s: State) -> float:
    """Return when priorities were calculated last, s."""
    if s.priority_period == 0.0:
        return s.now
    return _begin_of(s, _periods(s))


@inlined
def calculated_next(s: State) -> float:
    """Return when priorities are calculated next if nothing happens before, s; infinity if nothing can come of it."""
    if s.priority_period == 0.0 or (s.age_weight == 0.0 and s.share_weight == 0.0):
        return np.inf
    return _begin_of(s, _periods(s) + 1.0)


@inlined
def _begin_of(s: State, period: float) -> float:
    return s.job.submit[0] + period * s.priority_period


@inlined
def _periods(s: State) -> float:
    """Return how many whole periods have passed; their begins are compared, not their number, which is rounded."""
    count = np.floor((s.now - s.job.submit[0]) / s.priority_period)
    if _begin_of(s, count + 1.0) <= s.now:
        return count + 1.0
    return count - 1.0 if _begin_of(s, count) > s.now else count


@kernel
def note_usage(s: State, job: int, nodes: int) -> None:
    """Count from now on ``nodes`` more (or, below 0, less) as used by a job's association, its accounts and all."""
    calculated = calculated_at(s)
    if nodes > 0:
        s.job.counted_since[job] = s.now
    at = s.job.association[job]
    while at >= 0:
        s.used[at] = used_when(s, at, calculated)
        if s.priority_period > 0.0:
            _note_in_period(s, at, nodes, calculated, s.job.counted_since[job])
        s.used_until[at] = calculated
        s.in_use[at] += nodes
        at = s.parent[at]


@inlined
def _note_in_period(s: State, at: int, nodes: int, calculated: float, since: float) -> None:
    """Note nodes that come into use, or go out of it, after the last calculation; these are in use since a time."""
    if s.used_until[at] < calculated:
        s.begun[at] = s.begun_counts[at] = s.ended_counts[at] = 0.0
    if since >= calculated:
        span = calculated_next(s) - since
        s.begun[at] += nodes
        s.begun_counts[at] = s.begun_counts[at] + nodes * span * _left_after(s, span) if s.begun[at] > 0.0 else 0.0
    if nodes < 0:
        span = s.now - max(since, calculated)
        s.ended_counts[at] -= nodes * span * _left_after(s, span)


@inlined
def _left_after(s: State, span: float) -> float:
    """Return the part of usage that counts after a time."""
    return 1.0 if s.half_life == 0.0 else np.exp(-np.log(2.0) / s.half_life * span)


@kernel
def used_when(s: State, at: int, time: float) -> float:
    """Return the decayed usage at a time since the last change, when priorities are calculated, node-seconds."""
    span = time - s.used_until[at]
    if span == 0.0:
        return s.used[at]
    rate = 0.0 if s.half_life == 0.0 else np.log(2.0) / s.half_life
    if s.priority_period == 0.0:
        ran = span if rate == 0.0 else -np.expm1(-rate * span) / rate
        return s.used[at] * np.exp(-rate * span) + s.in_use[at] * ran
    each, more = s.priority_period, np.floor(span / s.priority_period + 0.5) - 1.0
    part = np.exp(-rate * each)
    first = (s.used[at] + s.ended_counts[at] + (s.in_use[at] - s.begun[at]) * each) * part + s.begun_counts[at]
    periods = more if rate == 0.0 else np.expm1(-rate * each * more) / np.expm1(-rate * each)
    return first * np.exp(-rate * each * more) + s.in_use[at] * each * part * periods


def expected_usage(s: State, at: int, time: float) -> float:
    """Return it for the checks of debug mode, which share no code with kernels."""
    span, each, half_life = time - float(s.used_until[at]), float(s.priority_period), float(s.half_life)
    used, nodes = float(s.used[at]), float(s.in_use[at])
    if span <= 0:
        return used
    if not each:
        if not half_life:
            return used + nodes * span
        left = 2 ** (-span / half_life)
        return used * left + nodes * (1 - left) * half_life / math.log(2)
    part, periods = 2 ** (-each / half_life) if half_life else 1.0, round(span / each)
    used = (used + float(s.ended_counts[at])) * part + float(s.begun_counts[at])
    used += (nodes - float(s.begun[at])) * each * part
    left = part ** (periods - 1)
    again = (1 - left) / (1 - part) if part < 1 else periods - 1
    return used * left + nodes * each * part * again
